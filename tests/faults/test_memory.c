// Each allocation fails once, in turn: hone's, SQLite's and jansson's.
#include "scenario.h"

#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

// Allocations until one fails; negative: none does. One at a time, in one thread.
static long long left = -1;

static bool fails(void)
{
    return left >= 0 && left-- == 0;
}

// Blocks know their size, as SQLite asks for it.
enum { HEAD = 16 };

static void *allocate(size_t size)
{
    char *block = fails() ? NULL : malloc(size + HEAD);
    if (block == NULL) return NULL;
    memcpy(block, &size, sizeof size);
    return block + HEAD;
}

static void release(void *block)
{
    if (block != NULL) free((char *)block - HEAD);
}

static size_t size_of(void *block)
{
    size_t size = 0;
    if (block != NULL) memcpy(&size, (char *)block - HEAD, sizeof size);
    return size;
}

static void *reallocate(void *block, size_t size)
{
    char *grown = fails() ? NULL : realloc((char *)block - HEAD, size + HEAD);
    if (grown == NULL) return NULL;
    memcpy(grown, &size, sizeof size);
    return grown + HEAD;
}

static void *sqlite_allocate(int size)
{
    return allocate((size_t)size);
}

static void *sqlite_reallocate(void *block, int size)
{
    return reallocate(block, (size_t)size);
}

static int sqlite_size(void *block)
{
    return (int)size_of(block);
}

static int sqlite_round(int size)
{
    return (size + 7) & ~7;
}

static int sqlite_start(void *ctx)
{
    (void)ctx;
    return SQLITE_OK;
}

static void sqlite_stop(void *ctx)
{
    (void)ctx;
}

static void *hone_reallocate(void *ctx, void *block, size_t old_size, size_t size)
{
    (void)ctx;
    (void)old_size;
    if (size == 0) {
        release(block);
        return NULL;
    }
    return block == NULL ? allocate(size) : reallocate(block, size);
}

// SQLite does without some of its memory; what it cannot do without is told.
static void assert_answers(const scenario *s, long long number, bool is_damaged)
{
    for (size_t i = 0; i < s->count; i++) {
        const hone_status status = s->statuses[i];
        if (status == HONE_OK || status == HONE_OUT_OF_MEMORY || (is_damaged && status == HONE_CORRUPT)) continue;
        fail_msg("allocation %lld, step %zu: %s: %s", number, i, hone_status_name(status), s->err.message);
    }
}

// What a store on a server has of the last run goes.
static void begin_anew(const char *url)
{
    static const char *const keys[] = {SCENARIO_PUT, SCENARIO_MERGED};
    hone_store *store = NULL;
    hone_error err;
    assert_int_equal(hone_store_open(hone_allocator_system(), url, &store, &err), HONE_OK);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        hone_store_key key = sample_key();
        key.key = keys[i];
        (void)!hone_store_remove(store, &key, &err);
    }
    hone_store_close(&store);
}

// Returns how many there were. damaged: what each run begins with, which the put mends: what comes after it finds a sound store;
// NULL: a sound store.
static long long fail_each(const char *folder, const char *url, const scenario_damaged *damaged)
{
    long long number = 0;
    for (bool failed = true; failed; number++) {
        scenario s = {.allocator = {NULL, hone_reallocate}, .ends_with_put = damaged != NULL};
        if (folder != NULL)
            scenario_clear(folder);
        else
            begin_anew(url);
        if (damaged == NULL)
            scenario_prepare(url);
        else
            scenario_write(damaged, url);
        left = number;
        scenario_run(&s, url);
        failed = left < 0;
        left = -1;
        assert_answers(&s, number, damaged != NULL);
        if (damaged == NULL)
            scenario_check(&s, url);
        else
            scenario_check_mended(&s, url, folder, false);
    }
    return number;
}

static void each_allocation_fails_once(void **state)
{
    (void)state;
    temporary_folder folder;
    char url[TEMPORARY_PATH_SIZE];
    assert_int_equal(temporary_folder_make(&folder), 0);
    snprintf(url, sizeof url, "sqlite:%s/store.db", folder.path);
    assert_true(fail_each(folder.path, url, NULL) > 100);
    temporary_folder_remove(&folder);
}

static void each_allocation_of_a_salvage_fails_once(void **state)
{
    (void)state;
    static scenario_damaged damaged;
    temporary_folder folder;
    char url[TEMPORARY_PATH_SIZE];
    assert_int_equal(temporary_folder_make(&folder), 0);
    snprintf(url, sizeof url, "sqlite:%s/store.db", folder.path);
    scenario_make_damaged(&damaged, url);
    assert_true(fail_each(folder.path, url, &damaged) > 1000);
    temporary_folder_remove(&folder);
}

static void each_allocation_of_a_store_on_a_server_fails_once(void **state)
{
    (void)state;
    assert_true(fail_each(NULL, "postgresql://?schema=memory", NULL) > 15);
}

int main(int count, char **arguments)
{
    static const sqlite3_mem_methods methods = {sqlite_allocate, release,      sqlite_reallocate, sqlite_size,
                                                sqlite_round,    sqlite_start, sqlite_stop,       NULL};
    const struct CMUnitTest sound[] = {cmocka_unit_test(each_allocation_fails_once)};
    const struct CMUnitTest salvage[] = {cmocka_unit_test(each_allocation_of_a_salvage_fails_once)};
    const struct CMUnitTest on_server[] = {cmocka_unit_test(each_allocation_of_a_store_on_a_server_fails_once)};
    const char *of = count == 2 ? arguments[1] : "";
    // Without its own pools, so that every small block is asked for.
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) != SQLITE_OK ||
        sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) != SQLITE_OK ||
        sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0) != SQLITE_OK)
        return 2;
    json_set_alloc_funcs(allocate, release);
    if (getenv("TMPDIR") == NULL && access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
    alarm(getenv("HONE_SOAK") != NULL ? 3600 : 880);
    if (strcmp(of, "sqlite:") == 0) return cmocka_run_group_tests_name("out of memory", sound, NULL, NULL);
    if (strcmp(of, "salvage") == 0) return cmocka_run_group_tests_name("out of memory", salvage, NULL, NULL);
    if (strcmp(of, "postgresql:") == 0) return cmocka_run_group_tests_name("out of memory", on_server, NULL, NULL);
    fprintf(stderr, "usage: %s (sqlite: | salvage | postgresql:)\n", arguments[0]);
    return 2;
}
