// The queue of a store in a file: a file of its own beside it, PATH.queue, so that the store's file keeps the tables that
// it has. It holds nothing that recorded calls do not say: where it is damaged it can be removed.
#include "store/sqlite/store.h"

#include "base/error.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

enum { APPLICATION_ID = 0x686f6e71, SCHEMA = 1, PATH_SIZE = 4096 }; // "honq", in the file's header

static const char where[] = "store.queue";
// What a file holds is data: sizes are checked as they are read, and its schema may call nothing.
static const char harden[] = "PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF";

static const char tables[] =
    "CREATE TABLE job(device TEXT NOT NULL, algorithm TEXT NOT NULL, version TEXT NOT NULL, key TEXT NOT NULL,"
    " spec TEXT, call TEXT, state INTEGER NOT NULL, priority REAL NOT NULL, round INTEGER NOT NULL, weight REAL NOT "
    "NULL,"
    " count INTEGER NOT NULL, seconds REAL NOT NULL, tries INTEGER NOT NULL, holder TEXT, reason TEXT,"
    " lock INTEGER NOT NULL, boot INTEGER NOT NULL, checksum INTEGER NOT NULL,"
    " PRIMARY KEY(device, algorithm, version, key)) WITHOUT ROWID;"
    "CREATE INDEX job_order ON job(device, state, priority DESC, round, weight DESC);";

#define JOB_COLUMNS                                                                                                    \
    "device, algorithm, version, key, spec, call, state, priority, round, weight, count, seconds, tries, holder, "     \
    "reason, lock, boot, checksum"
#define JOB_KEY " WHERE device = ? AND algorithm = ? AND version = ? AND key = ?"

// The file ------------------------------------------------------------------------------------------------------------

static hone_status fail(hone_store *store, sqlite3 *db, int code, const char *operation, hone_error *err)
{
    const int main_code = code & 0xff;
    const hone_status status = main_code == SQLITE_BUSY || main_code == SQLITE_LOCKED      ? HONE_BUSY
                               : main_code == SQLITE_NOMEM                                 ? HONE_OUT_OF_MEMORY
                               : main_code == SQLITE_CORRUPT || main_code == SQLITE_NOTADB ? HONE_CORRUPT
                                                                                           : HONE_IO;
    return hone_fail(
        err, status, where, "%s.queue: %s: %s%s", hone_sqlite_connection(store)->path, operation,
        db != NULL ? sqlite3_errmsg(db) : sqlite3_errstr(code),
        status == HONE_CORRUPT ? "; move it away: hone queue add fills it again" : "");
}

static int read_number(sqlite3 *db, const char *sql, int64_t *out)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) code = sqlite3_step(statement);
    if (code == SQLITE_ROW) *out = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? SQLITE_OK : code;
}

static hone_status check_owner(hone_store *store, int64_t application, int64_t version, hone_error *err)
{
    if (application == APPLICATION_ID && version == SCHEMA) return HONE_OK;
    return hone_fail(
        err, HONE_INCOMPATIBLE, where, "%s.queue is of something else, or of a newer hone: move it away",
        hone_sqlite_connection(store)->path);
}

static hone_status make_tables(hone_store *store, sqlite3 *db, hone_error *err)
{
    int64_t application = 0, version = 0;
    char pragmas[96];
    snprintf(pragmas, sizeof pragmas, "PRAGMA application_id=%d; PRAGMA user_version=%d", APPLICATION_ID, SCHEMA);
    int code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (code == SQLITE_OK) code = read_number(db, "PRAGMA application_id", &application);
    if (code == SQLITE_OK) code = read_number(db, "PRAGMA user_version", &version);
    if (code == SQLITE_OK && application == 0 && version == 0) {
        code = sqlite3_exec(db, tables, NULL, NULL, NULL);
        if (code == SQLITE_OK) code = sqlite3_exec(db, pragmas, NULL, NULL, NULL);
        application = APPLICATION_ID;
        version = SCHEMA;
    }
    if (code == SQLITE_OK) code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    if (code != SQLITE_OK) return fail(store, db, code, "open", err);
    return check_owner(store, application, version, err);
}

static hone_status open_queue(hone_store *store, sqlite3 **out, hone_error *err)
{
    char path[PATH_SIZE];
    hone_sqlite_store *self = (hone_sqlite_store *)store;
    const hone_connection *connection = &self->connection;
    if (connection->read_only) return hone_fail(err, HONE_IO, where, "%s cannot be written", connection->path);
    *out = self->queue;
    if (*out != NULL) return HONE_OK;
    // "./" keeps SQLite from reading a path like ":memory:" as something else.
    snprintf(path, sizeof path, "%s%s.queue", connection->path[0] == '/' ? "" : "./", connection->path);
    int code = sqlite3_open_v2(
        path, &self->queue, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
        NULL);
    if (code == SQLITE_OK) sqlite3_busy_timeout(self->queue, HONE_CONNECTION_PATIENCE_MS);
    if (code == SQLITE_OK && !hone_os_is_network_file(path))
        code = sqlite3_exec(self->queue, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL", NULL, NULL, NULL);
    if (code == SQLITE_OK) code = sqlite3_exec(self->queue, harden, NULL, NULL, NULL);
    hone_status status =
        code == SQLITE_OK ? make_tables(store, self->queue, err) : fail(store, self->queue, code, "open", err);
    if (status != HONE_OK)
        hone_sqlite_queue_rest(store);
    else
        *out = self->queue;
    return status;
}

// Opens the queue for reading. Where the store cannot be written, nothing is made beside the file: without a WAL, SQLite takes neither
// locks nor an index. *out is NULL where no queue was made yet.
static hone_status open_to_read(hone_store *store, sqlite3 **out, hone_error *err)
{
    hone_sqlite_store *self = (hone_sqlite_store *)store;
    const hone_connection *connection = &self->connection;
    int64_t application = 0, version = 0;
    char path[PATH_SIZE];
    hone_buffer name;
    *out = self->queue;
    if (*out != NULL) return HONE_OK;
    if (!connection->read_only) return open_queue(store, out, err);
    snprintf(path, sizeof path, "%s.queue", connection->path);
    if (!hone_os_is_file(path)) return HONE_OK;
    hone_buffer_init(&name, connection->allocator);
    hone_sqlite_put_uri(&name, path, hone_sqlite_has_wal(connection->allocator, path, 0) ? "" : "?immutable=1");
    const int access = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_URI;
    int code = name.failed ? SQLITE_NOMEM : sqlite3_open_v2(hone_buffer_string(&name), &self->queue, access, NULL);
    hone_buffer_deinit(&name);
    if (code == SQLITE_OK) sqlite3_busy_timeout(self->queue, HONE_CONNECTION_PATIENCE_MS);
    if (code == SQLITE_OK) code = sqlite3_exec(self->queue, harden, NULL, NULL, NULL);
    if (code == SQLITE_OK) code = read_number(self->queue, "PRAGMA application_id", &application);
    if (code == SQLITE_OK) code = read_number(self->queue, "PRAGMA user_version", &version);
    hone_status status =
        code == SQLITE_OK ? check_owner(store, application, version, err) : fail(store, self->queue, code, "open", err);
    if (status != HONE_OK)
        hone_sqlite_queue_rest(store);
    else
        *out = self->queue;
    return status;
}

void hone_sqlite_queue_rest(hone_store *store)
{
    hone_sqlite_store *self = (hone_sqlite_store *)store;
    (void)sqlite3_close(self->queue);
    self->queue = NULL;
}

// Rows ----------------------------------------------------------------------------------------------------------------

static void bind(sqlite3_stmt *statement, int at, const hone_cell *cell)
{
    if (cell->kind == HONE_CELL_TEXT)
        sqlite3_bind_text(statement, at, cell->as.text, (int)cell->size, SQLITE_STATIC);
    else if (cell->kind == HONE_CELL_INTEGER)
        sqlite3_bind_int64(statement, at, cell->as.integer);
    else if (cell->kind == HONE_CELL_REAL)
        sqlite3_bind_double(statement, at, cell->as.real);
    else
        sqlite3_bind_null(statement, at);
}

static hone_status put_job(
    hone_store *store, sqlite3 *db, const hone_job *job, bool replaces, bool *out_put, hone_error *err)
{
    sqlite3_stmt *statement = NULL;
    hone_row row;
    const char *sql = replaces ? "INSERT OR REPLACE INTO job VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
                               : "INSERT OR IGNORE INTO job VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
    hone_row_of(&hone_row_job, job, &row);
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    for (size_t i = 0; code == SQLITE_OK && i < row.count; i++)
        bind(statement, (int)i + 1, &row.cells[i]);
    if (code == SQLITE_OK) {
        sqlite3_bind_int64(statement, (int)row.count + 1, (int64_t)hone_row_checksum(&row));
        code = sqlite3_step(statement);
    }
    hone_status status = code == SQLITE_DONE ? HONE_OK : fail(store, db, code, "put a job", err);
    if (out_put != NULL) *out_put = sqlite3_changes(db) > 0;
    sqlite3_finalize(statement);
    return status;
}

static void bind_key(sqlite3_stmt *statement, const hone_store_key *key)
{
    const char *const texts[] = {key->device, key->algorithm, key->version, key->key};
    for (int i = 0; i < 4; i++)
        sqlite3_bind_text(statement, i + 1, texts[i], -1, SQLITE_STATIC);
}

static hone_status drop_job(hone_store *store, sqlite3 *db, const hone_store_key *key, hone_error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, "DELETE FROM job" JOB_KEY, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        bind_key(statement, key);
        code = sqlite3_step(statement);
    }
    sqlite3_finalize(statement);
    return code == SQLITE_DONE ? HONE_OK : fail(store, db, code, "drop a job", err);
}

// The current row. *out_sound false: it was not written so, and is gone. What recorded calls say is queued again.
static hone_status read_job(
    hone_store *store, sqlite3 *db, sqlite3_stmt *statement, hone_job *out, bool *out_sound, hone_error *err)
{
    hone_row row = {.count = hone_row_job.count};
    for (size_t i = 0; i < row.count; i++)
        if (!hone_cell_of_column(statement, (int)i, &row.cells[i])) return hone_fail_memory(err, where);
    *out_sound = (uint64_t)sqlite3_column_int64(statement, (int)row.count) == hone_row_checksum(&row) &&
                 hone_row_read(&hone_row_job, &row, out, sizeof *out);
    if (*out_sound) return HONE_OK;
    const bool is_dropped = !hone_sqlite_connection(store)->read_only;
    hone_log_write(
        &store->log, HONE_LOG_WARNING, "%s.queue: a job does not match its checksum: it was %s",
        hone_sqlite_connection(store)->path, is_dropped ? "dropped" : "left out");
    if (!is_dropped) return HONE_OK;
    const hone_store_key key = {
        row.cells[0].as.text, row.cells[1].as.text, row.cells[2].as.text, row.cells[3].as.text, NULL};
    return drop_job(store, db, &key, err);
}

// Functions -----------------------------------------------------------------------------------------------------------

static hone_status end(hone_store *store, sqlite3 *db, hone_status status, hone_error *err)
{
    if (status == HONE_OK) {
        const int code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
        if (code == SQLITE_OK) return HONE_OK;
        status = fail(store, db, code, "commit", err);
    }
    (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

static hone_status begin(hone_store *store, sqlite3 **out, hone_error *err)
{
    hone_status status = open_queue(store, out, err);
    if (status != HONE_OK) return status;
    const int code = sqlite3_exec(*out, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    return code == SQLITE_OK ? HONE_OK : fail(store, *out, code, "begin", err);
}

static hone_status queue_add(hone_store *store, const hone_job *jobs, size_t count, size_t *out_added, hone_error *err)
{
    sqlite3 *db;
    size_t added = 0;
    hone_status status = begin(store, &db, err);
    if (status != HONE_OK) return status;
    for (size_t i = 0; status == HONE_OK && i < count; i++) {
        bool put = false;
        status = put_job(store, db, &jobs[i], false, &put, err);
        added += put;
    }
    status = end(store, db, status, err);
    if (status == HONE_OK) *out_added = added;
    return status;
}

static hone_status change_found(
    hone_store *store, sqlite3 *db, const hone_job *stored, hone_job_change *change, hone_error *err)
{
    hone_status status = change->make(change->ctx, stored, change, err);
    if (status == HONE_OK && change->put != NULL) status = put_job(store, db, change->put, true, NULL, err);
    return status;
}

static hone_status queue_change(hone_store *store, const hone_store_key *key, hone_job_change *change, hone_error *err)
{
    sqlite3 *db;
    sqlite3_stmt *statement = NULL;
    hone_job stored;
    bool sound = false;
    change->put = NULL;
    change->removes = false;
    hone_status status = begin(store, &db, err);
    if (status != HONE_OK) return status;
    int code = sqlite3_prepare_v2(db, "SELECT " JOB_COLUMNS " FROM job" JOB_KEY, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        bind_key(statement, key);
        code = sqlite3_step(statement);
    }
    if (code != SQLITE_ROW && code != SQLITE_DONE) status = fail(store, db, code, "read a job", err);
    if (code == SQLITE_ROW) status = read_job(store, db, statement, &stored, &sound, err);
    // The row's texts live until the statement ends.
    if (status == HONE_OK) status = change_found(store, db, sound ? &stored : NULL, change, err);
    sqlite3_finalize(statement);
    if (status == HONE_OK && change->removes) status = drop_job(store, db, key, err);
    return end(store, db, status, err);
}

static hone_status queue_visit(
    hone_store *store,
    const char *device,
    hone_job_state state,
    bool orphans,
    size_t limit,
    hone_store_visit_job *visit,
    void *ctx,
    hone_error *err)
{
    static const char of_device[] = "SELECT " JOB_COLUMNS " FROM job WHERE device = ?3 AND state = ?1"
                                    " ORDER BY priority DESC, round, weight DESC LIMIT ?2",
                      of_all[] = "SELECT " JOB_COLUMNS " FROM job WHERE state = ?1"
                                 " ORDER BY priority DESC, round, weight DESC LIMIT ?2";
    sqlite3 *db;
    sqlite3_stmt *statement = NULL;
    (void)orphans; // the lock shows that its holder is gone
    hone_status status = open_to_read(store, &db, err);
    if (status != HONE_OK || db == NULL) return status;
    int code = sqlite3_prepare_v2(db, device != NULL ? of_device : of_all, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, (int64_t)state);
        sqlite3_bind_int64(statement, 2, limit > INT64_MAX ? INT64_MAX : (int64_t)limit);
        if (device != NULL) sqlite3_bind_text(statement, 3, device, -1, SQLITE_STATIC);
        bool goes_on = true;
        while (status == HONE_OK && goes_on && (code = sqlite3_step(statement)) == SQLITE_ROW) {
            hone_job job;
            bool sound = false;
            status = read_job(store, db, statement, &job, &sound, err);
            if (status == HONE_OK && sound) goes_on = visit(ctx, &job);
        }
    }
    if (status == HONE_OK && code != SQLITE_ROW && code != SQLITE_DONE) status = fail(store, db, code, "read", err);
    sqlite3_finalize(statement);
    return status;
}

static hone_status queue_clear(hone_store *store, const char *device, uint64_t *out_removed, hone_error *err)
{
    sqlite3 *db;
    sqlite3_stmt *statement = NULL;
    hone_status status = open_queue(store, &db, err);
    if (status != HONE_OK) return status;
    int code = sqlite3_prepare_v2(db, "DELETE FROM job WHERE ?1 IS NULL OR device = ?1", -1, &statement, NULL);
    if (code == SQLITE_OK) {
        if (device != NULL) sqlite3_bind_text(statement, 1, device, -1, SQLITE_STATIC);
        code = sqlite3_step(statement);
    }
    if (code == SQLITE_DONE)
        *out_removed = (uint64_t)sqlite3_changes(db);
    else
        status = fail(store, db, code, "drop", err);
    sqlite3_finalize(statement);
    return status;
}

static hone_status queue_count(hone_store *store, const char *device, uint64_t out[3], hone_error *err)
{
    sqlite3 *db;
    sqlite3_stmt *statement = NULL;
    out[0] = out[1] = out[2] = 0;
    hone_status status = open_to_read(store, &db, err);
    if (status != HONE_OK || db == NULL) return status;
    int code = sqlite3_prepare_v2(
        db, "SELECT state, count(*) FROM job WHERE ?1 IS NULL OR device = ?1 GROUP BY state", -1, &statement, NULL);
    if (code == SQLITE_OK && device != NULL) sqlite3_bind_text(statement, 1, device, -1, SQLITE_STATIC);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        const int64_t state = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
        if (state >= 0 && state < 3) out[state] = (uint64_t)sqlite3_column_int64(statement, 1);
    }
    if (code != SQLITE_DONE) status = fail(store, db, code, "count", err);
    sqlite3_finalize(statement);
    return status;
}

const hone_queue_ops hone_sqlite_queue_ops = {queue_add, queue_change, queue_visit, queue_clear, queue_count, NULL};
