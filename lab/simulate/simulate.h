// A contest over a recorded space: the code of any other, but for what measures.
#ifndef HONE_SIMULATE_SIMULATE_H
#define HONE_SIMULATE_SIMULATE_H

#include "search/search.h"
#include "simulate/recorded.h"

enum { HONE_WARM_CONFIGS = 8 }; // that another recorded space hands on

typedef struct hone_simulation {
    const hone_recorded *recorded;
    const char *name; // of the space, for words and the document
    uint64_t seed;
    uint32_t evaluations;            // the most configs; 0: as a contest
    double seconds;                  // of the simulated clock; 0: no limit
    uint32_t patience;               // 0: endless
    bool races;                      // pay run by run, and stop losers; else each config is paid for whole
    const hone_search_prior *priors; // borrowed
    size_t prior_count;
    const volatile int *cancel;
} hone_simulation;

// Runs it, and appends one JSON document (README.md).
// Returns: HONE_OK; HONE_NOT_FOUND: every config that was tried fails (the document is there, without "best");
//          HONE_CANCELLED (the same, with what was found so far); HONE_OUT_OF_MEMORY.
hone_status hone_simulate(
    const hone_allocator *allocator, const hone_simulation *simulation, hone_buffer *out, hone_error *err);

// The best configs of another recorded space as priors: fills priors[HONE_WARM_CONFIGS], returns how many.
//   source       number of the source
//   out_foreign  how many were left out because the space does not have them
size_t hone_simulate_warm(
    const hone_recorded *space,
    const hone_recorded *other,
    uint32_t source,
    hone_search_prior *priors,
    size_t *out_foreign);

#endif
