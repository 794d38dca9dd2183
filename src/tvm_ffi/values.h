// The arguments of a function of tvm-ffi as hone's, and the results that it was not given.
#ifndef HONE_TVM_FFI_VALUES_H
#define HONE_TVM_FFI_VALUES_H

#include "tvm_ffi/host.h"

enum { HONE_TVM_FFI_VALUES = 64 };

// One call: an operation and its values in the order of values in C.
typedef struct hone_tvm_ffi_call {
    const hone_op *op;
    size_t count;
    hone_value values[HONE_TVM_FFI_VALUES];
    char texts[HONE_TVM_FFI_VALUES][8]; // those that were passed without an object
    hone_execution execution;
    const hone_execution *executes;  // NULL: on the host, as it likes
    void *made[HONE_TVM_FFI_VALUES]; // tensors of results that were left out, by their index; NULL: given
    size_t made_count;
} hone_tvm_ffi_call;

// Reads "NAME, values...". Returns: 0; -1, and the error is raised. Borrows what the arguments hold.
int hone_tvm_ffi_read(const char *function, const hone_value *arguments, int32_t count, hone_tvm_ffi_call *out);
// The same of values alone.
int hone_tvm_ffi_read_of(
    const hone_op *op, const char *function, const hone_value *arguments, size_t count, hone_tvm_ffi_call *out);
// The operation of a name, "rms_norm@v2".
int hone_tvm_ffi_find(const char *name, const hone_op **out);
// The text that an argument holds; NULL if it is not a text.
const char *hone_tvm_ffi_text(const hone_value *argument, char room[8]);
// Makes the results that were left out, by the environment's allocator, or on the host by hone's.
int hone_tvm_ffi_make_results(hone_tvm_ffi_call *call);
// What a function returns of them: nothing, a tensor, or an array of tensors. They are the result's then.
int hone_tvm_ffi_return_results(hone_tvm_ffi_call *call, hone_value *result);
// Behind a failure.
void hone_tvm_ffi_drop_results(hone_tvm_ffi_call *call);
// A description of the call, without data.
int hone_tvm_ffi_describe(const hone_tvm_ffi_call *call, hone_call **out);

#endif
