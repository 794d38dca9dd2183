// What a real plugin cannot be asked for: other versions, missing functions, failures of every step, an end of the
// process.
#include "failing_allocator.h"
#include "pack/pack.h"
#include "platforms/platform.h"
#include "runtime/api/inner.h"
#include "xla.h"

#define FAKE HONE_TEST_FAKES "/fake_pjrt.so"

static const hone_code donated = {HONE_CODE, .source = DONATED, .arguments = "x, y"};
static const hone_code copied = {HONE_CODE, .source = COPIED, .arguments = "x"};

static int setup(void **state)
{
    ground *g = aligned_alloc(64, (sizeof *g + 63) / 64 * 64);
    *state = g;
    ground_open(g, FAKE);
    return 0;
}

static int teardown(void **state)
{
    ground_close(*state);
    free(*state);
    return 0;
}

static void expect_refusal(ground *g, const char *words)
{
    ground_register(g, "module", HONE_XLA, &donated);
    assert_int_not_equal(ground_run(g), HONE_OK);
    if (strstr(g->err.message, words) == NULL) fail_msg("'%s' is not in: %s", words, g->err.message);
    assert_int_equal(ground_count(g, "execute"), 0);
}

static void a_result_that_is_donated_is_written_in_its_place(void **state)
{
    ground *g = *state;
    ground_register(g, "module", HONE_XLA, &donated);
    assert_int_equal(ground_run(g), HONE_OK);
    assert_true(ground_is_right(g));
    assert_int_equal(ground_count(g, "execute alias=1 live=2"), 1);
}

static void a_result_of_its_own_is_copied(void **state)
{
    ground *g = *state;
    ground_register(g, "module", HONE_XLA, &copied);
    assert_int_equal(ground_run(g), HONE_OK);
    assert_true(ground_is_right(g));
}

static void every_buffer_of_a_run_is_given_back(void **state)
{
    ground *g = *state;
    ground_register(g, "module", HONE_XLA, &donated);
    for (int i = 0; i < 10; i++)
        assert_int_equal(ground_run(g), HONE_OK);
    assert_int_equal(ground_count(g, "live=2"), 10);
}

// From the plan to the last buffer: a want of memory is told, or another kernel answers; nothing stays, and the next
// call is right.
static void every_allocation_of_a_run_may_fail(void **state)
{
    enum { MOST = 4000 };
    ground *g = *state;
    bool all_given = false;
    for (long long left = 0; !all_given && left < MOST; left++) {
        failing_allocator memory;
        hone_runtime_options options = {
            .struct_size = sizeof options,
            .allocator = failing_allocator_of(&memory, -1),
            .store = "none",
            .flags = HONE_RUNTIME_NO_BUILTINS | HONE_RUNTIME_UNVERIFIED};
        const hone_algorithm algorithm = {
            .struct_size = sizeof algorithm, .signature = "twice(x: f32[n]) -> y: f32[n]", .reference = twice};
        hone_runtime_close(&g->rt);
        assert_int_equal(hone_runtime_open(&options, &g->rt, &g->err), HONE_OK);
        assert_int_equal(hone_register_algorithm(g->rt, &algorithm, &g->err), HONE_OK);
        ground_register(g, "module", HONE_XLA, left % 2 == 0 ? &donated : &copied);
        g->op = hone_op_find(g->rt, "twice", &g->err);
        atomic_store(&memory.left, left);
        hone_status status = ground_run(g);
        assert_true(status == HONE_OK || status == HONE_OUT_OF_MEMORY);
        if (status == HONE_OK) assert_true(ground_is_right(g));
        all_given = atomic_load(&memory.left) > 0;
        atomic_store(&memory.left, -1);
        memset(g->out, 0, sizeof g->out);
        assert_int_equal(ground_run(g), HONE_OK);
        assert_true(ground_is_right(g));
        hone_runtime_close(&g->rt);
        assert_int_equal(atomic_load(&memory.live), 0);
    }
    assert_true(all_given);
}

static void an_older_plugin_is_refused(void **state)
{
    setenv("FAKE_PJRT_MINOR", "40", 1);
    expect_refusal(*state, "speaks version 0.40");
}

static void a_newer_plugin_runs(void **state)
{
    ground *g = *state;
    setenv("FAKE_PJRT_MINOR", "900", 1);
    ground_register(g, "module", HONE_XLA, &donated);
    assert_int_equal(ground_run(g), HONE_OK);
    assert_true(ground_is_right(g));
}

static void a_plugin_whose_table_is_short_is_refused(void **state)
{
    setenv("FAKE_PJRT_SLOTS", "60", 1);
    expect_refusal(*state, "has no PJRT_Buffer_OpaqueDeviceMemoryDataPointer");
}

static void a_plugin_without_a_function_is_refused_with_its_name(void **state)
{
    setenv("FAKE_PJRT_WITHOUT", "55", 1);
    expect_refusal(*state, "has no PJRT_LoadedExecutable_Execute");
}

static void a_plugin_for_another_platform_is_refused(void **state)
{
    setenv("FAKE_PJRT_PLATFORM", "cuda", 1);
    expect_refusal(*state, "is a plugin for platform cuda, not for cpu");
}

static void a_failure_to_create_a_client_is_reported(void **state)
{
    setenv("FAKE_PJRT_FAIL", "client", 1);
    expect_refusal(*state, "the fake fails in client");
}

static void a_module_that_does_not_compile_loses_with_the_plugins_words(void **state)
{
    setenv("FAKE_PJRT_FAIL", "compile", 1);
    setenv("FAKE_PJRT_CODE", "3", 1);
    expect_refusal(*state, "the fake fails in compile (code 3)");
}

static void a_run_that_fails_is_a_failed_kernel_and_the_next_succeeds(void **state)
{
    static const char *const steps[] = {"buffer", "execute", "await"};
    ground *g = *state;
    const hone_plan *plan = NULL;
    ground_register(g, "module", HONE_XLA, &donated);
    assert_int_equal(hone_bind(g->op, g->args, 2, &plan, &g->err), HONE_OK);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        setenv("FAKE_PJRT_FAIL", steps[i], 1);
        setenv("FAKE_PJRT_CODE", "8", 1); // no memory left
        assert_int_equal(plan->run(plan, g->args, NULL), HONE_KERNEL_FAILED);
        unsetenv("FAKE_PJRT_FAIL");
        assert_int_equal(plan->run(plan, g->args, NULL), HONE_OK);
    }
    hone_plan_release(&plan);
}

static void append_text(void *ctx, const char *text, size_t size)
{
    char *said = ctx;
    strncat(said, text, size);
}

static void a_run_that_fails_has_the_plugins_words_in_its_error_and_in_explain(void **state)
{
    ground *g = *state;
    hone_call *call = NULL;
    char said[1 << 12] = "";
    ground_register(g, "module", HONE_XLA, &donated);
    assert_int_equal(ground_run(g), HONE_OK);
    setenv("FAKE_PJRT_FAIL", "execute", 1);
    assert_int_not_equal(ground_run(g), HONE_OK);
    assert_non_null(strstr(g->err.message, "the fake fails in execute"));
    assert_int_equal(
        hone_call_parse(hone_allocator_system(), hone_op_signature(g->op), "twice(f32[6])", &call, &g->err), HONE_OK);
    assert_int_equal(hone_explain(g->op, call, HONE_TEXT, append_text, said, &g->err), HONE_OK);
    hone_call_release(&call);
    if (strstr(said, "it failed at run time: PJRT_LoadedExecutable_Execute: the fake fails in execute") == NULL)
        fail_msg("%s", said);
}

static void what_was_compiled_is_loaded_the_next_time(void **state)
{
    ground *g = *state;
    const hone_plan *plan = NULL;
    ground_register(g, "module", HONE_XLA, &donated);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hone_bind(g->op, g->args, 2, &plan, &g->err), HONE_OK);
        hone_plan_release(&plan);
        hone_cache_clear(g->rt);
    }
    assert_int_equal(ground_count(g, "compile"), 1);
}

static void arguments_are_compared_with_the_module(void **state)
{
    static const struct {
        hone_code code;
        const char *words;
    } wrong[] = {
        {{HONE_CODE, .source = COPIED, .arguments = "x, y"}, "takes 1 arguments, 2 are listed"},
        {{HONE_CODE, .source = "module @main(%x: tensor<5xf32>) -> tensor<${y.type}>", .arguments = "x"},
         "argument 0 has another dtype or size"},
        {{HONE_CODE, .source = "module @main(%x: tensor<${n}xi32>) -> tensor<${y.type}>", .arguments = "x"},
         "argument 0 has another dtype or size"},
        {{HONE_CODE, .source = "module @main(%x: tensor<${x.type}>) -> tensor<7xf32>", .arguments = "x"},
         "result 0 has another dtype or size than y"},
        {{HONE_CODE, .source = "module @main(%x: tensor<${z}xf32>) -> tensor<7xf32>", .arguments = "x"}, "${z}"},
        {{HONE_CODE, .source = "module @main(%x: tensor<${n", .arguments = "x"}, "has no '}' behind it"},
    };
    ground *g = *state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char name[16];
        const hone_plan *plan = NULL;
        snprintf(name, sizeof name, "wrong%zu", i);
        ground_register(g, name, HONE_XLA, &wrong[i].code);
        assert_int_not_equal(hone_bind(g->op, g->args, 2, &plan, &g->err), HONE_OK);
        if (strstr(g->err.message, wrong[i].words) == NULL)
            fail_msg("'%s' is not in: %s", wrong[i].words, g->err.message);
    }
}

static void code_that_is_no_modules_is_refused_when_it_is_registered(void **state)
{
    static const hone_code wrong[] = {
        {HONE_CODE, .source = COPIED, .arguments = "x", .grid = "1"},
        {HONE_CODE, .source = COPIED, .arguments = "x", .entry = "other"},
        {HONE_CODE, .source = COPIED, .arguments = "x", .target = "sm_90"},
        {HONE_CODE, .source = COPIED},
    };
    ground *g = *state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hone_kernel kernel = {HONE_KERNEL,          .algorithm = "twice", .name = "wrong",
                              .platform = HONE_XLA, .backend = HONE_CPU,  .code = &wrong[i]};
        assert_int_equal(hone_register_kernels(g->rt, &kernel, 1, &g->err), HONE_INVALID_ARGUMENT);
    }
}

static hone_status tune(ground *g, hone_result **out)
{
    hone_tune_options options = {.struct_size = sizeof options, .seconds = 2, .evaluations = 2, .no_store = true};
    return hone_tune_text(g->rt, "twice(f32[6])", &options, out, &g->err);
}

static void a_plugin_that_aborts_does_so_in_a_worker(void **state)
{
    ground *g = *state;
    hone_result *result = NULL;
    ground_register(g, "module", HONE_XLA, &donated);
    setenv("FAKE_PJRT_ABORT", "compile", 1);
    assert_int_not_equal(tune(g, &result), HONE_OK);
    hone_result_release(&result);
    assert_non_null(strstr(g->err.message, "module"));
}

static void a_kernel_of_pallas_is_right_on_a_cpu_and_never_timed(void **state)
{
    ground *g = *state;
    hone_result *result = NULL;
    ground_register(g, "interpreted", HONE_PALLAS, &copied);
    assert_int_equal(ground_run(g), HONE_OK);
    assert_true(ground_is_right(g));
    assert_int_not_equal(tune(g, &result), HONE_OK);
    hone_result_release(&result);
    assert_non_null(strstr(g->err.message, "interpret mode"));
}

static void a_kernel_for_a_tpu_is_refused_with_what_it_needs(void **state)
{
    ground *g = *state;
    hone_kernel kernel = {HONE_KERNEL,         .algorithm = "twice", .name = "tpu", .platform = HONE_PALLAS,
                          .backend = HONE_TPU, .code = &copied};
    assert_int_equal(hone_register_kernels(g->rt, &kernel, 1, &g->err), HONE_OK);
    assert_int_not_equal(ground_run(g), HONE_OK);
    assert_non_null(strstr(g->err.message, "TPU"));
}

static hone_status read_pack(const char *folder, hone_kernel_pack **out, hone_error *err)
{
    hone_allocator allocator = hone_allocator_system();
    return hone_pack_open(&allocator, folder, &hone_platform_packs, out, err);
}

// Of cpu, gpu and tpu: whether each can run here is another question.
static void a_pack_of_pallas_kernels_is_whole(void **state)
{
    (void)state;
    hone_kernel_pack *pack = NULL;
    hone_error err = {.message = ""};
    if (read_pack(HONE_TEST_DATA "/golden/pallas", &pack, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_int_equal(hone_pack_size(pack), 3);
    for (size_t i = 0; i < hone_pack_size(pack); i++) {
        const hone_pack_kernel *kernel = hone_pack_kernel_at(pack, i)->code->pack;
        if (kernel->status != HONE_OK) fail_msg("%s", kernel->refusal);
        assert_true(kernel->variant_count >= 2);
    }
    hone_pack_close(&pack);
}

static void expect_refused_pack(ground *g, const char *change, const char *words)
{
    char command[512];
    hone_kernel_pack *pack = NULL;
    bool found = false;
    snprintf(
        command, sizeof command, "rm -rf %s/p && cp -r %s/golden/pallas %s/p && cd %s/p && %s", g->folder,
        HONE_TEST_DATA, g->folder, g->folder, change);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "%s/p", g->folder);
    if (read_pack(command, &pack, &g->err) != HONE_OK) fail_msg("%s", g->err.message);
    for (size_t i = 0; i < hone_pack_size(pack); i++) {
        const hone_pack_kernel *kernel = hone_pack_kernel_at(pack, i)->code->pack;
        if (kernel->status != HONE_OK) found = found || strstr(kernel->refusal, words) != NULL;
    }
    hone_pack_close(&pack);
    assert_true(found);
}

static void a_pack_that_was_changed_is_refused(void **state)
{
    expect_refused_pack(*state, "echo >>twice_cpu_block512.vhlo", "twice_cpu_block512.vhlo");
    expect_refused_pack(*state, "sed -i 's/\"tpu\"/\"cpu\"/;s/pallas_tpu/other/' pack.json", "tpu_custom_call");
    expect_refused_pack(*state, "sed -i 's/\"gpu\"/\"tpu\"/;s/pallas_gpu/other/' pack.json", "xla.gpu.triton");
    expect_refused_pack(*state, "sed -i 's/\"arguments\": \"x\"/\"grid\": \"1\"/' pack.json", "arguments");
}

#define on_fake(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

// On a GPU the plugin has streams of its own: the caller's is waited for before a run, and not captured.
static void a_run_on_a_gpu_comes_behind_the_callers_stream_and_into_no_graph(void **state)
{
    ground *g = *state;
    const hone_execution execution = {.struct_size = sizeof execution, .stream = (void *)0x2a};
    const hone_kernel kernel = {HONE_KERNEL,          .algorithm = "twice", .name = "module",
                                .platform = HONE_XLA, .backend = HONE_GPU,  .code = &donated};
    hone_runtime_options options = {
        .struct_size = sizeof options, .store = "none", .flags = HONE_RUNTIME_NO_BUILTINS | HONE_RUNTIME_UNVERIFIED};
    const hone_algorithm algorithm = {
        .struct_size = sizeof algorithm, .signature = "twice(x: f32[n]) -> y: f32[n]", .reference = twice};
    hone_runtime_close(&g->rt);
    setenv("HONE_PJRT_PLUGIN", "cuda=" FAKE, 1);
    setenv("FAKE_PJRT_PLATFORM", "cuda", 1);
    setenv("HONE_CUDA_DRIVER", HONE_TEST_FAKES "/fake_cuda.so", 1);
    assert_int_equal(hone_runtime_open(&options, &g->rt, &g->err), HONE_OK);
    assert_int_equal(hone_register_algorithm(g->rt, &algorithm, &g->err), HONE_OK);
    g->op = hone_op_find(g->rt, "twice", &g->err);
    if (hone_register_kernels(g->rt, &kernel, 1, &g->err) != HONE_OK) fail_msg("%s", g->err.message);
    g->x.device = g->y.device = (hone_device){HONE_DEVICE_CUDA, 0};
    if (hone_run(g->op, g->args, 2, &execution, &g->err) != HONE_OK) fail_msg("%s", g->err.message);
    assert_true(ground_is_right(g));
    assert_int_equal(ground_count(g, "execute"), 1);
    const char *wait = strstr(g->text, "wait for 0x2a"), *execute = strstr(g->text, "execute");
    assert_true(wait != NULL && execute != NULL && wait < execute);
    setenv("FAKE_CUDA_CAPTURED", "42", 1);
    assert_int_equal(hone_run(g->op, g->args, 2, &execution, &g->err), HONE_UNAVAILABLE);
    unsetenv("FAKE_CUDA_CAPTURED");
    unsetenv("HONE_CUDA_DRIVER");
    assert_int_equal(ground_count(g, "execute"), 1);
    assert_int_equal(hone_run(g->op, g->args, 2, &execution, &g->err), HONE_OK); // it kept its place
    assert_int_equal(ground_count(g, "execute"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_run_on_a_gpu_comes_behind_the_callers_stream_and_into_no_graph, setup, teardown),
        on_fake(a_result_that_is_donated_is_written_in_its_place),
        on_fake(a_result_of_its_own_is_copied),
        on_fake(every_buffer_of_a_run_is_given_back),
        on_fake(every_allocation_of_a_run_may_fail),
        on_fake(an_older_plugin_is_refused),
        on_fake(a_newer_plugin_runs),
        on_fake(a_plugin_whose_table_is_short_is_refused),
        on_fake(a_plugin_without_a_function_is_refused_with_its_name),
        on_fake(a_plugin_for_another_platform_is_refused),
        on_fake(a_failure_to_create_a_client_is_reported),
        on_fake(a_module_that_does_not_compile_loses_with_the_plugins_words),
        on_fake(a_run_that_fails_is_a_failed_kernel_and_the_next_succeeds),
        on_fake(a_run_that_fails_has_the_plugins_words_in_its_error_and_in_explain),
        on_fake(what_was_compiled_is_loaded_the_next_time),
        on_fake(arguments_are_compared_with_the_module),
        on_fake(code_that_is_no_modules_is_refused_when_it_is_registered),
        on_fake(a_plugin_that_aborts_does_so_in_a_worker),
        on_fake(a_kernel_of_pallas_is_right_on_a_cpu_and_never_timed),
        on_fake(a_kernel_for_a_tpu_is_refused_with_what_it_needs),
        on_fake(a_pack_of_pallas_kernels_is_whole),
        on_fake(a_pack_that_was_changed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
