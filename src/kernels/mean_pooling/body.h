// The kernel over the vectors of the including file. Channels are lanes. A task sums a block of channels, whose sums
// stay in the first-level cache while `rows` rows at a time are read in the order of memory.
#include "kernels/common/scratch.h"
#include "kernels/mean_pooling/mean_pooling.h"

#include <math.h>

// Rows that are summed before they are added to the total: a sum of sums rounds less than one long sum.
enum { POOLING_SPAN = 64 };

typedef struct pooling_job {
    hone_pooling pooling;
    int64_t block, blocks, rows;
    _Atomic bool out_of_memory;
} pooling_job;

// sums += `rows` rows from x on.
HONE_INLINE void add_rows(float *sums, const char *x, int64_t step, int64_t count, hone_dtype_id dtype, int rows)
{
    for (int64_t c = 0; c < count; c += VEC_WIDTH) {
        bool part = count - c < VEC_WIDTH;
        vec sum = vec_load(sums, HONE_F32, c);
        HONE_UNROLL
        for (int r = 0; r < rows; r++) {
            const char *row = x + r * step;
            sum = vec_add(sum, part ? vec_load_part(row, dtype, c, count - c) : vec_load(row, dtype, c));
        }
        vec_store(sums, HONE_F32, c, sum);
    }
}

HONE_INLINE void add_span(
    float *sums, const char *x, int64_t step, int64_t length, int64_t count, hone_dtype_id dtype, int rows)
{
    int64_t i = 0;
    for (; i + rows <= length; i += rows)
        add_rows(sums, x + i * step, step, count, dtype, rows);
    for (; i < length; i++)
        add_rows(sums, x + i * step, step, count, dtype, 1);
}

// total += span, span = 0.
HONE_INLINE void collect(float *total, float *span, int64_t padded)
{
    for (int64_t c = 0; c < padded; c += VEC_WIDTH) {
        vec_store(total, HONE_F32, c, vec_add(vec_load(total, HONE_F32, c), vec_load(span, HONE_F32, c)));
        vec_store(span, HONE_F32, c, vec_set(0.0f));
    }
}

HONE_INLINE void pool(const pooling_job *job, int64_t batch, int64_t channel, float *total, hone_dtype_id dtype)
{
    const hone_pooling *p = &job->pooling;
    int64_t size = hone_element_size(dtype), padded = (job->block + VEC_WIDTH - 1) / VEC_WIDTH * VEC_WIDTH;
    int64_t count = p->channels - channel < job->block ? p->channels - channel : job->block;
    const char *x = p->x + (batch * p->x_batch + channel) * size;
    float *span = total + padded;
    memset(total, 0, (size_t)(2 * padded) * sizeof *total);
    for (int64_t i = 0; i < p->seq_len; i += POOLING_SPAN) {
        int64_t length = p->seq_len - i < POOLING_SPAN ? p->seq_len - i : POOLING_SPAN;
        const char *from = x + i * p->x_step * size;
        switch (job->rows) {
        case 1:
            add_span(span, from, p->x_step * size, length, count, dtype, 1);
            break;
        case 2:
            add_span(span, from, p->x_step * size, length, count, dtype, 2);
            break;
        case 4:
            add_span(span, from, p->x_step * size, length, count, dtype, 4);
            break;
        default:
            add_span(span, from, p->x_step * size, length, count, dtype, 8);
        }
        collect(total, span, padded);
    }
    char *out = p->out + (batch * p->out_batch + channel) * size;
    vec length = vec_set((float)p->seq_len);
    for (int64_t c = 0; c < count; c += VEC_WIDTH)
        vec_store_part(out, dtype, c, count - c, vec_div(vec_load(total, HONE_F32, c), length));
    for (int64_t c = 0; c < count; c++)
        if (!isfinite(total[c])) hone_element_put(out, dtype, c, (float)hone_pooling_mean(p, batch, channel + c));
}

static void run_task(void *ctx, int64_t index)
{
    pooling_job *job = ctx;
    float *memory = hone_scratch_get((size_t)(job->block + VEC_WIDTH) * 2 * sizeof *memory);
    if (!memory) {
        job->out_of_memory = true;
        return;
    }
    int64_t batch = index / job->blocks, channel = index % job->blocks * job->block;
    switch (job->pooling.dtype) {
    case HONE_F32:
        pool(job, batch, channel, memory, HONE_F32);
        break;
    case HONE_BF16:
        pool(job, batch, channel, memory, HONE_BF16);
        break;
    default:
        pool(job, batch, channel, memory, HONE_F16);
    }
}

hone_status VEC_NAME(hone_mean_pooling)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    pooling_job job = {.pooling = hone_pooling_of(args), .rows = plan->config[MEAN_POOLING_ROWS]};
    job.block = plan->config[MEAN_POOLING_CHANNELS];
    if (job.block > job.pooling.channels) job.block = job.pooling.channels;
    if (job.block == 0) return HONE_OK;
    job.blocks = (job.pooling.channels + job.block - 1) / job.block;
    int32_t threads = (int32_t)plan->config[MEAN_POOLING_THREADS];
    hone_plan_parallel_for(plan, execution, threads, job.pooling.batch * job.blocks, run_task, &job);
    return job.out_of_memory ? HONE_OUT_OF_MEMORY : HONE_OK;
}
