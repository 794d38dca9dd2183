// Tunes many calls with one budget: each call gets a first slice, then the rest goes to the calls with the largest
// expected gain.
#ifndef HONE_RUNTIME_API_BATCH_H
#define HONE_RUNTIME_API_BATCH_H

#include "runtime/api/api.h"
#include "store/records.h"

typedef struct hone_batch_call {
    const hone_op *op;
    hone_call *call; // retained
    double count;    // how many times it is called
    double spent_seconds;
    bool cold; // the program does not have its weights in the caches
    hone_outlook outlook;
} hone_batch_call;

typedef struct hone_batch {
    hone_runtime *rt;
    hone_result *result;
    hone_tune_options options;
    double slice_seconds; // 0 if every call has its own budget
    bool moves;           // whether the rest of the budget is spent after the first slices
    uint64_t until_ns;
    hone_batch_call *calls; // those that may get more slices
    size_t count, capacity;
} hone_batch;

// call_count: the largest number of calls that will be passed. All arguments are borrowed until deinit.
void hone_batch_init(
    hone_batch *batch, hone_runtime *rt, const hone_tune_options *options, size_t call_count, hone_result *result);
void hone_batch_deinit(hone_batch *batch);
// hone_runtime_tune_missing with the call's budget, or its first slice.
//   regime  HONE_COLD: measures it cold on a CPU, unless the options ask for one regime; HONE_WARM: as the options say
hone_status hone_batch_tune(
    hone_batch *batch, const hone_op *op, const hone_call *call, double count, hone_regime regime, hone_error *err);
// Records another system's key of a tuned call: in the result and, if decisions are stored, in the store.
hone_status hone_batch_alias(hone_batch *batch, const hone_store_alias *alias, const hone_call *call, hone_error *err);
// The call that gets the next slice: the one with the largest product of its count, its time, and the expected gain of
// a step. NULL if no call is worth a slice.
hone_batch_call *hone_batch_next(const hone_batch *batch);
// Whether the answer of a call was left open and should be tuned again. *out_seconds is then twice the last contest's
// limit, at least what a call has now, at most eight times the options' seconds. An answer that was left open at that
// maximum stays as it is.
bool hone_batch_is_open(const hone_batch *batch, const hone_evidence *answer, double *out_seconds);
// Tunes such a call once more, with the samples of the previous contest; within the common budget if there is one. If
// the budget is spent, or the contest fails, the existing answer goes into the result.
hone_status hone_batch_take_up(
    hone_batch *batch, const hone_op *op, const hone_call *call, double seconds, hone_error *err);
// Spends the rest of the budget. If a contest fails now, the call keeps the answer of its first slice.
hone_status hone_batch_spend_rest(hone_batch *batch, hone_error *err);

#endif
