#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tune/rule/statistics.h"

#include <math.h>
#include <stdbool.h>

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
        cmocka_unit_test(the_interval_of_a_median_holds_it_and_narrows),
        cmocka_unit_test(a_ratio_of_medians_needs_no_pairs_and_heeds_no_outlier),
        cmocka_unit_test(a_clear_ratio_excludes_one_and_an_unclear_one_does_not),
        cmocka_unit_test(random_orders_are_permutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
