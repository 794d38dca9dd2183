// Whose a file is and which schema it has, and the steps from an older one to today's.
#include "store/sqlite/migrate.h"

#include "base/error.h"
#include "store/ops.h"
#include "store/sqlite/damage.h"
#include "store/sqlite/place.h"
#include "store/sqlite/put.h"

#include <string.h>

enum { APPLICATION_ID = 0x686f6e65 }; // "hone", in the file's header

static const char where[] = "store.sqlite.open";

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
        status = hone_connection_fail(connection, code, where, "read the header", err);
    sqlite3_finalize(statement);
    return status;
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
    if (application != APPLICATION_ID && (tables != 0 || application != 0 || *out_version != 0)) {
        (void)!hone_fail(
            err, HONE_INCOMPATIBLE, where,
            "%s: an SQLite database of something else; it was left as it was: name another path", connection->path);
        if (err != NULL) err->system_code = HONE_STORE_FOREIGN;
        return HONE_INCOMPATIBLE;
    }
    if (*out_version > HONE_SQL_SCHEMA)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where,
            "%s: its schema is %lld and this hone knows up to %d; it was left as it was: use the newer hone, or name "
            "another path",
            connection->path, (long long)*out_version, (int)HONE_SQL_SCHEMA);
    return HONE_OK;
}

// Counts the tables that are word for word what hone wrote. A view or a trigger is not one of hone's, and would run.
static hone_status count_tables(hone_connection *connection, int version, int *out, bool *out_strange, hone_error *err)
{
    sqlite3_stmt *statement = NULL;
    const char *sql = "SELECT type, sql FROM sqlite_master WHERE sql IS NOT NULL";
    int code = sqlite3_prepare_v2(connection->db, sql, -1, &statement, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW) break;
        const char *type = (const char *)sqlite3_column_text(statement, 0);
        const char *text = (const char *)sqlite3_column_text(statement, 1);
        if (type == NULL || text == NULL || strcmp(type, "table") != 0)
            *out_strange = true;
        else
            *out += hone_sql_is_table(text, version);
    }
    hone_status status = HONE_OK;
    if (code != SQLITE_DONE) status = hone_connection_fail(connection, code, where, "read the tables", err);
    sqlite3_finalize(statement);
    return status;
}

// The tables must be those that hone makes, so that no statement meets another shape.
static hone_status check_tables(hone_connection *connection, int64_t version, hone_error *err)
{
    int count = 0;
    bool strange = false;
    // A version that was lost does not make the tables new ones.
    hone_status status = count_tables(connection, version == 0 ? HONE_SQL_SCHEMA : (int)version, &count, &strange, err);
    if (status != HONE_OK || (count == hone_sql_table_count((int)version) && !strange)) return status;
    return hone_fail(err, HONE_CORRUPT, where, "%s: its tables are not as hone makes them", connection->path);
}

// In one read transaction: another process may be making the tables between two looks.
hone_status hone_migrate_look(hone_connection *connection, int64_t *out_version, hone_error *err)
{
    hone_status status = hone_connection_execute(connection, "BEGIN", "read the header", where, err);
    if (status != HONE_OK) return status;
    status = check_schema(connection, out_version, err);
    if (status == HONE_OK) status = check_tables(connection, *out_version, err);
    // Ends a transaction that only read: it has nothing to lose, and the words of a refusal are kept.
    hone_status ended =
        hone_connection_execute(connection, "ROLLBACK", "read the header", where, status == HONE_OK ? err : NULL);
    return status != HONE_OK ? status : ended;
}

static hone_status write_version(hone_connection *connection, bool is_new, hone_error *err)
{
    char *pragmas = sqlite3_mprintf(
        "INSERT OR REPLACE INTO meta VALUES('schema', '%d'), ('%s', 'hone %q');"
        "PRAGMA application_id=%d; PRAGMA user_version=%d;",
        (int)HONE_SQL_SCHEMA, is_new ? "created_by" : "migrated_by", hone_version(), (int)APPLICATION_ID,
        (int)HONE_SQL_SCHEMA);
    if (pragmas == NULL) return hone_fail_memory(err, where);
    hone_status status = hone_connection_execute(connection, pragmas, "write the schema's version", where, err);
    sqlite3_free(pragmas);
    return status;
}

// For SQL: hone_place(device, algorithm, version, key, regime), by which the decisions are sorted.
static void place_of(sqlite3_context *context, int count, sqlite3_value **values)
{
    hone_row key = {.count = (size_t)count};
    for (int i = 0; i < count; i++) {
        hone_cell *cell = &key.cells[i];
        if (sqlite3_value_type(values[i]) == SQLITE_INTEGER)
            *cell = (hone_cell){.kind = HONE_CELL_INTEGER, .as.integer = sqlite3_value_int64(values[i])};
        else if (sqlite3_value_text(values[i]) != NULL)
            *cell = (hone_cell){
                .kind = HONE_CELL_TEXT,
                .size = (size_t)sqlite3_value_bytes(values[i]),
                .as.text = (const char *)sqlite3_value_text(values[i])};
    }
    sqlite3_result_int64(context, hone_place_of(&key));
}

static hone_status take_decision(hone_connection *connection, hone_query *from, hone_error *err)
{
    hone_row row;
    const char *reason = NULL;
    hone_status status = hone_query_row(from, &hone_row_decision, &row, &reason);
    if (status == HONE_OK) return hone_put_row(connection, &hone_row_decision, &row, where, err);
    return status == HONE_CORRUPT ? hone_damage_keep(connection, &hone_row_decision, &row, reason, err) : HONE_OK;
}

// In the order of their numbers, so that pages are filled one after another.
static hone_status copy_decisions(hone_connection *connection, hone_error *err)
{
    hone_query from;
    hone_status status = HONE_OK;
    int code = sqlite3_create_function_v2(
        connection->db, "hone_place", 5, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, place_of, NULL, NULL, NULL);
    if (code != SQLITE_OK) return hone_connection_fail(connection, code, where, "copy the decisions", err);
    hone_query_begin(&from, connection, HONE_SQL_DECISION_BEFORE_4, where);
    while (status == HONE_OK && hone_query_step(&from))
        status = take_decision(connection, &from, err);
    hone_status read = hone_query_end(&from, "copy the decisions", status == HONE_OK ? err : NULL);
    return status == HONE_OK ? read : status;
}

// Prepared statements of a table keep it.
static hone_status drop_old_decisions(hone_connection *connection, hone_error *err)
{
    sqlite3_finalize(connection->statements[HONE_SQL_DECISION_BEFORE_4]);
    connection->statements[HONE_SQL_DECISION_BEFORE_4] = NULL;
    return hone_connection_execute(
        connection, "DROP TABLE decision_before_4", "drop the decisions of before", where, err);
}

static hone_status make_tables(hone_connection *connection, int version, bool is_new, hone_error *err)
{
    static const char operation[] = "create the tables";
    const char *room = is_new ? "DROP TABLE decision" : "ALTER TABLE decision RENAME TO decision_before_4";
    hone_status status = HONE_OK;
    if (version == HONE_SQL_PLACE_SCHEMA) status = hone_connection_execute(connection, room, operation, where, err);
    if (status != HONE_OK) return status;
    return hone_connection_execute(connection, hone_sql_schema(version), operation, where, err);
}

static hone_status write_schema(hone_connection *connection, int from, hone_error *err)
{
    const bool is_new = from == 0;
    hone_status status = HONE_OK;
    for (int version = from + 1; status == HONE_OK && version <= HONE_SQL_SCHEMA; version++)
        status = make_tables(connection, version, is_new, err);
    connection->schema = HONE_SQL_SCHEMA;
    const bool moves = !is_new && from < HONE_SQL_PLACE_SCHEMA;
    if (status == HONE_OK && moves) status = copy_decisions(connection, err);
    if (status == HONE_OK && moves) status = drop_old_decisions(connection, err);
    return status == HONE_OK ? write_version(connection, is_new, err) : status;
}

// Makes the tables of a new file, or those that an older one lacks, in one transaction. Looks again under the write
// lock: another process may have made them meanwhile.
hone_status hone_migrate(hone_connection *connection, hone_error *err)
{
    int64_t version = 0;
    hone_status status = hone_connection_begin(connection, where, err);
    if (status != HONE_OK) return status;
    status = check_schema(connection, &version, err);
    if (status == HONE_OK && version < HONE_SQL_SCHEMA) status = write_schema(connection, (int)version, err);
    status = hone_connection_end(connection, status, where, err);
    connection->schema = HONE_SQL_SCHEMA;
    return status;
}
