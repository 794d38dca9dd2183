// Rows of queries as records: read, walked, found.
#include "store/sqlite/damage.h"
#include "store/sqlite/place.h"
#include "store/sqlite/put.h"
#include "store/sqlite/store.h"

#include "base/error.h"

hone_connection *hone_sqlite_connection(hone_store *store)
{
    return &((hone_sqlite_store *)store)->connection;
}

hone_connection *hone_sqlite_following(hone_store *store)
{
    hone_connection *connection = hone_sqlite_connection(store);
    if (connection->depth == 0 && hone_connection_is_moved(connection))
        (void)!hone_connection_reopen(connection, NULL); // a query of one that is closed says why
    return connection;
}

// The current row as a record; with HONE_CORRUPT the reason.
hone_status hone_read_record(
    hone_query *query, const hone_row_shape *shape, void *record, size_t record_size, const char **out_reason)
{
    hone_row row;
    hone_status status = hone_query_row(query, shape, &row, out_reason);
    if (status != HONE_OK || hone_row_read(shape, &row, record, record_size)) return status;
    *out_reason = "has a value out of its range";
    return HONE_CORRUPT;
}

// Visits the sound rows of a query that has its parameters. Damaged ones are passed over and set aside.
hone_status hone_walk(
    hone_query *query,
    const hone_row_shape *shape,
    hone_visit_record *visit,
    void *ctx,
    bool *out_ended,
    hone_error *err)
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
        hone_status status = hone_read_record(query, shape, &record, sizeof record, &reason);
        if (status == HONE_OK) *out_ended = !visit(ctx, &record);
        if (status == HONE_CORRUPT) damaged = true;
    }
    if (damaged && query->code == SQLITE_OK) hone_damage_move_all(query, shape);
    return hone_query_end(query, "read", err);
}

void hone_bind_key(hone_query *query, const hone_store_key *key)
{
    hone_query_text(query, key->device);
    hone_query_text(query, key->algorithm);
    hone_query_text(query, key->version);
    hone_query_text(query, key->key);
}

void hone_bind_key_and_spec(hone_query *query, const hone_store_key *key)
{
    hone_bind_key(query, key);
    hone_query_text(query, key->spec);
}

void hone_bind_decisions(hone_query *query, const hone_store_key *filter)
{
    int64_t first, last;
    hone_place_range(filter, &first, &last);
    hone_bind_key_and_spec(query, filter);
    hone_query_integer(query, first);
    hone_query_integer(query, last);
}

// A put that is a transaction by itself. Where the file was moved aside before, it went into the one that nobody reads.
hone_status hone_put_alone(
    hone_connection *connection, const hone_row_shape *shape, const void *record, const char *where, hone_error *err)
{
    hone_status status = hone_put_record(connection, shape, record, where, err);
    if (status != HONE_OK || connection->depth > 0 || !hone_connection_is_moved(connection)) return status;
    status = hone_connection_reopen(connection, err);
    return status == HONE_OK ? hone_put_record(connection, shape, record, where, err) : status;
}

// The first row of a query inside a transaction, when there is one; a damaged one is set aside.
hone_status hone_find_or_move(
    hone_query *query, const hone_row_shape *shape, void *record, size_t record_size, bool *out_there, hone_error *err)
{
    const char *reason = NULL;
    *out_there = false;
    if (!hone_query_step(query)) return HONE_OK; // what failed is the query's to tell
    hone_status status = hone_read_record(query, shape, record, record_size, &reason);
    *out_there = status == HONE_OK;
    return status == HONE_CORRUPT ? hone_damage_move(query, shape, reason, err) : HONE_OK;
}
