// The sets of functions over floats of the including file's vectors.
#include "kernels/matmul/epilogue.h"
#include "kernels/matmul/floats.h"

void VEC_NAME(hone_matmul_finish)(const hone_matmul *product, float *sums, int64_t row, int64_t column, int64_t count)
{
    epilogue_any(product, sums, row, column, count);
}

const hone_gemm_set VEC_NAME(hone_gemm) = {
    .vector = VEC_WIDTH,
    .word = 1,
    .tile = tile,
    .pack_lines = lines,
    .pack_columns = columns,
    .narrow = narrow,
    .finish = VEC_NAME(hone_matmul_finish),
};

const hone_decode_set VEC_NAME(hone_decode) = {
    .widens = true,
    .widen = widen,
    .dot = dot,
    .sweep = sweep,
    .gather = gather,
    .finish = VEC_NAME(hone_matmul_finish),
};
