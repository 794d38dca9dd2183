// Contests over recorded spaces: every failed allocation is survived, ties end the same, and who is in place stays
// there.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "failing_allocator.h"
#include "simulate/recorded_measurer.h"
#include "simulate/simulate.h"

#include <stdio.h>
#include <string.h>

// A cache file of one parameter, x from 0, with a time for each; four samples of the same time.
static hone_recorded *record(const double *times, size_t count)
{
    hone_buffer text;
    hone_error err = {0};
    hone_recorded *recorded = NULL;
    hone_buffer_init(&text, hone_allocator_system());
    hone_buffer_text(&text, "{\"device_name\":\"Maker One\",\"kernel_name\":\"made_up\",\"tune_params_keys\":[\"x\"],");
    hone_buffer_text(&text, "\"tune_params\":{\"x\":[");
    for (size_t i = 0; i < count; i++)
        hone_buffer_format(&text, "%s%zu", i > 0 ? "," : "", i);
    hone_buffer_text(&text, "]},\"cache\":{");
    for (size_t i = 0; i < count; i++)
        hone_buffer_format(
            &text,
            "%s\"%zu\":{\"x\":%zu,\"time\":%g,\"times\":[%g,%g,%g,%g],\"compile_time\":10,\"verification_time\":0,"
            "\"benchmark_time\":4,\"strategy_time\":0,\"framework_time\":0}",
            i > 0 ? "," : "", i, i, times[i], times[i], times[i], times[i], times[i]);
    hone_buffer_text(&text, "}}");
    assert_false(text.failed);
    hone_status status = hone_recorded_parse(hone_allocator_system(), "made up", text.data, text.size, &recorded, &err);
    if (status != HONE_OK) fail_msg("%s", err.message);
    hone_buffer_deinit(&text);
    return recorded;
}

static hone_simulation all_of(const hone_recorded *recorded)
{
    return (hone_simulation){.recorded = recorded, .name = "made up", .evaluations = 100, .races = true};
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    const double times[] = {5, 4, 3, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    hone_recorded *recorded = record(times, 12);
    const hone_simulation simulation = all_of(recorded);
    bool done = false;
    for (long long allowed = 0; !done; allowed++) {
        failing_allocator memory;
        hone_error err = {0};
        const hone_allocator allocator = failing_allocator_of(&memory, allowed);
        hone_buffer out;
        hone_buffer_init(&out, allocator);
        hone_status status = hone_simulate(&allocator, &simulation, &out, &err);
        done = status == HONE_OK;
        if (!done) assert_int_equal(status, HONE_OUT_OF_MEMORY);
        hone_buffer_deinit(&out);
        assert_int_equal(memory.live, 0);
        assert_true(allowed < 5000);
    }
    hone_recorded_destroy(&recorded);
}

// The choice of a contest over the space with x = incumbent in its place; -1: nobody is.
static int64_t chosen(const hone_recorded *recorded, uint64_t seed, int64_t incumbent)
{
    hone_device_info device = {0};
    const hone_tune_environment environment = {.allocator = hone_allocator_system(), .device = &device};
    const hone_algorithm_entry algorithm = {.name = "made_up", .version = "recorded"};
    hone_kernel_ref kernel = {
        .algorithm = &algorithm,
        .kernel = {.name = "made_up", .revision = "1"},
        .space = hone_recorded_space(recorded)};
    const hone_tune_options options = {.evaluations = 100, .patience = 1000, .seconds = 1e6, .seed = seed};
    hone_recorded_replay replay;
    hone_contest contest;
    hone_contest_state *state = NULL;
    hone_error err = {0};
    const hone_allocator *allocator = &environment.allocator;
    assert_int_equal(hone_recorded_replay_init(&replay, allocator, recorded, true, &err), HONE_OK);
    assert_int_equal(
        hone_contest_create(&(hone_contest_request){&environment, &algorithm, NULL, &options}, &contest, &state, &err),
        HONE_OK);
    state->trials.measurer = &hone_recorded_measurer;
    state->trials.measurer_ctx = &replay;
    state->field.contestants = hone_alloc(allocator, sizeof *state->field.contestants);
    state->field.rows = contest.kernels = hone_alloc(allocator, sizeof *contest.kernels);
    state->field.count = contest.count = 1;
    contest.kernels[0].kernel = &kernel;
    state->field.contestants[0] = (hone_contestant){
        .ref = &kernel, .configs = hone_recorded_configs(recorded), .config_count = hone_recorded_count(recorded)};
    assert_int_equal(hone_space_bind(kernel.space, NULL, NULL, &state->field.contestants[0].space, &err), HONE_OK);
    if (incumbent >= 0)
        state->known.incumbent = (hone_incumbent){true, 0, hone_recorded_configs(recorded)[incumbent], 0};
    if (hone_contest_compete(state, &err) != HONE_OK) fail_msg("%s", err.message);
    int64_t x = contest.decision.config.values[0];
    hone_contest_destroy(&state);
    hone_contest_deinit(&contest);
    hone_recorded_replay_deinit(&replay, allocator);
    return x;
}

static void a_tie_always_ends_the_same(void **state)
{
    (void)state;
    const double times[] = {9, 2.004, 2.002, 2.0, 9, 9, 9, 9};
    hone_recorded *recorded = record(times, 8);
    for (uint64_t seed = 0; seed < 10; seed++)
        assert_int_equal(chosen(recorded, seed, -1), 1);
    hone_recorded_destroy(&recorded);
}

static void what_is_certainly_slower_is_no_tie(void **state)
{
    (void)state;
    const double times[] = {9, 2.05, 2.04, 2.0, 9, 9, 9, 9};
    hone_recorded *recorded = record(times, 8);
    for (uint64_t seed = 0; seed < 10; seed++)
        assert_int_equal(chosen(recorded, seed, -1), 3);
    hone_recorded_destroy(&recorded);
}

static void the_incumbent_stays_unless_another_is_certainly_faster(void **state)
{
    (void)state;
    const double times[] = {9, 2.004, 2.002, 2.0, 2.05, 9, 9, 9};
    hone_recorded *recorded = record(times, 8);
    assert_int_equal(chosen(recorded, 1, 2), 2);
    assert_int_equal(chosen(recorded, 1, 3), 3);
    // 2.5 % slower, and every round says so; and one that is no finalist at all.
    assert_int_equal(chosen(recorded, 1, 4), 1);
    assert_int_equal(chosen(recorded, 1, 7), 1);
    hone_recorded_destroy(&recorded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failed_allocation_is_survived),
        cmocka_unit_test(a_tie_always_ends_the_same),
        cmocka_unit_test(what_is_certainly_slower_is_no_tie),
        cmocka_unit_test(the_incumbent_stays_unless_another_is_certainly_faster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
