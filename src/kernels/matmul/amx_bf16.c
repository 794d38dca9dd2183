// Words of two bf16 on AMX. It treats subnormal numbers as zero and rounds to nearest, like AVX512_BF16.
#include "kernels/vector/bf16.h"

#include "kernels/matmul/sets.h"
#include "kernels/matmul/tile.h"

enum { WORD = 2 };

#if defined(__AMX_TILE__) && defined(__AMX_BF16__)

HONE_INLINE vec line(const hone_gemm_strip *strip, int64_t row, int64_t k)
{
    return along(strip->data, row * strip->stride + k, strip->size - k);
}

HONE_INLINE vec column(const hone_gemm_strip *strip, int64_t k, int64_t from)
{
    const uint16_t *at = (const uint16_t *)strip->data + k * strip->stride + from;
    const __mmask16 there = hone_mask16(strip->count - from);
    __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(k < strip->size ? there : 0, at));
    __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(k + 1 < strip->size ? there : 0, at + strip->stride));
    return _mm512_castsi512_ps(_mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}

#    define AMX_DOT _tile_dpbf16ps
#    include "kernels/matmul/amx.h"

static void lines(const hone_gemm_strip *strip)
{
    pack_lines(strip, WORD, line);
    clear_rest(strip);
}

// Sums are in whole tiles, so all of a panel's row can be read.
static void narrow(const float *from, void *to, hone_dtype_id dtype, int64_t count)
{
    (void)dtype;
    for (int64_t i = 0; i < count; i += 2 * VEC_WIDTH) {
        const __m512bh row = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + i + VEC_WIDTH), _mm512_loadu_ps(from + i));
        _mm512_mask_storeu_epi16((uint16_t *)to + i, mask32(count - i), (__m512i)row);
    }
}

const hone_gemm_set hone_gemm_amx_bf16 = {
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
    .finish = hone_matmul_finish_avx512,
    .begin = begin,
    .end = end,
};

#else

// The compiler does not know the instructions: the kernel refuses every call.
const hone_gemm_set hone_gemm_amx_bf16 = {.vector = VEC_WIDTH, .word = WORD, .row_unit = 16, .depth_unit = 16};

#endif
