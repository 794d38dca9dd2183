// Warm and cold are two questions: what answers the one is no answer to the other, and warm is served first.
#include "ground.h"

#include <stdio.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_cold_contest_leaves_the_warm_answer_in_its_place, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(a_cold_answer_serves_until_there_is_a_warm_one, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(what_was_tuned_warm_is_not_taken_for_cold, open_ground, close_ground),
    };
    return cmocka_run_group_tests_name("runtime_regimes", tests, NULL, NULL);
}
