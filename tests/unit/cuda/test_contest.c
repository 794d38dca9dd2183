// A contest on a device, in a worker: what is right wins, and what is wrong, writes too far, breaks the device or hangs
// loses with its reason and harms nobody. With HONE_TEST_GPU=1 it does so on the GPU of this machine, which then
// compiles and runs the bodies; the fake one goes by their names.
#include "fake.h"

#include "os/os.h"

#include <unistd.h>

#define SOURCE(entry, body) "extern \"C\" __global__ void " entry "(const float *x, float *y, int n) {" body "}"
#define CALL                "rms_norm(f32[4,64], f32[64]) @cuda:0"

static void add(hone_runtime *rt, const char *entry, const char *source)
{
    hone_error err;
    const hone_code code = {HONE_CODE, .source = source, .entry = entry, .arguments = "x, y, i32(x.size)"};
    const hone_kernel kernel = {HONE_KERNEL,         .algorithm = "rms_norm", .name = entry, .platform = HONE_CUDA,
                                .backend = HONE_GPU, .priority = 1,           .code = &code};
    if (hone_register_kernels(rt, &kernel, 1, &err) != HONE_OK) fail_msg("%s", err.message);
}

// As add, with scratch memory for x's elements.
static void add_past_scratch(hone_runtime *rt)
{
    hone_error err;
    const hone_code code = {
        HONE_CODE,
        .source = "extern \"C\" __global__ void past_scratch(const float *x, float *y, float *s, int n) {"
                  "for (int i = 0; i < 49; i++) ((char *)(s + n))[i] = 0; }",
        .entry = "past_scratch", .arguments = "x, y, scratch, i32(x.size)", .scratch = "4 * x.size"};
    const hone_kernel kernel = {HONE_KERNEL,           .algorithm = "rms_norm", .name = "past_scratch",
                                .platform = HONE_CUDA, .backend = HONE_GPU,     .priority = 1,
                                .code = &code};
    if (hone_register_kernels(rt, &kernel, 1, &err) != HONE_OK) fail_msg("%s", err.message);
}

static bool on_gpu(void)
{
    return getenv("HONE_TEST_GPU") != NULL;
}

static hone_runtime *open_runtime(void)
{
    hone_runtime *rt = NULL;
    hone_error err;
    hone_runtime_options options = {.struct_size = sizeof options, .store = "memory:", .device_locks = "none"};
    assert_int_equal(hone_runtime_open(&options, &rt, &err), HONE_OK);
    return rt;
}

static const hone_tune_options quick = {
    .struct_size = sizeof quick, .seconds = 6, .evaluations = 12, .candidate_seconds = 1.5};

static void only_what_is_right_wins(void **state)
{
    fake *f = *state;
    hone_error err = {.message = ""};
    hone_result *result = NULL;
    hone_runtime *rt = open_runtime();
    add(rt, "wrong", SOURCE("wrong", "for (int i = 0; i < n; i++) y[i] = 2 * x[i];"));
    add(rt, "overrun", SOURCE("overrun", "for (int i = 0; i < n + 5; i++) y[i] = 3;"));
    add_past_scratch(rt);
    add(rt, "illegal", SOURCE("illegal", "*(volatile int *)16 = n;"));
    add(rt, "hang", SOURCE("hang", "for (long long from = clock64(); clock64() - from < 20000000000ll;) {}"));
    if (hone_tune_text(rt, CALL, &quick, &result, &err) != HONE_OK) fail_msg("%s", err.message);
    char *json = NULL;
    assert_int_equal(hone_result_json(result, &json, &err), HONE_OK);
    assert_non_null(strstr(json, "\"kernel\":\"cuda\""));
    static const char *const reasons[] = {
        "past the end of y", "wrote 49 bytes past the end of its scratch on the device of 1024 bytes",
        "CUDA_ERROR_ILLEGAL_ADDRESS (700)", "no answer within", "the reference says"};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strstr(json, reasons[i]) == NULL) fail_msg("'%s' is not in %s", reasons[i], json);
    hone_text_release(&json);
    hone_result_release(&result);
    hone_runtime_close(&rt);
    if (!on_gpu()) assert_true(fake_count(f, "launch rms_norm") > 10);
}

static const char product[] = "matmul(f32[64,64], f32[64,64]) @cuda:0";

static void tune_slowly_compiled(hone_runtime *rt, uint32_t evaluations, hone_result **out)
{
    hone_error err = {.message = ""};
    const hone_tune_options options = {
        .struct_size = sizeof options,
        .seconds = 20,
        .evaluations = evaluations,
        .patience = evaluations,
        .kernel = "cuda_simt"};
    setenv("FAKE_NVRTC_MS", "60", 1);
    if (hone_tune_text(rt, product, &options, out, &err) != HONE_OK) fail_msg("%s", err.message);
}

// How many compilations were at work at once; fails when something was launched beside one.
static int most_at_once(fake *f)
{
    int now = 0, most = 0;
    for (char *line = strtok((char *)(uintptr_t)fake_read(f), "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strncmp(line, "compile ", 8) == 0) now++;
        if (strcmp(line, "done") == 0) now--;
        if (strncmp(line, "launch", 6) == 0) assert_int_equal(now, 0);
        if (now > most) most = now;
    }
    return most;
}

static void what_takes_long_to_compile_is_compiled_several_at_once_and_timed_alone(void **state)
{
    if (on_gpu()) return;
    hone_result *result = NULL;
    hone_runtime *rt = open_runtime();
    tune_slowly_compiled(rt, 10, &result);
    hone_result_release(&result);
    hone_runtime_close(&rt);
    int most = most_at_once(*state);
    assert_true(most <= 16);
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    if (cpu.threads > 1) assert_true(most > 1); // of this process, which may be held to fewer than the machine has
}

static void a_compiler_that_dies_costs_the_config_that_it_died_of(void **state)
{
    (void)state;
    if (on_gpu()) return;
    char *json = NULL;
    hone_error err;
    hone_result *result = NULL;
    hone_runtime *rt = open_runtime();
    setenv("FAKE_NVRTC_ABORTS", "-Dblock_k=8", 1);
    tune_slowly_compiled(rt, 80, &result); // a third of the configs: so many, that some are tried
    assert_int_equal(hone_result_json(result, &json, &err), HONE_OK);
    assert_non_null(strstr(json, "\"crash\":"));
    hone_text_release(&json);
    hone_result_release(&result);
    hone_runtime_close(&rt);
}

static int setup(void **state)
{
    fake *f = calloc(1, sizeof *f);
    fake_choose(f, "fake_cuda.so");
    setenv("HONE_WORKER", HONE_TEST_WORKER, 0);
    if (on_gpu()) {
        unsetenv("HONE_CUDA_DRIVER");
        unsetenv("HONE_NVRTC");
        unsetenv("HONE_CUBLASLT");
    }
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fake_forget(*state);
    free(*state);
    return 0;
}

static hone_status copy(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    (void)plan;
    (void)execution;
    memcpy(hone_tensor_data(y), hone_tensor_data(x), sizeof(float) * (size_t)x->shape[0]);
    return HONE_OK;
}

// The fake GPU's memory is the host's, which needs no stream.
static void a_run_that_starts_nothing_on_its_stream_is_hidden(void **state)
{
    (void)state;
    hone_error err = {.message = ""};
    hone_result *result = NULL;
    if (on_gpu()) return;
    hone_runtime *rt = open_runtime();
    const hone_algorithm algorithm = {
        .struct_size = sizeof algorithm, .signature = "copied(x: f32[n]) -> y: f32[n]", .reference = copy};
    const hone_kernel kernel = {HONE_KERNEL,           .algorithm = "copied", .name = "elsewhere",
                                .platform = HONE_CUDA, .backend = HONE_GPU,   .run = copy};
    assert_int_equal(hone_register_algorithm(rt, &algorithm, &err), HONE_OK);
    assert_int_equal(hone_register_kernels(rt, &kernel, 1, &err), HONE_OK);
    hone_tune_options options = quick;
    options.isolation = HONE_ISOLATION_IN_PROCESS;
    assert_int_equal(hone_tune_text(rt, "copied(f32[4096]) @cuda:0", &options, &result, &err), HONE_NOT_FOUND);
    assert_non_null(strstr(err.message, "starts nothing on the stream"));
    hone_result_release(&result);
    hone_runtime_close(&rt);
}

// Regimes -------------------------------------------------------------------------------------------------------------

// Of the whole log, which is longer than what fake_read takes. None on a real GPU.
static int count_replays(const fake *f)
{
    char line[4096];
    int count = 0;
    FILE *log = fopen(f->log, "r");
    while (log != NULL && fgets(line, sizeof line, log) != NULL)
        count += strcmp(line, "replay\n") == 0;
    if (log != NULL) fclose(log);
    return count;
}

// The chosen kernel's time is of the regime that was asked for. Returns how often a graph was replayed meanwhile.
static int tune_as(fake *f, hone_runtime *rt, hone_regime regime)
{
    hone_error err = {.message = ""};
    hone_result *result = NULL;
    hone_tune_options options = quick;
    options.regime = regime;
    const int before = count_replays(f);
    if (hone_tune_text(rt, CALL, &options, &result, &err) != HONE_OK) fail_msg("%s", err.message);
    const hone_evidence *evidence = &hone_result_decision(result, 0)->evidence;
    assert_int_equal(evidence->regime, regime);
    assert_true(evidence->time_ns > 0);
    hone_result_release(&result);
    return count_replays(f) - before;
}

static hone_regime regime_of_answer(hone_runtime *rt)
{
    hone_error err = {.message = ""};
    hone_call *call = NULL;
    hone_decision decision;
    const hone_op *op = hone_op_find(rt, "rms_norm", &err);
    assert_int_equal(hone_call_parse(hone_allocator_system(), hone_op_signature(op), CALL, &call, &err), HONE_OK);
    if (hone_decide_call(op, call, &decision, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_int_equal(decision.source, HONE_SOURCE_STORE);
    hone_call_release(&call);
    return decision.evidence.regime;
}

// An eager run is no graph, and one of the regime graph is nothing else. Each is stored for itself, and a program says
// whose it wants.
static void launches_are_a_regime_of_their_own(void **state)
{
    fake *f = *state;
    hone_error err = {.message = ""};
    char url[64];
    snprintf(url, sizeof url, "sqlite:/tmp/hone-regimes-%d.db", (int)getpid());
    static const hone_regime regimes[] = {HONE_EAGER, HONE_GRAPH, HONE_WARM};
    hone_runtime *rt = NULL;
    hone_runtime_options options = {.struct_size = sizeof options, .store = url, .device_locks = "none"};
    assert_int_equal(hone_runtime_open(&options, &rt, &err), HONE_OK);
    const int eager = tune_as(f, rt, HONE_EAGER), graph = tune_as(f, rt, HONE_GRAPH);
    if (!on_gpu()) assert_true(eager == 0 && graph > 10);
    (void)tune_as(f, rt, HONE_WARM);
    hone_runtime_close(&rt);
    for (size_t i = 0; i < sizeof regimes / sizeof regimes[0]; i++) {
        options.regime = regimes[i];
        assert_int_equal(hone_runtime_open(&options, &rt, &err), HONE_OK);
        assert_int_equal(regime_of_answer(rt), regimes[i]);
        hone_runtime_close(&rt);
    }
    (void)unlink(url + sizeof "sqlite:" - 1);
}

static void what_no_graph_can_hold_loses_where_graphs_are_asked_for(void **state)
{
    (void)state;
    if (on_gpu()) return;
    hone_error err = {.message = ""};
    hone_result *result = NULL;
    hone_runtime *rt = open_runtime();
    hone_tune_options options = quick;
    options.regime = HONE_GRAPH;
    setenv("FAKE_CUDA_UNCAPTURED", "1", 1);
    assert_int_equal(hone_tune_text(rt, CALL, &options, &result, &err), HONE_NOT_FOUND);
    if (strstr(err.message, "cannot be captured into a graph") == NULL) fail_msg("%s", err.message);
    hone_result_release(&result);
    options.regime = HONE_WARM;
    if (hone_tune_text(rt, CALL, &options, &result, &err) != HONE_OK) fail_msg("%s", err.message);
    hone_result_release(&result);
    hone_runtime_close(&rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_what_is_right_wins, setup, teardown),
        cmocka_unit_test_setup_teardown(launches_are_a_regime_of_their_own, setup, teardown),
        cmocka_unit_test_setup_teardown(what_no_graph_can_hold_loses_where_graphs_are_asked_for, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_that_starts_nothing_on_its_stream_is_hidden, setup, teardown),
        cmocka_unit_test_setup_teardown(
            what_takes_long_to_compile_is_compiled_several_at_once_and_timed_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_compiler_that_dies_costs_the_config_that_it_died_of, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
