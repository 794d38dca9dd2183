// Two tiers: the system's store under the user's, in a file and a folder that nobody may write.
#include "fixture.h"
#include "store/records.h"
#include "temporary_folder.h"

#include <dirent.h>
#include <grp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct ground {
    temporary_folder system_folder, user_folder;
    char system_url[TEMPORARY_PATH_SIZE], user_url[TEMPORARY_PATH_SIZE];
    char warning[512];
    fixture *f;
} ground;

static void keep_warning(void *ctx, int level, const char *message)
{
    ground *g = ctx;
    if (level <= 1) snprintf(g->warning, sizeof g->warning, "%s", message);
}

// Opens the runtime that the tests look at, once the stores hold what they should.
static void open_tiers(ground *g, const char *user, const char *system)
{
    hone_runtime_options options = {
        .struct_size = sizeof options,
        .store = user,
        .system_store = system,
        .policy = HONE_POLICY_HEURISTIC,
        .flags = HONE_RUNTIME_NO_BUILTINS | HONE_RUNTIME_NO_ENVIRONMENT,
        .threads = 1,
        .log = keep_warning,
        .log_ctx = g,
        .device_locks = g->user_folder.path,
    };
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    fill_scale_kernels(f->kernels, f->probes);
    if (hone_runtime_open(&options, &f->rt, &f->err) != HONE_OK ||
        register_scale(f->rt, f->kernels, &f->err) != HONE_OK)
        fail_msg("%s", f->err.message);
    f->op = hone_op_find(f->rt, "scale", &f->err);
    g->f = f;
}

static int setup(void **state)
{
    static ground g;
    memset(&g, 0, sizeof g);
    *state = &g;
    if (temporary_folder_make(&g.system_folder) != 0 || temporary_folder_make(&g.user_folder) != 0) return -1;
    snprintf(g.system_url, sizeof g.system_url, "sqlite:%s/system.db", g.system_folder.path);
    snprintf(g.user_url, sizeof g.user_url, "sqlite:%s/store.db", g.user_folder.path);
    // So that another user can get there.
    return chmod(g.user_folder.path, 0777);
}

static int teardown(void **state)
{
    ground *g = *state;
    if (g->f != NULL) close_fixture(g->f);
    (void)!chmod(g->system_folder.path, 0755);
    temporary_folder_remove(&g->system_folder);
    temporary_folder_remove(&g->user_folder);
    return 0;
}

// Filling the stores --------------------------------------------------------------------------------------------------

static hone_store *open_filling(const char *url, hone_error *err)
{
    hone_store *store = NULL;
    if (hone_store_open(hone_allocator_system(), url, &store, err) != HONE_OK) fail_msg("%s", err->message);
    return store;
}

static hone_store_key key_of(fixture *f, const hone_call *call)
{
    size_t count = 0;
    return (hone_store_key){
        hone_runtime_devices(f->rt, &count)[0]->fingerprint, "scale", "1", hone_call_key(call), hone_call_spec(call)};
}

typedef struct content {
    const char *kernel, *revision, *environment;
} content;

// A decision for scale on 4 x 4.
static void put_decision(const char *url, content c)
{
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC});
    hone_store *store = open_filling(url, &f->err);
    hone_call *call = describe_scale(f, 4, 4);
    const hone_store_decision row = {
        .key = key_of(f, call),
        .call = hone_call_text(call),
        .kernel = c.kernel,
        .platform = "native",
        .config = strcmp(c.kernel, "fast") == 0 ? "{\"unroll\":4,\"layout\":\"col\"}" : "{}",
        .source = "autotune",
        .revision = c.revision != NULL ? c.revision : "1",
        .verified = true,
        .time_ns = 1234,
        .evidence = "{}",
        .environment = c.environment,
    };
    assert_int_equal(hone_store_put(store, &row, &f->err), HONE_OK);
    hone_call_release(&call);
    hone_store_close(&store);
    close_fixture(f);
}

// All files of the system's folder with their bytes, as one number.
static uint64_t digest_of(const ground *g)
{
    uint64_t digest = 1469598103934665603u;
    DIR *folder = opendir(g->system_folder.path);
    assert_non_null(folder);
    int files = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[TEMPORARY_PATH_SIZE * 2];
        if (entry->d_name[0] == '.') continue;
        files++;
        snprintf(path, sizeof path, "%s/%s", g->system_folder.path, entry->d_name);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        for (int byte; (byte = fgetc(file)) != EOF;)
            digest = (digest ^ (uint64_t)byte) * 1099511628211u;
        fclose(file);
    }
    closedir(folder);
    assert_int_equal(files, 1);
    return digest;
}

static uint64_t freeze(const ground *g)
{
    char path[TEMPORARY_PATH_SIZE];
    snprintf(path, sizeof path, "%s/system.db", g->system_folder.path);
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(chmod(g->system_folder.path, 0555), 0);
    return digest_of(g);
}

// Tests ---------------------------------------------------------------------------------------------------------------

static void check_an_answer_of_the_system(ground *g)
{
    open_tiers(g, g->user_url, g->system_url);
    hone_decision decision = decide_scale(g->f, 4, 4);
    assert_int_equal(decision.source, HONE_SOURCE_STORE);
    assert_string_equal(decision.kernel, "plain");
    assert_true(decision.system && decision.verified);
    // What is tuned goes to the user's store.
    hone_result *result = NULL;
    const hone_tune_options options = {
        .struct_size = sizeof options, .isolation = HONE_ISOLATION_IN_PROCESS, .evaluations = 3};
    if (hone_tune_text(g->f->rt, "scale(f32[8,8])", &options, &result, &g->f->err) != HONE_OK)
        fail_msg("%s", g->f->err.message);
    hone_result_release(&result);
    close_fixture(g->f);
    g->f = NULL;
    assert_string_equal(g->warning, "");
    hone_error err;
    hone_store *store = open_filling(g->user_url, &err);
    hone_store_stat stat;
    assert_int_equal(hone_store_get_stat(store, &stat, &err), HONE_OK);
    assert_int_equal(stat.decisions, 1);
    hone_store_close(&store);
}

static void the_system_answers_where_the_user_has_nothing_and_is_never_written(void **state)
{
    ground *g = *state;
    put_decision(g->system_url, (content){.kernel = "plain"});
    uint64_t before = freeze(g);
    check_an_answer_of_the_system(g);
    assert_true(digest_of(g) == before);
}

// Root may write everywhere, so the tests run again as a user who may not.
static void the_same_holds_for_a_user_without_rights(void **state)
{
    ground *g = *state;
    if (geteuid() != 0) skip();
    put_decision(g->system_url, (content){.kernel = "plain"});
    uint64_t before = freeze(g);
    int how = 0, child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
        check_an_answer_of_the_system(g);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    assert_true(digest_of(g) == before);
}

static void of_two_answers_the_users_own_is_served_as_long_as_it_can_be(void **state)
{
    ground *g = *state;
    static const char older[] = "{\"compiler\":\"an older one\"}";
    static const struct {
        content user, system;
        const char *kernel;
        bool is_system;
    } cases[] = {
        {{"fast", "1", "{}"}, {"plain", "1", "{}"}, "fast", false},
        {{"fast", "0", "{}"}, {"plain", "1", "{}"}, "plain", true},
        {{"gone", "1", "{}"}, {"plain", "1", "{}"}, "plain", true},
        {{"fast", "1", older}, {"plain", "1", "{}"}, "plain", true},
        {{"fast", "1", older}, {"plain", "1", older}, "fast", false},
        {{"fast", "1", older}, {"plain", "0", "{}"}, "fast", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_decision(g->user_url, cases[i].user);
        put_decision(g->system_url, cases[i].system);
        open_tiers(g, g->user_url, g->system_url);
        hone_decision decision = decide_scale(g->f, 4, 4);
        assert_string_equal(decision.kernel, cases[i].kernel);
        assert_int_equal(decision.system, cases[i].is_system);
        close_fixture(g->f);
        g->f = NULL;
    }
}

static void a_system_store_serves_without_a_users(void **state)
{
    ground *g = *state;
    put_decision(g->system_url, (content){.kernel = "plain"});
    uint64_t before = freeze(g);
    open_tiers(g, "none", g->system_url);
    assert_true(decide_scale(g->f, 4, 4).system);
    assert_true(digest_of(g) == before);
}

// An administrator at work: his WAL is read too, and what he puts is there for who opens the store after it.
static void a_system_store_that_is_being_filled_is_read_as_it_is(void **state)
{
    ground *g = *state;
    hone_error err;
    put_decision(g->system_url, (content){.kernel = "fast"});
    hone_store *filling = open_filling(g->system_url, &err);
    put_decision(g->system_url, (content){.kernel = "plain"});
    open_tiers(g, g->user_url, g->system_url);
    assert_string_equal(decide_scale(g->f, 4, 4).kernel, "plain");
    hone_store_close(&filling);
}

static void a_store_that_is_only_read_refuses_what_would_write(void **state)
{
    ground *g = *state;
    const hone_store_options options = {.struct_size = sizeof options, .read_only = true};
    put_decision(g->system_url, (content){.kernel = "plain"});
    uint64_t before = digest_of(g);
    hone_store *store = NULL;
    hone_error err;
    assert_int_equal(hone_store_open_with(&options, g->system_url, &store, &err), HONE_OK);
    const hone_store_alias alias = {
        .scheme = "s", .operation = "o", .foreign_key = "k", .key = {.algorithm = "a", .version = "1", .key = "k"}};
    const hone_store_key key = {.device = "cpu|x", .algorithm = "scale", .version = "1", .key = "0123456789abcdef"};
    const hone_store_invocation invocation = {.key = key, .count = 1};
    assert_int_equal(hone_store_put_alias(store, &alias, &err), HONE_IO);
    assert_int_equal(hone_store_add_invocations(store, &invocation, 1, &err), HONE_IO);
    assert_int_equal(hone_store_remove(store, &key, &err), HONE_IO);
    assert_int_equal(hone_store_clear_invocations(store, NULL, &err), HONE_IO);
    hone_store_close(&store);
    assert_true(digest_of(g) == before);
    assert_int_equal(hone_store_open_with(&options, "json:/tmp/hone-never-made", &store, &err), HONE_UNSUPPORTED);
    assert_int_equal(access("/tmp/hone-never-made", F_OK), -1);
}

static void assert_explained(ground *g, const char *words)
{
    static saying said;
    said.size = 0;
    hone_call *call = describe_scale(g->f, 4, 4);
    assert_int_equal(hone_explain(g->f->op, call, HONE_TEXT, collect_saying, &said, &g->f->err), HONE_OK);
    if (strstr(said.data, words) == NULL) fail_msg("'%s' not in:\n%s", words, said.data);
    hone_call_release(&call);
}

static void explain_says_which_store_answered_or_why_not(void **state)
{
    ground *g = *state;
    put_decision(g->system_url, (content){.kernel = "plain"});
    open_tiers(g, g->user_url, g->system_url);
    assert_explained(g, "found in the system store");
    close_fixture(g->f);
    put_decision(g->system_url, (content){.kernel = "plain", .revision = "7"});
    open_tiers(g, g->user_url, g->system_url);
    assert_explained(g, "the system store: the stored answer was measured with revision 7");
}

static void an_unreadable_system_store_is_reported_and_skipped(void **state)
{
    ground *g = *state;
    char missing[TEMPORARY_PATH_SIZE * 2];
    snprintf(missing, sizeof missing, "sqlite:%s/missing/system.db", g->system_folder.path);
    put_decision(g->user_url, (content){.kernel = "plain"});
    const char *const urls[] = {missing, "memory:", "nonsense"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        g->warning[0] = '\0';
        open_tiers(g, g->user_url, urls[i]);
        hone_decision decision = decide_scale(g->f, 4, 4);
        assert_string_equal(decision.kernel, "plain");
        assert_false(decision.system);
        assert_non_null(strstr(g->warning, "going on without the system store"));
        close_fixture(g->f);
        g->f = NULL;
    }
    // Nothing was made there.
    missing[strlen(missing) - strlen("/system.db")] = '\0';
    assert_int_equal(access(missing + strlen("sqlite:"), F_OK), -1);
}

static void a_failure_in_the_system_store_is_not_tried_again_by_the_user(void **state)
{
    ground *g = *state;
    open_tiers(g, g->user_url, g->system_url);
    hone_call *call = describe_scale(g->f, 4, 4);
    hone_store *store = open_filling(g->system_url, &g->f->err);
    char now[24];
    time_t seconds = time(NULL);
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime(&seconds));
    const hone_store_key key = key_of(g->f, call);
    const hone_store_measurement failure = {
        .kernel = "plain",
        .config = "{}",
        .revision = "1",
        .max_error = -1,
        .failure = HONE_FAILURE_WRONG,
        .reason = "y[0] is 7",
        .measured = now};
    assert_int_equal(hone_store_put_measurement(store, &key, &failure, &g->f->err), HONE_OK);
    hone_store_close(&store);
    hone_result *result = NULL;
    hone_tune_options options = {
        .struct_size = sizeof options,
        .isolation = HONE_ISOLATION_IN_PROCESS,
        .kernel = "plain",
    };
    assert_int_equal(hone_tune(g->f->op, call, &options, &result, &g->f->err), HONE_NOT_FOUND);
    assert_says(g->f, "y[0] is 7");
    assert_int_equal(atomic_load(&g->f->probes[PLAIN].runs), 0);
    assert_explained(g, "wrong, not tried again before");
    options.fresh = true;
    assert_int_equal(hone_tune(g->f->op, call, &options, &result, &g->f->err), HONE_OK);
    hone_result_release(&result);
    hone_call_release(&call);
}

static void the_environment_names_the_system_store(void **state)
{
    ground *g = *state;
    put_decision(g->system_url, (content){.kernel = "plain"});
    setenv("HONE_STORE", "none", 1);
    setenv("HONE_SYSTEM_STORE", g->system_url, 1);
    g->f = open_fixture((wish){.environment = true});
    assert_true(decide_scale(g->f, 4, 4).system);
    close_fixture(g->f);
    setenv("HONE_SYSTEM_STORE", "none", 1);
    g->f = open_fixture((wish){.environment = true});
    assert_int_equal(decide_scale(g->f, 4, 4).source, HONE_SOURCE_HEURISTIC);
    unsetenv("HONE_STORE");
    unsetenv("HONE_SYSTEM_STORE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            the_system_answers_where_the_user_has_nothing_and_is_never_written, setup, teardown),
        cmocka_unit_test_setup_teardown(the_same_holds_for_a_user_without_rights, setup, teardown),
        cmocka_unit_test_setup_teardown(of_two_answers_the_users_own_is_served_as_long_as_it_can_be, setup, teardown),
        cmocka_unit_test_setup_teardown(a_system_store_serves_without_a_users, setup, teardown),
        cmocka_unit_test_setup_teardown(a_system_store_that_is_being_filled_is_read_as_it_is, setup, teardown),
        cmocka_unit_test_setup_teardown(a_store_that_is_only_read_refuses_what_would_write, setup, teardown),
        cmocka_unit_test_setup_teardown(explain_says_which_store_answered_or_why_not, setup, teardown),
        cmocka_unit_test_setup_teardown(an_unreadable_system_store_is_reported_and_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failure_in_the_system_store_is_not_tried_again_by_the_user, setup, teardown),
        cmocka_unit_test_setup_teardown(the_environment_names_the_system_store, setup, teardown),
    };
    return cmocka_run_group_tests_name("runtime_tiers", tests, NULL, NULL);
}
