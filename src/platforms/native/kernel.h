// Kernels of packs on the CPU: functions of C sources, compiled here, and of shared libraries.
#ifndef HONE_PLATFORMS_NATIVE_KERNEL_H
#define HONE_PLATFORMS_NATIVE_KERNEL_H

#include "os/os.h"
#include "pack/pack.h"
#include "platforms/platform.h"
#include "platforms/shared/launch.h"

// A C function behind the shim that source.c writes: it takes its arguments by address, and pointers directly. Returns
// 0 on success.
typedef int hone_native_entry(void *const *arguments);

// pack.c: the platform's check of a kernel of a pack.
hone_status hone_native_check_pack(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err);
bool hone_native_is_library(const hone_pack_file *file);
// Whether a file is a shared library for this machine, according to its header.
hone_status hone_native_check_library(const hone_pack_file *file, hone_error *err);

// The result of compiling a C source.
typedef struct hone_native_code {
    hone_library *library; // the owner closes it
    hone_native_entry *entry;
    uint64_t digest; // of the library's bytes
} hone_native_code;

// source.c: compiles a plan's C source, or finds it in the cache, and loads it.
hone_status hone_native_compile(
    const hone_plan *plan, const hone_argument *arguments, uint32_t count, hone_native_code *out, hone_error *err);

// load.c: prepare, release and run of the platform's ops.
hone_status hone_native_prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err);
void hone_native_release(hone_platform_instance *instance, const hone_kernel *kernel, void *state);
hone_status hone_native_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution);
uint64_t hone_native_digest(const hone_plan *plan);
// Opens a library of a pack, with the system's allocator. The file's digest is checked first, so that only the intended
// code runs.
hone_status hone_native_open_library(const hone_pack_file *file, hone_library **out, hone_error *err);
// The function of a library of a pack. The library stays loaded.
hone_status hone_native_find_function(
    const hone_pack_file *file, const char *entry, const hone_pack_function **out, hone_error *err);

#endif
