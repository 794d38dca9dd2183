// What a search consists of, for the files of this folder.
#ifndef HONE_SEARCH_INSIDE_H
#define HONE_SEARCH_INSIDE_H

#include "search/model.h"
#include "search/search.h"

typedef struct hone_observation {
    uint32_t row;
    double time; // not read when it failed
    hone_failure failure;
} hone_observation;

// Who may propose, once the beginning is over.
typedef enum hone_arm {
    HONE_ARM_GAUSS,
    HONE_ARM_FOREST,
    HONE_ARM_SWEEP,
    HONE_ARM_MIX,
    HONE_ARM_RANDOM,
    HONE_ARMS
} hone_arm;

// A known config that is to be tried.
typedef struct hone_search_known {
    uint32_t row, source;
    double loss, weight;
} hone_search_known;

struct hone_search {
    hone_allocator allocator;
    hone_config_table table;
    hone_model model;
    uint64_t random;
    hone_search_known *known; // best first
    size_t known_count, next_known;
    uint32_t default_row; // HONE_TABLE_NONE: none, or proposed
    bool is_given;        // a config that was not proposed was told: the caller knows a good one
    size_t begun;         // configs that the beginning has proposed
    size_t spread;        // of them the first, from the middle, and those far from all others
    hone_observation *told;
    size_t told_count, told_capacity;
    size_t best;     // of told; SIZE_MAX: none
    double origin;   // logarithm of the first time: the models' zero, so that single precision holds small differences
    uint8_t *arm_of; // of each row: who proposed it, plus one
    size_t arm_capacity;
    double tries[HONE_ARMS], gains[HONE_ARMS];
};

// Priors: the order in which known configs are tried, and sources that mislead.
hone_status hone_search_plan_known(hone_search *search, const hone_search_options *options, hone_error *err);
// The next known config of a source that does not mislead; HONE_TABLE_NONE: none is left.
uint32_t hone_search_next_known(hone_search *search);

// Arms that need no model. HONE_TABLE_NONE: it has nothing to propose.
uint32_t hone_search_sweep(hone_search *search);
uint32_t hone_search_mix(hone_search *search);
// Of a few random rows the one farthest from all that was told.
uint32_t hone_search_far(hone_search *search);
// Of some random rows the one nearest to the middle of all ranges: extremes of sizes are seldom good.
uint32_t hone_search_middle(hone_search *search);
// A larger table around a best that is new, where the table is a part of the space.
hone_status hone_search_extend(hone_search *search, uint32_t row, hone_error *err);

#endif
