#include "xla_ffi/memory.h"

enum { ALIGNMENT = 16 }; // the most that XLA lets one ask for; what comes is aligned to 256

static void forget(const xla_ffi_api *api, xla_ffi_error *error)
{
    xla_ffi_error_destroy destroy = {.struct_size = sizeof destroy, .error = error};
    if (error != NULL) api->error_destroy(&destroy);
}

void *hone_xla_take(void *given, size_t size)
{
    const xla_ffi_frame *frame = given;
    const xla_ffi_api *api = frame->api;
    if (!XLA_FFI_HAS(api, memory_allocate) || !XLA_FFI_HAS(api, memory_free)) return NULL;
    xla_ffi_memory_allocate allocate = {
        .struct_size = sizeof allocate, .context = frame->context, .size = size, .alignment = ALIGNMENT};
    xla_ffi_error *error = api->memory_allocate(&allocate);
    forget(api, error);
    return error == NULL ? allocate.data : NULL;
}

void hone_xla_give_back(void *given, void *taken, size_t size)
{
    const xla_ffi_frame *frame = given;
    xla_ffi_memory_free back = {.struct_size = sizeof back, .context = frame->context, .size = size, .data = taken};
    forget(frame->api, frame->api->memory_free(&back));
}
