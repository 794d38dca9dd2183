// Stores as objects. What is in one comes out as a document, so that nothing of Python runs under the store's lock.
#include "native.h"

#include <stdlib.h>
#include <string.h>

typedef struct native_store {
    PyObject_HEAD hone_store *store;
} native_store;

// open_store(url, read_only)
PyObject *native_store_open(PyObject *module, PyObject *args)
{
    (void)module;
    const char *url;
    int read_only = 0;
    hone_store *store = NULL;
    hone_status status;
    hone_error err;
    if (!PyArg_ParseTuple(args, "sp", &url, &read_only)) return NULL;
    const hone_store_options options = {.struct_size = sizeof options, .log = native_log, .read_only = read_only};
    Py_BEGIN_ALLOW_THREADS status = hone_store_open_with(&options, url, &store, &err);
    Py_END_ALLOW_THREADS if (status != HONE_OK) return native_raise(&err);
    native_store *self = PyObject_New(native_store, native.store_type);
    if (self == NULL)
        hone_store_close(&store);
    else
        self->store = store;
    return (PyObject *)self;
}

static void dealloc(PyObject *object)
{
    native_store *self = (native_store *)object;
    Py_BEGIN_ALLOW_THREADS hone_store_close(&self->store);
    Py_END_ALLOW_THREADS native_object_free(object);
}

static bool read_format(const char *name, hone_exchange *out)
{
    hone_error err;
    *out = HONE_EXCHANGE_ANY;
    if (name == NULL || hone_exchange_parse(name, out, &err) == HONE_OK) return true;
    native_raise(&err);
    return false;
}

// export(runtime, format, device or None, measurements, file or None, foreign device or None): the document
static PyObject *method_export(PyObject *object, PyObject *args)
{
    const char *format;
    int measurements = 0;
    hone_export_options options = {.struct_size = sizeof options};
    char *text = NULL;
    size_t size = 0;
    hone_status status;
    hone_error err;
    PyObject *runtime;
    if (!PyArg_ParseTuple(
            args, "O!szpzz", native.runtime_type, &runtime, &format, &options.device, &measurements, &options.file,
            &options.foreign_device) ||
        !read_format(format, &options.format))
        return NULL;
    options.rt = ((native_runtime *)runtime)->rt;
    options.measurements = measurements;
    Py_BEGIN_ALLOW_THREADS status = hone_export(((native_store *)object)->store, &options, &text, &size, &err);
    Py_END_ALLOW_THREADS if (status != HONE_OK) return native_raise(&err);
    PyObject *made = PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace");
    hone_text_release(&text);
    return made;
}

// get(device, algorithm, version, key, spec or None): a decision as a dict of texts, warm before cold; None: there is none.
typedef struct found_decision {
    char *texts[12]; // in the order of `names`
    bool verified, found;
    double time_ns;
    hone_regime regime;
} found_decision;

enum { FOUND_TEXTS = sizeof((found_decision *)0)->texts / sizeof(char *) };

static const char *const names[FOUND_TEXTS] = {"device",   "algorithm", "version",  "key",
                                               "call",     "kernel",    "platform", "source",
                                               "revision", "config",    "evidence", "environment"};

// Under the store's lock, without the interpreter's.
static bool copy_decision(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *row = record->decision;
    found_decision *found = ctx;
    const char *const texts[FOUND_TEXTS] = {row->key.device, row->key.algorithm, row->key.version, row->key.key,
                                            row->call,       row->kernel,        row->platform,    row->source,
                                            row->revision,   row->config,        row->evidence,    row->environment};
    for (size_t i = 0; i < FOUND_TEXTS; i++)
        found->texts[i] = texts[i] != NULL ? strdup(texts[i]) : NULL;
    found->verified = row->verified;
    found->time_ns = row->time_ns;
    found->regime = row->regime;
    found->found = true;
    return true;
}

static PyObject *found_dict(const found_decision *found)
{
    PyObject *dict = Py_BuildValue(
        "{s:N,s:d,s:s}", "verified", PyBool_FromLong(found->verified), "time_ns", found->time_ns, "regime",
        native_regime_names[found->regime]);
    for (size_t i = 0; dict != NULL && i < FOUND_TEXTS; i++) {
        PyObject *text = Py_BuildValue("z", found->texts[i]);
        if (text == NULL || PyDict_SetItemString(dict, names[i], text) != 0) Py_CLEAR(dict);
        Py_XDECREF(text);
    }
    return dict;
}

static PyObject *method_get(PyObject *object, PyObject *args)
{
    hone_store_key key = {.device = NULL};
    found_decision found = {.found = false};
    hone_status status = HONE_NOT_FOUND;
    hone_error err;
    if (!PyArg_ParseTuple(args, "ssssz", &key.device, &key.algorithm, &key.version, &key.key, &key.spec)) return NULL;
    hone_store *store = ((native_store *)object)->store;
    Py_BEGIN_ALLOW_THREADS for (int i = HONE_WARM; i < HONE_REGIME_COUNT && status == HONE_NOT_FOUND; i++) status =
        hone_store_get(store, HONE_RECORD_DECISION, &key, (hone_regime)i, copy_decision, &found, &err);
    Py_END_ALLOW_THREADS PyObject *dict = NULL;
    if (found.found)
        dict = found_dict(&found);
    else if (status != HONE_NOT_FOUND)
        native_raise(&err);
    for (size_t i = 0; i < FOUND_TEXTS; i++)
        free(found.texts[i]);
    if (dict != NULL || PyErr_Occurred() != NULL) return dict;
    Py_RETURN_NONE;
}

// What a program's own caches hold, each cache a scheme ---------------------------------------------------------------

// A text and where it came from, copied under the store's lock.
typedef struct found_value {
    char *text, *origin;
    bool found;
} found_value;

static bool copy_value(void *ctx, const hone_store_record *record)
{
    const hone_store_foreign *row = record->foreign;
    found_value *value = ctx;
    value->text = strdup(row->text);
    value->origin = row->origin != NULL ? strdup(row->origin) : NULL;
    value->found = true;
    return true;
}

// get_value(scheme, operation, device, key): (text, origin or None), or None
static PyObject *method_get_value(PyObject *object, PyObject *args)
{
    hone_store_key key = {.spec = NULL};
    found_value value = {NULL, NULL, false};
    hone_status status;
    hone_error err;
    if (!PyArg_ParseTuple(args, "ssss", &key.version, &key.algorithm, &key.device, &key.key)) return NULL;
    hone_store *store = ((native_store *)object)->store;
    Py_BEGIN_ALLOW_THREADS status =
        hone_store_get(store, HONE_RECORD_FOREIGN, &key, HONE_WARM, copy_value, &value, &err);
    Py_END_ALLOW_THREADS if (status == HONE_NOT_FOUND) Py_RETURN_NONE;
    PyObject *pair = status == HONE_OK ? Py_BuildValue("(zz)", value.text, value.origin) : native_raise(&err);
    free(value.text);
    free(value.origin);
    return pair;
}

// put_value(scheme, operation, device, key, text)
static PyObject *method_put_value(PyObject *object, PyObject *args)
{
    hone_store_foreign value = {.scheme = NULL};
    hone_status status;
    hone_error err;
    if (!PyArg_ParseTuple(
            args, "sssss", &value.scheme, &value.operation, &value.device, &value.foreign_key, &value.text))
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = hone_store_put_foreign(((native_store *)object)->store, &value, 1, &err);
    Py_END_ALLOW_THREADS if (status != HONE_OK) return native_raise(&err);
    Py_RETURN_NONE;
}

// How many entries came to what.
static PyObject *report_dict(const hone_import_report *report)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; dict != NULL && i < HONE_IMPORT_COUNT; i++) {
        PyObject *count = PyLong_FromSize_t(report->outcomes[i]);
        if (count == NULL || PyDict_SetItemString(dict, hone_import_outcome_name((hone_import_outcome)i), count) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(count);
    }
    return dict;
}

static hone_status add_documents(hone_importer *importer, PyObject *documents, hone_exchange format, hone_error *err)
{
    hone_status status = HONE_OK;
    for (Py_ssize_t i = 0; status == HONE_OK && i < PyList_Size(documents); i++) {
        const char *origin, *text;
        Py_ssize_t size;
        if (!PyArg_ParseTuple(PyList_GetItem(documents, i), "sy#", &origin, &text, &size)) return HONE_INVALID_ARGUMENT;
        status = hone_importer_add(importer, origin, format, text, (size_t)size, err);
    }
    return status;
}

// import_(runtime, [(origin, bytes)], format or None): a dict of counts
static PyObject *method_import(PyObject *object, PyObject *args)
{
    PyObject *runtime, *documents;
    const char *name;
    hone_exchange format;
    hone_importer *importer = NULL;
    hone_import_report report;
    hone_status status;
    hone_error err;
    if (!PyArg_ParseTuple(args, "O!O!z", native.runtime_type, &runtime, &PyList_Type, &documents, &name) ||
        !read_format(name, &format))
        return NULL;
    status = hone_importer_create(((native_runtime *)runtime)->rt, NULL, &importer, &err);
    if (status == HONE_OK) status = add_documents(importer, documents, format, &err);
    if (status == HONE_OK) {
        Py_BEGIN_ALLOW_THREADS status = hone_importer_commit(importer, ((native_store *)object)->store, &report, &err);
        Py_END_ALLOW_THREADS
    }
    hone_importer_release(&importer);
    if (PyErr_Occurred() != NULL) return NULL;
    return status == HONE_OK ? report_dict(&report) : native_raise(&err);
}

// merge(store): a dict of counts
static PyObject *method_merge(PyObject *object, PyObject *other)
{
    hone_import_report report;
    hone_status status;
    hone_error err;
    if (!Py_IS_TYPE(other, native.store_type)) {
        PyErr_SetString(PyExc_TypeError, "a store is merged with a store");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS status =
        hone_store_merge_from(((native_store *)object)->store, ((native_store *)other)->store, NULL, &report, &err);
    Py_END_ALLOW_THREADS return status == HONE_OK ? report_dict(&report) : native_raise(&err);
}

// put(result): its entries, in one transaction
static PyObject *method_put(PyObject *object, PyObject *result)
{
    hone_status status;
    hone_error err;
    if (!Py_IS_TYPE(result, native.result_type)) {
        PyErr_SetString(PyExc_TypeError, "a result is put into a store");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS status =
        hone_result_store(((native_result *)result)->result, ((native_store *)object)->store, &err);
    Py_END_ALLOW_THREADS if (status != HONE_OK) return native_raise(&err);
    Py_RETURN_NONE;
}

// stat(): a dict of counts
static PyObject *method_stat(PyObject *object, PyObject *none)
{
    (void)none;
    hone_store_stat stat;
    hone_status status;
    hone_error err;
    Py_BEGIN_ALLOW_THREADS status = hone_store_get_stat(((native_store *)object)->store, &stat, &err);
    Py_END_ALLOW_THREADS if (status != HONE_OK) return native_raise(&err);
    return Py_BuildValue(
        "{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:I}", "decisions", (unsigned long long)stat.decisions, "measurements",
        (unsigned long long)stat.measurements, "failures", (unsigned long long)stat.failures, "invocations",
        (unsigned long long)stat.invocations, "aliases", (unsigned long long)stat.aliases, "foreign",
        (unsigned long long)stat.foreigns, "quarantined", (unsigned long long)stat.quarantined, "bytes",
        (unsigned long long)stat.bytes, "schema", (unsigned)stat.schema);
}

static PyObject *get_url(PyObject *object, void *closure)
{
    (void)closure;
    return native_text(hone_store_url(((native_store *)object)->store));
}

static PyMethodDef methods[] = {
    {"export", method_export, METH_VARARGS,
     "export(runtime, format, device, measurements, file, foreign_device): a document."},
    {"get", method_get, METH_VARARGS, "get(device, algorithm, version, key, spec or None): a dict, or None."},
    {"get_value", method_get_value, METH_VARARGS,
     "get_value(scheme, operation, device, key): (text, origin), or None."},
    {"put_value", method_put_value, METH_VARARGS, "put_value(scheme, operation, device, key, text)."},
    {"import_", method_import, METH_VARARGS, "import_(runtime, documents, format): a dict of counts."},
    {"merge", method_merge, METH_O, "merge(store): a dict of counts."},
    {"put", method_put, METH_O, "put(result): stores its entries."},
    {"stat", method_stat, METH_NOARGS, "stat(): a dict of counts."},
    {0},
};

static PyGetSetDef fields[] = {
    {"url", get_url, NULL, "Where it is.", NULL},
    {0},
};

PyTypeObject *native_store_make_type(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, fields},
        {0},
    };
    return native_make_type(module, "hone._hone.Store", sizeof(native_store), slots);
}
