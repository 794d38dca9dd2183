// Words of four integers on AVX512_VNNI: one instruction multiplies four unsigned integers by four signed ones and adds
// the products to a sum. b is the unsigned operand: 128 is added to its elements as they are read (their highest bit is
// flipped), which adds 128 times the sum of a's row to a sum; this is subtracted in the epilogue. Sums may exceed 32
// bits in between: they wrap around, and back.
#include "kernels/vector/avx512.h"

#include "kernels/scaled_matmul/quads.h"

#include "kernels/matmul/stream.h"
#include "kernels/matmul/tile.h"

enum { OFFSET = 128 };

HONE_INLINE vec dot_words(vec a, vec b, vec sum)
{
    return of_lanes(_mm512_dpbusd_epi32(lanes_of(sum), lanes_of(b), lanes_of(a)));
}

HONE_INLINE vec unsign(vec words)
{
    return of_lanes(_mm512_xor_si512(lanes_of(words), _mm512_set1_epi8((char)OFFSET)));
}

static void tile(const hone_gemm_tile *work, int32_t rows)
{
    const tile_form form = {.word = WORD, .product = dot_words};
    tile_any(work, rows, form);
}

HONE_INLINE vec line_of_a(const hone_gemm_strip *strip, int64_t row, int64_t k)
{
    return along(strip->data, row * strip->stride + k, strip->size - k);
}

HONE_INLINE vec line_of_b(const hone_gemm_strip *strip, int64_t row, int64_t k)
{
    return unsign(line_of_a(strip, row, k));
}

HONE_INLINE vec column(const hone_gemm_strip *strip, int64_t k, int64_t from)
{
    return unsign(across(strip->data, k * strip->stride + from, strip->stride, strip->size - k, strip->count - from));
}

static void lines_of_a(const hone_gemm_strip *strip)
{
    pack_lines(strip, WORD, line_of_a);
}

static void lines_of_b(const hone_gemm_strip *strip)
{
    pack_lines(strip, WORD, line_of_b);
}

static void columns(const hone_gemm_strip *strip)
{
    pack_columns(strip, WORD, column);
}

// Computed once for each row and panel of b: one in nr of the steps of the panel's products.
static int32_t sum_of_row(const hone_matmul *product, int64_t row)
{
    const int8_t *a = (const int8_t *)product->a + row * product->a_stride;
    const vec ones = of_lanes(_mm512_set1_epi8(1));
    vec sums[4] = {vec_set(0), vec_set(0), vec_set(0), vec_set(0)};
    int64_t p = 0;
    for (; p + 4 * STEP <= product->k; p += 4 * STEP)
        for (int i = 0; i < 4; i++)
            sums[i] = dot_words(along(a, p + i * STEP, STEP), ones, sums[i]);
    for (; p < product->k; p += STEP)
        sums[0] = dot_words(along(a, p, product->k - p), ones, sums[0]);
    return sum_integers(add_lanes(add_lanes(sums[0], sums[1]), add_lanes(sums[2], sums[3])));
}

static void finish(const hone_matmul *product, void *sums, int64_t row, int64_t from, int64_t count)
{
    scale_row(product, sums, row, from, count, OFFSET * sum_of_row(product, row));
    hone_matmul_finish_avx512(product, sums, row, from, count);
}

HONE_INLINE vec a_words(const void *a, int64_t index, int64_t left)
{
    return along(a, index, left);
}

HONE_INLINE vec b_words(const void *b, hone_dtype_id dtype, int64_t index, int64_t left)
{
    (void)dtype;
    return unsign(along(b, index, left));
}

HONE_INLINE vec a_word(const void *a, int64_t index, int64_t left)
{
    const int8_t *from = (const int8_t *)a + index;
    uint32_t word = 0;
    if (left >= WORD)
        memcpy(&word, from, WORD);
    else
        for (int64_t i = 0; i < left; i++)
            word |= (uint32_t)(uint8_t)from[i] << 8 * i;
    return of_lanes(_mm512_set1_epi32((int)word));
}

HONE_INLINE vec
b_columns(const void *b, hone_dtype_id dtype, int64_t index, int64_t stride, int64_t left, int64_t count)
{
    (void)dtype;
    return unsign(across(b, index, stride, left, count));
}

static const stream_words words = {WORD, sizeof(int8_t), dot_words, a_words, b_words, a_word, .b_columns = b_columns};

static void dot(const hone_decode_part *part)
{
    dot_all(part, HONE_I8, words);
}

static void sweep(const hone_decode_part *part)
{
    sweep_all(part, HONE_I8, words);
}

const hone_gemm_set hone_scaled_gemm_avx512_vnni = {
    .vector = VEC_WIDTH,
    .lane = sizeof(LANE),
    .word = WORD,
    .tile = tile,
    .pack_a = lines_of_a,
    .pack_lines = lines_of_b,
    .pack_columns = columns,
    .narrow = narrow,
    .finish = finish,
};

const hone_decode_set hone_scaled_decode_avx512_vnni = {
    .lane = sizeof(LANE),
    .dot = dot,
    .sweep = sweep,
    .gather = gather,
    .finish = finish,
};
