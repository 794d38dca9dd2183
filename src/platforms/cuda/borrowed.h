// Device memory for one run, in stream order: the host's if the run provides it, else the driver's.
#ifndef HONE_PLATFORMS_CUDA_BORROWED_H
#define HONE_PLATFORMS_CUDA_BORROWED_H

#include "hone/kernel.h"
#include "platforms/cuda/driver.h"

typedef struct hone_cuda_borrowed {
    cuda_address address; // aligned to 256
    size_t size;
    bool of_host;
} hone_cuda_borrowed;

//   execution  may be NULL
// Returns: CUDA_OUT_OF_MEMORY also if an old driver has no stream-ordered memory.
cuda_result hone_cuda_borrow(
    const cuda_driver *driver, const hone_execution *execution, size_t size, hone_cuda_borrowed *out);
// Call it after the launch that uses the memory.
cuda_result hone_cuda_return(
    const cuda_driver *driver, const hone_execution *execution, const hone_cuda_borrowed *memory);

#endif
