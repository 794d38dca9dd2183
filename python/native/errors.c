// Statuses of hone as exceptions of Python.
#include "native.h"

#include <string.h>

static PyObject *class_of(hone_status status)
{
    bool known = status > HONE_OK && status <= HONE_KERNEL_FAILED;
    return native.errors[known ? status : HONE_OK];
}

static bool set(PyObject *exception, const char *name, PyObject *value)
{
    bool done = value != NULL && PyObject_SetAttrString(exception, name, value) == 0;
    Py_XDECREF(value);
    return done;
}

PyObject *native_raise(const hone_error *err)
{
    PyObject *class = class_of(err->status);
    PyObject *message = PyUnicode_DecodeUTF8(err->message, (Py_ssize_t)strlen(err->message), "replace");
    PyObject *exception = message != NULL ? PyObject_CallFunctionObjArgs(class, message, NULL) : NULL;
    Py_XDECREF(message);
    bool filled = exception != NULL && set(exception, "where", native_text(err->where)) &&
                  set(exception, "system_code", PyLong_FromLong(err->system_code));
    if (filled) PyErr_SetObject(class, exception);
    Py_XDECREF(exception);
    return NULL;
}
