// One candidate in the worker: prepared by hand as the runtime would prepare it, run, and verified.
//
// A verified run writes over results that were filled with a pattern, between guard bytes: this detects results that
// are not written, and writes elsewhere. Then its results are compared with the reference's under the tolerance
// (docs/tolerance.md), and under a stable regime with the default's, bit by bit. It is verified on other values as
// well, since a kernel may keep its results, and before and after timing, since the thousandth run may differ from the
// first.
#include "tune/worker/session.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "tune/rule/statistics.h"

#include <math.h>
#include <string.h>

static const char where[] = "tune.run";

hone_failure hone_failure_of(hone_status status)
{
    return status == HONE_UNSUPPORTED ? HONE_FAILURE_UNSUPPORTED : HONE_FAILURE_RUN;
}

hone_failure hone_runner_init(
    hone_runner *runner, hone_session *session, const hone_kernel *kernel, const hone_config *config, hone_error *err)
{
    memset(runner, 0, sizeof *runner);
    runner->session = session;
    runner->kernel = *kernel;
    runner->config = *config;
    runner->batch = 1;
    hone_pool *pool = hone_session_pool(session);
    const hone_call *call = session->using != NULL ? session->call : session->blind;
    hone_runner_write_elsewhere(runner);
    runner->plan = (hone_plan){
        .say = hone_platform_say,
        .run = hone_platform_run_of(kernel),
        .config = runner->config.values,
        .kernel = &runner->kernel,
        .call = call,
        .device = session->site.device != NULL ? session->site.device : &session->device,
        .parallel_for = pool != NULL ? hone_pool_run : NULL,
        .pool = pool,
    };
    hone_error why = {0};
    // Asked again although the tuner has asked: a kernel may load its library here, and this is another process.
    if (kernel->supports != NULL && !kernel->supports(&runner->kernel, call, &why)) {
        hone_fail(
            err, why.status == HONE_UNAVAILABLE ? HONE_UNAVAILABLE : HONE_UNSUPPORTED, where, "%s",
            why.message[0] ? why.message : "does not support the call");
        return HONE_FAILURE_UNSUPPORTED;
    }
    if (session->site.instance != NULL) {
        runner->execution.struct_size = sizeof runner->execution;
        runner->execution.stream = session->site.stream;
    }
    hone_status status = hone_site_instance_for(&session->site, kernel->platform, &runner->instance, &why);
    if (status == HONE_OK)
        status = hone_platform_prepare(
            runner->instance, &runner->plan, &runner->plan.state, &runner->plan.scratch_bytes, &why);
    if (status != HONE_OK) {
        hone_fail(err, status, where, "%s", why.message[0] ? why.message : hone_status_name(status));
        return status == HONE_UNSUPPORTED ? HONE_FAILURE_UNSUPPORTED : HONE_FAILURE_PREPARE;
    }
    runner->prepared = true;
    status = hone_guarded_scratch_init(
        &runner->scratch, &session->allocator, &session->site, runner->plan.scratch_bytes, &runner->execution, err);
    return status == HONE_OK ? HONE_FAILURE_NONE : HONE_FAILURE_PREPARE;
}

uint64_t hone_runner_digest(const hone_runner *runner)
{
    return hone_platform_digest(&runner->plan);
}

uint64_t hone_kernel_identity(const hone_kernel *kernel)
{
    const uint64_t hardware = (uint64_t)kernel->platform << 32 | (uint64_t)kernel->backend;
    return (hone_hash64(kernel->name, strlen(kernel->name)) ^ hardware * UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

void hone_runner_deinit(hone_runner *runner)
{
    if (runner->prepared) hone_platform_release(runner->instance, &runner->kernel, runner->plan.state);
    hone_guarded_scratch_deinit(&runner->scratch);
    memset(runner, 0, sizeof *runner);
}

static hone_status run_values(const hone_runner *runner, const hone_value *values)
{
    hone_assert(runner->prepared);
    const hone_execution *execution = runner->execution.struct_size ? &runner->execution : NULL;
    return runner->plan.run(&runner->plan, values, execution);
}

hone_status hone_runner_run_on(const hone_runner *runner, size_t set)
{
    hone_assert(set < runner->session->buffers.set_count);
    return run_values(runner, runner->session->buffers.sets[set].values);
}

static hone_status fail_status(const hone_runner *runner, hone_status status, hone_error *err)
{
    hone_error words;
    hone_platform_run_words(runner->instance, &runner->kernel, status, &words);
    return hone_fail(err, status, where, "%s", words.message);
}

hone_failure hone_runner_check_meddling(const hone_runner *runner, hone_error *err)
{
    const hone_signature *signature = runner->session->signature;
    if (runner->lost != NULL) {
        hone_fail(err, HONE_KERNEL_FAILED, where, "%s", runner->lost);
        return HONE_FAILURE_TRACES;
    }
    if (runner->meddled == NULL) return HONE_FAILURE_NONE;
    const char *name =
        runner->meddled_index < 0 ? "" : hone_signature_parameter(signature, (size_t)runner->meddled_index)->name;
    hone_fail(
        err, HONE_KERNEL_FAILED, where, "changed %s%s%s, which a run only reads", runner->meddled,
        name[0] != '\0' ? " " : "", name);
    return HONE_FAILURE_BOUNDS;
}

hone_failure hone_runner_check_arguments(
    const hone_runner *runner, uint64_t before, hone_failure failure, hone_error *err)
{
    if (hone_arguments_digest(runner) == before) return failure;
    if (failure != HONE_FAILURE_BOUNDS)
        hone_fail(
            err, HONE_KERNEL_FAILED, where,
            "changed its hone_plan, an argument, or the hone_tensor, shape or strides of one, which a run only reads");
    return HONE_FAILURE_BOUNDS;
}

typedef struct marked_run {
    const hone_runner *runner;
    const hone_value *values;
} marked_run;

static int run_marked(void *ctx)
{
    const marked_run *run = ctx;
    return (int)run_values(run->runner, run->values);
}

// Runs and waits for the end. A device reports errors only then.
static hone_status wait_whole(hone_runner *runner, const hone_value *values, hone_error *err)
{
    hone_status status = (hone_status)hone_os_call_marked(run_marked, &(marked_run){runner, values}, &runner->lost);
    hone_status waited = hone_site_wait(&runner->session->site, err);
    if (status != HONE_OK && waited == HONE_OK) return fail_status(runner, status, err);
    return status != HONE_OK ? status : waited;
}

// Restores what the run changed of its arguments before anything else is checked.
static hone_status run_whole(hone_runner *runner, const hone_value *values, double *out_ns, hone_error *err)
{
    hone_arguments *kept = &runner->session->arguments;
    hone_arguments_keep(kept, runner, values);
    const uint64_t start = hone_os_now_ns();
    const hone_status status = wait_whole(runner, values, err);
    *out_ns = (double)(hone_os_now_ns() - start);
    runner->meddled = hone_arguments_put_back(kept, runner, values, &runner->meddled_index);
    return status;
}

hone_status hone_runner_run_values(hone_runner *runner, const hone_value *values, hone_error *err)
{
    const hone_status status = run_whole(runner, values, &runner->verify_ns, err);
    runner->verified_ns += runner->verify_ns;
    return status;
}

hone_failure hone_runner_fail(const hone_runner *runner, hone_status status, hone_error *err)
{
    (void)!fail_status(runner, status, err);
    return hone_failure_of(status);
}

// Fills results and scratch memory with a pattern, to detect what is not written.
static hone_status poison(const hone_runner *runner, hone_error *err)
{
    hone_buffers *buffers = &runner->session->buffers;
    hone_status status = hone_buffers_poison(buffers, 0, err);
    return status == HONE_OK ? hone_guarded_scratch_poison(&runner->scratch, buffers->pool, err) : status;
}

// A check that fails leaves the data in doubt, so it is made again for the next candidate.
static hone_failure check_set(hone_runner *runner, size_t set, hone_error *err)
{
    hone_session *session = runner->session;
    if (hone_buffers_fetch(&session->buffers, set, err) != HONE_OK) return HONE_FAILURE_RUN;
    if (hone_buffers_check(&session->buffers, set, err) == HONE_OK)
        return hone_guarded_scratch_check(&runner->scratch, err);
    if (hone_buffers_restore(&session->buffers, session->call, NULL) != HONE_OK)
        hone_fail(err, HONE_KERNEL_FAILED, where, "wrote where it must not, and the inputs cannot be made again");
    return HONE_FAILURE_BOUNDS;
}

hone_failure hone_runner_check(hone_runner *runner, hone_error *err)
{
    for (size_t set = 0; set < runner->session->buffers.set_count; set++) {
        hone_failure failure = check_set(runner, set, err);
        if (failure != HONE_FAILURE_NONE) return failure;
    }
    return HONE_FAILURE_NONE;
}

hone_reference *hone_session_reference(hone_session *session)
{
    hone_variant *variant = &session->variants.variants[session->variants.loaded];
    if (session->using != NULL) return &session->using->reference;
    if (session->variants.loaded == HONE_VARIANT_ORIGINAL) return &session->reference;
    return variant->has_reference ? &variant->reference : NULL;
}

// The verdict on what a run on the first set has left: first what it wrote elsewhere, then its results.
hone_failure hone_runner_judge(
    hone_runner *runner, hone_status status, const hone_error *why, double *out_max_error, hone_error *err)
{
    hone_session *session = runner->session;
    hone_failure failure = hone_runner_check_meddling(runner, err);
    if (failure != HONE_FAILURE_NONE) return failure;
    failure = hone_site_is_lost(&session->site) ? HONE_FAILURE_NONE : check_set(runner, 0, err);
    if (failure != HONE_FAILURE_NONE) return failure;
    if (status != HONE_OK) {
        hone_fail(err, status, where, "%s", why->message);
        return hone_failure_of(status);
    }
    hone_reference *reference = hone_session_reference(session);
    if (reference != NULL &&
        hone_reference_check(
            reference, &session->buffers, 0, &session->tolerance, runner->kernel.name, out_max_error, err) != HONE_OK)
        return hone_reference_finds_unwritten(reference, &session->buffers, 0, err) ? HONE_FAILURE_PARTIAL
                                                                                    : HONE_FAILURE_WRONG;
    if (session->using == NULL) status = hone_variants_compare_bits(&session->variants, &session->buffers, err);
    return status == HONE_OK ? HONE_FAILURE_NONE : HONE_FAILURE_UNSTABLE;
}

hone_failure hone_runner_run(hone_runner *runner, hone_error *err)
{
    hone_session *session = runner->session;
    if (poison(runner, err) != HONE_OK) return HONE_FAILURE_RUN;
    double unused_ns;
    hone_status status = run_whole(runner, session->buffers.sets[0].values, &unused_ns, err);
    const hone_failure meddled = hone_runner_check_meddling(runner, err);
    if (meddled != HONE_FAILURE_NONE) return meddled;
    return status == HONE_OK ? check_set(runner, 0, err) : hone_failure_of(status);
}

hone_failure hone_runner_verify(hone_runner *runner, double *out_max_error, hone_error *err)
{
    hone_error why = {.message = ""};
    hone_session *session = runner->session;
    const uint64_t start = hone_os_now_ns();
    if (poison(runner, err) != HONE_OK) return HONE_FAILURE_RUN;
    hone_status status = hone_runner_run_values(runner, session->buffers.sets[0].values, &why);
    const hone_failure failure = hone_runner_judge(runner, status, &why, out_max_error, err);
    runner->look_ns = (double)(hone_os_now_ns() - start);
    return failure;
}

// Whether results that are wrong on inputs near the original's are the right ones for the original's.
static bool is_replay(const hone_runner *runner, hone_variant_kind kind)
{
    double unused;
    hone_session *session = runner->session;
    return hone_variant_is_near(kind) &&
           hone_reference_check(&session->reference, &session->buffers, 0, &session->tolerance, NULL, &unused, NULL) ==
               HONE_OK;
}

// Makes missing variants: all of them if there is time, otherwise those that detect kept results. For a call that is
// not quick winners get a few, and leaders none.
static hone_status make_variants(hone_runner *runner, hone_verify_depth depth, hone_error *err)
{
    hone_session *session = runner->session;
    const bool is_in_time = depth == HONE_FOR_WINNERS && hone_runner_has_time(runner);
    if (is_in_time) return hone_runner_make_all_variants(runner, err);
    if (!hone_runner_must_look(runner)) return HONE_OK; // variants for all candidates are there
    if (depth < HONE_FOR_LEADERS || session->has_leaders_variants || !session->variants.shares) return HONE_OK;
    const hone_variant_kind last = depth == HONE_FOR_LEADERS ? HONE_VARIANT_COUNT - 1 : HONE_VARIANT_OTHER;
    return hone_session_make_variants(session, HONE_FOR_LEADERS, last, err);
}

// On the second made-up inputs results are zeros before the run, as in programs: this detects a kernel that takes them
// for its results.
static hone_failure verify_variant(hone_runner *runner, hone_variant_kind kind, double *out_max_error, hone_error *err)
{
    hone_buffers *buffers = &runner->session->buffers;
    buffers->clears = kind == HONE_VARIANT_OTHER;
    const hone_failure failure = hone_runner_verify(runner, out_max_error, err);
    buffers->clears = false;
    return failure;
}

hone_failure hone_runner_verify_variants(
    hone_runner *runner, hone_verify_depth depth, double *out_max_error, hone_error *err)
{
    hone_session *session = runner->session;
    hone_failure failure = HONE_FAILURE_NONE;
    if (make_variants(runner, depth, err) != HONE_OK) failure = HONE_FAILURE_RUN;
    for (int kind = HONE_VARIANT_ORIGINAL + 1; kind < HONE_VARIANT_COUNT && failure == HONE_FAILURE_NONE; kind++) {
        double error = 0;
        if (!session->variants.variants[kind].there) continue;
        if (!hone_variant_is_for((hone_variant_kind)kind, depth)) continue;
        // Kept results, and kernels that are right for one set of values only, show on the call itself.
        if (kind < HONE_VARIANT_OTHER && !hone_runner_must_look(runner)) continue;
        if (kind > HONE_VARIANT_OTHER && !hone_runner_has_time(runner)) break;
        if (hone_variants_load(&session->variants, (hone_variant_kind)kind, &session->buffers, err) != HONE_OK)
            failure = HONE_FAILURE_RUN;
        else
            failure = verify_variant(runner, (hone_variant_kind)kind, &error, err);
        if (failure == HONE_FAILURE_WRONG && is_replay(runner, (hone_variant_kind)kind))
            failure = HONE_FAILURE_REPLAYED;
        if (error > *out_max_error) *out_max_error = error;
        if (failure != HONE_FAILURE_NONE)
            hone_fail_prefix(err, HONE_KERNEL_FAILED, "on %s", hone_variant_words((hone_variant_kind)kind));
        hone_session_pass_phase(session);
    }
    if (session->variants.loaded == HONE_VARIANT_ORIGINAL) return failure;
    // An earlier failure takes precedence.
    hone_error *told = failure == HONE_FAILURE_NONE ? err : NULL;
    hone_status status = hone_variants_load(&session->variants, HONE_VARIANT_ORIGINAL, &session->buffers, told);
    return failure == HONE_FAILURE_NONE && status != HONE_OK ? HONE_FAILURE_RUN : failure;
}

hone_failure hone_runner_verify_often(
    hone_runner *runner, uint32_t most, double budget_ns, double *out_max_error, hone_error *err)
{
    uint64_t start = hone_os_now_ns();
    for (uint32_t i = 0; i < most; i++) {
        double error = 0;
        hone_failure failure = hone_runner_verify(runner, &error, err);
        if (error > *out_max_error) *out_max_error = error;
        if (failure != HONE_FAILURE_NONE || (double)(hone_os_now_ns() - start) > budget_ns) return failure;
    }
    return HONE_FAILURE_NONE;
}

static bool same_layout(const hone_tensor *a, const hone_tensor *b)
{
    if (memcmp(&a->dtype, &b->dtype, sizeof a->dtype) != 0 || a->ndim != b->ndim) return false;
    if (memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) != 0) return false;
    return hone_tensor_is_row_major(a) && hone_tensor_is_row_major(b);
}

// The parameter whose memory an inout result can have; -1: none.
static int find_host(const hone_buffers *buffers, size_t result)
{
    const hone_fenced *fenced = buffers->sets[0].fenced;
    if (fenced[result].block == NULL || !hone_signature_parameter(buffers->signature, result)->is_inout) return -1;
    for (size_t i = 0; i < buffers->count; i++)
        if (fenced[i].block != NULL && !hone_signature_parameter(buffers->signature, i)->is_result &&
            same_layout(&fenced[i].tensor, &fenced[result].tensor))
            return (int)i;
    return -1;
}

// Runs with the result in the memory of parameter `host`, then copies it to where it is checked.
static hone_failure run_in_place(
    hone_runner *runner, size_t result, size_t host, double *out_max_error, hone_error *err)
{
    hone_session *session = runner->session;
    hone_buffers *buffers = &session->buffers;
    hone_fenced *fenced = buffers->sets[0].fenced;
    size_t span = fenced[host].span;
    hone_value values[HONE_MAX_VALUES];
    hone_error why = {.message = ""};
    const uint64_t checksum = fenced[host].checksum;
    char *saved = hone_alloc_unset(&session->allocator, span);
    if (saved == NULL) {
        hone_fail_memory(err, where);
        return HONE_FAILURE_RUN;
    }
    hone_status placed = hone_buffers_open_input(&fenced[host], err);
    if (placed == HONE_OK) placed = poison(runner, err);
    memcpy(saved, fenced[host].low, span);
    memcpy(values, buffers->sets[0].values, buffers->count * sizeof values[0]);
    values[result] = values[host];
    hone_status status = placed == HONE_OK ? hone_runner_run_values(runner, values, &why) : placed;
    if (placed == HONE_OK && !hone_site_is_lost(&session->site))
        placed = hone_buffers_take(buffers, &fenced[result], &fenced[host], err);
    hone_status back = HONE_OK;
    if (!hone_site_is_lost(&session->site)) back = hone_buffers_set_input(buffers, host, saved, checksum, err);
    if (placed == HONE_OK) placed = back;
    hone_free(&session->allocator, saved);
    return placed == HONE_OK ? hone_runner_judge(runner, status, &why, out_max_error, err) : HONE_FAILURE_RUN;
}

hone_failure hone_runner_verify_in_place(hone_runner *runner, double *out_max_error, hone_error *err)
{
    const hone_buffers *buffers = &runner->session->buffers;
    for (size_t i = 0; i < buffers->count; i++) {
        int host = find_host(buffers, i);
        double error = 0;
        if (host < 0) continue;
        hone_failure failure = run_in_place(runner, i, (size_t)host, &error, err);
        if (error > *out_max_error) *out_max_error = error;
        if (failure == HONE_FAILURE_NONE) continue;
        hone_fail_prefix(
            err, HONE_KERNEL_FAILED, "in the memory of %s",
            hone_signature_parameter(buffers->signature, (size_t)host)->name);
        return failure;
    }
    return HONE_FAILURE_NONE;
}
