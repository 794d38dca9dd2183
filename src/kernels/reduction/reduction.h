// Sums of rows: y[i] = sum over j of x[i, j].
#ifndef HONE_KERNELS_REDUCTION_H
#define HONE_KERNELS_REDUCTION_H

#include "hone/kernel.h"

// The order of values, and of the space's parameters.
enum { REDUCTION_X, REDUCTION_Y };
enum {
    REDUCTION_UNROLL,
    REDUCTION_ROWS,
    REDUCTION_ROWS_PER_TASK,
    REDUCTION_BLOCK,
    REDUCTION_PREFETCH,
    REDUCTION_THREADS
};

// Computes a row's sum in double: the reference, and the fallback of a kernel if a sum of floats exceeds their range.
double hone_reduction_sum(const float *x, int64_t length, int64_t step);

hone_run_function hone_reduction_reference, hone_reduction_portable, hone_reduction_avx2, hone_reduction_avx512;

#endif
