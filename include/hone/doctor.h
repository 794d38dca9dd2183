// What may be wrong with hone on a machine: the store, the lock file, the worker, what disturbs measurements.
#ifndef HONE_DOCTOR_H
#define HONE_DOCTOR_H

#include "hone/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// One check. Texts are for people, and borrowed for the visit.
typedef struct hone_checkup {
    const char *name; // "store", "worker", "clock", ...
    bool ok;
    const char *detail; // what was found
    const char *advice; // what to do about it; NULL if there is nothing
} hone_checkup;

// Visits the checks, one after the other, as each is done, until visit returns false. Reads all that the user's store holds; watches the machine for
// a quarter of a second; starts a worker.
//   lock_file  the file of the check of that name, since a runtime with a damaged one cannot be opened; NULL, "" or
//              "none" if none is checked
// Returns: HONE_OK, also when a check is not; HONE_INVALID_ARGUMENT; HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status hone_doctor(
    hone_runtime *rt,
    const char *lock_file,
    bool (*visit)(void *ctx, const hone_checkup *checkup),
    void *ctx,
    hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
