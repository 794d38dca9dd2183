// External influences on times on a GPU: a lower clock, the reasons that limit it, other processes that compute.
// NVIDIA's management library (NVML) reports them. It is opened on request and never linked. hone declares its types
// itself; a test compares them with nvml.h where that is installed.
#ifndef HONE_PLATFORMS_CUDA_NVML_H
#define HONE_PLATFORMS_CUDA_NVML_H

#include "platforms/cuda/driver.h"

typedef int nvml_result; // nvmlReturn_t
typedef struct nvml_device nvml_device;

enum { NVML_SUCCESS = 0, NVML_CLOCK_OF_SM = 1, NVML_MIG_ON = 1 };

// nvmlClocksEventReason...
enum {
    NVML_IDLE = 0x1,
    NVML_POWER_CAP = 0x4,
    NVML_HW_SLOWDOWN = 0x8,
    NVML_SW_THERMAL = 0x20,
    NVML_HW_THERMAL = 0x40,
    NVML_POWER_BRAKE = 0x80
};

// nvmlProcessInfo_t
typedef struct nvml_process {
    unsigned id;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
} nvml_process;

// nvmlProcessUtilizationSample_t
typedef struct nvml_utilization {
    unsigned id;
    unsigned long long at_us;
    unsigned sm, memory, encoder, decoder; // percent
} nvml_utilization;

typedef struct nvml {
    hone_library *library;
    nvml_result (*init)(void);
    nvml_result (*shutdown)(void);
    const char *(*error_string)(nvml_result result);
    nvml_result (*device_by_bus)(const char *bus, nvml_device **device);
    nvml_result (*clock)(nvml_device *device, int which, unsigned *mhz);
    // Functions that an older library does not have: they may be NULL.
    nvml_result (*reasons)(nvml_device *device, unsigned long long *reasons);
    nvml_result (*reasons_by_old_name)(nvml_device *device, unsigned long long *reasons);
    nvml_result (*mig_mode)(nvml_device *device, unsigned *current, unsigned *pending);
    nvml_result (*processes)(nvml_device *device, unsigned *count, nvml_process *processes);
    nvml_result (*utilization)(
        nvml_device *device, nvml_utilization *samples, unsigned *count, unsigned long long since_us);
} nvml;

// A GPU that is watched. All zero: not begun.
typedef struct hone_cuda_watch {
    bool begun;
    nvml nvml;
    nvml_device *device; // NULL: the GPU cannot be watched, and reason says why
    char reason[200];
    unsigned own;     // number of this process in NVML; 0: not known, so other processes are not recognised either
    unsigned top_mhz; // the highest clock seen
    unsigned long long seen_us;
    uint64_t shared_until_ns, next_ns;
    unsigned marks; // of the last check
    unsigned noted; // of all checks since the last call of take
} hone_cuda_watch;

// Opens the library and finds the GPU, whose context must be current. Done once; what is missing is in watch->reason.
void hone_cuda_watch_begin(
    hone_cuda_watch *watch, const hone_allocator *allocator, const cuda_driver *driver, cuda_device device);
void hone_cuda_watch_end(hone_cuda_watch *watch, const hone_allocator *allocator);
// Records what disturbs the GPU now. Skips a check that would cost more than a few percent of the time.
void hone_cuda_watch_look(hone_cuda_watch *watch);
// Returns and clears what was recorded: bits of hone_device_disturber.
unsigned hone_cuda_watch_take(hone_cuda_watch *watch);

#endif
