// Audits: a stored choice beside its runners-up.
#include "arena.h"
#include "failing_allocator.h"
#include "hone/describe.h"
#include "store/records.h"

#include <stdio.h>
#include <string.h>

static int setup(void **state)
{
    if (ground_setup(state) != 0) return -1;
    ground *g = *state;
    return hone_store_open(hone_allocator_system(), "memory:", &g->environment.store, &g->err) == HONE_OK ? 0 : -1;
}

static hone_decision next; // of the last audit

static hone_call *parse(const ground *g, const char *text, const hone_algorithm_entry **out_algorithm)
{
    char name[128];
    hone_call *call = NULL;
    hone_error err;
    snprintf(name, sizeof name, "%s", text);
    *strchr(name, '(') = '\0';
    *out_algorithm = hone_registry_find(g->registry, name, NULL);
    hone_signature *signature = (*out_algorithm)->signature;
    assert_int_equal(hone_call_parse(hone_allocator_system(), signature, text, &call, &err), HONE_OK);
    return call;
}

static hone_audited audit_call(ground *g, const char *text, const hone_decision *stored, hone_status expected)
{
    const hone_algorithm_entry *algorithm;
    hone_audited audited = {.stored_ns = stored->evidence.time_ns};
    hone_call *call = parse(g, text, &algorithm);
    snprintf(audited.config, sizeof audited.config, "%s", stored->config_json);
    hone_status status = hone_audit_run(
        &(hone_contest_request){&g->environment, algorithm, call, &g->options}, NULL, 0, stored, 0.05, &audited, &next,
        &g->err);
    hone_call_release(&call);
    if (status != expected) print_message("%s\n", g->err.message);
    assert_int_equal(status, expected);
    return audited;
}

static hone_audited audit(ground *g, const char *subject, const hone_decision *stored, hone_status expected)
{
    char text[128];
    snprintf(text, sizeof text, "scale_%s(f32[1000])", subject);
    return audit_call(g, text, stored, expected);
}

// A decision for a kernel of the contest just run, of one parameter or none.
static hone_decision choice(const ground *g, const char *kernel, int64_t value)
{
    hone_decision stored = g->contest.decision;
    const hone_kernel_ref *ref = ground_row(g, kernel)->kernel;
    snprintf(stored.kernel, sizeof stored.kernel, "%s", kernel);
    stored.config = (hone_config){.count = ref->kernel.space != NULL ? 1 : 0, .values = {value}};
    return stored;
}

static void a_choice_that_is_still_right_has_no_regret_to_speak_of(void **state)
{
    ground *g = *state;
    g->options.kernel = "delayed";
    assert_int_equal(ground_tune(g, "delayed"), HONE_OK);
    hone_decision stored = g->contest.decision;
    hone_audited audited = audit(g, "delayed", &stored, HONE_OK);
    assert_string_equal(audited.best_kernel, "delayed");
    assert_string_equal(audited.best_config, "{\"delay\":0}");
    assert_int_equal(audited.failure, HONE_FAILURE_NONE);
    assert_false(audited.flipped);
    assert_true(audited.time_ns > 0 && audited.low_ns <= audited.time_ns && audited.time_ns <= audited.high_ns);
    assert_true(audited.default_ns > 90e3);
    assert_true(audited.rivals >= 3);
    assert_true(audited.rounds >= 16);
}

static void a_slow_choice_is_found_out_with_its_regret(void **state)
{
    ground *g = *state;
    g->options.kernel = "delayed";
    assert_int_equal(ground_tune(g, "delayed"), HONE_OK);
    hone_decision stored = choice(g, "delayed", 200);
    hone_audited audited = audit(g, "delayed", &stored, HONE_OK);
    assert_true(audited.flipped);
    assert_true(audited.regret_low > 1);
    assert_true(audited.regret >= audited.regret_low && audited.regret <= audited.regret_high);
    assert_string_equal(audited.best_config, "{\"delay\":0}");
    assert_true(audited.best_ns < audited.time_ns);
    assert_true(audited.drift > 1); // the stored time is that of the fast one
}

static void a_choice_is_flipped_by_more_than_half_a_percent_for_sure(void **state)
{
    static const struct {
        hone_interval regret;
        bool flipped;
    } looks[] = {
        {{.low = 0.001, .middle = 0.0051, .high = 0.01}, true}, {{.low = 0.001, .middle = 0.0049, .high = 0.01}, false},
        {{.low = 0.05, .middle = 0.1, .high = 0.2}, true},      {{.low = 0, .middle = 0.1, .high = 0.2}, false},
        {{.low = -0.1, .middle = 0.5, .high = 2}, false},       {{.low = -0.1, .middle = -0.05, .high = 0}, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        assert_int_equal(hone_audit_is_flipped(&looks[i].regret), looks[i].flipped);
}

static void a_kernel_that_nothing_is_stored_of_meets_the_choice_by_its_default(void **state)
{
    ground *g = *state;
    g->options.kernel = "delayed";
    g->options.no_store = true;
    hone_store_close(&g->environment.store);
    assert_int_equal(ground_tune(g, "delayed"), HONE_OK);
    hone_decision stored = choice(g, "delayed", 400);
    g->options.kernel = NULL;
    hone_audited audited = audit(g, "delayed", &stored, HONE_OK);
    assert_string_equal(audited.best_kernel, "good");
    assert_true(audited.flipped);
}

// A measurement of a kernel that has never run.
static void claim(const ground *g, const char *subject, const char *kernel, const char *config, double time_ns)
{
    char text[128];
    hone_error err;
    const hone_algorithm_entry *algorithm;
    snprintf(text, sizeof text, "scale_%s(f32[1000])", subject);
    hone_call *call = parse(g, text, &algorithm);
    const hone_store_key key = {
        g->environment.device->fingerprint, algorithm->name, algorithm->version, hone_call_key(call),
        hone_call_spec(call)};
    const hone_store_measurement claimed = {
        .kernel = kernel,
        .config = config,
        .revision = ground_row(g, kernel)->kernel->kernel.revision,
        .time_ns = time_ns,
        .low_ns = time_ns,
        .high_ns = time_ns,
        .samples = 9,
        .measured = "2026-11-01T00:00:00Z"};
    if (hone_store_put_measurement(g->environment.store, &key, &claimed, &err) != HONE_OK) fail_msg("%s", err.message);
    hone_call_release(&call);
}

static size_t stored_failures(const ground *g)
{
    hone_store_stat stats;
    hone_error err;
    assert_int_equal(hone_store_get_stat(g->environment.store, &stats, &err), HONE_OK);
    return stats.failures;
}

static void the_next_best_of_a_choice_that_falls_out_is_the_fastest_that_passes_the_same(void **state)
{
    ground *g = *state;
    g->options.candidate_seconds = 0.1;
    assert_int_equal(ground_tune(g, "hang"), HONE_OK);
    hone_decision stored = choice(g, "hang", 6);
    snprintf(stored.config_json, sizeof stored.config_json, "{\"way\":6}");
    claim(g, "hang", "hang", "{\"way\":5}", 1500); // is as bad
    claim(g, "hang", "good", "{}", 1800);
    hone_audited audited = audit(g, "hang", &stored, HONE_OK);
    assert_int_equal(audited.failure, HONE_FAILURE_TIMEOUT);
    assert_string_equal(audited.next_kernel, "good");
    assert_true(audited.next_ns == 1800);
    assert_string_equal(next.kernel, "good");
    assert_true(next.verified && next.evidence.time_ns == 1800 && next.evidence.max_error >= 0);
    assert_string_equal(
        next.evidence.undecided, "an audit took back hang {\"way\":6} (timeout); this is the next best, by its time of "
                                 "2026-11-01T00:00:00Z; hone tune decides");
    assert_int_equal(next.evidence.rejected[HONE_FAILURE_TIMEOUT], 2);
    // Of a stored time that the device cannot reach nothing is believed.
    claim(g, "hang", "good", "{}", 1e-3);
    audited = audit(g, "hang", &stored, HONE_OK);
    assert_string_equal(audited.next_kernel, "");
    assert_string_equal(next.kernel, "");
}

static void what_only_looks_takes_no_failure_down(void **state)
{
    ground *g = *state;
    assert_int_equal(ground_tune(g, "segv"), HONE_OK);
    hone_decision stored = choice(g, "segv", 0);
    hone_store *used = g->environment.store;
    assert_int_equal(hone_store_open(hone_allocator_system(), "memory:", &g->environment.store, &g->err), HONE_OK);
    g->options.no_store = true;
    assert_int_equal(audit(g, "segv", &stored, HONE_OK).failure, HONE_FAILURE_CRASH);
    assert_int_equal(stored_failures(g), 0);
    g->options.no_store = false;
    assert_int_equal(audit(g, "segv", &stored, HONE_OK).failure, HONE_FAILURE_CRASH);
    assert_int_equal(stored_failures(g), 1);
    hone_store_close(&used);
}

static void a_choice_that_could_not_run_is_not_taken_back(void **state)
{
    (void)state;
    assert_false(hone_audit_takes_back(HONE_FAILURE_NONE));
    assert_false(hone_audit_takes_back(HONE_FAILURE_UNSUPPORTED));
    assert_false(hone_audit_takes_back(HONE_FAILURE_PREPARE));
    for (int failure = HONE_FAILURE_RUN; failure < HONE_FAILURE_COUNT; failure++)
        assert_true(hone_audit_takes_back((hone_failure)failure));
}

static void a_rejected_choice_gives_its_reason_and_does_not_harm_the_host(void **state)
{
    static const struct {
        const char *subject;
        hone_failure failure;
    } falls[] = {
        {"segv", HONE_FAILURE_CRASH},  {"wrong", HONE_FAILURE_WRONG},   {"overrun", HONE_FAILURE_BOUNDS},
        {"failing", HONE_FAILURE_RUN}, {"lazy", HONE_FAILURE_PARTIAL},  {"aligned", HONE_FAILURE_UNALIGNED},
        {"shared", HONE_FAILURE_RACY}, {"limited", HONE_FAILURE_WRONG},
    };
    ground *g = *state;
    for (size_t i = 0; i < sizeof falls / sizeof falls[0]; i++) {
        assert_int_equal(ground_tune(g, falls[i].subject), HONE_OK);
        hone_decision stored = choice(g, falls[i].subject, 0);
        hone_audited audited = audit(g, falls[i].subject, &stored, HONE_OK);
        if (audited.failure != falls[i].failure) fail_msg("%s: %s", falls[i].subject, audited.reason);
        assert_true(audited.reason[0] != '\0');
        assert_true(audited.time_ns == 0);
        assert_string_equal(audited.next_kernel, "good");
    }
}

static void a_choice_that_takes_less_than_the_device_can_is_impossible(void **state)
{
    ground *g = *state;
    assert_int_equal(ground_tune_text(g, "rows(f32[64,8])"), HONE_NOT_FOUND);
    hone_decision stored = choice(g, "good", 0);
    stored.platform = HONE_NATIVE; // nobody won
    stored.backend = HONE_CPU;
    hone_audited audited = audit_call(g, "rows(f32[64,8])", &stored, HONE_OK);
    assert_int_equal(audited.failure, HONE_FAILURE_IMPOSSIBLE);
    assert_string_equal(audited.next_kernel, "");
}

static void a_rejected_rival_does_not_end_an_audit(void **state)
{
    ground *g = *state;
    g->environment.store = NULL; // else the failure is known, and the rival does not come
    assert_int_equal(ground_tune(g, "segv"), HONE_OK);
    hone_decision stored = g->contest.decision;
    hone_audited audited = audit(g, "segv", &stored, HONE_OK);
    assert_int_equal(audited.failure, HONE_FAILURE_NONE);
    assert_int_equal(audited.rivals, 0);
    assert_true(audited.time_ns > 0);
    assert_true(audited.regret == 0);
}

static void a_config_that_the_kernel_does_not_have_is_a_failure(void **state)
{
    ground *g = *state;
    g->options.kernel = "delayed";
    assert_int_equal(ground_tune(g, "delayed"), HONE_OK);
    hone_decision stored = choice(g, "delayed", 7);
    assert_int_equal(audit(g, "delayed", &stored, HONE_OK).failure, HONE_FAILURE_UNSUPPORTED);
}

static void an_audit_stores_nothing(void **state)
{
    ground *g = *state;
    g->options.kernel = "delayed";
    assert_int_equal(ground_tune(g, "delayed"), HONE_OK);
    hone_decision stored = choice(g, "delayed", 200);
    hone_store *filled = g->environment.store;
    assert_int_equal(hone_store_open(hone_allocator_system(), "memory:", &g->environment.store, &g->err), HONE_OK);
    (void)audit(g, "delayed", &stored, HONE_OK);
    hone_store_stat stats;
    assert_int_equal(hone_store_get_stat(g->environment.store, &stats, &g->err), HONE_OK);
    assert_int_equal(stats.measurements, 0);
    assert_int_equal(stats.decisions, 0);
    hone_store_close(&filled);
}

static void a_cancelled_audit_ends_at_once(void **state)
{
    static const volatile int cancel = 1;
    ground *g = *state;
    assert_int_equal(ground_tune(g, "none"), HONE_OK);
    hone_decision stored = g->contest.decision;
    g->options.cancel = &cancel;
    (void)audit(g, "none", &stored, HONE_CANCELLED);
}

// Each allocation fails once the allowance is used up: the audit says so, or its choice was rejected for lack of memory.
static void every_allocation_of_an_audit_may_fail(void **state)
{
    ground *g = *state;
    failing_allocator memory;
    hone_call *call = NULL;
    hone_store_close(&g->environment.store);
    g->options.isolation = HONE_ISOLATION_IN_PROCESS;
    g->options.seconds = 0.01;
    assert_int_equal(ground_tune(g, "none"), HONE_OK);
    hone_decision stored = g->contest.decision;
    const hone_algorithm_entry *algorithm = hone_registry_find(g->registry, "scale_none", NULL);
    assert_int_equal(
        hone_call_parse(hone_allocator_system(), algorithm->signature, "scale_none(f32[10])", &call, &g->err), HONE_OK);
    bool done = false;
    for (long long left = 0; !done; left++) {
        hone_audited audited = {.stored_ns = 1};
        g->environment.allocator = failing_allocator_of(&memory, left);
        hone_status status = hone_audit_run(
            &(hone_contest_request){&g->environment, algorithm, call, &g->options}, NULL, 0, &stored, 0.05, &audited,
            &next, &g->err);
        done = status == HONE_OK && audited.failure == HONE_FAILURE_NONE;
        assert_true(done || status == HONE_OUT_OF_MEMORY || audited.failure != HONE_FAILURE_NONE);
        assert_int_equal(atomic_load(&memory.live), 0);
        assert_true(left < 1000);
    }
    g->environment.allocator = hone_allocator_system();
    hone_call_release(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_choice_is_flipped_by_more_than_half_a_percent_for_sure),
        cmocka_unit_test(a_choice_that_could_not_run_is_not_taken_back),
        cmocka_unit_test_setup_teardown(
            the_next_best_of_a_choice_that_falls_out_is_the_fastest_that_passes_the_same, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(what_only_looks_takes_no_failure_down, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_choice_that_takes_less_than_the_device_can_is_impossible, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_choice_that_is_still_right_has_no_regret_to_speak_of, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_slow_choice_is_found_out_with_its_regret, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_kernel_that_nothing_is_stored_of_meets_the_choice_by_its_default, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_rejected_choice_gives_its_reason_and_does_not_harm_the_host, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_rejected_rival_does_not_end_an_audit, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_config_that_the_kernel_does_not_have_is_a_failure, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(an_audit_stores_nothing, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(every_allocation_of_an_audit_may_fail, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_audit_ends_at_once, setup, ground_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
