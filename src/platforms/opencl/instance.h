// The resources of one open opencl platform; shared by the files of this folder only.
#ifndef HONE_PLATFORMS_OPENCL_INSTANCE_H
#define HONE_PLATFORMS_OPENCL_INSTANCE_H

#include "base/buffer.h"
#include "os/mutex.h"
#include "platforms/opencl/icd.h"
#include "platforms/opencl/opencl.h"

#include <stdatomic.h>

// Views into buffers begin at multiples of this many bytes, which is more than any device requires.
enum { OPENCL_VIEW_ALIGN = 4096, OPENCL_TIMED_EVENTS = 256 };

// One device.
typedef struct hone_opencl_device {
    hone_device_info info;
    opencl_platform *platform;
    opencl_id *id;
    char name[256], driver[256], architecture[256], runtime[256], compiler[128];
    hone_buffer fingerprint;
    size_t view_align;  // in bytes, as the device requires
    size_t group_items; // the largest work-group, for any kernel
    size_t item_sizes[3];
    uint64_t largest_buffer;
    hone_mutex mutex;                // guards the creation of the context
    opencl_context *_Atomic context; // NULL until it is needed
    opencl_queue *queue;             // in order, with profiling; valid if context is
    hone_mutex timing;               // guards one sample
    atomic_bool timed;               // runs on the queue record their events below
    uint32_t event_count;
    opencl_event *events[OPENCL_TIMED_EVENTS];
} hone_opencl_device;

struct hone_platform_instance {
    hone_allocator allocator;
    const hone_log *log;
    opencl_icd icd;
    hone_opencl_device *all;
    hone_device_info *devices; // copies of their info, side by side
    size_t count;
    hone_buffer silent; // a line for each driver that has no device, with its result
    atomic_int lost;    // the sticky error after which the device is unusable; 0: none
    atomic_int failed;  // the last launch that failed; 0: none
};

// devices.c
hone_status hone_opencl_find_devices(hone_platform_instance *instance, hone_error *err);
void hone_opencl_forget_devices(hone_platform_instance *instance);
// The device of an info, which may be a copy from another process; creates its context.
hone_status hone_opencl_device_of(
    hone_platform_instance *instance, const hone_device_info *info, hone_opencl_device **out, hone_error *err);
// Fails with OpenCL's message, and records a sticky error. HONE_OK for OPENCL_SUCCESS.
hone_status hone_opencl_check(
    hone_platform_instance *instance, opencl_result result, const char *what, hone_error *err);

// memory.c
hone_status hone_opencl_allocate(
    hone_platform_instance *instance, const hone_device_info *info, size_t size, void **out, hone_error *err);
void hone_opencl_deallocate(hone_platform_instance *instance, const hone_device_info *info, void *memory, size_t size);
hone_status hone_opencl_view(
    hone_platform_instance *instance, void *memory, size_t offset, size_t size, void **out, hone_error *err);
// *out may be NULL after a failure.
opencl_result hone_opencl_make_view(
    const opencl_icd *icd, opencl_memory *memory, size_t offset, size_t size, opencl_memory **out);
hone_status hone_opencl_copy(
    hone_platform_instance *instance,
    const hone_device_info *info,
    hone_copy way,
    hone_place to,
    hone_place from,
    size_t size,
    hone_error *err);
hone_status hone_opencl_fill(
    hone_platform_instance *instance,
    const hone_device_info *info,
    hone_place to,
    unsigned char byte,
    size_t size,
    hone_error *err);
hone_status hone_opencl_synchronize(
    hone_platform_instance *instance, const hone_device_info *info, void *stream, hone_error *err);

// timing.c
hone_status hone_opencl_time(
    hone_platform_instance *instance, const hone_timed_runs *runs, double *out_ns, hone_error *err);

// load.c
hone_status hone_opencl_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err);
void hone_opencl_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state);
uint64_t hone_opencl_digest(const hone_plan *plan);

// run.c
hone_status hone_opencl_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution);

#endif
