#include "platforms/cuda/borrowed.h"

#include "platforms/shared/launch.h"

enum { ALIGNMENT = 256 }; // in bytes, as of the driver's own memory

static cuda_stream *stream_of(const hone_execution *execution)
{
    return execution != NULL ? execution->stream : NULL;
}

static void *take_from_host(const hone_execution *execution, size_t size)
{
    void *memory = execution->take(execution->memory, size);
    if (memory == NULL || (uintptr_t)memory % ALIGNMENT == 0) return memory;
    execution->give_back(execution->memory, memory, size);
    return NULL;
}

cuda_result hone_cuda_borrow(
    const cuda_driver *driver, const hone_execution *execution, size_t size, hone_cuda_borrowed *out)
{
    void *memory = hone_launch_is_lent(execution) ? take_from_host(execution, size) : NULL;
    *out = (hone_cuda_borrowed){(cuda_address)(uintptr_t)memory, size, memory != NULL};
    if (memory != NULL) return CUDA_SUCCESS;
    if (driver->allocate_async == NULL) return CUDA_OUT_OF_MEMORY;
    return driver->allocate_async(&out->address, size, stream_of(execution));
}

cuda_result hone_cuda_return(
    const cuda_driver *driver, const hone_execution *execution, const hone_cuda_borrowed *memory)
{
    if (!memory->of_host) return driver->free_async(memory->address, stream_of(execution));
    execution->give_back(execution->memory, (void *)(uintptr_t)memory->address, memory->size);
    return CUDA_SUCCESS;
}
