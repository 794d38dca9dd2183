// XLA's memory of the device, for a run that needs some beside its tensors: take and give_back of a hone_execution.
#ifndef HONE_XLA_FFI_MEMORY_H
#define HONE_XLA_FFI_MEMORY_H

#include "xla_ffi/xla_ffi.h"

// On CUDA alone: on the CPU XLA lends none ("XLA FFI GPU context is not available"), and hone's kernels have their own.
//   frame  the xla_ffi_frame of the call
// Returns: NULL where XLA has none left, or is too old to lend any.
void *hone_xla_take(void *frame, size_t size);
void hone_xla_give_back(void *frame, void *taken, size_t size);

#endif
