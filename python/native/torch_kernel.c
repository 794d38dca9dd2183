// What torch calls for an operation of hone.torch: a kernel of torch's dispatcher that is no function of Python, since a
// call of one costs more than all that hone does. It is registered below autograd, and at autograd with a function of
// Python beside it that is asked where torch records something: gradients, a graph, calls. Elsewhere one kernel has run
// the whole call. Functions of replaced models call such a kernel themselves, with torch's operation beside it.
#include "native.h"

#include <string.h>

typedef struct native_torch_kernel {
    PyObject_HEAD PyObject *name; // of the operation
    PyObject *recorded;           // what is called where torch records something; None: nothing is above this kernel
    bool makes_results;           // else they are given, and their versions go up
    bool is_called;               // by a program, not by torch's dispatcher, which then sees what is not `ordinary`
} native_torch_kernel;

// Positional arguments and keywords as Python's fast calls have them.
typedef struct call_arguments {
    PyObject *values[MAX_VALUES]; // borrowed
    Py_ssize_t positional;
    PyObject *names; // of the rest; NULL: there are none
} call_arguments;

static bool fail_count(void)
{
    PyErr_Format(PyExc_TypeError, "an operation has at most %d arguments", (int)MAX_VALUES);
    return false;
}

static bool spread_keywords(call_arguments *out, PyObject *keywords)
{
    Py_ssize_t at = 0, count = 0;
    PyObject *name, *value;
    out->names = PyTuple_New(PyDict_Size(keywords));
    while (out->names != NULL && PyDict_Next(keywords, &at, &name, &value)) {
        out->values[out->positional + count] = value;
        PyTuple_SetItem(out->names, count++, Py_NewRef(name));
    }
    return out->names != NULL;
}

static bool spread(call_arguments *out, PyObject *args, PyObject *keywords)
{
    const Py_ssize_t named = keywords != NULL ? PyDict_Size(keywords) : 0;
    out->positional = PyTuple_Size(args);
    out->names = NULL;
    if (out->positional + named > MAX_VALUES) return fail_count();
    for (Py_ssize_t i = 0; i < out->positional; i++)
        out->values[i] = PyTuple_GetItem(args, i);
    return named == 0 || spread_keywords(out, keywords);
}

// torch's operations take tensors that the signature takes by name by place, behind the others: they get their names.
static bool name_tensors(call_arguments *arguments, const native_operation *operation)
{
    const Py_ssize_t unnamed = arguments->positional - (Py_ssize_t)operation->positional;
    const Py_ssize_t named = arguments->names != NULL ? PyTuple_Size(arguments->names) : 0;
    if (unnamed <= 0) return true;
    PyObject *names = PyTuple_New(unnamed + named);
    Py_ssize_t at = 0;
    if (names == NULL) return false;
    for (size_t i = operation->positional; at < unnamed && i < operation->count; i++)
        if (operation->parameters[i].kind == HONE_KIND_TENSOR && !operation->parameters[i].is_result)
            PyTuple_SetItem(names, at++, Py_NewRef(operation->parameters[i].name));
    for (Py_ssize_t i = 0; at == unnamed && i < named; i++)
        PyTuple_SetItem(names, unnamed + i, Py_NewRef(PyTuple_GetItem(arguments->names, i)));
    Py_XDECREF(arguments->names);
    arguments->names = names;
    arguments->positional -= unnamed;
    if (at == unnamed) return true;
    PyErr_Format(
        PyExc_TypeError, "got %zd arguments by position, more than the operation has", unnamed + arguments->positional);
    return false;
}

static PyObject *run(const native_torch_kernel *self, call_arguments *arguments, bool *out_taken)
{
    native_arguments taken;
    PyObject *made = NULL;
    native_operation *operation = native_operation_of_default(self->name);
    const bool is_above = self->recorded != Py_None;
    const native_taking taking = is_above ? NATIVE_QUICKLY : NATIVE_TO_RUN;
    *out_taken =
        operation != NULL && name_tensors(arguments, operation) &&
        native_arguments_take(&taken, operation, arguments->values, arguments->positional, arguments->names, taking);
    if (*out_taken) made = native_operation_run_taken(operation, &taken);
    if (made != NULL && is_above && !native_arguments_written(&taken, operation)) Py_CLEAR(made);
    if (*out_taken) native_arguments_release(&taken);
    Py_XDECREF((PyObject *)operation);
    if (made == NULL || self->makes_results) return made;
    Py_DECREF(made);
    Py_RETURN_NONE;
}

static bool are_of_their_own(const call_arguments *arguments)
{
    const Py_ssize_t count = arguments->positional + (arguments->names != NULL ? PyTuple_Size(arguments->names) : 0);
    for (Py_ssize_t i = 0; i < count; i++)
        if (native_torch_is_tensor(arguments->values[i]) && !native_torch_is_of_its_own(arguments->values[i]))
            return false;
    return true;
}

static PyObject *call(PyObject *object, PyObject *args, PyObject *keywords)
{
    const native_torch_kernel *self = (native_torch_kernel *)object;
    const bool is_above = self->recorded != Py_None;
    call_arguments arguments;
    PyObject *result = NULL;
    bool taken = false;
    if (!spread(&arguments, args, keywords)) return NULL;
    const bool is_seen = self->is_called ? !native_torch_is_ordinary() || !are_of_their_own(&arguments)
                                         : native_torch_is_recording() || native_torch_is_forward();
    if (!is_above || !is_seen) result = run(self, &arguments, &taken);
    Py_XDECREF(arguments.names);
    if (!is_above || taken) return result;
    PyErr_Clear(); // what cannot be taken as it is may be what torch makes of it, and below
    return PyObject_Call(self->recorded, args, keywords);
}

static void dealloc(PyObject *object)
{
    native_torch_kernel *self = (native_torch_kernel *)object;
    Py_XDECREF(self->name);
    Py_XDECREF(self->recorded);
    native_object_free(object);
}

PyTypeObject *native_torch_kernel_make_type(PyObject *module)
{
    PyType_Slot slots[] = {{Py_tp_dealloc, (void *)dealloc}, {Py_tp_call, (void *)call}, {0}};
    return native_make_type(module, "hone._hone.TorchKernel", sizeof(native_torch_kernel), slots);
}

PyObject *native_torch_kernel_new(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *name, *recorded, *tensor_type;
    int makes_results, is_called = 0;
    if (!PyArg_ParseTuple(args, "UOpO!|p", &name, &recorded, &makes_results, &PyType_Type, &tensor_type, &is_called))
        return NULL;
    native_torch_learn((PyTypeObject *)tensor_type);
    native_torch_kernel *self = PyObject_New(native_torch_kernel, native.torch_kernel_type);
    if (self == NULL) return NULL;
    self->name = Py_NewRef(name);
    self->recorded = Py_NewRef(recorded);
    self->makes_results = makes_results != 0;
    self->is_called = is_called != 0;
    return (PyObject *)self;
}
