// What docs/special-values.md promises of large, tiny, masked, infinite elements and NaN: every kernel of hone, on
// every instruction set of this machine and at configs from its space, gives what the reference gives; and what that
// is.
#include "contest.h"

#include "kernels/tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const dtypes[] = {"f32", "bf16", "f16"};

// Element i of a row of count elements; `usual` is what it was.
typedef double filling(int64_t i, int64_t count, double usual);

static double lowest_f32(int64_t i, int64_t count, double usual)
{
    (void)i, (void)count, (void)usual;
    return -(double)FLT_MAX;
}

static double lowest_bf16(int64_t i, int64_t count, double usual)
{
    (void)i, (void)count, (void)usual;
    return -0x1.fep127;
}

// What JAX masks with.
static double masked_by_jax(int64_t i, int64_t count, double usual)
{
    (void)i, (void)count, (void)usual;
    return -2.3819763e38;
}

static double half_masked(int64_t i, int64_t count, double usual)
{
    (void)count;
    return i % 2 ? -0x1.fep127 : usual;
}

static double all_but_the_last_masked(int64_t i, int64_t count, double usual)
{
    return i + 1 < count ? -2.3819763e38 : usual;
}

static double from_lowest_to_highest(int64_t i, int64_t count, double usual)
{
    (void)count;
    return i % 3 == 0 ? -(double)FLT_MAX : i % 3 == 1 ? (double)FLT_MAX : usual;
}

static double halves_of_3e38(int64_t i, int64_t count, double usual)
{
    (void)usual;
    return i < count / 2 ? 3e38 : -3e38;
}

static double around_1e10(int64_t i, int64_t count, double usual)
{
    (void)count, (void)usual;
    return 1e10 + 1024 * (double)(i % 5);
}

static double both_signs_of_1e30(int64_t i, int64_t count, double usual)
{
    (void)count;
    return usual < 0 ? -1e30 : i % 7 == 6 ? 1e25 : 1e30;
}

static double squares_too_small(int64_t i, int64_t count, double usual)
{
    (void)i, (void)count;
    return 1e-25 * usual;
}

static double subnormal(int64_t i, int64_t count, double usual)
{
    (void)i, (void)count;
    return 1e-39 * usual;
}

static double zero(int64_t i, int64_t count, double usual)
{
    (void)i, (void)count, (void)usual;
    return 0;
}

static double one_nan(int64_t i, int64_t count, double usual)
{
    return i == count / 2 ? (double)NAN : usual;
}

static double nan_at_the_end(int64_t i, int64_t count, double usual)
{
    return i + 1 == count ? (double)NAN : usual;
}

static double one_infinity(int64_t i, int64_t count, double usual)
{
    return i == count / 3 ? INFINITY : usual;
}

static double half_minus_infinity(int64_t i, int64_t count, double usual)
{
    (void)count;
    return i % 2 ? -INFINITY : usual;
}

static double all_minus_infinity(int64_t i, int64_t count, double usual)
{
    (void)i, (void)count, (void)usual;
    return -INFINITY;
}

static filling *const fillings[] = {
    lowest_f32,
    lowest_bf16,
    masked_by_jax,
    half_masked,
    all_but_the_last_masked,
    from_lowest_to_highest,
    around_1e10,
    both_signs_of_1e30,
    squares_too_small,
    subnormal,
    zero,
    one_nan,
    one_infinity,
    nan_at_the_end,
    all_minus_infinity,
    half_minus_infinity,
    halves_of_3e38,
};
enum { FILLINGS = sizeof fillings / sizeof *fillings };

static int64_t elements_of(const contest *own, size_t value)
{
    int64_t count = 1;
    for (int32_t axis = 0; axis < own->tensors[value].ndim; axis++)
        count *= own->tensors[value].shape[axis];
    return count;
}

// Fills `count` elements from `first` on of a dense value.
static void fill(contest *own, size_t value, int64_t first, int64_t count, filling *with)
{
    for (int64_t i = 0; i < count; i++)
        contest_set(own, value, first + i, with(i, count, contest_get(own, value, first + i)));
}

static void start(contest *own, const hone_kernel_table *table, const char *call)
{
    contest_init(own, table, call, 0, 2);
    own->only_own = true;
}

// Rows ----------------------------------------------------------------------------------------------------------------

// The middle one of three rows of value 0 is filled; the others show that a row minds its own business.
static void each_row(const hone_kernel_table *table, const char *format, size_t configs)
{
    static const int lengths[] = {1, 2, 7, 16, 33, 100, 128, 129, 517};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t k = 0; k < 3 * FILLINGS; k++) {
            const char *dtype = dtypes[k % 3];
            char text[200];
            contest own;
            const int length = lengths[i];
            snprintf(text, sizeof text, format, dtype, length, dtype, length, dtype, length, dtype, length);
            start(&own, table, text);
            fill(&own, 0, lengths[i], lengths[i], fillings[k / 3]);
            contest_run(&own, configs);
            contest_deinit(&own);
        }
}

static void every_softmax_gives_what_the_reference_gives(void **state)
{
    static const char *const calls[] = {
        "softmax(%s[3,%d])",
        "softmax(%s[3,%d], scale=-3.5)",
        "softmax(%s[3,%d], scale=0.0)",
        "softmax(%s[3,%d], scale=1e-38)",
        "softmax(%s[3,%d], scale=-1e-42)",
        "softmax(%s[3,%d], scale=1e30)",
        "softmax(%s[3,%d], scale=1e300)",
    };
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        each_row(&hone_softmax_table, calls[i], i == 0 ? 12 : 5);
}

static void every_rms_norm_gives_what_the_reference_gives(void **state)
{
    static const char *const calls[] = {
        "rms_norm(%s[3,%d], %s[%d])",
        "rms_norm(%s[3,%d], %s[%d], eps=0.0)",
        "rms_norm(%s[3,%d], %s[%d], eps=1e-44)",
        "rms_norm(%s[3,%d], %s[%d], eps=1e60)",
    };
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        each_row(&hone_rms_norm_table, calls[i], 4);
}

static void every_add_rms_norm_gives_what_the_reference_gives(void **state)
{
    (void)state;
    each_row(&hone_add_rms_norm_table, "add_rms_norm(%s[3,%d], %s[3,%d], %s[%d])", 4);
    each_row(&hone_add_rms_norm_table, "add_rms_norm(%s[3,%d], %s[3,%d], %s[%d], eps=0.0)", 4);
}

// What is not finite reaches its pair and no other. Elements of 1e38 and more are left out: their products are formed in
// f32.
static void each_rope(bool is_back)
{
    static filling *const kinds[] = {
        around_1e10, squares_too_small, subnormal,    both_signs_of_1e30,  zero,
        one_nan,     nan_at_the_end,    one_infinity, half_minus_infinity, all_minus_infinity,
    };
    static const int halves[] = {1, 3, 16, 33, 64};
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++)
        for (size_t k = 0; k < 6 * sizeof kinds / sizeof *kinds; k++) {
            const char *dtype = dtypes[k % 3];
            char text[200];
            contest own;
            snprintf(
                text, sizeof text, "%s(%s[3,2,%d], f32[3,%d], f32[3,%d], interleaved=%s)",
                is_back ? "rope_vjp" : "rope", dtype, 2 * halves[i] + 3, halves[i], halves[i],
                k / 3 % 2 ? "true" : "false");
            start(&own, is_back ? &hone_rope_vjp_table : &hone_rope_table, text);
            fill(&own, 0, 2 * halves[i] + 3, 2 * halves[i] + 3, kinds[k / 6]);
            contest_run(&own, 3);
            contest_deinit(&own);
        }
}

static void every_rope_and_its_gradient_give_what_the_reference_gives(void **state)
{
    (void)state;
    each_rope(false);
    each_rope(true);
}

static void every_layer_norm_gives_what_the_reference_gives(void **state)
{
    static const char *const calls[] = {
        "layer_norm(%s[3,%d], %s[%d], %s[%d])",
        "layer_norm(%s[3,%d], eps=0.0)",
        "layer_norm(%s[3,%d], %s[%d], subtract_mean=false, eps=1e-44)",
        "layer_norm(%s[3,%d], %s[%d], eps=1e60, weight_offset=1.0)",
    };
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        each_row(&hone_layer_norm_table, calls[i], 4);
}

static void every_silu_mul_gives_what_the_reference_gives(void **state)
{
    (void)state;
    each_row(&hone_silu_mul_table, "silu_mul(%s[3,%d], %s[3,%d])", 4);
    each_row(&hone_silu_mul_vjp_table, "silu_mul_vjp(%s[3,%d], %s[3,%d], %s[3,%d])", 4);
}

static void set_value(contest *own, size_t value, double number)
{
    for (int64_t i = 0; i < elements_of(own, value); i++)
        contest_set(own, value, i, number);
}

// A sigmoid times 2^-149 is 0 in f32; times an infinity it is to be one all the same.
static void the_smallest_number_times_an_infinity_is_infinite(void **state)
{
    static const double values[][3] = {
        {0x1p-149, INFINITY, 1}, {0x1p-149, 1, INFINITY}, {1, 0x1p-149, INFINITY}, {1, -INFINITY, 0x1p-149}};
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        contest forth, back;
        start(&forth, &hone_silu_mul_table, "silu_mul(f32[3,37], f32[3,37])");
        start(&back, &hone_silu_mul_vjp_table, "silu_mul_vjp(f32[3,37], f32[3,37], f32[3,37])");
        for (size_t value = 0; value < 3; value++) {
            if (value < 2) set_value(&forth, value, values[i][value]);
            set_value(&back, value, values[i][value]);
        }
        contest_run(&forth, 4);
        contest_run(&back, 4);
        contest_deinit(&forth);
        contest_deinit(&back);
    }
}

// Of what softmax gave and of what came back: nothing special is in both. Products of an element and a d_y of 1e38 are no
// floats.
static void every_softmax_vjp_gives_what_the_reference_gives(void **state)
{
    static filling *const kinds[] = {
        squares_too_small,   subnormal,         zero, one_nan, nan_at_the_end, one_infinity,
        half_minus_infinity, all_minus_infinity};
    static const int lengths[] = {1, 2, 7, 16, 33, 100, 128, 129, 517};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t k = 0; k < 6 * sizeof kinds / sizeof *kinds; k++) {
            const char *dtype = dtypes[k % 3];
            char text[200];
            contest own;
            snprintf(
                text, sizeof text, "softmax_vjp(%s[3,%d], %s[3,%d]%s)", dtype, lengths[i], dtype, lengths[i],
                i % 2 ? ", scale=-3.5" : "");
            start(&own, &hone_softmax_vjp_table, text);
            fill(&own, k / 3 % 2, lengths[i], lengths[i], kinds[k / 6]);
            contest_run(&own, 4);
            contest_deinit(&own);
        }
}

// Elements whose squares or products leave the range of floats are computed in double; what is not finite makes the columns
// NaN that it reaches, as in the reference.
static void every_norm_vjp_gives_what_the_reference_gives(void **state)
{
    (void)state;
    each_row(&hone_rms_norm_vjp_table, "rms_norm_vjp(%s[3,%d], %s[%d], %s[3,%d])", 4);
    each_row(&hone_add_rms_norm_vjp_table, "add_rms_norm_vjp(%s[3,%d], %s[%d], %s[3,%d], %s[3,%d])", 4);
    each_row(&hone_layer_norm_vjp_table, "layer_norm_vjp(%s[3,%d], %s[3,%d], %s[%d])", 4);
    each_row(&hone_layer_norm_vjp_table, "layer_norm_vjp(%s[3,%d], %s[3,%d], subtract_mean=false, eps=1e-44)", 4);
}

// A sum of such elements leaves what was rounded away as they were added, which is no special value.
static bool cancels(filling *with)
{
    return with == both_signs_of_1e30 || with == from_lowest_to_highest;
}

static void every_reduction_gives_what_the_reference_gives(void **state)
{
    static const int lengths[] = {1, 2, 7, 33, 300, 4099};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t k = 0; k < FILLINGS; k++) {
            if (cancels(fillings[k])) continue;
            char text[60];
            contest own;
            snprintf(text, sizeof text, "reduction(f32[3,%d])", lengths[i]);
            start(&own, &hone_reduction_table, text);
            fill(&own, 0, lengths[i], lengths[i], fillings[k]);
            contest_run(&own, 12);
            contest_deinit(&own);
        }
}

// The whole of value 0, whose means go along the other axis.
static void every_mean_pooling_gives_what_the_reference_gives(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3 * FILLINGS; k++) {
        if (cancels(fillings[k / 3]) || fillings[k / 3] == around_1e10) continue;
        char text[60];
        contest own;
        snprintf(text, sizeof text, "mean_pooling(%s[2,70,33])", dtypes[k % 3]);
        start(&own, &hone_mean_pooling_table, text);
        fill(&own, 0, 70 * 33, 70 * 33, fillings[k / 3]);
        contest_run(&own, 6);
        contest_deinit(&own);
    }
}

// Without a state the first step is its value, however small the key.
static void every_rwkv4_gives_what_the_reference_gives(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3 * FILLINGS; k++)
        for (size_t value = 0; value < 4; value += 2) { // the decay, the keys
            char text[120];
            contest own;
            const char *dtype = dtypes[k % 3];
            if (fillings[k / 3] == around_1e10) continue; // a float of 1e10 less a decay of 7 is itself
            snprintf(text, sizeof text, "rwkv4(%s[21], %s[21], %s[2,9,21], %s[2,9,21])", dtype, dtype, dtype, dtype);
            start(&own, &hone_rwkv4_table, text);
            fill(&own, 1, 0, 21, zero); // u + k stays within range
            fill(&own, value, 0, elements_of(&own, value), fillings[k / 3]);
            contest_run(&own, 4);
            contest_deinit(&own);
        }
}

// Products ------------------------------------------------------------------------------------------------------------

static void not_a_number_stays_in_its_row_or_column_of_a_product(void **state)
{
    static filling *const kinds[] = {one_nan, nan_at_the_end, one_infinity, half_minus_infinity};
    static const int sizes[][3] = {{5, 7, 9}, {33, 20, 17}, {1, 64, 31}, {70, 33, 40}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < 24; k++) {
            char text[80];
            contest own;
            const int m = sizes[i][0], n = sizes[i][1], depth = sizes[i][2];
            const char *dtype = dtypes[k % 3];
            const size_t value = k / 3 % 2;
            snprintf(text, sizeof text, "matmul(%s[%d,%d], %s[%d,%d])", dtype, m, depth, dtype, depth, n);
            start(&own, &hone_matmul_table, text);
            const int64_t width = value ? n : depth, rows = value ? depth : m;
            fill(&own, value, rows / 2 * width, width, kinds[k / 6]);
            contest_run(&own, 4);
            contest_deinit(&own);
        }
}

static void every_stencil_spreads_what_is_not_finite_as_the_reference_does(void **state)
{
    static filling *const kinds[] = {one_nan, nan_at_the_end, one_infinity, half_minus_infinity, subnormal};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        contest own;
        start(&own, &hone_stencil_table, "stencil(f32[3,9,70], f32[7])");
        fill(&own, 0, 0, elements_of(&own, 0), kinds[k]);
        contest_run(&own, 24);
        contest_deinit(&own);
    }
}

// Attention -----------------------------------------------------------------------------------------------------------

static const char *const attentions[] = {"flash_attention", "scaled_dot_product_attention", "attention"};
static const hone_kernel_table *const attention_tables[] = {
    &hone_flash_attention_table, &hone_scaled_dot_product_attention_table, &hone_attention_table};
static const char *const masks[] = {"", ", causal=true", ", sliding_window=3", ", causal=true, sliding_window=1"};

static void each_attention(int queries, void (*change)(contest *own))
{
    for (size_t k = 0; k < 3 * 3 * 4; k++) {
        char text[200];
        contest own;
        const char *dtype = dtypes[k % 3], *name = attentions[k / 3 % 3], *mask = masks[k / 9];
        snprintf(
            text, sizeof text, "%s(%s[2,%d,4,16], %s[2,40,2,16], %s[2,40,2,16], softmax_scale=0.25%s)", name, dtype,
            queries, dtype, dtype, mask);
        start(&own, attention_tables[k / 3 % 3], text);
        change(&own);
        contest_run(&own, 6);
        contest_deinit(&own);
    }
}

// Logits of -1.6e37, below what was once the lowest maximum.
static void lower_all_logits(contest *own)
{
    set_value(own, 0, 1e18);
    set_value(own, 1, -1e18);
}

// Half of the keys have logits of the one sign, half of the other.
static void split_logits(contest *own)
{
    set_value(own, 0, 1e18);
    for (int64_t i = 0; i < elements_of(own, 1); i++)
        contest_set(own, 1, i, i / 32 % 2 ? 1e18 : -1e18);
}

static void forbid_all_keys(contest *own)
{
    set_value(own, 0, 1);
    set_value(own, 1, -INFINITY);
}

static void forbid_some_keys(contest *own)
{
    set_value(own, 0, 1);
    for (int64_t i = 0; i < elements_of(own, 1); i++)
        if (i / 32 % 3 == 1) contest_set(own, 1, i, -INFINITY);
}

static void put_nan_in_a_query(contest *own)
{
    contest_set(own, 0, elements_of(own, 0) / 2 + 5, (double)NAN);
}

static void put_infinity_in_a_query(contest *own)
{
    contest_set(own, 0, elements_of(own, 0) / 2 + 5, INFINITY);
}

static void put_nan_in_a_key(contest *own)
{
    contest_set(own, 1, 5 * 32 + 3, (double)NAN);
}

static void put_infinity_in_a_key(contest *own)
{
    contest_set(own, 1, 7 * 32 + 3, INFINITY);
}

static void make_all_subnormal(contest *own)
{
    for (size_t value = 0; value < 2; value++)
        fill(own, value, 0, elements_of(own, value), subnormal);
}

static void every_attention_gives_what_the_reference_gives(void **state)
{
    static void (*const changes[])(contest * own) = {
        lower_all_logits,   split_logits,     forbid_all_keys,       forbid_some_keys,
        put_nan_in_a_query, put_nan_in_a_key, put_infinity_in_a_key, make_all_subnormal,
    };
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        each_attention(1, changes[i]);
        each_attention(5, changes[i]);
        each_attention(43, changes[i]);
    }
}

static void put_nan_in_a_value(contest *own)
{
    contest_set(own, 2, 5 * 32 + 3, (double)NAN);
}

static void a_nan_in_a_value_reaches_the_queries_that_attend_to_it(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3 * 3; k++) {
        char text[200];
        contest own;
        const char *dtype = dtypes[k % 3];
        snprintf(
            text, sizeof text, "%s(%s[2,9,4,16], %s[2,40,2,16], %s[2,40,2,16])", attentions[k / 3], dtype, dtype,
            dtype);
        start(&own, attention_tables[k / 3], text);
        put_nan_in_a_value(&own);
        contest_run(&own, 6);
        contest_deinit(&own);
    }
}

// Keys of 1e18 are not among them: errors that sum to 0 but for rounding are multiplied by them.
static void every_attention_vjp_gives_what_the_reference_gives(void **state)
{
    static void (*const changes[])(contest * own) = {
        put_nan_in_a_query,
        put_infinity_in_a_query,
        make_all_subnormal,
    };
    static const int queries[] = {1, 5, 43};
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        for (size_t k = 0; k < 3 * 3 * 4; k++) {
            char text[200];
            contest own;
            const char *dtype = dtypes[k % 3];
            snprintf(
                text, sizeof text,
                "flash_attention_vjp(%s[2,%d,4,16], %s[2,40,2,16], %s[2,40,2,16], %s[2,%d,4,16], softmax_scale=0.25%s)",
                dtype, queries[k / 3 % 3], dtype, dtype, dtype, queries[k / 3 % 3], masks[k / 9]);
            start(&own, &hone_flash_attention_vjp_table, text);
            changes[i](&own);
            contest_run(&own, 6);
            contest_deinit(&own);
        }
}

static void empty_tensors_are_computed_as_the_reference_does(void **state)
{
    static const struct {
        const hone_kernel_table *table;
        const char *call;
    } calls[] = {
        {&hone_rope_table, "rope(f32[0,2,6], f32[0,3], f32[0,3])"},
        {&hone_rope_table, "rope(f32[2,0,6], f32[2,3], f32[2,3])"},
        {&hone_rope_table, "rope(f16[2,2,6], f32[2,0], f32[2,0])"},
        {&hone_rope_table, "rope(f32[2,2,0], f32[2,0], f32[2,0], interleaved=true)"},
        {&hone_softmax_table, "softmax(f32[3,0])"},
        {&hone_softmax_table, "softmax(bf16[0,9])"},
        {&hone_rms_norm_table, "rms_norm(f32[3,0], f32[0])"},
        {&hone_add_rms_norm_table, "add_rms_norm(f32[3,0], f32[3,0], f32[0])"},
        {&hone_add_rms_norm_table, "add_rms_norm(bf16[0,9], bf16[0,9], bf16[9])"},
        {&hone_layer_norm_table, "layer_norm(f32[3,0], f32[0], f32[0])"},
        {&hone_softmax_vjp_table, "softmax_vjp(f32[3,0], f32[3,0])"},
        {&hone_softmax_vjp_table, "softmax_vjp(bf16[0,9], bf16[0,9])"},
        {&hone_rms_norm_vjp_table, "rms_norm_vjp(f32[3,0], f32[0], f32[3,0])"},
        {&hone_rms_norm_vjp_table, "rms_norm_vjp(bf16[0,9], bf16[9], bf16[0,9])"},
        {&hone_layer_norm_vjp_table, "layer_norm_vjp(f32[0,90], f32[0,90])"},
        {&hone_rope_vjp_table, "rope_vjp(f32[2,0,6], f32[2,3], f32[2,3])"},
        {&hone_flash_attention_vjp_table,
         "flash_attention_vjp(f32[1,3,2,4], f32[1,0,2,4], f32[1,0,2,4], f32[1,3,2,4])"},
        {&hone_flash_attention_vjp_table,
         "flash_attention_vjp(f32[1,0,2,4], f32[1,3,2,4], f32[1,3,2,4], f32[1,0,2,4])"},
        {&hone_silu_mul_table, "silu_mul(f32[3,0], f32[3,0])"},
        {&hone_reduction_table, "reduction(f32[3,0])"},
        {&hone_mean_pooling_table, "mean_pooling(f16[2,0,5])"},
        {&hone_rwkv4_table, "rwkv4(f32[3], f32[3], f32[1,0,3], f32[1,0,3])"},
        {&hone_matmul_table, "matmul(f32[3,0], f32[0,5])"},
        {&hone_flash_attention_table, "flash_attention(f32[1,3,2,4], f32[1,0,2,4], f32[1,0,2,4])"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        contest own;
        start(&own, calls[i].table, calls[i].call);
        contest_run(&own, 2);
        contest_deinit(&own);
    }
}

// What the reference gives --------------------------------------------------------------------------------------------

// The results of value `result` of the call, whose value 0 is `is`.
static void expect(
    const hone_kernel_table *table,
    const char *call,
    size_t count,
    const double *is,
    size_t result,
    const double *right)
{
    contest own;
    start(&own, table, call);
    for (size_t value = 1; value < result; value++)
        set_value(&own, value, 1);
    for (size_t i = 0; i < count; i++)
        contest_set(&own, 0, (int64_t)i, is[i]);
    contest_run_kernel(&own, "reference");
    for (int64_t i = 0; i < elements_of(&own, result); i++) {
        double came = contest_get(&own, result, i), allowed = 1e-6 * fabs(right[i]);
        if (isnan(right[i]) ? !isnan(came) : !(came == right[i] || fabs(came - right[i]) <= allowed))
            fail_msg("%s: element %d is %g, not %g", call, (int)i, came, right[i]);
    }
    contest_deinit(&own);
}

// is: as many elements as value 0 has.
#define EXPECT(table, call, is, result, right) expect(&table, call, sizeof is / sizeof *is, is, result, right)

static void a_softmax_whose_largest_are_equal_shares_among_them(void **state)
{
    (void)state;
    const double lowest[] = {-(double)FLT_MAX, -(double)FLT_MAX, -(double)FLT_MAX, -(double)FLT_MAX};
    const double large[] = {1e30, -1e30, 1e30, 0}, ends[] = {-(double)FLT_MAX, (double)FLT_MAX};
    const double even[] = {0.25, 0.25, 0.25, 0.25}, two[] = {0.5, 0, 0.5, 0}, last[] = {0, 1}, first[] = {1, 0};
    const double nan[] = {(double)NAN, (double)NAN}, none[] = {-INFINITY, -INFINITY}, infinite[] = {INFINITY, 1};
    EXPECT(hone_softmax_table, "softmax(f32[1,4])", lowest, 1, even);
    EXPECT(hone_softmax_table, "softmax(f32[1,4])", large, 1, two);
    EXPECT(hone_softmax_table, "softmax(f32[1,2])", ends, 1, last);
    EXPECT(hone_softmax_table, "softmax(f32[1,2], scale=-1.0)", ends, 1, first);
    EXPECT(hone_softmax_table, "softmax(f32[1,2], scale=0.0)", ends, 1, ((const double[]){0.5, 0.5}));
    EXPECT(hone_softmax_table, "softmax(f32[1,2])", none, 1, nan);
    EXPECT(hone_softmax_table, "softmax(f32[1,2])", infinite, 1, nan);
}

static void a_row_of_huge_or_tiny_elements_is_normalised_all_the_same(void **state)
{
    (void)state;
    const double huge[] = {3e38, -3e38}, tiny[] = {3e-39, 3e-39}, zeros[] = {0, 0}, infinite[] = {INFINITY, 2};
    EXPECT(hone_rms_norm_table, "rms_norm(f32[1,2], f32[2])", huge, 2, ((const double[]){1, -1}));
    EXPECT(hone_rms_norm_table, "rms_norm(f32[1,2], f32[2], eps=0.0)", tiny, 2, ((const double[]){1, 1}));
    EXPECT(hone_rms_norm_table, "rms_norm(f32[1,2], f32[2])", zeros, 2, zeros);
    EXPECT(
        hone_rms_norm_table, "rms_norm(f32[1,2], f32[2], eps=0.0)", zeros, 2,
        ((const double[]){(double)NAN, (double)NAN}));
    EXPECT(hone_rms_norm_table, "rms_norm(f32[1,2], f32[2])", infinite, 2, ((const double[]){(double)NAN, 0}));
    EXPECT(hone_layer_norm_table, "layer_norm(f32[1,2], f32[2], f32[2])", huge, 3, ((const double[]){2, 0}));
    EXPECT(hone_layer_norm_table, "layer_norm(f32[1,2], f32[2], f32[2])", tiny, 3, ((const double[]){1, 1}));
    EXPECT(
        hone_layer_norm_table, "layer_norm(f32[1,2], f32[2], f32[2])", infinite, 3,
        ((const double[]){(double)NAN, (double)NAN}));
}

static void sums_beyond_floats_come_back_into_their_range(void **state)
{
    (void)state;
    const double huge[] = {3e38, 3e38, 3e38, 3e38}, zero_in_all[] = {3e38, 3e38, -3e38, -3e38};
    EXPECT(hone_mean_pooling_table, "mean_pooling(f32[1,4,1])", huge, 1, huge);
    EXPECT(hone_reduction_table, "reduction(f32[1,4])", zero_in_all, 1, ((const double[]){0}));
    EXPECT(hone_reduction_table, "reduction(f32[1,4])", huge, 1, ((const double[]){INFINITY}));
}

static void far_from_zero_a_gate_is_open_or_shut(void **state)
{
    (void)state;
    const double gates[] = {1e30, -1e30, INFINITY, -INFINITY};
    EXPECT(
        hone_silu_mul_table, "silu_mul(f32[1,4], f32[1,4])", gates, 2,
        ((const double[]){1e30, 0, INFINITY, (double)NAN}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_softmax_gives_what_the_reference_gives),
        cmocka_unit_test(every_rms_norm_gives_what_the_reference_gives),
        cmocka_unit_test(every_add_rms_norm_gives_what_the_reference_gives),
        cmocka_unit_test(every_rope_and_its_gradient_give_what_the_reference_gives),
        cmocka_unit_test(every_softmax_vjp_gives_what_the_reference_gives),
        cmocka_unit_test(every_norm_vjp_gives_what_the_reference_gives),
        cmocka_unit_test(every_layer_norm_gives_what_the_reference_gives),
        cmocka_unit_test(every_silu_mul_gives_what_the_reference_gives),
        cmocka_unit_test(the_smallest_number_times_an_infinity_is_infinite),
        cmocka_unit_test(every_reduction_gives_what_the_reference_gives),
        cmocka_unit_test(every_mean_pooling_gives_what_the_reference_gives),
        cmocka_unit_test(every_rwkv4_gives_what_the_reference_gives),
        cmocka_unit_test(not_a_number_stays_in_its_row_or_column_of_a_product),
        cmocka_unit_test(every_stencil_spreads_what_is_not_finite_as_the_reference_does),
        cmocka_unit_test(every_attention_gives_what_the_reference_gives),
        cmocka_unit_test(a_nan_in_a_value_reaches_the_queries_that_attend_to_it),
        cmocka_unit_test(every_attention_vjp_gives_what_the_reference_gives),
        cmocka_unit_test(empty_tensors_are_computed_as_the_reference_does),
        cmocka_unit_test(a_softmax_whose_largest_are_equal_shares_among_them),
        cmocka_unit_test(a_row_of_huge_or_tiny_elements_is_normalised_all_the_same),
        cmocka_unit_test(sums_beyond_floats_come_back_into_their_range),
        cmocka_unit_test(far_from_zero_a_gate_is_open_or_shut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
