// Attention of bf16 on AVX512_BF16: words of two elements of a query and a key. Values are multiplied as floats: weights that are rounded
// to bf16 make results that are wrong by more than hone allows, where few values of different signs are weighed alike.
#include "kernels/vector/bf16.h"

#include "kernels/flash_attention/flash_attention.h"

#define VEC_NAME(name) name##_avx512_bf16

enum { WORD = 2 };

HONE_INLINE vec words_of_row(const char *row, hone_dtype_id dtype, int64_t x, int64_t left)
{
    (void)dtype;
    return along(row, x, left);
}

HONE_INLINE vec word_product(vec a, vec b, vec sum)
{
    return dot_pairs(a, b, sum);
}

#include "kernels/flash_attention/tiles.h"
