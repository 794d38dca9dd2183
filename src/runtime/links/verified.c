#include "runtime/links/verified.h"

#include "base/error.h"
#include "base/hash.h"
#include "call/made_up.h"
#include "platforms/platform.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "decide";

enum {
    SMALL_CALLS = 4,       // that a revision has to be correct for
    MOST_SMALL_RUNS = 8,   // some are inconclusive, because the reference refuses them
    MOST_SEEDS = 400,      // tried to find small calls that the kernel accepts
    MOST_BYTES = 128 << 20 // of the arrays of a call that is verified itself
};

static const double most_seconds = 2; // for the reference of a call, in seconds
// In seconds. A Python function may compile in its first run; other code is compiled before, with a contest's time
// limit.
static const double most_kernel_seconds = 5, most_interpreted_seconds = 20;
static const double most_operations = 2e10; // of a call that is verified itself, and of a small one:
static const double most_small_operations = 1e7;

// One check: this kernel, with this config, for this call.
typedef struct question {
    const hone_request *request;
    const hone_kernel_ref *kernel;
    const hone_config *config;
    const hone_call *call;
    bool is_asked;   // the call is the request's own, not a small one
    bool first_runs; // this revision has not run yet, so its first runs are checked
    char text[1024]; // of the config
} question;

// What this process knows ---------------------------------------------------------------------------------------------

// Under the mutex.
static hone_verdict *find(const hone_runtime *rt, const hone_kernel_ref *kernel, const char *key, uint64_t config)
{
    for (hone_verdict *verdict = rt->verdicts; verdict != NULL; verdict = verdict->next)
        if (verdict->kernel == kernel && verdict->config == config && strcmp(verdict->key, key) == 0) return verdict;
    return NULL;
}

static uint64_t hash_of(const char *config)
{
    return hone_hash64(config, strlen(config));
}

bool hone_verdict_recall(
    hone_runtime *rt,
    const hone_kernel_ref *kernel,
    const char *key,
    const char *config,
    hone_status *out,
    hone_error *why)
{
    hone_mutex_lock(&rt->mutex);
    const hone_verdict *verdict = find(rt, kernel, key, hash_of(config));
    if (verdict != NULL) {
        *out = verdict->status;
        if (verdict->status != HONE_OK) hone_fail(why, verdict->status, where, "%s", verdict->words);
    }
    hone_mutex_unlock(&rt->mutex);
    return verdict != NULL;
}

hone_status hone_verdict_remember(
    hone_runtime *rt,
    const hone_kernel_ref *kernel,
    const char *key,
    const char *config,
    hone_status status,
    hone_error *why)
{
    hone_verdict *verdict = hone_alloc(&rt->allocator, sizeof *verdict);
    if (verdict == NULL) return hone_fail_memory(why, where);
    verdict->kernel = kernel;
    snprintf(verdict->key, sizeof verdict->key, "%s", key);
    verdict->config = hash_of(config);
    verdict->status = status;
    if (status != HONE_OK) snprintf(verdict->words, sizeof verdict->words, "%.255s", why->message);
    hone_mutex_lock(&rt->mutex);
    if (find(rt, kernel, key, verdict->config) == NULL) {
        (void)hone_kernel_retain(kernel);
        verdict->next = rt->verdicts;
        rt->verdicts = verdict;
        verdict = NULL;
    }
    hone_mutex_unlock(&rt->mutex);
    hone_free(&rt->allocator, verdict);
    return status;
}

void hone_runtime_forget_verdicts(hone_runtime *rt, bool all)
{
    hone_mutex_lock(&rt->mutex);
    for (hone_verdict **link = &rt->verdicts; *link != NULL;) {
        hone_verdict *verdict = *link;
        if (!all && hone_kernel_is_registered(verdict->kernel)) {
            link = &verdict->next;
            continue;
        }
        *link = verdict->next;
        hone_kernel_release(verdict->kernel);
        hone_free(&rt->allocator, verdict);
    }
    hone_mutex_unlock(&rt->mutex);
}

// What the stores know ------------------------------------------------------------------------------------------------

// The revision of a program's function is the one that the program gave it, or always "1": then only this process knows
// which code was checked.
bool hone_request_knows_code(const hone_kernel_ref *kernel)
{
    return kernel->kernel.code != NULL || strcmp(kernel->kernel.revision, "1") != 0;
}

typedef struct search {
    const question *q;
    bool found;
} search;

static bool look_at(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *row = record->measurement;
    search *s = ctx;
    const hone_kernel *kernel = &s->q->kernel->kernel;
    s->found = strcmp(row->kernel, kernel->name) == 0 && strcmp(row->config, s->q->text) == 0 &&
               hone_measurement_verifies(row, kernel, s->q->request->device);
    return !s->found;
}

static bool is_stored(const question *q)
{
    hone_runtime *rt = q->request->rt;
    hone_store *const stores[] = {hone_runtime_store(rt), hone_runtime_system_store(rt)};
    const hone_store_key key = hone_request_key(q->request, q->call);
    search s = {q, false};
    for (int i = 0; i < 2 && !s.found && hone_request_knows_code(q->kernel); i++)
        if (stores[i] != NULL) (void)!hone_store_scan(stores[i], HONE_RECORD_MEASUREMENT, &key, look_at, &s, NULL);
    return s.found;
}

// Trying --------------------------------------------------------------------------------------------------------------

// If a function of this program cannot be isolated it is checked in this process, where it would run next anyway.
static bool runs_here(const question *q, const hone_tune_environment *environment)
{
    if (!hone_kernel_is_hosts(q->request->op->algorithm, q->kernel)) return false;
    return q->request->nested || (environment->zygote == NULL && hone_os_thread_count() != 1);
}

static hone_status run(const question *q, bool here, hone_verification *out, hone_error *why)
{
    const hone_request *request = q->request;
    const hone_platform_facts *facts = hone_platform_facts_of(q->kernel->kernel.platform);
    hone_tune_environment environment;
    hone_status status = hone_runtime_contest_environment(
        request->rt, request->device, hone_request_knows_code(q->kernel), &environment, why);
    if (status != HONE_OK) return status;
    if (!q->first_runs) environment.verifies = NULL;
    const hone_tune_options options = {
        .struct_size = sizeof options,
        .seconds = most_seconds,
        .candidate_seconds = facts->is_interpreted            ? most_interpreted_seconds
                             : q->kernel->kernel.code != NULL ? 0
                                                              : most_kernel_seconds,
        .isolation = here || runs_here(q, &environment) ? HONE_ISOLATION_IN_PROCESS : HONE_ISOLATION_DEFAULT,
        .no_store = !hone_request_knows_code(q->kernel),
    };
    const hone_contest_request asked = {&environment, request->op->algorithm, q->call, &options};
    hone_thread_self.depth++;
    status = hone_verification_run(&asked, q->kernel, q->config, out, why);
    hone_thread_self.depth--;
    return status;
}

// A program that waits may want to report the wait: the Python package recognises it by these messages.
static void tell_wait(const question *q, const char *what)
{
    hone_log_write(
        &q->request->rt->log, HONE_LOG_INFO, "first run of %s: %s: %s", q->kernel->kernel.name,
        hone_call_text(q->request->call), what);
}

static hone_status try_it(const question *q, hone_error *why)
{
    hone_verification came;
    const char *name = q->kernel->kernel.name;
    tell_wait(q, "is being verified");
    hone_status status = run(q, false, &came, why);
    // The zygote lacks some memory of the kernel, or has ended.
    if (status == HONE_UNSUPPORTED && q->is_asked && hone_kernel_is_hosts(q->request->op->algorithm, q->kernel))
        status = run(q, true, &came, why);
    tell_wait(q, "was looked at");
    if (status == HONE_OUT_OF_MEMORY || status == HONE_CANCELLED) return status;
    // The reference failed, or the kernel does not accept a small call: the kernel is neither correct nor wrong.
    const bool says_nothing = status == HONE_KERNEL_FAILED || (status == HONE_UNSUPPORTED && !q->is_asked);
    if (status != HONE_OK)
        return hone_fail(
            why, says_nothing ? HONE_NOT_FOUND : HONE_UNAVAILABLE, where, "%s cannot be verified: %.200s", name,
            why->message);
    if (came.failure == HONE_FAILURE_NONE) return HONE_OK;
    return hone_fail(
        why, HONE_KERNEL_FAILED, where, "%s failed for %.100s when it was verified (%s: %.120s)", name,
        hone_call_text(q->call), hone_failure_name(came.failure), came.reason);
}

// Explaining runs nothing, and a call inside a kernel does not wait for a worker.
static bool may_try(const hone_request *request, const hone_kernel_ref *kernel)
{
    return !request->explaining && (!request->nested || hone_kernel_is_hosts(request->op->algorithm, kernel));
}

// HONE_OK; HONE_NOT_FOUND: the call is inconclusive; HONE_UNAVAILABLE: nothing can be run; HONE_KERNEL_FAILED;
// HONE_OUT_OF_MEMORY.
static hone_status answer(const question *q, hone_error *why)
{
    hone_runtime *rt = q->request->rt;
    const char *key = hone_call_key(q->call);
    hone_status status = HONE_OK;
    if (hone_verdict_recall(rt, q->kernel, key, q->text, &status, why)) return status;
    if (!is_stored(q)) {
        if (!may_try(q->request, q->kernel))
            return hone_fail(why, HONE_NOT_FOUND, where, "%s was not tried yet", q->kernel->kernel.name);
        status = try_it(q, why);
    }
    return status == HONE_OUT_OF_MEMORY ? status : hone_verdict_remember(rt, q->kernel, key, q->text, status, why);
}

static hone_status ask(
    const hone_request *request,
    const hone_kernel_ref *kernel,
    const hone_config *config,
    const hone_call *call,
    bool first_runs,
    hone_error *why)
{
    question q = {request, kernel, config, call, call == request->call, first_runs, ""};
    if (hone_config_json(kernel->space, config, q.text, sizeof q.text) >= sizeof q.text)
        return hone_fail(
            why, HONE_NOT_FOUND, where, "%s cannot be verified: its config is too long", kernel->kernel.name);
    return answer(&q, why);
}

// Small calls ---------------------------------------------------------------------------------------------------------

static double operations_of(const hone_request *request, const hone_call *call)
{
    hone_cost cost = {0};
    const hone_algorithm *algorithm = &request->op->algorithm->algorithm;
    if (algorithm->model != NULL) algorithm->model(call, &cost);
    return cost.operations;
}

// The small calls of one revision: how many ran, and for how many of them it was correct.
typedef struct trying {
    uint32_t runs, right;
} trying;

static hone_status try_small(
    const hone_request *request, const hone_kernel_ref *kernel, const hone_call *call, trying *t, hone_error *why)
{
    hone_config config;
    if (operations_of(request, call) > most_small_operations ||
        hone_kernel_eligible(kernel, call, request->device, NULL) != HONE_OK ||
        hone_kernel_default_config(kernel, call, request->device, &config, NULL) != HONE_OK)
        return HONE_OK;
    t->runs++;
    hone_status status = ask(request, kernel, &config, call, t->right == 0, why);
    t->right += status == HONE_OK;
    return status;
}

static hone_status try_seeds(const hone_request *request, const hone_kernel_ref *kernel, trying *t, hone_error *why)
{
    hone_status status = HONE_OK;
    for (uint64_t seed = 0; seed < MOST_SEEDS && t->right < SMALL_CALLS && t->runs < MOST_SMALL_RUNS; seed++) {
        hone_call *call = NULL;
        status = hone_made_up_call(request->rt->allocator, request->call, seed, &call);
        if (call != NULL) status = try_small(request, kernel, call, t, why);
        hone_call_release(&call);
        if (status != HONE_OK && (status != HONE_NOT_FOUND || !may_try(request, kernel))) return status;
    }
    return t->right > 0 ? HONE_OK
                        : hone_fail(why, HONE_NOT_FOUND, where, "%s: no small call verifies it", kernel->kernel.name);
}

// "f32,i32": the dtypes of the call's tensors. An error for another dtype is found when a call has that dtype.
static void list_dtypes(const hone_call *call, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < hone_signature_count(hone_call_signature(call)) && used < size; i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i);
        const hone_dtype_info *info = tensor != NULL ? hone_dtype_find(tensor->dtype) : NULL;
        if (info != NULL) used += (size_t)snprintf(out + used, size - used, "%s,", info->name);
    }
}

static hone_status verify_revision(const hone_request *request, const hone_kernel_ref *kernel, hone_error *why)
{
    hone_status status = HONE_OK;
    char dtypes[256];
    trying t = {0};
    list_dtypes(request->call, dtypes, sizeof dtypes);
    if (hone_verdict_recall(request->rt, kernel, "", dtypes, &status, why)) return status;
    status = try_seeds(request, kernel, &t, why);
    if (status == HONE_OUT_OF_MEMORY || !may_try(request, kernel)) return status;
    return hone_verdict_remember(request->rt, kernel, "", dtypes, status, why);
}

// The call itself -----------------------------------------------------------------------------------------------------

bool hone_request_is_large(const hone_request *request)
{
    double bytes = 0;
    for (size_t i = 0; i < hone_signature_count(hone_call_signature(request->call)); i++) {
        const hone_tensor *tensor = hone_call_tensor(request->call, i);
        int64_t size = 0, below = 0;
        if (tensor != NULL && hone_tensor_span(tensor, &size, &below) != HONE_OK) return true;
        bytes += (double)size;
    }
    return bytes > MOST_BYTES || operations_of(request, request->call) > most_operations;
}

// Small calls are dense, with the usual alignment: their results do not hold for arrays with another layout. For
// functions of the program they are accepted anyway, since there may be no other kernel.
static bool lies_as_small_ones(const hone_call *call)
{
    for (size_t i = 0; i < hone_signature_count(hone_call_signature(call)); i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i);
        if (tensor != NULL && (!hone_tensor_is_row_major(tensor) || hone_call_align(call, i) > 0)) return false;
    }
    return true;
}

hone_status hone_request_verify(
    const hone_request *request,
    const hone_kernel_ref *kernel,
    const hone_config *config,
    bool guessed,
    hone_error *why)
{
    const hone_tune_environment zygote = {.zygote = request->rt->zygote};
    const question q = {request, kernel, config, request->call, true, false, ""};
    bool known = !guessed; // a contest has verified it for the bucket
    const bool is_hosts = hone_kernel_is_hosts(request->op->algorithm, kernel);
    const bool says_all = !guessed || is_hosts || lies_as_small_ones(request->call);
    if (guessed && !runs_here(&q, &zygote)) {
        hone_status status = verify_revision(request, kernel, why);
        if (status == HONE_UNAVAILABLE) return why->status = HONE_NOT_FOUND;
        if (status != HONE_OK && (status != HONE_NOT_FOUND || !may_try(request, kernel))) return status;
        known = status == HONE_OK;
    }
    if (hone_request_is_large(request))
        return known && says_all
                   ? HONE_OK
                   : hone_fail(
                         why, HONE_NOT_FOUND, where,
                         "%s was never verified for this call, which is too large to do it now", kernel->kernel.name);
    hone_status status = ask(request, kernel, config, request->call, !known, why);
    // The call's reference took too long.
    if (status == HONE_NOT_FOUND && known && says_all && may_try(request, kernel)) return HONE_OK;
    return status == HONE_UNAVAILABLE ? why->status = HONE_NOT_FOUND : status;
}
