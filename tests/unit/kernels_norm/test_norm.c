// The kernels of rows: every kernel at configs from its space against the reference, and the rules by hand.
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

static const int64_t shapes[][3] = {
    {1, 1, 1},    {1, 2, 3},   {3, 1, 7},    {2, 3, 8},    {1, 5, 15},   {1, 4, 16},   {2, 2, 17},
    {1, 300, 31}, {1, 9, 33},  {1, 7, 64},   {3, 5, 100},  {1, 17, 127}, {1, 11, 128}, {1, 10, 129},
    {1, 6, 255},  {2, 3, 512}, {1, 4, 1000}, {1, 2, 4099}, {1, 70, 192},
};
static const char *const dtypes[] = {"f32", "bf16", "f16"};

static bool can_run(const contest *own, const char *name)
{
    for (size_t i = 0; i < own->table->count; i++)
        if (strcmp(own->table->kernels[i].name, name) == 0)
            return (own->table->kernels[i].needs & own->device.features) == own->table->kernels[i].needs;
    return false;
}

static void each_shape(const hone_kernel_table *table, const char *format, size_t configs)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
            char text[200];
            const int a = (int)shapes[i][0], b = (int)shapes[i][1], c = (int)shapes[i][2];
            snprintf(text, sizeof text, format, dtypes[k], a, b, c, dtypes[k], c);
            contest_once(table, text, configs);
        }
}

static void every_rms_norm_meets_its_reference(void **state)
{
    (void)state;
    each_shape(&hone_rms_norm_table, "rms_norm(%s[%d,%d,%d], %s[%d])", 4);
}

static void every_add_rms_norm_meets_its_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
            char array[60], text[200];
            const int a = (int)shapes[i][0], b = (int)shapes[i][1], c = (int)shapes[i][2];
            snprintf(array, sizeof array, "%s[%d,%d,%d]", dtypes[k], a, b, c);
            snprintf(text, sizeof text, "add_rms_norm(%s, %s, %s[%d])", array, array, dtypes[k], c);
            contest_once(&hone_add_rms_norm_table, text, 6);
        }
}

static void every_layer_norm_meets_its_reference(void **state)
{
    (void)state;
    each_shape(&hone_layer_norm_table, "layer_norm(%s[%d,%d,%d], %s[%d], weight_offset=1.0)", 4);
    each_shape(&hone_layer_norm_table, "layer_norm(%s[%d,%d,%d], bias=%s[%d])", 4);
    each_shape(&hone_layer_norm_table, "layer_norm(%s[%d,%d,%d], subtract_mean=false)", 2);
    contest_once(&hone_layer_norm_table, "layer_norm(bf16[5,37], f32[37], f16[37])", 4);
}

// Heads of even sizes, turned in whole and in part.
static void every_rope_meets_its_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t k = 0; k < 2 * sizeof dtypes / sizeof *dtypes; k++) {
            char tables[40], text[200];
            const int heads = (int)shapes[i][0], tokens = (int)shapes[i][1], half = (int)shapes[i][2];
            const char *interleaved = k % 2 ? "true" : "false", *table = dtypes[(i + k) % 3];
            const int dim = 2 * half + (int)(i % 3) * 5;
            snprintf(tables, sizeof tables, "%s[%d,%d]", table, tokens, half);
            snprintf(
                text, sizeof text, "rope(%s[2,%d,%d,%d], %s, %s, interleaved=%s)", dtypes[k / 2], tokens, heads, dim,
                tables, tables, interleaved);
            contest_once(&hone_rope_table, text, 4);
        }
}

static void every_softmax_meets_its_reference(void **state)
{
    (void)state;
    each_shape(&hone_softmax_table, "softmax(%s[%d,%d,%d])", 5);
    each_shape(&hone_softmax_table, "softmax(%s[%d,%d,%d], scale=-3.5)", 2);
}

static void every_silu_mul_and_its_gradient_meet_their_references(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
            char array[60], text[300];
            const int a = (int)shapes[i][0], b = (int)shapes[i][1], c = (int)shapes[i][2];
            snprintf(array, sizeof array, "%s[%d,%d,%d]", dtypes[k], a, b, c);
            snprintf(text, sizeof text, "silu_mul(%s, %s)", array, array);
            contest_once(&hone_silu_mul_table, text, 4);
            snprintf(text, sizeof text, "silu_mul_vjp(%s, %s, %s)", array, array, array);
            contest_once(&hone_silu_mul_vjp_table, text, 4);
        }
}

// Of rows that sum to about 1, as those of a softmax do.
static void softmax_vjp_once(const char *text, int64_t elements, int64_t length)
{
    contest own;
    contest_init(&own, &hone_softmax_vjp_table, text, 0, 2);
    for (int64_t i = 0; i < elements; i++)
        contest_set(&own, 0, i, fabs(contest_get(&own, 0, i)) / (double)length);
    contest_run(&own, 4);
    contest_deinit(&own);
}

static void every_gradient_meets_its_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
            char array[60], weight[40], text[300];
            const int a = (int)shapes[i][0], b = (int)shapes[i][1], c = (int)shapes[i][2];
            snprintf(array, sizeof array, "%s[%d,%d,%d]", dtypes[k], a, b, c);
            snprintf(weight, sizeof weight, "%s[%d]", dtypes[k], c);
            snprintf(text, sizeof text, "softmax_vjp(%s, %s, scale=0.5)", array, array);
            softmax_vjp_once(text, (int64_t)a * b * c, c);
            snprintf(text, sizeof text, "rms_norm_vjp(%s, %s, %s)", array, weight, array);
            contest_once(&hone_rms_norm_vjp_table, text, 4);
            snprintf(text, sizeof text, "add_rms_norm_vjp(%s, %s, %s, %s)", array, weight, array, array);
            contest_once(&hone_add_rms_norm_vjp_table, text, 4);
            snprintf(text, sizeof text, "layer_norm_vjp(%s, %s, %s, weight_offset=1.0)", array, array, weight);
            contest_once(&hone_layer_norm_vjp_table, text, 4);
        }
}

// Runs a kernel at a config, and keeps what value `index` became.
static void run_at(contest *own, const hone_kernel *kernel, const int64_t *config, size_t index, unsigned char *out)
{
    hone_plan plan = {
        .call = own->call, .kernel = kernel, .device = &own->device, .run = kernel->run, .config = config};
    assert_int_equal(kernel->run(&plan, own->args, NULL), HONE_OK);
    memcpy(out, hone_tensor_data(&own->tensors[index]), own->bytes[index]);
}

// By parts of the rows that the config says, and not by who was there first. The parameters are parts (splits) and threads.
static void sums_over_rows_are_the_same_whatever_the_threads(void **state)
{
    static const struct {
        const hone_kernel_table *table;
        const char *call;
        size_t index;
    } calls[] = {
        {&hone_rms_norm_vjp_table, "rms_norm_vjp(f32[1000,77], f32[77], f32[1000,77])", 4},
        {&hone_layer_norm_vjp_table, "layer_norm_vjp(f32[1000,77], f32[1000,77])", 5},
        {&hone_flash_attention_vjp_table,
         "flash_attention_vjp(f32[1,300,2,16], f32[1,40,1,16], f32[1,40,1,16], f32[1,300,2,16])", 5},
    };
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        contest own;
        contest_init(&own, calls[i].table, calls[i].call, 0, 2);
        const hone_kernel *portable = NULL;
        for (size_t k = 0; k < calls[i].table->count; k++)
            if (strcmp(calls[i].table->kernels[k].name, "portable") == 0) portable = &calls[i].table->kernels[k];
        assert_non_null(portable);
        static unsigned char one[1 << 16], other[1 << 16];
        assert_in_range(own.bytes[calls[i].index], 1, sizeof one);
        run_at(&own, portable, (const int64_t[]){8, 1}, calls[i].index, one);
        for (int round = 0; round < 20; round++) {
            run_at(&own, portable, (const int64_t[]){8, 4}, calls[i].index, other);
            assert_memory_equal(one, other, own.bytes[calls[i].index]);
        }
        contest_deinit(&own);
    }
}

static void rms_norm_divides_by_the_root_of_the_mean_square(void **state)
{
    (void)state;
    contest own;
    contest_init(&own, &hone_rms_norm_table, "rms_norm(f32[1,2], f32[2], eps=0.5)", 0, 1);
    contest_set(&own, 0, 0, 3);
    contest_set(&own, 0, 1, 4);
    contest_set(&own, 1, 0, 10);
    contest_set(&own, 1, 1, 1);
    contest_run_kernel(&own, "reference");
    contest_expect(&own, 2, 0, 30 / sqrt(13), 1e-5); // (9 + 16) / 2 + 0.5
    contest_expect(&own, 2, 1, 4 / sqrt(13), 1e-5);
    contest_deinit(&own);
}

// In f16 the sum of 2048 and 1 is 2048.
static void add_rms_norm_stores_the_rounded_sum_and_gives_its_norm(void **state)
{
    static const char *const names[] = {"reference", "portable", "avx2", "avx512"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        contest own;
        contest_init(&own, &hone_add_rms_norm_table, "add_rms_norm(f16[1,2], f16[1,2], f16[2], eps=0.5)", 0, 1);
        if (can_run(&own, names[i])) {
            for (size_t value = 0; value < 3; value++)
                for (int64_t j = 0; j < 2; j++)
                    contest_set(&own, value, j, (const double[3][2]){{2048, 3}, {1, 4}, {1, 1024}}[value][j]);
            contest_run_kernel(&own, names[i]);
            contest_expect(&own, 3, 0, 2048, 0);
            contest_expect(&own, 3, 1, 7, 0);
            const double root = sqrt((2048.0 * 2048 + 49) / 2 + 0.5);
            contest_expect(&own, 4, 0, 2048 / root, 1e-3);
            contest_expect(&own, 4, 1, 7 * 1024 / root, 4e-3);
        }
        contest_deinit(&own);
    }
}

// Two positions; in f32 the second element of a pair is behind the first or a half behind it, and the fifth is no pair's.
static void rope_turns_each_pair_by_its_angle_in_both_layouts(void **state)
{
    static const char *const names[] = {"reference", "portable", "avx2", "avx512"};
    static const double cos[] = {1, 0, 0.6, -1}, sin[] = {0, 1, 0.8, 0};
    static const double halves[] = {1, -4, 3, 2, 5, 0.6 - 2.4, -2, 1.8 + 0.8, -4, 5};
    static const double interleaved[] = {1, 2, -4, 3, 5, 0.6 - 1.6, 1.2 + 0.8, -3, -4, 5};
    (void)state;
    for (size_t k = 0; k < 2 * sizeof names / sizeof *names; k++) {
        contest own;
        contest_init(
            &own, &hone_rope_table,
            k % 2 ? "rope(f32[2,1,5], f32[2,2], f32[2,2], interleaved=true)" : "rope(f32[2,1,5], f32[2,2], f32[2,2])",
            0, 1);
        if (can_run(&own, names[k / 2])) {
            for (int64_t i = 0; i < 10; i++)
                contest_set(&own, 0, i, (double)(i % 5 + 1));
            for (int64_t i = 0; i < 4; i++) {
                contest_set(&own, 1, i, cos[i]);
                contest_set(&own, 2, i, sin[i]);
            }
            contest_run_kernel(&own, names[k / 2]);
            for (int64_t i = 0; i < 10; i++)
                contest_expect(&own, 3, i, (k % 2 ? interleaved : halves)[i], 1e-6);
        }
        contest_deinit(&own);
    }
}

static void layer_norm_divides_what_is_left_of_the_mean_by_its_spread(void **state)
{
    (void)state;
    contest own;
    contest_init(
        &own, &hone_layer_norm_table, "layer_norm(f32[1,2], f32[2], f32[2], eps=0.75, weight_offset=1.0)", 0, 1);
    contest_set(&own, 0, 0, 3);
    contest_set(&own, 0, 1, 4);
    contest_set(&own, 1, 0, 9);
    contest_set(&own, 1, 1, 0);
    contest_set(&own, 2, 0, 2);
    contest_set(&own, 2, 1, 5);
    contest_run_kernel(&own, "reference");
    contest_expect(&own, 3, 0, -3, 1e-5); // -0.5 / sqrt(0.25 + 0.75) * (9 + 1) + 2
    contest_expect(&own, 3, 1, 5.5, 1e-5);
    contest_deinit(&own);
}

// A float for the mean of such elements is wrong by a thousandth of what is left.
static void a_mean_far_from_zero_costs_a_layer_norm_no_digits(void **state)
{
    (void)state;
    contest own;
    contest_init(&own, &hone_layer_norm_table, "layer_norm(f32[2,1000])", 0, 2);
    for (int64_t i = 0; i < 2000; i++)
        contest_set(&own, 0, i, 20000 + (double)(i * 7 % 11) / 16);
    own.only_own = true;
    contest_run(&own, 4);
    contest_deinit(&own);
}

// Kernels sum squares around the mean of a row's first elements: here that is off by 17 times what the row is wide.
static void first_elements_that_are_unlike_a_row_cost_a_layer_norm_no_digits(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        contest own;
        contest_init(&own, &hone_layer_norm_table, i == 0 ? "layer_norm(f32[2,20000])" : "layer_norm(f32[2,70])", 0, 2);
        const int64_t length = i == 0 ? 20000 : 70;
        for (int64_t k = 0; k < 2 * length; k++)
            contest_set(&own, 0, k, (k % length < 64 ? 20000.0 : 0.0) + (double)(k * 7 % 11) / 16);
        own.only_own = true;
        contest_run(&own, 4);
        contest_deinit(&own);
    }
}

static void softmax_of_equal_elements_is_even_and_scale_sharpens(void **state)
{
    (void)state;
    contest own;
    contest_init(&own, &hone_softmax_table, "softmax(f32[1,2], scale=2.0)", 0, 1);
    contest_set(&own, 0, 0, 0);
    contest_set(&own, 0, 1, log(3) / 2);
    contest_run_kernel(&own, "reference");
    contest_expect(&own, 1, 0, 0.25, 1e-6);
    contest_expect(&own, 1, 1, 0.75, 1e-6);
    contest_deinit(&own);
}

static const char *const softmaxes[] = {"reference", "portable", "avx2", "avx512"};

static void each_softmax(const char *call, void (*set)(contest *own), void (*check)(const contest *own))
{
    for (size_t i = 0; i < sizeof softmaxes / sizeof *softmaxes; i++) {
        contest own;
        contest_init(&own, &hone_softmax_table, call, 0, 1);
        if (can_run(&own, softmaxes[i])) {
            set(&own);
            contest_run_kernel(&own, softmaxes[i]);
            check(&own);
        }
        contest_deinit(&own);
    }
}

static void set_minus_infinity(contest *own)
{
    for (int64_t i = 0; i < 200; i++)
        contest_set(own, 0, i, i % 2 ? -INFINITY : 1);
}

static void check_minus_infinity(const contest *own)
{
    for (int64_t i = 0; i < 200; i++)
        contest_expect(own, 1, i, i % 2 ? 0 : 0.01, 1e-7);
}

static void softmax_gives_masked_elements_nothing(void **state)
{
    (void)state;
    each_softmax("softmax(f32[1,200])", set_minus_infinity, check_minus_infinity);
}

static void set_nan(contest *own)
{
    contest_set(own, 0, 77, (double)NAN);
}

static void check_nan(const contest *own)
{
    for (int64_t i = 0; i < 200; i++)
        assert_true(isnan(contest_get(own, 1, i)));
}

static void softmax_of_a_row_with_nan_is_nan(void **state)
{
    (void)state;
    each_softmax("softmax(f32[1,200])", set_nan, check_nan);
}

static void set_large(contest *own)
{
    for (int64_t i = 0; i < 200; i++)
        contest_set(own, 0, i, 1e4 + (double)(i % 2));
}

static void check_large(const contest *own)
{
    for (int64_t i = 0; i < 200; i++)
        contest_expect(own, 1, i, (i % 2 ? exp(1) : 1) / (100 * (1 + exp(1))), 1e-6);
}

static void softmax_of_large_elements_does_not_overflow(void **state)
{
    (void)state;
    each_softmax("softmax(f32[1,200])", set_large, check_large);
}

// The default config of the kernel for NVIDIA's GPUs on one of 132 multiprocessors, in the order of its space.
static void check_rows_default(const hone_kernel_table *table, const char *text, const int64_t expected[5])
{
    const hone_device_info device = {.platform = HONE_CUDA, .backend = HONE_GPU, .sms = 132, .capability = 90};
    hone_config config = {0};
    hone_signature *made = NULL;
    hone_call *call = NULL;
    hone_error err = {0};
    if (hone_signature_parse(hone_allocator_system(), table->algorithm->signature, &made, &err) != HONE_OK ||
        hone_call_parse(hone_allocator_system(), made, text, &call, &err) != HONE_OK)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->kernels[i].name, "cuda") == 0)
            assert_true(table->kernels[i].heuristic(&table->kernels[i], call, &device, &config));
    hone_call_release(&call);
    hone_signature_release(&made);
    assert_int_equal(config.count, 5);
    for (size_t i = 0; i < 5; i++)
        if (config.values[i] != expected[i])
            fail_msg("%s: value %zu is %lld, not %lld", text, i, (long long)config.values[i], (long long)expected[i]);
}

// docs/gpu.md, "Defaults of kernels over rows", has the times that chose them.
static void a_gpu_reads_rows_that_fill_it_by_8_bytes_and_few_by_16(void **state)
{
    (void)state;
    static const struct {
        const char *call;
        int64_t config[5]; // threads_per_row, rows_per_block, vector, keep, cluster
    } norms[] = {
        {"rms_norm(bf16[4096,4096], bf16[4096])", {256, 1, 4, 4, 1}},
        {"rms_norm(bf16[2048,16384], bf16[16384])", {1024, 1, 4, 4, 1}},
        {"rms_norm(bf16[16384,1024], bf16[1024])", {64, 1, 4, 4, 1}},
        {"rms_norm(bf16[8192,512], bf16[512])", {32, 4, 4, 4, 1}},
        {"rms_norm(f32[16384,1024], f32[1024])", {128, 1, 2, 4, 1}},
        {"rms_norm(bf16[512,8192], bf16[8192])", {256, 1, 8, 4, 1}},    // too few for blocks of 512 threads
        {"rms_norm(bf16[32,4096], bf16[4096])", {512, 1, 8, 1, 1}},     // fewer than multiprocessors
        {"rms_norm(bf16[4096,100], bf16[100])", {32, 4, 4, 1, 1}},      // no more than 8 bytes are aligned
        {"rms_norm(bf16[4096,64], bf16[64])", {8, 16, 8, 1, 1}},        // too short for a warp
        {"rms_norm(bf16[32,128256], bf16[128256])", {256, 1, 4, 0, 8}}, // read twice
    };
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        check_rows_default(&hone_rms_norm_table, norms[i].call, norms[i].config);
    check_rows_default(&hone_softmax_table, "softmax(bf16[512,2048])", (const int64_t[]){128, 1, 4, 4, 1});
    check_rows_default(&hone_softmax_table, "softmax(bf16[32,128256])", (const int64_t[]){512, 1, 8, 4, 8});
    check_rows_default(
        &hone_layer_norm_table, "layer_norm(bf16[4096,4096], bf16[4096], bf16[4096])",
        (const int64_t[]){128, 1, 8, 4, 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rms_norm_meets_its_reference),
        cmocka_unit_test(every_add_rms_norm_meets_its_reference),
        cmocka_unit_test(add_rms_norm_stores_the_rounded_sum_and_gives_its_norm),
        cmocka_unit_test(every_rope_meets_its_reference),
        cmocka_unit_test(rope_turns_each_pair_by_its_angle_in_both_layouts),
        cmocka_unit_test(every_layer_norm_meets_its_reference),
        cmocka_unit_test(layer_norm_divides_what_is_left_of_the_mean_by_its_spread),
        cmocka_unit_test(a_mean_far_from_zero_costs_a_layer_norm_no_digits),
        cmocka_unit_test(first_elements_that_are_unlike_a_row_cost_a_layer_norm_no_digits),
        cmocka_unit_test(every_softmax_meets_its_reference),
        cmocka_unit_test(every_silu_mul_and_its_gradient_meet_their_references),
        cmocka_unit_test(every_gradient_meets_its_reference),
        cmocka_unit_test(sums_over_rows_are_the_same_whatever_the_threads),
        cmocka_unit_test(rms_norm_divides_by_the_root_of_the_mean_square),
        cmocka_unit_test(softmax_of_equal_elements_is_even_and_scale_sharpens),
        cmocka_unit_test(softmax_gives_masked_elements_nothing),
        cmocka_unit_test(softmax_of_a_row_with_nan_is_nan),
        cmocka_unit_test(softmax_of_large_elements_does_not_overflow),
        cmocka_unit_test(a_gpu_reads_rows_that_fill_it_by_8_bytes_and_few_by_16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
