// A Gaussian process over a few hundred observations: better than trees while little is known.
#ifndef HONE_SEARCH_GAUSS_H
#define HONE_SEARCH_GAUSS_H

#include "search/features.h"

enum {
    HONE_GAUSS_MOST = 128,
    HONE_GAUSS_SLOTS = 32 // values of a column whose part of the distances is kept, by their position's remainder
};

typedef struct hone_gauss {
    size_t count, columns;
    size_t own, single;                // of them the table's columns, and those of one column
    float weights[HONE_FEATURES_MOST]; // inverse squared length of each column
    float noise;
    double mean, scale;                                // of the targets
    float points[HONE_FEATURES_MOST][HONE_GAUSS_MOST]; // features of what was observed
    float factor[HONE_GAUSS_MOST][HONE_GAUSS_MOST];    // of the covariance, lower, with inverse diagonal
    float solution[HONE_GAUSS_MOST];                   // covariance^-1 targets
    float targets[HONE_GAUSS_MOST];
    // How far each value of a column is from every observation in the column's features, and each two of a product in
    // theirs: its part of the squared distance, worked out when a row first asks for it.
    float (*parts)[HONE_GAUSS_SLOTS][HONE_GAUSS_MOST]; // one a column of the table, then one a product; the owner's
    // The position, or both; negative: none yet.
    int64_t parts_of[HONE_MAX_PARAMETERS + HONE_FEATURES_PAIRS][HONE_GAUSS_SLOTS];
} hone_gauss;

// Fits lengths and noise (a few steps from where they were) when `search` is set, then solves for these observations.
void hone_gauss_fit(
    hone_gauss *gauss,
    const hone_features *features,
    const uint32_t *rows,
    const float *targets,
    size_t count,
    bool search);
// Of these rows the one that is expected to fall farthest below `target`, and by how much.
//   scratch  count numbers
double hone_gauss_choose(
    hone_gauss *gauss,
    const hone_features *features,
    const hone_config_table *table,
    const uint32_t *rows,
    size_t count,
    double target,
    float *scratch,
    uint32_t *out_row);

#endif
