// The resources of one open ffi platform; shared by the files of this folder only.
#ifndef HONE_PLATFORMS_FFI_INSTANCE_H
#define HONE_PLATFORMS_FFI_INSTANCE_H

#include "os/mutex.h"
#include "platforms/ffi/gpu.h"
#include "platforms/ffi/runtime.h"
#include "platforms/platform.h"

struct hone_platform_instance {
    hone_allocator allocator;
    const hone_log *log;
    hone_ffi_runtime runtime;
    hone_mutex mutex;
    hone_ffi_driver *driver; // of NVIDIA's GPUs; under the mutex. NULL until a kernel for one is considered
};

// pack.c
hone_status hone_ffi_check_pack(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err);

// load.c
extern const hone_launch_rules hone_ffi_launch;

// The driver of this instance, which is opened if necessary.
hone_status hone_ffi_need_driver(hone_platform_instance *instance, hone_ffi_driver **out, hone_error *err);
hone_status hone_ffi_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err);
void hone_ffi_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state);
hone_status hone_ffi_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution);
uint64_t hone_ffi_digest(const hone_plan *plan);

#endif
