// A program that forks while its threads call, tune and write to the store: each child goes on by itself, gets right
// results on as many threads, and ends.
#include "ground.h"
#include "store/records.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 40, CHILDREN_OF_SOAK = 300, STRANDS = 4, PATIENCE_SECONDS = 120 };

typedef struct world {
    ground g;
    hone_runtime *rt;
    const hone_op *softmax, *meet;
    hone_store *store;
    hone_error err;
    atomic_bool done;
    atomic_int wrong;
    atomic_uint next;
} world;

// An operation whose four parts wait for each other: it ends at once on four threads and never on fewer. --------------

static atomic_int waiting;

static void wait_for_the_others(void *ctx, int64_t index)
{
    (void)index;
    atomic_int *most = ctx;
    int now = atomic_fetch_add(&waiting, 1) + 1;
    for (int i = 0; i < 200000 && now < STRANDS; i++) {
        usleep(50);
        now = atomic_load(&waiting);
    }
    int before = atomic_load(most);
    while (before < now && !atomic_compare_exchange_weak(most, &before, now))
        continue;
}

static hone_status run_meeting(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    atomic_int most = 0;
    atomic_store(&waiting, 0);
    hone_plan_parallel_for(plan, execution, STRANDS, STRANDS, wait_for_the_others, &most);
    *(float *)hone_tensor_data(args[1].as.tensor) = (float)atomic_load(&most);
    return HONE_OK;
}

static void register_meeting(world *w)
{
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = "meet(x: f32[n]) -> y: f32[n]";
    const hone_kernel kernel = {HONE_KERNEL,         .algorithm = "meet",   .name = "meeting", .platform = HONE_NATIVE,
                                .backend = HONE_CPU, .is_reference = false, .run = run_meeting};
    if (hone_register_algorithm(w->rt, &algorithm, &w->err) != HONE_OK ||
        hone_register_kernels(w->rt, &kernel, 1, &w->err) != HONE_OK)
        fail_msg("%s", w->err.message);
    w->meet = hone_op_find(w->rt, "meet", &w->err);
    assert_non_null(w->meet);
}

static int threads_that_met(world *w)
{
    int64_t shape[] = {1};
    float x = 0, y = 0;
    hone_tensor in = hone_tensor_of(&x, HONE_F32, 1, shape), out = hone_tensor_of(&y, HONE_F32, 1, shape);
    hone_value args[] = {hone_of_tensor(&in), hone_of_tensor(&out)};
    return hone_run(w->meet, args, 2, NULL, NULL) == HONE_OK ? (int)y : -1;
}

// Calls of a built-in -------------------------------------------------------------------------------------------------

// Softmax of equal numbers is one over how many they are.
static bool runs_right(world *w, int64_t rows, int64_t cols)
{
    enum { MOST = 1 << 14 };
    float x[MOST], y[MOST];
    int64_t shape[] = {rows, cols};
    for (int64_t i = 0; i < rows * cols; i++) {
        x[i] = 3;
        y[i] = -1;
    }
    hone_tensor in = hone_tensor_of(x, HONE_F32, 2, shape), out = hone_tensor_of(y, HONE_F32, 2, shape);
    hone_value args[] = {hone_of_tensor(&in), hone_of_tensor(&out)};
    if (hone_run(w->softmax, args, 2, NULL, NULL) != HONE_OK) return false;
    for (int64_t i = 0; i < rows * cols; i++)
        if (!(y[i] * (float)cols > 0.999f && y[i] * (float)cols < 1.001f)) return false;
    return true;
}

static void check(world *w, bool right)
{
    if (!right) atomic_fetch_add(&w->wrong, 1);
}

// New shapes all the time: each misses, asks the store, decides and is recorded.
static void *keep_calling(void *ctx)
{
    world *w = ctx;
    while (!atomic_load(&w->done)) {
        unsigned number = atomic_fetch_add(&w->next, 1);
        check(w, runs_right(w, 1 + number % 8, 1 + number % 1500));
    }
    return NULL;
}

static hone_store_decision decision_of(const char *key)
{
    return (hone_store_decision){
        .key = {.device = "cpu", .algorithm = "softmax", .version = "1", .key = key, .spec = "spec"},
        .call = "softmax(f32[1,1])",
        .kernel = "portable",
        .platform = "native",
        .config = "{}",
        .source = "autotune",
        .revision = "1",
        .time_ns = 1,
        .evidence = "{}",
        .environment = "{}",
    };
}

static void *keep_storing(void *ctx)
{
    world *w = ctx;
    for (int i = 0; !atomic_load(&w->done); i++) {
        char key[32];
        snprintf(key, sizeof key, "%016x", i % 1000);
        hone_store_decision decision = decision_of(key);
        check(w, hone_store_put(w->store, &decision, NULL) == HONE_OK);
        check(w, hone_record_flush(w->rt, NULL) == HONE_OK);
    }
    return NULL;
}

static const hone_tune_options quick = {
    .struct_size = sizeof quick,
    .seconds = 0.2,
    .evaluations = 2,
    .kernel = "portable",
    .isolation = HONE_ISOLATION_IN_PROCESS};

static void *keep_tuning(void *ctx)
{
    world *w = ctx;
    for (int i = 0; !atomic_load(&w->done); i++) {
        char text[64];
        snprintf(text, sizeof text, "softmax(f32[2,%d])", 8 + i % 64);
        hone_result *result = NULL;
        check(w, hone_tune_text(w->rt, text, &quick, &result, NULL) == HONE_OK);
        hone_result_release(&result);
    }
    return NULL;
}

// The world -----------------------------------------------------------------------------------------------------------

static int open_world(void **state)
{
    static world w;
    memset(&w, 0, sizeof w);
    *state = &w;
    if (temporary_folder_make(&w.g.folder) != 0) return -1;
    snprintf(w.g.url, sizeof w.g.url, "sqlite:%s/store.db", w.g.folder.path);
    hone_runtime_options options = {
        .struct_size = sizeof options,
        .store = w.g.url,
        .policy = HONE_POLICY_HEURISTIC,
        .threads = STRANDS,
        .flags = HONE_RUNTIME_NO_ENVIRONMENT,
        .device_locks = w.g.folder.path};
    if (hone_runtime_open(&options, &w.rt, &w.err) != HONE_OK ||
        hone_store_open(hone_allocator_system(), w.g.url, &w.store, &w.err) != HONE_OK)
        fail_msg("%s", w.err.message);
    w.softmax = hone_op_find(w.rt, "softmax", &w.err);
    assert_non_null(w.softmax);
    register_meeting(&w);
    return 0;
}

static int close_world(void **state)
{
    world *w = *state;
    hone_store_close(&w->store);
    hone_runtime_close(&w->rt);
    temporary_folder_remove(&w->g.folder);
    return 0;
}

// Waits for a child; what it left with, or -1 when it had to be killed or a signal ended it.
static int end_of(pid_t child)
{
    int status = 0;
    for (int i = 0; i < PATIENCE_SECONDS * 1000; i++) {
        if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        usleep(1000);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
}

static int say(const world *w, int code)
{
    fprintf(stderr, "in the child: %s\n", w->err.message);
    return code;
}

static int live_as_child(world *w, int number)
{
    if (threads_that_met(w) != STRANDS) return 2; // as the parent
    if (!runs_right(w, 1 + number % 8, 100) || !runs_right(w, 3, 2000 + number)) return 3;
    char key[32];
    snprintf(key, sizeof key, "c0ffee%010x", number);
    hone_store_decision decision = decision_of(key);
    if (hone_store_put(w->store, &decision, &w->err) != HONE_OK) return say(w, 4);
    if (number % 20 == 0) {
        hone_result *result = NULL;
        if (hone_tune_text(w->rt, "softmax(f32[4,64])", &quick, &result, &w->err) != HONE_OK) return say(w, 5);
        hone_result_release(&result);
    }
    if (number % 3 == 0) return 0;
    hone_store_close(&w->store);
    hone_runtime_close(&w->rt);
    return 0;
}

static int fork_and_wait(world *w, int number)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int code = live_as_child(w, number);
        if (number % 2 == 0) _exit(code);
        exit(code);
    }
    return end_of(child);
}

static bool count_decision(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    if (strncmp(decision->key.key, "c0ffee", 6) == 0) ++*(int *)ctx;
    return true;
}

static void children_forked_during_calls_get_right_results_on_as_many_threads_and_end(void **state)
{
    world *w = *state;
    static void *(*const bodies[])(void *ctx) = {keep_calling, keep_calling, keep_storing, keep_tuning};
    pthread_t threads[4];
    int in_store = 0, children = getenv("HONE_SOAK") != NULL ? CHILDREN_OF_SOAK : CHILDREN;
    assert_int_equal(threads_that_met(w), STRANDS);
    hone_record_enable(w->rt, true);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, bodies[i], w), 0);
    for (int i = 0; i < children; i++) {
        int code = fork_and_wait(w, i);
        if (code != 0) fail_msg("child %d of %d left with %d; -1: it hung, or a signal ended it", i, children, code);
    }
    atomic_store(&w->done, true);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(w->wrong, 0);
    assert_int_equal(threads_that_met(w), STRANDS);
    assert_int_equal(
        hone_store_scan(w->store, HONE_RECORD_DECISION, NULL, count_decision, &in_store, &w->err), HONE_OK);
    assert_int_equal(in_store, children);
    hone_store_health health;
    assert_int_equal(hone_store_verify(w->store, &health, &w->err), HONE_OK);
}

static bool add_count(void *ctx, const hone_store_record *record)
{
    const hone_store_invocation *invocation = record->invocation;
    if (strcmp(invocation->key.algorithm, "softmax") == 0) *(uint64_t *)ctx += invocation->count;
    return true;
}

static void calls_are_recorded_once_by_the_process_that_made_them(void **state)
{
    world *w = *state;
    hone_record_enable(w->rt, true);
    for (int i = 0; i < 5; i++)
        assert_true(runs_right(w, 2, 8));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        bool right = true;
        for (int i = 0; i < 3; i++)
            right = right && runs_right(w, 2, 8);
        hone_runtime_close(&w->rt);
        _exit(right ? 0 : 1);
    }
    assert_int_equal(end_of(child), 0);
    assert_int_equal(hone_record_flush(w->rt, &w->err), HONE_OK);
    uint64_t count = 0;
    assert_int_equal(hone_store_scan(w->store, HONE_RECORD_INVOCATION, NULL, add_count, &count, &w->err), HONE_OK);
    assert_int_equal(count, 8);
}

static bool fork_inside(void *ctx, const hone_store_record *record)
{
    (void)record;
    *(pid_t *)ctx = fork();
    return false;
}

static void a_store_whose_visit_forks_is_the_parents_and_the_child_is_told(void **state)
{
    world *w = *state;
    hone_store_decision decision = decision_of("0000000000000001");
    pid_t child = -1;
    assert_int_equal(hone_store_put(w->store, &decision, &w->err), HONE_OK);
    fflush(NULL);
    hone_status status = hone_store_scan(w->store, HONE_RECORD_DECISION, NULL, fork_inside, &child, &w->err);
    if (child == 0) {
        bool told = hone_store_put(w->store, &decision, &w->err) == HONE_UNAVAILABLE &&
                    strstr(w->err.message, "forked") != NULL;
        hone_store_close(&w->store);
        _exit(told && runs_right(w, 2, 8) ? 0 : 1);
    }
    assert_int_equal(status, HONE_OK);
    assert_int_equal(end_of(child), 0);
    assert_int_equal(hone_store_put(w->store, &decision, &w->err), HONE_OK);
}

static void a_child_leaves_the_workers_of_its_parent_alone(void **state)
{
    world *w = *state;
    const hone_tune_options isolated = {
        .struct_size = sizeof isolated, .seconds = 0.2, .evaluations = 2, .kernel = "portable"};
    hone_result *result = NULL;
    if (hone_tune_text(w->rt, "softmax(f32[2,8])", &isolated, &result, &w->err) != HONE_OK)
        fail_msg("%s", w->err.message);
    hone_result_release(&result);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        hone_status status = hone_tune_text(w->rt, "softmax(f32[2,16])", &isolated, &result, &w->err);
        hone_result_release(&result);
        hone_runtime_close(&w->rt);
        _exit(status == HONE_OK ? 0 : 1);
    }
    assert_int_equal(end_of(child), 0);
    if (hone_tune_text(w->rt, "softmax(f32[2,24])", &isolated, &result, &w->err) != HONE_OK)
        fail_msg("%s", w->err.message);
    hone_result_release(&result);
}

// A child that makes no new calls has a thread of its own that looks.
static void a_child_takes_up_what_another_process_stores(void **state)
{
    world *w = *state;
    int64_t shape[] = {2, 8};
    float x[16] = {0}, y[16];
    hone_tensor in = hone_tensor_of(x, HONE_F32, 2, shape), out = hone_tensor_of(y, HONE_F32, 2, shape);
    hone_value args[] = {hone_of_tensor(&in), hone_of_tensor(&out)};
    const hone_plan *plan = NULL;
    assert_int_equal(hone_bind(w->softmax, args, 2, &plan, &w->err), HONE_OK);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < PATIENCE_SECONDS * 50 && hone_plan_is_current(plan); i++)
            usleep(20000);
        _exit(hone_plan_is_current(plan) ? 1 : 0);
    }
    hone_decision guess;
    assert_int_equal(hone_decide(w->softmax, args, 2, &guess, &w->err), HONE_OK);
    const hone_store_decision row = {
        .key =
            {plan->device->fingerprint, "softmax", guess.version, hone_call_key(plan->call),
             hone_call_spec(plan->call)},
        .kernel = "reference",
        .platform = "native",
        .config = "{}",
        .source = "autotune",
        .verified = true,
        .time_ns = 1,
        .evidence = "{}",
    };
    assert_int_equal(hone_store_put(w->store, &row, &w->err), HONE_OK);
    assert_int_equal(end_of(child), 0);
    hone_plan_release(&plan);
}

int main(void)
{
#if defined(__SANITIZE_THREAD__)
    puts("skipped: ThreadSanitizer lets no child of a process with threads start any");
    return 0;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            children_forked_during_calls_get_right_results_on_as_many_threads_and_end, open_world, close_world),
        cmocka_unit_test_setup_teardown(calls_are_recorded_once_by_the_process_that_made_them, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            a_store_whose_visit_forks_is_the_parents_and_the_child_is_told, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_child_takes_up_what_another_process_stores, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_child_leaves_the_workers_of_its_parent_alone, open_world, close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
