// What was hit: exact counts, by what answered; and what is asked for beside what is stored.
#include "ground.h"
#include "store/records.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 16 };

typedef struct table {
    hone_stats_row rows[MOST];
    size_t count;
    uint64_t hits, misses;
} table;

static bool take_row(void *ctx, const hone_stats_row *row)
{
    table *t = ctx;
    if (t->count < MOST) t->rows[t->count] = *row;
    t->count++;
    t->hits += row->hits;
    t->misses += row->misses;
    return true;
}

static table read_table(fixture *f)
{
    table t = {.count = 0};
    if (hone_stats(f->rt, take_row, &t, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    return t;
}

static void calls_are_counted_by_what_answered_them(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 7; i++)
        run_example(f, 4, 4);
    put_in_cache(f, 5, 5, "plain");
    for (int i = 0; i < 3; i++)
        run_example(f, 5, 5);
    const table t = read_table(f);
    assert_int_equal(t.count, 2);
    assert_string_equal(t.rows[0].call, "scale(f32[4,4])");
    assert_string_equal(t.rows[0].kernel, "fast");
    assert_int_equal(t.rows[0].source, HONE_SOURCE_HEURISTIC);
    assert_int_equal(t.rows[0].hits, 6);
    assert_int_equal(t.rows[0].misses, 1);
    assert_true(t.rows[0].decided_seconds > 0 && t.rows[0].decided_seconds < 60);
    assert_string_equal(t.rows[1].kernel, "plain");
    assert_int_equal(t.rows[1].source, HONE_SOURCE_MEMORY);
    assert_int_equal(t.rows[1].hits, 2);
}

static void a_call_with_another_choice_begins_another_row_and_the_first_stays(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 5; i++)
        run_example(f, 4, 4);
    put_in_cache(f, 4, 4, "plain");
    for (int i = 0; i < 9; i++)
        run_example(f, 4, 4);
    table t = read_table(f);
    assert_int_equal(t.count, 2);
    assert_int_equal(t.rows[0].hits, 4);
    assert_int_equal(t.rows[1].hits, 8);
    // Plans of two lives of one choice count together.
    for (int i = 0; i < 3; i++)
        put_in_cache(f, 4, 4, "plain");
    run_example(f, 4, 4);
    t = read_table(f);
    assert_int_equal(t.count, 2);
    assert_int_equal(t.rows[1].hits, 8);
    assert_int_equal(t.rows[1].misses, 2);
}

enum { THREADS = 4, RUNS = 20000 };

static void *run_many(void *ctx)
{
    fixture *f = ctx;
    example e;
    make_example(&e, 4, 4);
    for (int i = 0; i < RUNS; i++)
        if (hone_run(f->op, e.args, 3, NULL, NULL) != HONE_OK) return ctx;
    return NULL;
}

static void runs_of_many_threads_lose_none_and_outlive_their_threads(void **state)
{
    fixture *f = *state;
    pthread_t threads[THREADS];
    for (int round = 1; round <= 2; round++) {
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, run_many, f), 0);
        (void)read_table(f); // while they run
        for (int i = 0; i < THREADS; i++) {
            void *failed = NULL;
            pthread_join(threads[i], &failed);
            assert_null(failed);
        }
        const table t = read_table(f);
        assert_int_equal(t.hits + t.misses, round * THREADS * RUNS);
    }
}

// Plans that come and go: numbers change hands while threads count under them.
static void *run_changing(void *ctx)
{
    fixture *f = ctx;
    example e;
    make_example(&e, 4, 4);
    for (int i = 0; i < 4000; i++) {
        e.args[2] = hone_of_float(i * 7 % 61);
        if (hone_run(f->op, e.args, 3, NULL, NULL) != HONE_OK) return ctx;
    }
    return NULL;
}

static void plans_that_are_evicted_while_threads_run_lose_no_counts(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .plan_cache_bytes = 100000});
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_changing, f), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    table t = {.count = 0};
    assert_int_equal(hone_stats(f->rt, take_row, &t, &f->err), HONE_OK);
    assert_int_equal(t.count, 61);
    assert_int_equal(t.hits + t.misses, THREADS * 4000);
    assert_true(t.misses > 61); // some were evicted
    close_fixture(f);
}

static void a_call_that_nothing_answers_is_a_row_of_no_link(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_FAIL});
    example e;
    make_example(&e, 4, 4);
    for (int i = 0; i < 3; i++)
        assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_NOT_FOUND);
    const table t = read_table(f);
    assert_int_equal(t.count, 1);
    assert_int_equal(t.rows[0].source, HONE_SOURCE_NONE);
    assert_string_equal(t.rows[0].kernel, "");
    assert_string_equal(t.rows[0].config, "");
    assert_int_equal(t.rows[0].misses, 3);
    close_fixture(f);
}

static void a_bound_plan_counts_while_recording_is_on_and_is_the_kernels_own_function_else(void **state)
{
    fixture *f = *state;
    const hone_plan *plan = NULL;
    example e;
    make_example(&e, 4, 4);
    assert_int_equal(hone_bind(f->op, e.args, 3, &plan, &f->err), HONE_OK);
    assert_ptr_equal(plan->run, plan->kernel->run);
    assert_int_equal(plan->run(plan, e.args, NULL), HONE_OK);
    assert_int_equal(read_table(f).hits, 0);
    hone_record_enable(f->rt, true);
    for (int i = 0; i < 5; i++)
        assert_int_equal(plan->run(plan, e.args, NULL), HONE_OK);
    run_example(f, 4, 4); // by the table: once, although its plan counts itself
    assert_int_equal(read_table(f).hits, 6);
    hone_record_enable(f->rt, false);
    assert_ptr_equal(plan->run, plan->kernel->run);
    hone_plan_release(&plan);
    assert_int_equal(read_table(f).hits, 6);
}

static void a_child_of_fork_begins_at_zero(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 5; i++)
        run_example(f, 4, 4);
    const pid_t child = fork();
    if (child == 0) {
        const uint64_t before = read_table(f).hits + read_table(f).misses;
        run_example(f, 4, 4);
        _exit(before == 0 && read_table(f).hits == 1 ? 0 : 1);
    }
    int ended = -1;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    assert_int_equal(read_table(f).hits, 4);
}

static void calls_beyond_the_rows_are_counted_together(void **state)
{
    enum { MORE = 300 };
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    for (int i = 0; i < HONE_STATS_ROWS + MORE; i++) {
        e.args[2] = hone_of_float(i);
        assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_OK);
    }
    table t = read_table(f);
    assert_int_equal(t.count, HONE_STATS_ROWS + 1);
    assert_int_equal(t.misses, HONE_STATS_ROWS + MORE);
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_OK);
    assert_int_equal(read_table(f).hits, 1);
    saying json = {.size = 0};
    hone_stats_row others = {.kernel = "", .platform = "", .config = "", .misses = MORE};
    assert_int_equal(hone_stats_print(f->rt, &others, 1, HONE_STATS_JSON, collect_saying, &json, &f->err), HONE_OK);
    assert_non_null(strstr(json.data, "\"algorithm\":null"));
}

// Beside a store -------------------------------------------------------------------------------------------------------

typedef struct findings {
    size_t unasked, unstored;
    char unasked_call[100], unstored_call[100], differs[700], kernel[HONE_NAME_SIZE];
    uint64_t calls;
} findings;

static bool take_finding(void *ctx, const hone_stats_finding *found)
{
    findings *all = ctx;
    if (found->is_stored && all->unasked++ == 0)
        snprintf(all->unasked_call, sizeof all->unasked_call, "%s", found->call);
    if (!found->is_stored && all->unstored++ == 0) {
        snprintf(all->unstored_call, sizeof all->unstored_call, "%s", found->call);
        snprintf(all->differs, sizeof all->differs, "%s", found->differs != NULL ? found->differs : "");
        snprintf(all->kernel, sizeof all->kernel, "%s", found->kernel);
        all->calls = found->calls;
    }
    return true;
}

static findings compare(fixture *f)
{
    findings all = {0};
    if (hone_stats_compare(f->rt, NULL, 0, take_finding, &all, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    return all;
}

static void put_of_another(fixture *f, const char *url, const char *device, const char *algorithm, const char *call)
{
    hone_store *store = NULL;
    assert_int_equal(hone_store_open(hone_allocator_system(), url, &store, &f->err), HONE_OK);
    const hone_store_decision other = {
        .key = {device, algorithm, "1", "0123456789abcdef", "{}"},
        .call = call,
        .kernel = "fast",
        .platform = "native",
        .config = "{}",
        .source = "autotune",
        .revision = "1",
        .regime = HONE_WARM,
        .evidence = "{}",
        .environment = "{}"};
    assert_int_equal(hone_store_put(store, &other, &f->err), HONE_OK);
    hone_store_close(&store);
}

static void what_is_stored_and_what_is_asked_for_are_compared(void **state)
{
    const ground *g = *state;
    fixture *f = g->f;
    tune_scale(f, 4);
    tune_scale(f, 16);
    run_example(f, 4, 4); // stored, and asked for
    run_example(f, 8, 4); // asked for
    for (int i = 0; i < 5; i++)
        run_example(f, 20, 4); // asked for most; what is stored for 16 serves its guess
    size_t count = 0;
    put_of_another(f, g->url, hone_runtime_devices(f->rt, &count)[0]->fingerprint, "shift", "shift(f32[9,9])");
    const findings all = compare(f);
    assert_int_equal(all.unasked, 1);
    assert_string_equal(all.unasked_call, "shift(f32[9,9])");
    assert_int_equal(all.unstored, 2);
    assert_string_equal(all.unstored_call, "scale(f32[20,4])");
    assert_int_equal(all.calls, 5);
    assert_string_equal(all.differs, "x.shape[0]: 20, stored 16");
}

static void decisions_of_another_device_do_not_count_as_unused(void **state)
{
    const ground *g = *state;
    fixture *f = g->f;
    tune_scale(f, 4);
    run_example(f, 4, 4);
    put_of_another(f, g->url, "cpu|another", "scale", "scale(f32[9,9])");
    const findings all = compare(f);
    assert_int_equal(all.unasked + all.unstored, 0);
}

static void without_a_store_there_is_nothing_to_compare_with(void **state)
{
    fixture *f = *state;
    findings all = {0};
    assert_int_equal(hone_stats_compare(f->rt, NULL, 0, take_finding, &all, &f->err), HONE_UNAVAILABLE);
    assert_non_null(strstr(f->err.message, "there is no store"));
}

static void null_and_unknown_formats_are_refused(void **state)
{
    fixture *f = *state;
    saying said = {.size = 0};
    assert_int_equal(hone_stats(NULL, take_row, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_stats(f->rt, NULL, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(
        hone_stats_print(f->rt, NULL, 0, (hone_stats_format)7, collect_saying, &said, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_stats_print(f->rt, NULL, 0, HONE_STATS_LINE, NULL, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_stats_compare(f->rt, NULL, 0, NULL, NULL, &f->err), HONE_INVALID_ARGUMENT);
}

static void labels_of_prometheus_escape_what_its_text_asks_for(void **state)
{
    fixture *f = *state;
    const hone_stats_row row = {
        .key = {"d", "a\"b", "1", "k", NULL}, .kernel = "x\\y\nz", .platform = "native", .config = "", .hits = 7};
    saying said = {.size = 0};
    assert_int_equal(hone_stats_print(f->rt, &row, 1, HONE_STATS_PROMETHEUS, collect_saying, &said, &f->err), HONE_OK);
    assert_non_null(strstr(
        said.data, "hone_hits_total{algorithm=\"a\\\"b\",version=\"1\",link=\"none\",platform=\"native\","
                   "kernel=\"x\\\\y\\nz\"} 7\n"));
}

#define WITH_RUNTIME(test) cmocka_unit_test_setup_teardown(test, setup_runtime, teardown_runtime)
#define ON_GROUND(test)    cmocka_unit_test_setup_teardown(test, open_ground, close_ground)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RUNTIME(calls_are_counted_by_what_answered_them),
        WITH_RUNTIME(a_call_with_another_choice_begins_another_row_and_the_first_stays),
        WITH_RUNTIME(runs_of_many_threads_lose_none_and_outlive_their_threads),
        cmocka_unit_test(plans_that_are_evicted_while_threads_run_lose_no_counts),
        cmocka_unit_test(a_call_that_nothing_answers_is_a_row_of_no_link),
        WITH_RUNTIME(a_bound_plan_counts_while_recording_is_on_and_is_the_kernels_own_function_else),
        WITH_RUNTIME(a_child_of_fork_begins_at_zero),
        WITH_RUNTIME(calls_beyond_the_rows_are_counted_together),
        ON_GROUND(what_is_stored_and_what_is_asked_for_are_compared),
        ON_GROUND(decisions_of_another_device_do_not_count_as_unused),
        WITH_RUNTIME(without_a_store_there_is_nothing_to_compare_with),
        WITH_RUNTIME(null_and_unknown_formats_are_refused),
        WITH_RUNTIME(labels_of_prometheus_escape_what_its_text_asks_for),
    };
    return cmocka_run_group_tests_name("runtime_stats", tests, NULL, NULL);
}
