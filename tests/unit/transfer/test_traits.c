// How near one call is to another, and one device to another.
#include "transfer/traits.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define X(shape) "\"x\":{\"dtype\":\"float32\",\"shape\":" shape "}"

// The distance of two calls, given what stands in kwargs_spec.
static double distance(const char *a, const char *b)
{
    hone_arena arena = {.allocator = hone_allocator_system()};
    const char *const texts[] = {a, b};
    hone_traits traits[2];
    hone_error err;
    for (int i = 0; i < 2; i++) {
        char spec[1024];
        snprintf(
            spec, sizeof spec, "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{%s},\"method\":null}", texts[i]);
        if (hone_traits_read(&arena, spec, &traits[i], &err) != HONE_OK) fail_msg("%s", err.message);
    }
    double there = hone_traits_distance(&traits[0], &traits[1]), back = hone_traits_distance(&traits[1], &traits[0]);
    hone_arena_destroy(&arena);
    assert_true(there == back);
    return there;
}

static void dims_count_by_the_difference_of_their_logarithms(void **state)
{
    (void)state;
    assert_true(distance(X("[32,4096]"), X("[32,4096]")) == 0);
    assert_true(distance(X("[32,4096]"), X("[64,1024]")) == 3);
    assert_true(distance(X("[0,4096]"), X("[1,4096]")) == 0);
}

static void a_dim_that_tensors_share_counts_once(void **state)
{
    (void)state;
    assert_true(
        distance(
            X("[32,4096]") ",\"weight\":{\"dtype\":\"float32\",\"shape\":[4096]}",
            X("[32,1024]") ",\"weight\":{\"dtype\":\"float32\",\"shape\":[1024]}") == 2);
    // m and k have the same sizes, and are two.
    assert_true(distance(X("[64,64]"), X("[32,32]")) == 2);
}

static void leading_dims_that_one_lacks_count_as_ones(void **state)
{
    (void)state;
    assert_true(distance(X("[4,4096]"), X("[8,4,4096]")) == 3 + 1);
}

static void another_dtype_or_layout_is_no_neighbour(void **state)
{
    (void)state;
#define LAID(strides, shape) "\"x\":{\"dtype\":\"float32\",\"layout\":" strides ",\"shape\":" shape "}"
    assert_true(isinf(distance(X("[4,8]"), "\"x\":{\"dtype\":\"float64\",\"shape\":[4,8]}")));
    assert_true(isinf(distance(X("[4,8]"), LAID("[1,4]", "[4,8]"))));
    assert_true(isinf(distance(LAID("[1,4]", "[4,8]"), LAID("[1,6]", "[4,8]"))));
    // Column-major both, one with longer columns.
    assert_true(distance(LAID("[1,4]", "[4,8]"), LAID("[1,8]", "[8,8]")) == 1);
    // Padded rows both.
    assert_true(distance(LAID("[10,1]", "[4,8]"), LAID("[16,1]", "[8,8]")) == 1);
    assert_true(distance(X("[4,8]"), "\"x\":{\"align\":4,\"dtype\":\"float32\",\"shape\":[4,8]}") == 1);
}

static void numbers_count_like_dims_and_words_as_another_way_to_work(void **state)
{
    (void)state;
    assert_true(distance("\"window\":1", "\"window\":3") == 1);
    assert_true(distance("\"shift\":1", "\"shift\":-1") == 2);
    assert_true(distance("\"causal\":true", "\"causal\":false") == 4);
    assert_true(distance("\"scale\":null", "\"scale\":0.5") == 4);
    assert_true(distance("\"eps\":1e-06", "\"eps\":0.001") == 1);
    assert_true(distance("\"eps\":1e-06", "\"eps\":1e-06") == 0);
}

static void a_parameter_that_another_version_lacks_costs_something(void **state)
{
    (void)state;
    assert_true(distance(X("[4,8]"), X("[4,8]") ",\"zero\":0") == 2);
}

static void text_that_is_not_canonical_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "{", "[]", "{}", "{\"kwargs_spec\":3}", "null", "{\"kwargs_spec\":{}}"};
    hone_arena arena = {.allocator = hone_allocator_system()};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hone_traits traits;
        hone_error err;
        bool is_good = i + 1 == sizeof texts / sizeof *texts;
        assert_int_equal(hone_traits_read(&arena, texts[i], &traits, &err), is_good ? HONE_OK : HONE_CORRUPT);
        assert_int_equal(traits.count, 0);
    }
    hone_arena_destroy(&arena);
}

static void devices_are_near_by_family_vendor_and_instruction_sets(void **state)
{
    (void)state;
    static const char here[] = "cpu|AuthenticAMD,zen4,avx2+fma,l1=32768,l2=1048576,l3=33554432,threads=2";
    static const struct {
        const char *there;
        double distance;
    } cases[] = {
        {here, 0},
        {"cpu|AuthenticAMD,zen4,avx2+fma,l1=32768,l2=1048576,l3=33554432,threads=8", 1},
        {"cpu|AuthenticAMD,zen4,avx2,l1=32768,l2=1048576,l3=33554432,threads=8", 1},
        {"cpu|AuthenticAMD,zen2,avx2,l1=32768,l2=524288,l3=33554432,threads=2", 2},
        {"cpu|GenuineIntel,skylake,avx2+fma,l1=32768,l2=1048576,l3=33554432,threads=2", 2},
        {"cpu|GenuineIntel,skylake,avx2,l1=32768,l2=1048576,l3=33554432,threads=2", 4},
        {"cuda|AuthenticAMD,zen4,avx2+fma", 4},
        {"nonsense", 4},
        {"", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(hone_device_distance(here, cases[i].there) == cases[i].distance);
        assert_true(hone_device_distance(cases[i].there, here) == cases[i].distance);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dims_count_by_the_difference_of_their_logarithms),
        cmocka_unit_test(a_dim_that_tensors_share_counts_once),
        cmocka_unit_test(leading_dims_that_one_lacks_count_as_ones),
        cmocka_unit_test(another_dtype_or_layout_is_no_neighbour),
        cmocka_unit_test(numbers_count_like_dims_and_words_as_another_way_to_work),
        cmocka_unit_test(a_parameter_that_another_version_lacks_costs_something),
        cmocka_unit_test(text_that_is_not_canonical_is_refused),
        cmocka_unit_test(devices_are_near_by_family_vendor_and_instruction_sets),
    };
    return cmocka_run_group_tests_name("transfer_traits", tests, NULL, NULL);
}
