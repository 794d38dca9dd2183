// Opening, statements, transactions, and words for what SQLite answers.
#include "store/sqlite/connection.h"

#include "base/buffer.h"
#include "base/error.h"
#include "os/os.h"
#include "store/ops.h"

#include <stdlib.h>
#include <string.h>

enum {
    BUSY_TIMEOUT_MS = 5000,
    APPLICATION_ID = 0x686f6e65 // "hone", in the file's header
};

// Failures -----------------------------------------------------------------------------------------------------

typedef struct answer {
    int code; // SQLite's primary result code
    hone_status status;
    const char *advice;
} answer;

static const answer answers[] = {
    {SQLITE_BUSY, HONE_BUSY, "another process holds it: try again, or give each its own store"},
    {SQLITE_LOCKED, HONE_BUSY, "another process holds it: try again"},
    {SQLITE_NOMEM, HONE_OUT_OF_MEMORY, "free memory and try again"},
    {SQLITE_NOTADB, HONE_CORRUPT, "it was left as it was: move it away, and a new store is made"},
    {SQLITE_CORRUPT, HONE_CORRUPT, "it was left as it was: move it away, and a new store is made"},
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
    hone_fail(err, known->status, where, "%s: %s: %s; %s", connection->path, operation, words, known->advice);
    if (err != NULL) err->system_code = code;
    return known->status;
}

// Queries ------------------------------------------------------------------------------------------------------

void hone_query_begin(hone_query *query, hone_connection *connection, hone_sql id, const char *where)
{
    *query = (hone_query){.connection = connection, .code = SQLITE_OK, .where = where};
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

// False when there was no memory for the text.
static bool read_cell(sqlite3_stmt *statement, int index, hone_cell *out)
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

static const char *cell_words(const hone_row *row, size_t index)
{
    return row->cells[index].kind == HONE_CELL_TEXT ? row->cells[index].as.text : "?";
}

hone_status hone_query_row(hone_query *query, const hone_row_shape *shape, hone_row *out, hone_error *err)
{
    out->count = shape->count;
    out->first_count = shape->first_count;
    for (size_t i = 0; i < shape->count; i++)
        if (!read_cell(query->statement, (int)i, &out->cells[i])) return hone_fail_memory(err, query->where);
    int64_t checksum = sqlite3_column_int64(query->statement, (int)shape->count);
    if ((uint64_t)checksum == hone_row_checksum(out)) return HONE_OK;
    // Four texts begin the key of the widest records, three that of an alias.
    return hone_fail(
        err, HONE_CORRUPT, query->where,
        "%s: the %s record of '%s' '%s' '%s' does not match its checksum; it was left as it was: remove it or put it "
        "anew",
        query->connection->path, shape->name, cell_words(out, 0), cell_words(out, 1), cell_words(out, 2));
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

// Transactions -------------------------------------------------------------------------------------------------

static hone_status run_plain(
    hone_connection *connection, hone_sql id, const char *operation, const char *where, hone_error *err)
{
    hone_query query;
    hone_query_begin(&query, connection, id, where);
    return hone_query_run(&query, operation, err);
}

hone_status hone_connection_begin(hone_connection *connection, const char *where, hone_error *err)
{
    hone_status status = connection->depth > 0 ? HONE_OK : run_plain(connection, HONE_SQL_BEGIN, "begin", where, err);
    connection->depth += status == HONE_OK;
    return status;
}

hone_status hone_connection_end(hone_connection *connection, hone_status status, const char *where, hone_error *err)
{
    if (--connection->depth > 0) return status;
    if (status == HONE_OK) status = run_plain(connection, HONE_SQL_COMMIT, "commit", where, err);
    // Some failures have ended the transaction already; a second rollback would only hide their words.
    if (status != HONE_OK && !sqlite3_get_autocommit(connection->db))
        (void)run_plain(connection, HONE_SQL_ROLLBACK, "rollback", where, NULL);
    return status;
}

// Opening ------------------------------------------------------------------------------------------------------

static const char open_where[] = "store.sqlite.open";

static hone_status execute(hone_connection *connection, const char *sql, const char *operation, hone_error *err)
{
    int code = sqlite3_exec(connection->db, sql, NULL, NULL, NULL);
    if (code == SQLITE_OK) return HONE_OK;
    return hone_connection_fail(connection, code, open_where, operation, err);
}

// The integer that a query answers with.
static hone_status read_integer(hone_connection *connection, const char *sql, int64_t *out, hone_error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(connection->db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) code = sqlite3_step(statement);
    hone_status status = HONE_OK;
    if (code == SQLITE_ROW)
        *out = sqlite3_column_int64(statement, 0);
    else
        status = hone_connection_fail(connection, code, open_where, "read the header", err);
    sqlite3_finalize(statement);
    return status;
}

static hone_status read_sync(const char **out_pragma, hone_error *err)
{
    static const struct {
        const char *name, *pragma;
    } levels[] = {{"normal", "PRAGMA synchronous=NORMAL"}, {"full", "PRAGMA synchronous=FULL"}};
    const char *name = getenv("HONE_STORE_SYNC");
    if (name == NULL || name[0] == '\0') name = levels[0].name;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (strcmp(name, levels[i].name) != 0) continue;
        *out_pragma = levels[i].pragma;
        return HONE_OK;
    }
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, open_where, "HONE_STORE_SYNC is '%s': normal or full is asked for", name);
}

// Another process that opens the same new file at the same time makes SQLite answer busy without waiting.
static int journal_wal(hone_connection *connection)
{
    const uint64_t deadline = hone_os_now_ns() + (uint64_t)BUSY_TIMEOUT_MS * 1000000;
    for (;;) {
        int code = sqlite3_exec(connection->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL);
        if ((code & 0xff) != SQLITE_BUSY || hone_os_now_ns() > deadline) return code;
        hone_os_sleep_ns(1000000);
    }
}

// Refuses what is not hone's or is newer. *out_version is 0 for a file without tables.
static hone_status check_schema(hone_connection *connection, int64_t *out_version, hone_error *err)
{
    int64_t application = 0, tables = 0;
    hone_status status = read_integer(connection, "PRAGMA user_version", out_version, err);
    if (status == HONE_OK) status = read_integer(connection, "PRAGMA application_id", &application, err);
    if (status == HONE_OK && application != APPLICATION_ID)
        status = read_integer(connection, "SELECT count(*) FROM sqlite_master", &tables, err);
    if (status != HONE_OK) return status;
    if (application != APPLICATION_ID && (tables != 0 || application != 0 || *out_version != 0))
        return hone_fail(
            err, HONE_INCOMPATIBLE, open_where,
            "%s: an SQLite database of something else; it was left as it was: name another path", connection->path);
    if (*out_version > HONE_STORE_SCHEMA)
        return hone_fail(
            err, HONE_INCOMPATIBLE, open_where,
            "%s: its schema is %lld and this hone knows up to %d; it was left as it was: use the newer hone, or name "
            "another path",
            connection->path, (long long)*out_version, (int)HONE_STORE_SCHEMA);
    return HONE_OK;
}

// In one read transaction: another process may be making the tables between two looks.
static hone_status look_at_schema(hone_connection *connection, int64_t *out_version, hone_error *err)
{
    hone_status status = execute(connection, "BEGIN", "read the header", err);
    if (status != HONE_OK) return status;
    status = check_schema(connection, out_version, err);
    // Ends a transaction that only read: it has nothing to lose, and the words of a refusal are kept.
    hone_status ended = execute(connection, "ROLLBACK", "read the header", status == HONE_OK ? err : NULL);
    return status != HONE_OK ? status : ended;
}

static hone_status write_version(hone_connection *connection, bool is_new, hone_error *err)
{
    char *pragmas = sqlite3_mprintf(
        "INSERT OR REPLACE INTO meta VALUES('schema', '%d'), ('%s', 'hone %q');"
        "PRAGMA application_id=%d; PRAGMA user_version=%d;",
        (int)HONE_STORE_SCHEMA, is_new ? "created_by" : "migrated_by", hone_version(), (int)APPLICATION_ID,
        (int)HONE_STORE_SCHEMA);
    if (pragmas == NULL) return hone_fail_memory(err, open_where);
    hone_status status = execute(connection, pragmas, "write the schema's version", err);
    sqlite3_free(pragmas);
    return status;
}

static hone_status write_schema(hone_connection *connection, int from, hone_error *err)
{
    hone_status status = HONE_OK;
    for (int version = from + 1; status == HONE_OK && version <= HONE_STORE_SCHEMA; version++)
        status = execute(connection, hone_sql_schema(version), "create the tables", err);
    return status == HONE_OK ? write_version(connection, from == 0, err) : status;
}

// Makes the tables of a new file, or those that an older one lacks, in one transaction. Looks again under the write
// lock: another process may have made them meanwhile.
static hone_status update_schema(hone_connection *connection, hone_error *err)
{
    int64_t version = 0;
    hone_status status = hone_connection_begin(connection, open_where, err);
    if (status != HONE_OK) return status;
    status = check_schema(connection, &version, err);
    if (status == HONE_OK && version < HONE_STORE_SCHEMA) status = write_schema(connection, (int)version, err);
    status = hone_connection_end(connection, status, open_where, err);
    if (status == HONE_OK) connection->schema = HONE_STORE_SCHEMA;
    return status;
}

static hone_status make_folders(const char *path, const hone_allocator *allocator, hone_error *err)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path) return HONE_OK;
    char *folder = hone_copy_text(allocator, path, (size_t)(slash - path));
    if (folder == NULL) return hone_fail_memory(err, open_where);
    hone_status status = hone_os_make_folders(folder, err);
    hone_free(allocator, folder);
    return status;
}

static hone_status open_file(hone_connection *connection, hone_error *err)
{
    hone_buffer name;
    hone_buffer_init(&name, connection->allocator);
    // "./" keeps SQLite from reading a path like ":memory:" as something else.
    if (connection->path[0] != '/') hone_buffer_text(&name, "./");
    hone_buffer_text(&name, connection->path);
    hone_status status = name.failed ? hone_fail_memory(err, open_where) : HONE_OK;
    if (status == HONE_OK) {
        // No mutex of SQLite's: the store has its own.
        int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
        int code = sqlite3_open_v2(hone_buffer_string(&name), &connection->db, flags, NULL);
        if (code != SQLITE_OK) status = hone_connection_fail(connection, code, open_where, "open", err);
    }
    hone_buffer_deinit(&name);
    if (status == HONE_OK) sqlite3_busy_timeout(connection->db, BUSY_TIMEOUT_MS);
    return status;
}

static hone_status prepare_file(hone_connection *connection, const char *sync, hone_error *err)
{
    int64_t version = 0;
    hone_status status = look_at_schema(connection, &version, err);
    if (status != HONE_OK) return status;
    connection->schema = (int)version;
    bool read_only = sqlite3_db_readonly(connection->db, "main") == 1;
    int code = read_only ? SQLITE_OK : journal_wal(connection);
    if (code != SQLITE_OK) return hone_connection_fail(connection, code, open_where, "switch to WAL", err);
    status = execute(connection, sync, "set synchronous", err);
    if (status != HONE_OK || version == HONE_STORE_SCHEMA || (read_only && version > 0)) return status;
    return update_schema(connection, err);
}

hone_status hone_connection_open(
    hone_connection *connection, const hone_allocator *allocator, const char *path, hone_error *err)
{
    *connection = (hone_connection){.allocator = *allocator};
    if (path[0] == '\0')
        return hone_fail(err, HONE_INVALID_ARGUMENT, open_where, "'sqlite:' has no path: write sqlite:PATH");
    const char *sync = NULL;
    hone_status status = read_sync(&sync, err);
    if (status != HONE_OK) return status;
    connection->path = hone_copy_text(allocator, path, strlen(path));
    if (connection->path == NULL) return hone_fail_memory(err, open_where);
    status = make_folders(path, allocator, err);
    if (status == HONE_OK) status = open_file(connection, err);
    if (status == HONE_OK) status = prepare_file(connection, sync, err);
    if (status != HONE_OK) hone_connection_close(connection);
    return status;
}

void hone_connection_close(hone_connection *connection)
{
    for (int i = 0; i < HONE_SQL_COUNT; i++)
        sqlite3_finalize(connection->statements[i]);
    sqlite3_close(connection->db);
    hone_free(&connection->allocator, connection->path);
    *connection = (hone_connection){.allocator = connection->allocator};
}
