// "sqlite:PATH": one connection, guarded by the store's lock. Reads are one statement; a write of one record is
// one statement, of several one transaction.
#include "store/sqlite/store.h"

#include "base/error.h"
#include "store/sqlite/salvage.h"

#include <string.h>

static const char open_where[] = "store.sqlite.open";
static const char stat_where[] = "store.stat";
static const char begin_where[] = "store.begin";
static const char end_where[] = "store.end";

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
    hone_sqlite_store *store = hone_alloc(allocator, sizeof *store);
    if (store == NULL) return hone_fail_memory(err, open_where);
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
    hone_sqlite_queue_rest(store);
    hone_connection_close(hone_sqlite_connection(store));
    hone_free(&allocator, store);
}

// Counts --------------------------------------------------------------------------------------------------------------

static hone_status count(
    hone_connection *connection, hone_sql id, uint64_t *const *fields, int field_count, hone_error *err)
{
    hone_query query;
    hone_query_begin(&query, connection, id, stat_where);
    if (hone_query_step(&query))
        for (int i = 0; i < field_count; i++)
            *fields[i] = (uint64_t)sqlite3_column_int64(query.statement, i);
    return hone_query_end(&query, "count", err);
}

static hone_status sqlite_stat(hone_store *store, hone_store_stat *out, hone_error *err)
{
    hone_connection *connection = hone_sqlite_following(store);
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
    return hone_connection_begin(hone_sqlite_connection(store), begin_where, err);
}

static hone_status sqlite_end(hone_store *store, hone_status status, hone_error *err)
{
    return hone_connection_end(hone_sqlite_connection(store), status, end_where, err);
}

// The WAL stays as it is: whoever opens the file next goes on with it.
static void sqlite_rest(hone_store *store)
{
    hone_sqlite_queue_rest(store);
    hone_connection *connection = hone_sqlite_connection(store);
    if (connection->db != NULL) sqlite3_db_config(connection->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    hone_connection_drop(connection);
}

static hone_status sqlite_wake(hone_store *store, hone_error *err)
{
    return hone_connection_reopen(hone_sqlite_connection(store), err);
}

static hone_status sqlite_mend(hone_store *store, hone_error *err)
{
    return hone_salvage(hone_sqlite_connection(store), err);
}

static hone_status sqlite_lease(
    hone_store *store, uint64_t name, const hone_wait *wait, hone_lease *out, hone_error *err)
{
    return hone_lease_take_beside(hone_store_location(store), name, wait, out, err);
}

static const char *sqlite_journal(hone_store *store)
{
    sqlite3 *db = hone_sqlite_connection(store)->db;
    sqlite3_stmt *statement = NULL;
    const char *journal = NULL;
    if (db == NULL) return NULL;
    const bool ok = sqlite3_prepare_v2(db, "PRAGMA journal_mode", -1, &statement, NULL) == SQLITE_OK &&
                    sqlite3_step(statement) == SQLITE_ROW;
    const char *mode = ok ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    if (mode != NULL) journal = strcmp(mode, "wal") == 0 ? "write-ahead log" : "rollback journal";
    sqlite3_finalize(statement);
    return journal;
}

// SQLite counts the commits of other connections; a file that is opened anew may count from where it did before.
static hone_status sqlite_changes(hone_store *store, uint64_t *out, hone_error *err)
{
    hone_connection *connection = hone_sqlite_following(store);
    uint64_t version = 0;
    uint64_t *const fields[] = {&version};
    hone_status status = count(connection, HONE_SQL_CHANGES, fields, 1, err);
    *out = connection->opened << 32 | (version & UINT32_MAX);
    return status;
}

static const char *const companions[] = {"-wal", "-shm", NULL};

const hone_store_ops hone_sqlite_store_ops = {
    .struct_size = sizeof(hone_store_ops),
    .scheme = "sqlite:",
    .form = "sqlite:PATH",
    .in_file = true,
    .companions = companions,
    .open = sqlite_open,
    .open_read_only = sqlite_open_read_only,
    .close = sqlite_close,
    .get = hone_sqlite_get,
    .put_all = hone_sqlite_put_all,
    .remove = hone_sqlite_remove,
    .scan = hone_sqlite_scan,
    .scan_any = hone_sqlite_scan_any,
    .put_measurement = hone_sqlite_put_measurement,
    .measurements = hone_sqlite_measurements,
    .failures = hone_sqlite_failures,
    .add_invocations = hone_sqlite_add_invocations,
    .invocations = hone_sqlite_invocations,
    .clear_invocations = hone_sqlite_clear_invocations,
    .expire_misses = hone_sqlite_expire_misses,
    .put_alias = hone_sqlite_put_alias,
    .get_alias = hone_sqlite_get_alias,
    .aliases = hone_sqlite_aliases,
    .put_foreigns = hone_sqlite_put_foreigns,
    .foreigns = hone_sqlite_foreigns,
    .get_foreign = hone_sqlite_get_foreign,
    .clear_foreigns = hone_sqlite_clear_foreigns,
    .set_aside = hone_sqlite_set_aside,
    .quarantine = hone_sqlite_quarantine,
    .clear_quarantine = hone_sqlite_clear_quarantine,
    .verify = hone_sqlite_verify,
    .stat = sqlite_stat,
    .begin = sqlite_begin,
    .end = sqlite_end,
    .mend = sqlite_mend,
    .rest = sqlite_rest,
    .wake = sqlite_wake,
    .lease = sqlite_lease,
    .journal = sqlite_journal,
    .changes = sqlite_changes,
    .queue = &hone_sqlite_queue_ops,
};
