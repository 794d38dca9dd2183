#include "kernels/matmul/decode.h"

#include "kernels/common/half.h"
#include "kernels/common/scratch.h"

#include <stdatomic.h>

enum { GRANULE = 64 }; // columns and steps of k are divided among workers in multiples of it

typedef struct decode_job {
    const hone_decode_set *set;
    const hone_decode_shape *shape;
    const hone_matmul *product;
    int64_t workers;
    const void *a; // of the product, or widened to floats
    int64_t a_stride;
    char *sums; // sweep: workers x sums_rows x sums_stride when k is split, else m x sums_stride
    int64_t sums_stride;
} decode_job;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t groups(int64_t total)
{
    return (total + GRANULE - 1) / GRANULE;
}

// The start of the share of worker `index` in a range.
static int64_t share_begin(int64_t total, int64_t index, int64_t workers)
{
    return smaller(total, hone_matmul_piece(groups(total), index, workers) * GRANULE);
}

static bool splits_k(const decode_job *job)
{
    return job->shape->split_k && !job->product->transpose_b;
}

static int64_t widened_floats(const decode_job *job)
{
    bool widens = job->set->widens && job->product->dtype != HONE_F32;
    return widens ? job->product->m * groups(job->product->k) * GRANULE : 0;
}

static int64_t sums_size(const decode_job *job, int64_t sums)
{
    return sums * job->set->lane;
}

static int64_t sums_count(const decode_job *job)
{
    if (job->product->transpose_b && !hone_matmul_has_epilogue(job->product)) return 0;
    return job->product->m * job->sums_stride * (splits_k(job) ? job->workers : 1);
}

static size_t scratch_bytes(const decode_job *job)
{
    return (size_t)widened_floats(job) * sizeof(float) + (size_t)sums_size(job, sums_count(job));
}

static void widen_rows(decode_job *job, float *memory)
{
    const hone_matmul *product = job->product;
    job->a = memory;
    job->a_stride = groups(product->k) * GRANULE;
    for (int64_t i = 0; i < product->m; i++) {
        const char *from = (const char *)product->a + i * product->a_stride * hone_element_size(product->dtype);
        job->set->widen(from, memory + i * job->a_stride, product->dtype, product->k);
    }
}

static hone_decode_part whole(const decode_job *job)
{
    const hone_matmul *product = job->product;
    return (hone_decode_part){
        .a = job->a,
        .a_stride = job->a_stride,
        .b = product->b,
        .b_stride = product->b_stride,
        .c = product->c,
        .c_stride = product->c_stride,
        .m = product->m,
        .n = product->n,
        .k = product->k,
        .dtype = product->operands,
        .sums = sums_count(job) > 0 ? job->sums : NULL,
        .sums_stride = job->sums_stride,
        .streams = job->shape->streams,
        .ahead = job->shape->ahead_bytes / hone_element_size(product->operands),
    };
}

static void gather(const decode_job *job, int64_t begin, int64_t end, int64_t parts)
{
    const hone_matmul *product = job->product;
    int64_t size = hone_element_size(product->dtype);
    const bool finishes = hone_matmul_has_epilogue(product);
    for (int64_t i = 0; i < product->m; i++) {
        void *from = job->sums + sums_size(job, i * job->sums_stride + begin);
        void *to = (char *)product->c + (i * product->c_stride + begin) * size;
        int64_t step = product->m * job->sums_stride;
        if (finishes) {
            const hone_dtype_id sum = product->dtype == HONE_F64 ? HONE_F64 : HONE_F32;
            if (parts > 1) job->set->gather(from, step, parts, from, sum, end - begin);
            job->set->finish(product, from, i, begin, end - begin);
        }
        job->set->gather(from, step, finishes ? 1 : parts, to, product->dtype, end - begin);
    }
}

static void work_columns(void *ctx, int64_t index)
{
    const decode_job *job = ctx;
    const hone_matmul *product = job->product;
    const int64_t size = hone_element_size(product->operands), c_size = hone_element_size(product->dtype);
    int64_t begin = share_begin(product->n, index, job->workers),
            end = share_begin(product->n, index + 1, job->workers);
    hone_decode_part part = whole(job);
    part.n = end - begin;
    part.b = (const char *)product->b + begin * (product->transpose_b ? product->b_stride : 1) * size;
    if (product->transpose_b) {
        part.c = (char *)product->c + begin * c_size;
        if (part.sums != NULL) part.sums = job->sums + sums_size(job, begin);
        job->set->dot(&part);
        if (part.sums != NULL) gather(job, begin, end, 1);
    } else {
        part.sums = job->sums + sums_size(job, begin);
        job->set->sweep(&part);
        gather(job, begin, end, 1);
    }
}

static void work_k(void *ctx, int64_t index)
{
    const decode_job *job = ctx;
    const hone_matmul *product = job->product;
    int64_t size = hone_element_size(product->operands), a_size = job->a == product->a ? size : (int64_t)sizeof(float);
    int64_t begin = share_begin(product->k, index, job->workers);
    hone_decode_part part = whole(job);
    part.k = share_begin(product->k, index + 1, job->workers) - begin;
    part.a = (const char *)job->a + begin * a_size;
    part.b = (const char *)product->b + begin * product->b_stride * size;
    part.sums = job->sums + sums_size(job, index * product->m * job->sums_stride);
    job->set->sweep(&part);
}

static decode_job job_of(const hone_decode_set *set, const hone_decode_shape *shape, const hone_matmul *product)
{
    decode_job job = {.set = set, .shape = shape, .product = product, .a = product->a, .a_stride = product->a_stride};
    job.sums_stride = groups(product->n) * GRANULE;
    job.workers = smaller(shape->threads, groups(splits_k(&job) ? product->k : product->n));
    return job;
}

// The number of workers that each compute whole products of a batch, if there is a product for every thread; else 1:
// all threads work on one product.
static int64_t ways(const hone_decode_shape *shape, const hone_matmul *product)
{
    return product->leading > 0 && product->batch >= shape->threads ? shape->threads : 1;
}

static hone_decode_shape shape_of_way(const hone_decode_shape *shape, int64_t count)
{
    hone_decode_shape own = *shape;
    if (count == 1) return own;
    own.threads = 1;
    own.split_k = false;
    return own;
}

size_t hone_decode_scratch(const hone_decode_set *set, const hone_decode_shape *shape, const hone_matmul *product)
{
    if (!hone_matmul_has_terms(product)) return 0;
    const int64_t count = ways(shape, product);
    const hone_decode_shape own = shape_of_way(shape, count);
    decode_job job = job_of(set, &own, product);
    return (size_t)count * scratch_bytes(&job);
}

static void share_out(
    decode_job *job, const hone_plan *plan, const hone_execution *execution, void (*work)(void *ctx, int64_t index))
{
    if (job->workers == 1)
        work(job, 0);
    else
        hone_plan_parallel_for(plan, execution, (int32_t)job->workers, job->workers, work, job);
}

static void multiply_one(decode_job *job, const hone_plan *plan, const hone_execution *execution, void *memory)
{
    if (widened_floats(job)) widen_rows(job, memory);
    job->sums = (char *)memory + widened_floats(job) * (int64_t)sizeof(float);
    if (!splits_k(job)) {
        share_out(job, plan, execution, work_columns);
    } else {
        share_out(job, plan, execution, work_k);
        gather(job, 0, job->product->n, job->workers);
    }
}

// A run of a batch, divided among its ways.
typedef struct decode_batch {
    const hone_decode_set *set;
    const hone_decode_shape *shape; // of a way
    const hone_matmul *product;
    const hone_plan *plan;
    const hone_execution *execution;
    int64_t ways;
    atomic_bool failed;
} decode_batch;

static void work_way(void *ctx, int64_t way)
{
    decode_batch *all = ctx;
    const int64_t batch = hone_matmul_batch(all->product), end = hone_matmul_piece(batch, way + 1, all->ways);
    const decode_job like = job_of(all->set, all->shape, all->product);
    const size_t bytes = scratch_bytes(&like);
    void *memory = bytes ? hone_scratch_piece(all->execution, way, all->ways, bytes) : NULL;
    if (bytes && memory == NULL) {
        atomic_store_explicit(&all->failed, true, memory_order_relaxed);
        return;
    }
    for (int64_t i = hone_matmul_piece(batch, way, all->ways); i < end; i++) {
        hone_matmul one;
        decode_job job = like;
        if (all->product->leading > 0) {
            one = hone_matmul_at(all->product, i);
            job.product = &one;
            job.a = one.a;
        }
        multiply_one(&job, all->plan, all->execution, memory);
    }
}

hone_status hone_decode_run(
    const hone_decode_set *set,
    const hone_decode_shape *shape,
    const hone_matmul *product,
    const hone_plan *plan,
    const hone_execution *execution)
{
    if (hone_matmul_is_done(product)) return HONE_OK;
    const int64_t count = ways(shape, product);
    const hone_decode_shape own = shape_of_way(shape, count);
    decode_batch all = {
        .set = set, .shape = &own, .product = product, .plan = plan, .execution = execution, .ways = count};
    if (count == 1)
        work_way(&all, 0);
    else
        hone_plan_parallel_for(plan, execution, (int32_t)count, count, work_way, &all);
    return atomic_load_explicit(&all.failed, memory_order_relaxed) ? HONE_OUT_OF_MEMORY : HONE_OK;
}
