// Words of one float: tiles.h uses them for any dtype, whose elements are converted as they are copied.
#include "kernels/flash_attention/flash_attention.h"

enum { WORD = 1 };

// `left` words from element x on, followed by zeros.
HONE_INLINE vec words_of_row(const char *row, hone_dtype_id dtype, int64_t x, int64_t left)
{
    return left < VEC_WIDTH ? vec_load_part(row, dtype, x, left) : vec_load(row, dtype, x);
}

HONE_INLINE vec word_product(vec a, vec b, vec sum)
{
    return vec_fma(a, b, sum);
}
