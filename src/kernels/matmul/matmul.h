// What every kernel of matmul shares: its arguments as matrices.
#ifndef HONE_KERNELS_MATMUL_MATMUL_H
#define HONE_KERNELS_MATMUL_MATMUL_H

#include "hone/kernel.h"
#include "kernels/common/matrix.h"

// The order of values: a, b, c, transpose_b.
enum { MATMUL_A, MATMUL_B, MATMUL_C, MATMUL_TRANSPOSE_B };

// One product c = a b. Strides are in elements; those inside a row are 1, but for the reference.
typedef struct hone_matmul {
    const void *a, *b;
    void *c;
    int64_t m, n, k;
    int64_t a_stride, b_stride, c_stride; // from row to row of the array as it lies in memory
    bool transpose_b;                     // b is [n, k]
    hone_dtype_id dtype;
} hone_matmul;

hone_matmul hone_matmul_of(const hone_value *args);

#endif
