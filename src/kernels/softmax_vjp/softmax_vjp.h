// The gradient of softmax, from softmax's result y: d_x = scale y (d_y - sum(y d_y)) over the last axis.
#ifndef HONE_KERNELS_SOFTMAX_VJP_H
#define HONE_KERNELS_SOFTMAX_VJP_H

#include "kernels/vector/rows.h"

#include "hone/kernel.h"

// The order of values, and of the space's parameters.
enum { SOFTMAX_VJP_Y, SOFTMAX_VJP_D_Y, SOFTMAX_VJP_D_X, SOFTMAX_VJP_SCALE };
enum { SOFTMAX_VJP_UNROLL, SOFTMAX_VJP_ROWS_PER_TASK, SOFTMAX_VJP_STORE, SOFTMAX_VJP_THREADS };

typedef struct hone_softmax_vjp {
    hone_rows y, d_y, d_x;
    double scale;
    hone_dtype_id dtype;
} hone_softmax_vjp;

hone_softmax_vjp hone_softmax_vjp_of(const hone_plan *plan, const hone_value *args);
// Computes one row in double: the reference, and the fallback of a kernel for short rows, whose elements may cancel.
void hone_softmax_vjp_row(const hone_softmax_vjp *job, int64_t row);

hone_run_function hone_softmax_vjp_reference, hone_softmax_vjp_portable, hone_softmax_vjp_avx2, hone_softmax_vjp_avx512;

#endif
