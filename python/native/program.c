// Lowered programs.
#include "native.h"

typedef struct native_program {
    PyObject_HEAD native_runtime *runtime;
    hone_program *program;
    bool unproved; // of the tuning that runs
} native_program;

// read(name, bytes)
PyObject *native_program_read(native_runtime *runtime, PyObject *args)
{
    const char *name, *text;
    Py_ssize_t size;
    hone_program *program = NULL;
    hone_status status;
    hone_error err;
    if (!PyArg_ParseTuple(args, "sy#", &name, &text, &size)) return NULL;
    Py_BEGIN_ALLOW_THREADS status = hone_program_read(runtime->rt, name, text, (size_t)size, &program, &err);
    Py_END_ALLOW_THREADS if (status != HONE_OK) return native_raise(&err);
    native_program *self = PyObject_New(native_program, native.program_type);
    if (self == NULL) {
        hone_program_release(&program);
        return NULL;
    }
    Py_INCREF((PyObject *)runtime);
    self->runtime = runtime;
    self->program = program;
    return (PyObject *)self;
}

static void dealloc(PyObject *object)
{
    native_program *self = (native_program *)object;
    hone_program_release(&self->program);
    Py_DECREF((PyObject *)self->runtime);
    native_object_free(object);
}

static PyObject *count_of(int64_t count)
{
    if (count >= 0) return PyLong_FromLongLong(count);
    Py_RETURN_NONE;
}

static PyObject *operation_dict(const hone_operation *operation)
{
    return Py_BuildValue(
        "{s:s,s:z,s:z,s:s,s:N,s:s,s:z,s:z,s:N,s:z,s:z,s:z,s:s,s:N}", "algorithm", operation->algorithm, "version",
        operation->version, "key", operation->key, "label", operation->label, "count", count_of(operation->count),
        "matched", hone_match_name(operation->matched), "call", operation->call, "call_key", operation->call_key,
        "tunable", PyBool_FromLong(operation->tunable), "reason", operation->reason, "where", operation->path, "arrays",
        operation->arrays, "regime", operation->regime == HONE_COLD ? "cold" : "warm", "once_bytes",
        count_of(operation->once_bytes));
}

static PyObject *get_operations(PyObject *object, void *closure)
{
    (void)closure;
    const hone_program *program = ((native_program *)object)->program;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < hone_program_operations(program); i++)
        native_append(&list, operation_dict(hone_program_operation(program, i)));
    return list;
}

static PyObject *get_dialect(PyObject *object, void *closure)
{
    (void)closure;
    return native_text(hone_program_dialect(((native_program *)object)->program));
}

static PyObject *get_note(PyObject *object, void *closure)
{
    (void)closure;
    return native_text(hone_program_note(((native_program *)object)->program));
}

static hone_status tune_program(void *subject, const hone_tune_options *options, hone_result **out, hone_error *err)
{
    const native_program *self = subject;
    return hone_offline(self->runtime->rt, self->program, self->unproved, options, out, err);
}

// tune(unproved, **options)
static PyObject *method_tune(PyObject *object, PyObject *args, PyObject *keywords)
{
    native_program *self = (native_program *)object;
    int unproved = 0;
    if (!PyArg_ParseTuple(args, "p", &unproved)) return NULL;
    self->unproved = unproved;
    return native_tune_with(self->runtime, tune_program, self, keywords);
}

static PyMethodDef methods[] = {
    {"tune", (PyCFunction)(void (*)(void))method_tune, METH_VARARGS | METH_KEYWORDS,
     "tune(unproved, **options): tunes its operations."},
    {0},
};

static PyGetSetDef fields[] = {
    {"operations", get_operations, NULL, "Distinct operations, a list of dicts.", NULL},
    {"dialect", get_dialect, NULL, "What it is written in.", NULL},
    {"note", get_note, NULL, "A warning about the program as a whole, or None.", NULL},
    {0},
};

PyTypeObject *native_program_make_type(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, fields},
        {0},
    };
    return native_make_type(module, "hone._hone.Program", sizeof(native_program), slots);
}
