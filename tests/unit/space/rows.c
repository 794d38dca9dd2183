// Rows and neighbours, against trying every pair of valid configs.
#include "space/rows.h"

#include "failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static hone_bound_space *bound_to_nothing(hone_allocator allocator, const char *text)
{
    hone_space *space;
    hone_bound_space *bound = NULL;
    if (hone_space_parse(allocator, text, &space, NULL) != HONE_OK) return NULL;
    if (hone_space_bind(space, NULL, NULL, &bound, NULL) != HONE_OK) bound = NULL;
    hone_space_release(&space);
    return bound;
}

static const char *const texts[] = {
    "a: 1..8\nb: 1..8\nc: x | y | z\nwhere a < b",
    "a: 1..4\nb: 1..3\nc: 1..4\nd: true | false\nwhere a * c <= 6\nwhere d or b > 1",
    "a: 0.5 | 1.5\nb: 4 | 2 | 8",
    "a: 7",
    "",
};
enum { TEXTS = sizeof texts / sizeof *texts };

// The number of parameters in which two rows differ; *out_far says whether one of them is more than a step away.
static size_t difference(const hone_space_rows *rows, size_t a, size_t b, bool *out_far)
{
    size_t count = 0;
    *out_far = false;
    for (size_t i = 0; i < rows->width; i++) {
        int step = (int)hone_space_row(rows, a)[i] - (int)hone_space_row(rows, b)[i];
        count += step != 0;
        *out_far = *out_far || step < -1 || step > 1;
    }
    return count;
}

typedef struct visit {
    const hone_space_rows *rows;
    bool seen[1000];
    size_t count, stop_after;
} visit;

static bool mark(void *ctx, const hone_config *config)
{
    visit *v = ctx;
    int64_t row = hone_space_rows_find_config(v->rows, config);
    assert_in_range(row, 0, v->rows->count - 1);
    assert_false(v->seen[row]);
    v->seen[row] = true;
    return ++v->count != v->stop_after;
}

static void assert_neighbours(
    const hone_space_rows *rows, const hone_bound_space *bound, size_t row, hone_neighbourhood which)
{
    visit v = {.rows = rows};
    hone_config config;
    hone_space_row_config(rows, row, &config);
    assert_int_equal(hone_bound_space_neighbours(bound, &config, which, mark, &v, NULL), HONE_OK);
    for (size_t other = 0; other < rows->count; other++) {
        bool far, expected = difference(rows, row, other, &far) == 1;
        if (which == HONE_NEIGHBOURS_ADJACENT) expected = expected && !far;
        assert_int_equal(v.seen[other], expected);
    }
}

static void neighbours_are_the_valid_configs_that_differ_in_one_parameter(void **state)
{
    (void)state;
    for (size_t i = 0; i < TEXTS; i++) {
        hone_space_rows rows;
        hone_bound_space *bound = bound_to_nothing(hone_allocator_system(), texts[i]);
        assert_int_equal(hone_space_rows_init(&rows, bound, 1000, NULL), HONE_OK);
        for (size_t row = 0; row < rows.count; row++) {
            assert_neighbours(&rows, bound, row, HONE_NEIGHBOURS_HAMMING);
            assert_neighbours(&rows, bound, row, HONE_NEIGHBOURS_ADJACENT);
        }
        hone_space_rows_deinit(&rows);
        hone_bound_space_release(&bound);
    }
}

// a < b: (5, 5) is refused; changing a gives 1..4, changing b 6..8.
static void a_config_that_is_refused_has_neighbours_too(void **state)
{
    (void)state;
    hone_space_rows rows;
    hone_bound_space *bound = bound_to_nothing(hone_allocator_system(), "a: 1..8\nb: 1..8\nwhere a < b");
    assert_int_equal(hone_space_rows_init(&rows, bound, 1000, NULL), HONE_OK);
    hone_config config = {2, {5, 5}};
    visit all = {.rows = &rows}, three = {.rows = &rows, .stop_after = 3};
    assert_int_equal(hone_bound_space_neighbours(bound, &config, HONE_NEIGHBOURS_HAMMING, mark, &all, NULL), HONE_OK);
    assert_int_equal(all.count, 7);
    assert_int_equal(hone_bound_space_neighbours(bound, &config, HONE_NEIGHBOURS_HAMMING, mark, &three, NULL), HONE_OK);
    assert_int_equal(three.count, 3);
    visit two = {.rows = &rows};
    assert_int_equal(hone_bound_space_neighbours(bound, &config, HONE_NEIGHBOURS_ADJACENT, mark, &two, NULL), HONE_OK);
    assert_int_equal(two.count, 2);
    hone_space_rows_deinit(&rows);
    hone_bound_space_release(&bound);
}

static void a_config_of_another_space_has_none(void **state)
{
    (void)state;
    hone_error err = {0};
    visit v = {0};
    hone_config config = {2, {5, 9}};
    hone_bound_space *bound = bound_to_nothing(hone_allocator_system(), "a: 1..8\nb: 1..8");
    hone_status status = hone_bound_space_neighbours(bound, &config, HONE_NEIGHBOURS_HAMMING, mark, &v, &err);
    assert_int_equal(status, HONE_INVALID_ARGUMENT);
    assert_string_equal(err.message, "parameter 'b': 9 is not one of its values (1, 2, 3, 4, 5, 6, 7, 8)");
    config.count = 1;
    status = hone_bound_space_neighbours(bound, &config, HONE_NEIGHBOURS_HAMMING, mark, &v, &err);
    assert_int_equal(status, HONE_INVALID_ARGUMENT);
    assert_int_equal(v.count, 0);
    hone_bound_space_release(&bound);
    bound = bound_to_nothing(hone_allocator_system(), "a: 0 | 1\nwhere 4 % a == 0");
    config = (hone_config){1, {1}};
    status = hone_bound_space_neighbours(bound, &config, HONE_NEIGHBOURS_HAMMING, mark, &v, &err);
    assert_int_equal(status, HONE_INVALID_ARGUMENT);
    assert_string_equal(err.message, "'where 4 % a == 0' cannot be evaluated for a=0: division by zero");
    hone_bound_space_release(&bound);
}

static void a_row_is_found_by_its_positions(void **state)
{
    (void)state;
    for (size_t i = 0; i < TEXTS; i++) {
        hone_space_rows rows;
        hone_config config;
        hone_bound_space *bound = bound_to_nothing(hone_allocator_system(), texts[i]);
        assert_int_equal(hone_space_rows_init(&rows, bound, 1000, NULL), HONE_OK);
        for (size_t row = 0; row < rows.count; row++) {
            hone_space_row_config(&rows, row, &config);
            assert_int_equal(hone_space_rows_find(&rows, hone_space_row(&rows, row)), row);
            assert_int_equal(hone_space_rows_find_config(&rows, &config), row);
            assert_int_equal(hone_bound_space_check(bound, &config, NULL), HONE_OK);
        }
        hone_space_rows_deinit(&rows);
        hone_bound_space_release(&bound);
    }
}

static void an_invalid_config_has_no_row(void **state)
{
    (void)state;
    hone_space_rows rows;
    hone_bound_space *bound = bound_to_nothing(hone_allocator_system(), "a: 1..8\nb: 1..8\nwhere a < b");
    assert_int_equal(hone_space_rows_init(&rows, bound, 1000, NULL), HONE_OK);
    const uint16_t refused[] = {3, 3};
    const hone_config none_of_its_values = {2, {0, 9}}, too_short = {1, {1}};
    assert_int_equal(hone_space_rows_find(&rows, refused), -1);
    assert_int_equal(hone_space_rows_find_config(&rows, &none_of_its_values), -1);
    assert_int_equal(hone_space_rows_find_config(&rows, &too_short), -1);
    hone_space_rows_deinit(&rows);
    hone_bound_space_release(&bound);
}

static void more_configs_than_the_limit_are_not_listed(void **state)
{
    (void)state;
    hone_error err = {0};
    hone_space_rows rows;
    hone_bound_space *bound = bound_to_nothing(hone_allocator_system(), "a: 1..8\nb: 1..8\nwhere a < b");
    assert_int_equal(hone_space_rows_init(&rows, bound, 28, &err), HONE_OK);
    assert_int_equal(rows.count, 28);
    hone_space_rows_deinit(&rows);
    assert_int_equal(hone_space_rows_init(&rows, bound, 27, &err), HONE_UNSUPPORTED);
    assert_string_equal(err.message, "the space has more than 27 valid configs");
    hone_space_rows_deinit(&rows);
    hone_bound_space_release(&bound);
}

static bool count_up(void *ctx, const hone_config *config)
{
    (void)config;
    ++*(size_t *)ctx;
    return true;
}

static hone_status use(hone_allocator allocator)
{
    size_t visited = 0;
    hone_space_rows rows;
    hone_config config;
    hone_bound_space *bound = bound_to_nothing(allocator, texts[1]);
    if (bound == NULL) return HONE_OUT_OF_MEMORY;
    hone_status status = hone_space_rows_init(&rows, bound, 1000, NULL);
    if (status == HONE_OK) {
        hone_space_row_config(&rows, 3, &config);
        status = hone_bound_space_neighbours(bound, &config, HONE_NEIGHBOURS_HAMMING, count_up, &visited, NULL);
    }
    hone_space_rows_deinit(&rows);
    hone_bound_space_release(&bound);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    failing_allocator failing;
    hone_status status = HONE_OUT_OF_MEMORY;
    for (long long allowed = 0; status != HONE_OK; allowed++) {
        status = use(failing_allocator_of(&failing, allowed));
        assert_true(status == HONE_OK || status == HONE_OUT_OF_MEMORY);
        assert_int_equal(atomic_load(&failing.live), 0);
        assert_true(allowed < 1000);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_are_the_valid_configs_that_differ_in_one_parameter),
        cmocka_unit_test(a_config_that_is_refused_has_neighbours_too),
        cmocka_unit_test(a_config_of_another_space_has_none),
        cmocka_unit_test(a_row_is_found_by_its_positions),
        cmocka_unit_test(an_invalid_config_has_no_row),
        cmocka_unit_test(more_configs_than_the_limit_are_not_listed),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
