// Many calls tuned with one budget: each gets a first slice, then the rest goes where it is worth most.
#ifndef HONE_RUNTIME_API_BATCH_H
#define HONE_RUNTIME_API_BATCH_H

#include "runtime/api/api.h"
#include "store/records.h"

typedef struct hone_batch_call {
    const hone_op *op;
    hone_call *call; // retained
    double count;    // how often it is made
    double spent_seconds;
    bool cold; // the program has nothing of its weights in the caches
    hone_outlook outlook;
} hone_batch_call;

typedef struct hone_batch {
    hone_runtime *rt;
    hone_result *result;
    hone_tune_options options;
    double slice_seconds; // 0: every call has a budget of its own
    bool moves;           // what is left after the first slices
    uint64_t until_ns;
    hone_batch_call *calls; // that may get more
    size_t count, capacity;
} hone_batch;

// call_count: of calls that will be handed in, at most. Everything is borrowed until deinit.
void hone_batch_init(
    hone_batch *batch, hone_runtime *rt, const hone_tune_options *options, size_t call_count, hone_result *result);
void hone_batch_deinit(hone_batch *batch);
// hone_runtime_tune_missing with the call's budget, or its first slice.
//   regime  HONE_COLD: it is measured cold on a CPU, unless the options ask for one regime; HONE_WARM: as the options say
hone_status hone_batch_tune(
    hone_batch *batch, const hone_op *op, const hone_call *call, double count, hone_regime regime, hone_error *err);
// Remembers another system's key of a call that was tuned: in the result and, where decisions are stored, in the store.
hone_status hone_batch_alias(hone_batch *batch, const hone_store_alias *alias, const hone_call *call, hone_error *err);
// The call that the next slice goes to: where its count, times its time, times what a step is expected to gain is
// largest.
// NULL: none is worth one.
hone_batch_call *hone_batch_next(const hone_batch *batch);
// Whether the answer of a call was left open and is to be looked for again, with how many seconds: twice what the last
// contest was allowed, at least what a call has now, at most eight times the options' seconds. One that was left open at
// the most stays as it is.
bool hone_batch_is_open(const hone_batch *batch, const hone_evidence *answer, double *out_seconds);
// Tunes such a call once more, with the samples of the contest before; within the budget, where there is one for all.
// Where the budget is spent, or the contest fails, the answer that is there goes into the result.
hone_status hone_batch_take_up(
    hone_batch *batch, const hone_op *op, const hone_call *call, double seconds, hone_error *err);
// Spends what is left. A contest that fails now leaves the answer of its first slice.
hone_status hone_batch_spend_rest(hone_batch *batch, hone_error *err);

#endif
