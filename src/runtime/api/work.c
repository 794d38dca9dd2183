#include "runtime/api/work.h"
#include "runtime/api/batch.h"

#include "base/error.h"
#include "base/structs.h"
#include "call/call.h"
#include "hone/result.h"
#include "os/os.h"
#include "tune/result/result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { AT_ONCE = 500, NAME_SIZE = HONE_NAME_SIZE + 20 };

static const char where[] = "work";
static const double bytes_per_ns = 10, least_ns = 1000; // for calls without a measured time
// While idle: intervals of the checks for new jobs, and for newly recorded calls.
static const uint64_t look_ns = 100000000, ask_ns = 1000000000, fill_pause_ns = UINT64_C(5000000000);
// Time limit, in ns, for a store that other processes keep busy
static const uint64_t store_again_ns = UINT64_C(30000000000);

// Weights -------------------------------------------------------------------------------------------------------------

static double tensor_bytes(const hone_tensor *tensor)
{
    double elements = 1;
    for (int32_t i = 0; i < tensor->ndim; i++)
        elements *= (double)tensor->shape[i];
    return elements * tensor->dtype.bits / 8.0;
}

double hone_work_weight(const hone_call *call, double time_ns, double count)
{
    double bytes = 0;
    if (call != NULL && !(time_ns > 0)) {
        const size_t parameters = hone_signature_count(hone_call_signature(call));
        for (size_t i = 0; i < parameters; i++) {
            const hone_tensor *tensor = hone_call_tensor(call, i);
            if (tensor != NULL) bytes += tensor_bytes(tensor);
        }
    }
    return fmax(count, 1) * (time_ns > 0 ? time_ns : least_ns + bytes / bytes_per_ns);
}

// Filling -------------------------------------------------------------------------------------------------------------

typedef struct filling {
    hone_runtime *rt;
    hone_store *store;
    const hone_tune_options *options;
    double priority;
    hone_job *jobs; // texts are copies, which flush frees
    size_t count, added;
    hone_status status;
    hone_error *err;
    hone_batch batch;
} filling;

static void flush(filling *f)
{
    size_t added = 0;
    if (f->status == HONE_OK) f->status = hone_queue_add(f->store, f->jobs, f->count, &added, f->err);
    f->added += added;
    for (size_t i = 0; i < f->count; i++) {
        const char *const texts[] = {f->jobs[i].key.device, f->jobs[i].key.algorithm, f->jobs[i].key.version,
                                     f->jobs[i].key.key,    f->jobs[i].key.spec,      f->jobs[i].call};
        for (size_t j = 0; j < sizeof texts / sizeof *texts; j++)
            hone_free(&f->rt->allocator, (char *)(uintptr_t)texts[j]);
    }
    f->count = 0;
}

static const char *copy(filling *f, const char *text)
{
    char *copied = text == NULL ? NULL : hone_copy_text(&f->rt->allocator, text, strlen(text));
    if (text != NULL && copied == NULL) f->status = HONE_OUT_OF_MEMORY;
    return copied;
}

// Makes the job for a recorded call; false if there is nothing to do. For a device that is not here only its store is
// known.
static bool look_at(filling *f, const hone_store_invocation *invocation, hone_job *out)
{
    char name[NAME_SIZE];
    const hone_store_key *key = &invocation->key;
    hone_record_call what = {
        .device = hone_record_call_device(f->rt, key->device),
        .algorithm = name,
        .call = invocation->call,
        .spec = key->spec,
        .key = key->key};
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_evidence answer = {.time_ns = 0};
    hone_error ignored;
    if (strlen(key->algorithm) >= HONE_NAME_SIZE || strlen(key->version) >= 16) return false;
    strcpy(stpcpy(stpcpy(name, key->algorithm), "@v"), key->version);
    bool wanted = true;
    if (what.device == NULL)
        wanted = !hone_record_is_decided(f->rt, invocation);
    else if (
        hone_record_call_find(f->rt, &what, &op, &call, &ignored) == HONE_OK &&
        hone_runtime_is_answered(op, call, f->options, &answer)) {
        wanted = hone_batch_is_open(&f->batch, &answer, &out->seconds);
        out->round = 1;
    }
    out->weight = hone_work_weight(call, answer.time_ns, (double)invocation->count);
    hone_call_release(&call);
    return wanted;
}

static bool fill_one(void *ctx, const hone_store_invocation *invocation)
{
    filling *f = ctx;
    const hone_store_key *key = &invocation->key;
    hone_job job = {.priority = f->priority, .count = invocation->count};
    if (invocation->call == NULL && key->spec == NULL) return true;
    if (hone_queue_check_device(key->device, NULL) != HONE_OK) return true; // not the fingerprint of a device
    if (!look_at(f, invocation, &job)) return true;
    if (job.round == 0) job.seconds = 0;
    job.key = (hone_store_key){
        copy(f, key->device), copy(f, key->algorithm), copy(f, key->version), copy(f, key->key), copy(f, key->spec)};
    job.call = copy(f, invocation->call);
    f->jobs[f->count++] = job;
    if (f->count == AT_ONCE || f->status != HONE_OK) flush(f);
    return f->status == HONE_OK;
}

hone_status hone_work_fill(
    hone_runtime *rt,
    const char *device,
    const hone_tune_options *given,
    double priority,
    size_t *out_added,
    hone_error *err)
{
    hone_tune_options options;
    if (rt == NULL || out_added == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the runtime and out_added must not be NULL");
    if (!isfinite(priority))
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the priority is %g, expected a finite number", priority);
    hone_store *store = hone_runtime_store(rt);
    *out_added = 0;
    if (store == NULL) return hone_fail(err, HONE_UNAVAILABLE, where, "%s", hone_runtime_store_reason(rt));
    hone_status status = hone_tune_options_read(rt, given, &options, err);
    if (status == HONE_OK) status = hone_runtime_discover(rt, err);
    if (status != HONE_OK) return status;
    filling f = {.rt = rt, .store = store, .options = &options, .priority = priority, .err = err};
    f.jobs = hone_alloc_array(&rt->allocator, AT_ONCE, sizeof *f.jobs);
    if (f.jobs == NULL) return hone_fail_memory(err, where);
    hone_batch_init(&f.batch, rt, &options, 1, NULL);
    status = hone_record_scan(rt, device, fill_one, &f, err);
    if (status == HONE_OK) status = f.status;
    if (status == HONE_OK) flush(&f);
    if (status == HONE_OK) status = f.status;
    flush(&f);
    hone_batch_deinit(&f.batch);
    hone_free(&rt->allocator, f.jobs);
    if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(err, where);
    if (status == HONE_OK) *out_added = f.added;
    return status;
}

// Devices -------------------------------------------------------------------------------------------------------------

typedef struct working {
    hone_runtime *rt;
    const hone_work_options *options;
    hone_tune_options tune;
    hone_queue queue;
    const char **fingerprints, **active; // active: those that are not paused
    const hone_device_info *const *devices;
    size_t device_count;
    hone_work_report *report;
    uint64_t filled_ns, changes;
    bool says_wait; // the wait was reported
} working;

static bool is_wanted(const hone_device_info *device, const char *text)
{
    const char *type = hone_device_type_name(device->device.type);
    const size_t size = strlen(type);
    char numbered[64];
    snprintf(numbered, sizeof numbered, "%s:%d", type, (int)device->device.id);
    return text == NULL || strcmp(text, device->fingerprint) == 0 || strcmp(text, "here") == 0 ||
           strcmp(text, numbered) == 0 || (strncmp(text, type, size) == 0 && text[size] == '\0') ||
           hone_queue_fits(text, device->fingerprint);
}

static hone_status choose_devices(working *w, hone_error *err)
{
    size_t all = 0;
    const hone_device_info *const *devices = hone_runtime_devices(w->rt, &all);
    w->fingerprints = hone_alloc_array(&w->rt->allocator, 2 * all + 1, sizeof *w->fingerprints);
    if (w->fingerprints == NULL) return hone_fail_memory(err, where);
    w->active = w->fingerprints + all;
    for (size_t i = 0; i < all; i++) {
        bool known = false;
        for (size_t j = 0; j < w->device_count; j++)
            known = known || strcmp(w->fingerprints[j], devices[i]->fingerprint) == 0;
        if (!known && is_wanted(devices[i], w->options->device))
            w->fingerprints[w->device_count++] = devices[i]->fingerprint;
    }
    w->devices = devices;
    if (w->device_count > 0) return HONE_OK;
    return hone_fail(
        err, HONE_NOT_FOUND, where, "there is no device '%s' here: hone devices lists them", w->options->device);
}

static const hone_device_info *device_of(const working *w, const char *fingerprint)
{
    for (size_t i = 0;; i++)
        if (strcmp(w->devices[i]->fingerprint, fingerprint) == 0) return w->devices[i];
}

// One job -------------------------------------------------------------------------------------------------------------

typedef struct outcome {
    hone_job_end end;
    double seconds; // of the next contest
    bool known;     // nothing had to be measured
    hone_error why;
} outcome;

static void note_failure(outcome *o, hone_status status, const hone_error *why)
{
    const bool passing = status == HONE_CANCELLED || status == HONE_UNAVAILABLE || status == HONE_OUT_OF_MEMORY ||
                         status == HONE_BUSY || status == HONE_IO;
    o->end = status == HONE_CANCELLED                                         ? HONE_JOB_GIVEN_BACK
             : passing                                                        ? HONE_JOB_FAILED
             : status == HONE_INVALID_ARGUMENT || status == HONE_INCOMPATIBLE ? HONE_JOB_HOPELESS
                                                                              : HONE_JOB_FAILED;
    o->why = *why;
}

static hone_status tune_found(
    working *w, hone_batch *batch, const hone_job *job, const hone_op *op, const hone_call *call, hone_error *why)
{
    if (job->round == 0) return hone_batch_tune(batch, op, call, (double)job->count, HONE_WARM, why);
    return hone_batch_take_up(batch, op, call, job->seconds > 0 ? job->seconds : w->tune.seconds, why);
}

static void tune_job(working *w, const hone_job_claim *claim, hone_result *result, outcome *o)
{
    char name[NAME_SIZE];
    const hone_job *job = &claim->job;
    const hone_record_call what = {
        .device = device_of(w, claim->device),
        .algorithm = name,
        .call = job->call,
        .spec = job->key.spec,
        .key = job->key.key};
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_error why = {.message = ""};
    hone_evidence answer;
    hone_batch batch;
    *o = (outcome){.end = HONE_JOB_DONE};
    snprintf(name, sizeof name, "%.*s@v%.16s", HONE_NAME_SIZE - 1, job->key.algorithm, job->key.version);
    hone_batch_init(&batch, w->rt, &w->tune, 1, result);
    hone_status status = hone_record_call_find(w->rt, &what, &op, &call, &why);
    // A machine without the operation's pack does not judge for those that have it, but claims no other job of it.
    if (status != HONE_OK) {
        note_failure(o, status == HONE_NOT_FOUND ? HONE_INVALID_ARGUMENT : status, &why);
    } else {
        o->known = job->round == 0 && hone_runtime_is_answered(op, call, &w->tune, &answer);
        status = tune_found(w, &batch, job, op, call, &why);
        if (status == HONE_OK) status = hone_record_call_alias(&batch, &what, call, &why);
        if (status != HONE_OK)
            note_failure(o, status, &why);
        else if (
            hone_runtime_is_answered(op, call, &w->tune, &answer) && hone_batch_is_open(&batch, &answer, &o->seconds))
            o->end = HONE_JOB_OPEN;
    }
    hone_batch_deinit(&batch);
    hone_call_release(&call);
}

static bool is_cancelled(const working *w)
{
    return w->tune.cancel != NULL && *w->tune.cancel != 0;
}

static void say_wait(working *w, const char *why)
{
    if (!w->says_wait && w->options->wait != NULL) w->options->wait(w->options->ctx, why);
    w->says_wait = true;
}

// Marks the row with the result as soon as the server can be reached. A claim that is abandoned ends with this process.
static hone_status end_claim(working *w, hone_job_claim *claim, const outcome *o, hone_error *err)
{
    for (;;) {
        hone_status status = hone_job_claim_end(claim, o->end, o->seconds, o->why.message, err);
        const bool passing = status == HONE_UNAVAILABLE || status == HONE_IO || status == HONE_BUSY;
        if (claim->queue == NULL) return status;
        if (!passing || is_cancelled(w)) {
            hone_job_claim_drop(claim);
            return status;
        }
        say_wait(w, err->message);
        hone_os_sleep_ns(look_ns);
    }
}

static void count_end(hone_work_report *report, hone_job_end end, bool known, bool aside)
{
    report->tuned += !known && end == HONE_JOB_DONE;
    report->known += known;
    report->again += end == HONE_JOB_OPEN;
    report->failed += end == HONE_JOB_FAILED;
    report->aside += end == HONE_JOB_HOPELESS || aside;
}

// Stores a decision that the store did not accept when the contest ended.
static hone_status store_again(working *w, const hone_result *result, hone_error *err)
{
    const uint64_t start = hone_os_now_ns();
    for (;;) {
        hone_status status = hone_result_store(result, w->queue.store, err);
        if (status != HONE_BUSY || is_cancelled(w) || hone_os_now_ns() - start > store_again_ns) return status;
        say_wait(w, err->message);
        hone_os_sleep_ns(look_ns);
    }
}

static hone_status work_once(working *w, hone_error *err)
{
    hone_job_claim claim;
    outcome o;
    hone_result *result = NULL;
    hone_status status = hone_queue_claim(&w->queue, &claim, err);
    if (status != HONE_OK) return status;
    w->says_wait = false;
    status = hone_result_create(w->rt->allocator, w->rt->cpu, w->rt, &result, err);
    if (status != HONE_OK) {
        hone_job_claim_drop(&claim);
        return status;
    }
    const uint64_t start = hone_os_now_ns();
    const size_t refused = atomic_load(&w->rt->refused);
    hone_error refusal;
    hone_status stored = HONE_OK;
    tune_job(w, &claim, result, &o);
    if (atomic_load(&w->rt->refused) != refused) stored = store_again(w, result, &refusal);
    // No other process has the result, so the job goes to one that can store what it finds.
    if (stored != HONE_OK) {
        o.end = HONE_JOB_GIVEN_BACK;
        (void)hone_fail(
            &o.why, HONE_IO, where,
            "%s was tuned, and stays in the queue, since the store does not take the answer: %.400s",
            claim.job.call != NULL ? claim.job.call : claim.job.key.algorithm, refusal.message);
    }
    const hone_job_end end = o.end;
    const bool failed = end == HONE_JOB_FAILED || end == HONE_JOB_HOPELESS;
    hone_queued queued;
    hone_job_show(&claim.job, &queued);
    const hone_worked worked = {
        .queued = &queued,
        .result = result,
        .reason = failed ? o.why.message : NULL,
        .seconds = (double)(hone_os_now_ns() - start) * 1e-9,
        .is_known = o.known,
        .is_open = end == HONE_JOB_OPEN};
    const bool aside = end == HONE_JOB_FAILED && claim.job.tries >= w->queue.retries;
    // Reported while the claim and its texts still exist.
    if (w->options->say != NULL && end != HONE_JOB_GIVEN_BACK) w->options->say(w->options->ctx, &worked);
    status = end_claim(w, &claim, &o, err);
    hone_result_release(&result);
    if (status == HONE_OK) count_end(w->report, end, o.known, aside);
    if (status == HONE_BUSY) w->report->lost++;
    if (stored != HONE_OK) return hone_fail(err, HONE_IO, where, "%s", o.why.message);
    return status == HONE_BUSY ? HONE_OK : status;
}

// The loop ------------------------------------------------------------------------------------------------------------

static hone_status fill(working *w, hone_error *err)
{
    hone_status status = HONE_OK;
    if (w->options->no_fill) return HONE_OK;
    w->filled_ns = hone_os_now_ns();
    for (size_t i = 0; i < w->device_count && status == HONE_OK; i++) {
        size_t added = 0;
        status = hone_work_fill(w->rt, w->fingerprints[i], &w->tune, 0, &added, err);
        w->report->queued += added;
    }
    return status;
}

static hone_status choose_active(working *w, hone_error *err)
{
    hone_status status = HONE_OK;
    w->queue.device_count = 0;
    for (size_t i = 0; i < w->device_count && status == HONE_OK; i++) {
        bool paused = false;
        status = hone_queue_is_paused(w->queue.store, w->fingerprints[i], &paused, err);
        if (status == HONE_OK && !paused) w->active[w->queue.device_count++] = w->fingerprints[i];
    }
    return status;
}

// Whether there is a job that may be claimed for the devices of this machine.
static hone_status look_around(working *w, bool *out_any, hone_error *err)
{
    hone_status status = HONE_OK;
    *out_any = false;
    for (size_t i = 0; i < w->queue.device_count && status == HONE_OK; i++) {
        hone_queue_stat stat;
        status = hone_queue_count(w->queue.store, w->active[i], &stat, err);
        *out_any = *out_any || stat.waiting + stat.held > 0;
    }
    return status;
}

static bool is_active(const working *w, const char *fingerprint)
{
    for (size_t i = 0; i < w->queue.device_count; i++)
        if (strcmp(w->active[i], fingerprint) == 0) return true;
    return false;
}

// Counts the jobs for the devices of this machine that remain when nothing can be claimed.
static hone_status count_left(working *w, hone_error *err)
{
    hone_status status = HONE_OK;
    w->report->paused = w->report->standing_aside = 0;
    for (size_t i = 0; i < w->device_count && status == HONE_OK; i++) {
        hone_queue_stat stat;
        status = hone_queue_count(w->queue.store, w->fingerprints[i], &stat, err);
        if (status != HONE_OK) return status;
        if (!is_active(w, w->fingerprints[i])) w->report->paused += stat.waiting;
        w->report->standing_aside += stat.aside;
    }
    return status;
}

static void await_news(working *w)
{
    const uint64_t start = hone_os_now_ns();
    uint64_t now = w->changes;
    while (!is_cancelled(w) && hone_os_now_ns() - start < ask_ns && now == w->changes) {
        hone_os_sleep_ns(look_ns);
        if (hone_store_changes(w->queue.store, &now, NULL) != HONE_OK) now = w->changes;
    }
    w->changes = now;
}

static hone_status step(working *w, bool *out_done, hone_error *err)
{
    bool any = false;
    hone_status status = choose_active(w, err);
    const bool paused = w->queue.device_count == 0;
    if (status == HONE_OK) status = paused ? HONE_NOT_FOUND : work_once(w, err);
    if (status != HONE_NOT_FOUND) return status;
    status = hone_os_now_ns() - w->filled_ns > fill_pause_ns || w->filled_ns == 0 ? fill(w, err) : HONE_OK;
    if (status == HONE_OK) status = look_around(w, &any, err);
    if (status != HONE_OK) return status;
    if (paused && w->options->until_empty)
        return hone_fail(err, HONE_NOT_FOUND, where, "the queue is paused: hone queue pause --off lets workers go on");
    *out_done = !any && w->options->until_empty;
    if (*out_done) return count_left(w, err);
    say_wait(w, paused ? "the queue is paused" : any ? "other workers hold what is left" : "nothing waits");
    await_news(w);
    return HONE_OK;
}

static bool is_passing(hone_status status, const hone_error *why)
{
    return status == HONE_BUSY || (status == HONE_UNAVAILABLE && why->system_code != HONE_STORE_REFUSED);
}

static hone_status loop(working *w, hone_error *err)
{
    bool done = false;
    hone_status status = fill(w, err);
    while ((status == HONE_OK || is_passing(status, err)) && !done) {
        if (is_cancelled(w)) return hone_fail(err, HONE_CANCELLED, where, "cancelled");
        if (status != HONE_OK) {
            say_wait(w, err->message);
            hone_os_sleep_ns(look_ns);
        }
        status = step(w, &done, err);
    }
    return status;
}

static hone_status work_known(
    hone_runtime *rt, const hone_work_options *options, hone_work_report *out, hone_error *err)
{
    working w = {.rt = rt, .options = options, .report = out};
    hone_store *store = hone_runtime_store(rt);
    if (store == NULL) return hone_fail(err, HONE_UNAVAILABLE, where, "%s", hone_runtime_store_reason(rt));
    hone_status status = hone_tune_options_read(rt, options->tune, &w.tune, err);
    if (status == HONE_OK) status = hone_runtime_discover(rt, err);
    if (status == HONE_OK) status = choose_devices(&w, err);
    if (status == HONE_OK) status = hone_queue_init(&w.queue, store, w.active, 0, err);
    if (status == HONE_OK && options->retries > 0) w.queue.retries = options->retries;
    if (status == HONE_OK) status = loop(&w, err);
    hone_free(&rt->allocator, w.fingerprints);
    return status;
}

hone_status hone_work_sized(
    hone_runtime *rt, const hone_work_options *options, hone_work_report *out, size_t size, hone_error *err)
{
    hone_work_options known = {.struct_size = sizeof known};
    hone_work_report report = {0};
    if (rt == NULL || out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the runtime and out must not be NULL");
    hone_status status = HONE_OK;
    if (options != NULL)
        status = hone_struct_copy(&known, sizeof known, options, options->struct_size, "hone_work_options", where, err);
    if (status == HONE_OK) status = work_known(rt, &known, &report, err);
    hone_struct_give(out, size, &report, sizeof report);
    return status;
}

// One call ------------------------------------------------------------------------------------------------------------

static hone_status find_device(const hone_op *op, const hone_call *call, const char **device, hone_error *err)
{
    const hone_device_info *here = NULL;
    if (*device != NULL) return HONE_OK;
    const hone_status status = hone_runtime_find_device(op->rt, hone_call_device(call), &here, err);
    if (status != HONE_OK) return status;
    if (here == NULL)
        return hone_fail(
            err, HONE_NOT_FOUND, where, "%s: its device is not here, and none is named", hone_call_text(call));
    *device = here->fingerprint;
    return HONE_OK;
}

hone_status hone_queue_call(
    hone_store *store,
    const hone_op *op,
    const hone_call *call,
    const hone_queue_options *options,
    bool *out_added,
    hone_error *err)
{
    hone_queue_options known = {.struct_size = sizeof known};
    size_t added = 0;
    if (store == NULL || op == NULL || call == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the store, the operation and the call must not be NULL");
    hone_status status = HONE_OK;
    if (options != NULL)
        status =
            hone_struct_copy(&known, sizeof known, options, options->struct_size, "hone_queue_options", where, err);
    if (status == HONE_OK && (!isfinite(known.priority) || !(known.seconds >= 0) || !isfinite(known.seconds)))
        status = hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "the priority is %g and the seconds are %g, expected finite numbers, the seconds 0 or more", known.priority,
            known.seconds);
    if (status == HONE_OK) status = hone_call_check(call, op->algorithm->signature, where, err);
    if (status == HONE_OK) status = find_device(op, call, &known.device, err);
    if (status != HONE_OK) return status;
    const uint64_t count = known.count > 0 ? known.count : 1;
    hone_job job = {
        .key = {known.device, op->algorithm->name, op->algorithm->version, hone_call_key(call), hone_call_spec(call)},
        .call = hone_call_text(call),
        .priority = known.priority,
        .count = count,
        .weight = hone_work_weight(call, 0, (double)count),
        .seconds = known.seconds,
    };
    status = hone_queue_add(store, &job, 1, &added, err);
    if (status == HONE_OK && added == 0) status = hone_queue_raise(store, &job.key, job.priority, err);
    if (status == HONE_OK && out_added != NULL) *out_added = added > 0;
    return status;
}
