#include "product.h"

#include "kernels/common/half.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { GUARD = 256, POISON = 0xff };

static int64_t products_of(const test_product *product)
{
    int64_t count = 1;
    for (int axis = 0; axis < product->batch.axes; axis++)
        count *= product->batch.sizes[axis];
    return count;
}

// Where an element lies, in elements from the first one's. A bias has no leading axes.
static int64_t place(const test_product *product, int i, int64_t index, int64_t row, int64_t column)
{
    const int64_t *strides = product->strides[i];
    if (i == 3) return column;
    int64_t at = row * strides[product->batch.axes] + column * strides[product->batch.axes + 1];
    for (int axis = product->batch.axes - 1; axis >= 0; axis--) {
        at += index % product->batch.sizes[axis] * strides[axis];
        index /= product->batch.sizes[axis];
    }
    return at;
}

static bool is_one_for_all(const test_product *product, int i)
{
    return (i == 0 && product->batch.lies == BATCH_ONE_A) || (i == 1 && product->batch.lies == BATCH_ONE_B);
}

// Returns how many elements there are from the first to behind the last.
static int64_t lay_out(test_product *product, int i, int64_t rows, int64_t columns)
{
    const product_case *is = &product->is;
    const int leading = i == 3 ? 0 : product->batch.axes;
    const bool between = product->batch.lies == BATCH_BETWEEN && leading > 0;
    int64_t *strides = product->strides[i], *shape = product->shapes[i], step = columns + is->gap, end = columns;
    strides[leading] = step;
    strides[leading + 1] = 1;
    if (!between) step = rows * step + 3 * is->gap;
    for (int axis = leading - 1; axis >= 0; axis--) {
        strides[axis] = is_one_for_all(product, i) ? 0 : step;
        shape[axis] = product->batch.sizes[axis];
        step *= product->batch.sizes[axis];
    }
    if (between) strides[leading] = step;
    shape[leading] = rows;
    shape[leading + 1] = columns;
    for (int axis = 0; axis <= leading; axis++)
        end = shape[axis] > 0 ? end + (shape[axis] - 1) * strides[axis] : 0;
    return end;
}

static void describe(test_product *product, int i, int64_t rows, int64_t columns)
{
    const int leading = i == 3 ? 0 : product->batch.axes;
    const int64_t elements = lay_out(product, i, rows, columns), size = hone_element_size(product->is.dtype);
    int64_t first = 0;
    for (int axis = 0; axis < leading && product->batch.lies == BATCH_BACKWARDS && i != 2; axis++) {
        first += (product->batch.sizes[axis] - 1) * product->strides[i][axis];
        product->strides[i][axis] *= -1;
    }
    product->bytes[i] = (size_t)(elements * size);
    product->memory[i] = malloc(product->bytes[i] + 2 * GUARD);
    assert_non_null(product->memory[i]);
    memset(product->memory[i], POISON, product->bytes[i] + 2 * GUARD);
    product->tensors[i] = hone_tensor_of(
        product->memory[i] + GUARD + (elements > 0 ? first * size : 0), product->is.dtype, leading + 2,
        product->shapes[i]);
    product->tensors[i].strides = product->strides[i];
    if (i < 3) product->args[i] = hone_of_tensor(&product->tensors[i]);
}

static void describe_bias(test_product *product)
{
    describe(product, 3, 1, product->is.n);
    product->tensors[3].ndim = 1;
    product->tensors[3].shape = &product->shapes[3][1];
    product->tensors[3].strides = &product->strides[3][1];
}

// Numbers in [-1, 1) that every dtype holds to its own precision; what lies between the rows stays NaN.
static void fill(const test_product *product, int i, uint32_t seed)
{
    const int leading = i == 3 ? 0 : product->batch.axes;
    const int64_t all = products_of(product), matrices = all > 1 && (i == 3 || is_one_for_all(product, i)) ? 1 : all;
    for (int64_t index = 0; index < matrices; index++)
        for (int64_t row = 0; row < product->shapes[i][leading]; row++)
            for (int64_t column = 0; column < product->shapes[i][leading + 1]; column++) {
                seed = seed * 1664525u + 1013904223u;
                float value = (float)(int32_t)(seed ^ seed >> 13) * 0x1p-31f;
                const double fine = product->is.dtype == HONE_F64 ? (double)seed * 0x1p-60 : 0;
                hone_element_put_double(
                    product->tensors[i].data, product->is.dtype, place(product, i, index, row, column),
                    (double)value + fine);
            }
}

static double input(const test_product *product, int i, int64_t index, int64_t row, int64_t column)
{
    return hone_element_get_double(product->tensors[i].data, product->is.dtype, place(product, i, index, row, column));
}

// The terms' factors of a row of a, or of a column of b.
static void input_terms(const test_product *product, int i, int64_t index, int64_t at, double *out)
{
    const bool is_row = i == 0 || product->is.transpose_b;
    for (int64_t p = 0; p < product->is.k; p++)
        out[p] = input(product, i, index, is_row ? at : p, is_row ? p : at);
}

static double activate(const char *activation, double x)
{
    if (activation == NULL) return x;
    if (strcmp(activation, "relu") == 0) return fmax(x, 0);
    if (strcmp(activation, "silu") == 0) return x * (0.5 + 0.5 * tanh(0.5 * x));
    if (strcmp(activation, "gelu_erf") == 0) return x * (0.5 + 0.5 * erf(x * sqrt(0.5)));
    assert_string_equal(activation, "gelu_tanh");
    return x * (0.5 + 0.5 * tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

// c k eps |a||b| with eps of f32, in which every kernel adds but for f64, and one rounding to the dtype. The slope of an activation is
// at most 1.13, and its own error a few eps of what it is computed from.
static void expect(test_product *product, int64_t index, int64_t row, int64_t column, const double *a, const double *b)
{
    const bool wide = product->is.dtype == HONE_F64;
    const double eps = wide ? 0x1p-53 : 0x1p-24;
    double magnitude = 0;
    long double exact = 0;
    for (int64_t p = 0; p < product->is.k; p++) {
        const long double term = (long double)a[p] * b[p];
        exact += term;
        magnitude += fabs((double)term);
    }
    double sum = (double)exact;
    double step = product->is.dtype == HONE_BF16 ? 0x1p-8 : product->is.dtype == HONE_F16 ? 0x1p-11 : eps;
    double least = product->is.dtype == HONE_F16 ? 0x1p-25 : 0; // half the step of its subnormals
    int64_t at = (index * product->is.m + row) * product->is.n + column;
    double bound = (double)(product->is.k + 2) * eps * magnitude;
    if (product->epilogue.bias) {
        sum += input(product, 3, 0, 0, column);
        bound += eps * fabs(sum);
    }
    if (product->epilogue.activation != NULL) {
        bound = 1.13 * bound + 16 * eps * fabs(sum);
        sum = activate(product->epilogue.activation, sum);
    }
    if (product->epilogue.residual) {
        sum += input(product, 4, index, row, column);
        bound += eps * fabs(sum);
    }
    product->expected[at] = sum;
    product->bound[at] = bound + step * fabs(sum) * 1.01 + least;
}

static void expect_all(test_product *product, int64_t index)
{
    const product_case *is = &product->is;
    const size_t size = (size_t)hone_element_size(is->dtype);
    double *columns = calloc((size_t)(is->n * is->k) + 1, sizeof(double)),
           *row = calloc((size_t)is->k + 1, sizeof(double));
    assert_true(columns && row);
    for (int64_t j = 0; j < is->n && is->m > 0; j++)
        input_terms(product, 1, index, j, columns + j * is->k);
    for (int64_t i = 0; i < is->m; i++) {
        input_terms(product, 0, index, i, row);
        for (int64_t j = 0; j < is->n; j++) {
            expect(product, index, i, j, row, columns + j * is->k);
            memset(product->inside + (size_t)place(product, 2, index, i, j) * size, true, size);
        }
    }
    free(columns);
    free(row);
}

void product_init(test_product *product, hone_signature *signature, product_case is)
{
    product_init_finished(product, signature, is, (product_epilogue){false, false, NULL});
}

static void init_epilogue(test_product *product)
{
    const product_epilogue *epilogue = &product->epilogue;
    product->args[4] = product->args[6] = hone_of_none();
    product->args[5] = epilogue->activation != NULL ? hone_of_string(epilogue->activation) : hone_of_none();
    if (epilogue->bias) {
        describe_bias(product);
        fill(product, 3, 3);
        product->args[4] = hone_of_tensor(&product->tensors[3]);
    }
    if (epilogue->residual) {
        describe(product, 4, product->is.m, product->is.n);
        fill(product, 4, 4);
        product->args[6] = hone_of_tensor(&product->tensors[4]);
    }
}

void product_init_finished(test_product *product, hone_signature *signature, product_case is, product_epilogue epilogue)
{
    product_init_batch(product, signature, is, epilogue, (product_batch){0, {0, 0}, BATCH_FOLLOWS});
}

void product_init_batch(
    test_product *product, hone_signature *signature, product_case is, product_epilogue epilogue, product_batch batch)
{
    *product = (test_product){.is = is, .batch = batch, .epilogue = epilogue, .signature = signature};
    describe(product, 0, is.m, is.k);
    describe(product, 1, is.transpose_b ? is.n : is.k, is.transpose_b ? is.k : is.n);
    describe(product, 2, is.m, is.n);
    fill(product, 0, 1);
    fill(product, 1, 2);
    init_epilogue(product);
    product->args[3] = hone_of_bool(is.transpose_b);
    const int64_t count = products_of(product);
    product->expected = calloc((size_t)(count * is.m * is.n) + 1, sizeof(double));
    product->bound = calloc((size_t)(count * is.m * is.n) + 1, sizeof(double));
    product->inside = calloc(product->bytes[2] + 1, sizeof(bool));
    assert_true(product->expected && product->bound && product->inside);
    for (int64_t index = 0; index < count; index++)
        expect_all(product, index);
    hone_error err = {0};
    hone_status status =
        hone_call_bind(hone_allocator_system(), signature, product->args, 7, false, &product->call, &err);
    if (status != HONE_OK) fail_msg("%s", err.message);
}

void product_deinit(test_product *product)
{
    hone_call_release(&product->call);
    for (int i = 0; i < 5; i++)
        free(product->memory[i]);
    free(product->inside);
    free(product->expected);
    free(product->bound);
}

void product_poison(test_product *product)
{
    memset(product->memory[2], POISON, product->bytes[2] + 2 * GUARD);
}

// True when byte `at` of c's memory belongs to an element of c.
static bool is_inside(const test_product *product, size_t at)
{
    if (at < GUARD || at >= GUARD + product->bytes[2]) return false;
    return product->inside[at - GUARD];
}

static const char *check_guards(const test_product *product)
{
    static char words[128];
    for (size_t i = 0; i < product->bytes[2] + 2 * GUARD; i++) {
        if (is_inside(product, i) || product->memory[2][i] == POISON) continue;
        snprintf(words, sizeof words, "byte %td from the start of c was written", (ptrdiff_t)i - GUARD);
        return words;
    }
    return NULL;
}

const char *product_check(const test_product *product)
{
    static char words[256];
    const int64_t m = product->is.m, n = product->is.n;
    for (int64_t at = 0; at < products_of(product) * m * n; at++) {
        const int64_t index = at / (m * n), row = at / n % m, column = at % n;
        const double is = input(product, 2, index, row, column), right = product->expected[at];
        if (fabs(is - right) <= product->bound[at]) continue;
        snprintf(
            words, sizeof words, "product %d, c[%d, %d] is %.17g, not %.17g: off by %.2g times what is allowed",
            (int)index, (int)row, (int)column, is, right, fabs(is - right) / product->bound[at]);
        return words;
    }
    return check_guards(product);
}
