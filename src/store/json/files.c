// Reading, locking and writing the files of a JSON store.
#include "store/json/files.h"

#include "base/error.h"
#include "base/hash.h"
#include "store/json/document.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "store.json";
static const char common_name[] = "@store.json"; // '@' stands in no algorithm's file name
static const char list_name[] = ".commit";

enum { FILE_LIMIT = 1 << 30, LOCK_BYTE = 0 };

// Names have room: their parts are as long as a folder and a name may be. Returns how many characters were written.
static size_t print(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

static size_t print(char *out, size_t size, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int count = vsnprintf(out, size, format, list);
    va_end(list);
    return count < 0 ? 0 : (size_t)count;
}

// Names --------------------------------------------------------------------------------------------------------

static void path_of(const hone_json_files *files, const char *name, char out[HONE_JSON_PATH_SIZE])
{
    print(out, HONE_JSON_PATH_SIZE, "%s/%s", files->folder, name);
}

// ".rms_norm.json.new": who holds the lock writes them, so that one that stays behind is nobody's.
static void temporary_of(const hone_json_files *files, const char *name, char out[HONE_JSON_PATH_SIZE])
{
    print(out, HONE_JSON_PATH_SIZE, "%s/.%s.new", files->folder, name);
}

static bool is_plain(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || (c == '.' && !first);
}

// Other characters as %XX. One that gets too long is cut and told apart by its hash.
static void name_of_algorithm(const char *algorithm, char out[HONE_JSON_NAME_SIZE])
{
    enum { LIMIT = HONE_JSON_NAME_SIZE - 64 };
    size_t used = 0;
    for (const char *c = algorithm; *c != '\0'; c++) {
        if (used > LIMIT) {
            print(
                out + used, HONE_JSON_NAME_SIZE - used, "%%%016" PRIx64 ".json",
                hone_hash64(algorithm, strlen(algorithm)));
            return;
        }
        if (is_plain(*c, used == 0))
            out[used++] = *c;
        else
            used += print(out + used, 4, "%%%02X", (unsigned)(unsigned char)*c);
    }
    print(out + used, HONE_JSON_NAME_SIZE - used, ".json");
}

// The file that a row stands in: its algorithm's, where that is part of its key.
static void name_of_row(
    const hone_json_files *files, const hone_row_shape *shape, const hone_row *row, char out[HONE_JSON_NAME_SIZE])
{
    const char *name = files->single[0] != '\0' ? files->single : common_name;
    if (shape == files->damage.shape) name = row->cells[0].as.text;
    for (size_t i = 0; files->single[0] == '\0' && i < shape->key_count && shape != files->damage.shape; i++) {
        if (strcmp(hone_row_column_name(shape, i), "algorithm") != 0) continue;
        name_of_algorithm(row->cells[i].as.text, out);
        return;
    }
    print(out, HONE_JSON_NAME_SIZE, "%s", name);
}

static bool row_is_of(
    const hone_json_files *files, const hone_json_file *file, const hone_row_shape *shape, const hone_row *row)
{
    char name[HONE_JSON_NAME_SIZE];
    name_of_row(files, shape, row, name);
    return strcmp(name, file->name) == 0;
}

static hone_json_file *find_file(const hone_json_files *files, const char *name)
{
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->files[i].name, name) == 0) return &files->files[i];
    return NULL;
}

// The file of that name, added where it is not known. NULL: no memory.
static hone_json_file *need_file(hone_json_files *files, const char *name)
{
    hone_json_file *file = find_file(files, name);
    if (file != NULL) return file;
    if (!hone_grow(&files->allocator, &files->files, &files->capacity, files->count + 1, sizeof *files->files))
        return NULL;
    file = &files->files[files->count++];
    *file = (hone_json_file){0};
    print(file->name, sizeof file->name, "%s", name);
    return file;
}

// Reading ------------------------------------------------------------------------------------------------------

static hone_row damage_row(const char *file, const char *text, const char *reason)
{
    const char *const texts[] = {file, text, reason};
    hone_row row = {.count = sizeof texts / sizeof *texts};
    for (size_t i = 0; i < row.count; i++)
        row.cells[i] = (hone_cell){.kind = HONE_CELL_TEXT, .size = strlen(texts[i]), .as.text = texts[i]};
    return row;
}

typedef struct loading {
    hone_json_files *files;
    const hone_json_file *file;
    size_t fresh; // lines that were found damaged now
} loading;

static bool take_damage(void *ctx, const char *text, const char *reason, bool is_new)
{
    loading *load = ctx;
    const hone_row row = damage_row(load->file->name, text, reason);
    load->fresh += is_new;
    return hone_table_put(load->files->tables.changes, &load->files->damage, &row);
}

static bool take_row(void *ctx, const hone_row_shape *shape, const hone_row *row)
{
    loading *load = ctx;
    hone_memory_tables *tables = &load->files->tables;
    for (size_t i = 0; i < tables->count; i++)
        if (tables->tables[i].shape == shape && row_is_of(load->files, load->file, shape, row))
            return hone_table_put(tables->changes, &tables->tables[i], row);
    hone_buffer text;
    hone_buffer_init(&text, load->files->allocator);
    hone_document_row(&text, shape, row);
    bool ok = !text.failed && take_damage(ctx, hone_buffer_string(&text), "it belongs into another file", true);
    hone_buffer_deinit(&text);
    return ok;
}

static bool drop_rows(hone_json_files *files, const hone_json_file *file, hone_table *table)
{
    for (size_t i = table->count; i > 0; i--)
        if (row_is_of(files, file, table->shape, table->rows[i - 1]) &&
            !hone_table_remove(files->tables.changes, table, table->rows[i - 1]))
            return false;
    return true;
}

static bool drop_file(hone_json_files *files, const hone_json_file *file)
{
    bool ok = drop_rows(files, file, &files->damage);
    for (size_t i = 0; ok && i < files->tables.count; i++)
        ok = drop_rows(files, file, &files->tables.tables[i]);
    return ok;
}

// Once for each state of a file: it is read again only when it changes.
static void tell_damage(hone_json_files *files, const hone_json_file *file, const char *path, size_t fresh)
{
    files->fresh += fresh;
    if (file->is_broken)
        hone_log_write(
            files->log, HONE_LOG_WARNING,
            "%s: it is damaged; what is sound in it is served, and it gets a second name before it is written again",
            path);
    else if (fresh > 0)
        hone_log_write(
            files->log, HONE_LOG_WARNING, "%s: %zu lines are damaged; they are kept in it and never served", path,
            fresh);
}

static hone_status read_rows(hone_json_files *files, hone_json_file *file, const hone_buffer *text, hone_error *err)
{
    enum { SHAPES = 16 };
    const hone_row_shape *shapes[SHAPES] = {NULL};
    loading load = {files, file, 0};
    const hone_document_reader reader = {files->allocator, &load, take_row, take_damage};
    char path[HONE_JSON_PATH_SIZE];
    for (size_t i = 0; i < files->tables.count && i < SHAPES - 1; i++)
        shapes[i] = files->tables.tables[i].shape;
    path_of(files, file->name, path);
    hone_status status =
        hone_document_read(path, hone_buffer_string(text), text->size, shapes, &reader, &file->is_broken, err);
    if (status == HONE_OK) tell_damage(files, file, path, load.fresh);
    return status;
}

// Puts what stands in the file now in the place of what stood there.
static hone_status load_file(hone_json_files *files, hone_json_file *file, hone_error *err)
{
    char path[HONE_JSON_PATH_SIZE];
    hone_buffer text;
    path_of(files, file->name, path);
    hone_buffer_init(&text, files->allocator);
    // Before the bytes: a file that changes meanwhile is read again.
    file->stamp = hone_os_file_stamp(path);
    file->is_broken = false;
    hone_status status = drop_file(files, file) ? HONE_OK : hone_fail_memory(err, where);
    if (status == HONE_OK) {
        status = hone_os_read_file(path, FILE_LIMIT, &text, err);
        if (status == HONE_OK) status = read_rows(files, file, &text, err);
        if (status == HONE_NOT_FOUND) status = HONE_OK;
    }
    hone_buffer_deinit(&text);
    return status;
}

// Memory and disk may differ: the file is read again.
static void forget(hone_json_file *file)
{
    file->stamp = (hone_file_stamp){.inode = UINT64_MAX};
}

static bool is_current(const hone_json_files *files, const hone_json_file *file)
{
    char path[HONE_JSON_PATH_SIZE];
    path_of(files, file->name, path);
    const hone_file_stamp a = hone_os_file_stamp(path), *b = &file->stamp;
    return a.device == b->device && a.inode == b->inode && a.size == b->size && a.time_ns == b->time_ns;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

typedef struct listing {
    hone_json_files *files;
    bool out_of_memory;
} listing;

static bool list_file(void *ctx, const char *name)
{
    listing *list = ctx;
    if (name[0] == '.' || !ends_with(name, ".json") || strlen(name) >= HONE_JSON_NAME_SIZE) return true;
    list->out_of_memory = need_file(list->files, name) == NULL;
    return !list->out_of_memory;
}

// Adds the files that came. Those that are gone are found by their stamps.
static hone_status list_files(hone_json_files *files, hone_error *err)
{
    listing list = {files, false};
    if (files->single[0] != '\0') return need_file(files, files->single) ? HONE_OK : hone_fail_memory(err, where);
    hone_status status = hone_os_list_folder(files->folder, list_file, &list, err);
    if (list.out_of_memory) return hone_fail_memory(err, where);
    return status == HONE_NOT_FOUND ? HONE_OK : status;
}

static hone_status load_changed(hone_json_files *files, hone_error *err)
{
    hone_status status = list_files(files, err);
    for (size_t i = 0; status == HONE_OK && i < files->count; i++) {
        hone_json_file *file = &files->files[i];
        file->is_changed = !is_current(files, file);
        if (file->is_changed) status = load_file(files, file, err);
    }
    if (status == HONE_OK) {
        hone_table_commit(files->tables.changes);
        return HONE_OK;
    }
    hone_table_rollback(files->tables.changes);
    for (size_t i = 0; i < files->count; i++)
        if (files->files[i].is_changed) forget(&files->files[i]);
    return status;
}

// The lock file ------------------------------------------------------------------------------------------------
//
// Its text: a number in hex, odd while several files change together, and 'w' while somebody writes.

enum { NUMBER_SIZE = 16, MARK_AT = NUMBER_SIZE };

static uint64_t read_number(const hone_json_files *files)
{
    char text[NUMBER_SIZE + 1] = "";
    if (files->lock < 0 || !hone_os_lock_read_note(files->lock, 0, text, NUMBER_SIZE)) return 0;
    return strtoull(text, NULL, 16);
}

static void write_number(const hone_json_files *files, uint64_t number)
{
    char text[NUMBER_SIZE + 1];
    print(text, sizeof text, "%016" PRIx64, number);
    (void)hone_os_lock_note(files->lock, 0, text, NUMBER_SIZE);
}

static bool is_marked(const hone_json_files *files)
{
    char mark[2] = "";
    return hone_os_lock_read_note(files->lock, MARK_AT, mark, 1) && mark[0] == 'w';
}

static void mark(const hone_json_files *files, bool is_writing)
{
    (void)hone_os_lock_note(files->lock, MARK_AT, is_writing ? "w" : "-", 1);
}

static void lock_path_of(const hone_json_files *files, char out[HONE_JSON_PATH_SIZE])
{
    print(out, HONE_JSON_PATH_SIZE, "%s/.%s%slock", files->folder, files->single, files->single[0] != '\0' ? "." : "");
}

// Who may write the files may lock them.
static hone_status open_lock(hone_json_files *files, hone_error *err)
{
    char path[HONE_JSON_PATH_SIZE], beside[HONE_JSON_PATH_SIZE];
    if (files->lock >= 0) return HONE_OK;
    lock_path_of(files, path);
    path_of(files, files->single, beside);
    unsigned mode = hone_os_file_mode(files->single[0] != '\0' ? beside : files->folder, 0666) & 0666;
    return hone_os_lock_open(path, mode | 0600, &files->lock, err);
}

static hone_status wait_for_lock(hone_json_files *files, hone_error *err)
{
    static const uint64_t limit_ns = UINT64_C(10000000000), pause_ns = 500000;
    char path[HONE_JSON_PATH_SIZE];
    lock_path_of(files, path);
    for (const uint64_t deadline = hone_os_now_ns() + limit_ns;; hone_os_sleep_ns(pause_ns)) {
        hone_status status = open_lock(files, err);
        if (status == HONE_OK) status = hone_os_lock_try(files->lock, LOCK_BYTE, err);
        if (status == HONE_OK && hone_os_is_file_at(files->lock, path)) return HONE_OK;
        // Somebody removed the lock file: the lock of the old one shuts nobody out.
        if (status == HONE_OK) hone_os_lock_close(&files->lock);
        if (status != HONE_OK && status != HONE_BUSY) return status;
        if (hone_os_now_ns() > deadline)
            return hone_fail(
                err, HONE_BUSY, where, "%s: another process writes for too long: try again, or use sqlite:PATH",
                files->folder);
    }
}

static void give_back(hone_json_files *files)
{
    if (files->is_complete) mark(files, false);
    hone_os_lock_leave(files->lock, LOCK_BYTE);
}

// What a crash left --------------------------------------------------------------------------------------------

// Renames what the list of a change names, as far as it is not done. Names that lead out of the folder are not the store's.
static hone_status finish_change(hone_json_files *files, char *names, hone_error *err)
{
    hone_status status = HONE_OK;
    for (char *name = names, *next; status == HONE_OK && *name != '\0'; name = next) {
        char from[HONE_JSON_PATH_SIZE], to[HONE_JSON_PATH_SIZE];
        size_t size = strcspn(name, "\n");
        next = name + size + (name[size] == '\n');
        name[size] = '\0';
        if (strchr(name, '/') != NULL || name[0] == '.' || size >= HONE_JSON_NAME_SIZE || !ends_with(name, ".json"))
            continue;
        temporary_of(files, name, from);
        path_of(files, name, to);
        if (hone_os_file_stamp(from).inode != 0) status = hone_os_rename(from, to, err);
    }
    return status == HONE_OK ? hone_os_sync_folder(files->folder, err) : status;
}

static hone_status finish_listed(hone_json_files *files, hone_error *err)
{
    enum { LIST_LIMIT = 1 << 24 };
    char path[HONE_JSON_PATH_SIZE];
    hone_buffer names;
    path_of(files, list_name, path);
    hone_buffer_init(&names, files->allocator);
    hone_status status = hone_os_read_file(path, LIST_LIMIT, &names, err);
    if (status == HONE_OK && names.size > 0) status = finish_change(files, names.data, err);
    hone_buffer_deinit(&names);
    if (status == HONE_OK) hone_os_remove_file(path);
    return status == HONE_NOT_FOUND ? HONE_OK : status;
}

static bool remove_temporary(void *ctx, const char *name)
{
    const hone_json_files *files = ctx;
    char own[HONE_JSON_NAME_SIZE + 8], path[HONE_JSON_PATH_SIZE + 16];
    print(own, sizeof own, ".%s.new", files->single);
    bool is_own = files->single[0] != '\0' ? strcmp(name, own) == 0 : name[0] == '.' && ends_with(name, ".new");
    if (!is_own || strlen(name) >= HONE_JSON_NAME_SIZE + 8) return true;
    print(path, sizeof path, "%s/%s", files->folder, name);
    hone_os_remove_file(path);
    return true;
}

// Under the lock: nobody else writes, so what is not done was left by who is gone.
static hone_status complete(hone_json_files *files, hone_error *err)
{
    hone_status status = files->single[0] != '\0' ? HONE_OK : finish_listed(files, err);
    if (status != HONE_OK) return status;
    const uint64_t number = read_number(files);
    if (number % 2 != 0) write_number(files, number + 1);
    files->is_complete = true;
    return hone_os_list_folder(files->folder, remove_temporary, files, err);
}

// Opening and refreshing ---------------------------------------------------------------------------------------

// A folder ending in ".json" is a folder all the same.
static hone_status split_location(hone_json_files *files, const char *location, hone_error *err)
{
    char path[HONE_JSON_PATH_SIZE];
    size_t size = strlen(location);
    while (size > 1 && location[size - 1] == '/')
        size--;
    if (size == 0)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "json: has no path: write json:FOLDER or json:FILE.json");
    if (size >= sizeof files->folder)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "json:%.100s...: the path is too long", location);
    print(path, sizeof path, "%.*s", (int)size, location);
    if (!ends_with(path, ".json") || hone_os_is_folder(path)) {
        print(files->folder, sizeof files->folder, "%s", path);
        return HONE_OK;
    }
    // The file behind a link is the store: the link stays.
    if (!hone_os_real_path(path, path, sizeof files->folder)) print(path, sizeof path, "%.*s", (int)size, location);
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    if (strlen(name) >= sizeof files->single - 8)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "json:%.100s...: the name is too long", location);
    print(files->single, sizeof files->single, "%s", name);
    print(
        files->folder, sizeof files->folder, "%.*s",
        slash == NULL   ? 1
        : slash == path ? 1
                        : (int)(slash - path),
        slash == NULL ? "." : path);
    return HONE_OK;
}

// A crash is cleaned up after by who opens the store next, when it can.
static void complete_at_open(hone_json_files *files)
{
    char path[HONE_JSON_PATH_SIZE];
    lock_path_of(files, path);
    if (hone_os_file_stamp(path).inode == 0 || open_lock(files, NULL) != HONE_OK || !is_marked(files)) return;
    if (hone_os_lock_try(files->lock, LOCK_BYTE, NULL) != HONE_OK) return;
    if (complete(files, NULL) == HONE_OK) mark(files, false);
    hone_os_lock_leave(files->lock, LOCK_BYTE);
}

hone_status hone_json_files_open(
    hone_json_files *files,
    const hone_allocator *allocator,
    const char *location,
    const hone_log *log,
    const hone_memory_tables *tables,
    hone_error *err)
{
    static const hone_row_shape damage = {.name = "damaged", .count = 3, .key_count = 2};
    *files = (hone_json_files){.allocator = *allocator, .log = log, .tables = *tables, .lock = -1};
    files->damage.shape = &damage;
    hone_status status = split_location(files, location, err);
    if (status == HONE_OK) status = hone_os_make_folders(files->folder, err);
    if (status == HONE_OK) complete_at_open(files);
    if (status == HONE_OK) status = hone_json_files_refresh(files, err);
    if (status != HONE_OK) hone_json_files_close(files);
    return status;
}

void hone_json_files_close(hone_json_files *files)
{
    hone_table_deinit(&files->allocator, &files->damage);
    hone_free(&files->allocator, files->files);
    hone_os_lock_close(&files->lock);
}

// Without the lock, but not while several files change together.
static hone_status load_between_changes(hone_json_files *files, hone_error *err)
{
    enum { TRIES = 200 };
    char path[HONE_JSON_PATH_SIZE];
    // Whoever writes first makes the lock file. One file alone changes at once, and needs no number.
    lock_path_of(files, path);
    if (files->lock < 0 && files->single[0] == '\0' && hone_os_file_stamp(path).inode != 0)
        (void)!open_lock(files, NULL);
    for (int i = 0; i < TRIES; i++) {
        const uint64_t before = read_number(files);
        if (before % 2 == 0) {
            hone_status status = load_changed(files, err);
            if (status != HONE_OK || read_number(files) == before) return status;
        }
        hone_os_sleep_ns(1000000);
    }
    return HONE_BUSY;
}

hone_status hone_json_files_refresh(hone_json_files *files, hone_error *err)
{
    if (files->depth > 0) return HONE_OK; // under the lock, by begin
    hone_status status = load_between_changes(files, err);
    if (status != HONE_BUSY) return status;
    // Somebody died in between, or many write without a pause.
    status = hone_json_files_begin(files, err);
    return status == HONE_OK ? hone_json_files_end(files, HONE_OK, err) : status;
}

hone_status hone_json_files_begin(hone_json_files *files, hone_error *err)
{
    if (files->depth > 0) {
        files->depth++;
        return HONE_OK;
    }
    hone_status status = wait_for_lock(files, err);
    if (status != HONE_OK) return status;
    if (!files->is_complete || is_marked(files) || read_number(files) % 2 != 0) status = complete(files, err);
    mark(files, true);
    if (status == HONE_OK) status = load_changed(files, err);
    if (status == HONE_OK)
        files->depth = 1;
    else
        give_back(files);
    return status;
}

// Writing ------------------------------------------------------------------------------------------------------

static void write_rows(
    const hone_json_files *files, const hone_json_file *file, const hone_table *table, hone_buffer *out)
{
    for (size_t i = 0; i < table->count; i++) {
        const hone_row *row = table->rows[i];
        if (!row_is_of(files, file, table->shape, row)) continue;
        if (table->shape == files->damage.shape)
            hone_document_damage(out, row->cells[1].as.text, row->cells[2].as.text);
        else
            hone_document_row(out, table->shape, row);
    }
}

static hone_status write_file(const hone_json_files *files, const hone_json_file *file, hone_error *err)
{
    char path[HONE_JSON_PATH_SIZE], temporary[HONE_JSON_PATH_SIZE];
    hone_buffer text;
    hone_buffer_init(&text, files->allocator);
    hone_document_begin(&text);
    for (size_t i = 0; i < files->tables.count; i++)
        write_rows(files, file, &files->tables.tables[i], &text);
    write_rows(files, file, &files->damage, &text);
    hone_document_end(&text);
    path_of(files, file->name, path);
    temporary_of(files, file->name, temporary);
    hone_status status = text.failed ? hone_fail_memory(err, where) : HONE_OK;
    if (status == HONE_OK && text.size > FILE_LIMIT)
        status = hone_fail(
            err, HONE_IO, where, "%s would be larger than %d bytes: use sqlite:PATH for so much", path,
            (int)FILE_LIMIT);
    if (status == HONE_OK) status = hone_os_write_beside(path, temporary, text.data, text.size, err);
    hone_buffer_deinit(&text);
    return status;
}

// Marks the files that rows changed in. False: no memory.
static bool mark_changed(hone_json_files *files, size_t *out_count)
{
    const hone_table_changes *changes = files->tables.changes;
    for (size_t i = 0; i < files->count; i++)
        files->files[i].is_changed = false;
    *out_count = 0;
    for (size_t i = 0; i < changes->count; i++) {
        const hone_table_change *change = &changes->list[i];
        char name[HONE_JSON_NAME_SIZE];
        name_of_row(files, change->table->shape, change->added != NULL ? change->added : change->replaced, name);
        hone_json_file *file = need_file(files, name);
        if (file == NULL) return false;
        *out_count += !file->is_changed;
        file->is_changed = true;
    }
    return true;
}

// A file that is damaged as a whole gets a second name before another takes its place.
static hone_status keep_aside(const hone_json_files *files, const hone_json_file *file, hone_error *err)
{
    enum { TRIES = 100 };
    char path[HONE_JSON_PATH_SIZE], aside[HONE_JSON_PATH_SIZE + 48], time[24];
    hone_status status = HONE_OK;
    if (!file->is_broken) return HONE_OK;
    path_of(files, file->name, path);
    hone_os_format_utc(hone_os_now_utc(), time);
    for (int i = 1; i <= TRIES; i++) {
        print(aside, sizeof aside, "%s.damaged-%s-%d", path, time, i);
        status = hone_os_link(path, aside, err);
        if (status == HONE_OK || hone_os_file_stamp(aside).inode == 0) break;
    }
    return status;
}

static hone_status write_list(const hone_json_files *files, hone_error *err)
{
    char path[HONE_JSON_PATH_SIZE], temporary[HONE_JSON_PATH_SIZE];
    hone_buffer names;
    hone_buffer_init(&names, files->allocator);
    for (size_t i = 0; i < files->count; i++)
        if (files->files[i].is_changed) hone_buffer_format(&names, "%s\n", files->files[i].name);
    path_of(files, list_name, path);
    temporary_of(files, list_name, temporary);
    hone_status status = names.failed ? hone_fail_memory(err, where) : HONE_OK;
    if (status == HONE_OK) status = hone_os_write_beside(path, temporary, names.data, names.size, err);
    if (status == HONE_OK) status = hone_os_rename(temporary, path, err);
    if (status == HONE_OK) status = hone_os_sync_folder(files->folder, err);
    hone_buffer_deinit(&names);
    return status;
}

static hone_status rename_changed(const hone_json_files *files, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < files->count; i++) {
        char from[HONE_JSON_PATH_SIZE], to[HONE_JSON_PATH_SIZE];
        if (!files->files[i].is_changed) continue;
        temporary_of(files, files->files[i].name, from);
        path_of(files, files->files[i].name, to);
        status = hone_os_rename(from, to, err);
    }
    return status == HONE_OK ? hone_os_sync_folder(files->folder, err) : status;
}

// Several files change together once the list of them stands: who comes after a crash renames the rest.
static hone_status rename_together(hone_json_files *files, hone_error *err)
{
    char path[HONE_JSON_PATH_SIZE];
    const uint64_t number = read_number(files);
    write_number(files, number + 1);
    hone_status status = write_list(files, err);
    if (status == HONE_OK) {
        files->is_complete = false;
        status = rename_changed(files, err);
    }
    if (status != HONE_OK && !files->is_complete) return status;
    path_of(files, list_name, path);
    hone_os_remove_file(path);
    files->is_complete = true;
    write_number(files, number + 2);
    return status;
}

static hone_status write_changed(hone_json_files *files, hone_error *err)
{
    size_t count = 0;
    hone_status status = mark_changed(files, &count) ? HONE_OK : hone_fail_memory(err, where);
    for (size_t i = 0; status == HONE_OK && i < files->count; i++) {
        if (!files->files[i].is_changed) continue;
        status = keep_aside(files, &files->files[i], err);
        if (status == HONE_OK) status = write_file(files, &files->files[i], err);
    }
    if (status == HONE_OK && count > 1) return rename_together(files, err);
    if (status == HONE_OK && count == 1) status = rename_changed(files, err);
    return status;
}

// After a change that took place the files are what is in memory.
static void stamp_changed(hone_json_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        char path[HONE_JSON_PATH_SIZE];
        hone_json_file *file = &files->files[i];
        if (!file->is_changed) continue;
        path_of(files, file->name, path);
        file->stamp = hone_os_file_stamp(path);
        file->is_broken = false;
    }
}

static void take_back(hone_json_files *files)
{
    hone_table_rollback(files->tables.changes);
    for (size_t i = 0; i < files->count; i++)
        if (files->files[i].is_changed) forget(&files->files[i]);
    if (files->is_complete) (void)hone_os_list_folder(files->folder, remove_temporary, files, NULL);
}

hone_status hone_json_files_end(hone_json_files *files, hone_status status, hone_error *err)
{
    if (--files->depth > 0) return status;
    if (status == HONE_OK && files->tables.changes->count > 0) {
        status = write_changed(files, err);
        if (status == HONE_OK) {
            hone_table_commit(files->tables.changes);
            stamp_changed(files);
        } else {
            take_back(files);
        }
    } else {
        hone_table_rollback(files->tables.changes);
    }
    give_back(files);
    return status;
}

hone_status hone_json_files_clear_damage(hone_json_files *files, hone_error *err)
{
    bool ok = true;
    for (size_t i = files->damage.count; ok && i > 0; i--)
        ok = hone_table_remove(files->tables.changes, &files->damage, files->damage.rows[i - 1]);
    return ok ? HONE_OK : hone_fail_memory(err, where);
}

hone_status hone_json_files_check(const hone_json_files *files, hone_error *err)
{
    for (size_t i = 0; i < files->count; i++)
        if (files->files[i].is_broken)
            return hone_fail(
                err, HONE_CORRUPT, where,
                "%s/%s is damaged: records may be missing; what is sound is served, and the file gets a second name "
                "before it is written again",
                files->folder, files->files[i].name);
    return HONE_OK;
}

uint64_t hone_json_files_bytes(const hone_json_files *files)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < files->count; i++)
        bytes += files->files[i].stamp.inode == UINT64_MAX ? 0 : files->files[i].stamp.size;
    return bytes;
}
