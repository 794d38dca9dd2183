#include "hone/describe.h"
#include "registry/failure_kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void every_kind_reads_back_from_its_name(void **state)
{
    (void)state;
    hone_failure failure = HONE_FAILURE_NONE;
    for (int i = HONE_FAILURE_NONE; i < HONE_FAILURE_COUNT; i++) {
        assert_non_null(hone_failure_name((hone_failure)i));
        assert_true(hone_failure_by_name(hone_failure_name((hone_failure)i), &failure) && (int)failure == i);
    }
    assert_false(hone_failure_by_name("", &failure));
    assert_int_equal(failure, HONE_FAILURE_COUNT - 1);
}

static void every_kind_but_none_is_believed_for_some_days(void **state)
{
    (void)state;
    for (int i = HONE_FAILURE_NONE + 1; i < HONE_FAILURE_COUNT; i++)
        assert_true(hone_failure_kind_of((hone_failure)i)->days >= 1);
    assert_true(hone_failure_kind_of(HONE_FAILURE_NONE)->days < 1);
}

// What keeps a config from being served must be told from what says nothing of it: the kinds by their name.
static void what_follows_from_a_kind_is_in_its_row(void **state)
{
    (void)state;
    static const struct {
        hone_failure failure;
        bool is_wrong, is_harm, is_lost;
        hone_failure_retry retry;
    } expected[] = {
        {HONE_FAILURE_NONE, false, false, false, HONE_RETRY_NEVER},
        {HONE_FAILURE_UNSUPPORTED, false, false, false, HONE_RETRY_NEVER},
        {HONE_FAILURE_PREPARE, false, false, false, HONE_RETRY_NEVER},
        {HONE_FAILURE_RUN, false, true, false, HONE_RETRY_NEVER},
        {HONE_FAILURE_WRONG, true, true, false, HONE_RETRY_IF_QUICK},
        {HONE_FAILURE_BOUNDS, true, true, false, HONE_RETRY_ALWAYS},
        {HONE_FAILURE_CRASH, false, true, true, HONE_RETRY_ALWAYS},
        {HONE_FAILURE_TIMEOUT, false, true, true, HONE_RETRY_AFTER_SHORT_LIMIT},
        {HONE_FAILURE_TRACES, false, true, false, HONE_RETRY_ALWAYS},
        {HONE_FAILURE_UNSTABLE, false, false, false, HONE_RETRY_NEVER},
        {HONE_FAILURE_REPLAYED, true, true, false, HONE_RETRY_ALWAYS},
        {HONE_FAILURE_STALE, true, true, false, HONE_RETRY_ALWAYS},
        {HONE_FAILURE_IMPOSSIBLE, false, true, false, HONE_RETRY_ALWAYS},
        {HONE_FAILURE_HIDDEN, true, true, false, HONE_RETRY_ALWAYS},
        {HONE_FAILURE_UNALIGNED, false, true, false, HONE_RETRY_NEVER},
        {HONE_FAILURE_RACY, true, true, false, HONE_RETRY_NEVER},
        {HONE_FAILURE_PARTIAL, true, true, false, HONE_RETRY_IF_QUICK},
    };
    assert_int_equal(sizeof expected / sizeof expected[0], HONE_FAILURE_COUNT);
    for (size_t i = 0; i < HONE_FAILURE_COUNT; i++) {
        const hone_failure_kind *kind = hone_failure_kind_of(expected[i].failure);
        assert_true(kind->is_wrong == expected[i].is_wrong && kind->is_harm == expected[i].is_harm);
        assert_true(kind->is_lost == expected[i].is_lost && kind->retry == expected[i].retry);
    }
}

// The days of docs/tune.md.
static void a_stored_failure_is_believed_for_as_long_as_the_manual_says(void **state)
{
    (void)state;
    static const struct {
        hone_failure failure;
        int days;
    } expected[] = {
        {HONE_FAILURE_NONE, 0},        {HONE_FAILURE_UNSUPPORTED, 180}, {HONE_FAILURE_PREPARE, 7},
        {HONE_FAILURE_RUN, 30},        {HONE_FAILURE_WRONG, 180},       {HONE_FAILURE_BOUNDS, 180},
        {HONE_FAILURE_CRASH, 30},      {HONE_FAILURE_TIMEOUT, 1},       {HONE_FAILURE_TRACES, 30},
        {HONE_FAILURE_UNSTABLE, 180},  {HONE_FAILURE_REPLAYED, 180},    {HONE_FAILURE_STALE, 180},
        {HONE_FAILURE_IMPOSSIBLE, 30}, {HONE_FAILURE_HIDDEN, 180},      {HONE_FAILURE_UNALIGNED, 180},
        {HONE_FAILURE_RACY, 180},      {HONE_FAILURE_PARTIAL, 180},
    };
    assert_int_equal(sizeof expected / sizeof expected[0], HONE_FAILURE_COUNT);
    for (size_t i = 0; i < HONE_FAILURE_COUNT; i++)
        assert_true((int)(hone_failure_kind_of(expected[i].failure)->days * 1000) == expected[i].days * 1000);
}

static void a_number_that_is_no_kind_has_words_and_nothing_else(void **state)
{
    (void)state;
    static const int numbers[] = {-1, HONE_FAILURE_COUNT, 57};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const hone_failure_kind *kind = hone_failure_kind_of((hone_failure)numbers[i]);
        assert_string_equal(kind->name, "unknown failure");
        assert_false(kind->is_wrong || kind->is_harm || kind->is_lost);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_reads_back_from_its_name),
        cmocka_unit_test(every_kind_but_none_is_believed_for_some_days),
        cmocka_unit_test(what_follows_from_a_kind_is_in_its_row),
        cmocka_unit_test(a_stored_failure_is_believed_for_as_long_as_the_manual_says),
        cmocka_unit_test(a_number_that_is_no_kind_has_words_and_nothing_else),
    };
    return cmocka_run_group_tests_name("registry_failure_kinds", tests, NULL, NULL);
}
