// Overlays and contexts.
#include "native.h"

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
    if (derive(runtime, &from, &context) == NULL) return NULL;
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
