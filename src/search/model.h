// The model of the time, from what was told: a Gaussian process and a forest, either of which can choose a row.
#ifndef HONE_SEARCH_MODEL_H
#define HONE_SEARCH_MODEL_H

#include "search/forest.h"
#include "search/gauss.h"

// What the model learns from: one of the configs that were told.
typedef struct hone_lesson {
    uint32_t row;
    bool failed;
    float target; // the logarithm of its time, from any zero; then what the model is shown
} hone_lesson;

typedef struct hone_model {
    hone_allocator allocator;
    hone_features features;
    hone_forest forest;
    hone_gauss *gauss;
    hone_lesson *lessons;
    float *sorted;        // targets of those that did not fail
    uint32_t *candidates; // rows that may be chosen
    float *scratch;       // a number for each
    uint32_t *rows;       // what is fitted to
    float *targets;
    size_t lesson_count, lesson_capacity, row_capacity, sorted_count, candidate_count;
    double gain; // that the last choice of the process expected, in the logarithm of the time; negative: none yet
} hone_model;

// deinit also after a failure.
hone_status hone_model_init(
    hone_model *model, const hone_allocator *allocator, const hone_config_table *table, hone_error *err);
void hone_model_deinit(hone_model *model);

// Room for so many lessons, and for the table as it is now. The lessons are then filled in by the caller.
hone_status hone_model_reserve(hone_model *model, const hone_config_table *table, size_t lessons, hone_error *err);
// Shows the model its first `count` lessons. False: too few of them have a time.
bool hone_model_learn(hone_model *model, size_t count);
// A row that is not taken, after learn. HONE_TABLE_NONE: there is none.
//   best  the row of the best
uint32_t hone_model_choose_gauss(hone_model *model, const hone_config_table *table, uint32_t best, uint64_t *random);
uint32_t hone_model_choose_forest(hone_model *model, const hone_config_table *table, uint64_t *random);

#endif
