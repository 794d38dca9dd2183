// Device memory for one run, in the order of its stream: the host's where the run brings it, else the driver's.
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
// Returns: CUDA_OUT_OF_MEMORY also where an old driver gives none in the order of a stream.
cuda_result hone_cuda_borrow(
    const cuda_driver *driver, const hone_execution *execution, size_t size, hone_cuda_borrowed *out);
// Behind the launch that uses it.
cuda_result hone_cuda_return(
    const cuda_driver *driver, const hone_execution *execution, const hone_cuda_borrowed *memory);

#endif
