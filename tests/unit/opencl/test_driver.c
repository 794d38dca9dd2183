// The loader, its devices and their memory.
#include "fake.h"

#include "failing_allocator.h"
#include "hone/runtime.h"
#include "platforms/opencl/icd.h"
#include "platforms/opencl/opencl.h"

static const hone_log silent = {0};
static const hone_platform_ops *const ops = &hone_opencl_platform;

typedef struct opened {
    fake fake;
    failing_allocator memory;
    hone_platform_instance *instance;
    const hone_device_info *device;
    size_t count;
    hone_error err;
} opened;

static hone_status open_now(opened *o)
{
    hone_allocator allocator = failing_allocator_of(&o->memory, -1);
    hone_status status = ops->open(&allocator, &silent, &o->instance, &o->err);
    if (status == HONE_OK) o->device = ops->devices(o->instance, &o->count);
    return status;
}

static int setup(void **state)
{
    opened *o = calloc(1, sizeof *o);
    fake_choose(&o->fake, "fake_opencl.so");
    *state = o;
    return 0;
}

static int teardown(void **state)
{
    opened *o = *state;
    ops->close(&o->instance);
    long long live = o->memory.live;
    fake_forget(&o->fake);
    free(o);
    return live == 0 ? 0 : -1;
}

static void assert_unavailable(opened *o, const char *words)
{
    assert_int_equal(open_now(o), HONE_UNAVAILABLE);
    assert_null(o->instance);
    if (strstr(o->err.message, words) == NULL) fail_msg("'%s' is not in: %s", words, o->err.message);
}

static void a_device_says_what_kernels_and_decisions_ask(void **state)
{
    opened *o = *state;
    setenv("FAKE_OPENCL_DEVICES", "2", 1);
    assert_int_equal(open_now(o), HONE_OK);
    assert_int_equal(o->count, 2);
    const hone_device_info *device = &o->device[1];
    assert_string_equal(device->name, "Fake device");
    assert_string_equal(device->fingerprint, "opencl|Fake,Fake%20device,units=12,group=256,local=32768,cache=1048576");
    assert_string_equal(device->driver, "OpenCL 7.5");
    assert_string_equal(device->architecture, "Fake Corp, OpenCL 3.0 fake");
    assert_string_equal(device->runtime, "OpenCL 3.0 fake platform");
    assert_string_equal(device->compiler, "OpenCL C 1.2 fake");
    assert_int_equal(device->backend, HONE_GPU);
    assert_int_equal(device->device.type, HONE_DEVICE_OPENCL);
    assert_int_equal(device->device.id, 1);
    assert_int_equal(device->capability, 30);
    assert_int_equal(device->clock_mhz, 1500);
    assert_int_equal(device->memory_bytes, 1 << 30);
}

static void a_missing_driver_is_reported_with_its_package(void **state)
{
    opened *o = *state;
    setenv("FAKE_OPENCL_FAULT", "platforms=-1001", 1);
    assert_unavailable(o, "no driver: install that of the GPU, or for the CPU PoCL (package pocl-opencl-icd)");
    setenv("FAKE_OPENCL_FAULT", "platforms=-6", 1);
    assert_unavailable(o, "broken: clGetPlatformIDs: CL_OUT_OF_HOST_MEMORY (-6)");
    setenv("FAKE_OPENCL_FAULT", "devices=-1", 1);
    assert_unavailable(o, "none of 1 OpenCL drivers shows a device");
    setenv("HONE_OPENCL", "/nowhere/libOpenCL.so.1", 1);
    assert_unavailable(o, "package ocl-icd-libopencl1");
}

static void a_loader_without_a_function_is_refused_by_the_functions_name(void **state)
{
    opened *o = *state;
    setenv("HONE_OPENCL", HONE_TEST_FAKES "/fake_opencl_broken.so", 1);
    assert_unavailable(o, "has no clSetKernelArg");
}

static void the_environment_is_as_it_was_for_processes_that_are_started_afterwards(void **state)
{
    opened *o = *state;
    setenv("OCL_ICD_FILENAMES", "libone.so:libtwo.so", 1);
    assert_int_equal(open_now(o), HONE_OK);
    assert_string_equal(getenv("OCL_ICD_FILENAMES"), "libone.so:libtwo.so");
    unsetenv("OCL_ICD_FILENAMES");
}

static void a_device_that_is_too_old_is_left_out(void **state)
{
    opened *o = *state;
    setenv("FAKE_OPENCL_VERSION", "OpenCL 1.1 fake", 1);
    assert_unavailable(o, "OpenCL 1.2 or later is needed; Fake device has Fake Corp, OpenCL 1.1 fake");
    setenv("FAKE_OPENCL_VERSION", "nonsense", 1);
    assert_unavailable(o, "nonsense");
}

static void a_driver_without_devices_is_reported_beside_the_devices_of_the_others(void **state)
{
    opened *o = *state;
    hone_buffer words;
    setenv("FAKE_OPENCL_PLATFORMS", "2", 1);
    setenv("FAKE_OPENCL_RESERVES", "9223372036854775807", 1); // which no machine has
    assert_int_equal(open_now(o), HONE_OK);
    assert_int_equal(o->count, 1);
    hone_buffer_init(&words, hone_allocator_system());
    ops->describe(o->instance, &words);
    assert_string_equal(
        hone_buffer_string(&words), "driver Fake shows no device: clGetDeviceIDs: CL_OUT_OF_HOST_MEMORY (-6)");
    hone_buffer_deinit(&words);
}

static void bytes_come_back_as_they_went(void **state)
{
    opened *o = *state;
    char in[100], out[100] = {0};
    void *memory = NULL, *other = NULL;
    assert_int_equal(open_now(o), HONE_OK);
    for (int i = 0; i < 100; i++)
        in[i] = (char)i;
    const hone_place host_in = {in, 0}, host_out = {out, 0};
    assert_int_equal(ops->allocate(o->instance, o->device, 4200, &memory, &o->err), HONE_OK);
    assert_int_equal(ops->allocate(o->instance, o->device, 100, &other, &o->err), HONE_OK);
    const hone_place inside = {memory, 4096}, there = {other, 0};
    assert_int_equal(ops->copy(o->instance, o->device, HONE_COPY_IN, inside, host_in, 100, &o->err), HONE_OK);
    assert_int_equal(ops->fill(o->instance, o->device, inside, 0xd7, 10, &o->err), HONE_OK);
    assert_int_equal(ops->copy(o->instance, o->device, HONE_COPY_WITHIN, there, inside, 100, &o->err), HONE_OK);
    assert_int_equal(ops->copy(o->instance, o->device, HONE_COPY_OUT, host_out, there, 100, &o->err), HONE_OK);
    assert_int_equal((unsigned char)out[9], 0xd7);
    assert_memory_equal(out + 10, in + 10, 90);
    ops->deallocate(o->instance, o->device, memory, 4200);
    ops->deallocate(o->instance, o->device, other, 100);
}

static void memory_that_is_not_there_is_refused_and_the_device_goes_on(void **state)
{
    opened *o = *state;
    void *memory = NULL;
    setenv("FAKE_OPENCL_MEMORY", "1000", 1);
    assert_int_equal(open_now(o), HONE_OK);
    assert_int_equal(ops->allocate(o->instance, o->device, 2000, &memory, &o->err), HONE_OUT_OF_MEMORY);
    assert_non_null(strstr(o->err.message, "Fake device has no 2000 bytes of memory left"));
    assert_int_equal(ops->allocate(o->instance, o->device, (size_t)1 << 40, &memory, &o->err), HONE_OUT_OF_MEMORY);
    assert_non_null(strstr(o->err.message, "more than a buffer of Fake device may have"));
    setenv("FAKE_OPENCL_FAULT", "write=-4", 1); // a driver that finds out when the memory is used
    assert_int_equal(ops->allocate(o->instance, o->device, 500, &memory, &o->err), HONE_OUT_OF_MEMORY);
    assert_null(memory);
    assert_false(ops->is_lost(o->instance));
    unsetenv("FAKE_OPENCL_FAULT");
    assert_int_equal(ops->allocate(o->instance, o->device, 500, &memory, &o->err), HONE_OK);
    ops->deallocate(o->instance, o->device, memory, 500);
}

static void a_device_that_is_lost_says_so(void **state)
{
    opened *o = *state;
    assert_int_equal(open_now(o), HONE_OK);
    setenv("FAKE_OPENCL_FAULT", "finish=-2", 1);
    assert_int_equal(ops->synchronize(o->instance, o->device, NULL, &o->err), HONE_KERNEL_FAILED);
    assert_non_null(strstr(o->err.message, "CL_DEVICE_NOT_AVAILABLE (-2)"));
    assert_true(ops->is_lost(o->instance));
}

static void a_failure_to_create_a_context_is_reported_and_tried_again(void **state)
{
    opened *o = *state;
    void *memory = NULL;
    assert_int_equal(open_now(o), HONE_OK);
    setenv("FAKE_OPENCL_FAULT", "context=-5", 1);
    assert_int_equal(ops->allocate(o->instance, o->device, 8, &memory, &o->err), HONE_KERNEL_FAILED);
    assert_non_null(strstr(o->err.message, "clCreateContext: CL_OUT_OF_RESOURCES (-5)"));
    setenv("FAKE_OPENCL_FAULT", "queue=-6", 1);
    assert_int_equal(ops->allocate(o->instance, o->device, 8, &memory, &o->err), HONE_OUT_OF_MEMORY);
    unsetenv("FAKE_OPENCL_FAULT");
    assert_int_equal(ops->allocate(o->instance, o->device, 8, &memory, &o->err), HONE_OK);
    ops->deallocate(o->instance, o->device, memory, 8);
}

static void nothing_is_left_behind(void **state)
{
    opened *o = *state;
    void *memory = NULL;
    assert_int_equal(open_now(o), HONE_OK);
    assert_int_equal(ops->allocate(o->instance, o->device, 8, &memory, &o->err), HONE_OK);
    ops->deallocate(o->instance, o->device, memory, 8);
    ops->close(&o->instance);
    assert_non_null(strstr(fake_read(&o->fake), "context ended, live 0\n"));
}

typedef struct timing {
    hone_status answer;
    int started;
} timing;

static hone_status start(void *ctx)
{
    timing *t = ctx;
    t->started++;
    return t->answer;
}

static void runs_that_fail_have_no_time(void **state)
{
    opened *o = *state;
    timing t = {HONE_OK, 0};
    double ns = -1;
    assert_int_equal(open_now(o), HONE_OK);
    const hone_timed_runs runs = {.device = o->device, .count = 3, .run = start, .ctx = &t};
    assert_int_equal(ops->time(o->instance, &runs, &ns, &o->err), HONE_OK);
    assert_true(ns >= 0);
    assert_int_equal(t.started, 3);
    t.answer = HONE_KERNEL_FAILED;
    assert_int_equal(ops->time(o->instance, &runs, &ns, &o->err), HONE_KERNEL_FAILED);
    assert_int_equal(t.started, 4);
}

// Asked by a runtime: this process goes on, and says what became of the driver.
static void assert_survives(const char *end, const char *worker, const char *words)
{
    hone_runtime *rt = NULL;
    hone_error err = {.message = ""};
    size_t count = 0;
    const char *reason = NULL;
    setenv("FAKE_OPENCL_END", end, 1);
    setenv("HONE_WORKER", worker, 1);
    setenv("HONE_STORE", "none", 1);
    setenv("HONE_PLATFORMS", "native,opencl", 1);
    assert_int_equal(hone_runtime_open(NULL, &rt, &err), HONE_OK);
    assert_non_null(hone_runtime_devices(rt, &count));
    assert_int_equal(count, 1); // the CPU
    assert_false(hone_runtime_platform(rt, HONE_OPENCL, &reason));
    if (strstr(reason, words) == NULL) fail_msg("'%s' is not in: %s", words, reason);
    assert_non_null(strstr(reason, "a driver of opencl"));
    hone_runtime_close(&rt);
    unsetenv("HONE_PLATFORMS");
    unsetenv("HONE_STORE");
    unsetenv("HONE_WORKER");
    unsetenv("FAKE_OPENCL_END");
}

static void a_driver_that_aborts_or_exits_ends_a_worker_and_no_program(void **state)
{
    (void)state;
    assert_survives("abort", HONE_TEST_WORKER, "by signal 6 (it said: the driver gives up)");
    assert_survives(
        "exit", HONE_TEST_WORKER, "with exit code 0 before there was an answer (it said: the driver gives up)");
}

static void without_a_worker_a_child_of_this_process_is_ended(void **state)
{
    (void)state;
    assert_survives("abort", "/nowhere/hone-worker", "by signal 6");
    assert_survives("exit", "/nowhere/hone-worker", "with exit code 0");
}

static void a_driver_that_never_answers_is_left_after_a_while(void **state)
{
    (void)state;
    assert_survives("hang", HONE_TEST_WORKER, "did not answer within");
}

static void a_driver_that_answers_is_loaded(void **state)
{
    (void)state;
    static const char *const workers[] = {HONE_TEST_WORKER, "/nowhere/hone-worker"};
    for (size_t i = 0; i < 2; i++) {
        hone_runtime *rt = NULL;
        hone_error err = {.message = ""};
        setenv("HONE_WORKER", workers[i], 1);
        assert_int_equal(hone_runtime_open(NULL, &rt, &err), HONE_OK);
        const char *reason = NULL;
        if (!hone_runtime_platform(rt, HONE_OPENCL, &reason)) fail_msg("%s", reason);
        hone_runtime_close(&rt);
    }
    unsetenv("HONE_WORKER");
}

#define fake_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        fake_test(a_device_says_what_kernels_and_decisions_ask),
        fake_test(a_missing_driver_is_reported_with_its_package),
        fake_test(a_loader_without_a_function_is_refused_by_the_functions_name),
        fake_test(the_environment_is_as_it_was_for_processes_that_are_started_afterwards),
        fake_test(a_device_that_is_too_old_is_left_out),
        fake_test(a_driver_without_devices_is_reported_beside_the_devices_of_the_others),
        fake_test(bytes_come_back_as_they_went),
        fake_test(memory_that_is_not_there_is_refused_and_the_device_goes_on),
        fake_test(a_device_that_is_lost_says_so),
        fake_test(a_failure_to_create_a_context_is_reported_and_tried_again),
        fake_test(nothing_is_left_behind),
        fake_test(runs_that_fail_have_no_time),
        fake_test(a_driver_that_aborts_or_exits_ends_a_worker_and_no_program),
        fake_test(without_a_worker_a_child_of_this_process_is_ended),
        fake_test(a_driver_that_never_answers_is_left_after_a_while),
        fake_test(a_driver_that_answers_is_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
