// Opening, refreshing and changing the files of a JSON store, and finishing what a crash left.
#include "store/json/parts.h"

#include "base/error.h"
#include "os/plain_file.h"

#include <string.h>

static const char where[] = "store.json";

// What a crash left ---------------------------------------------------------------------------------------------------

// Renames what the list of a change names, as far as it is not done. Names that lead out of the folder are not the
// store's.
static hone_status finish_change(hone_json_files *files, char *names, hone_error *err)
{
    hone_status status = HONE_OK;
    for (char *name = names, *next; status == HONE_OK && *name != '\0'; name = next) {
        char from[HONE_JSON_PATH_SIZE], to[HONE_JSON_PATH_SIZE];
        size_t size = strcspn(name, "\n");
        next = name + size + (name[size] == '\n');
        name[size] = '\0';
        if (strchr(name, '/') != NULL || name[0] == '.' || size >= HONE_JSON_NAME_SIZE ||
            !hone_json_ends_with(name, ".json"))
            continue;
        hone_json_temporary_of(files, name, from);
        hone_json_path_of(files, name, to);
        if (hone_os_file_stamp(from).inode != 0) status = hone_os_rename(from, to, err);
    }
    return status == HONE_OK ? hone_os_sync_folder(files->folder, err) : status;
}

static hone_status finish_listed(hone_json_files *files, hone_error *err)
{
    enum { LIST_LIMIT = 1 << 24 };
    char path[HONE_JSON_PATH_SIZE];
    hone_buffer names;
    hone_json_path_of(files, HONE_JSON_LIST, path);
    hone_buffer_init(&names, files->allocator);
    hone_status status = hone_os_read_plain_file(path, LIST_LIMIT, &names, err);
    if (status == HONE_OK && names.size > 0) status = finish_change(files, names.data, err);
    hone_buffer_deinit(&names);
    if (status == HONE_OK) hone_os_remove_file(path);
    return status == HONE_NOT_FOUND ? HONE_OK : status;
}

static bool remove_temporary(void *ctx, const char *name)
{
    const hone_json_files *files = ctx;
    char own[HONE_JSON_NAME_SIZE + 8], path[HONE_JSON_PATH_SIZE + 16];
    static const char list[] = "." HONE_JSON_LIST ".new";
    hone_json_print(own, sizeof own, ".%s.new", files->single);
    bool is_own = files->single[0] != '\0'
                      ? strcmp(name, own) == 0
                      : name[0] == '.' && (hone_json_ends_with(name, ".json.new") || strcmp(name, list) == 0);
    if (!is_own || strlen(name) >= HONE_JSON_NAME_SIZE + 8) return true;
    hone_json_print(path, sizeof path, "%s/%s", files->folder, name);
    hone_os_remove_file(path);
    return true;
}

// Under the lock: nobody else writes, so what is not done was left by who is gone.
static hone_status complete(hone_json_files *files, hone_error *err)
{
    hone_status status = files->single[0] != '\0' ? HONE_OK : finish_listed(files, err);
    if (status != HONE_OK) return status;
    const uint64_t number = hone_json_read_number(files);
    if (number % 2 != 0) hone_json_write_number(files, number + 1);
    files->is_complete = true;
    return hone_os_list_folder(files->folder, remove_temporary, files, err);
}

// Opening and refreshing ----------------------------------------------------------------------------------------------

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
    hone_json_print(path, sizeof path, "%.*s", (int)size, location);
    if (!hone_json_ends_with(path, ".json") || hone_os_is_folder(path)) {
        hone_json_print(files->folder, sizeof files->folder, "%s", path);
        return HONE_OK;
    }
    // The file behind a link is the store: the link stays.
    if (!hone_os_real_path(path, path, sizeof files->folder))
        hone_json_print(path, sizeof path, "%.*s", (int)size, location);
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    if (strlen(name) >= sizeof files->single - 8)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "json:%.100s...: the name is too long", location);
    hone_json_print(files->single, sizeof files->single, "%s", name);
    hone_json_print(
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
    hone_json_lock_path_of(files, path);
    if (hone_os_file_stamp(path).inode == 0 || hone_json_open_lock(files, NULL) != HONE_OK ||
        !hone_json_is_marked(files))
        return;
    if (hone_os_lock_try(files->lock, HONE_JSON_LOCK_BYTE, NULL) != HONE_OK) return;
    if (complete(files, NULL) == HONE_OK) hone_json_mark(files, false);
    hone_os_lock_leave(files->lock, HONE_JSON_LOCK_BYTE);
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

// Without the lock, but not while several files change together. A sequence lock: the number is read before and after,
// and what was read between two equal even numbers is one state. A reader that is overtaken TRIES times has met a
// writer that died or many that never pause, and queues for the lock.
static hone_status load_between_changes(hone_json_files *files, hone_error *err)
{
    enum { TRIES = 200 };
    char path[HONE_JSON_PATH_SIZE];
    // Whoever writes first makes the lock file. One file alone changes at once, and needs no number.
    hone_json_lock_path_of(files, path);
    if (files->lock < 0 && files->single[0] == '\0' && hone_os_file_stamp(path).inode != 0)
        (void)!hone_json_open_lock(files, NULL);
    for (int i = 0; i < TRIES; i++) {
        const uint64_t before = hone_json_read_number(files);
        if (before % 2 == 0) {
            hone_status status = hone_json_load_changed(files, err);
            if (status != HONE_OK || hone_json_read_number(files) == before) return status;
        }
        hone_os_sleep_ns(1000000);
    }
    return HONE_BUSY;
}

hone_status hone_json_files_refresh(hone_json_files *files, hone_error *err)
{
    hone_status status = load_between_changes(files, err);
    if (status != HONE_BUSY) return status;
    // Somebody died in between, or many write without a pause.
    status = hone_json_files_begin(files, err);
    return status == HONE_OK ? hone_json_files_end(files, HONE_OK, err) : status;
}

hone_status hone_json_files_begin(hone_json_files *files, hone_error *err)
{
    hone_status status = hone_json_wait_for_lock(files, err);
    if (status != HONE_OK) return status;
    if (!files->is_complete || hone_json_is_marked(files) || hone_json_read_number(files) % 2 != 0)
        status = complete(files, err);
    hone_json_mark(files, true);
    if (status == HONE_OK) status = hone_json_load_changed(files, err);
    if (status != HONE_OK) hone_json_give_back(files);
    return status;
}

static void take_back(hone_json_files *files)
{
    hone_table_rollback(files->tables.changes);
    for (size_t i = 0; i < files->count; i++)
        if (files->files[i].is_changed) hone_json_forget(&files->files[i]);
    if (files->is_complete) (void)hone_os_list_folder(files->folder, remove_temporary, files, NULL);
}

hone_status hone_json_files_end(hone_json_files *files, hone_status status, hone_error *err)
{
    if (status == HONE_OK && files->tables.changes->count > 0) {
        status = hone_json_write_changed(files, err);
        if (status == HONE_OK) {
            hone_table_commit(files->tables.changes);
            hone_json_stamp_changed(files);
        } else {
            take_back(files);
        }
    } else {
        hone_table_rollback(files->tables.changes);
    }
    hone_json_give_back(files);
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
