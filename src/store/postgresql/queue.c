// The queue: a table of jobs with an index in the order in which they are claimed. Who holds one has the advisory lock
// of its name, which the server takes back with the session.
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
    const hone_job *jobs;
    size_t count, added;
} adding;

static hone_status add_all(hone_pg_connection *connection, void *ctx, hone_error *err)
{
    adding *request = ctx;
    hone_status status = HONE_OK;
    request->added = 0;
    for (size_t i = 0; status == HONE_OK && i < request->count; i++) {
        bool put = false;
        status = hone_pg_put(connection, HONE_PG_JOB, HONE_PG_ADD, &request->jobs[i], &put, where, err);
        request->added += put;
    }
    return status;
}

static hone_status queue_add(hone_store *store, const hone_job *jobs, size_t count, size_t *out_added, hone_error *err)
{
    adding request = {jobs, count, 0};
    hone_status status = need_queue(store, err);
    if (status == HONE_OK) status = hone_pg_transact(hone_pg_connection_of(store), add_all, &request, where, err);
    if (status == HONE_OK) *out_added = request.added;
    return status;
}

typedef struct changing {
    const hone_store_key *key;
    hone_job_change *change;
} changing;

// When the server began: the claims of before have lost their locks.
static hone_status read_boot(hone_pg_connection *c, uint64_t *out, hone_error *err)
{
    static const char sql[] = "SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint";
    PGresult *result = NULL;
    hone_status status = hone_pg_execute(c, sql, NULL, &result, where, err);
    if (status != HONE_OK) return status;
    *out = (uint64_t)hone_pg_integer_at(c, result, 0);
    c->pq.PQclear(result);
    return HONE_OK;
}

static hone_status put_job(hone_pg_connection *c, const hone_job *job, hone_error *err)
{
    hone_job put = *job;
    hone_status status = HONE_OK;
    if (put.state == HONE_JOB_HELD) status = read_boot(c, &put.boot, err);
    return status == HONE_OK ? hone_pg_put(c, HONE_PG_JOB, HONE_PG_PUT, &put, NULL, where, err) : status;
}

static hone_status change_one(hone_pg_connection *connection, void *ctx, hone_error *err)
{
    const changing *request = ctx;
    const hone_job probe = {.key = *request->key};
    hone_job_change *change = request->change;
    hone_pg_record stored;
    bool there;
    change->put = NULL;
    change->removes = false;
    hone_status status = hone_pg_find(connection, HONE_PG_JOB, HONE_PG_LOCK, &probe, &stored, &there, where, err);
    if (status == HONE_OK) status = change->make(change->ctx, there ? &stored.job : NULL, change, err);
    if (status == HONE_OK && change->put != NULL) status = put_job(connection, change->put, err);
    if (status == HONE_OK && change->removes) status = hone_pg_drop(connection, HONE_PG_JOB, &probe, where, err);
    return status;
}

static hone_status queue_change(hone_store *store, const hone_store_key *key, hone_job_change *change, hone_error *err)
{
    changing request = {key, change};
    hone_status status = need_queue(store, err);
    return status == HONE_OK ? hone_pg_transact(hone_pg_connection_of(store), change_one, &request, where, err)
                             : status;
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
    orphans = orphans && device != NULL && state == HONE_JOB_HELD;
    if (device != NULL) hone_pg_add_text(&values, device);
    if (!orphans) hone_pg_add_integer(&values, (int64_t)state);
    hone_pg_add_integer(&values, limit > INT64_MAX ? INT64_MAX : (int64_t)limit);
    if (device == NULL)
        status = select_all(c, state, limit, &result, err);
    else
        status =
            hone_pg_run(c, HONE_PG_JOB, orphans ? HONE_PG_ORPHANS : HONE_PG_NEXT, &values, &result, NULL, where, err);
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

const hone_queue_ops hone_pg_queue_ops = {queue_add, queue_change, queue_visit, queue_clear, queue_count};
