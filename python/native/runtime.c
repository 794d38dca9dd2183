// A runtime: registry, devices, store.
#include "native.h"

#include <string.h>

// --- life

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"store",      "policy",      "lock_file", "system_store", "threads", "stable",
                            "unverified", "environment", "persist",   "regime",       NULL};
    hone_runtime_options options = {.struct_size = sizeof options, .log = native_log, .log_level = LOG_INFO};
    const char *policy = NULL, *regime = NULL;
    int stable = 0, unverified = 0, environment = 1, persist = 1;
    hone_runtime *rt = NULL;
    hone_status status;
    hone_error err;
    if (!PyArg_ParseTupleAndKeywords(
            args, keywords, "|$zzzzippppz", names, &options.store, &policy, &options.lock_file, &options.system_store,
            &options.threads, &stable, &unverified, &environment, &persist, &regime))
        return NULL;
    if (!native_regime(regime, &options.regime)) return NULL;
    if (policy != NULL && hone_policy_parse(policy, &options.policy, &err) != HONE_OK) return native_raise(&err);
    options.flags = (stable ? HONE_RUNTIME_STABLE : 0u) | (unverified ? HONE_RUNTIME_UNVERIFIED : 0u) |
                    (environment ? 0u : HONE_RUNTIME_NO_ENVIRONMENT) | (persist ? 0u : HONE_RUNTIME_KEEP_IN_MEMORY);
    Py_BEGIN_ALLOW_THREADS status = hone_runtime_open(&options, &rt, &err);
    Py_END_ALLOW_THREADS if (status != HONE_OK) return native_raise(&err);
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc); // the type may be a class of Python's
    native_runtime *self = (native_runtime *)allocate(type, 0);
    if (self == NULL) {
        hone_runtime_close(&rt);
        return NULL;
    }
    self->rt = rt;
    self->operations = PyDict_New();
    if (self->operations == NULL) Py_CLEAR(self);
    return (PyObject *)self;
}

// Operations keep the runtime and the runtime keeps operations: what breaks the circle is close().
static void dealloc(PyObject *object)
{
    native_runtime *self = (native_runtime *)object;
    Py_XDECREF(self->operations);
    hone_runtime_close(&self->rt);
    native_object_free(object);
}

// --- the registry

static PyObject *strings(char **names, size_t count)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count; i++)
        native_append(&list, native_text(names[i]));
    return list;
}

static PyObject *method_algorithms(PyObject *object, PyObject *none)
{
    (void)none;
    native_runtime *self = (native_runtime *)object;
    char **names = NULL;
    size_t count = 0;
    hone_error err;
    if (hone_registry_algorithms(self->rt, &names, &count, &err) != HONE_OK) return native_raise(&err);
    PyObject *list = strings(names, count);
    hone_names_release(&names);
    return list;
}

static PyObject *kernel_dict(const hone_kernel_ref *ref)
{
    const hone_kernel *kernel = hone_kernel_of(ref);
    return Py_BuildValue(
        "{s:s,s:s,s:s,s:s,s:L,s:N,s:z,s:z}", "algorithm", kernel->algorithm, "name", kernel->name, "platform",
        hone_platform_name(kernel->platform), "backend", hone_backend_name(kernel->backend), "priority",
        (long long)kernel->priority, "is_reference", PyBool_FromLong(kernel->is_reference), "space", kernel->space,
        "revision", kernel->revision);
}

static PyObject *method_kernels(PyObject *object, PyObject *name)
{
    native_runtime *self = (native_runtime *)object;
    const hone_kernel_ref **kernels = NULL;
    size_t count = 0;
    hone_error err;
    const char *text = native_utf8(name);
    if (text == NULL) return NULL;
    if (hone_registry_kernels(self->rt, text, &kernels, &count, &err) != HONE_OK) return native_raise(&err);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count; i++)
        native_append(&list, kernel_dict(kernels[i]));
    hone_kernels_release(&kernels);
    return list;
}

// get(algorithm, platform, backend): names, or None.
static PyObject *method_get(PyObject *object, PyObject *args)
{
    native_runtime *self = (native_runtime *)object;
    const char *platform = NULL, *backend = NULL;
    const hone_kernel_ref *kernel = NULL;
    hone_query query = {0};
    hone_error err;
    if (!PyArg_ParseTuple(args, "szz", &query.algorithm, &platform, &backend)) return NULL;
    hone_status status = platform != NULL ? hone_platform_parse(platform, &query.platform, &err) : HONE_OK;
    if (status == HONE_OK && backend != NULL) status = hone_backend_parse(backend, &query.backend, &err);
    if (status == HONE_OK) status = hone_registry_get(self->rt, &query, &kernel, &err);
    return status == HONE_OK ? kernel_dict(kernel) : native_raise(&err);
}

static bool append_line(void *ctx, const char *line)
{
    native_append(ctx, native_text(line));
    return true;
}

// validate(algorithm or None): (whether all signatures agree, lines)
static PyObject *method_validate(PyObject *object, PyObject *args)
{
    const char *algorithm = NULL;
    bool agree = false;
    hone_error err;
    if (!PyArg_ParseTuple(args, "z", &algorithm)) return NULL;
    PyObject *lines = PyList_New(0);
    hone_status status =
        hone_validate_signatures(((native_runtime *)object)->rt, algorithm, false, append_line, &lines, &agree, &err);
    if (status == HONE_OK && lines != NULL) return Py_BuildValue("(NN)", PyBool_FromLong(agree), lines);
    Py_XDECREF(lines);
    return status != HONE_OK ? native_raise(&err) : NULL;
}

static PyObject *device_dict(const hone_device_info *device)
{
    return Py_BuildValue(
        "{s:s,s:s,s:s,s:s,s:i,s:i,s:i}", "name", device->name, "platform", hone_platform_name(device->platform),
        "backend", hone_backend_name(device->backend), "fingerprint", device->fingerprint, "type",
        (int)device->device.type, "id", (int)device->device.id, "threads", (int)device->threads);
}

static PyObject *method_devices(PyObject *object, PyObject *none)
{
    (void)none;
    size_t count = 0;
    const hone_device_info *const *devices = hone_runtime_devices(((native_runtime *)object)->rt, &count);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count; i++)
        native_append(&list, device_dict(devices[i]));
    return list;
}

// --- calls

static PyObject *method_operation(PyObject *object, PyObject *name)
{
    PyObject *operation = (PyObject *)native_operation_find((native_runtime *)object, name);
    Py_XINCREF(operation);
    return operation;
}

static PyObject *method_run(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    return native_with_operation((native_runtime *)object, native_operation_run, args, count, names);
}

static PyObject *method_bind(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    return native_with_operation((native_runtime *)object, native_operation_bind, args, count, names);
}

static PyObject *method_call(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    return native_with_operation((native_runtime *)object, native_operation_call, args, count, names);
}

static PyObject *method_tune(PyObject *object, PyObject *args, PyObject *keywords)
{
    return native_tune((native_runtime *)object, args, keywords);
}

static PyObject *method_audit(PyObject *object, PyObject *args, PyObject *keywords)
{
    return native_audit((native_runtime *)object, args, keywords);
}

static PyObject *method_derive_chain(PyObject *object, PyObject *args)
{
    return native_context_derive_chain((native_runtime *)object, args);
}

static PyObject *method_derive(PyObject *object, PyObject *args)
{
    return native_context_derive((native_runtime *)object, args);
}

static PyObject *method_program(PyObject *object, PyObject *args)
{
    return native_program_read((native_runtime *)object, args);
}

// --- results, overlays, records

static PyObject *method_parse_result(PyObject *object, PyObject *json)
{
    native_runtime *self = (native_runtime *)object;
    Py_ssize_t size = 0;
    const char *text = PyUnicode_AsUTF8AndSize(json, &size);
    hone_result *result = NULL;
    hone_error err;
    if (text == NULL) return NULL;
    if (hone_result_parse(self->rt, text, (size_t)size, &result, &err) != HONE_OK) return native_raise(&err);
    return native_result_new(self, result);
}

static bool read_entry(PyObject *row, hone_entry *out)
{
    const char *platform;
    hone_error err;
    *out = (hone_entry){0};
    if (!PyArg_ParseTuple(
            row, "zzzzzzzz", &out->device, &out->algorithm, &out->version, &out->key, &out->spec, &out->kernel,
            &platform, &out->config))
        return false;
    if (platform == NULL || hone_platform_parse(platform, &out->platform, &err) == HONE_OK) return true;
    native_raise(&err);
    return false;
}

// overlay(rows): (device, algorithm, version, key, spec, kernel, platform, config) each, None for what is not there.
static PyObject *method_overlay(PyObject *object, PyObject *rows)
{
    native_runtime *self = (native_runtime *)object;
    Py_ssize_t count = PyList_Check(rows) ? PyList_Size(rows) : -1;
    hone_overlay *overlay = NULL;
    hone_error err;
    if (count < 0) return PyErr_Format(PyExc_TypeError, "expected a list of entries");
    hone_entry *entries = PyMem_Calloc((size_t)count + 1, sizeof *entries);
    if (entries == NULL) return PyErr_NoMemory();
    bool read = true;
    for (Py_ssize_t i = 0; read && i < count; i++)
        read = read_entry(PyList_GetItem(rows, i), &entries[i]);
    hone_status status = read ? hone_overlay_create(self->rt, entries, (size_t)count, &overlay, &err) : HONE_OK;
    PyMem_Free(entries);
    if (!read) return NULL;
    return status == HONE_OK ? native_overlay_new(self, overlay) : native_raise(&err);
}

static PyObject *method_call_of_label(PyObject *object, PyObject *label)
{
    const char *text = PyUnicode_AsUTF8AndSize(label, NULL);
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_status status;
    hone_error err;
    if (text == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS status = hone_call_of_label(((native_runtime *)object)->rt, text, &op, &call, &err);
    Py_END_ALLOW_THREADS if (status != HONE_OK) return native_raise(&err);
    PyObject *found = native_text(hone_call_text(call));
    hone_call_release(&call);
    return found;
}

static PyObject *method_record(PyObject *object, PyObject *on)
{
    hone_record_enable(((native_runtime *)object)->rt, PyObject_IsTrue(on) == 1);
    Py_RETURN_NONE;
}

typedef struct recorded_calls {
    hone_runtime *rt;
    PyObject *list; // NULL: it failed
} recorded_calls;

// Called under the store's lock and without the interpreter's: a thread that waits for the first must not hold the
// second.
static bool append_invocation(void *ctx, const hone_store_invocation *row)
{
    recorded_calls *calls = ctx;
    const bool is_decided = hone_record_is_decided(calls->rt, row);
    PyGILState_STATE state = PyGILState_Ensure();
    native_append(
        &calls->list, Py_BuildValue(
                          "{s:z,s:z,s:z,s:z,s:z,s:z,s:z,s:z,s:K,s:N}", "device", row->key.device, "algorithm",
                          row->key.algorithm, "version", row->key.version, "key", row->key.key, "spec", row->key.spec,
                          "call", row->call, "answered", row->decided, "kernel", row->kernel, "count",
                          (unsigned long long)row->count, "decided", PyBool_FromLong(is_decided)));
    bool goes_on = calls->list != NULL;
    PyGILState_Release(state);
    return goes_on;
}

static PyObject *method_recorded(PyObject *object, PyObject *none)
{
    (void)none;
    hone_status status;
    hone_error err;
    recorded_calls calls = {((native_runtime *)object)->rt, PyList_New(0)};
    if (calls.list == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS status = hone_record_scan(calls.rt, NULL, append_invocation, &calls, &err);
    Py_END_ALLOW_THREADS if (status == HONE_OK || calls.list == NULL) return calls.list;
    Py_DECREF(calls.list);
    return native_raise(&err);
}

static void tell_unwritten(const hone_error *err)
{
    char text[sizeof err->message + 64];
    PyOS_snprintf(text, sizeof text, "the recorded calls were not written: %s", err->message);
    native_log(NULL, LOG_WARNING, text);
}

// Lets go of the operations, which keep the runtime: it closes when nothing else does. A plan may, until the interpreter
// ends and longer, so that what was recorded is written now.
static PyObject *method_close(PyObject *object, PyObject *none)
{
    (void)none;
    native_runtime *self = (native_runtime *)object;
    hone_status status;
    hone_error err;
    PyDict_Clear(self->operations);
    hone_stats_finish(self->rt);
    Py_BEGIN_ALLOW_THREADS status = hone_record_flush(self->rt, &err);
    Py_END_ALLOW_THREADS if (status != HONE_OK) tell_unwritten(&err);
    Py_RETURN_NONE;
}

// The runtime's address, for libhone_xla.so.
static PyObject *get_address(PyObject *object, void *closure)
{
    (void)closure;
    return PyLong_FromVoidPtr(((native_runtime *)object)->rt);
}

static PyObject *method_load_pack(PyObject *object, PyObject *folder)
{
    return native_scripts_load((native_runtime *)object, folder);
}

static PyObject *method_check_pack(PyObject *object, PyObject *folder)
{
    return native_scripts_check((native_runtime *)object, folder);
}

static PyMethodDef methods[] = {
    {"operation", method_operation, METH_O, "operation(name): the operation of that name."},
    {"run", (PyCFunction)(void (*)(void))method_run, METH_FASTCALL | METH_KEYWORDS, "run(name, *arrays, **scalars)"},
    {"bind", (PyCFunction)(void (*)(void))method_bind, METH_FASTCALL | METH_KEYWORDS, "bind(name, *arrays, **scalars)"},
    {"call", (PyCFunction)(void (*)(void))method_call, METH_FASTCALL | METH_KEYWORDS, "call(name, *arrays, **scalars)"},
    {"tune_call", (PyCFunction)(void (*)(void))method_tune, METH_VARARGS | METH_KEYWORDS,
     "tune_call(call or None, **options): a result"},
    {"audit_calls", (PyCFunction)(void (*)(void))method_audit, METH_VARARGS | METH_KEYWORDS,
     "audit_calls(calls, threshold, **options): the audit document"},
    {"derive_chain", method_derive_chain, METH_VARARGS, "derive_chain(parent, links, persist): a context"},
    {"derive", method_derive, METH_VARARGS,
     "derive(parent, overlay, algorithm, kernel, platform, config, store, policy): a context"},
    {"program", method_program, METH_VARARGS, "program(name, bytes): reads a lowered program"},
    {"algorithms", method_algorithms, METH_NOARGS, "algorithms(): names"},
    {"kernels", method_kernels, METH_O, "kernels(algorithm): dicts by falling priority"},
    {"get", method_get, METH_VARARGS, "get(algorithm, platform, backend): a kernel"},
    {"validate", method_validate, METH_VARARGS, "validate(algorithm or None): (agree, lines)"},
    {"devices", method_devices, METH_NOARGS, "devices(): dicts"},
    {"parse_result", method_parse_result, METH_O, "parse_result(json)"},
    {"check_pack", method_check_pack, METH_O, "check_pack(folder): what load_pack would refuse; nothing is registered"},
    {"load_pack", method_load_pack, METH_O,
     "load_pack(folder): registers its kernels; (algorithm, kernel, status, reason) of each that was refused"},
    {"overlay", method_overlay, METH_O, "overlay(rows)"},
    {"close", method_close, METH_NOARGS, "close(): lets go of what keeps the runtime"},
    {"call_of_label", method_call_of_label, METH_O, "call_of_label(label): the text of the call that it stands for"},
    {"record", method_record, METH_O, "record(on)"},
    {"stats_text", native_runtime_stats, METH_O,
     "stats_text(format): what was hit, as the line (0), JSON or Prometheus' text"},
    {"compare_stats", native_runtime_compare_stats, METH_NOARGS, "compare_stats(): dicts"},
    {"agree", native_runtime_agree, METH_O, "agree(calls or None): (document, digest)"},
    {"recorded", method_recorded, METH_NOARGS, "recorded(): dicts, heaviest first"},
    {0},
};

static PyGetSetDef fields[] = {
    {"address", get_address, NULL, "The address of the hone_runtime.", NULL},
    {0},
};

PyTypeObject *native_runtime_make_type(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_new, (void *)new},
        {Py_tp_dealloc, (void *)dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, fields},
        {0},
    };
    PyType_Spec spec = {
        .name = "hone._hone.Runtime",
        .basicsize = sizeof(native_runtime),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
        .slots = slots,
    };
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}
