// In the vector extension of the compilers, for any machine.
#include "kernels/vector/portable.h"

#include "kernels/matmul/floats.h"

const hone_gemm_set hone_gemm_portable = {
    .vector = VEC_WIDTH,
    .word = 1,
    .tile = tile,
    .pack_lines = lines,
    .pack_columns = columns,
    .narrow = narrow,
};

const hone_decode_set hone_decode_portable = {
    .widens = true,
    .widen = widen,
    .dot = dot,
    .sweep = sweep,
    .gather = gather,
};
