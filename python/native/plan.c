// A bound plan: in C nothing of a call is looked at again, so all that could go wrong is compared here.
#include "native.h"

#include <stdio.h>
#include <string.h>

// What a tensor must be to be taken in place of the one that was bound.
typedef struct bound_tensor {
    hone_tensor like; // no data
    int64_t shape[HONE_MAX_RANK], strides[HONE_MAX_RANK];
    int64_t span;     // bytes
    unsigned aligned; // its data's alignment, up to 16
    size_t value;     // its place among the values
} bound_tensor;

typedef struct native_plan {
    PyObject_HEAD native_operation *operation;
    const hone_plan *plan;
    size_t count; // values
    hone_value values[MAX_VALUES];
    PyObject *texts;  // keeps the strings of values
    PyObject *stream; // of every call that names none; NULL: the arrays' own
    bool makes_results, asks_axes, swaps;
    bool is_short;                    // its runs keep the interpreter's lock
    size_t tensor_count, input_count; // in order; those in front are parameters
    bound_tensor *tensors;
} native_plan;

static unsigned alignment_of(const hone_tensor *tensor)
{
    uintptr_t address = (uintptr_t)hone_tensor_data(tensor);
    return (address & 15) == 0 ? 16 : 1u << __builtin_ctzll(address);
}

static void fill_strides(const hone_tensor *tensor, int64_t *out)
{
    int64_t step = 1;
    for (int32_t i = tensor->ndim; i-- > 0; step *= tensor->shape[i])
        out[i] = tensor->strides != NULL ? tensor->strides[i] : step;
}

static bool bind_tensor(bound_tensor *out, const hone_tensor *tensor, size_t value, PyObject *name)
{
    int64_t below = 0;
    out->like = *tensor;
    out->aligned = alignment_of(tensor);
    out->value = value;
    for (int32_t i = 0; i < tensor->ndim; i++)
        out->shape[i] = tensor->shape[i];
    fill_strides(tensor, out->strides);
    if (hone_tensor_span(tensor, &out->span, &below) == HONE_OK && below == 0) return true;
    PyErr_Format(
        PyExc_ValueError, "%U has a negative stride, which no plan takes: call hone.run, or give a copy of it", name);
    return false;
}

static bool bind_tensors(native_plan *self, const native_arguments *arguments)
{
    self->tensors = PyMem_Calloc(arguments->held_count, sizeof *self->tensors);
    if (self->tensors == NULL) return PyErr_NoMemory() != NULL;
    for (size_t i = 0; i < arguments->count; i++) {
        if (arguments->values[i].tag != HONE_VALUE_TENSOR) continue;
        if (!bind_tensor(
                &self->tensors[self->tensor_count], arguments->values[i].as.tensor, i,
                self->operation->parameters[i].name))
            return false;
        self->tensor_count++;
        self->input_count += !self->operation->parameters[i].is_result;
    }
    return true;
}

// Strings are borrowed from their objects.
static bool keep_texts(native_plan *self, const native_arguments *arguments)
{
    self->texts = PyList_New(0);
    bool kept = self->texts != NULL;
    for (size_t i = 0; kept && i < arguments->count; i++)
        if (arguments->values[i].tag == HONE_VALUE_STRING)
            kept = PyList_Append(self->texts, arguments->objects[i]) == 0;
    return kept;
}

static bool bind(native_plan *self, const native_arguments *arguments)
{
    hone_context *context = NULL;
    PyObject *entered = NULL;
    hone_status status;
    hone_error err;
    if (!native_context_current(&context, &entered)) return false;
    Py_BEGIN_ALLOW_THREADS hone_context *previous = hone_context_enter(context);
    status = hone_bind(self->operation->op, arguments->values, arguments->count, &self->plan, &err);
    hone_context_enter(previous);
    Py_END_ALLOW_THREADS Py_XDECREF(entered);
    if (status != HONE_OK) native_raise(&err);
    return status == HONE_OK;
}

static void release_made(PyObject **made, size_t count)
{
    for (size_t i = 0; i < count; i++)
        Py_XDECREF(made[i]);
}

PyObject *native_plan_new(native_operation *operation, native_arguments *arguments)
{
    PyObject *made[MAX_VALUES] = {0}, *results;
    bool makes_results = arguments->lacks_results;
    native_plan *self = PyObject_New(native_plan, native.plan_type);
    if (self == NULL) return NULL;
    Py_INCREF((PyObject *)operation);
    self->operation = operation;
    self->plan = NULL;
    self->texts = NULL;
    self->stream = arguments->stream != Py_None ? arguments->stream : NULL;
    Py_XINCREF(self->stream);
    self->asks_axes = arguments->asks_axes;
    self->swaps = arguments->swaps;
    self->tensors = NULL;
    self->tensor_count = self->input_count = 0;
    self->makes_results = makes_results;
    self->is_short = false;
    results = native_arguments_results(arguments, operation, made);
    bool done =
        results != NULL && bind_tensors(self, arguments) && keep_texts(self, arguments) && bind(self, arguments);
    self->is_short = hone_plan_is_short(self->plan);
    self->count = arguments->count;
    memcpy(self->values, arguments->values, arguments->count * sizeof *self->values);
    Py_XDECREF(results);
    release_made(made, operation->count);
    if (!done) Py_CLEAR(self);
    return (PyObject *)self;
}

// --- running

static bool same_layout(const bound_tensor *bound, const hone_tensor *tensor)
{
    const hone_tensor *like = &bound->like;
    if (memcmp(&like->device, &tensor->device, sizeof like->device) != 0) return false;
    if (like->ndim != tensor->ndim || memcmp(&like->dtype, &tensor->dtype, sizeof like->dtype) != 0) return false;
    int64_t step = 1;
    for (int32_t i = tensor->ndim; i-- > 0; step *= tensor->shape[i]) {
        int64_t stride = tensor->strides != NULL ? tensor->strides[i] : step;
        if (tensor->shape[i] != bound->shape[i] || (stride != bound->strides[i] && tensor->shape[i] != 1)) return false;
    }
    return true;
}

static bool apart(const native_plan *self, const native_arguments *arguments, size_t result, size_t other)
{
    uintptr_t a = (uintptr_t)hone_tensor_data(arguments->held[result].tensor),
              b = (uintptr_t)hone_tensor_data(arguments->held[other].tensor);
    size_t span_a = (size_t)self->tensors[result].span, span_b = (size_t)self->tensors[other].span;
    if (a + span_a <= b || b + span_b <= a) return true;
    bool is_input = other < self->input_count;
    return a == b && is_input && self->operation->parameters[self->tensors[result].value].is_inout;
}

static bool check_apart(const native_plan *self, const native_arguments *arguments)
{
    for (size_t r = self->input_count; r < self->tensor_count; r++)
        for (size_t o = 0; o < r; o++)
            if (!apart(self, arguments, r, o)) {
                PyErr_Format(
                    PyExc_ValueError, "%U: the result %U overlaps %U: results must be apart from all other tensors",
                    self->operation->name, self->operation->parameters[self->tensors[r].value].name,
                    self->operation->parameters[self->tensors[o].value].name);
                return false;
            }
    return true;
}

static bool same_shape(const bound_tensor *bound, const hone_tensor *tensor)
{
    if (memcmp(&bound->like.dtype, &tensor->dtype, sizeof tensor->dtype) != 0) return false;
    return bound->like.ndim == tensor->ndim &&
           memcmp(bound->shape, tensor->shape, (size_t)tensor->ndim * sizeof *tensor->shape) == 0;
}

// "f32 of shape (3, 4)"
static PyObject *describe(hone_dtype dtype, int32_t ndim, const int64_t *shape)
{
    const hone_dtype_info *info = hone_dtype_find(dtype);
    PyObject *dims = native_shape(&(hone_tensor){.ndim = ndim, .shape = (int64_t *)(uintptr_t)shape});
    PyObject *text =
        dims != NULL ? PyUnicode_FromFormat("%s of shape %R", info != NULL ? info->name : "?", dims) : NULL;
    Py_XDECREF(dims);
    return text;
}

static bool fail_tensor(const native_plan *self, const bound_tensor *bound, const hone_tensor *tensor)
{
    static const char do_what[] = "bind the call that you have, or call hone.run";
    PyObject *operation = self->operation->name, *name = self->operation->parameters[bound->value].name;
    const char *differs = "another alignment";
    if (memcmp(&bound->like.device, &tensor->device, sizeof tensor->device) != 0)
        differs = "another device";
    else if (!same_layout(bound, tensor))
        differs = "other strides";
    if (same_shape(bound, tensor)) {
        PyErr_Format(
            PyExc_ValueError, "%U: %U has %s than the plan was bound for, %s: %s", operation, name, differs,
            hone_call_text(self->plan->call), do_what);
        return false;
    }
    PyObject *given = describe(tensor->dtype, tensor->ndim, tensor->shape);
    PyObject *expected = given != NULL ? describe(bound->like.dtype, bound->like.ndim, bound->shape) : NULL;
    if (expected != NULL)
        PyErr_Format(
            PyExc_ValueError, "%U: %U is %U, and the plan was bound for %U: %s", operation, name, given, expected,
            do_what);
    Py_XDECREF(given);
    Py_XDECREF(expected);
    return false;
}

// A list of numbers, in the dtype that was bound.
static PyObject *array_of(native_arguments *out, const bound_tensor *bound, PyObject *list)
{
    char type[64];
    const hone_dtype_info *info = hone_dtype_find(bound->like.dtype);
    snprintf(type, sizeof type, "%s[]", info != NULL ? info->name : "f32");
    return native_arguments_listed(out, list, type, "", PyList_New(0));
}

static bool take(const native_plan *self, native_arguments *out, PyObject *object)
{
    native_tensor *tensor = &out->held[out->held_count];
    const bound_tensor *bound = &self->tensors[out->held_count];
    const native_parameter *parameter = &self->operation->parameters[bound->value];
    if (!parameter->is_result && native_tensor_is_listed(object, NATIVE_TO_RUN)) object = array_of(out, bound, object);
    if (object == NULL) return native_arguments_name(parameter);
    if (!native_tensor_of(object, NATIVE_TO_RUN, &out->is_outside_forward, tensor))
        return native_arguments_name(parameter);
    out->held_count++;
    if (self->swaps && !native_tensor_swap(tensor)) return native_arguments_name(parameter);
    if (parameter->is_result && !native_tensor_check_writable(object, tensor, parameter->name)) return false;
    if (!same_layout(bound, tensor->tensor) || alignment_of(tensor->tensor) < bound->aligned)
        return fail_tensor(self, bound, tensor->tensor);
    out->values[bound->value] = hone_of_tensor(tensor->tensor);
    out->objects[bound->value] = object;
    return true;
}

static bool take_all(const native_plan *self, native_arguments *out, PyObject *args, size_t given)
{
    size_t asked = self->makes_results ? self->input_count : self->tensor_count;
    memcpy(out->values, self->values, self->count * sizeof *out->values);
    out->count = self->count;
    out->held_count = 0;
    out->execution = NULL;
    out->makes = out->asks_axes = false;
    out->made = out->lists = 0;
    out->listed = NULL;
    out->is_outside_forward = false;
    out->swaps = self->swaps;
    out->lacks_results = given == self->input_count && self->makes_results;
    if (given != asked && given != self->tensor_count) {
        PyErr_Format(PyExc_TypeError, "the plan of %U takes %zu arrays, got %zu", self->operation->name, asked, given);
        return false;
    }
    for (size_t i = 0; i < given; i++)
        if (!take(self, out, PyTuple_GetItem(args, (Py_ssize_t)i))) return false;
    if (!out->lacks_results) return check_apart(self, out);
    out->like = given > 0 ? PyTuple_GetItem(args, 0) : NULL;
    for (size_t i = given; i < self->tensor_count; i++) {
        out->values[self->tensors[i].value] = hone_of_none();
        out->objects[self->tensors[i].value] = NULL;
    }
    return true;
}

static hone_status run_plan(
    const native_plan *self, const native_arguments *arguments, const native_execution *execution, hone_error *err)
{
    hone_status status = self->plan->run(self->plan, arguments->values, native_execution_of(execution));
    if (status == HONE_OK) return native_execution_end(execution, self->operation->runtime, err);
    return hone_plan_failed(self->plan, status, err);
}

static hone_status run_unlocked(
    const native_plan *self, const native_arguments *arguments, const native_execution *execution, hone_error *err)
{
    hone_status status;
    Py_BEGIN_ALLOW_THREADS status = run_plan(self, arguments, execution, err);
    Py_END_ALLOW_THREADS return status;
}

static PyObject *run(const native_plan *self, native_arguments *arguments, const native_execution *execution)
{
    PyObject *made[MAX_VALUES];
    memset(made, 0, self->operation->count * sizeof *made);
    arguments->execution = execution;
    PyObject *results = native_arguments_results(arguments, self->operation, made);
    if (results != NULL) {
        hone_error err;
        const hone_status status = self->is_short ? run_plan(self, arguments, execution, &err)
                                                  : run_unlocked(self, arguments, execution, &err);
        if (status != HONE_OK) {
            native_raise(&err);
            Py_CLEAR(results);
        }
    }
    if (arguments->lacks_results) release_made(made, self->operation->count);
    return results;
}

// *out is borrowed.
static bool take_stream(const native_plan *self, PyObject *keywords, PyObject **out)
{
    PyObject *given = keywords != NULL ? PyDict_GetItemString(keywords, "stream") : NULL;
    *out = given != NULL && given != Py_None ? given : self->stream;
    if (keywords == NULL || PyDict_Size(keywords) == (given != NULL)) return true;
    PyErr_SetString(
        PyExc_TypeError,
        "a plan takes arrays by position, and stream by name: its scalars are those that it was bound with");
    return false;
}

static PyObject *call(PyObject *object, PyObject *args, PyObject *keywords)
{
    const native_plan *self = (native_plan *)object;
    native_arguments arguments;
    native_execution execution;
    PyObject *results = NULL, *stream;
    if (!take_stream(self, keywords, &stream)) return NULL;
    if (take_all(self, &arguments, args, (size_t)PyTuple_Size(args))) {
        if (native_execution_open(&execution, self->operation->runtime, &arguments, stream))
            results = run(self, &arguments, &execution);
        if (results != NULL && !native_arguments_written(&arguments, self->operation)) Py_CLEAR(results);
        native_execution_close(&execution);
    }
    native_arguments_release(&arguments);
    return results;
}

// --- what it is

static PyObject *get_kernel(PyObject *self, void *closure)
{
    (void)closure;
    return native_text(((native_plan *)self)->plan->kernel->name);
}

static PyObject *get_current(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(hone_plan_is_current(((native_plan *)self)->plan));
}

static PyObject *get_text(PyObject *self, void *closure)
{
    (void)closure;
    return native_text(hone_call_text(((native_plan *)self)->plan->call));
}

static void dealloc(PyObject *object)
{
    native_plan *self = (native_plan *)object;
    hone_plan_release(&self->plan);
    PyMem_Free(self->tensors);
    Py_XDECREF(self->texts);
    Py_XDECREF(self->stream);
    Py_DECREF((PyObject *)self->operation);
    native_object_free(object);
}

static PyObject *represent(PyObject *self)
{
    const hone_plan *plan = ((native_plan *)self)->plan;
    return PyUnicode_FromFormat("<hone plan of %s for %s>", plan->kernel->name, hone_call_text(plan->call));
}

static PyObject *refuse_pickle(PyObject *self, PyObject *none)
{
    (void)none;
    return PyErr_Format(
        PyExc_TypeError,
        "%R holds code and memory of its process, and cannot be pickled: hand the call on, and bind it there", self);
}

static PyMethodDef methods[] = {
    {"__reduce__", refuse_pickle, METH_NOARGS, "Raises TypeError: a plan belongs to its process."},
    {0},
};

static PyGetSetDef fields[] = {
    {"kernel", get_kernel, NULL, "Name of the kernel that it runs.", NULL},
    {"text", get_text, NULL, "Call text of what was bound.", NULL},
    {"current", get_current, NULL, "Whether the call would still be answered with it.", NULL},
    {0},
};

PyTypeObject *native_plan_make_type(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)dealloc}, {Py_tp_call, (void *)call}, {Py_tp_repr, (void *)represent},
        {Py_tp_methods, methods},         {Py_tp_getset, fields},     {0},
    };
    return native_make_type(module, "hone._hone.Plan", sizeof(native_plan), slots);
}
