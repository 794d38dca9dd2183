// Attention for few queries, over the vectors of the including file: each key and value is read once, in vectors along
// its elements, and is used for all rows (queries of its kv_head) from registers and the first-level cache.
//
// A block of keys gives its logits, these become weights, and the block's values are added up: the online softmax. Long
// sequences can be split over threads; each split keeps its own maximum, sum and result, which are joined at the end:
// with most = max of the splits' maxima, sum = sum of sum_i exp(most_i - most), and out likewise ("Flash-Decoding", Dao
// et al., 2023). With few queries the bytes of K and V bound the time, so each is read once and prefetched `prefetch`
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

// Assigns the stream its memory, stream_floats of it, and an empty softmax.
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

// The steps of a stream: they are in streams.h, compiled once for an instruction set.

// Loads the rows of the query, scaled.
void VEC_NAME(hone_stream_load_queries)(const stream *s);
// Computes the logits of all rows and keys [from, from + count).
void VEC_NAME(hone_stream_scores)(const stream *s, int64_t from, int64_t count);
// Converts the logits of a row to weights.
void VEC_NAME(hone_stream_weigh)(const stream *s, int64_t row, int64_t from, int64_t count);
// Adds the weighted values of keys [from, from + count).
void VEC_NAME(hone_stream_values)(const stream *s, int64_t from, int64_t count);
// Divides by the sums and stores the results; a row that sees no key has the mean of all values.
void VEC_NAME(hone_stream_store)(const stream *s);
