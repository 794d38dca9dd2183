// Attention: every kernel at configs from its space against the reference, and each rule by hand.
#include "contest.h"

#include "kernels/tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

// batch, q_len, heads, kv_heads, kv_len, dim
static const int64_t shapes[][6] = {
    {1, 1, 1, 1, 1, 1},     {1, 1, 4, 4, 33, 16},   {2, 1, 8, 2, 100, 24}, {1, 1, 16, 1, 70, 64},
    {1, 3, 2, 1, 17, 8},    {2, 5, 4, 2, 7, 80},    {1, 16, 1, 1, 16, 5},  {1, 17, 3, 1, 65, 17},
    {1, 33, 2, 2, 31, 32},  {1, 40, 4, 2, 129, 20}, {2, 70, 2, 1, 70, 64}, {1, 130, 1, 1, 40, 33},
    {1, 1, 2, 2, 300, 128}, {1, 2, 2, 2, 600, 12},
};
static const char *const options[] = {
    "",
    ", causal=true",
    ", causal=true, sliding_window=5",
    ", sliding_window=0",
    ", softmax_scale=0.3, logits_soft_cap=1.5",
    ", causal=true, logits_soft_cap=20.0, sliding_window=40",
    ", sliding_window=-1",
};
static const char *const dtypes[] = {"f32", "bf16", "f16"};

static void write_call(
    char *text, size_t size, const char *name, const int64_t *is, const char *dtype, const char *option)
{
    int batch = (int)is[0], q_len = (int)is[1], heads = (int)is[2], kv_heads = (int)is[3], kv_len = (int)is[4],
        dim = (int)is[5];
    snprintf(
        text, size, "%s(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d], %s[%d,%d,%d,%d]%s)", name, dtype, batch, q_len, heads, dim,
        dtype, batch, kv_len, kv_heads, dim, dtype, batch, kv_len, kv_heads, dim, option);
}

static void each_call(
    const hone_kernel_table *table, const char *name, const char *const *list, size_t count, size_t configs)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t k = 0; k < count; k++) {
            char text[256];
            write_call(text, sizeof text, name, shapes[i], dtypes[(i + k) % 3], list[k]);
            contest_once(table, text, configs);
        }
}

static void every_flash_attention_meets_its_reference(void **state)
{
    (void)state;
    each_call(&hone_flash_attention_table, "flash_attention", options, sizeof options / sizeof *options, 3);
}

static void every_scaled_dot_product_attention_meets_its_reference(void **state)
{
    (void)state;
    each_call(&hone_scaled_dot_product_attention_table, "scaled_dot_product_attention", options, 4, 2);
}

static void the_libraries_meet_the_reference_where_they_are(void **state)
{
    (void)state;
    static const int64_t f32_shapes[][6] = {{1, 20, 4, 2, 33, 16}, {2, 1, 8, 2, 65, 32}, {1, 64, 2, 2, 64, 64}};
    for (size_t i = 0; i < sizeof f32_shapes / sizeof *f32_shapes; i++)
        for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
            char text[256];
            write_call(text, sizeof text, "flash_attention", f32_shapes[i], "f32", options[k]);
            contest_once(&hone_flash_attention_table, text, 4);
        }
}

// One query and key of dim 1 per position, so that results can be written down: logits are query * key, values 1, 2, 4
// ...
static void init_plain(contest *own, const char *call, double query)
{
    contest_init(own, &hone_flash_attention_table, call, 0, 1);
    int64_t keys = own->tensors[1].shape[1];
    for (int64_t i = 0; i < own->tensors[0].shape[1]; i++)
        contest_set(own, 0, i, query);
    for (int64_t j = 0; j < keys; j++) {
        contest_set(own, 1, j, (double)j);
        contest_set(own, 2, j, exp2((double)j));
    }
}

static void expect_plain(const char *call, double query, const double *out, size_t count)
{
    static const char *const names[] = {"reference", "portable", "portable_stream", "avx2", "avx2_stream"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        contest own;
        init_plain(&own, call, query);
        if (k < 3 || (own.device.features & HONE_CPU_AVX2)) {
            contest_run_kernel(&own, names[k]);
            for (size_t i = 0; i < count; i++)
                contest_expect(&own, 3, (int64_t)i, out[i], 1e-5);
        }
        contest_deinit(&own);
    }
}

static void a_causal_query_sees_the_keys_up_to_its_own_position(void **state)
{
    (void)state;
    const double out[] = {1, 1.5, 7.0 / 3};
    expect_plain("flash_attention(f32[1,3,1,1], f32[1,3,1,1], f32[1,3,1,1], causal=true)", 0, out, 3);
}

// Positions count from the start also when there are fewer queries than keys: the first query sees the first key.
static void causal_positions_count_from_the_start(void **state)
{
    (void)state;
    const double out[] = {1, 1.5};
    expect_plain("flash_attention(f32[1,2,1,1], f32[1,5,1,1], f32[1,5,1,1], causal=true)", 0, out, 2);
}

static void a_window_includes_both_its_ends(void **state)
{
    (void)state;
    const double out[] = {1.5, 7.0 / 3, 14.0 / 3, 6};
    expect_plain("flash_attention(f32[1,4,1,1], f32[1,4,1,1], f32[1,4,1,1], sliding_window=1)", 0, out, 4);
}

static void the_widest_window_is_none(void **state)
{
    (void)state;
    const double out[] = {1.5, 1.5};
    expect_plain(
        "flash_attention(f32[1,2,1,1], f32[1,2,1,1], f32[1,2,1,1], sliding_window=9223372036854775807)", 0, out, 2);
}

static void a_query_that_sees_no_key_gets_the_mean_of_all_values(void **state)
{
    (void)state;
    const double out[] = {1, 2, 1.5, 1.5}; // window 0: queries 2 and 3 are behind the keys
    expect_plain("flash_attention(f32[1,4,1,1], f32[1,2,1,1], f32[1,2,1,1], sliding_window=0)", 0, out, 4);
}

static void the_scale_multiplies_logits_and_the_cap_bends_them(void **state)
{
    (void)state;
    double weight = exp(0.5), capped = exp(0.25 * tanh(0.5 / 0.25));
    const double plain[] = {(1 + 2 * weight) / (1 + weight)}, bent[] = {(1 + 2 * capped) / (1 + capped)};
    expect_plain("flash_attention(f32[1,1,1,1], f32[1,2,1,1], f32[1,2,1,1], softmax_scale=0.5)", 1, plain, 1);
    expect_plain(
        "flash_attention(f32[1,1,1,1], f32[1,2,1,1], f32[1,2,1,1], softmax_scale=0.5, logits_soft_cap=0.25)", 1, bent,
        1);
}

// Of the weights of two keys, which are the second result: ejkernel adds the bias to the capped logit, tokamax before.
static void expect_biased(const hone_kernel_table *table, const char *call, double odds, bool has_weights)
{
    static const char *const names[] = {"reference", "portable"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        contest own;
        contest_init(&own, table, call, 0, 1);
        contest_set(&own, 0, 0, 1);
        for (int64_t j = 0; j < 2; j++) {
            contest_set(&own, 1, j, (double)j);
            contest_set(&own, 2, j, (double)(j + 1));
            contest_set(&own, 3, j, j == 0 ? 0.3 : -0.2);
        }
        contest_run_kernel(&own, names[k]);
        contest_expect(&own, 7, 0, (1 + 2 * odds) / (1 + odds), 1e-5);
        if (has_weights) contest_expect(&own, 8, 0, 1 / (1 + odds), 1e-5);
        if (has_weights) contest_expect(&own, 8, 1, odds / (1 + odds), 1e-5);
        contest_deinit(&own);
    }
}

static void a_bias_bends_with_the_cap_or_is_added_behind_it(void **state)
{
    (void)state;
    const double before = 0.25 * (tanh((0.5 - 0.2) / 0.25) - tanh(0.3 / 0.25)), behind = 0.25 * tanh(0.5 / 0.25) - 0.5;
    expect_biased(
        &hone_dot_product_attention_table,
        "dot_product_attention(f32[1,1,1,1], f32[1,2,1,1], f32[1,2,1,1], f32[1,1,1,2], softmax_scale=0.5, "
        "logits_soft_cap=0.25)",
        exp(before), false);
    expect_biased(
        &hone_biased_attention_table,
        "biased_attention(f32[1,1,1,1], f32[1,2,1,1], f32[1,2,1,1], f32[1,1,1,2], softmax_scale=0.5, "
        "logits_soft_cap=0.25)",
        exp(behind), true);
    expect_biased(
        &hone_biased_attention_table, "biased_attention(f32[1,1,1,1], f32[1,2,1,1], f32[1,2,1,1], f32[1,1,1,2])",
        exp(0.5), true);
}

static void without_a_scale_it_is_one_over_the_root_of_dim(void **state)
{
    (void)state;
    contest own;
    contest_init(&own, &hone_flash_attention_table, "flash_attention(f32[1,1,1,4], f32[1,2,1,4], f32[1,2,1,4])", 0, 1);
    for (int64_t i = 0; i < 8; i++) {
        contest_set(&own, 0, i % 4, 1);
        contest_set(&own, 1, i, i < 4 ? 0 : 0.5); // logits 0 and 4 * 0.5 / 2
        contest_set(&own, 2, i, i < 4 ? 0 : 1);
    }
    contest_run_kernel(&own, "reference");
    contest_expect(&own, 3, 0, exp(1) / (1 + exp(1)), 1e-6);
    contest_deinit(&own);
}

static void heads_of_a_group_share_a_key_head(void **state)
{
    (void)state;
    contest own;
    contest_init(&own, &hone_flash_attention_table, "flash_attention(f32[1,1,4,1], f32[1,1,2,1], f32[1,1,2,1])", 0, 1);
    contest_set(&own, 2, 0, 5);
    contest_set(&own, 2, 1, 6);
    contest_run_kernel(&own, "portable");
    for (int64_t i = 0; i < 4; i++)
        contest_expect(&own, 3, i, i < 2 ? 5 : 6, 1e-6);
    contest_deinit(&own);
}

static void expect_refusal(const char *call, const char *kernel, const char *words)
{
    contest own;
    contest_init(&own, &hone_flash_attention_table, call, 0, 1);
    for (size_t i = 0; i < own.table->count; i++) {
        const hone_kernel *one = &own.table->kernels[i];
        hone_error why = {0};
        if (strcmp(one->name, kernel) != 0) continue;
        assert_false(one->supports(one, own.call, &why));
        if (strstr(why.message, words) == NULL) fail_msg("'%s' does not say '%s'", why.message, words);
    }
    contest_deinit(&own);
}

static void a_kernel_refuses_an_unsupported_call_with_a_reason(void **state)
{
    (void)state;
    expect_refusal(
        "flash_attention(f32[1,9,4,8], f32[1,9,2,8], f32[1,9,2,8])", "portable_stream",
        "18; this kernel takes at most 16");
    expect_refusal(
        "flash_attention(f32[1,9,4,8], f32[1,9,2,8], f32[1,9,2,8], logits_soft_cap=0.0)", "portable",
        "divides by zero");
    expect_refusal(
        "flash_attention(bf16[1,9,4,8], bf16[1,9,2,8], bf16[1,9,2,8])", "openblas_composed", "takes f32 alone");
    expect_refusal("flash_attention(f16[1,9,4,8], f16[1,9,2,8], f16[1,9,2,8])", "avx512_bf16", "multiplies bf16 alone");
}

static const hone_kernel *kernel_named(const hone_kernel_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->kernels[i].name, name) == 0) return &table->kernels[i];
    fail_msg("no kernel named %s", name);
    return NULL;
}

static void pairs_of_bf16_come_first_where_they_are_quick(void **state)
{
    (void)state;
    static const hone_kernel_table *const tables[] = {
        &hone_flash_attention_table, &hone_scaled_dot_product_attention_table};
    for (size_t i = 0; i < 2; i++) {
        const hone_kernel *pairs = kernel_named(tables[i], "avx512_bf16");
        char text[128];
        contest own;
        snprintf(
            text, sizeof text, "%s(bf16[1,40,2,8], bf16[1,40,2,8], bf16[1,40,2,8])", tables[i]->kernels->algorithm);
        contest_init(&own, tables[i], text, 0, 1);
        hone_error why = {0};
        assert_true(pairs->supports(pairs, own.call, &why));
        assert_true(pairs->priority > kernel_named(tables[i], "avx512")->priority);
        own.device.fingerprint = "cpu|GenuineIntel,x";
        assert_true(pairs->yields(pairs, own.call, &own.device));
        own.device.fingerprint = "cpu|AuthenticAMD,x";
        assert_false(pairs->yields(pairs, own.call, &own.device));
        contest_deinit(&own);
    }
}

// Values of both signs that are weighed nearly alike: weights of 8 bits, as bf16 has, would be wrong by more than is allowed.
static void weights_of_pairs_keep_their_bits(void **state)
{
    (void)state;
    contest own;
    contest_init(
        &own, &hone_flash_attention_table, "flash_attention(bf16[1,20,1,1], bf16[1,2,1,1], bf16[1,2,1,1])", 0, 1);
    for (int64_t i = 0; i < 20; i++)
        contest_set(&own, 0, i, 1);
    for (int64_t j = 0; j < 2; j++) {
        contest_set(&own, 1, j, j == 0 ? 0 : -0.002);
        contest_set(&own, 2, j, j == 0 ? 1 : -1);
    }
    contest_run(&own, 2);
    contest_deinit(&own);
}

static void the_model_counts_what_a_mask_leaves(void **state)
{
    (void)state;
    contest own;
    hone_cost whole, causal;
    contest_init(
        &own, &hone_flash_attention_table, "flash_attention(f32[2,10,4,8], f32[2,10,2,8], f32[2,10,2,8])", 0, 1);
    own.table->algorithm->model(own.call, &whole);
    contest_deinit(&own);
    contest_init(
        &own, &hone_flash_attention_table, "flash_attention(f32[2,10,4,8], f32[2,10,2,8], f32[2,10,2,8], causal=true)",
        0, 1);
    own.table->algorithm->model(own.call, &causal);
    contest_deinit(&own);
    assert_true(whole.operations == 4.0 * 8 * 100 * 8);
    assert_true(causal.operations == 4.0 * 8 * 55 * 8);
    assert_true(whole.bytes == (2.0 * 640 + 2.0 * 320) * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flash_attention_meets_its_reference),
        cmocka_unit_test(every_scaled_dot_product_attention_meets_its_reference),
        cmocka_unit_test(the_libraries_meet_the_reference_where_they_are),
        cmocka_unit_test(a_causal_query_sees_the_keys_up_to_its_own_position),
        cmocka_unit_test(causal_positions_count_from_the_start),
        cmocka_unit_test(a_window_includes_both_its_ends),
        cmocka_unit_test(the_widest_window_is_none),
        cmocka_unit_test(a_query_that_sees_no_key_gets_the_mean_of_all_values),
        cmocka_unit_test(the_scale_multiplies_logits_and_the_cap_bends_them),
        cmocka_unit_test(a_bias_bends_with_the_cap_or_is_added_behind_it),
        cmocka_unit_test(without_a_scale_it_is_one_over_the_root_of_dim),
        cmocka_unit_test(heads_of_a_group_share_a_key_head),
        cmocka_unit_test(a_kernel_refuses_an_unsupported_call_with_a_reason),
        cmocka_unit_test(pairs_of_bf16_come_first_where_they_are_quick),
        cmocka_unit_test(weights_of_pairs_keep_their_bits),
        cmocka_unit_test(the_model_counts_what_a_mask_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
