// Merging invocations, and the rule by which one of two decisions is kept.
#include "store/common/merge.h"

#include "base/assert.h"

#include <string.h>

void hone_invocation_merge(hone_store_invocation *into, const hone_store_invocation *added)
{
    bool is_later = added->last >= into->last;
    uint64_t sum;
    into->count = __builtin_add_overflow(into->count, added->count, &sum) ? UINT64_MAX : sum;
    if (added->first < into->first) into->first = added->first;
    if (is_later) into->last = added->last;
    if (into->call == NULL) into->call = added->call;
    if (added->kernel != NULL && (is_later || into->kernel == NULL)) into->kernel = added->kernel;
    if (added->decided != NULL && (is_later || into->decided == NULL)) into->decided = added->decided;
}

// Decisions -----------------------------------------------------------------------------------------------------------

typedef struct reason_row {
    hone_merge_outcome outcome;
    const char *text;
} reason_row;

static const reason_row reasons[HONE_MERGE_REASON_COUNT] = {
    [HONE_MERGE_NOTHING_STORED] = {HONE_MERGE_TAKEN, "nothing was stored"},
    [HONE_MERGE_SAME] = {HONE_MERGE_EQUAL, "it is stored already"},
    [HONE_MERGE_OTHER_CALL] = {HONE_MERGE_KEPT, "another call's decision is stored under this key"},
    [HONE_MERGE_VERIFIED] = {HONE_MERGE_TAKEN, "it is verified, the stored one is not"},
    [HONE_MERGE_STORED_VERIFIED] = {HONE_MERGE_KEPT, "the stored one is verified, it is not"},
    [HONE_MERGE_LATER_REVISION] = {HONE_MERGE_TAKEN, "it is of a later revision of the kernel"},
    [HONE_MERGE_STORED_LATER_REVISION] = {HONE_MERGE_KEPT, "the stored one is of a later revision of the kernel"},
    [HONE_MERGE_MORE_SAMPLES] = {HONE_MERGE_TAKEN, "it rests on at least twice the samples"},
    [HONE_MERGE_STORED_MORE_SAMPLES] = {HONE_MERGE_KEPT, "the stored one rests on at least twice the samples"},
    [HONE_MERGE_LATER] = {HONE_MERGE_TAKEN, "the same kernel and config, measured later"},
    [HONE_MERGE_STORED_LATER] = {HONE_MERGE_KEPT, "the same kernel and config, measured before the stored one"},
    [HONE_MERGE_FASTER] = {HONE_MERGE_TAKEN, "it is faster beyond the noise"},
    [HONE_MERGE_STORED_FASTER] = {HONE_MERGE_KEPT, "the stored one is faster beyond the noise"},
    [HONE_MERGE_EARLIER] = {HONE_MERGE_TAKEN, "measured first, and the stored one is not faster beyond the noise"},
    [HONE_MERGE_STORED_EARLIER] = {HONE_MERGE_KEPT, "not faster than the stored one beyond the noise"},
};

hone_merge_outcome hone_merge_reason_outcome(hone_merge_reason reason)
{
    hone_assert((unsigned)reason < HONE_MERGE_REASON_COUNT);
    return reasons[reason].outcome;
}

const char *hone_merge_reason_text(hone_merge_reason reason)
{
    hone_assert((unsigned)reason < HONE_MERGE_REASON_COUNT);
    return reasons[reason].text;
}

static bool same_kernel(const hone_claim *a, const hone_claim *b)
{
    return strcmp(a->kernel, b->kernel) == 0 && strcmp(a->platform, b->platform) == 0;
}

static bool same_evidence(const hone_claim *a, const hone_claim *b)
{
    return a->verified == b->verified && a->samples == b->samples && a->time_ns == b->time_ns &&
           strcmp(a->started, b->started) == 0;
}

// Samples differ by chance between two contests of equal effort, so that some more say nothing. Half is written as a /
// 2 >= b: 2 * b would overflow.
static bool rests_on_more(const hone_claim *a, const hone_claim *b)
{
    return a->samples > b->samples && a->samples / 2 >= b->samples;
}

// UTC texts of one form sort by time. Where one is missing, what is stored came first.
static bool is_later(const hone_claim *coming, const hone_claim *stored)
{
    bool known = coming->started[0] != '\0' && stored->started[0] != '\0';
    return !known || strcmp(coming->started, stored->started) >= 0;
}

static double low(const hone_claim *claim)
{
    return claim->low_ns > 0 ? claim->low_ns : claim->time_ns;
}

static double high(const hone_claim *claim)
{
    return claim->high_ns > 0 ? claim->high_ns : claim->time_ns;
}

static bool is_faster(const hone_claim *a, const hone_claim *b)
{
    // One contest's ratio is sharper than two contests' times: both ran at the same time on the same machine.
    if (a->ratio_low > 1 && strcmp(a->runner_up, b->kernel) == 0 && strcmp(a->kernel, b->kernel) != 0) return true;
    return a->time_ns > 0 && b->time_ns > 0 && high(a) < low(b);
}

// The tests stand in the order of docs/store.md, and the first that tells the two apart decides. They are symmetric:
// with the two exchanged the same one wins, as long as evidence says when each was measured, and the times differ. So
// it does not matter which of two stores is merged into which, nor how often. It is no order of more than two, though:
// "faster beyond the noise" is not transitive, and of three decisions the one that stays may hang on which came first.
hone_merge_reason hone_merge_rule(const hone_claim *stored, const hone_claim *coming)
{
    hone_assert(stored->revision != NULL && coming->revision != NULL); // "" where it is not known
    bool one_kernel = same_kernel(stored, coming);
    bool one_revision = strcmp(stored->revision, coming->revision) == 0;
    bool one_config = strcmp(stored->config, coming->config) == 0;
    bool later = is_later(coming, stored);
    if (one_kernel && one_revision && one_config && same_evidence(stored, coming)) return HONE_MERGE_SAME;
    if (stored->verified != coming->verified)
        return coming->verified ? HONE_MERGE_VERIFIED : HONE_MERGE_STORED_VERIFIED;
    if (one_kernel && !one_revision) return later ? HONE_MERGE_LATER_REVISION : HONE_MERGE_STORED_LATER_REVISION;
    if (rests_on_more(coming, stored)) return HONE_MERGE_MORE_SAMPLES;
    if (rests_on_more(stored, coming)) return HONE_MERGE_STORED_MORE_SAMPLES;
    if (one_kernel && one_config) return later ? HONE_MERGE_LATER : HONE_MERGE_STORED_LATER;
    if (later) return is_faster(coming, stored) ? HONE_MERGE_FASTER : HONE_MERGE_STORED_EARLIER;
    return is_faster(stored, coming) ? HONE_MERGE_STORED_FASTER : HONE_MERGE_EARLIER;
}
