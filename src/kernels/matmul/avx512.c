// On AVX-512 F, BW, VL and DQ.
#include "kernels/vector/avx512.h"

#include "kernels/matmul/epilogue.h"
#include "kernels/matmul/floats.h"

static void tile_in_place(const hone_gemm_tile *work, int32_t rows)
{
    tile_any(work, rows, true, vec_fma);
}

void hone_matmul_finish_avx512(const hone_matmul *product, float *sums, int64_t row, int64_t column, int64_t count)
{
    epilogue_any(product, sums, row, column, count);
}

const hone_gemm_set hone_gemm_avx512 = {
    .vector = VEC_WIDTH,
    .word = 1,
    .tile = tile,
    .tile_in_place = tile_in_place,
    .pack_lines = lines,
    .pack_columns = columns,
    .narrow = narrow,
    .finish = hone_matmul_finish_avx512,
};

const hone_decode_set hone_decode_avx512 = {
    .widens = true,
    .widen = widen,
    .dot = dot,
    .sweep = sweep,
    .gather = gather,
    .finish = hone_matmul_finish_avx512,
};
