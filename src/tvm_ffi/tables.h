// What hone says of calls, as texts that a function returns.
#ifndef HONE_TVM_FFI_TABLES_H
#define HONE_TVM_FFI_TABLES_H

#include "tvm_ffi/values.h"

// A decision as a JSON object.
int hone_tvm_ffi_return_decision(const hone_call *call, const hone_decision *decision, hone_value *result);
// Why the call gets what it gets, as people read it.
int hone_tvm_ffi_return_explanation(const hone_op *op, const hone_call *call, hone_value *result);
int hone_tvm_ffi_return_text(const char *text, size_t size, hone_value *result);

#endif
