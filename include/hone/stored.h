// The stores of a runtime, and what is stored as the chain reads it.
#ifndef HONE_STORED_H
#define HONE_STORED_H

#include "hone/runtime.h"
#include "hone/select.h"
#include "hone/store.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hone_store_role {
    HONE_STORE_OF_USER = 0,  // read and written (hone_runtime_options.store)
    HONE_STORE_OF_SYSTEM = 1 // under it, read alone (hone_runtime_options.system_store)
} hone_store_role;

// A store of a runtime, which is opened now if it was not yet.
//   *out  borrowed from the runtime; NULL after a failure. It is not closed by the caller
// Returns: HONE_OK; HONE_NOT_FOUND (none is named, and the message says where one would be); why it could not be opened, as
// hone_store_open; HONE_INVALID_ARGUMENT.
HONE_API HONE_MUST_CHECK hone_status
hone_store_of(hone_runtime *rt, hone_store_role role, hone_store **out, hone_error *err);
// How many contests of this runtime have an answer that the user's store should have and has not: it could not be opened,
// or refused it. The log had the reason of each. Any thread.
HONE_API size_t hone_unstored(hone_runtime *rt);
// The regimes whose stored decisions the runtime serves, the one that it asks for first in front. Writes at most capacity of them
// and returns how many there are. out may be NULL when capacity is 0.
HONE_API size_t hone_served_regimes(const hone_runtime *rt, hone_regime *out, size_t capacity);

HONE_API HONE_MUST_CHECK hone_status hone_decision_read_sized(
    hone_runtime *rt,
    const hone_device_info *device,
    const hone_store_decision *stored,
    hone_decision *out,
    size_t size,
    hone_error *err);
// Reads a stored decision as the chain does: checks it against the registry, the revision of its kernel, the kernel's
// space and HONE_DENY.
//   device  the environment that it was made in is compared with this one's (hone_decision.changed); NULL if it is not
//   stored  borrowed for the call; may be that of a visit
// Returns: HONE_OK: it can be served; HONE_INCOMPATIBLE with why not; HONE_CORRUPT: its config is not one of its kernel's.
HONE_MUST_CHECK static inline hone_status hone_decision_read(
    hone_runtime *rt,
    const hone_device_info *device,
    const hone_store_decision *stored,
    hone_decision *out,
    hone_error *err)
{
    return hone_decision_read_sized(rt, device, stored, out, sizeof *out, err);
}

#ifdef __cplusplus
}
#endif
#endif
