#include "platforms/cuda/cuda.h"
#include "platforms/cuda/instance.h"

#include "base/error.h"

#include <stdio.h>

static const char where[] = "cuda.platform";

static void cuda_close(hone_platform_instance **instance)
{
    hone_platform_instance *gone = *instance;
    if (gone == NULL) return;
    *instance = NULL;
    hone_cuda_forget_gpus(gone);
    hone_cuda_compiler_deinit(&gone->compiler);
    hone_cuda_driver_close(&gone->allocator, &gone->driver);
    hone_mutex_deinit(&gone->words_mutex);
    hone_allocator allocator = gone->allocator;
    hone_free(&allocator, gone);
}

static hone_status cuda_open(
    const hone_allocator *allocator, const hone_log *log, hone_platform_instance **out, hone_error *err)
{
    hone_platform_instance *instance = hone_alloc(allocator, sizeof *instance);
    if (instance == NULL) return hone_fail_memory(err, where);
    instance->allocator = *allocator;
    instance->log = log;
    hone_mutex_init_long(&instance->words_mutex);
    hone_cuda_compiler_init(&instance->compiler, *allocator);
    hone_status status = hone_cuda_driver_open(allocator, &instance->driver, err);
    if (status == HONE_OK) status = hone_cuda_find_gpus(instance, err);
    if (status == HONE_OK)
        *out = instance;
    else
        cuda_close(&instance);
    return status;
}

static const hone_device_info *cuda_devices(hone_platform_instance *instance, size_t *out_count)
{
    *out_count = instance->count;
    return instance->devices;
}

static bool cuda_is_lost(const hone_platform_instance *instance)
{
    return atomic_load_explicit(&instance->lost, memory_order_relaxed) != 0;
}

static bool cuda_last_failure(hone_platform_instance *instance, hone_error *err)
{
    return hone_cuda_check(instance, atomic_exchange(&instance->failed, 0), "the launch", err) != HONE_OK;
}

static void cuda_describe(hone_platform_instance *instance, hone_buffer *out)
{
    hone_cuda_compiler own;
    if (instance != NULL) {
        hone_cuda_compiler_describe(&instance->compiler, out);
        return;
    }
    hone_cuda_compiler_init(&own, hone_allocator_system());
    hone_cuda_compiler_describe(&own, out);
    hone_cuda_compiler_deinit(&own);
}

// "sm_80": that chip and later ones; "sm_90a": that one alone.
static hone_status cuda_check_target(const hone_code *code, const hone_device_info *device, hone_error *err)
{
    int wanted = 0, used = 0;
    if (sscanf(code->target, "sm_%d%n", &wanted, &used) != 1 || wanted <= 0)
        return hone_fail(err, HONE_UNSUPPORTED, where, "'%.40s' is not a target: write sm_80 or sm_90a", code->target);
    bool exact = code->target[used] != '\0';
    if (exact ? device->capability == wanted : device->capability >= wanted) return HONE_OK;
    return hone_fail(
        err, HONE_UNAVAILABLE, where, "is for %s%s, %s is sm_%d", code->target, exact ? "" : " and later", device->name,
        (int)device->capability);
}

const hone_platform_ops hone_cuda_platform = {
    .struct_size = sizeof(hone_platform_ops),
    .facts =
        {.platform = HONE_CUDA,
         .name = "cuda",
         .ranks = {{30, HONE_GPU}},
         .takes_code = true,
         .check_target = cuda_check_target},
    .launch = &hone_cuda_launch,
    .open = cuda_open,
    .close = cuda_close,
    .devices = cuda_devices,
    .prepare = hone_cuda_prepare,
    .release = hone_cuda_release,
    .allocate = hone_cuda_allocate,
    .deallocate = hone_cuda_deallocate,
    .synchronize = hone_cuda_synchronize,
    .copy = hone_cuda_copy,
    .fill = hone_cuda_fill,
    .create_stream = hone_cuda_create_stream,
    .destroy_stream = hone_cuda_destroy_stream,
    .hold_streams = hone_cuda_hold_streams,
    .is_capturing = hone_cuda_is_capturing,
    .time = hone_cuda_time,
    .disturbed = hone_cuda_disturbed,
    .is_lost = cuda_is_lost,
    .run = hone_cuda_run,
    .wakes = true,
    .describe = cuda_describe,
    .check = hone_cuda_check_pack,
    .fits = hone_cuda_fits,
    .last_failure = cuda_last_failure,
    .digest = hone_cuda_digest,
};
