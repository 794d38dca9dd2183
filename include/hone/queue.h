// The queue of a store: calls that wait until a machine with their device tunes them, heaviest first
// (docs/tune-with-a-fleet.md). For stores whose kind has one (hone_store_kind.has_queue); others return HONE_UNSUPPORTED.
#ifndef HONE_QUEUE_H
#define HONE_QUEUE_H

#include "hone/runtime.h"
#include "hone/store.h"
#include "hone/tune.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hone_job_state {
    HONE_JOB_WAITING,
    HONE_JOB_HELD, // by a worker, or by one that died
    HONE_JOB_ASIDE // nobody tunes it any more; reason says why
} hone_job_state;

// A call that is queued. Shown by hone; texts are borrowed for the visit.
typedef struct hone_queued {
    hone_store_key key; // device: a fingerprint, or the beginning of one up to a comma or bar: its class
    const char *call;   // call text; NULL takes it from key.spec
    hone_job_state state;
    double priority;    // larger ones first
    uint32_t round;     // how often its contest was left open; later rounds come after all earlier ones
    double weight;      // nanoseconds that all its calls take together, as far as known: heavier ones first
    uint64_t count;     // of calls
    double seconds;     // for the next contest; 0 selects the worker's
    uint32_t tries;     // contests of this round that were begun, but for those that were given back
    const char *holder; // "user@host process 12"; NULL if no worker has had it
    const char *reason; // of what went wrong last; may be NULL
    bool is_dead;       // held, by a worker that died: another claims it
    const char *unfit;  // why its device text is not valid, so that it can only be dropped; NULL if it is valid
} hone_queued;

// Zero means default. First field: sizeof of the struct.
typedef struct hone_queue_options {
    size_t struct_size;
    const char *device; // a fingerprint, or its beginning up to a comma or bar; NULL selects the call's device here
    double priority;
    uint64_t count; // how often the call will be made; 0 means 1
    double seconds; // for its contest; 0 selects the worker's
} hone_queue_options;

// Queues a call. One that is queued already gets the priority, also a lower one, keeps its count and its seconds, and is
// taken up again where it was set aside. Whether any machine has the device is not checked.
//   options    NULL selects all defaults
//   out_added  true: it was not queued before; may be NULL
// Returns: HONE_OK; HONE_NOT_FOUND (no device was given, and the call's is not here); HONE_INVALID_ARGUMENT (a device text that
//          cannot be one; numbers that are not finite, or seconds below 0; the call is of another operation); HONE_UNSUPPORTED; HONE_BUSY, HONE_IO, HONE_UNAVAILABLE.
HONE_API HONE_MUST_CHECK hone_status hone_queue_call(
    hone_store *store,
    const hone_op *op,
    const hone_call *call,
    const hone_queue_options *options,
    bool *out_added,
    hone_error *err);
// Visits what is queued until visit returns false: what is held, what waits, in the order in which it is claimed, what was
// set aside.
//   tells_dead  asks of each held call whether its worker lives (hone_queued.is_dead), which takes a moment for each
HONE_API HONE_MUST_CHECK hone_status hone_queue_scan(
    hone_store *store,
    bool tells_dead,
    bool (*visit)(void *ctx, const hone_queued *queued),
    void *ctx,
    hone_error *err);
// Takes a call away that no worker has. Returns: HONE_OK; HONE_NOT_FOUND; HONE_BUSY (a worker has it); as the store's functions.
HONE_API HONE_MUST_CHECK hone_status hone_queue_drop(hone_store *store, const hone_store_key *key, hone_error *err);
// While a device text (NULL for all) is paused, nothing of it is claimed. HONE_INVALID_ARGUMENT: it cannot be one.
HONE_API HONE_MUST_CHECK hone_status hone_queue_pause(hone_store *store, const char *device, bool on, hone_error *err);
// Visits each device text that is paused until visit returns false; "*": all devices are.
HONE_API HONE_MUST_CHECK hone_status
hone_queue_pauses(hone_store *store, bool (*visit)(void *ctx, const char *device), void *ctx, hone_error *err);
// Whether a device text means a fingerprint: it is the fingerprint, or its beginning up to a comma or bar.
HONE_API bool hone_queue_fits(const char *text, const char *fingerprint);

// What became of a call that was claimed. Shown by hone.
typedef struct hone_worked {
    const hone_queued *queued;
    const hone_result *result; // of its contest; empty where there was none
    const char *reason;        // why it failed; NULL if it did not
    double seconds;            // that it took
    bool is_known;             // it was decided before: nothing was measured
    bool is_open;              // which is the fastest was left open: it is queued again
} hone_worked;

// Zero means default. First field: sizeof of the struct.
typedef struct hone_work_options {
    size_t struct_size;
    const hone_tune_options *tune; // of each contest; its cancel ends the work; NULL selects all defaults
    const char *device;            // "cpu", "cuda:1", or a fingerprint; NULL for all devices of this machine
    bool until_empty;              // else until it is cancelled
    bool no_fill;                  // recorded calls stay where they are
    uint32_t retries;              // contests of a call that may be begun and not ended; 0 selects 3
    void (*say)(void *ctx, const hone_worked *worked); // may be NULL
    void (*wait)(void *ctx, const char *why);          // a wait has begun; may be NULL
    void *ctx;
} hone_work_options;

typedef struct hone_work_report {
    // again: contests that were left open, whose call was queued again; known: decided before; lost: ended by another
    uint64_t queued, tuned, again, known, failed, aside, lost;
    // At the end of until_empty, of the devices here: what waits for one that is paused, and all that is set aside.
    uint64_t paused, standing_aside;
} hone_work_report;

HONE_API HONE_MUST_CHECK hone_status hone_work_sized(
    hone_runtime *rt, const hone_work_options *options, hone_work_report *out, size_t size, hone_error *err);
// This machine's part of the queue of the user's store: queues what was recorded, claims what fits the devices here, tunes
// it, and goes on. Many processes may do so at once, on any machines that share the store.
//   out  written also after a failure
// Returns: HONE_OK (nothing waits any more); HONE_CANCELLED; HONE_NOT_FOUND (no such device here); HONE_UNSUPPORTED (no queue
//          in this store); HONE_UNAVAILABLE (no store); HONE_IO (what was tuned could not be stored).
HONE_MUST_CHECK static inline hone_status hone_work(
    hone_runtime *rt, const hone_work_options *options, hone_work_report *out, hone_error *err)
{
    return hone_work_sized(rt, options, out, sizeof *out, err);
}
// Queues the recorded calls of a device (NULL for all) that have no decision, or whose contest was left open.
//   options  as hone_tune_recorded
HONE_API HONE_MUST_CHECK hone_status hone_work_fill(
    hone_runtime *rt,
    const char *device,
    const hone_tune_options *options,
    double priority,
    size_t *out_added,
    hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
