// Names to numbers: by the number that they end with, by their hash, and after what was there was forgotten.
#include "offline/names.h"

#include "failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 5000, NAME_SIZE = 64 };

static const char *const words[] = {"%", "add.", "%cst_", "a_name_that_is_longer_than_two_words.", ""};
enum { WORD_COUNT = sizeof words / sizeof words[0] };

typedef struct fixture {
    hone_names names;
    char texts[MANY][NAME_SIZE]; // names stay where they are
} fixture;

static fixture *create_fixture(void)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    hone_allocator allocator = hone_allocator_system();
    hone_names_init(&f->names, &allocator);
    return f;
}

static void destroy_fixture(fixture *f)
{
    assert_false(f->names.failed);
    hone_names_deinit(&f->names);
    free(f);
}

// Name i of many: five words that take turns have each number, so that all but one find it taken.
static hone_view write_name(fixture *f, size_t i)
{
    snprintf(f->texts[i], NAME_SIZE, "%s%zu", words[i % WORD_COUNT], i / WORD_COUNT);
    return hone_view_of(f->texts[i]);
}

static void names_with_the_same_number_are_distinguished(void **state)
{
    (void)state;
    fixture *f = create_fixture();
    for (size_t i = 0; i < MANY; i++)
        hone_names_put(&f->names, 0, write_name(f, i), (uint32_t)i);
    for (size_t i = 0; i < MANY; i++) {
        char copy[NAME_SIZE];
        memcpy(copy, f->texts[i], sizeof copy); // found by what it says, not by where it stands
        assert_int_equal(hone_names_get(&f->names, 0, hone_view_of(copy)), i);
        assert_int_equal(hone_names_get(&f->names, 1, hone_view_of(copy)), HONE_NAMES_NONE);
    }
    destroy_fixture(f);
}

static void a_later_definition_takes_the_place_of_an_earlier_one(void **state)
{
    (void)state;
    static const char *const names[] = {"%7", "%a7", "%b7", "%", "", "%4000000000", "%99999999999999999999", "seven"};
    enum { COUNT = sizeof names / sizeof names[0] };
    fixture *f = create_fixture();
    for (uint32_t round = 0; round < 3; round++)
        for (uint32_t i = 0; i < COUNT; i++)
            hone_names_put(&f->names, 0, hone_view_of(names[i]), round * 100 + i);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(hone_names_get(&f->names, 0, hone_view_of(names[i])), 200 + i);
    destroy_fixture(f);
}

// A number far beyond those at hand stands in the hash table, and under its number once there are so many.
static void a_number_is_found_wherever_it_was_put(void **state)
{
    (void)state;
    fixture *f = create_fixture();
    hone_names_put(&f->names, 0, hone_view_of("%4900"), 1);
    for (size_t i = 0; i < MANY; i++)
        hone_names_put(&f->names, 0, write_name(f, i), 0);
    assert_int_equal(hone_names_get(&f->names, 0, hone_view_of("%4900")), 1);
    hone_names_put(&f->names, 0, hone_view_of("%4900"), 2);
    assert_int_equal(hone_names_get(&f->names, 0, hone_view_of("%4900")), 2);
    destroy_fixture(f);
}

static void what_was_forgotten_is_not_found(void **state)
{
    (void)state;
    fixture *f = create_fixture();
    for (size_t round = 1; round <= 4; round++) {
        for (size_t i = 0; i < MANY / round; i++) // fewer each time
            hone_names_put(&f->names, 0, write_name(f, i), (uint32_t)(i * round));
        for (size_t i = 0; i < MANY; i++) {
            uint32_t expected = i < MANY / round ? (uint32_t)(i * round) : HONE_NAMES_NONE;
            assert_int_equal(hone_names_get(&f->names, 0, write_name(f, i)), expected);
        }
        hone_names_clear(&f->names);
        assert_int_equal(hone_names_get(&f->names, 0, write_name(f, 3)), HONE_NAMES_NONE);
    }
    destroy_fixture(f);
}

static void a_table_that_was_filled_once_is_given_back_when_little_is_in_it(void **state)
{
    (void)state;
    fixture *f = create_fixture();
    failing_allocator memory;
    hone_allocator allocator = failing_allocator_of(&memory, -1);
    hone_names_init(&f->names, &allocator);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < MANY; i++)
            hone_names_put(&f->names, 0, write_name(f, i), (uint32_t)i);
        long long filled = memory.live;
        hone_names_clear(&f->names); // of a full one it is kept: it may be filled again
        assert_int_equal(memory.live, filled);
        hone_names_put(&f->names, 0, hone_view_of("first"), 1);
        hone_names_put(&f->names, 0, hone_view_of("second"), 2);
        hone_names_clear(&f->names);
        assert_true(memory.live < filled);
        assert_int_equal(hone_names_get(&f->names, 0, hone_view_of("first")), HONE_NAMES_NONE);
        hone_names_put(&f->names, 0, hone_view_of("first"), 3);
        assert_int_equal(hone_names_get(&f->names, 0, hone_view_of("first")), 3);
        hone_names_clear(&f->names);
    }
    destroy_fixture(f);
    assert_int_equal(memory.live, 0);
}

// XLA's numbers have the computation's in their upper half.
static void numbers_are_names_too(void **state)
{
    (void)state;
    fixture *f = create_fixture();
    for (uint64_t i = 0; i < MANY; i++)
        hone_names_put_number(&f->names, (i % 3) << 32 | i / 3, (uint32_t)i);
    for (uint64_t i = 0; i < MANY; i++)
        assert_int_equal(hone_names_get_number(&f->names, (i % 3) << 32 | i / 3), i);
    assert_int_equal(hone_names_get_number(&f->names, UINT64_C(3) << 32), HONE_NAMES_NONE);
    assert_int_equal(hone_names_get_number(&f->names, UINT64_MAX), HONE_NAMES_NONE);
    hone_names_put_number(&f->names, UINT64_MAX, 1);
    assert_int_equal(hone_names_get_number(&f->names, UINT64_MAX), 1);
    destroy_fixture(f);
}

// Numbers cost no more memory than names do, however large they are.
static void large_numbers_take_no_room(void **state)
{
    (void)state;
    failing_allocator counting;
    hone_allocator allocator = failing_allocator_of(&counting, -1);
    hone_names names;
    hone_names_init(&names, &allocator);
    for (uint64_t i = 0; i < MANY; i++)
        hone_names_put_number(&names, i * 800000, (uint32_t)i);
    assert_false(names.failed);
    assert_true(names.numbered_capacity < 8 * MANY);
    for (uint64_t i = 0; i < MANY; i++)
        assert_int_equal(hone_names_get_number(&names, i * 800000), i);
    hone_names_deinit(&names);
    assert_int_equal(atomic_load(&counting.live), 0);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fixture *f = create_fixture();
    bool failed = true;
    for (long long left = 0; failed; left++) {
        failing_allocator failing;
        hone_allocator allocator = failing_allocator_of(&failing, left);
        hone_names names;
        hone_names_init(&names, &allocator);
        for (size_t i = 0; i < MANY; i++)
            hone_names_put(&names, 0, write_name(f, i), (uint32_t)i);
        failed = names.failed;
        if (!failed) assert_int_equal(hone_names_get(&names, 0, write_name(f, 17)), 17);
        hone_names_deinit(&names);
        assert_int_equal(atomic_load(&failing.live), 0);
        assert_true(left < 1000);
    }
    destroy_fixture(f);
}

// Of each length, names that differ from the first in one byte.
static void names_that_differ_in_one_byte_are_distinguished_at_each_length(void **state)
{
    (void)state;
    enum { LONGEST = 40 };
    for (size_t size = 1; size <= LONGEST; size++) {
        fixture *f = create_fixture();
        for (size_t i = 0; i <= size; i++) {
            memset(f->texts[i], 'x', size);
            if (i > 0) f->texts[i][i - 1] = 'y';
            hone_names_put(&f->names, 0, (hone_view){f->texts[i], size}, (uint32_t)i);
        }
        for (size_t i = 0; i <= size; i++)
            assert_int_equal(hone_names_get(&f->names, 0, (hone_view){f->texts[i], size}), i);
        destroy_fixture(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_with_the_same_number_are_distinguished),
        cmocka_unit_test(names_that_differ_in_one_byte_are_distinguished_at_each_length),
        cmocka_unit_test(a_later_definition_takes_the_place_of_an_earlier_one),
        cmocka_unit_test(a_number_is_found_wherever_it_was_put),
        cmocka_unit_test(what_was_forgotten_is_not_found),
        cmocka_unit_test(a_table_that_was_filled_once_is_given_back_when_little_is_in_it),
        cmocka_unit_test(numbers_are_names_too),
        cmocka_unit_test(large_numbers_take_no_room),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
