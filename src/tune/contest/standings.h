// Every (kernel, config) that was tried, in the order of trying, and the best of them.
#ifndef HONE_TUNE_CONTEST_STANDINGS_H
#define HONE_TUNE_CONTEST_STANDINGS_H

#include "space/space.h"
#include "tune/wire/message.h"

// One (kernel, config) that was tried, now or in an earlier contest.
typedef struct hone_candidate {
    uint32_t kernel; // index of its contestant
    hone_config config;
    bool is_default; // of its kernel
    bool of_pack;    // its kernel is from a pack, and is chosen without tuning only if it was verified
    bool yields;     // its kernel comes after others in calls that were never tuned
    hone_trial trial;
    double raced_ns;      // its time in the race; 0: it was rejected
    double at_seconds;    // seconds from the contest's start to its result
    bool resumed;         // from the store
    double rank_ns;       // least time with the machine's drift taken out; candidates are compared by it
    bool out;             // it was rejected, in its trial or later
    bool doubted;         // it was wrong once in a block with others, and right alone
    bool timed_in_finals; // its time is from the finals
} hone_candidate;

typedef struct hone_standings {
    hone_candidate *candidates;
    size_t count, capacity;
    int64_t best; // index of the best candidate that is not out; -1: there is none
} hone_standings;

// The best candidate that is not out; NULL: there is none.
const hone_candidate *hone_standings_best(const hone_standings *standings);
// The best candidate of one kernel that is not out; NULL: there is none.
const hone_candidate *hone_standings_best_of(const hone_standings *standings, uint32_t kernel);
// Appends a candidate, which the caller fills. NULL: out of memory.
hone_candidate *hone_standings_add(hone_standings *standings, const hone_allocator *allocator);
// Finds the best again, after candidates have changed.
void hone_standings_update(hone_standings *standings);
// The candidate of a kernel with a config; NULL: it was not tried.
hone_candidate *hone_standings_find(const hone_standings *standings, uint32_t kernel, const hone_config *config);
bool hone_standings_have(const hone_standings *standings, uint32_t kernel, const hone_config *config);
// Whether a candidate was chosen already.
typedef bool hone_candidate_taken(const void *ctx, const hone_candidate *candidate);
// The best candidate that is not out and not taken; other: of a kernel of which none is taken. NULL: there is none.
hone_candidate *hone_standings_next_best(
    const hone_standings *standings, hone_candidate_taken *taken, const void *ctx, bool other);
// The candidate that answers without tuning: the default of the first kernel in the registry's order that can run.
// Kernels that yield come after the others, and those of packs last. NULL: no default has passed.
hone_candidate *hone_standings_default(const hone_standings *standings);

#endif
