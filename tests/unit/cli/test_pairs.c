// The interval of a ratio that may be looked at after every pair: how often it leaves out the truth at any time, and how many
// pairs it needs. steps.txt has ratios of two successive steps, of 15 ms, of one program beside two busy processes on a
// machine of two processors that had other work, too: half of them are 15 % off.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../../cli/pairs.c"
#include "base/random.h"

enum { RECORDED = 800, SERIES = 1000 };

static double recorded[RECORDED];

void cli_no_memory(void)
{
    abort();
}

static int read_steps(void **state)
{
    (void)state;
    FILE *file = fopen(HONE_TEST_DATA "/unit/cli/steps.txt", "r");
    assert_non_null(file);
    for (size_t i = 0; i < RECORDED; i++)
        assert_int_equal(fscanf(file, "%lf", &recorded[i]), 1);
    fclose(file);
    return 0;
}

// What a pair says: the median of as many turns, each of random order.
static double draw(uint64_t *seed, size_t turns, double truth)
{
    double ratios[128];
    for (size_t i = 0; i < turns; i++) {
        const double ratio = recorded[hone_random_below(seed, RECORDED)];
        ratios[i] = truth * (hone_random_below(seed, 2) == 0 ? ratio : 1 / ratio);
    }
    return median(ratios, turns);
}

// After how many pairs the interval leaves 1 out for the first time; 0: never.
static size_t claim_after(uint64_t *seed, size_t most, size_t turns, double truth, int *out_side)
{
    cli_pairs pairs = {0};
    *out_side = 0;
    while (pairs.count < most && *out_side == 0) {
        cli_pairs_add(&pairs, draw(seed, turns, truth));
        if (is_refuted(&pairs, 0, 1)) *out_side = 1;
        if (is_refuted(&pairs, 0, -1)) *out_side = -1;
    }
    const size_t count = *out_side == 0 ? 0 : pairs.count;
    cli_pairs_clear(&pairs);
    return count;
}

static void nothing_is_claimed_of_equal_programs_in_19_of_20_series_however_often_one_looks(void **state)
{
    (void)state;
    uint64_t seed = 7;
    const size_t turns[] = {1, 50};
    for (size_t k = 0; k < 2; k++) {
        int claims = 0, side;
        for (int i = 0; i < SERIES; i++)
            claims += claim_after(&seed, 100, turns[k], 1, &side) > 0;
        assert_true(claims <= SERIES / 20);
    }
}

static void two_percent_are_found_in_19_of_20_series_of_50_turns_a_pair(void **state)
{
    (void)state;
    uint64_t seed = 8;
    int found = 0, wrong = 0, side;
    for (int i = 0; i < SERIES; i++) {
        claim_after(&seed, 120, 50, 1.02, &side);
        found += side > 0;
        wrong += side < 0;
    }
    assert_true(found >= SERIES * 19 / 20);
    assert_true(wrong <= SERIES / 200);
}

static void the_truth_lies_in_every_interval_of_19_of_20_series(void **state)
{
    (void)state;
    uint64_t seed = 9;
    int held = 0;
    const double truth = 0.7;
    for (int i = 0; i < SERIES; i++) {
        cli_pairs pairs = {0};
        bool holds = true;
        for (int k = 0; k < 40 && holds; k++) {
            cli_pairs_add(&pairs, draw(&seed, 1, truth));
            holds = !is_refuted(&pairs, log(truth), 1) && !is_refuted(&pairs, log(truth), -1);
        }
        held += holds;
        cli_pairs_clear(&pairs);
    }
    assert_true(held >= SERIES * 19 / 20);
}

static void one_look_at_the_whole_interval_agrees_with_what_is_refuted(void **state)
{
    (void)state;
    uint64_t seed = 10;
    cli_pairs pairs = {0};
    cli_ratio ratio = cli_pairs_ratio(&pairs);
    assert_true(ratio.low == 0 && isinf(ratio.high));
    for (int k = 0; k < 30; k++)
        cli_pairs_add(&pairs, draw(&seed, 50, 1.02));
    ratio = cli_pairs_ratio(&pairs);
    assert_true(ratio.low < ratio.middle && ratio.middle < ratio.high);
    assert_float_equal(ratio.middle, 1.02, 0.02);
    assert_true(is_refuted(&pairs, log(ratio.low) - 1e-6, 1) && !is_refuted(&pairs, log(ratio.low) + 1e-6, 1));
    assert_true(is_refuted(&pairs, log(ratio.high) + 1e-6, -1) && !is_refuted(&pairs, log(ratio.high) - 1e-6, -1));
    cli_pairs_clear(&pairs);
}

static void one_pair_that_is_far_off_moves_little(void **state)
{
    (void)state;
    cli_pairs pairs = {0};
    for (int k = 0; k < 20; k++)
        cli_pairs_add(&pairs, k % 2 == 0 ? 1.001 : 0.999);
    const cli_ratio before = cli_pairs_ratio(&pairs);
    cli_pairs_add(&pairs, 50);
    const cli_ratio after = cli_pairs_ratio(&pairs);
    assert_true(after.low <= 1 && after.high >= 1);
    assert_true(fabs(after.middle - before.middle) < 0.002);
    cli_pairs_clear(&pairs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_claimed_of_equal_programs_in_19_of_20_series_however_often_one_looks),
        cmocka_unit_test(two_percent_are_found_in_19_of_20_series_of_50_turns_a_pair),
        cmocka_unit_test(the_truth_lies_in_every_interval_of_19_of_20_series),
        cmocka_unit_test(one_look_at_the_whole_interval_agrees_with_what_is_refuted),
        cmocka_unit_test(one_pair_that_is_far_off_moves_little),
    };
    return cmocka_run_group_tests(tests, read_steps, NULL);
}
