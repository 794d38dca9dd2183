// A contest on PoCL, in a worker: what is right wins, and what is wrong, writes too far, ends its process, hangs or
// does not compile loses with its reason and harms nobody.
#include "fake.h"

#include <pthread.h>

#define SOURCE(entry, body) "__kernel void " entry "(__global const float *x, __global float *y, int n) {" body "}"
#define CALL                "rms_norm(f32[4,64], f32[64]) @opencl:0"

static void add(hone_runtime *rt, const char *entry, const char *source)
{
    hone_error err;
    const hone_code code = {HONE_CODE, .source = source, .entry = entry, .arguments = "x, y, i32(x.size)"};
    const hone_kernel kernel = {HONE_KERNEL,         .algorithm = "rms_norm", .name = entry, .platform = HONE_OPENCL,
                                .backend = HONE_ANY, .priority = 1,           .code = &code};
    if (hone_register_kernels(rt, &kernel, 1, &err) != HONE_OK) fail_msg("%s", err.message);
}

static void add_past_scratch(hone_runtime *rt)
{
    hone_error err;
    const hone_code code = {
        HONE_CODE,
        .source = "__kernel void past_scratch(__global const float *x, __global float *y, __global float *s, int n) {"
                  "for (int i = 0; i < 49; i++) ((__global char *)(s + n))[i] = 0; }",
        .entry = "past_scratch", .arguments = "x, y, scratch, i32(x.size)", .scratch = "4 * x.size"};
    const hone_kernel kernel = {
        HONE_KERNEL,         .algorithm = "rms_norm", .name = "past_scratch", .platform = HONE_OPENCL,
        .backend = HONE_ANY, .priority = 1,           .code = &code};
    if (hone_register_kernels(rt, &kernel, 1, &err) != HONE_OK) fail_msg("%s", err.message);
}

static hone_runtime *open_runtime(void)
{
    hone_runtime *rt = NULL;
    hone_error err;
    hone_runtime_options options = {.struct_size = sizeof options, .store = "memory:", .device_locks = "none"};
    assert_int_equal(hone_runtime_open(&options, &rt, &err), HONE_OK);
    return rt;
}

static void assert_chosen(hone_runtime *rt, const hone_tune_options *options, const char *const *reasons, size_t count)
{
    hone_error err = {.message = ""};
    hone_result *result = NULL;
    char *json = NULL;
    if (hone_tune_text(rt, CALL, options, &result, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_int_equal(hone_result_json(result, &json, &err), HONE_OK);
    assert_non_null(strstr(json, "\"kernel\":\"opencl\""));
    for (size_t i = 0; i < count; i++)
        if (strstr(json, reasons[i]) == NULL) fail_msg("'%s' is not in %s", reasons[i], json);
    hone_text_release(&json);
    hone_result_release(&result);
}

static void only_what_is_right_wins(void **state)
{
    // Each candidate may wait long for a compiler that shares two processors with whatever else runs.
    const hone_tune_options patient = {
        .struct_size = sizeof patient, .seconds = 100, .evaluations = 7, .candidate_seconds = 90};
    static const char *const reasons[] = {
        "past the end of y", "the reference says", "signal", "nonsense",
        "wrote 49 bytes past the end of its scratch on the device of 1024 bytes"};
    hone_runtime *rt = open_runtime();
    (void)state;
    add(rt, "wrong", SOURCE("wrong", "for (int i = 0; i < n; i++) y[i] = 2 * x[i];"));
    add(rt, "overrun", SOURCE("overrun", "for (int i = 0; i < n + 5; i++) y[i] = 3;"));
    add_past_scratch(rt);
    add(rt, "crash", SOURCE("crash", "if (n > 0) __builtin_trap();"));
    add(rt, "broken", SOURCE("broken", "nonsense;"));
    assert_chosen(rt, &patient, reasons, sizeof reasons / sizeof *reasons);
    hone_runtime_close(&rt);
}

static void a_kernel_that_hangs_is_killed(void **state)
{
    // The one that wins was compiled by the test before: only the one that hangs is waited for.
    const hone_tune_options quick = {
        .struct_size = sizeof quick, .seconds = 60, .evaluations = 2, .candidate_seconds = 4};
    static const char *const reasons[] = {"no answer within"};
    hone_runtime *rt = open_runtime();
    (void)state;
    add(rt, "hang", SOURCE("hang", "volatile int busy = 1; while (busy) y[0] += 1;"));
    assert_chosen(rt, &quick, reasons, 1);
    hone_runtime_close(&rt);
}

static int setup(void **state)
{
    fake *f = calloc(1, sizeof *f);
    fake_choose(f, NULL);
    setenv("HONE_WORKER", HONE_TEST_WORKER, 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fake_forget(*state);
    free(*state);
    return 0;
}

static void *look_for_devices(void *rt)
{
    size_t count = 0;
    (void)hone_runtime_devices(rt, &count);
    return NULL;
}

// PoCL finds its devices when it is first asked: no other test of this program may come before.
static void two_threads_may_be_the_first_to_look_for_devices(void **state)
{
    hone_runtime *opened[] = {open_runtime(), open_runtime()};
    pthread_t threads[2];
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_for_devices, opened[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 2; i++)
        hone_runtime_close(&opened[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_threads_may_be_the_first_to_look_for_devices),
        cmocka_unit_test(only_what_is_right_wins),
        cmocka_unit_test(a_kernel_that_hangs_is_killed),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
