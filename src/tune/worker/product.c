// Freivalds, Probabilistic machines can use less running time (IFIP 1977): c = a b exactly when c r = a (b r), except
// with a small probability over a random r. With n columns that is 2 (k n + m k + m n) operations instead of 2 m n k.
//
// Kernels round. Let e = c - a b be what a kernel is off by, and r be of +1 and -1, each with probability 1/2 and
// independent of e: it is drawn after the kernel ran. Then row i of e r has mean 0 and variance |e_i|^2, the sum of the
// squares of the row's errors, and by Hoeffding's inequality (Probability inequalities for sums of bounded random
// variables, JASA 58, 1963) |e r|_i > t |e_i| with probability at most 2 exp(-t^2 / 2). An honest kernel's rows stay
// below t sqrt(n) times its root mean square error, which is far below the tolerance; a row left at zero has |e_i| =
// |c_i|, and one element that is off by x has |e r|_i >= x - t sqrt(n) rms. By Littlewood and Offord (Erdos 1945) a
// wrong row's sum lies within one error's size of 0 with probability at most about sqrt(2 / (pi w)), where w is the
// number of its wrong elements; with several vectors the probabilities are multiplied.
//
// How large the rms of an honest kernel is cannot be known beforehand: it depends on the order of its sums, and on the
// format that it adds in. A bound would raise a false alarm or let errors pass. So the check decides nothing by itself.
// It orders the rows by |c r - a (b r)|, and the first ones are computed in double precision and compared element by
// element by the tolerance rule, as everywhere. What is right by the rule is never rejected; what is wrong and stands
// out of the rounding of the other rows is found.
#include "tune/worker/product.h"

#include "base/error.h"
#include "call/call.h"
#include "tune/rule/statistics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VECTORS = 3, LOOKED_AT = 3, PIECES = 64 };

// Elements above which threads share the work: some 10 us by one thread.
static const double worth_a_pool = 1 << 16;

static const char where[] = "tune.product";

// The last two axes of a tensor as a matrix whose rows lie `row` elements apart. With leading axes: the current matrix.
typedef struct matrix {
    const char *data;
    hone_dtype_id id;
    int64_t rows, columns, row, column;
} matrix;

// rows: which of the last two axes counts the rows.
static matrix matrix_of(const hone_tensor *tensor, int32_t rows)
{
    int64_t strides[HONE_MAX_RANK];
    const int32_t columns = 2 * tensor->ndim - 3 - rows;
    hone_tensor_strides(tensor, strides);
    return (matrix){
        hone_tensor_data(tensor),
        hone_dtype_find(tensor->dtype)->id,
        tensor->shape[rows],
        tensor->shape[columns],
        strides[rows],
        strides[columns]};
}

// Start of matrix `index`, in row-major order of the leading axes.
static const char *data_at(const hone_tensor *tensor, int64_t index)
{
    int64_t strides[HONE_MAX_RANK];
    hone_tensor leading = *tensor;
    hone_tensor_strides(tensor, strides);
    leading.ndim -= 2;
    leading.strides = strides;
    return (const char *)hone_tensor_data(tensor) + hone_tensor_offset(&leading, index);
}

typedef struct check {
    hone_pool *pool;
    const char *name;
    matrix a, b, out;
    bool b_rows;        // rows of b lie at least as far apart as its columns
    double *signs;      // [VECTORS][n]
    double *mixed;      // [VECTORS][k], b times signs
    double *partial;    // [PIECES][VECTORS][k], sums of pieces of b's columns
    double *suspicions; // [m]
    double *exact;      // [n], one row in double precision
    double *lines;      // [PIECES + 1][longest], what each piece reads, and a row of a
    int64_t longest;
    int64_t row;              // the row that is computed
    const hone_tensor *whole; // the results, for messages
    int64_t index;            // of the product within a batch
} check;

static void each_piece(check *c, void (*body)(void *ctx, int64_t index))
{
    if (c->pool != NULL)
        hone_pool_share(c->pool, PIECES, body, c);
    else
        for (int64_t i = 0; i < PIECES; i++)
            body(c, i);
}

static void read_line(const matrix *from, int64_t start, int64_t step, int64_t count, double *out)
{
    const char *data = from->data;
    if (from->id == HONE_F32 && step == 1)
        for (int64_t i = 0; i < count; i++) {
            float value;
            memcpy(&value, data + (start + i) * 4, 4);
            out[i] = (double)value;
        }
    else if (from->id == HONE_BF16 && step == 1)
        for (int64_t i = 0; i < count; i++) {
            uint16_t half;
            memcpy(&half, data + (start + i) * 2, 2);
            const uint32_t bits = (uint32_t)half << 16;
            float value;
            memcpy(&value, &bits, 4);
            out[i] = (double)value;
        }
    else
        for (int64_t i = 0; i < count; i++)
            out[i] = hone_element_load(from->id, data, start + i * step);
}

static void read_row(const matrix *from, int64_t row, double *out)
{
    read_line(from, row * from->row, from->column, from->columns, out);
}

static void read_column(const matrix *from, int64_t column, double *out)
{
    read_line(from, column * from->column, from->row, from->rows, out);
}

// Adds in eight sums, which the compiler can put into vectors.
static double dot(const double *a, const double *b, int64_t count)
{
    double sums[8] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int lane = 0; lane < 8; lane++)
            sums[lane] += a[i + lane] * b[i + lane];
    for (; i < count; i++)
        sum += a[i] * b[i];
    for (int lane = 0; lane < 8; lane++)
        sum += sums[lane];
    return sum;
}

static void add_scaled(double *to, const double *line, double by, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += by * line[i];
}

static void piece_of(int64_t count, int64_t index, int64_t *out_from, int64_t *out_to)
{
    *out_from = count * index / PIECES;
    *out_to = count * (index + 1) / PIECES;
}

// Multiplies b by the signs: row by row, or by adding up its columns.
static void mix_rows(void *ctx, int64_t index)
{
    check *c = ctx;
    int64_t from, to;
    double *line = c->lines + index * c->longest;
    piece_of(c->b.rows, index, &from, &to);
    for (int64_t row = from; row < to; row++) {
        read_row(&c->b, row, line);
        for (int v = 0; v < VECTORS; v++)
            c->mixed[v * c->b.rows + row] = dot(line, c->signs + v * c->b.columns, c->b.columns);
    }
}

static void mix_columns(void *ctx, int64_t index)
{
    check *c = ctx;
    int64_t from, to;
    const int64_t k = c->b.rows;
    double *line = c->lines + index * c->longest;
    double *sums = c->partial + index * VECTORS * k;
    piece_of(c->b.columns, index, &from, &to);
    for (int64_t column = from; column < to; column++) {
        read_column(&c->b, column, line);
        for (int v = 0; v < VECTORS; v++)
            add_scaled(sums + v * k, line, c->signs[v * c->b.columns + column], k);
    }
}

static void mix(check *c)
{
    each_piece(c, c->b_rows ? mix_rows : mix_columns);
    for (int64_t piece = 0; piece < PIECES && !c->b_rows; piece++)
        for (int64_t i = 0; i < VECTORS * c->b.rows; i++)
            c->mixed[i] += c->partial[piece * VECTORS * c->b.rows + i];
}

static void suspect_rows(void *ctx, int64_t index)
{
    check *c = ctx;
    int64_t from, to;
    double *line = c->lines + index * c->longest;
    piece_of(c->out.rows, index, &from, &to);
    for (int64_t row = from; row < to; row++) {
        double came[VECTORS];
        c->suspicions[row] = 0;
        read_row(&c->out, row, line);
        for (int v = 0; v < VECTORS; v++)
            came[v] = dot(line, c->signs + v * c->out.columns, c->out.columns);
        read_row(&c->a, row, line);
        for (int v = 0; v < VECTORS; v++) {
            const double off = fabs(came[v] - dot(line, c->mixed + v * c->a.columns, c->a.columns));
            c->suspicions[row] = fmax(c->suspicions[row], isfinite(off) ? off : INFINITY);
        }
    }
}

// Computes some columns of one row in double precision.
static void compute_columns(void *ctx, int64_t index)
{
    check *c = ctx;
    int64_t from, to;
    double *line = c->lines + index * c->longest;
    const double *of_a = c->lines + PIECES * c->longest;
    piece_of(c->out.columns, index, &from, &to);
    memset(c->exact + from, 0, (size_t)(to - from) * sizeof *c->exact);
    if (c->b_rows)
        for (int64_t i = 0; i < c->b.rows; i++) {
            read_line(&c->b, i * c->b.row + from * c->b.column, c->b.column, to - from, line);
            add_scaled(c->exact + from, line, of_a[i], to - from);
        }
    else
        for (int64_t column = from; column < to; column++) {
            read_column(&c->b, column, line);
            for (int64_t i = 0; i < c->b.rows; i++)
                c->exact[column] += line[i] * of_a[i];
        }
}

static hone_status compare_row(const check *c, const hone_yardstick *yardstick, double *max_error, hone_error *err)
{
    char one[16];
    const void *data = c->out.data;
    for (int64_t j = 0; j < c->out.columns; j++) {
        hone_element_store(c->out.id, one, 0, c->exact[j]);
        const double right = hone_element_load(c->out.id, one, 0);
        const double came = hone_element_load(c->out.id, data, c->row * c->out.row + j * c->out.column);
        const double error = hone_verify_error(came, right, yardstick);
        if (error > *max_error) *max_error = error;
        if (error <= 1) continue;
        char at[128];
        hone_verify_format_index(c->whole, (c->index * c->out.rows + c->row) * c->out.columns + j, at, sizeof at);
        return hone_fail(
            err, HONE_KERNEL_FAILED, where, "%s%s is %g, the product is %g (%.3g times what is allowed)", c->name, at,
            came, right, error);
    }
    return HONE_OK;
}

static int64_t most_suspicious(const check *c)
{
    int64_t most = 0;
    for (int64_t row = 1; row < c->out.rows; row++)
        if (c->suspicions[row] > c->suspicions[most]) most = row;
    return most;
}

static hone_status look_at_rows(check *c, const hone_yardstick *yardstick, double *max_error, hone_error *err)
{
    hone_status status = HONE_OK;
    for (int i = 0; i < LOOKED_AT && i < c->out.rows && status == HONE_OK; i++) {
        c->row = most_suspicious(c);
        c->suspicions[c->row] = -1;
        read_row(&c->a, c->row, c->lines + PIECES * c->longest);
        each_piece(c, compute_columns);
        status = compare_row(c, yardstick, max_error, err);
    }
    return status;
}

static void draw_signs(check *c)
{
    uint64_t random = hone_os_random_seed(), bits = 0;
    for (int64_t i = 0; i < VECTORS * c->b.columns; i++, bits >>= 1) {
        if (i % 64 == 0) bits = hone_random_next(&random);
        c->signs[i] = (bits & 1) != 0 ? 1 : -1;
    }
}

static void *take(const hone_allocator *allocator, int64_t count, size_t size)
{
    return hone_alloc_array(allocator, (size_t)count, size);
}

static bool make_room(check *c, const hone_allocator *allocator)
{
    const int64_t m = c->out.rows, n = c->out.columns, k = c->b.rows;
    c->longest = n > k ? n : k;
    c->signs = take(allocator, VECTORS * n, sizeof *c->signs);
    c->mixed = take(allocator, VECTORS * k, sizeof *c->mixed);
    c->partial = take(allocator, c->b_rows ? 1 : PIECES * VECTORS * k, sizeof *c->partial);
    c->suspicions = take(allocator, m, sizeof *c->suspicions);
    c->exact = take(allocator, n, sizeof *c->exact);
    c->lines = take(allocator, (PIECES + 1) * c->longest, sizeof *c->lines);
    return c->signs != NULL && c->mixed != NULL && c->partial != NULL && c->suspicions != NULL && c->exact != NULL &&
           c->lines != NULL;
}

static void free_room(check *c, const hone_allocator *allocator)
{
    hone_free(allocator, c->signs);
    hone_free(allocator, c->mixed);
    hone_free(allocator, c->partial);
    hone_free(allocator, c->suspicions);
    hone_free(allocator, c->exact);
    hone_free(allocator, c->lines);
}

// Checks one product. Its signs are drawn again, so that errors in two products of a batch are not missed by the same
// chance.
static hone_status check_one(check *c, const hone_yardstick *yardstick, double *max_error, hone_error *err)
{
    draw_signs(c);
    memset(c->mixed, 0, (size_t)(VECTORS * c->b.rows) * sizeof *c->mixed);
    memset(c->partial, 0, (size_t)(c->b_rows ? 1 : PIECES * VECTORS * c->b.rows) * sizeof *c->partial);
    mix(c);
    each_piece(c, suspect_rows);
    return look_at_rows(c, yardstick, max_error, err);
}

// Checks the products of a batch one by one.
static hone_status check_all(
    check *c,
    const hone_tensor *a,
    const hone_tensor *b,
    const hone_tensor *out,
    const hone_yardstick *yardstick,
    double *max_error,
    hone_error *err)
{
    int64_t count = 1;
    for (int32_t axis = 0; axis < out->ndim - 2; axis++)
        count *= out->shape[axis];
    hone_status status = HONE_OK;
    for (c->index = 0; c->index < count && status == HONE_OK; c->index++) {
        c->a.data = data_at(a, c->index);
        c->b.data = data_at(b, c->index);
        c->out.data = data_at(out, c->index);
        status = check_one(c, yardstick, max_error, err);
    }
    return status;
}

hone_status hone_product_check(
    hone_pool *pool,
    const char *name,
    const hone_product *which,
    const hone_tensor *a,
    const hone_tensor *b,
    const hone_tensor *out,
    const hone_yardstick *yardstick,
    double *out_max_error,
    hone_error *err)
{
    const hone_allocator allocator = hone_allocator_system();
    check c = {
        .name = name,
        .a = matrix_of(a, which->a_rows),
        .b = matrix_of(b, which->b_rows),
        .out = matrix_of(out, out->ndim - 2),
        .whole = out};
    // For less, sharing the work takes longer than doing it.
    if ((double)c.b.rows * (double)c.b.columns + (double)c.out.rows * (double)c.out.columns > worth_a_pool)
        c.pool = pool;
    c.b_rows = c.b.column <= c.b.row;
    hone_status status = make_room(&c, &allocator) ? HONE_OK : hone_fail_memory(err, where);
    if (status == HONE_OK) status = check_all(&c, a, b, out, yardstick, out_max_error, err);
    free_room(&c, &allocator);
    return status;
}
