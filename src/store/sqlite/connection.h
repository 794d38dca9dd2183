// One SQLite connection: opening it soundly, its statements, its transactions, and its failures in words.
#ifndef HONE_STORE_SQLITE_CONNECTION_H
#define HONE_STORE_SQLITE_CONNECTION_H

#include "base/buffer.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/common/row.h"

#include <sqlite3.h>

// Prepared at first use and kept: opening prepares none.
typedef enum hone_sql {
    HONE_SQL_BEGIN,
    HONE_SQL_COMMIT,
    HONE_SQL_ROLLBACK,
    HONE_SQL_DECISION_GET,
    HONE_SQL_DECISION_PUT,
    HONE_SQL_DECISION_REMOVE,
    HONE_SQL_DECISION_SCAN,
    HONE_SQL_DECISION_SCAN_ANY,
    HONE_SQL_DECISION_CLOSE_GAPS,
    HONE_SQL_DECISION_BEFORE_4,
    HONE_SQL_CALL_FIND,
    HONE_SQL_CALL_ADD,
    HONE_SQL_CALL_REMOVE,
    HONE_SQL_MEASUREMENT_PUT,
    HONE_SQL_MEASUREMENT_DROP,
    HONE_SQL_MEASUREMENT_SCAN,
    HONE_SQL_MEASUREMENT_SCAN_CALL,
    HONE_SQL_MEASUREMENT_REMOVE,
    HONE_SQL_FAILURE_PUT,
    HONE_SQL_FAILURE_DROP,
    HONE_SQL_FAILURE_SCAN,
    HONE_SQL_FAILURE_SCAN_CALL,
    HONE_SQL_FAILURE_REMOVE,
    HONE_SQL_INVOCATION_GET,
    HONE_SQL_INVOCATION_PUT,
    HONE_SQL_INVOCATION_SCAN,
    HONE_SQL_INVOCATION_SCAN_CALL,
    HONE_SQL_INVOCATION_CLEAR,
    HONE_SQL_INVOCATION_EXPIRE,
    HONE_SQL_ALIAS_PUT,
    HONE_SQL_ALIAS_GET,
    HONE_SQL_ALIAS_SCAN,
    HONE_SQL_FOREIGN_PUT,
    HONE_SQL_FOREIGN_GET,
    HONE_SQL_FOREIGN_SCAN,
    HONE_SQL_FOREIGN_CLEAR,
    HONE_SQL_DECISION_DROP,
    HONE_SQL_MEASUREMENT_MOVE,
    HONE_SQL_FAILURE_MOVE,
    HONE_SQL_INVOCATION_DROP,
    HONE_SQL_ALIAS_DROP,
    HONE_SQL_FOREIGN_DROP,
    HONE_SQL_QUARANTINE_PUT,
    HONE_SQL_QUARANTINE_TRIM,
    HONE_SQL_QUARANTINE_DROP,
    HONE_SQL_QUARANTINE_SCAN,
    HONE_SQL_QUARANTINE_CLEAR,
    HONE_SQL_MEASUREMENT_ORPHANS,
    HONE_SQL_MEASUREMENT_ORPHANS_DROP,
    HONE_SQL_FAILURE_ORPHANS,
    HONE_SQL_FAILURE_ORPHANS_DROP,
    HONE_SQL_CHECK,
    HONE_SQL_STAT,
    HONE_SQL_STAT_2,
    HONE_SQL_CHANGES,
    HONE_SQL_COUNT
} hone_sql;

// How long another process is waited for.
enum { HONE_CONNECTION_PATIENCE_MS = 5000 };

// The schema that is written, and the first ones that have these tables, and decisions under numbers (place.h).
enum { HONE_SQL_SCHEMA = 5, HONE_SQL_FOREIGN_SCHEMA = 2, HONE_SQL_QUARANTINE_SCHEMA = 2, HONE_SQL_PLACE_SCHEMA = 4 };

typedef struct hone_connection {
    hone_allocator allocator;
    hone_log log;
    char *path; // as given, for messages
    sqlite3 *db;
    uint32_t depth; // of transactions: one inside another is part of it
    int schema;     // of the file: an older one that cannot be written stays as it is
    bool read_only;
    bool is_fixed;       // opened for reading alone: never opened anew
    bool is_full;        // the last opening failed for want of room on the disk
    bool hopeless;       // nothing could be carried over from its damaged file
    bool told;           // that damaged records cannot be set aside
    uint64_t moved;      // records that were
    uint64_t opened;     // how often its file was opened
    int folder;          // the file's, open; -1: none, or one that other machines change
    int64_t still_since; // its last change, as of the last check that found the file at its path (moved.c)
    sqlite3_stmt *statements[HONE_SQL_COUNT];
} hone_connection;

// The text of a statement for a file of a schema (statements.c).
const char *hone_sql_text(hone_sql id, int schema);
// What makes schema number version out of the one before; 0 is a file without tables (schema.c).
const char *hone_sql_schema(int version);
// How many tables a file of that schema has, and whether the text of one is, word for word, what hone makes.
int hone_sql_table_count(int version);
bool hone_sql_is_table(const char *sql, int version);

// Opens the file at path, with its folders, creates the tables of a new one and those that an older schema lacks
// (open.c).
// A database of something else, or of a newer schema, is left as it was (HONE_INCOMPATIBLE). A file that is no
// database, or is too damaged to open, is moved aside and a new one begun (aside.c), which is logged.
hone_status hone_connection_open(
    hone_connection *connection,
    const hone_allocator *allocator,
    const hone_log *log,
    const char *path,
    hone_error *err);
// A file that is there, never written (hone_store_options.read_only).
hone_status hone_connection_open_read_only(
    hone_connection *connection,
    const hone_allocator *allocator,
    const hone_log *log,
    const char *path,
    hone_error *err);
// A path as SQLite's URI: every byte that could mean something else as %XX. query: "", or such as "?immutable=1".
void hone_sqlite_put_uri(hone_buffer *out, const char *path, const char *query);
// Whether a WAL of at least so many bytes lies beside a file.
bool hone_sqlite_has_wal(hone_allocator allocator, const char *file, uint64_t least);
// Opens the file that lies under the name now, which may be another than before. On failure there is no file, and
// queries say so until it is called again.
hone_status hone_connection_reopen(hone_connection *connection, hone_error *err);
// Whether another file lies under the name: somebody moved the one that is open aside. Also when none is open
// (moved.c).
bool hone_connection_is_moved(hone_connection *connection);
// Makes that cheap for a file that was opened.
void hone_connection_watch(hone_connection *connection);
void hone_connection_close(hone_connection *connection);
// Closes the file, so that it can be opened again.
void hone_connection_drop(hone_connection *connection);

// Says what SQLite answered: "PATH: operation: SQLite's words; what to do". code is SQLite's, system_code gets it.
hone_status hone_connection_fail(
    const hone_connection *connection, int code, const char *where, const char *operation, hone_error *err);

// Runs statements that have no parameters and no rows.
hone_status hone_connection_execute(
    hone_connection *connection, const char *sql, const char *operation, const char *where, hone_error *err);

// A statement in use: from hone_query_begin to hone_query_end, which also tells how it went.
typedef struct hone_query {
    hone_connection *connection;
    sqlite3_stmt *statement;
    int code;          // SQLITE_OK, or the first failure
    int bound;         // parameters so far
    const char *where; // of failures
} hone_query;

void hone_query_begin(hone_query *query, hone_connection *connection, hone_sql id, const char *where);
// Parameters are bound in order; texts must live until the query ends. NULL binds NULL.
void hone_query_text(hone_query *query, const char *text);
void hone_query_integer(hone_query *query, int64_t integer);
void hone_query_value(hone_query *query, const sqlite3_value *value);
// All cells of a row from index first on.
void hone_query_cells(hone_query *query, const hone_row *row, size_t first);
// The next row; false at the end and after a failure.
bool hone_query_step(hone_query *query);
// A column of a statement's row. False when there was no memory for its text.
bool hone_cell_of_column(sqlite3_stmt *statement, int index, hone_cell *out);
// The current row. False when there was no memory, which the query then fails with. Its texts live until the next step.
bool hone_query_read(hone_query *query, const hone_row_shape *shape, hone_row *out);
// The same of a row whose next column is the checksum of all others, and, of a decision, the one behind it its number,
// or NULL. HONE_OK; HONE_OUT_OF_MEMORY; HONE_CORRUPT when it was not written so, with the reason: "does not match its
// checksum".
hone_status hone_query_row(hone_query *query, const hone_row_shape *shape, hone_row *out, const char **out_reason);
// Resets the statement, so that no transaction stays open behind it.
hone_status hone_query_end(hone_query *query, const char *operation, hone_error *err);
// Steps to the end and ends.
hone_status hone_query_run(hone_query *query, const char *operation, hone_error *err);

// BEGIN IMMEDIATE; and COMMIT when status is HONE_OK, else ROLLBACK. end returns status, or why the commit failed.
hone_status hone_connection_begin(hone_connection *connection, const char *where, hone_error *err);
// The same without waiting for another writer.
hone_status hone_connection_try_begin(hone_connection *connection, const char *where);
hone_status hone_connection_end(hone_connection *connection, hone_status status, const char *where, hone_error *err);

#endif
