// The valid configs of a bound space, numbered: a diagram a component, the ranks of which make up a config's.
#ifndef HONE_SPACE_RANKING_H
#define HONE_SPACE_RANKING_H

#include "space/diagram.h"

struct hone_space_ranking {
    hone_allocator allocator;
    hone_space_diagram diagrams[HONE_MAX_PARAMETERS]; // by component
    bool complete;                                    // every diagram is
    bool in_text_order;                               // every diagram has its parameters in the order of the text
    uint64_t low, high; // the number of configs lies between them; UINT64_MAX: that many or more
};

// Made at the first call, by whichever thread is first; lives as long as the bound space.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT for a constraint that cannot be evaluated; HONE_OUT_OF_MEMORY.
hone_status hone_space_ranking_of(
    const hone_bound_space *bound, const hone_space_ranking **out_ranking, hone_error *err);
void hone_space_ranking_release(hone_space_ranking *ranking);
// The diagrams are complete and have fewer than 2^64 configs together: ranks can be used.
bool hone_space_ranking_is_usable(const hone_space_ranking *ranking);
// The config of a rank below ranking->low, of a usable ranking.
void hone_space_ranking_at(
    const hone_space_ranking *ranking, const hone_bound_space *bound, uint64_t rank, hone_config *out_config);

#endif
