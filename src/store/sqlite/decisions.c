// Decisions, under numbers that are made of their keys (place.h).
#include "store/sqlite/store.h"

#include "base/error.h"
#include "store/sqlite/damage.h"
#include "store/sqlite/place.h"
#include "store/sqlite/put.h"

#include <string.h>

static const char get_where[] = "store.get";
static const char put_where[] = "store.put";
static const char merge_where[] = "store.merge";
static const char remove_where[] = "store.remove";
static const char set_aside_where[] = "store.set_aside";
static const char scan_where[] = "store.scan";

// An older file that cannot be written is looked up by the key itself.
static void bind_slot(hone_query *query, const hone_store_key *key, hone_regime regime, int slot)
{
    if (query->connection->schema >= HONE_SQL_PLACE_SCHEMA) {
        hone_query_integer(query, hone_place_of_key(key, regime) + slot);
        return;
    }
    hone_bind_key(query, key);
    hone_query_integer(query, regime);
}

static bool is_of(const hone_store_decision *decision, const hone_store_key *key, hone_regime regime)
{
    const hone_store_key *found = &decision->key;
    return decision->regime == regime && strcmp(found->key, key->key) == 0 && strcmp(found->device, key->device) == 0 &&
           strcmp(found->algorithm, key->algorithm) == 0 && strcmp(found->version, key->version) == 0;
}

// Sets a damaged row aside: as a part of the transaction, or in one of its own where it can be.
static hone_status set_row_aside(hone_query *query, const char *reason, hone_error *err)
{
    if (query->connection->depth > 0) return hone_damage_move(query, &hone_row_decision, reason, err);
    hone_damage_move_all(query, &hone_row_decision);
    return HONE_OK;
}

// Steps a query to the decision of a key, whose texts live until the query ends. Where a row was set aside, what stood
// behind it has moved up. On failure the query has been ended.
static hone_status seek(
    hone_query *query,
    hone_connection *connection,
    const hone_store_key *key,
    hone_regime regime,
    const char *where,
    hone_store_decision *out,
    bool *out_there,
    hone_error *err)
{
    const uint64_t moved = connection->moved;
    int passed = 0;
    hone_status status = HONE_OK;
    *out_there = false;
    for (int tries = 0; status == HONE_OK && tries < 2 * HONE_PLACE_SLOTS && passed < HONE_PLACE_SLOTS; tries++) {
        const char *reason = NULL;
        hone_query_begin(query, connection, HONE_SQL_DECISION_GET, where);
        bind_slot(query, key, regime, passed);
        if (!hone_query_step(query)) return HONE_OK; // what failed is the query's to tell
        hone_status read = hone_read_record(query, &hone_row_decision, out, sizeof *out, &reason);
        *out_there = read == HONE_OK && is_of(out, key, regime);
        if (*out_there || read == HONE_OUT_OF_MEMORY) return HONE_OK;
        if (read == HONE_CORRUPT) status = set_row_aside(query, reason, err);
        passed = tries + 1 - (int)(connection->moved - moved);
        hone_status ended = hone_query_end(query, "read", status == HONE_OK ? err : NULL);
        if (status == HONE_OK) status = ended;
    }
    return status;
}

// Get -----------------------------------------------------------------------------------------------------------------

typedef struct decision_request {
    const hone_store_key *key;
    void (*visit)(void *ctx, const hone_store_decision *decision);
    void *ctx;
    bool found;
} decision_request;

static hone_status find_decision(
    hone_connection *connection, hone_regime regime, decision_request *request, hone_error *err)
{
    hone_query query;
    hone_store_decision found;
    bool there = false;
    hone_status status = seek(&query, connection, request->key, regime, get_where, &found, &there, err);
    if (status != HONE_OK) return status;
    request->found = there && hone_spec_agrees(request->key->spec, found.key.spec);
    if (request->found) request->visit(request->ctx, &found);
    return hone_query_end(&query, "read", err);
}

hone_status hone_sqlite_get(
    hone_store *store,
    const hone_store_key *key,
    hone_regime regime,
    void (*visit)(void *ctx, const hone_store_decision *decision),
    void *ctx,
    hone_error *err)
{
    hone_connection *connection = hone_sqlite_connection(store);
    decision_request request = {key, visit, ctx, false};
    hone_status status = find_decision(connection, regime, &request, err);
    // What is missing here may stand in the file that has taken this one's place.
    if (status == HONE_OK && !request.found && connection->depth == 0 && hone_connection_is_moved(connection)) {
        status = hone_connection_reopen(connection, err);
        if (status == HONE_OK) status = find_decision(connection, regime, &request, err);
    }
    if (status != HONE_OK || request.found) return status;
    return hone_fail(
        err, HONE_NOT_FOUND, get_where, "no decision for %s@v%s %s", key->algorithm, key->version, key->key);
}

// Put -----------------------------------------------------------------------------------------------------------------

static hone_status put_decision(hone_connection *connection, const hone_store_decision *decision, hone_error *err)
{
    return hone_put_record(connection, &hone_row_decision, decision, put_where, err);
}

// Puts what the merger makes of a decision and the stored one.
static hone_status merge_decision(
    hone_connection *connection,
    const hone_store_decision *decision,
    size_t index,
    hone_merger *merger,
    hone_error *err)
{
    const hone_store_decision *put = NULL;
    hone_store_decision found;
    hone_query query;
    bool there = false;
    hone_status status = seek(&query, connection, &decision->key, decision->regime, merge_where, &found, &there, err);
    if (status != HONE_OK) return status;
    if (query.code == SQLITE_OK)
        status = hone_merger_resolve(merger, index, there ? &found : NULL, decision, &put, err);
    if (status == HONE_OK && put != NULL) status = put_decision(connection, put, err);
    // What was found lives in the statement, so that it is ended only after the put.
    hone_status read = hone_query_end(&query, "read", query.code == SQLITE_OK ? NULL : err);
    return read != HONE_OK ? read : status;
}

hone_status hone_sqlite_put_all(
    hone_store *store, const hone_store_decision *decisions, size_t count, hone_merger *merger, hone_error *err)
{
    hone_connection *connection = hone_sqlite_connection(store);
    // A statement is a transaction.
    if (count == 1 && merger == NULL) return hone_put_alone(connection, &hone_row_decision, decisions, put_where, err);
    hone_status status = hone_connection_begin(connection, put_where, err);
    if (status != HONE_OK) return status;
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = merger == NULL ? put_decision(connection, &decisions[i], err)
                                : merge_decision(connection, &decisions[i], i, merger, err);
    return hone_connection_end(connection, status, put_where, err);
}

// Remove --------------------------------------------------------------------------------------------------------------

static hone_status remove_decision(
    hone_connection *connection, const hone_store_key *key, hone_regime regime, int *removed, hone_error *err)
{
    const int64_t place = hone_place_of_key(key, regime);
    hone_query query;
    hone_query_begin(&query, connection, HONE_SQL_DECISION_REMOVE, remove_where);
    hone_bind_key_and_spec(&query, key);
    hone_query_integer(&query, place);
    hone_query_integer(&query, place + HONE_PLACE_SLOTS - 1);
    hone_status status = hone_query_run(&query, "remove", err);
    if (status != HONE_OK || sqlite3_changes(connection->db) == 0) return status;
    *removed += sqlite3_changes(connection->db);
    return hone_close_gaps(connection, place, remove_where, err);
}

static hone_status remove_measured(
    hone_connection *connection, const hone_store_key *key, int *removed, hone_error *err)
{
    static const hone_sql steps[] = {HONE_SQL_MEASUREMENT_REMOVE, HONE_SQL_FAILURE_REMOVE, HONE_SQL_CALL_REMOVE};
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < sizeof steps / sizeof *steps; i++) {
        hone_query query;
        hone_query_begin(&query, connection, steps[i], remove_where);
        hone_bind_key_and_spec(&query, key);
        status = hone_query_run(&query, "remove", err);
        if (status == HONE_OK) *removed += sqlite3_changes(connection->db);
    }
    return status;
}

hone_status hone_sqlite_remove(hone_store *store, const hone_store_key *key, hone_error *err)
{
    hone_connection *connection = hone_sqlite_connection(store);
    int removed = 0;
    hone_status status = hone_connection_begin(connection, remove_where, err);
    if (status != HONE_OK) return status;
    for (int regime = HONE_WARM; status == HONE_OK && regime < HONE_REGIME_COUNT; regime++)
        status = remove_decision(connection, key, (hone_regime)regime, &removed, err);
    if (status == HONE_OK) status = remove_measured(connection, key, &removed, err);
    status = hone_connection_end(connection, status, remove_where, err);
    if (status != HONE_OK || removed > 0) return status;
    return hone_fail(
        err, HONE_NOT_FOUND, remove_where, "nothing is stored for %s@v%s %s", key->algorithm, key->version, key->key);
}

hone_status hone_sqlite_set_aside(
    hone_store *store, const hone_store_key *key, hone_regime regime, const char *reason, hone_error *err)
{
    hone_connection *connection = hone_sqlite_connection(store);
    hone_store_decision found;
    hone_query query;
    bool there = false;
    hone_status status = hone_connection_begin(connection, set_aside_where, err);
    if (status != HONE_OK) return status;
    status = seek(&query, connection, key, regime, set_aside_where, &found, &there, err);
    if (status == HONE_OK) {
        if (there)
            status = hone_damage_move(&query, &hone_row_decision, reason, err);
        else if (query.code == SQLITE_OK)
            status = hone_fail(err, HONE_NOT_FOUND, set_aside_where, "no decision for %s", key->key);
        hone_status read = hone_query_end(&query, "read", query.code == SQLITE_OK ? NULL : err);
        if (read != HONE_OK) status = read;
    }
    return hone_connection_end(connection, status, set_aside_where, err);
}

// Scan ----------------------------------------------------------------------------------------------------------------

typedef struct decision_visit {
    hone_store_visit_decision *visit;
    void *ctx;
} decision_visit;

static bool visit_decision(void *ctx, const void *record)
{
    decision_visit *visit = ctx;
    return visit->visit(visit->ctx, record);
}

static hone_status scan(
    hone_store *store,
    hone_sql id,
    const hone_store_key *filter,
    hone_store_visit_decision *visit,
    void *ctx,
    hone_error *err)
{
    decision_visit target = {visit, ctx};
    hone_query query;
    bool ended;
    hone_query_begin(&query, hone_sqlite_following(store), id, scan_where);
    hone_bind_decisions(&query, filter);
    return hone_walk(&query, &hone_row_decision, visit_decision, &target, &ended, err);
}

hone_status hone_sqlite_scan(
    hone_store *store, const hone_store_key *filter, hone_store_visit_decision *visit, void *ctx, hone_error *err)
{
    return scan(store, HONE_SQL_DECISION_SCAN, filter, visit, ctx, err);
}

hone_status hone_sqlite_scan_any(
    hone_store *store, const hone_store_key *filter, hone_store_visit_decision *visit, void *ctx, hone_error *err)
{
    return scan(store, HONE_SQL_DECISION_SCAN_ANY, filter, visit, ctx, err);
}
