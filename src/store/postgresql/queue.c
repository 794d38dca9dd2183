// The queue: a table of jobs with an index in the order in which they are claimed. Who holds one has the advisory lock
// of its name, which the server takes back with the session.
#include "store/postgresql/many.h"
#include "store/postgresql/store.h"

#include "base/error.h"

#include <stdlib.h>

static const char where[] = "store.queue";

static hone_status need_queue(hone_store *store, hone_error *err)
{
    const hone_pg_connection *c = hone_pg_connection_of(store);
    if (c->version >= HONE_PG_SCHEMA) return HONE_OK;
    return hone_fail(
        err, HONE_INCOMPATIBLE, where,
        "the schema '%s' is of version %lld, which has no queue: open it once with the rights to change it", c->schema,
        (long long)c->version);
}

typedef struct adding {
    const void **jobs;
    size_t count, added;
} adding;

static hone_status add_all(hone_pg_connection *connection, void *ctx, hone_error *err)
{
    adding *request = ctx;
    return hone_pg_put_all(
        connection, HONE_PG_JOB, HONE_PG_ADD, request->jobs, request->count, &request->added, where, err);
}

static hone_status queue_add(hone_store *store, const hone_job *jobs, size_t count, size_t *out_added, hone_error *err)
{
    adding request = {hone_alloc_array(&store->allocator, count + 1, sizeof *request.jobs), count, 0};
    if (request.jobs == NULL) return hone_fail_memory(err, where);
    for (size_t i = 0; i < count; i++)
        request.jobs[i] = &jobs[i];
    hone_status status = need_queue(store, err);
    if (status == HONE_OK) status = hone_pg_transact(hone_pg_connection_of(store), add_all, &request, where, err);
    hone_free(&store->allocator, request.jobs);
    if (status == HONE_OK) *out_added = request.added;
    return status;
}

typedef struct changing {
    const hone_store_key *key;
    hone_job_change *change;
} changing;

// When the server began: the claims of before have lost their locks. A session never sees another beginning.
static hone_status read_boot(hone_pg_connection *c, uint64_t *out, hone_error *err)
{
    static const char sql[] = "SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint";
    PGresult *result = NULL;
    *out = c->boot;
    if (c->boot != 0 && c->boot_of == c->sessions) return HONE_OK;
    hone_status status = hone_pg_execute(c, sql, NULL, &result, where, err);
    if (status != HONE_OK) return status;
    *out = c->boot = (uint64_t)hone_pg_integer_at(c, result, 0);
    c->boot_of = c->sessions;
    c->pq.PQclear(result);
    return HONE_OK;
}

// Changes the row where it is the one that was read; no lock is held over a round trip.
static hone_status put_change(
    hone_pg_connection *c, const hone_job *stored, const hone_job_change *change, bool *out_done, hone_error *err)
{
    hone_job put;
    hone_status status = HONE_OK;
    *out_done = true;
    if (change->put != NULL) {
        put = *change->put;
        if (put.state == HONE_JOB_HELD) status = read_boot(c, &put.boot, err);
    }
    if (status != HONE_OK || (change->put == NULL && !(change->removes && stored != NULL))) return status;
    if (stored == NULL) return hone_pg_put(c, HONE_PG_JOB, HONE_PG_ADD, &put, out_done, where, err);
    return hone_pg_swap_job(c, stored, change->removes ? NULL : &put, out_done, where, err);
}

static hone_status change_seen(
    hone_pg_connection *c, const hone_job *stored, hone_job_change *change, bool *out_done, hone_error *err)
{
    change->put = NULL;
    change->removes = false;
    hone_status status = change->make(change->ctx, stored, change, err);
    return status == HONE_OK ? put_change(c, stored, change, out_done, err) : status;
}

static hone_status queue_change(hone_store *store, const hone_store_key *key, hone_job_change *change, hone_error *err)
{
    hone_pg_connection *c = hone_pg_connection_of(store);
    const hone_job probe = {.key = *key};
    hone_pg_record stored;
    bool there, done = false;
    hone_status status = need_queue(store, err);
    if (status == HONE_OK && change->seen != NULL) status = change_seen(c, change->seen, change, &done, err);
    for (int tried = 0; status == HONE_OK && !done && tried < HONE_PG_TRIES; tried++) {
        status = hone_pg_find(c, HONE_PG_JOB, HONE_PG_GET, &probe, &stored, &there, where, err);
        if (status == HONE_OK) status = change_seen(c, there ? &stored.job : NULL, change, &done, err);
    }
    if (status != HONE_OK || done) return status;
    return hone_fail(err, HONE_BUSY, where, "the job was changed by others %d times meanwhile", HONE_PG_TRIES);
}

typedef struct job_visit {
    hone_store_visit_job *visit;
    void *ctx;
} job_visit;

static bool visit_job(void *ctx, const hone_pg_record *record)
{
    const job_visit *v = ctx;
    return v->visit(v->ctx, &record->job);
}

// Of every device: for people, and not prepared.
static hone_status select_all(
    hone_pg_connection *c, hone_job_state state, size_t limit, PGresult **out, hone_error *err)
{
    hone_pg_values values = {.count = 0};
    hone_buffer_clear(&c->scratch);
    hone_pg_write_any_jobs(&c->scratch);
    if (c->scratch.failed) return hone_fail_memory(err, where);
    hone_pg_add_integer(&values, (int64_t)state);
    hone_pg_add_integer(&values, limit > INT64_MAX ? INT64_MAX : (int64_t)limit);
    return hone_pg_execute(c, hone_buffer_string(&c->scratch), &values, out, where, err);
}

// One statement for all device texts.
static hone_status look_for(
    hone_pg_connection *c,
    hone_pg_verb verb,
    const char *const *devices,
    size_t count,
    size_t limit,
    hone_store_visit_job *visit,
    void *ctx,
    hone_error *err)
{
    hone_pg_values values = {.count = 0};
    job_visit v = {visit, ctx};
    PGresult *result = NULL;
    hone_buffer texts;
    bool ended;
    hone_buffer_init(&texts, c->allocator);
    const bool is_added = hone_pg_add_texts(&values, devices, count, &texts);
    hone_pg_add_integer(&values, limit > INT64_MAX ? INT64_MAX : (int64_t)limit);
    if (verb == HONE_PG_ORPHANS) hone_pg_add_integer(&values, (int64_t)c->space);
    hone_status status =
        is_added ? hone_pg_run(c, HONE_PG_JOB, verb, &values, &result, NULL, where, err) : hone_fail_memory(err, where);
    hone_buffer_deinit(&texts);
    return status == HONE_OK ? hone_pg_walk_result(c, HONE_PG_JOB, result, visit_job, &v, &ended, where, err) : status;
}

static hone_status queue_look(
    hone_store *store,
    const char *const *devices,
    size_t count,
    bool orphans,
    size_t limit,
    hone_store_visit_job *visit,
    void *ctx,
    hone_error *err)
{
    hone_pg_connection *c = hone_pg_connection_of(store);
    hone_status status = need_queue(store, err);
    if (status == HONE_OK) status = look_for(c, HONE_PG_LOOK, devices, count, limit, visit, ctx, err);
    if (status == HONE_OK && orphans) status = look_for(c, HONE_PG_ORPHANS, devices, count, limit, visit, ctx, err);
    return status;
}

static hone_status queue_visit(
    hone_store *store,
    const char *device,
    hone_job_state state,
    bool orphans,
    size_t limit,
    hone_store_visit_job *visit,
    void *ctx,
    hone_error *err)
{
    hone_pg_connection *c = hone_pg_connection_of(store);
    hone_pg_values values = {.count = 0};
    job_visit v = {visit, ctx};
    PGresult *result = NULL;
    bool ended;
    hone_status status = need_queue(store, err);
    if (status != HONE_OK) return status;
    if (orphans && device != NULL && state == HONE_JOB_HELD)
        return look_for(c, HONE_PG_ORPHANS, &device, 1, limit, visit, ctx, err);
    if (device == NULL) {
        status = select_all(c, state, limit, &result, err);
    } else {
        hone_pg_add_text(&values, device);
        hone_pg_add_integer(&values, (int64_t)state);
        hone_pg_add_integer(&values, limit > INT64_MAX ? INT64_MAX : (int64_t)limit);
        status = hone_pg_run(c, HONE_PG_JOB, HONE_PG_NEXT, &values, &result, NULL, where, err);
    }
    return status == HONE_OK ? hone_pg_walk_result(c, HONE_PG_JOB, result, visit_job, &v, &ended, where, err) : status;
}

static hone_status queue_clear(hone_store *store, const char *device, uint64_t *out_removed, hone_error *err)
{
    hone_pg_values values = {.count = 0};
    hone_status status = need_queue(store, err);
    hone_pg_add_text(&values, device);
    if (status != HONE_OK) return status;
    return hone_pg_run(
        hone_pg_connection_of(store), HONE_PG_JOB, HONE_PG_CLEAR, &values, NULL, out_removed, where, err);
}

static hone_status queue_count(hone_store *store, const char *device, uint64_t out[3], hone_error *err)
{
    static const char sql[] = "SELECT count(*) FILTER (WHERE state = 0), count(*) FILTER (WHERE state = 1), count(*) "
                              "FILTER (WHERE state = 2) FROM job WHERE $1::bytea IS NULL OR device = $1";
    hone_pg_connection *c = hone_pg_connection_of(store);
    hone_pg_values values = {.count = 0};
    PGresult *result = NULL;
    hone_status status = need_queue(store, err);
    hone_pg_add_text(&values, device);
    if (status == HONE_OK) status = hone_pg_execute(c, sql, &values, &result, where, err);
    if (status != HONE_OK) return status;
    for (int i = 0; i < 3; i++)
        out[i] = hone_pg_number_at(c, result, 0, i);
    c->pq.PQclear(result);
    return HONE_OK;
}

const hone_queue_ops hone_pg_queue_ops = {queue_add, queue_change, queue_visit, queue_clear, queue_count, queue_look};
