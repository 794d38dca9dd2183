#include "platforms/cute/runtime.h"

#include "platforms/shared/packages.h"

static const char who[] = "exports of the CuTe DSL";

static const hone_package_library dsl = {
    "HONE_CUTE_DSL_RUNTIME", "libcute_dsl_runtime.so", "nvidia-cutlass-dsl",
    (const char *const[]){
        "nvidia_cutlass_dsl/cu13/lib", "nvidia_cutlass_dsl/cu12/lib", "nvidia_cutlass_dsl/lib", NULL}};

hone_status hone_cute_runtime_open(const hone_allocator *allocator, hone_cute_runtime *out, hone_error *err)
{
    out->dsl = NULL;
    hone_status status = hone_ffi_runtime_open(allocator, who, &out->ffi, err);
    if (status == HONE_OK) status = hone_package_library_open(allocator, &dsl, who, &out->dsl, err);
    if (status != HONE_OK) hone_cute_runtime_close(allocator, out);
    return status;
}

void hone_cute_runtime_close(const hone_allocator *allocator, hone_cute_runtime *runtime)
{
    hone_ffi_runtime_close(allocator, &runtime->ffi);
    if (runtime->dsl != NULL) hone_library_close(allocator, &runtime->dsl);
}
