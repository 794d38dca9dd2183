// Rows of results as records: read, checked, walked, put, set aside.
#ifndef HONE_STORE_POSTGRESQL_ROWS_H
#define HONE_STORE_POSTGRESQL_ROWS_H

#include "store/common/job.h"
#include "store/postgresql/connection.h"
#include "store/records.h"

// A record of any kind.
typedef union hone_pg_record {
    hone_store_key key;
    hone_store_decision decision;
    hone_store_measured measured;
    hone_store_invocation invocation;
    hone_store_alias alias;
    hone_store_foreign foreign;
    hone_store_quarantined quarantined;
    hone_job job;
} hone_pg_record;

typedef bool hone_pg_visit(void *ctx, const hone_pg_record *record);

// The digests of a record's key and of its call.
typedef struct hone_pg_ids {
    char id[HONE_SHA256_HEX_SIZE], call[HONE_SHA256_HEX_SIZE];
} hone_pg_ids;

// A row of a result, whose texts live until the connection's next row. HONE_CORRUPT: *out_reason.
hone_status hone_pg_read_record(
    hone_pg_connection *connection,
    const PGresult *result,
    int at,
    hone_pg_table table,
    hone_row *row,
    hone_pg_record *out,
    const char **out_reason);
// The parameters of PUT and ADD, which borrow the record and ids.
hone_status hone_pg_put_values(
    hone_pg_connection *connection,
    hone_pg_table table,
    const void *record,
    hone_pg_ids *ids,
    hone_pg_values *values,
    const char *where,
    hone_error *err);

// Visits what SCAN gives for the filters; texts live until the visit returns. Damaged rows are passed over, and set
// aside after the walk. visit returns false to end it: *out_ended.
hone_status hone_pg_walk(
    hone_pg_connection *connection,
    hone_pg_table table,
    const char *const *filters,
    hone_pg_visit *visit,
    void *ctx,
    bool *out_ended,
    const char *where,
    hone_error *err);
// The same of what a statement gave: its columns stand as those of SCAN. Clears the result.
hone_status hone_pg_walk_result(
    hone_pg_connection *connection,
    hone_pg_table table,
    PGresult *result,
    hone_pg_visit *visit,
    void *ctx,
    bool *out_ended,
    const char *where,
    hone_error *err);
// The record with the key of probe, by GET or LOCK, whose texts live until the connection's next row. A damaged one is
// set aside, and is not there.
hone_status hone_pg_find(
    hone_pg_connection *connection,
    hone_pg_table table,
    hone_pg_verb verb,
    const void *probe,
    hone_pg_record *out,
    bool *out_there,
    const char *where,
    hone_error *err);
// PUT or ADD. *out_put (may be NULL): whether a row was written.
hone_status hone_pg_put(
    hone_pg_connection *connection,
    hone_pg_table table,
    hone_pg_verb verb,
    const void *record,
    bool *out_put,
    const char *where,
    hone_error *err);
// A job in place of another of its key, or (put NULL) nothing, where that stands as it was read. *out_done: it did.
hone_status hone_pg_swap_job(
    hone_pg_connection *connection,
    const hone_job *stored,
    const hone_job *put,
    bool *out_done,
    const char *where,
    hone_error *err);
hone_status hone_pg_drop(
    hone_pg_connection *connection, hone_pg_table table, const void *probe, const char *where, hone_error *err);

#endif
