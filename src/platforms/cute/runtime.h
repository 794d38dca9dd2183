// The libraries that exports of the CuTe DSL call: tvm-ffi's, and that of the DSL. Neither is linked; PyPI has them.
#ifndef HONE_PLATFORMS_CUTE_RUNTIME_H
#define HONE_PLATFORMS_CUTE_RUNTIME_H

#include "platforms/ffi/runtime.h"

typedef struct hone_cute_runtime {
    hone_ffi_runtime ffi;
    hone_library *dsl;
} hone_cute_runtime;

// Like hone_ffi_runtime_open; HONE_CUTE_DSL_RUNTIME names the file of the DSL's library.
hone_status hone_cute_runtime_open(const hone_allocator *allocator, hone_cute_runtime *out, hone_error *err);
void hone_cute_runtime_close(const hone_allocator *allocator, hone_cute_runtime *runtime);

#endif
