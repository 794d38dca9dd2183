// Reads the description in a cubin, a binary for an NVIDIA GPU in an ELF file, without a driver or a GPU. NVIDIA does
// not document where the sizes of the parameters are, so a file without them is not an error.
#ifndef HONE_PLATFORMS_CUDA_CUBIN_H
#define HONE_PLATFORMS_CUDA_CUBIN_H

#include "hone/status.h"

#include <stdbool.h>

enum { HONE_CUBIN_PARAMETERS = 64 };

typedef struct hone_cubin_function {
    uint32_t count; // of parameters; 0: it has none, or they are not described
    bool says;      // whether its parameters are described
    struct {
        uint32_t offset, size;
    } parameters[HONE_CUBIN_PARAMETERS];
    int capability; // 90
} hone_cubin_function;

// Whether the bytes begin like an ELF file; a fatbin and PTX do not.
bool hone_cubin_is_one(const void *bytes, size_t size);
// Finds the function of that name.
// Returns: HONE_OK; HONE_CORRUPT (the file is truncated, or for another machine); HONE_NOT_FOUND with the names of its
// functions.
hone_status hone_cubin_find(
    const void *bytes, size_t size, const char *entry, hone_cubin_function *out, hone_error *err);
// Writes the name of its only function to name; HONE_NOT_FOUND if it has none, or several.
hone_status hone_cubin_only(const void *bytes, size_t size, char *name, size_t name_size, hone_error *err);

#endif
