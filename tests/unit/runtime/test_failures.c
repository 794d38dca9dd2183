// Kernels that fail at run time or cannot be prepared: the next best runs, and when there is none the caller hears so.
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>

static void a_kernel_that_fails_at_run_time_is_put_aside_and_the_next_best_runs(void **state)
{
    static const hone_status failures[] = {HONE_UNSUPPORTED, HONE_KERNEL_FAILED};
    fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        int64_t cols = 4 + i;
        atomic_store(&f->probes[FAST].status, HONE_OK);
        run_example(f, 4, cols);
        run_example(f, 4, cols);
        atomic_store(&f->probes[FAST].status, failures[i]);
        int fast = f->probes[FAST].runs, plain = f->probes[PLAIN].runs;
        for (int j = 0; j < 3; j++)
            run_example(f, 4, cols); // also by a hit
        assert_int_equal(f->probes[FAST].runs, fast + 1);
        assert_int_equal(f->probes[PLAIN].runs, plain + 3);
        // For good: it is not asked again when it would work.
        atomic_store(&f->probes[FAST].status, HONE_OK);
        run_example(f, 4, cols);
        assert_int_equal(f->probes[FAST].runs, fast + 1);
    }
    // Other calls are not touched by that.
    run_example(f, 9, 9);
    assert_int_equal(f->probes[PLAIN].runs, 8);
}

static void a_kernel_that_fails_the_first_time_is_put_aside_too(void **state)
{
    fixture *f = *state;
    atomic_store(&f->probes[FAST].status, HONE_KERNEL_FAILED);
    run_example(f, 4, 4);
    run_example(f, 4, 4);
    assert_int_equal(f->probes[FAST].runs, 1);
    assert_int_equal(f->probes[PLAIN].runs, 2);
    assert_int_equal(f->probes[FAST].releases, 1);
}

static void the_reference_runs_when_all_others_failed(void **state)
{
    fixture *f = *state;
    atomic_store(&f->probes[FAST].status, HONE_UNSUPPORTED);
    atomic_store(&f->probes[PLAIN].status, HONE_KERNEL_FAILED);
    run_example(f, 4, 4);
    assert_int_equal(f->probes[REFERENCE].runs, 1);
}

static void when_every_kernel_has_failed_the_caller_hears_which_and_why(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    for (int i = 0; i < KERNELS; i++)
        atomic_store(&f->probes[i].status, HONE_KERNEL_FAILED);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_KERNEL_FAILED);
        assert_int_equal(f->err.status, HONE_KERNEL_FAILED);
        assert_says(f, "scale(f32[4,4])");
        assert_says(f, "every kernel");
        assert_says(f, "reference");
    }
    for (int i = 0; i < KERNELS; i++)
        assert_int_equal(f->probes[i].runs, 1);
    // The runtime goes on.
    for (int i = 0; i < KERNELS; i++)
        atomic_store(&f->probes[i].status, HONE_OK);
    run_example(f, 5, 5);
}

static void a_remembered_kernel_that_fails_gives_way_to_the_heuristic(void **state)
{
    fixture *f = *state;
    put_in_cache(f, 4, 4, "plain");
    atomic_store(&f->probes[PLAIN].status, HONE_UNSUPPORTED);
    run_example(f, 4, 4);
    assert_int_equal(f->probes[PLAIN].runs, 1);
    assert_int_equal(f->probes[FAST].runs, 1);
    hone_decision decision = decide_scale(f, 4, 4);
    assert_int_equal(decision.source, HONE_SOURCE_HEURISTIC);
}

static void under_the_policy_fail_a_kernel_that_failed_leaves_no_answer(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_FAIL});
    example e;
    make_example(&e, 4, 4);
    put_in_cache(f, 4, 4, "plain");
    atomic_store(&f->probes[PLAIN].status, HONE_UNSUPPORTED);
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_NOT_FOUND);
    assert_says(f, "disabled for this call");
    assert_int_equal(f->probes[FAST].runs, 0);
    close_fixture(f);
}

static void an_overridden_kernel_that_fails_is_an_error_and_no_other_runs(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    hone_context *context = overriding(f, "plain", NULL);
    hone_context_enter(context);
    run_example(f, 4, 4);
    atomic_store(&f->probes[PLAIN].status, HONE_UNSUPPORTED);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_KERNEL_FAILED);
        assert_says(f, "plain");
        assert_says(f, "unsupported");
        assert_says(f, "scale(f32[4,4])");
    }
    assert_int_equal(f->probes[FAST].runs, 0);
    atomic_store(&f->probes[PLAIN].status, HONE_OK);
    run_example(f, 4, 4); // not put aside: the user asked for exactly this
    hone_context_enter(NULL);
    hone_context_release(&context);
}

static void another_status_of_a_kernel_reaches_the_caller_as_it_is(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    atomic_store(&f->probes[FAST].status, HONE_OUT_OF_MEMORY);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_OUT_OF_MEMORY);
        assert_says(f, "fast");
    }
    atomic_store(&f->probes[FAST].status, HONE_OK);
    run_example(f, 4, 4);
    assert_int_equal(f->probes[PLAIN].runs, 0);
}

// In a contest, too: the words stand below the kernel in what hone explain shows.
static void a_kernels_error_message_is_kept_with_the_contest(void **state)
{
    (void)state;
    static saying said;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .store = "memory:"});
    const hone_tune_options options = {
        .struct_size = sizeof options, .seconds = 5, .evaluations = 6, .isolation = HONE_ISOLATION_IN_PROCESS};
    hone_result *result = NULL;
    f->probes[PLAIN].status = HONE_KERNEL_FAILED;
    f->probes[PLAIN].words = "the moon is in the wrong house";
    hone_call *call = describe_scale(f, 4, 4);
    if (hone_tune(f->op, call, &options, &result, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    hone_result_release(&result);
    said.size = 0;
    assert_int_equal(hone_explain(f->op, call, HONE_TEXT, collect_saying, &said, &f->err), HONE_OK);
    if (strstr(said.data, "the moon is in the wrong house") == NULL) fail_msg("%s", said.data);
    hone_call_release(&call);
    close_fixture(f);
}

static void a_kernel_that_cannot_be_prepared_is_put_aside(void **state)
{
    fixture *f = *state;
    atomic_store(&f->probes[FAST].prepare_status, HONE_UNAVAILABLE);
    run_example(f, 4, 4);
    run_example(f, 4, 4);
    assert_int_equal(f->probes[FAST].prepares, 1);
    assert_int_equal(f->probes[FAST].runs, 0);
    assert_int_equal(f->probes[PLAIN].runs, 2);
}

static void when_no_kernel_can_be_prepared_the_caller_hears_the_reason(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    for (int i = 0; i < KERNELS; i++)
        atomic_store(&f->probes[i].prepare_status, HONE_UNAVAILABLE);
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_KERNEL_FAILED);
    assert_says(f, "the probe says no");
    const hone_plan *plan = (const hone_plan *)(const void *)f;
    assert_int_equal(hone_bind(f->op, e.args, 3, &plan, &f->err), HONE_KERNEL_FAILED);
    assert_null(plan);
}

static void an_overridden_kernel_that_cannot_be_prepared_is_an_error(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 4, 4);
    atomic_store(&f->probes[PLAIN].prepare_status, HONE_UNAVAILABLE);
    hone_context *context = overriding(f, "plain", NULL);
    hone_context_enter(context);
    assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_UNAVAILABLE);
    assert_says(f, "plain");
    assert_says(f, "the probe says no");
    hone_context_enter(NULL);
    hone_context_release(&context);
}

static void a_state_is_prepared_once_a_plan_and_given_back_once(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 5; i++) {
        run_example(f, 4, 4);
        run_example(f, 4, 5);
    }
    assert_int_equal(f->probes[FAST].prepares, 2);
    assert_int_equal(f->probes[FAST].releases, 0);
    hone_cache_clear(f->rt);
    assert_int_equal(f->probes[FAST].releases, 2);
}

// A kernel that calls hone --------------------------------------------------------------------------------------------

static fixture *inner;
static atomic_int inner_source;

static hone_status run_nested(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    hone_decision decision = {.source = HONE_SOURCE_NONE};
    hone_status status = hone_decide(inner->op, args, 2, &decision, NULL);
    atomic_store(&inner_source, decision.source);
    return status == HONE_OK ? hone_run(inner->op, args, 2, NULL, NULL) : status;
}

static void a_miss_inside_a_kernel_takes_the_heuristic_also_under_the_policy_tune(void **state)
{
    (void)state;
    fixture *f = inner = open_fixture((wish){.policy = HONE_POLICY_TUNE, .store = "memory:"});
    hone_algorithm outer;
    hone_algorithm_init(&outer);
    outer.signature = "outer(x: T[rows, cols]) -> y: T[rows, cols] where T in f32";
    hone_kernel kernel = {
        HONE_KERNEL,         .algorithm = "outer", .name = "only", .platform = HONE_NATIVE,
        .backend = HONE_CPU, .run = run_nested,
    };
    assert_int_equal(hone_register_algorithm(f->rt, &outer, &f->err), HONE_OK);
    assert_int_equal(hone_register_kernels(f->rt, &kernel, 1, &f->err), HONE_OK);
    const hone_op *op = hone_op_find(f->rt, "outer", &f->err);
    hone_context *context =
        derive(f, NULL, NULL, &(hone_override){.algorithm = "outer", .kernel = "only"}, HONE_POLICY_DEFAULT);
    example e;
    make_example(&e, 4, 4);
    hone_context_enter(context);
    for (int i = 0; i < 3; i++) {
        if (hone_run(op, e.args, 2, NULL, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
        assert_int_equal(inner_source, HONE_SOURCE_HEURISTIC);
        assert_scaled(&e, 2);
    }
    hone_context_enter(NULL);
    hone_context_release(&context);
    assert_int_equal(f->probes[FAST].runs, 3);
    assert_int_equal(hone_cache_size(f->rt), 0); // nothing was tuned
    close_fixture(f);
}

// Threads -------------------------------------------------------------------------------------------------------------

enum { THREADS = 4, CALLS = 200 };

static void *call_again_and_again(void *ctx)
{
    fixture *f = ctx;
    hone_error err;
    for (int i = 0; i < CALLS; i++) {
        example e;
        make_example(&e, 1 + i % 8, 4);
        if (hone_run(f->op, e.args, 3, NULL, &err) != HONE_OK) return "a call failed";
        for (int64_t j = 0; j < e.shape[0] * e.shape[1]; j++)
            if (e.y[j] != 2 * (float)j) return "a result is wrong";
    }
    return NULL;
}

static void a_kernel_that_starts_to_fail_under_running_threads_gives_way_in_all_of_them(void **state)
{
    fixture *f = *state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_again_and_again, f), 0);
    atomic_store(&f->probes[FAST].status, HONE_KERNEL_FAILED);
    void *complaint = NULL;
    for (int i = 0; i < THREADS; i++) {
        void *said = NULL;
        pthread_join(threads[i], &said);
        if (said != NULL) complaint = said;
    }
    if (complaint != NULL) fail_msg("%s", (const char *)complaint);
    int fast = f->probes[FAST].runs;
    assert_null(call_again_and_again(f));
    assert_true(f->probes[FAST].runs - fast <= 8); // shapes that nobody called since, at most
    fast = f->probes[FAST].runs;
    assert_null(call_again_and_again(f));
    assert_int_equal(f->probes[FAST].runs, fast);
}

#define WITH_RUNTIME(test) cmocka_unit_test_setup_teardown(test, setup_runtime, teardown_runtime)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RUNTIME(a_kernel_that_fails_at_run_time_is_put_aside_and_the_next_best_runs),
        WITH_RUNTIME(a_kernel_that_fails_the_first_time_is_put_aside_too),
        WITH_RUNTIME(the_reference_runs_when_all_others_failed),
        WITH_RUNTIME(when_every_kernel_has_failed_the_caller_hears_which_and_why),
        WITH_RUNTIME(a_remembered_kernel_that_fails_gives_way_to_the_heuristic),
        cmocka_unit_test(under_the_policy_fail_a_kernel_that_failed_leaves_no_answer),
        WITH_RUNTIME(an_overridden_kernel_that_fails_is_an_error_and_no_other_runs),
        WITH_RUNTIME(another_status_of_a_kernel_reaches_the_caller_as_it_is),
        cmocka_unit_test(a_kernels_error_message_is_kept_with_the_contest),
        WITH_RUNTIME(a_kernel_that_cannot_be_prepared_is_put_aside),
        WITH_RUNTIME(when_no_kernel_can_be_prepared_the_caller_hears_the_reason),
        WITH_RUNTIME(an_overridden_kernel_that_cannot_be_prepared_is_an_error),
        WITH_RUNTIME(a_state_is_prepared_once_a_plan_and_given_back_once),
        cmocka_unit_test(a_miss_inside_a_kernel_takes_the_heuristic_also_under_the_policy_tune),
        WITH_RUNTIME(a_kernel_that_starts_to_fail_under_running_threads_gives_way_in_all_of_them),
    };
    return cmocka_run_group_tests_name("runtime_failures", tests, NULL, NULL);
}
