// What is asked of a store by its facts: the file of a URL, the lock around its functions, the lease that it gives.
#include "records.h"
#include "store/ops.h"
#include "temporary_folder.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_url_tells_the_file_of_its_store(void **state)
{
    static const struct {
        const char *url, *path;
    } rows[] = {
        {"sqlite:/a/b.db", "/a/b.db"},
        {"json:team", "team"},
        {"sqlite:", NULL},
        {"memory:", NULL},
        {"none", NULL},
        {"/a/b.db", NULL},
    };
    char path[64];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(hone_store_file(rows[i].url, path, sizeof path), rows[i].path != NULL);
        if (rows[i].path != NULL) assert_string_equal(path, rows[i].path);
    }
    assert_false(hone_store_file("sqlite:/a/b.db", path, 4));
    assert_true(hone_store_is_missing("sqlite:/nowhere/store.db"));
    assert_true(hone_store_is_missing("json:/nowhere"));
    assert_false(hone_store_is_missing("json:/tmp"));
    assert_false(hone_store_is_missing("memory:"));
}

static void make(const char *folder, const char *name)
{
    char path[TEMPORARY_PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static void files_moved_aside_are_counted_without_their_companions(void **state)
{
    temporary_folder folder;
    char url[TEMPORARY_PATH_SIZE + 32], one[64] = "";
    (void)state;
    assert_int_equal(temporary_folder_make(&folder), 0);
    make(folder.path, "store.db.damaged-20261120T123456Z");
    make(folder.path, "store.db.damaged-20261120T123456Z-wal");
    make(folder.path, "other.db.damaged-20261120T123456Z");
    snprintf(url, sizeof url, "sqlite:%s/store.db", folder.path);
    assert_int_equal(hone_store_count_aside(url, one, sizeof one), 1);
    assert_string_equal(one, "store.db.damaged-20261120T123456Z");
    snprintf(url, sizeof url, "json:%s", folder.path);
    assert_int_equal(hone_store_count_aside(url, one, sizeof one), 3);
    assert_int_equal(hone_store_count_aside("memory:", one, sizeof one), 0);
    temporary_folder_remove(&folder);
}

static void messages_list_the_kinds_and_what_can_be_read_alone(void **state)
{
    static const char known[] = "memory:, sqlite:PATH, json:FOLDER or json:FILE.json";
    char forms[256];
    (void)state;
    // Kinds that were added come after them, and "or" stands before the last.
    hone_store_forms(false, forms, sizeof forms);
    assert_memory_equal(forms, known, strcspn(known, "j"));
    assert_string_equal(
        hone_store_forms(true, forms, sizeof forms), "sqlite:PATH, postgresql://USER@HOST/DATABASE?schema=NAME");
    assert_string_equal(hone_store_scratch_url(), "memory:");
}

// A kind on a server -------------------------------------------------------------------------------------------------

static hone_store_ops server; // the memory store's functions with other facts
static uint64_t leased, left;

static void leave(hone_lease *lease)
{
    left = lease->name;
}

static hone_status lease(hone_store *store, uint64_t name, const hone_wait *wait, hone_lease *out, hone_error *err)
{
    (void)wait;
    (void)err;
    leased = name;
    *out = (hone_lease){.leave = leave, .fd = -1, .name = name, .holder = store, .waited = true};
    return HONE_OK;
}

static hone_store *open_as(bool concurrent)
{
    hone_store *store = NULL;
    hone_error err;
    assert_int_equal(hone_store_open(hone_allocator_system(), "memory:", &store, &err), HONE_OK);
    server = *store->ops;
    server.scheme = "server:";
    server.concurrent = concurrent;
    server.lease = lease;
    store->ops = &server;
    return store;
}

static void a_store_without_a_file_gives_its_own_leases(void **state)
{
    const hone_wait wait = {.seconds = 1};
    hone_lease taken;
    hone_error err;
    (void)state;
    hone_store *store = open_as(true);
    leased = left = 0;
    assert_int_equal(hone_store_lease(store, 7, &wait, &taken, &err), HONE_OK);
    assert_int_equal(leased, 7);
    assert_true(taken.waited);
    hone_lease_leave(&taken);
    assert_int_equal(left, 7);
    left = 0;
    hone_lease_leave(&taken);
    assert_int_equal(left, 0); // once
    hone_store_close(&store);
}

static void a_store_that_no_other_process_sees_gives_none(void **state)
{
    const hone_wait wait = {.seconds = 1};
    hone_lease taken;
    hone_store *store = NULL;
    hone_error err;
    (void)state;
    assert_int_equal(hone_store_open(hone_allocator_system(), "memory:", &store, &err), HONE_OK);
    assert_int_equal(hone_store_lease(store, 7, &wait, &taken, &err), HONE_OK);
    assert_null(taken.leave);
    hone_lease_leave(&taken);
    hone_store_close(&store);
    assert_int_equal(hone_store_lease(NULL, 7, &wait, &taken, &err), HONE_OK);
    assert_null(taken.leave);
}

typedef struct inner {
    hone_store *store;
    hone_status status;
} inner;

static bool ask_inside(void *ctx, const hone_store_record *record)
{
    inner *i = ctx;
    hone_store_stat stat;
    (void)record;
    i->status = hone_store_get_stat(i->store, &stat, NULL);
    return true;
}

static hone_status ask_in_a_visit(bool concurrent)
{
    hone_error err;
    inner i = {open_as(concurrent), HONE_OK};
    const hone_store_decision decision = sample_decision();
    assert_int_equal(hone_store_put(i.store, &decision, &err), HONE_OK);
    assert_int_equal(hone_store_scan(i.store, HONE_RECORD_DECISION, NULL, ask_inside, &i, &err), HONE_OK);
    hone_store_close(&i.store);
    return i.status;
}

static void only_a_concurrent_store_is_called_without_the_lock(void **state)
{
    (void)state;
    assert_int_equal(ask_in_a_visit(false), HONE_INVALID_ARGUMENT);
    assert_int_equal(ask_in_a_visit(true), HONE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_tells_the_file_of_its_store),
        cmocka_unit_test(files_moved_aside_are_counted_without_their_companions),
        cmocka_unit_test(messages_list_the_kinds_and_what_can_be_read_alone),
        cmocka_unit_test(a_store_without_a_file_gives_its_own_leases),
        cmocka_unit_test(a_store_that_no_other_process_sees_gives_none),
        cmocka_unit_test(only_a_concurrent_store_is_called_without_the_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
