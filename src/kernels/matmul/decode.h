// Products of a few rows, as in decoding: c[m, n] with small m is bound by reading b once, so b is read from memory in
// place and nothing is packed. The threads and the division of work are here. An instruction set provides two loops in
// a table: `dot` for b [n, k], whose rows are multiplied with the rows of a, and `sweep` for b [k, n], whose rows are
// scaled and added to c.
#ifndef HONE_KERNELS_MATMUL_DECODE_H
#define HONE_KERNELS_MATMUL_DECODE_H

#include "kernels/matmul/matmul.h"

// One worker's share: of the columns of c, or of k. A word is one float, two bf16 or four 8-bit integers that are
// adjacent in k, or one double; sums are floats, for f64 doubles, for integers 32-bit integers.
typedef struct hone_decode_part {
    const void *a;    // words; f16 and bf16 that are widened are floats here
    int64_t a_stride; // elements of a as it is stored
    const void *b;
    int64_t b_stride;
    void *c; // dot: the results
    int64_t c_stride;
    int64_t m, n, k;     // the part's
    hone_dtype_id dtype; // of a and b; of c if sums is NULL
    void *sums;          // sweep: the results, m x sums_stride; dot: receives them instead of c, unless NULL
    int64_t sums_stride; // a multiple of 64
    int64_t streams;     // rows of b that are read together
    int64_t ahead;       // prefetch distance in each, in elements
} hone_decode_part;

typedef struct hone_decode_set {
    int32_t lane; // bytes of a sum: 4, or 8 of f64
    bool widens;  // a must be floats whatever the dtype is
    void (*widen)(const void *from, float *to, hone_dtype_id dtype, int64_t count);
    void (*dot)(const hone_decode_part *part);
    void (*sweep)(const hone_decode_part *part);
    // to[i] = the sum of from[i], from[i + step], ... of `parts` workers; to may equal from if dtype is that of sums.
    // For integers, several parts are sums of integers, and one part is of floats that are narrowed.
    void (*gather)(const void *from, int64_t step, int64_t parts, void *to, hone_dtype_id dtype, int64_t count);
    hone_matmul_finish *finish; // of sums, before they are narrowed
} hone_decode_set;

// As a config gives it.
typedef struct hone_decode_shape {
    int32_t streams, ahead_bytes, threads;
    bool split_k; // sweep: workers divide k and add their sums at the end, so that each reads whole rows of b
} hone_decode_shape;

// Bytes of scratch memory that a run needs.
size_t hone_decode_scratch(const hone_decode_set *set, const hone_decode_shape *shape, const hone_matmul *product);

// Returns: HONE_OK; HONE_OUT_OF_MEMORY.
hone_status hone_decode_run(
    const hone_decode_set *set,
    const hone_decode_shape *shape,
    const hone_matmul *product,
    const hone_plan *plan,
    const hone_execution *execution);

#endif
