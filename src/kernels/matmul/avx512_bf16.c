// Products of words of two bf16 on AVX512_BF16.
#include "kernels/vector/bf16.h"

#include "kernels/matmul/sets.h"
#include "kernels/matmul/stream.h"
#include "kernels/matmul/tile.h"

enum { WORD = 2 };

// The words of `count` columns: a row in the low halves, the next in the high ones.
HONE_INLINE vec across(const void *data, int64_t index, int64_t stride, int64_t left, int64_t count)
{
    const uint16_t *from = (const uint16_t *)data + index;
    __mmask16 first = hone_mask16(count), second = left > 1 ? first : 0;
    __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first, from));
    __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(second, from + stride));
    return _mm512_castsi512_ps(_mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}

// Subnormal results are flushed to 0, as subnormal operands are.
HONE_INLINE void round_sums(void *to, int64_t index, int64_t count, vec sums)
{
    const __m256i rounded = (__m256i)_mm512_cvtneps_pbh(sums);
    _mm256_mask_storeu_epi16((uint16_t *)to + index, hone_mask16(count), rounded);
}

// The words of two vectors of columns, joined within each 128 bits: four of every eight columns are in the first, four
// in the second. One step per vector, while `across` takes four.
HONE_INLINE void across_two(const void *data, int64_t index, int64_t stride, int64_t left, int64_t count, vec out[2])
{
    const uint16_t *from = (const uint16_t *)data + index;
    const __mmask32 there = mask32(count);
    const __m512i upper = _mm512_maskz_loadu_epi16(there, from),
                  lower = _mm512_maskz_loadu_epi16(left > 1 ? there : 0, from + stride);
    out[0] = _mm512_castsi512_ps(_mm512_unpacklo_epi16(upper, lower));
    out[1] = _mm512_castsi512_ps(_mm512_unpackhi_epi16(upper, lower));
}

// Puts two vectors of sums, whose columns are in across_two's order, in order from left to right.
HONE_INLINE void put_in_line(float *sums)
{
    static const int32_t places[2][VEC_WIDTH] = {
        {0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23},
        {8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31}};
    const vec first = vec_load(sums, HONE_F32, 0), second = vec_load(sums, HONE_F32, VEC_WIDTH);
    HONE_UNROLL
    for (int i = 0; i < 2; i++)
        vec_store(sums, HONE_F32, i * VEC_WIDTH, _mm512_permutex2var_ps(first, _mm512_loadu_si512(places[i]), second));
}

static void tile(const hone_gemm_tile *work, int32_t rows)
{
    const tile_form form = {.word = WORD, .product = dot_pairs, .round = round_sums, .packs_b = true};
    tile_any(work, rows, form);
}

static void tile_in_place(const hone_gemm_tile *work, int32_t rows)
{
    const tile_form form = {.word = WORD, .product = dot_pairs, .round = round_sums, .packs_b = true, .in_place = true};
    tile_any(work, rows, form);
}

HONE_INLINE vec line(const hone_gemm_strip *strip, int64_t row, int64_t k)
{
    return along(strip->data, row * strip->stride + k, strip->size - k);
}

HONE_INLINE vec column(const hone_gemm_strip *strip, int64_t k, int64_t from)
{
    return across(strip->data, k * strip->stride + from, strip->stride, strip->size - k, strip->count - from);
}

static void lines(const hone_gemm_strip *strip)
{
    pack_lines(strip, WORD, line);
}

// With 32 columns, two rows are joined by a permutation for each half; fewer columns, and a single last row, are
// widened.
static void columns(const hone_gemm_strip *strip)
{
    enum { WIDE = 2 * VEC_WIDTH };
    static const uint16_t joined[2][WIDE] = {
        {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
         8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
        {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
         24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63}};
    const __m512i first = _mm512_loadu_si512(joined[0]), second = _mm512_loadu_si512(joined[1]);
    float *out = strip->out;
    for (int64_t k = 0; k < strip->size; k += WORD, out += strip->width) {
        const uint16_t *row = (const uint16_t *)strip->data + k * strip->stride;
        int64_t from = 0;
        for (; k + 1 < strip->size && from + WIDE <= strip->count; from += WIDE) {
            const __m512i upper = _mm512_loadu_si512(row + from),
                          lower = _mm512_loadu_si512(row + strip->stride + from);
            _mm512_storeu_si512(out + from, _mm512_permutex2var_epi16(upper, first, lower));
            _mm512_storeu_si512(out + from + VEC_WIDTH, _mm512_permutex2var_epi16(upper, second, lower));
        }
        for (; from < strip->width; from += VEC_WIDTH)
            vec_store(out, HONE_F32, from, column(strip, k, from));
    }
}

static void narrow(const float *from, void *to, hone_dtype_id dtype, int64_t count)
{
    (void)dtype;
    narrow_row(from, to, HONE_BF16, count);
}

HONE_INLINE vec a_words(const void *a, int64_t index, int64_t left)
{
    return along(a, index, left);
}

HONE_INLINE vec b_words(const void *b, hone_dtype_id dtype, int64_t index, int64_t left)
{
    (void)dtype;
    return along(b, index, left);
}

HONE_INLINE vec a_word(const void *a, int64_t index, int64_t left)
{
    const uint16_t *from = (const uint16_t *)a + index;
    uint32_t pair = from[0];
    if (left > 1) memcpy(&pair, from, sizeof pair);
    return _mm512_castsi512_ps(_mm512_set1_epi32((int)pair));
}

static const stream_words words = {WORD, sizeof(uint16_t), dot_pairs, a_words, b_words, a_word, .b_two = across_two};

static void dot(const hone_decode_part *part)
{
    dot_all(part, HONE_BF16, words);
}

static void sweep(const hone_decode_part *part)
{
    sweep_all(part, HONE_BF16, words);
    for (int64_t row = 0; row < part->m; row++)
        for (int64_t column = 0; column < part->n; column += 2 * VEC_WIDTH)
            put_in_line((float *)part->sums + row * part->sums_stride + column);
}

static void gather(const void *from, int64_t step, int64_t parts, void *to, hone_dtype_id dtype, int64_t count)
{
    if (dtype == HONE_F32)
        gather_sums(from, step, parts, to, HONE_F32, count);
    else
        gather_sums(from, step, parts, to, HONE_BF16, count);
}

const hone_gemm_set hone_gemm_avx512_bf16 = {
    .vector = VEC_WIDTH,
    .lane = sizeof(LANE),
    .word = WORD,
    .rounds = true,
    .tile = tile,
    .tile_in_place = tile_in_place,
    .pack_lines = lines,
    .pack_columns = columns,
    .narrow = narrow,
    .finish = hone_matmul_finish_avx512,
};

const hone_decode_set hone_decode_avx512_bf16 = {
    .lane = sizeof(LANE),
    .dot = dot,
    .sweep = sweep,
    .gather = gather,
    .finish = hone_matmul_finish_avx512,
};
