// Structs that the caller's header may know in another version.
#ifndef HONE_BASE_STRUCTS_H
#define HONE_BASE_STRUCTS_H

#include "hone/status.h"

#include <stddef.h>

// Copies a struct that begins with its own size: an older one is shorter (the rest reads as zero, the default), a newer
// one may be longer as long as what this version does not know is left at zero.
//   out    `known` bytes, its size set to them
//   from   `came` bytes by its own word
//   what   its type's name, for messages
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (a size that was never set); HONE_INCOMPATIBLE (uses what is not known here).
hone_status hone_struct_copy(
    void *out, size_t known, const void *from, size_t came, const char *what, const char *where, hone_error *err);

#endif
