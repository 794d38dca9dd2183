// Processes that tune take turns: for a call beside the store, on a device anywhere. Children of this test tell each
// other through shared memory where they are; nobody waits for a clock.
#include "fixture.h"
#include "store/records.h"
#include "temporary_folder.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// What the processes see of each other.
typedef struct board {
    probe probes[2][KERNELS];
    atomic_int measuring; // the first stands in its contest
    atomic_int waiting;   // the second waits
    atomic_int go;        // the first may go on
    atomic_int waited_for;
    char words[256];
} board;

typedef struct ground {
    temporary_folder folder;
    char store[TEMPORARY_PATH_SIZE];
    board *board;
} ground;

static int setup(void **state)
{
    static ground g;
    *state = &g;
    if (temporary_folder_make(&g.folder) != 0) return -1;
    snprintf(g.store, sizeof g.store, "sqlite:%s/store.db", g.folder.path);
    g.board = mmap(NULL, sizeof *g.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return g.board == MAP_FAILED ? -1 : 0;
}

static int teardown(void **state)
{
    ground *g = *state;
    munmap(g->board, sizeof *g->board);
    temporary_folder_remove(&g->folder);
    return 0;
}

static void await(atomic_int *value)
{
    while (atomic_load(value) == 0)
        usleep(200);
}

static int runs_of(const board *b, int process)
{
    int runs = 0;
    for (int i = 0; i < KERNELS; i++)
        runs += atomic_load(&b->probes[process][i].runs);
    return runs;
}

// One process ---------------------------------------------------------------------------------------------------------

typedef struct process {
    const ground *g;
    int number; // 0 holds, 1 waits
    const char *store;
    hone_runtime *rt;
    hone_kernel kernels[KERNELS];
    const hone_op *op;
    hone_error err;
    int contests; // of this process that were measuring
} process;

static void note_wait(process *p, const char *words)
{
    board *b = p->g->board;
    snprintf(b->words, sizeof b->words, "%s", words);
    const char *pid = strstr(words, "process ");
    if (pid != NULL) atomic_store(&b->waited_for, atoi(pid + 8));
    atomic_store(&b->waiting, 1);
}

static void log_wait(void *ctx, int level, const char *message)
{
    (void)level;
    if (strstr(message, "waits for") != NULL) note_wait(ctx, message);
}

static void show(void *ctx, const hone_progress *progress)
{
    process *p = ctx;
    board *b = p->g->board;
    if (progress->waiting != NULL) {
        note_wait(p, progress->waiting);
        return;
    }
    if (p->number != 0 || p->contests++ > 0) return;
    atomic_store(&b->measuring, 1);
    await(&b->go);
}

static hone_status open_process(process *p, hone_policy policy)
{
    hone_runtime_options options = {
        .struct_size = sizeof options,
        .store = p->store,
        .policy = policy,
        .flags = HONE_RUNTIME_NO_BUILTINS | HONE_RUNTIME_NO_ENVIRONMENT,
        .threads = 1,
        .log = log_wait,
        .log_ctx = p,
        .log_level = 2,
        .device_locks = p->g->folder.path,
    };
    fill_scale_kernels(p->kernels, p->g->board->probes[p->number]);
    hone_status status = hone_runtime_open(&options, &p->rt, &p->err);
    if (status == HONE_OK) status = register_scale(p->rt, p->kernels, &p->err);
    if (status == HONE_OK) status = hone_op_get(p->rt, "scale", &p->op, &p->err);
    return status;
}

static hone_tune_options options_of(process *p)
{
    return (hone_tune_options){
        .struct_size = sizeof(hone_tune_options),
        .evaluations = 3,
        .isolation = HONE_ISOLATION_IN_PROCESS,
        .progress = show,
        .progress_ctx = p,
    };
}

static hone_status tune(process *p, const char *call, const hone_tune_options *options, char kernel[HONE_NAME_SIZE])
{
    hone_result *result = NULL;
    hone_status status = hone_tune_text(p->rt, call, options, &result, &p->err);
    if (status == HONE_OK && kernel != NULL)
        snprintf(kernel, HONE_NAME_SIZE, "%s", hone_result_decision(result, 0)->kernel);
    hone_result_release(&result);
    return status;
}

static const char call_a[] = "scale(f32[4,4])", call_b[] = "scale(f32[8,4])";

// Children die with the test, also when it fails.
static int start_child(void)
{
    int pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

// The child that holds: tunes call_a and stands still in the midst of it until it may go on.
static int start_holder(const ground *g, const char *store)
{
    int pid = start_child();
    if (pid > 0) {
        await(&g->board->measuring);
        return pid;
    }
    process p = {.g = g, .store = store};
    if (open_process(&p, HONE_POLICY_TUNE) != HONE_OK) _exit(2);
    const hone_tune_options options = options_of(&p);
    hone_status status = tune(&p, call_a, &options, NULL);
    hone_runtime_close(&p.rt);
    _exit(status == HONE_OK ? 0 : 1);
}

static void end_holder(int pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

// A child that does something once the other waits.
static int when_waiting(const ground *g, int pid_to_kill)
{
    int pid = start_child();
    if (pid > 0) return pid;
    await(&g->board->waiting);
    if (pid_to_kill != 0) _exit(kill(pid_to_kill, SIGKILL) == 0 ? 0 : 1);
    atomic_store(&g->board->go, 1);
    _exit(0);
}

// The log's and the progress's context is the process where it stands now.
#define WAITER(name, ground_, store_)                                                                                  \
    process name = {.g = (ground_), .number = 1, .store = (store_)};                                                   \
    if (open_process(&name, HONE_POLICY_TUNE) != HONE_OK) fail_msg("%s", name.err.message)

// Tests ---------------------------------------------------------------------------------------------------------------

static void two_processes_that_tune_the_same_call_measure_once(void **state)
{
    ground *g = *state;
    char kernel[HONE_NAME_SIZE];
    int holder = start_holder(g, g->store);
    WAITER(p, g, g->store);
    int helper = when_waiting(g, 0);
    const hone_tune_options options = options_of(&p);
    if (tune(&p, call_a, &options, kernel) != HONE_OK) fail_msg("%s", p.err.message);
    assert_int_equal(atomic_load(&g->board->waited_for), holder);
    assert_non_null(strstr(g->board->words, "tunes the same call"));
    assert_true(runs_of(g->board, 0) > 0);
    assert_int_equal(runs_of(g->board, 1), 0);
    end_holder(helper);
    end_holder(holder);
    // And what it took is its own from now on.
    hone_decision decision;
    hone_call *call = NULL;
    assert_int_equal(hone_call_parse(hone_allocator_system(), hone_op_signature(p.op), call_a, &call, &p.err), HONE_OK);
    assert_int_equal(hone_decide_call(p.op, call, &decision, &p.err), HONE_OK);
    assert_int_equal(decision.source, HONE_SOURCE_MEMORY);
    assert_string_equal(decision.kernel, kernel);
    hone_call_release(&call);
    hone_runtime_close(&p.rt);
}

static void under_the_policy_tune_a_miss_waits_and_takes_the_answer(void **state)
{
    ground *g = *state;
    hone_decision decision;
    hone_call *call = NULL;
    int holder = start_holder(g, g->store);
    WAITER(p, g, g->store);
    int helper = when_waiting(g, 0);
    assert_int_equal(hone_call_parse(hone_allocator_system(), hone_op_signature(p.op), call_a, &call, &p.err), HONE_OK);
    assert_int_equal(hone_decide_call(p.op, call, &decision, &p.err), HONE_OK);
    assert_int_equal(decision.source, HONE_SOURCE_AUTOTUNE);
    assert_true(decision.verified);
    assert_int_equal(runs_of(g->board, 1), 0);
    end_holder(helper);
    end_holder(holder);
    hone_call_release(&call);
    hone_runtime_close(&p.rt);
}

static void kill_9_of_the_process_that_tunes_frees_the_next(void **state)
{
    ground *g = *state;
    int status = 0;
    int holder = start_holder(g, g->store);
    WAITER(p, g, g->store);
    int helper = when_waiting(g, holder);
    const hone_tune_options options = options_of(&p);
    if (tune(&p, call_a, &options, NULL) != HONE_OK) fail_msg("%s", p.err.message);
    assert_true(runs_of(g->board, 1) > 0);
    end_holder(helper);
    assert_int_equal(waitpid(holder, &status, 0), holder);
    assert_true(WIFSIGNALED(status));
    hone_runtime_close(&p.rt);
}

static void the_policy_heuristic_does_not_wait_for_other_processes(void **state)
{
    ground *g = *state;
    hone_decision decision;
    hone_call *call = NULL;
    int holder = start_holder(g, g->store);
    process p = {.g = g, .number = 1, .store = g->store};
    assert_int_equal(open_process(&p, HONE_POLICY_HEURISTIC), HONE_OK);
    assert_int_equal(hone_call_parse(hone_allocator_system(), hone_op_signature(p.op), call_a, &call, &p.err), HONE_OK);
    assert_int_equal(hone_decide_call(p.op, call, &decision, &p.err), HONE_OK);
    assert_int_equal(decision.source, HONE_SOURCE_HEURISTIC);
    assert_int_equal(atomic_load(&g->board->waiting), 0);
    atomic_store(&g->board->go, 1);
    end_holder(holder);
    hone_call_release(&call);
    hone_runtime_close(&p.rt);
}

static void contests_of_processes_take_turns_on_a_device(void **state)
{
    ground *g = *state;
    int holder = start_holder(g, "memory:");
    WAITER(p, g, "memory:");
    int helper = when_waiting(g, 0);
    const hone_tune_options options = options_of(&p);
    if (tune(&p, call_b, &options, NULL) != HONE_OK) fail_msg("%s", p.err.message);
    assert_int_equal(atomic_load(&g->board->waited_for), holder);
    assert_non_null(strstr(g->board->words, "measures on this device"));
    assert_true(runs_of(g->board, 1) > 0);
    end_holder(helper);
    end_holder(holder);
    hone_runtime_close(&p.rt);
}

static void a_decision_that_is_kept_needs_no_device(void **state)
{
    ground *g = *state;
    WAITER(p, g, g->store);
    hone_tune_options options = options_of(&p);
    if (tune(&p, call_b, &options, NULL) != HONE_OK) fail_msg("%s", p.err.message);
    int holder = start_holder(g, g->store);
    int runs = runs_of(g->board, 1);
    options.keep_existing = true;
    if (tune(&p, call_b, &options, NULL) != HONE_OK) fail_msg("%s", p.err.message);
    assert_int_equal(atomic_load(&g->board->waiting), 0);
    assert_int_equal(runs_of(g->board, 1), runs);
    atomic_store(&g->board->go, 1);
    end_holder(holder);
    hone_runtime_close(&p.rt);
}

static void a_wait_can_be_cancelled_and_has_a_limit(void **state)
{
    ground *g = *state;
    static const volatile int cancel = 1;
    char who[40];
    const char *const calls[] = {call_a, call_b}; // waits for the call, and for the device
    int holder = start_holder(g, g->store);
    snprintf(who, sizeof who, "process %d", holder);
    WAITER(p, g, g->store);
    for (int i = 0; i < 2; i++) {
        hone_tune_options options = options_of(&p);
        options.wait_seconds = 0.01;
        assert_int_equal(tune(&p, calls[i], &options, NULL), HONE_BUSY);
        assert_non_null(strstr(p.err.message, who));
        options.wait_seconds = 0;
        options.cancel = &cancel;
        assert_int_equal(tune(&p, calls[i], &options, NULL), HONE_CANCELLED);
    }
    assert_int_equal(runs_of(g->board, 1), 0);
    atomic_store(&g->board->go, 1);
    end_holder(holder);
    hone_runtime_close(&p.rt);
}

// A fresh contest needs its own measurements, and a contest of one kernel has another result.
static void a_process_with_another_question_measures_after_the_wait(void **state)
{
    ground *g = *state;
    int holder = start_holder(g, g->store);
    WAITER(p, g, g->store);
    int helper = when_waiting(g, 0);
    hone_tune_options options = options_of(&p);
    char kernel[HONE_NAME_SIZE];
    options.kernel = "plain";
    if (tune(&p, call_a, &options, kernel) != HONE_OK) fail_msg("%s", p.err.message);
    assert_string_equal(kernel, "plain");
    end_holder(helper);
    end_holder(holder);
    hone_runtime_close(&p.rt);
}

// Another machine's contest, which no lease reaches, ends while this one is at work.
typedef struct stranger {
    process *p;
    double started; // seconds from now
    bool done;
    double time_ns;
} stranger;

static void put_strangers_decision(void *ctx, const hone_progress *progress)
{
    stranger *s = ctx;
    (void)progress;
    if (s->done) return;
    s->done = true;
    size_t count = 0;
    char started[24], evidence[200];
    time_t then = time(NULL) + (time_t)s->started;
    strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime(&then));
    snprintf(
        evidence, sizeof evidence,
        "{\"time_ns\":%.1f,\"samples\":100000,\"verified_against\":\"reference\",\"seconds\":1,\"started\":\"%s\"}",
        s->time_ns, started);
    hone_call *call = NULL;
    hone_store *store = NULL;
    hone_error err;
    assert_int_equal(
        hone_call_parse(hone_allocator_system(), hone_op_signature(s->p->op), call_a, &call, &err), HONE_OK);
    const hone_store_decision row = {
        .key =
            {hone_runtime_devices(s->p->rt, &count)[0]->fingerprint, "scale", "1", hone_call_key(call),
             hone_call_spec(call)},
        .call = call_a,
        .kernel = "fast",
        .platform = "native",
        .config = "{\"unroll\":4,\"layout\":\"col\"}",
        .source = "autotune",
        .revision = "1",
        .verified = true,
        .time_ns = s->time_ns,
        .evidence = evidence};
    assert_int_equal(hone_store_open(hone_allocator_system(), s->p->store, &store, &err), HONE_OK);
    assert_int_equal(hone_store_put(store, &row, &err), HONE_OK);
    hone_store_close(&store);
    hone_call_release(&call);
}

static bool copy_kernel(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *row = record->decision;
    snprintf(ctx, HONE_NAME_SIZE, "%s", row->kernel);
    return true;
}

static void assert_stored(process *p, const char *kernel)
{
    char stored[HONE_NAME_SIZE] = "";
    size_t count = 0;
    hone_store *store = NULL;
    hone_call *call = NULL;
    assert_int_equal(
        hone_call_parse(hone_allocator_system(), hone_op_signature(p->op), call_a, &call, &p->err), HONE_OK);
    const hone_store_key key = {
        hone_runtime_devices(p->rt, &count)[0]->fingerprint, "scale", "1", hone_call_key(call), NULL};
    assert_int_equal(hone_store_open(hone_allocator_system(), p->store, &store, &p->err), HONE_OK);
    assert_int_equal(
        hone_store_get(store, HONE_RECORD_DECISION, &key, HONE_WARM, copy_kernel, stored, &p->err), HONE_OK);
    assert_string_equal(stored, kernel);
    hone_store_close(&store);
    hone_call_release(&call);
}

static void the_better_answer_of_overlapping_contests_stays(void **state)
{
    ground *g = *state;
    WAITER(p, g, g->store);
    hone_tune_options options = options_of(&p);
    stranger s = {.p = &p, .started = 60, .time_ns = 1};
    options.kernel = "plain";
    options.progress = put_strangers_decision;
    options.progress_ctx = &s;
    if (tune(&p, call_a, &options, NULL) != HONE_OK) fail_msg("%s", p.err.message);
    assert_stored(&p, "fast");
    // One that had ended before is known, and is replaced by what is faster.
    s = (stranger){.p = &p, .started = -3600, .time_ns = 1e12};
    if (tune(&p, call_a, &options, NULL) != HONE_OK) fail_msg("%s", p.err.message);
    assert_stored(&p, "plain");
    hone_runtime_close(&p.rt);
}

static void tuning_runs_without_a_lock_if_none_can_be_made(void **state)
{
    ground *g = *state;
    ground nowhere = *g;
    snprintf(nowhere.folder.path, sizeof nowhere.folder.path, "/nowhere/at/all");
    WAITER(p, &nowhere, g->store);
    const hone_tune_options options = options_of(&p);
    if (tune(&p, call_a, &options, NULL) != HONE_OK) fail_msg("%s", p.err.message);
    hone_runtime_close(&p.rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_processes_that_tune_the_same_call_measure_once, setup, teardown),
        cmocka_unit_test_setup_teardown(under_the_policy_tune_a_miss_waits_and_takes_the_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(kill_9_of_the_process_that_tunes_frees_the_next, setup, teardown),
        cmocka_unit_test_setup_teardown(the_policy_heuristic_does_not_wait_for_other_processes, setup, teardown),
        cmocka_unit_test_setup_teardown(contests_of_processes_take_turns_on_a_device, setup, teardown),
        cmocka_unit_test_setup_teardown(a_decision_that_is_kept_needs_no_device, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wait_can_be_cancelled_and_has_a_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(a_process_with_another_question_measures_after_the_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(the_better_answer_of_overlapping_contests_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(tuning_runs_without_a_lock_if_none_can_be_made, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
