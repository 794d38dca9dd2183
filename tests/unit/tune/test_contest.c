// Contests in spawned workers: which candidates win, which are rejected, and that the host process survives all of
// them.
#include "arena.h"
#include "tune/isolate/sandbox.h"

#include "base/json.h"
#include "store/records.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void a_good_kernel_wins_and_is_verified(void **state)
{
    ground *g = *state;
    assert_int_equal(ground_tune(g, "none"), HONE_OK);
    assert_winner(g, "good");
    const hone_evidence *evidence = &g->contest.decision.evidence;
    assert_string_equal(evidence->verified_against, "reference");
    assert_true(evidence->isolated);
    assert_true(evidence->rounds >= 10);
    assert_true(evidence->max_error <= 1);
    assert_true(evidence->default_time_ns > 0);
    assert_int_equal(strlen(evidence->started), 20);
}

// Otherwise they compete with the next measured candidate for 128 ms, and all its samples are marked as disturbed.
static void workers_keep_idle_threads_of_libraries_asleep(void **state)
{
    ground *g = *state;
    assert_int_equal(ground_tune(g, "told"), HONE_OK);
    assert_int_equal(ground_row(g, "told")->rejected[HONE_FAILURE_RUN], 0);
    assert_true(ground_row(g, "told")->time_ns > 0);
}

static void an_omp_wait_policy_of_the_user_is_kept(void **state)
{
    setenv("OMP_WAIT_POLICY", "active", 1);
    workers_keep_idle_threads_of_libraries_asleep(state);
    unsetenv("OMP_WAIT_POLICY");
}

static void a_contest_without_a_seed_draws_another_each_time(void **state)
{
    ground *g = *state;
    uint64_t drawn[2];
    g->options.seed = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ground_tune(g, "none"), HONE_OK);
        drawn[i] = g->contest.decision.evidence.seed;
        assert_true(drawn[i] > 0);
    }
    assert_true(drawn[0] != drawn[1]);
    g->options.seed = 77;
    assert_int_equal(ground_tune(g, "none"), HONE_OK);
    assert_true(g->contest.decision.evidence.seed == 77);
}

static void the_reference_has_a_row_and_never_wins(void **state)
{
    ground *g = *state;
    assert_int_equal(ground_tune(g, "none"), HONE_OK);
    assert_true(ground_row(g, "reference")->time_ns > 0);
    assert_int_equal(ground_row(g, "reference")->tried, 1);
}

static void the_fastest_config_of_a_space_is_found(void **state)
{
    ground *g = *state;
    g->options.kernel = "delayed";
    assert_int_equal(ground_tune(g, "delayed"), HONE_OK);
    assert_winner(g, "delayed");
    // A run of 400 us is never the fastest beside one of nothing, whoever else uses the machine.
    assert_true(g->contest.decision.config.values[0] < 400);
    assert_int_equal(ground_row(g, "delayed")->tried, 5);
    assert_true(ground_row(g, "delayed")->default_time_ns > 90e3);
    assert_true(ground_row(g, "good")->time_ns == 0);
    assert_non_null(strstr(ground_row(g, "good")->reason, "only kernel delayed"));
}

static const json_t *tried_as(const json_t *history, const char *kernel)
{
    size_t i;
    const json_t *row, *all = json_object_get(history, "evaluations");
    json_array_foreach(
        all, i, row) if (strcmp(json_string_value(json_object_get(row, "kernel")), kernel) == 0) return row;
    return NULL;
}

static void the_history_has_everything_that_was_tried_and_the_finals(void **state)
{
    ground *g = *state;
    assert_int_equal(ground_tune(g, "wrong"), HONE_OK);
    json_t *history = NULL;
    assert_int_equal(hone_json_parse(g->contest.history, strlen(g->contest.history), &history, NULL), HONE_OK);
    assert_int_equal(json_array_size(json_object_get(history, "evaluations")), 2);
    const json_t *good = tried_as(history, "good"), *wrong = tried_as(history, "wrong");
    assert_true(json_number_value(json_object_get(good, "raced_ns")) > 0);
    assert_true(json_number_value(json_object_get(good, "at")) > 0);
    assert_true(json_is_true(json_object_get(good, "default")));
    // Nobody was there to be beaten by: it was measured in full.
    assert_true(json_array_size(json_object_get(good, "runs_ns")) >= 5);
    assert_string_equal(json_string_value(json_object_get(wrong, "failure")), "wrong");
    assert_non_null(strstr(json_string_value(json_object_get(wrong, "reason")), "y[999]"));
    const json_t *finals = json_object_get(history, "finals");
    const json_t *first = json_array_get(json_object_get(finals, "finalists"), 0);
    assert_int_equal(json_array_size(json_object_get(first, "samples_ns")), g->contest.decision.evidence.rounds);
    json_decref(history);
}

// One row: a subject, and the failure with which it must be rejected.
typedef struct fall {
    const char *subject;
    hone_failure failure;
    const char *words; // in the reason
} fall;

static const fall falls[] = {
    {"wrong", HONE_FAILURE_WRONG, "y[999]"},
    {"nan", HONE_FAILURE_WRONG, "y[500]"},
    {"lazy", HONE_FAILURE_PARTIAL, "y[999] was never written, one of 1"},
    {"limited", HONE_FAILURE_WRONG, "on large inputs: y["},
    {"flushing", HONE_FAILURE_WRONG, "on tiny inputs: y["},
    {"blind", HONE_FAILURE_WRONG, "on inputs with special values: y["},
    {"reader", HONE_FAILURE_BOUNDS, "read or wrote past the end of x"},
    {"peeker", HONE_FAILURE_BOUNDS, "read or wrote before the start of x"},
    {"aligned", HONE_FAILURE_UNALIGNED, "crashes on arrays that are aligned no better"},
    {"rounding", HONE_FAILURE_UNALIGNED, "aligned no better than the call allows: y["},
    {"overrun", HONE_FAILURE_BOUNDS, "1 byte past the end of y"},
    {"underrun", HONE_FAILURE_BOUNDS, "1 byte before the start of y"},
    {"writer", HONE_FAILURE_BOUNDS, "x, an input"},
    {"unsupported", HONE_FAILURE_UNSUPPORTED, "unsupported"},
    {"failing", HONE_FAILURE_RUN, "failed"},
    {"unprepared", HONE_FAILURE_PREPARE, "the compiler says no"},
    {"segv", HONE_FAILURE_CRASH, "signal"},
    {"abort", HONE_FAILURE_CRASH, "signal 6"},
    {"leave", HONE_FAILURE_CRASH, "exit code 7"},
    {"crashing", HONE_FAILURE_CRASH, "signal"},
    {"greedy", HONE_FAILURE_PREPARE, "scratch"},
    {"past_scratch", HONE_FAILURE_BOUNDS, "wrote 49 bytes past the end of its scratch of 1000 bytes"},
    {"before_scratch", HONE_FAILURE_BOUNDS, "wrote 3 bytes before the start of its scratch of 1000 bytes"},
    {"hopeful", HONE_FAILURE_PARTIAL, "y[0]"}, // what lay in its scratch is what results hold before they are written
    {"tiring", HONE_FAILURE_WRONG, "y[0]"},
};

static void every_bad_kernel_loses_with_its_failure_kind_and_does_not_harm_the_host(void **state)
{
    ground *g = *state;
    for (size_t i = 0; i < sizeof falls / sizeof falls[0]; i++) {
        print_message("  %s\n", falls[i].subject);
        if (ground_tune(g, falls[i].subject) != HONE_OK)
            fail_msg("%s; good: %s", g->err.message, ground_row(g, "good")->reason);
        assert_winner(g, "good");
        assert_rejected(g, falls[i].subject, falls[i].failure);
        const char *reason = ground_row(g, falls[i].subject)->reason;
        if (strstr(reason, falls[i].words) == NULL) fail_msg("%s: '%s'", falls[i].subject, reason);
    }
}

// Who shares a work buffer is slower than the good one, and found where it would win.
static void a_kernel_that_is_wrong_in_two_threads_wins_nothing(void **state)
{
    ground *g = *state;
    g->options.kernel = "shared";
    assert_int_equal(ground_tune(g, "shared"), HONE_NOT_FOUND);
    assert_rejected(g, "shared", HONE_FAILURE_RACY);
    assert_non_null(strstr(ground_row(g, "shared")->reason, "in two threads at once y["));
}

static void a_kernel_that_hangs_is_stopped_and_put_aside(void **state)
{
    ground *g = *state;
    g->options.candidate_seconds = 4; // what good takes a thousandth of, and a hang all
    g->options.seconds = 60;
    assert_int_equal(ground_tune(g, "hang"), HONE_OK);
    assert_winner(g, "good");
    assert_rejected(g, "hang", HONE_FAILURE_TIMEOUT);
    assert_int_equal(ground_row(g, "hang")->tried, 3);
    assert_non_null(strstr(ground_row(g, "hang")->reason, "put aside"));
}

static void a_kernel_that_hangs_while_it_is_prepared_is_stopped(void **state)
{
    ground *g = *state;
    g->options.candidate_seconds = 3;
    g->options.seconds = 60;
    assert_int_equal(ground_tune(g, "stuck"), HONE_OK);
    assert_winner(g, "good");
    assert_rejected(g, "stuck", HONE_FAILURE_TIMEOUT);
    assert_non_null(strstr(ground_row(g, "stuck")->reason, "no answer within 3 s"));
}

static void a_contest_without_a_winner_gives_the_reason(void **state)
{
    ground *g = *state;
    g->options.kernel = "wrong";
    assert_int_equal(ground_tune(g, "wrong"), HONE_NOT_FOUND);
    assert_string_equal(g->contest.decision.kernel, "");
    assert_non_null(strstr(g->err.message, "y[999]"));
    assert_rejected(g, "wrong", HONE_FAILURE_WRONG);
}

static void a_kernel_that_is_not_there_says_so(void **state)
{
    ground *g = *state;
    g->options.kernel = "imaginary";
    assert_int_equal(ground_tune(g, "none"), HONE_NOT_FOUND);
    assert_non_null(strstr(g->err.message, "has no kernel imaginary (hone list"));
}

static void scratch_is_given_and_threads_work_in_the_worker(void **state)
{
    ground *g = *state;
    assert_int_equal(ground_tune(g, "scratch"), HONE_OK);
    assert_true(ground_row(g, "scratch")->time_ns > 0);
    assert_int_equal(ground_tune(g, "threads"), HONE_OK);
    assert_true(ground_row(g, "threads")->time_ns > 0);
    assert_int_equal(ground_row(g, "threads")->tried, 4);
}

static void a_worker_that_crashed_is_replaced_in_the_next_contest_and_in_the_one_after(void **state)
{
    ground *g = *state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ground_tune(g, "segv"), HONE_OK);
        assert_winner(g, "good");
        assert_int_equal(ground_tune(g, "none"), HONE_OK);
        assert_winner(g, "good");
    }
}

static void evaluations_bound_the_candidates_and_the_default_is_the_first(void **state)
{
    ground *g = *state;
    g->options.evaluations = 1;
    assert_int_equal(ground_tune(g, "crowd"), HONE_OK);
    assert_winner(g, "crowd");
    assert_int_equal(g->contest.decision.config.values[0], 40);
    assert_int_equal(ground_row(g, "crowd")->tried, 1);
    assert_int_equal(ground_row(g, "good")->tried, 0);
    g->options.evaluations = 12;
    g->options.seconds = 60;
    g->options.kernel = "crowd";
    assert_int_equal(ground_tune(g, "crowd"), HONE_OK);
    assert_int_equal(ground_row(g, "crowd")->tried, 12);
}

static void hardly_any_calls_are_not_worth_a_search(void **state)
{
    ground *g = *state;
    g->options.kernel = "crowd";
    g->options.seconds = 300; // evaluations end it
    g->options.evaluations = 30;
    g->options.patience = 30;
    g->options.expected_calls = 1e-6;
    assert_int_equal(ground_tune(g, "crowd"), HONE_OK);
    assert_int_equal(ground_row(g, "crowd")->tried, 1);
    g->options.expected_calls = 1e12;
    assert_int_equal(ground_tune(g, "crowd"), HONE_OK);
    assert_true(ground_row(g, "crowd")->tried > 20);
}

static void hardly_any_time_still_finds_a_kernel(void **state)
{
    ground *g = *state;
    g->options.seconds = 1e-9;
    assert_int_equal(ground_tune(g, "crowd"), HONE_OK);
    assert_winner(g, "crowd");
    assert_int_equal(ground_tune(g, "wrong"), HONE_OK);
    assert_winner(g, "good");
}

// The first configs, which are chosen before times say anything: what comes later depends on what was measured.
static void try_with(ground *g, uint64_t seed, int64_t delays[4])
{
    g->options.evaluations = 4;
    g->options.kernel = "crowd";
    g->options.seed = seed;
    assert_int_equal(ground_tune(g, "crowd"), HONE_OK);
    assert_int_equal(g->contest.decision.evidence.seed, seed);
    json_t *history = NULL;
    assert_int_equal(hone_json_parse(g->contest.history, strlen(g->contest.history), &history, NULL), HONE_OK);
    const json_t *all = json_object_get(history, "evaluations");
    assert_int_equal(json_array_size(all), 4);
    for (size_t i = 0; i < 4; i++)
        delays[i] = json_integer_value(json_object_get(json_object_get(json_array_get(all, i), "config"), "delay"));
    json_decref(history);
}

static void equal_seeds_try_equal_configs(void **state)
{
    int64_t first[4], again[4], other[4];
    try_with(*state, 7, first);
    try_with(*state, 7, again);
    try_with(*state, 8, other);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, other, sizeof first);
}

// Progress and cancelling ---------------------------------------------------------------------------------------------

typedef struct watcher {
    uint32_t calls, last_done, total;
    bool said_best;
    volatile int cancel;
    uint32_t cancel_at;
} watcher;

static void watch(void *ctx, const hone_progress *progress)
{
    watcher *w = ctx;
    w->calls++;
    assert_true(progress->done >= w->last_done);
    assert_true(progress->total >= progress->done);
    w->last_done = progress->done;
    w->total = progress->total;
    w->said_best = progress->best_ns > 0 && progress->best_kernel != NULL;
    assert_non_null(strstr(progress->call, "scale_"));
    if (w->cancel_at > 0 && w->calls == w->cancel_at) w->cancel = 1;
}

static void progress_is_reported_for_every_candidate(void **state)
{
    ground *g = *state;
    watcher w = {0};
    g->options.progress = watch;
    g->options.progress_ctx = &w;
    assert_int_equal(ground_tune(g, "delayed"), HONE_OK);
    assert_int_equal(w.calls, 7); // five configs, the good kernel, and the end
    assert_int_equal(w.last_done, 6);
    assert_int_equal(w.total, 6);
    assert_true(w.said_best);
}

static void a_cancelled_contest_keeps_what_it_has_found(void **state)
{
    ground *g = *state;
    watcher w = {.cancel_at = 4};
    g->options.progress = watch;
    g->options.progress_ctx = &w;
    g->options.cancel = &w.cancel;
    assert_int_equal(ground_tune(g, "crowd"), HONE_CANCELLED);
    assert_true(g->contest.decision.kernel[0] != '\0');
    assert_true(g->contest.decision.verified);
    assert_int_equal(g->contest.decision.evidence.rounds, 0);
    assert_int_equal(w.calls, 4);
}

static void a_contest_cancelled_at_once_finds_nothing(void **state)
{
    ground *g = *state;
    volatile int cancel = 1;
    g->options.cancel = &cancel;
    assert_int_equal(ground_tune(g, "none"), HONE_CANCELLED);
    assert_string_equal(g->contest.decision.kernel, "");
}

static void cancel_and_stop(void *ctx, const hone_progress *progress)
{
    volatile int *cancel = ctx;
    (void)progress;
    *cancel = 1;
}

static void a_hanging_candidate_does_not_delay_a_cancel(void **state)
{
    ground *g = *state;
    volatile int cancel = 0;
    g->options.kernel = "hang";
    g->options.candidate_seconds = 36000; // a cancel that waits for it does not end before the test's own limit
    g->options.cancel = &cancel;
    g->options.progress = cancel_and_stop;
    g->options.progress_ctx = (void *)(uintptr_t)&cancel;
    assert_int_equal(ground_tune(g, "hang"), HONE_CANCELLED);
}

// Regimes, layouts, workers -------------------------------------------------------------------------------------------

static void a_cold_contest_says_so(void **state)
{
    ground *g = *state;
    g->options.regime = HONE_COLD;
    assert_int_equal(ground_tune(g, "none"), HONE_OK);
    assert_winner(g, "good");
    assert_int_equal(g->contest.decision.evidence.regime, HONE_COLD);
    assert_int_equal(ground_tune(g, "overrun"), HONE_OK);
    assert_rejected(g, "overrun", HONE_FAILURE_BOUNDS);
}

static void alignment_and_scalars_of_the_call_reach_the_worker(void **state)
{
    ground *g = *state;
    assert_int_equal(ground_tune_text(g, "scale_none(f32[37]{align=4}, by=3.5)"), HONE_OK);
    assert_winner(g, "good");
}

static void an_empty_call_is_tuned_too(void **state)
{
    ground *g = *state;
    assert_int_equal(ground_tune_text(g, "scale_none(f32[0])"), HONE_OK);
    assert_winner(g, "good");
}

static void a_kernel_that_fails_in_place_loses_where_a_result_may_be_its_input(void **state)
{
    ground *g = *state;
    assert_int_equal(ground_tune_text(g, "reverse(f32[1000])"), HONE_OK);
    assert_winner(g, "swapping");
    assert_rejected(g, "copying", HONE_FAILURE_WRONG);
    assert_non_null(strstr(ground_row(g, "copying")->reason, "in the memory of x"));
}

static void a_large_call_is_verified_in_parts_and_nan_shows_everywhere(void **state)
{
    ground *g = *state;
    // By its model the call is 1e13 operations.
    hone_workers_keep_peaks(
        g->environment.workers, &(hone_peaks){.operations[HONE_WIDTH_32] = 1e30, .bytes = {1e30}, .reach = 1e30});
    assert_int_equal(ground_tune_text(g, "rows(f32[64,8])"), HONE_OK);
    assert_winner(g, "good");
    assert_rejected(g, "holed", HONE_FAILURE_WRONG);
    assert_true(ground_row(g, "reference")->time_ns == 0);
}

static void a_time_below_the_device_limit_is_impossible(void **state)
{
    ground *g = *state;
    assert_int_equal(ground_tune_text(g, "rows(f32[64,8])"), HONE_NOT_FOUND);
    assert_rejected(g, "good", HONE_FAILURE_IMPOSSIBLE);
    assert_non_null(strstr(ground_row(g, "good")->reason, " for 10 TFLOP is "));
    assert_non_null(strstr(ground_row(g, "good")->reason, "and nothing takes less than "));
}

// It comes to the finals by the time of an earlier contest, which the race does not take anew.
static void a_time_below_the_device_limit_in_the_finals_is_impossible(void **state)
{
    ground *g = *state;
    hone_call *call = NULL;
    assert_int_equal(ground_tune_text(g, "rows(f32[64,8])"), HONE_NOT_FOUND);
    const hone_kernel_ref *good = ground_row(g, "good")->kernel;
    const hone_algorithm_entry *rows = good->algorithm;
    assert_int_equal(
        hone_call_parse(hone_allocator_system(), rows->signature, "rows(f32[64,8])", &call, &g->err), HONE_OK);
    const hone_store_key key = {
        g->environment.device->fingerprint, rows->name, rows->version, hone_call_key(call), hone_call_spec(call)};
    const double long_ns = 1e15;
    const hone_store_measurement before = {
        .kernel = "good",
        .config = "{}",
        .revision = good->kernel.revision,
        .time_ns = long_ns,
        .low_ns = long_ns,
        .high_ns = long_ns,
        .samples = 9};
    assert_int_equal(hone_store_open(hone_allocator_system(), "memory:", &g->environment.store, &g->err), HONE_OK);
    assert_int_equal(hone_store_put_measurement(g->environment.store, &key, &before, &g->err), HONE_OK);
    hone_call_release(&call);
    g->options.kernel = "good";
    g->options.evaluations = 1;
    assert_int_equal(ground_tune_text(g, "rows(f32[64,8])"), HONE_NOT_FOUND);
    assert_rejected(g, "good", HONE_FAILURE_IMPOSSIBLE);
    assert_int_equal(g->contest.decision.evidence.measured, 0);
}

static void a_machine_that_was_slow_when_it_was_measured_is_measured_again(void **state)
{
    ground *g = *state;
    hone_peaks peaks = {.operations = {1, 1, 1, 1, 1}, .bytes = {1, 1, 1, 1}, .reach = 1e30};
    hone_workers_keep_peaks(g->environment.workers, &peaks);
    assert_int_equal(ground_tune(g, "delayed"), HONE_OK);
    assert_winner(g, "good");
    assert_int_equal(g->contest.decision.evidence.rejected[HONE_FAILURE_IMPOSSIBLE], 0);
    assert_true(g->contest.decision.evidence.floor_ns < g->contest.decision.evidence.low_ns);
    assert_true(hone_workers_peaks(g->environment.workers, &peaks) && peaks.operations[0] > 1e6);
}

static void what_has_other_bits_than_the_default_wins_no_stable_contest(void **state)
{
    ground *g = *state;
    assert_int_equal(ground_tune_text(g, "total(f32[8,500])"), HONE_OK);
    assert_true(ground_row(g, "pairwise")->time_ns > 0);
    g->options.regime = HONE_WARM_STABLE;
    assert_int_equal(ground_tune_text(g, "total(f32[8,500])"), HONE_OK);
    assert_winner(g, "blocked");
    assert_int_equal(ground_row(g, "blocked")->rejected[HONE_FAILURE_UNSTABLE], 0);
    assert_rejected(g, "pairwise", HONE_FAILURE_UNSTABLE);
    assert_non_null(strstr(ground_row(g, "pairwise")->reason, "y differs from the default's in its bits"));
    assert_int_equal(g->contest.decision.evidence.regime, HONE_WARM_STABLE);
    assert_string_equal(g->contest.decision.evidence.verified_against, "reference, and the default's bits");
}

static void a_default_that_wavers_is_no_measure_of_stability(void **state)
{
    ground *g = *state;
    g->options.regime = HONE_COLD_STABLE;
    assert_int_equal(ground_tune_text(g, "wavering(f32[8,500])"), HONE_KERNEL_FAILED);
    assert_non_null(strstr(g->err.message, "sequential gives other bits in each run"));
    g->options.regime = HONE_COLD;
    assert_int_equal(ground_tune_text(g, "wavering(f32[8,500])"), HONE_OK);
}

static void configs_that_come_to_one_code_are_measured_once(void **state)
{
    ground *g = *state;
    assert_int_equal(ground_tune_text(g, "clipped(f32[64])"), HONE_OK);
    assert_int_equal(ground_row(g, "clipped")->tried, 2);                      // those of one code count once
    assert_int_equal(ground_row(g, "clipped")->rejected[HONE_FAILURE_RUN], 0); // to run one of them would have failed
    assert_int_equal(ground_tune_text(g, "clipped(f32[300])"), HONE_OK);
    assert_int_equal(ground_row(g, "clipped")->rejected[HONE_FAILURE_RUN], 1);
}

static hone_status shut_out(void *ctx, const hone_kernel_ref *kernel, const hone_device_info *device, hone_error *why)
{
    (void)device;
    if (strcmp(kernel->kernel.name, ctx) != 0) return HONE_OK;
    why->status = HONE_UNSUPPORTED;
    snprintf(why->message, sizeof why->message, "denied by a rule");
    return HONE_UNSUPPORTED;
}

static void a_kernel_that_the_host_shuts_out_does_not_compete(void **state)
{
    ground *g = *state;
    char name[] = "scratch";
    g->environment.admits = shut_out;
    g->environment.admits_ctx = name;
    assert_int_equal(ground_tune(g, "scratch"), HONE_OK);
    assert_winner(g, "good");
    assert_int_equal(ground_row(g, "scratch")->tried, 0);
    assert_string_equal(ground_row(g, "scratch")->reason, "denied by a rule");
}

static void *tune_in_thread(void *ctx)
{
    ground own = *(ground *)ctx; // the registry, the workers and the device are shared
    hone_call *call = NULL;
    const hone_algorithm_entry *algorithm = hone_registry_find(own.registry, "scale_segv", NULL);
    hone_status status =
        hone_call_parse(own.environment.allocator, algorithm->signature, "scale_segv(f32[1000])", &call, &own.err);
    if (status == HONE_OK)
        status = hone_contest_run(
            &(hone_contest_request){&own.environment, algorithm, call, &own.options}, &own.contest, &own.err);
    bool won = status == HONE_OK && strcmp(own.contest.decision.kernel, "good") == 0;
    hone_contest_deinit(&own.contest);
    hone_call_release(&call);
    return won ? ctx : NULL;
}

static void contests_of_two_threads_share_the_workers(void **state)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, tune_in_thread, *state), 0);
    for (int i = 0; i < 2; i++) {
        void *won = NULL;
        pthread_join(threads[i], &won);
        assert_non_null(won);
    }
    // The worker that is idle now was started by a thread that has ended, and still serves.
    ground *g = *state;
    assert_int_equal(ground_tune(g, "none"), HONE_OK);
    assert_winner(g, "good");
}

static void do_nothing(void *ctx, int64_t index)
{
    (void)ctx;
    (void)index;
}

static void a_missing_worker_is_named_with_what_to_do(void **state)
{
    ground *g = *state;
    hone_allocator allocator = hone_allocator_system();
    hone_workers_destroy(&g->environment.workers);
    assert_int_equal(
        hone_workers_create(&allocator, "/nowhere/hone-worker", &g->environment.workers, &g->err), HONE_OK);
    // With a second thread there is no fork to fall back on.
    assert_int_equal(hone_pool_create(&allocator, 2, &g->environment.pool, &g->err), HONE_OK);
    hone_pool_run(g->environment.pool, 2, do_nothing, NULL);
    assert_int_equal(ground_tune(g, "none"), HONE_UNAVAILABLE);
    assert_non_null(strstr(g->err.message, "/nowhere/hone-worker"));
    g->options.isolation = HONE_ISOLATION_IN_PROCESS;
    assert_int_equal(ground_tune(g, "none"), HONE_OK);
    assert_winner(g, "good");
    assert_false(g->contest.decision.evidence.isolated);
}

static void a_program_that_is_no_worker_is_refused(void **state)
{
    ground *g = *state;
    hone_allocator allocator = hone_allocator_system();
    skip_where_nothing_can_fork();
    hone_workers_destroy(&g->environment.workers);
    assert_int_equal(hone_workers_create(&allocator, "/bin/true", &g->environment.workers, &g->err), HONE_OK);
    // This test program has one thread, so a fork serves instead.
    assert_int_equal(ground_tune(g, "none"), HONE_OK);
    assert_winner(g, "good");
    assert_true(g->contest.decision.evidence.isolated);
}

// The interpreter's takes seconds to start: it is kept while the other one is asked.
static void a_sandbox_that_splits_keeps_a_worker_of_each_sort(void **state)
{
    ground *g = *state;
    hone_sandbox sandbox;
    assert_int_equal(hone_sandbox_init(&sandbox, &g->environment, HONE_SANDBOX_SPAWN, &g->err), HONE_OK);
    hone_sandbox_turn(&sandbox, true);
    assert_false(sandbox.interpreted); // it does not split
    sandbox.splits = true;
    assert_int_equal(hone_sandbox_start(&sandbox, &g->err), HONE_OK);
    const long first = (long)sandbox.now.process.pid;
    sandbox.now.served = 3;
    hone_sandbox_turn(&sandbox, true);
    assert_false(hone_sandbox_is_warm(&sandbox));
    assert_int_equal(hone_sandbox_start(&sandbox, &g->err), HONE_OK);
    const long second = (long)sandbox.now.process.pid;
    assert_int_not_equal(first, second);
    assert_int_equal(sandbox.now.served, 0);
    hone_sandbox_turn(&sandbox, false);
    assert_true(hone_sandbox_is_warm(&sandbox));
    assert_int_equal(sandbox.now.process.pid, first);
    assert_int_equal(sandbox.now.served, 3);
    hone_sandbox_drop(&sandbox);
    hone_sandbox_turn(&sandbox, true);
    assert_true(hone_sandbox_is_warm(&sandbox));
    assert_int_equal(sandbox.now.process.pid, second);
    hone_sandbox_deinit(&sandbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        // First: what one contest hands on, processes started for later ones have too.
        cmocka_unit_test_setup_teardown(an_omp_wait_policy_of_the_user_is_kept, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_sandbox_that_splits_keeps_a_worker_of_each_sort, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_good_kernel_wins_and_is_verified, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_contest_without_a_seed_draws_another_each_time, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_kernel_that_is_wrong_in_two_threads_wins_nothing, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(workers_keep_idle_threads_of_libraries_asleep, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(the_reference_has_a_row_and_never_wins, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            the_history_has_everything_that_was_tried_and_the_finals, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(the_fastest_config_of_a_space_is_found, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_time_below_the_device_limit_is_impossible, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_time_below_the_device_limit_in_the_finals_is_impossible, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_machine_that_was_slow_when_it_was_measured_is_measured_again, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            what_has_other_bits_than_the_default_wins_no_stable_contest, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_default_that_wavers_is_no_measure_of_stability, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(configs_that_come_to_one_code_are_measured_once, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            every_bad_kernel_loses_with_its_failure_kind_and_does_not_harm_the_host, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_kernel_that_hangs_is_stopped_and_put_aside, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_kernel_that_hangs_while_it_is_prepared_is_stopped, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_contest_without_a_winner_gives_the_reason, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_kernel_that_is_not_there_says_so, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(scratch_is_given_and_threads_work_in_the_worker, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_worker_that_crashed_is_replaced_in_the_next_contest_and_in_the_one_after, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            evaluations_bound_the_candidates_and_the_default_is_the_first, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(hardly_any_calls_are_not_worth_a_search, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(hardly_any_time_still_finds_a_kernel, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(equal_seeds_try_equal_configs, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(progress_is_reported_for_every_candidate, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_contest_keeps_what_it_has_found, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_contest_cancelled_at_once_finds_nothing, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_hanging_candidate_does_not_delay_a_cancel, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_cold_contest_says_so, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            alignment_and_scalars_of_the_call_reach_the_worker, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(an_empty_call_is_tuned_too, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_kernel_that_fails_in_place_loses_where_a_result_may_be_its_input, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_large_call_is_verified_in_parts_and_nan_shows_everywhere, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_kernel_that_the_host_shuts_out_does_not_compete, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(contests_of_two_threads_share_the_workers, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_program_that_is_no_worker_is_refused, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_missing_worker_is_named_with_what_to_do, ground_setup, ground_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
