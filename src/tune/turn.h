// Turns: of all threads and processes of this machine, one at a time tunes a call, and one at a time measures on a
// device.
#ifndef HONE_TUNE_TURN_H
#define HONE_TUNE_TURN_H

#include "config/flight.h"
#include "config/lease.h"
#include "tune/tuner.h"

// What a turn borrows.
typedef struct hone_turn_environment {
    hone_flights *flights;
    const hone_log *log;
    hone_store *store;        // NULL: none
    const char *device_locks; // folder, or "none"; NULL: the user's (hone_os_runtime_folder)
} hone_turn_environment;

// What a contest says of a further one for the same call.
typedef struct hone_outlook {
    double time_ns;       // of the best; 0: none
    double expected_gain; // that the next step would take off it, relative; 0: nothing is left to try
} hone_outlook;

// One call being tuned. On the stack of the thread that tunes it, from begin to end.
typedef struct hone_turn {
    const hone_turn_environment *environment;
    const hone_device_info *device;
    const hone_call *call;
    const hone_tune_options *options;
    hone_flight flight; // among the threads of this runtime
    bool flying;
    bool begun;
    hone_lease key;  // among the processes that share the store
    hone_lease lane; // of the device, among all processes of this machine
    bool on_runway;
    hone_outlook *outlook; // of the contest; NULL: not asked
} hone_turn;

// Waits until nobody else tunes the call. A thread that is tuning already waits for nobody, since others may wait for
// it.
// Returns: HONE_OK; HONE_CANCELLED; HONE_BUSY (another process took too long).
//          *out_landed: another thread has tuned it meanwhile, and the turn is not the caller's. Else it is; turn->key.waited
//          says that another process had it first, so that the store may have the answer by now.
hone_status hone_turn_begin(
    hone_turn *turn,
    const hone_turn_environment *environment,
    const hone_algorithm_entry *algorithm,
    const hone_device_info *device,
    const hone_call *call,
    const hone_tune_options *options,
    bool *out_landed,
    hone_error *err);
// Also after a begin that failed or landed.
void hone_turn_end(hone_turn *turn);

// The contest's (hone_tune_environment): waits until nobody else measures on the device, and lets the next one.
hone_status hone_turn_begin_measuring(void *turn, hone_error *err);
void hone_turn_end_measuring(void *turn);
// The device alone, for who measures without tuning; hone_turn_end_measuring lets the next one.
hone_status hone_turn_begin_device(
    hone_turn *turn,
    const hone_turn_environment *environment,
    const hone_device_info *device,
    const hone_call *call,
    const hone_tune_options *options,
    hone_error *err);

#endif
