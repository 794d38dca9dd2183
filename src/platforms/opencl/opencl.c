#include "platforms/opencl/instance.h"

#include "base/error.h"
#include "platforms/shared/launch.h"

#include <stdio.h>

static const char where[] = "opencl.platform";

static void opencl_close(hone_platform_instance **instance)
{
    hone_platform_instance *gone = *instance;
    if (gone == NULL) return;
    *instance = NULL;
    hone_opencl_forget_devices(gone);
    hone_opencl_icd_close(&gone->allocator, &gone->icd);
    hone_buffer_deinit(&gone->silent);
    hone_allocator allocator = gone->allocator;
    hone_free(&allocator, gone);
}

static hone_status opencl_open(
    const hone_allocator *allocator, const hone_log *log, hone_platform_instance **out, hone_error *err)
{
    hone_platform_instance *instance = hone_alloc(allocator, sizeof *instance);
    if (instance == NULL) return hone_fail_memory(err, where);
    instance->allocator = *allocator;
    instance->log = log;
    hone_buffer_init(&instance->silent, *allocator);
    hone_status status = hone_opencl_icd_open(allocator, &instance->icd, err);
    if (status == HONE_OK) status = hone_opencl_find_devices(instance, err);
    if (status == HONE_OK)
        *out = instance;
    else
        opencl_close(&instance);
    return status;
}

static const hone_device_info *opencl_devices(hone_platform_instance *instance, size_t *out_count)
{
    *out_count = instance->count;
    return instance->devices;
}

static bool opencl_is_lost(const hone_platform_instance *instance)
{
    return atomic_load_explicit(&instance->lost, memory_order_relaxed) != 0;
}

static bool opencl_last_failure(hone_platform_instance *instance, hone_error *err)
{
    return hone_opencl_check(instance, atomic_exchange(&instance->failed, 0), "the launch", err) != HONE_OK;
}

static void opencl_describe(hone_platform_instance *instance, hone_buffer *out)
{
    if (instance != NULL) hone_buffer_append(out, hone_buffer_string(&instance->silent), instance->silent.size);
}

// Refuses features that NVIDIA's GPUs have and OpenCL does not.
static const char *opencl_refuses(const hone_code *code)
{
    if (code->cluster != NULL) return "asks for clusters, which opencl does not have";
    if (code->shared != NULL) return "names shared memory: on opencl it is an argument, local(BYTES)";
    if (code->flags != 0) return "has flags, and opencl knows none";
    if (code->finish != NULL) return "names a second function (finish), which opencl does not launch";
    return NULL;
}

// "cl_12": OpenCL 1.2 and later.
static hone_status opencl_check_target(const hone_code *code, const hone_device_info *device, hone_error *err)
{
    int wanted = 0, used = 0;
    if (sscanf(code->target, "cl_%d%n", &wanted, &used) != 1 || wanted <= 0 || code->target[used] != '\0')
        return hone_fail(err, HONE_UNSUPPORTED, where, "'%.40s' is not a target: write cl_12 or cl_30", code->target);
    if (device->capability >= wanted) return HONE_OK;
    return hone_fail(
        err, HONE_UNAVAILABLE, where, "is for OpenCL %d.%d and later, %s has %d.%d", wanted / 10, wanted % 10,
        device->name, (int)device->capability / 10, (int)device->capability % 10);
}

// The platform creates no streams: runs without one use the device's queue, in order with copies and fills.
const hone_platform_ops hone_opencl_platform = {
    .struct_size = sizeof(hone_platform_ops),
    .facts =
        {.platform = HONE_OPENCL,
         .name = "opencl",
         .ranks = {{50, HONE_GPU}, {70, HONE_CPU}},
         .takes_code = true,
         .refuses = opencl_refuses,
         .check_target = opencl_check_target},
    .launch = &hone_opencl_launch,
    .open = opencl_open,
    .close = opencl_close,
    .devices = opencl_devices,
    .prepare = hone_opencl_prepare,
    .release = hone_opencl_release,
    .allocate = hone_opencl_allocate,
    .deallocate = hone_opencl_deallocate,
    .synchronize = hone_opencl_synchronize,
    .copy = hone_opencl_copy,
    .fill = hone_opencl_fill,
    .time = hone_opencl_time,
    .is_lost = opencl_is_lost,
    .run = hone_opencl_run,
    .wakes = true,
    .view_align = OPENCL_VIEW_ALIGN,
    .view = hone_opencl_view,
    .check = hone_opencl_check_pack,
    .last_failure = opencl_last_failure,
    .describe = opencl_describe,
    .digest = hone_opencl_digest,
};
