// What an audit's figures mean: who passes, and the sums; and what is handed back when it ends early.
#include "ground.h"
#include "runtime/api/audit.h"
#include "runtime/links/links.h"
#include "store/records.h"

#include <stdint.h>
#include <stdio.h>

static hone_audited looked_at(double regret, double low)
{
    return (hone_audited){
        .served = true, .time_ns = 100, .low_ns = 95, .stored_ns = 100, .regret = regret, .regret_low = low};
}

static void only_a_regret_that_is_surely_past_the_threshold_fails(void **state)
{
    (void)state;
    static const struct {
        double regret, low;
        bool passes;
    } rows[] = {
        {0, 0, true},        {0.40, -0.02, true}, // a neighbour took a processor for a while
        {0.40, 0.03, true},                       // slower for sure, and not for sure by so much
        {0.08, 0.049, true}, {0.08, 0.051, false}, {0.40, 0.30, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hone_audited audited = looked_at(rows[i].regret, rows[i].low);
        assert_int_equal(hone_audit_passes(&audited, 0.05), rows[i].passes);
    }
}

static void drift_fails_in_an_environment_that_has_changed_alone_and_when_it_is_sure(void **state)
{
    (void)state;
    hone_audited audited = looked_at(0, 0);
    audited.time_ns = 130;
    audited.low_ns = 120;
    assert_true(hone_audit_passes(&audited, 0.05));
    snprintf(audited.changed, sizeof audited.changed, "driver was 5, is 6");
    assert_false(hone_audit_passes(&audited, 0.05));
    audited.low_ns = 104;
    assert_true(hone_audit_passes(&audited, 0.05));
    audited.stored_ns = 0; // nothing is known of then
    assert_true(hone_audit_passes(&audited, 0.05));
    audited.stored_ns = 0.5;
    assert_false(hone_audit_passes(&audited, 0.05));
}

static void the_sum_has_the_share_that_flipped_and_the_middle_drift(void **state)
{
    (void)state;
    static const double drifts[] = {0.30, -0.10, 0.02, 0.04};
    hone_audit_item items[7] = {0};
    for (size_t i = 0; i < 4; i++) {
        items[i].audited = looked_at(0.1 * (double)i, 0);
        items[i].audited.drift = drifts[i];
        items[i].audited.passed = true;
    }
    items[3].audited.flipped = true;
    items[3].audited.passed = false;
    snprintf(items[0].audited.changed, sizeof items[0].audited.changed, "library was a, is b");
    items[4].audited.failure = HONE_FAILURE_CRASH; // was not measured: counts in no mean
    items[4].audited.served = true;
    items[5].audited.passed = true;                            // nor was what is not served
    items[6].audited.served = items[6].audited.no_call = true; // nor what has no call; it is not rejected
    const hone_audit audit = {.items = items, .count = 7};
    hone_audit_summary sum;
    hone_audit_sum(&audit, &sum);
    assert_int_equal(sum.choices, 7);
    assert_int_equal(sum.no_call, 1);
    assert_int_equal(sum.measured, 4);
    assert_int_equal(sum.flipped, 1);
    assert_true(sum.flip_rate == 0.25);
    assert_true(sum.median_drift == 0.02);
    assert_true(sum.worst_regret > 0.29 && sum.worst_regret < 0.31);
    assert_int_equal(sum.changed, 1);
    assert_int_equal(sum.failed, 1);
    assert_int_equal(sum.not_served, 1);
    assert_int_equal(sum.past, 2);
}

// Of an even count the lower of the two in the middle: a drift that was measured.
static void the_middle_drift_is_one_of_those_measured_however_many_there_are(void **state)
{
    static const double drifts[] = {0.5, -0.2, 0.1, 0.1, -0.3, 0.9}, middles[] = {0.5, -0.2, 0.1, 0.1, 0.1, 0.1};
    enum { COUNT = sizeof drifts / sizeof drifts[0] };
    hone_audit_item items[COUNT + 1] = {0}; // the last was not measured
    (void)state;
    for (size_t count = 1; count <= COUNT; count++) {
        memset(items, 0, sizeof items);
        for (size_t i = 0; i < count; i++)
            items[i].audited = (hone_audited){.served = true, .time_ns = 1, .drift = drifts[i], .passed = true};
        const hone_audit audit = {.items = items, .count = count + 1};
        hone_audit_summary sum;
        hone_audit_sum(&audit, &sum);
        assert_int_equal(sum.measured, count);
        if (sum.median_drift != middles[count - 1]) fail_msg("of %zu: %g", count, sum.median_drift);
    }
    const hone_audit none = {.items = &items[COUNT], .count = 1};
    hone_audit_summary sum;
    hone_audit_sum(&none, &sum);
    assert_true(sum.measured == 0 && sum.median_drift == 0 && sum.flip_rate == 0);
}

// Ending early ---------------------------------------------------------------------------------------------------------

static volatile int is_cancelled;

// Whoever measures 8 rows is interrupted there.
static hone_status run_and_cancel(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    if (args[0].as.tensor->shape[0] == 8) is_cancelled = 1;
    return scale_reference(plan, args, execution);
}

// What the rows that are put say that their call is; NULL: what it is.
static const char *called;

// measured: a kernel that the store has a time of, too; NULL: none.
static void put(ground *g, const char *kernel, const char *measured, int64_t rows)
{
    hone_store *store = NULL;
    size_t count = 0;
    hone_call *call = describe_scale(g->f, rows, 4);
    assert_int_equal(hone_store_open(hone_allocator_system(), g->url, &store, &g->f->err), HONE_OK);
    const char *device = hone_runtime_devices(g->f->rt, &count)[0]->fingerprint;
    const hone_store_decision row = {
        .key = {device, "scale", "1", hone_call_key(call), hone_call_spec(call)},
        .call = called != NULL ? called : hone_call_text(call),
        .kernel = kernel,
        .platform = "native",
        .config = "{}",
        .source = "autotune",
        .revision = "1",
        .verified = true,
        .time_ns = 1000,
    };
    assert_int_equal(hone_store_put(store, &row, &g->f->err), HONE_OK);
    const hone_store_measurement other = {
        .kernel = measured,
        .config = "{}",
        .revision = "1",
        .time_ns = 2000,
        .low_ns = 1900,
        .high_ns = 2100,
        .samples = 9,
        .measured = "2026-11-01T00:00:00Z"};
    if (measured != NULL) assert_int_equal(hone_store_put_measurement(store, &row.key, &other, &g->f->err), HONE_OK);
    hone_store_close(&store);
    hone_call_release(&call);
}

static hone_status audit(ground *g, const char *const *calls, size_t count, hone_audit **out)
{
    const hone_tune_options options = {
        .struct_size = sizeof options,
        .isolation = HONE_ISOLATION_IN_PROCESS,
        .seconds = 0.05,
        .cancel = &is_cancelled};
    is_cancelled = 0;
    return hone_tune_audit(g->f->rt, calls, count, 0.05, &options, out, &g->f->err);
}

static void an_audit_that_is_cancelled_hands_back_what_it_has_measured_and_one_that_fails_nothing(void **state)
{
    ground *g = *state;
    static const char *const calls[] = {"scale(f32[4,4])", "scale(f32[8,4])", "scale(f32[16,4])"};
    const hone_kernel brake = {HONE_KERNEL,         .algorithm = "scale", .name = "brake", .platform = HONE_NATIVE,
                               .backend = HONE_CPU, .run = run_and_cancel};
    assert_int_equal(hone_register_kernels(g->f->rt, &brake, 1, &g->f->err), HONE_OK);
    put(g, "brake", NULL, 4);
    put(g, "brake", NULL, 8);
    hone_audit *audited = NULL;
    if (audit(g, calls, 1, &audited) != HONE_OK) fail_msg("%s", g->f->err.message);
    assert_int_equal(hone_audit_size(audited), 1);
    hone_audit_release(&audited);
    assert_int_equal(audit(g, calls, 2, &audited), HONE_CANCELLED);
    assert_non_null(audited);
    assert_int_equal(hone_audit_size(audited), 1);
    assert_string_equal(hone_audit_choice(audited, 0)->call, calls[0]);
    assert_true(hone_audit_choice(audited, 0)->time_ns > 0);
    hone_audit_release(&audited);
    // Nothing was measured before the first was cancelled.
    assert_int_equal(audit(g, calls + 1, 1, &audited), HONE_CANCELLED);
    assert_null(audited);
    // Nothing is stored of the last, and the two before it are not told of.
    assert_int_equal(audit(g, calls, 3, &audited), HONE_NOT_FOUND);
    assert_null(audited);
}

// Taking back ---------------------------------------------------------------------------------------------------------

static volatile bool is_turned, heals, fails;

static hone_status run_until_it_turns(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    hone_status status = scale_reference(plan, args, execution);
    if (is_turned && fails) return HONE_KERNEL_FAILED;
    if (is_turned) *scale_at(args[1].as.tensor, 0, 0) += 1;
    is_turned = is_turned && !heals;
    return status;
}

static const hone_kernel turncoat = {
    HONE_KERNEL,         .algorithm = "scale", .name = "turncoat",       .platform = HONE_NATIVE,
    .backend = HONE_CPU, .priority = 99,       .run = run_until_it_turns};
static const hone_kernel steady = {HONE_KERNEL,         .algorithm = "scale",
                                   .name = "steady",    .platform = HONE_NATIVE,
                                   .backend = HONE_CPU, .run = scale_reference};

static void begin_with_a_turncoat(ground *g, const char *measured)
{
    is_turned = heals = fails = false;
    const hone_kernel kernels[] = {turncoat, steady};
    assert_int_equal(hone_register_kernels(g->f->rt, kernels, 2, &g->f->err), HONE_OK);
    put(g, "turncoat", measured, 4);
    const hone_decision decision = decide_scale(g->f, 4, 4);
    assert_string_equal(decision.kernel, "turncoat");
    assert_int_equal(decision.source, HONE_SOURCE_STORE);
    is_turned = true;
}

static hone_audited look(ground *g, bool no_store)
{
    static const char *const call = "scale(f32[4,4])";
    const hone_tune_options options = {
        .struct_size = sizeof options, .isolation = HONE_ISOLATION_IN_PROCESS, .seconds = 0.05, .no_store = no_store};
    hone_audit *audited = NULL;
    if (hone_tune_audit(g->f->rt, &call, 1, 0.05, &options, &audited, &g->f->err) != HONE_OK)
        fail_msg("%s", g->f->err.message);
    hone_audited found = *hone_audit_choice(audited, 0);
    hone_audit_release(&audited);
    assert_int_equal(found.failure, heals ? HONE_FAILURE_NONE : fails ? HONE_FAILURE_RUN : HONE_FAILURE_WRONG);
    return found;
}

static void the_process_that_audits_answers_with_the_next_best_and_a_bound_plan_goes_on(void **state)
{
    ground *g = *state;
    example e;
    const hone_plan *plan = NULL;
    begin_with_a_turncoat(g, "steady");
    make_example(&e, 4, 4);
    assert_int_equal(hone_bind(g->f->op, e.args, 3, &plan, &g->f->err), HONE_OK);
    const hone_audited found = look(g, false);
    assert_true(found.taken_back && !found.passed);
    assert_string_equal(found.next_kernel, "steady");
    const hone_decision decision = decide_scale(g->f, 4, 4);
    assert_string_equal(decision.kernel, "steady");
    assert_int_equal(decision.source, HONE_SOURCE_STORE);
    assert_true(decision.verified && decision.evidence.time_ns == 2000);
    run_example(g->f, 4, 4);
    assert_string_equal(plan->kernel->name, "turncoat");
    assert_false(hone_plan_is_current(plan));
    hone_plan_release(&plan);
}

// A kernel that only fails may be right for other calls: it is this one that is decided anew.
static void a_choice_that_fails_is_gone_from_memory_too(void **state)
{
    ground *g = *state;
    begin_with_a_turncoat(g, "steady");
    fails = true;
    assert_true(look(g, false).taken_back);
    assert_string_equal(decide_scale(g->f, 4, 4).kernel, "steady");
}

static void the_chain_continues_after_a_rejected_choice_without_an_alternative(void **state)
{
    ground *g = *state;
    begin_with_a_turncoat(g, NULL);
    const hone_audited found = look(g, false);
    assert_true(found.taken_back);
    assert_string_equal(found.next_kernel, "");
    const hone_decision decision = decide_scale(g->f, 4, 4);
    assert_string_not_equal(decision.kernel, "turncoat");
    assert_int_equal(decision.source, HONE_SOURCE_HEURISTIC);
}

static void a_choice_that_fails_once_and_then_passes_stays(void **state)
{
    ground *g = *state;
    begin_with_a_turncoat(g, "steady");
    heals = true;
    const hone_audited found = look(g, false);
    assert_false(is_turned);
    assert_true(found.time_ns > 0 && !found.taken_back);
    assert_non_null(strstr(found.reason, "was rejected once (wrong: "));
    assert_string_equal(decide_scale(g->f, 4, 4).kernel, "turncoat");
}

static void a_choice_that_was_replaced_meanwhile_is_left_alone(void **state)
{
    ground *g = *state;
    hone_store *store = NULL;
    hone_call *call = describe_scale(g->f, 4, 4);
    begin_with_a_turncoat(g, NULL);
    const hone_decision fallen = decide_scale(g->f, 4, 4);
    put(g, "steady", NULL, 4);
    assert_int_equal(hone_store_open(hone_allocator_system(), g->url, &store, &g->f->err), HONE_OK);
    const hone_device_info *device = hone_runtime_devices(g->f->rt, &(size_t){0})[0];
    const hone_status status = hone_decision_take_back(
        g->f->rt, store, device, call, &fallen, hone_call_spec(call), NULL, "it is wrong", &g->f->err);
    assert_int_equal(status, HONE_NOT_FOUND);
    hone_store_stat stats;
    assert_int_equal(hone_store_get_stat(store, &stats, &g->f->err), HONE_OK);
    assert_true(stats.decisions == 1 && stats.quarantined == 0);
    hone_store_close(&store);
    hone_call_release(&call);
}

static void a_choice_under_the_text_of_another_call_is_measured_and_taken_back_by_its_key(void **state)
{
    ground *g = *state;
    called = "scale(f32[8,4])";
    begin_with_a_turncoat(g, "steady");
    called = NULL;
    const hone_audited found = look(g, false);
    assert_true(found.taken_back);
    assert_string_equal(decide_scale(g->f, 4, 4).kernel, "steady");
}

static void an_audit_that_stores_nothing_takes_nothing_back(void **state)
{
    ground *g = *state;
    begin_with_a_turncoat(g, "steady");
    hone_store *store = NULL;
    hone_store_stat stats;
    assert_false(look(g, true).taken_back);
    assert_int_equal(hone_store_open(hone_allocator_system(), g->url, &store, &g->f->err), HONE_OK);
    assert_int_equal(hone_store_get_stat(store, &stats, &g->f->err), HONE_OK);
    assert_true(stats.decisions == 1 && stats.failures == 0);
    hone_store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_regret_that_is_surely_past_the_threshold_fails),
        cmocka_unit_test(drift_fails_in_an_environment_that_has_changed_alone_and_when_it_is_sure),
        cmocka_unit_test(the_sum_has_the_share_that_flipped_and_the_middle_drift),
        cmocka_unit_test(the_middle_drift_is_one_of_those_measured_however_many_there_are),
        cmocka_unit_test_setup_teardown(
            an_audit_that_is_cancelled_hands_back_what_it_has_measured_and_one_that_fails_nothing, open_ground,
            close_ground),
        cmocka_unit_test_setup_teardown(
            the_process_that_audits_answers_with_the_next_best_and_a_bound_plan_goes_on, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(a_choice_that_fails_is_gone_from_memory_too, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(
            the_chain_continues_after_a_rejected_choice_without_an_alternative, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(a_choice_that_fails_once_and_then_passes_stays, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(a_choice_that_was_replaced_meanwhile_is_left_alone, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(
            a_choice_under_the_text_of_another_call_is_measured_and_taken_back_by_its_key, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(an_audit_that_stores_nothing_takes_nothing_back, open_ground, close_ground),
    };
    return cmocka_run_group_tests_name("runtime_audit", tests, NULL, NULL);
}
