// A permit: the right to tune a call, and the right to measure on a device. Of all threads and processes of this
// machine one has it at a time; the others wait.
#ifndef HONE_CONFIG_PERMIT_H
#define HONE_CONFIG_PERMIT_H

#include "base/log.h"
#include "config/flight.h"
#include "hone/tune.h"
#include "registry/registry.h"
#include "store/common/lease.h"

// What a permit borrows.
typedef struct hone_permit_environment {
    hone_flights *flights;
    const hone_log *log;
    hone_store *store;        // NULL: none
    const char *device_locks; // folder, or "none"; NULL: the user's (hone_os_runtime_folder)
} hone_permit_environment;

// One call being tuned. On the stack of the thread that tunes it, from begin to end.
typedef struct hone_permit {
    const hone_permit_environment *environment;
    const hone_device_info *device;
    const hone_call *call;
    const hone_tune_options *options;
    hone_flight flight; // among the threads of this runtime
    bool flying;
    bool begun;
    hone_lease key;         // among the processes that share the store
    hone_lease device_lock; // of the device, among all processes of this machine
    bool is_measuring;
} hone_permit;

// Waits until nobody else tunes the call. A thread that is tuning already waits for nobody, since others may wait for
// it.
// Returns: HONE_OK; HONE_CANCELLED; HONE_BUSY (another process took too long).
//          *out_landed: another thread has tuned it meanwhile, and the permit is not the caller's. Else it is; permit->key.waited
//          says that another process had it first, so that the store may have the answer by now.
hone_status hone_permit_begin(
    hone_permit *permit,
    const hone_permit_environment *environment,
    const hone_algorithm_entry *algorithm,
    const hone_device_info *device,
    const hone_call *call,
    const hone_tune_options *options,
    bool *out_landed,
    hone_error *err);
// Also after a begin that failed or landed.
void hone_permit_end(hone_permit *permit);

// The contest's (hone_tune_environment): waits until nobody else measures on the device, and lets the next one.
hone_status hone_permit_begin_measuring(void *permit, hone_error *err);
void hone_permit_end_measuring(void *permit);
// The device alone, for who measures without tuning; hone_permit_end_measuring lets the next one.
hone_status hone_permit_begin_device(
    hone_permit *permit,
    const hone_permit_environment *environment,
    const hone_device_info *device,
    const hone_call *call,
    const hone_tune_options *options,
    hone_error *err);

#endif
