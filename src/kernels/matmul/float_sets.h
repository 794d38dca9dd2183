// The sets of functions over floats of the including file's vectors.
#include "kernels/matmul/floats.h"

const hone_gemm_set VEC_NAME(hone_gemm) = {
    .vector = VEC_WIDTH,
    .word = 1,
    .tile = tile,
    .pack_lines = lines,
    .pack_columns = columns,
    .narrow = narrow,
};

const hone_decode_set VEC_NAME(hone_decode) = {
    .widens = true,
    .widen = widen,
    .dot = dot,
    .sweep = sweep,
    .gather = gather,
};
