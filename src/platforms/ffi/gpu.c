#include "platforms/ffi/gpu.h"

#include "platforms/cuda/borrowed.h"
#include "platforms/cuda/instance.h"

// hone_ffi_driver and hone_ffi_gpu are cuda's types under other names.
static hone_platform_instance *cuda_of(hone_ffi_driver *driver)
{
    return (hone_platform_instance *)(void *)driver;
}

hone_status hone_ffi_driver_open(
    const hone_allocator *allocator, const hone_log *log, hone_ffi_driver **out, hone_error *err)
{
    hone_platform_instance *cuda = NULL;
    hone_status status = hone_cuda_platform.open(allocator, log, &cuda, err);
    *out = (hone_ffi_driver *)(void *)cuda;
    return status;
}

void hone_ffi_driver_close(hone_ffi_driver **driver)
{
    hone_platform_instance *cuda = cuda_of(*driver);
    hone_cuda_platform.close(&cuda);
    *driver = NULL;
}

hone_status hone_ffi_driver_gpu(
    hone_ffi_driver *driver, const hone_device_info *device, hone_ffi_gpu **out, hone_error *err)
{
    hone_cuda_gpu *gpu = NULL;
    hone_status status = hone_cuda_gpu_of(cuda_of(driver), device, &gpu, err);
    *out = (hone_ffi_gpu *)(void *)gpu;
    return status;
}

static hone_status run_with_scratch(
    hone_platform_instance *cuda,
    const hone_execution *execution,
    size_t bytes,
    hone_status (*run)(void *ctx, void *scratch),
    void *ctx)
{
    hone_cuda_borrowed scratch;
    if (bytes == 0) return run(ctx, NULL);
    if (hone_cuda_borrow(&cuda->driver, execution, bytes, &scratch) != CUDA_SUCCESS) return HONE_OUT_OF_MEMORY;
    hone_status status = run(ctx, (void *)(uintptr_t)scratch.address);
    const bool is_back = hone_cuda_return(&cuda->driver, execution, &scratch) == CUDA_SUCCESS;
    return status == HONE_OK && !is_back ? HONE_KERNEL_FAILED : status;
}

hone_status hone_ffi_gpu_run(
    hone_ffi_driver *driver,
    hone_ffi_gpu *gpu,
    const hone_execution *execution,
    size_t scratch_bytes,
    atomic_bool *captured,
    hone_status (*run)(void *ctx, void *scratch),
    void *ctx)
{
    hone_platform_instance *cuda = cuda_of(driver);
    hone_cuda_gpu *own = (hone_cuda_gpu *)(void *)gpu;
    cuda_context *before = NULL;
    if (hone_cuda_enter(cuda, own, &before, NULL) != HONE_OK) return HONE_KERNEL_FAILED;
    hone_cuda_note_capture(cuda, own, execution != NULL ? execution->stream : NULL, captured);
    const hone_status status = run_with_scratch(cuda, execution, scratch_bytes, run, ctx);
    // If the context was current before, nothing has to be restored.
    if (before != atomic_load_explicit(&own->context, memory_order_relaxed)) hone_cuda_leave(cuda, before);
    return status;
}

void *hone_ffi_gpu_take(hone_ffi_driver *driver, const hone_execution *execution, size_t size, hone_ffi_gpu_memory *out)
{
    hone_cuda_borrowed borrowed;
    if (hone_cuda_borrow(&cuda_of(driver)->driver, execution, size, &borrowed) != CUDA_SUCCESS) return NULL;
    *out = (hone_ffi_gpu_memory){borrowed.address, borrowed.size, borrowed.of_host};
    return (void *)(uintptr_t)borrowed.address;
}

void hone_ffi_gpu_give_back(hone_ffi_driver *driver, const hone_execution *execution, const hone_ffi_gpu_memory *memory)
{
    const hone_cuda_borrowed borrowed = {memory->address, memory->size, memory->of_host};
    (void)hone_cuda_return(&cuda_of(driver)->driver, execution, &borrowed);
}

hone_status hone_ffi_gpu_copy(
    hone_ffi_driver *driver, const hone_execution *execution, void *to, const void *from, size_t size)
{
    void *stream = execution != NULL ? execution->stream : NULL;
    const cuda_result result = cuda_of(driver)->driver.copy_within_async(
        (cuda_address)(uintptr_t)to, (cuda_address)(uintptr_t)from, size, stream);
    return result == CUDA_SUCCESS ? HONE_OK : HONE_KERNEL_FAILED;
}
