// The libraries that exports of the CuTe DSL call: tvm-ffi's, and that of the DSL. Neither is linked; they come from
// PyPI.
#ifndef HONE_PLATFORMS_CUTE_RUNTIME_H
#define HONE_PLATFORMS_CUTE_RUNTIME_H

#include "hone/value.h"
#include "os/os.h"

// An exported function. Arguments are hone_values, whose layout is TVMFFIAny's. 0: it went well.
typedef int hone_cute_function(void *self, const hone_value *arguments, int32_t count, hone_value *result);

typedef struct hone_cute_runtime {
    hone_library *ffi, *dsl;
    void (*take_error)(void **out_object);
    int (*drop)(void *object);
    int (*set_stream)(int32_t device_type, int32_t device_id, void *stream, void **out_before);
} hone_cute_runtime;

// HONE_TVM_FFI and HONE_CUTE_DSL_RUNTIME name the files; else the loader's, then those of Python's packages.
// HONE_UNAVAILABLE with the package that brings what is missing; HONE_INCOMPATIBLE: a library without a function of the
// ABI.
hone_status hone_cute_runtime_open(const hone_allocator *allocator, hone_cute_runtime *out, hone_error *err);
void hone_cute_runtime_close(const hone_allocator *allocator, hone_cute_runtime *runtime);
// What this thread's last function that failed has said, "TypeError: expects 4 parameters".
void hone_cute_runtime_words(const hone_cute_runtime *runtime, char *out, size_t size);

#endif
