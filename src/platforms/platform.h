// What a platform gives: devices, and whether it can run here. One folder a platform; null/ is the one to copy.
#ifndef HONE_PLATFORMS_PLATFORM_H
#define HONE_PLATFORMS_PLATFORM_H

#include "base/log.h"
#include "hone/kernel.h"

typedef struct hone_platform_instance hone_platform_instance;

// struct_size first, grows at the end, NULL means default.
typedef struct hone_platform_ops {
    uint32_t struct_size;
    hone_platform platform;
    const char *name;
    // Loads what is needed and finds devices. HONE_UNAVAILABLE with what is missing and the package that brings it.
    hone_status (*open)(
        const hone_allocator *allocator, const hone_log *log, hone_platform_instance **out, hone_error *err);
    void (*close)(hone_platform_instance **instance);
    // Borrowed from the instance.
    const hone_device_info *(*devices)(hone_platform_instance *instance, size_t *out_count);
    // Makes a plan ready in place of the kernel's own prepare, which it calls when the kernel has one, and gives back what it
    // made. NULL: the kernel's alone.
    hone_status (*prepare)(
        hone_platform_instance *instance,
        const hone_plan *plan,
        void **out_state,
        size_t *out_scratch_bytes,
        hone_error *err);
    void (*release)(hone_platform_instance *instance, const hone_kernel *kernel, void *state);
    // Memory on the device, for inputs that tuning makes. NULL: the host's.
    hone_status (*allocate)(
        hone_platform_instance *instance, const hone_device_info *device, size_t size, void **out, hone_error *err);
    void (*deallocate)(hone_platform_instance *instance, const hone_device_info *device, void *memory, size_t size);
    // Waits for everything started on execution's stream. NULL: runs are synchronous.
    hone_status (*synchronize)(hone_platform_instance *instance, const hone_execution *execution, hone_error *err);
    // version 1 ends here
} hone_platform_ops;

// One row for every platform of hone_platform, in its order from HONE_NATIVE on.
typedef struct hone_platform_row {
    hone_platform platform;
    const hone_platform_ops *ops;        // NULL: not opened on its own
    const hone_platform_ops *when_asked; // opened only when somebody names the platform; else not even listed
    const char *reason;                  // why ops is NULL
} hone_platform_row;
extern const hone_platform_row hone_platforms[];
extern const size_t hone_platforms_count;

#endif
