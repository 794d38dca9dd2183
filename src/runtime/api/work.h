// What a machine does for the queue of its store: it fills it with what was recorded, claims what fits its devices, tunes
// it, and goes on (src/queue).
#ifndef HONE_RUNTIME_API_WORK_H
#define HONE_RUNTIME_API_WORK_H

#include "hone/queue.h"
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

// What all calls of a call take, roughly: by its decision where there is one, else by the bytes of its operands.
double hone_work_weight(const hone_call *call, double time_ns, double count);

#endif
