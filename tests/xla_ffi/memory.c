// A handler that asks XLA for memory and answers what XLA answers (tests/python/test_jax.py compiles and calls it).
#include "xla_ffi/ffi.h"

xla_ffi_error *ask_for_memory(const xla_ffi_frame *frame);
xla_ffi_error *ask_for_memory(const xla_ffi_frame *frame)
{
    if (frame->extension != NULL) {
        xla_ffi_metadata *metadata = ((xla_ffi_metadata_extension *)(void *)frame->extension)->metadata;
        metadata->api_version.major = XLA_FFI_MAJOR;
        metadata->api_version.minor = XLA_FFI_MINOR;
        return NULL;
    }
    xla_ffi_memory_allocate allocate = {
        .struct_size = sizeof allocate, .context = frame->context, .size = 256, .alignment = 16};
    return frame->api->memory_allocate(&allocate);
}
