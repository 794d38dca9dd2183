// What the values that are not set yet can make of a constraint: intervals of sums and products, so that a prefix is
// left as soon as no later value can mend it.
#ifndef HONE_SPACE_BOUNDS_H
#define HONE_SPACE_BOUNDS_H

#include "space/bound.h"

// Integers (or truth values) from low to high; low > high: nothing is known, perhaps not even that it is a number.
typedef struct hone_space_interval {
    int64_t low, high;
} hone_space_interval;

typedef struct hone_space_bounds_step {
    uint32_t operation, to, a, b; // as hone_space_step
    bool a_is_set, b_is_set;      // that cell is computed already, and the walk has its value
} hone_space_bounds_step;

typedef struct hone_space_bounds {
    hone_allocator allocator;
    hone_space_interval *cells; // levels x cells
    size_t cell_count;
    hone_space_bounds_step *steps;
    size_t steps_from[HONE_MAX_PARAMETERS + 1]; // by level
} hone_space_bounds;

// For the parameters of a walk; false: no memory. deinit also after that.
bool hone_space_bounds_init(hone_space_bounds *bounds, const hone_space_walk *walk);
void hone_space_bounds_deinit(hone_space_bounds *bounds);
// Whether some constraint is surely false, and surely no error, with the walk's values up to a level, whatever follows.
bool hone_space_bounds_refuse(hone_space_bounds *bounds, const hone_space_walk *walk, size_t level);

#endif
