// The kernel over the vectors of the including file (kernels/vector/*.h), which is compiled for one instruction set.
//
// Exponents are of 2: t = (u - m) * factor, where u = x * sign, m is the largest u of the row, and sign * factor is
// scale * log2 e. sign is a power of two, so u is exact, with the sign of scale, so that the largest u has the largest
// weight. The subtraction comes first: t of the largest element is 0 whatever its size, and no t is above 0. If the
// product were rounded first, as in fma(x, factor, -m * factor), an element of 1e10 would be off by hundreds. A row of
// up to eight vectors stays in registers: one read, one exponential, one write of each element. For longer rows the
// config's method determines the computation:
//   recomputed   maximum; sum of 2^t; 2^t again, times 1 / sum: x is read three times, two exponentials, nothing is
//                stored
//   buffered     2^t is stored as floats (in y, if y holds floats and is not streamed past the caches): one
//                exponential, and instead of the third read of x a write and a read of the buffer
//   online       maximum and sum in one pass, then as recomputed: x is read twice, two exponentials, and a correction
//                per group
// Which is fastest depends on whether a row stays in a cache, and on the cost of an exponential relative to a read, so
// this is measured.
#include "kernels/common/scratch.h"
#include "kernels/softmax/softmax.h"
#include "kernels/vector/arguments.h"
#include "kernels/vector/rows.h"

#include <float.h>
#include <math.h>

enum { SHORT_ROW = 8 }; // vectors

typedef struct softmax {
    hone_rows x, y;
    float sign, factor;
    hone_dtype_id dtype;
    int64_t method, unroll, rows_per_task;
    bool stream;
    _Atomic bool out_of_memory;
} softmax;

typedef struct row {
    const void *x;
    void *y;
    float *buffer; // length floats; y itself if that holds floats
    int64_t length;
    vec sign, factor;
    bool stream;
} row;

// u; lanes after the row's end hold minus infinity, which is never the maximum.
HONE_INLINE vec signed_value(const row *r, hone_dtype_id dtype, int64_t i)
{
    return vec_mul(vec_load(r->x, dtype, i), r->sign);
}

HONE_INLINE vec signed_part(const row *r, hone_dtype_id dtype, int64_t i)
{
    int64_t rest = r->length - i;
    return vec_first(rest, vec_mul(vec_load_part(r->x, dtype, i, rest), r->sign), vec_set(-INFINITY));
}

// 2^t of a difference u - m.
HONE_INLINE vec weight(const row *r, vec difference)
{
    return vec_exp2(vec_mul(difference, r->factor));
}

// The product with sign is exact, so this is u - m, rounded once.
HONE_INLINE vec power(const row *r, hone_dtype_id dtype, int64_t i, vec minus_most)
{
    return weight(r, vec_fma(vec_load(r->x, dtype, i), r->sign, minus_most));
}

// Lanes after the row's end hold 0, which adds nothing to a sum.
HONE_INLINE vec power_part(const row *r, hone_dtype_id dtype, int64_t i, vec minus_most)
{
    int64_t rest = r->length - i;
    vec value = weight(r, vec_fma(vec_load_part(r->x, dtype, i, rest), r->sign, minus_most));
    return vec_first(rest, value, vec_set(0.0f));
}

HONE_INLINE float highest(const row *r, hone_dtype_id dtype, int unroll)
{
    vec most[8];
    HONE_UNROLL
    for (int u = 0; u < unroll; u++)
        most[u] = vec_set(-INFINITY);
    int64_t i = 0;
    for (; i + unroll * VEC_WIDTH <= r->length; i += unroll * VEC_WIDTH) {
        HONE_UNROLL
        for (int u = 0; u < unroll; u++)
            most[u] = vec_max(most[u], signed_value(r, dtype, i + u * VEC_WIDTH));
    }
    for (; i < r->length; i += VEC_WIDTH)
        most[0] = vec_max(most[0], signed_part(r, dtype, i));
    HONE_UNROLL
    for (int u = 1; u < unroll; u++)
        most[0] = vec_max(most[0], most[u]);
    return vec_highest(most[0]);
}

// The sum of the exponentials, which are stored in the buffer if there is one.
HONE_INLINE float sum_of_powers(const row *r, hone_dtype_id dtype, float most, int unroll, bool keep)
{
    vec sums[8], minus_most = vec_set(-most);
    HONE_UNROLL
    for (int u = 0; u < unroll; u++)
        sums[u] = vec_set(0.0f);
    int64_t i = 0;
    for (; i + unroll * VEC_WIDTH <= r->length; i += unroll * VEC_WIDTH) {
        HONE_UNROLL
        for (int u = 0; u < unroll; u++) {
            vec value = power(r, dtype, i + u * VEC_WIDTH, minus_most);
            if (keep) vec_store(r->buffer, HONE_F32, i + u * VEC_WIDTH, value);
            sums[u] = vec_add(sums[u], value);
        }
    }
    for (; i < r->length; i += VEC_WIDTH) {
        vec value = power_part(r, dtype, i, minus_most);
        if (keep) vec_store_part(r->buffer, HONE_F32, i, r->length - i, value);
        sums[0] = vec_add(sums[0], value);
    }
    HONE_UNROLL
    for (int u = 1; u < unroll; u++)
        sums[0] = vec_add(sums[0], sums[u]);
    return vec_sum(sums[0]);
}

// Adds a group of vectors from i on. If it is not whole, its last vector may be partial or missing.
HONE_INLINE void add_group(const row *r, hone_dtype_id dtype, int64_t i, int unroll, bool whole, vec *most, vec *sum)
{
    vec group[8], top = *most;
    HONE_UNROLL
    for (int u = 0; u < unroll; u++) {
        int64_t at = i + u * VEC_WIDTH;
        if (whole)
            group[u] = signed_value(r, dtype, at);
        else
            group[u] = at < r->length ? signed_part(r, dtype, at) : vec_set(-INFINITY);
        top = vec_max(top, group[u]);
    }
    *sum = vec_mul(*sum, weight(r, vec_sub(*most, top)));
    HONE_UNROLL
    for (int u = 0; u < unroll; u++) {
        vec value = weight(r, vec_sub(group[u], top));
        if (!whole) value = vec_first(r->length - i - u * VEC_WIDTH, value, vec_set(0.0f));
        *sum = vec_add(*sum, value);
    }
    *most = top;
}

// Maximum and sum in one pass (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). Invariant:
// after a group, *sum = sum of 2^((u - *most) * factor) over the elements that the lane has processed; a larger maximum
// scales the sum so far by 2^((old - new) * factor). Each lane has its own maximum and sum, so nothing crosses lanes
// until the end, and a group of vectors shares one correction. The first maximum is the lowest finite u: so minus
// infinity is never subtracted from itself, and an infinite difference is never multiplied by a factor of 0.
HONE_INLINE float sum_online(const row *r, hone_dtype_id dtype, int unroll, float *out_most)
{
    vec sum = vec_set(0.0f), most = vec_mul(vec_set(-FLT_MAX), vec_max(r->sign, vec_sub(sum, r->sign)));
    int64_t i = 0;
    for (; i + unroll * VEC_WIDTH <= r->length; i += unroll * VEC_WIDTH)
        add_group(r, dtype, i, unroll, true, &most, &sum);
    if (i < r->length) add_group(r, dtype, i, unroll, false, &most, &sum);
    *out_most = vec_highest(most);
    return vec_sum(vec_mul(sum, weight(r, vec_sub(most, vec_set(*out_most)))));
}

HONE_INLINE void put(const row *r, hone_dtype_id dtype, int64_t i, vec value)
{
    if (r->stream)
        vec_stream(r->y, dtype, i, value);
    else
        vec_store(r->y, dtype, i, value);
}

HONE_INLINE void multiply_powers(const row *r, hone_dtype_id dtype, float most, float sum, int unroll)
{
    vec minus_most = vec_set(-most), scale = vec_set(1.0f / sum);
    int64_t i = 0;
    for (; i + unroll * VEC_WIDTH <= r->length; i += unroll * VEC_WIDTH) {
        HONE_UNROLL
        for (int u = 0; u < unroll; u++) {
            int64_t at = i + u * VEC_WIDTH;
            put(r, dtype, at, vec_mul(power(r, dtype, at, minus_most), scale));
        }
    }
    for (; i < r->length; i += VEC_WIDTH)
        vec_store_part(r->y, dtype, i, r->length - i, vec_mul(power_part(r, dtype, i, minus_most), scale));
}

HONE_INLINE void multiply_buffer(const row *r, hone_dtype_id dtype, float sum, int unroll)
{
    vec scale = vec_set(1.0f / sum);
    int64_t i = 0;
    for (; i + unroll * VEC_WIDTH <= r->length; i += unroll * VEC_WIDTH) {
        HONE_UNROLL
        for (int u = 0; u < unroll; u++) {
            int64_t at = i + u * VEC_WIDTH;
            put(r, dtype, at, vec_mul(vec_load(r->buffer, HONE_F32, at), scale));
        }
    }
    for (; i < r->length; i += VEC_WIDTH) {
        int64_t rest = r->length - i;
        vec_store_part(r->y, dtype, i, rest, vec_mul(vec_load_part(r->buffer, HONE_F32, i, rest), scale));
    }
}

HONE_INLINE void long_row(const row *r, hone_dtype_id dtype, int64_t method, int unroll)
{
    float most, sum;
    if (method == SOFTMAX_ONLINE) {
        sum = sum_online(r, dtype, unroll, &most);
    } else {
        most = highest(r, dtype, unroll);
        if (method == SOFTMAX_BUFFERED) {
            multiply_buffer(r, dtype, sum_of_powers(r, dtype, most, unroll, true), unroll);
            return;
        }
        sum = sum_of_powers(r, dtype, most, unroll, false);
    }
    multiply_powers(r, dtype, most, sum, unroll);
}

// A row of `vectors` vectors, the last of which may be partial.
HONE_INLINE void short_row(const row *r, hone_dtype_id dtype, int vectors)
{
    vec values[SHORT_ROW], zero = vec_set(0.0f);
    HONE_UNROLL
    for (int i = 0; i + 1 < vectors; i++)
        values[i] = signed_value(r, dtype, i * VEC_WIDTH);
    int64_t tail = (vectors - 1) * VEC_WIDTH;
    values[vectors - 1] = signed_part(r, dtype, tail);
    vec most = values[0];
    HONE_UNROLL
    for (int i = 1; i < vectors; i++)
        most = vec_max(most, values[i]);
    vec sum = zero;
    most = vec_set(vec_highest(most));
    HONE_UNROLL
    for (int i = 0; i < vectors; i++) {
        values[i] = weight(r, vec_sub(values[i], most));
        if (i == vectors - 1) values[i] = vec_first(r->length - tail, values[i], zero);
        sum = vec_add(sum, values[i]);
    }
    vec scale = vec_set(1.0f / vec_sum(sum));
    HONE_UNROLL
    for (int i = 0; i + 1 < vectors; i++)
        vec_store(r->y, dtype, i * VEC_WIDTH, vec_mul(values[i], scale));
    vec_store_part(r->y, dtype, tail, r->length - tail, vec_mul(values[vectors - 1], scale));
}

HONE_INLINE void normalise(const softmax *job, const row *r, hone_dtype_id dtype)
{
    switch ((r->length + VEC_WIDTH - 1) / VEC_WIDTH) {
    case 1:
        short_row(r, dtype, 1);
        return;
    case 2:
        short_row(r, dtype, 2);
        return;
    case 3:
        short_row(r, dtype, 3);
        return;
    case 4:
        short_row(r, dtype, 4);
        return;
    case 5:
        short_row(r, dtype, 5);
        return;
    case 6:
        short_row(r, dtype, 6);
        return;
    case 7:
        short_row(r, dtype, 7);
        return;
    case 8:
        short_row(r, dtype, 8);
        return;
    default:
        break;
    }
    switch (job->unroll) {
    case 1:
        long_row(r, dtype, job->method, 1);
        break;
    case 2:
        long_row(r, dtype, job->method, 2);
        break;
    default:
        long_row(r, dtype, job->method, 4);
    }
}

HONE_INLINE void normalise_range(const softmax *job, int64_t first, int64_t last, float *buffer, hone_dtype_id dtype)
{
    int64_t size = hone_element_size(dtype);
    for (int64_t i = first; i < last; i++) {
        row r = {.length = job->x.length, .sign = vec_set(job->sign), .factor = vec_set(job->factor)};
        r.x = job->x.data + hone_rows_offset(&job->x, i) * size;
        r.y = job->y.data + hone_rows_offset(&job->y, i) * size;
        r.stream = job->stream && (uintptr_t)r.y % (uintptr_t)(VEC_WIDTH * size) == 0;
        r.buffer = buffer ? buffer : r.y;
        normalise(job, &r, dtype);
    }
}

static void run_task(void *ctx, int64_t index)
{
    softmax *job = ctx;
    int64_t first = index * job->rows_per_task, last = first + job->rows_per_task;
    if (last > job->x.count) last = job->x.count;
    float *buffer = NULL;
    bool own_buffer = job->stream || job->dtype != HONE_F32;
    if (job->method == SOFTMAX_BUFFERED && own_buffer && job->x.length > SHORT_ROW * VEC_WIDTH) {
        buffer = hone_scratch_get((size_t)job->x.length * sizeof *buffer);
        if (!buffer) {
            job->out_of_memory = true;
            return;
        }
    }
    switch (job->dtype) {
    case HONE_F32:
        normalise_range(job, first, last, buffer, HONE_F32);
        break;
    case HONE_BF16:
        normalise_range(job, first, last, buffer, HONE_BF16);
        break;
    default:
        normalise_range(job, first, last, buffer, HONE_F16);
    }
    if (job->stream) vec_stream_end();
}

// If factor is so small that even the smallest elements of a row have weights other than 0, differences must not become
// infinite: with sign .5 they do not. If factor is larger, 2 to minus infinity is the correct weight.
static void set_scale(softmax *job, double scale)
{
    double factor = fabs(scale) * 1.4426950408889634, sign = factor < 0x1p-120 ? 0.5 : 1;
    job->sign = (float)(scale < 0 ? -sign : sign);
    job->factor = (float)(factor / sign);
}

hone_status VEC_NAME(hone_softmax)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const int64_t *config = plan->config;
    softmax job = {
        .x = hone_rows_of(args[SOFTMAX_X].as.tensor),
        .y = hone_rows_of(args[SOFTMAX_Y].as.tensor),
        .dtype = hone_float_id(args[SOFTMAX_X].as.tensor->dtype),
        .method = config[SOFTMAX_METHOD],
        .unroll = config[SOFTMAX_UNROLL],
        .rows_per_task = config[SOFTMAX_ROWS_PER_TASK],
        .stream = config[SOFTMAX_STORE] == 1,
    };
    if (job.x.length == 0) return HONE_OK;
    set_scale(&job, hone_number_of(&hone_call_values(plan->call)[SOFTMAX_SCALE], 1.0));
    int64_t tasks = (job.x.count + job.rows_per_task - 1) / job.rows_per_task;
    hone_plan_parallel_for(plan, execution, (int32_t)config[SOFTMAX_THREADS], tasks, run_task, &job);
    return job.out_of_memory ? HONE_OUT_OF_MEMORY : HONE_OK;
}
