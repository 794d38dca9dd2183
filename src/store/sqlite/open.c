// Opening a file soundly: whether it is one, how it is journaled, and what to do when it is damaged.
#include "store/sqlite/aside.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/harvest.h"
#include "store/sqlite/migrate.h"
#include "store/sqlite/salvage.h"

#include "base/buffer.h"
#include "base/error.h"
#include "os/os.h"
#include "store/ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_LIMIT = 500 }; // SQLite's is 512, with "-journal" behind it

static const char open_where[] = "store.sqlite.open";

static hone_status read_sync(const char **out_pragma, hone_error *err)
{
    static const struct {
        const char *name, *pragma;
    } levels[] = {{"normal", "PRAGMA synchronous=NORMAL"}, {"full", "PRAGMA synchronous=FULL"}};
    const char *name = hone_os_variable("HONE_STORE_SYNC");
    if (name == NULL || name[0] == '\0') name = levels[0].name;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (strcmp(name, levels[i].name) != 0) continue;
        *out_pragma = levels[i].pragma;
        return HONE_OK;
    }
    return hone_fail(err, HONE_INVALID_ARGUMENT, open_where, "HONE_STORE_SYNC is '%s', expected normal or full", name);
}

// Another process that opens the same new file at the same time makes SQLite answer busy without waiting.
static int set_journal(hone_connection *connection, const char *pragma)
{
    const uint64_t deadline = hone_os_now_ns() + (uint64_t)HONE_CONNECTION_PATIENCE_MS * 1000000;
    for (;;) {
        int code = sqlite3_exec(connection->db, pragma, NULL, NULL, NULL);
        if ((code & 0xff) != SQLITE_BUSY || hone_os_now_ns() > deadline) return code;
        hone_os_sleep_ns(1000000);
    }
}

// WAL keeps its index in memory that processes share, which machines do not: over a network the rollback journal is the
// one that is safe.
static hone_status choose_journal(hone_connection *connection, hone_error *err)
{
    if (connection->read_only) return HONE_OK;
    const char *pragma = "PRAGMA journal_mode=WAL";
    if (hone_os_is_network_file(connection->path)) {
        pragma = "PRAGMA journal_mode=TRUNCATE";
        hone_log_write(
            &connection->log, HONE_LOG_INFO, "%s: on a network file system, where every write waits for the disk",
            connection->path);
    }
    int code = set_journal(connection, pragma);
    return code == SQLITE_OK ? HONE_OK : hone_connection_fail(connection, code, open_where, "set the journal", err);
}

static hone_status make_folders(const char *path, const hone_allocator *allocator, hone_error *err)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path) return HONE_OK;
    char *folder = hone_copy_text(allocator, path, (size_t)(slash - path));
    if (folder == NULL) return hone_fail_memory(err, open_where);
    hone_status status = hone_os_make_folders(folder, err);
    hone_free(allocator, folder);
    return status;
}

void hone_sqlite_put_uri(hone_buffer *out, const char *path, const char *query)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-";
    // "./" keeps SQLite from reading a path like ":memory:" as something else.
    hone_buffer_text(out, path[0] == '/' ? "file:" : "file:./");
    for (const char *c = path; *c != '\0'; c++) {
        if (strchr(plain, *c) != NULL)
            hone_buffer_char(out, *c);
        else
            hone_buffer_format(out, "%%%02X", (unsigned)(unsigned char)*c);
    }
    hone_buffer_text(out, query);
}

static hone_status open_file(hone_connection *connection, int access, const char *query, hone_error *err)
{
    hone_buffer name;
    hone_buffer_init(&name, connection->allocator);
    hone_sqlite_put_uri(&name, connection->path, query);
    hone_status status = name.failed ? hone_fail_memory(err, open_where) : HONE_OK;
    if (status == HONE_OK) {
        // No mutex of SQLite's: the store has its own.
        int flags = access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_URI;
        connection->opened++;
        int code = sqlite3_open_v2(hone_buffer_string(&name), &connection->db, flags, NULL);
        if (code != SQLITE_OK) status = hone_connection_fail(connection, code, open_where, "open", err);
    }
    hone_buffer_deinit(&name);
    if (status == HONE_OK) sqlite3_busy_timeout(connection->db, HONE_CONNECTION_PATIENCE_MS);
    // What a file holds is data: sizes are checked as they are read, and its schema may call nothing.
    if (status == HONE_OK)
        status = hone_connection_execute(
            connection, "PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF", "open", open_where, err);
    return status;
}

// Another process may have moved the file aside between its opening here and the look at it, which then saw the old
// file under the new one's WAL.
static hone_status check_place(hone_connection *connection, hone_error *err)
{
    int moved = 0;
    sqlite3_file_control(connection->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    if (!moved) return HONE_OK;
    return hone_fail(err, HONE_CORRUPT, open_where, "%s: it was moved while it was opened", connection->path);
}

static hone_status prepare_file(hone_connection *connection, const char *sync, hone_error *err)
{
    int64_t version = 0;
    hone_status status = hone_migrate_look(connection, &version, err);
    if (status == HONE_OK) status = check_place(connection, err);
    if (status != HONE_OK) return status;
    connection->schema = (int)version;
    connection->read_only = sqlite3_db_readonly(connection->db, "main") == 1;
    status = choose_journal(connection, err);
    if (status == HONE_OK) status = hone_connection_execute(connection, sync, "set synchronous", open_where, err);
    // What is deleted does not come back when the pages of a damaged file are read.
    if (status == HONE_OK)
        status = hone_connection_execute(connection, "PRAGMA secure_delete=ON", "open", open_where, err);
    // 16 MiB of pages hold 20,000 decisions: with SQLite's own 2 MiB a put into a large store takes a third longer.
    if (status == HONE_OK)
        status = hone_connection_execute(
            connection, "PRAGMA cache_size=-16384", "set the size of the cache", open_where, err);
    if (status != HONE_OK || version == HONE_SQL_SCHEMA || (connection->read_only && version > 0)) return status;
    return hone_migrate(connection, err);
}

static bool has_no_room(sqlite3 *db)
{
    if (db == NULL) return false;
    const int system = sqlite3_system_errno(db);
    return sqlite3_errcode(db) == SQLITE_FULL || system == ENOSPC || system == EDQUOT;
}

bool hone_sqlite_has_wal(hone_allocator allocator, const char *file, uint64_t least)
{
    hone_buffer wal;
    hone_buffer_init(&wal, allocator);
    hone_buffer_format(&wal, "%s-wal", file);
    const char *path = hone_buffer_string(&wal);
    bool has = wal.failed || (hone_os_is_file(path) && hone_os_file_stamp(path).size >= least);
    hone_buffer_deinit(&wal);
    return has;
}

static bool has_wal(const hone_connection *connection, uint64_t least)
{
    return hone_sqlite_has_wal(connection->allocator, connection->path, least);
}

// SQLite takes a file of one byte for an empty one, and would write over it.
static hone_status check_size(const hone_connection *connection, hone_error *err)
{
    if (hone_os_file_stamp(connection->path).size != 1) return HONE_OK;
    return hone_fail(err, HONE_CORRUPT, open_where, "%s: file is not a database", connection->path);
}

static hone_status try_open(hone_connection *connection, const char *sync, const char *query, hone_error *err)
{
    hone_status status = check_size(connection, err);
    if (status == HONE_OK) status = open_file(connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, query, err);
    // A file that is refused keeps its WAL, which goes aside with it.
    if (status == HONE_OK) sqlite3_db_config(connection->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (status == HONE_OK) status = prepare_file(connection, sync, err);
    if (status == HONE_OK) status = check_place(connection, err);
    if (status != HONE_OK) {
        connection->is_full = has_no_room(connection->db);
        // An empty one was made by the look, and goes.
        if (connection->db != NULL && !has_wal(connection, 1))
            sqlite3_db_config(connection->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
        hone_connection_drop(connection);
        return status;
    }
    sqlite3_db_config(connection->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    hone_connection_watch(connection);
    return HONE_OK;
}

// A file that nobody can write beside, as in a read-only folder or on a full disk, has no place for the index that WAL
// needs;
// it also needs none, as long as nobody left a WAL there. An empty one is what the opening left that found no room.
static bool is_still(const hone_connection *connection)
{
    return hone_os_file_stamp(connection->path).size > 0 && hone_os_is_file(connection->path) &&
           !has_wal(connection, 1) && (connection->is_full || !hone_os_may_make_files_beside(connection->path));
}

static hone_status open_any(hone_connection *connection, const char *sync, hone_error *err)
{
    hone_status status = try_open(connection, sync, "", err);
    if (status != HONE_IO || !is_still(connection)) return status;
    const bool full = connection->is_full;
    hone_error why = {.message = ""};
    status = try_open(connection, sync, "?immutable=1", &why);
    if (status != HONE_OK && full) return HONE_IO; // a store that is begun now: what it lacks is room
    if (status != HONE_OK && err != NULL) *err = why;
    if (status == HONE_OK && full)
        hone_log_write(
            &connection->log, HONE_LOG_WARNING, "%s: its disk is full: it is read, and nothing is written to it",
            connection->path);
    return status;
}

static hone_status move_away(hone_connection *connection, const char *file, const char *damage, hone_error *err)
{
    char moved[HONE_ASIDE_SIZE];
    hone_status status = hone_aside_move(file, moved, err);
    if (status == HONE_OK)
        hone_log_write(
            &connection->log, HONE_LOG_WARNING, "%s; it was moved to %s, and a new store was begun", damage, moved);
    return status;
}

static hone_status check_owner(const hone_connection *connection, const char *file, hone_error *err)
{
    bool is_store = false;
    hone_status status = hone_harvest_look(&connection->allocator, file, &is_store, err);
    if (status != HONE_OK || is_store) return status;
    (void)!hone_fail(
        err, HONE_INCOMPATIBLE, open_where,
        "%s: it is not a store of hone, not even a damaged one, and was not changed: name another path, or move it "
        "away",
        connection->path);
    if (err != NULL) err->system_code = HONE_STORE_FOREIGN;
    return HONE_INCOMPATIBLE;
}

// Under the lock: what another process has mended meanwhile is opened, and what is damaged still is moved.
static hone_status replace_damaged(hone_connection *connection, const char *file, const char *sync, hone_error *err)
{
    hone_error damage = {.message = ""};
    hone_status status = open_any(connection, sync, &damage);
    if (status != HONE_CORRUPT) {
        if (status != HONE_OK && err != NULL) *err = damage;
        return status;
    }
    status = check_owner(connection, file, err);
    if (status != HONE_OK) return status;
    status = hone_salvage_unopened(connection, file, damage.message, err);
    if (status == HONE_NOT_FOUND) status = move_away(connection, file, damage.message, err);
    return status == HONE_OK ? open_any(connection, sync, err) : status;
}

// While somebody mends the file, nobody else opens it: the lock's file is there since the first time. Who may not lock
// may not write, and is no danger.
static hone_status open_once(hone_connection *connection, const char *sync, hone_error *err)
{
    int lock = -1;
    char file[HONE_ASIDE_SIZE];
    hone_status status = HONE_OK;
    // SQLite writes beside the file itself and not beside a link to it. One that is gone is being moved just now.
    if (!hone_os_real_path(connection->path, file, sizeof file)) snprintf(file, sizeof file, "%s", connection->path);
    if (hone_aside_is_begun(file)) status = hone_aside_lock(file, &lock, err);
    if (status == HONE_BUSY) return status;
    status = open_any(connection, sync, err);
    const bool is_late = status == HONE_OK && lock < 0 && hone_aside_is_begun(file);
    // Before the lock, whose file would be made beside it.
    hone_status owned = status == HONE_CORRUPT && lock < 0 ? check_owner(connection, file, err) : HONE_OK;
    if (owned != HONE_OK) return owned;
    if (is_late || status == HONE_CORRUPT) {
        hone_status locked = lock >= 0 ? HONE_OK : hone_aside_lock(file, &lock, is_late ? NULL : err);
        if (locked == HONE_OK) hone_connection_drop(connection);
        if (locked == HONE_OK) status = replace_damaged(connection, file, sync, err);
        if (locked != HONE_OK && !is_late) status = locked;
    }
    hone_os_lock_close(&lock);
    return status;
}

// A pipe would be waited for, and a device written to.
static hone_status check_kind(const hone_connection *connection, hone_error *err)
{
    const char *path = connection->path;
    if (!hone_os_is_special(path)) return HONE_OK;
    return hone_fail_system(
        err, HONE_IO, open_where, hone_os_is_folder(path) ? EISDIR : EINVAL,
        "%s is not a regular file: name another path", path);
}

// Whether a failure may come from another process that moves a damaged file aside just now: the file under the name is
// another than before, or the lock of the moving is there and SQLite met half of the old files and half of the new.
static bool is_unsettled(const hone_connection *connection, uint64_t inode, hone_status status)
{
    char lock[HONE_ASIDE_SIZE];
    if (hone_os_file_stamp(connection->path).inode != inode) return true;
    return status == HONE_IO && hone_aside_name(connection->path, lock) && hone_os_is_file(lock);
}

static hone_status open_settled(hone_connection *connection, const char *sync, hone_error *err)
{
    enum { TRIES = 20 };
    hone_status status = HONE_OK;
    for (int i = 0; i < TRIES; i++) {
        const uint64_t inode = hone_os_file_stamp(connection->path).inode;
        status = open_once(connection, sync, err);
        if (status == HONE_OK || !is_unsettled(connection, inode, status)) break;
        hone_os_sleep_ns(1000000);
    }
    return status;
}

// What nobody writes needs neither locks nor the index of a WAL, which SQLite would make beside it. Where there is a
// WAL, somebody writes, and is read as he should be.
static hone_status look_at_file(hone_connection *connection, hone_error *err)
{
    int64_t version = 0;
    const char *query = has_wal(connection, 0) ? "" : "?immutable=1";
    connection->read_only = connection->is_fixed = true;
    hone_status status = open_file(connection, SQLITE_OPEN_READONLY, query, err);
    if (status == HONE_OK) status = hone_migrate_look(connection, &version, err);
    if (status == HONE_OK && version == 0)
        status = hone_fail(err, HONE_INCOMPATIBLE, open_where, "%s: it is not a store yet", connection->path);
    connection->schema = (int)version;
    return status;
}

hone_status hone_connection_reopen(hone_connection *connection, hone_error *err)
{
    const char *sync = NULL;
    hone_status status = read_sync(&sync, err);
    hone_connection_drop(connection);
    if (status == HONE_OK)
        status = connection->is_fixed ? look_at_file(connection, err) : open_settled(connection, sync, err);
    if (status != HONE_OK) hone_connection_drop(connection);
    return status;
}

hone_status hone_connection_open(
    hone_connection *connection,
    const hone_allocator *allocator,
    const hone_log *log,
    const char *path,
    hone_error *err)
{
    *connection = (hone_connection){.allocator = *allocator, .log = *log, .folder = -1};
    if (path[0] == '\0')
        return hone_fail(err, HONE_INVALID_ARGUMENT, open_where, "'sqlite:' has no path: write sqlite:PATH");
    if (strlen(path) > PATH_LIMIT)
        return hone_fail_system(
            err, HONE_IO, open_where, ENAMETOOLONG, "'%.60s...': SQLite takes paths of %d bytes", path,
            (int)PATH_LIMIT);
    const char *sync = NULL;
    hone_status status = read_sync(&sync, err);
    if (status != HONE_OK) return status;
    connection->path = hone_copy_text(allocator, path, strlen(path));
    if (connection->path == NULL) return hone_fail_memory(err, open_where);
    const bool was_free = hone_os_is_free(path);
    status = make_folders(path, allocator, err);
    if (status == HONE_OK) status = check_kind(connection, err);
    if (status == HONE_OK) status = open_settled(connection, sync, err);
    // A disk that has no room for a store has room for its name.
    if (status != HONE_OK && was_free && connection->is_full && hone_os_file_stamp(path).size == 0)
        hone_os_remove_file(path);
    if (status != HONE_OK) hone_connection_close(connection);
    return status;
}

hone_status hone_connection_open_read_only(
    hone_connection *connection,
    const hone_allocator *allocator,
    const hone_log *log,
    const char *path,
    hone_error *err)
{
    *connection = (hone_connection){.allocator = *allocator, .log = *log, .folder = -1};
    if (!hone_os_is_file(path))
        return hone_fail(err, HONE_IO, open_where, "%s: there is no such file: sqlite:PATH names one", path);
    connection->path = hone_copy_text(allocator, path, strlen(path));
    if (connection->path == NULL) return hone_fail_memory(err, open_where);
    hone_status status = look_at_file(connection, err);
    if (status != HONE_OK) hone_connection_close(connection);
    return status;
}
