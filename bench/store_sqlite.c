// The prepared statements of SQLite that somebody would write by hand: the file format, the pragmas, the columns and
// the statements of hone's store, and nothing else: no checksum, and no look at whether two keys have one hash.
#include "stores.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 17 };

typedef struct raw {
    sqlite3 *db;
    sqlite3_stmt *get, *put;
} raw;

static const char schema[] =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-16384;"
    "CREATE TABLE IF NOT EXISTS decision("
    " id INTEGER PRIMARY KEY, device TEXT NOT NULL, algorithm TEXT NOT NULL, version TEXT NOT NULL, key TEXT NOT NULL,"
    " regime INTEGER NOT NULL, spec TEXT, call TEXT, kernel TEXT NOT NULL, platform TEXT NOT NULL,"
    " config TEXT NOT NULL, source TEXT, revision TEXT, verified INTEGER NOT NULL, time_ns REAL NOT NULL,"
    " evidence TEXT, environment TEXT, checksum INTEGER NOT NULL);";
static const char get_sql[] =
    "SELECT device, algorithm, version, key, regime, spec, call, kernel, platform, config, source, revision, verified,"
    " time_ns, evidence, environment, checksum FROM decision WHERE id = ?1";
static const char put_sql[] =
    "INSERT INTO decision VALUES(?18,?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17)"
    " ON CONFLICT(id) DO UPDATE SET spec = excluded.spec, call = excluded.call,"
    " kernel = excluded.kernel, platform = excluded.platform, config = excluded.config, source = excluded.source,"
    " revision = excluded.revision, verified = excluded.verified, time_ns = excluded.time_ns,"
    " evidence = excluded.evidence, environment = excluded.environment, checksum = excluded.checksum";

static void raw_close(void *store)
{
    raw *self = store;
    sqlite3_finalize(self->get);
    sqlite3_finalize(self->put);
    sqlite3_close(self->db);
    free(self);
}

static int prepare(raw *self, const char *sql, sqlite3_stmt **out)
{
    return sqlite3_prepare_v3(self->db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL) != SQLITE_OK;
}

static void *raw_open(const char *folder, uint32_t count)
{
    char path[512];
    raw *self = calloc(1, sizeof *self);
    if (self == NULL) return NULL;
    snprintf(path, sizeof path, "%s/raw-%u.db", folder, count);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int failed = sqlite3_open_v2(path, &self->db, flags, NULL) != SQLITE_OK ||
                 sqlite3_exec(self->db, schema, NULL, NULL, NULL) != SQLITE_OK || prepare(self, get_sql, &self->get) ||
                 prepare(self, put_sql, &self->put);
    if (!failed) return self;
    fprintf(stderr, "bench_store: %s: %s\n", path, sqlite3_errmsg(self->db));
    raw_close(self);
    return NULL;
}

static void bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

// FNV-1a of the key's columns.
static sqlite3_int64 number_of(const hone_store_key *key)
{
    const char *const texts[] = {key->device, key->algorithm, key->version, key->key};
    uint64_t hash = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (const char *c = texts[i]; *c != '\0'; c++)
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3ull;
    return (sqlite3_int64)(hash >> 1);
}

// Every column of the row, as its type is.
static uint64_t read_row(sqlite3_stmt *statement)
{
    uint64_t seen = 0;
    for (int i = 0; i < COLUMNS; i++) {
        switch (sqlite3_column_type(statement, i)) {
        case SQLITE_TEXT:
            seen += sqlite3_column_text(statement, i)[0];
            seen += (uint64_t)sqlite3_column_bytes(statement, i);
            break;
        case SQLITE_FLOAT:
            seen += (uint64_t)sqlite3_column_double(statement, i);
            break;
        default:
            seen += (uint64_t)sqlite3_column_int64(statement, i);
        }
    }
    return seen;
}

static int raw_get(void *store, const hone_store_key *key, uint64_t *seen)
{
    raw *self = store;
    sqlite3_bind_int64(self->get, 1, number_of(key));
    int failed = sqlite3_step(self->get) != SQLITE_ROW;
    if (!failed) *seen += read_row(self->get);
    sqlite3_reset(self->get);
    return failed;
}

static int raw_put(void *store, const hone_store_decision *row)
{
    sqlite3_stmt *put = ((raw *)store)->put;
    bind_text(put, 1, row->key.device);
    bind_text(put, 2, row->key.algorithm);
    bind_text(put, 3, row->key.version);
    bind_text(put, 4, row->key.key);
    sqlite3_bind_int64(put, 5, HONE_WARM);
    bind_text(put, 6, row->key.spec);
    bind_text(put, 7, row->call);
    bind_text(put, 8, row->kernel);
    bind_text(put, 9, row->platform);
    bind_text(put, 10, row->config);
    bind_text(put, 11, row->source);
    bind_text(put, 12, row->revision);
    sqlite3_bind_int64(put, 13, row->verified);
    sqlite3_bind_double(put, 14, row->time_ns);
    bind_text(put, 15, row->evidence);
    bind_text(put, 16, row->environment);
    sqlite3_bind_int64(put, COLUMNS, 0x123456789abcdef); // where hone's checksum stands
    sqlite3_bind_int64(put, COLUMNS + 1, number_of(&row->key));
    int failed = sqlite3_step(put) != SQLITE_DONE;
    sqlite3_reset(put);
    return failed;
}

static int raw_put_all(void *store, const hone_store_decision *decisions, size_t count)
{
    raw *self = store;
    int failed = sqlite3_exec(self->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK;
    for (size_t i = 0; i < count && !failed; i++)
        failed = raw_put(store, &decisions[i]);
    return failed | (sqlite3_exec(self->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK);
}

const bench_store bench_sqlite = {
    .name = "prepared SQLite",
    .open = raw_open,
    .put_all = raw_put_all,
    .get = raw_get,
    .put = raw_put,
    .close = raw_close,
};
