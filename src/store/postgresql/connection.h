// One connection to a server: opened, lost and opened again, with statements that are prepared on it when they are first
// run.
#ifndef HONE_STORE_POSTGRESQL_CONNECTION_H
#define HONE_STORE_POSTGRESQL_CONNECTION_H

#include "base/log.h"
#include "store/postgresql/library.h"
#include "store/postgresql/sql.h"

enum { HONE_PG_NAME_SIZE = 64, HONE_PG_PARAMETERS = HONE_ROW_CELLS + 3, HONE_PG_STATEMENT_SIZE = 32 };

typedef struct hone_pg_connection {
    hone_allocator allocator;
    const hone_log *log;
    hone_pq pq;
    PGconn *conn;                   // NULL: it rests
    char *address;                  // as libpq takes it
    char schema[HONE_PG_NAME_SIZE]; // of the tables
    uint64_t space;                 // 63 bits: tells the locks of this schema from those of others in the database
    bool read_only;
    uint64_t patience_ns; // for one answer
    int64_t version;      // of the tables
    int depth;            // of transactions
    bool prepared[HONE_PG_TABLES][HONE_PG_VERBS];
    hone_buffer scratch, texts; // texts: of the row that was read last
    uint64_t moved;             // rows that were set aside
    uint64_t sessions;          // that were made
    uint64_t heard;             // the number of the session that is notified of changes
    bool is_deaf;               // it cannot be told
    uint64_t news;              // how often it was, and how often there was a new session
    uint64_t boot, boot_of;     // when the server began that the session of this number is of; 0: nobody has asked
} hone_pg_connection;

// Parameters of one statement, by binary forms. Texts are borrowed.
typedef struct hone_pg_values {
    int count;
    Oid types[HONE_PG_PARAMETERS];
    const char *texts[HONE_PG_PARAMETERS];
    int sizes[HONE_PG_PARAMETERS];
    int binary[HONE_PG_PARAMETERS];
    char numbers[HONE_PG_PARAMETERS][sizeof(int64_t)];
} hone_pg_values;

void hone_pg_add_text(hone_pg_values *values, const char *text); // NULL is NULL
// An array of texts, written into a buffer that lives as long as values. False: no memory.
bool hone_pg_add_texts(hone_pg_values *values, const char *const *texts, size_t count, hone_buffer *buffer);
void hone_pg_add_integer(hone_pg_values *values, int64_t value);
void hone_pg_add_real(hone_pg_values *values, double value);
void hone_pg_add_cells(hone_pg_values *values, const hone_row *row);

// location: "//USER@HOST/DATABASE?schema=NAME&...", as libpq's URIs but for the schema ("hone" where it is not given).
// Makes the tables where there are none, unless read_only.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (no such URL; a password in it); HONE_UNAVAILABLE (no library, no server);
//          HONE_INCOMPATIBLE (a newer schema, or another application's tables); HONE_IO with the server's words.
hone_status hone_pg_connection_open(
    hone_pg_connection *connection,
    const hone_allocator *allocator,
    const hone_log *log,
    const char *location,
    bool read_only,
    hone_error *err);
// Server, database, user and schema, as libpq finds them in the URL, its variables, services and defaults. No server is
// asked. "": libpq is not there, or does not find them.
void hone_pg_identify(const hone_allocator *allocator, const char *location, char *out, size_t size);
void hone_pg_connection_close(hone_pg_connection *connection);
// Ends the connection, which is made again by the next use.
void hone_pg_connection_rest(hone_pg_connection *connection);
// A connection of its own to the same server, for who holds a lock of its session. The caller finishes it.
hone_status hone_pg_connect(const hone_pg_connection *connection, PGconn **out, const char *where, hone_error *err);

// Runs a prepared statement. *out (may be NULL) is cleared by the caller; of rows that were changed *out_changed (may be
// NULL). A connection that was lost outside of a transaction is made again, once.
// Returns: HONE_OK; HONE_BUSY (the server ended it for the sake of another transaction: do all of it again);
//          HONE_UNAVAILABLE (the server is away); HONE_INCOMPATIBLE (tables that are gone); HONE_IO with the server's words.
hone_status hone_pg_run(
    hone_pg_connection *connection,
    hone_pg_table table,
    hone_pg_verb verb,
    const hone_pg_values *values,
    PGresult **out,
    uint64_t *out_changed,
    const char *where,
    hone_error *err);
// The same for a statement of any text, which is not prepared. values may be NULL.
hone_status hone_pg_execute(
    hone_pg_connection *connection,
    const char *sql,
    const hone_pg_values *values,
    PGresult **out,
    const char *where,
    hone_error *err);

// Makes the connection where it is lost, and the statement. The name that it has there stands in out_name.
hone_status hone_pg_prepare(
    hone_pg_connection *connection,
    hone_pg_table table,
    hone_pg_verb verb,
    char out_name[HONE_PG_STATEMENT_SIZE],
    const char *where,
    hone_error *err);
// The failure that a result tells, in the server's words. NULL: the session is lost, and ends.
hone_status hone_pg_fail(hone_pg_connection *connection, const PGresult *result, const char *where, hone_error *err);

// Takes what other sessions have told of decisions into connection->news, after having asked to be told, without a
// question to the server.
// Returns: HONE_OK; HONE_UNSUPPORTED (nobody tells); HONE_UNAVAILABLE.
hone_status hone_pg_listen(hone_pg_connection *connection, const char *where, hone_error *err);

// Whether there is something to read that PQgetResult gives without waiting. False: the session is lost, or the server
// has not answered until the deadline.
bool hone_pg_await_input(const hone_pq *pq, PGconn *conn, uint64_t deadline_ns);
// What the statement that was sent last on a session gave: its last result, as PQexec. NULL: the session is lost, or the
// server has not answered for too long.
PGresult *hone_pg_await(const hone_pg_connection *connection, PGconn *conn);

// A number in a row of what a prepared statement, or one with values, gave.
uint64_t hone_pg_number_at(const hone_pg_connection *connection, const PGresult *result, int row, int column);
// A number in the first row of what a statement without values gave.
int64_t hone_pg_integer_at(const hone_pg_connection *connection, const PGresult *result, int column);

// Transactions, one in another as one.
hone_status hone_pg_begin(hone_pg_connection *connection, const char *where, hone_error *err);
hone_status hone_pg_end(hone_pg_connection *connection, hone_status status, const char *where, hone_error *err);
// What is done in a transaction of its own, or as a part of one; done again where the server ends it for the sake of
// another one.
enum { HONE_PG_TRIES = 50 };
typedef hone_status hone_pg_work(hone_pg_connection *connection, void *ctx, hone_error *err);
hone_status hone_pg_transact(
    hone_pg_connection *connection, hone_pg_work *does, void *ctx, const char *where, hone_error *err);

#endif
