// The kernel for few queries: one task for a kv_head, or several with a split of the keys each.
#include "kernels/flash_attention/stream.h"

typedef struct streams_job {
    stream form; // batch and kv_head still open
    int64_t splits;
    float *shared; // of all tasks, when there are splits: they are joined by another thread
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

// The keys of a split: whole vectors, but for the last.
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
    switch (s.problem->dtype) {
    case HONE_F32:
        stream_attend(&s, first, last, HONE_F32);
        if (!job->shared) stream_store(&s, HONE_F32);
        break;
    case HONE_BF16:
        stream_attend(&s, first, last, HONE_BF16);
        if (!job->shared) stream_store(&s, HONE_BF16);
        break;
    default:
        stream_attend(&s, first, last, HONE_F16);
        if (!job->shared) stream_store(&s, HONE_F16);
    }
}

// The stream of a task that has run, as stream_place laid it out.
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
    switch (into.problem->dtype) {
    case HONE_F32:
        stream_store(&into, HONE_F32);
        break;
    case HONE_BF16:
        stream_store(&into, HONE_BF16);
        break;
    default:
        stream_store(&into, HONE_F16);
    }
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
