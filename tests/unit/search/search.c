#include "search/search.h"

#include "failing_allocator.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char grid[] = "x: 0..15\ny: 0..15\nz: 0..7";
static const char slanted[] = "x: 0..15\ny: 0..15\nwhere x + y <= 9";

static hone_bound_space *bound_to_nothing(const char *text)
{
    hone_space *space;
    hone_bound_space *bound;
    assert_int_equal(hone_space_parse(hone_allocator_system(), text, &space, NULL), HONE_OK);
    assert_int_equal(hone_space_bind(space, NULL, NULL, &bound, NULL), HONE_OK);
    hone_space_release(&space);
    return bound;
}

static hone_search *created(const hone_bound_space *bound, const hone_search_options *options)
{
    hone_search *search;
    hone_allocator allocator = hone_allocator_system();
    assert_int_equal(hone_search_create(&allocator, bound, options, &search, NULL), HONE_OK);
    return search;
}

static bool equal(const hone_config *a, const hone_config *b)
{
    return a->count == b->count && memcmp(a->values, b->values, a->count * sizeof *a->values) == 0;
}

// A valley with its floor at (11, 3, 5).
static double valley(const hone_config *config)
{
    double x = (double)config->values[0] - 11, y = (double)config->values[1] - 3, z = (double)config->values[2] - 5;
    return 1 + x * x + y * y + z * z + .5 * fabs(x * y);
}

// Asks and tells until the space is exhausted or `limit` configs were paid for.
static size_t run(hone_search *search, hone_config *out, size_t limit, double (*time)(const hone_config *config))
{
    size_t count = 0;
    while (count < limit) {
        hone_status status = hone_search_next(search, &out[count], NULL);
        if (status == HONE_NOT_FOUND) break;
        assert_int_equal(status, HONE_OK);
        assert_int_equal(hone_search_tell(search, &out[count], time(&out[count]), HONE_FAILURE_NONE, NULL), HONE_OK);
        count++;
    }
    return count;
}

static double sum_of_two(const hone_config *config)
{
    return 1 + (double)(config->values[0] + config->values[1]);
}

static void a_small_space_is_proposed_whole_and_each_config_once(void **state)
{
    (void)state;
    hone_config configs[100];
    hone_error err;
    hone_bound_space *bound = bound_to_nothing(slanted);
    hone_search *search = created(bound, NULL);
    assert_int_equal(run(search, configs, 100, sum_of_two), 55);
    for (size_t i = 0; i < 55; i++) {
        assert_int_equal(hone_bound_space_check(bound, &configs[i], NULL), HONE_OK);
        for (size_t j = 0; j < i; j++)
            assert_false(equal(&configs[i], &configs[j]));
    }
    assert_int_equal(hone_search_next(search, configs, &err), HONE_NOT_FOUND);
    assert_string_equal(err.message, "every config was proposed");
    assert_true(hone_search_expected_gain(search) == 0);
    hone_search_destroy(&search);
    assert_null(search);
    hone_bound_space_release(&bound);
}

static void a_space_of_one_config_gives_its_default_and_then_nothing(void **state)
{
    (void)state;
    hone_config config;
    hone_bound_space *bound = bound_to_nothing("");
    hone_search *search = created(bound, NULL);
    assert_true(hone_search_expected_gain(search) == 1);
    assert_int_equal(hone_search_next(search, &config, NULL), HONE_OK);
    assert_int_equal(config.count, 0);
    assert_int_equal(hone_search_next(search, &config, NULL), HONE_NOT_FOUND);
    assert_int_equal(hone_search_tell(search, &config, 5, HONE_FAILURE_NONE, NULL), HONE_OK);
    hone_search_destroy(&search);
    hone_bound_space_release(&bound);
}

static void a_contradictory_space_gives_nothing(void **state)
{
    (void)state;
    hone_config config;
    hone_bound_space *bound = bound_to_nothing("x: 1..9\nwhere x < 3\nwhere x > 5");
    hone_search *search = created(bound, NULL);
    assert_int_equal(hone_search_next(search, &config, NULL), HONE_NOT_FOUND);
    hone_search_destroy(&search);
    hone_bound_space_release(&bound);
}

static void the_default_comes_first_unless_it_was_told(void **state)
{
    (void)state;
    hone_config first, other;
    hone_bound_space *bound = bound_to_nothing("x: 0..99 default 42");
    hone_search *search = created(bound, NULL);
    assert_int_equal(hone_search_next(search, &first, NULL), HONE_OK);
    assert_int_equal(first.values[0], 42);
    hone_search_destroy(&search);
    search = created(bound, NULL);
    assert_int_equal(hone_search_tell(search, &first, 7, HONE_FAILURE_NONE, NULL), HONE_OK);
    for (size_t i = 0; i < 99; i++) {
        assert_int_equal(hone_search_next(search, &other, NULL), HONE_OK);
        assert_false(equal(&first, &other));
    }
    hone_search_destroy(&search);
    hone_bound_space_release(&bound);
}

static void equal_seeds_and_times_give_equal_configs(void **state)
{
    (void)state;
    hone_config a[120], b[120], c[120];
    hone_bound_space *bound = bound_to_nothing(grid);
    hone_config *const runs[] = {a, b, c};
    const uint64_t seeds[] = {7, 7, 8};
    for (size_t i = 0; i < 3; i++) {
        const hone_search_options options = {.seed = seeds[i], .evaluations = 120};
        hone_search *search = created(bound, &options);
        assert_int_equal(run(search, runs[i], 120, valley), 120);
        hone_search_destroy(&search);
    }
    size_t different = 0;
    for (size_t i = 0; i < 120; i++) {
        assert_true(equal(&a[i], &b[i]));
        different += !equal(&a[i], &c[i]);
    }
    assert_true(different > 10);
    hone_bound_space_release(&bound);
}

static void what_is_no_config_or_no_time_is_refused(void **state)
{
    (void)state;
    hone_error err;
    hone_bound_space *bound = bound_to_nothing(slanted);
    hone_search *search = created(bound, NULL);
    hone_config outside = {2, {9, 9}}, unknown = {2, {16, 0}}, shorter = {1, {3}}, inside = {2, {3, 3}};
    assert_int_equal(hone_search_tell(search, &outside, 5, HONE_FAILURE_NONE, &err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "x + y <= 9"));
    assert_int_equal(hone_search_tell(search, &unknown, 5, HONE_FAILURE_NONE, NULL), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_search_tell(search, &shorter, 5, HONE_FAILURE_NONE, NULL), HONE_INVALID_ARGUMENT);
    const double no_times[] = {0, -1, NAN, INFINITY};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(
            hone_search_tell(search, &inside, no_times[i], HONE_FAILURE_NONE, NULL), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_search_tell(search, &inside, 0, HONE_FAILURE_CRASH, NULL), HONE_OK);
    hone_search_destroy(&search);
    hone_bound_space_release(&bound);
}

static void only_what_is_listed_is_proposed(void **state)
{
    (void)state;
    hone_config listed[] = {{2, {1, 1}}, {2, {2, 5}}, {2, {1, 1}}, {2, {9, 9}}}, found[4];
    hone_error err;
    hone_allocator allocator = hone_allocator_system();
    hone_bound_space *bound = bound_to_nothing(slanted);
    hone_search_options options = {.configs = listed, .config_count = 4};
    hone_search *search = created(bound, &options);
    assert_int_equal(run(search, found, 4, sum_of_two), 3);
    hone_search_destroy(&search);
    listed[1].values[1] = 77;
    assert_int_equal(hone_search_create(&allocator, bound, &options, &search, &err), HONE_INVALID_ARGUMENT);
    assert_null(search);
    assert_non_null(strstr(err.message, "y=77"));
    hone_bound_space_release(&bound);
}

static void known_configs_come_first_the_best_of_most_sources_before_all(void **state)
{
    (void)state;
    hone_config config;
    hone_bound_space *bound = bound_to_nothing(grid);
    const hone_search_prior priors[] = {
        {{3, {1, 1, 1}}, 1.0, 4, 1},                                                            // far away
        {{3, {2, 2, 2}}, 1.1, 0, 2},                                                            // near, and known twice
        {{3, {2, 2, 2}}, 1.0, 0, 3}, {{3, {3, 3, 3}}, 1.0, 0, 2}, {{3, {99, 0, 0}}, 1.0, 0, 2}, // of another space
    };
    const hone_search_options options = {.priors = priors, .prior_count = 5};
    hone_search *search = created(bound, &options);
    const int64_t expected[] = {3, 2, 1, 0};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(hone_search_next(search, &config, NULL), HONE_OK);
        assert_int_equal(config.values[0], expected[i]);
        assert_int_equal(hone_search_tell(search, &config, 10 + (double)i, HONE_FAILURE_NONE, NULL), HONE_OK);
    }
    hone_search_destroy(&search);
    hone_bound_space_release(&bound);
}

static void a_huge_space_is_searched_in_a_pool(void **state)
{
    (void)state;
    hone_config configs[60];
    hone_bound_space *bound = bound_to_nothing("x: 0..999\ny: 0..999\nz: 0..999\nwhere x + y < 1500");
    hone_search *search = created(bound, NULL);
    assert_int_equal(run(search, configs, 60, valley), 60);
    for (size_t i = 0; i < 60; i++)
        assert_int_equal(hone_bound_space_check(bound, &configs[i], NULL), HONE_OK);
    hone_search_destroy(&search);
    hone_bound_space_release(&bound);
}

static hone_status walk_with(const hone_allocator *allocator, const hone_bound_space *bound)
{
    hone_search *search;
    hone_config config;
    const hone_search_prior prior = {{2, {3, 3}}, 1.0, 0, 1};
    const hone_search_options options = {.priors = &prior, .prior_count = 1};
    hone_status status = hone_search_create(allocator, bound, &options, &search, NULL);
    for (size_t i = 0; i < 30 && status == HONE_OK; i++) {
        status = hone_search_next(search, &config, NULL);
        if (status == HONE_OK) status = hone_search_tell(search, &config, sum_of_two(&config), HONE_FAILURE_NONE, NULL);
    }
    hone_search_destroy(&search);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    failing_allocator memory;
    hone_status status = HONE_OUT_OF_MEMORY;
    hone_bound_space *bound = bound_to_nothing(slanted);
    for (long long left = 0; status != HONE_OK; left++) {
        hone_allocator allocator = failing_allocator_of(&memory, left);
        status = walk_with(&allocator, bound);
        assert_true(status == HONE_OK || status == HONE_OUT_OF_MEMORY);
        assert_int_equal(atomic_load(&memory.live), 0);
    }
    hone_bound_space_release(&bound);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_space_is_proposed_whole_and_each_config_once),
        cmocka_unit_test(a_space_of_one_config_gives_its_default_and_then_nothing),
        cmocka_unit_test(a_contradictory_space_gives_nothing),
        cmocka_unit_test(the_default_comes_first_unless_it_was_told),
        cmocka_unit_test(equal_seeds_and_times_give_equal_configs),
        cmocka_unit_test(what_is_no_config_or_no_time_is_refused),
        cmocka_unit_test(only_what_is_listed_is_proposed),
        cmocka_unit_test(known_configs_come_first_the_best_of_most_sources_before_all),
        cmocka_unit_test(a_huge_space_is_searched_in_a_pool),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
