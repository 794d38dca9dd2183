// Overlays and contexts.
#include "native.h"

#include <string.h>

// A contextvar's look-up is paid only once a context was ever entered.
bool native_context_current(hone_context **out, PyObject **out_owner)
{
    *out = NULL;
    *out_owner = NULL;
    if (!native.contexts_used) return true;
    PyObject *current = PyObject_CallMethodObjArgs(native.context_variable, native.name_get, Py_None, NULL);
    if (current == NULL) return false;
    if (!Py_IS_TYPE(current, native.context_type)) {
        Py_DECREF(current);
        return true;
    }
    *out = ((native_context *)current)->context;
    *out_owner = current;
    return true;
}

// --- contexts

typedef struct derivation {
    PyObject *parent, *overlay;
    const char *algorithm, *kernel, *platform, *config, *policy;
    int store;
} derivation;

static bool read_platform(const char *name, hone_platform *out)
{
    hone_error err;
    *out = HONE_PLATFORM_NONE;
    if (name == NULL || hone_platform_parse(name, out, &err) == HONE_OK) return true;
    native_raise(&err);
    return false;
}

static PyObject *derive(native_runtime *runtime, const derivation *from, hone_context **out)
{
    hone_policy policy = HONE_POLICY_DEFAULT;
    hone_platform platform;
    hone_error err;
    if (from->policy != NULL && hone_policy_parse(from->policy, &policy, &err) != HONE_OK) return native_raise(&err);
    if (!read_platform(from->platform, &platform)) return NULL;
    hone_override forced = {from->algorithm, from->kernel, platform, from->config, from->store != 0};
    hone_context *parent = from->parent != Py_None ? ((native_context *)from->parent)->context : NULL;
    hone_overlay *overlay = from->overlay != Py_None ? ((native_overlay *)from->overlay)->overlay : NULL;
    hone_status status =
        hone_context_derive(runtime->rt, parent, overlay, from->algorithm != NULL ? &forced : NULL, policy, out, &err);
    return status == HONE_OK ? Py_None : native_raise(&err);
}

static PyObject *new_context(native_runtime *runtime, hone_context *context)
{
    native_context *self = PyObject_New(native_context, native.context_type);
    if (self == NULL) {
        hone_context_release(&context);
        return NULL;
    }
    Py_INCREF((PyObject *)runtime);
    self->runtime = runtime;
    self->context = context;
    return (PyObject *)self;
}

// derive(parent, overlay, algorithm, kernel, platform, config, store, policy), None for what is not there.
PyObject *native_context_derive(native_runtime *runtime, PyObject *args)
{
    derivation from;
    hone_context *context = NULL;
    if (!PyArg_ParseTuple(
            args, "OOzzzzpz", &from.parent, &from.overlay, &from.algorithm, &from.kernel, &from.platform, &from.config,
            &from.store, &from.policy))
        return NULL;
    bool sound = (from.parent == Py_None || Py_IS_TYPE(from.parent, native.context_type)) &&
                 (from.overlay == Py_None || Py_IS_TYPE(from.overlay, native.overlay_type));
    if (!sound) {
        PyErr_SetString(PyExc_TypeError, "a context is derived from a context and an overlay, or None");
        return NULL;
    }
    return derive(runtime, &from, &context) != NULL ? new_context(runtime, context) : NULL;
}

// --- links of Python

// A function that stands for a link.
typedef struct own_link {
    native_runtime *runtime;
    PyObject *ask; // gives None, or a pair of kernel and config
} own_link;

static void release_link(void *ctx)
{
    own_link *own = ctx;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)own->runtime);
    Py_DECREF(own->ask);
    PyMem_Free(own);
    PyGILState_Release(state);
}

static PyObject *call_of(native_runtime *runtime, const hone_link_question *question)
{
    const hone_signature *signature = hone_call_signature(question->call);
    PyObject *name = PyUnicode_FromFormat("%s@v%s", hone_signature_name(signature), hone_signature_version(signature));
    native_operation *operation = name != NULL ? native_operation_find(runtime, name) : NULL;
    Py_XDECREF(name);
    if (operation == NULL) return NULL;
    return native_call_new(operation, hone_call_retain((hone_call *)(uintptr_t)question->call));
}

static bool copy_text(PyObject *text, char *out, size_t size, const char *what)
{
    const char *words = text == Py_None ? "" : native_utf8(text);
    if (words == NULL) return false;
    if (strlen(words) < size) return strcpy(out, words) != NULL;
    PyErr_Format(
        PyExc_ValueError, "the %s of a link's answer has %zu bytes, at most %zu fit", what, strlen(words), size - 1);
    return false;
}

// NOT_FOUND: None; KERNEL_FAILED: an exception is set.
static hone_status read_answer(PyObject *given, hone_link_answer *out)
{
    PyObject *kernel, *config;
    if (given == NULL) return HONE_KERNEL_FAILED;
    if (given == Py_None) return HONE_NOT_FOUND;
    const bool is_read = PyArg_ParseTuple(given, "OO", &kernel, &config) &&
                         copy_text(kernel, out->kernel, sizeof out->kernel, "kernel") &&
                         copy_text(config, out->config, sizeof out->config, "config");
    return is_read ? HONE_OK : HONE_KERNEL_FAILED;
}

static hone_status ask_link(void *ctx, const hone_link_question *question, hone_link_answer *answer, hone_error *why)
{
    own_link *own = ctx;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *call = call_of(own->runtime, question);
    PyObject *given = call != NULL ? PyObject_CallFunctionObjArgs(own->ask, call, NULL) : NULL;
    hone_status status = read_answer(given, answer);
    if (status == HONE_KERNEL_FAILED) native_keep_exception(why);
    if (status == HONE_NOT_FOUND) strcpy(why->message, "it has no answer");
    Py_XDECREF(given);
    Py_XDECREF(call);
    PyGILState_Release(state);
    return status;
}

static bool source_of(const char *name, hone_source *out)
{
    for (int source = HONE_SOURCE_NONE + 1; source < HONE_SOURCE_COUNT; source++) {
        *out = (hone_source)source;
        if (strcmp(hone_source_name(*out), name) == 0) return true;
    }
    PyErr_Format(
        PyExc_ValueError,
        "unknown link '%s'; expected override, overlay, lock, memory, store, transfer, autotune or heuristic", name);
    return false;
}

static bool read_link(native_runtime *runtime, PyObject *row, hone_link *out)
{
    const char *source;
    PyObject *ask;
    memset(out, 0, sizeof *out);
    if (!PyArg_ParseTuple(row, "szO", &source, &out->name, &ask) || !source_of(source, &out->source)) return false;
    if (ask == Py_None) return true;
    own_link *own = PyMem_Malloc(sizeof *own);
    if (own == NULL) return PyErr_NoMemory() != NULL;
    Py_INCREF((PyObject *)runtime);
    Py_INCREF(ask);
    *own = (own_link){runtime, ask};
    out->find = ask_link;
    out->ctx = own;
    out->release = release_link;
    return true;
}

// derive_chain(parent, [(source, name, function or None)], persist): persist is True, False or None.
PyObject *native_context_derive_chain(native_runtime *runtime, PyObject *args)
{
    PyObject *parent, *rows, *persist;
    hone_link links[HONE_SOURCE_COUNT];
    hone_context *context = NULL;
    hone_error err;
    size_t count = 0;
    if (!PyArg_ParseTuple(args, "OO!O", &parent, &PyList_Type, &rows, &persist)) return NULL;
    const hone_keeping keeping = persist == Py_None              ? HONE_KEEP_DEFAULT
                                 : PyObject_IsTrue(persist) == 1 ? HONE_KEEP_STORED
                                                                 : HONE_KEEP_IN_MEMORY;
    const size_t total = (size_t)PyList_Size(rows);
    while (count < total && count < HONE_SOURCE_COUNT &&
           read_link(runtime, PyList_GetItem(rows, (Py_ssize_t)count), &links[count]))
        count++;
    bool is_made = PyErr_Occurred() == NULL;
    if (is_made) {
        hone_context *under = parent != Py_None ? ((native_context *)parent)->context : NULL;
        is_made = hone_context_derive_chain(runtime->rt, under, links, count, keeping, &context, &err) == HONE_OK;
        if (!is_made) native_raise(&err);
    }
    for (size_t i = 0; i < count && !is_made; i++)
        if (links[i].release != NULL) links[i].release(links[i].ctx);
    return is_made ? new_context(runtime, context) : NULL;
}

static void dealloc_context(PyObject *object)
{
    native_context *self = (native_context *)object;
    hone_context_release(&self->context);
    Py_DECREF((PyObject *)self->runtime);
    native_object_free(object);
}

static PyObject *get_number(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(hone_context_number(((native_context *)self)->context));
}

// Signed, as the attribute of a program is.
static PyObject *get_digest(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLongLong((long long)hone_context_digest(((native_context *)self)->context));
}

// A reference of C's for as long as the process lives: compiled programs name contexts by their digests.
static PyObject *method_retain(PyObject *self, PyObject *none)
{
    (void)none;
    return PyLong_FromVoidPtr(hone_context_retain(((native_context *)self)->context));
}

static PyMethodDef context_methods[] = {
    {"retain", method_retain, METH_NOARGS, "retain(): the address of the context, which then lives for ever."},
    {0},
};

static PyGetSetDef context_fields[] = {
    {"digest", get_digest, NULL, "What it says, as a number: the same in every process for contexts that are alike.",
     NULL},
    {"number", get_number, NULL, "A number that no other context of this process ever has.", NULL},
    {0},
};

PyTypeObject *native_context_make_type(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)dealloc_context},
        {Py_tp_methods, context_methods},
        {Py_tp_getset, context_fields},
        {0},
    };
    return native_make_type(module, "hone._hone.Context", sizeof(native_context), slots);
}

// --- overlays

PyObject *native_overlay_new(native_runtime *runtime, hone_overlay *overlay)
{
    native_overlay *self = PyObject_New(native_overlay, native.overlay_type);
    if (self == NULL) {
        hone_overlay_release(&overlay);
        return NULL;
    }
    Py_INCREF((PyObject *)runtime);
    self->runtime = runtime;
    self->overlay = overlay;
    return (PyObject *)self;
}

static void dealloc_overlay(PyObject *object)
{
    native_overlay *self = (native_overlay *)object;
    hone_overlay_release(&self->overlay);
    Py_DECREF((PyObject *)self->runtime);
    native_object_free(object);
}

static Py_ssize_t overlay_length(PyObject *self)
{
    return (Py_ssize_t)hone_overlay_size(((native_overlay *)self)->overlay);
}

PyTypeObject *native_overlay_make_type(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)dealloc_overlay},
        {Py_sq_length, (void *)overlay_length},
        {0},
    };
    return native_make_type(module, "hone._hone.Overlay", sizeof(native_overlay), slots);
}
