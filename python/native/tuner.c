// Tuners written in Python: a contest as an object, for as long as it is in their hands.
#include "native.h"

#include <string.h>

typedef struct native_tuning_object {
    PyObject_HEAD hone_tuning *tuning; // NULL: the contest has gone on
    unsigned long thread;              // that the tuner runs in
} native_tuning_object;

bool native_run_tuner(PyObject *tuner, hone_tuning *tuning)
{
    native_tuning_object *self = PyObject_New(native_tuning_object, native.tuning_type);
    if (self == NULL) return false;
    self->tuning = tuning;
    self->thread = PyThread_get_thread_ident();
    PyObject *answer = PyObject_CallFunctionObjArgs(tuner, (PyObject *)self, NULL);
    self->tuning = NULL;
    Py_DECREF((PyObject *)self);
    Py_XDECREF(answer);
    return answer != NULL;
}

// NULL with an exception: it is no longer the tuner's, or another thread asks.
static hone_tuning *tuning_of(PyObject *object)
{
    const native_tuning_object *self = (const native_tuning_object *)object;
    if (self->tuning == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the contest has gone on: it was the tuner's while that ran");
        return NULL;
    }
    if (self->thread == PyThread_get_thread_ident()) return self->tuning;
    PyErr_SetString(PyExc_RuntimeError, "a contest is the tuner's in the thread that it runs in, and in no other");
    return NULL;
}

static PyObject *config_text(const hone_tuning_kernel *kernel, const hone_config *config)
{
    char text[1024];
    hone_config_json(kernel->space, config, text, sizeof text);
    return PyUnicode_FromString(text);
}

// kernels(): name, platform, backend and default config of each.
static PyObject *method_kernels(PyObject *self, PyObject *none)
{
    (void)none;
    size_t count;
    hone_tuning *tuning = tuning_of(self);
    if (tuning == NULL) return NULL;
    const hone_tuning_kernel *const *kernels = hone_tuning_kernels(tuning, &count);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count; i++)
        native_append(
            &list, Py_BuildValue(
                       "(sssN)", kernels[i]->name, hone_platform_name(kernels[i]->platform),
                       hone_backend_name(kernels[i]->backend), config_text(kernels[i], &kernels[i]->default_config)));
    return list;
}

// propose(kernel): a config as JSON, or None.
static PyObject *method_propose(PyObject *self, PyObject *args)
{
    Py_ssize_t kernel;
    size_t count;
    hone_config config;
    hone_error err;
    hone_status status;
    hone_tuning *tuning = tuning_of(self);
    if (tuning == NULL || !PyArg_ParseTuple(args, "n", &kernel)) return NULL;
    Py_BEGIN_ALLOW_THREADS status = hone_tuning_propose(tuning, (size_t)kernel, &config, &err);
    Py_END_ALLOW_THREADS if (status == HONE_NOT_FOUND) Py_RETURN_NONE;
    if (status != HONE_OK) return native_raise(&err);
    return config_text(hone_tuning_kernels(tuning, &count)[kernel], &config);
}

// Reads (kernel, config). False with an exception set.
static bool read_choice(hone_tuning *tuning, PyObject *args, size_t *out_kernel, hone_config *out_config)
{
    Py_ssize_t kernel;
    const char *text;
    size_t count;
    hone_error err;
    if (tuning == NULL || !PyArg_ParseTuple(args, "ns", &kernel, &text)) return false;
    const hone_tuning_kernel *const *kernels = hone_tuning_kernels(tuning, &count);
    *out_kernel = (size_t)kernel;
    memset(out_config, 0, sizeof *out_config);
    if (*out_kernel >= count) return true; // hone says so
    if (hone_config_from_json(kernels[kernel]->space, text, strlen(text), out_config, &err) == HONE_OK) return true;
    native_raise(&err);
    return false;
}

// measure(kernel, config): time, low, high, failure or None, reason.
static PyObject *method_measure(PyObject *self, PyObject *args)
{
    size_t kernel;
    hone_config config;
    hone_tried tried;
    hone_error err;
    hone_status status;
    hone_tuning *tuning = tuning_of(self);
    if (!read_choice(tuning, args, &kernel, &config)) return NULL;
    Py_BEGIN_ALLOW_THREADS status = hone_tuning_try(tuning, kernel, &config, &tried, &err);
    Py_END_ALLOW_THREADS if (status != HONE_OK) return native_raise(&err);
    const char *failure = tried.failure == HONE_FAILURE_NONE ? NULL : hone_failure_name(tried.failure);
    return Py_BuildValue("(dddzs)", tried.time_ns, tried.low_ns, tried.high_ns, failure, tried.reason);
}

static PyObject *method_choose(PyObject *self, PyObject *args)
{
    size_t kernel;
    hone_config config;
    hone_error err;
    hone_tuning *tuning = tuning_of(self);
    if (!read_choice(tuning, args, &kernel, &config)) return NULL;
    if (hone_tuning_choose(tuning, kernel, &config, &err) != HONE_OK) return native_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *get_call(PyObject *self, void *closure)
{
    (void)closure;
    hone_tuning *tuning = tuning_of(self);
    return tuning != NULL ? native_text(hone_call_text(hone_tuning_call(tuning))) : NULL;
}

static PyObject *get_device(PyObject *self, void *closure)
{
    (void)closure;
    hone_tuning *tuning = tuning_of(self);
    return tuning != NULL ? native_text(hone_tuning_device(tuning)->fingerprint) : NULL;
}

static PyObject *get_seconds(PyObject *self, void *closure)
{
    (void)closure;
    hone_tuning *tuning = tuning_of(self);
    return tuning != NULL ? PyFloat_FromDouble(hone_tuning_seconds(tuning)) : NULL;
}

static PyObject *get_evaluations(PyObject *self, void *closure)
{
    (void)closure;
    hone_tuning *tuning = tuning_of(self);
    return tuning != NULL ? PyLong_FromUnsignedLong(hone_tuning_evaluations(tuning)) : NULL;
}

static PyMethodDef methods[] = {
    {"kernels", method_kernels, METH_NOARGS, "kernels(): (name, platform, backend, default config) of each."},
    {"propose", method_propose, METH_VARARGS, "propose(kernel): what hone would try next, as JSON, or None."},
    {"measure", method_measure, METH_VARARGS, "measure(kernel, config): (time, low, high, failure, reason)."},
    {"choose", method_choose, METH_VARARGS, "choose(kernel, config): it is to win."},
    {0},
};

static PyGetSetDef fields[] = {
    {"call", get_call, NULL, "Text of the call.", NULL},
    {"device", get_device, NULL, "Fingerprint of the device.", NULL},
    {"seconds", get_seconds, NULL, "What is left for trying.", NULL},
    {"evaluations", get_evaluations, NULL, "What is left of them.", NULL},
    {0},
};

PyTypeObject *native_tuner_make_type(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)native_object_free},
        {Py_tp_methods, methods},
        {Py_tp_getset, fields},
        {0},
    };
    return native_make_type(module, "hone._hone.Tuning", sizeof(native_tuning_object), slots);
}
