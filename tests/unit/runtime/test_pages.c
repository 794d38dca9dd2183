// The examples of ejkernel's pages, by what hone has for them in C: a registry of kernels, one of calls, caches of configs
// with overlays, and the tuning of a lowered program whose result then answers.
#include "ground.h"

#include "config/own_values.h"
#include "hone/own_cache.h"
#include "runtime/api/inner.h"

#include <stdio.h>

// @kernel_registry.register("scale", Platform.NATIVE, Backend.CPU, priority=...); kernel_registry.get(...)
static void kernels_are_registered_looked_up_listed_and_validated(void **state)
{
    fixture *f = *state;
    const hone_query queries[] = {
        {.algorithm = "Scale"}, {.algorithm = "scale", .platform = HONE_NATIVE, .backend = HONE_CPU}};
    for (int i = 0; i < 2; i++) {
        const hone_kernel_ref *impl = NULL;
        assert_int_equal(hone_registry_get(f->rt, &queries[i], &impl, &f->err), HONE_OK);
        assert_string_equal(hone_kernel_of(impl)->name, "fast"); // the highest priority
        example e;
        make_example(&e, 4, 4);
        assert_int_equal(hone_kernel_run(impl, e.args, 3, NULL, &f->err), HONE_OK);
        assert_scaled(&e, 2);
    }
    char **algorithms = NULL;
    size_t count = 0;
    assert_int_equal(hone_registry_algorithms(f->rt, &algorithms, &count, &f->err), HONE_OK);
    assert_int_equal(count, 1);
    assert_string_equal(algorithms[0], "scale");
    hone_names_release(&algorithms);
    const hone_kernel_ref **impls = NULL;
    assert_int_equal(hone_registry_kernels(f->rt, "SCALE", &impls, &count, &f->err), HONE_OK);
    assert_int_equal(count, KERNELS);
    assert_string_equal(hone_kernel_of(impls[1])->name, "plain");
    hone_kernels_release(&impls);
    bool agree = false;
    assert_int_equal(hone_validate_signatures(f->rt, "scale", false, NULL, NULL, &agree, &f->err), HONE_OK);
    assert_true(agree);
    const hone_query missing = {.algorithm = "scale", .platform = HONE_TRITON, .backend = HONE_TPU};
    const hone_kernel_ref *impl = NULL;
    assert_int_equal(hone_registry_get(f->rt, &missing, &impl, &f->err), HONE_NOT_FOUND);
    const hone_kernel twice = f->kernels[FAST];
    assert_int_equal(hone_register_kernels(f->rt, &twice, 1, &f->err), HONE_INVALID_ARGUMENT);
}

static bool print_invocation(void *ctx, const hone_store_invocation *invocation)
{
    char *out = ctx;
    snprintf(
        out, 200, "Found %s@v%s call %.8s... %llu times", invocation->key.algorithm, invocation->key.version,
        invocation->key.key, (unsigned long long)invocation->count);
    return true;
}

// record_invocation(dev, 'matmul@v1', call_key, kernel, args, kwargs); get_invocations(dev)
static void calls_are_recorded_by_device_operation_and_key(void **state)
{
    fixture *f = *state;
    char found[200] = "", expected[200];
    hone_call *call = describe_scale(f, 4, 4);
    for (int i = 0; i < 2; i++)
        assert_int_equal(hone_record_invocation(f->rt, call, 1, &f->err), HONE_OK);
    size_t count = 0;
    const char *device = hone_runtime_devices(f->rt, &count)[0]->fingerprint;
    assert_int_equal(hone_record_scan(f->rt, device, print_invocation, found, &f->err), HONE_OK);
    snprintf(expected, sizeof expected, "Found scale@v1 call %.8s... 2 times", hone_call_key(call));
    assert_string_equal(found, expected);
    found[0] = '\0';
    assert_int_equal(hone_record_scan(f->rt, "gpu|cuda_12.0", print_invocation, found, &f->err), HONE_OK);
    assert_string_equal(found, "");
    hone_call_release(&call);
}

static void assert_config(hone_own_cache *cache, const hone_own_value *key, const char *json)
{
    char *config = NULL;
    hone_error err;
    assert_int_equal(hone_own_cache_get(cache, key, &config, &err), HONE_OK);
    assert_string_equal(config, json);
    hone_text_release(&config);
}

// cache = ConfigCache(); cache.put(...); with overlay_cache(override): ...; cache = PersistentCache(path)
static void configs_are_cached_overlaid_and_persist(void **state)
{
    ground *g = *state;
    const hone_own_value held = {"dev1", "op1", "key1", "\"original_config\""};
    const hone_own_value override_ = {"dev1", "op1", "key1", "\"override_config\""};
    const hone_own_cache_options places[] = {
        {.struct_size = sizeof places[0], .name = "matmul"},
        {.struct_size = sizeof places[0], .name = "matmul", .url = g->url}};
    for (int i = 0; i < 2; i++) {
        hone_own_cache *cache = NULL;
        hone_own_overlay *overlay = NULL;
        assert_int_equal(hone_own_cache_open(&places[i], &cache, &g->f->err), HONE_OK);
        assert_int_equal(hone_own_cache_put(cache, &held, &g->f->err), HONE_OK);
        assert_int_equal(
            hone_own_overlay_derive((hone_allocator){0}, NULL, &override_, 1, &overlay, &g->f->err), HONE_OK);
        hone_own_overlay_enter(overlay);
        assert_config(cache, &override_, "\"override_config\"");
        hone_own_overlay_enter(NULL);
        assert_config(cache, &override_, "\"original_config\"");
        hone_own_overlay_release(&overlay);
        hone_own_cache_close(&cache);
    }
    hone_own_cache *again = NULL;
    assert_int_equal(hone_own_cache_open(&places[1], &again, &g->f->err), HONE_OK);
    assert_config(again, &held, "\"original_config\"");
    hone_own_cache_close(&again);
    tune_scale(g->f, 4); // hone's own decisions stand beside, and meet none of these
    assert_int_equal(hone_own_cache_open(&places[1], &again, &g->f->err), HONE_OK);
    size_t count = 0;
    assert_int_equal(hone_own_cache_size(again, &count, &g->f->err), HONE_OK);
    assert_int_equal(count, 1);
    hone_own_cache_close(&again);
}

static hone_program *read_program(hone_runtime *rt, const char *name)
{
    static char text[1 << 20];
    hone_program *program = NULL;
    hone_error err;
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    const size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    if (hone_program_read(rt, name, text, size, &program, &err) != HONE_OK) fail_msg("%s", err.message);
    return program;
}

// result = autotune_lowered(selector, lowered); with result: output = ...
static void a_lowered_program_is_tuned_and_its_result_answers(void **state)
{
    (void)state;
    hone_runtime *rt = NULL;
    hone_error err;
    const hone_runtime_options options = {
        .struct_size = sizeof options, .store = "none", .flags = HONE_RUNTIME_NO_ENVIRONMENT, .threads = 1};
    const hone_tune_options quick = {
        .struct_size = sizeof quick, .seconds = 1, .evaluations = 4, .isolation = HONE_ISOLATION_IN_PROCESS};
    hone_result *result = NULL;
    hone_overlay *overlay = NULL;
    hone_context *context = NULL;
    assert_int_equal(hone_runtime_open(&options, &rt, &err), HONE_OK);
    hone_program *program = read_program(rt, HONE_TEST_DATA "/golden/lowered/one_json.mlir");
    assert_int_equal(hone_program_operations(program), 1);
    const hone_operation *operation = hone_program_operation(program, 0);
    if (hone_offline(rt, program, false, &quick, &result, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_int_equal(hone_result_size(result), 1);
    assert_int_equal(hone_result_overlay(result, &overlay, &err), HONE_OK);
    assert_int_equal(hone_context_derive(rt, NULL, overlay, NULL, HONE_POLICY_DEFAULT, &context, &err), HONE_OK);
    hone_call *call = NULL;
    hone_decision decision;
    const hone_op *op = hone_op_find(rt, hone_result_decision(result, 0)->algorithm, &err);
    assert_int_equal(
        hone_call_parse((hone_allocator){0}, hone_op_signature(op), operation->call, &call, &err), HONE_OK);
    hone_context_enter(context);
    assert_int_equal(hone_decide_call(op, call, &decision, &err), HONE_OK);
    hone_context_enter(NULL);
    assert_int_equal(decision.source, HONE_SOURCE_OVERLAY);
    assert_string_equal(decision.kernel, hone_result_decision(result, 0)->kernel);
    assert_true(decision.verified);
    hone_call_release(&call);
    hone_context_release(&context);
    hone_overlay_release(&overlay);
    hone_result_release(&result);
    hone_program_release(&program);
    hone_runtime_close(&rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            kernels_are_registered_looked_up_listed_and_validated, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(
            calls_are_recorded_by_device_operation_and_key, setup_runtime, teardown_runtime),
        cmocka_unit_test_setup_teardown(configs_are_cached_overlaid_and_persist, open_ground, close_ground),
        cmocka_unit_test(a_lowered_program_is_tuned_and_its_result_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
