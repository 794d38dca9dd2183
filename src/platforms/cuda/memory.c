// The device's memory, and streams.
#include "platforms/cuda/instance.h"

#include "base/error.h"

#include <stdio.h>

static const char where[] = "cuda.memory";

static cuda_address address_of(const void *memory)
{
    return (cuda_address)(uintptr_t)memory;
}

static void *bytes_of(hone_place place)
{
    return (char *)place.memory + place.offset;
}

static hone_status enter(
    hone_platform_instance *instance, const hone_device_info *device, cuda_context **out_before, hone_error *err)
{
    hone_cuda_gpu *gpu = NULL;
    hone_status status = hone_cuda_gpu_of(instance, device, &gpu, err);
    return status == HONE_OK ? hone_cuda_enter(instance, gpu, out_before, err) : status;
}

hone_status hone_cuda_allocate(
    hone_platform_instance *instance, const hone_device_info *device, size_t size, void **out, hone_error *err)
{
    cuda_context *before = NULL;
    cuda_address address = 0;
    hone_status status = enter(instance, device, &before, err);
    if (status != HONE_OK) return status;
    cuda_result result = instance->driver.memory_allocate(&address, size > 0 ? size : 1);
    if (result == CUDA_OUT_OF_MEMORY)
        status = hone_fail(err, HONE_OUT_OF_MEMORY, where, "%s has no %zu bytes of memory left", device->name, size);
    else
        status = hone_cuda_check(instance, result, "cuMemAlloc", err);
    hone_cuda_leave(instance, before);
    if (status == HONE_OK) *out = (void *)(uintptr_t)address;
    return status;
}

void hone_cuda_deallocate(hone_platform_instance *instance, const hone_device_info *device, void *memory, size_t size)
{
    (void)size;
    cuda_context *before = NULL;
    if (memory == NULL || enter(instance, device, &before, NULL) != HONE_OK) return;
    (void)instance->driver.memory_free(address_of(memory));
    hone_cuda_leave(instance, before);
}

// Waits for its stream, so a failure of an earlier kernel is reported here.
static cuda_result copy(const cuda_driver *driver, hone_copy way, void *to, const void *from, size_t size)
{
    if (size == 0) return CUDA_SUCCESS;
    if (way == HONE_COPY_IN) return driver->copy_in(address_of(to), from, size);
    if (way == HONE_COPY_OUT) return driver->copy_out(to, address_of(from), size);
    cuda_result result = driver->copy_within(address_of(to), address_of(from), size);
    return result == CUDA_SUCCESS ? driver->stream_synchronize(NULL) : result;
}

hone_status hone_cuda_copy(
    hone_platform_instance *instance,
    const hone_device_info *device,
    hone_copy way,
    hone_place to,
    hone_place from,
    size_t size,
    hone_error *err)
{
    cuda_context *before = NULL;
    hone_status status = enter(instance, device, &before, err);
    if (status != HONE_OK) return status;
    status =
        hone_cuda_check(instance, copy(&instance->driver, way, bytes_of(to), bytes_of(from), size), "cuMemcpy", err);
    hone_cuda_leave(instance, before);
    return status;
}

hone_status hone_cuda_fill(
    hone_platform_instance *instance,
    const hone_device_info *device,
    hone_place to,
    unsigned char byte,
    size_t size,
    hone_error *err)
{
    cuda_context *before = NULL;
    if (size == 0) return HONE_OK;
    hone_status status = enter(instance, device, &before, err);
    if (status != HONE_OK) return status;
    cuda_result result = instance->driver.fill(address_of(bytes_of(to)), byte, size);
    if (result == CUDA_SUCCESS) result = instance->driver.stream_synchronize(NULL);
    status = hone_cuda_check(instance, result, "cuMemsetD8", err);
    hone_cuda_leave(instance, before);
    return status;
}

hone_status hone_cuda_create_stream(
    hone_platform_instance *instance, const hone_device_info *device, void **out_stream, hone_error *err)
{
    cuda_context *before = NULL;
    cuda_stream *stream = NULL;
    hone_status status = enter(instance, device, &before, err);
    if (status != HONE_OK) return status;
    // A stream that synchronises with the default stream, on which memory is copied and filled.
    cuda_result result = instance->driver.stream_create(&stream, CUDA_STREAM_DEFAULT);
    status = hone_cuda_check(instance, result, "cuStreamCreate", err);
    hone_cuda_leave(instance, before);
    if (status == HONE_OK) *out_stream = stream;
    return status;
}

void hone_cuda_destroy_stream(hone_platform_instance *instance, const hone_device_info *device, void *stream)
{
    cuda_context *before = NULL;
    if (stream == NULL || enter(instance, device, &before, NULL) != HONE_OK) return;
    (void)instance->driver.stream_destroy(stream);
    hone_cuda_leave(instance, before);
}

// A driver without graphs captures none. The legacy default stream itself is never captured: its error then means that
// another stream is being captured, which work on the default stream would break.
bool hone_cuda_is_capturing(hone_platform_instance *instance, const hone_device_info *device, void *stream)
{
    cuda_context *before = NULL;
    int captures = CUDA_CAPTURE_NONE;
    if (instance->driver.is_capturing == NULL || enter(instance, device, &before, NULL) != HONE_OK) return false;
    cuda_result result = instance->driver.is_capturing(stream, &captures);
    hone_cuda_leave(instance, before);
    return result == CUDA_CAPTURE_IMPLICIT || (result == CUDA_SUCCESS && captures != CUDA_CAPTURE_NONE);
}

void hone_cuda_keep_words(hone_platform_instance *instance, const char *words)
{
    hone_mutex_lock(&instance->words_mutex);
    snprintf(instance->words, sizeof instance->words, "%s", words);
    hone_mutex_unlock(&instance->words_mutex);
}

static hone_status say_words(hone_platform_instance *instance, hone_error *err)
{
    hone_status status = HONE_OK;
    hone_mutex_lock(&instance->words_mutex);
    if (instance->words[0] != '\0') status = hone_fail(err, HONE_KERNEL_FAILED, where, "%s", instance->words);
    instance->words[0] = '\0';
    hone_mutex_unlock(&instance->words_mutex);
    return status;
}

hone_status hone_cuda_synchronize(
    hone_platform_instance *instance, const hone_device_info *device, void *stream, hone_error *err)
{
    cuda_context *before = NULL;
    hone_status status = enter(instance, device, &before, err);
    if (status != HONE_OK) return status;
    int failed = atomic_exchange(&instance->failed, 0);
    status = hone_cuda_check(instance, instance->driver.stream_synchronize(stream), "the kernel", err);
    if (status == HONE_OK && failed != 0) status = hone_cuda_check(instance, failed, "the launch", err);
    if (status == HONE_OK) status = say_words(instance, err);
    hone_cuda_leave(instance, before);
    return status;
}
