#include "store/postgresql/many.h"

#include "base/assert.h"
#include "base/error.h"

#include <string.h>

// Sending -------------------------------------------------------------------------------------------------------------

// Statements on their way. Without libpq's pipelines (before PostgreSQL 14) each is run when it is sent.
typedef struct pipeline {
    hone_pg_connection *connection;
    hone_pg_table table;
    bool on;
    size_t count;
    bool wrote[HONE_PG_AT_ONCE];
    const char *where;
    hone_error *err;
} pipeline;

static hone_status begin_pipeline(pipeline *p)
{
    char name[HONE_PG_STATEMENT_SIZE];
    hone_pg_connection *c = p->connection;
    hone_status status = hone_pg_prepare(c, p->table, HONE_PG_PUT, name, p->where, p->err);
    if (status == HONE_OK) status = hone_pg_prepare(c, p->table, HONE_PG_ADD, name, p->where, p->err);
    p->count = 0;
    p->on = status == HONE_OK && c->pq.PQpipelineSync != NULL && c->pq.PQexitPipelineMode != NULL &&
            c->pq.PQenterPipelineMode != NULL && c->pq.PQenterPipelineMode(c->conn) == 1;
    return status;
}

static hone_status send_put(pipeline *p, hone_pg_verb verb, const void *record)
{
    hone_pg_connection *c = p->connection;
    hone_pg_ids ids;
    hone_pg_values values;
    char name[HONE_PG_STATEMENT_SIZE];
    hone_assert(p->count < HONE_PG_AT_ONCE);
    if (!p->on) return hone_pg_put(c, p->table, verb, record, &p->wrote[p->count++], p->where, p->err);
    hone_status status = hone_pg_put_values(c, p->table, record, &ids, &values, p->where, p->err);
    if (status == HONE_OK) status = hone_pg_prepare(c, p->table, verb, name, p->where, p->err);
    if (status != HONE_OK) return status;
    p->wrote[p->count] = false;
    if (!c->pq.PQsendQueryPrepared(c->conn, name, values.count, values.texts, values.sizes, values.binary, 1))
        return hone_pg_fail(c, NULL, p->where, p->err);
    p->count++;
    return HONE_OK;
}

// The answers up to the point at which they are all there. HONE_UNAVAILABLE: the session is lost.
static hone_status read_answers(pipeline *p, hone_status status)
{
    hone_pg_connection *c = p->connection;
    const hone_pq *pq = &c->pq;
    const uint64_t deadline_ns = hone_os_now_ns() + c->patience_ns;
    size_t at = 0;
    // After each statement's result comes NULL.
    for (size_t empty = 0; empty <= p->count + 1;) {
        PGresult *result = hone_pg_await_input(pq, c->conn, deadline_ns) ? pq->PQgetResult(c->conn) : NULL;
        const int kind = pq->PQresultStatus(result);
        if (result == NULL) {
            if (pq->PQstatus(c->conn) != CONNECTION_OK || hone_os_now_ns() >= deadline_ns) break;
            empty++;
            continue;
        }
        if (kind == PGRES_COMMAND_OK && at < p->count)
            p->wrote[at] = strcmp(pq->PQcmdTuples(result), "0") != 0;
        else if (kind != PGRES_PIPELINE_SYNC && kind != PGRES_PIPELINE_ABORTED && status == HONE_OK)
            status = hone_pg_fail(c, result, p->where, p->err);
        at++;
        pq->PQclear(result);
        if (kind == PGRES_PIPELINE_SYNC) return status;
    }
    const hone_status lost = hone_pg_fail(c, NULL, p->where, status == HONE_OK ? p->err : NULL);
    return status == HONE_OK ? lost : status;
}

static hone_status end_pipeline(pipeline *p, hone_status status)
{
    hone_pg_connection *c = p->connection;
    if (!p->on || c->conn == NULL) return status;
    if (!c->pq.PQpipelineSync(c->conn)) {
        const hone_status lost = hone_pg_fail(c, NULL, p->where, status == HONE_OK ? p->err : NULL);
        return status == HONE_OK ? lost : status;
    }
    status = read_answers(p, status);
    if (c->conn != NULL) (void)c->pq.PQexitPipelineMode(c->conn);
    return status;
}

hone_status hone_pg_put_all(
    hone_pg_connection *c,
    hone_pg_table table,
    hone_pg_verb verb,
    const void *const *records,
    size_t count,
    size_t *out_put,
    const char *where,
    hone_error *err)
{
    pipeline p = {.connection = c, .table = table, .where = where, .err = err};
    hone_status status = HONE_OK;
    size_t put = 0;
    for (size_t begin = 0; begin < count && status == HONE_OK; begin += HONE_PG_AT_ONCE) {
        status = begin_pipeline(&p);
        for (size_t i = begin; i < count && i < begin + HONE_PG_AT_ONCE && status == HONE_OK; i++)
            status = send_put(&p, verb, records[i]);
        status = end_pipeline(&p, status);
        for (size_t i = 0; i < p.count; i++)
            put += p.wrote[i];
    }
    if (out_put != NULL) *out_put = put;
    return status;
}

// Amending ------------------------------------------------------------------------------------------------------------

typedef struct amending {
    hone_pg_connection *connection;
    hone_pg_table table;
    hone_pg_amendment *makes;
    void *ctx;
    const char *where;
    hone_error *err;
    char ids[HONE_PG_AT_ONCE][HONE_SHA256_HEX_SIZE];
    const char *texts[HONE_PG_AT_ONCE];
    const void *again[HONE_PG_AT_ONCE]; // to be done one by one
    size_t again_count;
    const void *added[HONE_PG_AT_ONCE]; // by their place in the pipeline; NULL: it took the place of another
    pipeline pipeline;
} amending;

static hone_status amend_one(amending *a, const void *record)
{
    for (int tried = 0; tried < HONE_PG_TRIES; tried++) {
        hone_pg_record stored;
        const void *put = NULL;
        bool there, done = true;
        hone_status status =
            hone_pg_find(a->connection, a->table, HONE_PG_LOCK, record, &stored, &there, a->where, a->err);
        if (status == HONE_OK) status = a->makes(a->ctx, record, there ? &stored : NULL, &put, a->err);
        if (status != HONE_OK || put == NULL) return status;
        // Where nothing stood nothing was locked: another may be quicker.
        status = hone_pg_put(a->connection, a->table, there ? HONE_PG_PUT : HONE_PG_ADD, put, &done, a->where, a->err);
        if (status != HONE_OK || done) return status;
    }
    return hone_fail(a->err, HONE_BUSY, a->where, "others put and remove the same record again and again");
}

// The ids of as many as have keys of their own and are done at once.
static hone_status collect(amending *a, const void *const *records, size_t count, size_t *out_count)
{
    const hone_row_shape *shape = hone_pg_shape(a->table);
    hone_row row;
    size_t i;
    for (i = 0; i < count && i < HONE_PG_AT_ONCE; i++) {
        hone_row_of(shape, records[i], &row);
        if (!hone_pg_id(&row, shape->key_count, &a->connection->scratch, a->ids[i]))
            return hone_fail_memory(a->err, a->where);
        if (i > 0 && strcmp(a->ids[i], a->ids[i - 1]) == 0) break;
        a->texts[i] = a->ids[i];
    }
    *out_count = i;
    return HONE_OK;
}

static hone_status find_all(amending *a, size_t count, PGresult **out)
{
    hone_pg_connection *c = a->connection;
    hone_pg_values values = {.count = 0};
    hone_buffer texts;
    hone_buffer_init(&texts, c->allocator);
    const hone_status status = hone_pg_add_texts(&values, a->texts, count, &texts)
                                   ? hone_pg_run(c, a->table, HONE_PG_LOCKS, &values, out, NULL, a->where, a->err)
                                   : hone_fail_memory(a->err, a->where);
    hone_buffer_deinit(&texts);
    return status;
}

static bool is_row_of(const amending *a, const PGresult *found, int at, const char *id)
{
    const hone_pq *pq = &a->connection->pq;
    const int column = (int)hone_pg_shape(a->table)->count + 1;
    return at < pq->PQntuples(found) && pq->PQgetlength(found, at, column) == (int)strlen(id) &&
           memcmp(pq->PQgetvalue(found, at, column), id, strlen(id)) == 0;
}

static hone_status send_one(amending *a, const void *record, const hone_pg_record *stored)
{
    const void *put = NULL;
    hone_status status = a->makes(a->ctx, record, stored, &put, a->err);
    if (status != HONE_OK || put == NULL) return status;
    a->added[a->pipeline.count] = stored == NULL ? record : NULL;
    return send_put(&a->pipeline, stored != NULL ? HONE_PG_PUT : HONE_PG_ADD, put);
}

// Rows stand in the order of records. One that is damaged is set aside by itself, and so is done what was there.
static hone_status send_all(amending *a, const void *const *records, size_t count, const PGresult *found)
{
    hone_pg_record stored;
    hone_row row;
    const char *reason;
    hone_status status = HONE_OK;
    int at = 0;
    for (size_t i = 0; i < count && status == HONE_OK; i++) {
        if (!is_row_of(a, found, at, a->ids[i])) {
            status = send_one(a, records[i], NULL);
            continue;
        }
        const hone_status read = hone_pg_read_record(a->connection, found, at++, a->table, &row, &stored, &reason);
        if (read == HONE_OUT_OF_MEMORY) return hone_fail_memory(a->err, a->where);
        if (read == HONE_OK)
            status = send_one(a, records[i], &stored);
        else
            a->again[a->again_count++] = records[i];
    }
    return status;
}

static hone_status amend_some(amending *a, const void *const *records, size_t count)
{
    PGresult *found = NULL;
    a->again_count = 0;
    hone_status status = find_all(a, count, &found);
    if (status == HONE_OK) status = begin_pipeline(&a->pipeline);
    if (status == HONE_OK) status = end_pipeline(&a->pipeline, send_all(a, records, count, found));
    a->connection->pq.PQclear(found);
    // Where nothing stood nothing was locked: another was quicker.
    for (size_t i = 0; i < a->pipeline.count && status == HONE_OK; i++)
        if (a->added[i] != NULL && !a->pipeline.wrote[i]) status = amend_one(a, a->added[i]);
    for (size_t i = 0; i < a->again_count && status == HONE_OK; i++)
        status = amend_one(a, a->again[i]);
    return status;
}

hone_status hone_pg_amend_all(
    hone_pg_connection *c,
    hone_pg_table table,
    const void *const *records,
    size_t count,
    hone_pg_amendment *makes,
    void *ctx,
    const char *where,
    hone_error *err)
{
    amending *a = hone_alloc(&c->allocator, sizeof *a);
    if (a == NULL) return hone_fail_memory(err, where);
    *a = (amending){
        .connection = c,
        .table = table,
        .makes = makes,
        .ctx = ctx,
        .where = where,
        .err = err,
        .pipeline = {.connection = c, .table = table, .where = where, .err = err}};
    hone_status status = HONE_OK;
    for (size_t done = 0, some = 0; done < count && status == HONE_OK; done += some) {
        status = count == 1 ? amend_one(a, records[0]) : collect(a, records + done, count - done, &some);
        if (count == 1) break;
        if (status == HONE_OK) status = amend_some(a, records + done, some);
    }
    hone_free(&c->allocator, a);
    return status;
}
