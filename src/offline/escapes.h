// Strings as programs print them, without their escapes.
#ifndef HONE_OFFLINE_ESCAPES_H
#define HONE_OFFLINE_ESCAPES_H

#include "base/memory.h"
#include "base/text.h"

// text without the escapes of MLIR (\22, two hex digits) and of HLO (C's: \" \' \\ \n \ooo). NULL: no memory.
char *hone_unescape_mlir(hone_arena *arena, hone_view text, size_t *out_size);
char *hone_unescape_hlo(hone_arena *arena, hone_view text, size_t *out_size);

// The value of a hex digit; -1 for any other character.
static inline int hone_hex_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

#endif
