// Attention for few queries, over the vectors of the including file: each key and value is read once, in vectors along
// its elements, and serves all rows (queries of its kv_head) from registers and the nearest cache.
//
// A block of keys gives its logits, these become weights, and the block's values are added up: the online softmax
// again.
// Long sequences can be split over threads; each split keeps its own maximum, sum and result, which are joined at the
// end: with most = max of theirs, sum = sum of sum_i exp(most_i - most), and out likewise ("Flash-Decoding", Dao et
// al., 2023). With few queries the bytes of K and V bound the time, so that each is read once and fetched `prefetch`
// keys ahead.
#include "kernels/common/scratch.h"
#include "kernels/flash_attention/flash_attention.h"

#include <float.h>
#include <math.h>

#define STREAM_LOWEST -FLT_MAX // as in tiles.h

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
    s->dim_padded = (p->dim + VEC_WIDTH - 1) / VEC_WIDTH * VEC_WIDTH;
    s->value_padded = (p->value_dim + VEC_WIDTH - 1) / VEC_WIDTH * VEC_WIDTH;
    s->query_scale = (float)(p->has_cap ? p->scale / p->cap : p->scale);
    s->cap = (float)p->cap;
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

// Whether a row sees no key.
HONE_INLINE bool stream_is_blind(const stream *s, int64_t row)
{
    int64_t first, last;
    hone_attention_range(s->problem, stream_position(s, row), &first, &last);
    return first == last;
}

// The keys [*out_first, *out_last) that some row sees.
HONE_INLINE void stream_range(const stream *s, int64_t *out_first, int64_t *out_last)
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

// VEC_WIDTH products, of VEC_WIDTH / rows keys, `step` bytes apart, with `rows` rows: the lane of a product is
// key * rows + row. Four keys at a time, as many as there are registers for their addresses.
HONE_INLINE vec stream_products(
    const char *key, int64_t step, const float *query, int64_t query_stride, int64_t dim, hone_dtype_id dtype, int rows)
{
    enum { KEYS = 4 };
    vec sums[VEC_WIDTH];
    HONE_UNROLL
    for (int group = 0; group < VEC_WIDTH / (rows * KEYS); group++, key += KEYS * step) {
        vec *sum = sums + group * rows * KEYS;
        HONE_UNROLL
        for (int i = 0; i < rows * KEYS; i++)
            sum[i] = vec_set(0.0f);
        int64_t x = 0;
        for (; x + VEC_WIDTH <= dim; x += VEC_WIDTH) {
            HONE_UNROLL
            for (int k = 0; k < KEYS; k++) {
                vec value = vec_load(key + k * step, dtype, x);
                HONE_UNROLL
                for (int r = 0; r < rows; r++)
                    sum[k * rows + r] =
                        vec_fma(value, vec_load(query, HONE_F32, r * query_stride + x), sum[k * rows + r]);
            }
        }
        if (x == dim) continue;
        HONE_UNROLL
        for (int k = 0; k < KEYS; k++) {
            vec value = vec_load_part(key + k * step, dtype, x, dim - x);
            HONE_UNROLL
            for (int r = 0; r < rows; r++)
                sum[k * rows + r] = vec_fma(value, vec_load(query, HONE_F32, r * query_stride + x), sum[k * rows + r]);
        }
    }
    return vec_sums(sums);
}

// The logits of `rows` rows from `row` on and VEC_WIDTH / rows keys from key from + j on, `step` bytes apart (0: one
// key).
HONE_INLINE void stream_score(
    const stream *s, int64_t row, int64_t from, int64_t j, int64_t step, hone_dtype_id dtype, int rows)
{
    const hone_attention *p = s->problem;
    const char *key = hone_attention_at(&p->key, hone_element_size(dtype), s->batch, from + j, s->kv_head);
    if (s->prefetch && row == 0)
        for (int k = 0; k < VEC_WIDTH / rows; k++)
            prefetch_bytes(key + (k + s->prefetch) * step, p->dim * hone_element_size(dtype));
    vec product = stream_products(key, step, s->query + row * s->dim_padded, s->dim_padded, p->dim, dtype, rows);
    float *scores = s->scores + row * s->block + j;
    if (rows == 1 && step) {
        vec_store(scores, HONE_F32, 0, product);
        return;
    }
    float lanes[VEC_WIDTH];
    vec_store(lanes, HONE_F32, 0, product);
    for (int k = 0; k < (step ? VEC_WIDTH / rows : 1); k++)
        for (int r = 0; r < rows; r++)
            scores[r * s->block + k] = lanes[k * rows + r];
}

// Logits of `rows` rows and the keys [j, last) of a block. A group that is not whole starts earlier and finds again
// what was found; when there are too few keys for one group, they come one by one.
HONE_INLINE void stream_score_rows(
    const stream *s, int64_t row, int64_t from, int64_t j, int64_t last, hone_dtype_id dtype, int rows)
{
    int64_t keys = VEC_WIDTH / rows, step = s->problem->key.position * hone_element_size(dtype);
    if (last < keys) {
        for (; j < last; j++)
            stream_score(s, row, from, j, 0, dtype, rows);
        return;
    }
    for (; j < last; j += keys)
        stream_score(s, row, from, j + keys <= last ? j : last - keys, step, dtype, rows);
}

// Logits of all rows and keys [from, from + count), a vector's width of keys after the other, which all rows find in
// the nearest cache.
HONE_INLINE void stream_scores(const stream *s, int64_t from, int64_t count, hone_dtype_id dtype)
{
    for (int64_t j = 0; j < count; j += VEC_WIDTH) {
        int64_t row = 0, last = j + VEC_WIDTH < count ? j + VEC_WIDTH : count;
        for (; VEC_WIDTH >= 16 && row + 4 <= s->rows; row += 4)
            stream_score_rows(s, row, from, j, last, dtype, 4);
        for (; VEC_WIDTH >= 8 && row + 2 <= s->rows; row += 2)
            stream_score_rows(s, row, from, j, last, dtype, 2);
        for (; row < s->rows; row++)
            stream_score_rows(s, row, from, j, last, dtype, 1);
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
    vec sum = vec_set(0.0f), log2_e = vec_set(0x1.715476p0f);
    for (int64_t j = 0; j < count; j += VEC_WIDTH) {
        vec weight = vec_exp2(vec_mul(vec_sub(vec_load(scores, HONE_F32, j), most), log2_e));
        vec_store(scores, HONE_F32, j, weight);
        sum = vec_add(sum, weight);
    }
    float lanes[VEC_WIDTH];
    vec_store(lanes, HONE_F32, 0, vec_exp2(vec_mul(vec_sub(before, most), log2_e)));
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

// As many whole groups of `vectors` vectors as there are from element x on; the element behind them.
HONE_INLINE int64_t stream_add_groups(
    const stream *s, int64_t row, int64_t from, int64_t count, int64_t x, hone_dtype_id dtype, int rows, int vectors)
{
    for (; x + vectors * VEC_WIDTH <= s->problem->value_dim; x += vectors * VEC_WIDTH)
        stream_add(s, row, from, count, x, dtype, rows, vectors);
    return x;
}

// All elements of `rows` rows' results, in groups of at most `vectors` vectors.
HONE_INLINE void stream_add_rows(
    const stream *s, int64_t row, int64_t from, int64_t count, hone_dtype_id dtype, int rows, int vectors)
{
    int64_t x = 0;
    if (vectors >= 8) x = stream_add_groups(s, row, from, count, x, dtype, rows, 8);
    if (vectors >= 4) x = stream_add_groups(s, row, from, count, x, dtype, rows, 4);
    x = stream_add_groups(s, row, from, count, x, dtype, rows, 2);
    x = stream_add_groups(s, row, from, count, x, dtype, rows, 1);
    if (x < s->problem->value_dim) stream_add(s, row, from, count, x, dtype, rows, 1);
}

// The sums take half of the registers.
HONE_INLINE void stream_values(const stream *s, int64_t from, int64_t count, hone_dtype_id dtype)
{
    int64_t row = 0;
    for (; row + 4 <= s->rows; row += 4)
        stream_add_rows(s, row, from, count, dtype, 4, VEC_TILE / 2);
    for (; row + 2 <= s->rows; row += 2)
        stream_add_rows(s, row, from, count, dtype, 2, VEC_TILE);
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
        if (stream_is_blind(s, i)) {
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
