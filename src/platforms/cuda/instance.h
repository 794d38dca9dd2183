// The resources of one open cuda platform; shared by the files of this folder only.
#ifndef HONE_PLATFORMS_CUDA_INSTANCE_H
#define HONE_PLATFORMS_CUDA_INSTANCE_H

#include "os/mutex.h"
#include "platforms/cuda/compiler.h"
#include "platforms/cuda/cuda.h"
#include "platforms/cuda/driver.h"
#include "platforms/cuda/nvml.h"

#include <stdatomic.h>

// One GPU.
typedef struct hone_cuda_gpu {
    hone_device_info info;
    cuda_device device;
    char name[128], driver[64], architecture[16];
    hone_buffer fingerprint;
    hone_mutex mutex;
    cuda_context *_Atomic context; // the primary one; NULL until it is needed
    // For timing, under the mutex. NULL until the first sample.
    cuda_event *start, *end;
    cuda_stream *_Atomic timed; // captures on it belong to timing, and end before their code is unloaded; NULL: none
    cuda_module *waiter;
    cuda_function *wait; // keeps the GPU busy while work is queued behind it
    bool waiter_tried;
    hone_cuda_watch watch; // under the mutex
} hone_cuda_gpu;

enum { HONE_CUDA_WORDS_SIZE = 200 };

struct hone_platform_instance {
    hone_allocator allocator;
    const hone_log *log;
    cuda_driver driver;
    hone_cuda_compiler compiler;
    hone_cuda_gpu *gpus;
    hone_device_info *devices; // copies of the GPUs' info, side by side
    size_t count;
    atomic_int lost;   // the sticky error after which the device is unusable; 0: none
    atomic_int failed; // the last launch that failed; 0: none
    hone_mutex words_mutex;
    char words[HONE_CUDA_WORDS_SIZE]; // of the last run that reported its own failure; empty: none
};

// devices.c
hone_status hone_cuda_find_gpus(hone_platform_instance *instance, hone_error *err);
void hone_cuda_forget_gpus(hone_platform_instance *instance);
// The GPU of a device's info; the info may be a copy from another process.
hone_status hone_cuda_gpu_of(
    hone_platform_instance *instance, const hone_device_info *device, hone_cuda_gpu **out, hone_error *err);
// Makes the GPU's context current on this thread; *out_before is for hone_cuda_leave.
hone_status hone_cuda_enter(
    hone_platform_instance *instance, hone_cuda_gpu *gpu, cuda_context **out_before, hone_error *err);
void hone_cuda_leave(hone_platform_instance *instance, cuda_context *before);
// Fails with the driver's message, and records a sticky error. HONE_OK for CUDA_SUCCESS.
hone_status hone_cuda_check(hone_platform_instance *instance, cuda_result result, const char *what, hone_error *err);

// memory.c
hone_status hone_cuda_allocate(
    hone_platform_instance *instance, const hone_device_info *device, size_t size, void **out, hone_error *err);
void hone_cuda_deallocate(hone_platform_instance *instance, const hone_device_info *device, void *memory, size_t size);
hone_status hone_cuda_copy(
    hone_platform_instance *instance,
    const hone_device_info *device,
    hone_copy way,
    hone_place to,
    hone_place from,
    size_t size,
    hone_error *err);
hone_status hone_cuda_fill(
    hone_platform_instance *instance,
    const hone_device_info *device,
    hone_place to,
    unsigned char byte,
    size_t size,
    hone_error *err);
hone_status hone_cuda_create_stream(
    hone_platform_instance *instance, const hone_device_info *device, void **out_stream, hone_error *err);
void hone_cuda_destroy_stream(hone_platform_instance *instance, const hone_device_info *device, void *stream);
hone_status hone_cuda_hold_streams(
    hone_platform_instance *instance, const hone_device_info *device, uint64_t nanoseconds, hone_error *err);
bool hone_cuda_is_capturing(hone_platform_instance *instance, const hone_device_info *device, void *stream);
// Keeps the message of a run that failed before it called the driver, for the next synchronisation.
void hone_cuda_keep_words(hone_platform_instance *instance, const char *words);
hone_status hone_cuda_synchronize(
    hone_platform_instance *instance, const hone_device_info *device, void *stream, hone_error *err);

// timing.c
hone_status hone_cuda_time(
    hone_platform_instance *instance, const hone_timed_runs *runs, double *out_ns, hone_error *err);
hone_status hone_cuda_disturbed(
    hone_platform_instance *instance, const hone_device_info *device, unsigned *out_marks, hone_error *err);
// Frees the resources of timing on a GPU, whose context must be current.
void hone_cuda_forget_timing(hone_platform_instance *instance, hone_cuda_gpu *gpu);

// load.c
hone_status hone_cuda_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err);
void hone_cuda_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state);

// run.c
hone_status hone_cuda_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution);
uint64_t hone_cuda_digest(const hone_plan *plan);
// Sets *captured if the host captures the stream: graphs do not keep the code that they launch, so it must not be
// unloaded. The graphs of timing do not count.
void hone_cuda_note_capture(hone_platform_instance *instance, hone_cuda_gpu *gpu, void *stream, atomic_bool *captured);

#endif
