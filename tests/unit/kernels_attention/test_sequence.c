// attention (with its weights), mean_pooling and rwkv4: every kernel at configs from its space against the reference.
#include "contest.h"

#include "kernels/tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

static const char *const dtypes[] = {"f32", "bf16", "f16"};

static void every_attention_meets_its_reference(void **state)
{
    (void)state;
    // batch, seq_len, heads, kv_heads, kv_len, dim, value_dim
    static const int shapes[][7] = {
        {1, 1, 1, 1, 1, 1, 1},   {1, 1, 4, 2, 33, 16, 16}, {2, 5, 4, 2, 7, 80, 9},    {1, 17, 3, 1, 65, 17, 40},
        {1, 33, 2, 2, 31, 8, 8}, {1, 9, 8, 2, 129, 20, 3}, {1, 40, 1, 1, 16, 64, 64},
    };
    static const char *const options[] = {
        "",
        ", causal=true",
        ", sliding_window=3",
        ", causal=true, sliding_window=0, logits_soft_cap=2.0",
        ", softmax_scale=0.1, logits_soft_cap=0.5",
        ", sliding_window=-2",
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
            const int *is = shapes[i];
            const char *dtype = dtypes[(i + k) % 3];
            char text[256];
            snprintf(
                text, sizeof text, "attention(%s[%d,%d,%d,%d], %s[%d,%d,%d,%d], %s[%d,%d,%d,%d]%s)", dtype, is[0],
                is[1], is[2], is[5], dtype, is[0], is[4], is[3], is[5], dtype, is[0], is[4], is[3], is[6], options[k]);
            contest_once(&hone_attention_table, text, 5);
        }
}

static void weights_of_a_query_add_up_to_one(void **state)
{
    (void)state;
    contest own;
    contest_init(
        &own, &hone_attention_table,
        "attention(f32[1,6,2,4], f32[1,4,1,4], f32[1,4,1,4], causal=true, sliding_window=1)", 0, 2);
    contest_run_kernel(&own, "portable");
    for (int64_t row = 0; row < 12; row++) {
        double sum = 0;
        for (int64_t j = 0; j < 4; j++)
            sum += contest_get(&own, 4, row * 4 + j);
        if (fabs(sum - 1) > 1e-6) fail_msg("row %d adds up to %g", (int)row, sum);
    }
    contest_expect(&own, 4, 3 * 4 + 1, 0, 0);    // query 3 of head 0 sees keys 2 and 3
    contest_expect(&own, 4, 5 * 4 + 1, 0.25, 0); // query 5 sees none: all the same
    contest_deinit(&own);
}

static void every_mean_pooling_meets_its_reference(void **state)
{
    (void)state;
    static const int shapes[][3] = {{1, 1, 1},     {2, 64, 24}, {1, 7, 33},   {3, 100, 5},
                                    {1, 130, 257}, {2, 65, 70}, {1, 3, 1100}, {1, 1000, 16}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t k = 0; k < 3; k++) {
            char text[128];
            snprintf(
                text, sizeof text, "mean_pooling(%s[%d,%d,%d], chunk_size=16)", dtypes[k], shapes[i][0], shapes[i][1],
                shapes[i][2]);
            contest_once(&hone_mean_pooling_table, text, 8);
        }
}

// A state comes from sums of exponentials: what divides is not negative.
static void with_a_state(const char *call, int elements)
{
    contest own;
    contest_init(&own, &hone_rwkv4_table, call, 0, 2);
    for (int64_t i = 0; i < elements; i++)
        contest_set(&own, 4, i, fabs(contest_get(&own, 4, i)));
    contest_run(&own, 6);
    contest_deinit(&own);
}

static void every_rwkv4_meets_its_reference(void **state)
{
    (void)state;
    static const int shapes[][3] = {{1, 1, 1}, {2, 32, 16}, {1, 9, 33}, {1, 40, 70}, {2, 3, 129}, {1, 200, 8}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t k = 0; k < 6; k++) {
            char text[256];
            const int b = shapes[i][0], t = shapes[i][1], c = shapes[i][2];
            const char *t_dtype = dtypes[k % 3], *w_dtype = dtypes[(k + k / 3) % 3];
            int used = snprintf(
                text, sizeof text, "rwkv4(%s[%d], %s[%d], %s[%d,%d,%d], %s[%d,%d,%d]", w_dtype, c, w_dtype, c, t_dtype,
                b, t, c, t_dtype, b, t, c);
            if (k < 3)
                snprintf(text + used, sizeof text - (size_t)used, ")");
            else
                snprintf(text + used, sizeof text - (size_t)used, ", f32[%d,3,%d])", b, c);
            if (k < 3)
                contest_once(&hone_rwkv4_table, text, 6);
            else
                with_a_state(text, 3 * b * c);
        }
}

static void the_first_step_of_rwkv4_is_its_value(void **state)
{
    (void)state;
    contest own;
    contest_init(&own, &hone_rwkv4_table, "rwkv4(f32[3], f32[3], f32[1,2,3], f32[1,2,3])", 0, 1);
    for (int64_t i = 0; i < 3; i++) {
        contest_set(&own, 0, i, -INFINITY); // no decay
        contest_set(&own, 1, i, 0);
        contest_set(&own, 2, i, 1);
        contest_set(&own, 2, 3 + i, 1 + log(3));
        contest_set(&own, 3, i, 8);
        contest_set(&own, 3, 3 + i, 4);
    }
    contest_run_kernel(&own, "portable");
    contest_expect(&own, 5, 0, 8, 1e-6);
    contest_expect(&own, 5, 3, (8 + 3 * 4) / 4.0, 1e-5); // weights 1 and 3
    contest_deinit(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_attention_meets_its_reference),    cmocka_unit_test(weights_of_a_query_add_up_to_one),
        cmocka_unit_test(every_mean_pooling_meets_its_reference), cmocka_unit_test(every_rwkv4_meets_its_reference),
        cmocka_unit_test(the_first_step_of_rwkv4_is_its_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
