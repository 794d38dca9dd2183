// A run on an NVIDIA GPU: its context on this thread, and scratch memory of the device. The driver is the platform
// cuda's, opened a second time: contexts are the devices' primary ones, so both see the same memory.
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

// Calls run between what it needs and what puts it back.
//   captured  set where the host captures the stream: its graph launches the library's code
hone_status hone_ffi_gpu_run(
    hone_ffi_driver *driver,
    hone_ffi_gpu *gpu,
    const hone_execution *execution,
    size_t scratch_bytes,
    atomic_bool *captured,
    hone_status (*run)(void *ctx, void *scratch),
    void *ctx);

// Memory of the device in the order of the run's stream.
typedef struct hone_ffi_gpu_memory {
    uint64_t address;
    size_t size;
    bool of_host; // the host's, which the run brought
} hone_ffi_gpu_memory;

// NULL: there is none.
void *hone_ffi_gpu_take(
    hone_ffi_driver *driver, const hone_execution *execution, size_t size, hone_ffi_gpu_memory *out);
void hone_ffi_gpu_give_back(
    hone_ffi_driver *driver, const hone_execution *execution, const hone_ffi_gpu_memory *memory);
// Within the device, in the order of the run's stream.
hone_status hone_ffi_gpu_copy(
    hone_ffi_driver *driver, const hone_execution *execution, void *to, const void *from, size_t size);

#endif
