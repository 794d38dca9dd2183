// Which call of hone's a labelled call of a program is.
#ifndef HONE_OFFLINE_MATCH_H
#define HONE_OFFLINE_MATCH_H

#include "offline/find.h"
#include "offline/offline.h"

// An operation of a program with what tuning it needs.
typedef struct hone_matched {
    hone_operation shown;
    hone_call *call;          // owned; NULL: none
    const char *operation;    // ejkernel's with version, for an alias; NULL: none
    const char *foreign_spec; // NULL: not known
    const char *identity;     // equal for what is the same operation
    bool disagrees;           // the arguments in the label are not those that the program gives it
    bool transposed;          // a gradient's backward part: no call of its own where there is the call
    bool seen;                // something that it reads was seen
    bool multiplies;          // it has products: one of its name without is what was taken out of a loop
    int64_t read_bytes;       // of a call, as in find.h
} hone_matched;

// Matches one find. patience as in prove.h. Texts of *out are in the arena; out->call is released by the caller.
// Returns: HONE_OK (also when nothing matched: the reason says why); HONE_OUT_OF_MEMORY.
hone_status hone_match_found(
    const hone_offline_environment *environment,
    hone_arena *arena,
    const hone_found *found,
    int *patience,
    hone_matched *out,
    hone_error *err);

#endif
