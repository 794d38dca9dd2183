// The kernel over the vectors of the including file: a few queries of a kv_head at a time, with all their logits at
// once, because the weights that are returned must be the final ones.
#include "kernels/attention/attention.h"
#include "kernels/flash_attention/stream.h"

typedef struct weights_job {
    stream form;          // batch, kv_head and first_row are not set yet
    int64_t rows, blocks; // queries of a kv_head, and tasks of it
    _Atomic bool out_of_memory;
} weights_job;

// Writes the weights of the keys that the row sees, which are in its scores from key `from` on, and zeros for the
// others. A query that sees no key has equal weights for all keys.
HONE_INLINE void put_weights_as(const stream *s, int64_t row, int64_t from, hone_dtype_id dtype)
{
    const hone_attention *p = s->problem;
    char *out = hone_attention_at(
        &p->weights, hone_element_size(dtype), s->batch, stream_position(s, row), stream_head(s, row));
    int64_t first, last;
    hone_attention_range(p, stream_position(s, row), &first, &last);
    bool blind = first == last;
    const float *weights = s->scores + row * s->block + (blind ? 0 : first - from);
    vec other = vec_set(blind ? 1.0f / (float)p->kv_len : 0.0f);
    for (int64_t j = 0; j < first; j += VEC_WIDTH)
        vec_store_part(out, dtype, j, first - j, other);
    for (int64_t j = 0; j < last - first; j += VEC_WIDTH)
        vec_store_part(out, dtype, first + j, last - first - j, vec_load_part(weights, HONE_F32, j, last - first - j));
    for (int64_t j = last; j < p->kv_len; j += VEC_WIDTH)
        vec_store_part(out, dtype, j, p->kv_len - j, other);
}

static void put_weights(const stream *s, int64_t row, int64_t from)
{
    switch (s->problem->dtype) {
    case HONE_F32:
        put_weights_as(s, row, from, HONE_F32);
        break;
    case HONE_BF16:
        put_weights_as(s, row, from, HONE_BF16);
        break;
    default:
        put_weights_as(s, row, from, HONE_F16);
    }
}

HONE_INLINE void normalise_weights(const stream *s, int64_t row, int64_t count)
{
    if (stream_is_blind(s, row)) return;
    float *weights = s->scores + row * s->block;
    vec share = vec_set(1.0f / s->sum[row]);
    for (int64_t j = 0; j < count; j += VEC_WIDTH)
        vec_store(weights, HONE_F32, j, vec_mul(share, vec_load(weights, HONE_F32, j)));
    s->sum[row] = 1;
}

static void weigh_and_add(const stream *s)
{
    int64_t first, last;
    stream_range(s, &first, &last);
    VEC_NAME(hone_stream_load_queries)(s);
    VEC_NAME(hone_stream_scores)(s, first, last - first);
    for (int64_t row = 0; row < s->rows; row++) {
        VEC_NAME(hone_stream_weigh)(s, row, first, last - first);
        normalise_weights(s, row, last - first);
        put_weights(s, row, first);
    }
    VEC_NAME(hone_stream_values)(s, first, last - first);
    VEC_NAME(hone_stream_store)(s);
}

static void weights_task(void *ctx, int64_t index)
{
    weights_job *job = ctx;
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
    weigh_and_add(&s);
}

hone_status VEC_NAME(hone_attention_weights)(
    const hone_attention *problem, const hone_plan *plan, const hone_execution *execution)
{
    weights_job job = {.form = {.problem = problem}, .rows = problem->q_len * problem->group};
    job.form.rows = plan->config[ATTENTION_ROWS];
    job.form.block = (problem->kv_len + VEC_WIDTH - 1) / VEC_WIDTH * VEC_WIDTH;
    stream_sizes(&job.form);
    job.blocks = (job.rows + job.form.rows - 1) / job.form.rows;
    int64_t tasks = problem->batch * problem->kv_heads * job.blocks;
    hone_plan_parallel_for(plan, execution, (int32_t)plan->config[ATTENTION_THREADS], tasks, weights_task, &job);
    return job.out_of_memory ? HONE_OUT_OF_MEMORY : HONE_OK;
}
