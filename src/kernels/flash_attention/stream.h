// Attention for few queries, over the vectors of the including file: each key and value is read once, in vectors along
// its elements, and serves all rows (queries of its kv_head) from registers and the nearest cache.
//
// A block of keys gives its logits, these become weights, and the block's values are added up: the online softmax again.
// Long sequences can be split over threads; each split keeps its own maximum, sum and result, which are joined at the end.
#include "kernels/common/scratch.h"
#include "kernels/flash_attention/flash_attention.h"

#include <math.h>

#define STREAM_LOWEST -1e30f // as in tiles.h

// Rows of one kv_head over some keys, with the memory for them.
typedef struct stream {
    const hone_attention *problem;
    int64_t batch, kv_head;
    int64_t first_row, rows;
    int64_t dim_padded, value_padded; // to whole vectors
    int64_t block;                    // keys, a multiple of VEC_WIDTH
    int64_t prefetch;                 // keys ahead
    float query_scale, cap;
    float *query;               // [rows][dim_padded], scaled
    float *scores;              // [rows][block]
    float *out;                 // [rows][value_padded]
    float *most, *sum, *factor; // [rows]
} stream;

static int64_t stream_floats(const stream *s)
{
    return s->rows * (s->dim_padded + s->value_padded + s->block + VEC_WIDTH);
}

static void stream_sizes(stream *s)
{
    const hone_attention *p = s->problem;
    const double log2_e = 1.4426950408889634;
    s->dim_padded = (p->dim + VEC_WIDTH - 1) / VEC_WIDTH * VEC_WIDTH;
    s->value_padded = (p->value_dim + VEC_WIDTH - 1) / VEC_WIDTH * VEC_WIDTH;
    s->query_scale = (float)(p->has_cap ? p->scale / p->cap : p->scale * log2_e);
    s->cap = (float)(p->cap * log2_e);
}

// Gives the stream its memory, stream_floats of it, and an empty softmax.
static void stream_place(stream *s, float *memory)
{
    s->query = memory;
    s->out = s->query + s->rows * s->dim_padded;
    s->scores = s->out + s->rows * s->value_padded;
    s->most = s->scores + s->rows * s->block;
    s->sum = s->most + s->rows;
    s->factor = s->sum + s->rows;
    memset(s->out, 0, (size_t)(s->rows * s->value_padded) * sizeof(float));
    for (int64_t i = 0; i < s->rows; i++) {
        s->most[i] = STREAM_LOWEST;
        s->sum[i] = 0;
    }
}

HONE_INLINE int64_t stream_head(const stream *s, int64_t row)
{
    return s->kv_head * s->problem->group + (s->first_row + row) % s->problem->group;
}

HONE_INLINE int64_t stream_position(const stream *s, int64_t row)
{
    return (s->first_row + row) / s->problem->group;
}

// The keys [*out_first, *out_last) that some row sees.
static void stream_range(const stream *s, int64_t *out_first, int64_t *out_last)
{
    *out_first = s->problem->kv_len;
    *out_last = 0;
    for (int64_t i = 0; i < s->rows; i++) {
        int64_t first, last;
        hone_attention_range(s->problem, stream_position(s, i), &first, &last);
        if (first == last) continue;
        if (first < *out_first) *out_first = first;
        if (last > *out_last) *out_last = last;
    }
    if (*out_first > *out_last) *out_first = *out_last;
}

HONE_INLINE void stream_load_queries(const stream *s, hone_dtype_id dtype)
{
    const hone_attention *p = s->problem;
    for (int64_t i = 0; i < s->rows; i++) {
        const char *query =
            hone_attention_at(&p->query, hone_element_size(dtype), s->batch, stream_position(s, i), stream_head(s, i));
        for (int64_t x = 0; x < p->dim; x += VEC_WIDTH) {
            vec value = vec_load_part(query, dtype, x, p->dim - x < VEC_WIDTH ? p->dim - x : VEC_WIDTH);
            vec_store(s->query, HONE_F32, i * s->dim_padded + x, vec_mul(value, vec_set(s->query_scale)));
        }
    }
}

HONE_INLINE void prefetch_bytes(const char *from, int64_t size)
{
    for (int64_t i = 0; i < size; i += 64)
        __builtin_prefetch(from + i);
}

// VEC_WIDTH products, of VEC_WIDTH / rows keys with `rows` rows: the lane of a product is key * rows + row.
HONE_INLINE vec stream_products(
    const char *const *keys, const float *query, int64_t query_stride, int64_t dim, hone_dtype_id dtype, int rows)
{
    vec sums[VEC_WIDTH];
    HONE_UNROLL
    for (int i = 0; i < VEC_WIDTH; i++)
        sums[i] = vec_set(0.0f);
    for (int64_t x = 0; x < dim; x += VEC_WIDTH) {
        vec values[4];
        HONE_UNROLL
        for (int r = 0; r < rows; r++)
            values[r] = vec_load(query, HONE_F32, r * query_stride + x);
        bool part = dim - x < VEC_WIDTH;
        HONE_UNROLL
        for (int k = 0; k < VEC_WIDTH / rows; k++) {
            vec key = part ? vec_load_part(keys[k], dtype, x, dim - x) : vec_load(keys[k], dtype, x);
            HONE_UNROLL
            for (int r = 0; r < rows; r++)
                sums[k * rows + r] = vec_fma(key, values[r], sums[k * rows + r]);
        }
    }
    vec_transpose(sums);
    HONE_UNROLL
    for (int step = 1; step < VEC_WIDTH; step *= 2) {
        HONE_UNROLL
        for (int i = 0; i < VEC_WIDTH; i += 2 * step)
            sums[i] = vec_add(sums[i], sums[i + step]);
    }
    return sums[0];
}

// The logits of `rows` rows from `row` on and VEC_WIDTH / rows keys from key from + j on; keys behind `count` repeat the last.
HONE_INLINE void stream_score(
    const stream *s, int64_t row, int64_t from, int64_t j, int64_t count, hone_dtype_id dtype, int rows)
{
    const hone_attention *p = s->problem;
    const char *keys[VEC_WIDTH];
    int64_t size = hone_element_size(dtype);
    for (int k = 0; k < VEC_WIDTH / rows; k++) {
        int64_t at = j + k < count ? j + k : count - 1;
        keys[k] = hone_attention_at(&p->key, size, s->batch, from + at, s->kv_head);
        if (s->prefetch && row == 0) prefetch_bytes(keys[k] + s->prefetch * p->key.position * size, p->dim * size);
    }
    vec product = stream_products(keys, s->query + row * s->dim_padded, s->dim_padded, p->dim, dtype, rows);
    float *scores = s->scores + row * s->block + j;
    if (rows == 1) {
        vec_store(scores, HONE_F32, 0, product);
        return;
    }
    float lanes[VEC_WIDTH];
    vec_store(lanes, HONE_F32, 0, product);
    for (int k = 0; k < VEC_WIDTH / rows; k++)
        for (int r = 0; r < rows; r++)
            scores[r * s->block + k] = lanes[k * rows + r];
}

// Logits of all rows and keys [from, from + count).
HONE_INLINE void stream_scores(const stream *s, int64_t from, int64_t count, hone_dtype_id dtype)
{
    for (int64_t j = 0; j < count; j += VEC_WIDTH) {
        int64_t row = 0;
        for (; row + 4 <= s->rows; row += 4)
            for (int64_t k = j; k < j + VEC_WIDTH && k < count; k += VEC_WIDTH / 4)
                stream_score(s, row, from, k, count, dtype, 4);
        for (; row + 2 <= s->rows; row += 2)
            for (int64_t k = j; k < j + VEC_WIDTH && k < count; k += VEC_WIDTH / 2)
                stream_score(s, row, from, k, count, dtype, 2);
        for (; row < s->rows; row++)
            stream_score(s, row, from, j, count, dtype, 1);
    }
}

// Minus infinity where a row sees no key, and up to a whole vector.
static void stream_mask(const stream *s, int64_t row, int64_t from, int64_t count)
{
    int64_t first, last, padded = (count + VEC_WIDTH - 1) / VEC_WIDTH * VEC_WIDTH;
    hone_attention_range(s->problem, stream_position(s, row), &first, &last);
    float *scores = s->scores + row * s->block;
    for (int64_t j = 0; j < first - from && j < padded; j++)
        scores[j] = -INFINITY;
    int64_t end = last - from < 0 ? 0 : last - from;
    if (end > count) end = count;
    for (int64_t j = end; j < padded; j++)
        scores[j] = -INFINITY;
}

// Logits of a row become weights.
HONE_INLINE void stream_weigh(const stream *s, int64_t row, int64_t from, int64_t count)
{
    float *scores = s->scores + row * s->block;
    if (s->problem->has_cap)
        for (int64_t j = 0; j < count; j += VEC_WIDTH)
            vec_store(scores, HONE_F32, j, vec_mul(vec_tanh(vec_load(scores, HONE_F32, j)), vec_set(s->cap)));
    stream_mask(s, row, from, count);
    vec most = vec_set(s->most[row]), before = most;
    for (int64_t j = 0; j < count; j += VEC_WIDTH)
        most = vec_max(most, vec_load(scores, HONE_F32, j));
    s->most[row] = vec_highest(most);
    most = vec_set(s->most[row]);
    vec sum = vec_set(0.0f);
    for (int64_t j = 0; j < count; j += VEC_WIDTH) {
        vec weight = vec_exp2(vec_sub(vec_load(scores, HONE_F32, j), most));
        vec_store(scores, HONE_F32, j, weight);
        sum = vec_add(sum, weight);
    }
    float lanes[VEC_WIDTH];
    vec_store(lanes, HONE_F32, 0, vec_exp2(vec_sub(before, most)));
    s->factor[row] = lanes[0];
    s->sum[row] = s->sum[row] * s->factor[row] + vec_sum(sum);
}

// `vectors` vectors of the results of `rows` rows, from element x on.
HONE_INLINE void stream_add(
    const stream *s, int64_t row, int64_t from, int64_t count, int64_t x, hone_dtype_id dtype, int rows, int vectors)
{
    const hone_attention *p = s->problem;
    vec sums[4][8];
    float *out = s->out + row * s->value_padded + x;
    HONE_UNROLL
    for (int r = 0; r < rows; r++) {
        HONE_UNROLL
        for (int c = 0; c < vectors; c++)
            sums[r][c] =
                vec_mul(vec_set(s->factor[row + r]), vec_load(out, HONE_F32, r * s->value_padded + c * VEC_WIDTH));
    }
    int64_t size = hone_element_size(dtype), step = p->value.position * size, rest = p->value_dim - x;
    const char *value = hone_attention_at(&p->value, size, s->batch, from, s->kv_head) + x * size;
    const float *weights = s->scores + row * s->block;
    for (int64_t j = 0; j < count; j++, value += step) {
        if (s->prefetch && row == 0) prefetch_bytes(value + s->prefetch * step, vectors * VEC_WIDTH * size);
        vec values[8];
        HONE_UNROLL
        for (int c = 0; c < vectors; c++)
            values[c] = vectors == 1 && rest < VEC_WIDTH ? vec_load_part(value, dtype, 0, rest)
                                                         : vec_load(value, dtype, c * VEC_WIDTH);
        HONE_UNROLL
        for (int r = 0; r < rows; r++) {
            vec weight = vec_set(weights[r * s->block + j]);
            HONE_UNROLL
            for (int c = 0; c < vectors; c++)
                sums[r][c] = vec_fma(weight, values[c], sums[r][c]);
        }
    }
    HONE_UNROLL
    for (int r = 0; r < rows; r++) {
        HONE_UNROLL
        for (int c = 0; c < vectors; c++)
            vec_store(out, HONE_F32, r * s->value_padded + c * VEC_WIDTH, sums[r][c]);
    }
}

// All elements of `rows` rows' results.
HONE_INLINE void stream_add_rows(
    const stream *s, int64_t row, int64_t from, int64_t count, hone_dtype_id dtype, int rows, int vectors)
{
    int64_t x = 0, width = vectors * VEC_WIDTH;
    for (; x + width <= s->problem->value_dim; x += width)
        stream_add(s, row, from, count, x, dtype, rows, vectors);
    for (; x < s->problem->value_dim; x += VEC_WIDTH)
        stream_add(s, row, from, count, x, dtype, rows, 1);
}

HONE_INLINE void stream_values(const stream *s, int64_t from, int64_t count, hone_dtype_id dtype)
{
    int64_t row = 0;
    for (; row + 4 <= s->rows; row += 4)
        stream_add_rows(s, row, from, count, dtype, 4, 2);
    for (; row + 2 <= s->rows; row += 2)
        stream_add_rows(s, row, from, count, dtype, 2, 4);
    for (; row < s->rows; row++)
        stream_add_rows(s, row, from, count, dtype, 1, 8);
}

// The keys [from, last).
HONE_INLINE void stream_attend(const stream *s, int64_t from, int64_t last, hone_dtype_id dtype)
{
    stream_load_queries(s, dtype);
    for (; from < last; from += s->block) {
        int64_t count = last - from < s->block ? last - from : s->block;
        stream_scores(s, from, count, dtype);
        for (int64_t row = 0; row < s->rows; row++)
            stream_weigh(s, row, from, count);
        stream_values(s, from, count, dtype);
    }
}

HONE_INLINE void stream_store(const stream *s, hone_dtype_id dtype)
{
    const hone_attention *p = s->problem;
    for (int64_t i = 0; i < s->rows; i++) {
        if (s->sum[i] == 0.0f) {
            hone_attention_mean(p, s->batch, s->kv_head, s->first_row + i);
            continue;
        }
        char *out =
            hone_attention_at(&p->out, hone_element_size(dtype), s->batch, stream_position(s, i), stream_head(s, i));
        vec scale = vec_set(1.0f / s->sum[i]);
        for (int64_t x = 0; x < p->value_dim; x += VEC_WIDTH) {
            vec value = vec_mul(scale, vec_load(s->out, HONE_F32, i * s->value_padded + x));
            vec_store_part(out, dtype, x, p->value_dim - x < VEC_WIDTH ? p->value_dim - x : VEC_WIDTH, value);
        }
    }
}
