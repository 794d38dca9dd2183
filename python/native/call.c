// A call without data: what it is called, its key, and the shapes of its results.
#include "native.h"

#include <stdlib.h>
#include <string.h>

PyObject *native_call_new(native_operation *operation, hone_call *call)
{
    native_call *self = PyObject_New(native_call, native.call_type);
    if (self == NULL) {
        hone_call_release(&call);
        return NULL;
    }
    Py_INCREF((PyObject *)operation);
    self->operation = operation;
    self->call = call;
    return (PyObject *)self;
}

static void dealloc(PyObject *object)
{
    native_call *self = (native_call *)object;
    hone_call_release(&self->call);
    Py_DECREF((PyObject *)self->operation);
    native_object_free(object);
}

static PyObject *get_text(PyObject *self, void *closure)
{
    (void)closure;
    return native_text(hone_call_text(((native_call *)self)->call));
}

static PyObject *get_key(PyObject *self, void *closure)
{
    (void)closure;
    return native_text(hone_call_key(((native_call *)self)->call));
}

static PyObject *get_spec(PyObject *self, void *closure)
{
    (void)closure;
    return native_text(hone_call_spec(((native_call *)self)->call));
}

// The call whose decision serves this one, too, where it has none: its bucket. None: there is none.
static PyObject *get_bucket(PyObject *self, void *closure)
{
    (void)closure;
    const native_call *call = (native_call *)self;
    hone_call *bucket = NULL;
    hone_error err;
    hone_status status = hone_call_bucket(call->call, true, &bucket, &err);
    if (status != HONE_OK && status != HONE_INVALID_ARGUMENT) return native_raise(&err);
    if (status != HONE_OK || bucket == NULL) Py_RETURN_NONE;
    return native_call_new(call->operation, bucket);
}

// The fingerprint of the device that its arrays are on; None: it is not here.
static PyObject *get_device(PyObject *self, void *closure)
{
    (void)closure;
    const native_call *call = (native_call *)self;
    const hone_device device = hone_call_device(call->call);
    size_t count = 0;
    const hone_device_info *const *devices = hone_runtime_devices(call->operation->runtime->rt, &count);
    for (size_t i = 0; i < count; i++)
        if (devices[i]->device.type == device.type && devices[i]->device.id == device.id)
            return native_text(devices[i]->fingerprint);
    Py_RETURN_NONE;
}

// For libhone_xla.so.
static PyObject *get_address(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromVoidPtr(((native_call *)self)->call);
}

static PyObject *get_operation(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *operation = (PyObject *)((native_call *)self)->operation;
    Py_INCREF((PyObject *)operation);
    return operation;
}

static PyObject *tensor_pair(const hone_tensor *tensor)
{
    PyObject *shape = native_shape(tensor);
    return shape != NULL ? Py_BuildValue("(sN)", hone_dtype_find(tensor->dtype)->numpy_name, shape) : NULL;
}

static PyObject *value_object(const hone_value *value)
{
    switch (value->tag) {
    case HONE_VALUE_TENSOR:
        return tensor_pair(value->as.tensor);
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

static PyObject *get_values(PyObject *object, void *closure)
{
    (void)closure;
    const native_call *self = (native_call *)object;
    const hone_value *values = hone_call_values(self->call);
    size_t count = hone_signature_count(hone_call_signature(self->call));
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *value = value_object(&values[i]);
        if (value == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, value) != 0) Py_CLEAR(tuple);
    }
    return tuple;
}

// Text that comes in pieces, while others have the interpreter's lock.
typedef struct pieces {
    char *text;
    size_t size, capacity;
    bool failed;
} pieces;

static void append(void *ctx, const char *text, size_t size)
{
    pieces *out = ctx;
    if (out->size + size > out->capacity) {
        size_t capacity = 2 * (out->size + size);
        char *grown = out->failed ? NULL : realloc(out->text, capacity);
        out->failed = grown == NULL;
        if (out->failed) return;
        out->text = grown;
        out->capacity = capacity;
    }
    memcpy(out->text + out->size, text, size);
    out->size += size;
}

static PyObject *take_pieces(pieces *from)
{
    PyObject *text =
        from->failed ? PyErr_NoMemory() : PyUnicode_DecodeUTF8(from->text, (Py_ssize_t)from->size, "replace");
    free(from->text);
    return text;
}

// explain(json): why the call gets the kernel it gets.
static PyObject *method_explain(PyObject *object, PyObject *json)
{
    native_call *self = (native_call *)object;
    hone_format format = PyObject_IsTrue(json) == 1 ? HONE_JSON : HONE_TEXT;
    hone_context *context = NULL;
    PyObject *entered = NULL;
    pieces out = {.text = NULL};
    hone_status status;
    hone_error err;
    if (!native_context_current(&context, &entered)) return NULL;
    Py_BEGIN_ALLOW_THREADS hone_context *previous = hone_context_enter(context);
    status = hone_explain(self->operation->op, self->call, format, append, &out, &err);
    hone_context_enter(previous);
    Py_END_ALLOW_THREADS Py_XDECREF(entered);
    PyObject *text = take_pieces(&out);
    if (status == HONE_OK) return text;
    Py_XDECREF(text);
    return native_raise(&err);
}

// decide(): the chain, without running.
static PyObject *method_decide(PyObject *object, PyObject *none)
{
    (void)none;
    native_call *self = (native_call *)object;
    hone_context *context = NULL;
    PyObject *entered = NULL;
    hone_decision decision;
    hone_status status;
    hone_error err;
    if (!native_context_current(&context, &entered)) return NULL;
    Py_BEGIN_ALLOW_THREADS hone_context *previous = hone_context_enter(context);
    status = hone_decide_call(self->operation->op, self->call, &decision, &err);
    hone_context_enter(previous);
    Py_END_ALLOW_THREADS Py_XDECREF(entered);
    return status == HONE_OK ? native_decision(&decision, hone_call_text(self->call)) : native_raise(&err);
}

// check_parts(): whether `independent` is true of the call. The reference may be a function of Python.
static PyObject *method_check_parts(PyObject *object, PyObject *none)
{
    (void)none;
    native_call *self = (native_call *)object;
    hone_status status;
    hone_error err;
    Py_BEGIN_ALLOW_THREADS status = hone_inputs_check_parts(self->operation->op, self->call, 1, &err);
    Py_END_ALLOW_THREADS if (status != HONE_OK) return native_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *refuse_pickle(PyObject *self, PyObject *none)
{
    (void)none;
    return PyErr_Format(
        PyExc_TypeError,
        "%R belongs to a runtime of its process, and cannot be pickled: pass its text on, which hone.decide, "
        "hone.explain and hone.tune take",
        self);
}

static PyMethodDef methods[] = {
    {"explain", method_explain, METH_O, "explain(json): why the call gets the kernel it gets."},
    {"decide", method_decide, METH_NOARGS, "decide(): the chain's answer as a dict."},
    {"check_parts", method_check_parts, METH_NOARGS,
     "check_parts(): raises KernelFailedError where the algorithm's `independent` is not true of the call, "
     "UnsupportedError where that cannot be told."},
    {"__reduce__", refuse_pickle, METH_NOARGS, "Raises TypeError: a call belongs to a runtime of its process."},
    {0},
};

static PyObject *represent(PyObject *self)
{
    return PyUnicode_FromFormat("<hone call %s>", hone_call_text(((native_call *)self)->call));
}

static PyGetSetDef fields[] = {
    {"text", get_text, NULL, "Canonical call text.", NULL},
    {"key", get_key, NULL, "Call key, 16 hex digits.", NULL},
    {"spec", get_spec, NULL, "Canonical JSON.", NULL},
    {"bucket", get_bucket, NULL, "The call whose decision serves this one, too; None: there is none.", NULL},
    {"address", get_address, NULL, "The address of the hone_call.", NULL},
    {"device", get_device, NULL, "Fingerprint of the device of its arrays; None: it is not here.", NULL},
    {"operation", get_operation, NULL, "The operation that is called.", NULL},
    {"values", get_values, NULL, "One value per parameter and result; an array is a pair (dtype, shape).", NULL},
    {0},
};

PyTypeObject *native_call_make_type(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)dealloc},
        {Py_tp_repr, (void *)represent},
        {Py_tp_methods, methods},
        {Py_tp_getset, fields},
        {0},
    };
    return native_make_type(module, "hone._hone.Call", sizeof(native_call), slots);
}
