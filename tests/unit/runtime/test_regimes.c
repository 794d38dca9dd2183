// Warm, cold, graph and eager are four questions: what answers the one is no answer to the other, and warm is served first.
#include "ground.h"
#include "runtime/api/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hone_tune_options options_of(hone_regime regime)
{
    return (hone_tune_options){
        .struct_size = sizeof(hone_tune_options),
        .seconds = 0.2,
        .isolation = HONE_ISOLATION_IN_PROCESS,
        .regime = regime};
}

static void tune(ground *g, hone_regime regime)
{
    const hone_tune_options options = options_of(regime);
    hone_result *result = NULL;
    hone_call *call = describe_scale(g->f, 8, 4);
    if (hone_tune(g->f->op, call, &options, &result, &g->f->err) != HONE_OK) fail_msg("%s", g->f->err.message);
    assert_int_equal(hone_result_decision(result, 0)->evidence.regime, regime);
    hone_result_release(&result);
    hone_call_release(&call);
}

static uint64_t count_decisions(ground *g)
{
    hone_store *store = NULL;
    hone_store_stat stat;
    assert_int_equal(hone_store_open(hone_allocator_system(), g->url, &store, &g->f->err), HONE_OK);
    assert_int_equal(hone_store_get_stat(store, &stat, &g->f->err), HONE_OK);
    hone_store_close(&store);
    return stat.decisions;
}

static void a_cold_contest_leaves_the_warm_answer_in_its_place(void **state)
{
    ground *g = *state;
    tune(g, HONE_WARM);
    tune(g, HONE_COLD);
    assert_int_equal(count_decisions(g), 2);
    assert_int_equal(decide_scale(g->f, 8, 4).evidence.regime, HONE_WARM);
    hone_cache_clear(g->f->rt);
    assert_int_equal(decide_scale(g->f, 8, 4).evidence.regime, HONE_WARM);
}

static void a_cold_answer_serves_until_there_is_a_warm_one(void **state)
{
    ground *g = *state;
    tune(g, HONE_COLD);
    assert_int_equal(decide_scale(g->f, 8, 4).evidence.regime, HONE_COLD);
    tune(g, HONE_WARM);
    assert_int_equal(decide_scale(g->f, 8, 4).evidence.regime, HONE_WARM);
}

// Tuning what was recorded asks for the regime too.
static void what_was_tuned_warm_is_not_taken_for_cold(void **state)
{
    ground *g = *state;
    const hone_tune_options options = options_of(HONE_COLD);
    run_example(g->f, 8, 4);
    tune(g, HONE_WARM);
    for (int i = 0; i < 2; i++) {
        hone_result *result = NULL;
        if (hone_tune_recorded(g->f->rt, &options, &result, &g->f->err) != HONE_OK) fail_msg("%s", g->f->err.message);
        assert_int_equal(hone_result_size(result), 1);
        assert_int_equal(hone_result_decision(result, 0)->evidence.regime, HONE_COLD);
        hone_result_release(&result);
    }
    assert_int_equal(count_decisions(g), 2);
}

// On the CPU a run is its own launch.
static void a_device_without_launches_has_no_regime_of_them(void **state)
{
    ground *g = *state;
    static const hone_regime regimes[] = {HONE_GRAPH, HONE_EAGER};
    static const char *const words[] = {
        "has no regime graph: its runs cannot be captured", "has no regime eager: a run has ended"};
    hone_call *call = describe_scale(g->f, 8, 4);
    for (int i = 0; i < 2; i++) {
        hone_result *result = NULL;
        const hone_tune_options options = options_of(regimes[i]);
        assert_int_equal(hone_tune(g->f->op, call, &options, &result, &g->f->err), HONE_UNSUPPORTED);
        if (strstr(g->f->err.message, words[i]) == NULL) fail_msg("%s", g->f->err.message);
        hone_result_release(&result);
    }
    hone_call_release(&call);
    assert_int_equal(count_decisions(g), 0);
}

static void an_unknown_regime_or_isolation_is_refused(void **state)
{
    ground *g = *state;
    hone_result *result = NULL;
    hone_runtime *rt = NULL;
    hone_call *call = describe_scale(g->f, 8, 4);
    const hone_tune_options options = options_of(HONE_REGIME_COUNT);
    assert_int_equal(hone_tune(g->f->op, call, &options, &result, &g->f->err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(g->f->err.message, "expected HONE_WARM, HONE_COLD, HONE_GRAPH or HONE_EAGER"));
    hone_tune_options isolated = options_of(HONE_WARM);
    isolated.isolation = (hone_isolation)99;
    assert_int_equal(hone_tune(g->f->op, call, &isolated, &result, &g->f->err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(g->f->err.message, "options.isolation is 99: expected HONE_ISOLATION_DEFAULT, HONE_"));
    hone_call_release(&call);
    const hone_runtime_options wrong = {.struct_size = sizeof wrong, .store = "none", .regime = HONE_GRAPH_STABLE};
    assert_int_equal(hone_runtime_open(&wrong, &rt, &g->f->err), HONE_INVALID_ARGUMENT);
    setenv("HONE_REGIME", "hot", 1);
    const hone_runtime_options usual = {.struct_size = sizeof usual, .store = "none"};
    assert_int_equal(hone_runtime_open(&usual, &rt, &g->f->err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(g->f->err.message, "HONE_REGIME is 'hot', expected warm, cold, graph or eager"));
    unsetenv("HONE_REGIME");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_cold_contest_leaves_the_warm_answer_in_its_place, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(a_cold_answer_serves_until_there_is_a_warm_one, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(a_device_without_launches_has_no_regime_of_them, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(an_unknown_regime_or_isolation_is_refused, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(what_was_tuned_warm_is_not_taken_for_cold, open_ground, close_ground),
    };
    return cmocka_run_group_tests_name("runtime_regimes", tests, NULL, NULL);
}
