// What the parts of the store of kind "sqlite:" share: its struct, its rows, and its functions (store/ops.h), a file
// for each kind of record.
#ifndef HONE_STORE_SQLITE_STORE_H
#define HONE_STORE_SQLITE_STORE_H

#include "store/ops.h"
#include "store/sqlite/connection.h"

extern const hone_store_ops hone_sqlite_store_ops;

typedef struct hone_sqlite_store {
    hone_store base;
    hone_connection connection;
    sqlite3 *queue; // NULL: not open
} hone_sqlite_store;

extern const hone_queue_ops hone_sqlite_queue_ops;
void hone_sqlite_queue_rest(hone_store *store); // closes it; it is opened again by the next use

hone_connection *hone_sqlite_connection(hone_store *store);
// The same for what reads much: of the file that lies under the name now.
hone_connection *hone_sqlite_following(hone_store *store);

// Hands a record on; false ends the walk.
typedef bool hone_visit_record(void *ctx, const void *record);

// The current row as a record; HONE_CORRUPT with the reason; HONE_OUT_OF_MEMORY, which the query fails with.
hone_status hone_read_record(
    hone_query *query, const hone_row_shape *shape, void *record, size_t record_size, const char **out_reason);
// Visits the sound rows of a query that has its parameters, and ends it. Damaged ones are passed over and set aside.
hone_status hone_walk(
    hone_query *query,
    const hone_row_shape *shape,
    hone_visit_record *visit,
    void *ctx,
    bool *out_ended,
    hone_error *err);
// The first row of a query inside a transaction, when there is one; a damaged one is set aside. What failed is the
// query's.
hone_status hone_find_or_move(
    hone_query *query, const hone_row_shape *shape, void *record, size_t record_size, bool *out_there, hone_error *err);
void hone_bind_key(hone_query *query, const hone_store_key *key);
void hone_bind_key_and_spec(hone_query *query, const hone_store_key *key);
// The same, and the numbers that decisions can have which pass the filter.
void hone_bind_decisions(hone_query *query, const hone_store_key *filter);
// A put that is a transaction by itself. Where the file was moved aside before, it went into the one that nobody reads.
hone_status hone_put_alone(
    hone_connection *connection, const hone_row_shape *shape, const void *record, const char *where, hone_error *err);

// As in store/ops.h.
hone_status hone_sqlite_get(
    hone_store *store,
    const hone_store_key *key,
    hone_regime regime,
    void (*visit)(void *ctx, const hone_store_decision *decision),
    void *ctx,
    hone_error *err);
hone_status hone_sqlite_put_all(
    hone_store *store, const hone_store_decision *decisions, size_t count, hone_merger *merger, hone_error *err);
hone_status hone_sqlite_remove(hone_store *store, const hone_store_key *key, hone_error *err);
hone_status hone_sqlite_scan(
    hone_store *store, const hone_store_key *filter, hone_store_visit_decision *visit, void *ctx, hone_error *err);
hone_status hone_sqlite_scan_any(
    hone_store *store, const hone_store_key *filter, hone_store_visit_decision *visit, void *ctx, hone_error *err);
hone_status hone_sqlite_put_measurement(
    hone_store *store, const hone_store_key *key, const hone_store_measurement *measurement, hone_error *err);
hone_status hone_sqlite_failures(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err);
hone_status hone_sqlite_measurements(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err);
hone_status hone_sqlite_invocations(
    hone_store *store, const hone_store_key *filter, hone_store_visit_invocation *visit, void *ctx, hone_error *err);
hone_status hone_sqlite_add_invocations(
    hone_store *store, const hone_store_invocation *invocations, size_t count, hone_error *err);
hone_status hone_sqlite_expire_misses(hone_store *store, int64_t before, size_t most, hone_error *err);
hone_status hone_sqlite_clear_invocations(hone_store *store, const char *device, hone_error *err);
hone_status hone_sqlite_put_alias(hone_store *store, const hone_store_alias *alias, hone_error *err);
hone_status hone_sqlite_get_alias(
    hone_store *store,
    const char *scheme,
    const char *operation,
    const char *foreign_key,
    void (*visit)(void *ctx, const hone_store_alias *alias),
    void *ctx,
    hone_error *err);
hone_status hone_sqlite_aliases(
    hone_store *store, const char *scheme, hone_store_visit_alias *visit, void *ctx, hone_error *err);
hone_status hone_sqlite_put_foreigns(
    hone_store *store, const hone_store_foreign *foreigns, size_t count, hone_error *err);
hone_status hone_sqlite_get_foreign(
    hone_store *store,
    const hone_store_foreign *key,
    void (*visit)(void *ctx, const hone_store_foreign *foreign),
    void *ctx,
    hone_error *err);
hone_status hone_sqlite_foreigns(
    hone_store *store, const char *scheme, hone_store_visit_foreign *visit, void *ctx, hone_error *err);
hone_status hone_sqlite_clear_foreigns(hone_store *store, const char *scheme, hone_error *err);
hone_status hone_sqlite_set_aside(
    hone_store *store, const hone_store_key *key, hone_regime regime, const char *reason, hone_error *err);
hone_status hone_sqlite_quarantine(hone_store *store, hone_store_visit_quarantined *visit, void *ctx, hone_error *err);
hone_status hone_sqlite_clear_quarantine(hone_store *store, hone_error *err);
hone_status hone_sqlite_verify(hone_store *store, hone_store_health *out, hone_error *err);

#endif
