// The system's compiler of C, which sources of packs are compiled with.
#ifndef HONE_PLATFORMS_NATIVE_COMPILER_H
#define HONE_PLATFORMS_NATIVE_COMPILER_H

#include "base/buffer.h"
#include "base/hash.h"

typedef struct hone_native_compiler {
    char path[4096];                     // without links
    char identity[HONE_SHA256_HEX_SIZE]; // the digest of all that it says of itself: version, target, how it was built
    char version[160];                   // "gcc version 12.2.0 (Debian 12.2.0-14)"; "": it does not say
} hone_native_compiler;

// HONE_CC, else cc. It is asked once in a process, and again when its file has changed: a script in its place may call
// another one tomorrow.
// Returns: HONE_OK; HONE_UNAVAILABLE with what to install; HONE_OUT_OF_MEMORY.
hone_status hone_native_find_compiler(hone_native_compiler *out, hone_error *err);
// Appends "C sources of packs: PATH, VERSION", or what is missing.
void hone_native_describe_compiler(hone_buffer *out);

#endif
