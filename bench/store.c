// hone's store beside prepared SQLite, LMDB and ejkernel's PersistentCache: get and put of random keys among 100,
// 1,000, 10,000 and 1,000,000, in one run.
//   bench_store [EJKERNEL_CACHE.PY PERSISTENT.PY]   the program that times ejkernel's cache, and the file with the cache
//   bench_store --in FOLDER                         keeps the stores there, which a second run measures without filling them
#include "bench.h"
#include "folder.h"
#include "store/records.h"
#include "stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 41, GETS = 4000, PUTS = 500, CHUNK = 1000, SIZES = 4 };

static const uint32_t sizes[SIZES] = {100, 1000, 10000, 1000000};

typedef enum operation { GET, PUT, OPERATIONS } operation;
static const char *const operation_names[OPERATIONS] = {"get", "put"};

// hone's times beside prepared SQLite, for what is compared with them afterwards.
typedef double hone_times[OPERATIONS][SIZES];

// hone ----------------------------------------------------------------------------------------------------------------

static bool see_decision(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    *(uint64_t *)ctx += strlen(decision->config);
    return true;
}

static void *hone_open(const char *folder, uint32_t count)
{
    char url[512];
    hone_error err;
    hone_store *store = NULL;
    snprintf(url, sizeof url, "sqlite:%s/hone-%u.db", folder, count);
    if (hone_store_open(hone_allocator_system(), url, &store, &err) != HONE_OK)
        fprintf(stderr, "bench_store: %s\n", err.message);
    return store;
}

static int hone_put_all(void *store, const hone_store_decision *decisions, size_t count)
{
    return hone_store_put_all(store, decisions, count, NULL) != HONE_OK;
}

static int hone_get(void *store, const hone_store_key *key, uint64_t *seen)
{
    return hone_store_get(store, HONE_RECORD_DECISION, key, HONE_WARM, see_decision, seen, NULL) != HONE_OK;
}

static int hone_put(void *store, const hone_store_decision *decision)
{
    return hone_store_put(store, decision, NULL) != HONE_OK;
}

static void hone_close(void *store)
{
    hone_store *closing = store;
    hone_store_close(&closing);
}

const bench_store bench_hone = {
    .name = "hone",
    .open = hone_open,
    .put_all = hone_put_all,
    .get = hone_get,
    .put = hone_put,
    .close = hone_close,
};

// One store -----------------------------------------------------------------------------------------------------------

typedef struct opened {
    const bench_store *of;
    void *store;
    bench_walk walk;
    uint64_t seen, puts;
} opened;

static int fill(const bench_store *of, void *store, uint32_t count)
{
    static bench_entry entries[CHUNK];
    static hone_store_decision decisions[CHUNK];
    int failed = store == NULL;
    for (uint32_t done = 0; done < count && !failed; done += CHUNK) {
        uint32_t size = count - done < CHUNK ? count - done : CHUNK;
        for (uint32_t i = 0; i < size; i++) {
            bench_entry_make(&entries[i], done + i);
            decisions[i] = bench_entry_decision(&entries[i]);
        }
        failed = of->put_all(store, decisions, size);
    }
    return failed;
}

// What was filled by a run before has its last entry.
static int is_filled(const bench_store *of, void *store, uint32_t count)
{
    bench_entry last;
    uint64_t seen = 0;
    bench_entry_make(&last, count - 1);
    const hone_store_decision wanted = bench_entry_decision(&last);
    return store != NULL && of->get(store, &wanted.key, &seen) == 0;
}

// Filled, closed, and opened again, so that what the filling left behind is not measured.
static int open_filled(const bench_store *of, const char *folder, uint32_t count, opened *out)
{
    *out = (opened){.of = of};
    void *store = of->open(folder, count);
    int failed = is_filled(of, store, count) ? 0 : fill(of, store, count);
    if (store != NULL) of->close(store);
    if (failed || bench_walk_init(&out->walk, count) != 0) return 1;
    out->store = of->open(folder, count);
    return out->store == NULL;
}

static void close_opened(opened *of)
{
    if (of->store != NULL) of->of->close(of->store);
    bench_walk_deinit(&of->walk);
}

static int run_get(void *ctx, uint64_t count)
{
    opened *of = ctx;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        hone_store_decision wanted = bench_entry_decision(bench_walk_next(&of->walk));
        failed |= of->of->get(of->store, &wanted.key, &of->seen);
    }
    return failed;
}

static int run_put(void *ctx, uint64_t count)
{
    opened *of = ctx;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        hone_store_decision decision = bench_entry_decision(bench_walk_next(&of->walk));
        decision.time_ns += (double)++of->puts; // a row that changes nothing is not written
        failed |= of->of->put(of->store, &decision);
    }
    return failed;
}

// Beside a peer -------------------------------------------------------------------------------------------------------

static int compare(opened *hone, opened *peer, operation which, const char *bound, double *out_hone_ns)
{
    static int (*const runs[OPERATIONS])(void *ctx, uint64_t count) = {run_get, run_put};
    bench_row row;
    char name[64];
    uint64_t count = which == GET ? GETS : PUTS;
    if (bench_compare((bench_side){runs[which], hone}, (bench_side){runs[which], peer}, count, 0, ROUNDS, &row) != 0)
        return 1;
    snprintf(name, sizeof name, "store %s/%u", operation_names[which], hone->walk.count);
    bench_print(name, peer->of->name, &row, bound);
    *out_hone_ns = row.hone_ns;
    return 0;
}

// What hone is measured beside at every size, and what its figures are held to.
static const struct {
    const bench_store *store;
    const char *bound;
} peers[] = {
    {&bench_sqlite, "at most 1.3"},
#ifdef HONE_BENCH_LMDB
    {&bench_lmdb, NULL},
#endif
};
enum { PEERS = sizeof peers / sizeof *peers };

static int measure(const char *folder, size_t size, hone_times out)
{
    opened hone = {0}, others[PEERS] = {{0}};
    int failed = open_filled(&bench_hone, folder, sizes[size], &hone);
    for (size_t i = 0; i < PEERS && !failed; i++)
        failed = open_filled(peers[i].store, folder, sizes[size], &others[i]);
    for (size_t i = PEERS; i > 0 && !failed; i--) // the times beside SQLite are those that are kept
        for (int which = GET; which < OPERATIONS && !failed; which++)
            failed = compare(&hone, &others[i - 1], (operation)which, peers[i - 1].bound, &out[which][size]);
    for (size_t i = 0; i < PEERS; i++)
        close_opened(&others[i]);
    close_opened(&hone);
    return failed;
}

// How the times grow from the smallest store to a larger one.
static void print_growth(hone_times times)
{
    for (int which = GET; which < OPERATIONS; which++) {
        for (size_t i = 1; i < SIZES; i++) {
            char name[64];
            double ratio = times[which][i] / times[which][0];
            snprintf(name, sizeof name, "store %s/growth 100 to %u", operation_names[which], sizes[i]);
            bench_print_absolute(name, "hone at 100", times[which][i], times[which][0], ratio, ratio, NULL);
        }
    }
}

// ejkernel ------------------------------------------------------------------------------------------------------------

// A line of its program: "put 10000 123.4 120.1 130.9", nanoseconds with their 95 % interval.
static int print_ejkernel(const char *line, hone_times times)
{
    char word[8], name[64];
    unsigned size;
    double peer, low, high;
    if (sscanf(line, "%7s %u %lf %lf %lf", word, &size, &peer, &low, &high) != 5 || peer <= 0 || low <= 0) return 1;
    int which = strcmp(word, "put") == 0 ? PUT : GET;
    for (size_t i = 0; i < SIZES; i++) {
        if (sizes[i] != size) continue;
        double hone = times[which][i];
        snprintf(name, sizeof name, "store %s/%u", word, size);
        bench_print_absolute(
            name, "ejkernel PersistentCache", hone, peer, hone / high, hone / low,
            which == PUT && size == 10000 ? "at most 0.01" : NULL);
        return 0;
    }
    return 1;
}

static int measure_ejkernel(const char *folder, const char *program, const char *cache, hone_times times)
{
    char command[2048], line[256];
    snprintf(command, sizeof command, "python3 -B '%s' '%s' '%s'", program, cache, folder);
    for (size_t i = 0; i < SIZES; i++)
        snprintf(command + strlen(command), sizeof command - strlen(command), " %u", sizes[i]);
    FILE *pipe = popen(command, "r");
    int failed = pipe == NULL;
    while (!failed && fgets(line, sizeof line, pipe) != NULL)
        failed = print_ejkernel(line, times);
    if (pipe != NULL && pclose(pipe) != 0) failed = 1;
    if (failed) fprintf(stderr, "bench_store: %s could not measure %s\n", program, cache);
    return failed;
}

static int measure_in(const char *folder, int argc, char **argv)
{
    static hone_times times;
    int failed = 0;
    for (size_t i = 0; i < SIZES && !failed; i++)
        failed = measure(folder, i, times);
    if (failed) return failed;
    print_growth(times);
    if ((int)PEERS == 1) fprintf(stderr, "bench_store: LMDB is left out: scripts/setup bench installs it\n");
    if (argc == 3) return measure_ejkernel(folder, argv[1], argv[2], times);
    fprintf(stderr, "bench_store: ejkernel's cache is left out: it is not named\n");
    return failed;
}

int main(int argc, char **argv)
{
    char folder[BENCH_PATH_SIZE];
    if (argc == 3 && strcmp(argv[1], "--in") == 0) return measure_in(argv[2], 1, argv);
    if (bench_folder_make(folder) != 0) return 1;
    int failed = measure_in(folder, argc, argv);
    if (failed) fprintf(stderr, "bench_store: a get or put failed in %s\n", folder);
    bench_folder_remove(folder);
    return failed;
}
