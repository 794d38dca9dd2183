// What the host of a library for tvm-ffi has: libtvm_ffi.so, which is in the process already, as far as hone calls it
// (tvm/ffi/c_api.h and extra/c_env_api.h, version 0.1). And the runtime that its calls share.
#ifndef HONE_TVM_FFI_HOST_H
#define HONE_TVM_FFI_HOST_H

#include "hone/hone.h"

// tvm-ffi's numbers of types beyond those that hone_value shares with it.
enum {
    TVM_FFI_RVALUE = 10,
    TVM_FFI_SMALL_TEXT = 11,
    TVM_FFI_FIRST_OBJECT = 64,
    TVM_FFI_TEXT = 65,
    TVM_FFI_TENSOR = 70,
};
enum { TVM_FFI_HEADER = 24 }; // bytes of an object in front of what it holds

typedef struct tvm_ffi_bytes {
    const char *data;
    size_t size;
} tvm_ffi_bytes;

typedef int tvm_ffi_function(void *self, const hone_value *arguments, int32_t count, hone_value *result);
struct tvm_ffi_managed; // DLManagedTensorVersioned

typedef struct tvm_ffi_host {
    void (*raise)(const char *kind, const char *message);
    int (*drop)(void *object);
    int (*make_text)(const tvm_ffi_bytes *text, hone_value *out);
    int (*make_function)(void *self, tvm_ffi_function *call, void (*deleter)(void *self), void **out);
    int (*make_tensor)(struct tvm_ffi_managed *from, int32_t alignment, int32_t contiguous, void **out);
    int (*get_global)(const tvm_ffi_bytes *name, void **out);
    int (*call)(void *function, const hone_value *arguments, int32_t count, hone_value *result);
    void *(*stream)(int32_t device_type, int32_t device_id);
    int (*allocate)(hone_tensor *like, void **out); // a tensor by the environment's allocator
    void *(*allocator)(void);                       // NULL: the environment has none
} tvm_ffi_host;

// NULL: tvm-ffi is not in this process, or lacks a function. Found once.
const tvm_ffi_host *hone_tvm_ffi_host(void);
// The runtime of all calls, which nobody closes: opened at the first. NULL: it could not be opened.
hone_runtime *hone_tvm_ffi_runtime(hone_error *err);
// Raises hone's error as one of tvm-ffi's, by the kind that hosts know. Returns: -1, a function's answer then.
int hone_tvm_ffi_raise(const hone_error *err);
// The same in words. kind: "TypeError".
int hone_tvm_ffi_raise_words(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
