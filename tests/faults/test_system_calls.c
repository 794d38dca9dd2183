// Each system call of a store fails once, in turn, with each code that matters: a broken disk, a full one. The
// arguments: the scheme of the store, and its name in a folder, "." for the folder itself.
#include "interpose.h"
#include "scenario.h"
#include "store/records.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

static const char *scheme, *name;

typedef struct place {
    temporary_folder folder;
    char url[TEMPORARY_PATH_SIZE + 32];
} place;

static int set_up(void **state)
{
    place *p = calloc(1, sizeof *p);
    *state = p;
    if (p == NULL || temporary_folder_make(&p->folder) != 0) return -1;
    const temporary_folder folder = p->folder;
    snprintf(p->url, sizeof p->url, "%s%s/%s", scheme, folder.path, name);
    return 0;
}

static int tear_down(void **state)
{
    place *p = *state;
    temporary_folder_remove(&p->folder);
    free(p);
    return unsetenv("HONE_STORE_SYNC");
}

static void assert_answers(const scenario *s)
{
    static const hone_status expected[] = {
        HONE_OK, HONE_IO, HONE_BUSY, HONE_CORRUPT, HONE_NOT_FOUND, HONE_OUT_OF_MEMORY, HONE_INCOMPATIBLE};
    for (size_t i = 0; i < s->count; i++) {
        bool is_expected = false;
        for (size_t j = 0; j < sizeof expected / sizeof *expected; j++)
            is_expected = is_expected || s->statuses[i] == expected[j];
        if (!is_expected) fail_msg("%s", hone_status_name(s->statuses[i]));
    }
}

// A process of its own, whose end gives all of its locks back. What it was told is left in shared memory.
typedef struct shared {
    scenario s;
    long long left;
    char failed[32];
} shared;

static void run_apart(place *p, int code, long long number, shared *out)
{
    memset(out, 0, sizeof *out);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        out->s.allocator = hone_allocator_system();
        faults_now.code = code;
        faults_now.left = number;
        scenario_run(&out->s, p->url);
        out->left = faults_now.left;
        memcpy(out->failed, faults_now.failed, sizeof out->failed);
        _exit(0);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    if (!WIFEXITED(how)) fail_msg("signal %d when call %lld failed", WTERMSIG(how), number);
}

// What a scenario begins with: a sound store, none, or a damaged one.
typedef enum ground { SOUND, NONE, DAMAGED } ground;

static void prepare(place *p, ground on, const scenario_damaged *damaged)
{
    scenario_clear(p->folder.path);
    if (on == SOUND) scenario_prepare(p->url);
    if (on == DAMAGED) scenario_write(damaged, p->url);
}

// The next put of a JSON store removes what a fault left of its files.
static void check_leftovers(const place *p)
{
    if (strcmp(scheme, "json:") != 0) return;
    scenario_prepare(p->url);
    assert_false(scenario_has_file(p->folder.path, ".new") || scenario_has_file(p->folder.path, ".commit"));
}

static void check(place *p, ground on, const shared *told)
{
    if (on == NONE) scenario_prepare(p->url);
    if (on == DAMAGED)
        scenario_check_mended(&told->s, p->url, p->folder.path, strcmp(told->failed, "unlink") == 0);
    else
        scenario_check(&told->s, p->url);
    check_leftovers(p);
}

// Returns how many calls there were.
static long long fail_each(place *p, int code, ground on)
{
    static scenario_damaged damaged;
    long long number = 0;
    shared *told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(told != MAP_FAILED);
    if (on == DAMAGED) scenario_make_damaged(&damaged, p->url);
    for (bool failed = true; failed; number++) {
        prepare(p, on, &damaged);
        run_apart(p, code, number, told);
        failed = told->left < 0;
        assert_answers(&told->s);
        check(p, on, told);
    }
    munmap(told, sizeof *told);
    return number;
}

static void a_disk_that_fails_once_loses_nothing_acknowledged(void **state)
{
    assert_true(fail_each(*state, EIO, SOUND) > 60);
}

static void a_disk_that_is_full_once_loses_nothing_acknowledged(void **state)
{
    assert_true(fail_each(*state, ENOSPC, SOUND) > 60);
}

static void a_new_store_whose_making_fails_is_made_the_next_time(void **state)
{
    assert_true(fail_each(*state, EIO, NONE) > 60);
}

static void with_sync_full_the_same(void **state)
{
    assert_int_equal(setenv("HONE_STORE_SYNC", "full", 1), 0);
    assert_true(fail_each(*state, EIO, SOUND) > 100);
}

static void a_salvage_that_fails_once_loses_nothing_and_is_made_the_next_time(void **state)
{
    assert_true(fail_each(*state, EIO, DAMAGED) > 200);
}

static void a_salvage_on_a_full_disk_loses_nothing_and_is_made_the_next_time(void **state)
{
    assert_true(fail_each(*state, ENOSPC, DAMAGED) > 200);
}

// Durability ----------------------------------------------------------------------------------------------------------

static long long syncs_of_put(place *p, const char *level)
{
    hone_store *store = NULL;
    hone_error err;
    hone_store_decision put = scenario_decision(SCENARIO_PUT);
    assert_int_equal(setenv("HONE_STORE_SYNC", level, 1), 0);
    scenario_clear(p->folder.path);
    if (hone_store_open(hone_allocator_system(), p->url, &store, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_int_equal(hone_store_put(store, &put, &err), HONE_OK);
    const long long before = faults_now.syncs;
    for (int i = 0; i < 10; i++) {
        put.time_ns++; // a row that stays the same is not written
        assert_int_equal(hone_store_put(store, &put, &err), HONE_OK);
    }
    const long long syncs = faults_now.syncs - before;
    hone_store_close(&store);
    return syncs;
}

static void with_sync_full_each_put_waits_for_the_disk_and_with_normal_none(void **state)
{
    assert_true(syncs_of_put(*state, "full") >= 10);
    assert_int_equal(syncs_of_put(*state, "normal"), 0);
}

#define CALL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        CALL_TEST(a_disk_that_fails_once_loses_nothing_acknowledged),
        CALL_TEST(a_disk_that_is_full_once_loses_nothing_acknowledged),
        CALL_TEST(a_new_store_whose_making_fails_is_made_the_next_time),
    };
    const struct CMUnitTest tests_of_sqlite[] = {
        CALL_TEST(with_sync_full_the_same),
        CALL_TEST(a_salvage_that_fails_once_loses_nothing_and_is_made_the_next_time),
        CALL_TEST(a_salvage_on_a_full_disk_loses_nothing_and_is_made_the_next_time),
        CALL_TEST(with_sync_full_each_put_waits_for_the_disk_and_with_normal_none),
    };
    if (count != 3) {
        fprintf(stderr, "usage: %s sqlite:|json: NAME\n", arguments[0]);
        return 2;
    }
    scheme = arguments[1];
    name = arguments[2];
    if (getenv("TMPDIR") == NULL && access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
    alarm(100);
    int failed = cmocka_run_group_tests_name("system calls", tests, NULL, NULL);
    if (strcmp(scheme, "sqlite:") == 0)
        failed += cmocka_run_group_tests_name("system calls of sqlite", tests_of_sqlite, NULL, NULL);
    return failed;
}
