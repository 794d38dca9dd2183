// Tables of a JSON store into its files: under other names first, then all together.
#include "store/json/parts.h"

#include "base/assert.h"
#include "base/error.h"
#include "store/json/document.h"

static const char where[] = "store.json";

static void write_rows(
    const hone_json_files *files, const hone_json_file *file, const hone_table *table, hone_buffer *out)
{
    for (size_t i = 0; i < table->count; i++) {
        const hone_row *row = table->rows[i];
        if (!hone_json_row_is_of(files, file, table->shape, row)) continue;
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
    hone_json_path_of(files, file->name, path);
    hone_json_temporary_of(files, file->name, temporary);
    hone_status status = text.failed ? hone_fail_memory(err, where) : HONE_OK;
    if (status == HONE_OK && text.size > HONE_JSON_FILE_LIMIT)
        status = hone_fail(
            err, HONE_IO, where, "%s would be larger than %d bytes: use a store of another kind for so much", path,
            (int)HONE_JSON_FILE_LIMIT);
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
        hone_json_name_of_row(
            files, change->table->shape, change->added != NULL ? change->added : change->replaced, name);
        hone_json_file *file = hone_json_need_file(files, name);
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
    hone_json_path_of(files, file->name, path);
    hone_os_format_utc(hone_os_now_utc(), time);
    for (int i = 1; i <= TRIES; i++) {
        hone_json_print(aside, sizeof aside, "%s.damaged-%s-%d", path, time, i);
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
    hone_json_path_of(files, HONE_JSON_LIST, path);
    hone_json_temporary_of(files, HONE_JSON_LIST, temporary);
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
        hone_json_temporary_of(files, files->files[i].name, from);
        hone_json_path_of(files, files->files[i].name, to);
        status = hone_os_rename(from, to, err);
    }
    return status == HONE_OK ? hone_os_sync_folder(files->folder, err) : status;
}

// Several files change together: a journal of names.
//
//     1. each new file, under its temporary name, and on the disk (write_file)
//     2. the number in the lock file becomes odd: readers wait, or take the lock
//     3. the list of names, on the disk: from here on the change took place
//     4. each temporary name becomes the real one; the folder is on the disk
//     5. the list is removed, and the number even again
//
// Killed before 3, the new files are nobody's and are removed by who writes next. Killed behind it, who opens or writes
// next renames the rest (finish_listed), which may be done twice: a name that was renamed already is passed over. A
// single file needs none of this, since a rename is one step.
static hone_status rename_together(hone_json_files *files, hone_error *err)
{
    char path[HONE_JSON_PATH_SIZE];
    const uint64_t number = hone_json_read_number(files);
    hone_json_write_number(files, number + 1);
    hone_status status = write_list(files, err);
    if (status == HONE_OK) {
        files->is_complete = false;
        status = rename_changed(files, err);
    }
    if (status != HONE_OK && !files->is_complete) return status;
    hone_json_path_of(files, HONE_JSON_LIST, path);
    hone_os_remove_file(path);
    files->is_complete = true;
    hone_json_write_number(files, number + 2);
    return status;
}

hone_status hone_json_write_changed(hone_json_files *files, hone_error *err)
{
    size_t count = 0;
    hone_assert(files->lock >= 0); // begin waits for it
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

void hone_json_stamp_changed(hone_json_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        char path[HONE_JSON_PATH_SIZE];
        hone_json_file *file = &files->files[i];
        if (!file->is_changed) continue;
        hone_json_path_of(files, file->name, path);
        file->stamp = hone_os_file_stamp(path);
        file->is_broken = false;
    }
}
