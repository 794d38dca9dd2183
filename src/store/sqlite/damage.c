#include "store/sqlite/damage.h"

#include "base/assert.h"
#include "base/error.h"
#include "store/common/quarantine.h"
#include "store/sqlite/place.h"
#include "store/sqlite/put.h"

#include <stdlib.h>
#include <string.h>

static const char where[] = "store.damage", check_where[] = "store.verify";

// By its key's columns, whatever they hold: as SQLite reads them and not as a record does.
static hone_sql statement_to_drop(const hone_row_shape *shape)
{
    static const struct {
        const hone_row_shape *shape;
        hone_sql id;
    } rows[] = {
        {&hone_row_measurement, HONE_SQL_MEASUREMENT_MOVE}, {&hone_row_failure, HONE_SQL_FAILURE_MOVE},
        {&hone_row_invocation, HONE_SQL_INVOCATION_DROP},   {&hone_row_alias, HONE_SQL_ALIAS_DROP},
        {&hone_row_foreign, HONE_SQL_FOREIGN_DROP},         {&hone_row_quarantine, HONE_SQL_QUARANTINE_DROP},
    };
    enum { COUNT = sizeof rows / sizeof *rows };
    size_t i = 0;
    while (i < COUNT && rows[i].shape != shape)
        i++;
    hone_assert(i < COUNT);
    return rows[i].id;
}

// By its number.
static hone_status drop_decision(hone_query *query, hone_error *err)
{
    const int64_t number = sqlite3_column_int64(query->statement, (int)hone_row_decision.count + 1);
    hone_query drop;
    hone_query_begin(&drop, query->connection, HONE_SQL_DECISION_DROP, where);
    hone_query_integer(&drop, number);
    hone_status status = hone_query_run(&drop, "set a record aside", err);
    if (status != HONE_OK) return status;
    return hone_close_gaps(query->connection, hone_place_around(number), where, err);
}

static hone_status drop_row(hone_query *query, const hone_row_shape *shape, hone_error *err)
{
    hone_query drop;
    if (shape == &hone_row_decision) return drop_decision(query, err);
    hone_query_begin(&drop, query->connection, statement_to_drop(shape), where);
    for (int i = 0; i < (int)shape->key_count; i++)
        hone_query_value(&drop, sqlite3_column_value(query->statement, i));
    return hone_query_run(&drop, "set a record aside", err);
}

hone_status hone_damage_put(hone_connection *connection, const hone_store_quarantined *quarantined, hone_error *err)
{
    hone_query query;
    hone_status status = hone_put_record(connection, &hone_row_quarantine, quarantined, where, err);
    if (status != HONE_OK) return status;
    hone_query_begin(&query, connection, HONE_SQL_QUARANTINE_TRIM, where);
    return hone_query_run(&query, "set a record aside", err);
}

static const char *words_of(const hone_row *row, size_t index)
{
    return row->cells[index].kind == HONE_CELL_TEXT ? row->cells[index].as.text : "?";
}

// Four texts begin the key of the widest records, two that of the quarantine.
static void tell(
    const hone_connection *connection,
    const hone_row_shape *shape,
    const hone_row *row,
    const char *reason,
    const char *outcome)
{
    hone_log_write(
        &connection->log, HONE_LOG_WARNING, "%s: the %s record of '%.100s' '%.100s' '%.100s' %s: %s", connection->path,
        shape->name, words_of(row, 0), words_of(row, 1), words_of(row, 2), reason, outcome);
}

// What is damaged in the quarantine itself is not worth a place there.
static hone_status put_aside(
    hone_connection *connection, const hone_row_shape *shape, const hone_row *row, const char *reason, hone_error *err)
{
    hone_buffer text;
    if (shape == &hone_row_quarantine) return HONE_OK;
    hone_buffer_init(&text, connection->allocator);
    const hone_store_quarantined quarantined = hone_quarantine_row(shape, row, reason, &text);
    hone_status status = text.failed ? hone_fail_memory(err, where) : hone_damage_put(connection, &quarantined, err);
    hone_buffer_deinit(&text);
    return status;
}

static void count_and_tell(
    hone_connection *connection, const hone_row_shape *shape, const hone_row *row, const char *reason)
{
    connection->moved++;
    tell(connection, shape, row, reason, "it was set aside");
}

hone_status hone_damage_keep(
    hone_connection *connection, const hone_row_shape *shape, const hone_row *row, const char *reason, hone_error *err)
{
    hone_status status = put_aside(connection, shape, row, reason, err);
    if (status == HONE_OK) count_and_tell(connection, shape, row, reason);
    return status;
}

hone_status hone_damage_move(hone_query *query, const hone_row_shape *shape, const char *reason, hone_error *err)
{
    hone_connection *connection = query->connection;
    hone_row row;
    hone_assert(connection->depth > 0); // else a crash could take the row and leave no copy of it
    if (!hone_query_read(query, shape, &row)) return hone_fail_memory(err, where);
    hone_status status = put_aside(connection, shape, &row, reason, err);
    if (status == HONE_OK) status = drop_row(query, shape, err);
    if (status == HONE_OK) count_and_tell(connection, shape, &row, reason);
    return status;
}

static hone_status move_rows(hone_query *query, const hone_row_shape *shape)
{
    hone_status status = HONE_OK;
    while (status == HONE_OK && hone_query_step(query)) {
        hone_row row;
        const char *reason = NULL;
        if (hone_query_row(query, shape, &row, &reason) == HONE_CORRUPT)
            status = hone_damage_move(query, shape, reason, NULL);
    }
    if (status == HONE_OK && query->code != SQLITE_OK) status = HONE_IO;
    sqlite3_reset(query->statement);
    return status;
}

// The first row that is damaged, for words.
static void tell_unmoved(hone_query *query, const hone_row_shape *shape)
{
    hone_row row;
    const char *reason = NULL;
    if (query->connection->told) return;
    while (hone_query_step(query))
        if (hone_query_row(query, shape, &row, &reason) == HONE_CORRUPT) {
            tell(query->connection, shape, &row, reason, "it is passed over, since the store cannot be written now");
            query->connection->told = true;
            return;
        }
}

// After a walk that met damage. The walk only reads, so that readers never wait for a lock; now the rows are read once
// more under the write lock, since another process may have moved them, and what is still damaged goes to the
// quarantine. Who cannot have the lock at once leaves the rows where they are: they are passed over the next time, too.
void hone_damage_move_all(hone_query *query, const hone_row_shape *shape)
{
    hone_connection *connection = query->connection;
    sqlite3_reset(query->statement); // what is bound stays bound
    query->code = SQLITE_OK;
    bool writable = connection->schema >= HONE_SQL_QUARANTINE_SCHEMA && !connection->read_only;
    hone_status status = writable ? hone_connection_try_begin(connection, where) : HONE_IO;
    if (status == HONE_OK) {
        status = move_rows(query, shape);
        status = hone_connection_end(connection, status, where, NULL);
    }
    query->code = SQLITE_OK;
    if (status != HONE_OK) tell_unmoved(query, shape);
}

// The first line of SQLite's words that names a fault: the one before it names the database.
static const char *first_fault(const char *words, int *out_size)
{
    if (strncmp(words, "*** in ", 7) == 0 && strchr(words, '\n') != NULL) words = strchr(words, '\n') + 1;
    *out_size = (int)strcspn(words, "\n");
    return words;
}

// SQLite's words for what it found. Where it only could not read a page, they name the code of why.
static hone_status judge(hone_connection *connection, const char *words, hone_error *err)
{
    static const char unread[] = "unable to get the page. error code=";
    if (words == NULL) return hone_fail_memory(err, check_where);
    if (strcmp(words, "ok") == 0) return HONE_OK;
    const char *code = strstr(words, unread);
    if (code != NULL && atoi(code + sizeof unread - 1) != SQLITE_CORRUPT)
        return hone_connection_fail(connection, atoi(code + sizeof unread - 1), check_where, "check the file", err);
    int size = 0;
    words = first_fault(words, &size);
    return hone_fail(err, HONE_CORRUPT, check_where, "%s: its pages are damaged: %.*s", connection->path, size, words);
}

// Of some pages SQLite says the same when it could not read them and when there are none: what was a failure of the
// moment is not said twice.
static bool is_doubtful(const char *words)
{
    return words != NULL && strstr(words, "failed to get page") != NULL;
}

hone_status hone_damage_check_file(hone_connection *connection, hone_error *err)
{
    enum { TRIES = 2 };
    hone_status status = HONE_OK;
    bool is_doubted = true;
    for (int i = 0; i < TRIES && is_doubted; i++) {
        hone_query query;
        is_doubted = false;
        hone_query_begin(&query, connection, HONE_SQL_CHECK, check_where);
        if (hone_query_step(&query)) {
            const char *words = (const char *)sqlite3_column_text(query.statement, 0);
            status = judge(connection, words, err);
            is_doubted = is_doubtful(words);
        }
        hone_status ended = hone_query_end(&query, "check the file", status == HONE_OK ? err : NULL);
        if (status == HONE_OK) status = ended;
    }
    return status;
}
