// Decisions, and what tuning found.
#include "native.h"

#include <string.h>

static PyObject *config_of(const hone_decision *decision)
{
    return native_text(decision->config_json[0] != '\0' ? decision->config_json : "{}");
}

// The evidence that a user asks for first; all of it stands in the result document.
PyObject *native_decision(const hone_decision *decision, const char *call)
{
    const hone_evidence *evidence = &decision->evidence;
    return Py_BuildValue(
        "{s:N,s:s,s:s,s:s,s:s,s:s,s:s,s:N,s:s,s:N,s:N,s:N,s:d,s:d,s:d,s:s,s:d,s:d,s:d,s:d,s:d,s:I,s:I,s:d,s:d,s:s,s:s}",
        "call", native_text(call), "algorithm", decision->algorithm, "version", decision->version, "key", decision->key,
        "kernel", decision->kernel, "platform", hone_platform_name(decision->platform), "backend",
        hone_backend_name(decision->backend), "config", config_of(decision), "source",
        hone_source_name(decision->source), "verified", PyBool_FromLong(decision->verified), "bucketed",
        PyBool_FromLong(decision->bucketed), "system", PyBool_FromLong(decision->system), "time_ns", evidence->time_ns,
        "low_ns", evidence->low_ns, "high_ns", evidence->high_ns, "runner_up", evidence->runner_up, "ratio",
        evidence->ratio, "ratio_low", evidence->ratio_low, "ratio_high", evidence->ratio_high, "default_time_ns",
        evidence->default_time_ns, "max_error", evidence->max_error, "measured", evidence->measured, "samples",
        evidence->samples, "disturbed", evidence->disturbed, "floor_ns", evidence->floor_ns, "undecided",
        evidence->undecided, "tuner", evidence->tuner);
}

PyObject *native_result_new(native_runtime *runtime, hone_result *result)
{
    native_result *self = PyObject_New(native_result, native.result_type);
    if (self == NULL) {
        hone_result_release(&result);
        return NULL;
    }
    Py_INCREF((PyObject *)runtime);
    self->runtime = runtime;
    self->result = result;
    return (PyObject *)self;
}

static void dealloc(PyObject *object)
{
    native_result *self = (native_result *)object;
    hone_result_release(&self->result);
    Py_DECREF((PyObject *)self->runtime);
    native_object_free(object);
}

static PyObject *method_decisions(PyObject *object, PyObject *none)
{
    (void)none;
    const hone_result *result = ((native_result *)object)->result;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < hone_result_size(result); i++)
        native_append(&list, native_decision(hone_result_decision(result, i), hone_result_call(result, i)));
    return list;
}

typedef hone_status document_function(const hone_result *result, char **out, hone_error *err);

static PyObject *document(PyObject *object, document_function *write)
{
    char *text = NULL;
    hone_error err;
    if (write(((native_result *)object)->result, &text, &err) != HONE_OK) return native_raise(&err);
    PyObject *made = native_text(text);
    hone_text_release(&text);
    return made;
}

static PyObject *method_json(PyObject *object, PyObject *none)
{
    (void)none;
    return document(object, hone_result_json);
}

static PyObject *method_report(PyObject *object, PyObject *none)
{
    (void)none;
    return document(object, hone_result_report);
}

static PyObject *method_overlay(PyObject *object, PyObject *none)
{
    (void)none;
    native_result *self = (native_result *)object;
    hone_overlay *overlay = NULL;
    hone_error err;
    if (hone_result_overlay(self->result, &overlay, &err) != HONE_OK) return native_raise(&err);
    return native_overlay_new(self->runtime, overlay);
}

static PyObject *method_merge(PyObject *object, PyObject *other)
{
    native_result *self = (native_result *)object;
    hone_result *merged = NULL;
    hone_error err;
    if (!Py_IS_TYPE(other, native.result_type)) {
        PyErr_SetString(PyExc_TypeError, "a result is merged with a result");
        return NULL;
    }
    if (hone_result_merge(self->result, ((native_result *)other)->result, &merged, &err) != HONE_OK)
        return native_raise(&err);
    return native_result_new(self->runtime, merged);
}

// store(url): writes it to a store, in one transaction.
static PyObject *method_store(PyObject *object, PyObject *url)
{
    native_result *self = (native_result *)object;
    const char *text = native_utf8(url);
    const hone_store_options options = {.struct_size = sizeof options, .log = native_log};
    hone_store *store = NULL;
    hone_status status;
    hone_error err;
    if (text == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS status = hone_store_open_with(&options, text, &store, &err);
    if (status == HONE_OK) status = hone_result_store(self->result, store, &err);
    hone_store_close(&store);
    Py_END_ALLOW_THREADS if (status != HONE_OK) return native_raise(&err);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"decisions", method_decisions, METH_NOARGS, "decisions(): a list of dicts."},
    {"json", method_json, METH_NOARGS, "json(): the result document."},
    {"report", method_report, METH_NOARGS, "report(): an HTML page."},
    {"overlay", method_overlay, METH_NOARGS, "overlay(): the decisions as an overlay."},
    {"merge", method_merge, METH_O, "merge(other): both results' entries."},
    {"store", method_store, METH_O, "store(url): writes them to a store."},
    {0},
};

PyTypeObject *native_result_make_type(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)dealloc},
        {Py_tp_methods, methods},
        {0},
    };
    return native_make_type(module, "hone._hone.Result", sizeof(native_result), slots);
}
