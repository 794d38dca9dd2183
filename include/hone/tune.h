// Tuning: all kernels of an algorithm in one contest for one call; verified, measured, remembered.
#ifndef HONE_TUNE_H
#define HONE_TUNE_H

#include "hone/overlay.h"
#include "hone/select.h"
#include "hone/store.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where candidates run.
typedef enum hone_isolation {
    HONE_ISOLATION_DEFAULT = 0,   // a worker process; functions of the host program in the zygote's children
    HONE_ISOLATION_WORKER = 1,    // the same, and what cannot be isolated does not compete
    HONE_ISOLATION_IN_PROCESS = 2 // the caller's consent to run candidates here; the decision says so
} hone_isolation;

typedef struct hone_progress {
    const char *call;     // call text
    uint32_t done, total; // candidates
    const char *kernel;   // being measured
    double best_ns;       // 0: none yet
    const char *best_kernel;
    double elapsed_seconds, remaining_seconds; // remaining: estimate; negative: not known
    const char *waiting; // not NULL: nothing is measured yet, and who is waited for: "process 4711, which ..."
} hone_progress;

// Zero means default.
typedef struct hone_tune_options {
    size_t struct_size;
    uint32_t evaluations;     // at most so many candidates; 0: 500
    double seconds;           // at most so long for a call; 0: 30
    uint32_t patience;        // candidates without a gain over 0.5 %; 0: the larger of 30 and 15 % of evaluations
    double candidate_seconds; // limit of one candidate's prepare and first run; 0: 10
    double wait_seconds; // at most so long for one other process that tunes the same or measures on the device; 0: 600
    hone_isolation isolation;
    hone_regime regime;
    hone_tolerance tolerance; // all zero: the algorithm's
    uint64_t seed;
    bool no_store;        // do not store decision and measurements
    bool fresh;           // measure also what the store has measured already
    bool keep_existing;   // a call that has a verified decision is left as it is
    const char *platform; // only kernels of this platform; NULL: all
    const char *kernel;   // only the kernel of this name; NULL: all
    void (*progress)(void *ctx, const hone_progress *progress);
    void *progress_ctx;
    const volatile int *cancel; // not 0: stop; what was measured is kept
} hone_tune_options;

typedef struct hone_result hone_result; // entries + evidence; immutable; counted

// Tunes one call. Where another thread or process was tuning the same, it is waited for, and its verified answer is the
// result, unless no_store, fresh, platform or kernel ask for something else. Contests of all processes of this machine
// take turns on a device.
// Returns: HONE_OK; HONE_NOT_FOUND (no kernel can run it, or none passed; the message has the reasons by kind);
//          HONE_CANCELLED (*out_result holds what was found so far, or NULL); HONE_BUSY (another process kept it waiting
//          for too long); HONE_IO.
HONE_API HONE_MUST_CHECK hone_status hone_tune(
    const hone_op *op,
    const hone_call *call,
    const hone_tune_options *options,
    hone_result **out_result,
    hone_error *err);
// The same by call text.
HONE_API HONE_MUST_CHECK hone_status hone_tune_text(
    hone_runtime *rt, const char *call, const hone_tune_options *options, hone_result **out_result, hone_error *err);
// Tunes every recorded call of this device without a verified decision, heaviest first. One that fails stands
// in the result with its reason and ends nothing.
HONE_API HONE_MUST_CHECK hone_status
hone_tune_recorded(hone_runtime *rt, const hone_tune_options *options, hone_result **out_result, hone_error *err);

HONE_API hone_result *hone_result_retain(hone_result *result);
HONE_API void hone_result_release(hone_result **result);
HONE_API size_t hone_result_size(const hone_result *result);
// One entry; borrowed from the result. index < hone_result_size.
HONE_API const hone_decision *hone_result_decision(const hone_result *result, size_t index);
HONE_API const char *hone_result_call(const hone_result *result, size_t index);
// The result document (formats.md); free with hone_text_free.
HONE_API HONE_MUST_CHECK hone_status hone_result_json(const hone_result *result, char **out_text, hone_error *err);
HONE_API void hone_text_free(char *text);
HONE_API HONE_MUST_CHECK hone_status
hone_result_parse(hone_runtime *rt, const char *json, size_t size, hone_result **out, hone_error *err);
// Both results' entries; of two for one call and regime the one that hone_store_merge would keep, b's coming to a's. The
// results are of one device, else HONE_INVALID_ARGUMENT.
HONE_API HONE_MUST_CHECK hone_status
hone_result_merge(const hone_result *a, const hone_result *b, hone_result **out, hone_error *err);
HONE_API HONE_MUST_CHECK hone_status
hone_result_overlay(const hone_result *result, hone_overlay **out, hone_error *err);
// One transaction.
HONE_API HONE_MUST_CHECK hone_status hone_result_store(const hone_result *result, hone_store *store, hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
