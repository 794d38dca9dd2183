// Compiled code on disk, shared by the platforms that compile.
#ifndef HONE_PLATFORMS_COMPILED_H
#define HONE_PLATFORMS_COMPILED_H

#include "base/buffer.h"

#include <stdbool.h>

// key: the 64 hex digits of the digest of everything that the code was made from.
bool hone_compiled_find(const char *key, hone_buffer *out);
// Readers see the whole file or none. That it cannot be written is no failure.
void hone_compiled_keep(const char *key, const hone_buffer *bytes);

#endif
