#include "store/sqlite/salvage.h"

#include "base/buffer.h"
#include "base/error.h"
#include "os/os.h"
#include "store/quarantine.h"
#include "store/sqlite/aside.h"
#include "store/sqlite/damage.h"
#include "store/sqlite/pages.h"
#include "store/sqlite/put.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "store.sqlite.salvage";

// The texts of a call that was measured, which stand in a table of their own.
enum { CALL_CELLS = 5 };

typedef struct measured_call {
    int64_t number;
    hone_cell cells[CALL_CELLS];
} measured_call;

typedef struct salvage {
    hone_arena arena; // texts of the calls
    measured_call *calls;
    size_t call_count, call_capacity;
    hone_connection fresh;
    hone_buffer text;
    uint64_t carried, set_aside;
    hone_status status; // of what a visit did
    hone_error *err;
} salvage;

// Calls --------------------------------------------------------------------------------------------------------

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
    salvage *s = ctx;
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
static size_t first_call(const salvage *s, int64_t number)
{
    size_t low = 0, high = s->call_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (s->calls[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Records ------------------------------------------------------------------------------------------------------

static size_t first_count_of(const hone_row_shape *shape)
{
    return shape->first_count > 0 ? shape->first_count : shape->count;
}

// Decisions stand under numbers since schema 4, whose column is the first.
static size_t number_cells(const hone_page_record *record)
{
    return record->is_of_table ? 1 : 0;
}

// A row of the cells of a call, where there is one, and of a record, whose checksum stands behind the columns of the first
// schema. SQLite keeps a real number that is whole as an integer.
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

static void carry(salvage *s, const hone_row_shape *shape, const hone_row *row)
{
    s->status = hone_put_row(&s->fresh, shape, row, where, s->err);
    s->carried += s->status == HONE_OK;
}

static void set_aside(salvage *s, const hone_row_shape *shape, const hone_row *row)
{
    const hone_store_quarantined quarantined =
        hone_quarantine_row(shape, row, "stood on a damaged page and does not match its checksum", &s->text);
    if (shape == &hone_row_quarantine) return;
    s->status = s->text.failed ? hone_fail_memory(s->err, where) : hone_damage_put(&s->fresh, &quarantined, s->err);
    s->set_aside += s->status == HONE_OK;
}

static void take_measured(salvage *s, const hone_row_shape *shape, const hone_page_record *record)
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
    salvage *s = ctx;
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

// Where the list of free pages is damaged too, pages of what was deleted cannot be told from others: only what SQLite finds,
// from both ends of each table, is taken.
static void walk_table(
    sqlite3 *db, const char *table, bool (*visit)(void *ctx, const hone_page_record *record), salvage *s)
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

static void walk_tables(sqlite3 *db, salvage *s)
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

// The new store ------------------------------------------------------------------------------------------------

static hone_status read_copy(salvage *s, const char *copy, bool has_sound_list)
{
    hone_status status = HONE_CORRUPT;
    if (has_sound_list) {
        status = hone_pages_read(copy, &s->arena.allocator, note_call, s, s->err);
        if (s->call_count > 0) qsort(s->calls, s->call_count, sizeof *s->calls, by_number);
        if (status == HONE_OK) status = hone_pages_read(copy, &s->arena.allocator, take_row, s, s->err);
    }
    if (status != HONE_CORRUPT) return status == HONE_OK ? s->status : status;
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(copy, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK) walk_tables(db, s);
    sqlite3_close(db);
    return s->status;
}

// Opens a new store at path and puts what is sound in a copy of the old one into it.
static hone_status fill(salvage *s, const hone_log *log, const char *copy, const char *path, bool has_sound_list)
{
    hone_status status = hone_connection_open(&s->fresh, &s->arena.allocator, log, path, s->err);
    if (status != HONE_OK) return status;
    status = hone_connection_begin(&s->fresh, where, s->err);
    if (status == HONE_OK) {
        status = read_copy(s, copy, has_sound_list);
        status = hone_connection_end(&s->fresh, status, where, s->err);
    }
    hone_connection_close(&s->fresh);
    return status;
}

// Page by page, as the file and its WAL stand: SQLite looks at none of them.
static hone_status copy_pages(hone_connection *connection, const char *file, const char *copy, hone_error *err)
{
    sqlite3 *from = NULL, *to = NULL;
    sqlite3_backup *backup = NULL;
    int code = sqlite3_open_v2(file, &from, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_open_v2(copy, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK) {
        sqlite3_busy_timeout(from, HONE_CONNECTION_PATIENCE_MS);
        backup = sqlite3_backup_init(to, "main", from, "main");
        if (backup != NULL) sqlite3_backup_step(backup, -1);
        code = backup == NULL ? sqlite3_errcode(to) : sqlite3_backup_finish(backup);
    }
    // So that the file is whole without its WAL.
    if (code == SQLITE_OK) sqlite3_wal_checkpoint_v2(from, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    sqlite3_close(to);
    sqlite3_close(from);
    return code == SQLITE_OK ? HONE_OK : hone_connection_fail(connection, code, where, "copy the damaged file", err);
}

// Whether SQLite finds no fault with the list of free pages, nor a page that is both free and not.
static bool has_sound_list(hone_connection *connection)
{
    static const char *const faults[] = {"reelist", "nd reference"};
    sqlite3_stmt *statement = NULL;
    bool is_sound =
        sqlite3_prepare_v2(connection->db, "PRAGMA integrity_check(1000)", -1, &statement, NULL) == SQLITE_OK;
    while (is_sound && sqlite3_step(statement) == SQLITE_ROW) {
        const char *words = (const char *)sqlite3_column_text(statement, 0);
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
            is_sound = is_sound && words != NULL && strstr(words, faults[i]) == NULL;
    }
    sqlite3_finalize(statement);
    return is_sound;
}

static void remove_files(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    char name[HONE_ASIDE_SIZE];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (snprintf(name, sizeof name, "%s%s", path, suffixes[i]) < (int)sizeof name) hone_os_remove_file(name);
}

static hone_status carry_over(hone_connection *connection, const char *file, const hone_error *damage, hone_error *err)
{
    char copy[HONE_ASIDE_SIZE], fresh[HONE_ASIDE_SIZE], moved[HONE_ASIDE_SIZE];
    salvage s = {.arena = {connection->allocator, NULL}, .err = err};
    if (snprintf(copy, sizeof copy, "%s.salvage", file) >= (int)sizeof copy ||
        snprintf(fresh, sizeof fresh, "%s.mended", file) >= (int)sizeof fresh)
        return hone_fail(err, HONE_IO, where, "%.200s...: the path is too long", file);
    hone_buffer_init(&s.text, connection->allocator);
    remove_files(copy); // of who was killed here
    remove_files(fresh);
    hone_status status = copy_pages(connection, file, copy, err);
    if (status == HONE_OK) status = fill(&s, &connection->log, copy, fresh, has_sound_list(connection));
    if (status == HONE_OK) status = hone_aside_replace(file, fresh, moved, err);
    if (status == HONE_OK)
        hone_log_write(
            &connection->log, HONE_LOG_WARNING,
            "%s; it was moved to %s, and a new store was begun with what is sound of it: %" PRIu64
            " records, and %" PRIu64 " that are not, set aside",
            damage->message, moved, s.carried, s.set_aside);
    remove_files(copy);
    if (status != HONE_OK) remove_files(fresh);
    hone_buffer_deinit(&s.text);
    hone_free(&connection->allocator, s.calls);
    hone_arena_destroy(&s.arena);
    return status;
}

// Under the lock, and as the only writer: what another process has mended meanwhile is only to be opened again.
static hone_status mend(hone_connection *connection, const char *file, hone_error *err)
{
    hone_error damage = {.message = ""};
    if (hone_connection_is_moved(connection)) return HONE_OK;
    hone_status status = hone_connection_begin(connection, where, err);
    if (status != HONE_OK) return status;
    status = hone_damage_check_file(connection, &damage);
    if (status == HONE_CORRUPT) status = carry_over(connection, file, &damage, err);
    // Nothing was written: what is rolled back is the lock.
    (void)hone_connection_end(connection, HONE_CORRUPT, where, NULL);
    return status;
}

hone_status hone_salvage(hone_connection *connection, hone_error *err)
{
    int lock = -1;
    char file[HONE_ASIDE_SIZE];
    if (connection->depth > 0 || connection->is_fixed || connection->hopeless) return HONE_CORRUPT;
    if (hone_connection_is_moved(connection)) return hone_connection_reopen(connection, err);
    if (connection->read_only) return HONE_CORRUPT;
    if (!hone_os_real_path(connection->path, file, sizeof file)) snprintf(file, sizeof file, "%s", connection->path);
    hone_status status = hone_aside_lock(file, &lock, err);
    if (status == HONE_OK) status = mend(connection, file, err);
    hone_os_lock_close(&lock);
    if (status == HONE_OK) return hone_connection_reopen(connection, err);
    connection->hopeless = status != HONE_BUSY; // it would be tried at each call
    return status;
}
