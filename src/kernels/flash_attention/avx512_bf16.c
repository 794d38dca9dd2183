// Attention of bf16 on AVX512_BF16: a word is two elements of a query or a key. Values are multiplied as floats: if
// weights are rounded to bf16, results exceed hone's tolerance where a few values of different signs have similar
// weights.
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
