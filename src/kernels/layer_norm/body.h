// The kernel over the vectors of the including file (kernels/vector/*.h), which is compiled for one instruction set.
//
// Two passes over a row, which stays in the first-level cache between them. The first sums the squares around the mean
// of the row's first elements, and the error of that mean; the mean is then that float and a rest. The second computes
// the products. If the error is larger than the spread of the row, the variance would be a difference of two large
// squares: the squares are then summed again around the mean. A row that exceeds the range of floats is computed in
// double. Weight and bias are converted to floats once per run.
#include "kernels/common/scratch.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/vector/arguments.h"
#include "kernels/vector/rows.h"

#include <float.h>
#include <math.h>

// Below this, the squares of elements may have been too small for floats.
#define LEAST_SQUARE 0x1p-80f
// The largest squared error of the first mean, relative to the variance: this loses two bits of the variance.
#define MOST_OFF 3.0f

enum { UNROLL = 4 };

typedef struct norm {
    hone_layer_norm of;
    const float *weight, *bias;
    int64_t rows_per_task;
} norm;

HONE_INLINE vec load_rest(const void *x, hone_dtype_id dtype, int64_t i, int64_t length)
{
    return length - i < VEC_WIDTH ? vec_load_part(x, dtype, i, length - i) : vec_load(x, dtype, i);
}

HONE_INLINE float sum_of(const void *x, hone_dtype_id dtype, int64_t length)
{
    vec sums[UNROLL];
    for (int u = 0; u < UNROLL; u++)
        sums[u] = vec_set(0.0f);
    int64_t i = 0;
    for (; i + UNROLL * VEC_WIDTH <= length; i += UNROLL * VEC_WIDTH) {
        HONE_UNROLL
        for (int u = 0; u < UNROLL; u += 2) {
            vec two[2];
            vec_load_two(x, dtype, i + u * VEC_WIDTH, two);
            sums[u] = vec_add(sums[u], two[0]);
            sums[u + 1] = vec_add(sums[u + 1], two[1]);
        }
    }
    for (; i < length; i += VEC_WIDTH)
        sums[0] = vec_add(sums[0], load_rest(x, dtype, i, length));
    return vec_sum(vec_add(vec_add(sums[0], sums[1]), vec_add(sums[2], sums[3])));
}

HONE_INLINE void add_square(vec away, vec *square, vec *rest)
{
    *square = vec_fma(away, away, *square);
    if (rest != NULL) *rest = vec_add(*rest, away);
}

// The sum of the elements minus the mean, and of its squares. Lanes after the end add nothing.
HONE_INLINE float squares_around(
    const void *x, hone_dtype_id dtype, int64_t length, float mean, bool has_mean, float *out_rest)
{
    vec squares[UNROLL], rests[UNROLL], middle = vec_set(mean);
    for (int u = 0; u < UNROLL; u++)
        squares[u] = rests[u] = vec_set(0.0f);
    int64_t i = 0;
    for (; i + UNROLL * VEC_WIDTH <= length; i += UNROLL * VEC_WIDTH) {
        HONE_UNROLL
        for (int u = 0; u < UNROLL; u += 2) {
            vec two[2];
            vec_load_two(x, dtype, i + u * VEC_WIDTH, two);
            add_square(vec_sub(two[0], middle), &squares[u], has_mean ? &rests[u] : NULL);
            add_square(vec_sub(two[1], middle), &squares[u + 1], has_mean ? &rests[u + 1] : NULL);
        }
    }
    for (; i < length; i += VEC_WIDTH) {
        const vec away = vec_sub(load_rest(x, dtype, i, length), middle);
        add_square(
            length - i < VEC_WIDTH ? vec_first(length - i, away, vec_set(0.0f)) : away, &squares[0],
            has_mean ? &rests[0] : NULL);
    }
    *out_rest = has_mean ? vec_sum(vec_add(vec_add(rests[0], rests[1]), vec_add(rests[2], rests[3]))) : 0;
    return vec_sum(vec_add(vec_add(squares[0], squares[1]), vec_add(squares[2], squares[3])));
}

HONE_INLINE vec load_floats(const float *from, int64_t i, int64_t count)
{
    return count >= VEC_WIDTH ? vec_load(from, HONE_F32, i) : vec_load_part(from, HONE_F32, i, count);
}

// Elements from i on without the mean, with their weights and biases.
HONE_INLINE vec weigh(const norm *job, vec value, int64_t i, int64_t count)
{
    if (job->weight == NULL) return job->bias != NULL ? vec_add(value, load_floats(job->bias, i, count)) : value;
    const vec weight = load_floats(job->weight, i, count);
    return job->bias != NULL ? vec_fma(value, weight, load_floats(job->bias, i, count)) : vec_mul(value, weight);
}

// The same of two vectors, in the order of vec_load_two.
HONE_INLINE void weigh_two(const norm *job, hone_dtype_id dtype, vec value[2], int64_t i)
{
    vec weight[2] = {vec_set(1.0f), vec_set(1.0f)}, bias[2] = {vec_set(0.0f), vec_set(0.0f)};
    if (job->weight != NULL) vec_floats_of_two(job->weight, dtype, i, weight);
    if (job->bias != NULL) vec_floats_of_two(job->bias, dtype, i, bias);
    for (int k = 0; k < 2; k++) {
        if (job->weight == NULL)
            value[k] = job->bias != NULL ? vec_add(value[k], bias[k]) : value[k];
        else
            value[k] = job->bias != NULL ? vec_fma(value[k], weight[k], bias[k]) : vec_mul(value[k], weight[k]);
    }
}

// Elements minus the mean; the rest of the mean is subtracted when they are scaled.
typedef struct centre {
    vec mean, scale, left; // left: minus the rest, scaled
} centre;

HONE_INLINE vec centred(vec x, const centre *of)
{
    return vec_fma(vec_sub(x, of->mean), of->scale, of->left);
}

HONE_INLINE void multiply(
    const norm *job, void *y, const void *x, hone_dtype_id dtype, float mean, float rest, float factor)
{
    const int64_t length = job->of.x.length;
    const centre of = {vec_set(mean), vec_set(factor), vec_set(-rest * factor)};
    int64_t i = 0;
    for (; i + 2 * VEC_WIDTH <= length; i += 2 * VEC_WIDTH) {
        vec two[2];
        vec_load_two(x, dtype, i, two);
        two[0] = centred(two[0], &of);
        two[1] = centred(two[1], &of);
        weigh_two(job, dtype, two, i);
        vec_store_two(y, dtype, i, two);
    }
    for (; i + VEC_WIDTH <= length; i += VEC_WIDTH)
        vec_store(y, dtype, i, weigh(job, centred(vec_load(x, dtype, i), &of), i, VEC_WIDTH));
    if (i == length) return;
    const vec value = centred(vec_load_part(x, dtype, i, length - i), &of);
    vec_store_part(y, dtype, i, length - i, weigh(job, value, i, length - i));
}

HONE_INLINE void normalise(const norm *job, int64_t row, hone_dtype_id dtype)
{
    const hone_layer_norm *of = &job->of;
    const int64_t size = hone_element_size(dtype), length = of->x.length;
    const char *x = of->x.data + hone_rows_offset(&of->x, row) * size;
    char *y = of->y.data + hone_rows_offset(&of->y, row) * size;
    const int64_t first = length < UNROLL * VEC_WIDTH ? length : UNROLL * VEC_WIDTH;
    float rest, mean = of->subtract_mean ? sum_of(x, dtype, first) / (float)first : 0;
    float around = squares_around(x, dtype, length, mean, of->subtract_mean, &rest);
    rest /= (float)length;
    if (rest * rest > MOST_OFF * (around / (float)length - rest * rest)) {
        mean += rest;
        around = squares_around(x, dtype, length, mean, true, &rest);
        rest /= (float)length;
    }
    const float square = around / (float)length - rest * rest + (float)of->eps;
    if (square >= LEAST_SQUARE && square <= FLT_MAX)
        multiply(job, y, x, dtype, mean, rest, 1.0f / sqrtf(square));
    else
        hone_layer_norm_row(of, row); // also if it is NaN
}

static void run_task(void *ctx, int64_t index)
{
    const norm *job = ctx;
    int64_t first = index * job->rows_per_task, last = first + job->rows_per_task;
    if (last > job->of.x.count) last = job->of.x.count;
    for (int64_t row = first; row < last; row++) {
        switch (job->of.dtype) {
        case HONE_F32:
            normalise(job, row, HONE_F32);
            break;
        case HONE_BF16:
            normalise(job, row, HONE_BF16);
            break;
        default:
            normalise(job, row, HONE_F16);
        }
    }
}

HONE_INLINE void widen(float *to, const void *from, hone_dtype_id dtype, float offset, int64_t length)
{
    const vec added = vec_set(offset);
    for (int64_t i = 0; i < length; i += VEC_WIDTH) {
        const vec value = vec_add(load_rest(from, dtype, i, length), added);
        length - i < VEC_WIDTH ? vec_store_part(to, HONE_F32, i, length - i, value) : vec_store(to, HONE_F32, i, value);
    }
}

// A vector with its offset as floats: the vector's own data if they are that already, else a copy in `memory`.
static const float *floats_of(const hone_layer_norm_vector *of, double offset, int64_t length, float *memory)
{
    if (of->data == NULL) return NULL;
    if (of->step != 1) {
        for (int64_t i = 0; i < length; i++)
            memory[i] = (float)((double)hone_element_get(of->data, of->dtype, i * of->step) + offset);
        return memory;
    }
    switch (of->dtype) {
    case HONE_F32:
        if (offset == 0) return of->data;
        widen(memory, of->data, HONE_F32, (float)offset, length);
        return memory;
    case HONE_BF16:
        widen(memory, of->data, HONE_BF16, (float)offset, length);
        return memory;
    default:
        widen(memory, of->data, HONE_F16, (float)offset, length);
        return memory;
    }
}

// Uses the memory of the calling thread, which other threads read while it waits for them.
static bool make_floats(norm *job)
{
    const hone_layer_norm *of = &job->of;
    const int64_t length = of->x.length;
    float *memory = hone_scratch_get((size_t)(2 * length) * sizeof *memory);
    if (memory == NULL) return false;
    job->weight = floats_of(&of->weight, of->weight_offset, length, memory);
    job->bias = floats_of(&of->bias, 0, length, memory + length);
    return true;
}

hone_status VEC_NAME(hone_layer_norm)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    norm job = {.of = hone_layer_norm_of(plan, args), .rows_per_task = plan->config[LAYER_NORM_ROWS_PER_TASK]};
    if (job.of.x.length == 0) return HONE_OK;
    if (!make_floats(&job)) return HONE_OUT_OF_MEMORY;
    int64_t tasks = (job.of.x.count + job.rows_per_task - 1) / job.rows_per_task;
    hone_plan_parallel_for(plan, execution, (int32_t)plan->config[LAYER_NORM_THREADS], tasks, run_task, &job);
    return HONE_OK;
}
