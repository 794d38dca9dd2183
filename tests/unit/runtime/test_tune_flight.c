// Tuning from several threads: one key is tuned once, and two contests never measure at the same time.
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 4 };

typedef struct caller {
    fixture *f;
    int64_t cols;
    pthread_barrier_t *start;
    hone_status status;
    hone_decision decision;
} caller;

static void *decide_now(void *ctx)
{
    caller *c = ctx;
    example e;
    make_example(&e, 4, c->cols);
    pthread_barrier_wait(c->start);
    c->status = hone_decide(c->f->op, e.args, 3, &c->decision, NULL);
    return NULL;
}

static void start_all(caller callers[THREADS], void *(*body)(void *ctx))
{
    pthread_barrier_t start;
    pthread_t threads[THREADS];
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        callers[i].start = &start;
        assert_int_equal(pthread_create(&threads[i], NULL, body, &callers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
}

// Functions of this program are isolated by a zygote, which wants to be forked while there is one thread; where a
// sanitizer has started its own, the threads find nothing to tune with.
static fixture *open_with_zygote(hone_policy policy)
{
    hone_runtime *trial = NULL;
    wish wanted = {.policy = policy, .flags = HONE_RUNTIME_ZYGOTE, .store = "memory:"};
    if (open_bare(&wanted, &trial, NULL) != HONE_OK) wanted.flags = 0;
    hone_runtime_close(&trial);
    return open_fixture(wanted);
}

static fixture *open_to_tune(void)
{
    return open_with_zygote(HONE_POLICY_TUNE);
}

// The zygote has one child: what one thread asks of it another must not come between.
static void threads_that_guess_at_once_verify_one_after_the_other(void **state)
{
    enum { ROUNDS = 4 };
    (void)state;
    fixture *f = open_with_zygote(HONE_POLICY_HEURISTIC);
    for (int round = 0; round < ROUNDS; round++) {
        caller callers[THREADS] = {{0}};
        for (int i = 0; i < THREADS; i++) {
            callers[i].f = f;
            callers[i].cols = 4 + round * THREADS + i;
        }
        start_all(callers, decide_now);
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(callers[i].status, HONE_OK);
            assert_string_equal(callers[i].decision.kernel, callers[0].decision.kernel);
            assert_string_not_equal(callers[i].decision.kernel, "reference");
        }
    }
    close_fixture(f);
}

static void threads_that_miss_one_key_tune_it_once_and_get_one_answer(void **state)
{
    (void)state;
    fixture *f = open_to_tune();
    caller callers[THREADS] = {{0}};
    for (int i = 0; i < THREADS; i++) {
        callers[i].f = f;
        callers[i].cols = 4;
    }
    start_all(callers, decide_now);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(callers[i].status, HONE_OK);
        assert_string_equal(callers[i].decision.kernel, callers[0].decision.kernel);
        // Two contests do not measure the same time to the last bit.
        assert_true(callers[i].decision.evidence.time_ns == callers[0].decision.evidence.time_ns);
        assert_int_equal(callers[i].decision.verified, callers[0].decision.verified);
    }
    assert_true(hone_cache_size(f->rt) <= 1);
    close_fixture(f);
}

static void threads_that_miss_different_keys_each_get_their_own_answer(void **state)
{
    (void)state;
    fixture *f = open_to_tune();
    caller callers[THREADS] = {{0}};
    for (int i = 0; i < THREADS; i++) {
        callers[i].f = f;
        callers[i].cols = 4 + i;
    }
    start_all(callers, decide_now);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(callers[i].status, HONE_OK);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(callers[i].decision.key, callers[j].decision.key);
    }
    close_fixture(f);
}

// A key that cannot be tuned costs one contest, not one a thread: the others do not try the same again.
static void threads_whose_key_has_no_answer_take_the_heuristic(void **state)
{
    (void)state;
    fixture *f = open_to_tune();
    for (int i = 0; i < KERNELS; i++)
        atomic_store(&f->probes[i].prepare_status, HONE_UNAVAILABLE);
    fixture *failing = f;
    caller callers[THREADS] = {{0}};
    for (int i = 0; i < THREADS; i++) {
        callers[i].f = failing;
        callers[i].cols = 9;
    }
    start_all(callers, decide_now);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(callers[i].status, HONE_OK);
        assert_false(callers[i].decision.verified && hone_cache_size(f->rt) == 0);
    }
    close_fixture(f);
}

// Contests in this process, whose kernels see each other if they run at the same time ---------------------------------

static atomic_int inside, together, contests;

static hone_status run_watching(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    if (atomic_fetch_add(&inside, 1) > 0) atomic_store(&together, 1);
    usleep(100);
    hone_status status = scale_reference(plan, args, execution);
    atomic_fetch_sub(&inside, 1);
    return status;
}

static const volatile int *cancel_of_all;

static void *tune_here(void *ctx)
{
    caller *c = ctx;
    hone_call *call = describe_scale(c->f, 4, c->cols);
    hone_result *result = NULL;
    hone_tune_options options = {
        .struct_size = sizeof options,
        .isolation = HONE_ISOLATION_IN_PROCESS,
        .evaluations = 3,
        .seconds = 0.5,
        .kernel = "watching",
        .cancel = cancel_of_all,
    };
    pthread_barrier_wait(c->start);
    c->status = hone_tune(c->f->op, call, &options, &result, NULL);
    if (c->status == HONE_OK) c->decision = *hone_result_decision(result, 0);
    hone_result_release(&result);
    hone_call_release(&call);
    atomic_fetch_add(&contests, 1);
    return NULL;
}

static fixture *open_watching(void)
{
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC});
    hone_kernel kernel = {
        HONE_KERNEL,         .algorithm = "scale", .name = "watching",  .platform = HONE_NATIVE,
        .backend = HONE_CPU, .priority = 99,       .run = run_watching,
    };
    assert_int_equal(hone_register_kernels(f->rt, &kernel, 1, &f->err), HONE_OK);
    return f;
}

static void contests_of_different_keys_never_measure_at_the_same_time(void **state)
{
    (void)state;
    fixture *f = open_watching();
    caller callers[THREADS] = {{0}};
    for (int i = 0; i < THREADS; i++) {
        callers[i].f = f;
        callers[i].cols = 1 + i;
    }
    start_all(callers, tune_here);
    assert_int_equal(together, 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(callers[i].status, HONE_OK);
        assert_string_equal(callers[i].decision.kernel, "watching");
    }
    close_fixture(f);
}

static void a_cancelled_thread_does_not_wait_for_anothers_contest(void **state)
{
    (void)state;
    fixture *f = open_watching();
    static const volatile int cancel = 1;
    cancel_of_all = &cancel;
    caller callers[THREADS] = {{0}};
    for (int i = 0; i < THREADS; i++) {
        callers[i].f = f;
        callers[i].cols = 1 + i;
    }
    start_all(callers, tune_here);
    cancel_of_all = NULL;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(callers[i].status, HONE_CANCELLED);
    close_fixture(f);
}

static fixture *nested_fixture;

static void tune_another(void *ctx, const hone_progress *progress)
{
    (void)progress;
    atomic_int *step = ctx;
    int untouched = 0;
    if (!atomic_compare_exchange_strong(step, &untouched, 1)) return;
    hone_result *result = NULL;
    hone_call *call = describe_scale(nested_fixture, 2, 2);
    hone_tune_options options = {
        .struct_size = sizeof options, .isolation = HONE_ISOLATION_IN_PROCESS, .evaluations = 2, .seconds = 0.2};
    atomic_store(step, hone_tune(nested_fixture->op, call, &options, &result, NULL) == HONE_OK ? 2 : 3);
    hone_result_release(&result);
    hone_call_release(&call);
}

static void a_progress_callback_may_tune_another_call(void **state)
{
    (void)state;
    fixture *f = nested_fixture = open_watching();
    atomic_int step = 0;
    hone_result *result = NULL;
    hone_call *call = describe_scale(f, 3, 3);
    hone_tune_options options = {
        .struct_size = sizeof options,
        .isolation = HONE_ISOLATION_IN_PROCESS,
        .evaluations = 2,
        .seconds = 0.5,
        .progress = tune_another,
        .progress_ctx = &step,
    };
    if (hone_tune(f->op, call, &options, &result, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    assert_int_equal(step, 2);
    hone_result_release(&result);
    hone_call_release(&call);
    close_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_guess_at_once_verify_one_after_the_other),
        cmocka_unit_test(threads_that_miss_one_key_tune_it_once_and_get_one_answer),
        cmocka_unit_test(threads_that_miss_different_keys_each_get_their_own_answer),
        cmocka_unit_test(threads_whose_key_has_no_answer_take_the_heuristic),
        cmocka_unit_test(contests_of_different_keys_never_measure_at_the_same_time),
        cmocka_unit_test(a_cancelled_thread_does_not_wait_for_anothers_contest),
        cmocka_unit_test(a_progress_callback_may_tune_another_call),
    };
    return cmocka_run_group_tests_name("runtime_tune_flight", tests, NULL, NULL);
}
