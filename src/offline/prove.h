// Rebuilds the arguments of a call from what a program shows of it, until they hash to the label's key.
#ifndef HONE_OFFLINE_PROVE_H
#define HONE_OFFLINE_PROVE_H

#include "base/buffer.h"
#include "offline/operands.h"

enum { HONE_PROVE_PATIENCE = 400000 };

// Searches arguments of signature that hash to key: those of a call of hone's own, or of ejkernel's operation.
//   operation  ejkernel's, "flash_attention@v2"; NULL: the key is hone's
//   patience   what all searches of a program may cost together; when it is used up, only the likeliest arguments are tried.
//              Starts as HONE_PROVE_PATIENCE.
// True: out_spec has the canonical text that hashes to the key. False also when memory was short.
bool hone_prove(
    const hone_allocator *allocator,
    hone_signature *signature,
    const hone_found *found,
    const char *operation,
    const char *key,
    int *patience,
    hone_buffer *out_spec);

#endif
