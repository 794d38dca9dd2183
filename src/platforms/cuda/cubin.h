// What a binary for an NVIDIA GPU says of itself: a cubin is an ELF file, read here without a driver or a GPU. Where
// the sizes of the parameters stand is not documented by NVIDIA: a file that does not say them is no error.
#ifndef HONE_PLATFORMS_CUDA_CUBIN_H
#define HONE_PLATFORMS_CUDA_CUBIN_H

#include "hone/status.h"

#include <stdbool.h>

enum { HONE_CUBIN_PARAMETERS = 64 };

typedef struct hone_cubin_function {
    uint32_t count; // of parameters; 0: it has none, or does not say
    bool says;      // whether it says what it takes
    struct {
        uint32_t offset, size;
    } parameters[HONE_CUBIN_PARAMETERS];
    int capability; // 90
} hone_cubin_function;

// Whether the bytes begin as an ELF file does: a fatbin and PTX do not.
bool hone_cubin_is_one(const void *bytes, size_t size);
// The function of that name.
// Returns: HONE_OK; HONE_CORRUPT (a file that was cut, or is for another machine); HONE_NOT_FOUND with the functions
// there are.
hone_status hone_cubin_find(
    const void *bytes, size_t size, const char *entry, hone_cubin_function *out, hone_error *err);
// The name of its only function into name; HONE_NOT_FOUND when it has none, or several.
hone_status hone_cubin_only(const void *bytes, size_t size, char *name, size_t name_size, hone_error *err);

#endif
