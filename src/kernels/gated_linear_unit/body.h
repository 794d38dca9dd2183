// The kernel over the vectors of the including file: some rows and vectors of results stay in registers while their
// products are added up, so each weight is read once for all rows of a task.
#include "kernels/common/half.h"
#include "kernels/gated_linear_unit/gated_linear_unit.h"
#include "kernels/vector/arguments.h"
#include "kernels/vector/rows.h"

#include <math.h>

typedef struct gated {
    hone_rows x, y;
    const char *weights;
    int64_t deep, half; // strides of weights: from one k to the next, and from W0 to W1
    hone_dtype_id dtype;
    hone_activation activation;
    int64_t rows, vectors;
} gated;

// 1 / (1 + e^-x). The exponent is never positive, so nothing overflows.
HONE_INLINE vec gated_sigmoid(vec x)
{
    const vec one = vec_set(1.0f), zero = vec_set(0.0f);
    const vec power = vec_exp(vec_min(x, vec_sub(zero, x)));
    return vec_div(vec_within(zero, x, vec_set(INFINITY), one, power), vec_add(one, power));
}

HONE_INLINE vec gated_activate(hone_activation activation, vec x)
{
    switch (activation) {
    case ACTIVATION_SILU:
        return vec_mul(x, gated_sigmoid(x));
    case ACTIVATION_SIGMOID:
        return gated_sigmoid(x);
    case ACTIVATION_RELU:
        return vec_max(x, vec_set(0.0f));
    case ACTIVATION_GELU: {
        const vec cube = vec_mul(vec_mul(x, x), vec_mul(x, vec_set(0.044715f)));
        const vec inner = vec_tanh(vec_mul(vec_set(0.79788456f), vec_add(x, cube)));
        return vec_mul(vec_mul(vec_set(0.5f), x), vec_add(vec_set(1.0f), inner));
    }
    case ACTIVATION_TANH:
        return vec_tanh(x);
    default:
        return x;
    }
}

// Stores the results of a tile from its sums, one row of `vectors` vectors after another.
HONE_OUTLINE void gated_put(
    const gated *g, int64_t row, int64_t n, int64_t count, int rows, int vectors, const vec *gates, const vec *ups)
{
    for (int r = 0; r < rows; r++) {
        char *y = g->y.data + hone_rows_offset(&g->y, row + r) * hone_element_size(g->dtype);
        for (int v = 0; v < vectors; v++, gates++, ups++) {
            const int64_t part = count - v * VEC_WIDTH < VEC_WIDTH ? count - v * VEC_WIDTH : VEC_WIDTH;
            const vec value = vec_mul(gated_activate(g->activation, *gates), *ups);
            if (g->dtype == HONE_F32)
                vec_store_part(y, HONE_F32, n + v * VEC_WIDTH, part, value);
            else if (g->dtype == HONE_BF16)
                vec_store_part(y, HONE_BF16, n + v * VEC_WIDTH, part, value);
            else
                vec_store_part(y, HONE_F16, n + v * VEC_WIDTH, part, value);
        }
    }
}

// Results of `rows` rows from `row` on and `vectors` vectors from n on, of which `count` elements exist.
HONE_INLINE void gated_tile(
    const gated *g, int64_t row, int64_t n, int64_t count, hone_dtype_id dtype, int rows, int vectors)
{
    const int64_t size = hone_element_size(dtype);
    vec gates[4][2], ups[4][2];
    const char *x[4];
    HONE_UNROLL
    for (int r = 0; r < rows; r++) {
        x[r] = g->x.data + hone_rows_offset(&g->x, row + r) * size;
        HONE_UNROLL
        for (int v = 0; v < vectors; v++)
            gates[r][v] = ups[r][v] = vec_set(0.0f);
    }
    const char *weights = g->weights + n * size;
    const bool whole = count == vectors * VEC_WIDTH;
    for (int64_t k = 0; k < g->x.length; k++, weights += g->deep * size) {
        vec gate[2], up[2];
        HONE_UNROLL
        for (int v = 0; v < vectors; v++) {
            const int64_t part = count - v * VEC_WIDTH < VEC_WIDTH ? count - v * VEC_WIDTH : VEC_WIDTH;
            gate[v] =
                whole ? vec_load(weights, dtype, v * VEC_WIDTH) : vec_load_part(weights, dtype, v * VEC_WIDTH, part);
            up[v] = whole ? vec_load(weights, dtype, g->half + v * VEC_WIDTH)
                          : vec_load_part(weights, dtype, g->half + v * VEC_WIDTH, part);
        }
        HONE_UNROLL
        for (int r = 0; r < rows; r++) {
            const vec value = vec_set(hone_element_get(x[r], dtype, k));
            HONE_UNROLL
            for (int v = 0; v < vectors; v++) {
                gates[r][v] = vec_fma(value, gate[v], gates[r][v]);
                ups[r][v] = vec_fma(value, up[v], ups[r][v]);
            }
        }
    }
    vec all_gates[8], all_ups[8]; // copies, so that the sums themselves stay in registers
    HONE_UNROLL
    for (int r = 0; r < rows; r++) {
        HONE_UNROLL
        for (int v = 0; v < vectors; v++) {
            all_gates[r * vectors + v] = gates[r][v];
            all_ups[r * vectors + v] = ups[r][v];
        }
    }
    gated_put(g, row, n, count, rows, vectors, all_gates, all_ups);
}

HONE_INLINE void gated_row(const gated *g, int64_t row, hone_dtype_id dtype, int rows)
{
    int64_t n = 0;
    const int64_t length = g->y.length;
    for (; g->vectors == 2 && n + VEC_WIDTH < length; n += 2 * VEC_WIDTH)
        gated_tile(g, row, n, length - n < 2 * VEC_WIDTH ? length - n : 2 * VEC_WIDTH, dtype, rows, 2);
    for (; n < length; n += VEC_WIDTH)
        gated_tile(g, row, n, length - n < VEC_WIDTH ? length - n : VEC_WIDTH, dtype, rows, 1);
}

HONE_INLINE void gated_rows(const gated *g, int64_t first, int64_t last, hone_dtype_id dtype)
{
    int64_t row = first;
    for (; row + 4 <= last; row += 4)
        gated_row(g, row, dtype, 4);
    for (; row + 2 <= last; row += 2)
        gated_row(g, row, dtype, 2);
    for (; row < last; row++)
        gated_row(g, row, dtype, 1);
}

static void gated_task(void *ctx, int64_t index)
{
    const gated *g = ctx;
    int64_t first = index * g->rows, last = first + g->rows < g->y.count ? first + g->rows : g->y.count;
    switch (g->dtype) {
    case HONE_F32:
        gated_rows(g, first, last, HONE_F32);
        break;
    case HONE_BF16:
        gated_rows(g, first, last, HONE_BF16);
        break;
    default:
        gated_rows(g, first, last, HONE_F16);
    }
}

hone_status VEC_NAME(hone_gated_linear_unit)(
    const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_tensor *w = args[GATED_WEIGHTS].as.tensor;
    gated g = {
        .x = hone_rows_of(args[GATED_X].as.tensor),
        .y = hone_rows_of(args[GATED_Y].as.tensor),
        .weights = hone_tensor_data(w),
        .deep = hone_axis_stride(w, 0),
        .half = hone_axis_stride(w, 1),
        .dtype = hone_float_id(w->dtype),
        .activation = hone_activation_of(&hone_call_values(plan->call)[GATED_ACTIVATION]),
        .rows = plan->config[GATED_ROWS],
        .vectors = plan->config[GATED_VECTORS],
    };
    if (g.y.length == 0) return HONE_OK;
    const int64_t tasks = (g.y.count + g.rows - 1) / g.rows;
    hone_plan_parallel_for(plan, execution, (int32_t)plan->config[GATED_THREADS], tasks, gated_task, &g);
    return HONE_OK;
}
