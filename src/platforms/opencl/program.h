// A program of one context, from a source that is compiled or from the binary that it was compiled to before.
#ifndef HONE_PLATFORMS_OPENCL_PROGRAM_H
#define HONE_PLATFORMS_OPENCL_PROGRAM_H

#include "platforms/opencl/instance.h"

typedef struct hone_opencl_source {
    const char *name; // for messages
    const char *text; // NULL: there is a binary
    const void *binary;
    size_t binary_size;
    const char *options; // of the compiler, the macros among them
} hone_opencl_source;

// HONE_INVALID_ARGUMENT with the compiler's first error. *out_digest: of its machine code, as far as the driver shows
// it; 0: not known, as for a context that is not hone's own.
hone_status hone_opencl_build(
    hone_platform_instance *instance,
    const hone_opencl_device *device,
    opencl_context *context,
    const hone_opencl_source *source,
    opencl_program **out,
    uint64_t *out_digest,
    hone_error *err);

#endif
