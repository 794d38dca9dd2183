// Negative results: how long a failure is believed, and of what.
#include "hone/describe.h"
#include "os/os.h"
#include "registry/failure_kinds.h"
#include "tune/contest/failures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const hone_device_info device = {.struct_size = sizeof device, .fingerprint = "f", .driver = "driver 7"};
static const hone_kernel kernel = {HONE_KERNEL, .name = "k", .revision = "3"};
static const double day = 86400;

static double now(void)
{
    double time = 0;
    assert_true(hone_os_parse_utc("2026-11-20T12:00:00Z", &time));
    return time;
}

static hone_store_measurement failure_of(hone_failure kind, char measured[24], double days_ago)
{
    hone_os_format_utc(now() - days_ago * day, measured);
    return (hone_store_measurement){
        .kernel = "k", .config = "{}", .revision = "3", .failure = kind, .reason = "r", .measured = measured};
}

static bool stands(const hone_store_measurement *measurement, char why[128])
{
    why[0] = '\0';
    return hone_failure_stands(measurement, &kernel, &device, now(), why, 128);
}

static void every_kind_is_believed_for_its_days_and_no_longer(void **state)
{
    (void)state;
    char measured[24], until[24], expected[24], why[128];
    for (int kind = HONE_FAILURE_NONE + 1; kind < HONE_FAILURE_COUNT; kind++) {
        double days = hone_failure_kind_of((hone_failure)kind)->days;
        assert_true(days >= 1);
        hone_store_measurement fresh = failure_of((hone_failure)kind, measured, 0.99 * days);
        assert_true(stands(&fresh, why));
        hone_store_measurement old = failure_of((hone_failure)kind, measured, 1.01 * days);
        assert_false(stands(&old, why));
        assert_string_equal(why, "it is too long ago");
        hone_store_measurement today = failure_of((hone_failure)kind, measured, 0);
        hone_failure_until(&today, until);
        hone_os_format_utc(now() + days * day, expected);
        assert_string_equal(until, expected);
    }
    assert_true(hone_failure_kind_of(HONE_FAILURE_TIMEOUT)->days < hone_failure_kind_of(HONE_FAILURE_CRASH)->days);
    assert_true(hone_failure_kind_of(HONE_FAILURE_CRASH)->days < hone_failure_kind_of(HONE_FAILURE_WRONG)->days);
}

static void another_revision_is_another_kernel(void **state)
{
    (void)state;
    char measured[24], why[128];
    hone_store_measurement failure = failure_of(HONE_FAILURE_WRONG, measured, 1);
    failure.revision = "2";
    assert_false(stands(&failure, why));
    assert_non_null(strstr(why, "revision"));
}

static void another_environment_is_another_chance(void **state)
{
    (void)state;
    char measured[24], why[128];
    hone_store_measurement failure = failure_of(HONE_FAILURE_CRASH, measured, 1);
    failure.environment = "{\"driver\":\"driver 7\",\"governor\":\"whatever\"}";
    assert_true(stands(&failure, why));
    failure.environment = "{\"driver\":\"driver 6\"}";
    assert_false(stands(&failure, why));
    assert_string_equal(why, "driver was driver 6, is driver 7");
}

static void a_failure_of_no_time_or_of_the_future_is_not_believed(void **state)
{
    (void)state;
    char measured[24], until[24], why[128];
    static const char *const times[] = {NULL, "", "yesterday", "2026-13-01T00:00:00Z"};
    hone_store_measurement failure = failure_of(HONE_FAILURE_WRONG, measured, 0);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        failure.measured = times[i];
        assert_false(stands(&failure, why));
        hone_failure_until(&failure, until);
        assert_string_equal(until, "");
    }
    failure = failure_of(HONE_FAILURE_WRONG, measured, -1);
    assert_false(stands(&failure, why));
    failure = failure_of(HONE_FAILURE_WRONG, measured, -30 / day);
    assert_true(stands(&failure, why));
}

// docs/tune.md: | `kind` | ... | N days |
static void the_days_in_the_docs_are_those_in_the_code(void **state)
{
    (void)state;
    hone_buffer page;
    hone_buffer_init(&page, hone_allocator_system());
    assert_int_equal(hone_os_read_file(HONE_TEST_DATA "/../docs/tune.md", 1 << 20, &page, NULL), HONE_OK);
    for (int kind = HONE_FAILURE_NONE + 1; kind < HONE_FAILURE_COUNT; kind++) {
        char begin[40], end[40];
        snprintf(begin, sizeof begin, "\n| `%s` |", hone_failure_name((hone_failure)kind));
        double days = hone_failure_kind_of((hone_failure)kind)->days;
        snprintf(end, sizeof end, "| %g day%s |", days, days == 1 ? "" : "s");
        const char *row = strstr(hone_buffer_string(&page), begin);
        if (row == NULL) fail_msg("docs/tune.md has no row%s", begin);
        size_t size = strcspn(row + 1, "\n") + 1;
        if (size < strlen(end) || strncmp(row + size - strlen(end), end, strlen(end)) != 0)
            fail_msg("%.*s\nshould end with %s", (int)size, row, end);
    }
    hone_buffer_deinit(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_believed_for_its_days_and_no_longer),
        cmocka_unit_test(another_revision_is_another_kernel),
        cmocka_unit_test(another_environment_is_another_chance),
        cmocka_unit_test(a_failure_of_no_time_or_of_the_future_is_not_believed),
        cmocka_unit_test(the_days_in_the_docs_are_those_in_the_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
