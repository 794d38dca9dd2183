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

static int64_t row_of(const test_product *product, int i)
{
    return product->strides[i][0];
}

static void describe(test_product *product, int i, int64_t rows, int64_t columns)
{
    int64_t stride = columns + product->is.gap;
    int64_t elements = rows > 0 ? (rows - 1) * stride + columns : 0;
    product->shapes[i][0] = rows;
    product->shapes[i][1] = columns;
    product->strides[i][0] = stride;
    product->strides[i][1] = 1;
    product->bytes[i] = (size_t)(elements * hone_element_size(product->is.dtype));
    product->memory[i] = malloc(product->bytes[i] + 2 * GUARD);
    assert_non_null(product->memory[i]);
    memset(product->memory[i], POISON, product->bytes[i] + 2 * GUARD);
    product->tensors[i] = hone_tensor_of(product->memory[i] + GUARD, product->is.dtype, 2, product->shapes[i]);
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
    for (int64_t row = 0; row < product->shapes[i][0]; row++)
        for (int64_t column = 0; column < product->shapes[i][1]; column++) {
            seed = seed * 1664525u + 1013904223u;
            float value = (float)(int32_t)(seed ^ seed >> 13) * 0x1p-31f;
            hone_element_put(product->tensors[i].data, product->is.dtype, row * row_of(product, i) + column, value);
        }
}

static double input(const test_product *product, int i, int64_t row, int64_t column)
{
    return (double)hone_element_get(product->tensors[i].data, product->is.dtype, row * row_of(product, i) + column);
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

// c k eps |a||b| with eps of f32, in which every kernel adds, and one rounding to the dtype. The slope of an activation is
// at most 1.13, and its own error a few eps of what it is computed from.
static void expect(test_product *product, int64_t row, int64_t column)
{
    double sum = 0, magnitude = 0;
    for (int64_t p = 0; p < product->is.k; p++) {
        bool transposed = product->is.transpose_b;
        double term = input(product, 0, row, p) * input(product, 1, transposed ? column : p, transposed ? p : column);
        sum += term;
        magnitude += fabs(term);
    }
    double step = product->is.dtype == HONE_BF16 ? 0x1p-8 : product->is.dtype == HONE_F16 ? 0x1p-11 : 0x1p-24;
    double least = product->is.dtype == HONE_F16 ? 0x1p-25 : 0; // half the step of its subnormals
    int64_t at = row * product->is.n + column;
    double bound = (double)(product->is.k + 2) * 0x1p-24 * magnitude, eps = 0x1p-24;
    if (product->epilogue.bias) {
        sum += input(product, 3, 0, column);
        bound += eps * fabs(sum);
    }
    if (product->epilogue.activation != NULL) {
        bound = 1.13 * bound + 16 * eps * fabs(sum);
        sum = activate(product->epilogue.activation, sum);
    }
    if (product->epilogue.residual) {
        sum += input(product, 4, row, column);
        bound += eps * fabs(sum);
    }
    product->expected[at] = sum;
    product->bound[at] = bound + step * fabs(sum) * 1.01 + least;
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
    *product = (test_product){.is = is, .epilogue = epilogue, .signature = signature};
    describe(product, 0, is.m, is.k);
    describe(product, 1, is.transpose_b ? is.n : is.k, is.transpose_b ? is.k : is.n);
    describe(product, 2, is.m, is.n);
    fill(product, 0, 1);
    fill(product, 1, 2);
    init_epilogue(product);
    product->args[3] = hone_of_bool(is.transpose_b);
    product->expected = calloc((size_t)(is.m * is.n) + 1, sizeof(double));
    product->bound = calloc((size_t)(is.m * is.n) + 1, sizeof(double));
    assert_true(product->expected && product->bound);
    for (int64_t i = 0; i < is.m; i++)
        for (int64_t j = 0; j < is.n; j++)
            expect(product, i, j);
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
    int64_t element = (int64_t)(at - GUARD) / hone_element_size(product->is.dtype);
    return element % row_of(product, 2) < product->is.n;
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
    for (int64_t i = 0; i < product->is.m; i++)
        for (int64_t j = 0; j < product->is.n; j++) {
            double is = input(product, 2, i, j), right = product->expected[i * product->is.n + j];
            double bound = product->bound[i * product->is.n + j];
            if (fabs(is - right) <= bound) continue;
            snprintf(
                words, sizeof words, "c[%d, %d] is %.9g, not %.9g: off by %.2g times what is allowed", (int)i, (int)j,
                is, right, fabs(is - right) / bound);
            return words;
        }
    return check_guards(product);
}
