// The valid combinations of one component as a decision diagram: a graph whose paths from the root are the
// combinations, a level a parameter. Prefixes that leave the same choices behind them share a node, so that a diagram
// is small where the number of its paths is not; each node knows how many paths lead on from it, which gives every
// combination a rank, and every rank its combination, without listing any.
#ifndef HONE_SPACE_DIAGRAM_H
#define HONE_SPACE_DIAGRAM_H

#include "space/bound.h"

enum { HONE_SPACE_END = 0 };                           // the node behind the last parameter
static const uint32_t hone_space_nothing = UINT32_MAX; // in place of a node that no path leads on from

typedef struct hone_space_node {
    uint64_t count; // of paths from here; UINT64_MAX: that many or more
    uint32_t first; // edge
    uint32_t edges;
} hone_space_node;

typedef struct hone_space_diagram {
    hone_allocator allocator;
    uint8_t order[HONE_MAX_PARAMETERS]; // the component's parameters, by level
    size_t depth;
    hone_space_node *nodes;
    uint16_t *positions; // of each edge, ascending in a node
    uint32_t *children;
    uint32_t root;
    bool complete;      // false: it would have been too large, and only low and high mean something
    uint64_t low, high; // the number of combinations lies between them
} hone_space_diagram;

// What building one may use.
typedef struct hone_space_limits {
    size_t bytes;
    uint64_t tries; // values set
} hone_space_limits;

// deinit also after a failure.
hone_status hone_space_diagram_init(
    hone_space_diagram *diagram,
    const hone_bound_space *bound,
    const hone_space_plan *plan,
    size_t component,
    const hone_space_limits *limits,
    hone_error *err);
void hone_space_diagram_deinit(hone_space_diagram *diagram);
// The positions of the combination of this rank. The diagram is complete and low < UINT64_MAX; rank < low.
void hone_space_diagram_at(const hone_space_diagram *diagram, uint64_t rank, uint16_t *positions);
// The rank of a combination; false when it is not one of the diagram.
bool hone_space_diagram_rank(const hone_space_diagram *diagram, const uint16_t *positions, uint64_t *out_rank);

#endif
