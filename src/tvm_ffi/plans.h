// Bound plans as functions of tvm-ffi's.
#ifndef HONE_TVM_FFI_PLANS_H
#define HONE_TVM_FFI_PLANS_H

#include "tvm_ffi/values.h"

// A function object that takes values like those of the call, without the name, and runs what was decided for it.
int hone_tvm_ffi_make_plan(const hone_tvm_ffi_call *call, hone_value *result);

#endif
