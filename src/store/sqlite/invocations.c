// Which calls were made, how often.
#include "store/sqlite/put.h"
#include "store/sqlite/store.h"

static const char invocations_where[] = "store.invocations";
static const char add_invocations_where[] = "store.add_invocations";
static const char clear_invocations_where[] = "store.clear_invocations";
static const char expire_misses_where[] = "store.expire_misses";

typedef struct invocation_visit {
    hone_store_visit_invocation *visit;
    void *ctx;
} invocation_visit;

static bool visit_invocation(void *ctx, const void *record)
{
    invocation_visit *visit = ctx;
    return visit->visit(visit->ctx, record);
}

hone_status hone_sqlite_invocations(
    hone_store *store, const hone_store_key *filter, hone_store_visit_invocation *visit, void *ctx, hone_error *err)
{
    invocation_visit target = {visit, ctx};
    hone_query query;
    bool ended;
    bool one_call = filter->algorithm != NULL && filter->version != NULL && filter->key != NULL;
    hone_sql id = one_call ? HONE_SQL_INVOCATION_SCAN_CALL : HONE_SQL_INVOCATION_SCAN;
    hone_query_begin(&query, hone_sqlite_following(store), id, invocations_where);
    hone_bind_key_and_spec(&query, filter);
    return hone_walk(&query, &hone_row_invocation, visit_invocation, &target, &ended, err);
}

// Adds one to what is stored of it.
static hone_status add_invocation(hone_connection *connection, const hone_store_invocation *added, hone_error *err)
{
    hone_store_invocation merged = *added, found;
    hone_row row;
    hone_row_of(&hone_row_invocation, added, &row);
    row.count = hone_row_invocation.key_count;
    hone_query query;
    hone_query_begin(&query, connection, HONE_SQL_INVOCATION_GET, add_invocations_where);
    hone_query_cells(&query, &row, 0);
    bool there = false;
    hone_status status = hone_find_or_move(&query, &hone_row_invocation, &found, sizeof found, &there, err);
    if (there) {
        hone_invocation_merge(&found, added);
        merged = found;
    }
    // What was found lives in the statement, so that it is ended only after the put.
    if (status == HONE_OK && query.code == SQLITE_OK)
        status = hone_put_record(connection, &hone_row_invocation, &merged, add_invocations_where, err);
    hone_status read = hone_query_end(&query, "read", query.code == SQLITE_OK ? NULL : err);
    return read != HONE_OK ? read : status;
}

hone_status hone_sqlite_add_invocations(
    hone_store *store, const hone_store_invocation *invocations, size_t count, hone_error *err)
{
    hone_connection *connection = hone_sqlite_connection(store);
    hone_status status = hone_connection_begin(connection, add_invocations_where, err);
    if (status != HONE_OK) return status;
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        status = add_invocation(connection, &invocations[i], err);
    return hone_connection_end(connection, status, add_invocations_where, err);
}

hone_status hone_sqlite_clear_invocations(hone_store *store, const char *device, hone_error *err)
{
    hone_query query;
    hone_query_begin(&query, hone_sqlite_following(store), HONE_SQL_INVOCATION_CLEAR, clear_invocations_where);
    hone_query_text(&query, device);
    return hone_query_run(&query, "clear", err);
}

hone_status hone_sqlite_expire_misses(hone_store *store, int64_t before, size_t most, hone_error *err)
{
    hone_query query;
    hone_query_begin(&query, hone_sqlite_following(store), HONE_SQL_INVOCATION_EXPIRE, expire_misses_where);
    hone_query_integer(&query, before);
    hone_query_integer(&query, (int64_t)most);
    return hone_query_run(&query, "expire", err);
}
