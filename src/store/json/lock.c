// A JSON store's lock file, with the number that is odd while somebody writes.
#include "store/json/parts.h"

#include "base/assert.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "store.json";

// Its text: a number in hex, odd while several files change together, and 'w' while somebody writes.

enum { NUMBER_SIZE = 16, MARK_AT = NUMBER_SIZE };

uint64_t hone_json_read_number(const hone_json_files *files)
{
    char text[NUMBER_SIZE + 1] = "";
    if (files->lock < 0 || !hone_os_lock_read_note(files->lock, 0, text, NUMBER_SIZE)) return 0;
    return strtoull(text, NULL, 16);
}

void hone_json_write_number(const hone_json_files *files, uint64_t number)
{
    char text[NUMBER_SIZE + 1];
    hone_assert(files->lock >= 0);
    hone_json_print(text, sizeof text, "%016" PRIx64, number);
    (void)hone_os_lock_note(files->lock, 0, text, NUMBER_SIZE);
}

bool hone_json_is_marked(const hone_json_files *files)
{
    char mark[2] = "";
    return hone_os_lock_read_note(files->lock, MARK_AT, mark, 1) && mark[0] == 'w';
}

void hone_json_mark(const hone_json_files *files, bool is_writing)
{
    (void)hone_os_lock_note(files->lock, MARK_AT, is_writing ? "w" : "-", 1);
}

void hone_json_lock_path_of(const hone_json_files *files, char out[HONE_JSON_PATH_SIZE])
{
    hone_json_print(
        out, HONE_JSON_PATH_SIZE, "%s/.%s%slock", files->folder, files->single, files->single[0] != '\0' ? "." : "");
}

hone_status hone_json_open_lock(hone_json_files *files, hone_error *err)
{
    char path[HONE_JSON_PATH_SIZE], beside[HONE_JSON_PATH_SIZE];
    if (files->lock >= 0) return HONE_OK;
    hone_json_lock_path_of(files, path);
    hone_json_path_of(files, files->single, beside);
    unsigned mode = hone_os_file_mode(files->single[0] != '\0' ? beside : files->folder, 0) & 0666;
    return hone_os_lock_open(path, mode != 0 ? mode | 0600 : 0, &files->lock, err);
}

hone_status hone_json_wait_for_lock(hone_json_files *files, hone_error *err)
{
    static const uint64_t limit_ns = UINT64_C(10000000000), pause_ns = 500000;
    char path[HONE_JSON_PATH_SIZE];
    hone_json_lock_path_of(files, path);
    for (const uint64_t deadline = hone_os_now_ns() + limit_ns;; hone_os_sleep_ns(pause_ns)) {
        hone_status status = hone_json_open_lock(files, err);
        if (status == HONE_OK) status = hone_os_lock_try(files->lock, HONE_JSON_LOCK_BYTE, err);
        if (status == HONE_OK && hone_os_is_file_at(files->lock, path)) return HONE_OK;
        // Somebody removed the lock file: the lock of the old one shuts nobody out.
        if (status == HONE_OK) hone_os_lock_close(&files->lock);
        if (status != HONE_OK && status != HONE_BUSY) return status;
        if (hone_os_now_ns() > deadline)
            return hone_fail(
                err, HONE_BUSY, where,
                "%s: another process writes for too long: try again, or use a store that many may write",
                files->folder);
    }
}

void hone_json_give_back(hone_json_files *files)
{
    if (files->is_complete) hone_json_mark(files, false);
    hone_os_lock_leave(files->lock, HONE_JSON_LOCK_BYTE);
}
