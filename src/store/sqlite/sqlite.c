// "sqlite:PATH": one connection, guarded by the store's lock. Reads are one statement; a write of one record is
// one statement, of several one transaction.
#include "store/ops.h"

#include "base/error.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/damage.h"
#include "store/sqlite/put.h"
#include "store/sqlite/salvage.h"

typedef struct sqlite_store {
    hone_store base;
    hone_connection connection;
} sqlite_store;

static hone_connection *connection_of(hone_store *store)
{
    return &((sqlite_store *)store)->connection;
}

// The same for what reads much: of the file that lies under the name now.
static hone_connection *following(hone_store *store)
{
    hone_connection *connection = connection_of(store);
    if (connection->depth == 0 && hone_connection_is_moved(connection))
        (void)!hone_connection_reopen(connection, NULL); // a query of one that is closed says why
    return connection;
}

typedef hone_status open_function(
    hone_connection *connection,
    const hone_allocator *allocator,
    const hone_log *log,
    const char *path,
    hone_error *err);

static hone_status open_store(
    open_function *open,
    const hone_allocator *allocator,
    const hone_log *log,
    const char *location,
    hone_store **out,
    hone_error *err)
{
    sqlite_store *store = hone_alloc(allocator, sizeof *store);
    if (store == NULL) return hone_fail_memory(err, "store.sqlite.open");
    store->base.ops = &hone_sqlite_store_ops;
    store->base.allocator = *allocator;
    store->base.log = *log;
    hone_status status = open(&store->connection, allocator, log, location, err);
    if (status == HONE_OK)
        *out = &store->base;
    else
        hone_free(allocator, store);
    return status;
}

static hone_status sqlite_open(
    const hone_allocator *allocator, const hone_log *log, const char *location, hone_store **out, hone_error *err)
{
    return open_store(hone_connection_open, allocator, log, location, out, err);
}

static hone_status sqlite_open_read_only(
    const hone_allocator *allocator, const hone_log *log, const char *location, hone_store **out, hone_error *err)
{
    return open_store(hone_connection_open_read_only, allocator, log, location, out, err);
}

static void sqlite_close(hone_store *store)
{
    hone_allocator allocator = store->allocator;
    hone_connection_close(connection_of(store));
    hone_free(&allocator, store);
}

// Walking rows -------------------------------------------------------------------------------------------------

// Hands a record on; false ends the walk.
typedef bool visit_record(void *ctx, const void *record);

// The current row as a record; with HONE_CORRUPT the reason.
static hone_status read_record(
    hone_query *query, const hone_row_shape *shape, void *record, size_t record_size, const char **out_reason)
{
    hone_row row;
    hone_status status = hone_query_row(query, shape, &row, out_reason);
    if (status != HONE_OK || hone_row_read(shape, &row, record, record_size)) return status;
    *out_reason = "has a value out of its range";
    return HONE_CORRUPT;
}

// Visits the sound rows of a query that has its parameters. Damaged ones are passed over and set aside.
static hone_status walk(
    hone_query *query, const hone_row_shape *shape, visit_record *visit, void *ctx, bool *out_ended, hone_error *err)
{
    union {
        hone_store_decision decision;
        hone_store_measured measured;
        hone_store_invocation invocation;
        hone_store_alias alias;
        hone_store_foreign foreign;
        hone_store_quarantined quarantined;
    } record;
    bool damaged = false;
    *out_ended = false;
    while (!*out_ended && hone_query_step(query)) {
        const char *reason = NULL;
        hone_status status = read_record(query, shape, &record, sizeof record, &reason);
        if (status == HONE_OK) *out_ended = !visit(ctx, &record);
        if (status == HONE_CORRUPT) damaged = true;
    }
    if (damaged && query->code == SQLITE_OK) hone_damage_move_all(query, shape);
    return hone_query_end(query, "read", err);
}

static void bind_key(hone_query *query, const hone_store_key *key)
{
    hone_query_text(query, key->device);
    hone_query_text(query, key->algorithm);
    hone_query_text(query, key->version);
    hone_query_text(query, key->key);
}

static void bind_key_and_spec(hone_query *query, const hone_store_key *key)
{
    bind_key(query, key);
    hone_query_text(query, key->spec);
}

// A put that is a transaction by itself. Where the file was moved aside before, it went into the one that nobody reads.
static hone_status put_alone(
    hone_connection *connection, const hone_row_shape *shape, const void *record, const char *where, hone_error *err)
{
    hone_status status = hone_put_record(connection, shape, record, where, err);
    if (status != HONE_OK || connection->depth > 0 || !hone_connection_is_moved(connection)) return status;
    status = hone_connection_reopen(connection, err);
    return status == HONE_OK ? hone_put_record(connection, shape, record, where, err) : status;
}

// The first row of a query inside a transaction, when there is one; a damaged one is set aside.
static hone_status find_or_move(
    hone_query *query, const hone_row_shape *shape, void *record, size_t record_size, bool *out_there, hone_error *err)
{
    const char *reason = NULL;
    *out_there = false;
    if (!hone_query_step(query)) return HONE_OK; // what failed is the query's to tell
    hone_status status = read_record(query, shape, record, record_size, &reason);
    *out_there = status == HONE_OK;
    return status == HONE_CORRUPT ? hone_damage_move(query, shape, reason, err) : HONE_OK;
}

// Decisions ----------------------------------------------------------------------------------------------------

// A visitor that gets one record, when it is the one that was asked for.
typedef struct decision_request {
    const hone_store_key *key;
    void (*visit)(void *ctx, const hone_store_decision *decision);
    void *ctx;
    bool found;
} decision_request;

static bool give_decision(void *ctx, const void *record)
{
    decision_request *request = ctx;
    const hone_store_decision *decision = record;
    if (!hone_spec_agrees(request->key->spec, decision->key.spec)) return false;
    request->found = true;
    request->visit(request->ctx, decision);
    return false;
}

static hone_status find_decision(
    hone_connection *connection, hone_regime regime, decision_request *request, hone_error *err)
{
    hone_query query;
    bool ended;
    hone_query_begin(&query, connection, HONE_SQL_DECISION_GET, "store.get");
    bind_key(&query, request->key);
    hone_query_integer(&query, regime);
    return walk(&query, &hone_row_decision, give_decision, request, &ended, err);
}

static hone_status sqlite_get(
    hone_store *store,
    const hone_store_key *key,
    hone_regime regime,
    void (*visit)(void *ctx, const hone_store_decision *decision),
    void *ctx,
    hone_error *err)
{
    hone_connection *connection = connection_of(store);
    decision_request request = {key, visit, ctx, false};
    hone_status status = find_decision(connection, regime, &request, err);
    // What is missing here may stand in the file that has taken this one's place.
    if (status == HONE_OK && !request.found && connection->depth == 0 && hone_connection_is_moved(connection)) {
        status = hone_connection_reopen(connection, err);
        if (status == HONE_OK) status = find_decision(connection, regime, &request, err);
    }
    if (status != HONE_OK || request.found) return status;
    return hone_fail(
        err, HONE_NOT_FOUND, "store.get", "no decision for %s@v%s %s", key->algorithm, key->version, key->key);
}

static hone_status put_decision(hone_connection *connection, const hone_store_decision *decision, hone_error *err)
{
    return hone_put_record(connection, &hone_row_decision, decision, "store.put", err);
}

// Puts what the merger makes of a decision and the stored one.
static hone_status merge_decision(
    hone_connection *connection,
    const hone_store_decision *decision,
    size_t index,
    hone_merger *merger,
    hone_error *err)
{
    static const char where[] = "store.merge";
    const hone_store_decision *put = NULL;
    hone_store_decision found;
    hone_query query;
    hone_query_begin(&query, connection, HONE_SQL_DECISION_GET, where);
    bind_key(&query, &decision->key);
    hone_query_integer(&query, decision->regime);
    bool there = false;
    hone_status status = find_or_move(&query, &hone_row_decision, &found, sizeof found, &there, err);
    if (status == HONE_OK && query.code == SQLITE_OK)
        status = hone_merger_resolve(merger, index, there ? &found : NULL, decision, &put, err);
    if (status == HONE_OK && put != NULL) status = put_decision(connection, put, err);
    // What was found lives in the statement, so that it is ended only after the put.
    hone_status read = hone_query_end(&query, "read", query.code == SQLITE_OK ? NULL : err);
    return read != HONE_OK ? read : status;
}

static hone_status sqlite_put_all(
    hone_store *store, const hone_store_decision *decisions, size_t count, hone_merger *merger, hone_error *err)
{
    hone_connection *connection = connection_of(store);
    // A statement is a transaction.
    if (count == 1 && merger == NULL) return put_alone(connection, &hone_row_decision, decisions, "store.put", err);
    hone_status status = hone_connection_begin(connection, "store.put", err);
    if (status != HONE_OK) return status;
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = merger == NULL ? put_decision(connection, &decisions[i], err)
                                : merge_decision(connection, &decisions[i], i, merger, err);
    return hone_connection_end(connection, status, "store.put", err);
}

static hone_status sqlite_remove(hone_store *store, const hone_store_key *key, hone_error *err)
{
    static const hone_sql steps[] = {
        HONE_SQL_DECISION_REMOVE, HONE_SQL_MEASUREMENT_REMOVE, HONE_SQL_FAILURE_REMOVE, HONE_SQL_CALL_REMOVE};
    hone_connection *connection = connection_of(store);
    int removed = 0;
    hone_status status = hone_connection_begin(connection, "store.remove", err);
    if (status != HONE_OK) return status;
    for (size_t i = 0; status == HONE_OK && i < sizeof steps / sizeof *steps; i++) {
        hone_query query;
        hone_query_begin(&query, connection, steps[i], "store.remove");
        bind_key_and_spec(&query, key);
        status = hone_query_run(&query, "remove", err);
        if (status == HONE_OK) removed += sqlite3_changes(connection->db);
    }
    status = hone_connection_end(connection, status, "store.remove", err);
    if (status != HONE_OK || removed > 0) return status;
    return hone_fail(
        err, HONE_NOT_FOUND, "store.remove", "nothing is stored for %s@v%s %s", key->algorithm, key->version, key->key);
}

typedef struct decision_visit {
    hone_store_visit_decision *visit;
    void *ctx;
} decision_visit;

static bool visit_decision(void *ctx, const void *record)
{
    decision_visit *visit = ctx;
    return visit->visit(visit->ctx, record);
}

static hone_status sqlite_scan(
    hone_store *store, const hone_store_key *filter, hone_store_visit_decision *visit, void *ctx, hone_error *err)
{
    decision_visit target = {visit, ctx};
    hone_query query;
    bool ended;
    hone_sql id = filter->device == NULL ? HONE_SQL_DECISION_SCAN : HONE_SQL_DECISION_SCAN_DEVICE;
    hone_query_begin(&query, following(store), id, "store.scan");
    bind_key_and_spec(&query, filter);
    return walk(&query, &hone_row_decision, visit_decision, &target, &ended, err);
}

// Measurements -------------------------------------------------------------------------------------------------

static hone_status sqlite_put_measurement(
    hone_store *store, const hone_store_key *key, const hone_store_measurement *measurement, hone_error *err)
{
    static const char where[] = "store.put_measurement";
    hone_connection *connection = connection_of(store);
    const hone_store_measured measured = {*key, *measurement};
    const hone_row_shape *shape = measurement->failure != HONE_FAILURE_NONE ? &hone_row_failure : &hone_row_measurement;
    hone_row row;
    hone_row_of(shape, &measured, &row);
    hone_status status = hone_connection_begin(connection, where, err);
    if (status != HONE_OK) return status;
    status = hone_put_row(connection, shape, &row, where, err);
    return hone_connection_end(connection, status, where, err);
}

typedef struct measured_visit {
    hone_store_visit_measured *visit;
    void *ctx;
} measured_visit;

static bool visit_measured(void *ctx, const void *record)
{
    measured_visit *visit = ctx;
    return visit->visit(visit->ctx, record);
}

static hone_status sqlite_measurements(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err)
{
    static const struct {
        hone_sql scan, scan_call;
        const hone_row_shape *shape;
    } parts[] = {
        {HONE_SQL_MEASUREMENT_SCAN, HONE_SQL_MEASUREMENT_SCAN_CALL, &hone_row_measurement},
        {HONE_SQL_FAILURE_SCAN, HONE_SQL_FAILURE_SCAN_CALL, &hone_row_failure},
    };
    measured_visit target = {visit, ctx};
    bool ended = false;
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && !ended && i < sizeof parts / sizeof *parts; i++) {
        hone_query query;
        hone_sql id = hone_key_is_whole(filter) ? parts[i].scan_call : parts[i].scan;
        hone_query_begin(&query, following(store), id, "store.measurements");
        bind_key_and_spec(&query, filter);
        status = walk(&query, parts[i].shape, visit_measured, &target, &ended, err);
    }
    return status;
}

// Invocations --------------------------------------------------------------------------------------------------

typedef struct invocation_visit {
    hone_store_visit_invocation *visit;
    void *ctx;
} invocation_visit;

static bool visit_invocation(void *ctx, const void *record)
{
    invocation_visit *visit = ctx;
    return visit->visit(visit->ctx, record);
}

static hone_status sqlite_invocations(
    hone_store *store, const hone_store_key *filter, hone_store_visit_invocation *visit, void *ctx, hone_error *err)
{
    invocation_visit target = {visit, ctx};
    hone_query query;
    bool ended;
    bool one_call = filter->algorithm != NULL && filter->version != NULL && filter->key != NULL;
    hone_sql id = one_call ? HONE_SQL_INVOCATION_SCAN_CALL : HONE_SQL_INVOCATION_SCAN;
    hone_query_begin(&query, following(store), id, "store.invocations");
    bind_key_and_spec(&query, filter);
    return walk(&query, &hone_row_invocation, visit_invocation, &target, &ended, err);
}

// Adds one to what is stored of it.
static hone_status add_invocation(hone_connection *connection, const hone_store_invocation *added, hone_error *err)
{
    static const char where[] = "store.add_invocations";
    hone_store_invocation merged = *added, found;
    hone_row row;
    hone_row_of(&hone_row_invocation, added, &row);
    row.count = hone_row_invocation.key_count;
    hone_query query;
    hone_query_begin(&query, connection, HONE_SQL_INVOCATION_GET, where);
    hone_query_cells(&query, &row, 0);
    bool there = false;
    hone_status status = find_or_move(&query, &hone_row_invocation, &found, sizeof found, &there, err);
    if (there) {
        hone_invocation_merge(&found, added);
        merged = found;
    }
    // What was found lives in the statement, so that it is ended only after the put.
    if (status == HONE_OK && query.code == SQLITE_OK)
        status = hone_put_record(connection, &hone_row_invocation, &merged, where, err);
    hone_status read = hone_query_end(&query, "read", query.code == SQLITE_OK ? NULL : err);
    return read != HONE_OK ? read : status;
}

static hone_status sqlite_add_invocations(
    hone_store *store, const hone_store_invocation *invocations, size_t count, hone_error *err)
{
    hone_connection *connection = connection_of(store);
    hone_status status = hone_connection_begin(connection, "store.add_invocations", err);
    if (status != HONE_OK) return status;
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = add_invocation(connection, &invocations[i], err);
    return hone_connection_end(connection, status, "store.add_invocations", err);
}

static hone_status sqlite_clear_invocations(hone_store *store, const char *device, hone_error *err)
{
    hone_query query;
    hone_query_begin(&query, following(store), HONE_SQL_INVOCATION_CLEAR, "store.clear_invocations");
    hone_query_text(&query, device);
    return hone_query_run(&query, "clear", err);
}

// Aliases ------------------------------------------------------------------------------------------------------

static hone_status sqlite_put_alias(hone_store *store, const hone_store_alias *alias, hone_error *err)
{
    return put_alone(connection_of(store), &hone_row_alias, alias, "store.put_alias", err);
}

typedef struct alias_request {
    void (*visit)(void *ctx, const hone_store_alias *alias);
    void *ctx;
    bool found;
} alias_request;

static bool give_alias(void *ctx, const void *record)
{
    alias_request *request = ctx;
    request->found = true;
    request->visit(request->ctx, record);
    return false;
}

static hone_status sqlite_get_alias(
    hone_store *store,
    const char *scheme,
    const char *operation,
    const char *foreign_key,
    void (*visit)(void *ctx, const hone_store_alias *alias),
    void *ctx,
    hone_error *err)
{
    alias_request request = {visit, ctx, false};
    hone_query query;
    bool ended;
    hone_query_begin(&query, following(store), HONE_SQL_ALIAS_GET, "store.get_alias");
    hone_query_text(&query, scheme);
    hone_query_text(&query, operation);
    hone_query_text(&query, foreign_key);
    hone_status status = walk(&query, &hone_row_alias, give_alias, &request, &ended, err);
    if (status != HONE_OK || request.found) return status;
    return hone_fail(err, HONE_NOT_FOUND, "store.get_alias", "no alias for %s %s:%s", scheme, operation, foreign_key);
}

typedef struct alias_visit {
    hone_store_visit_alias *visit;
    void *ctx;
} alias_visit;

static bool visit_alias(void *ctx, const void *record)
{
    alias_visit *visit = ctx;
    return visit->visit(visit->ctx, record);
}

static hone_status sqlite_aliases(
    hone_store *store, const char *scheme, hone_store_visit_alias *visit, void *ctx, hone_error *err)
{
    alias_visit target = {visit, ctx};
    hone_query query;
    bool ended;
    hone_query_begin(&query, following(store), HONE_SQL_ALIAS_SCAN, "store.aliases");
    hone_query_text(&query, scheme);
    return walk(&query, &hone_row_alias, visit_alias, &target, &ended, err);
}

// Foreign configs ----------------------------------------------------------------------------------------------

static hone_status sqlite_put_foreigns(
    hone_store *store, const hone_store_foreign *foreigns, size_t count, hone_error *err)
{
    static const char where[] = "store.put_foreign";
    hone_connection *connection = connection_of(store);
    hone_status status = hone_connection_begin(connection, where, err);
    if (status != HONE_OK) return status;
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = hone_put_record(connection, &hone_row_foreign, &foreigns[i], where, err);
    return hone_connection_end(connection, status, where, err);
}

typedef struct foreign_visit {
    hone_store_visit_foreign *visit;
    void *ctx;
} foreign_visit;

static bool visit_foreign(void *ctx, const void *record)
{
    foreign_visit *visit = ctx;
    return visit->visit(visit->ctx, record);
}

static hone_status sqlite_foreigns(
    hone_store *store, const char *scheme, hone_store_visit_foreign *visit, void *ctx, hone_error *err)
{
    foreign_visit target = {visit, ctx};
    hone_query query;
    bool ended;
    if (following(store)->schema < HONE_SQL_FOREIGN_SCHEMA) return HONE_OK;
    hone_query_begin(&query, connection_of(store), HONE_SQL_FOREIGN_SCAN, "store.foreigns");
    hone_query_text(&query, scheme);
    return walk(&query, &hone_row_foreign, visit_foreign, &target, &ended, err);
}

// Damage -------------------------------------------------------------------------------------------------------

static hone_status sqlite_set_aside(
    hone_store *store, const hone_store_key *key, hone_regime regime, const char *reason, hone_error *err)
{
    static const char where[] = "store.set_aside";
    hone_connection *connection = connection_of(store);
    hone_query query;
    hone_status status = hone_connection_begin(connection, where, err);
    if (status != HONE_OK) return status;
    hone_query_begin(&query, connection, HONE_SQL_DECISION_GET, where);
    bind_key(&query, key);
    hone_query_integer(&query, regime);
    if (hone_query_step(&query))
        status = hone_damage_move(&query, &hone_row_decision, reason, err);
    else if (query.code == SQLITE_OK)
        status = hone_fail(err, HONE_NOT_FOUND, where, "no decision for %s", key->key);
    hone_status read = hone_query_end(&query, "read", query.code == SQLITE_OK ? NULL : err);
    return hone_connection_end(connection, read != HONE_OK ? read : status, where, err);
}

typedef struct quarantine_visit {
    hone_store_visit_quarantined *visit;
    void *ctx;
} quarantine_visit;

static bool visit_quarantined(void *ctx, const void *record)
{
    quarantine_visit *visit = ctx;
    return visit->visit(visit->ctx, record);
}

static hone_status sqlite_quarantine(hone_store *store, hone_store_visit_quarantined *visit, void *ctx, hone_error *err)
{
    quarantine_visit target = {visit, ctx};
    hone_query query;
    bool ended;
    if (following(store)->schema < HONE_SQL_QUARANTINE_SCHEMA) return HONE_OK;
    hone_query_begin(&query, connection_of(store), HONE_SQL_QUARANTINE_SCAN, "store.quarantine");
    return walk(&query, &hone_row_quarantine, visit_quarantined, &target, &ended, err);
}

static hone_status sqlite_clear_quarantine(hone_store *store, hone_error *err)
{
    hone_query query;
    hone_query_begin(&query, following(store), HONE_SQL_QUARANTINE_CLEAR, "store.clear_quarantine");
    return hone_query_run(&query, "clear", err);
}

static bool count_record(void *ctx, const void *record)
{
    (void)record;
    ++*(uint64_t *)ctx;
    return true;
}

static hone_status verify_table(
    hone_connection *connection, hone_sql id, const hone_row_shape *shape, uint64_t *count, hone_error *err)
{
    hone_query query;
    bool ended;
    hone_query_begin(&query, connection, id, "store.verify");
    while (query.code == SQLITE_OK && query.bound < sqlite3_bind_parameter_count(query.statement))
        hone_query_text(&query, NULL);
    return walk(&query, shape, count_record, count, &ended, err);
}

// A measurement and its call are put together, so that one without a call is damage.
static hone_status verify_orphans(hone_connection *connection, hone_error *err)
{
    static const struct {
        hone_sql id, drop;
        const hone_row_shape *shape;
    } tables[] = {
        {HONE_SQL_MEASUREMENT_ORPHANS, HONE_SQL_MEASUREMENT_ORPHANS_DROP, &hone_row_measurement},
        {HONE_SQL_FAILURE_ORPHANS, HONE_SQL_FAILURE_ORPHANS_DROP, &hone_row_failure},
    };
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < sizeof tables / sizeof *tables; i++) {
        uint64_t sound = 0, moved = connection->moved;
        hone_query query;
        status = verify_table(connection, tables[i].id, tables[i].shape, &sound, err);
        if (status != HONE_OK || connection->moved == moved) continue;
        hone_query_begin(&query, connection, tables[i].drop, "store.verify");
        status = hone_query_run(&query, "drop what was set aside", err);
    }
    return status;
}

static hone_status sqlite_verify(hone_store *store, hone_store_health *out, hone_error *err)
{
    static const struct {
        hone_sql id;
        const hone_row_shape *shape;
        int schema;
    } tables[] = {
        {HONE_SQL_DECISION_SCAN, &hone_row_decision, 1},     {HONE_SQL_MEASUREMENT_SCAN, &hone_row_measurement, 1},
        {HONE_SQL_FAILURE_SCAN, &hone_row_failure, 1},       {HONE_SQL_INVOCATION_SCAN, &hone_row_invocation, 1},
        {HONE_SQL_ALIAS_SCAN, &hone_row_alias, 1},           {HONE_SQL_FOREIGN_SCAN, &hone_row_foreign, 2},
        {HONE_SQL_QUARANTINE_SCAN, &hone_row_quarantine, 2},
    };
    hone_connection *connection = following(store);
    hone_store_health health = {0};
    const uint64_t moved = connection->moved;
    hone_status status = hone_damage_check_file(connection, err);
    if (status == HONE_OK) status = verify_orphans(connection, err);
    for (size_t i = 0; status == HONE_OK && i < sizeof tables / sizeof *tables; i++) {
        bool is_quarantine = tables[i].shape == &hone_row_quarantine;
        if (tables[i].schema > connection->schema) continue;
        status = verify_table(
            connection, tables[i].id, tables[i].shape, is_quarantine ? &health.quarantined : &health.records, err);
    }
    health.set_aside = connection->moved - moved;
    if (status == HONE_OK) *out = health;
    return status;
}

// Counts -------------------------------------------------------------------------------------------------------

static hone_status count(
    hone_connection *connection, hone_sql id, uint64_t *const *fields, int field_count, hone_error *err)
{
    hone_query query;
    hone_query_begin(&query, connection, id, "store.stat");
    if (hone_query_step(&query))
        for (int i = 0; i < field_count; i++)
            *fields[i] = (uint64_t)sqlite3_column_int64(query.statement, i);
    return hone_query_end(&query, "count", err);
}

static hone_status sqlite_stat(hone_store *store, hone_store_stat *out, hone_error *err)
{
    hone_connection *connection = following(store);
    hone_store_stat stat = {.schema = (uint32_t)connection->schema};
    uint64_t *const fields[] = {&stat.decisions,   &stat.measurements, &stat.failures,
                                &stat.invocations, &stat.aliases,      &stat.bytes};
    uint64_t *const fields_2[] = {&stat.foreigns, &stat.quarantined};
    hone_status status = count(connection, HONE_SQL_STAT, fields, sizeof fields / sizeof *fields, err);
    if (status == HONE_OK && connection->schema >= HONE_SQL_QUARANTINE_SCHEMA)
        status = count(connection, HONE_SQL_STAT_2, fields_2, sizeof fields_2 / sizeof *fields_2, err);
    if (status == HONE_OK) *out = stat;
    return status;
}

static hone_status sqlite_begin(hone_store *store, hone_error *err)
{
    return hone_connection_begin(connection_of(store), "store.begin", err);
}

static hone_status sqlite_end(hone_store *store, hone_status status, hone_error *err)
{
    return hone_connection_end(connection_of(store), status, "store.end", err);
}

static hone_status sqlite_mend(hone_store *store, hone_error *err)
{
    return hone_salvage(connection_of(store), err);
}

const hone_store_ops hone_sqlite_store_ops = {
    .struct_size = sizeof(hone_store_ops),
    .open = sqlite_open,
    .open_read_only = sqlite_open_read_only,
    .close = sqlite_close,
    .get = sqlite_get,
    .put_all = sqlite_put_all,
    .remove = sqlite_remove,
    .scan = sqlite_scan,
    .put_measurement = sqlite_put_measurement,
    .measurements = sqlite_measurements,
    .add_invocations = sqlite_add_invocations,
    .invocations = sqlite_invocations,
    .clear_invocations = sqlite_clear_invocations,
    .put_alias = sqlite_put_alias,
    .get_alias = sqlite_get_alias,
    .aliases = sqlite_aliases,
    .put_foreigns = sqlite_put_foreigns,
    .foreigns = sqlite_foreigns,
    .set_aside = sqlite_set_aside,
    .quarantine = sqlite_quarantine,
    .clear_quarantine = sqlite_clear_quarantine,
    .verify = sqlite_verify,
    .stat = sqlite_stat,
    .begin = sqlite_begin,
    .end = sqlite_end,
    .mend = sqlite_mend,
};
