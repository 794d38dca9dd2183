// The sets of functions over floats, or doubles, of the including file's vectors.
#include "kernels/matmul/floats.h"

#ifdef VEC_F64

#    define FINISH hone_matmul_finish_f64

#else

#    include "kernels/matmul/epilogue.h"

#    define FINISH VEC_NAME(hone_matmul_finish)

void FINISH(const hone_matmul *product, void *sums, int64_t row, int64_t column, int64_t count)
{
    epilogue_any(product, sums, row, column, count);
}

#endif

// Only vectors of 512 bits read rows in place, since they can mask the end of a row.
static void tile_in_place(const hone_gemm_tile *work, int32_t rows)
{
    const tile_form form = {.word = 1, .product = vec_fma, .in_place = true};
    if (sizeof(vec) == 64) tile_any(work, rows, form);
}

const hone_gemm_set VEC_NAME(hone_gemm) = {
    .vector = VEC_WIDTH,
    .lane = sizeof(LANE),
    .word = 1,
    .tile = tile,
    .tile_in_place = sizeof(vec) == 64 ? tile_in_place : NULL,
    .pack_lines = lines,
    .pack_columns = columns,
#ifndef VEC_F64
    .narrow = narrow,
#endif
    .finish = FINISH,
};

const hone_decode_set VEC_NAME(hone_decode) = {
    .lane = sizeof(LANE),
    .dot = dot,
    .sweep = sweep,
    .gather = gather,
    .finish = FINISH,
#ifndef VEC_F64
    .widens = true,
    .widen = widen,
#endif
};
