// The records of a damaged file: read off its pages, matched with the calls that they belong to, and put into a sound
// store.
#include "store/sqlite/harvest.h"

#include "base/error.h"
#include "store/common/quarantine.h"
#include "store/sqlite/damage.h"
#include "store/sqlite/put.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "store.sqlite.salvage";

// The texts of a call that was measured, which stand in a table of their own.
enum { CALL_CELLS = 5 };

struct hone_measured_call {
    int64_t number;
    hone_cell cells[CALL_CELLS];
};
typedef struct hone_measured_call measured_call;

void hone_harvest_init(hone_harvest *s, const hone_allocator *allocator, hone_connection *into, hone_error *err)
{
    *s = (hone_harvest){.arena = {*allocator, NULL}, .into = into, .err = err};
    hone_buffer_init(&s->text, *allocator);
}

void hone_harvest_deinit(hone_harvest *s)
{
    hone_buffer_deinit(&s->text);
    hone_free(&s->arena.allocator, s->calls);
    hone_arena_destroy(&s->arena);
}

// Calls ---------------------------------------------------------------------------------------------------------------

static bool are_texts(const hone_cell *cells, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cells[i].kind != HONE_CELL_TEXT) return false;
    return true;
}

// In its table a call's number stands beside the record, in the index of the table behind the texts.
static bool is_call(const hone_page_record *record, const hone_cell **out_texts, int64_t *out_number)
{
    if (record->count != CALL_CELLS + 1) return false;
    *out_texts = record->is_of_table ? record->cells + 1 : record->cells;
    *out_number = record->is_of_table ? record->number : record->cells[CALL_CELLS].as.integer;
    if (!record->is_of_table && record->cells[CALL_CELLS].kind != HONE_CELL_INTEGER) return false;
    return are_texts(*out_texts, CALL_CELLS);
}

static bool note_call(void *ctx, const hone_page_record *record)
{
    hone_harvest *s = ctx;
    const hone_cell *texts;
    measured_call call;
    if (!is_call(record, &texts, &call.number)) return true;
    for (size_t i = 0; i < CALL_CELLS; i++) {
        call.cells[i] = texts[i];
        call.cells[i].as.text = hone_arena_text(&s->arena, texts[i].as.text, texts[i].size);
        if (call.cells[i].as.text == NULL) s->status = hone_fail_memory(s->err, where);
    }
    if (s->status == HONE_OK &&
        !hone_grow(&s->arena.allocator, &s->calls, &s->call_capacity, s->call_count + 1, sizeof *s->calls))
        s->status = hone_fail_memory(s->err, where);
    if (s->status == HONE_OK) s->calls[s->call_count++] = call;
    return s->status == HONE_OK;
}

static int by_number(const void *a, const void *b)
{
    const int64_t left = ((const measured_call *)a)->number, right = ((const measured_call *)b)->number;
    return (left > right) - (left < right);
}

// The first call of a number or, with it, past it; two copies of one may differ where one is damaged.
static size_t first_call(const hone_harvest *s, int64_t number)
{
    size_t low = 0, high = s->call_count; // sorted, by hone_harvest_pages or walk_tables
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (s->calls[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Records -------------------------------------------------------------------------------------------------------------

static size_t first_count_of(const hone_row_shape *shape)
{
    return shape->first_count > 0 ? shape->first_count : shape->count;
}

// Decisions stand under numbers since schema 4, whose column is the first.
static size_t number_cells(const hone_page_record *record)
{
    return record->is_of_table ? 1 : 0;
}

// A row of the cells of a call, where there is one, and of a record, whose checksum stands behind the columns of the
// first schema. SQLite keeps a real number that is whole as an integer.
static bool make_row(
    const hone_row_shape *shape, const hone_page_record *record, const measured_call *call, hone_row *out)
{
    const size_t lead = call != NULL ? CALL_CELLS : 0, skip = call != NULL ? 1 : number_cells(record);
    const size_t first = first_count_of(shape), checksum_at = first - lead + skip;
    *out = (hone_row){.count = shape->count, .first_count = shape->first_count};
    for (size_t i = 0; i < lead; i++)
        out->cells[i] = call->cells[i];
    for (size_t i = lead; i < shape->count; i++) {
        const size_t at = i - lead + skip + (i >= first);
        if (at < record->count) out->cells[i] = record->cells[at];
        if (hone_row_column_kind(shape, i) != HONE_CELL_REAL || out->cells[i].kind != HONE_CELL_INTEGER) continue;
        out->cells[i] = (hone_cell){.kind = HONE_CELL_REAL, .as.real = (double)out->cells[i].as.integer};
    }
    const hone_cell *checksum = &record->cells[checksum_at];
    return checksum->kind == HONE_CELL_INTEGER && (uint64_t)checksum->as.integer == hone_row_checksum(out);
}

// Whether a record may be a row of a shape, by how many columns it has and of what kind the first is.
static bool is_of(const hone_row_shape *shape, const hone_page_record *record, bool is_measured)
{
    const size_t lead = number_cells(record);
    const size_t least = lead + first_count_of(shape) + 1 - (is_measured ? CALL_CELLS - 1 : 0);
    return (!record->is_of_table || shape == &hone_row_decision) && record->count >= least &&
           record->count <= least + shape->count - first_count_of(shape) &&
           record->cells[lead].kind == (is_measured ? HONE_CELL_INTEGER : HONE_CELL_TEXT);
}

static void carry(hone_harvest *s, const hone_row_shape *shape, const hone_row *row)
{
    if (s->into != NULL) s->status = hone_put_row(s->into, shape, row, where, s->err);
    s->carried += s->status == HONE_OK;
}

static void set_aside(hone_harvest *s, const hone_row_shape *shape, const hone_row *row)
{
    if (s->into == NULL) return;
    const hone_store_quarantined quarantined =
        hone_quarantine_row(shape, row, "stood on a damaged page and does not match its checksum", &s->text);
    if (shape == &hone_row_quarantine) return;
    s->status = s->text.failed ? hone_fail_memory(s->err, where) : hone_damage_put(s->into, &quarantined, s->err);
    s->set_aside += s->status == HONE_OK;
}

static void take_measured(hone_harvest *s, const hone_row_shape *shape, const hone_page_record *record)
{
    static const measured_call unknown = {0};
    const int64_t number = record->cells[0].as.integer;
    hone_row row;
    for (size_t i = first_call(s, number); i < s->call_count && s->calls[i].number == number; i++)
        if (make_row(shape, record, &s->calls[i], &row)) {
            carry(s, shape, &row);
            return;
        }
    (void)make_row(shape, record, &unknown, &row);
    set_aside(s, shape, &row);
}

static bool take_row(void *ctx, const hone_page_record *record)
{
    static const hone_row_shape *const shapes[] = {
        &hone_row_decision, &hone_row_invocation, &hone_row_alias, &hone_row_foreign, &hone_row_quarantine};
    static const hone_row_shape *const measured[] = {&hone_row_measurement, &hone_row_failure};
    hone_harvest *s = ctx;
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++)
        if (is_of(measured[i], record, true)) take_measured(s, measured[i], record);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        hone_row row;
        if (!is_of(shapes[i], record, false)) continue;
        if (make_row(shapes[i], record, NULL, &row))
            carry(s, shapes[i], &row);
        else
            set_aside(s, shapes[i], &row);
    }
    return s->status == HONE_OK;
}

// Where the list of free pages is damaged too, pages of what was deleted cannot be told from others: only what SQLite
// finds, from both ends of each table, is taken.
static void walk_table(
    sqlite3 *db, const char *table, bool (*visit)(void *ctx, const hone_page_record *record), hone_harvest *s)
{
    char sql[80];
    sqlite3_stmt *statement = NULL;
    const bool is_calls = strcmp(table, "measured_call") == 0;
    snprintf(sql, sizeof sql, "SELECT * FROM %s%s", table, is_calls ? " NOT INDEXED" : "");
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) return;
    while (s->status == HONE_OK && sqlite3_step(statement) == SQLITE_ROW) {
        hone_page_record record = {.number = sqlite3_column_int64(statement, 0)};
        record.count = (size_t)sqlite3_column_count(statement);
        record.is_of_table = is_calls || record.count > hone_row_decision.count + 1;
        for (size_t i = 0; i < record.count && i < HONE_PAGE_CELLS; i++)
            if (!hone_cell_of_column(statement, (int)i, &record.cells[i])) s->status = hone_fail_memory(s->err, where);
        if (s->status == HONE_OK) visit(s, &record);
    }
    sqlite3_finalize(statement);
}

static void walk_tables(sqlite3 *db, hone_harvest *s)
{
    static const char *const tables[] = {"decision", "measurement",    "failure",   "invocation",
                                         "alias",    "foreign_config", "quarantine"};
    for (int back = 0; back < 2; back++) {
        sqlite3_exec(db, back ? "PRAGMA reverse_unordered_selects=1" : "PRAGMA cell_size_check=ON", NULL, NULL, NULL);
        walk_table(db, "measured_call", note_call, s);
    }
    if (s->call_count > 0) qsort(s->calls, s->call_count, sizeof *s->calls, by_number);
    for (int forth = 0; forth < 2; forth++) {
        sqlite3_exec(db, forth ? "PRAGMA reverse_unordered_selects=0" : "", NULL, NULL, NULL);
        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
            walk_table(db, tables[i], take_row, s);
    }
}

// All -----------------------------------------------------------------------------------------------------------------

// Two passes over the pages. Measurements name their call by a number, and the calls may stand behind them: the first
// pass gathers the calls, the second puts the rows. A page has no word of the table that it is of, so that a record is
// tried as a row of each shape whose columns it could have; its checksum over all columns says which it is, or none (a
// wrong shape passes once in 2^64). Cost: two reads of the file, and memory for its calls.
hone_status hone_harvest_pages(hone_harvest *s, const char *path, hone_pages which)
{
    hone_status status = hone_pages_read(path, which, &s->arena.allocator, note_call, s, s->err);
    if (s->call_count > 0) qsort(s->calls, s->call_count, sizeof *s->calls, by_number);
    if (status == HONE_OK) status = hone_pages_read(path, which, &s->arena.allocator, take_row, s, s->err);
    return status == HONE_OK ? s->status : status;
}

hone_status hone_harvest_tables(hone_harvest *s, const char *path)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK) walk_tables(db, s);
    sqlite3_close(db);
    return s->status;
}

// Whose it is ---------------------------------------------------------------------------------------------------------

// Whether a file has the header of a store. One that is cut, or in which SQLite's constants do not stand, is damaged:
// it tells that the file was a database, and not whose; a sound one names the application.
static bool has_header(const char *path)
{
    static const char magic[] = "SQLite format 3";
    static const unsigned char fractions[] = {64, 32, 32};
    enum { FRACTIONS = 21, APPLICATION = 68, HEADER_SIZE = 72 };
    unsigned char header[HEADER_SIZE];
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) return false;
    const size_t size = fread(header, 1, sizeof header, stream);
    fclose(stream);
    if (size < sizeof magic || memcmp(header, magic, sizeof magic) != 0) return false;
    if (size < sizeof header || memcmp(header + FRACTIONS, fractions, sizeof fractions) != 0) return true;
    return memcmp(header + APPLICATION, "hone", 4) == 0;
}

hone_status hone_harvest_look(const hone_allocator *allocator, const char *path, bool *out_is_store, hone_error *err)
{
    hone_harvest s;
    *out_is_store = has_header(path);
    if (*out_is_store) return HONE_OK;
    hone_harvest_init(&s, allocator, NULL, err);
    hone_status status = hone_harvest_pages(&s, path, HONE_PAGES_ALL);
    *out_is_store = s.carried > 0;
    hone_harvest_deinit(&s);
    return status;
}
