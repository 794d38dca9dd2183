// Tuning: all kernels of an algorithm in one contest for one call; verified, measured, remembered.
#ifndef HONE_TUNE_H
#define HONE_TUNE_H

#include "hone/overlay.h"
#include "hone/plan.h"
#include "hone/select.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where candidates run.
typedef enum hone_isolation {
    HONE_ISOLATION_DEFAULT = 0,   // a worker process; functions of the host program in the zygote's children
    HONE_ISOLATION_WORKER = 1,    // the same, and what cannot be isolated does not compete
    HONE_ISOLATION_IN_PROCESS = 2 // run candidates in this process; the decision says so
} hone_isolation;

typedef struct hone_progress {
    const char *call;     // call text
    uint32_t done, total; // candidates
    const char *kernel;   // being measured
    double best_ns;       // 0 if there is none yet
    const char *best_kernel;
    double elapsed_seconds, remaining_seconds; // remaining: estimate; negative: not known
    const char *waiting; // NULL, or what it waits for before it measures: "process 4711, which ..."
} hone_progress;

typedef struct hone_tuner hone_tuner; // of the caller's own: hone/tuner.h

// Zero means default.
typedef struct hone_tune_options {
    size_t struct_size;
    uint32_t evaluations; // the most candidates; 0 selects 500
    double seconds;       // time limit for a call; 0 selects 30
    // Candidates without an improvement of more than 0.5 % after which tuning stops; 0 selects the larger of 30 and 15 % of
    // evaluations. Those of kernels that are more than half as slow again as the best count a third.
    uint32_t patience;
    double candidate_seconds; // limit of one candidate's prepare and first run; 0 selects 10, 60 of one with code
    // Time limit for one other process that tunes the call or measures on the device; 0 selects 600.
    double wait_seconds;
    hone_isolation isolation;
    hone_regime regime;
    hone_tolerance tolerance; // all zero: the algorithm's
    uint64_t seed;        // of inputs and sampling; 0 selects a random one for each contest. Recorded in the evidence
    bool no_store;        // do not store decision and measurements
    bool fresh;           // measure also what the store has measured already
    bool keep_existing;   // a call that has a verified decision is left as it is
    const char *platform; // only kernels of this platform; NULL for all
    const char *kernel;   // only the kernel of this name; NULL for all
    void (*progress)(void *ctx, const hone_progress *progress);
    void *progress_ctx;
    const volatile int *cancel; // stops when it is not 0; what was measured is kept
    // How often the call will be made: stop when what the next candidate can be expected to save over them is less than
    // what it costs to try it. 0 if it is not known; then nothing stops for it.
    double expected_calls;
    // For hone_tune_recorded and hone_offline: at most this long for all calls together. Each gets a first slice; the rest
    // goes slice by slice where the number of calls, times their time, times what a further step is expected to gain is
    // largest (with a store, and without fresh: else all get equal shares). 0 gives every call `seconds`.
    double batch_seconds;
    // Only candidates whose results are bit-identical to the default's, on several made-up inputs, NaN, infinities and
    // subnormal numbers among them, may win: tuning cannot change what a program computes. The decision's regime says
    // so.
    bool stable;
    const hone_tuner *tuner; // in place of hone's search; NULL selects hone's. Borrowed for the call
    bool same_regime;        // of hone_offline: `regime` is that of every call, whatever the program reads once a step
} hone_tune_options;

typedef struct hone_result hone_result; // entries + evidence; immutable; of one owner

// Tunes one call. Where another thread or process was tuning the same, hone waits for it, and its verified answer is the
// result, unless no_store, fresh, platform or kernel ask for something else. Contests of all processes of this machine
// take turns on a device.
// Returns: HONE_OK; HONE_NOT_FOUND (no kernel can run it, or none passed; the message has the reasons by kind);
//          HONE_CANCELLED (*out_result holds what was found so far, or NULL); HONE_BUSY (waiting for another process took
//          too long); HONE_IO.
HONE_API HONE_MUST_CHECK hone_status hone_tune(
    const hone_op *op,
    const hone_call *call,
    const hone_tune_options *options,
    hone_result **out_result,
    hone_error *err);
// The same by call text, or by label (hone_call_of_label).
HONE_API HONE_MUST_CHECK hone_status hone_tune_text(
    hone_runtime *rt, const char *call, const hone_tune_options *options, hone_result **out_result, hone_error *err);
HONE_API void hone_result_release(hone_result **result);
HONE_API size_t hone_result_size(const hone_result *result);
// One entry; borrowed from the result. index < hone_result_size.
HONE_API const hone_decision *hone_result_decision(const hone_result *result, size_t index);
HONE_API const char *hone_result_call(const hone_result *result, size_t index);
HONE_API void hone_text_release(char **text); // sets it to NULL; NULL is fine
HONE_API HONE_MUST_CHECK hone_status
hone_result_overlay(const hone_result *result, hone_overlay **out, hone_error *err);
#ifdef __cplusplus
}
#endif
#endif
