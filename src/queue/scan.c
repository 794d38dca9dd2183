// The queue as a program sees it.
#include "queue/queue.h"

#include "base/error.h"

#include <string.h>

void hone_job_show(const hone_job *job, hone_queued *out)
{
    *out = (hone_queued){
        .key = job->key,
        .call = job->call,
        .state = job->state,
        .priority = job->priority,
        .round = job->round,
        .weight = job->weight,
        .count = job->count,
        .seconds = job->seconds,
        .tries = job->tries,
        .holder = job->holder,
        .reason = job->reason,
    };
}

typedef struct scan {
    bool (*visit)(void *ctx, const hone_queued *queued);
    void *ctx;
    const hone_allocator *allocator;
    uint64_t *dead; // the leases of jobs whose worker died
    size_t dead_count, capacity;
    bool failed;
} scan;

static bool note_dead(void *ctx, const hone_job *job)
{
    scan *s = ctx;
    s->failed = !hone_grow(s->allocator, &s->dead, &s->capacity, s->dead_count + 1, sizeof *s->dead);
    if (!s->failed) s->dead[s->dead_count++] = job->lock;
    return !s->failed;
}

static bool is_dead(const scan *s, const hone_job *job)
{
    for (size_t i = 0; job->state == HONE_JOB_HELD && i < s->dead_count; i++)
        if (s->dead[i] == job->lock) return true;
    return false;
}

static bool show(void *ctx, const hone_job *job)
{
    const scan *s = ctx;
    hone_queued queued;
    hone_error why;
    hone_job_show(job, &queued);
    queued.is_dead = is_dead(s, job);
    if (hone_queue_check_device(job->key.device, &why) != HONE_OK) queued.unfit = why.message;
    return s->visit(s->ctx, &queued);
}

hone_status hone_queue_scan(
    hone_store *store, bool tells_dead, bool (*visit)(void *ctx, const hone_queued *queued), void *ctx, hone_error *err)
{
    static const char where[] = "queue.scan";
    if (store == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the store and visit must not be NULL");
    scan s = {.visit = visit, .ctx = ctx, .allocator = &store->allocator};
    hone_status status = tells_dead ? hone_queue_visit_dead(store, note_dead, &s, err) : HONE_OK;
    if (status == HONE_OK && s.failed) status = hone_fail_memory(err, where);
    if (status == HONE_OK) status = hone_queue_visit(store, NULL, show, &s, err);
    hone_free(s.allocator, s.dead);
    return status;
}
