#include "platforms/ffi/ffi.h"
#include "platforms/ffi/instance.h"

#include "base/error.h"
#include "base/memory.h"
#include "platforms/native/kernel.h"
#include "platforms/shared/packages.h"

static const char where[] = "ffi.platform", who[] = "kernels of ffi";

static void ffi_close(hone_platform_instance **instance)
{
    hone_platform_instance *gone = *instance;
    if (gone == NULL) return;
    *instance = NULL;
    if (gone->driver != NULL) hone_ffi_driver_close(&gone->driver);
    hone_ffi_runtime_close(&gone->allocator, &gone->runtime);
    hone_mutex_deinit(&gone->mutex);
    hone_allocator allocator = gone->allocator;
    hone_free(&allocator, gone);
}

static hone_status ffi_open(
    const hone_allocator *allocator, const hone_log *log, hone_platform_instance **out, hone_error *err)
{
    hone_platform_instance *instance = hone_alloc(allocator, sizeof *instance);
    if (instance == NULL) return hone_fail_memory(err, where);
    instance->allocator = *allocator;
    instance->log = log;
    instance->driver = NULL;
    hone_mutex_init_long(&instance->mutex);
    hone_status status = hone_ffi_runtime_open(allocator, who, &instance->runtime, err);
    if (status == HONE_OK)
        *out = instance;
    else
        ffi_close(&instance);
    return status;
}

static const hone_device_info *ffi_devices(hone_platform_instance *instance, size_t *out_count)
{
    (void)instance;
    *out_count = 0;
    return NULL;
}

static hone_status ffi_visits(hone_platform_instance *instance, const hone_device_info *device, hone_error *err)
{
    hone_ffi_driver *driver = NULL;
    return device->backend == HONE_CPU ? HONE_OK : hone_ffi_need_driver(instance, &driver, err);
}

static hone_status ffi_try_file(const hone_pack_file *file, const char *entry, hone_error *err)
{
    const hone_allocator system = hone_allocator_system();
    hone_ffi_runtime runtime;
    hone_library *library = NULL;
    hone_ffi_function *function = NULL;
    hone_status status = hone_ffi_runtime_open(&system, who, &runtime, err);
    if (status != HONE_OK) return status;
    status = hone_native_open_library(file, &library, err);
    if (status == HONE_OK) status = hone_ffi_find_function(library, file, entry, &function, err);
    if (library != NULL) hone_library_close(&system, &library);
    hone_ffi_runtime_close(&system, &runtime);
    return status;
}

static void ffi_describe(hone_platform_instance *instance, hone_buffer *out)
{
    (void)instance;
    hone_buffer_text(out, "libraries for tvm-ffi: ");
    hone_package_describe("apache-tvm-ffi", out);
}

const hone_platform_ops hone_ffi_platform = {
    .struct_size = sizeof(hone_platform_ops),
    .facts =
        {.platform = HONE_FFI,
         .name = "ffi",
         .hosts = {HONE_NATIVE, HONE_CUDA},
         .ranks = {{55, HONE_GPU}, {75, HONE_CPU}}},
    .open = ffi_open,
    .close = ffi_close,
    .devices = ffi_devices,
    .prepare = hone_ffi_prepare,
    .release = hone_ffi_release,
    .run = hone_ffi_run,
    .visits = ffi_visits,
    .describe = ffi_describe,
    .check = hone_ffi_check_pack,
    .wakes = true,
    .digest = hone_ffi_digest,
    .try_file = ffi_try_file,
    .launch = &hone_ffi_launch,
};
