// The store's part: each measurement is written at once, and a contest goes on where an earlier one stopped.
#include "arena.h"

#include "hone/describe.h"
#include "store/records.h"
#include "tune/wire/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int setup(void **state)
{
    if (ground_setup(state) != 0) return -1;
    ground *g = *state;
    return hone_store_open(hone_allocator_system(), "memory:", &g->environment.store, &g->err) == HONE_OK ? 0 : -1;
}

typedef struct seen {
    uint32_t passed, failed;
    uint32_t known;          // with a time and an environment
    uint32_t timed_failures; // of these
    hone_failure failure;
    double time_ns;
} seen;

static bool count_one(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *measurement = record->measurement;
    seen *s = ctx;
    s->known += measurement->measured != NULL && measurement->environment != NULL &&
                strstr(measurement->environment, "\"hone\":") != NULL;
    s->timed_failures += measurement->failure != HONE_FAILURE_NONE && measurement->measured != NULL;
    if (measurement->failure == HONE_FAILURE_NONE) {
        s->passed++;
        s->time_ns = measurement->time_ns;
        assert_true(measurement->max_error >= 0);
    } else {
        s->failed++;
        s->failure = measurement->failure;
        assert_non_null(measurement->reason);
    }
    return true;
}

static hone_store_key key_of(ground *g, const char *subject, hone_call **out_call)
{
    char text[128], name[64];
    snprintf(name, sizeof name, "scale_%s", subject);
    snprintf(text, sizeof text, "%s(f32[1000])", name);
    const hone_algorithm_entry *algorithm = hone_registry_find(g->registry, name, NULL);
    assert_int_equal(hone_call_parse(hone_allocator_system(), algorithm->signature, text, out_call, &g->err), HONE_OK);
    return (hone_store_key){
        g->environment.device->fingerprint, algorithm->name, algorithm->version, hone_call_key(*out_call),
        hone_call_spec(*out_call)};
}

static seen look(ground *g, const char *subject)
{
    seen s = {0};
    hone_call *call = NULL;
    hone_store_key key = key_of(g, subject, &call);
    hone_status status = hone_store_scan(g->environment.store, HONE_RECORD_MEASUREMENT, &key, count_one, &s, &g->err);
    assert_true(status == HONE_OK || status == HONE_NOT_FOUND);
    hone_call_release(&call);
    return s;
}

static void each_measurement_and_each_failure_is_stored(void **state)
{
    ground *g = *state;
    assert_int_equal(ground_tune(g, "delayed"), HONE_OK);
    assert_int_equal(look(g, "delayed").passed, 6);
    assert_int_equal(ground_tune(g, "wrong"), HONE_OK);
    seen s = look(g, "wrong");
    assert_int_equal(s.passed, 1);
    assert_int_equal(s.failed, 1);
    assert_int_equal(s.failure, HONE_FAILURE_WRONG);
}

static void put_sampled(ground *g, const char *samples)
{
    hone_call *call = NULL;
    hone_store_key key = key_of(g, "wrong", &call);
    const hone_store_measurement measurement = {
        .kernel = "good",
        .config = "{}",
        .revision = "1",
        .time_ns = 7001,
        .low_ns = 7000,
        .high_ns = 7002,
        .samples = 3,
        .samples_ns = samples};
    assert_int_equal(hone_store_put_measurement(g->environment.store, &key, &measurement, &g->err), HONE_OK);
    hone_call_release(&call);
}

// What was sampled stands in the history of a contest.
static void a_contest_goes_on_with_the_samples_of_the_one_before(void **state)
{
    ground *g = *state;
    put_sampled(g, "[7000.25,7002,7001,9e9,1]"); // of which its samples say that there were three
    assert_int_equal(ground_tune(g, "wrong"), HONE_OK);
    assert_non_null(strstr(g->contest.history, "\"runs_ns\":[7000.25,7002.0,7001.0"));
    assert_null(strstr(g->contest.history, "7001.0,9"));
}

static void a_measurement_of_before_its_samples_were_kept_has_none(void **state)
{
    ground *g = *state;
    static const char *const none[] = {NULL, "[]", "[7000,0]"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        put_sampled(g, none[i]);
        assert_int_equal(ground_tune(g, "wrong"), HONE_OK);
        assert_winner(g, "good");
        assert_null(strstr(g->contest.history, "\"runs_ns\":[700"));
    }
}

// How many samples stand in the store; each is a time.
static bool count_samples(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *measurement = record->measurement;
    uint32_t *count = ctx;
    if (measurement->failure != HONE_FAILURE_NONE) {
        assert_null(measurement->samples_ns);
        return true;
    }
    assert_non_null(measurement->samples_ns);
    for (const char *at = measurement->samples_ns; at[0] != ']'; ++*count) {
        char *end;
        assert_true(at[0] == '[' || at[0] == ',');
        assert_true(strtod(at + 1, &end) > 0);
        at = end;
    }
    assert_true(*count > 0 && *count <= measurement->samples);
    return true;
}

static void each_measurement_is_stored_with_its_samples(void **state)
{
    ground *g = *state;
    hone_call *call = NULL;
    uint32_t count = 0;
    assert_int_equal(ground_tune(g, "wrong"), HONE_OK);
    hone_store_key key = key_of(g, "wrong", &call);
    assert_int_equal(
        hone_store_scan(g->environment.store, HONE_RECORD_MEASUREMENT, &key, count_samples, &count, &g->err), HONE_OK);
    assert_true(count > 0 && count <= HONE_KEPT_SAMPLES);
    hone_call_release(&call);
}

// Measured anew, the slow configs would take their time again; resumed, only the finals run.
static void a_second_contest_measures_nothing_twice(void **state)
{
    ground *g = *state;
    assert_int_equal(ground_tune(g, "wrong"), HONE_OK);
    assert_int_equal(ground_tune(g, "wrong"), HONE_OK);
    assert_winner(g, "good");
    assert_rejected(g, "wrong", HONE_FAILURE_WRONG);
    assert_int_equal(ground_row(g, "wrong")->tried, 1);
}

typedef struct stopper {
    volatile int cancel;
    uint32_t calls, at;
} stopper;

static void stop_at(void *ctx, const hone_progress *progress)
{
    stopper *s = ctx;
    (void)progress;
    if (++s->calls == s->at) s->cancel = 1;
}

static void an_interrupted_contest_resumes(void **state)
{
    ground *g = *state;
    stopper s = {.at = 5};
    g->options.evaluations = 20;
    g->options.patience = 1000;
    g->options.kernel = "crowd";
    g->options.progress = stop_at;
    g->options.progress_ctx = &s;
    g->options.cancel = &s.cancel;
    assert_int_equal(ground_tune(g, "crowd"), HONE_CANCELLED);
    uint32_t stored = look(g, "crowd").passed;
    assert_true(stored >= 4);
    s = (stopper){.at = 1000};
    assert_int_equal(ground_tune(g, "crowd"), HONE_OK);
    assert_int_equal(s.calls, 21);
    assert_int_equal(ground_row(g, "crowd")->tried, 20);
    assert_int_equal(look(g, "crowd").passed, 20);
}

static void put_one(
    ground *g, const char *subject, const char *kernel, const char *revision, hone_regime regime, double time_ns)
{
    hone_call *call = NULL;
    hone_store_key key = key_of(g, subject, &call);
    const hone_store_measurement measurement = {
        .kernel = kernel,
        .config = "{}",
        .revision = revision,
        .regime = regime,
        .time_ns = time_ns,
        .low_ns = time_ns,
        .high_ns = time_ns,
        .samples = 9};
    assert_int_equal(hone_store_put_measurement(g->environment.store, &key, &measurement, &g->err), HONE_OK);
    hone_call_release(&call);
}

// The finals measure again in any case, so what was taken from the store shows in what was not tried in the worker: a
// stored failure of the good kernel makes it lose without a run.
static void put_failure_of(
    ground *g,
    const char *subject,
    const char *kernel,
    const char *revision,
    hone_regime regime,
    double days_ago,
    const char *environment)
{
    hone_call *call = NULL;
    char measured[24];
    hone_os_format_utc(hone_os_now_utc() - days_ago * 86400, measured);
    hone_store_key key = key_of(g, subject, &call);
    const hone_store_measurement measurement = {
        .environment = environment,
        .measured = measured,
        .kernel = kernel,
        .config = "{}",
        .revision = revision,
        .regime = regime,
        .max_error = -1,
        .failure = HONE_FAILURE_CRASH,
        .reason = "stored"};
    assert_int_equal(hone_store_put_measurement(g->environment.store, &key, &measurement, &g->err), HONE_OK);
    hone_call_release(&call);
}

static void put_failure(ground *g, const char *subject, const char *kernel, const char *revision, hone_regime regime)
{
    put_failure_of(g, subject, kernel, revision, regime, 0, NULL);
}

static void a_stored_failure_is_believed_unless_fresh_is_asked_for(void **state)
{
    ground *g = *state;
    put_failure(g, "none", "good", "1", HONE_WARM);
    assert_int_equal(ground_tune(g, "none"), HONE_NOT_FOUND);
    assert_string_equal(ground_row(g, "good")->reason, "stored");
    g->options.fresh = true;
    assert_int_equal(ground_tune(g, "none"), HONE_OK);
    assert_winner(g, "good");
}

static void a_stored_failure_is_believed_no_longer_than_its_kind_is(void **state)
{
    ground *g = *state;
    put_failure_of(g, "none", "good", "1", HONE_WARM, 29, NULL);
    assert_int_equal(ground_tune(g, "none"), HONE_NOT_FOUND);
    put_failure_of(g, "none", "good", "1", HONE_WARM, 31, NULL);
    assert_int_equal(ground_tune(g, "none"), HONE_OK);
    assert_int_equal(look(g, "none").failed, 0);
}

static void a_failure_of_another_environment_is_tried_again(void **state)
{
    ground *g = *state;
    put_failure_of(g, "none", "good", "1", HONE_WARM, 0, "{\"compiler\":\"an older one\"}");
    assert_int_equal(ground_tune(g, "none"), HONE_OK);
    assert_winner(g, "good");
}

// Fresh forgets also what this contest does not come to: here a failure of a config that is no more.
static void fresh_forgets_all_failures_of_the_call(void **state)
{
    ground *g = *state;
    hone_call *call = NULL;
    hone_store_key key = key_of(g, "none", &call);
    const hone_store_measurement gone = {
        .kernel = "good",
        .config = "{\"old\":1}",
        .revision = "1",
        .max_error = -1,
        .failure = HONE_FAILURE_WRONG,
        .reason = "stored",
        .measured = "2026-11-20T12:34:56Z"};
    assert_int_equal(hone_store_put_measurement(g->environment.store, &key, &gone, &g->err), HONE_OK);
    g->options.fresh = true;
    assert_int_equal(ground_tune(g, "none"), HONE_OK);
    seen s = look(g, "none");
    assert_int_equal(s.failed, 1);
    assert_int_equal(s.timed_failures, 0);
    hone_call_release(&call);
}

static void each_record_says_when_and_with_what_it_was_measured(void **state)
{
    ground *g = *state;
    assert_int_equal(ground_tune(g, "wrong"), HONE_OK);
    seen s = look(g, "wrong");
    assert_int_equal(s.passed + s.failed, 2);
    assert_int_equal(s.known, 2);
    assert_int_equal(s.timed_failures, 1);
}

static void measurements_of_another_revision_or_regime_say_nothing(void **state)
{
    ground *g = *state;
    put_failure(g, "none", "good", "0", HONE_WARM);
    assert_int_equal(ground_tune(g, "none"), HONE_OK);
    put_failure(g, "threads", "good", "1", HONE_COLD);
    assert_int_equal(ground_tune(g, "threads"), HONE_OK);
    assert_true(ground_row(g, "good")->time_ns > 0);
}

static void an_impossible_stored_time_is_measured_again(void **state)
{
    ground *g = *state;
    // An impossible stored time of one picosecond.
    put_one(g, "wrong", "good", "1", HONE_WARM, 0.001);
    assert_int_equal(ground_tune(g, "wrong"), HONE_OK);
    assert_winner(g, "good");
    assert_true(g->contest.decision.evidence.time_ns > 1);
    assert_int_equal(g->contest.decision.evidence.rejected[HONE_FAILURE_IMPOSSIBLE], 0);
    assert_null(strstr(g->contest.history, "0.001"));
}

static void fresh_measurements_are_stored_like_others(void **state)
{
    ground *g = *state;
    g->options.fresh = true;
    assert_int_equal(ground_tune(g, "none"), HONE_OK);
    assert_int_equal(look(g, "none").passed, 1);
}

static void put_decision(ground *g, bool verified)
{
    hone_call *call = NULL;
    const hone_store_decision decision = {
        .key = key_of(g, "delayed", &call),
        .call = hone_call_text(call),
        .kernel = "delayed",
        .platform = "native",
        .config = "{\"delay\":400}",
        .source = "autotune",
        .revision = "1",
        .verified = verified,
        .time_ns = 4e5,
        .evidence = "{\"time_ns\":400000.0,\"samples\":3}",
        .environment = "{}"};
    assert_int_equal(hone_store_put(g->environment.store, &decision, &g->err), HONE_OK);
    hone_call_release(&call);
}

static void an_existing_decision_is_kept_when_that_is_asked_for(void **state)
{
    ground *g = *state;
    g->options.keep_existing = true;
    put_decision(g, true);
    assert_int_equal(ground_tune(g, "delayed"), HONE_OK);
    assert_string_equal(g->contest.decision.config_json, "{\"delay\":400}");
    assert_int_equal(g->contest.decision.evidence.samples, 3);
    assert_int_equal(look(g, "delayed").passed, 0);
    put_decision(g, false);
    assert_int_equal(ground_tune(g, "delayed"), HONE_OK);
    assert_int_equal(look(g, "delayed").passed, 6);
}

static uint32_t resumed_of(const ground *g)
{
    uint32_t count = 0;
    for (const char *at = g->contest.history; (at = strstr(at, "\"resumed\":true")) != NULL; at++)
        count++;
    return count;
}

static void tune_clipped(ground *g, const char *code)
{
    hone_allocator allocator = hone_allocator_system();
    setenv("SUBJECT_CODE", code, 1);
    hone_workers_destroy(&g->environment.workers);
    assert_int_equal(hone_workers_create(&allocator, HONE_TEST_WORKER, &g->environment.workers, &g->err), HONE_OK);
    assert_int_equal(ground_tune_text(g, "clipped(f32[1024])"), HONE_OK);
    unsetenv("SUBJECT_CODE");
}

// Its revision is what it was: only the digest of what runs tells.
static void what_was_measured_of_other_code_is_measured_again(void **state)
{
    ground *g = *state;
    tune_clipped(g, "0");
    assert_int_equal(resumed_of(g), 0);
    tune_clipped(g, "0");
    assert_int_equal(resumed_of(g), 5);
    tune_clipped(g, "1000");
    assert_int_equal(resumed_of(g), 0);
    tune_clipped(g, "1000");
    assert_int_equal(resumed_of(g), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_measurement_and_each_failure_is_stored, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_second_contest_measures_nothing_twice, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_contest_goes_on_with_the_samples_of_the_one_before, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_measurement_of_before_its_samples_were_kept_has_none, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(each_measurement_is_stored_with_its_samples, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(an_interrupted_contest_resumes, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_stored_failure_is_believed_unless_fresh_is_asked_for, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_stored_failure_is_believed_no_longer_than_its_kind_is, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_failure_of_another_environment_is_tried_again, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(fresh_forgets_all_failures_of_the_call, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(each_record_says_when_and_with_what_it_was_measured, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(measurements_of_another_revision_or_regime_say_nothing, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(an_impossible_stored_time_is_measured_again, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(fresh_measurements_are_stored_like_others, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(what_was_measured_of_other_code_is_measured_again, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(an_existing_decision_is_kept_when_that_is_asked_for, setup, ground_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
