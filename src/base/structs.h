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

// Structs that a program passes with the size that its header gives them.
typedef struct hone_structs {
    const void *items; // as this version knows them: what was given, or the copy
    void *copy;
} hone_structs;

// Takes `count` structs that lie `size` bytes apart: shorter ones are an older program's, the rest of them reads as zero; longer
// ones a newer program's, as long as what this version does not know is zero. given NULL: items is NULL.
//   known   size that this version has
//   what    the type's name, for messages
// Returns: as hone_struct_copy, HONE_OUT_OF_MEMORY. hone_structs_drop is due in every case.
hone_status hone_structs_take(
    hone_structs *out,
    const void *given,
    size_t count,
    size_t size,
    size_t known,
    const char *what,
    const char *where,
    hone_error *err);
void hone_structs_drop(hone_structs *taken);
// Gives a program a struct of `known` bytes where its header has `size`: a shorter one gets its fields, the rest of a longer
// one is zero.
void hone_struct_give(void *out, size_t size, const void *own, size_t known);

#endif
