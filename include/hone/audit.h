// Audits: stored choices, verified and measured again (docs/audit.md).
#ifndef HONE_AUDIT_H
#define HONE_AUDIT_H

#include "hone/tune.h"

#ifdef __cplusplus
extern "C" {
#endif

// A stored choice, measured again. Times are nanoseconds of one run, shares are of 1.
typedef struct hone_audited {
    const char *call; // call text; NULL if it is not known
    char algorithm[HONE_NAME_SIZE];
    char version[16];
    char key[20];
    hone_regime regime;
    char kernel[HONE_NAME_SIZE]; // the choice
    char config[1024];
    char best_kernel[HONE_NAME_SIZE]; // the fastest of those measured beside it; the choice itself where none is faster
    char best_config[1024];
    double stored_ns;                       // the choice's time when it was stored
    double time_ns, low_ns, high_ns;        // now; 0 if it was not measured
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
    bool no_call;     // it was not looked at: no call that can be read is stored with it, and reason says so
} hone_audited;

typedef struct hone_audit_summary {
    uint32_t choices, measured, flipped, failed, changed, not_served, past; // past: of the threshold
    uint32_t taken_back;
    double flip_rate; // flipped / measured
    double mean_regret, worst_regret, median_drift;
    uint32_t no_call; // were not looked at; none of failed and past
} hone_audit_summary;

typedef struct hone_audit hone_audit; // immutable; of one owner

// Verifies stored choices as a contest verifies its winner, and measures them again beside their runners-up and the
// default, in interleaved rounds. A choice has not passed when it was rejected, when another is certainly faster by more
// than the threshold, or when its environment has changed and it is certainly slower than before by more than that. The
// latter two are measured a second time, after all others, before they count.
// One that was rejected is taken back (not with no_store): its failure is stored, and the fastest stored config of the
// call that passes the same check replaces it; where none does, the store no longer has a decision of the call. A plan
// that is bound goes on with it, and is no longer current.
//   calls      call texts; count 0 selects every decision of this machine's devices in the user's store
//   threshold  share that is allowed, .05 is 5 %
//   options    seconds (for a call; 0 selects 5), candidate_seconds, wait_seconds, isolation, tolerance, seed, no_store, progress,
//              cancel; NULL selects all defaults
// Returns: HONE_OK, even if choices failed the audit; HONE_NOT_FOUND (no decision for a call, or no store);
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
// The audit document (docs/audit.md); free with hone_text_release.
HONE_API HONE_MUST_CHECK hone_status hone_audit_json(const hone_audit *audit, char **out_text, hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
