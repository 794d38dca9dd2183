// Words of four integers on AMX: exact.
#include "kernels/vector/avx512.h"

#include "kernels/scaled_matmul/quads.h"

#if defined(__AMX_TILE__) && defined(__AMX_INT8__)

HONE_INLINE vec line(const hone_gemm_strip *strip, int64_t row, int64_t k)
{
    return along(strip->data, row * strip->stride + k, strip->size - k);
}

HONE_INLINE vec column(const hone_gemm_strip *strip, int64_t k, int64_t from)
{
    return across(strip->data, k * strip->stride + from, strip->stride, strip->size - k, strip->count - from);
}

#    define AMX_DOT _tile_dpbssd
#    include "kernels/matmul/amx.h"

static void lines(const hone_gemm_strip *strip)
{
    pack_lines(strip, WORD, line);
    clear_rest(strip);
}

static void finish(const hone_matmul *product, void *sums, int64_t row, int64_t from, int64_t count)
{
    scale_row(product, sums, row, from, count, 0);
    hone_matmul_finish_avx512(product, sums, row, from, count);
}

const hone_gemm_set hone_scaled_gemm_amx_int8 = {
    .vector = VEC_WIDTH,
    .lane = sizeof(LANE),
    .word = WORD,
    .row_unit = LINE,
    .depth_unit = LINE,
    .whole_tiles = true,
    .tile = tile,
    .pack_a = rows_of_a,
    .pack_lines = lines,
    .pack_columns = columns,
    .narrow = narrow,
    .finish = finish,
    .begin = begin,
    .end = end,
};

#else

// The compiler does not know the instructions: the kernel refuses every call.
const hone_gemm_set hone_scaled_gemm_amx_int8 = {.vector = VEC_WIDTH, .word = WORD, .row_unit = 16, .depth_unit = 16};

#endif
