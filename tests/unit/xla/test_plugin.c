// The plugin of OpenXLA for the CPU, for real: memory that is not aligned, scalars, two threads, modules that are none.
#include "runtime/api/inner.h"
#include "xla.h"

#include <pthread.h>

static const hone_code donated = {HONE_CODE, .source = DONATED, .arguments = "x, y"};
static const hone_code copied = {HONE_CODE, .source = COPIED, .arguments = "x"};

static int setup(void **state)
{
    ground *g = aligned_alloc(64, (sizeof *g + 63) / 64 * 64);
    *state = g;
    if (access(HONE_TEST_PLUGIN, R_OK) != 0)
        fail_msg("%s is missing: scripts/setup python brings it", HONE_TEST_PLUGIN);
    ground_open(g, HONE_TEST_PLUGIN);
    return 0;
}

static int teardown(void **state)
{
    ground_close(*state);
    free(*state);
    return 0;
}

static void a_module_runs_wherever_its_tensors_lie(void **state)
{
    static const size_t skips[] = {0, 1, 4, 16};
    ground *g = *state;
    ground_register(g, "module", HONE_XLA, &donated);
    for (size_t i = 0; i < sizeof skips / sizeof *skips; i++) {
        ground_place(g, skips[i]);
        if (ground_run(g) != HONE_OK) fail_msg("%s", g->err.message);
        assert_true(ground_is_right(g));
        assert_true(skips[i] == 0 || g->out[skips[i] - 1] == 0);
        assert_true(g->out[skips[i] + N] == 0);
    }
}

static void a_result_of_its_own_is_copied(void **state)
{
    ground *g = *state;
    ground_register(g, "module", HONE_XLA, &copied);
    assert_int_equal(ground_run(g), HONE_OK);
    assert_true(ground_is_right(g));
}

static void expect_refusal(ground *g, const hone_code *code, const char *words)
{
    ground_register(g, "module", HONE_XLA, code);
    assert_int_not_equal(ground_run(g), HONE_OK);
    if (strstr(g->err.message, words) == NULL) fail_msg("'%s' is not in: %s", words, g->err.message);
}

static void text_that_is_no_module_loses_with_the_plugins_words(void **state)
{
    static const hone_code code = {HONE_CODE, .source = "this is no module", .arguments = "x"};
    expect_refusal(*state, &code, "PJRT_Client_Compile: ");
}

static void bytecode_that_was_cut_loses(void **state)
{
    static const hone_code code = {
        HONE_CODE,
        .binary = "ML\xefR"
                  "\x0dStableHLO_v1.12.0",
        .binary_size = 22, .arguments = "x"};
    expect_refusal(*state, &code, "PJRT_Client_Compile: ");
}

static void a_dtype_of_the_same_size_is_refused(void **state)
{
    static const hone_code code = {
        HONE_CODE,
        .source =
            "module { func.func public @main(%x: tensor<${n}xi32>) -> tensor<${y.type}> {"
            " %0 = stablehlo.convert %x : (tensor<${n}xi32>) -> tensor<${y.type}> return %0 : tensor<${y.type}> } }",
        .arguments = "x"};
    expect_refusal(*state, &code, "argument 0 has another dtype or size");
}

static void an_option_that_the_plugin_does_not_know_loses(void **state)
{
    static const hone_code code = {
        HONE_CODE, .source = DONATED, .arguments = "x, y", .options = "xla_no_such_option = 1"};
    expect_refusal(*state, &code, "No such compile option");
}

static void a_call_of_a_gpu_loses_with_its_name(void **state)
{
    static const hone_code code = {
        HONE_CODE,
        .source = "module { func.func public @main(%x: tensor<${x.type}>) -> tensor<${y.type}> {"
                  " %0 = stablehlo.custom_call @no_such_call(%x) {api_version = 4 : i32, backend_config = {}}"
                  " : (tensor<${x.type}>) -> tensor<${y.type}> return %0 : tensor<${y.type}> } }",
        .arguments = "x"};
    expect_refusal(*state, &code, "no_such_call");
}

static void scalars_are_arguments_of_rank_0(void **state)
{
    static const hone_code code = {
        HONE_CODE,
        .source = "module { func.func public @main(%x: tensor<${x.type}>, %by: tensor<f32>) -> tensor<${y.type}> {"
                  " %0 = stablehlo.broadcast_in_dim %by, dims = [] : (tensor<f32>) -> tensor<${y.type}>"
                  " %1 = stablehlo.multiply %x, %0 : tensor<${x.type}> return %1 : tensor<${y.type}> } }",
        .arguments = "x, f32(n / 3)"};
    ground *g = *state;
    ground_register(g, "module", HONE_XLA, &code);
    if (ground_run(g) != HONE_OK) fail_msg("%s", g->err.message);
    assert_true(ground_is_right(g));
}

static void what_was_compiled_is_kept_on_disk_and_runs(void **state)
{
    ground *g = *state;
    char command[160];
    ground_register(g, "module", HONE_XLA, &donated);
    assert_int_equal(ground_run(g), HONE_OK);
    snprintf(command, sizeof command, "test $(ls %s | wc -l) = 1", g->cache);
    assert_int_equal(system(command), 0);
    hone_cache_clear(g->rt);
    ground_place(g, 0);
    assert_int_equal(ground_run(g), HONE_OK);
    assert_true(ground_is_right(g));
    assert_int_equal(system(command), 0);
}

typedef struct racer {
    const hone_plan *plan;
    _Alignas(64) float in[N];
    _Alignas(64) float out[N];
    int wrong;
} racer;

static void *run_often(void *ctx)
{
    racer *r = ctx;
    int64_t shape[] = {N};
    hone_tensor x = hone_tensor_of(r->in, HONE_F32, 1, shape), y = hone_tensor_of(r->out, HONE_F32, 1, shape);
    const hone_value args[] = {hone_of_tensor(&x), hone_of_tensor(&y)};
    for (int i = 0; i < 200; i++) {
        for (int k = 0; k < N; k++)
            r->in[k] = (float)(i + k);
        if (r->plan->run(r->plan, args, NULL) != HONE_OK || r->out[N - 1] != 2 * r->in[N - 1]) r->wrong++;
    }
    return NULL;
}

static void two_threads_run_one_plan(void **state)
{
    ground *g = *state;
    racer racers[2] = {{.wrong = 0}, {.wrong = 0}};
    pthread_t threads[2];
    const hone_plan *plan = NULL;
    ground_register(g, "module", HONE_XLA, &donated);
    assert_int_equal(hone_bind(g->op, g->args, 2, &plan, &g->err), HONE_OK);
    for (int i = 0; i < 2; i++) {
        racers[i].plan = plan;
        assert_int_equal(pthread_create(&threads[i], NULL, run_often, &racers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(racers[i].wrong, 0);
    }
    hone_plan_release(&plan);
}

// Of tests/golden/pallas, which scripts/pack-pallas has made.
static void a_kernel_that_jax_exported_runs(void **state)
{
    enum { SIZE = 4096 };
    static const char *const files[] = {"twice_cpu_block512.vhlo", "twice_cpu_block1024.vhlo"};
    static _Alignas(64) float in[SIZE], out[SIZE];
    ground *g = *state;
    int64_t shape[] = {SIZE};
    hone_tensor x = hone_tensor_of(in, HONE_F32, 1, shape), y = hone_tensor_of(out, HONE_F32, 1, shape);
    const hone_value args[] = {hone_of_tensor(&x), hone_of_tensor(&y)};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        const hone_plan *plan = NULL;
        snprintf(path, sizeof path, "%s/golden/pallas/%s", HONE_TEST_DATA, files[i]);
        const hone_code code = {HONE_CODE, .file = path, .arguments = "x", .condition = "n == 4096"};
        ground_register(g, files[i], HONE_PALLAS, &code);
        for (int k = 0; k < SIZE; k++)
            in[k] = (float)k;
        if (hone_bind(g->op, args, 2, &plan, &g->err) != HONE_OK) fail_msg("%s", g->err.message);
        assert_int_equal(plan->run(plan, args, NULL), HONE_OK);
        hone_plan_release(&plan);
        for (int k = 0; k < SIZE; k++)
            assert_true(out[k] == 2 * in[k]);
    }
}

#define on_plugin(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_plugin(a_module_runs_wherever_its_tensors_lie),
        on_plugin(a_result_of_its_own_is_copied),
        on_plugin(text_that_is_no_module_loses_with_the_plugins_words),
        on_plugin(bytecode_that_was_cut_loses),
        on_plugin(a_dtype_of_the_same_size_is_refused),
        on_plugin(an_option_that_the_plugin_does_not_know_loses),
        on_plugin(a_call_of_a_gpu_loses_with_its_name),
        on_plugin(scalars_are_arguments_of_rank_0),
        on_plugin(what_was_compiled_is_kept_on_disk_and_runs),
        on_plugin(two_threads_run_one_plan),
        on_plugin(a_kernel_that_jax_exported_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
