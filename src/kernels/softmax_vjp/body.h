// The kernel over the vectors of the including file (kernels/vector/*.h), which is compiled for one instruction set.
//
// Two passes over a row, which stays in the first-level cache between them: the sum of products, then the result of
// each element. In a short row a few large elements may cancel to less than floats resolve, so it is computed in
// double.
#include "kernels/softmax_vjp/softmax_vjp.h"
#include "kernels/vector/arguments.h"

enum { SHORT_ROW = 16, MOST_UNROLL = 4 };

typedef struct job {
    hone_softmax_vjp of;
    int64_t unroll, rows_per_task;
    bool stream;
} job;

typedef struct row {
    const char *y, *d_y;
    char *d_x;
    int64_t length;
    float scale;
    bool stream;
} row;

HONE_INLINE float sum_of_products(const row *r, hone_dtype_id dtype, int unroll)
{
    vec sums[MOST_UNROLL];
    HONE_UNROLL
    for (int u = 0; u < unroll; u++)
        sums[u] = vec_set(0.0f);
    int64_t i = 0;
    for (; i + unroll * VEC_WIDTH <= r->length; i += unroll * VEC_WIDTH) {
        HONE_UNROLL
        for (int u = 0; u < unroll; u++) {
            const int64_t at = i + u * VEC_WIDTH;
            sums[u] = vec_fma(vec_load(r->y, dtype, at), vec_load(r->d_y, dtype, at), sums[u]);
        }
    }
    for (; i + VEC_WIDTH <= r->length; i += VEC_WIDTH)
        sums[0] = vec_fma(vec_load(r->y, dtype, i), vec_load(r->d_y, dtype, i), sums[0]);
    const int64_t rest = r->length - i;
    if (rest > 0)
        sums[0] = vec_fma(vec_load_part(r->y, dtype, i, rest), vec_load_part(r->d_y, dtype, i, rest), sums[0]);
    HONE_UNROLL
    for (int u = 1; u < unroll; u++)
        sums[0] = vec_add(sums[0], sums[u]);
    return vec_sum(sums[0]);
}

// The scale is applied last: before that no number is smaller than necessary, so an infinity is not multiplied by a
// number that underflowed to 0.
HONE_INLINE vec apart(vec y, vec d_y, vec sum, vec scale)
{
    return vec_mul(vec_mul(y, vec_sub(d_y, sum)), scale);
}

HONE_INLINE void multiply(const row *r, hone_dtype_id dtype, float of_row, int unroll)
{
    const vec sum = vec_set(of_row), scale = vec_set(r->scale);
    int64_t i = 0;
    for (; i + unroll * VEC_WIDTH <= r->length; i += unroll * VEC_WIDTH) {
        HONE_UNROLL
        for (int u = 0; u < unroll; u++) {
            const int64_t at = i + u * VEC_WIDTH;
            const vec value = apart(vec_load(r->y, dtype, at), vec_load(r->d_y, dtype, at), sum, scale);
            if (r->stream)
                vec_stream(r->d_x, dtype, at, value);
            else
                vec_store(r->d_x, dtype, at, value);
        }
    }
    for (; i < r->length; i += VEC_WIDTH) {
        const int64_t rest = r->length - i < VEC_WIDTH ? r->length - i : VEC_WIDTH;
        const vec y = vec_load_part(r->y, dtype, i, rest), d_y = vec_load_part(r->d_y, dtype, i, rest);
        vec_store_part(r->d_x, dtype, i, rest, apart(y, d_y, sum, scale));
    }
}

HONE_INLINE void each_row(const job *own, int64_t first, int64_t last, hone_dtype_id dtype, int unroll)
{
    const hone_softmax_vjp *of = &own->of;
    const int64_t size = hone_element_size(dtype);
    for (int64_t i = first; i < last; i++) {
        row r = {.length = of->y.length, .scale = (float)of->scale};
        r.y = of->y.data + hone_rows_offset(&of->y, i) * size;
        r.d_y = of->d_y.data + hone_rows_offset(&of->d_y, i) * size;
        r.d_x = of->d_x.data + hone_rows_offset(&of->d_x, i) * size;
        r.stream = own->stream && (uintptr_t)r.d_x % (uintptr_t)(VEC_WIDTH * size) == 0;
        multiply(&r, dtype, sum_of_products(&r, dtype, unroll), unroll);
    }
}

HONE_INLINE void each_type(const job *own, int64_t first, int64_t last, int unroll)
{
    switch (own->of.dtype) {
    case HONE_F32:
        each_row(own, first, last, HONE_F32, unroll);
        break;
    case HONE_BF16:
        each_row(own, first, last, HONE_BF16, unroll);
        break;
    default:
        each_row(own, first, last, HONE_F16, unroll);
    }
}

static void run_task(void *ctx, int64_t index)
{
    const job *own = ctx;
    int64_t first = index * own->rows_per_task, last = first + own->rows_per_task;
    if (last > own->of.y.count) last = own->of.y.count;
    if (own->of.y.length < SHORT_ROW) {
        for (int64_t i = first; i < last; i++)
            hone_softmax_vjp_row(&own->of, i);
        return;
    }
    switch (own->unroll) {
    case 1:
        each_type(own, first, last, 1);
        break;
    case 2:
        each_type(own, first, last, 2);
        break;
    default:
        each_type(own, first, last, MOST_UNROLL);
    }
    if (own->stream) vec_stream_end();
}

hone_status VEC_NAME(hone_softmax_vjp)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const int64_t *config = plan->config;
    job own = {
        .of = hone_softmax_vjp_of(plan, args),
        .unroll = config[SOFTMAX_VJP_UNROLL],
        .rows_per_task = config[SOFTMAX_VJP_ROWS_PER_TASK],
        .stream = config[SOFTMAX_VJP_STORE] == 1,
    };
    if (own.of.y.length == 0) return HONE_OK;
    int64_t tasks = (own.of.y.count + own.rows_per_task - 1) / own.rows_per_task;
    hone_plan_parallel_for(plan, execution, (int32_t)config[SOFTMAX_VJP_THREADS], tasks, run_task, &own);
    return HONE_OK;
}
