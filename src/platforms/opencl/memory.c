// The device's memory: buffers. A tensor's data is the handle of a buffer.
#include "platforms/opencl/instance.h"

#include "base/error.h"

static const char where[] = "opencl.memory";

// A driver may allocate a buffer's memory only at its first use: writing a byte shows whether there is memory.
static opencl_result touch(const opencl_icd *icd, const hone_opencl_device *device, opencl_memory *memory)
{
    const unsigned char zero = 0;
    return icd->write(device->queue, memory, 1, 0, 1, &zero, 0, NULL, NULL);
}

static hone_status fail_full(const hone_device_info *info, size_t size, hone_error *err)
{
    return hone_fail(err, HONE_OUT_OF_MEMORY, where, "%s has no %zu bytes of memory left", info->name, size);
}

hone_status hone_opencl_allocate(
    hone_platform_instance *instance, const hone_device_info *info, size_t size, void **out, hone_error *err)
{
    const opencl_icd *icd = &instance->icd;
    hone_opencl_device *device = NULL;
    opencl_result result = OPENCL_SUCCESS;
    hone_status status = hone_opencl_device_of(instance, info, &device, err);
    if (status != HONE_OK) return status;
    if (device->largest_buffer > 0 && size > device->largest_buffer)
        return hone_fail(
            err, HONE_OUT_OF_MEMORY, where, "%zu bytes are more than a buffer of %s may have: %llu", size, info->name,
            (unsigned long long)device->largest_buffer);
    opencl_memory *memory =
        icd->create_buffer(atomic_load(&device->context), OPENCL_READ_WRITE, size > 0 ? size : 1, NULL, &result);
    if (memory != NULL && result == OPENCL_SUCCESS) result = touch(icd, device, memory);
    if (memory != NULL && result == OPENCL_SUCCESS) {
        *out = memory;
        return HONE_OK;
    }
    if (memory != NULL) (void)icd->release_memory(memory);
    if (result == OPENCL_MEMORY_ALLOCATION_FAILURE || result == OPENCL_OUT_OF_HOST_MEMORY ||
        result == OPENCL_INVALID_BUFFER_SIZE || result == OPENCL_OUT_OF_RESOURCES)
        return fail_full(info, size, err);
    return hone_opencl_check(instance, result, "clCreateBuffer", err);
}

void hone_opencl_deallocate(hone_platform_instance *instance, const hone_device_info *info, void *memory, size_t size)
{
    (void)info;
    (void)size;
    if (memory != NULL) (void)instance->icd.release_memory(memory);
}

opencl_result hone_opencl_make_view(
    const opencl_icd *icd, opencl_memory *memory, size_t offset, size_t size, opencl_memory **out)
{
    opencl_result result = OPENCL_SUCCESS;
    const opencl_region region = {offset, size > 0 ? size : 1};
    *out = icd->create_view(memory, OPENCL_READ_WRITE, OPENCL_BUFFER_REGION, &region, &result);
    return result;
}

hone_status hone_opencl_view(
    hone_platform_instance *instance, void *memory, size_t offset, size_t size, void **out, hone_error *err)
{
    opencl_memory *view = NULL;
    opencl_result result = hone_opencl_make_view(&instance->icd, memory, offset, size, &view);
    *out = view;
    return hone_opencl_check(instance, result, "clCreateSubBuffer", err);
}

// Copies come after the runs that were started on the device's queue; a failure of one of those may be reported here.
static opencl_result copy(
    const opencl_icd *icd, const hone_opencl_device *device, hone_copy way, hone_place to, hone_place from, size_t size)
{
    opencl_queue *queue = device->queue;
    if (way == HONE_COPY_IN)
        return icd->write(queue, to.memory, 1, to.offset, size, (char *)from.memory + from.offset, 0, NULL, NULL);
    if (way == HONE_COPY_OUT)
        return icd->read(queue, from.memory, 1, from.offset, size, (char *)to.memory + to.offset, 0, NULL, NULL);
    opencl_result result = icd->copy(queue, from.memory, to.memory, from.offset, to.offset, size, 0, NULL, NULL);
    return result == OPENCL_SUCCESS ? icd->finish(queue) : result;
}

hone_status hone_opencl_copy(
    hone_platform_instance *instance,
    const hone_device_info *info,
    hone_copy way,
    hone_place to,
    hone_place from,
    size_t size,
    hone_error *err)
{
    hone_opencl_device *device = NULL;
    hone_status status = hone_opencl_device_of(instance, info, &device, err);
    if (status != HONE_OK || size == 0) return status;
    return hone_opencl_check(instance, copy(&instance->icd, device, way, to, from, size), "copying", err);
}

hone_status hone_opencl_fill(
    hone_platform_instance *instance,
    const hone_device_info *info,
    hone_place to,
    unsigned char byte,
    size_t size,
    hone_error *err)
{
    const opencl_icd *icd = &instance->icd;
    hone_opencl_device *device = NULL;
    hone_status status = hone_opencl_device_of(instance, info, &device, err);
    if (status != HONE_OK || size == 0) return status;
    opencl_result result = icd->fill(device->queue, to.memory, &byte, 1, to.offset, size, 0, NULL, NULL);
    if (result == OPENCL_SUCCESS) result = icd->finish(device->queue);
    return hone_opencl_check(instance, result, "clEnqueueFillBuffer", err);
}

hone_status hone_opencl_synchronize(
    hone_platform_instance *instance, const hone_device_info *info, void *stream, hone_error *err)
{
    hone_opencl_device *device = NULL;
    hone_status status = hone_opencl_device_of(instance, info, &device, err);
    if (status != HONE_OK) return status;
    int failed = atomic_exchange(&instance->failed, 0);
    opencl_result result = instance->icd.finish(stream != NULL ? stream : device->queue);
    status = hone_opencl_check(instance, result, "the kernel", err);
    return status == HONE_OK && failed != 0 ? hone_opencl_check(instance, failed, "the launch", err) : status;
}
