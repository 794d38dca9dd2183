// A runtime whose store cannot be what it should: the call is answered all the same, the log says why, and nothing is
// harmed. Each test runs in a process of its own, as nobody in particular where it is started by root.
#include "fixture.h"
#include "interpose.h"
#include "temporary_folder.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct world {
    temporary_folder folder;
    char path[TEMPORARY_PATH_SIZE], url[TEMPORARY_PATH_SIZE * 4];
    char told[8192];
} world;

static void take_words(void *ctx, int level, const char *message)
{
    world *w = ctx;
    size_t used = strlen(w->told);
    (void)level;
    snprintf(w->told + used, sizeof w->told - used, "%s\n", message);
}

static int set_up(void **state)
{
    world *w = calloc(1, sizeof *w);
    *state = w;
    if (w == NULL || temporary_folder_make(&w->folder) != 0 || chmod(w->folder.path, 0777) != 0) return -1;
    snprintf(w->path, sizeof w->path, "%s/store.db", w->folder.path);
    snprintf(w->url, sizeof w->url, "sqlite:%s", w->path);
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;
    chmod(w->folder.path, 0777);
    temporary_folder_remove(&w->folder);
    free(w);
    return 0;
}

static fixture *open_runtime(world *w)
{
    return open_fixture((wish){
        .policy = HONE_POLICY_HEURISTIC,
        .store = w->url,
        .environment = w->url[0] == '\0',
        .log = take_words,
        .log_ctx = w,
        .log_level = 2});
}

// Answers a call, and stores an answer.
static void use_runtime(world *w)
{
    fixture *f = open_runtime(w);
    run_example(f, 4, 4);
    hone_context *context = derive(
        f, NULL, NULL, &(hone_override){.algorithm = "scale", .kernel = "plain", .store = true}, HONE_POLICY_DEFAULT);
    hone_context_enter(context);
    run_example(f, 4, 4);
    hone_context_enter(NULL);
    hone_context_release(&context);
    run_example(f, 8, 4);
    close_fixture(f);
}

static void assert_told(const world *w, const char *words)
{
    if (strstr(w->told, words) == NULL) fail_msg("'%s' was not told, but: %s", words, w->told);
}

static void become_nobody(void)
{
    if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0)) _exit(9);
}

// The test's body apart; what fails there fails here.
static void apart(world *w, void (*body)(world *w))
{
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        body(w);
        _exit(0);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

static void make_store(world *w)
{
    use_runtime(w);
    w->told[0] = '\0';
}

// Places that cannot be written ---------------------------------------------------------------------------------------

static void use_read_only_folder(world *w)
{
    become_nobody();
    use_runtime(w);
    assert_told(w, "going on without the store");
    assert_told(w, w->path);
}

static void a_read_only_folder_is_gone_on_without(void **state)
{
    world *w = *state;
    assert_int_equal(chmod(w->folder.path, 0555), 0);
    apart(w, use_read_only_folder);
}

static void use_read_only_store(world *w)
{
    become_nobody();
    fixture *f = open_runtime(w);
    assert_string_equal(decide_scale(f, 4, 4).kernel, "plain");
    close_fixture(f);
    use_runtime(w);
    assert_told(w, "make the file and its folder writable");
}

static void a_store_in_a_read_only_folder_still_answers(void **state)
{
    world *w = *state;
    make_store(w);
    assert_int_equal(chmod(w->path, 0444), 0);
    assert_int_equal(chmod(w->folder.path, 0555), 0);
    apart(w, use_read_only_store);
}

static void use_closed_folder(world *w)
{
    become_nobody();
    use_runtime(w);
    assert_told(w, "going on without the store");
}

static void without_permission_it_is_gone_on_without(void **state)
{
    world *w = *state;
    make_store(w);
    assert_int_equal(chmod(w->folder.path, 0), 0);
    apart(w, use_closed_folder);
}

static void use_long_path(world *w)
{
    memset(w->url, 'x', sizeof w->url - 1);
    memcpy(w->url, "sqlite:/tmp/", 12);
    w->url[sizeof w->url - 1] = '\0';
    use_runtime(w);
    assert_told(w, "going on without the store");
    assert_told(w, "too long");
}

static void a_path_that_is_too_long_is_gone_on_without(void **state)
{
    apart(*state, use_long_path);
}

static void take_text(void *ctx, const char *text, size_t size)
{
    world *w = ctx;
    size_t used = strlen(w->told);
    snprintf(w->told + used, sizeof w->told - used, "%.*s", (int)size, text);
}

static void use_no_home(world *w)
{
    unsetenv("HOME");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HONE_STORE");
    w->url[0] = '\0';
    use_runtime(w);
    fixture *f = open_runtime(w);
    hone_call *call = describe_scale(f, 4, 4);
    assert_int_equal(hone_explain(f->op, call, HONE_TEXT, take_text, w, &f->err), HONE_OK);
    assert_told(w, "there is no store");
    assert_told(w, "HOME");
    hone_call_release(&call);
    close_fixture(f);
}

static void without_a_home_there_is_no_store_and_explain_says_so(void **state)
{
    apart(*state, use_no_home);
}

// Disks ---------------------------------------------------------------------------------------------------------------

static void use_full_disk(world *w)
{
    faults_now.every_write = true;
    faults_now.code = ENOSPC;
    use_runtime(w);
    assert_told(w, "its disk is full: it is read");
    fixture *f = open_runtime(w);
    assert_int_equal(decide_scale(f, 4, 4).source, HONE_SOURCE_STORE);
    close_fixture(f);
    faults_now.every_write = false;
    w->told[0] = '\0';
    use_runtime(w);
    assert_string_equal(w->told, "");
}

static void a_full_disk_is_told_and_over_when_it_is_over(void **state)
{
    world *w = *state;
    make_store(w);
    apart(w, use_full_disk);
}

static void use_new_store_on_full_disk(world *w)
{
    faults_now.every_write = true;
    faults_now.code = ENOSPC;
    use_runtime(w);
    assert_told(w, "going on without the store");
}

static void a_new_store_on_a_full_disk_is_gone_on_without(void **state)
{
    apart(*state, use_new_store_on_full_disk);
}

// Where the process may write no larger files, the disk is as good as full.
static void use_small_files(world *w)
{
    const struct rlimit limit = {8192, 8192};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    use_runtime(w);
    assert_told(w, "the store");
}

static void a_limit_on_the_size_of_files_is_told(void **state)
{
    apart(*state, use_small_files);
}

// A disk of 64 KiB, that this process alone sees. Where nobody may mount, the tests above show the same.
static bool mount_small_disk(const world *w)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", w->folder.path, "tmpfs", 0, "size=64k") == 0;
}

static void use_small_disk(world *w)
{
    if (!mount_small_disk(w)) return;
    fixture *f = open_runtime(w);
    for (int rows = 1; rows <= 200; rows++) {
        hone_context *context = derive(
            f, NULL, NULL, &(hone_override){.algorithm = "scale", .kernel = "plain", .store = true},
            HONE_POLICY_DEFAULT);
        hone_context_enter(context);
        run_example(f, rows, 1);
        hone_context_enter(NULL);
        hone_context_release(&context);
    }
    close_fixture(f);
    assert_told(w, "full");
}

static void a_disk_that_fills_up_is_told(void **state)
{
    apart(*state, use_small_disk);
}

static void use_network_disk(world *w)
{
    char wal[TEMPORARY_PATH_SIZE + 8];
    faults_now.file_system = 0x6969;
    snprintf(wal, sizeof wal, "%s-wal", w->path);
    fixture *f = open_runtime(w);
    run_example(f, 4, 4);
    assert_told(w, "network file system");
    assert_int_equal(access(w->path, F_OK), 0);
    assert_int_not_equal(access(wal, F_OK), 0);
    close_fixture(f);
    use_runtime(w);
    f = open_runtime(w);
    assert_string_equal(decide_scale(f, 4, 4).kernel, "plain");
    close_fixture(f);
}

static void on_a_network_file_system_there_is_no_wal(void **state)
{
    apart(*state, use_network_disk);
}

static void use_network_disk_after_local(world *w)
{
    make_store(w);
    use_network_disk(w);
}

static void a_store_with_a_wal_that_comes_to_a_network_loses_it(void **state)
{
    apart(*state, use_network_disk_after_local);
}

// Time and other versions ---------------------------------------------------------------------------------------------

static void use_clock_that_goes_back(world *w)
{
    faults_now.clock_shift = 10LL * 365 * 86400;
    make_store(w);
    faults_now.clock_shift = -20LL * 365 * 86400;
    use_runtime(w);
    fixture *f = open_runtime(w);
    assert_string_equal(decide_scale(f, 4, 4).kernel, "plain");
    close_fixture(f);
    assert_string_equal(w->told, "");
}

static void a_clock_that_goes_back_changes_nothing(void **state)
{
    apart(*state, use_clock_that_goes_back);
}

static void tune_without_a_clock(world *w)
{
    fixture *f = open_runtime(w);
    hone_result *result = NULL;
    hone_error err = {.message = ""};
    const hone_tune_options options = {
        .struct_size = sizeof options, .isolation = HONE_ISOLATION_IN_PROCESS, .seconds = 1, .evaluations = 3};
    faults_now.clock_stands = true;
    hone_status status = hone_tune_text(f->rt, "scale(f32[4,4])", &options, &result, &err);
    faults_now.clock_stands = false;
    assert_int_equal(status, HONE_UNAVAILABLE);
    assert_non_null(strstr(err.message, "clock stands still"));
    assert_null(result);
    close_fixture(f);
}

static void with_a_clock_that_stands_still_nothing_is_tuned(void **state)
{
    apart(*state, tune_without_a_clock);
}

static void use_newer_store(world *w)
{
    make_store(w);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    use_runtime(w);
    assert_told(w, "its schema is 99");
    assert_told(w, "going on without the store");
    assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(statement, 0), 99);
    sqlite3_finalize(statement);
    sqlite3_close(db);
}

static void a_newer_store_is_left_and_gone_on_without(void **state)
{
    apart(*state, use_newer_store);
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_read_only_folder_is_gone_on_without),
        WORLD_TEST(a_store_in_a_read_only_folder_still_answers),
        WORLD_TEST(without_permission_it_is_gone_on_without),
        WORLD_TEST(a_path_that_is_too_long_is_gone_on_without),
        WORLD_TEST(without_a_home_there_is_no_store_and_explain_says_so),
        WORLD_TEST(a_full_disk_is_told_and_over_when_it_is_over),
        WORLD_TEST(a_new_store_on_a_full_disk_is_gone_on_without),
        WORLD_TEST(a_limit_on_the_size_of_files_is_told),
        WORLD_TEST(a_disk_that_fills_up_is_told),
        WORLD_TEST(on_a_network_file_system_there_is_no_wal),
        WORLD_TEST(a_store_with_a_wal_that_comes_to_a_network_loses_it),
        WORLD_TEST(a_clock_that_goes_back_changes_nothing),
        WORLD_TEST(with_a_clock_that_stands_still_nothing_is_tuned),
        WORLD_TEST(a_newer_store_is_left_and_gone_on_without),
    };
    alarm(100);
    return cmocka_run_group_tests_name("world", tests, NULL, NULL);
}
