// Tuning: all kernels of an algorithm in one contest for one call; verified, measured, remembered.
#ifndef HONE_TUNE_H
#define HONE_TUNE_H

#include "hone/overlay.h"
#include "hone/plan.h"
#include "hone/select.h"
#include "hone/space.h"
#include "hone/store.h"

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
    double best_ns;       // 0: none yet
    const char *best_kernel;
    double elapsed_seconds, remaining_seconds; // remaining: estimate; negative: not known
    const char *waiting; // not NULL: nothing is measured yet, and this is what it waits for: "process 4711, which ..."
} hone_progress;

// A contest that a tuner of the caller's own drives. Valid while the tuner runs, in the thread that it runs in.
typedef struct hone_tuning hone_tuning;

// A kernel that competes.
typedef struct hone_tuning_kernel {
    const char *name;
    hone_platform platform;
    hone_backend backend;
    const hone_space *space;       // for hone_config_text and hone_config_json
    const hone_bound_space *bound; // to the call: the configs that may be tried
    hone_config default_config;
} hone_tuning_kernel;

// The outcome of trying a config.
typedef struct hone_tried {
    double time_ns, low_ns, high_ns; // of one run: the median with its 95 % interval; 0: rejected
    hone_failure failure;            // not NONE: why it was rejected, and the details
    char reason[256];
} hone_tried;

// A tuner of the caller's own: it decides which configs are tried, and may decide which of them wins.
typedef struct hone_tuner {
    size_t struct_size;
    const char *name; // for the evidence; NULL: "own"
    // Called once for each contest, in the thread that asked for it. Before it the default of the first kernel that is
    // right and what the store answers with are measured, and what the store has measured takes part. When it has returned HONE_OK, the
    // fastest of all that were tried wins, or the one given to hone_tuning_choose. Any other status ends the contest
    // without a decision and with err's message; what was measured is kept.
    hone_status (*run)(void *ctx, hone_tuning *tuning, hone_error *err);
    void *ctx;
} hone_tuner;

// Borrowed, like everything that the tuner gets. There are *out_count kernels, and a pointer to each.
HONE_API const hone_call *hone_tuning_call(const hone_tuning *tuning);
HONE_API const hone_device_info *hone_tuning_device(const hone_tuning *tuning);
HONE_API const hone_tuning_kernel *const *hone_tuning_kernels(const hone_tuning *tuning, size_t *out_count);
// What is left of the contest's options: seconds for trying (the rest belongs to the finals), and evaluations. Both are 0
// once the contest was cancelled.
HONE_API double hone_tuning_seconds(const hone_tuning *tuning);
HONE_API uint32_t hone_tuning_evaluations(const hone_tuning *tuning);
// The config that hone's own search would try next of a kernel, by what was tried so far: never the same one twice.
// Returns: HONE_OK; HONE_NOT_FOUND (all were proposed); HONE_INVALID_ARGUMENT (there is no such kernel).
HONE_API HONE_MUST_CHECK hone_status
hone_tuning_propose(hone_tuning *tuning, size_t kernel, hone_config *out_config, hone_error *err);
HONE_API HONE_MUST_CHECK hone_status hone_tuning_try_sized(
    hone_tuning *tuning, size_t kernel, const hone_config *config, hone_tried *out, size_t size, hone_error *err);
// Tries a config as hone does: prepared and run in a worker process, all its results verified, then timed. One that was
// tried before is not run again.
// Returns: HONE_OK, also when it was rejected; HONE_INVALID_ARGUMENT (no such kernel, or a config that its space refuses);
//          HONE_UNSUPPORTED (the kernel was disabled, since it crashes or hangs); HONE_CANCELLED (the contest was
//          cancelled, or its seconds or evaluations are spent: the tuner returns).
HONE_MUST_CHECK static inline hone_status hone_tuning_try(
    hone_tuning *tuning, size_t kernel, const hone_config *config, hone_tried *out, hone_error *err)
{
    return hone_tuning_try_sized(tuning, kernel, config, out, sizeof *out, err);
}
// Chooses the winner; the last call counts. It is measured beside the others in the finals, and verified there once
// more with other inputs, as every winner: when it is rejected there, the fastest of the others wins.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (it was not tried, or was rejected).
HONE_API HONE_MUST_CHECK hone_status
hone_tuning_choose(hone_tuning *tuning, size_t kernel, const hone_config *config, hone_error *err);

// Zero means default.
typedef struct hone_tune_options {
    size_t struct_size;
    uint32_t evaluations;     // at most this many candidates; 0: 500
    double seconds;           // at most this long for a call; 0: 30
    uint32_t patience;        // candidates without a gain over 0.5 %; 0: the larger of 30 and 15 % of evaluations.
                              // Those of kernels that are more than half as slow again as the best count a third
    double candidate_seconds; // limit of one candidate's prepare and first run; 0: 10, 60 of one with code
    double
        wait_seconds; // at most this long for one other process that tunes the same or measures on the device; 0: 600
    hone_isolation isolation;
    hone_regime regime;
    hone_tolerance tolerance; // all zero: the algorithm's
    uint64_t seed;            // of inputs and sampling; 0: a random one for each contest. Recorded in the evidence
    bool no_store;            // do not store decision and measurements
    bool fresh;               // measure also what the store has measured already
    bool keep_existing;       // a call that has a verified decision is left as it is
    const char *platform;     // only kernels of this platform; NULL: all
    const char *kernel;       // only the kernel of this name; NULL: all
    void (*progress)(void *ctx, const hone_progress *progress);
    void *progress_ctx;
    const volatile int *cancel; // not 0: stop; what was measured is kept
    // How often the call will be made: stop when what the next candidate can be expected to save over them is less than
    // what it costs to try it. 0: not known, nothing stops for it.
    double expected_calls;
    // For hone_tune_recorded and hone_offline: at most this long for all calls together. Each gets a first slice; the rest
    // goes slice by slice where the number of calls, times their time, times what a further step is expected to gain is
    // largest (with a store, and without fresh: else all get equal shares). 0: every call has `seconds`.
    double batch_seconds;
    // Only candidates whose results are bit-identical to the default's, on several made-up inputs, NaN, infinities and
    // subnormal numbers among them, may win: tuning cannot change what a program computes. The decision's regime says
    // so.
    bool stable;
    const hone_tuner *tuner; // in place of hone's search; NULL: hone's. Borrowed for the call
    bool same_regime;        // of hone_offline: `regime` is that of every call, whatever the program reads once a step
} hone_tune_options;

// A stored choice, measured again. Times are nanoseconds of one run, shares are of 1.
typedef struct hone_audited {
    const char *call; // call text; NULL: not known
    char algorithm[HONE_NAME_SIZE];
    char version[16];
    char key[20];
    hone_regime regime;
    char kernel[HONE_NAME_SIZE]; // the choice
    char config[1024];
    char best_kernel[HONE_NAME_SIZE]; // the fastest of those measured beside it; the choice itself where none is faster
    char best_config[1024];
    double stored_ns;                       // the choice's time when it was stored
    double time_ns, low_ns, high_ns;        // now; 0: not measured
    double best_ns, default_ns;             // 0: not measured
    double regret, regret_low, regret_high; // its time over the fastest's less 1, with the 95 % interval
    double drift;                           // time_ns / stored_ns - 1
    uint32_t rivals, rounds;                // measured beside it; how often
    bool flipped;                           // another is certainly faster, by more than a tie
    bool served;                            // false: today's library does not serve it, and reason says why
    bool passed;                            // not past the threshold
    char changed[128];                      // what changed in the environment since; "": nothing that matters
    hone_failure failure;                   // not NONE: the choice was rejected, and reason says why
    char reason[256];
    bool taken_back;                  // the store no longer answers with it
    char next_kernel[HONE_NAME_SIZE]; // what it answers with now; "": nothing, and the chain goes on
    char next_config[1024];
    double next_ns;   // as it was measured then
    char pinned[256]; // the line of the lock file that still names the kernel: "hone.lock:3"; ""
} hone_audited;

typedef struct hone_audit_summary {
    uint32_t choices, measured, flipped, failed, changed, not_served, past; // past: of the threshold
    uint32_t taken_back;
    double flip_rate; // flipped / measured
    double mean_regret, worst_regret, median_drift;
} hone_audit_summary;

typedef struct hone_audit hone_audit; // immutable; of one owner

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
// Tunes every recorded call of this device without a verified decision, heaviest first; then, heaviest first, those
// whose contest left open which is the fastest (hone_evidence.undecided): each goes on with the samples of that contest,
// for twice the seconds that it was allowed, at least `seconds` and at most eight times as many, until it is decided or
// left open at the most. Not with fresh, keep_existing, platform or kernel. One that fails is in the result with its
// reason and does not end the others.
HONE_API HONE_MUST_CHECK hone_status
hone_tune_recorded(hone_runtime *rt, const hone_tune_options *options, hone_result **out_result, hone_error *err);

// Verifies stored choices as a contest verifies its winner, and measures them again beside their runners-up and the
// default, in interleaved rounds. A choice has not passed when it was rejected, when another is certainly faster by more
// than the threshold, or when its environment has changed and it is certainly slower than before by more than that. The
// latter two are measured a second time, after all others, before they count.
// One that was rejected is taken back (not with no_store): its failure is stored, and the fastest stored config of the
// call that passes the same check replaces it; where none does, the store no longer has a decision of the call. A plan
// that is bound goes on with it, and is no longer current.
//   calls      call texts; count 0: every decision of this machine's devices in the user's store
//   threshold  share that is allowed, .05 is 5 %
//   options    seconds (a call; 0: 5), candidate_seconds, wait_seconds, isolation, tolerance, seed, no_store, progress,
//              cancel; NULL: all defaults
// Returns: HONE_OK, also when choices have not passed; HONE_NOT_FOUND (a call has no decision, or there is no store);
//          HONE_CANCELLED (*out holds what was measured so far); HONE_BUSY; HONE_IO.
HONE_API HONE_MUST_CHECK hone_status hone_tune_audit(
    hone_runtime *rt,
    const char *const *calls,
    size_t count,
    double threshold,
    const hone_tune_options *options,
    hone_audit **out,
    hone_error *err);
HONE_API void hone_audit_release(hone_audit **audit);
HONE_API size_t hone_audit_size(const hone_audit *audit);
// One choice; borrowed from the audit. index < hone_audit_size.
HONE_API const hone_audited *hone_audit_choice(const hone_audit *audit, size_t index);
HONE_API void hone_audit_sum_sized(const hone_audit *audit, hone_audit_summary *out, size_t size);
static inline void hone_audit_sum(const hone_audit *audit, hone_audit_summary *out)
{
    hone_audit_sum_sized(audit, out, sizeof *out);
}
// The audit document (docs/audit.md); free with hone_text_free.
HONE_API HONE_MUST_CHECK hone_status hone_audit_json(const hone_audit *audit, char **out_text, hone_error *err);

HONE_API void hone_result_release(hone_result **result);
HONE_API size_t hone_result_size(const hone_result *result);
// One entry; borrowed from the result. index < hone_result_size.
HONE_API const hone_decision *hone_result_decision(const hone_result *result, size_t index);
HONE_API const char *hone_result_call(const hone_result *result, size_t index);
// The result document (formats.md); free with hone_text_free.
HONE_API HONE_MUST_CHECK hone_status hone_result_json(const hone_result *result, char **out_text, hone_error *err);
// One self-contained HTML page: every config that was tried as a point, the
// best so far, parameters, the finals, kernels with their reasons, the environment. The configs that were tried are known for
// results of hone_tune and hone_tune_recorded, not for one that was parsed. Free with hone_text_free.
HONE_API HONE_MUST_CHECK hone_status hone_result_report(const hone_result *result, char **out_text, hone_error *err);
HONE_API void hone_text_free(char *text);
HONE_API HONE_MUST_CHECK hone_status
hone_result_parse(hone_runtime *rt, const char *json, size_t size, hone_result **out, hone_error *err);
// The entries of both; of two for one call and regime the one that hone_store_merge would keep when b is merged into a.
// The results are of one device, else HONE_INVALID_ARGUMENT.
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
