// The kernels over the vectors of the including file (kernels/vector/*.h), which is compiled for one instruction set.
//
// Three passes over a row, which stays in the first-level cache between them: the sum of x (only for layer_norm), the
// sums around the mean, and d_x. The last pass also adds d_y h to the sums of the columns.
//
// The sums of the columns do not depend on the number of threads: rows are cut into `parts`, by the config, each part
// has its own sums, and these are added in order. Within a part BLOCK rows are summed in floats, and blocks in doubles,
// so that the error does not grow with the number of rows.
//
// Rows are computed in double if floats would be too inexact: short rows, rows that exceed the range of floats, and
// rows in which most of g is parallel to h and cancels; the limit is three quarters of its squares.
#include "kernels/common/scratch.h"
#include "kernels/norm_vjp/norm_vjp.h"
#include "kernels/vector/arguments.h"

#include <float.h>
#include <math.h>
#include <string.h>

// Below this, the squares of elements may have been too small for floats.
#define LEAST_SQUARE 0x1p-80f
// The least share of the squares of g that must be left in d_x.
#define LEAST_LEFT 0.25f

enum { SHORT_ROW = 16, BLOCK = 64, COLUMNS = 512 };

typedef struct job {
    hone_norm_vjp of;
    const float *weight; // with its offset; NULL: 1
    double *sums;        // [parts][2][length]: of the weight, of the bias
    float *blocks;       // the same, of the rows that are not in sums yet
    int64_t parts;
} job;

// One row, and the sums of its columns.
typedef struct row {
    const char *x, *d_y, *d_sum;
    char *d_x;
    const float *weight;
    float *weights, *biases; // biases is NULL if they are not requested
    int64_t length;
} row;

typedef struct moments {
    vec squares, rests, gradients, products, gradient_squares;
} moments;

HONE_INLINE vec get(const void *data, hone_dtype_id dtype, int64_t at, int64_t count)
{
    return count >= VEC_WIDTH ? vec_load(data, dtype, at) : vec_load_part(data, dtype, at, count);
}

HONE_INLINE vec gradient(const row *r, vec d_y, int64_t at, int64_t count)
{
    return r->weight != NULL ? vec_mul(d_y, get(r->weight, HONE_F32, at, count)) : d_y;
}

HONE_INLINE float sum_of(const row *r, hone_dtype_id dtype)
{
    vec one = vec_set(0.0f), other = one;
    int64_t i = 0;
    for (; i + 2 * VEC_WIDTH <= r->length; i += 2 * VEC_WIDTH) {
        one = vec_add(one, vec_load(r->x, dtype, i));
        other = vec_add(other, vec_load(r->x, dtype, i + VEC_WIDTH));
    }
    for (; i < r->length; i += VEC_WIDTH)
        one = vec_add(one, get(r->x, dtype, i, r->length - i));
    return vec_sum(vec_add(one, other));
}

// Lanes after the row's end have no distance from the mean.
HONE_INLINE vec away_from(vec x, vec middle, int64_t count, bool centred)
{
    if (!centred) return x;
    const vec away = vec_sub(x, middle);
    return count >= VEC_WIDTH ? away : vec_first(count, away, vec_set(0.0f));
}

HONE_INLINE void measure(
    const row *r, hone_dtype_id dtype, vec middle, int64_t at, int64_t count, bool centred, moments *m)
{
    const vec away = away_from(get(r->x, dtype, at, count), middle, count, centred);
    const vec g = gradient(r, get(r->d_y, dtype, at, count), at, count);
    m->squares = vec_fma(away, away, m->squares);
    m->products = vec_fma(g, away, m->products);
    m->gradient_squares = vec_fma(g, g, m->gradient_squares);
    if (!centred) return;
    m->rests = vec_add(m->rests, away);
    m->gradients = vec_add(m->gradients, g);
}

HONE_INLINE moments measure_row(const row *r, hone_dtype_id dtype, float mean, bool centred)
{
    const vec zero = vec_set(0.0f), middle = vec_set(mean);
    moments one = {zero, zero, zero, zero, zero}, other = one;
    int64_t i = 0;
    for (; i + 2 * VEC_WIDTH <= r->length; i += 2 * VEC_WIDTH) {
        measure(r, dtype, middle, i, VEC_WIDTH, centred, &one);
        measure(r, dtype, middle, i + VEC_WIDTH, VEC_WIDTH, centred, &other);
    }
    for (; i < r->length; i += VEC_WIDTH)
        measure(r, dtype, middle, i, r->length - i, centred, &one);
    one.squares = vec_add(one.squares, other.squares);
    one.rests = vec_add(one.rests, other.rests);
    one.gradients = vec_add(one.gradients, other.gradients);
    one.products = vec_add(one.products, other.products);
    one.gradient_squares = vec_add(one.gradient_squares, other.gradient_squares);
    return one;
}

// The factor of a row, and the terms that are subtracted from it.
typedef struct factors {
    vec middle, rest, factor, gradient, along;
} factors;

HONE_INLINE void put(const row *r, hone_dtype_id dtype, const factors *f, int64_t at, int64_t count, bool centred)
{
    const vec d_y = get(r->d_y, dtype, at, count);
    vec away = get(r->x, dtype, at, count), g = gradient(r, d_y, at, count);
    if (centred) {
        away = vec_sub(vec_sub(away, f->middle), f->rest);
        g = vec_sub(g, f->gradient);
    }
    const vec h = vec_mul(away, f->factor);
    vec value = vec_mul(vec_sub(g, vec_mul(h, f->along)), f->factor);
    if (r->d_sum != NULL) value = vec_add(value, get(r->d_sum, dtype, at, count));
    const vec weights = vec_fma(d_y, h, get(r->weights, HONE_F32, at, count));
    if (count >= VEC_WIDTH) {
        vec_store(r->d_x, dtype, at, value);
        vec_store(r->weights, HONE_F32, at, weights);
    } else {
        vec_store_part(r->d_x, dtype, at, count, value);
        vec_store_part(r->weights, HONE_F32, at, count, weights);
    }
    if (r->biases == NULL) return;
    const vec biases = vec_add(d_y, get(r->biases, HONE_F32, at, count));
    if (count >= VEC_WIDTH)
        vec_store(r->biases, HONE_F32, at, biases);
    else
        vec_store_part(r->biases, HONE_F32, at, count, biases);
}

// Returns false if floats are too inexact for this row; nothing was written then.
HONE_INLINE bool differentiate(const job *own, const row *r, hone_dtype_id dtype, bool centred)
{
    const float count = (float)r->length, mean = centred ? sum_of(r, dtype) / count : 0;
    const moments m = measure_row(r, dtype, mean, centred);
    const float rest = centred ? vec_sum(m.rests) / count : 0;
    const float gradients = centred ? vec_sum(m.gradients) / count : 0;
    const float square = vec_sum(m.squares) / count - rest * rest + (float)own->of.eps;
    if (!(square >= LEAST_SQUARE && square <= FLT_MAX)) return false;
    const float factor = 1.0f / sqrtf(square);
    const float along = (vec_sum(m.products) / count - rest * gradients) * factor;
    const float all = vec_sum(m.gradient_squares) / count;
    const float left = all - gradients * gradients - along * along * (1.0f + (float)own->of.eps * factor * factor);
    if (!(left >= LEAST_LEFT * all)) return false;
    const factors f = {vec_set(mean), vec_set(rest), vec_set(factor), vec_set(gradients), vec_set(along)};
    int64_t i = 0;
    for (; i + VEC_WIDTH <= r->length; i += VEC_WIDTH)
        put(r, dtype, &f, i, VEC_WIDTH, centred);
    if (i < r->length) put(r, dtype, &f, i, r->length - i, centred);
    return true;
}

HONE_INLINE bool differentiate_row(const job *own, const row *of, int64_t index, hone_dtype_id dtype)
{
    const hone_norm_vjp *norm = &own->of;
    const int64_t size = hone_element_size(dtype);
    row r = *of;
    r.x = norm->x.data + hone_rows_offset(&norm->x, index) * size;
    r.d_y = norm->d_y.data + hone_rows_offset(&norm->d_y, index) * size;
    r.d_x = norm->d_x.data + hone_rows_offset(&norm->d_x, index) * size;
    if (norm->d_sum.data != NULL) r.d_sum = norm->d_sum.data + hone_rows_offset(&norm->d_sum, index) * size;
    if (norm->subtract_mean) return differentiate(own, &r, dtype, true);
    return differentiate(own, &r, dtype, false);
}

static bool try_row(const job *own, const row *of, int64_t index)
{
    switch (own->of.dtype) {
    case HONE_F32:
        return differentiate_row(own, of, index, HONE_F32);
    case HONE_BF16:
        return differentiate_row(own, of, index, HONE_BF16);
    default:
        return differentiate_row(own, of, index, HONE_F16);
    }
}

static void add_block(double *sums, float *block, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] += (double)block[i];
        block[i] = 0;
    }
}

static void run_part(void *ctx, int64_t part)
{
    const job *own = ctx;
    const int64_t length = own->of.x.length, rows = own->of.x.count, columns = 2 * length;
    const int64_t first = rows * part / own->parts, last = rows * (part + 1) / own->parts;
    const bool has_bias = own->of.d_bias.data != NULL;
    double *sums = own->sums + part * columns;
    float *block = own->blocks + part * columns;
    const row r = {
        .weight = own->weight, .weights = block, .biases = has_bias ? block + length : NULL, .length = length};
    memset(sums, 0, (size_t)columns * sizeof *sums);
    memset(block, 0, (size_t)columns * sizeof *block);
    for (int64_t i = first; i < last; i++) {
        if (length < SHORT_ROW || !try_row(own, &r, i))
            hone_norm_vjp_row(&own->of, i, sums, has_bias ? sums + length : NULL);
        if ((i - first) % BLOCK == BLOCK - 1 || i == last - 1) add_block(sums, block, has_bias ? columns : length);
    }
}

// Adds the sums of all parts, in their order, for some columns.
static void add_parts(void *ctx, int64_t index)
{
    const job *own = ctx;
    const int64_t length = own->of.x.length, first = index * COLUMNS;
    const int64_t last = first + COLUMNS < length ? first + COLUMNS : length;
    for (int64_t i = first; i < last; i++) {
        double weight = 0, bias = 0;
        for (int64_t part = 0; part < own->parts; part++) {
            weight += own->sums[2 * part * length + i];
            bias += own->sums[(2 * part + 1) * length + i];
        }
        hone_norm_vjp_put(&own->of.d_weight, i, weight);
        if (own->of.d_bias.data != NULL) hone_norm_vjp_put(&own->of.d_bias, i, bias);
    }
}

// Uses the memory of the calling thread, which waits for the others.
static bool take_memory(job *own)
{
    const int64_t length = own->of.x.length, columns = own->parts * 2 * length;
    char *memory =
        hone_scratch_get((size_t)columns * (sizeof(double) + sizeof(float)) + (size_t)length * sizeof(float));
    if (memory == NULL) return false;
    own->sums = (double *)(void *)memory;
    own->blocks = (float *)(own->sums + columns);
    float *weight = own->blocks + columns;
    for (int64_t i = 0; i < length && own->of.weight.data != NULL; i++)
        weight[i] = (float)hone_norm_vjp_weight(&own->of, i);
    own->weight = own->of.weight.data != NULL ? weight : NULL;
    return true;
}

static hone_status run(const hone_plan *plan, const hone_execution *execution, hone_norm_vjp of)
{
    const int32_t threads = (int32_t)plan->config[NORM_VJP_THREADS];
    job own = {.of = of, .parts = plan->config[NORM_VJP_PARTS]};
    if (of.x.length == 0) return HONE_OK;
    if (!take_memory(&own)) return HONE_OUT_OF_MEMORY;
    hone_plan_parallel_for(plan, execution, threads, own.parts, run_part, &own);
    hone_plan_parallel_for(plan, execution, threads, (of.x.length + COLUMNS - 1) / COLUMNS, add_parts, &own);
    return HONE_OK;
}

hone_status VEC_NAME(hone_rms_norm_vjp)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, execution, hone_rms_norm_vjp_of(plan, args));
}

hone_status VEC_NAME(hone_add_rms_norm_vjp)(
    const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, execution, hone_add_rms_norm_vjp_of(plan, args));
}

hone_status VEC_NAME(hone_layer_norm_vjp)(
    const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, execution, hone_layer_norm_vjp_of(plan, args));
}
