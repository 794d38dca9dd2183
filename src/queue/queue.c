#include "queue/queue.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "os/os.h"
#include "store/check.h"
#include "store/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 16, LOOKS = 8, DEVICE_SIZE = 1025 };

static const char where[] = "queue";
static const char scheme[] = "hone.queue", pause_operation[] = "pause"; // of foreign configs
// Those of the dead are looked for at most so often.
static const uint64_t orphans_pause_ns = UINT64_C(1000000000), keep_pause_ns = UINT64_C(500000000);

static hone_status need_queue(const hone_store *store, hone_error *err)
{
    char forms[256];
    if (store->ops->queue != NULL) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "%s has no queue: a store of another kind has one, %s", store->url,
        hone_store_queue_forms(forms, sizeof forms));
}

hone_status hone_queue_init(
    hone_queue *queue, hone_store *store, const char *const *devices, size_t device_count, hone_error *err)
{
    char who[80];
    hone_status status = need_queue(store, err);
    if (status != HONE_OK) return status;
    *queue =
        (hone_queue){.store = store, .devices = devices, .device_count = device_count, .retries = HONE_QUEUE_RETRIES};
    hone_os_who(who, sizeof who);
    // Not the user: stores are shared.
    const char *at = strchr(who, '@');
    snprintf(
        queue->who, sizeof queue->who, "%.60s process %d #%08x", at != NULL ? at + 1 : who, hone_os_process_id(),
        (unsigned)hone_os_random_seed());
    return HONE_OK;
}

// Devices -------------------------------------------------------------------------------------------------------------

bool hone_queue_fits(const char *text, const char *fingerprint)
{
    if (text == NULL || fingerprint == NULL) return false;
    const size_t size = strlen(text);
    if (size == 0 || strncmp(text, fingerprint, size) != 0) return false;
    return fingerprint[size] == '\0' || fingerprint[size] == ',' || fingerprint[size] == '|';
}

hone_status hone_queue_check_device(const char *device, hone_error *err)
{
    const hone_check_field name = {"the device", device, HONE_CHECK_NAME};
    if (device == NULL || device[0] == '\0')
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "the device is empty: expected a fingerprint, or its beginning up to a comma or bar");
    hone_status status = hone_check_texts(&name, 1, where, err);
    const char last = device[strlen(device) - 1];
    if (status == HONE_OK && (last == ',' || last == '|'))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "the device %s ends in '%c': expected a fingerprint, or its beginning up to a comma or bar, without that",
            device, last);
    if (status != HONE_OK || hone_text_is_utf8(device, strlen(device))) return status;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where,
        "the device is not UTF-8: expected a fingerprint, or its beginning up to a comma or bar");
}

// The texts that a fingerprint fits: itself, and its beginnings. Returns the length of the next shorter one; 0: no more.
static size_t shorter(const char *fingerprint, size_t size)
{
    while (size > 0 && fingerprint[size - 1] != ',' && fingerprint[size - 1] != '|')
        size--;
    return size > 0 ? size - 1 : 0;
}

static uint64_t lock_of(const hone_store_key *key)
{
    const char *const parts[] = {"queue", key->device, key->algorithm, key->version, key->key};
    return hone_lease_name(parts, sizeof parts / sizeof *parts) & INT64_MAX;
}

// Copies --------------------------------------------------------------------------------------------------------------

static void texts_of(hone_job *job, const char **fields[8])
{
    const char **all[8] = {&job->key.device, &job->key.algorithm, &job->key.version, &job->key.key,
                           &job->key.spec,   &job->call,          &job->holder,      &job->reason};
    memcpy(fields, all, sizeof all);
}

// The job's texts in one block. NULL: no memory.
static char *copy_texts(const hone_allocator *allocator, hone_job *job)
{
    const char **fields[8];
    size_t size = 1;
    texts_of(job, fields);
    for (int i = 0; i < 8; i++)
        size += *fields[i] != NULL ? strlen(*fields[i]) + 1 : 0;
    char *block = hone_alloc(allocator, size), *at = block;
    for (int i = 0; block != NULL && i < 8; i++) {
        if (*fields[i] == NULL) continue;
        const size_t length = strlen(*fields[i]) + 1;
        memcpy(at, *fields[i], length);
        *fields[i] = at;
        at += length;
    }
    return block;
}

// Claiming ------------------------------------------------------------------------------------------------------------

typedef struct candidate {
    hone_job job;
    char *texts;
    const char *device; // fingerprint
} candidate;

typedef struct candidates {
    const hone_allocator *allocator;
    candidate *items;
    size_t count, capacity;
    const hone_queue *queue;
    const char *device; // that the next is for
    bool failed;
} candidates;

static bool add_candidate(void *ctx, const hone_job *job)
{
    candidates *all = ctx;
    candidate one = {.job = *job, .device = all->device};
    if (!hone_grow(all->allocator, &all->items, &all->capacity, all->count + 1, sizeof *all->items) ||
        (one.texts = copy_texts(all->allocator, &one.job)) == NULL) {
        all->failed = true;
        return false;
    }
    all->items[all->count++] = one;
    return true;
}

static void free_candidates(candidates *all)
{
    for (size_t i = 0; i < all->count; i++)
        hone_free(all->allocator, all->items[i].texts);
    hone_free(all->allocator, all->items);
    all->items = NULL;
    all->count = all->capacity = 0;
}

static int by_worth(const void *a, const void *b)
{
    const hone_job *left = &((const candidate *)a)->job, *right = &((const candidate *)b)->job;
    if (left->priority < right->priority || left->priority > right->priority)
        return left->priority > right->priority ? -1 : 1;
    if (left->round != right->round) return left->round < right->round ? -1 : 1;
    return (left->weight < right->weight) - (left->weight > right->weight);
}

// The texts that the queue's devices fit, each once.
typedef struct device_texts {
    char room[HONE_QUEUE_CLASSES][DEVICE_SIZE];
    const char *texts[HONE_QUEUE_CLASSES];
    size_t count;
} device_texts;

// Which of the queue's devices a job is for.
static const char *device_of(const hone_queue *queue, const hone_job *job)
{
    for (size_t i = 0; i < queue->device_count; i++)
        if (hone_queue_fits(job->key.device, queue->devices[i])) return queue->devices[i];
    return queue->devices[0];
}

static bool add_candidate_of(void *ctx, const hone_job *job)
{
    candidates *all = ctx;
    all->device = device_of(all->queue, job);
    return add_candidate(all, job);
}

static hone_status visit_texts(
    hone_queue *queue, const device_texts *fit, bool orphans, candidates *all, hone_error *err)
{
    hone_store *store = queue->store;
    const hone_queue_ops *ops = store->ops->queue;
    hone_status status = HONE_OK;
    if (ops->look != NULL)
        return ops->look(store, fit->texts, fit->count, orphans, CANDIDATES, add_candidate_of, all, err);
    for (size_t i = 0; i < fit->count && status == HONE_OK; i++) {
        status = ops->visit(store, fit->texts[i], HONE_JOB_WAITING, false, CANDIDATES, add_candidate_of, all, err);
        if (status == HONE_OK && orphans)
            status = ops->visit(store, fit->texts[i], HONE_JOB_HELD, true, 4 * CANDIDATES, add_candidate_of, all, err);
    }
    return status;
}

static hone_status look_at(hone_queue *queue, const device_texts *fit, bool orphans, candidates *all, hone_error *err)
{
    hone_status status = hone_store_lock(queue->store, where, err);
    return status == HONE_OK ? hone_store_unlock(queue->store, visit_texts(queue, fit, orphans, all, err)) : status;
}

static bool add_text(device_texts *fit, const char *device, size_t size)
{
    for (size_t i = 0; i < fit->count; i++)
        if (strlen(fit->texts[i]) == size && strncmp(fit->texts[i], device, size) == 0) return true;
    memcpy(fit->room[fit->count], device, size);
    fit->room[fit->count][size] = '\0';
    fit->texts[fit->count] = fit->room[fit->count];
    return ++fit->count < HONE_QUEUE_CLASSES;
}

// As many at a time as there is room for, most often all.
static hone_status look_at_all(hone_queue *queue, device_texts *fit, bool orphans, candidates *all, hone_error *err)
{
    hone_status status = HONE_OK;
    fit->count = 0;
    for (size_t i = 0; i < queue->device_count; i++) {
        const char *device = queue->devices[i];
        for (size_t size = strlen(device); size > 0 && status == HONE_OK; size = shorter(device, size)) {
            if (size >= DEVICE_SIZE || add_text(fit, device, size)) continue;
            status = look_at(queue, fit, orphans, all, err);
            fit->count = 0;
        }
    }
    return status == HONE_OK && fit->count > 0 ? look_at(queue, fit, orphans, all, err) : status;
}

static hone_status look(hone_queue *queue, candidates *all, hone_error *err)
{
    const uint64_t now = hone_os_now_ns();
    const bool orphans = queue->orphans_ns == 0 || now - queue->orphans_ns > orphans_pause_ns;
    device_texts *fit = hone_alloc(all->allocator, sizeof *fit);
    if (fit == NULL) return hone_fail_memory(err, where);
    hone_status status = look_at_all(queue, fit, orphans, all, err);
    hone_free(all->allocator, fit);
    if (status == HONE_OK && all->failed) status = hone_fail_memory(err, where);
    if (status == HONE_OK && orphans) queue->orphans_ns = now;
    if (status == HONE_OK && all->count > 1) qsort(all->items, all->count, sizeof *all->items, by_worth);
    return status;
}

typedef struct taking {
    const hone_queue *queue;
    const hone_job *seen;
    hone_job job;
    char reason[300];
    bool taken;
} taking;

static bool is_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

// Under the lease: nobody else claims it. What was seen without may be another's by now.
static hone_status take(void *ctx, const hone_job *stored, hone_job_change *change, hone_error *err)
{
    taking *t = ctx;
    (void)err;
    t->taken = false;
    if (stored == NULL || stored->state != t->seen->state || !is_same(stored->holder, t->seen->holder)) return HONE_OK;
    t->job = *stored;
    change->put = &t->job;
    if (stored->tries >= t->queue->retries) {
        snprintf(
            t->reason, sizeof t->reason, "%u contests were begun and none ended; the last: %.200s",
            (unsigned)stored->tries,
            stored->reason != NULL   ? stored->reason
            : stored->holder != NULL ? stored->holder
                                     : "not known");
        t->job.state = HONE_JOB_ASIDE;
        t->job.reason = t->reason;
        return HONE_OK;
    }
    t->job.state = HONE_JOB_HELD;
    t->job.holder = t->queue->who;
    t->job.tries++;
    t->taken = true;
    return HONE_OK;
}

static hone_status change(hone_store *store, const hone_store_key *key, hone_job_change *change, hone_error *err)
{
    hone_status status = hone_store_lock(store, where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, store->ops->queue->change(store, key, change, err));
}

// HONE_NOT_FOUND: another was quicker, or it was set aside.
static hone_status try_candidate(hone_queue *queue, candidate *one, hone_job_claim *out, hone_error *err)
{
    const hone_wait none = {.seconds = 0};
    taking t = {.queue = queue, .seen = &one->job};
    hone_job_change take_it = {.make = take, .ctx = &t, .seen = &one->job};
    hone_lease lease;
    hone_status status = hone_store_lease(queue->store, lock_of(&one->job.key), &none, &lease, err);
    if (status != HONE_OK) return status == HONE_BUSY ? HONE_NOT_FOUND : status;
    status = change(queue->store, &one->job.key, &take_it, err);
    if (status != HONE_OK || !t.taken) {
        hone_lease_leave(&lease);
        return status == HONE_OK ? HONE_NOT_FOUND : status;
    }
    *out =
        (hone_job_claim){.queue = queue, .job = one->job, .device = one->device, .lease = lease, .texts = one->texts};
    out->job.state = HONE_JOB_HELD;
    out->job.tries = t.job.tries;
    one->texts = NULL;
    return HONE_OK;
}

// The lease may be of a session that is lost with its server.
static uint64_t keep(void *ctx)
{
    hone_job_claim *claim = ctx;
    if (!atomic_load(&claim->lost) && claim->lease.keep(&claim->lease, NULL) == HONE_BUSY)
        atomic_store(&claim->lost, true);
    return keep_pause_ns;
}

static hone_status begin_keeping(hone_job_claim *claim, hone_error *err)
{
    if (claim->lease.keep == NULL) return HONE_OK;
    return hone_ticker_start(&claim->queue->store->allocator, keep, claim, &claim->keeper, err);
}

hone_status hone_queue_claim(hone_queue *queue, hone_job_claim *out, hone_error *err)
{
    candidates all = {.allocator = &queue->store->allocator, .queue = queue};
    hone_status status = HONE_NOT_FOUND;
    bool any = true;
    for (int looks = 0; status == HONE_NOT_FOUND && any && looks < LOOKS; looks++) {
        status = look(queue, &all, err);
        any = all.count > 0;
        if (status == HONE_OK) status = HONE_NOT_FOUND;
        for (size_t i = 0; i < all.count && status == HONE_NOT_FOUND; i++)
            status = try_candidate(queue, &all.items[i], out, err);
        free_candidates(&all);
    }
    if (status == HONE_NOT_FOUND) return hone_fail(err, HONE_NOT_FOUND, where, "no call waits for a device here");
    if (status != HONE_OK) return status;
    status = begin_keeping(out, err);
    if (status != HONE_OK) (void)!hone_job_claim_end(out, HONE_JOB_GIVEN_BACK, 0, NULL, NULL);
    return status;
}

// Ending --------------------------------------------------------------------------------------------------------------

typedef struct ending {
    const hone_job_claim *claim;
    hone_job_end how;
    double seconds;
    const char *reason;
    hone_job job;
} ending;

static void put_end(const ending *e, hone_job *job)
{
    job->state = HONE_JOB_WAITING;
    job->boot = 0;
    switch (e->how) {
    case HONE_JOB_OPEN:
        job->round++;
        job->seconds = e->seconds;
        job->tries = 0;
        job->reason = NULL;
        break;
    case HONE_JOB_FAILED:
        job->reason = e->reason;
        if (job->tries >= e->claim->queue->retries) job->state = HONE_JOB_ASIDE;
        break;
    case HONE_JOB_HOPELESS:
        job->reason = e->reason;
        job->state = HONE_JOB_ASIDE;
        break;
    case HONE_JOB_GIVEN_BACK:
        job->tries -= job->tries > 0;
        break;
    case HONE_JOB_DONE:
        break;
    }
}

static hone_status end_job(void *ctx, const hone_job *stored, hone_job_change *change, hone_error *err)
{
    ending *e = ctx;
    const hone_job_claim *claim = e->claim;
    if (stored == NULL || stored->state != HONE_JOB_HELD || !is_same(stored->holder, claim->queue->who))
        return hone_fail(err, HONE_BUSY, where, "%s was claimed by another worker meanwhile", claim->job.key.key);
    e->job = *stored;
    put_end(e, &e->job);
    change->removes = e->how == HONE_JOB_DONE;
    change->put = change->removes ? NULL : &e->job;
    return HONE_OK;
}

void hone_job_claim_drop(hone_job_claim *claim)
{
    if (claim->queue == NULL) return;
    hone_ticker_stop(&claim->keeper);
    hone_lease_leave(&claim->lease);
    hone_free(&claim->queue->store->allocator, claim->texts);
    claim->queue = NULL;
}

hone_status hone_job_claim_end(
    hone_job_claim *claim, hone_job_end how, double seconds, const char *reason, hone_error *err)
{
    ending e = {.claim = claim, .how = how, .seconds = seconds, .reason = reason};
    hone_job_change end = {.make = end_job, .ctx = &e};
    hone_status status = change(claim->queue->store, &claim->job.key, &end, err);
    if (status == HONE_OK || status == HONE_BUSY) hone_job_claim_drop(claim);
    return status;
}

// Others than workers -------------------------------------------------------------------------------------------------

static hone_status add_all(hone_store *store, const hone_job *jobs, size_t count, size_t *out_added, hone_error *err)
{
    hone_status status = hone_store_lock(store, where, err);
    if (status != HONE_OK) return status;
    return hone_store_unlock(store, store->ops->queue->add(store, jobs, count, out_added, err));
}

hone_status hone_queue_add(hone_store *store, hone_job *jobs, size_t count, size_t *out_added, hone_error *err)
{
    hone_status status = need_queue(store, err);
    *out_added = 0;
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = hone_queue_check_device(jobs[i].key.device, err);
    if (status != HONE_OK || count == 0) return status;
    for (size_t i = 0; i < count; i++) {
        jobs[i].state = HONE_JOB_WAITING;
        jobs[i].tries = 0;
        jobs[i].holder = NULL;
        jobs[i].lock = lock_of(&jobs[i].key);
    }
    return add_all(store, jobs, count, out_added, err);
}

typedef struct raising {
    double priority;
    hone_job job;
} raising;

static hone_status raise_job(void *ctx, const hone_job *stored, hone_job_change *change, hone_error *err)
{
    raising *r = ctx;
    if (stored == NULL) return hone_fail(err, HONE_NOT_FOUND, where, "no such call is queued");
    r->job = *stored;
    r->job.priority = r->priority;
    if (stored->state == HONE_JOB_ASIDE) {
        r->job.state = HONE_JOB_WAITING;
        r->job.tries = 0;
    }
    change->put = &r->job;
    return HONE_OK;
}

hone_status hone_queue_raise(hone_store *store, const hone_store_key *key, double priority, hone_error *err)
{
    raising r = {.priority = priority};
    hone_job_change raise_it = {.make = raise_job, .ctx = &r};
    hone_status status = need_queue(store, err);
    return status == HONE_OK ? change(store, key, &raise_it, err) : status;
}

static hone_status drop_job(void *ctx, const hone_job *stored, hone_job_change *change, hone_error *err)
{
    (void)ctx;
    if (stored == NULL) return hone_fail(err, HONE_NOT_FOUND, where, "no such call is queued");
    change->removes = true;
    return HONE_OK;
}

hone_status hone_queue_drop(hone_store *store, const hone_store_key *key, hone_error *err)
{
    const hone_wait none = {.seconds = 0};
    hone_job_change drop = {.make = drop_job};
    hone_lease lease;
    if (store == NULL || key == NULL || key->device == NULL || key->algorithm == NULL || key->version == NULL ||
        key->key == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the store, the key and its fields must not be NULL");
    hone_status status = need_queue(store, err);
    if (status == HONE_OK) status = hone_store_lease(store, lock_of(key), &none, &lease, err);
    if (status == HONE_BUSY)
        return hone_fail(err, HONE_BUSY, where, "a worker tunes it now: stop the worker, or wait until it is done");
    if (status != HONE_OK) return status;
    status = change(store, key, &drop, err);
    hone_lease_leave(&lease);
    return status;
}

hone_status hone_queue_visit(
    hone_store *store, const char *device, hone_store_visit_job *visit, void *ctx, hone_error *err)
{
    static const hone_job_state states[] = {HONE_JOB_HELD, HONE_JOB_WAITING, HONE_JOB_ASIDE};
    hone_status status = need_queue(store, err);
    if (status == HONE_OK) status = hone_store_lock(store, where, err);
    if (status != HONE_OK) return status;
    for (int i = 0; i < 3 && status == HONE_OK; i++)
        status = store->ops->queue->visit(store, device, states[i], false, SIZE_MAX, visit, ctx, err);
    return hone_store_unlock(store, status);
}

// The dead ------------------------------------------------------------------------------------------------------------

typedef struct orphan {
    const hone_job *job;
    bool found;
} orphan;

static bool is_orphan(void *ctx, const hone_job *job)
{
    orphan *o = ctx;
    o->found = job->lock == o->job->lock && is_same(job->holder, o->job->holder);
    return !o->found;
}

// The store may tell by its rows; whether the lease is free tells the lease itself. What cannot be asked counts as alive.
static bool is_dead(hone_store *store, const hone_job *job)
{
    const hone_wait none = {.seconds = 0};
    orphan o = {.job = job};
    hone_lease lease;
    if (hone_store_lock(store, where, NULL) != HONE_OK) return false;
    (void)!hone_store_unlock(
        store, store->ops->queue->visit(store, job->key.device, HONE_JOB_HELD, true, SIZE_MAX, is_orphan, &o, NULL));
    if (!o.found || hone_store_lease(store, lock_of(&job->key), &none, &lease, NULL) != HONE_OK) return false;
    hone_lease_leave(&lease);
    return true;
}

hone_status hone_queue_visit_dead(hone_store *store, hone_store_visit_job *visit, void *ctx, hone_error *err)
{
    candidates all = {.allocator = &store->allocator};
    hone_status status = need_queue(store, err);
    if (status == HONE_OK) status = hone_store_lock(store, where, err);
    if (status != HONE_OK) return status;
    status = hone_store_unlock(
        store, store->ops->queue->visit(store, NULL, HONE_JOB_HELD, false, SIZE_MAX, add_candidate, &all, err));
    if (status == HONE_OK && all.failed) status = hone_fail_memory(err, where);
    bool goes_on = status == HONE_OK;
    for (size_t i = 0; goes_on && i < all.count; i++)
        if (is_dead(store, &all.items[i].job)) goes_on = visit(ctx, &all.items[i].job);
    free_candidates(&all);
    return status;
}

// Pausing -------------------------------------------------------------------------------------------------------------

static hone_status put_pause(hone_store *store, const char *device, bool on, hone_error *err)
{
    const hone_store_foreign mark = {
        .scheme = scheme,
        .operation = pause_operation,
        .foreign_key = device != NULL ? device : "*",
        .text = on ? "true" : "false"};
    return hone_store_put_foreign(store, &mark, 1, err);
}

hone_status hone_queue_pause(hone_store *store, const char *device, bool on, hone_error *err)
{
    if (store == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the store is NULL");
    hone_status status = need_queue(store, err);
    // What an older hone took can be taken back.
    if (status == HONE_OK && device != NULL && (on || device[0] == '\0')) status = hone_queue_check_device(device, err);
    return status == HONE_OK ? put_pause(store, device, on, err) : status;
}

typedef struct pausing {
    const char *fingerprint;
    bool paused;
} pausing;

static bool look_at_pause(void *ctx, const hone_store_foreign *mark)
{
    pausing *p = ctx;
    const char *of = mark->foreign_key;
    if (strcmp(mark->text, "true") == 0 &&
        (strcmp(of, "*") == 0 || (p->fingerprint != NULL && hone_queue_fits(of, p->fingerprint))))
        p->paused = true;
    return !p->paused;
}

hone_status hone_queue_is_paused(hone_store *store, const char *fingerprint, bool *out, hone_error *err)
{
    pausing p = {fingerprint, false};
    hone_status status = hone_store_foreigns(store, scheme, look_at_pause, &p, err);
    if (status == HONE_OK) *out = p.paused;
    return status;
}

typedef struct pauses {
    bool (*visit)(void *ctx, const char *device);
    void *ctx;
} pauses;

static bool visit_pause(void *ctx, const hone_store_foreign *mark)
{
    const pauses *p = ctx;
    return strcmp(mark->text, "true") != 0 || p->visit(p->ctx, mark->foreign_key);
}

hone_status hone_queue_pauses(
    hone_store *store, bool (*visit)(void *ctx, const char *device), void *ctx, hone_error *err)
{
    pauses p = {visit, ctx};
    if (store == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the store and visit must not be NULL");
    return hone_store_foreigns(store, scheme, visit_pause, &p, err);
}

// Counting ------------------------------------------------------------------------------------------------------------

static hone_status count_text(hone_store *store, const char *text, hone_queue_stat *out, hone_error *err)
{
    uint64_t counts[3];
    hone_status status = hone_store_lock(store, where, err);
    if (status != HONE_OK) return status;
    status = hone_store_unlock(store, store->ops->queue->count(store, text, counts, err));
    if (status != HONE_OK) return status;
    out->waiting += counts[HONE_JOB_WAITING];
    out->held += counts[HONE_JOB_HELD];
    out->aside += counts[HONE_JOB_ASIDE];
    return HONE_OK;
}

hone_status hone_queue_count(hone_store *store, const char *device, hone_queue_stat *out, hone_error *err)
{
    char text[DEVICE_SIZE];
    hone_status status = need_queue(store, err);
    *out = (hone_queue_stat){0};
    if (status != HONE_OK || device == NULL) return status == HONE_OK ? count_text(store, NULL, out, err) : status;
    for (size_t size = strlen(device); size > 0 && size < sizeof text && status == HONE_OK;
         size = shorter(device, size)) {
        memcpy(text, device, size);
        text[size] = '\0';
        status = count_text(store, text, out, err);
    }
    return status;
}
