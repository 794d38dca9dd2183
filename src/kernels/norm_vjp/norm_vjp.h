// The gradients of rms_norm, add_rms_norm and layer_norm. With n elements in a row, f = 1 / sqrt(mean((x - mean)^2) + eps),
// h = (x - mean) f and g = d_y (weight + weight_offset):
//   d_x      = f (g - mean(g) - h mean(g h)), where layer_norm alone has means of x and of g
//   d_weight = sum over the rows of d_y h
//   d_bias   = sum over the rows of d_y, of layer_norm
// add_rms_norm's x is the sum that it returned, and the gradient of that sum is added: d_x + d_sum is the gradient of x
// and of the residual.
#ifndef HONE_KERNELS_NORM_VJP_H
#define HONE_KERNELS_NORM_VJP_H

#include "kernels/vector/rows.h"

#include "hone/kernel.h"

// The order of values, and of the space's parameters.
enum {
    RMS_NORM_VJP_X,
    RMS_NORM_VJP_WEIGHT,
    RMS_NORM_VJP_D_Y,
    RMS_NORM_VJP_D_X,
    RMS_NORM_VJP_D_WEIGHT,
    RMS_NORM_VJP_EPS
};
enum {
    ADD_RMS_NORM_VJP_SUM,
    ADD_RMS_NORM_VJP_WEIGHT,
    ADD_RMS_NORM_VJP_D_SUM,
    ADD_RMS_NORM_VJP_D_Y,
    ADD_RMS_NORM_VJP_D_X,
    ADD_RMS_NORM_VJP_D_WEIGHT,
    ADD_RMS_NORM_VJP_EPS
};
enum {
    LAYER_NORM_VJP_X,
    LAYER_NORM_VJP_D_Y,
    LAYER_NORM_VJP_WEIGHT,
    LAYER_NORM_VJP_D_X,
    LAYER_NORM_VJP_D_WEIGHT,
    LAYER_NORM_VJP_D_BIAS,
    LAYER_NORM_VJP_SUBTRACT_MEAN,
    LAYER_NORM_VJP_EPS,
    LAYER_NORM_VJP_WEIGHT_OFFSET
};
enum { NORM_VJP_PARTS, NORM_VJP_THREADS };

// A vector over a row's elements. data is NULL if it is absent.
typedef struct hone_norm_vjp_vector {
    void *data;
    int64_t step;
    hone_dtype_id dtype;
} hone_norm_vjp_vector;

typedef struct hone_norm_vjp {
    hone_rows x, d_y, d_sum, d_x; // d_sum.data NULL: nothing is added
    hone_norm_vjp_vector weight, d_weight, d_bias;
    double eps, weight_offset;
    bool subtract_mean;
    hone_dtype_id dtype;
} hone_norm_vjp;

hone_norm_vjp hone_rms_norm_vjp_of(const hone_plan *plan, const hone_value *args);
hone_norm_vjp hone_add_rms_norm_vjp_of(const hone_plan *plan, const hone_value *args);
hone_norm_vjp hone_layer_norm_vjp_of(const hone_plan *plan, const hone_value *args);

double hone_norm_vjp_weight(const hone_norm_vjp *norm, int64_t index);
// Computes one row of d_x in double, and its terms of the sums of the columns, weights [length] and biases [length] or
// NULL: the reference, and the fallback of a kernel for short rows and for rows whose elements cancel or exceed the
// range of floats.
void hone_norm_vjp_row(const hone_norm_vjp *norm, int64_t row, double *weights, double *biases);
// Stores element i of d_weight or d_bias.
void hone_norm_vjp_put(const hone_norm_vjp_vector *vector, int64_t index, double value);

hone_run_function hone_rms_norm_vjp_reference, hone_rms_norm_vjp_portable, hone_rms_norm_vjp_avx2,
    hone_rms_norm_vjp_avx512;
hone_run_function hone_add_rms_norm_vjp_reference, hone_add_rms_norm_vjp_portable, hone_add_rms_norm_vjp_avx2,
    hone_add_rms_norm_vjp_avx512;
hone_run_function hone_layer_norm_vjp_reference, hone_layer_norm_vjp_portable, hone_layer_norm_vjp_avx2,
    hone_layer_norm_vjp_avx512;

#endif
