// The kernel for few queries: one task for a kv_head, or several, each with a split of the keys. Also the steps of a
// stream, compiled only here: attention and dot_product_attention call them.
#include "kernels/flash_attention/stream.h"

// Steps ---------------------------------------------------------------------------------------------------------------

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

void VEC_NAME(hone_stream_load_queries)(const stream *s)
{
    switch (s->problem->dtype) {
    case HONE_F32:
        stream_load_queries(s, HONE_F32);
        break;
    case HONE_BF16:
        stream_load_queries(s, HONE_BF16);
        break;
    default:
        stream_load_queries(s, HONE_F16);
    }
}

HONE_INLINE void prefetch_bytes(const char *from, int64_t size)
{
    for (int64_t i = 0; i < size; i += 64)
        __builtin_prefetch(from + i);
}

// VEC_WIDTH products, of VEC_WIDTH / rows keys, `step` bytes apart, with `rows` rows: the lane of a product is key *
// rows + row. Handles four keys at a time, as many as there are registers for their addresses.
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

// Logits of `rows` rows and the keys [j, last) of a block. An incomplete group starts earlier and computes some logits
// again; if there are too few keys for one group, they are computed one by one.
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

// Logits of all rows and keys [from, from + count), one vector width of keys after another, so that all rows find the
// keys in the first-level cache.
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

void VEC_NAME(hone_stream_scores)(const stream *s, int64_t from, int64_t count)
{
    switch (s->problem->dtype) {
    case HONE_F32:
        stream_scores(s, from, count, HONE_F32);
        break;
    case HONE_BF16:
        stream_scores(s, from, count, HONE_BF16);
        break;
    default:
        stream_scores(s, from, count, HONE_F16);
    }
}

// Writes minus infinity where a row sees no key, and up to a whole vector.
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

// Converts the logits of a row to weights.
void VEC_NAME(hone_stream_weigh)(const stream *s, int64_t row, int64_t from, int64_t count)
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

// Adds as many whole groups of `vectors` vectors as remain from element x on; returns the next element.
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

void VEC_NAME(hone_stream_values)(const stream *s, int64_t from, int64_t count)
{
    switch (s->problem->dtype) {
    case HONE_F32:
        stream_values(s, from, count, HONE_F32);
        break;
    case HONE_BF16:
        stream_values(s, from, count, HONE_BF16);
        break;
    default:
        stream_values(s, from, count, HONE_F16);
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

void VEC_NAME(hone_stream_store)(const stream *s)
{
    switch (s->problem->dtype) {
    case HONE_F32:
        stream_store(s, HONE_F32);
        break;
    case HONE_BF16:
        stream_store(s, HONE_BF16);
        break;
    default:
        stream_store(s, HONE_F16);
    }
}

// Tasks ---------------------------------------------------------------------------------------------------------------

// The keys [from, last).
static void stream_attend(const stream *s, int64_t from, int64_t last)
{
    VEC_NAME(hone_stream_load_queries)(s);
    for (; from < last; from += s->block) {
        int64_t count = last - from < s->block ? last - from : s->block;
        VEC_NAME(hone_stream_scores)(s, from, count);
        for (int64_t row = 0; row < s->rows; row++)
            VEC_NAME(hone_stream_weigh)(s, row, from, count);
        VEC_NAME(hone_stream_values)(s, from, count);
    }
}

typedef struct streams_job {
    stream form; // batch and kv_head are not set yet
    int64_t splits;
    float *shared; // of all tasks, if there are splits: another thread joins them
    int64_t piece; // floats of a task
    _Atomic bool out_of_memory;
} streams_job;

static stream streams_part(const streams_job *job, int64_t index)
{
    stream s = job->form;
    int64_t head = index / job->splits;
    s.batch = head / s.problem->kv_heads;
    s.kv_head = head % s.problem->kv_heads;
    return s;
}

// The keys of a split: whole vectors, except in the last split.
static void split_range(const streams_job *job, const stream *s, int64_t split, int64_t *out_first, int64_t *out_last)
{
    int64_t first, last;
    stream_range(s, &first, &last);
    int64_t step = (last - first + job->splits - 1) / job->splits;
    step = (step + VEC_WIDTH - 1) / VEC_WIDTH * VEC_WIDTH;
    *out_first = first + split * step < last ? first + split * step : last;
    *out_last = *out_first + step < last ? *out_first + step : last;
}

static void streams_task(void *ctx, int64_t index)
{
    streams_job *job = ctx;
    stream s = streams_part(job, index);
    float *memory =
        job->shared ? job->shared + index * job->piece : hone_scratch_get((size_t)job->piece * sizeof(float));
    if (!memory) {
        job->out_of_memory = true;
        return;
    }
    stream_place(&s, memory);
    int64_t first, last;
    split_range(job, &s, index % job->splits, &first, &last);
    stream_attend(&s, first, last);
    if (!job->shared) VEC_NAME(hone_stream_store)(&s);
}

// The stream of a finished task, as stream_place laid it out.
static stream streams_done(const streams_job *job, int64_t index)
{
    stream s = streams_part(job, index);
    float *memory = job->shared + index * job->piece;
    s.out = memory + s.rows * s.dim_padded;
    s.scores = s.out + s.rows * s.value_padded;
    s.most = s.scores + s.rows * s.block;
    s.sum = s.most + s.rows;
    return s;
}

// Adds one split's row to the first's.
static void join_row(const stream *into, const stream *from, int64_t row)
{
    float most = into->most[row] > from->most[row] ? into->most[row] : from->most[row];
    float a = expf(into->most[row] - most), b = expf(from->most[row] - most);
    into->most[row] = most;
    into->sum[row] = into->sum[row] * a + from->sum[row] * b;
    for (int64_t x = row * into->value_padded; x < (row + 1) * into->value_padded; x++)
        into->out[x] = into->out[x] * a + from->out[x] * b;
}

static void join_splits(void *ctx, int64_t head)
{
    const streams_job *job = ctx;
    stream into = streams_done(job, head * job->splits);
    for (int64_t split = 1; split < job->splits; split++) {
        stream from = streams_done(job, head * job->splits + split);
        for (int64_t row = 0; row < into.rows; row++)
            join_row(&into, &from, row);
    }
    VEC_NAME(hone_stream_store)(&into);
}

hone_status VEC_NAME(hone_attention_stream)(
    const hone_attention *problem, const hone_plan *plan, const hone_execution *execution)
{
    const int64_t *config = plan->config;
    streams_job job = {
        .form = {.problem = problem, .rows = problem->q_len * problem->group}, .splits = config[STREAM_SPLITS]};
    job.form.block = config[STREAM_BLOCK_KV];
    job.form.prefetch = config[STREAM_PREFETCH];
    stream_sizes(&job.form);
    job.piece = (stream_floats(&job.form) + 15) / 16 * 16;
    int64_t heads = problem->batch * problem->kv_heads, tasks = heads * job.splits;
    int32_t threads = (int32_t)config[STREAM_THREADS];
    if (job.splits > 1 && !(job.shared = hone_scratch_get((size_t)(tasks * job.piece) * sizeof(float))))
        return HONE_OUT_OF_MEMORY;
    hone_plan_parallel_for(plan, execution, threads, tasks, streams_task, &job);
    if (job.splits > 1) hone_plan_parallel_for(plan, execution, threads, heads, join_splits, &job);
    return job.out_of_memory ? HONE_OUT_OF_MEMORY : HONE_OK;
}
