// Words: what the registers of a matrix product hold in a lane. The including file has brought its vectors.
#ifndef HONE_KERNELS_MATMUL_WORDS_H
#define HONE_KERNELS_MATMUL_WORDS_H

#include "hone/tensor.h"
#include "kernels/common/unroll.h"

// What a lane holds.
#ifdef VEC_F64
#    define LANE       double
#    define LANE_DTYPE HONE_F64
#else
#    define LANE       float
#    define LANE_DTYPE HONE_F32
#endif

// Sums of lanes, and of the lanes of one. Of integers a lane's bits move as those of a float, and whoever has brought the vectors
// says how they are added.
#ifndef LANE_ADD
#    define LANE_ADD vec_add
#    define LANE_SUM vec_sum
#endif

// sum + the product of two vectors of words.
typedef vec word_product(vec a, vec b, vec sum);

// Sums of rows x vectors, a row of vectors and a factor, all in registers.
HONE_INLINE bool fits(int rows, int vectors)
{
    return rows * vectors + vectors + 1 <= (sizeof(vec) == 64 ? 32 : 16);
}

// At most a vector of what is left from the index on: all lanes, some, or none, which are then 0. Masks take any count,
// and a constant one needs none.
HONE_INLINE vec load_left(const void *data, hone_dtype_id dtype, int64_t index, int64_t left)
{
    if (__builtin_constant_p(left) && left >= VEC_WIDTH) return vec_load(data, dtype, index);
    if (sizeof(vec) == 64) return vec_load_part(data, dtype, index, left);
    if (left >= VEC_WIDTH) return vec_load(data, dtype, index);
    return left <= 0 ? vec_set(0) : vec_load_part(data, dtype, index, left);
}

HONE_INLINE void store_left(void *data, hone_dtype_id dtype, int64_t index, int64_t left, vec value)
{
    if (sizeof(vec) != 64 && left >= VEC_WIDTH)
        vec_store(data, dtype, index, value);
    else if (left > 0)
        vec_store_part(data, dtype, index, left, value);
}

// The last vector of a row of b, of which count lanes are there. Only 512 bit vectors read b in place, where what is
// behind the row may not be touched; a packed row is whole.
HONE_INLINE vec load_last(const LANE *from, int64_t count)
{
    return sizeof(vec) == 64 ? load_left(from, LANE_DTYPE, 0, count) : vec_load(from, LANE_DTYPE, 0);
}

#endif
