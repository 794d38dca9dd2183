// A kernel that the program registers answers no call by guess that it was not verified for, and none once it was wrong.
#include "fixture.h"
#include "temporary_folder.h"

#include "registry/registry.h"
#include "runtime/links/trust.h"
#include "runtime/state/operation.h"
#include "store/records.h"

#include <pthread.h>
#include <stdio.h>

#define GROW "grow(x: f32[n ~pow2], *, factor: f64 = 1) -> y: f32[n]"

static int64_t count_of(const hone_value *args)
{
    return args[0].as.tensor->shape[0];
}

static void grow(const hone_value *args, int64_t count, double factor)
{
    const float *x = hone_tensor_data(args[0].as.tensor);
    float *y = hone_tensor_data(args[1].as.tensor);
    for (int64_t i = 0; i < count; i++)
        y[i] = (float)(x[i] * factor);
}

static hone_status run_right(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan, (void)execution;
    grow(args, count_of(args), args[2].as.f64);
    return HONE_OK;
}

static hone_status run_without_factor(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan, (void)execution;
    grow(args, count_of(args), 1);
    return HONE_OK;
}

static hone_status run_zeros(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan, (void)execution;
    grow(args, count_of(args), 0);
    return HONE_OK;
}

// Right for small calls, and for powers of two.
static hone_status run_right_in_places(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan, (void)execution;
    const int64_t n = count_of(args);
    grow(args, n < 400 || (n & (n - 1)) == 0 ? n : n - 1, args[2].as.f64);
    if (n >= 400 && (n & (n - 1)) != 0) ((float *)hone_tensor_data(args[1].as.tensor))[n - 1] = 0;
    return HONE_OK;
}

typedef struct ground {
    temporary_folder folder;
    char url[TEMPORARY_PATH_SIZE];
    hone_runtime *rt;
    const hone_op *op;
    hone_error err;
} ground;

// A runtime with the reference, a kernel that is right, and one of higher priority.
static void open_with(ground *g, const char *store, unsigned flags, hone_run_function *run, const char *revision)
{
    const hone_runtime_options options = {
        .struct_size = sizeof options,
        .store = store,
        .policy = HONE_POLICY_HEURISTIC,
        .flags = HONE_RUNTIME_NO_BUILTINS | HONE_RUNTIME_NO_ENVIRONMENT | flags,
        .threads = 1,
        .device_locks = "none",
        .log_level = 0,
    };
    const hone_kernel kernels[] = {
        {HONE_KERNEL, .algorithm = "grow", .name = "quick", .platform = HONE_NATIVE, .backend = HONE_CPU,
         .priority = 90, .revision = revision, .run = run},
        {HONE_KERNEL, .algorithm = "grow", .name = "plain", .platform = HONE_NATIVE, .backend = HONE_CPU,
         .priority = 10, .revision = revision, .run = run_right},
    };
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = GROW;
    algorithm.reference = run_right;
    if (hone_runtime_open(&options, &g->rt, &g->err) != HONE_OK ||
        hone_register_algorithm(g->rt, &algorithm, &g->err) != HONE_OK ||
        hone_register_kernels(g->rt, kernels, 2, &g->err) != HONE_OK)
        fail_msg("%s", g->err.message);
    g->op = hone_op_find(g->rt, "grow", &g->err);
    assert_non_null(g->op);
}

// Runs a call and returns how far its results are from what is right.
static double error_of(ground *g, int64_t n, double factor)
{
    static float x[2048], y[2048];
    hone_tensor tensors[2];
    for (int i = 0; i < 2; i++)
        tensors[i] = hone_tensor_of(i == 0 ? x : y, HONE_F32, 1, &n);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(i % 7 + 1);
    const hone_value args[] = {hone_of_tensor(&tensors[0]), hone_of_tensor(&tensors[1]), hone_of_float(factor)};
    if (hone_run(g->op, args, 3, NULL, &g->err) != HONE_OK) fail_msg("%s", g->err.message);
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double off = y[i] - x[i] * factor;
        most = off > most ? off : -off > most ? -off : most;
    }
    return most;
}

static hone_decision decide(ground *g, const char *text)
{
    hone_call *call = NULL;
    hone_decision decision = {0};
    if (hone_call_parse(hone_allocator_system(), hone_op_signature(g->op), text, &call, &g->err) != HONE_OK ||
        hone_decide_call(g->op, call, &decision, &g->err) != HONE_OK)
        fail_msg("%s", g->err.message);
    hone_call_release(&call);
    return decision;
}

static int setup(void **state)
{
    static ground g;
    memset(&g, 0, sizeof g);
    *state = &g;
    if (temporary_folder_make(&g.folder) != 0) return -1;
    snprintf(g.url, sizeof g.url, "sqlite:%s/store.db", g.folder.path);
    return 0;
}

static int teardown(void **state)
{
    ground *g = *state;
    hone_runtime_close(&g->rt);
    temporary_folder_remove(&g->folder);
    return 0;
}

static void a_wrong_kernel_of_the_program_answers_nothing_by_its_priority(void **state)
{
    ground *g = *state;
    hone_run_function *const wrong[] = {run_without_factor, run_zeros};
    for (int i = 0; i < 2; i++) {
        open_with(g, "none", 0, wrong[i], NULL);
        assert_true(error_of(g, 5, 1) == 0); // where a factor that is ignored does not show
        assert_string_equal(decide(g, "grow(f32[5])").kernel, "plain");
        assert_true(error_of(g, 5, 0.5) == 0);
        assert_true(error_of(g, 9, 3) == 0);
        hone_runtime_close(&g->rt);
    }
}

static void a_right_kernel_of_the_program_answers_by_its_priority(void **state)
{
    ground *g = *state;
    open_with(g, "none", 0, run_right, NULL);
    assert_true(error_of(g, 5, 0.5) == 0);
    const hone_decision decision = decide(g, "grow(f32[5])");
    assert_string_equal(decision.kernel, "quick");
    assert_int_equal(decision.source, HONE_SOURCE_HEURISTIC);
    assert_false(decision.verified); // no contest has
}

static void an_unverified_kernel_answers_if_the_runtime_allows_it(void **state)
{
    ground *g = *state;
    open_with(g, "none", HONE_RUNTIME_UNVERIFIED, run_zeros, NULL);
    assert_true(error_of(g, 5, 1) > 0);
}

static void *wait_for_the_end(void *ctx)
{
    pthread_mutex_lock(ctx);
    pthread_mutex_unlock(ctx);
    return NULL;
}

// No process can hold its functions: they are tried where they would run, for the very call.
static void a_program_with_threads_gets_correct_results_as_well(void **state)
{
    ground *g = *state;
    pthread_t thread;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_the_end, &mutex), 0);
    open_with(g, "none", 0, run_without_factor, NULL);
    assert_true(error_of(g, 5, 1) == 0);
    assert_true(error_of(g, 5, 0.5) == 0);
    assert_true(error_of(g, 6, 0.5) == 0);
    assert_string_equal(decide(g, "grow(f32[5])").kernel, "plain");
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
}

// Small calls do not show what is wrong with it.
static void the_very_call_is_verified_too(void **state)
{
    ground *g = *state;
    open_with(g, "none", 0, run_right_in_places, NULL);
    assert_true(error_of(g, 512, 0.5) == 0);
    assert_string_equal(decide(g, "grow(f32[512], factor=0.5)").kernel, "quick");
    assert_true(error_of(g, 500, 0.5) == 0);
    assert_string_equal(decide(g, "grow(f32[500], factor=0.5)").kernel, "plain");
    // And now it answers nowhere.
    assert_string_equal(decide(g, "grow(f32[512], factor=0.5)").kernel, "plain");
}

// ThreadSanitizer lets no child of a process with threads start any, and what is verified runs in two.
#ifndef __SANITIZE_THREAD__
// A decision of a contest for a call of 512, as a store has it.
static void put_decision(ground *g)
{
    hone_call *call = NULL;
    const hone_signature *signature = hone_op_signature(g->op);
    assert_int_equal(
        hone_call_parse(
            hone_allocator_system(), (hone_signature *)(uintptr_t)signature, "grow(f32[512], factor=0.5)", &call,
            &g->err),
        HONE_OK);
    const hone_store_decision row = {
        .key = {g->rt->cpu->fingerprint, "grow", "1", hone_call_key(call), hone_call_spec(call)},
        .call = hone_call_text(call),
        .kernel = "quick",
        .platform = "native",
        .config = "{}",
        .source = "autotune",
        .revision = "r1",
        .verified = true,
        .time_ns = 100,
        .evidence = "{}",
    };
    assert_int_equal(hone_store_put(hone_runtime_store(g->rt), &row, &g->err), HONE_OK);
    hone_call_release(&call);
}

static void a_winner_of_a_bucket_is_verified_for_each_call_of_the_bucket(void **state)
{
    ground *g = *state;
    open_with(g, g->url, 0, run_right_in_places, "r1");
    (void)decide(g, "grow(f32[3])"); // wakes the device
    put_decision(g);
    assert_true(error_of(g, 512, 0.5) == 0);
    hone_decision decision = decide(g, "grow(f32[512], factor=0.5)");
    assert_string_equal(decision.kernel, "quick");
    assert_true(decision.verified);
    assert_true(error_of(g, 500, 0.5) == 0);
    assert_string_not_equal(decide(g, "grow(f32[500], factor=0.5)").kernel, "quick");
}

static void note_failure(ground *g, const char *url)
{
    hone_store *store = NULL;
    hone_call *call = NULL;
    assert_int_equal(hone_store_open(hone_allocator_system(), url, &store, &g->err), HONE_OK);
    assert_int_equal(
        hone_call_parse(hone_allocator_system(), hone_op_signature(g->op), "grow(f32[77])", &call, &g->err), HONE_OK);
    const hone_store_key key = {g->rt->cpu->fingerprint, "grow", "1", hone_call_key(call), hone_call_spec(call)};
    const hone_store_measurement wrong = {
        .kernel = "quick",
        .config = "{}",
        .revision = "r1",
        .max_error = -1,
        .failure = HONE_FAILURE_WRONG,
        .reason = "y is 3",
        .measured = "2026-11-20T12:34:56Z",
    };
    assert_int_equal(hone_store_put_measurement(store, &key, &wrong, &g->err), HONE_OK);
    hone_call_release(&call);
    hone_store_close(&store);
}

static bool is_quick(void *ctx, const hone_plan_entry *entry)
{
    size_t **count = ctx;
    **count += strcmp(entry->kernel->kernel.name, "quick") == 0;
    return false;
}

static size_t quick_plans(ground *g)
{
    size_t found = 0, *count = &found;
    hone_plan_table_drop(&g->rt->plans, is_quick, &count);
    return found;
}

static void plans_of_what_another_process_found_wrong_are_taken_back(void **state)
{
    ground *g = *state;
    open_with(g, g->url, 0, run_right, "r1");
    assert_true(error_of(g, 5, 0.5) == 0);
    assert_int_equal(quick_plans(g), 1);
    note_failure(g, g->url);
    assert_true(error_of(g, 5, 0.5) == 0); // a hit: nobody has asked the store
    assert_int_equal(quick_plans(g), 1);
    assert_true(error_of(g, 6, 0.5) == 0); // a miss
    assert_int_equal(quick_plans(g), 0);
    const hone_decision decision = decide(g, "grow(f32[5], factor=0.5)");
    assert_string_equal(decision.kernel, "plain");
}

#endif

static bool count_verified(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *row = record->measurement;
    size_t *count = ctx;
    *count += row->failure == HONE_FAILURE_NONE && row->max_error >= 0 && row->time_ns == 0 && row->samples == 0;
    return true;
}

static void what_was_verified_is_remembered_by_its_revision(void **state)
{
    ground *g = *state;
    for (int round = 0; round < 2; round++) {
        size_t count = 0;
        open_with(g, g->url, 0, run_right, round == 0 ? NULL : "r1");
        assert_true(error_of(g, 5, 0.5) == 0);
        assert_int_equal(
            hone_store_scan(hone_runtime_store(g->rt), HONE_RECORD_MEASUREMENT, NULL, count_verified, &count, &g->err),
            HONE_OK);
        // Nobody knows which code a function without a revision was.
        if (round == 0) assert_int_equal(count, 0);
        if (round == 1) assert_true(count >= 2);
        hone_runtime_close(&g->rt);
    }
    // The next process asks nobody: here the code has changed and its revision has not.
    open_with(g, g->url, 0, run_zeros, "r1");
    assert_string_equal(decide(g, "grow(f32[5], factor=0.5)").kernel, "quick");
    hone_runtime_close(&g->rt);
    open_with(g, g->url, 0, run_zeros, "r2");
    assert_string_equal(decide(g, "grow(f32[5], factor=0.5)").kernel, "plain");
}

#define WITH_GROUND(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_GROUND(a_wrong_kernel_of_the_program_answers_nothing_by_its_priority),
        WITH_GROUND(a_right_kernel_of_the_program_answers_by_its_priority),
        WITH_GROUND(an_unverified_kernel_answers_if_the_runtime_allows_it),
        WITH_GROUND(a_program_with_threads_gets_correct_results_as_well),
        WITH_GROUND(the_very_call_is_verified_too),
#ifndef __SANITIZE_THREAD__
        WITH_GROUND(a_winner_of_a_bucket_is_verified_for_each_call_of_the_bucket),
        WITH_GROUND(plans_of_what_another_process_found_wrong_are_taken_back),
#endif
        WITH_GROUND(what_was_verified_is_remembered_by_its_revision),
    };
    return cmocka_run_group_tests_name("runtime_verified", tests, NULL, NULL);
}
