// Builds a program of one context, from source or from the binary that was cached when it was compiled before.
#ifndef HONE_PLATFORMS_OPENCL_PROGRAM_H
#define HONE_PLATFORMS_OPENCL_PROGRAM_H

#include "platforms/opencl/instance.h"

typedef struct hone_opencl_source {
    const char *name; // for messages
    const char *text; // NULL: binary is used
    const void *binary;
    size_t binary_size;
    const char *options; // of the compiler, including the macros
} hone_opencl_source;

// HONE_INVALID_ARGUMENT with the compiler's first error. *out_digest: of its machine code, as far as the driver exposes
// it; 0 if it is not known, as for a context that is not hone's own.
hone_status hone_opencl_build(
    hone_platform_instance *instance,
    const hone_opencl_device *device,
    opencl_context *context,
    const hone_opencl_source *source,
    opencl_program **out,
    uint64_t *out_digest,
    hone_error *err);

#endif
