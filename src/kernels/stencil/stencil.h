// The seven-point stencil: y[z, y, x] is a weighted sum of a point and its six neighbours, with zeros beyond the edges.
#ifndef HONE_KERNELS_STENCIL_H
#define HONE_KERNELS_STENCIL_H

#include "kernels/common/matrix.h"

#include "hone/kernel.h"

// The order of values, of the weights, and of the space's parameters.
enum { STENCIL_X, STENCIL_WEIGHTS, STENCIL_Y };
enum {
    STENCIL_CENTRE,
    STENCIL_LEFT,
    STENCIL_RIGHT,
    STENCIL_UP,
    STENCIL_DOWN,
    STENCIL_BELOW,
    STENCIL_ABOVE,
    STENCIL_POINTS
};
enum {
    STENCIL_TILE_Z,
    STENCIL_TILE_Y,
    STENCIL_TILE_X,
    STENCIL_ROWS,
    STENCIL_UNROLL,
    STENCIL_ORDER,
    STENCIL_STORE,
    STENCIL_PREFETCH,
    STENCIL_THREADS
};
enum { STENCIL_BY_PLANES, STENCIL_BY_COLUMNS };

// Strides are in elements.
typedef struct hone_stencil {
    const float *x;
    float *y;
    float weights[STENCIL_POINTS];
    int64_t depth, height, width;
    int64_t x_plane, x_row, x_step, y_plane, y_row, y_step;
} hone_stencil;

static inline hone_stencil hone_stencil_of(const hone_value *args)
{
    const hone_tensor *x = args[STENCIL_X].as.tensor, *y = args[STENCIL_Y].as.tensor;
    const hone_tensor *weights = args[STENCIL_WEIGHTS].as.tensor;
    const float *weight = hone_tensor_data(weights);
    hone_stencil stencil = {
        .x = hone_tensor_data(x),
        .y = hone_tensor_data(y),
        .depth = x->shape[0],
        .height = x->shape[1],
        .width = x->shape[2],
        .x_plane = hone_axis_stride(x, 0),
        .x_row = hone_axis_stride(x, 1),
        .x_step = hone_axis_stride(x, 2),
        .y_plane = hone_axis_stride(y, 0),
        .y_row = hone_axis_stride(y, 1),
        .y_step = hone_axis_stride(y, 2),
    };
    for (int i = 0; i < STENCIL_POINTS; i++)
        stencil.weights[i] = weight[i * hone_axis_stride(weights, 0)];
    return stencil;
}

hone_run_function hone_stencil_reference, hone_stencil_portable, hone_stencil_avx2, hone_stencil_avx512;

#endif
