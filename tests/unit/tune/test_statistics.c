#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "os/waits.h"
#include "platforms/platform.h"
#include "tune/rule/statistics.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static void medians_of_odd_and_even_counts(void **state)
{
    (void)state;
    double odd[] = {5, 1, 9, 3, 7}, even[] = {4, 1, 3, 2}, one[] = {6};
    assert_true(hone_median(odd, 5).middle == 5);
    assert_true(hone_median(even, 4).middle == 2.5);
    hone_interval single = hone_median(one, 1);
    assert_true(single.middle == 6 && single.low == 6 && single.high == 6);
}

static void a_center_is_the_mean_without_what_was_disturbed(void **state)
{
    (void)state;
    double skewed[] = {10, 10, 11, 10, 14, 10.5, 13}, disturbed[] = {10, 11, 12, 500, 13, 14}, equal[] = {7, 7, 7, 90};
    assert_true(fabs(hone_center(skewed, 7) - 78.5 / 7) < 1e-9);
    assert_true(fabs(hone_center(disturbed, 6) - 12) < 1e-9);
    assert_true(hone_center(equal, 4) == 7);
}

static void the_interval_of_a_median_holds_it_and_narrows(void **state)
{
    (void)state;
    double samples[100];
    uint64_t random = 1;
    for (int i = 0; i < 100; i++)
        samples[i] = 100 + (double)(hone_random_next(&random) % 1000) / 100;
    hone_interval all = hone_median(samples, 100);
    assert_true(all.low < all.middle && all.middle < all.high);
    assert_true(all.low > 102 && all.high < 108);
    double few[] = {1, 2, 3, 4, 5};
    hone_interval wide = hone_median(few, 5);
    assert_true(wide.low == 1 && wide.high == 5);
}

static void a_ratio_of_medians_needs_no_pairs_and_heeds_no_outlier(void **state)
{
    (void)state;
    double a[40], b[25];
    uint64_t random = 5;
    for (int i = 0; i < 40; i++)
        a[i] = 100 + (double)(hone_random_next(&random) % 100) / 50;
    for (int i = 0; i < 25; i++)
        b[i] = 110 + (double)(hone_random_next(&random) % 100) / 50;
    b[3] = b[17] = 5000;
    hone_interval ratio = hone_median_ratio(a, 40, b, 25, 1), same = hone_median_ratio(a, 20, a + 20, 20, 1);
    assert_true(ratio.middle > 1.09 && ratio.middle < 1.11);
    assert_true(ratio.low > 1.08 && ratio.low <= ratio.middle && ratio.high >= ratio.middle && ratio.high < 1.12);
    assert_true(same.low < 1.005 && same.high > 0.995);
    hone_interval again = hone_median_ratio(a, 40, b, 25, 1);
    assert_true(again.low == ratio.low && again.high == ratio.high);
}

static void a_clear_ratio_excludes_one_and_an_unclear_one_does_not(void **state)
{
    (void)state;
    double a[16], b[16], c[16];
    uint64_t random = 3;
    for (int i = 0; i < 16; i++) {
        double disturbance = 1 + (double)(hone_random_next(&random) % 100) / 1000;
        a[i] = 100 * disturbance;
        b[i] = 105 * disturbance; // what disturbs a round disturbs both
        c[i] = 100 * (1 + (double)(hone_random_next(&random) % 100) / 1000);
    }
    hone_interval clear = hone_ratio(a, b, 16, 1), unclear = hone_ratio(a, c, 16, 1);
    assert_true(fabs(clear.middle - 1.05) < 1e-9 && clear.low > 1.0);
    assert_true(unclear.low < 1 && unclear.high > 1);
    hone_interval again = hone_ratio(a, c, 16, 1);
    assert_true(again.low == unclear.low && again.high == unclear.high);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Resamples as they are defined, each made and sorted: what counting how often a sample was drawn must come to.
static void an_interval_is_that_of_resamples_that_are_made(void **state)
{
    (void)state;
    enum { RESAMPLES = 1000, MOST = 40 };
    uint64_t random = 11;
    for (uint32_t count = 1; count <= MOST; count++) {
        double a[MOST], b[MOST], ratios[RESAMPLES], one[MOST], other[MOST];
        for (uint32_t i = 0; i < count; i++) {
            a[i] = 100 + hone_random_below(&random, count % 2 == 0 ? 1000 : 4); // many alike in every other one
            b[i] = (90 + hone_random_below(&random, 50)) * (hone_random_below(&random, 8) == 0 ? 9 : 1);
        }
        uint64_t seed = count;
        for (int r = 0; r < RESAMPLES; r++) {
            for (uint32_t i = 0; i < count; i++) {
                const uint32_t drawn = hone_random_below(&seed, count);
                one[i] = a[drawn];
                other[i] = b[drawn];
            }
            ratios[r] = hone_center(other, count) / hone_center(one, count);
        }
        qsort(ratios, RESAMPLES, sizeof ratios[0], by_size);
        const hone_interval ratio = hone_ratio(a, b, count, count);
        assert_true(fabs(ratio.low / ratios[RESAMPLES / 40] - 1) < 1e-12);
        assert_true(fabs(ratio.high / ratios[RESAMPLES - 1 - RESAMPLES / 40] - 1) < 1e-12);
    }
}

// Rounds of two equal choices. Both share the machine's state, and one is off by what changes slowly: `kept` of it stays
// from round to round.
static void make_equal_rounds(uint64_t *random, double kept, hone_sample *a, hone_sample *b, uint32_t count)
{
    const double fresh = sqrt(1 - kept * kept);
    double off = 0;
    for (uint32_t i = 0; i < count; i++) {
        double drawn = 0; // nearly normal
        for (int j = 0; j < 4; j++)
            drawn += (double)hone_random_below(random, 2001) / 1000 - 1;
        off = i == 0 ? drawn : kept * off + fresh * drawn;
        const double machine = 100 + hone_random_below(random, 100);
        a[i] = (hone_sample){.time_ns = machine};
        b[i] = (hone_sample){.time_ns = machine * exp(0.01 * off)};
    }
}

// How many of so many series have an interval that holds 1, and the mean width of the intervals.
static int count_holding(double kept, uint32_t count, int series, double *out_width)
{
    hone_sample a[256], b[256];
    uint64_t random = 7;
    int holding = 0;
    *out_width = 0;
    for (int i = 0; i < series; i++) {
        make_equal_rounds(&random, kept, a, b, count);
        const hone_interval ratio = hone_rounds_ratio(a, b, count, 5);
        holding += ratio.low <= 1 && ratio.high >= 1;
        *out_width += (ratio.high - ratio.low) / series;
    }
    return holding;
}

// Of 1,000 duels of equal choices 50 may claim a difference.
static void an_interval_holds_the_truth_where_rounds_follow_each_other(void **state)
{
    (void)state;
    static const struct {
        double kept;
        uint32_t count;
        int holding;
    } rows[] = {{0, 12, 930}, {0, 48, 930}, {0, 256, 930}, {0.5, 48, 900}, {0.5, 256, 920}, {0.8, 256, 890}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double width;
        const int holding = count_holding(rows[i].kept, rows[i].count, 1000, &width);
        if (holding < rows[i].holding || holding > 990)
            fail_msg("%u rounds, %g kept: %d of 1000", rows[i].count, rows[i].kept, holding);
    }
    double alone, following;
    count_holding(0, 256, 100, &alone);
    count_holding(0.8, 256, 100, &following);
    assert_true(alone < 0.006 && following > 1.5 * alone && following < 4 * alone);
}

static void a_round_that_was_disturbed_on_one_side_does_not_count(void **state)
{
    (void)state;
    hone_sample a[20], b[20];
    for (uint32_t i = 0; i < 20; i++) {
        a[i] = (hone_sample){.time_ns = 100 * (1 + i % 7)}; // what both share is in neither
        b[i] = (hone_sample){.time_ns = 103 * (1 + i % 7)};
        if (i % 3 != 0) continue;
        b[i] = (hone_sample){.time_ns = 3 * b[i].time_ns, .waited = 0.1, .marks = HONE_OS_WAITED};
    }
    const hone_interval ratio = hone_rounds_ratio(a, b, 20, 5), inverse = hone_rounds_ratio(b, a, 20, 5);
    assert_true(fabs(ratio.middle - 1.03) < 1e-9 && fabs(ratio.low - 1.03) < 1e-9 && fabs(ratio.high - 1.03) < 1e-9);
    assert_true(fabs(inverse.middle * 1.03 - 1) < 1e-9);
}

static void all_rounds_count_less_their_waits_if_few_were_undisturbed(void **state)
{
    (void)state;
    hone_sample a[12], b[12];
    for (uint32_t i = 0; i < 12; i++) {
        a[i] = (hone_sample){.time_ns = 100};
        b[i] = (hone_sample){.time_ns = 150, .waited = 0.2 + 0.01 * i, .marks = i % 3 != 0 ? HONE_OS_WAITED : 0};
    }
    // Four were left alone, and stand above the others; of all, the middle two waited for 24 and 22 %.
    assert_true(fabs(hone_rounds_ratio(a, b, 12, 5).middle - 1.5 * sqrt(0.76 * 0.78)) < 1e-9);
    assert_true(fabs(hone_rounds_ratio(a, b, 12, 4).middle - 1.5) < 1e-9);
    assert_true(fabs(hone_rounds_ratio(a, b, 1, 5).low - 1.5) < 1e-9);
    for (uint32_t i = 0; i < 12; i++)
        b[i] = (hone_sample){.time_ns = 100 + i, .marks = HONE_DEVICE_SHARED}; // how long it waited nobody knows
    const hone_interval shared = hone_rounds_ratio(a, b, 12, 5);
    assert_true(fabs(shared.middle - sqrt(1.05 * 1.06)) < 1e-9 && shared.low < 1.03 && shared.high > 1.08);
}

static void an_interval_of_few_rounds_ends_between_two_of_them(void **state)
{
    (void)state;
    hone_sample a[7], b[7];
    for (uint32_t i = 0; i < 7; i++) {
        a[i] = (hone_sample){.time_ns = 100};
        b[i] = (hone_sample){.time_ns = 100 * exp(0.01 * i)};
    }
    const hone_interval seven = hone_rounds_ratio(a, b, 7, 5), four = hone_rounds_ratio(a, b, 4, 5);
    assert_true(fabs(log(seven.low) - 0.01 * (3 - 0.98 * sqrt(7))) < 1e-9);
    assert_true(fabs(log(seven.high) - 0.01 * (3 + 0.98 * sqrt(7))) < 1e-9);
    assert_true(four.low == 1 && fabs(log(four.high) - 0.03) < 1e-9); // all of them
}

static void the_order_of_rounds_counts_and_that_of_disturbance_does_not(void **state)
{
    (void)state;
    hone_sample a[64], b[64], sorted[64];
    for (uint32_t i = 0; i < 64; i++) {
        a[i] = (hone_sample){.time_ns = 100, .waited = 0.001 * (i * 37 % 64)}; // below what marks a sample
        b[i] = (hone_sample){.time_ns = 100 + i};
        sorted[i * 37 % 64] = b[i];
    }
    const hone_interval drifting = hone_rounds_ratio(a, b, 64, 5), mixed = hone_rounds_ratio(a, sorted, 64, 5);
    assert_true(fabs(drifting.middle - mixed.middle) < 1e-9);
    assert_true(drifting.high - drifting.low > 2 * (mixed.high - mixed.low));
}

static void random_orders_are_permutations(void **state)
{
    (void)state;
    uint64_t random = 9;
    uint32_t order[8];
    for (int turn = 0; turn < 100; turn++) {
        uint32_t seen = 0;
        hone_random_order(&random, 8, order);
        for (int i = 0; i < 8; i++)
            seen |= 1u << order[i];
        assert_int_equal(seen, 0xff);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians_of_odd_and_even_counts),
        cmocka_unit_test(a_center_is_the_mean_without_what_was_disturbed),
        cmocka_unit_test(an_interval_is_that_of_resamples_that_are_made),
        cmocka_unit_test(the_interval_of_a_median_holds_it_and_narrows),
        cmocka_unit_test(a_ratio_of_medians_needs_no_pairs_and_heeds_no_outlier),
        cmocka_unit_test(a_clear_ratio_excludes_one_and_an_unclear_one_does_not),
        cmocka_unit_test(an_interval_holds_the_truth_where_rounds_follow_each_other),
        cmocka_unit_test(a_round_that_was_disturbed_on_one_side_does_not_count),
        cmocka_unit_test(all_rounds_count_less_their_waits_if_few_were_undisturbed),
        cmocka_unit_test(an_interval_of_few_rounds_ends_between_two_of_them),
        cmocka_unit_test(the_order_of_rounds_counts_and_that_of_disturbance_does_not),
        cmocka_unit_test(random_orders_are_permutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
