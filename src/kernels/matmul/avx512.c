// On AVX-512 F, BW, VL and DQ.
#include "kernels/vector/avx512.h"

#include "kernels/matmul/floats.h"

const hone_gemm_set hone_gemm_avx512 = {
    .vector = VEC_WIDTH,
    .word = 1,
    .tile = tile,
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
