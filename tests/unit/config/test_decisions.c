// The table of decisions: the memory cache and the inside of overlays.
#include "config/decisions.h"
#include "failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static hone_decision decision_of(const char *key, const char *kernel)
{
    hone_decision decision = {.algorithm = "scale", .version = "1"};
    snprintf(decision.key, sizeof decision.key, "%s", key);
    snprintf(decision.kernel, sizeof decision.kernel, "%s", kernel);
    return decision;
}

static void put(hone_decisions *table, const char *device, const char *spec, const char *key, const char *kernel)
{
    const hone_decision decision = decision_of(key, kernel);
    hone_error err;
    assert_int_equal(hone_decisions_put(table, device, spec, &decision, &err), HONE_OK);
}

static const char *kernel_of(const hone_decisions *table, const char *device, const char *key, const char *spec)
{
    const hone_decision_row *row = hone_decisions_get(table, device, "scale", "1", key, spec);
    return row == NULL ? NULL : row->decision.kernel;
}

static void get_before_put_is_nothing(void **state)
{
    (void)state;
    hone_decisions table;
    hone_decisions_init(&table, hone_allocator_system());
    assert_null(kernel_of(&table, "cpu|a", "0", NULL));
    hone_decisions_deinit(&table);
}

static void every_field_of_the_key_counts(void **state)
{
    (void)state;
    hone_decisions table;
    hone_decisions_init(&table, hone_allocator_system());
    put(&table, "cpu|a", NULL, "k", "one");
    assert_string_equal(kernel_of(&table, "cpu|a", "k", NULL), "one");
    assert_null(kernel_of(&table, "cpu|b", "k", NULL));
    assert_null(kernel_of(&table, "cpu|a", "l", NULL));
    assert_null(hone_decisions_get(&table, "cpu|a", "scale", "2", "k", NULL));
    assert_null(hone_decisions_get(&table, "cpu|a", "other", "1", "k", NULL));
    hone_decisions_deinit(&table);
}

static void a_row_of_this_device_comes_before_one_of_every_device(void **state)
{
    (void)state;
    hone_decisions table;
    hone_decisions_init(&table, hone_allocator_system());
    put(&table, NULL, NULL, "k", "everywhere");
    put(&table, "cpu|a", NULL, "k", "here");
    assert_string_equal(kernel_of(&table, "cpu|a", "k", NULL), "here");
    assert_string_equal(kernel_of(&table, "cpu|b", "k", NULL), "everywhere");
    hone_decisions_deinit(&table);
}

// 64 bits can collide: where both sides know the text, it decides.
static void a_colliding_call_is_another_call(void **state)
{
    (void)state;
    hone_decisions table;
    hone_decisions_init(&table, hone_allocator_system());
    put(&table, "cpu|a", "{\"x\":1}", "k", "one");
    assert_null(kernel_of(&table, "cpu|a", "k", "{\"x\":2}"));
    assert_string_equal(kernel_of(&table, "cpu|a", "k", "{\"x\":1}"), "one");
    assert_string_equal(kernel_of(&table, "cpu|a", "k", NULL), "one");
    put(&table, NULL, "{\"x\":2}", "k", "two");
    assert_string_equal(kernel_of(&table, "cpu|a", "k", "{\"x\":2}"), "two");
    hone_decisions_deinit(&table);
}

static void a_put_replaces_in_place_and_order_stays(void **state)
{
    (void)state;
    hone_decisions table;
    hone_decisions_init(&table, hone_allocator_system());
    put(&table, "cpu|a", "s", "k", "old");
    put(&table, "cpu|a", NULL, "l", "second");
    put(&table, "cpu|a", "t", "k", "new");
    assert_int_equal(table.count, 2);
    assert_string_equal(table.rows[0]->decision.kernel, "new");
    assert_string_equal(table.rows[0]->spec, "t");
    hone_decisions_clear(&table);
    assert_int_equal(table.count, 0);
    assert_null(kernel_of(&table, "cpu|a", "k", NULL));
    put(&table, "cpu|a", NULL, "k", "again");
    assert_string_equal(kernel_of(&table, "cpu|a", "k", NULL), "again");
    hone_decisions_deinit(&table);
}

static void thousands_of_rows_are_all_found(void **state)
{
    (void)state;
    enum { ROWS = 3000 };
    hone_decisions table;
    char key[20];
    hone_decisions_init(&table, hone_allocator_system());
    for (int i = 0; i < ROWS; i++) {
        snprintf(key, sizeof key, "%016x", i * 7919);
        put(&table, i % 2 == 0 ? "cpu|a" : NULL, NULL, key, key);
    }
    for (int i = 0; i < ROWS; i++) {
        snprintf(key, sizeof key, "%016x", i * 7919);
        assert_string_equal(kernel_of(&table, "cpu|a", key, NULL), key);
        snprintf(key, sizeof key, "%016x", i * 7919 + 1);
        assert_null(kernel_of(&table, "cpu|a", key, NULL));
    }
    hone_decisions_deinit(&table);
}

// Each allocation in turn: the table stays as it was, and nothing is lost.
static void no_memory_leaves_the_table_as_it_was(void **state)
{
    (void)state;
    for (long long left = 0;; left++) {
        failing_allocator memory;
        hone_decisions table;
        hone_error err;
        hone_status status = HONE_OK;
        hone_decisions_init(&table, failing_allocator_of(&memory, left));
        size_t stored = 0;
        for (int i = 0; i < 20 && status == HONE_OK; i++) {
            char key[20];
            snprintf(key, sizeof key, "%d", i);
            const hone_decision decision = decision_of(key, "kernel");
            status = hone_decisions_put(&table, "cpu|a", "spec", &decision, &err);
            stored += status == HONE_OK;
        }
        assert_true(status == HONE_OK || status == HONE_OUT_OF_MEMORY);
        assert_int_equal(table.count, stored);
        if (stored > 0) assert_string_equal(kernel_of(&table, "cpu|a", "0", "spec"), "kernel");
        hone_decisions_deinit(&table);
        assert_int_equal(atomic_load(&memory.live), 0);
        if (status == HONE_OK) return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(get_before_put_is_nothing),
        cmocka_unit_test(every_field_of_the_key_counts),
        cmocka_unit_test(a_row_of_this_device_comes_before_one_of_every_device),
        cmocka_unit_test(a_colliding_call_is_another_call),
        cmocka_unit_test(a_put_replaces_in_place_and_order_stays),
        cmocka_unit_test(thousands_of_rows_are_all_found),
        cmocka_unit_test(no_memory_leaves_the_table_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
