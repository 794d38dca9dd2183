// What happens when a record comes that is there already: the same rule in every store, in the recorder and in results.
#ifndef HONE_STORE_COMMON_MERGE_H
#define HONE_STORE_COMMON_MERGE_H

#include "hone/store.h"
#include "store/records.h"

// Adds a record to another: counts add up (and stay at their largest), first is the earliest, last the latest.
// Who answered is what the later record says, where it says something. Texts stay borrowed.
void hone_invocation_merge(hone_store_invocation *into, const hone_store_invocation *added);

// What a decision claims, as far as the rule asks. Texts are borrowed, and "" where they are not known.
typedef struct hone_claim {
    const char *kernel, *platform, *config, *revision;
    bool verified;
    uint32_t samples;
    double time_ns, low_ns, high_ns; // low and high 0: not known
    const char *started;             // UTC, as in evidence
    const char *runner_up;
    double ratio_low; // runner-up's time over the winner's, the lower bound
} hone_claim;

// Why one of two decisions is stored.
typedef enum hone_merge_reason {
    HONE_MERGE_NOTHING_STORED,
    HONE_MERGE_SAME,
    HONE_MERGE_OTHER_CALL,
    HONE_MERGE_VERIFIED,
    HONE_MERGE_STORED_VERIFIED,
    HONE_MERGE_LATER_REVISION,
    HONE_MERGE_STORED_LATER_REVISION,
    HONE_MERGE_MORE_SAMPLES,
    HONE_MERGE_STORED_MORE_SAMPLES,
    HONE_MERGE_LATER,
    HONE_MERGE_STORED_LATER,
    HONE_MERGE_FASTER,
    HONE_MERGE_STORED_FASTER,
    HONE_MERGE_EARLIER,
    HONE_MERGE_STORED_EARLIER,
    HONE_MERGE_REASON_COUNT
} hone_merge_reason;

// The rule of hone_store_merge (hone/store.h), between a stored decision and one that comes, of one call and regime.
// It asks for nothing but the two: never HONE_MERGE_NOTHING_STORED or HONE_MERGE_OTHER_CALL.
hone_merge_reason hone_merge_rule(const hone_claim *stored, const hone_claim *coming);
hone_merge_outcome hone_merge_reason_outcome(hone_merge_reason reason);
const char *hone_merge_reason_text(hone_merge_reason reason); // static

#endif
