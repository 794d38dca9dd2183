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

enum { RECORDED = 800, MOST_SERIES = 1000, FEW_SERIES = 200 };

// How programs of a series differ: turns of a pair that follow each other as they were recorded, so that a neighbour that came
// stays a while, or any; and by how much a start of a program can be off, as a share.
typedef struct noise {
    size_t turns;
    bool in_order;
    double start;
} noise;

static double recorded[RECORDED];
static bool tells; // HONE_TEST_TELL: the counts, of five times as many series
static int series = FEW_SERIES;

void cli_no_memory(void)
{
    abort();
}

static int read_steps(void **state)
{
    (void)state;
    tells = getenv("HONE_TEST_TELL") != NULL;
    if (tells) series = MOST_SERIES;
    FILE *file = fopen(HONE_TEST_DATA "/unit/cli/steps.txt", "r");
    assert_non_null(file);
    for (size_t i = 0; i < RECORDED; i++)
        assert_int_equal(fscanf(file, "%lf", &recorded[i]), 1);
    fclose(file);
    return 0;
}

// -1 to 1
static double draw_start(uint64_t *seed)
{
    return (double)hone_random_below(seed, 2001) / 1000 - 1;
}

// What a pair says: the median of its turns, each of random order.
static double draw(uint64_t *seed, const noise *n, double truth)
{
    double ratios[128];
    const double starts = n->start * (draw_start(seed) - draw_start(seed));
    const uint32_t first = hone_random_below(seed, RECORDED);
    for (uint32_t i = 0; i < n->turns; i++) {
        const double ratio = recorded[n->in_order ? (first + i) % RECORDED : hone_random_below(seed, RECORDED)];
        ratios[i] = truth * exp(starts) * (hone_random_below(seed, 2) == 0 ? ratio : 1 / ratio);
    }
    return cli_median(ratios, n->turns);
}

// After how many pairs the interval leaves 1 out for the first time; 0: never.
static size_t claim_after(uint64_t *seed, size_t most, const noise *n, double truth, int *out_side)
{
    cli_pairs pairs = {0};
    *out_side = 0;
    while (pairs.count < most && *out_side == 0) {
        cli_pairs_add(&pairs, draw(seed, n, truth));
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
    const noise kinds[] = {{1, false, 0}, {50, false, 0}, {50, true, 0}, {50, true, 0.01}, {50, true, 0.03}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        int claims = 0, side;
        for (int i = 0; i < series; i++)
            claims += claim_after(&seed, 100, &kinds[k], 1, &side) > 0;
        if (tells) printf("equal, kind %zu: %d of %d claims\n", k, claims, series);
        assert_true(claims <= series / 20);
    }
}

static void two_percent_are_found_in_19_of_20_series_of_50_turns_a_pair(void **state)
{
    (void)state;
    uint64_t seed = 8;
    const noise kinds[] = {{50, false, 0}, {50, true, 0}, {50, true, 0.01}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        int found = 0, wrong = 0, side;
        double needed[MOST_SERIES];
        for (int i = 0; i < series; i++) {
            const size_t count = claim_after(&seed, 120, &kinds[k], 1.02, &side);
            needed[i] = count > 0 ? (double)count : 120;
            found += side > 0;
            wrong += side < 0;
        }
        const double middle = cli_median(needed, (size_t)series);
        if (tells)
            printf(
                "2 %%, kind %zu: %d of %d found, %d wrong; pairs %.0f, 95 %% %.0f\n", k, found, series, wrong, middle,
                needed[series * 19 / 20]);
        assert_true(found >= series * 19 / 20);
        assert_true(wrong <= series / 200);
    }
}

static void the_truth_lies_in_every_interval_of_19_of_20_series(void **state)
{
    (void)state;
    uint64_t seed = 9;
    int held = 0;
    const double truth = 0.7;
    const noise any = {1, false, 0};
    for (int i = 0; i < series; i++) {
        cli_pairs pairs = {0};
        bool holds = true;
        for (int k = 0; k < 40 && holds; k++) {
            cli_pairs_add(&pairs, draw(&seed, &any, truth));
            holds = !is_refuted(&pairs, log(truth), 1) && !is_refuted(&pairs, log(truth), -1);
        }
        held += holds;
        cli_pairs_clear(&pairs);
    }
    assert_true(held >= series * 19 / 20);
}

static void the_whole_interval_agrees_with_the_refuted_ratios(void **state)
{
    (void)state;
    uint64_t seed = 10;
    const noise fifty = {50, false, 0};
    cli_pairs pairs = {0};
    cli_ratio ratio = cli_pairs_ratio(&pairs);
    assert_true(ratio.low == 0 && isinf(ratio.high));
    for (int k = 0; k < 30; k++)
        cli_pairs_add(&pairs, draw(&seed, &fifty, 1.02));
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
        cmocka_unit_test(the_whole_interval_agrees_with_the_refuted_ratios),
        cmocka_unit_test(one_pair_that_is_far_off_moves_little),
    };
    return cmocka_run_group_tests(tests, read_steps, NULL);
}
