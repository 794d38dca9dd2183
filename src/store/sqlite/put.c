#include "store/sqlite/put.h"

// The columns of a call's key that a measurement leaves to its measured_call.
enum { CALL_CELLS = 5 };

// Where a row of a shape goes, and from where what it takes the place of is dropped (BEGIN: from nowhere).
typedef struct destination {
    const hone_row_shape *shape;
    hone_sql put, drop;
} destination;

static const destination destinations[] = {
    {&hone_row_decision, HONE_SQL_DECISION_PUT, HONE_SQL_BEGIN},
    {&hone_row_measurement, HONE_SQL_MEASUREMENT_PUT, HONE_SQL_FAILURE_DROP},
    {&hone_row_failure, HONE_SQL_FAILURE_PUT, HONE_SQL_MEASUREMENT_DROP},
    {&hone_row_invocation, HONE_SQL_INVOCATION_PUT, HONE_SQL_BEGIN},
    {&hone_row_alias, HONE_SQL_ALIAS_PUT, HONE_SQL_BEGIN},
    {&hone_row_foreign, HONE_SQL_FOREIGN_PUT, HONE_SQL_BEGIN},
    {&hone_row_quarantine, HONE_SQL_QUARANTINE_PUT, HONE_SQL_BEGIN},
};

static const destination *destination_of(const hone_row_shape *shape)
{
    const destination *to = destinations;
    while (to->shape != shape)
        to++;
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

hone_status hone_put_row(
    hone_connection *connection, const hone_row_shape *shape, const hone_row *row, const char *where, hone_error *err)
{
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
