#include "store/postgresql/connection.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "store/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Of pg_type.
enum { OID_BIGINT = 20, OID_DOUBLE = 701, OID_BYTEA = 17, OID_BYTEAS = 1001 };

static const char open_where[] = "store.postgresql.open";
static const char default_schema[] = "hone";
// For one answer of the server, where the URL's connect_timeout does not say.
enum { PATIENCE_SECONDS = 30 };

// Parameters ----------------------------------------------------------------------------------------------------------

static void add(hone_pg_values *values, Oid type, const char *bytes, size_t size)
{
    const int at = values->count++;
    hone_assert(at < HONE_PG_PARAMETERS);
    values->types[at] = type;
    values->texts[at] = bytes;
    values->sizes[at] = (int)size;
    values->binary[at] = 1;
}

void hone_pg_add_text(hone_pg_values *values, const char *text)
{
    add(values, OID_BYTEA, text, text != NULL ? strlen(text) : 0);
}

static void append_number(hone_buffer *buffer, uint32_t number)
{
    const char bytes[] = {(char)(number >> 24), (char)(number >> 16), (char)(number >> 8), (char)number};
    hone_buffer_append(buffer, bytes, sizeof bytes);
}

// As PostgreSQL sends arrays: dimensions, whether there are nulls, the type, size and first index, then the items.
bool hone_pg_add_texts(hone_pg_values *values, const char *const *texts, size_t count, hone_buffer *buffer)
{
    const uint32_t head[] = {1, 0, OID_BYTEA, (uint32_t)count, 1};
    hone_buffer_clear(buffer);
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        append_number(buffer, head[i]);
    for (size_t i = 0; i < count; i++) {
        append_number(buffer, (uint32_t)strlen(texts[i]));
        hone_buffer_text(buffer, texts[i]);
    }
    add(values, OID_BYTEAS, buffer->data, buffer->size);
    return !buffer->failed;
}

// Numbers go over the wire with their highest byte first.
static void add_number(hone_pg_values *values, Oid type, uint64_t bits)
{
    char *number = values->numbers[values->count];
    for (int i = 0; i < 8; i++)
        number[i] = (char)(bits >> (56 - 8 * i));
    add(values, type, number, sizeof bits);
}

void hone_pg_add_integer(hone_pg_values *values, int64_t value)
{
    add_number(values, OID_BIGINT, (uint64_t)value);
}

void hone_pg_add_real(hone_pg_values *values, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_number(values, OID_DOUBLE, bits);
}

static void add_cell(hone_pg_values *values, const hone_cell *cell)
{
    switch (cell->kind) {
    case HONE_CELL_NULL:
        hone_pg_add_text(values, NULL);
        return;
    case HONE_CELL_TEXT:
        add(values, OID_BYTEA, cell->as.text, cell->size);
        return;
    case HONE_CELL_INTEGER:
        hone_pg_add_integer(values, cell->as.integer);
        return;
    case HONE_CELL_REAL:
        hone_pg_add_real(values, cell->as.real);
        return;
    }
}

void hone_pg_add_cells(hone_pg_values *values, const hone_row *row)
{
    for (size_t i = 0; i < row->count; i++)
        add_cell(values, &row->cells[i]);
}

// Failures ------------------------------------------------------------------------------------------------------------

static bool is_state(const char *state, const char *beginning)
{
    return state != NULL && strncmp(state, beginning, strlen(beginning)) == 0;
}

// Without a state it was libpq that failed: the connection is gone, whatever it says of it yet.
static hone_status status_of(const char *state)
{
    if (state == NULL) return HONE_UNAVAILABLE;
    if (is_state(state, "40")) return HONE_BUSY;                                        // rolled back, deadlock
    if (is_state(state, "42P01") || is_state(state, "42703")) return HONE_INCOMPATIBLE; // no such table, column
    if (is_state(state, "08") || is_state(state, "57P")) return HONE_UNAVAILABLE;       // connection, shut down
    if (is_state(state, "53")) return HONE_UNAVAILABLE; // its disk is full, no memory, no more sessions
    return HONE_IO;
}

// The server's words, on one line.
static hone_status fail(const char *words, const char *state, const char *where, hone_error *err)
{
    char line[400];
    size_t size = 0;
    for (const char *at = words; *at != '\0' && size + 1 < sizeof line; at++)
        line[size++] = (unsigned char)*at < ' ' ? ' ' : *at;
    while (size > 0 && line[size - 1] == ' ')
        size--;
    line[size] = '\0';
    return hone_fail(err, status_of(state), where, "the server of the store: %s", line);
}

// Without a result the session is lost, or nobody knows what it still waits for.
hone_status hone_pg_fail(hone_pg_connection *c, const PGresult *result, const char *where, hone_error *err)
{
    const char *state = result != NULL ? c->pq.PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *primary = result != NULL ? c->pq.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    const char *words = primary != NULL  ? primary // without the statement, which is hone's
                        : result != NULL ? c->pq.PQresultErrorMessage(result)
                                         : c->pq.PQerrorMessage(c->conn);
    if (result == NULL && words[0] == '\0') words = "no answer came in time";
    hone_status status = fail(words, state, where, err);
    if (status == HONE_INCOMPATIBLE && err != NULL) {
        const hone_error told = *err;
        status = hone_fail(
            err, status, where, "%.500s: the tables of the schema '%s' are not as hone made them", told.message,
            c->schema);
    }
    if (result == NULL) hone_pg_connection_rest(c);
    return status;
}

// Connecting ----------------------------------------------------------------------------------------------------------

static void say_nothing(void *ctx, const char *message)
{
    (void)ctx;
    (void)message;
}

// Before there is a session libpq tells no state, but the server's words. One that answers so is not away: nothing
// changes by waiting.
static bool is_refusal(const char *words)
{
    static const char *const refusals[] = {"authentication failed",   "does not exist",
                                           "no pg_hba.conf entry",    "no password supplied",
                                           "not permitted to log in", "permission denied for database"};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (strstr(words, refusals[i]) != NULL) return true;
    return false;
}

hone_status hone_pg_connect(const hone_pg_connection *c, PGconn **out, const char *where, hone_error *err)
{
    static const char *const names[] = {"fallback_application_name", "connect_timeout", "dbname", NULL};
    const char *const values[] = {"hone", "10", c->address, NULL};
    PGconn *conn = c->pq.PQconnectdbParams(names, values, 1);
    *out = NULL;
    if (conn == NULL) return hone_fail_memory(err, where);
    if (c->pq.PQstatus(conn) != CONNECTION_OK) {
        const char *words = c->pq.PQerrorMessage(conn);
        hone_status status = fail(words, NULL, where, err);
        if (err != NULL && strstr(words, "password") != NULL) {
            hone_error told = *err;
            status = hone_fail(
                err, status, where, "%.400s: libpq takes passwords from PGPASSWORD, ~/.pgpass or a service file",
                told.message);
        }
        if (err != NULL && is_refusal(words)) err->system_code = HONE_STORE_REFUSED;
        c->pq.PQfinish(conn);
        return status;
    }
    (void)c->pq.PQsetNoticeProcessor(conn, say_nothing, NULL);
    *out = conn;
    return HONE_OK;
}

static hone_status set_up_session(hone_pg_connection *c, const char *where, hone_error *err)
{
    char sql[256];
    char *schema = c->pq.PQescapeIdentifier(c->conn, c->schema, strlen(c->schema));
    if (schema == NULL) return hone_fail_memory(err, where);
    // Who runs the server may have made it, or the user, one that only reads: that stands.
    snprintf(
        sql, sizeof sql, "SET search_path TO %s%s", schema,
        c->read_only ? "; SET default_transaction_read_only TO on" : "");
    c->pq.PQfreemem(schema);
    PGresult *result = c->pq.PQsendQuery(c->conn, sql) ? hone_pg_await(c, c->conn) : NULL;
    hone_status status = HONE_OK;
    if (c->pq.PQresultStatus(result) != PGRES_COMMAND_OK) status = hone_pg_fail(c, result, where, err);
    c->pq.PQclear(result);
    return status;
}

static hone_status connect_again(hone_pg_connection *c, const char *where, hone_error *err)
{
    hone_pg_connection_rest(c);
    hone_status status = hone_pg_connect(c, &c->conn, where, err);
    if (status == HONE_OK) status = set_up_session(c, where, err);
    c->sessions++;
    if (status != HONE_OK) hone_pg_connection_rest(c);
    return status;
}

static hone_status be_connected(hone_pg_connection *c, const char *where, hone_error *err)
{
    if (c->conn != NULL && c->pq.PQstatus(c->conn) == CONNECTION_OK) return HONE_OK;
    if (c->depth == 0) return connect_again(c, where, err);
    return hone_fail(err, HONE_UNAVAILABLE, where, "the connection to the store's server was lost in a transaction");
}

void hone_pg_connection_rest(hone_pg_connection *c)
{
    if (c->conn != NULL) c->pq.PQfinish(c->conn);
    c->conn = NULL;
    memset(c->prepared, 0, sizeof c->prepared);
}

// Answers -------------------------------------------------------------------------------------------------------------

// A server that has stopped without closing its connections would be waited for without an end.
bool hone_pg_await_input(const hone_pq *pq, PGconn *conn, uint64_t deadline_ns)
{
    while (pq->PQisBusy(conn)) {
        const uint64_t now = hone_os_now_ns();
        if (now >= deadline_ns || !hone_fd_await_readable(pq->PQsocket(conn), deadline_ns - now)) return false;
        if (!pq->PQconsumeInput(conn)) return pq->PQstatus(conn) == CONNECTION_OK;
    }
    return true;
}

PGresult *hone_pg_await(const hone_pg_connection *c, PGconn *conn)
{
    const hone_pq *pq = &c->pq;
    const uint64_t deadline_ns = hone_os_now_ns() + c->patience_ns;
    PGresult *last = NULL;
    for (;;) {
        if (!hone_pg_await_input(pq, conn, deadline_ns)) {
            pq->PQclear(last);
            return NULL;
        }
        PGresult *next = pq->PQgetResult(conn);
        if (next == NULL) return last;
        // Of several the first that failed counts.
        const int status = last != NULL ? pq->PQresultStatus(last) : PGRES_TUPLES_OK;
        if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
            pq->PQclear(next);
            continue;
        }
        pq->PQclear(last);
        last = next;
    }
}

// Statements ----------------------------------------------------------------------------------------------------------

static bool is_good(int status)
{
    return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

static hone_status prepare(
    hone_pg_connection *c, hone_pg_table table, hone_pg_verb verb, const char *name, const char *where, hone_error *err)
{
    if (c->prepared[table][verb]) return HONE_OK;
    hone_buffer_clear(&c->scratch);
    hone_pg_write_sql(table, verb, &c->scratch);
    if (c->scratch.failed) return hone_fail_memory(err, where);
    PGresult *result = NULL;
    if (c->pq.PQsendPrepare(c->conn, name, hone_buffer_string(&c->scratch), 0, NULL))
        result = hone_pg_await(c, c->conn);
    hone_status status = HONE_OK;
    if (c->pq.PQresultStatus(result) != PGRES_COMMAND_OK) status = hone_pg_fail(c, result, where, err);
    c->pq.PQclear(result);
    c->prepared[table][verb] = status == HONE_OK;
    return status;
}

hone_status hone_pg_prepare(
    hone_pg_connection *c,
    hone_pg_table table,
    hone_pg_verb verb,
    char out_name[HONE_PG_STATEMENT_SIZE],
    const char *where,
    hone_error *err)
{
    snprintf(out_name, HONE_PG_STATEMENT_SIZE, "hone_%d_%d", (int)table, (int)verb);
    hone_status status = be_connected(c, where, err);
    return status == HONE_OK ? prepare(c, table, verb, out_name, where, err) : status;
}

static hone_status run_once(
    hone_pg_connection *c,
    hone_pg_table table,
    hone_pg_verb verb,
    const hone_pg_values *values,
    PGresult **out,
    const char *where,
    hone_error *err)
{
    char name[HONE_PG_STATEMENT_SIZE];
    *out = NULL;
    hone_status status = hone_pg_prepare(c, table, verb, name, where, err);
    if (status != HONE_OK) return status;
    PGresult *result = NULL;
    if (c->pq.PQsendQueryPrepared(c->conn, name, values->count, values->texts, values->sizes, values->binary, 1))
        result = hone_pg_await(c, c->conn);
    if (is_good(c->pq.PQresultStatus(result))) {
        *out = result;
        return HONE_OK;
    }
    status = hone_pg_fail(c, result, where, err);
    c->pq.PQclear(result);
    return status;
}

hone_status hone_pg_run(
    hone_pg_connection *c,
    hone_pg_table table,
    hone_pg_verb verb,
    const hone_pg_values *values,
    PGresult **out,
    uint64_t *out_changed,
    const char *where,
    hone_error *err)
{
    PGresult *result;
    hone_status status = run_once(c, table, verb, values, &result, where, err);
    if (status == HONE_UNAVAILABLE && c->depth == 0) {
        hone_pg_connection_rest(c);
        status = run_once(c, table, verb, values, &result, where, err);
    }
    if (status != HONE_OK) return status;
    if (out_changed != NULL) *out_changed = strtoull(c->pq.PQcmdTuples(result), NULL, 10);
    if (out != NULL)
        *out = result;
    else
        c->pq.PQclear(result);
    return HONE_OK;
}

hone_status hone_pg_execute(
    hone_pg_connection *c,
    const char *sql,
    const hone_pg_values *values,
    PGresult **out,
    const char *where,
    hone_error *err)
{
    hone_status status = be_connected(c, where, err);
    if (status != HONE_OK) return status;
    const int sent = values == NULL ? c->pq.PQsendQuery(c->conn, sql)
                                    : c->pq.PQsendQueryParams(
                                          c->conn, sql, values->count, values->types, values->texts, values->sizes,
                                          values->binary, 1);
    PGresult *result = sent ? hone_pg_await(c, c->conn) : NULL;
    if (!is_good(c->pq.PQresultStatus(result))) status = hone_pg_fail(c, result, where, err);
    if (status == HONE_OK && out != NULL)
        *out = result;
    else
        c->pq.PQclear(result);
    return status;
}

hone_status hone_pg_begin(hone_pg_connection *c, const char *where, hone_error *err)
{
    hone_status status = c->depth > 0 ? HONE_OK : hone_pg_execute(c, "BEGIN", NULL, NULL, where, err);
    c->depth += status == HONE_OK;
    return status;
}

hone_status hone_pg_end(hone_pg_connection *c, hone_status status, const char *where, hone_error *err)
{
    hone_assert(c->depth > 0);
    if (--c->depth > 0) return status;
    const bool commits = status == HONE_OK;
    // What was lost with its connection was taken back by the server.
    if (!commits && c->pq.PQstatus(c->conn) != CONNECTION_OK) return status;
    ++c->depth; // no new connection ends it
    hone_status ended = hone_pg_execute(c, commits ? "COMMIT" : "ROLLBACK", NULL, NULL, where, commits ? err : NULL);
    --c->depth;
    return commits ? ended : status;
}

// What the server ends for the sake of another transaction is done again, unless it is a part of a larger one.
hone_status hone_pg_transact(hone_pg_connection *c, hone_pg_work *does, void *ctx, const char *where, hone_error *err)
{
    hone_status status = HONE_BUSY;
    for (int tried = 0; status == HONE_BUSY && tried < HONE_PG_TRIES; tried++) {
        status = hone_pg_begin(c, where, err);
        if (status != HONE_OK) return status;
        status = does(c, ctx, err);
        status = hone_pg_end(c, status, where, err);
        if (c->depth > 0) return status;
    }
    return status;
}

// News ----------------------------------------------------------------------------------------------------------------

static void note_news(hone_pg_connection *c)
{
    const size_t size = strlen(c->schema);
    const int self = c->pq.PQbackendPID(c->conn);
    PGnotify *note;
    while ((note = c->pq.PQnotifies(c->conn)) != NULL) {
        const char *of = note->extra;
        if (note->be_pid != self && strncmp(of, c->schema, size) == 0 && of[size] == '.') c->news++;
        c->pq.PQfreemem(note);
    }
}

static hone_status begin_listening(hone_pg_connection *c, const char *where, hone_error *err)
{
    hone_error why = {.message = ""};
    hone_status status =
        c->version < HONE_PG_SCHEMA ? HONE_IO : hone_pg_execute(c, "LISTEN hone", NULL, NULL, where, &why);
    if (status == HONE_UNAVAILABLE) {
        if (err != NULL) *err = why;
        return status;
    }
    c->is_deaf = status != HONE_OK;
    c->heard = c->sessions;
    c->news++;
    return HONE_OK;
}

hone_status hone_pg_listen(hone_pg_connection *c, const char *where, hone_error *err)
{
    hone_status status = be_connected(c, where, err);
    if (status == HONE_OK && c->heard == c->sessions && !c->is_deaf && c->pq.PQconsumeInput(c->conn) == 0) {
        hone_pg_connection_rest(c);
        status = be_connected(c, where, err);
    }
    if (status == HONE_OK && c->heard != c->sessions) status = begin_listening(c, where, err);
    if (status != HONE_OK) return status;
    if (c->is_deaf) return HONE_UNSUPPORTED;
    note_news(c);
    return HONE_OK;
}

// The schema ----------------------------------------------------------------------------------------------------------

int64_t hone_pg_integer_at(const hone_pg_connection *c, const PGresult *result, int column)
{
    return strtoll(c->pq.PQgetvalue(result, 0, column), NULL, 10);
}

// *out_version 0: there are no tables of hone; *out_others: of somebody else.
static hone_status look_at_schema(hone_pg_connection *c, int64_t *out_version, int64_t *out_others, hone_error *err)
{
    static const char count[] =
        "SELECT count(*) FILTER (WHERE c.relname = 'hone_schema' AND c.relkind = 'r'), count(*) FROM pg_class c JOIN "
        "pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema AND c.relkind IN ('r', 'p', 'v', "
        "'m', 'f')";
    PGresult *result = NULL;
    *out_version = *out_others = 0;
    hone_status status = hone_pg_execute(c, count, NULL, &result, open_where, err);
    if (status != HONE_OK) return status;
    const bool there = hone_pg_integer_at(c, result, 0) > 0;
    *out_others = there ? 0 : hone_pg_integer_at(c, result, 1);
    c->pq.PQclear(result);
    if (!there) return HONE_OK;
    status = hone_pg_execute(c, "SELECT max(version) FROM hone_schema", NULL, &result, open_where, err);
    if (status == HONE_OK) {
        *out_version = hone_pg_integer_at(c, result, 0);
        c->pq.PQclear(result);
    }
    // The table is made together with its row.
    if (status != HONE_INCOMPATIBLE && (status != HONE_OK || *out_version > 0)) return status;
    return hone_fail(
        err, HONE_INCOMPATIBLE, open_where,
        "the schema '%s' has a table hone_schema that hone did not make: name another one in the URL, ?schema=NAME",
        c->schema);
}

static hone_status check_schema(const hone_pg_connection *c, int64_t version, int64_t others, hone_error *err)
{
    if (others > 0)
        return hone_fail(
            err, HONE_INCOMPATIBLE, open_where,
            "the schema '%s' has %lld tables of another application: name another one in the URL, ?schema=NAME",
            c->schema, (long long)others);
    if (version > HONE_PG_SCHEMA)
        return hone_fail(
            err, HONE_INCOMPATIBLE, open_where,
            "the schema '%s' is of version %lld, this hone knows %d: use a newer hone, or another schema", c->schema,
            (long long)version, HONE_PG_SCHEMA);
    return HONE_OK;
}

static hone_status execute_scratch(hone_pg_connection *c, hone_error *err)
{
    if (c->scratch.failed) return hone_fail_memory(err, open_where);
    return hone_pg_execute(c, hone_buffer_string(&c->scratch), NULL, NULL, open_where, err);
}

static hone_status make_namespace(hone_pg_connection *c, hone_error *err)
{
    char *name = c->pq.PQescapeIdentifier(c->conn, c->schema, strlen(c->schema));
    if (name == NULL) return hone_fail_memory(err, open_where);
    hone_buffer_clear(&c->scratch);
    hone_buffer_format(&c->scratch, "CREATE SCHEMA IF NOT EXISTS %s", name);
    c->pq.PQfreemem(name);
    return execute_scratch(c, err);
}

// Makes the tables, or brings those of an older version to today's.
static hone_status make_tables(hone_pg_connection *c, hone_error *err)
{
    static const char lock[] = "SELECT pg_advisory_xact_lock(hashtext('hone'), hashtext('schema'))";
    int64_t version = 0, others = 0;
    hone_status status = hone_pg_execute(c, lock, NULL, NULL, open_where, err);
    if (status == HONE_OK) status = look_at_schema(c, &version, &others, err);
    if (status == HONE_OK && version == 0) status = make_namespace(c, err);
    if (status == HONE_OK) status = check_schema(c, version, others, err);
    if (status != HONE_OK || version == HONE_PG_SCHEMA) return status;
    hone_buffer_clear(&c->scratch);
    hone_pg_write_tables(version, &c->scratch);
    return execute_scratch(c, err);
}

// Of several that come first at once one makes the tables, and the others wait for it.
static hone_status make_schema(hone_pg_connection *c, hone_error *err)
{
    hone_status status = hone_pg_begin(c, open_where, err);
    return status == HONE_OK ? hone_pg_end(c, make_tables(c, err), open_where, err) : status;
}

// Who may not bring older tables to today's version uses them as they are: what came later they do not have.
static hone_status migrate(hone_pg_connection *c, int64_t version, hone_error *err)
{
    hone_error why = {.message = ""};
    hone_status status = make_schema(c, &why);
    if (status == HONE_IO)
        hone_log_write(
            c->log, HONE_LOG_WARNING, "store.postgresql: the tables stay of version %lld: %s", (long long)version,
            why.message);
    else if (status != HONE_OK && err != NULL)
        *err = why;
    c->version = status == HONE_OK ? HONE_PG_SCHEMA : version;
    return status == HONE_IO ? HONE_OK : status;
}

static hone_status ensure_schema(hone_pg_connection *c, hone_error *err)
{
    int64_t version = 0, others = 0;
    hone_status status = look_at_schema(c, &version, &others, err);
    if (status == HONE_OK) status = check_schema(c, version, others, err);
    c->version = version;
    if (status != HONE_OK || version == HONE_PG_SCHEMA || (version > 0 && c->read_only)) return status;
    if (c->read_only)
        return hone_fail(
            err, HONE_NOT_FOUND, open_where, "the schema '%s' has no tables of hone: open it once for writing",
            c->schema);
    if (version > 0) return migrate(c, version, err);
    c->version = HONE_PG_SCHEMA;
    hone_error why = {.message = ""};
    status = make_schema(c, &why);
    if (status == HONE_IO)
        return hone_fail(
            err, status, open_where,
            "the schema '%s' has no tables of hone that this user may see, and none can be made: %.300s; who only "
            "reads "
            "needs USAGE on the schema and SELECT on its tables",
            c->schema, why.message);
    if (status != HONE_OK && err != NULL) *err = why;
    return status;
}

// The address ---------------------------------------------------------------------------------------------------------

// Takes "schema=NAME" out of a URL's parameters.
static hone_status take_schema(hone_pg_connection *c, char *url, hone_error *err)
{
    snprintf(c->schema, sizeof c->schema, "%s", default_schema);
    char *at = strchr(url, '?');
    while (at != NULL && strncmp(at + 1, "schema=", strlen("schema=")) != 0)
        at = strchr(at + 1, '&');
    if (at == NULL) return HONE_OK;
    const char *name = at + strlen("?schema=");
    const size_t size = strcspn(name, "&");
    if (size == 0 || size >= sizeof c->schema || strcspn(name, "%\"'") < size)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, open_where,
            "schema=%.*s: expected a name of 1 to %d bytes without quotes and %%", (int)(size < 80 ? size : 80), name,
            HONE_PG_NAME_SIZE - 1);
    memcpy(c->schema, name, size);
    c->schema[size] = '\0';
    const char *rest = name + size;
    // What follows takes the place of what went.
    if (*rest == '&')
        memmove(at + 1, rest + 1, strlen(rest + 1) + 1);
    else
        *at = '\0';
    return HONE_OK;
}

// URLs stand in messages, evidence and process lists.
static hone_status check_address(hone_pg_connection *c, hone_error *err)
{
    char *words = NULL;
    hone_status status = HONE_OK;
    PQconninfoOption *options = c->pq.PQconninfoParse(c->address, &words);
    if (options == NULL) {
        status = hone_fail(
            err, HONE_INVALID_ARGUMENT, open_where,
            "expected postgresql://USER@HOST:PORT/DATABASE?schema=NAME, and libpq says: %.200s",
            words != NULL ? words : "out of memory");
        if (words != NULL) c->pq.PQfreemem(words);
        return status;
    }
    c->patience_ns = PATIENCE_SECONDS * UINT64_C(1000000000);
    for (const PQconninfoOption *one = options; one->keyword != NULL && status == HONE_OK; one++) {
        if (strcmp(one->keyword, "connect_timeout") == 0 && one->val != NULL && strtol(one->val, NULL, 10) > 0)
            c->patience_ns = (uint64_t)strtol(one->val, NULL, 10) * 1000000000;
        if (strcmp(one->keyword, "password") == 0 && one->val != NULL)
            status = hone_fail(
                err, HONE_INVALID_ARGUMENT, open_where,
                "the URL has a password, which messages would show: write it into ~/.pgpass, PGPASSWORD or a service "
                "file");
    }
    c->pq.PQconninfoFree(options);
    return status;
}

static hone_status read_location(hone_pg_connection *c, const char *location, hone_error *err)
{
    const size_t size = strlen(location) + sizeof "postgresql://";
    c->address = hone_alloc(&c->allocator, size);
    if (c->address == NULL) return hone_fail_memory(err, open_where);
    const bool has_slashes = strncmp(location, "//", 2) == 0;
    snprintf(c->address, size, "postgresql:%s%s", has_slashes ? "" : "//", location);
    hone_status status = take_schema(c, c->address, err);
    return status == HONE_OK ? check_address(c, err) : status;
}

hone_status hone_pg_connection_open(
    hone_pg_connection *c,
    const hone_allocator *allocator,
    const hone_log *log,
    const char *location,
    bool read_only,
    hone_error *err)
{
    *c = (hone_pg_connection){.allocator = *allocator, .log = log, .read_only = read_only};
    hone_buffer_init(&c->scratch, *allocator);
    hone_buffer_init(&c->texts, *allocator);
    hone_status status = hone_pq_open(allocator, &c->pq, err);
    if (status == HONE_OK) status = read_location(c, location, err);
    c->space = hone_hash64(c->schema, strlen(c->schema)) & INT64_MAX;
    if (status == HONE_OK) status = be_connected(c, open_where, err);
    if (status == HONE_OK) status = ensure_schema(c, err);
    if (status != HONE_OK) hone_pg_connection_close(c);
    return status;
}

static void add_identity(const hone_pg_connection *c, const PQconninfoOption *options, char *out, size_t size)
{
    static const char *const names[] = {"host", "hostaddr", "port", "dbname", "user"};
    bool is_known = false;
    size_t used = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (const PQconninfoOption *one = options; one != NULL && one->keyword != NULL && used < size; one++) {
            if (strcmp(one->keyword, names[i]) != 0) continue;
            is_known = is_known || (i >= 3 && one->val != NULL && one->val[0] != '\0');
            used += (size_t)snprintf(out + used, size - used, "%s\n", one->val != NULL ? one->val : "");
        }
    if (used < size) used += (size_t)snprintf(out + used, size - used, "%s", c->schema);
    if (!is_known || used >= size) out[0] = '\0';
}

void hone_pg_identify(const hone_allocator *allocator, const char *location, char *out, size_t size)
{
    // With a mode that there is not libpq fills in what it has found, and does not connect.
    static const char *const names[] = {"dbname", "sslmode", NULL};
    hone_pg_connection c = {.allocator = *allocator};
    out[0] = '\0';
    if (hone_pq_open(allocator, &c.pq, NULL) != HONE_OK) return;
    if (read_location(&c, location, NULL) == HONE_OK) {
        const char *const values[] = {c.address, "none of them", NULL};
        PGconn *conn = c.pq.PQconnectStartParams(names, values, 1);
        PQconninfoOption *options = conn != NULL ? c.pq.PQconninfo(conn) : NULL;
        add_identity(&c, options, out, size);
        if (options != NULL) c.pq.PQconninfoFree(options);
        if (conn != NULL) c.pq.PQfinish(conn);
    }
    hone_free(allocator, c.address);
    hone_pq_close(allocator, &c.pq);
}

void hone_pg_connection_close(hone_pg_connection *c)
{
    if (c->pq.library != NULL) hone_pg_connection_rest(c);
    hone_free(&c->allocator, c->address);
    c->address = NULL;
    hone_buffer_deinit(&c->scratch);
    hone_buffer_deinit(&c->texts);
    hone_pq_close(&c->allocator, &c->pq);
}
