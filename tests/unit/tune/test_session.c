// The worker's side by itself, in this process: allocations that fail, messages in the wrong order.
#include "arena.h"
#include "failing_allocator.h"
#include "hone/describe.h"
#include "tune/contest/contest.h"
#include "tune/worker/session.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

static void a_contest_in_process_survives_every_failed_allocation(void **state)
{
    ground *g = *state;
    failing_allocator memory;
    g->options.isolation = HONE_ISOLATION_IN_PROCESS;
    g->options.kernel = "scratch";
    hone_workers_destroy(&g->environment.workers);
    const hone_algorithm_entry *algorithm = hone_registry_find(g->registry, "scale_scratch", NULL);
    hone_call *call = NULL;
    assert_int_equal(
        hone_call_parse(hone_allocator_system(), algorithm->signature, "scale_scratch(f32[10])", &call, &g->err),
        HONE_OK);
    bool done = false;
    for (long long allowed = 0; !done; allowed++) {
        g->environment.allocator = failing_allocator_of(&memory, allowed);
        hone_status status = hone_contest_run(
            &(hone_contest_request){&g->environment, algorithm, call, &g->options}, &g->contest, &g->err);
        done = status == HONE_OK;
        // Memory that is short inside the candidate's own preparation is its failure, not the contest's.
        if (!done) assert_true(status == HONE_OUT_OF_MEMORY || status == HONE_NOT_FOUND);
        hone_contest_deinit(&g->contest);
        assert_int_equal(memory.live, 0);
        assert_true(allowed < 2000);
    }
    g->environment.allocator = hone_allocator_system();
    hone_call_release(&call);
}

static hone_status handle(hone_session *session, uint8_t kind, const hone_buffer *message, hone_buffer *answer)
{
    hone_buffer_clear(answer);
    return hone_session_handle(session, kind, message, answer);
}

static void messages_that_are_none_and_calls_that_are_not_open_are_answered(void **state)
{
    (void)state;
    hone_allocator allocator = hone_allocator_system();
    hone_session session;
    hone_session_init(&session, allocator, &(hone_kernel_reader){.strict = false}, NULL);
    hone_buffer message, answer;
    hone_buffer_init(&message, allocator);
    hone_buffer_init(&answer, allocator);
    assert_int_equal(handle(&session, 77, &message, &answer), HONE_IO);
    assert_int_equal(handle(&session, HONE_MESSAGE_PING, &message, &answer), HONE_OK);
    hone_arena arena = {.allocator = allocator};
    for (size_t size = 0; size < 300; size++) {
        static const uint8_t kinds[] = {HONE_MESSAGE_TRY, HONE_MESSAGE_OPEN, HONE_MESSAGE_ROUNDS};
        for (size_t i = 0; i < sizeof kinds; i++)
            assert_int_equal(handle(&session, kinds[i], &message, &answer), HONE_OK);
        hone_buffer_char(&message, (char)(size * 37));
    }
    handle(&session, HONE_MESSAGE_TRY, &message, &answer);
    hone_wire_reader reader = {answer.data, answer.size, 0, &arena, false, false};
    hone_trial trial;
    hone_message_get_trial(&reader, &trial);
    assert_true(trial.refused);
    assert_int_equal(trial.failure, HONE_FAILURE_PREPARE);
    hone_arena_destroy(&arena);
    hone_buffer_deinit(&message);
    hone_buffer_deinit(&answer);
    hone_session_deinit(&session);
}

static atomic_int copies_by_reference, copies;
static atomic_bool reference_is_slow;

// Longer than a short look, of which there are never too many.
static hone_status copy(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    const hone_tensor *x = args[0].as.tensor;
    atomic_fetch_add(&copies, 1);
    hone_os_sleep_ns((uint64_t)(2 * hone_short_look_ns));
    memcpy(hone_tensor_data(args[1].as.tensor), hone_tensor_data(x), (size_t)x->shape[0] * sizeof(float));
    return HONE_OK;
}

static hone_status copy_as_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    atomic_fetch_add(&copies_by_reference, 1);
    if (atomic_load(&reference_is_slow)) hone_os_sleep_ns(300 * 1000 * 1000);
    return copy(plan, args, execution);
}

typedef struct confirming {
    double looks_seconds;
    bool left_out;
} confirming;

static hone_status confirm(hone_contest_state *state, void *ctx, hone_error *err)
{
    confirming *c = ctx;
    hone_candidate candidate = {.config = {.count = 0}};
    hone_confirming how = {.seconds = 1, .looks_seconds = c->looks_seconds};
    hone_status status = hone_contest_choose_sandbox(&state->trials, &state->field, &state->question, err);
    if (status == HONE_OK) status = hone_trials_open(&state->trials, err);
    atomic_store(&copies_by_reference, 0);
    atomic_store(&copies, 0);
    atomic_store(&reference_is_slow, c->looks_seconds > 0);
    if (status == HONE_OK)
        status = hone_trials_confirm(&state->trials, state->field.contestants[0].ref, &candidate, &how, err);
    c->left_out = how.left_out;
    assert_int_equal(candidate.trial.failure, HONE_FAILURE_NONE);
    return status;
}

// Inputs for the final verification are made only while there is time to verify them, because each needs a reference.
static void inputs_that_there_is_no_time_to_verify_are_not_made(void **state)
{
    ground *g = *state;
    const hone_kernel kernel = {
        HONE_KERNEL, .algorithm = "copied", .name = "good", .platform = HONE_NATIVE, .backend = HONE_CPU, .run = copy};
    const hone_algorithm algorithm = {
        .struct_size = sizeof algorithm, .signature = "copied(x: f32[n]) -> y: f32[n]", .reference = copy_as_reference};
    hone_call *call = NULL;
    g->options.isolation = HONE_ISOLATION_IN_PROCESS;
    assert_int_equal(hone_registry_add_algorithm(g->registry, &algorithm, false, &g->err), HONE_OK);
    assert_int_equal(hone_registry_add_kernels(g->registry, &kernel, 1, false, false, &g->err), HONE_OK);
    const hone_algorithm_entry *entry = hone_registry_find(g->registry, "copied", NULL);
    assert_int_equal(
        hone_call_parse(hone_allocator_system(), entry->signature, "copied(f32[100])", &call, &g->err), HONE_OK);
    int counts[2];
    for (int is_late = 0; is_late < 2; is_late++) {
        confirming c = {.looks_seconds = is_late ? 0.25 : 0};
        const hone_status status = hone_contest_run_as(
            &(hone_contest_request){&g->environment, entry, call, &g->options}, confirm, &c, &g->contest, &g->err);
        if (status != HONE_OK) fail_msg("%s", g->err.message);
        hone_contest_deinit(&g->contest);
        counts[is_late] = atomic_load(&copies_by_reference);
        assert_int_equal(c.left_out, is_late);
    }
    assert_true(counts[1] < counts[0]);
    hone_call_release(&call);
}

// Only 5 ms are left for verification. A kernel that a user brought still gets the checks that expose kernels that cheat.
static void builtin_kernels_are_verified_no_longer_than_the_budget(void **state)
{
    ground *g = *state;
    int runs[2];
    g->options.isolation = HONE_ISOLATION_IN_PROCESS;
    for (int is_known = 0; is_known < 2; is_known++) {
        const char *name = is_known ? "known" : "brought";
        const hone_kernel kernel = {HONE_KERNEL,         .algorithm = name, .name = "good", .platform = HONE_NATIVE,
                                    .backend = HONE_CPU, .run = copy};
        char signature[64], text[32];
        snprintf(signature, sizeof signature, "%s(x: f32[n]) -> y: f32[n]", name);
        snprintf(text, sizeof text, "%s(f32[100])", name);
        const hone_algorithm algorithm = {
            .struct_size = sizeof algorithm, .signature = signature, .reference = copy_as_reference};
        hone_call *call = NULL;
        confirming c = {.looks_seconds = 0.005};
        assert_int_equal(hone_registry_add_algorithm(g->registry, &algorithm, is_known, &g->err), HONE_OK);
        assert_int_equal(hone_registry_add_kernels(g->registry, &kernel, 1, false, is_known, &g->err), HONE_OK);
        const hone_algorithm_entry *entry = hone_registry_find(g->registry, name, NULL);
        assert_int_equal(hone_call_parse(hone_allocator_system(), entry->signature, text, &call, &g->err), HONE_OK);
        const hone_status status = hone_contest_run_as(
            &(hone_contest_request){&g->environment, entry, call, &g->options}, confirm, &c, &g->contest, &g->err);
        if (status != HONE_OK) fail_msg("%s", g->err.message);
        runs[is_known] = atomic_load(&copies) - atomic_load(&copies_by_reference);
        assert_true(c.left_out);
        hone_contest_deinit(&g->contest);
        hone_call_release(&call);
    }
    if (3 * runs[1] > 2 * runs[0]) fail_msg("%d runs, and %d of the library's own", runs[0], runs[1]);
}

// Sums of the inputs that a candidate was run on, each once.
enum { MOST_INPUTS = 64 };
static double inputs_seen[MOST_INPUTS];
static int input_count;

static hone_status copy_at_once(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    const hone_tensor *x = args[0].as.tensor;
    memcpy(hone_tensor_data(args[1].as.tensor), hone_tensor_data(x), (size_t)x->shape[0] * sizeof(float));
    return HONE_OK;
}

static hone_status copy_noting(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const hone_tensor *x = args[0].as.tensor;
    const float *numbers = hone_tensor_data(x);
    double sum = 0;
    int at = 0;
    for (int64_t i = 0; i < x->shape[0]; i++)
        sum += numbers[i];
    pthread_mutex_lock(&lock);
    while (at < input_count && inputs_seen[at] != sum)
        at++;
    if (at == input_count && at < MOST_INPUTS) inputs_seen[input_count++] = sum;
    pthread_mutex_unlock(&lock);
    return copy_at_once(plan, args, execution);
}

// The same kernel leads twice, as with two of its configs. ctx: the number of inputs that each of the two was run on.
static hone_status lead_twice(hone_contest_state *state, void *ctx, hone_error *err)
{
    int *inputs = ctx;
    const hone_config config = {.count = 0};
    hone_status status = hone_contest_choose_sandbox(&state->trials, &state->field, &state->question, err);
    if (status == HONE_OK) status = hone_trials_open(&state->trials, err);
    state->trials.proofs_ns = INFINITY;
    for (int i = 0; i < 2 && status == HONE_OK; i++) {
        const hone_try what = {.kernel = state->field.contestants[0].ref, .config = &config, .best_ns = i * 1e9};
        hone_trial trial;
        bool cut;
        input_count = 0;
        status = hone_trials_try(&state->trials, &what, &trial, &cut, err);
        inputs[i] = input_count;
        assert_int_equal(trial.failure, HONE_FAILURE_NONE);
        assert_false(trial.unproven);
    }
    return status;
}

// The next leader of the library's own gets the ordinary and the second inputs alone. One that was brought gets those
// for leaders, too, since a config may be wrong on them alone.
static void a_kernel_of_the_library_is_checked_as_a_leader_once(void **state)
{
    ground *g = *state;
    int inputs[2][2];
    g->options.isolation = HONE_ISOLATION_IN_PROCESS;
    for (int is_known = 0; is_known < 2; is_known++) {
        const char *name = is_known ? "known" : "brought";
        const hone_kernel kernel = {HONE_KERNEL,         .algorithm = name, .name = "good", .platform = HONE_NATIVE,
                                    .backend = HONE_CPU, .run = copy_noting};
        char signature[64], text[32];
        snprintf(signature, sizeof signature, "%s(x: f32[n]) -> y: f32[n]", name);
        snprintf(text, sizeof text, "%s(f32[100])", name);
        const hone_algorithm algorithm = {
            .struct_size = sizeof algorithm, .signature = signature, .reference = copy_at_once};
        hone_call *call = NULL;
        assert_int_equal(hone_registry_add_algorithm(g->registry, &algorithm, is_known, &g->err), HONE_OK);
        assert_int_equal(hone_registry_add_kernels(g->registry, &kernel, 1, false, is_known, &g->err), HONE_OK);
        const hone_algorithm_entry *entry = hone_registry_find(g->registry, name, NULL);
        assert_int_equal(hone_call_parse(hone_allocator_system(), entry->signature, text, &call, &g->err), HONE_OK);
        const hone_status status = hone_contest_run_as(
            &(hone_contest_request){&g->environment, entry, call, &g->options}, lead_twice, inputs[is_known],
            &g->contest, &g->err);
        if (status != HONE_OK) fail_msg("%s", g->err.message);
        hone_contest_deinit(&g->contest);
        hone_call_release(&call);
    }
    if (inputs[0][1] <= 2 || inputs[1][0] <= 2 || inputs[1][1] != 2)
        fail_msg(
            "inputs of the first and the next leader: %d, %d; of the library's own %d, %d", inputs[0][0], inputs[0][1],
            inputs[1][0], inputs[1][1]);
}

static void words_that_are_too_long_end_with_dots(void **state)
{
    (void)state;
    char out[8];
    hone_words_copy(out, sizeof out, "short");
    assert_string_equal(out, "short");
    hone_words_copy(out, sizeof out, "too long");
    assert_string_equal(out, "too ...");
    hone_words_copy(out, sizeof out, "abc\xc3\xa4\xc3\xa4\xc3\xa4");
    assert_string_equal(out, "abc...");
}

// Looks for work as an idle thread of a library does: until its patience ends.
typedef struct idler {
    _Atomic uint64_t until_ns;
    atomic_bool asleep;
} idler;

static void *look_for_work(void *ctx)
{
    idler *self = ctx;
    while (hone_os_now_ns() < atomic_load(&self->until_ns))
        sched_yield();
    atomic_store(&self->asleep, true);
    return NULL;
}

static pthread_t start_idler(idler *self, uint64_t patience_ns)
{
    pthread_t thread;
    atomic_store(&self->asleep, false);
    atomic_store(&self->until_ns, hone_os_now_ns() + patience_ns);
    assert_int_equal(pthread_create(&thread, NULL, look_for_work, self), 0);
    return thread;
}

// OpenBLAS's looks for 128 ms where its patience is its own; one that never sleeps holds nobody up twice.
static void the_next_sample_waits_for_idle_threads_that_look_for_work(void **state)
{
    (void)state;
    const uint64_t ms = 1000 * 1000;
    hone_session session;
    hone_session_init(&session, hone_allocator_system(), &(hone_kernel_reader){.strict = false}, NULL);
    idler idle, restless;
    pthread_t thread = start_idler(&idle, 128 * ms);
    (void)hone_session_settle(&session);
    assert_true(atomic_load(&idle.asleep));
    pthread_join(thread, NULL);
    assert_int_equal(session.restless, 0);

    thread = start_idler(&restless, 3600 * 1000 * ms);
    assert_true(hone_session_settle(&session) > 128 * ms);
    assert_int_equal(session.restless, 1);
    assert_true(hone_session_settle(&session) < 128 * ms);
    atomic_store(&restless.until_ns, 0);
    pthread_join(thread, NULL);
    hone_session_deinit(&session);
}

// As on a busy machine, where each look comes milliseconds after it was asked for: who has slept for so long needs no rest more.
static void what_it_slept_is_what_passed(void **state)
{
    (void)state;
    const uint64_t ms = 1000 * 1000;
    hone_session session;
    hone_session_init(&session, hone_allocator_system(), &(hone_kernel_reader){.strict = false}, NULL);
    assert_int_equal(prctl(PR_SET_TIMERSLACK, 5 * ms, 0, 0, 0), 0);
    idler idle;
    pthread_t thread = start_idler(&idle, 128 * ms);
    assert_true(hone_session_settle(&session) > 64 * ms);
    pthread_join(thread, NULL);
    idler restless; // some 600 looks
    thread = start_idler(&restless, 3600 * 1000 * ms);
    const uint64_t slept_ns = hone_session_settle(&session);
    if (slept_ns > 2000 * ms) fail_msg("slept %.1f s", (double)slept_ns * 1e-9);
    assert_int_equal(session.restless, 1);
    atomic_store(&restless.until_ns, 0);
    pthread_join(thread, NULL);
    assert_int_equal(prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0), 0);
    hone_session_deinit(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_contest_in_process_survives_every_failed_allocation, ground_setup, ground_teardown),
        cmocka_unit_test(messages_that_are_none_and_calls_that_are_not_open_are_answered),
        cmocka_unit_test(the_next_sample_waits_for_idle_threads_that_look_for_work),
        cmocka_unit_test(what_it_slept_is_what_passed),
        cmocka_unit_test_setup_teardown(
            inputs_that_there_is_no_time_to_verify_are_not_made, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            builtin_kernels_are_verified_no_longer_than_the_budget, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_kernel_of_the_library_is_checked_as_a_leader_once, ground_setup, ground_teardown),
        cmocka_unit_test(words_that_are_too_long_end_with_dots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
