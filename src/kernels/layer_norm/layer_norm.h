// Layer norm over the last axis: y = (x - mean) / sqrt(variance + eps) * (weight + weight_offset) + bias. Without a
// weight the factor is 1, and weight_offset is ignored; without subtract_mean the mean is taken as 0, as in RMS norm.
#ifndef HONE_KERNELS_LAYER_NORM_H
#define HONE_KERNELS_LAYER_NORM_H

#include "kernels/vector/rows.h"

#include "hone/kernel.h"

// The order of values, and of the space's parameters.
enum {
    LAYER_NORM_X,
    LAYER_NORM_WEIGHT,
    LAYER_NORM_BIAS,
    LAYER_NORM_Y,
    LAYER_NORM_SUBTRACT_MEAN,
    LAYER_NORM_EPS,
    LAYER_NORM_WEIGHT_OFFSET
};
enum { LAYER_NORM_ROWS_PER_TASK, LAYER_NORM_THREADS };

typedef struct hone_layer_norm_vector {
    const void *data; // NULL: absent
    int64_t step;
    hone_dtype_id dtype;
} hone_layer_norm_vector;

typedef struct hone_layer_norm {
    hone_rows x, y;
    hone_layer_norm_vector weight, bias;
    double eps, weight_offset;
    bool subtract_mean;
    hone_dtype_id dtype;
} hone_layer_norm;

hone_layer_norm hone_layer_norm_of(const hone_plan *plan, const hone_value *args);
// The factor of an element, and the term that is added to it.
double hone_layer_norm_weight(const hone_layer_norm *norm, int64_t index);
double hone_layer_norm_bias(const hone_layer_norm *norm, int64_t index);
// Computes one row in double: the reference, and the fallback of a kernel if a row's squares exceed the range of
// floats.
void hone_layer_norm_row(const hone_layer_norm *norm, int64_t row);

hone_run_function hone_layer_norm_reference, hone_layer_norm_portable, hone_layer_norm_avx2, hone_layer_norm_avx512;

#endif
