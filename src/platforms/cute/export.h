// Kernels of the CuTe DSL that were exported for tvm-ffi: a shared library with a function that launches the kernel
// itself.
#ifndef HONE_PLATFORMS_CUTE_EXPORT_H
#define HONE_PLATFORMS_CUTE_EXPORT_H

#include "platforms/platform.h"

// Whether a kernel's code is such an export. Either all of its variants are exports or none is.
bool hone_cute_is_export(const hone_kernel *kernel);
hone_status hone_cute_export_check(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err);
// Prepares a kernel that is an export, as the platform's ops.
hone_status hone_cute_export_prepare(
    hone_platform_instance *instance, const hone_plan *plan, void **out_state, hone_error *err);
void hone_cute_export_release(hone_platform_instance *instance, void *state);
hone_status hone_cute_export_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution);
uint64_t hone_cute_export_digest(const hone_plan *plan);

#endif
