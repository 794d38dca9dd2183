// Words: the contents of a lane in the registers of a matrix product. The including file provides its vectors.
#ifndef HONE_KERNELS_MATMUL_WORDS_H
#define HONE_KERNELS_MATMUL_WORDS_H

#include "hone/tensor.h"
#include "kernels/common/unroll.h"

// The type of a lane.
#ifdef VEC_F64
#    define LANE       double
#    define LANE_DTYPE HONE_F64
#else
#    define LANE       float
#    define LANE_DTYPE HONE_F32
#endif

// Sums of lanes, and the sum over the lanes of one vector. Lanes of integers are moved as the bits of floats, and the
// file that provides the vectors defines how they are added.
#ifndef LANE_ADD
#    define LANE_ADD vec_add
#    define LANE_SUM vec_sum
#endif

// sum + the product of two vectors of words.
typedef vec word_product(vec a, vec b, vec sum);

// Whether the sums of rows x vectors, a row of vectors and a factor all fit into registers.
HONE_INLINE bool fits(int rows, int vectors)
{
    return rows * vectors + vectors + 1 <= (sizeof(vec) == 64 ? 32 : 16);
}

// Loads at most a vector of the elements that are left from the index on: all lanes, some, or none; the other lanes are
// 0. Masks accept any count, and a constant count needs none.
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

// The last vector of a row of b, of which count lanes exist. Only 512-bit vectors read b in place, where memory after
// the row must not be read; a packed row is whole.
HONE_INLINE vec load_last(const LANE *from, int64_t count)
{
    return sizeof(vec) == 64 ? load_left(from, LANE_DTYPE, 0, count) : vec_load(from, LANE_DTYPE, 0);
}

#endif
