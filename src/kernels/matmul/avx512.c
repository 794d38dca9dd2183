// On AVX-512 F, BW, VL and DQ.
#include "kernels/vector/avx512.h"

#include "kernels/matmul/floats.h"

static void tile_in_place(const hone_gemm_tile *work, int32_t rows)
{
    tile_any(work, rows, true, vec_fma);
}

const hone_gemm_set hone_gemm_avx512 = {
    .vector = VEC_WIDTH,
    .word = 1,
    .tile = tile,
    .tile_in_place = tile_in_place,
    .pack_lines = lines,
    .pack_columns = columns,
    .narrow = narrow,
};

const hone_decode_set hone_decode_avx512 = {
    .widens = true,
    .widen = widen,
    .dot = dot,
    .sweep = sweep,
    .gather = gather,
};
