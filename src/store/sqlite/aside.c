#include "store/sqlite/aside.h"

#include "base/error.h"
#include "os/os.h"
#include "store/sqlite/connection.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "store.sqlite.aside";

// False when it does not fit.
static bool join(char out[HONE_ASIDE_SIZE], const char *path, const char *suffix)
{
    int size = snprintf(out, HONE_ASIDE_SIZE, "%s%s", path, suffix);
    return size >= 0 && size < HONE_ASIDE_SIZE;
}

static hone_status too_long(const char *path, hone_error *err)
{
    return hone_fail(err, HONE_IO, where, "%.200s...: the path is too long to move the damaged file aside", path);
}

bool hone_aside_name(const char *path, char out[HONE_ASIDE_SIZE])
{
    return join(out, path, ".lock");
}

bool hone_aside_is_begun(const char *path)
{
    char name[HONE_ASIDE_SIZE];
    return hone_aside_name(path, name) && hone_os_is_file(name);
}

hone_status hone_aside_lock(const char *path, int *out_fd, hone_error *err)
{
    char name[HONE_ASIDE_SIZE];
    const uint64_t deadline = hone_os_now_ns() + (uint64_t)HONE_CONNECTION_PATIENCE_MS * 1000000;
    if (!hone_aside_name(path, name)) return too_long(path, err);
    hone_status status = hone_os_lock_open(name, hone_os_file_mode(path, 0), out_fd, err);
    if (status != HONE_OK) return status;
    while ((status = hone_os_lock_try(*out_fd, 0, err)) == HONE_BUSY && hone_os_now_ns() < deadline)
        hone_os_sleep_ns(1000000);
    if (status != HONE_OK) hone_os_lock_close(out_fd);
    return status;
}

// The first dated name that is free.
static bool find_name(const char *path, char out[HONE_ASIDE_SIZE])
{
    enum { TRIES = 1000 };
    char now[24], suffix[64];
    hone_os_format_utc(hone_os_now_utc(), now);
    for (int i = 1; i <= TRIES; i++) {
        snprintf(
            suffix, sizeof suffix, ".damaged-%.4s%.2s%.2sT%.2s%.2s%.2sZ", now, now + 5, now + 8, now + 11, now + 14,
            now + 17);
        if (i > 1) snprintf(suffix + strlen(suffix), sizeof suffix - strlen(suffix), "-%d", i);
        if (!join(out, path, suffix)) return false;
        if (!hone_os_is_file(out)) return true;
    }
    return false;
}

// What belongs to the file goes with it: SQLite would take it for the new one's.
static hone_status move_beside(const char *path, const char *moved, const char *suffix, hone_error *err)
{
    char from[HONE_ASIDE_SIZE], to[HONE_ASIDE_SIZE];
    if (!join(from, path, suffix) || !join(to, moved, suffix)) return too_long(path, err);
    return hone_os_is_file(from) ? hone_os_rename(from, to, err) : HONE_OK;
}

static hone_status move_companions(const char *path, const char *moved, hone_error *err)
{
    static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < sizeof suffixes / sizeof *suffixes; i++)
        status = move_beside(path, moved, suffixes[i], err);
    return status;
}

// The file goes last: as soon as its name is free another process may begin a new one there, whose WAL must not be
// taken for the old one's.
hone_status hone_aside_move(const char *path, char out_path[HONE_ASIDE_SIZE], hone_error *err)
{
    hone_status status = find_name(path, out_path) ? HONE_OK : too_long(path, err);
    if (status == HONE_OK) status = move_companions(path, out_path, err);
    return status == HONE_OK ? move_beside(path, out_path, "", err) : status;
}

hone_status hone_aside_replace(const char *path, const char *fresh, char out_path[HONE_ASIDE_SIZE], hone_error *err)
{
    char folder[HONE_ASIDE_SIZE];
    hone_status status = find_name(path, out_path) ? HONE_OK : too_long(path, err);
    if (status == HONE_OK) status = hone_os_link(path, out_path, err);
    if (status == HONE_OK) status = move_companions(path, out_path, err);
    if (status == HONE_OK) status = hone_os_rename(fresh, path, err);
    if (status == HONE_OK && hone_os_folder_of(path, folder, sizeof folder)) status = hone_os_sync_folder(folder, err);
    return status;
}
