// Which call of a batch gets the next slice of the budget.
#include "runtime/api/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static hone_batch_call call_of(double count, double time_ns, double gain)
{
    return (hone_batch_call){.count = count, .outlook = {.time_ns = time_ns, .expected_gain = gain}};
}

static hone_batch batch_of(hone_batch_call *calls, size_t count)
{
    return (hone_batch){.calls = calls, .count = count, .moves = true};
}

static void the_slice_goes_where_count_times_time_times_gain_is_largest(void **state)
{
    (void)state;
    hone_batch_call calls[] = {
        call_of(1000, 1e3, 0.01), // made often, short: 10000
        call_of(10, 1e6, 0.002),  // slow, with little left to gain: 20000
        call_of(20, 1e5, 0.01),   // neither: 20000
    };
    const hone_batch batch = batch_of(calls, 3);
    assert_ptr_equal(hone_batch_next(&batch), &calls[1]); // of two that are worth as much the first
    calls[2].outlook.expected_gain = 0.02;
    assert_ptr_equal(hone_batch_next(&batch), &calls[2]);
    calls[0].count = 5000;
    assert_ptr_equal(hone_batch_next(&batch), &calls[0]);
}

static void what_a_slice_has_found_moves_the_next(void **state)
{
    (void)state;
    hone_batch_call calls[] = {call_of(100, 1e5, 0.05), call_of(100, 1e5, 0.04)};
    const hone_batch batch = batch_of(calls, 2);
    assert_ptr_equal(hone_batch_next(&batch), &calls[0]);
    calls[0].outlook.expected_gain = 0.03;
    assert_ptr_equal(hone_batch_next(&batch), &calls[1]);
}

static void who_has_nothing_to_gain_or_has_had_its_share_gets_no_more(void **state)
{
    (void)state;
    hone_batch_call calls[] = {call_of(100, 1e5, 0.05), call_of(1, 1e3, 0.01), call_of(1e9, 1e9, 0)};
    hone_batch batch = batch_of(calls, 3);
    batch.options.seconds = 2;
    calls[0].spent_seconds = 2;
    assert_ptr_equal(hone_batch_next(&batch), &calls[1]);
    calls[1].outlook.expected_gain = 0;
    assert_null(hone_batch_next(&batch));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slice_goes_where_count_times_time_times_gain_is_largest),
        cmocka_unit_test(what_a_slice_has_found_moves_the_next),
        cmocka_unit_test(who_has_nothing_to_gain_or_has_had_its_share_gets_no_more),
    };
    return cmocka_run_group_tests_name("runtime_batch", tests, NULL, NULL);
}
