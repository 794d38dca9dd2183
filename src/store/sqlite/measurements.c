// What was measured, and what failed.
#include "store/sqlite/put.h"
#include "store/sqlite/store.h"

static const char put_measurement_where[] = "store.put_measurement";
static const char measurements_where[] = "store.measurements";

hone_status hone_sqlite_put_measurement(
    hone_store *store, const hone_store_key *key, const hone_store_measurement *measurement, hone_error *err)
{
    hone_connection *connection = hone_sqlite_connection(store);
    const hone_store_measured measured = {*key, *measurement};
    const hone_row_shape *shape = measurement->failure != HONE_FAILURE_NONE ? &hone_row_failure : &hone_row_measurement;
    hone_row row;
    hone_row_of(shape, &measured, &row);
    hone_status status = hone_connection_begin(connection, put_measurement_where, err);
    if (status != HONE_OK) return status;
    status = hone_put_row(connection, shape, &row, put_measurement_where, err);
    return hone_connection_end(connection, status, put_measurement_where, err);
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

typedef struct part {
    hone_sql scan, scan_call;
    const hone_row_shape *shape;
} part;

static const part measured_part = {HONE_SQL_MEASUREMENT_SCAN, HONE_SQL_MEASUREMENT_SCAN_CALL, &hone_row_measurement};
static const part failed_part = {HONE_SQL_FAILURE_SCAN, HONE_SQL_FAILURE_SCAN_CALL, &hone_row_failure};

static hone_status walk_part(
    hone_store *store,
    const part *of,
    const hone_store_key *filter,
    measured_visit *target,
    bool *out_ended,
    hone_error *err)
{
    hone_query query;
    hone_sql id = hone_key_is_whole(filter) ? of->scan_call : of->scan;
    hone_query_begin(&query, hone_sqlite_following(store), id, measurements_where);
    hone_bind_key_and_spec(&query, filter);
    return hone_walk(&query, of->shape, visit_measured, target, out_ended, err);
}

hone_status hone_sqlite_measurements(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err)
{
    measured_visit target = {visit, ctx};
    bool ended = false;
    hone_status status = walk_part(store, &measured_part, filter, &target, &ended, err);
    return status != HONE_OK || ended ? status : walk_part(store, &failed_part, filter, &target, &ended, err);
}

hone_status hone_sqlite_failures(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err)
{
    measured_visit target = {visit, ctx};
    bool ended = false;
    return walk_part(store, &failed_part, filter, &target, &ended, err);
}
