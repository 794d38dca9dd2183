// Rebuilds the arguments of a call from what a program shows of it, until they hash to the label's key.
#ifndef HONE_OFFLINE_PROVE_H
#define HONE_OFFLINE_PROVE_H

#include "base/buffer.h"
#include "call/foreign.h"
#include "offline/operands.h"

enum { HONE_PROVE_PATIENCE = 2000000 };

typedef struct hone_prove_question {
    hone_signature *signature;   // of the function that was called: hone's algorithm, or the library's own
    const hone_foreign_row *row; // of the library's function; NULL: none is known
    bool foreign;                // a library's label, whose key may be of a part of the arguments
    const hone_found *found;
    const char *key;
} hone_prove_question;

// Searches arguments that hash to the key.
//   patience   texts that all searches of a program may hash together; when it is used up, only the likeliest arguments
//              are tried. Starts as HONE_PROVE_PATIENCE.
// True: out_spec has the text that hashes to the key. False also when memory was short, which shows in out_spec.
bool hone_prove(
    const hone_allocator *allocator, const hone_prove_question *question, int *patience, hone_buffer *out_spec);

#endif
