// Extremely randomised trees (Geurts, Ernst, Wehenkel 2006) that guess every row of a table: good at steps and at what
// parameters do together, once there are enough results.
#ifndef HONE_SEARCH_FOREST_H
#define HONE_SEARCH_FOREST_H

#include "search/features.h"

enum {
    HONE_FOREST_TREES = 32,
    HONE_FOREST_LESSONS = 600, // results that a tree is grown on, at most
    HONE_FOREST_LANES = 4,
    HONE_FOREST_STRIDE = HONE_FOREST_LESSONS + HONE_FOREST_LANES // whole lanes may be read from the last one
};

typedef struct hone_forest {
    hone_allocator allocator;
    float *guesses[HONE_FOREST_TREES]; // of each tree: of every row
    size_t grown;                      // rows that every tree has guessed
    size_t next;                       // the tree that is grown anew next
    size_t row_capacity;
    uint32_t *order;   // rows, as the tree's nodes part them
    uint32_t *spare;   // those that go to the right, while a node parts its own
    float *lessons[2]; // of each feature, and last of the targets, the numbers of the lessons; as the nodes part them
    float keys[HONE_FOREST_STRIDE];
    uint16_t moves[HONE_FOREST_LESSONS];
} hone_forest;

void hone_forest_deinit(hone_forest *forest);
// Room for the guesses of so many rows, and for lessons of so many features. False: no memory.
bool hone_forest_reserve(hone_forest *forest, const hone_allocator *allocator, size_t rows, size_t features);
// Grows trees on at most HONE_FOREST_LESSONS results: all while there are few, later some in turn.
void hone_forest_fit(
    hone_forest *forest,
    const hone_features *features,
    const uint32_t *rows,
    const float *targets,
    size_t count,
    uint64_t *random);
// The row that is not taken with the lowest bound: the trees' mean less a random number of their deviations.
uint32_t hone_forest_choose(const hone_forest *forest, const hone_config_table *table, uint64_t *random);

#endif
