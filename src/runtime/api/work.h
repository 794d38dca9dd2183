// The work of a machine for the queue of its store: it fills the queue with recorded calls, claims jobs that fit its
// devices, tunes them, and repeats this (src/queue).
#ifndef HONE_RUNTIME_API_WORK_H
#define HONE_RUNTIME_API_WORK_H

#include "hone/queue.h"
#include "queue/queue.h"
#include "runtime/api/api.h"
#include "runtime/api/batch.h"

// A recorded call. Texts are borrowed.
typedef struct hone_record_call {
    const hone_device_info *device; // the device that tunes it
    const char *algorithm;          // "name@vVERSION"
    const char *call;               // call text; NULL: from spec
    const char *spec;               // canonical text; may be NULL
    const char *key;
    double count;
    double again_seconds; // seconds for tuning it again, because its answer was left open; 0: it is not tuned again
} hone_record_call;

// Its operation and call, on its device. The caller releases *call.
hone_status hone_record_call_find(
    hone_runtime *rt, const hone_record_call *what, const hone_op **op, hone_call **call, hone_error *err);
// Records the key that another system has for the call.
hone_status hone_record_call_alias(
    hone_batch *batch, const hone_record_call *what, const hone_call *call, hone_error *err);
// The device of this machine that a record's fingerprint means, NULL if there is none.
const hone_device_info *hone_record_call_device(hone_runtime *rt, const char *fingerprint);

// The approximate time of all recorded runs of a call: from its decision if there is one, else from the bytes of its
// operands.
double hone_work_weight(const hone_call *call, double time_ns, double count);

#endif
