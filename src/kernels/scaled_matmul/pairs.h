// Words of two integers that are widened to 16 bits: one instruction multiplies pairs and adds both products, another
// adds to the sum. For processors without instructions for four 8-bit integers.
#include "kernels/scaled_matmul/integers.h"

#include "kernels/matmul/stream.h"
#include "kernels/matmul/tile.h"

enum { WORD = 2, STEP = WORD * VEC_WIDTH };

#ifdef __AVX512F__

HONE_INLINE vec dot_pairs(vec a, vec b, vec sum)
{
    return add_lanes(sum, of_lanes(_mm512_madd_epi16(lanes_of(a), lanes_of(b))));
}

HONE_INLINE vec widen_pairs(const int8_t *from)
{
    return of_lanes(_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)from)));
}

// The words of columns: one row in the low halves, the next in the high halves.
HONE_INLINE vec join_rows(const int8_t *row, const int8_t *next)
{
    const __m512i low = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)row)),
                  high = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)next));
    return of_lanes(_mm512_mask_blend_epi16(0xaaaaaaaau, low, _mm512_slli_epi32(high, 16)));
}

HONE_INLINE vec same_pair(uint32_t pair)
{
    return of_lanes(_mm512_set1_epi32((int)pair));
}

#else

HONE_INLINE vec dot_pairs(vec a, vec b, vec sum)
{
    return add_lanes(sum, of_lanes(_mm256_madd_epi16(lanes_of(a), lanes_of(b))));
}

HONE_INLINE vec widen_pairs(const int8_t *from)
{
    return of_lanes(_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)from)));
}

HONE_INLINE vec join_rows(const int8_t *row, const int8_t *next)
{
    const __m256i low = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)row)),
                  high = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)next));
    return of_lanes(_mm256_blend_epi16(low, _mm256_slli_epi32(high, 16), 0xaa));
}

HONE_INLINE vec same_pair(uint32_t pair)
{
    return of_lanes(_mm256_set1_epi32((int)pair));
}

#endif

// The existing elements, at most `most`, followed by zeros.
HONE_INLINE const int8_t *padded(const int8_t *from, int64_t left, int8_t *room, int64_t most)
{
    memset(room, 0, (size_t)most);
    if (left > 0) memcpy(room, from, (size_t)(left < most ? left : most));
    return room;
}

// The words of a row.
HONE_INLINE vec along(const void *data, int64_t index, int64_t left)
{
    int8_t room[STEP];
    const int8_t *from = (const int8_t *)data + index;
    return widen_pairs(left >= STEP ? from : padded(from, left, room, STEP));
}

HONE_INLINE vec across(const void *data, int64_t index, int64_t stride, int64_t left, int64_t count)
{
    int8_t room[VEC_WIDTH], below[VEC_WIDTH];
    const int8_t *from = (const int8_t *)data + index;
    if (count >= VEC_WIDTH && left >= WORD) return join_rows(from, from + stride);
    return join_rows(
        padded(from, count, room, VEC_WIDTH), padded(from + stride, left > 1 ? count : 0, below, VEC_WIDTH));
}

static void tile(const hone_gemm_tile *work, int32_t rows)
{
    const tile_form form = {.word = WORD, .product = dot_pairs};
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

static void columns(const hone_gemm_strip *strip)
{
    pack_columns(strip, WORD, column);
}

static void finish(const hone_matmul *product, void *sums, int64_t row, int64_t from, int64_t count)
{
    scale_row(product, sums, row, from, count, 0);
    VEC_NAME(hone_matmul_finish)(product, sums, row, from, count);
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
    const int8_t *from = (const int8_t *)a + index;
    const int16_t first = from[0], second = left > 1 ? from[1] : 0;
    return same_pair((uint32_t)(uint16_t)first | (uint32_t)(uint16_t)second << 16);
}

HONE_INLINE vec
b_columns(const void *b, hone_dtype_id dtype, int64_t index, int64_t stride, int64_t left, int64_t count)
{
    (void)dtype;
    return across(b, index, stride, left, count);
}

static const stream_words words = {WORD, sizeof(int8_t), dot_pairs, a_words, b_words, a_word, .b_columns = b_columns};

static void dot(const hone_decode_part *part)
{
    dot_all(part, HONE_I8, words);
}

static void sweep(const hone_decode_part *part)
{
    sweep_all(part, HONE_I8, words);
}

const hone_gemm_set VEC_NAME(hone_scaled_gemm) = {
    .vector = VEC_WIDTH,
    .lane = sizeof(LANE),
    .word = WORD,
    .tile = tile,
    .pack_lines = lines,
    .pack_columns = columns,
    .narrow = narrow,
    .finish = finish,
};

const hone_decode_set VEC_NAME(hone_scaled_decode) = {
    .lane = sizeof(LANE),
    .dot = dot,
    .sweep = sweep,
    .gather = gather,
    .finish = finish,
};
