// The driver, its devices and their memory.
#include "fake.h"

#include "failing_allocator.h"
#include "platforms/cuda/cuda.h"
#include "platforms/cuda/driver.h"

static const hone_log silent = {0};

typedef struct opened {
    fake fake;
    failing_allocator memory;
    hone_platform_instance *instance;
    const hone_device_info *device;
    hone_error err;
} opened;

static hone_status open_now(opened *o)
{
    hone_allocator allocator = failing_allocator_of(&o->memory, -1);
    size_t count = 0;
    hone_status status = hone_cuda_platform.open(&allocator, &silent, &o->instance, &o->err);
    if (status == HONE_OK) o->device = hone_cuda_platform.devices(o->instance, &count);
    return status;
}

static int setup(void **state)
{
    opened *o = calloc(1, sizeof *o);
    fake_choose(&o->fake, "fake_cuda.so");
    *state = o;
    return 0;
}

static int teardown(void **state)
{
    opened *o = *state;
    hone_cuda_platform.close(&o->instance);
    long long live = o->memory.live;
    fake_forget(&o->fake);
    free(o);
    return live == 0 ? 0 : -1;
}

static void a_gpu_says_what_kernels_and_decisions_ask(void **state)
{
    opened *o = *state;
    assert_int_equal(open_now(o), HONE_OK);
    assert_string_equal(o->device->name, "Fake GPU");
    assert_string_equal(o->device->fingerprint, "cuda|Fake%20GPU,sm_90,sms=132,l2=1048576,smem=232448");
    assert_string_equal(o->device->driver, "CUDA 13.0");
    assert_int_equal(o->device->backend, HONE_GPU);
    assert_int_equal(o->device->device.type, HONE_DEVICE_CUDA);
    assert_int_equal(o->device->capability, 90);
    assert_int_equal(o->device->clock_mhz, 1980);
}

static void a_missing_driver_says_what_to_install(void **state)
{
    opened *o = *state;
    setenv("HONE_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
    assert_int_equal(open_now(o), HONE_UNAVAILABLE);
    assert_null(o->instance);
    assert_non_null(strstr(o->err.message, "needs an NVIDIA GPU and its driver (libcuda.so.1)"));
}

static void a_driver_without_a_function_is_refused_by_the_functions_name(void **state)
{
    opened *o = *state;
    setenv("HONE_CUDA_DRIVER", HONE_TEST_FAKES "/fake_cuda_broken.so", 1);
    assert_int_equal(open_now(o), HONE_UNAVAILABLE);
    assert_non_null(strstr(o->err.message, "has no cuMemAlloc_v2"));
}

static void a_driver_that_does_not_start_says_why(void **state)
{
    opened *o = *state;
    setenv("FAKE_CUDA_INIT", "803", 1);
    assert_int_equal(open_now(o), HONE_UNAVAILABLE);
    assert_non_null(strstr(o->err.message, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)"));
    assert_non_null(strstr(o->err.message, "restart the machine"));
    setenv("FAKE_CUDA_INIT", "0", 1);
    setenv("FAKE_CUDA_DEVICES", "0", 1);
    assert_int_equal(open_now(o), HONE_UNAVAILABLE);
    assert_non_null(strstr(o->err.message, "shows no GPU"));
}

static void bytes_come_back_as_they_went(void **state)
{
    opened *o = *state;
    const hone_platform_ops *ops = &hone_cuda_platform;
    char in[100], out[100];
    void *memory = NULL, *other = NULL;
    assert_int_equal(open_now(o), HONE_OK);
    for (int i = 0; i < 100; i++)
        in[i] = (char)i;
    assert_int_equal(ops->allocate(o->instance, o->device, 100, &memory, &o->err), HONE_OK);
    assert_int_equal(ops->allocate(o->instance, o->device, 100, &other, &o->err), HONE_OK);
    assert_int_equal(
        ops->copy(o->instance, o->device, HONE_COPY_IN, (hone_place){memory, 0}, (hone_place){in, 0}, 100, &o->err),
        HONE_OK);
    assert_int_equal(ops->fill(o->instance, o->device, (hone_place){memory, 0}, 0xd7, 10, &o->err), HONE_OK);
    assert_int_equal(
        ops->copy(
            o->instance, o->device, HONE_COPY_WITHIN, (hone_place){other, 0}, (hone_place){memory, 0}, 100, &o->err),
        HONE_OK);
    assert_int_equal(
        ops->copy(o->instance, o->device, HONE_COPY_OUT, (hone_place){out, 0}, (hone_place){other, 0}, 100, &o->err),
        HONE_OK);
    assert_int_equal((unsigned char)out[9], 0xd7);
    assert_memory_equal(out + 10, in + 10, 90);
    ops->deallocate(o->instance, o->device, memory, 100);
    ops->deallocate(o->instance, o->device, other, 100);
}

static void memory_that_is_not_there_is_refused_and_the_device_goes_on(void **state)
{
    opened *o = *state;
    const hone_platform_ops *ops = &hone_cuda_platform;
    void *memory = NULL;
    setenv("FAKE_CUDA_MEMORY", "1000", 1);
    assert_int_equal(open_now(o), HONE_OK);
    assert_int_equal(ops->allocate(o->instance, o->device, 2000, &memory, &o->err), HONE_OUT_OF_MEMORY);
    assert_non_null(strstr(o->err.message, "Fake GPU has no 2000 bytes of memory left"));
    assert_null(memory);
    assert_false(ops->is_lost(o->instance));
    assert_int_equal(ops->allocate(o->instance, o->device, 500, &memory, &o->err), HONE_OK);
    ops->deallocate(o->instance, o->device, memory, 500);
}

static void only_some_errors_end_a_process(void **state)
{
    (void)state;
    assert_true(hone_cuda_is_sticky(700));
    assert_true(hone_cuda_is_sticky(719));
    assert_false(hone_cuda_is_sticky(CUDA_OUT_OF_MEMORY));
    assert_false(hone_cuda_is_sticky(CUDA_LAUNCH_OUT_OF_RESOURCES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_gpu_says_what_kernels_and_decisions_ask, setup, teardown),
        cmocka_unit_test_setup_teardown(a_missing_driver_says_what_to_install, setup, teardown),
        cmocka_unit_test_setup_teardown(a_driver_without_a_function_is_refused_by_the_functions_name, setup, teardown),
        cmocka_unit_test_setup_teardown(a_driver_that_does_not_start_says_why, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_come_back_as_they_went, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_that_is_not_there_is_refused_and_the_device_goes_on, setup, teardown),
        cmocka_unit_test(only_some_errors_end_a_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
