#include "fixture.h"

static const char op[] = "op(x: T[m, n], w: f32[n]? = none, *, causal: bool = false, scale: f64 = 1.0) -> y: T[m, n] "
                         "where T in f32, f16";

static const hone_device_info cpu = {
    .struct_size = sizeof cpu,
    .platform = HONE_NATIVE,
    .backend = HONE_CPU,
    .device = {HONE_DEVICE_CPU, 0},
    .name = "test CPU",
    .fingerprint = "cpu|test",
    .features = HONE_CPU_AVX2 | HONE_CPU_FMA,
    .threads = 2,
    .l1_bytes = 32768,
};

static int open_with_op(void **state)
{
    return open_cpu_registry(state) == 0 && add_algorithm(*state, op) == HONE_OK ? 0 : -1;
}

static hone_call *call_of(fixture *f, const char *text)
{
    hone_call *call = NULL;
    hone_allocator allocator = {&f->memory, failing_reallocate};
    hone_signature *signature = hone_registry_find(f->registry, "op", NULL)->signature;
    hone_status status = hone_call_parse(allocator, signature, text, &call, &f->err);
    if (status != HONE_OK) print_message("%s\n", f->err.message);
    assert_int_equal(status, HONE_OK);
    return call;
}

static hone_status ask(fixture *f, const hone_kernel *kernel, const char *text)
{
    assert_int_equal(hone_registry_add_kernels(f->registry, kernel, 1, true, false, &f->err), HONE_OK);
    hone_call *call = text == NULL ? NULL : call_of(f, text);
    hone_status status = hone_kernel_eligible(only_kernel(f, "op"), call, &cpu, &f->err);
    hone_call_release(&call);
    return status;
}

static hone_kernel plain(void)
{
    return a_kernel("op", "a", HONE_NATIVE, HONE_CPU, 0);
}

static void a_plain_kernel_runs_any_call(void **state)
{
    fixture *f = *state;
    hone_kernel kernel = plain();
    assert_int_equal(ask(f, &kernel, "op(f32[2,3])"), HONE_OK);
    assert_int_equal(ask(f, &kernel, "op(f16[2,3], f32[3], causal=true)"), HONE_OK);
}

static void another_platform_or_backend_is_unavailable(void **state)
{
    fixture *f = *state;
    hone_kernel kernel = a_kernel("op", "a", HONE_CUDA, HONE_GPU, 0);
    assert_int_equal(ask(f, &kernel, "op(f32[2,3])"), HONE_UNAVAILABLE);
    assert_says(f, "cuda");
    kernel = a_kernel("op", "a", HONE_NATIVE, HONE_TPU, 1);
    assert_int_equal(ask(f, &kernel, "op(f32[2,3])"), HONE_UNAVAILABLE);
    assert_says(f, "tpu");
    kernel = a_kernel("op", "a", HONE_NATIVE, HONE_ANY, 2);
    assert_int_equal(ask(f, &kernel, "op(f32[2,3])"), HONE_OK);
}

static void the_cpu_reads_pinned_memory_too_and_no_devices(void **state)
{
    fixture *f = *state;
    hone_kernel kernel = plain();
    assert_int_equal(ask(f, &kernel, "op(f32[2,3]) @cuda_host"), HONE_OK);
    assert_int_equal(ask(f, &kernel, "op(f32[2,3]) @cuda:0"), HONE_UNSUPPORTED);
    assert_says(f, "x lies on device");
    assert_int_equal(ask(f, &kernel, "op(f32[2,3]) @cpu:1"), HONE_UNSUPPORTED);
}

static void missing_instructions_are_named(void **state)
{
    fixture *f = *state;
    hone_kernel kernel = plain();
    kernel.needs = HONE_CPU_AVX2 | HONE_CPU_AVX512F | HONE_CPU_AVX512_BF16;
    assert_int_equal(ask(f, &kernel, NULL), HONE_UNAVAILABLE);
    assert_says(f, "needs avx512f, avx512_bf16, which test CPU does not have");
    kernel.needs = HONE_CPU_AVX2;
    assert_int_equal(ask(f, &kernel, NULL), HONE_OK);
}

static void a_tensor_elsewhere_is_unsupported(void **state)
{
    fixture *f = *state;
    hone_kernel kernel = plain();
    assert_int_equal(ask(f, &kernel, "op(f32[2,3]) @cuda:1"), HONE_UNSUPPORTED);
    assert_says(f, "x lies on");
}

static void a_parameter_that_the_kernel_does_not_take_must_stay_at_its_default(void **state)
{
    fixture *f = *state;
    hone_kernel kernel = plain();
    kernel.signature = "op(x: T[m, n]) -> y: T[m, n]";
    assert_int_equal(ask(f, &kernel, "op(f32[2,3])"), HONE_OK);
    assert_int_equal(ask(f, &kernel, "op(f32[2,3], causal=false, scale=1.0)"), HONE_OK);
    assert_int_equal(ask(f, &kernel, "op(f32[2,3], f32[3], causal=true, scale=2.0)"), HONE_UNSUPPORTED);
    assert_says(f, "w, causal, scale: not supported"); // all of them, in the order of the signature
}

static void the_first_parameter_may_be_one_that_the_kernel_does_not_take(void **state)
{
    fixture *f = *state;
    assert_int_equal(add_algorithm(f, "late(w: f32[n]?, x: f32[n]) -> y: f32[n]"), HONE_OK);
    hone_kernel kernel = a_kernel("late", "a", HONE_NATIVE, HONE_CPU, 0);
    kernel.signature = "late(x: f32[n]) -> y: f32[n]";
    assert_int_equal(add_kernel(f, kernel), HONE_OK);
    static const char *const calls[] = {"late(none, f32[4])", "late(f32[4], f32[4])"};
    hone_signature *signature = hone_registry_find(f->registry, "late", NULL)->signature;
    for (int given = 0; given < 2; given++) {
        hone_call *call = NULL;
        hone_allocator allocator = {&f->memory, failing_reallocate};
        assert_int_equal(hone_call_parse(allocator, signature, calls[given], &call, &f->err), HONE_OK);
        hone_status status = hone_kernel_eligible(only_kernel(f, "late"), call, &cpu, &f->err);
        assert_int_equal(status, given ? HONE_UNSUPPORTED : HONE_OK);
        if (given) assert_says(f, "w: not supported");
        hone_call_release(&call);
    }
}

// What code asks of a call: the order of its tensors in memory, their alignment, and a condition of its own.
static void code_runs_calls_as_it_asks_for_them(void **state)
{
    fixture *f = *state;
    const hone_device_info device = {
        .struct_size = sizeof device, .platform = HONE_NULL, .backend = HONE_CPU, .device = {HONE_DEVICE_CPU, 0}};
    static const struct {
        uint32_t align;
        const char *condition, *call, *word; // NULL: it runs
    } cases[] = {
        {0, NULL, "op(f32[2,3])", NULL},
        {0, NULL, "op(f32[2,3]{align=1})", NULL},
        {0, NULL, "op(f32[2,3]{strides=1,2})", "x has strides"},
        {8, NULL, "op(f32[2,3]{align=8})", NULL},
        {8, NULL, "op(f32[2,3])", NULL},
        {8, NULL, "op(f32[2,3]{align=4})", "x is aligned to 4 bytes, the kernel asks for 8"},
        {8, NULL, "op(f32[2,3], f32[3]{align=4})", "w is aligned to 4 bytes"},
        {16, NULL, "op(f32[2,3]{align=8})", "x is aligned to 8 bytes, the kernel asks for 16"},
        {16, NULL, "op(f32[2,3]{align=16})", NULL},
        {0, "n > 2", "op(f32[2,3])", NULL},
        {0, "n > 2", "op(f32[2,2])", "asks for n > 2"},
        {0, "k > 2", "op(f32[2,2])", "condition 'k > 2'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const hone_code code = {
            HONE_CODE,           .source = "text",        .entry = "op",
            .arguments = "x, y", .align = cases[i].align, .condition = cases[i].condition,
            .target = "any", // which nobody reads on this platform
        };
        hone_kernel kernel = a_kernel("op", "coded", HONE_NULL, HONE_CPU, 0);
        kernel.run = NULL;
        kernel.code = &code;
        if (hone_registry_add_kernels(f->registry, &kernel, 1, true, false, &f->err) != HONE_OK)
            fail_msg("%s", f->err.message);
        assert_int_equal(hone_kernel_eligible(only_kernel(f, "op"), NULL, &device, &f->err), HONE_OK);
        hone_call *call = call_of(f, cases[i].call);
        for (int known = 0; known < 2; known++) {
            hone_status status = hone_kernel_eligible(only_kernel(f, "op"), call, known ? &device : NULL, &f->err);
            if (status != (cases[i].word != NULL ? HONE_UNSUPPORTED : HONE_OK))
                fail_msg("%s: %s", cases[i].call, f->err.message);
            if (cases[i].word != NULL) assert_says(f, cases[i].word);
        }
        hone_call_release(&call);
    }
}

static void a_kernels_own_signature_may_take_fewer_dtypes(void **state)
{
    fixture *f = *state;
    hone_kernel kernel = plain();
    kernel.signature = "op(x: f32[m, n], w: f32[n]? = none, *, causal: bool = false, scale: f64 = 1.0, "
                       "fast: bool = true) -> y: f32[m, n] where n % 8 == 0";
    assert_int_equal(ask(f, &kernel, "op(f32[2,8])"), HONE_OK);
    assert_int_equal(ask(f, &kernel, "op(f16[2,8])"), HONE_UNSUPPORTED);
    assert_says(f, "f32");
    assert_int_equal(ask(f, &kernel, "op(f32[2,9])"), HONE_UNSUPPORTED);
}

static bool refuses(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    int64_t n = 0;
    if (hone_call_dim(call, "n", &n) != HONE_OK) return false;
    if (kernel->user != NULL && n != 8) strcpy(why->message, "n is not 8");
    return n == 8;
}

static void a_kernel_may_refuse_for_its_own_reason(void **state)
{
    fixture *f = *state;
    hone_kernel kernel = plain();
    kernel.supports = refuses;
    assert_int_equal(ask(f, &kernel, "op(f32[2,8])"), HONE_OK);
    assert_int_equal(ask(f, &kernel, "op(f32[2,9])"), HONE_UNSUPPORTED);
    assert_says(f, "no reason");
    kernel.user = f;
    assert_int_equal(ask(f, &kernel, "op(f32[2,9])"), HONE_UNSUPPORTED);
    assert_string_equal(f->err.message, "n is not 8");
}

static hone_config default_of(fixture *f, const hone_kernel *kernel, const char *text)
{
    hone_config config = {0};
    assert_int_equal(hone_registry_add_kernels(f->registry, kernel, 1, true, false, &f->err), HONE_OK);
    hone_call *call = call_of(f, text);
    hone_status status = hone_kernel_default_config(only_kernel(f, "op"), call, &cpu, &config, &f->err);
    hone_call_release(&call);
    assert_int_equal(status, HONE_OK);
    return config;
}

static bool propose(const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out)
{
    (void)call;
    (void)device;
    out->count = 1;
    out->values[0] = *(const int64_t *)kernel->user;
    return true;
}

static bool first_candidate(const hone_kernel *kernel, const hone_call *call, size_t index, hone_config *out)
{
    (void)kernel;
    (void)call;
    out->count = 1;
    out->values[0] = 4;
    return index == 0;
}

static void without_a_heuristic_the_spaces_default_is_taken(void **state)
{
    fixture *f = *state;
    hone_kernel kernel = plain();
    kernel.space = "block: 1..16 *2 default 8\nwhere block <= n";
    assert_int_equal(default_of(f, &kernel, "op(f32[2,9])").values[0], 8);
    assert_int_equal(default_of(f, &kernel, "op(f32[2,3])").values[0], 1); // the first that the constraint allows
    kernel.space = NULL;
    assert_int_equal(default_of(f, &kernel, "op(f32[2,3])").count, 0);
}

static void a_heuristic_counts_only_inside_the_space(void **state)
{
    fixture *f = *state;
    int64_t block = 16;
    hone_kernel kernel = plain();
    kernel.space = "block: 1..16 *2 default 2\nwhere block <= n";
    kernel.heuristic = propose;
    kernel.user = &block;
    assert_int_equal(default_of(f, &kernel, "op(f32[2,32])").values[0], 16);
    assert_int_equal(default_of(f, &kernel, "op(f32[2,8])").values[0], 2);
    block = 5;
    assert_int_equal(default_of(f, &kernel, "op(f32[2,32])").values[0], 2);
    kernel.candidates = first_candidate;
    assert_int_equal(default_of(f, &kernel, "op(f32[2,32])").values[0], 4);
}

static void an_empty_space_is_not_found(void **state)
{
    fixture *f = *state;
    hone_config config = {.count = 7};
    hone_kernel kernel = plain();
    kernel.space = "block: 1 | 2\nwhere block > n";
    assert_int_equal(add_kernel(f, kernel), HONE_OK);
    hone_call *call = call_of(f, "op(f32[2,32])");
    assert_int_equal(hone_kernel_default_config(only_kernel(f, "op"), call, &cpu, &config, &f->err), HONE_NOT_FOUND);
    assert_says(f, "kernel 'a'");
    assert_int_equal(config.count, 7);
    hone_call_release(&call);
}

static void every_allocation_may_fail(void **state)
{
    fixture *f = *state;
    hone_kernel kernel = plain();
    kernel.signature = "op(x: T[m, n], w: f32[n]? = none, *, causal: bool = false) -> y: T[m, n]";
    kernel.space = "block: 1..16 *2";
    assert_int_equal(add_kernel(f, kernel), HONE_OK);
    hone_call *call = call_of(f, "op(f32[2,8])");
    long long live = f->memory.live;
    hone_status status = HONE_OUT_OF_MEMORY;
    for (long long left = 0; status != HONE_OK; left++) {
        f->memory.left = left;
        hone_config config;
        status = hone_kernel_eligible(only_kernel(f, "op"), call, &cpu, &f->err);
        if (status == HONE_OK) status = hone_kernel_default_config(only_kernel(f, "op"), call, &cpu, &config, &f->err);
        assert_true(status == HONE_OK || status == HONE_OUT_OF_MEMORY);
        assert_int_equal(f->memory.live, live);
        assert_true(left < 1000);
    }
    f->memory.left = -1;
    hone_call_release(&call);
}

#define eligible_test(f) cmocka_unit_test_setup_teardown(f, open_with_op, close_registry)

int main(void)
{
    const struct CMUnitTest tests[] = {
        eligible_test(a_plain_kernel_runs_any_call),
        eligible_test(another_platform_or_backend_is_unavailable),
        eligible_test(the_cpu_reads_pinned_memory_too_and_no_devices),
        eligible_test(missing_instructions_are_named),
        eligible_test(a_tensor_elsewhere_is_unsupported),
        eligible_test(a_parameter_that_the_kernel_does_not_take_must_stay_at_its_default),
        eligible_test(the_first_parameter_may_be_one_that_the_kernel_does_not_take),
        eligible_test(code_runs_calls_as_it_asks_for_them),
        eligible_test(a_kernels_own_signature_may_take_fewer_dtypes),
        eligible_test(a_kernel_may_refuse_for_its_own_reason),
        eligible_test(without_a_heuristic_the_spaces_default_is_taken),
        eligible_test(a_heuristic_counts_only_inside_the_space),
        eligible_test(an_empty_space_is_not_found),
        eligible_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("registry_eligible", tests, NULL, NULL);
}
