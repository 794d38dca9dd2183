// Proposes configs of one bound space, and learns from what they took: ask and tell. Who measures, and how, is the
// caller's business, so contests and simulations search in the same way. docs/search.md says how it chooses.
//
// The order: what is known from elsewhere (priors), the space's default, a config from the middle and a few far from
// it, then a model of the time, with a guard against its blind spots. A space that is small enough is proposed to its
// end;
// of a larger one a table is kept that moves with what was found. Deterministic for a seed and what was told.
#ifndef HONE_SEARCH_SEARCH_H
#define HONE_SEARCH_SEARCH_H

#include "hone/space.h"

typedef struct hone_search hone_search;

// What is known from another call, device or version.
typedef struct hone_search_prior {
    hone_config config;
    double relative; // its time over the best of its source, >= 1
    double distance; // 0: as near as can be; it weighs 1 / (.25 + distance)
    uint32_t source; // priors of one number come from one decision: a source that misleads is dropped as a whole
} hone_search_prior;

typedef struct hone_search_options {
    uint64_t seed;
    uint32_t evaluations;            // expected budget; 0: not known
    const hone_search_prior *priors; // copied; those that the space does not have are left out
    size_t prior_count;
    // When not NULL, only these may be proposed (an explicit list, a recorded space): copied, repeated ones count once.
    // Then the space's default is not proposed unless it is among them, and constraints are not asked.
    const hone_config *configs;
    size_t config_count;
} hone_search_options;

// Not thread-safe. space is borrowed until destroy.
//   options  NULL: all zero
// Returns: HONE_OK (an empty space too: next then answers HONE_NOT_FOUND); HONE_INVALID_ARGUMENT: a constraint that
// cannot be evaluated, or a config of the list that is not one of the space's; HONE_OUT_OF_MEMORY.
hone_status hone_search_create(
    const hone_allocator *allocator,
    const hone_bound_space *space,
    const hone_search_options *options,
    hone_search **out,
    hone_error *err);
void hone_search_destroy(hone_search **search);

// A config that was neither proposed nor told before. A caller may ask several times before it tells.
// HONE_NOT_FOUND: there is none left.
hone_status hone_search_next(hone_search *search, hone_config *out_config, hone_error *err);
// What a config took; also of one that was not proposed (a default, a resumed one). Told again, the last counts.
//   time_ns  finite and > 0 when failure is HONE_FAILURE_NONE, else not read; any unit, always the same
// HONE_INVALID_ARGUMENT: the config is not one of the space's, or the time is no time.
hone_status hone_search_tell(
    hone_search *search, const hone_config *config, double time_ns, hone_failure failure, hone_error *err);
// By how much of the best's time the next proposal is expected to be faster: for moving budget between searches.
// 1 before anything was measured, 0 when the space is exhausted.
double hone_search_expected_gain(const hone_search *search);

#endif
