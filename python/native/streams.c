// The stream that a call on a GPU runs on. Calls on the CPU come past here with one look at each tensor.
#include "native.h"

static bool is_on_gpu(const hone_tensor *tensor)
{
    return tensor->device.type == HONE_DEVICE_CUDA;
}

static PyObject *arrays_on_gpu(const native_arguments *arguments)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < arguments->count; i++) {
        const hone_value *value = &arguments->values[i];
        if (value->tag == HONE_VALUE_TENSOR && is_on_gpu(value->as.tensor))
            native_append(&list, Py_NewRef(arguments->objects[i]));
    }
    return list;
}

// The legacy default stream has two numbers; hone's is 0.
static bool read_choice(native_execution *out, PyObject *choice)
{
    unsigned long long number;
    int waits;
    if (!PyArg_ParseTuple(choice, "Kp", &number, &waits)) return false;
    out->execution.stream = (void *)(uintptr_t)(number == 1 ? 0 : number);
    out->waits = waits != 0;
    return true;
}

// What shows the arrays on a GPU, where it is one and the same; NULL: Python looks at each.
static const native_exchange *only_exchange(const native_arguments *arguments)
{
    const native_exchange *found = NULL;
    for (size_t i = 0; i < arguments->held_count; i++) {
        const native_tensor *held = &arguments->held[i];
        if (!is_on_gpu(held->tensor)) continue;
        if (held->exchange == NULL || (found != NULL && found != held->exchange)) return NULL;
        found = held->exchange;
    }
    return found;
}

static bool take_current(native_execution *out, const native_exchange *exchange)
{
    void *stream = NULL;
    if (!native_exchange_current_stream(exchange, out->device, &stream)) return false;
    out->execution.stream = (uintptr_t)stream == 1 ? NULL : stream;
    return true;
}

static bool choose(native_execution *out, const native_arguments *arguments, PyObject *given)
{
    const native_exchange *exchange = given == NULL ? only_exchange(arguments) : NULL;
    if (exchange != NULL) return take_current(out, exchange);
    PyObject *arrays = arrays_on_gpu(arguments), *choice = NULL;
    if (arrays != NULL)
        choice = PyObject_CallFunction(
            native.choose_stream, "OiO", given != NULL ? given : Py_None, (int)out->device.id, arrays);
    bool chosen = choice != NULL && read_choice(out, choice);
    Py_XDECREF(arrays);
    Py_XDECREF(choice);
    return chosen;
}

static bool find_device(native_execution *out, const native_arguments *arguments)
{
    for (size_t i = 0; i < arguments->held_count; i++) {
        if (!is_on_gpu(arguments->held[i].tensor)) continue;
        out->device = arguments->held[i].tensor->device;
        return true;
    }
    return false;
}

static bool refuse_stream(void)
{
    PyErr_SetString(
        PyExc_ValueError, "stream orders calls on a GPU, and no array of this call is on one: leave it out, or None");
    return false;
}

bool native_execution_open(
    native_execution *out, const native_runtime *runtime, const native_arguments *arguments, PyObject *given)
{
    if (given == Py_None) given = NULL;
    out->waits = false;
    out->stream = NULL;
    out->on_gpu = find_device(out, arguments);
    if (!out->on_gpu) return given == NULL || refuse_stream();
    out->execution = (hone_execution){.struct_size = sizeof out->execution};
    if (!choose(out, arguments, given)) return false;
    if (given != NULL) out->stream = PyLong_FromVoidPtr(out->execution.stream);
    if (given != NULL && out->stream == NULL) return false;
    return !out->waits ||
           native_execution_check_uncaptured(
               out, runtime,
               "a call with arrays of a framework that has no current stream (JAX's, say) waits for its end");
}

void native_execution_close(native_execution *execution)
{
    Py_CLEAR(execution->stream);
}

const hone_execution *native_execution_of(const native_execution *execution)
{
    return execution->on_gpu ? &execution->execution : NULL;
}

hone_status native_execution_end(const native_execution *execution, const native_runtime *runtime, hone_error *err)
{
    if (!execution->on_gpu || !execution->waits) return HONE_OK;
    return hone_stream_synchronize(runtime->rt, execution->device, execution->execution.stream, err);
}

bool native_execution_check_uncaptured(
    const native_execution *execution, const native_runtime *runtime, const char *what)
{
    bool captured = false;
    hone_error err;
    if (!execution->on_gpu) return true;
    if (hone_stream_is_captured(runtime->rt, execution->device, execution->execution.stream, &captured, &err) !=
        HONE_OK)
        return native_raise(&err) != NULL;
    if (!captured) return true;
    err = (hone_error){.status = HONE_UNSUPPORTED, .where = "python.stream"};
    PyOS_snprintf(
        err.message, sizeof err.message,
        "the stream is being captured into a graph, and %s: do this before the capture begins", what);
    return native_raise(&err) != NULL;
}
