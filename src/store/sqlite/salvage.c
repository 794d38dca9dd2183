#include "store/sqlite/salvage.h"

#include "base/error.h"
#include "os/os.h"
#include "store/sqlite/aside.h"
#include "store/sqlite/damage.h"
#include "store/sqlite/harvest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "store.sqlite.salvage";

// The new store -------------------------------------------------------------------------------------------------------

// Opens a new store at path and puts what is sound in a file into it. is_open: SQLite opens the file.
static hone_status fill(hone_connection *fresh, hone_harvest *s, const char *file, bool is_open, bool has_sound_list)
{
    hone_status status = hone_connection_begin(fresh, where, s->err);
    if (status != HONE_OK) return status;
    status = has_sound_list ? hone_harvest_pages(s, file, HONE_PAGES_IN_USE) : HONE_CORRUPT;
    if (status == HONE_CORRUPT)
        status = is_open ? hone_harvest_tables(s, file) : hone_harvest_pages(s, file, HONE_PAGES_ALL);
    return hone_connection_end(fresh, status, where, s->err);
}

// All into the file itself, since it is renamed without its WAL. Closing does the same, and says nothing when it
// cannot.
static hone_status flush(hone_connection *fresh, hone_error *err)
{
    int code = sqlite3_wal_checkpoint_v2(fresh->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return code == SQLITE_OK ? HONE_OK : hone_connection_fail(fresh, code, where, "write the new store", err);
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
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", ".lock"};
    char name[HONE_ASIDE_SIZE];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (snprintf(name, sizeof name, "%s%s", path, suffixes[i]) < (int)sizeof name) hone_os_remove_file(name);
}

// Where the file goes while it is worked on: false when a name does not fit.
static bool name_beside(const char *file, const char *suffix, char out[HONE_ASIDE_SIZE])
{
    if (snprintf(out, HONE_ASIDE_SIZE, "%s%s", file, suffix) >= HONE_ASIDE_SIZE) return false;
    remove_files(out); // of who was killed here
    return true;
}

static void tell(const hone_log *log, const hone_harvest *s, const char *damage, const char *moved)
{
    hone_log_write(
        log, HONE_LOG_WARNING,
        "%s; it was moved to %s, and a new store was begun with its %" PRIu64 " sound records; %" PRIu64
        " damaged ones were set aside",
        damage, moved, s->carried, s->set_aside);
}

// The new store is written whole under another name, and takes the file's place by a rename: whoever is killed before
// it leaves the damaged file as it was, and whoever comes after it finds a store. Readers that have the old file open
// go on in it until they look (moved.c). Puts what is sound in `from`, which is `file` or a copy of it, into a new
// store, which takes the file's place. HONE_NOT_FOUND: nothing is sound, and all is as it was.
static hone_status replace(
    const hone_connection *old,
    const char *file,
    const char *from,
    bool is_open,
    bool has_sound_list,
    const char *damage,
    hone_error *err)
{
    char path[HONE_ASIDE_SIZE], moved[HONE_ASIDE_SIZE];
    hone_connection fresh;
    hone_harvest s;
    if (!name_beside(file, ".mended", path))
        return hone_fail(err, HONE_IO, where, "%.200s...: the path is too long", file);
    hone_status status = hone_connection_open(&fresh, &old->allocator, &old->log, path, err);
    if (status != HONE_OK) return status;
    hone_harvest_init(&s, &fresh.allocator, &fresh, err);
    status = fill(&fresh, &s, from, is_open, has_sound_list);
    if (status == HONE_OK) status = flush(&fresh, err);
    hone_connection_close(&fresh);
    if (status == HONE_OK && !is_open && s.carried == 0) status = HONE_NOT_FOUND;
    if (status == HONE_OK) status = hone_aside_replace(file, path, moved, err);
    if (status == HONE_OK) tell(&old->log, &s, damage, moved);
    remove_files(path); // what is left of it, or beside it
    hone_harvest_deinit(&s);
    return status;
}

hone_status hone_salvage_unopened(
    const hone_connection *connection, const char *file, const char *damage, hone_error *err)
{
    return replace(connection, file, file, false, true, damage, err);
}

static hone_status carry_over(hone_connection *connection, const char *file, const hone_error *damage, hone_error *err)
{
    char copy[HONE_ASIDE_SIZE];
    if (!name_beside(file, ".salvage", copy))
        return hone_fail(err, HONE_IO, where, "%.200s...: the path is too long", file);
    hone_status status = copy_pages(connection, file, copy, err);
    if (status == HONE_OK)
        status = replace(connection, file, copy, true, has_sound_list(connection), damage->message, err);
    remove_files(copy);
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
