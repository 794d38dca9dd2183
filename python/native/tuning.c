// Contests started from Python: options, progress, Ctrl-C.
#include "native.h"

#include <stdio.h>
#include <string.h>

// What the callbacks of a contest need. They are called without the interpreter's lock.
typedef struct contest {
    PyObject *progress, *tuner; // callables, or None
    PyObject *raised;           // by one of them, or by a signal; NULL: nothing was
    volatile int cancel;
    char tuner_name[64];
} contest;

// The first exception is what the contest raises.
static void keep_exception(contest *self)
{
    PyObject *exception = native_take_exception();
    if (self->raised != NULL)
        Py_XDECREF(exception);
    else
        self->raised = exception;
}

static PyObject *progress_dict(const hone_progress *progress)
{
    return Py_BuildValue(
        "{s:s,s:I,s:I,s:s,s:d,s:s,s:d,s:d,s:s}", "call", progress->call, "done", progress->done, "total",
        progress->total, "kernel", progress->kernel, "best_ns", progress->best_ns, "best_kernel", progress->best_kernel,
        "elapsed_seconds", progress->elapsed_seconds, "remaining_seconds", progress->remaining_seconds, "waiting",
        progress->waiting);
}

static bool report(PyObject *callable, const hone_progress *progress)
{
    if (callable == Py_None) return true;
    PyObject *dict = progress_dict(progress);
    PyObject *answer = dict != NULL ? PyObject_CallFunctionObjArgs(callable, dict, NULL) : NULL;
    Py_XDECREF(dict);
    Py_XDECREF(answer);
    return answer != NULL;
}

static void on_progress(void *ctx, const hone_progress *progress)
{
    contest *self = ctx;
    PyGILState_STATE state = PyGILState_Ensure();
    if (self->raised == NULL && (PyErr_CheckSignals() != 0 || !report(self->progress, progress))) {
        keep_exception(self);
        self->cancel = 1; // what was measured until now is kept
    }
    PyGILState_Release(state);
}

// Where the contest has no more seconds or evaluations, its tuner is told so by an exception, and has done its work.
static hone_status run_tuner(void *ctx, hone_tuning *tuning, hone_error *err)
{
    contest *self = ctx;
    hone_status status = HONE_OK;
    PyGILState_STATE state = PyGILState_Ensure();
    if (!native_run_tuner(self->tuner, tuning)) {
        status = PyErr_ExceptionMatches(native.errors[HONE_CANCELLED]) ? HONE_CANCELLED : HONE_KERNEL_FAILED;
        if (status == HONE_CANCELLED)
            PyErr_Clear();
        else
            keep_exception(self);
    }
    err->status = status;
    PyGILState_Release(state);
    return status;
}

// A converter: an int of 0 or more.
static int read_count(PyObject *object, void *out)
{
    long value = PyLong_AsLong(object);
    if (value == -1 && PyErr_Occurred() != NULL) return 0;
    if (value < 0 || (unsigned long)value > UINT32_MAX) {
        PyErr_Format(PyExc_ValueError, "evaluations and patience must be 0 (the default) or more, got %R", object);
        return 0;
    }
    *(uint32_t *)out = (uint32_t)value;
    return 1;
}

const char *const native_regime_names[HONE_REGIME_COUNT] = {
    [HONE_WARM] = "warm",
    [HONE_COLD] = "cold",
    [HONE_WARM_STABLE] = "warm-stable",
    [HONE_COLD_STABLE] = "cold-stable",
    [HONE_GRAPH] = "graph",
    [HONE_EAGER] = "eager",
    [HONE_GRAPH_STABLE] = "graph-stable",
    [HONE_EAGER_STABLE] = "eager-stable",
};

bool native_regime(const char *name, hone_regime *out)
{
    static const hone_regime asked[] = {HONE_WARM, HONE_COLD, HONE_GRAPH, HONE_EAGER};
    *out = HONE_WARM;
    if (name == NULL) return true;
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        *out = asked[i];
        if (strcmp(native_regime_names[asked[i]], name) == 0) return true;
    }
    PyErr_Format(PyExc_ValueError, "regime must be 'warm', 'cold', 'graph' or 'eager', got '%s'", name);
    return false;
}

static bool read_regime(const char *name, bool cold, hone_regime *out)
{
    if (!native_regime(name, out)) return false;
    if (name == NULL && cold) *out = HONE_COLD;
    if (!cold || *out == HONE_COLD) return true;
    PyErr_Format(PyExc_ValueError, "cold=True and regime='%s': give one of them", name);
    return false;
}

static bool read_options(PyObject *keywords, hone_tune_options *out, contest *callables)
{
    static char *names[] = {
        "evaluations",
        "seconds",
        "patience",
        "candidate_seconds",
        "wait_seconds",
        "isolation",
        "cold",
        "seed",
        "store",
        "fresh",
        "keep_existing",
        "platform",
        "kernel",
        "stable",
        "expected_calls",
        "batch_seconds",
        "progress",
        "tuner",
        "same_regime",
        "regime",
        NULL};
    int same_regime = 0, cold = 0, store = 1, fresh = 0, keep = 0, stable = 0;
    const char *isolation = NULL, *regime = NULL;
    unsigned long long seed = 0;
    PyObject *none = PyTuple_New(0);
    *out = (hone_tune_options){.struct_size = sizeof *out};
    bool parsed = none != NULL &&
                  PyArg_ParseTupleAndKeywords(
                      none, keywords, "|$O&dO&ddzpKpppzzpddOOpz", names, read_count, &out->evaluations, &out->seconds,
                      read_count, &out->patience, &out->candidate_seconds, &out->wait_seconds, &isolation, &cold, &seed,
                      &store, &fresh, &keep, &out->platform, &out->kernel, &stable, &out->expected_calls,
                      &out->batch_seconds, &callables->progress, &callables->tuner, &same_regime, &regime);
    Py_XDECREF(none);
    if (!parsed) return false;
    if (!read_regime(regime, cold != 0, &out->regime)) return false;
    out->same_regime = same_regime || regime != NULL;
    out->seed = seed;
    out->no_store = !store;
    out->fresh = fresh;
    out->keep_existing = keep;
    out->stable = stable;
    bool in_process = isolation != NULL && PyOS_stricmp(isolation, "in_process") == 0;
    bool worker = isolation != NULL && PyOS_stricmp(isolation, "worker") == 0;
    if (isolation != NULL && !in_process && !worker) {
        PyErr_Format(PyExc_ValueError, "isolation must be 'worker' or 'in_process', got '%s'", isolation);
        return false;
    }
    out->isolation = in_process ? HONE_ISOLATION_IN_PROCESS : worker ? HONE_ISOLATION_WORKER : HONE_ISOLATION_DEFAULT;
    return true;
}

// Of a callable that has no name, its type's.
static void name_tuner(contest *self)
{
    PyObject *name = PyObject_GetAttrString(self->tuner, "__name__");
    if (name == NULL) {
        PyErr_Clear();
        name = PyObject_GetAttrString((PyObject *)Py_TYPE(self->tuner), "__name__");
    }
    const char *text = name != NULL ? native_utf8(name) : NULL;
    snprintf(self->tuner_name, sizeof self->tuner_name, "%s", text != NULL ? text : "own");
    PyErr_Clear();
    Py_XDECREF(name);
}

typedef hone_status contest_function(void *subject, const hone_tune_options *options, hone_error *err);

// Runs a contest under the current context. False: an exception is set.
static bool run_contest(contest_function *function, void *subject, PyObject *keywords)
{
    hone_tune_options options;
    hone_context *context = NULL;
    hone_status status;
    hone_error err;
    PyObject *entered = NULL;
    contest self = {.progress = Py_None, .tuner = Py_None};
    if (!read_options(keywords, &options, &self)) return false;
    if (!native_context_current(&context, &entered)) return false;
    name_tuner(&self);
    const hone_tuner tuner = {.struct_size = sizeof tuner, .name = self.tuner_name, .run = run_tuner, .ctx = &self};
    options.progress = on_progress;
    options.progress_ctx = &self;
    options.cancel = &self.cancel;
    if (self.tuner != Py_None) options.tuner = &tuner;
    Py_BEGIN_ALLOW_THREADS hone_context *previous = hone_context_enter(context);
    status = function(subject, &options, &err);
    hone_context_enter(previous);
    Py_END_ALLOW_THREADS if (self.raised != NULL) PyErr_SetObject((PyObject *)Py_TYPE(self.raised), self.raised);
    else if (status != HONE_OK) native_raise(&err);
    const bool is_done = self.raised == NULL && status == HONE_OK;
    Py_XDECREF(self.raised);
    Py_XDECREF(entered);
    return is_done;
}

// --- tuning

typedef struct tuning_run {
    native_tuning *tuning;
    void *subject;
    hone_result *result;
} tuning_run;

static hone_status run_tuning(void *subject, const hone_tune_options *options, hone_error *err)
{
    tuning_run *run = subject;
    return run->tuning(run->subject, options, &run->result, err);
}

PyObject *native_tune_with(native_runtime *runtime, native_tuning *tuning, void *subject, PyObject *keywords)
{
    tuning_run run = {tuning, subject, NULL};
    if (run_contest(run_tuning, &run, keywords)) return native_result_new(runtime, run.result);
    hone_result_release(&run.result);
    return NULL;
}

static hone_status tune_call(void *subject, const hone_tune_options *options, hone_result **out, hone_error *err)
{
    const native_call *call = subject;
    return hone_tune(call->operation->op, call->call, options, out, err);
}

static hone_status tune_recorded(void *subject, const hone_tune_options *options, hone_result **out, hone_error *err)
{
    return hone_tune_recorded(subject, options, out, err);
}

// tune(call or None, **options): None: what was recorded.
PyObject *native_tune(native_runtime *runtime, PyObject *args, PyObject *options)
{
    PyObject *call;
    if (!PyArg_ParseTuple(args, "O", &call)) return NULL;
    if (call == Py_None) return native_tune_with(runtime, tune_recorded, runtime->rt, options);
    if (Py_IS_TYPE(call, native.call_type)) return native_tune_with(runtime, tune_call, call, options);
    PyErr_SetString(PyExc_TypeError, "expected a call");
    return NULL;
}

// --- auditing

typedef struct audit_run {
    hone_runtime *rt;
    const char **calls;
    size_t count;
    double threshold;
    hone_audit *audit;
} audit_run;

static hone_status run_audit(void *subject, const hone_tune_options *options, hone_error *err)
{
    audit_run *run = subject;
    return hone_tune_audit(run->rt, run->calls, run->count, run->threshold, options, &run->audit, err);
}

static bool take_calls(PyObject *list, audit_run *out)
{
    out->count = (size_t)PyList_Size(list);
    out->calls = PyMem_Calloc(out->count + 1, sizeof *out->calls);
    if (out->calls == NULL) return PyErr_NoMemory() != NULL;
    for (size_t i = 0; i < out->count; i++) {
        out->calls[i] = native_utf8(PyList_GetItem(list, (Py_ssize_t)i));
        if (out->calls[i] == NULL) return false;
    }
    return true;
}

static PyObject *audit_document(const hone_audit *audit)
{
    char *text = NULL;
    hone_error err;
    if (hone_audit_json(audit, &text, &err) != HONE_OK) return native_raise(&err);
    PyObject *made = native_text(text);
    hone_text_release(&text);
    return made;
}

// audit(calls, threshold, **options): the audit document.
PyObject *native_audit(native_runtime *runtime, PyObject *args, PyObject *options)
{
    PyObject *calls, *made = NULL;
    audit_run run = {.rt = runtime->rt};
    if (!PyArg_ParseTuple(args, "O!d", &PyList_Type, &calls, &run.threshold)) return NULL;
    if (take_calls(calls, &run) && run_contest(run_audit, &run, options)) made = audit_document(run.audit);
    PyMem_Free(run.calls);
    hone_audit_release(&run.audit);
    return made;
}
