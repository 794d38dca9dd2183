// Tensors that a function requests from tvm-ffi's environment while it runs: in the host's memory, or on a GPU in
// device memory in the order of the call's stream. All of them must be released before the call ends.
#ifndef HONE_PLATFORMS_FFI_MADE_H
#define HONE_PLATFORMS_FFI_MADE_H

#include "platforms/ffi/gpu.h"
#include "platforms/ffi/lent.h"

// The call for which tensors are made.
typedef struct hone_ffi_maker {
    hone_ffi_frame *frame; // counts them
    hone_device device;
    hone_ffi_driver *driver; // NULL: the device is the host
    const hone_execution *execution;
} hone_ffi_maker;

// A DLPackManagedTensorAllocator for the calling thread's maker.
void *hone_ffi_allocator(void);
// Returns this thread's previous maker, to be restored.
const hone_ffi_maker *hone_ffi_make_for(const hone_ffi_maker *maker);
// The size of a dense tensor; -1 if it overflows.
int64_t hone_ffi_bytes(const hone_tensor *tensor);

#endif
