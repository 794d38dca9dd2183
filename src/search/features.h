// What the model sees of a config: numbers in [0, 1]. One for each column of the table; and for columns of integers
// that are not all powers of two, how often two divides them and whether they are a power of it: widths of vectors,
// banks, cache lines and warps make such numbers of another kind than their neighbours. For words, and for few integers
// from 0 on, which mostly number ways of doing something, a feature for each value: their order means nothing. Of sizes
// whose names differ in one letter, as of the dimensions of one thing (block_x and block_y, MWG and NWG), the product.
#ifndef HONE_SEARCH_FEATURES_H
#define HONE_SEARCH_FEATURES_H

#include "search/config_table.h"

enum { HONE_FEATURES_MOST = 3 * HONE_MAX_PARAMETERS, HONE_FEATURES_CODES = 6, HONE_FEATURES_PAIRS = 12 };

typedef struct hone_features {
    hone_allocator allocator;
    size_t columns;                       // of the table: their own numbers stand first
    bool is_ordered[HONE_MAX_PARAMETERS]; // of each column: it has a middle, that lies between its values
    size_t single;                        // features of one column stand before those of two
    size_t count, rows, capacity;
    uint8_t of_column[HONE_FEATURES_MOST], of_other[HONE_FEATURES_MOST];
    float *of_position[HONE_FEATURES_MOST];       // of each feature: the number of each value of its column
    float *of_other_position[HONE_FEATURES_MOST]; // what each value of the other column adds; NULL: there is none
    float *values[HONE_FEATURES_MOST];            // of each feature: the number of each row
} hone_features;

// deinit also after a failure.
hone_status hone_features_init(
    hone_features *features, const hone_allocator *allocator, const hone_config_table *table, hone_error *err);
void hone_features_deinit(hone_features *features);
// Takes in the rows that the table has got since.
hone_status hone_features_update(hone_features *features, const hone_config_table *table, hone_error *err);

#endif
