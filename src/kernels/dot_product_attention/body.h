// The kernel over the vectors of the including file: a few queries of a kv_head at a time, with all their logits at
// once, so that bias and mask are read once, row by row.
#include "kernels/dot_product_attention/biased.h"
#include "kernels/flash_attention/stream.h"

enum { BIASED_MAX_ROWS = 16 };

typedef struct biased_job {
    const hone_biased *problem;
    stream form;          // batch, kv_head and first_row are not set yet
    int64_t rows, blocks; // queries of a kv_head, and tasks of it
    _Atomic bool out_of_memory;
} biased_job;

// A row of a task.
typedef struct biased_row {
    int64_t index, head, position;
    float *scores; // of the keys from `first` on
    int64_t first, last;
} biased_row;

// Scores are divided by the cap already, so a bias that is added before it is divided too.
HONE_INLINE void add_bias(const biased_job *job, const stream *s, const biased_row *r)
{
    const hone_biased_array *bias = &job->problem->bias;
    const vec share = vec_set(s->problem->has_cap && !job->problem->has_weights ? 1.0f / s->cap : 1.0f);
    const int64_t at = hone_biased_at(bias, s->batch, r->head, r->position, r->first), count = r->last - r->first;
    const vec one = vec_set(hone_element_get(bias->data, bias->dtype, at));
    for (int64_t j = 0; j < count; j += VEC_WIDTH) {
        const int64_t part = count - j < VEC_WIDTH ? count - j : VEC_WIDTH;
        const vec value = bias->key == 0 ? one : vec_load_part(bias->data, bias->dtype, at + j, part);
        vec_store(r->scores, HONE_F32, j, vec_fma(value, share, vec_load(r->scores, HONE_F32, j)));
    }
}

HONE_INLINE void cap_scores(const stream *s, const biased_row *r)
{
    for (int64_t j = 0; j < r->last - r->first; j += VEC_WIDTH)
        vec_store(r->scores, HONE_F32, j, vec_mul(vec_tanh(vec_load(r->scores, HONE_F32, j)), vec_set(s->cap)));
}

// Writes minus infinity where the query sees no key, and up to a whole vector. Returns whether it sees any key.
static bool mask_scores(const biased_job *job, const stream *s, const biased_row *r)
{
    const hone_biased *b = job->problem;
    const int64_t count = r->last - r->first, padded = (count + VEC_WIDTH - 1) / VEC_WIDTH * VEC_WIDTH;
    int64_t first, last;
    bool any = false;
    hone_biased_range(b, r->position, &first, &last);
    const bool plain = b->mask.data == NULL && (b->q_segments.data == NULL || b->kv_segments.data == NULL);
    for (int64_t j = 0; j < padded; j++) {
        const int64_t key = r->first + j;
        const bool seen = j < count && key >= first && key < last &&
                          (plain || hone_biased_sees(b, s->batch, r->head, r->position, key));
        if (!seen) r->scores[j] = -INFINITY;
        any |= seen;
    }
    return any;
}

HONE_INLINE void weigh_scores(const stream *s, const biased_row *r)
{
    const vec log2_e = vec_set(0x1.715476p0f);
    const int64_t count = r->last - r->first;
    vec most = vec_set(STREAM_LOWEST), sum = vec_set(0.0f);
    for (int64_t j = 0; j < count; j += VEC_WIDTH)
        most = vec_max(most, vec_load(r->scores, HONE_F32, j));
    most = vec_set(vec_highest(most));
    for (int64_t j = 0; j < count; j += VEC_WIDTH) {
        vec weight = vec_exp2(vec_mul(vec_sub(vec_load(r->scores, HONE_F32, j), most), log2_e));
        vec_store(r->scores, HONE_F32, j, weight);
        sum = vec_add(sum, weight);
    }
    s->sum[r->index] = vec_sum(sum);
}

// Writes the weights of a row: its scores divided by their sum, and zeros for the keys that no row sees. A row that
// sees no key has equal weights.
HONE_INLINE void put_weights_as(
    const biased_job *job, const stream *s, const biased_row *r, bool blind, hone_dtype_id dtype)
{
    const hone_attention *p = s->problem;
    const bool is_void = hone_biased_is_void(job->problem, s->batch, r->position);
    char *out = hone_attention_at(&p->weights, hone_element_size(dtype), s->batch, r->position, r->head);
    const vec share = vec_set(blind || is_void ? 0.0f : 1.0f / s->sum[r->index]);
    const vec other = vec_set(blind && !is_void ? 1.0f / (float)p->kv_len : 0.0f);
    const int64_t first = blind || is_void ? p->kv_len : r->first, last = blind || is_void ? p->kv_len : r->last;
    for (int64_t j = 0; j < first; j += VEC_WIDTH)
        vec_store_part(out, dtype, j, first - j < VEC_WIDTH ? first - j : VEC_WIDTH, other);
    for (int64_t j = 0; j < last - first; j += VEC_WIDTH) {
        const int64_t part = last - first - j < VEC_WIDTH ? last - first - j : VEC_WIDTH;
        vec_store_part(out, dtype, first + j, part, vec_mul(vec_load(r->scores, HONE_F32, j), share));
    }
    for (int64_t j = last; j < p->kv_len; j += VEC_WIDTH)
        vec_store_part(out, dtype, j, p->kv_len - j < VEC_WIDTH ? p->kv_len - j : VEC_WIDTH, other);
}

static void put_weights(const biased_job *job, const stream *s, const biased_row *r, bool blind)
{
    switch (s->problem->dtype) {
    case HONE_F32:
        put_weights_as(job, s, r, blind, HONE_F32);
        break;
    case HONE_BF16:
        put_weights_as(job, s, r, blind, HONE_BF16);
        break;
    default:
        put_weights_as(job, s, r, blind, HONE_F16);
    }
}

// The keys that some row sees, by its causal mask and window.
static void keys_of(const biased_job *job, const stream *s, int64_t *out_first, int64_t *out_last)
{
    *out_first = s->problem->kv_len;
    *out_last = 0;
    for (int64_t i = 0; i < s->rows; i++) {
        int64_t first, last;
        hone_biased_range(job->problem, stream_position(s, i), &first, &last);
        if (first == last) continue;
        if (first < *out_first) *out_first = first;
        if (last > *out_last) *out_last = last;
    }
    if (*out_first > *out_last) *out_first = *out_last;
}

static void put_zeros(const stream *s, int64_t row)
{
    const hone_attention *p = s->problem;
    const hone_dtype_id dtype = p->dtype;
    char *out =
        hone_attention_at(&p->out, hone_element_size(dtype), s->batch, stream_position(s, row), stream_head(s, row));
    for (int64_t x = 0; x < p->value_dim; x++)
        hone_element_put(out, dtype, x, 0);
}

static void attend_rows(const biased_job *job, const stream *s)
{
    int64_t first, last;
    bool blind[BIASED_MAX_ROWS];
    keys_of(job, s, &first, &last);
    VEC_NAME(hone_stream_load_queries)(s);
    VEC_NAME(hone_stream_scores)(s, first, last - first);
    for (int64_t i = 0; i < s->rows; i++) {
        const biased_row r = {i, stream_head(s, i), stream_position(s, i), s->scores + i * s->block, first, last};
        s->factor[i] = 1;
        const bool biased = job->problem->bias.data != NULL && last > first, late = job->problem->has_weights;
        if (biased && !late) add_bias(job, s, &r);
        if (s->problem->has_cap) cap_scores(s, &r);
        if (biased && late) add_bias(job, s, &r);
        blind[i] = !mask_scores(job, s, &r);
        weigh_scores(s, &r);
        if (job->problem->has_weights) put_weights(job, s, &r, blind[i]);
    }
    VEC_NAME(hone_stream_values)(s, first, last - first);
    VEC_NAME(hone_stream_store)(s);
    for (int64_t i = 0; i < s->rows; i++) {
        if (blind[i]) hone_attention_mean(s->problem, s->batch, s->kv_head, s->first_row + i);
        if (hone_biased_is_void(job->problem, s->batch, stream_position(s, i))) put_zeros(s, i);
    }
}

static void biased_task(void *ctx, int64_t index)
{
    biased_job *job = ctx;
    stream s = job->form;
    int64_t head = index / job->blocks;
    s.batch = head / s.problem->kv_heads;
    s.kv_head = head % s.problem->kv_heads;
    s.first_row = index % job->blocks * s.rows;
    if (s.first_row + s.rows > job->rows) s.rows = job->rows - s.first_row;
    float *memory = hone_scratch_get((size_t)stream_floats(&s) * sizeof(float));
    if (!memory) {
        job->out_of_memory = true;
        return;
    }
    stream_place(&s, memory);
    attend_rows(job, &s);
}

hone_status VEC_NAME(hone_biased)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_biased problem = hone_biased_of(plan, args);
    const hone_attention *p = &problem.attention;
    biased_job job = {.problem = &problem, .form = {.problem = p}, .rows = p->q_len * p->group};
    job.form.rows = plan->config[BIASED_ROWS];
    job.form.block = (p->kv_len + VEC_WIDTH - 1) / VEC_WIDTH * VEC_WIDTH;
    stream_sizes(&job.form);
    job.blocks = (job.rows + job.form.rows - 1) / job.form.rows;
    int64_t tasks = p->batch * p->kv_heads * job.blocks;
    hone_plan_parallel_for(plan, execution, (int32_t)plan->config[BIASED_THREADS], tasks, biased_task, &job);
    return job.out_of_memory ? HONE_OUT_OF_MEMORY : HONE_OK;
}
