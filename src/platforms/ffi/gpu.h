// Runs on an NVIDIA GPU: makes its context current on this thread, and takes scratch memory of the device. The driver
// is the platform cuda's, opened a second time: both use the devices' primary contexts, so they see the same memory.
#ifndef HONE_PLATFORMS_FFI_GPU_H
#define HONE_PLATFORMS_FFI_GPU_H

#include "base/log.h"
#include "hone/kernel.h"

#include <stdatomic.h>

typedef struct hone_ffi_driver hone_ffi_driver;
typedef struct hone_ffi_gpu hone_ffi_gpu;

hone_status hone_ffi_driver_open(
    const hone_allocator *allocator, const hone_log *log, hone_ffi_driver **out, hone_error *err);
void hone_ffi_driver_close(hone_ffi_driver **driver);
// Borrowed from the driver.
hone_status hone_ffi_driver_gpu(
    hone_ffi_driver *driver, const hone_device_info *device, hone_ffi_gpu **out, hone_error *err);

// Calls run with the GPU's context current, and restores the previous one.
//   captured  set if the host captures the stream: its graph launches the library's code
hone_status hone_ffi_gpu_run(
    hone_ffi_driver *driver,
    hone_ffi_gpu *gpu,
    const hone_execution *execution,
    size_t scratch_bytes,
    atomic_bool *captured,
    hone_status (*run)(void *ctx, void *scratch),
    void *ctx);

// Device memory in the order of the run's stream.
typedef struct hone_ffi_gpu_memory {
    uint64_t address;
    size_t size;
    bool of_host; // it is the host's, which the run provided
} hone_ffi_gpu_memory;

// NULL if there is no memory.
void *hone_ffi_gpu_take(
    hone_ffi_driver *driver, const hone_execution *execution, size_t size, hone_ffi_gpu_memory *out);
void hone_ffi_gpu_give_back(
    hone_ffi_driver *driver, const hone_execution *execution, const hone_ffi_gpu_memory *memory);
// Copies within the device, in the order of the run's stream.
hone_status hone_ffi_gpu_copy(
    hone_ffi_driver *driver, const hone_execution *execution, void *to, const void *from, size_t size);

#endif
