// Kernels that are functions of this program: isolated by a fork, by a zygote, or by nobody.
#include "arena.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static int setup_with_zygote(void **state)
{
    if (ground_setup_hosts(state) != 0) return -1;
    ground *g = *state;
    hone_allocator allocator = hone_allocator_system();
    if (hone_os_thread_count() != 1) return 0; // each test skips
    return hone_zygote_start(&allocator, &g->environment.zygote, &g->err) == HONE_OK ? 0 : -1;
}

static void *wait_for_flag(void *flag)
{
    atomic_int *stop = flag;
    while (!atomic_load(stop))
        hone_os_sleep_ns(1000000);
    return NULL;
}

// Runs body while this process has a second thread.
static void with_a_thread(void (*body)(ground *g), ground *g)
{
    pthread_t thread;
    atomic_int stop = 0;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_flag, &stop), 0);
    body(g);
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
}

static void a_single_threaded_host_forks(void **state)
{
    ground *g = *state;
    skip_where_nothing_can_fork();
    assert_int_equal(ground_tune(g, "segv"), HONE_OK);
    assert_winner(g, "good");
    assert_rejected(g, "segv", HONE_FAILURE_CRASH);
    assert_true(g->contest.decision.evidence.isolated);
}

static const struct {
    const char *subject;
    hone_failure failure;
} falls[] = {
    {"segv", HONE_FAILURE_CRASH},
    {"leave", HONE_FAILURE_CRASH},
    {"wrong", HONE_FAILURE_WRONG},
    {"overrun", HONE_FAILURE_BOUNDS},
    {"unsupported", HONE_FAILURE_UNSUPPORTED},
    {"tiring", HONE_FAILURE_WRONG},
};

static void tune_all(ground *g)
{
    for (size_t i = 0; i < sizeof falls / sizeof falls[0]; i++) {
        assert_int_equal(ground_tune(g, falls[i].subject), HONE_OK);
        assert_winner(g, "good");
        assert_rejected(g, falls[i].subject, falls[i].failure);
        assert_true(g->contest.decision.evidence.isolated);
    }
}

static void the_zygote_isolates_functions_of_a_host_with_threads(void **state)
{
    skip_where_nothing_can_fork();
    with_a_thread(tune_all, *state);
}

// Its children know no variable but those of this process.
static void tune_told(ground *g)
{
    assert_int_equal(ground_tune(g, "told"), HONE_OK);
    assert_int_equal(ground_row(g, "told")->rejected[HONE_FAILURE_RUN], 0);
    assert_true(ground_row(g, "told")->time_ns > 0);
}

static void children_of_the_zygote_keep_idle_threads_of_libraries_asleep(void **state)
{
    skip_where_nothing_can_fork();
    with_a_thread(tune_told, *state);
}

static void tune_hang(ground *g)
{
    g->options.candidate_seconds = 4; // what good takes a thousandth of, and a hang all
    g->options.seconds = 60;
    assert_int_equal(ground_tune(g, "hang"), HONE_OK);
    assert_winner(g, "good");
    assert_rejected(g, "hang", HONE_FAILURE_TIMEOUT);
}

static void the_zygote_stops_a_child_that_hangs(void **state)
{
    skip_where_nothing_can_fork();
    with_a_thread(tune_hang, *state);
}

static void cancel_now(void *ctx, const hone_progress *progress)
{
    (void)progress;
    *(volatile int *)ctx = 1;
}

static void tune_cancelled(ground *g)
{
    volatile int cancel = 0;
    g->options.kernel = "hang";
    g->options.candidate_seconds = 36000; // a cancel that waits for it does not end before the test's own limit
    g->options.cancel = &cancel;
    g->options.progress = cancel_now;
    g->options.progress_ctx = (void *)(uintptr_t)&cancel;
    assert_int_equal(ground_tune(g, "hang"), HONE_CANCELLED);
    // The zygote is in order and serves the next.
    g->options = (hone_tune_options){.struct_size = sizeof g->options, .seconds = 2};
    assert_int_equal(ground_tune(g, "none"), HONE_OK);
    assert_winner(g, "good");
}

static void the_zygote_outlives_a_cancelled_contest(void **state)
{
    skip_where_nothing_can_fork();
    with_a_thread(tune_cancelled, *state);
}

// The warnings that the log heard, one after the other.
typedef struct heard {
    int count;
    char text[2000];
} heard;

static void hear(void *ctx, int level, const char *message)
{
    heard *all = ctx;
    if (level != HONE_LOG_WARNING) return;
    all->count++;
    strncat(all->text, message, sizeof all->text - strlen(all->text) - 1);
}

static void listen_to(ground *g, heard *all)
{
    *all = (heard){.count = 0};
    g->log = (hone_log){hear, all, HONE_LOG_WARNING};
}

static void tune_unisolated(ground *g)
{
    heard all;
    listen_to(g, &all);
    assert_int_equal(ground_tune(g, "none"), HONE_NOT_FOUND);
    assert_int_equal(all.count, 1);
    assert_non_null(
        strstr(all.text, "kernel good is left out of the contest for scale_none(f32[1000]): it is a function"));
    assert_non_null(strstr(all.text, "HONE_RUNTIME_ZYGOTE"));
    assert_int_equal(ground_tune(g, "none"), HONE_NOT_FOUND);
    assert_int_equal(all.count, 1);
}

static void a_kernel_that_cannot_be_isolated_is_logged_once(void **state)
{
    with_a_thread(tune_unisolated, *state);
}

static void tune_refused(ground *g)
{
    assert_int_equal(ground_tune(g, "none"), HONE_NOT_FOUND);
    assert_non_null(strstr(g->err.message, "HONE_ISOLATION_IN_PROCESS"));
    g->options.isolation = HONE_ISOLATION_WORKER;
    assert_int_equal(ground_tune(g, "none"), HONE_NOT_FOUND);
    g->options.isolation = HONE_ISOLATION_IN_PROCESS;
    assert_int_equal(ground_tune(g, "wrong"), HONE_OK);
    assert_winner(g, "good");
    assert_rejected(g, "wrong", HONE_FAILURE_WRONG);
    assert_false(g->contest.decision.evidence.isolated);
}

static void without_isolation_consent_is_asked_for(void **state)
{
    with_a_thread(tune_refused, *state);
}

static void start_late(ground *g)
{
    hone_allocator allocator = hone_allocator_system();
    hone_zygote *zygote = NULL;
    assert_int_equal(hone_zygote_start(&allocator, &zygote, &g->err), HONE_UNSUPPORTED);
    assert_null(zygote);
    assert_non_null(strstr(g->err.message, "threads"));
}

static void a_zygote_is_not_started_beside_threads(void **state)
{
    with_a_thread(start_late, *state);
}

// A user pointer into the heap means nothing to a process that was forked before it was made.
static void tune_user(ground *g)
{
    static const char signature[] = "late(x: f32[n], *, by: f64 = 2.0) -> y: f32[n]";
    const hone_algorithm_entry *like = hone_registry_find(g->registry, "scale_none", NULL);
    size_t count;
    const hone_kernel_ref *const *kernels = hone_registry_list(like, &count);
    hone_algorithm algorithm = {
        .struct_size = sizeof algorithm, .signature = signature, .reference = like->algorithm.reference};
    char heap[8];
    hone_kernel kernel[2] = {kernels[0]->kernel, kernels[0]->kernel};
    kernel[0].algorithm = kernel[1].algorithm = "late";
    kernel[1].name = "bound";
    kernel[1].user = heap;
    assert_int_equal(hone_registry_add_algorithm(g->registry, &algorithm, false, &g->err), HONE_OK);
    assert_int_equal(hone_registry_add_kernels(g->registry, kernel, 2, false, false, &g->err), HONE_OK);
    heard all;
    listen_to(g, &all);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ground_tune_text(g, "late(f32[100])"), HONE_OK);
        assert_winner(g, "good");
        assert_int_equal(ground_row(g, "bound")->tried, 0);
        assert_non_null(strstr(ground_row(g, "bound")->reason, "user pointer"));
    }
    assert_int_equal(all.count, 1);
    assert_non_null(
        strstr(all.text, "kernel bound is left out of the contest for late(f32[100]): it has a user pointer"));
    assert_non_null(strstr(all.text, "HONE_ISOLATION_IN_PROCESS"));
}

static void a_kernel_bound_to_memory_that_the_zygote_never_saw_does_not_compete(void **state)
{
    skip_where_nothing_can_fork();
    with_a_thread(tune_user, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_single_threaded_host_forks, ground_setup_hosts, ground_teardown),
        cmocka_unit_test_setup_teardown(
            the_zygote_isolates_functions_of_a_host_with_threads, setup_with_zygote, ground_teardown),
        cmocka_unit_test_setup_teardown(
            children_of_the_zygote_keep_idle_threads_of_libraries_asleep, setup_with_zygote, ground_teardown),
        cmocka_unit_test_setup_teardown(the_zygote_stops_a_child_that_hangs, setup_with_zygote, ground_teardown),
        cmocka_unit_test_setup_teardown(the_zygote_outlives_a_cancelled_contest, setup_with_zygote, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_kernel_that_cannot_be_isolated_is_logged_once, ground_setup_hosts, ground_teardown),
        cmocka_unit_test_setup_teardown(without_isolation_consent_is_asked_for, ground_setup_hosts, ground_teardown),
        cmocka_unit_test_setup_teardown(a_zygote_is_not_started_beside_threads, ground_setup_hosts, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_kernel_bound_to_memory_that_the_zygote_never_saw_does_not_compete, setup_with_zygote, ground_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
