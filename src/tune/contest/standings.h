// Every (kernel, config) that was tried, in the order of trying, and who is ahead.
#ifndef HONE_TUNE_CONTEST_STANDINGS_H
#define HONE_TUNE_CONTEST_STANDINGS_H

#include "space/space.h"
#include "tune/wire/message.h"

// One (kernel, config) that was tried, now or in an earlier contest.
typedef struct hone_candidate {
    uint32_t kernel; // index of its contestant
    hone_config config;
    bool is_default; // its kernel's
    bool of_pack;    // what the chain takes only when it is verified
    bool yields;     // its kernel to others, in calls that were never tuned
    hone_trial trial;
    double raced_ns;      // its time in the race; 0: it was rejected
    double at_seconds;    // when that was known, since the contest began
    bool resumed;         // from the store
    double rank_ns;       // least time with the machine's drift taken out: what candidates are compared by
    bool out;             // it was rejected, then or later
    bool doubted;         // it was wrong once beside others, and not alone
    bool timed_in_finals; // its time is that of the finals
} hone_candidate;

typedef struct hone_standings {
    hone_candidate *candidates;
    size_t count, capacity;
    int64_t best; // index of the best candidate that is still in; -1: none
} hone_standings;

// The best candidate that is still in; NULL: there is none.
const hone_candidate *hone_standings_best(const hone_standings *standings);
// The best of one kernel's candidates that are still in; NULL: there is none.
const hone_candidate *hone_standings_best_of(const hone_standings *standings, uint32_t kernel);
// Appends a candidate; the caller fills it. NULL: no memory.
hone_candidate *hone_standings_add(hone_standings *standings, const hone_allocator *allocator);
// Finds the best anew, after candidates have changed.
void hone_standings_update(hone_standings *standings);
// The candidate of a kernel with a config; NULL: it was not tried.
hone_candidate *hone_standings_find(const hone_standings *standings, uint32_t kernel, const hone_config *config);
bool hone_standings_have(const hone_standings *standings, uint32_t kernel, const hone_config *config);
// Whether a candidate was chosen already.
typedef bool hone_candidate_taken(const void *ctx, const hone_candidate *candidate);
// The best that is still in and is not taken; other: of a kernel of which none is. NULL: there is none.
hone_candidate *hone_standings_next_best(
    const hone_standings *standings, hone_candidate_taken *taken, const void *ctx, bool other);
// What the chain would take without tuning: the default of the first kernel in the registry's order that can run, after which
// come those that yield, and then packs'. NULL: no default has passed.
hone_candidate *hone_standings_default(const hone_standings *standings);

#endif
