// Statuses of hone as exceptions of Python.
#include "native.h"

#include <stdio.h>
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

// The exception of a function that hone has called, on its way through hone.
static _Thread_local PyObject *kept;
static _Thread_local int kept_number;
static const char kept_where[] = "python";

PyObject *native_take_exception(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != NULL) PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
}

void native_keep_exception(hone_error *err)
{
    PyObject *value = native_take_exception();
    PyObject *text = PyObject_Repr(value);
    const char *words = text != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    snprintf(err->message, sizeof err->message, "%s", words != NULL ? words : "an exception");
    if (words == NULL) PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(kept);
    kept = value;
    err->where = kept_where;
    err->system_code = ++kept_number;
}

// Whether it is the exception that was kept; another failure may have come between.
static bool raise_kept(const hone_error *err)
{
    PyObject *exception = kept;
    kept = NULL;
    if (exception == NULL) return false;
    const bool is_it = err->where == kept_where && err->system_code == kept_number;
    if (is_it) PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_DECREF(exception);
    return is_it;
}

// What the program raised while a kernel of this thread ran.
static _Thread_local PyObject *interrupt;

void native_keep_interrupt(PyObject *exception)
{
    PyObject *before = interrupt;
    interrupt = exception;
    Py_XDECREF(before);
}

static bool raise_interrupt(const hone_error *err)
{
    PyObject *exception = interrupt;
    if (exception == NULL || err->status != HONE_CANCELLED) return false;
    interrupt = NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_DECREF(exception);
    return true;
}

PyObject *native_raise(const hone_error *err)
{
    if (raise_kept(err) || raise_interrupt(err)) return NULL;
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
