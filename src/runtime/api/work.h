// What a machine does for the queue of its store: it fills it with what was recorded, claims what fits its devices, tunes
// it, and goes on (src/queue).
#ifndef HONE_RUNTIME_API_WORK_H
#define HONE_RUNTIME_API_WORK_H

#include "queue/queue.h"
#include "runtime/api/api.h"
#include "runtime/api/batch.h"

// A recorded call. Texts are borrowed.
typedef struct hone_record_call {
    const hone_device_info *device; // that tunes it
    const char *algorithm;          // "name@vVERSION"
    const char *call;               // call text; NULL: from spec
    const char *spec;               // canonical text; may be NULL
    const char *key;
    double count;
    double again_seconds; // its answer was left open, and it is tuned again with so many; 0: it is not
} hone_record_call;

// Its operation and call, on its device. The caller releases *call.
hone_status hone_record_call_find(
    hone_runtime *rt, const hone_record_call *what, const hone_op **op, hone_call **call, hone_error *err);
// Remembers the key that another system has for it.
hone_status hone_record_call_alias(
    hone_batch *batch, const hone_record_call *what, const hone_call *call, hone_error *err);
// The device here that a record's fingerprint means; NULL: none.
const hone_device_info *hone_record_call_device(hone_runtime *rt, const char *fingerprint);

// What became of a job.
typedef struct hone_worked {
    const hone_job *job;
    const hone_result *result; // of its contest
    hone_job_end end;
    const char *reason; // NULL but of what failed
    double seconds;     // that it took
    bool known;         // it was decided before: nothing was measured
} hone_worked;

typedef struct hone_work_options {
    hone_tune_options tune;
    const char *device;                                // "cpu", "cuda:1", or a fingerprint; NULL: all devices here
    bool until_empty;                                  // else until it is cancelled
    bool no_fill;                                      // recorded calls stay where they are
    uint32_t retries;                                  // 0: HONE_QUEUE_RETRIES
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

// Returns: HONE_OK (nothing waits any more); HONE_CANCELLED; HONE_NOT_FOUND (no such device here; nothing is claimed of a
//          queue that is paused); HONE_UNSUPPORTED (no queue in this store); HONE_UNAVAILABLE (no store).
hone_status hone_work(hone_runtime *rt, const hone_work_options *options, hone_work_report *out, hone_error *err);
// Queues the recorded calls of a device (NULL: of all) that have no decision, or whose contest was left open.
hone_status hone_work_fill(
    hone_runtime *rt,
    const char *device,
    const hone_tune_options *options,
    double priority,
    size_t *out_added,
    hone_error *err);
// What all calls of a call take, roughly: by its decision where there is one, else by the bytes of its operands.
double hone_work_weight(const hone_call *call, double time_ns, double count);

#endif
