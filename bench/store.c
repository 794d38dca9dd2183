// hone's store against the prepared statements of SQLite that somebody would write by hand: the same file format, the
// same pragmas, the same columns of the same row, get and put of random keys among 100 and 10,000.
#include "bench.h"
#include "folder.h"

#include <hone/hone.h>
#include <sqlite3.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 10000, COLUMNS = 17, KEY_COLUMNS = 5, ROUNDS = 41, GETS = 4000, PUTS = 500 };

typedef struct entry {
    char key[17], spec[192], call[64];
} entry;

typedef struct both {
    hone_store *store;
    sqlite3 *db;
    sqlite3_stmt *get, *put;
    entry *entries;
    uint32_t count;
    uint64_t state; // of the random walk
    uint64_t seen;  // bytes that came back, so that both sides really read
} both;

static void make_entry(entry *out, uint32_t index)
{
    snprintf(out->key, sizeof out->key, "%016llx", (index + 1) * 0x9e3779b97f4a7c15ull);
    snprintf(
        out->spec, sizeof out->spec,
        "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"eps\":1e-06,\"weight\":{\"dtype\":\"float32\","
        "\"shape\":[4096]},\"x\":{\"dtype\":\"float32\",\"shape\":[%u,4096]}},\"method\":null}",
        index + 1);
    snprintf(out->call, sizeof out->call, "rms_norm(f32[%u,4096], f32[4096])", index + 1);
}

static hone_store_decision decision_of(const entry *from)
{
    return (hone_store_decision){
        .key = {"cpu|AuthenticAMD|zen4|avx2,avx512|32768|1048576|33554432|2", "rms_norm", "1", from->key, from->spec},
        .call = from->call,
        .kernel = "avx512",
        .platform = "native",
        .config = "{\"unroll\":4,\"rows_per_task\":16,\"store\":\"cached\",\"threads\":2}",
        .source = "autotune",
        .revision = "1",
        .verified = true,
        .regime = HONE_WARM,
        .time_ns = 123456.5,
        .evidence = "{\"time_ns\":123456.5,\"low_ns\":122000.0,\"high_ns\":125000.0,\"samples\":41,\"rounds\":9,"
                    "\"runner_up\":\"avx2\",\"ratio\":1.07,\"verified_against\":\"reference\",\"max_error\":0.03}",
        .environment = "{\"hone\":\"0.1.0\",\"kernel\":\"6.1.0\"}"};
}

static const entry *next_entry(both *sides)
{
    sides->state ^= sides->state << 13, sides->state ^= sides->state >> 7, sides->state ^= sides->state << 17;
    return &sides->entries[sides->state % sides->count];
}

// hone ---------------------------------------------------------------------------------------------------------------

static void see_decision(void *ctx, const hone_store_decision *decision)
{
    *(uint64_t *)ctx += strlen(decision->config);
}

static int hone_get(void *ctx, uint64_t count)
{
    both *sides = ctx;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        hone_store_decision wanted = decision_of(next_entry(sides));
        failed |= hone_store_get(sides->store, &wanted.key, HONE_WARM, see_decision, &sides->seen, NULL) != HONE_OK;
    }
    return failed;
}

static int hone_put(void *ctx, uint64_t count)
{
    both *sides = ctx;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        hone_store_decision decision = decision_of(next_entry(sides));
        failed |= hone_store_put(sides->store, &decision, NULL) != HONE_OK;
    }
    return failed;
}

// SQLite -------------------------------------------------------------------------------------------------------------

static const char schema[] =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
    "CREATE TABLE decision("
    " device TEXT NOT NULL, algorithm TEXT NOT NULL, version TEXT NOT NULL, key TEXT NOT NULL,"
    " regime INTEGER NOT NULL, spec TEXT, call TEXT, kernel TEXT NOT NULL, platform TEXT NOT NULL,"
    " config TEXT NOT NULL, source TEXT, revision TEXT, verified INTEGER NOT NULL, time_ns REAL NOT NULL,"
    " evidence TEXT, environment TEXT, checksum INTEGER NOT NULL,"
    " PRIMARY KEY(device, algorithm, version, key, regime)) WITHOUT ROWID;";
static const char get_sql[] =
    "SELECT device, algorithm, version, key, regime, spec, call, kernel, platform, config, source, revision, verified,"
    " time_ns, evidence, environment, checksum FROM decision"
    " WHERE device = ?1 AND algorithm = ?2 AND version = ?3 AND key = ?4 AND regime = ?5";
static const char put_sql[] = "INSERT OR REPLACE INTO decision VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";

static void bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

static void bind_key(sqlite3_stmt *statement, const hone_store_key *key, hone_regime regime)
{
    bind_text(statement, 1, key->device);
    bind_text(statement, 2, key->algorithm);
    bind_text(statement, 3, key->version);
    bind_text(statement, 4, key->key);
    sqlite3_bind_int64(statement, KEY_COLUMNS, regime);
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

static int raw_get(void *ctx, uint64_t count)
{
    both *sides = ctx;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        hone_store_decision wanted = decision_of(next_entry(sides));
        bind_key(sides->get, &wanted.key, HONE_WARM);
        failed |= sqlite3_step(sides->get) != SQLITE_ROW;
        sides->seen += read_row(sides->get);
        sqlite3_reset(sides->get);
    }
    return failed;
}

static int raw_put_one(sqlite3_stmt *put, const hone_store_decision *row)
{
    bind_key(put, &row->key, row->regime);
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
    int failed = sqlite3_step(put) != SQLITE_DONE;
    sqlite3_reset(put);
    return failed;
}

static int raw_put(void *ctx, uint64_t count)
{
    both *sides = ctx;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        hone_store_decision decision = decision_of(next_entry(sides));
        failed |= raw_put_one(sides->put, &decision);
    }
    return failed;
}

// Both ---------------------------------------------------------------------------------------------------------------

static int open_raw(both *sides, const char *folder)
{
    char path[BENCH_PATH_SIZE + 32];
    snprintf(path, sizeof path, "%s/raw-%u.db", folder, sides->count);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    return sqlite3_open_v2(path, &sides->db, flags, NULL) != SQLITE_OK ||
           sqlite3_exec(sides->db, schema, NULL, NULL, NULL) != SQLITE_OK ||
           sqlite3_prepare_v3(sides->db, get_sql, -1, SQLITE_PREPARE_PERSISTENT, &sides->get, NULL) != SQLITE_OK ||
           sqlite3_prepare_v3(sides->db, put_sql, -1, SQLITE_PREPARE_PERSISTENT, &sides->put, NULL) != SQLITE_OK;
}

static int open_hone(both *sides, const char *folder)
{
    char url[BENCH_PATH_SIZE + 32];
    hone_error err;
    snprintf(url, sizeof url, "sqlite:%s/hone-%u.db", folder, sides->count);
    if (hone_store_open(hone_allocator_system(), url, &sides->store, &err) == HONE_OK) return 0;
    fprintf(stderr, "bench_store: %s\n", err.message);
    return 1;
}

static int fill(both *sides)
{
    int failed = sqlite3_exec(sides->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK;
    for (uint32_t i = 0; i < sides->count && !failed; i++) {
        hone_store_decision decision = decision_of(&sides->entries[i]);
        failed = hone_store_put(sides->store, &decision, NULL) != HONE_OK || raw_put_one(sides->put, &decision);
    }
    return failed | (sqlite3_exec(sides->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK);
}

static void close_both(both *sides)
{
    hone_store_close(&sides->store);
    sqlite3_finalize(sides->get);
    sqlite3_finalize(sides->put);
    sqlite3_close(sides->db);
}

static int measure(const char *folder, entry *entries, uint32_t count)
{
    both sides = {.entries = entries, .count = count, .state = 88172645463325252ull};
    bench_row row;
    char name[32];
    int failed = open_raw(&sides, folder) || open_hone(&sides, folder) || fill(&sides);
    if (!failed)
        failed = bench_compare((bench_side){hone_get, &sides}, (bench_side){raw_get, &sides}, GETS, 0, ROUNDS, &row);
    snprintf(name, sizeof name, "store get/%u", count);
    if (!failed) bench_print(name, "prepared SQLite", &row, "at most 1.5");
    if (!failed)
        failed = bench_compare((bench_side){hone_put, &sides}, (bench_side){raw_put, &sides}, PUTS, 0, ROUNDS, &row);
    snprintf(name, sizeof name, "store put/%u", count);
    if (!failed) bench_print(name, "prepared SQLite", &row, "at most 1.5");
    close_both(&sides);
    return failed;
}

int main(void)
{
    static entry entries[MOST];
    char folder[BENCH_PATH_SIZE];
    for (uint32_t i = 0; i < MOST; i++)
        make_entry(&entries[i], i);
    if (bench_folder_make(folder) != 0) return 1;
    int failed = measure(folder, entries, 100) || measure(folder, entries, MOST);
    if (failed) fprintf(stderr, "bench_store: a get or put failed in %s\n", folder);
    bench_folder_remove(folder);
    return failed;
}
