// Kernels that are functions of Python: the interpreter that is lent to hone (hone/interpreter.h). What a function gets and
// what becomes of its results is Python's to say (hone/_scripts.py); here stand the lock, and words of exceptions.
#include "native.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static PyObject *
    prepare_script; // Python: prepare(path, sha256, source, entry, facts, config, call text, ...) -> run(values, stream)
static char name[64];

// What moves a terminal's cursor or turns text around is shown as its number: it would speak for hone.
static PyObject *without_controls(PyObject *said)
{
    PyObject *module = PyImport_ImportModule("hone._logging");
    PyObject *text = module != NULL ? PyObject_CallMethod(module, "plain", "O", said) : NULL;
    Py_XDECREF(module);
    return text;
}

// "ModuleNotFoundError: No module named 'numba'" of an exception, which is given away, and whether it is one of these.
static void take_words(PyObject *value, char *out, size_t size, bool *out_missing, bool *out_memory)
{
    PyObject *kind = PyObject_GetAttrString((PyObject *)Py_TYPE(value), "__name__");
    PyObject *said = PyObject_Str(value), *text = said != NULL ? without_controls(said) : NULL;
    const char *words = text != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    const char *type = kind != NULL ? PyUnicode_AsUTF8AndSize(kind, NULL) : NULL;
    *out_missing = PyErr_GivenExceptionMatches(value, PyExc_ImportError);
    *out_memory = PyErr_GivenExceptionMatches(value, PyExc_MemoryError);
    snprintf(out, size, "%s: %s", type != NULL ? type : "an exception", words != NULL ? words : "");
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(said);
    Py_XDECREF(kind);
    Py_DECREF(value);
}

static PyObject *text_of(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static hone_status prepare(const hone_script *script, void **out_state, hone_error *err)
{
    bool missing = false, memory = false;
    hone_status status = HONE_OK;
    PyGILState_STATE lock = PyGILState_Ensure();
    const hone_signature *signature = hone_call_signature(script->call);
    const hone_device device = hone_call_device(script->call);
    PyObject *state = PyObject_CallFunction(
        prepare_script, "NsNsssNNN", text_of(script->path), script->sha256, text_of(script->source), script->entry,
        script->facts, script->config, text_of(hone_signature_text(signature)),
        Py_BuildValue("(ii)", (int)device.type, (int)device.id), PyBool_FromLong(script->is_reference));
    if (state == NULL) {
        take_words(native_take_exception(), err->message, sizeof err->message, &missing, &memory);
        status = memory ? HONE_OUT_OF_MEMORY : missing ? HONE_UNAVAILABLE : HONE_UNSUPPORTED;
        err->status = status;
        err->where = "python.prepare";
    }
    *out_state = state;
    PyGILState_Release(lock);
    return status;
}

static void release(void *state)
{
    if (!Py_IsInitialized()) return;
    PyGILState_STATE lock = PyGILState_Ensure();
    Py_DECREF((PyObject *)state);
    PyGILState_Release(lock);
}

// (address, dtype, shape, strides in elements)
static PyObject *tensor_of(const hone_tensor *tensor)
{
    PyObject *shape = PyTuple_New(tensor->ndim), *strides = PyTuple_New(tensor->ndim);
    int64_t step = 1;
    for (int i = tensor->ndim - 1; shape != NULL && strides != NULL && i >= 0; i--) {
        PyTuple_SetItem(shape, i, PyLong_FromLongLong(tensor->shape[i]));
        PyTuple_SetItem(strides, i, PyLong_FromLongLong(tensor->strides != NULL ? tensor->strides[i] : step));
        step *= tensor->shape[i];
    }
    if (shape == NULL || strides == NULL) {
        Py_XDECREF(shape);
        Py_XDECREF(strides);
        return NULL;
    }
    const hone_dtype_info *info = hone_dtype_find(tensor->dtype);
    return Py_BuildValue(
        "(KsNN)", (unsigned long long)((uintptr_t)tensor->data + (size_t)tensor->byte_offset),
        info != NULL ? info->name : "", shape, strides);
}

static PyObject *value_of(const hone_value *value)
{
    switch (value->tag) {
    case HONE_VALUE_TENSOR:
        return tensor_of(value->as.tensor);
    case HONE_VALUE_INT:
        return PyLong_FromLongLong(value->as.i64);
    case HONE_VALUE_BOOL:
        return PyBool_FromLong(value->as.i64 != 0);
    case HONE_VALUE_FLOAT:
        return PyFloat_FromDouble(value->as.f64);
    case HONE_VALUE_STRING:
        return text_of(value->as.string);
    default:
        Py_RETURN_NONE;
    }
}

// Whether it came from outside of the kernel, which is not to blame: Ctrl-C, or a handler of signals of the program.
static bool is_interrupt(PyObject *exception)
{
    PyObject *module = PyImport_ImportModule("hone._scripts");
    PyObject *said = module != NULL ? PyObject_CallMethod(module, "is_interrupt", "O", exception) : NULL;
    const bool is_it = said != NULL && PyObject_IsTrue(said) == 1;
    PyErr_Clear();
    Py_XDECREF(said);
    Py_XDECREF(module);
    return is_it;
}

static hone_status fail_run(char *words, size_t size)
{
    bool missing = false, memory = false;
    PyObject *exception = native_take_exception();
    if (is_interrupt(exception)) {
        native_keep_interrupt(exception);
        return HONE_CANCELLED;
    }
    take_words(exception, words, size, &missing, &memory);
    return memory ? HONE_OUT_OF_MEMORY : HONE_KERNEL_FAILED;
}

static hone_status run(
    void *state, const hone_value *args, size_t count, const hone_execution *execution, char *words, size_t size)
{
    hone_status status = HONE_OK;
    PyGILState_STATE lock = PyGILState_Ensure();
    native_keep_interrupt(NULL);
    PyObject *values = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; values != NULL && i < count; i++) {
        PyObject *value = value_of(&args[i]);
        if (value == NULL || PyTuple_SetItem(values, (Py_ssize_t)i, value) != 0) Py_CLEAR(values);
    }
    PyObject *stream = PyLong_FromVoidPtr(execution != NULL ? execution->stream : NULL);
    PyObject *done =
        values != NULL && stream != NULL ? PyObject_CallFunctionObjArgs((PyObject *)state, values, stream, NULL) : NULL;
    if (done == NULL) status = fail_run(words, size);
    Py_XDECREF(done);
    Py_XDECREF(values);
    Py_XDECREF(stream);
    PyGILState_Release(lock);
    return status;
}

static PyObject *started; // of a worker: what it calls first

static void start(void)
{
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *done = started != NULL ? PyObject_CallFunctionObjArgs(started, NULL) : NULL;
    if (done == NULL) PyErr_Clear();
    Py_XDECREF(done);
    PyGILState_Release(lock);
}

static PyObject *watch_candidate; // Python: watch(stage) -> what was changed

static bool watch(hone_interpreter_stage stage, char *words, size_t size)
{
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *said = PyObject_CallFunction(watch_candidate, "i", (int)stage);
    const char *text = said != NULL ? native_utf8(said) : NULL;
    // Where a candidate has broken what looks, that is what it has changed.
    const bool changed = text == NULL || text[0] != '\0';
    if (changed && words != NULL) snprintf(words, size, "%s", text != NULL ? text : "what looks after candidates");
    PyErr_Clear();
    Py_XDECREF(said);
    PyGILState_Release(lock);
    return changed && stage == HONE_INTERPRETER_ENDS;
}

static hone_interpreter interpreter = {
    .struct_size = sizeof interpreter,
    .name = name,
    .prepare = prepare,
    .release = release,
    .run = run,
    .start = start,
    .watch = watch,
};

// A process may start a worker meanwhile: what stood there before stays, named behind the end of what takes its place.
static bool keep_worker(PyObject *words)
{
    const Py_ssize_t count = PyTuple_Size(words);
    const char **kept = count > 0 ? calloc((size_t)count + 2, sizeof *kept) : NULL;
    for (Py_ssize_t i = 0; kept != NULL && i < count; i++) {
        const char *word = native_utf8(PyTuple_GetItem(words, i));
        kept[i] = word != NULL ? strdup(word) : NULL;
        if (kept[i] == NULL) return false;
    }
    if (kept != NULL) kept[count + 1] = (const char *)interpreter.worker;
    interpreter.worker = kept;
    return true;
}

// The same of the folders of packages: other threads may be looking through them.
static bool keep_packages(const char *folders)
{
    if (interpreter.packages != NULL && strcmp(interpreter.packages, folders) == 0) return true;
    const char *kept = strdup(folders);
    if (kept == NULL) return false;
    interpreter.packages = kept;
    return true;
}

PyObject *native_scripts_lend(PyObject *module, PyObject *args)
{
    PyObject *function, *looks, *words;
    const char *called, *folders;
    hone_error err;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOsO!s", &function, &looks, &called, &PyTuple_Type, &words, &folders)) return NULL;
    Py_INCREF(function);
    Py_INCREF(looks);
    prepare_script = function;
    watch_candidate = looks;
    snprintf(name, sizeof name, "%s", called);
    if (!keep_worker(words) || !keep_packages(folders)) return PyErr_Occurred() != NULL ? NULL : PyErr_NoMemory();
    if (hone_interpreter_lend(&interpreter, &err) != HONE_OK) return native_raise(&err);
    Py_RETURN_NONE;
}

PyObject *native_scripts_work(PyObject *module, PyObject *args)
{
    int fd, code;
    (void)module;
    if (!PyArg_ParseTuple(args, "iO", &fd, &started)) return NULL;
    Py_BEGIN_ALLOW_THREADS code = hone_interpreter_work(fd);
    Py_END_ALLOW_THREADS return PyLong_FromLong(code);
}

// What Python registers with it ---------------------------------------------------------------------------------------

PyObject *native_scripts_signature(PyObject *module, PyObject *text)
{
    const hone_allocator allocator = {0};
    const char *utf8 = native_utf8(text);
    hone_signature *signature = NULL;
    hone_error err;
    (void)module;
    if (utf8 == NULL) return NULL;
    if (hone_signature_parse(allocator, utf8, &signature, &err) != HONE_OK) return native_raise(&err);
    PyObject *out = Py_BuildValue(
        "(sssN)", hone_signature_name(signature), hone_signature_version(signature), hone_signature_text(signature),
        native_parameters_of(signature));
    hone_signature_release(&signature);
    return out;
}

typedef struct refused {
    const char *folder; // NULL: any
    PyObject *list;
} refused;

static bool note_refused(void *ctx, const hone_pack_entry *entry)
{
    refused *of = ctx;
    if (entry->status == HONE_OK || (of->folder != NULL && strcmp(entry->folder, of->folder) != 0) || of->list == NULL)
        return true;
    native_append(
        &of->list, Py_BuildValue(
                       "(ssss)", entry->algorithm, entry->kernel, hone_status_name(entry->status),
                       entry->reason != NULL ? entry->reason : ""));
    return true;
}

PyObject *native_scripts_load(native_runtime *runtime, PyObject *folder)
{
    const char *path = native_utf8(folder);
    hone_status status;
    hone_error err;
    if (path == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS status = hone_pack_load(runtime->rt, path, &err);
    Py_END_ALLOW_THREADS if (status != HONE_OK) return native_raise(&err);
    refused of = {path, PyList_New(0)};
    status = hone_pack_list(runtime->rt, note_refused, &of, &err);
    if (status == HONE_OK) return of.list;
    Py_XDECREF(of.list);
    return native_raise(&err);
}

PyObject *native_scripts_check(native_runtime *runtime, PyObject *folder)
{
    const char *path = native_utf8(folder);
    hone_error err;
    if (path == NULL) return NULL;
    refused of = {NULL, PyList_New(0)};
    if (hone_pack_check(runtime->rt, path, false, note_refused, &of, &err) == HONE_OK) return of.list;
    Py_XDECREF(of.list);
    return native_raise(&err);
}
