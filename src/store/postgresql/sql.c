#include "store/postgresql/sql.h"

#include "base/assert.h"

#include <string.h>

static const hone_row_shape *const shapes[HONE_PG_TABLES] = {
    &hone_row_decision, &hone_row_measurement, &hone_row_failure, &hone_row_invocation,
    &hone_row_alias,    &hone_row_foreign,     &hone_row_job,     &hone_row_quarantine};

const hone_row_shape *hone_pg_shape(hone_pg_table table)
{
    return shapes[table];
}

bool hone_pg_has_call(hone_pg_table table)
{
    return table <= HONE_PG_INVOCATION;
}

static const char *const call_filters[] = {"device", "algorithm", "version", "key"};

// How long after its start a server waits for those that held a job when it was stopped to say that they go on.
#define GRACE         "interval '10 seconds'"
#define CLAIMED_FIRST " ORDER BY priority DESC, round, weight DESC, id LIMIT "

size_t hone_pg_filters(hone_pg_table table)
{
    return hone_pg_has_call(table) ? 4 : table == HONE_PG_QUARANTINE ? 0 : 1;
}

static const char *filter_name(hone_pg_table table, size_t index)
{
    return hone_pg_has_call(table) || table == HONE_PG_JOB ? call_filters[index] : "scheme";
}

// Columns [from, to) with what stands around each, @ for its name.
static void write_columns(hone_buffer *out, const hone_row_shape *shape, size_t from, size_t to, const char *form)
{
    for (size_t i = from; i < to; i++) {
        const char *name = hone_row_column_name(shape, i);
        if (i > from) hone_buffer_text(out, ", ");
        for (const char *at = form; *at != '\0'; at++) {
            if (*at == '@')
                hone_buffer_format(out, "\"%s\"", name);
            else
                hone_buffer_char(out, *at);
        }
    }
}

static void write_insert(hone_pg_table table, bool replaces, hone_buffer *out)
{
    const hone_row_shape *shape = shapes[table];
    const size_t before = hone_pg_has_call(table) ? 2 : 1;
    // A config was measured, or it failed.
    if (replaces && (table == HONE_PG_MEASUREMENT || table == HONE_PG_FAILURE))
        hone_buffer_format(
            out, "WITH gone AS (DELETE FROM \"%s\" WHERE id = $1) ",
            shapes[table == HONE_PG_MEASUREMENT ? HONE_PG_FAILURE : HONE_PG_MEASUREMENT]->name);
    hone_buffer_format(out, "INSERT INTO \"%s\"(id, %s", shape->name, before == 2 ? "call_id, " : "");
    write_columns(out, shape, 0, shape->count, "@");
    hone_buffer_text(out, ", checksum) VALUES(");
    for (size_t i = 1; i <= before + shape->count + 1; i++)
        hone_buffer_format(out, "%s$%zu", i > 1 ? ", " : "", i);
    hone_buffer_text(out, replaces ? ") ON CONFLICT(id) DO UPDATE SET " : ") ON CONFLICT(id) DO NOTHING");
    if (!replaces) return;
    write_columns(out, shape, shape->key_count, shape->count, "@ = EXCLUDED.@");
    hone_buffer_text(out, ", checksum = EXCLUDED.checksum");
}

static void write_select(hone_pg_table table, hone_buffer *out)
{
    hone_buffer_text(out, "SELECT ");
    write_columns(out, shapes[table], 0, shapes[table]->count, "@");
    hone_buffer_format(out, ", checksum, id FROM \"%s\"", shapes[table]->name);
}

static void write_scan(hone_pg_table table, hone_buffer *out)
{
    write_select(table, out);
    for (size_t i = 0; i < hone_pg_filters(table); i++)
        hone_buffer_format(
            out, " %s ($%zu::bytea IS NULL OR \"%s\" = $%zu)", i == 0 ? "WHERE" : "AND", i + 1, filter_name(table, i),
            i + 1);
    hone_buffer_format(out, " ORDER BY %s", table == HONE_PG_INVOCATION ? "\"count\" DESC, " : "");
    write_columns(out, shapes[table], 0, shapes[table]->key_count, "@");
}

// Each device text is one range of the index: its first rows are read, and no more.
static void write_look(const char *condition, hone_buffer *out)
{
    const hone_row_shape *shape = shapes[HONE_PG_JOB];
    hone_buffer_text(out, "SELECT ");
    write_columns(out, shape, 0, shape->count, "j.@");
    hone_buffer_text(out, ", j.checksum, j.id FROM unnest($1::bytea[]) AS d(of_device), LATERAL (");
    write_select(HONE_PG_JOB, out);
    hone_buffer_format(out, " WHERE device = of_device AND %s" CLAIMED_FIRST "$2::bigint) j", condition);
}

static void write_swap(hone_buffer *out)
{
    const hone_row_shape *shape = shapes[HONE_PG_JOB];
    hone_buffer_format(out, "UPDATE \"%s\" SET ", shape->name);
    for (size_t i = 0; i < shape->count; i++)
        hone_buffer_format(out, "\"%s\" = $%zu, ", hone_row_column_name(shape, i), i + 2);
    hone_buffer_format(out, "checksum = $%zu WHERE id = $1 AND checksum = $%zu", shape->count + 2, shape->count + 3);
}

void hone_pg_write_any_jobs(hone_buffer *out)
{
    write_select(HONE_PG_JOB, out);
    hone_buffer_text(out, " WHERE state = $1" CLAIMED_FIRST "$2");
}

void hone_pg_write_sql(hone_pg_table table, hone_pg_verb verb, hone_buffer *out)
{
    const char *name = shapes[table]->name;
    switch (verb) {
    case HONE_PG_PUT:
    case HONE_PG_ADD:
        write_insert(table, verb == HONE_PG_PUT, out);
        return;
    case HONE_PG_GET:
    case HONE_PG_LOCK:
        write_select(table, out);
        hone_buffer_text(out, verb == HONE_PG_LOCK ? " WHERE id = $1 FOR UPDATE" : " WHERE id = $1");
        return;
    case HONE_PG_LOCKS:
        write_select(table, out);
        hone_buffer_text(out, " WHERE id = ANY($1::bytea[]) ORDER BY ");
        write_columns(out, shapes[table], 0, shapes[table]->key_count, "@");
        hone_buffer_text(out, " FOR UPDATE");
        return;
    case HONE_PG_DROP:
        hone_buffer_format(out, "DELETE FROM \"%s\" WHERE id = $1", name);
        return;
    case HONE_PG_SCAN:
        write_scan(table, out);
        return;
    case HONE_PG_REMOVE:
        hone_assert(hone_pg_has_call(table));
        hone_buffer_format(
            out,
            "DELETE FROM \"%s\" WHERE call_id = $1 AND ($2::bytea IS NULL OR spec IS NULL OR spec = '' OR spec = $2)",
            name);
        return;
    case HONE_PG_CLEAR:
        hone_buffer_format(out, "DELETE FROM \"%s\"", name);
        if (hone_pg_filters(table) > 0)
            hone_buffer_format(out, " WHERE $1::bytea IS NULL OR \"%s\" = $1", filter_name(table, 0));
        return;
    case HONE_PG_NEXT:
        write_select(table, out);
        hone_buffer_text(out, " WHERE device = $1 AND state = $2" CLAIMED_FIRST "$3");
        return;
    case HONE_PG_LOOK:
        write_look("state = 0", out);
        return;
    case HONE_PG_ORPHANS:
        // A lock of 64 bits, made of the job's and the schema's ($3), stands in two columns. Where the server began anew, nobody has a lock yet.
        write_look(
            "state = 1 AND (boot = (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint"
            " OR now() - pg_postmaster_start_time() > " GRACE ")"
            " AND NOT EXISTS (SELECT 1 FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted"
            " AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())"
            " AND l.classid::bigint = (lock # $3::bigint) >> 32"
            " AND l.objid::bigint = (lock # $3::bigint) & 4294967295 AND l.objsubid = 1)",
            out);
        return;
    case HONE_PG_SWAP:
        write_swap(out);
        return;
    case HONE_PG_TAKE:
        hone_buffer_format(out, "DELETE FROM \"%s\" WHERE id = $1 AND checksum = $2", name);
        return;
    case HONE_PG_VERBS:
        break;
    }
    hone_assert(false);
}

static const char *type_of(const hone_row_shape *shape, size_t column)
{
    switch (hone_row_column_kind(shape, column)) {
    case HONE_CELL_INTEGER:
        return "bigint";
    case HONE_CELL_REAL:
        return "double precision";
    default:
        return "bytea";
    }
}

static void write_table(hone_pg_table table, hone_buffer *out)
{
    const hone_row_shape *shape = shapes[table];
    hone_buffer_format(
        out, "CREATE TABLE \"%s\"(id bytea PRIMARY KEY%s", shape->name,
        hone_pg_has_call(table) ? ", call_id bytea NOT NULL" : "");
    for (size_t i = 0; i < shape->count; i++)
        hone_buffer_format(
            out, ", \"%s\" %s%s", hone_row_column_name(shape, i), type_of(shape, i),
            i < shape->key_count ? " NOT NULL" : "");
    hone_buffer_text(out, ", checksum bigint NOT NULL);");
    if (hone_pg_has_call(table))
        hone_buffer_format(out, "CREATE INDEX \"%s_call\" ON \"%s\"(call_id);", shape->name, shape->name);
}

// Listeners are notified of changes under the name of the schema and the table.
static const char news[] =
    "CREATE INDEX job_order ON job(device, state, priority DESC, round, weight DESC, id);"
    "CREATE FUNCTION hone_tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "PERFORM pg_notify('hone', TG_TABLE_SCHEMA || '.' || TG_TABLE_NAME); RETURN NULL; END $$;"
    "CREATE TRIGGER hone_tell AFTER INSERT OR UPDATE OR DELETE ON decision FOR EACH STATEMENT EXECUTE FUNCTION "
    "hone_tell();"
    "CREATE TRIGGER hone_tell AFTER INSERT ON job FOR EACH STATEMENT EXECUTE FUNCTION hone_tell();";

void hone_pg_write_tables(int64_t version, hone_buffer *out)
{
    for (int table = 0; table < HONE_PG_TABLES; table++)
        if (version < 1 || table == HONE_PG_JOB) write_table((hone_pg_table)table, out);
    hone_buffer_text(out, news);
    if (version < 1) hone_buffer_text(out, "CREATE TABLE hone_schema(version integer NOT NULL);");
    hone_buffer_format(out, "INSERT INTO hone_schema VALUES(%d);", HONE_PG_SCHEMA);
}

// Kind and size stand before each cell, so that no two keys run together.
bool hone_pg_id(const hone_row *row, size_t count, hone_buffer *scratch, char out_hex[HONE_SHA256_HEX_SIZE])
{
    hone_assert(count <= row->count);
    hone_buffer_clear(scratch);
    for (size_t i = 0; i < count; i++) {
        const hone_cell *cell = &row->cells[i];
        hone_buffer_format(scratch, "%d %zu ", (int)cell->kind, cell->size);
        if (cell->kind == HONE_CELL_TEXT)
            hone_buffer_append(scratch, cell->as.text, cell->size);
        else
            hone_buffer_append(scratch, &cell->as.integer, sizeof cell->as.integer);
    }
    if (!scratch->failed) hone_hash_sha256(scratch->data, scratch->size, out_hex);
    return !scratch->failed;
}

bool hone_pg_call_id(const hone_store_key *key, hone_buffer *scratch, char out_hex[HONE_SHA256_HEX_SIZE])
{
    const char *const texts[] = {key->device, key->algorithm, key->version, key->key};
    hone_row row = {.count = sizeof texts / sizeof *texts};
    for (size_t i = 0; i < row.count; i++)
        row.cells[i] = (hone_cell){.kind = HONE_CELL_TEXT, .size = strlen(texts[i]), .as.text = texts[i]};
    return hone_pg_id(&row, row.count, scratch, out_hex);
}
