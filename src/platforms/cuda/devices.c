// The GPUs that the driver lists, their fingerprints (equal if two GPUs can share a decision), and the context of each.
#include "platforms/cuda/instance.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "cuda.devices";

hone_status hone_cuda_check(hone_platform_instance *instance, cuda_result result, const char *what, hone_error *err)
{
    if (result == CUDA_SUCCESS) return HONE_OK;
    if (hone_cuda_is_sticky(result)) {
        int none = 0;
        atomic_compare_exchange_strong(&instance->lost, &none, result);
    }
    return hone_cuda_fail(&instance->driver, result, "cuda", what, err);
}

static int attribute(const hone_platform_instance *instance, const hone_cuda_gpu *gpu, int which)
{
    int value = 0;
    return instance->driver.device_get_attribute(&value, which, gpu->device) == CUDA_SUCCESS ? value : 0;
}

static void append_word(hone_buffer *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte <= ' ' || byte == 0x7f || strchr(",+=%|", byte) != NULL)
            hone_buffer_format(out, "%%%02X", byte);
        else
            hone_buffer_char(out, *c);
    }
}

// The fingerprint holds the model, the architecture and which parts of the chip are enabled; not the driver's version,
// clocks or memory in use.
static void write_fingerprint(hone_cuda_gpu *gpu)
{
    const hone_device_info *info = &gpu->info;
    hone_buffer_text(&gpu->fingerprint, "cuda|");
    append_word(&gpu->fingerprint, gpu->name);
    hone_buffer_format(
        &gpu->fingerprint, ",sm_%" PRId32 ",sms=%" PRId64 ",l2=%" PRId64 ",smem=%" PRId64, info->capability, info->sms,
        info->l2_bytes, info->smem_bytes);
}

static hone_status read_gpu(hone_platform_instance *instance, int ordinal, hone_cuda_gpu *gpu, hone_error *err)
{
    const cuda_driver *driver = &instance->driver;
    size_t memory = 0;
    cuda_result result = driver->device_get(&gpu->device, ordinal);
    if (result == CUDA_SUCCESS) result = driver->device_get_name(gpu->name, sizeof gpu->name - 1, gpu->device);
    if (result == CUDA_SUCCESS) result = driver->device_total_memory(&memory, gpu->device);
    if (result != CUDA_SUCCESS) {
        hone_error why = {.message = ""};
        (void)hone_cuda_check(instance, result, "cuDeviceGet", &why);
        return hone_fail(err, HONE_UNAVAILABLE, where, "GPU %d: %s", ordinal, why.message);
    }
    snprintf(gpu->driver, sizeof gpu->driver, "CUDA %d.%d", driver->version / 1000, driver->version % 1000 / 10);
    gpu->info = (hone_device_info){
        .struct_size = sizeof gpu->info,
        .platform = HONE_CUDA,
        .backend = HONE_GPU,
        .device = {HONE_DEVICE_CUDA, ordinal},
        .name = gpu->name,
        .driver = gpu->driver,
        .threads = 1,
        .l2_bytes = attribute(instance, gpu, CUDA_L2_BYTES),
        .memory_bytes = (int64_t)memory,
        .smem_bytes = attribute(instance, gpu, CUDA_SHARED_BYTES_OPTIN),
        .sms = attribute(instance, gpu, CUDA_MULTIPROCESSORS),
        .capability =
            10 * attribute(instance, gpu, CUDA_CAPABILITY_MAJOR) + attribute(instance, gpu, CUDA_CAPABILITY_MINOR),
        .clock_mhz = attribute(instance, gpu, CUDA_CLOCK_KHZ) / 1000,
        // Two transfers per clock.
        .memory_rate =
            2e3 * attribute(instance, gpu, CUDA_MEMORY_CLOCK_KHZ) * attribute(instance, gpu, CUDA_MEMORY_BUS_BITS) / 8,
    };
    snprintf(gpu->architecture, sizeof gpu->architecture, "sm_%d", (int)gpu->info.capability);
    gpu->info.architecture = gpu->architecture;
    write_fingerprint(gpu);
    if (gpu->fingerprint.failed) return hone_fail_memory(err, where);
    gpu->info.fingerprint = hone_buffer_string(&gpu->fingerprint);
    return HONE_OK;
}

hone_status hone_cuda_find_gpus(hone_platform_instance *instance, hone_error *err)
{
    int count = 0;
    hone_status status = HONE_OK;
    if (instance->driver.device_get_count(&count) != CUDA_SUCCESS || count <= 0)
        return hone_fail(
            err, HONE_UNAVAILABLE, where,
            "NVIDIA's driver is here, but shows no GPU: look at nvidia-smi and CUDA_VISIBLE_DEVICES");
    instance->gpus = hone_alloc_array(&instance->allocator, (size_t)count, sizeof *instance->gpus);
    instance->devices = hone_alloc_array(&instance->allocator, (size_t)count, sizeof *instance->devices);
    if (instance->gpus == NULL || instance->devices == NULL) return hone_fail_memory(err, where);
    for (int i = 0; status == HONE_OK && i < count; i++) {
        hone_cuda_gpu *gpu = &instance->gpus[instance->count++];
        hone_mutex_init_long(&gpu->mutex);
        hone_buffer_init(&gpu->fingerprint, instance->allocator);
        status = read_gpu(instance, i, gpu, err);
        instance->devices[i] = gpu->info;
    }
    return status;
}

static void forget_gpu(hone_platform_instance *instance, hone_cuda_gpu *gpu)
{
    cuda_context *before = NULL;
    if (atomic_load(&gpu->context) != NULL) {
        if (hone_cuda_enter(instance, gpu, &before, NULL) == HONE_OK) {
            hone_cuda_forget_timing(instance, gpu);
            hone_cuda_leave(instance, before);
        }
        (void)instance->driver.primary_context_release(gpu->device);
    }
    hone_buffer_deinit(&gpu->fingerprint);
    hone_mutex_deinit(&gpu->mutex);
}

void hone_cuda_forget_gpus(hone_platform_instance *instance)
{
    for (size_t i = 0; i < instance->count; i++)
        forget_gpu(instance, &instance->gpus[i]);
    hone_free(&instance->allocator, instance->gpus);
    hone_free(&instance->allocator, instance->devices);
}

hone_status hone_cuda_gpu_of(
    hone_platform_instance *instance, const hone_device_info *device, hone_cuda_gpu **out, hone_error *err)
{
    for (size_t i = 0; i < instance->count; i++) {
        const hone_device_info *info = &instance->gpus[i].info;
        if (device->device.type != info->device.type || device->device.id != info->device.id) continue;
        *out = &instance->gpus[i];
        return HONE_OK;
    }
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "%s, cuda:%d, is not a device of this platform", device->name,
        (int)device->device.id);
}

static hone_status need_context(
    hone_platform_instance *instance, hone_cuda_gpu *gpu, cuda_context **out, hone_error *err)
{
    hone_status status = HONE_OK;
    *out = atomic_load_explicit(&gpu->context, memory_order_acquire);
    if (*out != NULL) return HONE_OK;
    hone_mutex_lock(&gpu->mutex);
    *out = atomic_load_explicit(&gpu->context, memory_order_relaxed);
    if (*out == NULL) {
        cuda_result result = instance->driver.primary_context_retain(out, gpu->device);
        status = hone_cuda_check(instance, result, "cuDevicePrimaryCtxRetain", err);
        if (status == HONE_OK) atomic_store_explicit(&gpu->context, *out, memory_order_release);
    }
    hone_mutex_unlock(&gpu->mutex);
    return status;
}

hone_status hone_cuda_enter(
    hone_platform_instance *instance, hone_cuda_gpu *gpu, cuda_context **out_before, hone_error *err)
{
    cuda_context *context = NULL;
    *out_before = NULL;
    hone_status status = need_context(instance, gpu, &context, err);
    if (status != HONE_OK) return status;
    (void)instance->driver.context_get_current(out_before);
    // Setting the current context again would be a useless driver call, twice in each run of a function of tvm-ffi.
    if (*out_before == context) return HONE_OK;
    return hone_cuda_check(instance, instance->driver.context_set_current(context), "cuCtxSetCurrent", err);
}

void hone_cuda_leave(hone_platform_instance *instance, cuda_context *before)
{
    cuda_context *current = NULL;
    (void)instance->driver.context_get_current(&current);
    if (current != before) (void)instance->driver.context_set_current(before);
}
