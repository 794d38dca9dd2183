// On AVX2, FMA and F16C.
#include "kernels/vector/avx2.h"

#include "kernels/matmul/floats.h"

const hone_gemm_set hone_gemm_avx2 = {
    .vector = VEC_WIDTH,
    .word = 1,
    .tile = tile,
    .pack_lines = lines,
    .pack_columns = columns,
    .narrow = narrow,
};

const hone_decode_set hone_decode_avx2 = {
    .widens = true,
    .widen = widen,
    .dot = dot,
    .sweep = sweep,
    .gather = gather,
};
