// Audits: a stored choice beside its runners-up.
#include "arena.h"
#include "failing_allocator.h"

#include <stdio.h>
#include <string.h>

static int setup(void **state)
{
    if (ground_setup(state) != 0) return -1;
    ground *g = *state;
    return hone_store_open(hone_allocator_system(), "memory:", &g->environment.store, &g->err) == HONE_OK ? 0 : -1;
}

static hone_audited audit(ground *g, const char *subject, const hone_decision *stored, hone_status expected)
{
    char text[128];
    hone_call *call = NULL;
    hone_audited audited = {.stored_ns = stored->evidence.time_ns};
    snprintf(text, sizeof text, "scale_%s(f32[1000])", subject);
    *strchr(text, '(') = '\0';
    const hone_algorithm_entry *algorithm = hone_registry_find(g->registry, text, NULL);
    text[strlen(text)] = '(';
    assert_int_equal(hone_call_parse(g->environment.allocator, algorithm->signature, text, &call, &g->err), HONE_OK);
    hone_status status = hone_audit_run(
        &(hone_contest_request){&g->environment, algorithm, call, &g->options}, stored, 0.05, &audited, &g->err);
    hone_call_release(&call);
    if (status != expected) print_message("%s\n", g->err.message);
    assert_int_equal(status, expected);
    return audited;
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

static void a_choice_that_falls_out_says_how_and_harms_nobody(void **state)
{
    static const struct {
        const char *subject;
        hone_failure failure;
    } falls[] = {
        {"segv", HONE_FAILURE_CRASH},
        {"wrong", HONE_FAILURE_WRONG},
        {"overrun", HONE_FAILURE_BOUNDS},
        {"failing", HONE_FAILURE_RUN},
    };
    ground *g = *state;
    for (size_t i = 0; i < sizeof falls / sizeof falls[0]; i++) {
        assert_int_equal(ground_tune(g, falls[i].subject), HONE_OK);
        hone_decision stored = choice(g, falls[i].subject, 0);
        hone_audited audited = audit(g, falls[i].subject, &stored, HONE_OK);
        assert_int_equal(audited.failure, falls[i].failure);
        assert_true(audited.reason[0] != '\0');
        assert_true(audited.time_ns == 0);
    }
}

static void rivals_that_fall_out_leave_the_others_to_it(void **state)
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

// Each allocation fails once the allowance is used up: the audit says so, or its choice fell out for lack of memory.
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
            &(hone_contest_request){&g->environment, algorithm, call, &g->options}, &stored, 0.05, &audited, &g->err);
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
        cmocka_unit_test_setup_teardown(a_choice_that_is_still_right_has_no_regret_to_speak_of, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_slow_choice_is_found_out_with_its_regret, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(
            a_kernel_that_nothing_is_stored_of_meets_the_choice_by_its_default, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_choice_that_falls_out_says_how_and_harms_nobody, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(rivals_that_fall_out_leave_the_others_to_it, ground_setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_config_that_the_kernel_does_not_have_is_a_failure, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(an_audit_stores_nothing, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(every_allocation_of_an_audit_may_fail, setup, ground_teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_audit_ends_at_once, setup, ground_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
