// tvm-ffi's own library, libtvm_ffi.so, and the functions of its C interface that hone calls (tvm/ffi/c_api.h, version
// 0.1). It is not linked; PyPI has it. Exports of the CuTe DSL use it, too.
#ifndef HONE_PLATFORMS_FFI_RUNTIME_H
#define HONE_PLATFORMS_FFI_RUNTIME_H

#include "os/os.h"
#include "pack/pack.h"
#include "platforms/shared/launch.h"

// A function of a library. Arguments are hone_values, whose layout is TVMFFIAny's. Returns 0 on success.
typedef int hone_ffi_function(void *self, const hone_value *arguments, int32_t count, hone_value *result);

enum { HONE_FFI_ENTRY_SIZE = 244 }; // of a function's name, including its NUL

typedef struct hone_ffi_runtime {
    hone_library *library;
    void (*take_error)(void **out_object);
    int (*drop)(void *object);
    int (*set_stream)(int32_t device_type, int32_t device_id, void *stream, void **out_before);
    void *(*get_stream)(int32_t device_type, int32_t device_id); // NULL: an older library
    // Sets this thread's DLPackManagedTensorAllocator, which makes tensors that functions request. NULL: an older
    // library.
    int (*set_allocator)(void *allocator, int globally, void **out_before);
} hone_ffi_runtime;

// Opens the file that HONE_TVM_FFI names; else the loader's, then that of Python's packages.
//   who  needs it: "kernels of x"
// Returns: HONE_UNAVAILABLE with the package that provides it; HONE_INCOMPATIBLE: a library of another version.
hone_status hone_ffi_runtime_open(
    const hone_allocator *allocator, const char *who, hone_ffi_runtime *out, hone_error *err);
void hone_ffi_runtime_close(const hone_allocator *allocator, hone_ffi_runtime *runtime);
// The message of the last function that failed on this thread, "TypeError: expects 4 parameters", and where it was
// thrown.
void hone_ffi_runtime_words(const hone_ffi_runtime *runtime, char *out, size_t size);

// Whether code names a function that a library can have.
hone_status hone_ffi_check_entry(const hone_code *code, hone_error *err);
// Opens the library of a pack. If this process has loaded another file with the same bytes, a copy in another pack or
// one of the host, the library is not loaded again: tvm-ffi ends a process in which a library registers its global
// functions twice.
hone_status hone_ffi_open_library(const hone_pack_file *file, hone_library **out, hone_error *err);
// The function of a library of a pack, whose symbol is __tvm_ffi_ENTRY.
hone_status hone_ffi_find_function(
    hone_library *library, const hone_pack_file *file, const char *entry, hone_ffi_function **out, hone_error *err);
// A number as a function accepts it: an integer, a float, a bool, a pointer; None for a null pointer.
hone_value hone_ffi_number(hone_argument_type type, uint64_t bits);

#endif
