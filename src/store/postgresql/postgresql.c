// "postgresql://USER@HOST/DATABASE?schema=NAME": one store for many machines. A get is one statement and one round trip,
// and so is a put of one record; several, or those that depend on what is stored, are a transaction of as many round trips
// as one (many.h), which is done again where the server ends it for the sake of another one.
#include "base/error.h"
#include "store/common/quarantine.h"
#include "store/postgresql/many.h"
#include "store/postgresql/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char get_where[] = "store.get";
static const char put_where[] = "store.put";
static const char remove_where[] = "store.remove";
static const char scan_where[] = "store.scan";
static const char put_measurement_where[] = "store.put_measurement";
static const char measurements_where[] = "store.measurements";
static const char add_invocations_where[] = "store.add_invocations";
static const char invocations_where[] = "store.invocations";
static const char clear_invocations_where[] = "store.clear_invocations";
static const char expire_misses_where[] = "store.expire_misses";
static const char put_alias_where[] = "store.put_alias";
static const char get_alias_where[] = "store.get_alias";
static const char aliases_where[] = "store.aliases";
static const char put_foreign_where[] = "store.put_foreign";
static const char get_foreign_where[] = "store.get_foreign";
static const char foreigns_where[] = "store.foreigns";
static const char clear_foreigns_where[] = "store.clear_foreigns";
static const char set_aside_where[] = "store.set_aside";
static const char quarantine_where[] = "store.quarantine";
static const char clear_quarantine_where[] = "store.clear_quarantine";
static const char verify_where[] = "store.verify";
static const char stat_where[] = "store.stat";
static const char begin_where[] = "store.begin";
static const char end_where[] = "store.end";
static const char changes_where[] = "store.changes";

extern const hone_store_ops hone_postgresql_store_ops;

// Opening -------------------------------------------------------------------------------------------------------------

static hone_status open_store(
    const hone_allocator *allocator,
    const hone_log *log,
    const char *location,
    bool read_only,
    hone_store **out,
    hone_error *err)
{
    hone_pg_store *store = hone_alloc(allocator, sizeof *store);
    if (store == NULL) return hone_fail_memory(err, "store.postgresql.open");
    store->base.ops = &hone_postgresql_store_ops;
    store->base.allocator = *allocator;
    store->base.log = *log;
    hone_status status =
        hone_pg_connection_open(&store->connection, allocator, &store->base.log, location, read_only, err);
    if (status != HONE_OK) {
        hone_free(allocator, store);
        return status;
    }
    hone_pg_sessions_init(&store->sessions);
    *out = &store->base;
    return HONE_OK;
}

static hone_status postgresql_open(
    const hone_allocator *allocator, const hone_log *log, const char *location, hone_store **out, hone_error *err)
{
    return open_store(allocator, log, location, false, out, err);
}

static hone_status postgresql_open_read_only(
    const hone_allocator *allocator, const hone_log *log, const char *location, hone_store **out, hone_error *err)
{
    return open_store(allocator, log, location, true, out, err);
}

static void postgresql_close(hone_store *store)
{
    hone_allocator allocator = store->allocator;
    hone_pg_sessions_deinit(&((hone_pg_store *)store)->sessions, hone_pg_connection_of(store));
    hone_pg_connection_close(hone_pg_connection_of(store));
    hone_free(&allocator, store);
}

// Transactions --------------------------------------------------------------------------------------------------------

static hone_status postgresql_begin(hone_store *store, hone_error *err)
{
    return hone_pg_begin(hone_pg_connection_of(store), begin_where, err);
}

static hone_status postgresql_end(hone_store *store, hone_status status, hone_error *err)
{
    return hone_pg_end(hone_pg_connection_of(store), status, end_where, err);
}

// Records of one transaction are put in the order of their keys: of two transactions that lock the same ones neither then
// waits for the other while it holds what that one needs, which the server would notice after a second.
static int by_key(const hone_row_shape *shape, const void *a, const void *b)
{
    hone_row left, right;
    hone_row_of(shape, *(const void *const *)a, &left);
    hone_row_of(shape, *(const void *const *)b, &right);
    return hone_row_compare(&left, &right, shape->key_count);
}

static int by_decision(const void *a, const void *b)
{
    return by_key(&hone_row_decision, a, b);
}

static int by_invocation(const void *a, const void *b)
{
    return by_key(&hone_row_invocation, a, b);
}

static int by_foreign(const void *a, const void *b)
{
    return by_key(&hone_row_foreign, a, b);
}

// Pointers to `count` records of `size` bytes, in order. NULL: no memory. The caller frees them.
static const void **sort_records(
    const hone_allocator *allocator,
    const void *records,
    size_t count,
    size_t size,
    int (*order)(const void *a, const void *b))
{
    const void **sorted = hone_alloc_array(allocator, count, sizeof *sorted);
    if (sorted == NULL) return NULL;
    for (size_t i = 0; i < count; i++)
        sorted[i] = (const char *)records + i * size;
    qsort(sorted, count, sizeof *sorted, order);
    return sorted;
}

// Decisions -----------------------------------------------------------------------------------------------------------

static hone_status postgresql_get(
    hone_store *store,
    const hone_store_key *key,
    hone_regime regime,
    void (*visit)(void *ctx, const hone_store_decision *decision),
    void *ctx,
    hone_error *err)
{
    const hone_store_decision probe = {.key = *key, .regime = regime};
    hone_pg_record found;
    bool there;
    hone_status status = hone_pg_find(
        hone_pg_connection_of(store), HONE_PG_DECISION, HONE_PG_GET, &probe, &found, &there, get_where, err);
    if (status != HONE_OK) return status;
    if (!there || !hone_spec_agrees(key->spec, found.decision.key.spec))
        return hone_fail(
            err, HONE_NOT_FOUND, get_where, "no decision for %s@v%s %s", key->algorithm, key->version, key->key);
    visit(ctx, &found.decision);
    return HONE_OK;
}

typedef struct put_request {
    const hone_store_decision *decisions;
    const void **sorted;
    size_t count;
    hone_merger *merger;
} put_request;

static hone_status merge_one(
    void *ctx, const void *record, const hone_pg_record *stored, const void **out_put, hone_error *err)
{
    const put_request *request = ctx;
    const hone_store_decision *coming = record, *put = NULL;
    hone_status status = hone_merger_resolve(
        request->merger, (size_t)(coming - request->decisions), stored != NULL ? &stored->decision : NULL, coming, &put,
        err);
    *out_put = put;
    return status;
}

static hone_status put_decisions(hone_pg_connection *connection, void *ctx, hone_error *err)
{
    put_request *request = ctx;
    if (request->merger == NULL)
        return hone_pg_put_all(
            connection, HONE_PG_DECISION, HONE_PG_PUT, request->sorted, request->count, NULL, put_where, err);
    return hone_pg_amend_all(
        connection, HONE_PG_DECISION, request->sorted, request->count, merge_one, request, put_where, err);
}

static hone_status postgresql_put_all(
    hone_store *store, const hone_store_decision *decisions, size_t count, hone_merger *merger, hone_error *err)
{
    put_request request = {decisions, NULL, count, merger};
    // A statement is a transaction.
    if (count == 1 && merger == NULL)
        return hone_pg_put(
            hone_pg_connection_of(store), HONE_PG_DECISION, HONE_PG_PUT, decisions, NULL, put_where, err);
    request.sorted = sort_records(&store->allocator, decisions, count, sizeof *decisions, by_decision);
    if (request.sorted == NULL) return hone_fail_memory(err, put_where);
    hone_status status = hone_pg_transact(hone_pg_connection_of(store), put_decisions, &request, put_where, err);
    hone_free(&store->allocator, request.sorted);
    return status;
}

typedef struct remove_request {
    const hone_store_key *key;
    uint64_t removed;
} remove_request;

static hone_status remove_all(hone_pg_connection *connection, void *ctx, hone_error *err)
{
    static const hone_pg_table tables[] = {HONE_PG_DECISION, HONE_PG_MEASUREMENT, HONE_PG_FAILURE};
    remove_request *request = ctx;
    char call[HONE_SHA256_HEX_SIZE];
    hone_pg_values values = {.count = 0};
    hone_status status = HONE_OK;
    request->removed = 0;
    if (!hone_pg_call_id(request->key, &connection->scratch, call)) return hone_fail_memory(err, remove_where);
    hone_pg_add_text(&values, call);
    hone_pg_add_text(&values, request->key->spec);
    for (size_t i = 0; status == HONE_OK && i < sizeof tables / sizeof *tables; i++) {
        uint64_t removed = 0;
        status = hone_pg_run(connection, tables[i], HONE_PG_REMOVE, &values, NULL, &removed, remove_where, err);
        request->removed += removed;
    }
    return status;
}

static hone_status postgresql_remove(hone_store *store, const hone_store_key *key, hone_error *err)
{
    remove_request request = {key, 0};
    hone_status status = hone_pg_transact(hone_pg_connection_of(store), remove_all, &request, remove_where, err);
    if (status != HONE_OK || request.removed > 0) return status;
    return hone_fail(
        err, HONE_NOT_FOUND, remove_where, "nothing is stored for %s@v%s %s", key->algorithm, key->version, key->key);
}

// What a scan asks for, beside what the server filters by.
typedef struct scan_request {
    const hone_store_key *filter;
    union {
        hone_store_visit_decision *decision;
        hone_store_visit_measured *measured;
        hone_store_visit_invocation *invocation;
        hone_store_visit_alias *alias;
        hone_store_visit_foreign *foreign;
        hone_store_visit_quarantined *quarantined;
    } visit;
    void *ctx;
} scan_request;

static bool visit_decision(void *ctx, const hone_pg_record *record)
{
    const scan_request *request = ctx;
    return !hone_key_matches(request->filter, &record->key) || request->visit.decision(request->ctx, &record->decision);
}

static hone_status scan_calls(
    hone_store *store,
    hone_pg_table table,
    hone_pg_visit *visit,
    const scan_request *request,
    bool *out_ended,
    const char *where,
    hone_error *err)
{
    const hone_store_key *filter = request->filter;
    const char *const filters[] = {filter->device, filter->algorithm, filter->version, filter->key};
    return hone_pg_walk(
        hone_pg_connection_of(store), table, filters, visit, (void *)(uintptr_t)request, out_ended, where, err);
}

static hone_status postgresql_scan(
    hone_store *store, const hone_store_key *filter, hone_store_visit_decision *visit, void *ctx, hone_error *err)
{
    const scan_request request = {.filter = filter, .visit.decision = visit, .ctx = ctx};
    bool ended;
    return scan_calls(store, HONE_PG_DECISION, visit_decision, &request, &ended, scan_where, err);
}

// Measurements --------------------------------------------------------------------------------------------------------

static hone_status postgresql_put_measurement(
    hone_store *store, const hone_store_key *key, const hone_store_measurement *measurement, hone_error *err)
{
    const hone_store_measured measured = {*key, *measurement};
    const hone_pg_table table = measurement->failure != HONE_FAILURE_NONE ? HONE_PG_FAILURE : HONE_PG_MEASUREMENT;
    return hone_pg_put(hone_pg_connection_of(store), table, HONE_PG_PUT, &measured, NULL, put_measurement_where, err);
}

static bool visit_measured(void *ctx, const hone_pg_record *record)
{
    const scan_request *request = ctx;
    return !hone_key_matches(request->filter, &record->key) || request->visit.measured(request->ctx, &record->measured);
}

static hone_status postgresql_failures(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err)
{
    const scan_request request = {.filter = filter, .visit.measured = visit, .ctx = ctx};
    bool ended;
    return scan_calls(store, HONE_PG_FAILURE, visit_measured, &request, &ended, measurements_where, err);
}

static hone_status postgresql_measurements(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err)
{
    const scan_request request = {.filter = filter, .visit.measured = visit, .ctx = ctx};
    bool ended = false;
    hone_status status =
        scan_calls(store, HONE_PG_MEASUREMENT, visit_measured, &request, &ended, measurements_where, err);
    return status != HONE_OK || ended ? status : postgresql_failures(store, filter, visit, ctx, err);
}

// Invocations ---------------------------------------------------------------------------------------------------------

typedef struct add_request {
    const void **sorted;
    size_t count;
    hone_store_invocation sum;
} add_request;

static hone_status add_one(
    void *ctx, const void *record, const hone_pg_record *stored, const void **out_put, hone_error *err)
{
    add_request *request = ctx;
    const hone_store_invocation *added = record;
    (void)err;
    request->sum = stored != NULL ? stored->invocation : *added;
    if (stored != NULL) hone_invocation_merge(&request->sum, added);
    *out_put = &request->sum;
    return HONE_OK;
}

static hone_status add_all(hone_pg_connection *connection, void *ctx, hone_error *err)
{
    add_request *request = ctx;
    return hone_pg_amend_all(
        connection, HONE_PG_INVOCATION, request->sorted, request->count, add_one, request, add_invocations_where, err);
}

static hone_status postgresql_add_invocations(
    hone_store *store, const hone_store_invocation *invocations, size_t count, hone_error *err)
{
    add_request request = {.count = count};
    request.sorted = sort_records(&store->allocator, invocations, count, sizeof *invocations, by_invocation);
    if (request.sorted == NULL) return hone_fail_memory(err, add_invocations_where);
    hone_status status = hone_pg_transact(hone_pg_connection_of(store), add_all, &request, add_invocations_where, err);
    hone_free(&store->allocator, request.sorted);
    return status;
}

static bool visit_invocation(void *ctx, const hone_pg_record *record)
{
    const scan_request *request = ctx;
    return !hone_key_matches(request->filter, &record->key) ||
           request->visit.invocation(request->ctx, &record->invocation);
}

static hone_status postgresql_invocations(
    hone_store *store, const hone_store_key *filter, hone_store_visit_invocation *visit, void *ctx, hone_error *err)
{
    const scan_request request = {.filter = filter, .visit.invocation = visit, .ctx = ctx};
    bool ended;
    return scan_calls(store, HONE_PG_INVOCATION, visit_invocation, &request, &ended, invocations_where, err);
}

static hone_status clear(hone_store *store, hone_pg_table table, const char *of, const char *where, hone_error *err)
{
    hone_pg_values values = {.count = 0};
    if (hone_pg_filters(table) > 0) hone_pg_add_text(&values, of);
    return hone_pg_run(hone_pg_connection_of(store), table, HONE_PG_CLEAR, &values, NULL, NULL, where, err);
}

static hone_status postgresql_clear_invocations(hone_store *store, const char *device, hone_error *err)
{
    return clear(store, HONE_PG_INVOCATION, device, clear_invocations_where, err);
}

static hone_status postgresql_expire_misses(hone_store *store, int64_t before, size_t most, hone_error *err)
{
    static const char sql[] = "DELETE FROM invocation WHERE decided IN ('heuristic', 'transfer') AND (\"last\" < $1 OR "
                              "\"last\" <= (SELECT \"last\" FROM invocation WHERE decided IN ('heuristic', 'transfer') "
                              "ORDER BY \"last\" DESC OFFSET $2 LIMIT 1))";
    hone_pg_values values = {.count = 0};
    hone_pg_add_real(&values, (double)before);
    hone_pg_add_integer(&values, most > INT64_MAX ? INT64_MAX : (int64_t)most);
    return hone_pg_execute(hone_pg_connection_of(store), sql, &values, NULL, expire_misses_where, err);
}

// Aliases -------------------------------------------------------------------------------------------------------------

static hone_status postgresql_put_alias(hone_store *store, const hone_store_alias *alias, hone_error *err)
{
    return hone_pg_put(hone_pg_connection_of(store), HONE_PG_ALIAS, HONE_PG_PUT, alias, NULL, put_alias_where, err);
}

static hone_status postgresql_get_alias(
    hone_store *store,
    const char *scheme,
    const char *operation,
    const char *foreign_key,
    void (*visit)(void *ctx, const hone_store_alias *alias),
    void *ctx,
    hone_error *err)
{
    const hone_store_alias probe = {.scheme = scheme, .operation = operation, .foreign_key = foreign_key};
    hone_pg_record found;
    bool there;
    hone_status status = hone_pg_find(
        hone_pg_connection_of(store), HONE_PG_ALIAS, HONE_PG_GET, &probe, &found, &there, get_alias_where, err);
    if (status != HONE_OK) return status;
    if (!there)
        return hone_fail(err, HONE_NOT_FOUND, get_alias_where, "no alias for %s %s:%s", scheme, operation, foreign_key);
    visit(ctx, &found.alias);
    return HONE_OK;
}

static bool visit_alias(void *ctx, const hone_pg_record *record)
{
    const scan_request *request = ctx;
    return request->visit.alias(request->ctx, &record->alias);
}

static hone_status postgresql_aliases(
    hone_store *store, const char *scheme, hone_store_visit_alias *visit, void *ctx, hone_error *err)
{
    scan_request request = {.visit.alias = visit, .ctx = ctx};
    bool ended;
    return hone_pg_walk(
        hone_pg_connection_of(store), HONE_PG_ALIAS, &scheme, visit_alias, &request, &ended, aliases_where, err);
}

// Foreign configs -----------------------------------------------------------------------------------------------------

typedef struct foreigns_request {
    const void **sorted;
    size_t count;
} foreigns_request;

static hone_status put_foreigns(hone_pg_connection *connection, void *ctx, hone_error *err)
{
    const foreigns_request *request = ctx;
    return hone_pg_put_all(
        connection, HONE_PG_FOREIGN, HONE_PG_PUT, request->sorted, request->count, NULL, put_foreign_where, err);
}

static hone_status postgresql_put_foreigns(
    hone_store *store, const hone_store_foreign *foreigns, size_t count, hone_error *err)
{
    foreigns_request request = {NULL, count};
    request.sorted = sort_records(&store->allocator, foreigns, count, sizeof *foreigns, by_foreign);
    if (request.sorted == NULL) return hone_fail_memory(err, put_foreign_where);
    hone_status status = hone_pg_transact(hone_pg_connection_of(store), put_foreigns, &request, put_foreign_where, err);
    hone_free(&store->allocator, request.sorted);
    return status;
}

static hone_status postgresql_get_foreign(
    hone_store *store,
    const hone_store_foreign *key,
    void (*visit)(void *ctx, const hone_store_foreign *foreign),
    void *ctx,
    hone_error *err)
{
    hone_pg_record found;
    bool there;
    hone_status status = hone_pg_find(
        hone_pg_connection_of(store), HONE_PG_FOREIGN, HONE_PG_GET, key, &found, &there, get_foreign_where, err);
    if (status != HONE_OK) return status;
    if (!there)
        return hone_fail(
            err, HONE_NOT_FOUND, get_foreign_where, "no config of %s for %s:%s", key->scheme, key->operation,
            key->foreign_key);
    visit(ctx, &found.foreign);
    return HONE_OK;
}

static bool visit_foreign(void *ctx, const hone_pg_record *record)
{
    const scan_request *request = ctx;
    return request->visit.foreign(request->ctx, &record->foreign);
}

static hone_status postgresql_foreigns(
    hone_store *store, const char *scheme, hone_store_visit_foreign *visit, void *ctx, hone_error *err)
{
    scan_request request = {.visit.foreign = visit, .ctx = ctx};
    bool ended;
    return hone_pg_walk(
        hone_pg_connection_of(store), HONE_PG_FOREIGN, &scheme, visit_foreign, &request, &ended, foreigns_where, err);
}

static hone_status postgresql_clear_foreigns(hone_store *store, const char *scheme, hone_error *err)
{
    return clear(store, HONE_PG_FOREIGN, scheme, clear_foreigns_where, err);
}

// Damage --------------------------------------------------------------------------------------------------------------

typedef struct aside_request {
    hone_store_decision probe;
    const char *reason;
} aside_request;

static hone_status set_aside(hone_pg_connection *connection, void *ctx, hone_error *err)
{
    const aside_request *request = ctx;
    hone_pg_record found;
    hone_row row;
    bool there;
    hone_buffer text;
    hone_status status =
        hone_pg_find(connection, HONE_PG_DECISION, HONE_PG_LOCK, &request->probe, &found, &there, set_aside_where, err);
    if (status != HONE_OK) return status;
    if (!there) return hone_fail(err, HONE_NOT_FOUND, set_aside_where, "no decision for %s", request->probe.key.key);
    hone_buffer_init(&text, connection->allocator);
    hone_row_of(&hone_row_decision, &found, &row);
    const hone_store_quarantined quarantined = hone_quarantine_row(&hone_row_decision, &row, request->reason, &text);
    status = text.failed
                 ? hone_fail_memory(err, set_aside_where)
                 : hone_pg_put(connection, HONE_PG_QUARANTINE, HONE_PG_PUT, &quarantined, NULL, set_aside_where, err);
    hone_buffer_deinit(&text);
    return status == HONE_OK ? hone_pg_drop(connection, HONE_PG_DECISION, &request->probe, set_aside_where, err)
                             : status;
}

static hone_status postgresql_set_aside(
    hone_store *store, const hone_store_key *key, hone_regime regime, const char *reason, hone_error *err)
{
    aside_request request = {{.key = *key, .regime = regime}, reason};
    return hone_pg_transact(hone_pg_connection_of(store), set_aside, &request, set_aside_where, err);
}

static bool visit_quarantined(void *ctx, const hone_pg_record *record)
{
    const scan_request *request = ctx;
    return request->visit.quarantined(request->ctx, &record->quarantined);
}

static hone_status postgresql_quarantine(
    hone_store *store, hone_store_visit_quarantined *visit, void *ctx, hone_error *err)
{
    scan_request request = {.visit.quarantined = visit, .ctx = ctx};
    bool ended;
    return hone_pg_walk(
        hone_pg_connection_of(store), HONE_PG_QUARANTINE, NULL, visit_quarantined, &request, &ended, quarantine_where,
        err);
}

static hone_status postgresql_clear_quarantine(hone_store *store, hone_error *err)
{
    return clear(store, HONE_PG_QUARANTINE, NULL, clear_quarantine_where, err);
}

static bool count_record(void *ctx, const hone_pg_record *record)
{
    (void)record;
    ++*(uint64_t *)ctx;
    return true;
}

static hone_status postgresql_verify(hone_store *store, hone_store_health *out, hone_error *err)
{
    static const char *const all[] = {NULL, NULL, NULL, NULL};
    hone_pg_connection *connection = hone_pg_connection_of(store);
    hone_store_health health = {0};
    const uint64_t moved = connection->moved;
    hone_status status = HONE_OK;
    for (int table = 0; status == HONE_OK && table < HONE_PG_TABLES; table++) {
        bool ended;
        if (table == HONE_PG_JOB && connection->version < HONE_PG_SCHEMA) continue;
        status = hone_pg_walk(
            connection, (hone_pg_table)table, all, count_record,
            table == HONE_PG_QUARANTINE ? &health.quarantined : &health.records, &ended, verify_where, err);
    }
    health.set_aside = connection->moved - moved;
    if (status == HONE_OK) *out = health;
    return status;
}

// Counts --------------------------------------------------------------------------------------------------------------

static hone_status postgresql_stat(hone_store *store, hone_store_stat *out, hone_error *err)
{
    static const char sql[] =
        "SELECT (SELECT count(*) FROM decision), (SELECT count(*) FROM measurement), (SELECT count(*) FROM failure), "
        "(SELECT count(*) FROM invocation), (SELECT count(*) FROM alias), (SELECT count(*) FROM foreign_config), "
        "(SELECT count(*) FROM quarantine), (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c "
        "JOIN "
        "pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema AND c.relkind = 'r')";
    hone_pg_connection *c = hone_pg_connection_of(store);
    PGresult *result = NULL;
    hone_status status = hone_pg_execute(c, sql, NULL, &result, stat_where, err);
    if (status != HONE_OK) return status;
    *out = (hone_store_stat){
        .decisions = (uint64_t)hone_pg_integer_at(c, result, 0),
        .measurements = (uint64_t)hone_pg_integer_at(c, result, 1),
        .failures = (uint64_t)hone_pg_integer_at(c, result, 2),
        .invocations = (uint64_t)hone_pg_integer_at(c, result, 3),
        .aliases = (uint64_t)hone_pg_integer_at(c, result, 4),
        .foreigns = (uint64_t)hone_pg_integer_at(c, result, 5),
        .quarantined = (uint64_t)hone_pg_integer_at(c, result, 6),
        .bytes = (uint64_t)hone_pg_integer_at(c, result, 7),
        .schema = (uint32_t)c->version,
    };
    c->pq.PQclear(result);
    return HONE_OK;
}

// The place at which the server writes its log: another one after each change, and now and then without one.
static hone_status read_log_place(hone_pg_connection *c, uint64_t *out, hone_error *err)
{
    static const char sql[] = "SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE "
                              "pg_current_wal_insert_lsn() END - '0/0'::pg_lsn)::bigint";
    PGresult *result = NULL;
    hone_status status = hone_pg_execute(c, sql, NULL, &result, changes_where, err);
    if (status != HONE_OK) return status;
    *out = (uint64_t)hone_pg_integer_at(c, result, 0);
    c->pq.PQclear(result);
    return HONE_OK;
}

// What others have told meanwhile, without a question to the server; and, since nothing was heard in between, each
// session that had to be made again. Where nobody tells (tables of before version 2, a replica, a server between that
// shares its sessions), the server is asked.
static hone_status postgresql_changes(hone_store *store, uint64_t *out, hone_error *err)
{
    static const uint64_t is_told = UINT64_C(1) << 63;
    hone_pg_connection *c = hone_pg_connection_of(store);
    hone_status status = hone_pg_listen(c, changes_where, err);
    if (status == HONE_UNSUPPORTED) return read_log_place(c, out, err);
    if (status == HONE_OK) *out = is_told | c->news;
    return status;
}

// Leases --------------------------------------------------------------------------------------------------------------

static hone_status postgresql_lease(
    hone_store *store, uint64_t name, const hone_wait *wait, hone_lease *out, hone_error *err)
{
    return hone_pg_lease_take(&((hone_pg_store *)store)->sessions, hone_pg_connection_of(store), name, wait, out, err);
}

// Forks ---------------------------------------------------------------------------------------------------------------

static void postgresql_rest(hone_store *store)
{
    hone_pg_sessions_rest(&((hone_pg_store *)store)->sessions, hone_pg_connection_of(store));
    hone_pg_connection_rest(hone_pg_connection_of(store));
}

// Servers from PostgreSQL 14 on say so with each session, and when it changes.
static bool follows(hone_store *store)
{
    const hone_pg_connection *c = hone_pg_connection_of(store);
    const char *is_on = c->conn != NULL ? c->pq.PQparameterStatus(c->conn, "in_hot_standby") : NULL;
    return is_on != NULL && strcmp(is_on, "on") == 0;
}

const hone_store_ops hone_postgresql_store_ops = {
    .struct_size = sizeof(hone_store_ops),
    .scheme = "postgresql:",
    .form = "postgresql://USER@HOST/DATABASE?schema=NAME",
    .on_server = true,
    .open = postgresql_open,
    .open_read_only = postgresql_open_read_only,
    .close = postgresql_close,
    .identify = hone_pg_identify,
    .get = postgresql_get,
    .put_all = postgresql_put_all,
    .remove = postgresql_remove,
    .scan = postgresql_scan,
    .put_measurement = postgresql_put_measurement,
    .measurements = postgresql_measurements,
    .failures = postgresql_failures,
    .add_invocations = postgresql_add_invocations,
    .invocations = postgresql_invocations,
    .clear_invocations = postgresql_clear_invocations,
    .expire_misses = postgresql_expire_misses,
    .put_alias = postgresql_put_alias,
    .get_alias = postgresql_get_alias,
    .aliases = postgresql_aliases,
    .put_foreigns = postgresql_put_foreigns,
    .get_foreign = postgresql_get_foreign,
    .foreigns = postgresql_foreigns,
    .clear_foreigns = postgresql_clear_foreigns,
    .set_aside = postgresql_set_aside,
    .quarantine = postgresql_quarantine,
    .clear_quarantine = postgresql_clear_quarantine,
    .verify = postgresql_verify,
    .stat = postgresql_stat,
    .begin = postgresql_begin,
    .end = postgresql_end,
    .rest = postgresql_rest,
    .lease = postgresql_lease,
    .changes = postgresql_changes,
    .queue = &hone_pg_queue_ops,
    .follows = follows,
};
