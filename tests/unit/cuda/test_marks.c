// What disturbs a GPU, as NVML tells it, and what a contest makes of that.
#include "fake.h"

#include "failing_allocator.h"
#include "platforms/cuda/nvml.h"
#include "platforms/platform.h"

typedef struct watched {
    fake fake;
    failing_allocator memory;
    hone_allocator allocator;
    cuda_driver driver;
    hone_cuda_watch watch;
} watched;

static int setup(void **state)
{
    watched *w = calloc(1, sizeof *w);
    static const char *const said[] = {"FAKE_NVML_CLOCK",  "FAKE_NVML_REASONS", "FAKE_NVML_OTHER",
                                       "FAKE_NVML_HIDDEN", "FAKE_NVML_MIG",     "FAKE_NVML_STILL"};
    fake_choose(&w->fake, "fake_cuda.so");
    setenv("HONE_NVML", HONE_TEST_FAKES "/fake_nvml.so", 1);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        unsetenv(said[i]);
    w->allocator = failing_allocator_of(&w->memory, -1);
    *state = w;
    return hone_cuda_driver_open(&w->allocator, &w->driver, NULL) == HONE_OK ? 0 : -1;
}

static int teardown(void **state)
{
    watched *w = *state;
    hone_cuda_watch_end(&w->watch, &w->allocator);
    hone_cuda_driver_close(&w->allocator, &w->driver);
    const long long live = w->memory.live;
    unsetenv("HONE_NVML");
    fake_forget(&w->fake);
    free(w);
    return live == 0 ? 0 : -1;
}

static void begin_on(watched *w, int ordinal)
{
    cuda_context *context = NULL;
    assert_int_equal(w->driver.primary_context_retain(&context, ordinal), 0);
    assert_int_equal(w->driver.context_set_current(context), 0);
    hone_cuda_watch_begin(&w->watch, &w->allocator, &w->driver, ordinal);
}

// Marks of one look, which is not left out because one came shortly before.
static unsigned look(watched *w)
{
    w->watch.next_ns = 0;
    hone_cuda_watch_look(&w->watch);
    return hone_cuda_watch_take(&w->watch);
}

static void begin(watched *w)
{
    begin_on(w, 0);
    assert_string_equal(w->watch.reason, "");
    assert_int_equal(look(w), 0);
}

static void a_gpu_alone_at_its_clock_is_not_disturbed(void **state)
{
    watched *w = *state;
    begin(w);
    for (int i = 0; i < 3; i++)
        assert_int_equal(look(w), 0);
}

static void a_clock_more_than_three_percent_below_the_highest_is_marked(void **state)
{
    watched *w = *state;
    begin(w);
    setenv("FAKE_NVML_CLOCK", "1930", 1);
    assert_int_equal(look(w), 0);
    setenv("FAKE_NVML_CLOCK", "1900", 1);
    assert_int_equal(look(w), HONE_DEVICE_SLOWED);
    setenv("FAKE_NVML_CLOCK", "1980", 1);
    assert_int_equal(look(w), 0);
}

static void heat_and_power_are_marked_and_settings_are_not(void **state)
{
    watched *w = *state;
    static const char *const throttles[] = {"0x4", "0x8", "0x20", "0x40", "0x80"};
    begin(w);
    for (size_t i = 0; i < sizeof throttles / sizeof *throttles; i++) {
        setenv("FAKE_NVML_REASONS", throttles[i], 1);
        assert_int_equal(look(w), HONE_DEVICE_THROTTLED);
    }
    setenv("FAKE_NVML_REASONS", "0x112", 1);
    assert_int_equal(look(w), 0);
}

static void the_clock_of_an_idle_gpu_says_nothing(void **state)
{
    watched *w = *state;
    begin(w);
    setenv("FAKE_NVML_REASONS", "1", 1);
    setenv("FAKE_NVML_CLOCK", "345", 1);
    assert_int_equal(look(w), 0);
    setenv("FAKE_NVML_REASONS", "0x5", 1);
    assert_int_equal(look(w), 0);
}

static void a_process_that_computes_is_marked_and_one_that_only_holds_memory_is_not(void **state)
{
    watched *w = *state;
    setenv("FAKE_NVML_OTHER", "0", 1);
    begin(w);
    assert_int_equal(look(w), 0);
    setenv("FAKE_NVML_OTHER", "90", 1);
    assert_int_equal(look(w), HONE_DEVICE_SHARED);
    setenv("FAKE_NVML_OTHER", "0", 1);
    assert_int_equal(look(w), 0);
}

static void use_of_the_device_before_the_first_check_marks_nothing(void **state)
{
    watched *w = *state;
    setenv("FAKE_NVML_OTHER", "90", 1);
    setenv("FAKE_NVML_STILL", "1", 1);
    begin(w);
    assert_int_equal(look(w), 0);
}

static void other_processes_count_until_the_driver_samples_again(void **state)
{
    watched *w = *state;
    begin(w);
    setenv("FAKE_NVML_OTHER", "90", 1);
    assert_int_equal(look(w), HONE_DEVICE_SHARED);
    setenv("FAKE_NVML_STILL", "1", 1);
    assert_int_equal(look(w), HONE_DEVICE_SHARED);
    w->watch.shared_until_ns = 1; // long ago
    assert_int_equal(look(w), 0);
}

static void in_a_container_a_process_knows_itself_by_the_memory_that_it_takes(void **state)
{
    watched *w = *state;
    setenv("FAKE_NVML_HIDDEN", "1", 1);
    setenv("FAKE_NVML_OTHER", "0", 1);
    begin(w);
    assert_int_equal(w->watch.own, 88888);
    assert_int_equal(look(w), 0);
    setenv("FAKE_NVML_OTHER", "90", 1);
    assert_int_equal(look(w), HONE_DEVICE_SHARED);
}

static void a_device_check_that_comes_too_soon_repeats_the_last_result(void **state)
{
    watched *w = *state;
    begin(w);
    setenv("FAKE_NVML_CLOCK", "1000", 1);
    w->watch.next_ns = UINT64_MAX;
    hone_cuda_watch_look(&w->watch);
    assert_int_equal(hone_cuda_watch_take(&w->watch), 0);
    assert_int_equal(look(w), HONE_DEVICE_SLOWED);
    setenv("FAKE_NVML_CLOCK", "1980", 1);
    w->watch.next_ns = UINT64_MAX;
    hone_cuda_watch_look(&w->watch);
    assert_int_equal(hone_cuda_watch_take(&w->watch), HONE_DEVICE_SLOWED);
    assert_int_equal(hone_cuda_watch_take(&w->watch), 0);
}

static void a_divided_gpu_an_unknown_one_and_a_missing_library_mark_nothing_and_say_why(void **state)
{
    watched *w = *state;
    setenv("FAKE_NVML_MIG", "1", 1);
    setenv("FAKE_NVML_CLOCK", "1000", 1);
    begin_on(w, 0);
    assert_non_null(strstr(w->watch.reason, "0000:01:00.0 is divided by MIG"));
    assert_int_equal(look(w), 0);
    hone_cuda_watch_end(&w->watch, &w->allocator);
    begin_on(w, 4);
    assert_non_null(strstr(w->watch.reason, "NVML on GPU 0000:05:00.0: Not Found"));
    hone_cuda_watch_end(&w->watch, &w->allocator);
    setenv("HONE_NVML", "/nowhere/libnvidia-ml.so.1", 1);
    begin_on(w, 0);
    assert_non_null(strstr(w->watch.reason, "/nowhere/libnvidia-ml.so.1"));
    assert_int_equal(look(w), 0);
}

static double tune_and_tell_what_was_disturbed(void)
{
    hone_runtime *rt = NULL;
    hone_result *result = NULL;
    hone_error err = {.message = ""};
    const hone_runtime_options options = {.struct_size = sizeof options, .store = "memory:", .device_locks = "none"};
    const hone_tune_options quick = {.struct_size = sizeof quick, .seconds = 2, .evaluations = 4};
    assert_int_equal(hone_runtime_open(&options, &rt, &err), HONE_OK);
    if (hone_tune_text(rt, "rms_norm(f32[4,64], f32[64]) @cuda:0", &quick, &result, &err) != HONE_OK)
        fail_msg("%s", err.message);
    char *json = NULL;
    assert_int_equal(hone_result_json(result, &json, &err), HONE_OK);
    const char *at = strstr(json, "\"disturbed\":");
    const double disturbed = at != NULL ? strtod(at + strlen("\"disturbed\":"), NULL) : 0; // left out where it is 0
    hone_text_release(&json);
    hone_result_release(&result);
    hone_runtime_close(&rt);
    return disturbed;
}

static void a_contest_beside_a_neighbour_ends_and_says_how_many_samples_that_disturbed(void **state)
{
    (void)state;
    setenv("HONE_WORKER", HONE_TEST_WORKER, 1);
    assert_true(tune_and_tell_what_was_disturbed() == 0);
    setenv("FAKE_NVML_OTHER", "90", 1);
    assert_true(tune_and_tell_what_was_disturbed() > 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_gpu_alone_at_its_clock_is_not_disturbed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_clock_more_than_three_percent_below_the_highest_is_marked, setup, teardown),
        cmocka_unit_test_setup_teardown(heat_and_power_are_marked_and_settings_are_not, setup, teardown),
        cmocka_unit_test_setup_teardown(the_clock_of_an_idle_gpu_says_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_process_that_computes_is_marked_and_one_that_only_holds_memory_is_not, setup, teardown),
        cmocka_unit_test_setup_teardown(use_of_the_device_before_the_first_check_marks_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(other_processes_count_until_the_driver_samples_again, setup, teardown),
        cmocka_unit_test_setup_teardown(
            in_a_container_a_process_knows_itself_by_the_memory_that_it_takes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_device_check_that_comes_too_soon_repeats_the_last_result, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_divided_gpu_an_unknown_one_and_a_missing_library_mark_nothing_and_say_why, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_contest_beside_a_neighbour_ends_and_says_how_many_samples_that_disturbed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
