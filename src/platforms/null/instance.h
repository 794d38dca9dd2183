// The resources of one open null platform; shared by the files of this folder only.
#ifndef HONE_PLATFORMS_NULL_INSTANCE_H
#define HONE_PLATFORMS_NULL_INSTANCE_H

#include "os/mutex.h"
#include "platforms/null/null.h"

// A real platform has the driver's library, its functions and its contexts here.
struct hone_platform_instance {
    hone_allocator allocator;
    const hone_log *log;
    hone_device_info device;
    hone_mutex mutex;
    hone_error failure; // of the last run that failed, under the mutex; HONE_OK once it was reported
};

// code.c: kernels, and their packs.
hone_status hone_null_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err);
void hone_null_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state);
hone_run_function hone_null_run;
bool hone_null_last_failure(hone_platform_instance *instance, hone_error *err);
uint64_t hone_null_digest(const hone_plan *plan);
hone_status hone_null_check_pack(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err);
hone_status hone_null_fits(
    const hone_pack_variant *variant, const struct hone_argument *arguments, uint32_t count, hone_error *err);
hone_status hone_null_try_file(const hone_pack_file *file, const char *entry, hone_error *err);
const char *hone_null_refuses(const hone_code *code);

#endif
