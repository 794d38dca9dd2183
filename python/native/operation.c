// An algorithm of the registry, ready to be called, and calls described without data.
#include "native.h"

#include <string.h>

// --- running

// Without the interpreter's lock, which takes as long to give up and take as a small kernel does.
static hone_status run_unlocked(
    native_operation *operation,
    native_arguments *arguments,
    const native_execution *execution,
    hone_context *context,
    hone_error *err)
{
    hone_status status;
    Py_BEGIN_ALLOW_THREADS hone_context *previous = context != NULL ? hone_context_enter(context) : NULL;
    status = hone_run(operation->op, arguments->values, arguments->count, native_execution_of(execution), err);
    if (status == HONE_OK) status = native_execution_end(execution, operation->runtime, err);
    if (context != NULL) hone_context_enter(previous);
    Py_END_ALLOW_THREADS return status;
}

// Everything of a call but the taking of its arguments and of its stream.
static PyObject *run_on(native_operation *operation, native_arguments *arguments, const native_execution *execution)
{
    PyObject *made[MAX_VALUES], *entered = NULL, *results;
    hone_context *context = NULL;
    hone_error err;
    memset(made, 0, operation->count * sizeof *made);
    results = native_arguments_results(arguments, operation, made);
    if (results != NULL && native_context_current(&context, &entered)) {
        const bool is_done = context == NULL && !execution->on_gpu &&
                             hone_run_if_short(operation->op, arguments->values, arguments->count);
        if (!is_done && run_unlocked(operation, arguments, execution, context, &err) != HONE_OK) {
            native_raise(&err);
            Py_CLEAR(results);
        }
    } else {
        Py_CLEAR(results);
    }
    Py_XDECREF(entered);
    for (size_t i = 0; arguments->lacks_results && i < operation->count; i++)
        Py_XDECREF(made[i]);
    return results;
}

PyObject *native_operation_run_taken(native_operation *operation, native_arguments *arguments)
{
    native_execution execution;
    PyObject *results = NULL;
    if (native_execution_open(&execution, operation->runtime, arguments, arguments->stream)) {
        arguments->execution = &execution;
        results = run_on(operation, arguments, &execution);
    }
    native_execution_close(&execution);
    arguments->execution = NULL;
    return results;
}

PyObject *native_operation_run(native_operation *operation, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    native_arguments arguments;
    if (!native_arguments_take(&arguments, operation, args, count, names, NATIVE_TO_RUN)) return NULL;
    PyObject *results = native_operation_run_taken(operation, &arguments);
    if (results != NULL && !native_arguments_written(&arguments, operation)) Py_CLEAR(results);
    native_arguments_release(&arguments);
    return results;
}

PyObject *native_operation_bind(native_operation *operation, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    native_arguments arguments;
    native_execution execution;
    PyObject *plan = NULL;
    if (!native_arguments_take(&arguments, operation, args, count, names, NATIVE_TO_RUN)) return NULL;
    if (native_execution_open(&execution, operation->runtime, &arguments, arguments.stream) &&
        native_execution_check_uncaptured(&execution, operation->runtime, "binding decides and loads code")) {
        arguments.execution = &execution;
        plan = native_plan_new(operation, &arguments);
    }
    native_execution_close(&execution);
    native_arguments_release(&arguments);
    return plan;
}

PyObject *native_operation_call(native_operation *operation, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    native_arguments arguments;
    hone_call *call = NULL;
    if (!native_arguments_take(&arguments, operation, args, count, names, NATIVE_TO_DESCRIBE)) return NULL;
    bool done = native_arguments_describe(&arguments, operation, &call);
    native_arguments_release(&arguments);
    return done ? native_call_new(operation, call) : NULL;
}

PyObject *native_with_operation(
    native_runtime *runtime,
    native_operation_function *function,
    PyObject *const *args,
    Py_ssize_t count,
    PyObject *names)
{
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "expected the name of an operation first, got no arguments");
        return NULL;
    }
    Py_INCREF((PyObject *)runtime);
    native_operation *operation = native_operation_find(runtime, args[0]);
    Py_XINCREF((PyObject *)operation);
    Py_DECREF((PyObject *)runtime);
    if (operation == NULL) return NULL;
    PyObject *made = function(operation, args + 1, count - 1, names);
    Py_DECREF((PyObject *)operation);
    return made;
}

static PyObject *method_run(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    return native_operation_run((native_operation *)self, args, count, names);
}

static PyObject *method_bind(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    return native_operation_bind((native_operation *)self, args, count, names);
}

static PyObject *method_call(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    return native_operation_call((native_operation *)self, args, count, names);
}

// "rms_norm(f32[4,256], f32[256])" as a call.
static PyObject *method_parse(PyObject *self, PyObject *text)
{
    native_operation *operation = (native_operation *)self;
    const char *utf8 = native_utf8(text);
    hone_allocator allocator = {0};
    hone_call *call = NULL;
    hone_error err;
    if (utf8 == NULL) return NULL;
    if (hone_call_parse(allocator, operation->signature, utf8, &call, &err) != HONE_OK) return native_raise(&err);
    return native_call_new(operation, call);
}

// The same of the canonical JSON of a call.
static PyObject *method_from_spec(PyObject *self, PyObject *text)
{
    native_operation *operation = (native_operation *)self;
    const char *utf8 = native_utf8(text);
    hone_allocator allocator = {0};
    hone_call *call = NULL;
    hone_error err;
    if (utf8 == NULL) return NULL;
    if (hone_call_from_spec(allocator, operation->signature, utf8, strlen(utf8), &call, &err) != HONE_OK)
        return native_raise(&err);
    return native_call_new(operation, call);
}

// --- what it is

static PyObject *get_signature(PyObject *self, void *closure)
{
    (void)closure;
    return native_text(hone_signature_text(((native_operation *)self)->signature));
}

static PyObject *get_version(PyObject *self, void *closure)
{
    (void)closure;
    return native_text(hone_signature_version(((native_operation *)self)->signature));
}

static PyObject *get_name(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *name = ((native_operation *)self)->name;
    Py_INCREF(name);
    return name;
}

static PyObject *get_independent(PyObject *self, void *closure)
{
    (void)closure;
    return native_text(hone_op_independent(((native_operation *)self)->op));
}

static PyObject *get_asks_axes(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((native_operation *)self)->asks_axes);
}

// For libhone_xla.so.
static PyObject *get_address(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromVoidPtr((void *)(uintptr_t)((native_operation *)self)->op);
}

static PyObject *default_of(const hone_parameter *parameter)
{
    const hone_value *value = &parameter->default_value;
    switch (value->tag) {
    case HONE_VALUE_BOOL:
        return PyBool_FromLong(value->as.i64 != 0);
    case HONE_VALUE_INT:
        return PyLong_FromLongLong(value->as.i64);
    case HONE_VALUE_FLOAT:
        return PyFloat_FromDouble(value->as.f64);
    case HONE_VALUE_STRING:
        return native_text(value->as.string);
    default:
        Py_RETURN_NONE;
    }
}

static PyObject *parameter_dict(const hone_parameter *parameter)
{
    static const char *const kinds[] = {"tensor", "bool", "int", "float", "str"};
    return Py_BuildValue(
        "{s:s,s:s,s:s,s:N,s:N,s:N,s:N,s:N,s:N,s:z}", "name", parameter->name, "kind", kinds[parameter->kind], "type",
        parameter->type_text, "is_result", PyBool_FromLong(parameter->is_result), "inout",
        PyBool_FromLong(parameter->is_inout), "keyword_only", PyBool_FromLong(parameter->keyword_only), "nullable",
        PyBool_FromLong(parameter->nullable), "has_default", PyBool_FromLong(parameter->has_default), "default",
        default_of(parameter), "default_text", parameter->default_text);
}

PyObject *native_parameters_of(const hone_signature *signature)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < hone_signature_count(signature); i++)
        native_append(&list, parameter_dict(hone_signature_parameter(signature, i)));
    return list;
}

static PyObject *get_parameters(PyObject *self, void *closure)
{
    (void)closure;
    return native_parameters_of(((native_operation *)self)->signature);
}

// --- life

static bool fill_parameters(native_operation *self)
{
    self->count = hone_signature_count(self->signature);
    if (self->count > MAX_VALUES) {
        PyErr_Format(PyExc_ValueError, "%U has more than %d parameters", self->name, (int)MAX_VALUES);
        return false;
    }
    self->parameters = PyMem_Calloc(self->count, sizeof *self->parameters);
    if (self->parameters == NULL) return PyErr_NoMemory() != NULL;
    for (size_t i = 0; i < self->count; i++) {
        const hone_parameter *from = hone_signature_parameter(self->signature, i);
        self->parameters[i] = (native_parameter){
            .name = PyUnicode_InternFromString(from->name),
            .kind = from->kind,
            .is_result = from->is_result,
            .is_inout = from->is_inout,
            .keyword_only = from->keyword_only,
            .nullable = from->nullable,
            .has_default = from->has_default,
        };
        if (self->parameters[i].name == NULL) return false;
        if (!from->is_result && !from->keyword_only) self->positional = i + 1;
    }
    return true;
}

static native_operation *make(native_runtime *runtime, PyObject *name)
{
    const char *text = native_utf8(name);
    const hone_op *op = NULL;
    hone_error err;
    if (text == NULL) return NULL;
    if (hone_op_get(runtime->rt, text, &op, &err) != HONE_OK) return (native_operation *)native_raise(&err);
    native_operation *self = PyObject_New(native_operation, native.operation_type);
    if (self == NULL) return NULL;
    Py_INCREF((PyObject *)runtime);
    self->runtime = runtime;
    self->op = op;
    self->signature = hone_op_signature(op);
    memset(self->made, 0, sizeof self->made);
    self->parameters = NULL;
    self->count = self->positional = 0;
    self->asks_axes = strcmp(hone_signature_name(self->signature), "scaled_dot_product_attention") == 0;
    self->name = PyUnicode_FromString(hone_signature_name(self->signature));
    if (self->name == NULL || !fill_parameters(self)) Py_CLEAR(self);
    return self;
}

native_operation *native_operation_find(native_runtime *runtime, PyObject *name)
{
    if (Py_IS_TYPE(name, native.operation_type)) return (native_operation *)name;
    if (!PyUnicode_Check(name)) {
        PyObject *type = PyType_GetName(Py_TYPE(name));
        if (type != NULL) PyErr_Format(PyExc_TypeError, "expected the name of an operation, a str, got %U", type);
        Py_XDECREF(type);
        return NULL;
    }
    PyObject *known = PyDict_GetItemWithError(runtime->operations, name);
    if (known != NULL || PyErr_Occurred() != NULL) return (native_operation *)known;
    native_operation *made = make(runtime, name);
    if (made == NULL) return NULL;
    int status = PyDict_SetItem(runtime->operations, name, (PyObject *)made);
    Py_DECREF((PyObject *)made); // the dict has it
    return status == 0 ? made : NULL;
}

static void dealloc(PyObject *object)
{
    native_operation *self = (native_operation *)object;
    for (size_t i = 0; self->parameters != NULL && i < self->count; i++)
        Py_XDECREF(self->parameters[i].name);
    PyMem_Free(self->parameters);
    for (size_t i = 0; i < NATIVE_MADE_KEPT; i++)
        native_made_release(self->made[i]);
    Py_XDECREF(self->name);
    Py_XDECREF((PyObject *)self->runtime);
    native_object_free(object);
}

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void (*)(void))method_run, METH_FASTCALL | METH_KEYWORDS,
     "run(*arrays, **scalars): runs it."},
    {"bind", (PyCFunction)(void (*)(void))method_bind, METH_FASTCALL | METH_KEYWORDS,
     "bind(*arrays, **scalars): a plan."},
    {"call", (PyCFunction)(void (*)(void))method_call, METH_FASTCALL | METH_KEYWORDS,
     "call(*arrays, **scalars): the call that they describe; an array may be a pair (dtype, shape)."},
    {"parse", method_parse, METH_O, "parse(text): the call of a call text."},
    {"from_spec", method_from_spec, METH_O, "from_spec(text): the call of a call's canonical JSON."},
    {0},
};

static PyGetSetDef fields[] = {
    {"name", get_name, NULL, "Name of the algorithm.", NULL},
    {"version", get_version, NULL, "Version of the algorithm.", NULL},
    {"signature", get_signature, NULL, "The signature, normalised.", NULL},
    {"independent", get_independent, NULL, "Dims along which its parts do not touch each other, or None.", NULL},
    {"asks_axes", get_asks_axes, NULL, "Whether tensors of torch say the order of their axes.", NULL},
    {"address", get_address, NULL, "The address of the hone_op.", NULL},
    {"parameters", get_parameters, NULL, "Parameters and results in the order of values.", NULL},
    {0},
};

PyTypeObject *native_operation_make_type(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, fields},
        {0},
    };
    return native_make_type(module, "hone._hone.Operation", sizeof(native_operation), slots);
}
