// Files of a JSON store into its tables: all lines, or those that are whole.
#include "store/json/parts.h"

#include "base/error.h"
#include "os/plain_file.h"
#include "store/json/document.h"

#include <string.h>

static const char where[] = "store.json";

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
        if (tables->tables[i].shape == shape && hone_json_row_is_of(load->files, load->file, shape, row))
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
        if (hone_json_row_is_of(files, file, table->shape, table->rows[i - 1]) &&
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
    hone_json_path_of(files, file->name, path);
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
    hone_json_path_of(files, file->name, path);
    hone_buffer_init(&text, files->allocator);
    // Before the bytes: a file that changes meanwhile is read again.
    file->stamp = hone_os_file_stamp(path);
    file->is_broken = false;
    hone_status status = drop_file(files, file) ? HONE_OK : hone_fail_memory(err, where);
    if (status == HONE_OK) {
        status = hone_os_read_plain_file(path, HONE_JSON_FILE_LIMIT, &text, err);
        if (status == HONE_OK) status = read_rows(files, file, &text, err);
        if (status == HONE_NOT_FOUND) status = HONE_OK;
    }
    hone_buffer_deinit(&text);
    return status;
}

void hone_json_forget(hone_json_file *file)
{
    file->stamp = (hone_file_stamp){.inode = UINT64_MAX};
}

static bool is_current(const hone_json_files *files, const hone_json_file *file)
{
    char path[HONE_JSON_PATH_SIZE];
    hone_json_path_of(files, file->name, path);
    const hone_file_stamp a = hone_os_file_stamp(path), *b = &file->stamp;
    return a.device == b->device && a.inode == b->inode && a.size == b->size && a.time_ns == b->time_ns;
}

bool hone_json_ends_with(const char *text, const char *end)
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
    if (name[0] == '.' || !hone_json_ends_with(name, ".json") || strlen(name) >= HONE_JSON_NAME_SIZE) return true;
    list->out_of_memory = hone_json_need_file(list->files, name) == NULL;
    return !list->out_of_memory;
}

// Adds the files that came. Those that are gone are found by their stamps.
static hone_status list_files(hone_json_files *files, hone_error *err)
{
    listing list = {files, false};
    if (files->single[0] != '\0')
        return hone_json_need_file(files, files->single) != NULL ? HONE_OK : hone_fail_memory(err, where);
    hone_status status = hone_os_list_folder(files->folder, list_file, &list, err);
    if (list.out_of_memory) return hone_fail_memory(err, where);
    return status == HONE_NOT_FOUND ? HONE_OK : status;
}

hone_status hone_json_load_changed(hone_json_files *files, hone_error *err)
{
    hone_status status = list_files(files, err);
    for (size_t i = 0; status == HONE_OK && i < files->count; i++) {
        hone_json_file *file = &files->files[i];
        file->is_changed = !is_current(files, file);
        if (file->is_changed) status = load_file(files, file, err);
        files->loads += file->is_changed;
    }
    if (status == HONE_OK) {
        hone_table_commit(files->tables.changes);
        return HONE_OK;
    }
    hone_table_rollback(files->tables.changes);
    for (size_t i = 0; i < files->count; i++)
        if (files->files[i].is_changed) hone_json_forget(&files->files[i]);
    return status;
}
