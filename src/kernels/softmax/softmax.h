// Softmax over the last axis: y = exp(scale (x - m)) / sum(exp(scale (x - m))), where scale m is the largest scale x.
// docs/special-values.md describes the results for elements that are large, infinite or NaN.
#ifndef HONE_KERNELS_SOFTMAX_H
#define HONE_KERNELS_SOFTMAX_H

#include "hone/kernel.h"

// The order of values, and of the space's parameters.
enum { SOFTMAX_X, SOFTMAX_Y, SOFTMAX_SCALE };
enum { SOFTMAX_METHOD, SOFTMAX_UNROLL, SOFTMAX_ROWS_PER_TASK, SOFTMAX_STORE, SOFTMAX_THREADS };

// The largest scale whose product with log2 e is a finite float.
#define SOFTMAX_MOST_SCALE 1e38

// The values of `method`.
enum {
    SOFTMAX_BUFFERED,   // max; exponentials and their sum into a buffer; products
    SOFTMAX_RECOMPUTED, // max; the sum of the exponentials; exponentials again, multiplied
    SOFTMAX_ONLINE      // max and sum in one pass; exponentials again, multiplied
};

hone_run_function hone_softmax_reference, hone_softmax_portable, hone_softmax_avx2, hone_softmax_avx512;

#endif
