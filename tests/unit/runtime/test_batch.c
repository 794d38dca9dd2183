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

static void a_call_without_expected_gain_or_share_gets_no_more_time(void **state)
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

static hone_batch batch_for(double seconds)
{
    return (hone_batch){.options = {.struct_size = sizeof(hone_tune_options), .seconds = seconds}};
}

// What an open answer is given; 0: it stays.
static double given(const hone_batch *batch, double allowed, double took)
{
    const hone_evidence answer = {.undecided = "2 of 9 kernels", .allowed_seconds = allowed, .seconds = took};
    double seconds = -1;
    return hone_batch_is_open(batch, &answer, &seconds) ? seconds : 0;
}

static void what_was_left_open_gets_twice_as_much_up_to_eight_times_what_is_asked(void **state)
{
    (void)state;
    const hone_batch ten = batch_for(10), usual = batch_for(0);
    assert_true(given(&ten, 10, 3) == 20);
    assert_true(given(&ten, 20, 3) == 40);
    assert_true(given(&ten, 60, 3) == 80);
    assert_true(given(&ten, 80, 3) == 0); // it had the most
    assert_true(given(&ten, 100, 3) == 0);
    assert_true(given(&ten, 2, 2) == 10);
    assert_true(given(&ten, 0, 7) == 14); // of before allowed_seconds was written down
    assert_true(given(&usual, 30, 30) == 60);
    assert_true(given(&usual, 240, 30) == 0);
    const hone_evidence decided = {.allowed_seconds = 1};
    double seconds;
    assert_false(hone_batch_is_open(&ten, &decided, &seconds));
}

static void what_is_asked_of_some_kernels_or_of_no_answer_again_takes_nothing_up(void **state)
{
    (void)state;
    hone_batch batch = batch_for(10);
    batch.options.kernel = "fast";
    assert_true(given(&batch, 10, 3) == 0);
    batch = batch_for(10);
    batch.options.platform = "native";
    assert_true(given(&batch, 10, 3) == 0);
    batch = batch_for(10);
    batch.options.keep_existing = true;
    assert_true(given(&batch, 10, 3) == 0);
}

static void with_a_budget_for_all_a_slice_is_the_least(void **state)
{
    (void)state;
    hone_batch batch = batch_for(10);
    batch.slice_seconds = 0.5;
    assert_true(given(&batch, 0.125, 1) == 0.5);
    assert_true(given(&batch, 0.5, 1) == 1);
    assert_true(given(&batch, 50, 1) == 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slice_goes_where_count_times_time_times_gain_is_largest),
        cmocka_unit_test(what_a_slice_has_found_moves_the_next),
        cmocka_unit_test(what_was_left_open_gets_twice_as_much_up_to_eight_times_what_is_asked),
        cmocka_unit_test(what_is_asked_of_some_kernels_or_of_no_answer_again_takes_nothing_up),
        cmocka_unit_test(with_a_budget_for_all_a_slice_is_the_least),
        cmocka_unit_test(a_call_without_expected_gain_or_share_gets_no_more_time),
    };
    return cmocka_run_group_tests_name("runtime_batch", tests, NULL, NULL);
}
