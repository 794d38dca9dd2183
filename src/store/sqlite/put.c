#include "store/sqlite/put.h"

#include "base/assert.h"
#include "base/error.h"
#include "store/sqlite/place.h"

// The columns of a call's key that a measurement leaves to its measured_call.
enum { CALL_CELLS = 5 };

// Where a row of a shape goes, and from where what it takes the place of is dropped (BEGIN: from nowhere).
typedef struct destination {
    const hone_row_shape *shape;
    hone_sql put, drop;
} destination;

static const destination destinations[] = {
    {&hone_row_measurement, HONE_SQL_MEASUREMENT_PUT, HONE_SQL_FAILURE_DROP},
    {&hone_row_failure, HONE_SQL_FAILURE_PUT, HONE_SQL_MEASUREMENT_DROP},
    {&hone_row_invocation, HONE_SQL_INVOCATION_PUT, HONE_SQL_BEGIN},
    {&hone_row_alias, HONE_SQL_ALIAS_PUT, HONE_SQL_BEGIN},
    {&hone_row_foreign, HONE_SQL_FOREIGN_PUT, HONE_SQL_BEGIN},
    {&hone_row_quarantine, HONE_SQL_QUARANTINE_PUT, HONE_SQL_BEGIN},
};

static const destination *destination_of(const hone_row_shape *shape)
{
    enum { COUNT = sizeof destinations / sizeof *destinations };
    const destination *to = destinations;
    while (to < destinations + COUNT && to->shape != shape)
        to++;
    hone_assert(to < destinations + COUNT);
    return to;
}

static hone_status find_call(
    hone_connection *connection, const hone_row *row, bool add, const char *where, int64_t *out_call, hone_error *err)
{
    hone_row key = *row;
    key.count = CALL_CELLS;
    hone_query query;
    hone_query_begin(&query, connection, add ? HONE_SQL_CALL_ADD : HONE_SQL_CALL_FIND, where);
    hone_query_cells(&query, &key, 0);
    if (hone_query_step(&query))
        *out_call = sqlite3_column_int64(query.statement, 0);
    else if (add)
        *out_call = sqlite3_last_insert_rowid(connection->db);
    return hone_query_end(&query, "find the call", err);
}

// Puts the cells from `first` on, and the checksum of all.
static hone_status put_cells(hone_query *query, const hone_row *row, size_t first, hone_error *err)
{
    hone_query_cells(query, row, first);
    hone_query_integer(query, (int64_t)hone_row_checksum(row));
    return hone_query_run(query, "put", err);
}

// Puts the row into its table and drops the one that it takes the place of in the other.
static hone_status put_measured(
    hone_connection *connection, const destination *to, const hone_row *row, const char *where, hone_error *err)
{
    int64_t call = 0;
    hone_query query;
    hone_status status = find_call(connection, row, false, where, &call, err);
    if (status == HONE_OK && call == 0) status = find_call(connection, row, true, where, &call, err);
    if (status != HONE_OK) return status;
    hone_query_begin(&query, connection, to->put, where);
    hone_query_integer(&query, call);
    status = put_cells(&query, row, CALL_CELLS, err);
    if (status != HONE_OK) return status;
    hone_row key = *row;
    key.count = to->shape->key_count;
    hone_query_begin(&query, connection, to->drop, where);
    hone_query_integer(&query, call);
    hone_query_cells(&query, &key, CALL_CELLS);
    return hone_query_run(&query, "replace", err);
}

// Decisions -----------------------------------------------------------------------------------------------------------

// Puts a decision under a number of its place, unless another key stands there.
static hone_status put_in_slot(
    hone_connection *connection, const hone_row *row, int64_t number, const char *where, bool *out_put, hone_error *err)
{
    hone_query query;
    hone_query_begin(&query, connection, HONE_SQL_DECISION_PUT, where);
    hone_query_cells(&query, row, 0);
    hone_query_integer(&query, (int64_t)hone_row_checksum(row));
    hone_query_integer(&query, number);
    hone_status status = hone_query_run(&query, "put", err);
    *out_put = status == HONE_OK && sqlite3_changes(connection->db) > 0;
    return status;
}

// Open addressing in a place of HONE_PLACE_SLOTS numbers: the first that is free, or that the same key has, is taken,
// and a removal closes the gap, so that a search ends at the first free one. Under the write lock, since numbers may be
// closed up between two looks. That a place is full takes nine keys with the same 61 bits, which hashing does not make
// by chance.
static hone_status put_beside(
    hone_connection *connection, const hone_row *row, int64_t place, const char *where, hone_error *err)
{
    bool put = false;
    hone_status status = hone_connection_begin(connection, where, err);
    if (status != HONE_OK) return status;
    for (int slot = 0; status == HONE_OK && !put && slot < HONE_PLACE_SLOTS; slot++)
        status = put_in_slot(connection, row, place + slot, where, &put, err);
    if (status == HONE_OK && !put)
        status = hone_fail(
            err, HONE_IO, where, "%s: %d other keys have the same hash as '%.60s': the store cannot take it",
            connection->path, (int)HONE_PLACE_SLOTS, row->cells[3].as.text);
    return hone_connection_end(connection, status, where, err);
}

static hone_status put_decision(hone_connection *connection, const hone_row *row, const char *where, hone_error *err)
{
    const int64_t place = hone_place_of(row);
    bool put = false;
    hone_status status = put_in_slot(connection, row, place, where, &put, err);
    return status != HONE_OK || put ? status : put_beside(connection, row, place, where, err);
}

hone_status hone_close_gaps(hone_connection *connection, int64_t place, const char *where, hone_error *err)
{
    hone_query query;
    hone_assert(connection->depth > 0 && hone_place_around(place) == place);
    hone_query_begin(&query, connection, HONE_SQL_DECISION_CLOSE_GAPS, where);
    hone_query_integer(&query, place);
    hone_query_integer(&query, place + HONE_PLACE_SLOTS - 1);
    return hone_query_run(&query, "close a gap", err);
}

hone_status hone_put_row(
    hone_connection *connection, const hone_row_shape *shape, const hone_row *row, const char *where, hone_error *err)
{
    if (shape == &hone_row_decision) return put_decision(connection, row, where, err);
    const destination *to = destination_of(shape);
    hone_query query;
    if (to->drop != HONE_SQL_BEGIN) return put_measured(connection, to, row, where, err);
    hone_query_begin(&query, connection, to->put, where);
    return put_cells(&query, row, 0, err);
}

hone_status hone_put_record(
    hone_connection *connection, const hone_row_shape *shape, const void *record, const char *where, hone_error *err)
{
    hone_row row;
    hone_row_of(shape, record, &row);
    return hone_put_row(connection, shape, &row, where, err);
}
