// Statements, transactions, and words for what SQLite answers.
#include "store/sqlite/connection.h"

#include "base/assert.h"
#include "base/error.h"
#include "os/os.h"
#include "store/sqlite/place.h"

#include <string.h>

// Failures ------------------------------------------------------------------------------------------------------------

typedef struct answer {
    int code; // SQLite's primary result code
    hone_status status;
    const char *advice;
} answer;

static const answer answers[] = {
    {SQLITE_BUSY, HONE_BUSY, "another process holds it: try again, or give each its own store"},
    {SQLITE_LOCKED, HONE_BUSY, "another process holds it: try again"},
    {SQLITE_NOMEM, HONE_OUT_OF_MEMORY, "free memory and try again"},
    {SQLITE_NOTADB, HONE_CORRUPT, "its header is damaged, or it is another program's file"},
    {SQLITE_CORRUPT, HONE_CORRUPT, "hone store verify carries what is sound into a new store"},
    {SQLITE_CANTOPEN, HONE_IO, "check that its folder can be written and that it is a file"},
    {SQLITE_PERM, HONE_IO, "make it readable and writable"},
    {SQLITE_READONLY, HONE_IO, "make the file and its folder writable, or name another store"},
    {SQLITE_FULL, HONE_IO, "free space on its disk"},
    {SQLITE_IOERR, HONE_IO, "check its disk"},
};

static const answer *answer_to(int code)
{
    static const answer other = {0, HONE_IO, "check the file and its disk"};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (answers[i].code == (code & 0xff)) return &answers[i];
    return &other;
}

hone_status hone_connection_fail(
    const hone_connection *connection, int code, const char *where, const char *operation, hone_error *err)
{
    const answer *known = answer_to(code);
    const char *words = sqlite3_errstr(code);
    // The connection's own words say more, as long as they are about this failure.
    if (connection->db != NULL && sqlite3_extended_errcode(connection->db) == code)
        words = sqlite3_errmsg(connection->db);
    int system = connection->db == NULL ? 0 : sqlite3_system_errno(connection->db);
    if (known->status == HONE_IO && system != 0)
        hone_fail_system(
            err, known->status, where, system, "%s: %s: %s; %s", connection->path, operation, words, known->advice);
    else
        hone_fail(err, known->status, where, "%s: %s: %s; %s", connection->path, operation, words, known->advice);
    if (err != NULL) err->system_code = code;
    return known->status;
}

hone_status hone_connection_execute(
    hone_connection *connection, const char *sql, const char *operation, const char *where, hone_error *err)
{
    int code = sqlite3_exec(connection->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? HONE_OK : hone_connection_fail(connection, code, where, operation, err);
}

// Queries -------------------------------------------------------------------------------------------------------------

void hone_query_begin(hone_query *query, hone_connection *connection, hone_sql id, const char *where)
{
    hone_assert(id < HONE_SQL_COUNT && where != NULL);
    *query = (hone_query){.connection = connection, .code = SQLITE_OK, .where = where};
    if (connection->db == NULL) {
        query->code = SQLITE_CORRUPT;
        return;
    }
    if (connection->statements[id] == NULL)
        query->code = sqlite3_prepare_v3(
            connection->db, hone_sql_text(id, connection->schema), -1, SQLITE_PREPARE_PERSISTENT,
            &connection->statements[id], NULL);
    query->statement = connection->statements[id];
}

static void note(hone_query *query, int code)
{
    if (query->code == SQLITE_OK) query->code = code;
}

static void bind_text(hone_query *query, const char *text, size_t size)
{
    if (query->code != SQLITE_OK) return;
    note(query, sqlite3_bind_text64(query->statement, ++query->bound, text, size, SQLITE_STATIC, SQLITE_UTF8));
}

void hone_query_text(hone_query *query, const char *text)
{
    bind_text(query, text, text == NULL ? 0 : strlen(text));
}

void hone_query_integer(hone_query *query, int64_t integer)
{
    if (query->code == SQLITE_OK) note(query, sqlite3_bind_int64(query->statement, ++query->bound, integer));
}

void hone_query_value(hone_query *query, const sqlite3_value *value)
{
    if (query->code == SQLITE_OK) note(query, sqlite3_bind_value(query->statement, ++query->bound, value));
}

static void bind_cell(hone_query *query, const hone_cell *cell)
{
    switch (cell->kind) {
    case HONE_CELL_NULL:
        bind_text(query, NULL, 0);
        break;
    case HONE_CELL_TEXT:
        bind_text(query, cell->as.text, cell->size);
        break;
    case HONE_CELL_INTEGER:
        hone_query_integer(query, cell->as.integer);
        break;
    case HONE_CELL_REAL:
        if (query->code == SQLITE_OK) note(query, sqlite3_bind_double(query->statement, ++query->bound, cell->as.real));
        break;
    }
}

void hone_query_cells(hone_query *query, const hone_row *row, size_t first)
{
    hone_assert(first <= row->count && row->count <= HONE_ROW_CELLS);
    for (size_t i = first; i < row->count; i++)
        bind_cell(query, &row->cells[i]);
}

bool hone_query_step(hone_query *query)
{
    if (query->code != SQLITE_OK) return false;
    int code = sqlite3_step(query->statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE) query->code = code;
    return code == SQLITE_ROW;
}

bool hone_cell_of_column(sqlite3_stmt *statement, int index, hone_cell *out)
{
    *out = (hone_cell){0};
    switch (sqlite3_column_type(statement, index)) {
    case SQLITE_TEXT:
        out->kind = HONE_CELL_TEXT;
        out->as.text = (const char *)sqlite3_column_text(statement, index);
        out->size = (size_t)sqlite3_column_bytes(statement, index);
        return out->as.text != NULL;
    case SQLITE_INTEGER:
        out->kind = HONE_CELL_INTEGER;
        out->as.integer = sqlite3_column_int64(statement, index);
        return true;
    case SQLITE_FLOAT:
        out->kind = HONE_CELL_REAL;
        out->as.real = sqlite3_column_double(statement, index);
        return true;
    default: // NULL, or a blob, which hone never writes and whose checksum fails
        return true;
    }
}

bool hone_query_read(hone_query *query, const hone_row_shape *shape, hone_row *out)
{
    out->count = shape->count;
    out->first_count = shape->first_count;
    for (size_t i = 0; i < shape->count; i++) {
        if (hone_cell_of_column(query->statement, (int)i, &out->cells[i])) continue;
        note(query, SQLITE_NOMEM);
        return false;
    }
    return true;
}

// Decisions of before schema 4 stand under no number.
static bool is_in_place(const hone_query *query, const hone_row *decision)
{
    const int number_at = (int)decision->count + 1;
    return sqlite3_column_type(query->statement, number_at) == SQLITE_NULL ||
           hone_place_has(hone_place_of(decision), sqlite3_column_int64(query->statement, number_at));
}

hone_status hone_query_row(hone_query *query, const hone_row_shape *shape, hone_row *out, const char **out_reason)
{
    if (!hone_query_read(query, shape, out)) return HONE_OUT_OF_MEMORY;
    int64_t checksum = sqlite3_column_int64(query->statement, (int)shape->count);
    *out_reason = "does not match its checksum";
    if ((uint64_t)checksum != hone_row_checksum(out)) return HONE_CORRUPT;
    *out_reason = "stands under a number that is not its key's";
    return shape != &hone_row_decision || is_in_place(query, out) ? HONE_OK : HONE_CORRUPT;
}

hone_status hone_query_end(hone_query *query, const char *operation, hone_error *err)
{
    hone_status status = HONE_OK;
    // Words first: the reset below clears them.
    if (query->code != SQLITE_OK)
        status = hone_connection_fail(query->connection, query->code, query->where, operation, err);
    if (query->statement != NULL) sqlite3_reset(query->statement);
    return status;
}

hone_status hone_query_run(hone_query *query, const char *operation, hone_error *err)
{
    while (hone_query_step(query))
        continue;
    return hone_query_end(query, operation, err);
}

// Transactions --------------------------------------------------------------------------------------------------------

static hone_status run_plain(
    hone_connection *connection, hone_sql id, const char *operation, const char *where, hone_error *err)
{
    hone_query query;
    hone_query_begin(&query, connection, id, where);
    return hone_query_run(&query, operation, err);
}

// HONE_UNAVAILABLE: the file was moved aside before the lock was there, and who writes to it now is not read.
static hone_status lock_for_writing(hone_connection *connection, const char *where, hone_error *err)
{
    hone_status status = run_plain(connection, HONE_SQL_BEGIN, "begin", where, err);
    if (status != HONE_OK || !hone_connection_is_moved(connection)) return status;
    (void)!run_plain(connection, HONE_SQL_ROLLBACK, "rollback", where, NULL);
    return HONE_UNAVAILABLE;
}

// BEGIN IMMEDIATE takes the write lock at once: a transaction that began as a reader and then writes can be refused
// halfway (SQLITE_BUSY, sqlite.org/lang_transaction.html, 2.2), with nothing to do but to begin again. A file that was
// moved aside while the lock was waited for is locked in vain, so its successor is opened and locked.
hone_status hone_connection_begin(hone_connection *connection, const char *where, hone_error *err)
{
    enum { TRIES = 3 };
    hone_status status = connection->depth > 0 ? HONE_OK : lock_for_writing(connection, where, err);
    for (int i = 0; i < TRIES && status == HONE_UNAVAILABLE; i++) {
        status = hone_connection_reopen(connection, err);
        if (status == HONE_OK) status = lock_for_writing(connection, where, err);
    }
    if (status == HONE_UNAVAILABLE)
        status = hone_fail(err, HONE_BUSY, where, "%s: it is moved again and again: try later", connection->path);
    connection->depth += status == HONE_OK;
    return status;
}

hone_status hone_connection_try_begin(hone_connection *connection, const char *where)
{
    hone_assert(connection->db != NULL);
    sqlite3_busy_timeout(connection->db, 0);
    hone_status status = connection->depth > 0 ? HONE_OK : lock_for_writing(connection, where, NULL);
    sqlite3_busy_timeout(connection->db, HONE_CONNECTION_PATIENCE_MS);
    connection->depth += status == HONE_OK;
    return status;
}

hone_status hone_connection_end(hone_connection *connection, hone_status status, const char *where, hone_error *err)
{
    hone_assert(connection->depth > 0);
    if (--connection->depth > 0) return status;
    if (status == HONE_OK) status = run_plain(connection, HONE_SQL_COMMIT, "commit", where, err);
    // Some failures have ended the transaction already; a second rollback would only hide their words.
    if (status != HONE_OK && !sqlite3_get_autocommit(connection->db))
        (void)run_plain(connection, HONE_SQL_ROLLBACK, "rollback", where, NULL);
    return status;
}

// Closing -------------------------------------------------------------------------------------------------------------

void hone_connection_drop(hone_connection *connection)
{
    for (int i = 0; i < HONE_SQL_COUNT; i++) {
        sqlite3_finalize(connection->statements[i]);
        connection->statements[i] = NULL;
    }
    sqlite3_close(connection->db);
    connection->db = NULL;
    hone_os_folder_close(&connection->folder);
}

void hone_connection_close(hone_connection *connection)
{
    hone_connection_drop(connection);
    hone_free(&connection->allocator, connection->path);
    *connection = (hone_connection){.allocator = connection->allocator, .folder = -1};
}
