#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/memory.h"
#include "call/call.h"
#include "tune/worker/product.h"
#include "tune/worker/verify.h"
#include "tune/worker/verify_block.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hone_tolerance defaults = {0, 0, 0};

static hone_tensor matrix(float *data, int64_t shape[2])
{
    return hone_tensor_of(data, HONE_F32, 2, shape);
}

static hone_status compare(const hone_tensor *out, const hone_tensor *reference, double *error, hone_error *err)
{
    double largest = 0;
    assert_true(hone_verify_largest(reference, &largest, NULL));
    hone_yardstick yardstick = hone_verify_yardstick(&defaults, reference->dtype, largest);
    return hone_verify_compare(NULL, "y", out, reference, &yardstick, error, err);
}

static void roundings_pass_and_more_fails_with_the_place(void **state)
{
    (void)state;
    int64_t shape[2] = {2, 3};
    float right[6] = {1, 2, 3, 4, 5, 6}, near[6], wrong[6];
    memcpy(near, right, sizeof near);
    memcpy(wrong, right, sizeof wrong);
    near[4] = nextafterf(5, 6);
    wrong[5] = 6.01f;
    hone_tensor r = matrix(right, shape), n = matrix(near, shape), w = matrix(wrong, shape);
    hone_error err;
    double error;
    assert_int_equal(compare(&n, &r, &error, &err), HONE_OK);
    assert_true(error > 0 && error < 1);
    assert_int_equal(compare(&w, &r, &error, &err), HONE_KERNEL_FAILED);
    assert_true(error > 1);
    assert_non_null(strstr(err.message, "y[1, 2] is 6.01"));
}

static double error_of(const hone_tensor *out, const hone_tensor *reference, hone_error *err)
{
    double error = 0;
    const hone_yardstick yardstick = {.relative = 0.25, .base = 0.5};
    (void)!hone_verify_compare(NULL, "y", out, reference, &yardstick, &error, err);
    return error;
}

// Blocks are verified by vectors. The result for each element, at every count, is the same as if it was verified alone.
static void no_element_of_a_block_is_passed_over(void **state)
{
    (void)state;
    enum { MOST = 3 * HONE_VERIFY_BLOCK };
    static const int64_t counts[] = {1, 7, 31, HONE_VERIFY_BLOCK, HONE_VERIFY_BLOCK + 1, MOST - 1};
    static float right[MOST], out[MOST];
    static double wide_right[MOST], wide_out[MOST];
    static uint16_t short_right[MOST], short_out[MOST]; // bf16: 0x3f80 is 1, 0x4080 is 4
    static uint16_t half_right[MOST], half_out[MOST];   // f16: 0x3c00 is 1, 0x4400 is 4
    for (int i = 0; i < MOST; i++) {
        right[i] = out[i] = 1;
        wide_right[i] = wide_out[i] = 1;
        short_right[i] = short_out[i] = 0x3f80;
        half_right[i] = half_out[i] = 0x3c00;
    }
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        int64_t shape[1] = {counts[c]};
        hone_tensor r = hone_tensor_of(right, HONE_F32, 1, shape), o = hone_tensor_of(out, HONE_F32, 1, shape);
        hone_tensor wr = hone_tensor_of(wide_right, HONE_F64, 1, shape),
                    wo = hone_tensor_of(wide_out, HONE_F64, 1, shape);
        hone_tensor sr = hone_tensor_of(short_right, HONE_BF16, 1, shape),
                    so = hone_tensor_of(short_out, HONE_BF16, 1, shape);
        hone_tensor hr = hone_tensor_of(half_right, HONE_F16, 1, shape),
                    ho = hone_tensor_of(half_out, HONE_F16, 1, shape);
        hone_error err;
        for (int64_t at = 0; at<counts[c]; at += counts[c]> 40 ? 13 : 1) {
            char place[32];
            snprintf(place, sizeof place, "y[%lld] is 4", (long long)at);
            out[at] = 4;
            wide_out[at] = 4;
            short_out[at] = 0x4080;
            half_out[at] = 0x4400;
            assert_true(error_of(&o, &r, &err) == 4); // |4 - 1| of .5 + .25
            assert_non_null(strstr(err.message, place));
            assert_true(error_of(&wo, &wr, &err) == 4);
            assert_true(error_of(&so, &sr, &err) == 4);
            assert_non_null(strstr(err.message, place));
            assert_true(error_of(&ho, &hr, &err) == 4);
            assert_non_null(strstr(err.message, place));
            out[at] = NAN;
            wide_out[at] = 1.375;
            assert_true(isinf(error_of(&o, &r, &err)));
            assert_true(error_of(&wo, &wr, &err) == 0.5);
            out[at] = 1;
            wide_out[at] = 1;
            short_out[at] = 0x3f80;
            half_out[at] = 0x3c00;
        }
    }
}

// The worst error is exact wherever it stands, also where it is nearly that of a block before.
static void the_worst_error_is_found_in_any_block(void **state)
{
    (void)state;
    enum { COUNT = 5 * HONE_VERIFY_BLOCK + 3 };
    static double right[COUNT], out[COUNT];
    int64_t shape[1] = {COUNT};
    hone_tensor r = hone_tensor_of(right, HONE_F64, 1, shape), o = hone_tensor_of(out, HONE_F64, 1, shape);
    hone_error err;
    for (int worst = 0; worst < COUNT; worst += 97) {
        for (int i = 0; i < COUNT; i++)
            out[i] = i == worst ? nextafter(0.25, 1) : 0.25;
        assert_true(error_of(&o, &r, &err) == nextafter(0.25, 1) / 0.5);
    }
    out[COUNT - 1] = nextafter(0.5, 1); // just beyond what is allowed
    assert_true(error_of(&o, &r, &err) > 1);
    assert_non_null(strstr(err.message, "y[2562]"));
}

// Each f16 that is a number, beside itself and beside its neighbour, read by vectors as one by one.
static void every_f16_is_read_as_it_is(void **state)
{
    (void)state;
    enum { COUNT = 0x10000 };
    static uint16_t right[COUNT], next[COUNT];
    int64_t shape[1] = {1}, all[1] = {COUNT};
    const hone_yardstick exact = {.base = 0}, step = {.base = 0x1p-24};
    double error;
    for (int i = 0; i < COUNT; i++) {
        right[i] = (i & 0x7fff) > 0x7c00 ? 0 : (uint16_t)i; // no NaN
        next[i] = (right[i] & 0x7fff) < 0x400 ? right[i] ^ 1 : right[i];
    }
    hone_tensor r = hone_tensor_of(right, HONE_F16, 1, all), n = hone_tensor_of(next, HONE_F16, 1, all);
    assert_int_equal(hone_verify_compare(NULL, "y", &r, &r, &exact, &error, NULL), HONE_OK);
    assert_true(error == 0);
    assert_int_equal(hone_verify_compare(NULL, "y", &n, &r, &step, &error, NULL), HONE_OK);
    assert_true(error == 1); // subnormal numbers are one step apart
    for (int i = 0; i < COUNT; i++) {
        hone_tensor one = hone_tensor_of(&right[i], HONE_F16, 1, shape);
        const double value = fabs(hone_element_load(HONE_F16, right, i));
        const bool sure =
            hone_verify_block_within(HONE_F16, &right[i], &(uint16_t){0}, 1, &step, value * 0x1p24 * 1.001 + 1);
        assert_int_equal(sure, isfinite(value));
        assert_false(
            value > 0x1p-24 &&
            hone_verify_block_within(HONE_F16, &right[i], &(uint16_t){0}, 1, &step, value * 0x1p24 * 0.999 - 0.5));
        double largest = -1;
        assert_true(hone_verify_largest(&one, &largest, NULL));
        assert_true(largest == (isfinite(value) ? value : 0));
    }
}

// The largest number and the first NaN, wherever they stand, in every format that is looked at by vectors.
static void the_largest_and_the_first_nan_are_found_anywhere(void **state)
{
    (void)state;
    enum { COUNT = 3 * HONE_VERIFY_BLOCK + 5 };
    static const hone_dtype_id ids[] = {HONE_F32, HONE_F64, HONE_BF16, HONE_F16};
    static double memory[COUNT];
    int64_t shape[1] = {COUNT};
    for (size_t d = 0; d < sizeof ids / sizeof ids[0]; d++) {
        hone_tensor t = hone_tensor_of(memory, ids[d], 1, shape);
        double largest = 0;
        int64_t index = -1;
        memset(memory, 0, sizeof memory);
        for (int64_t at = 0; at < COUNT; at += 61) {
            hone_element_store(ids[d], memory, at, -5);
            hone_element_store(ids[d], memory, (at + 7) % COUNT, at % 2 == 0 ? INFINITY : -INFINITY);
            assert_true(hone_verify_largest(&t, &largest, NULL));
            assert_true(largest == 5);
            hone_element_store(ids[d], memory, at, NAN);
            hone_element_store(ids[d], memory, COUNT - 1, NAN);
            assert_false(hone_verify_largest(&t, &largest, &index));
            assert_int_equal(index, at);
            hone_element_store(ids[d], memory, at, 0);
            hone_element_store(ids[d], memory, COUNT - 1, 0);
            hone_element_store(ids[d], memory, (at + 7) % COUNT, 2);
        }
    }
}

// Several threads report the first wrong element, even if another thread saw a worse one earlier, and the worst error.
static void threads_find_the_first_wrong_element_and_the_worst_error(void **state)
{
    (void)state;
    enum { COUNT = 1 << 18, PLACES = 5 };
    static float right[COUNT], out[COUNT];
    static const int64_t places[PLACES] = {0, 511, COUNT / 2 - 1, COUNT / 2, COUNT - 1};
    hone_allocator allocator = hone_allocator_system();
    hone_pool *pool = NULL;
    int64_t shape[2] = {COUNT / 256, 256};
    hone_tensor r = matrix(right, shape), o = matrix(out, shape);
    const hone_yardstick yardstick = {.base = 1};
    hone_error err;
    double error;
    assert_int_equal(hone_pool_create(&allocator, 3, &pool, &err), HONE_OK);
    assert_int_equal(hone_verify_compare(pool, "y", &o, &r, &yardstick, &error, &err), HONE_OK);
    assert_true(error == 0);
    for (int first = 0; first < PLACES; first++)
        for (int worst = first; worst < PLACES; worst++) {
            char place[64], words[80];
            out[places[first]] = 2;
            out[places[worst]] = worst == first ? 2 : 3;
            assert_int_equal(hone_verify_compare(pool, "y", &o, &r, &yardstick, &error, &err), HONE_KERNEL_FAILED);
            assert_true(error == (worst == first ? 2 : 3));
            hone_verify_format_index(&o, places[first], place, sizeof place);
            snprintf(words, sizeof words, "y%s is 2", place);
            assert_non_null(strstr(err.message, words));
            out[places[first]] = out[places[worst]] = 0;
        }
    out[places[3]] = 0.75f;
    assert_int_equal(hone_verify_compare(pool, "y", &o, &r, &yardstick, &error, &err), HONE_OK);
    assert_true(error == 0.75);
    out[places[3]] = 0;
    hone_pool_destroy(&pool);
}

// One element a row: the strides of the rows are none of the elements'.
static void rows_of_one_element_are_read_where_they_are(void **state)
{
    (void)state;
    float right[4] = {1, 2, 3, 4}, out[8] = {1, 9, 2, 9, 3, 9, 4, 9};
    int64_t shape[2] = {4, 1}, strides[2] = {2, 1};
    hone_tensor r = matrix(right, shape), o = matrix(out, shape);
    hone_error err;
    o.strides = strides;
    assert_true(error_of(&o, &r, &err) == 0);
    out[6] = 40;
    assert_true(error_of(&o, &r, &err) > 1);
    assert_non_null(strstr(err.message, "y[3, 0] is 40"));
}

static void nan_never_passes_and_infinity_only_as_itself(void **state)
{
    (void)state;
    int64_t shape[2] = {1, 2};
    float right[2] = {INFINITY, 1}, same[2] = {INFINITY, 1}, other[2] = {-INFINITY, 1}, nan[2] = {INFINITY, NAN};
    hone_tensor r = matrix(right, shape), s = matrix(same, shape), o = matrix(other, shape), n = matrix(nan, shape);
    hone_error err;
    double error;
    assert_int_equal(compare(&s, &r, &error, &err), HONE_OK);
    assert_int_equal(compare(&o, &r, &error, &err), HONE_KERNEL_FAILED);
    assert_int_equal(compare(&n, &r, &error, &err), HONE_KERNEL_FAILED);
    double largest;
    int64_t index = -1;
    assert_false(hone_verify_largest(&n, &largest, &index));
    assert_int_equal(index, 1);
    float first[2] = {NAN, -3};
    hone_tensor f = matrix(first, shape);
    assert_false(hone_verify_largest(&f, &largest, &index));
    assert_int_equal(index, 0);
    assert_true(largest == 3);
}

static void a_nan_is_wrong_even_where_the_reference_has_one(void **state)
{
    (void)state;
    int64_t shape[2] = {1, 1};
    float nan[1] = {NAN};
    hone_tensor n = matrix(nan, shape);
    hone_yardstick yardstick = {.relative = 1, .base = 1};
    double error;
    assert_int_equal(hone_verify_compare(NULL, "y", &n, &n, &yardstick, &error, NULL), HONE_KERNEL_FAILED);
}

static void strides_are_followed_on_both_sides(void **state)
{
    (void)state;
    int64_t shape[2] = {2, 2}, padded[2] = {3, 1}, transposed[2] = {1, 2};
    float out[6] = {1, 2, 99, 3, 4, 99}, right[4] = {1, 3, 2, 4};
    hone_tensor o = matrix(out, shape), r = matrix(right, shape);
    o.strides = padded;
    r.strides = transposed;
    double error;
    assert_int_equal(compare(&o, &r, &error, NULL), HONE_OK);
    out[3] = 7;
    assert_int_equal(compare(&o, &r, &error, NULL), HONE_KERNEL_FAILED);
}

static void integers_are_exact_and_complex_has_two_parts(void **state)
{
    (void)state;
    int64_t shape[1] = {2};
    int32_t a[2] = {1, 2}, b[2] = {1, 3};
    hone_tensor x = hone_tensor_of(a, HONE_I32, 1, shape), y = hone_tensor_of(b, HONE_I32, 1, shape);
    double error;
    assert_int_equal(compare(&x, &x, &error, NULL), HONE_OK);
    assert_int_equal(compare(&y, &x, &error, NULL), HONE_KERNEL_FAILED);
    float c[4] = {1, 2, 3, 4}, d[4] = {1, 2, 3, 5};
    hone_tensor z = hone_tensor_of(c, HONE_C64, 1, shape), w = hone_tensor_of(d, HONE_C64, 1, shape);
    assert_int_equal(compare(&z, &z, &error, NULL), HONE_OK);
    assert_int_equal(compare(&w, &z, &error, NULL), HONE_KERNEL_FAILED);
}

static void integers_beyond_what_a_double_holds_are_exact_too(void **state)
{
    (void)state;
    int64_t shape[1] = {2}, a[2] = {1, INT64_MAX}, b[2] = {1, INT64_MAX - 1};
    for (int i = 0; i < 2; i++) {
        hone_dtype_id id = i == 0 ? HONE_I64 : HONE_U64;
        hone_tensor x = hone_tensor_of(a, id, 1, shape), y = hone_tensor_of(b, id, 1, shape);
        double error;
        assert_int_equal(compare(&x, &x, &error, NULL), HONE_OK);
        assert_int_equal(compare(&y, &x, &error, NULL), HONE_KERNEL_FAILED);
    }
}

static void an_algorithms_tolerance_replaces_the_dtypes(void **state)
{
    (void)state;
    const hone_tolerance loose = {.absolute = 0.5};
    hone_yardstick yardstick = hone_verify_yardstick(&loose, hone_dtype_of(HONE_F32), 10);
    assert_true(yardstick.base == 0.5 && yardstick.relative == 0);
    const hone_tolerance scaled = {.scale = 4};
    yardstick = hone_verify_yardstick(&scaled, hone_dtype_of(HONE_BF16), 8);
    assert_true(yardstick.base == 4 * 0x1p-7 * 8);
}

// The table of docs/tolerance.md.
static void a_dtype_allows_what_its_page_says_and_no_more(void **state)
{
    static const struct {
        hone_dtype_id id;
        double relative, scale, eps, least;
    } page[] = {
        {HONE_F64, 1e-9, 4096, 0x1p-52, 0},
        {HONE_F32, 1e-5, 256, 0x1p-23, 0},
        {HONE_F16, 8e-3, 8, 0x1p-10, 0x1p-24},
        {HONE_BF16, 3.2e-2, 4, 0x1p-7, 0},
        {HONE_F8_E4M3FN, 0.25, 2, 0x1p-3, 0x1p-9},
        {HONE_F8_E5M2, 0.5, 2, 0x1p-2, 0x1p-16},
        {HONE_C64, 1e-5, 256, 0x1p-23, 0},
        {HONE_C128, 1e-9, 4096, 0x1p-52, 0},
        {HONE_I32, 0, 0, 0, 0},
        {HONE_I64, 0, 0, 0, 0},
        {HONE_U8, 0, 0, 0, 0},
        {HONE_BOOL, 0, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof page / sizeof *page; i++) {
        const hone_yardstick has = hone_verify_yardstick(&(hone_tolerance){.scale = 0}, hone_dtype_of(page[i].id), 10);
        assert_true(has.relative == page[i].relative);
        assert_true(has.base == page[i].scale * page[i].eps * 10 + page[i].least);
    }
}

static void scalars_and_empty_tensors_are_compared(void **state)
{
    (void)state;
    int64_t none[2] = {0, 3};
    float one[1] = {1}, two[1] = {2};
    hone_tensor a = hone_tensor_of(one, HONE_F32, 0, NULL), b = hone_tensor_of(two, HONE_F32, 0, NULL);
    double error;
    hone_error err;
    assert_int_equal(compare(&a, &a, &error, NULL), HONE_OK);
    assert_int_equal(compare(&b, &a, &error, &err), HONE_KERNEL_FAILED);
    assert_non_null(strstr(err.message, "y[] is 2"));
    // What stands behind a scalar is not its own.
    float alone[2] = {1, 7}, other[2] = {1, 8};
    hone_tensor c = hone_tensor_of(alone, HONE_F32, 0, NULL), d = hone_tensor_of(other, HONE_F32, 0, NULL);
    assert_int_equal(compare(&c, &d, &error, &err), HONE_OK);
    assert_true(error == 0);
    double largest = 0;
    assert_true(hone_verify_largest(&c, &largest, NULL));
    assert_true(largest == 1);
    hone_tensor empty = matrix(one, none);
    assert_int_equal(compare(&empty, &empty, &error, NULL), HONE_OK);
}

static void a_place_is_said_by_its_index_in_each_dim(void **state)
{
    (void)state;
    char text[64];
    int64_t shape[] = {2, 3, 4}, none[] = {2, 0, 3};
    hone_tensor tensor = hone_tensor_of(NULL, HONE_F32, 3, shape);
    hone_verify_format_index(&tensor, 23, text, sizeof text);
    assert_string_equal(text, "[1, 2, 3]");
    hone_verify_format_index(&tensor, 7, text, sizeof text);
    assert_string_equal(text, "[0, 1, 3]");
    hone_verify_format_index(&tensor, 7, text, 4); // cut where there is no room
    assert_string_equal(text, "[0,");
    tensor.shape = none;
    hone_verify_format_index(&tensor, 1, text, sizeof text);
    assert_string_equal(text, "[0, 0, 1]");
}

enum { M = 150, K = 70, N = 90 };

// A product of dtype, as a kernel that sums in f32, or f64, and rounds once leaves it.
typedef struct a_product {
    hone_dtype_id id;
    int32_t b_rows;
    char a[M * K * 8], b[K * N * 8], c[M * N * 8];
    int64_t a_shape[2], b_shape[2], c_shape[2];
} a_product;

static int64_t place_in_b(const a_product *p, int64_t i, int64_t j)
{
    return p->b_rows == 0 ? i * N + j : j * K + i;
}

static void multiply_again(a_product *p)
{
    const hone_dtype_id id = p->id;
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float narrow = 0;
            double sum = 0;
            for (int64_t k = 0; k < K; k++) {
                const double term =
                    hone_element_load(id, p->a, i * K + k) * hone_element_load(id, p->b, place_in_b(p, k, j));
                narrow += (float)term;
                sum += term;
            }
            hone_element_store(id, p->c, i * N + j, id == HONE_F64 ? sum : (double)narrow);
        }
}

static void fill_product(a_product *p, hone_dtype_id id, int32_t b_rows)
{
    *p = (a_product){.id = id, .b_rows = b_rows, .a_shape = {M, K}, .b_shape = {K, N}, .c_shape = {M, N}};
    if (b_rows == 1) p->b_shape[0] = N, p->b_shape[1] = K;
    for (int64_t i = 0; i < M * K; i++)
        hone_element_store(id, p->a, i, (rand() % 2001 - 1000) * 1e-3);
    for (int64_t i = 0; i < K * N; i++)
        hone_element_store(id, p->b, i, (rand() % 2001 - 1000) * 1e-3);
    multiply_again(p);
}

static hone_status check_product(a_product *p, hone_pool *pool, double *error, hone_error *err)
{
    const hone_dtype dtype = hone_dtype_of(p->id);
    hone_tensor a = hone_tensor_of(p->a, HONE_F32, 2, p->a_shape), b = hone_tensor_of(p->b, HONE_F32, 2, p->b_shape),
                c = hone_tensor_of(p->c, HONE_F32, 2, p->c_shape);
    a.dtype = b.dtype = c.dtype = dtype;
    const hone_product which = {.a_rows = 0, .b_rows = p->b_rows};
    const hone_yardstick yardstick = hone_verify_yardstick(&defaults, dtype, 10);
    *error = 0;
    return hone_product_check(pool, "c", &which, &a, &b, &c, &yardstick, error, err);
}

static void every_element_of_a_product_is_verified(void **state)
{
    (void)state;
    static const hone_dtype_id ids[] = {HONE_F32, HONE_BF16, HONE_F16, HONE_F64};
    static a_product p;
    hone_allocator allocator = hone_allocator_system();
    hone_pool *pool = NULL;
    hone_error err = {0};
    double error;
    assert_int_equal(hone_pool_create(&allocator, 3, &pool, &err), HONE_OK);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        for (int32_t b_rows = 0; b_rows < 2; b_rows++) {
            fill_product(&p, ids[i], b_rows);
            assert_int_equal(check_product(&p, i == 0 ? NULL : pool, &error, &err), HONE_OK);
            assert_true(error < 0.5);
            // One element that is off by as much as it is large.
            const int64_t at = 77 * N + 31;
            const double right = hone_element_load(ids[i], p.c, at);
            hone_element_store(ids[i], p.c, at, right + 6);
            assert_int_equal(check_product(&p, pool, &error, &err), HONE_KERNEL_FAILED);
            assert_non_null(strstr(err.message, "c[77, 31] is "));
            hone_element_store(ids[i], p.c, at, NAN);
            assert_int_equal(check_product(&p, pool, &error, &err), HONE_KERNEL_FAILED);
            hone_element_store(ids[i], p.c, at, right);
            // One row that is left at zero, and one column.
            for (int64_t j = 0; j < N; j++)
                hone_element_store(ids[i], p.c, 140 * N + j, 0);
            assert_int_equal(check_product(&p, pool, &error, &err), HONE_KERNEL_FAILED);
            assert_non_null(strstr(err.message, "c[140, "));
            fill_product(&p, ids[i], b_rows);
            for (int64_t j = 0; j < M; j++)
                hone_element_store(ids[i], p.c, j * N + 3, 0);
            assert_int_equal(check_product(&p, pool, &error, &err), HONE_KERNEL_FAILED);
            assert_non_null(strstr(err.message, ", 3] is 0"));
        }
    hone_pool_destroy(&pool);
}

// Of two products of one b, which differ in a: c[0] and c[1] lie apart.
static void a_batch_is_verified_product_by_product(void **state)
{
    (void)state;
    enum { GAP = 5 };
    static a_product p[2];
    static float a[2][M * K], c[2][M * N + GAP];
    const int64_t a_shape[4] = {1, 2, M, K}, b_shape[4] = {1, 2, K, N}, c_shape[4] = {1, 2, M, N};
    const int64_t b_strides[4] = {0, 0, N, 1}, c_strides[4] = {9, M * N + GAP, N, 1};
    hone_error err = {0};
    double error = 0;
    for (int i = 0; i < 2; i++) {
        fill_product(&p[i], HONE_F32, 0);
        memcpy(p[i].b, p[0].b, sizeof p[i].b);
        multiply_again(&p[i]);
        memcpy(a[i], p[i].a, sizeof a[i]);
        memcpy(c[i], p[i].c, sizeof a[i][0] * M * N);
    }
    hone_tensor of_a = hone_tensor_of(a, HONE_F32, 4, (int64_t *)a_shape),
                of_b = hone_tensor_of(p[0].b, HONE_F32, 4, (int64_t *)b_shape),
                of_c = hone_tensor_of(c, HONE_F32, 4, (int64_t *)c_shape);
    of_b.strides = (int64_t *)b_strides;
    of_c.strides = (int64_t *)c_strides;
    const hone_product which = {.a_rows = 2, .b_rows = 2};
    const hone_yardstick yardstick = hone_verify_yardstick(&defaults, of_c.dtype, 10);
    assert_int_equal(hone_product_check(NULL, "c", &which, &of_a, &of_b, &of_c, &yardstick, &error, &err), HONE_OK);
    assert_true(error < 0.5);
    for (int i = 0; i < 2; i++) {
        char words[64];
        const float right = c[i][77 * N + 31];
        c[i][77 * N + 31] += 6;
        assert_int_equal(
            hone_product_check(NULL, "c", &which, &of_a, &of_b, &of_c, &yardstick, &error, &err), HONE_KERNEL_FAILED);
        snprintf(words, sizeof words, "c[0, %d, 77, 31] is ", i);
        assert_non_null(strstr(err.message, words));
        c[i][77 * N + 31] = right;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roundings_pass_and_more_fails_with_the_place),
        cmocka_unit_test(no_element_of_a_block_is_passed_over),
        cmocka_unit_test(the_worst_error_is_found_in_any_block),
        cmocka_unit_test(every_f16_is_read_as_it_is),
        cmocka_unit_test(the_largest_and_the_first_nan_are_found_anywhere),
        cmocka_unit_test(threads_find_the_first_wrong_element_and_the_worst_error),
        cmocka_unit_test(rows_of_one_element_are_read_where_they_are),
        cmocka_unit_test(nan_never_passes_and_infinity_only_as_itself),
        cmocka_unit_test(a_nan_is_wrong_even_where_the_reference_has_one),
        cmocka_unit_test(strides_are_followed_on_both_sides),
        cmocka_unit_test(integers_beyond_what_a_double_holds_are_exact_too),
        cmocka_unit_test(integers_are_exact_and_complex_has_two_parts),
        cmocka_unit_test(an_algorithms_tolerance_replaces_the_dtypes),
        cmocka_unit_test(a_dtype_allows_what_its_page_says_and_no_more),
        cmocka_unit_test(scalars_and_empty_tensors_are_compared),
        cmocka_unit_test(a_batch_is_verified_product_by_product),
        cmocka_unit_test(every_element_of_a_product_is_verified),
        cmocka_unit_test(a_place_is_said_by_its_index_in_each_dim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
