#include "hone/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static hone_bound_space *bound_to_nothing(const char *text)
{
    hone_space *space;
    hone_bound_space *bound;
    assert_int_equal(hone_space_parse(hone_allocator_system(), text, &space, NULL), HONE_OK);
    assert_int_equal(hone_space_bind(space, NULL, NULL, &bound, NULL), HONE_OK);
    hone_space_release(&space);
    return bound;
}

static bool equal(const hone_config *a, const hone_config *b)
{
    return a->count == b->count && memcmp(a->values, b->values, a->count * sizeof *a->values) == 0;
}

static void assert_valid_and_distinct(const hone_bound_space *bound, const hone_config *configs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(hone_bound_space_check(bound, &configs[i], NULL), HONE_OK);
        for (size_t j = 0; j < i; j++)
            assert_false(equal(&configs[i], &configs[j]));
    }
}

static size_t sampled(const hone_bound_space *bound, uint64_t seed, hone_config *configs, size_t wanted)
{
    size_t count = SIZE_MAX;
    assert_int_equal(hone_bound_space_sample(bound, seed, wanted, configs, &count, NULL), HONE_OK);
    assert_valid_and_distinct(bound, configs, count);
    return count;
}

static const char small[] = "a: 1..8\nb: 1..8\nc: x | y | z\nwhere a < b";

static void a_sample_is_valid_distinct_and_the_same_for_the_same_seed(void **state)
{
    (void)state;
    hone_config first[20], second[20], other[20];
    hone_bound_space *bound = bound_to_nothing(small);
    assert_int_equal(sampled(bound, 1, first, 20), 20);
    assert_int_equal(sampled(bound, 1, second, 20), 20);
    assert_int_equal(sampled(bound, 2, other, 20), 20);
    size_t differing = 0;
    for (size_t i = 0; i < 20; i++) {
        assert_true(equal(&first[i], &second[i]));
        differing += !equal(&first[i], &other[i]);
    }
    assert_true(differing > 10);
    hone_bound_space_release(&bound);
}

static void a_smaller_sample_is_the_beginning_of_a_larger_one(void **state)
{
    (void)state;
    hone_config few[5], many[50];
    hone_bound_space *bound = bound_to_nothing(small);
    sampled(bound, 3, few, 5);
    sampled(bound, 3, many, 50);
    for (size_t i = 0; i < 5; i++)
        assert_true(equal(&few[i], &many[i]));
    hone_bound_space_release(&bound);
}

static void more_than_there_are_gives_all(void **state)
{
    (void)state;
    hone_config configs[200];
    hone_bound_space *bound = bound_to_nothing(small);
    assert_int_equal(sampled(bound, 9, configs, 200), 84);
    assert_int_equal(sampled(bound, 9, configs, 0), 0);
    hone_bound_space_release(&bound);
    bound = bound_to_nothing("");
    assert_int_equal(sampled(bound, 9, configs, 3), 1);
    assert_int_equal(configs[0].count, 0);
    hone_bound_space_release(&bound);
    bound = bound_to_nothing("a: 1..3\nb: 1..3\nwhere a > 5\nwhere b > 1");
    assert_int_equal(sampled(bound, 9, configs, 3), 0);
    hone_bound_space_release(&bound);
    bound = bound_to_nothing("a: 1..3\nwhere 1 > 2");
    assert_int_equal(sampled(bound, 9, configs, 3), 0);
    hone_bound_space_release(&bound);
}

// 28 pairs, 2,800 samples of 7: each pair is expected in 700. Five standard deviations are 115.
static void every_config_is_as_likely_as_any_other(void **state)
{
    (void)state;
    size_t seen[9][9] = {{0}};
    hone_bound_space *bound = bound_to_nothing("a: 1..8\nb: 1..8\nwhere a < b");
    for (uint64_t seed = 0; seed < 2800; seed++) {
        size_t count;
        hone_config configs[7];
        assert_int_equal(hone_bound_space_sample(bound, seed, 7, configs, &count, NULL), HONE_OK);
        for (size_t i = 0; i < count; i++)
            seen[configs[i].values[0]][configs[i].values[1]]++;
    }
    for (size_t a = 1; a <= 8; a++)
        for (size_t b = a + 1; b <= 8; b++)
            assert_in_range(seen[a][b], 700 - 115, 700 + 115);
    hone_bound_space_release(&bound);
}

static void spaces_beyond_64_bits_are_sampled(void **state)
{
    (void)state;
    static hone_config configs[300];
    hone_bound_space *bound = bound_to_nothing(
        "a: 1..60000\nb: 1..60000\nc: 1..60000\nd: 1..60000\ne: 1..60000\nwhere a < b and (c + d) % 2 == 0");
    assert_int_equal(sampled(bound, 5, configs, 300), 300);
    size_t low = 0;
    for (size_t i = 0; i < 300; i++)
        low += configs[i].values[4] <= 30000;
    assert_in_range(low, 100, 200);
    hone_bound_space_release(&bound);
}

// 33 of 10,890,000 pairs: too many values to list, too few configs to be found by drawing.
static void sparse_spaces_are_sampled_by_enumerating(void **state)
{
    (void)state;
    hone_config configs[7];
    hone_bound_space *bound = bound_to_nothing("a: 1..3300\nb: 1..3300\nwhere a == b and (a + b) % 200 == 0");
    assert_int_equal(sampled(bound, 5, configs, 7), 7);
    hone_bound_space_release(&bound);
}

// One config in 99,991 of 10^12, and no two beginnings are alike.
static void of_a_large_sparse_tangle_a_few_are_met(void **state)
{
    (void)state;
    hone_config first[300], second[300];
    hone_bound_space *bound =
        bound_to_nothing("a: 1..1000\nb: 1..1000\nc: 1..1000\nd: 1..1000\nwhere (a * b + c * d) % 99991 == 3");
    size_t count = sampled(bound, 5, first, 300);
    assert_in_range(count, 1, 299);
    assert_int_equal(sampled(bound, 5, second, 300), count);
    for (size_t i = 0; i < count; i++)
        assert_true(equal(&first[i], &second[i]));
    hone_bound_space_release(&bound);
}

static void a_tangle_of_which_none_is_met_is_refused(void **state)
{
    (void)state;
    size_t count = 7;
    hone_error err = {0};
    hone_config config;
    hone_bound_space *bound =
        bound_to_nothing("a: 0..9999\nb: 0..9999\nc: 0..9999\nd: 0..9999\ne: 0..9999\nf: 0..9999\n"
                         "where a * b + c * d + e * f == 123456789 and (a + c * e) % 9973 == 5 and b * d % 7919 == 11");
    assert_int_equal(hone_bound_space_sample(bound, 1, 1, &config, &count, &err), HONE_UNSUPPORTED);
    assert_non_null(strstr(err.message, "of 1000000 random configs none was valid"));
    assert_int_equal(count, 7);
    assert_int_equal(hone_bound_space_default(bound, &config, &err), HONE_UNSUPPORTED);
    assert_non_null(strstr(err.message, "give the parameters defaults that fulfil them"));
    hone_bound_space_release(&bound);
}

static void a_constraint_that_cannot_be_evaluated_is_reported(void **state)
{
    (void)state;
    size_t count = 7;
    hone_error err = {0};
    hone_config configs[2];
    hone_bound_space *bound = bound_to_nothing("a: 0 | 1\nwhere 4 % a == 0");
    assert_int_equal(hone_bound_space_sample(bound, 1, 2, configs, &count, &err), HONE_INVALID_ARGUMENT);
    assert_string_equal(err.message, "'where 4 % a == 0' cannot be evaluated for a=0: division by zero");
    assert_int_equal(count, 7);
    hone_bound_space_release(&bound);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_is_valid_distinct_and_the_same_for_the_same_seed),
        cmocka_unit_test(a_smaller_sample_is_the_beginning_of_a_larger_one),
        cmocka_unit_test(more_than_there_are_gives_all),
        cmocka_unit_test(every_config_is_as_likely_as_any_other),
        cmocka_unit_test(spaces_beyond_64_bits_are_sampled),
        cmocka_unit_test(sparse_spaces_are_sampled_by_enumerating),
        cmocka_unit_test(of_a_large_sparse_tangle_a_few_are_met),
        cmocka_unit_test(a_tangle_of_which_none_is_met_is_refused),
        cmocka_unit_test(a_constraint_that_cannot_be_evaluated_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
