// A file that is taken away or renamed while a store has it open: what is put next goes to the file of the name,
// whether the folder has just changed or has lain still for long, when its path is no longer looked up.
#include "hone/store.h"

#include "fixture.h"
#include "records.h"
#include "store/records.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void open_store(fixture *f, hone_store **out)
{
    if (hone_store_open(hone_allocator_system(), f->url, out, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
}

static void put(fixture *f, const char *key)
{
    hone_store_decision decision = sample_decision();
    decision.key.key = key;
    if (hone_store_put(f->store, &decision, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
}

static bool see(void *ctx, const hone_store_record *record)
{
    (void)record;
    *(bool *)ctx = true;
    return true;
}

// Whether who opens the store now finds it.
static bool is_there(fixture *f, const char *key)
{
    hone_store *other = NULL;
    hone_store_key wanted = sample_key();
    bool there = false;
    wanted.key = key;
    open_store(f, &other);
    hone_status status = hone_store_get(other, HONE_RECORD_DECISION, &wanted, HONE_WARM, see, &there, &f->err);
    assert_true(status == HONE_OK || status == HONE_NOT_FOUND);
    hone_store_close(&other);
    return there;
}

// Removes the file, or renames it, with what SQLite has beside it.
static void take_away(const fixture *f, const char *to)
{
    static const char *const parts[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char from[TEMPORARY_PATH_SIZE + 8], name[TEMPORARY_PATH_SIZE + 8];
        snprintf(from, sizeof from, "%s%s", f->path, parts[i]);
        snprintf(name, sizeof name, "%s%s", to == NULL ? "" : to, parts[i]);
        assert_int_equal(to == NULL ? unlink(from) : rename(from, name), 0);
    }
}

// As if nothing had happened in the folder since long ago.
static void settle(const fixture *f)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000000}};
    assert_int_equal(utimensat(AT_FDCWD, f->folder.path, times, 0), 0);
}

static void a_record_put_after_a_removal_is_in_the_new_file(void **state)
{
    fixture *f = *state;
    for (int still = 0; still < 2; still++) {
        if (still) settle(f);
        put(f, "0000000000000001");
        put(f, "0000000000000002");
        take_away(f, NULL);
        put(f, "0000000000000003");
        assert_true(is_there(f, "0000000000000003"));
        assert_false(is_there(f, "0000000000000001"));
    }
}

static void a_record_put_after_a_rename_is_in_the_new_file_only(void **state)
{
    fixture *f = *state;
    char aside[TEMPORARY_PATH_SIZE];
    const temporary_folder folder = f->folder;
    snprintf(aside, sizeof aside, "%s/aside.db", folder.path);
    settle(f);
    put(f, "0000000000000001");
    take_away(f, aside);
    put(f, "0000000000000002");
    assert_true(is_there(f, "0000000000000002"));
    assert_false(is_there(f, "0000000000000001"));
    snprintf(f->url, sizeof f->url, "sqlite:%s", aside);
    assert_true(is_there(f, "0000000000000001"));
}

// What lies still is not looked up: only who turns the folder's time back goes unseen.
static void a_folder_that_lies_still_is_believed(void **state)
{
    fixture *f = *state;
    settle(f);
    put(f, "0000000000000001");
    take_away(f, NULL);
    settle(f);
    put(f, "0000000000000002");
    assert_int_equal(access(f->path, F_OK), -1);
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
    assert_int_equal(utimensat(AT_FDCWD, f->folder.path, times, 0), 0);
    put(f, "0000000000000003");
    assert_true(is_there(f, "0000000000000003"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_record_put_after_a_removal_is_in_the_new_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_record_put_after_a_rename_is_in_the_new_file_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_that_lies_still_is_believed, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("moved", tests, NULL, NULL);
}
