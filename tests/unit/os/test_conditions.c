// What moves times from outside, out of the texts of several machines, laid out in a folder that stands for the root.
#include "os/conditions.h"
#include "os/os.h"
#include "temporary_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define CPUS "/sys/devices/system/cpu"

static temporary_folder folder;

static int begin(void **state)
{
    (void)state;
    return temporary_folder_make(&folder);
}

static int end(void **state)
{
    (void)state;
    temporary_folder_remove(&folder);
    return 0;
}

static void put(const char *path, const char *text)
{
    char full[TEMPORARY_PATH_SIZE];
    hone_error err;
    snprintf(full, sizeof full, "%s%s", folder.path, path);
    *strrchr(full, '/') = '\0';
    assert_int_equal(hone_os_make_folders(full, &err), HONE_OK);
    full[strlen(full)] = '/';
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static hone_os_conditions conditions(void)
{
    hone_os_conditions is;
    hone_os_conditions_read(folder.path, &is);
    return is;
}

static void a_machine_that_says_nothing_is_not_known(void **state)
{
    (void)state;
    hone_os_conditions is = conditions();
    assert_string_equal(is.governor, "");
    assert_int_equal(is.most_khz, 0);
    assert_int_equal(is.turbo, HONE_OS_UNKNOWN);
    assert_int_equal(is.smt, HONE_OS_UNKNOWN);
    assert_int_equal(is.online, 0);
    assert_true(is.throttled < 0 && is.load < 0 && is.ticks < 0 && is.stolen_ticks < 0);
}

static void a_machine_of_intels_says_all(void **state)
{
    (void)state;
    put(CPUS "/cpu0/cpufreq/scaling_governor", "powersave\n");
    put(CPUS "/cpu0/cpufreq/scaling_min_freq", "400000\n");
    put(CPUS "/cpu0/cpufreq/scaling_max_freq", "3000000\n");
    put(CPUS "/cpu0/cpufreq/cpuinfo_max_freq", "3700000\n");
    put(CPUS "/intel_pstate/no_turbo", "1\n");
    put(CPUS "/smt/active", "1\n");
    put(CPUS "/online", "0-2,5\n");
    put(CPUS "/cpu0/thermal_throttle/core_throttle_count", "7\n");
    put(CPUS "/cpu1/thermal_throttle/core_throttle_count", "5\n");
    put("/proc/loadavg", "1.25 0.80 0.70 1/100 4711\n");
    put("/proc/stat", "cpu  50 0 30 15 0 0 0 5 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
    hone_os_conditions is = conditions();
    assert_string_equal(is.governor, "powersave");
    assert_int_equal(is.least_khz, 400000);
    assert_int_equal(is.most_khz, 3000000);
    assert_int_equal(is.processor_khz, 3700000);
    assert_int_equal(is.turbo, HONE_OS_OFF);
    assert_int_equal(is.smt, HONE_OS_ON);
    assert_int_equal(is.online, 4);
    assert_true(is.allowed >= 1);
    assert_int_equal(is.throttled, 12);
    assert_true(is.load == 1.25);
    assert_true(is.ticks == 100 && is.stolen_ticks == 5);
}

static void other_drivers_say_boost(void **state)
{
    (void)state;
    put(CPUS "/cpufreq/boost", "1\n");
    put(CPUS "/smt/active", "0\n");
    assert_int_equal(conditions().turbo, HONE_OS_ON);
    assert_int_equal(conditions().smt, HONE_OS_OFF);
}

static void texts_that_make_no_sense_are_not_known(void **state)
{
    (void)state;
    put(CPUS "/cpu0/cpufreq/scaling_max_freq", "<unknown>\n");
    put(CPUS "/online", "all of them\n");
    put("/proc/loadavg", "heavy\n");
    put("/proc/stat", "cpu  1 2 3\n");
    hone_os_conditions is = conditions();
    assert_int_equal(is.most_khz, 0);
    assert_int_equal(is.online, 0);
    assert_true(is.load < 0 && is.ticks < 0);
}

static void what_came_in_between_is_told_not_what_was_before(void **state)
{
    (void)state;
    put(CPUS "/online", "0-1\n");
    put(CPUS "/cpu0/thermal_throttle/core_throttle_count", "700\n");
    put("/proc/stat", "cpu  500 0 300 150 0 0 0 50\n");
    const hone_os_conditions before = conditions(), start = {.ticks = 0};
    put(CPUS "/cpu0/thermal_throttle/core_throttle_count", "703\n");
    put("/proc/stat", "cpu  650 0 300 175 0 0 0 75\n");
    const hone_os_conditions after = conditions();
    hone_os_disturbance came = hone_os_disturbance_between(&before, &after);
    assert_int_equal(came.throttled, 3);
    assert_true(came.stolen == 0.125);
    came = hone_os_disturbance_between(&start, &before);
    assert_int_equal(came.throttled, 700);
    assert_true(came.stolen == 0.05);
}

static void what_is_not_counted_or_goes_back_is_not_known_in_between(void **state)
{
    (void)state;
    const hone_os_conditions silent = conditions(), none = {.ticks = 0};
    put(CPUS "/online", "0\n");
    put(CPUS "/cpu0/thermal_throttle/core_throttle_count", "7\n");
    put("/proc/stat", "cpu  50 0 30 15 0 0 0 5\n");
    const hone_os_conditions more = conditions();
    const hone_os_conditions *const pairs[][2] = {
        {&silent, &silent}, {&silent, &more}, {&more, &silent}, {&more, &none}, {&none, &silent}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        hone_os_disturbance came = hone_os_disturbance_between(pairs[i][0], pairs[i][1]);
        assert_int_equal(came.throttled, -1);
        assert_true(came.stolen < 0);
    }
    // Two readings within a tick say nothing of the host.
    assert_true(hone_os_disturbance_between(&more, &more).stolen < 0);
    assert_int_equal(hone_os_disturbance_between(&more, &more).throttled, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_machine_that_says_nothing_is_not_known, begin, end),
        cmocka_unit_test_setup_teardown(a_machine_of_intels_says_all, begin, end),
        cmocka_unit_test_setup_teardown(other_drivers_say_boost, begin, end),
        cmocka_unit_test_setup_teardown(what_came_in_between_is_told_not_what_was_before, begin, end),
        cmocka_unit_test_setup_teardown(what_is_not_counted_or_goes_back_is_not_known_in_between, begin, end),
        cmocka_unit_test_setup_teardown(texts_that_make_no_sense_are_not_known, begin, end),
    };
    return cmocka_run_group_tests_name("os_conditions", tests, NULL, NULL);
}
