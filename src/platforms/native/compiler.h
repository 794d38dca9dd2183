// The system's C compiler, which compiles sources of packs.
#ifndef HONE_PLATFORMS_NATIVE_COMPILER_H
#define HONE_PLATFORMS_NATIVE_COMPILER_H

#include "base/buffer.h"
#include "base/hash.h"

typedef struct hone_native_compiler {
    char path[4096];                     // without links
    char identity[HONE_SHA256_HEX_SIZE]; // the digest of its own description: version, target, how it was built
    char version[160];                   // "gcc version 12.2.0 (Debian 12.2.0-14)"; "" if it is not known
} hone_native_compiler;

// Finds HONE_CC, else cc. The compiler is run once per process, and again when its file has changed: it may be a script
// that calls another compiler later.
// Returns: HONE_OK; HONE_UNAVAILABLE with what to install; HONE_OUT_OF_MEMORY.
hone_status hone_native_find_compiler(hone_native_compiler *out, hone_error *err);
// Appends "C sources of packs: PATH, VERSION", or what is missing.
void hone_native_describe_compiler(hone_buffer *out);

#endif
