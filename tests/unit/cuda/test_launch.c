// Kernels of code: what they are compiled with, what reaches the driver, and what is refused before it does.
#include "fake.h"
#include "lender.h"

#include <pthread.h>

#define SCALE              "scale(x: f32[n], *, by: f64 = 3.0 #ignore, within: i64? = none, cap: f64? = none #any) -> y: f32[n]"
#define SOURCE(parameters) "extern \"C\" __global__ void triple(" parameters ") {}"

enum { N = 5 };

typedef struct launching {
    fake fake;
    hone_runtime *rt;
    const hone_op *op;
    int64_t shape[1];
    _Alignas(16) float in[16];
    _Alignas(16) float out[16];
    hone_tensor x, y;
    hone_value args[5];
    const hone_plan *plan;
    hone_error err;
} launching;

static hone_status reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    return HONE_OK;
}

static void open_with(launching *l, const char *driver)
{
    hone_runtime_options options = {
        .struct_size = sizeof options, .store = "none", .flags = HONE_RUNTIME_NO_BUILTINS | HONE_RUNTIME_UNVERIFIED};
    hone_algorithm algorithm = {.struct_size = sizeof algorithm, .signature = SCALE, .reference = reference};
    fake_choose(&l->fake, driver);
    assert_int_equal(hone_runtime_open(&options, &l->rt, &l->err), HONE_OK);
    if (hone_register_algorithm(l->rt, &algorithm, &l->err) != HONE_OK) fail_msg("%s", l->err.message);
    l->op = hone_op_find(l->rt, "scale", &l->err);
    assert_non_null(l->op);
    l->shape[0] = N;
    // The fake device's memory is the host's.
    l->x = hone_tensor_of(l->in, HONE_F32, 1, l->shape);
    l->y = hone_tensor_of(l->out, HONE_F32, 1, l->shape);
    l->x.device = l->y.device = (hone_device){HONE_DEVICE_CUDA, 0};
    l->args[0] = hone_of_tensor(&l->x);
    l->args[1] = hone_of_tensor(&l->y);
    l->args[2] = hone_of_float(3);
    for (int i = 0; i < N; i++)
        l->in[i] = (float)i;
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(launching));
    open_with(*state, "fake_cuda.so");
    return 0;
}

static int setup_old(void **state)
{
    *state = calloc(1, sizeof(launching));
    open_with(*state, "fake_cuda_old.so");
    return 0;
}

static int teardown(void **state)
{
    launching *l = *state;
    hone_plan_release(&l->plan);
    hone_runtime_close(&l->rt);
    fake_forget(&l->fake);
    free(l);
    return 0;
}

static hone_code plain(void)
{
    return (hone_code){
        HONE_CODE,
        .source = SOURCE("const float *x, float *y, int n"),
        .entry = "triple",
        .arguments = "x, y, i32(n)",
        .grid = "ceildiv(n, threads)",
        .block = "threads",
    };
}

static hone_status put(launching *l, const hone_code *code)
{
    const hone_kernel kernel = {
        HONE_KERNEL,           .algorithm = "scale", .name = "triple",
        .platform = HONE_CUDA, .backend = HONE_GPU,  .space = "threads: 2 | 64 default 64\nmode: fast | slow",
        .code = code,
    };
    return hone_replace_kernels(l->rt, &kernel, 1, &l->err);
}

static hone_status bind(launching *l, const hone_code *code)
{
    assert_int_equal(put(l, code), HONE_OK);
    hone_plan_release(&l->plan);
    return hone_bind(l->op, l->args, 3, &l->plan, &l->err);
}

static void assert_refused(launching *l, const hone_code *code, const char *words)
{
    assert_int_not_equal(bind(l, code), HONE_OK);
    if (strstr(l->err.message, words) == NULL) fail_msg("'%s' is not in: %s", words, l->err.message);
}

static void a_launch_has_grid_block_and_arguments_byte_for_byte(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    char wanted[256];
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    uint64_t x = __builtin_bswap64((uint64_t)(uintptr_t)l->in), y = __builtin_bswap64((uint64_t)(uintptr_t)l->out);
    snprintf(
        wanted, sizeof wanted, "launch triple grid 1,1,1 block 64,1,1 shared 0 arguments %016llx %016llx 05000000\n",
        (unsigned long long)x, (unsigned long long)y);
    assert_non_null(strstr(fake_read(&l->fake), wanted));
    for (int i = 0; i < N; i++)
        assert_true(l->out[i] == 3.0f * (float)i);
}

static void a_scalar_that_the_key_ignores_comes_with_each_run(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    code.source = SOURCE("const float *x, float *y, int n, float by, long long n2");
    code.arguments = "x, y, i32(n), f32(by), i64(n * n)";
    assert_int_equal(bind(l, &code), HONE_OK);
    l->args[2] = hone_of_float(0.5);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    assert_non_null(strstr(fake_read(&l->fake), " 05000000 0000003f 1900000000000000\n"));
}

static void assert_passed(launching *l, size_t count, const char *bits)
{
    hone_code code = plain();
    code.source = SOURCE("const float *x, float *y, int n, long long within, double cap");
    code.arguments = "x, y, i32(n), i64(within, -n), f64(cap, 0)";
    assert_int_equal(put(l, &code), HONE_OK);
    hone_plan_release(&l->plan);
    assert_int_equal(hone_bind(l->op, l->args, count, &l->plan, &l->err), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    if (strstr(fake_read(&l->fake), bits) == NULL) fail_msg("%s is not in: %s", bits, fake_read(&l->fake));
}

static void of_a_scalar_that_is_none_what_it_is_then_is_passed(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    assert_passed(l, 3, " 05000000 fbffffffffffffff 0000000000000000\n");
    l->args[3] = hone_of_int(2);
    l->args[4] = hone_of_float(0.5);
    assert_passed(l, 5, " 05000000 0200000000000000 000000000000e03f\n");
    code.arguments = "x, y, i32(within)";
    assert_refused(l, &code, "expected a number");
    code.arguments = "x, y, i32(within,)";
    assert_refused(l, &code, "arguments: ");
}

static void clusters_cooperation_and_early_launch_are_attributes(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    code.grid = "4, 2";
    code.cluster = "2, 2";
    code.shared = "64 * 1024";
    code.flags = HONE_CODE_COOPERATIVE | HONE_CODE_PROGRAMMATIC_LAUNCH;
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    const char *log = fake_read(&l->fake);
    assert_non_null(strstr(log, "attribute triple 8 65536\n"));
    assert_non_null(
        strstr(log, "grid 4,2,1 block 64,1,1 shared 65536 cluster 2,2,1 attribute 2=1 attribute 6=1 arguments"));
}

static hone_code scratched(void)
{
    hone_code code = plain();
    code.source = "extern \"C\" __global__ void by_way(const float *x, float *y, float *s, int n) {}";
    code.entry = "by_way";
    code.arguments = "x, y, scratch, i32(n)";
    code.scratch = "4 * n";
    return code;
}

static void scratch_memory_is_the_streams_for_one_launch(void **state)
{
    launching *l = *state;
    hone_code code = scratched();
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    for (int i = 0; i < N; i++)
        assert_true(l->out[i] == 3.0f * (float)i);
    const char *log = fake_read(&l->fake), *taken = strstr(log, "allocate 20\n"), *run = strstr(log, "launch by_way");
    assert_true(taken != NULL && run > taken && strstr(run, "\nfree\n") != NULL);
    // Nothing is left behind, and what is not there is a failure of the run alone.
    setenv("FAKE_CUDA_MEMORY", "16", 1);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_KERNEL_FAILED);
    setenv("FAKE_CUDA_MEMORY", "20", 1);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
}

static hone_code halved(void)
{
    hone_code code = scratched();
    code.source = "extern \"C\" __global__ void first_half(const float *x, float *y, float *s, int n) {}\n"
                  "extern \"C\" __global__ void second_half(const float *x, float *y, float *s, int n) {}";
    code.entry = "first_half";
    code.finish = "second_half";
    code.finish_grid = "n, 2";
    code.finish_block = "32";
    return code;
}

static void a_second_function_runs_behind_the_first_with_its_arguments(void **state)
{
    launching *l = *state;
    hone_code code = halved();
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    for (int i = 0; i < N; i++)
        assert_true(l->out[i] == 3.0f * (float)i);
    const char *log = fake_read(&l->fake), *first = strstr(log, "launch first_half"),
               *second = strstr(log, "launch second_half grid 5,2,1 block 32,1,1 shared 0 arguments");
    assert_true(first != NULL && second > first && strstr(second, "\nfree\n") != NULL);
}

static void a_second_function_that_is_not_there_or_does_not_fit_is_refused(void **state)
{
    launching *l = *state;
    hone_code code = halved();
    code.finish = "third_half";
    assert_refused(l, &code, "third_half");
    code = halved();
    code.finish_block = "32, 64";
    assert_refused(l, &code, "finish_block is 32 x 64 x 1 threads");
    code = halved();
    code.finish_grid = "n +";
    assert_refused(l, &code, "finish_grid");
    code = halved();
    code.finish = NULL;
    assert_int_equal(put(l, &code), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(l->err.message, "does not name that function"));
}

static void the_address_of_scratch_memory_stands_where_it_is_listed(void **state)
{
    launching *l = *state;
    hone_code code = scratched();
    lender host = {.empty = false};
    const hone_execution execution = lender_execution(&host, NULL);
    char wanted[256];
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, &execution), HONE_OK);
    const uint64_t values[] = {
        (uint64_t)(uintptr_t)l->in, (uint64_t)(uintptr_t)l->out, (uint64_t)(uintptr_t)host.memory};
    snprintf(
        wanted, sizeof wanted, "shared 0 arguments %016llx %016llx %016llx 05000000\n",
        (unsigned long long)__builtin_bswap64(values[0]), (unsigned long long)__builtin_bswap64(values[1]),
        (unsigned long long)__builtin_bswap64(values[2]));
    if (strstr(fake_read(&l->fake), wanted) == NULL) fail_msg("'%s' is not in: %s", wanted, l->fake.text);
    assert_int_equal(host.asked, 1);
    assert_int_equal(host.out, 0);
    // No bytes: a null pointer, and nobody is asked.
    code.scratch = "n - n";
    code.entry = "triple";
    code.source = SOURCE("const float *x, float *y, int n, float *s");
    code.arguments = "x, y, i32(n), scratch";
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, &execution), HONE_OK);
    assert_int_equal(host.asked, 1);
    assert_non_null(strstr(fake_read(&l->fake), " 05000000 0000000000000000\n"));
}

static void a_tensor_map_is_made_for_each_run(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    char map[300], wanted[400];
    const uint64_t x = __builtin_bswap64((uint64_t)(uintptr_t)l->in);
    code.source = SOURCE("const float *x, float *y, int n, const __grid_constant__ tensor_map x_map");
    code.arguments = "x, y, i32(n), map(x, 32, n)";
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    snprintf(map, sizeof map, "%016llx%0240d", (unsigned long long)x, 0);
    snprintf(wanted, sizeof wanted, " 05000000 %s\n", map);
    assert_non_null(strstr(fake_read(&l->fake), wanted));
    assert_non_null(
        strstr(fake_read(&l->fake), "map type 7 rank 1 size 5 box 5 rows 1 of 0 box 1 swizzle 1 promotion 3\n"));
}

static void the_first_dims_of_a_tensor_count_as_one_in_a_smaller_box(void **state)
{
    launching *l = *state;
    int64_t shape[] = {2, 3, 5, 8};
    float data[2 * 3 * 5 * 8] = {0}, out[2 * 3 * 5 * 8];
    hone_code code = plain();
    const hone_algorithm algorithm = {
        .struct_size = sizeof algorithm,
        .signature = "cubes(x: f32[a, b, c, n]) -> y: f32[a, b, c, n]",
        .reference = reference};
    hone_kernel kernel = {HONE_KERNEL,           .algorithm = "cubes", .name = "triple",
                          .platform = HONE_CUDA, .backend = HONE_GPU,  .space = "threads: 2 | 64 default 64",
                          .code = &code};
    code.source = SOURCE("const float *x, float *y, int n, const __grid_constant__ tensor_map x_map");
    code.arguments = "x, y, i32(n), map(x, 0, c, n)";
    hone_tensor x = hone_tensor_of(data, HONE_F32, 4, shape), y = hone_tensor_of(out, HONE_F32, 4, shape);
    x.device = y.device = (hone_device){HONE_DEVICE_CUDA, 0};
    const hone_value args[] = {hone_of_tensor(&x), hone_of_tensor(&y)};
    assert_int_equal(hone_register_algorithm(l->rt, &algorithm, &l->err), HONE_OK);
    assert_int_equal(hone_register_kernels(l->rt, &kernel, 1, &l->err), HONE_OK);
    const hone_op *op = hone_op_find(l->rt, "cubes", &l->err);
    if (hone_bind(op, args, 2, &l->plan, &l->err) != HONE_OK) fail_msg("%s", l->err.message);
    // From the innermost dim on: 8 elements, and 2 * 3 * 5 rows that lie 32 bytes apart.
    assert_non_null(
        strstr(fake_read(&l->fake), "map type 7 rank 2 size 8 box 8 rows 30 of 32 box 5 swizzle 0 promotion 3\n"));
}

static void a_tensor_map_that_cannot_be_is_refused(void **state)
{
    launching *l = *state;
    static const struct {
        const char *argument, *words;
    } wrong[] = {
        {"map(x)", "expected ',', a swizzle and a box"},
        {"map(x, 0)", "map of x: its box has 0 dims, expected 1 to 5"},
        {"map(x, 0, 1, 1, 1, 1, 1, 1)", "map of x: its box has 6 dims, expected 1 to 5"},
        {"map(x, 48, n)", "map of x: a swizzle of 48 bytes, expected 0, 32, 64 or 128"},
        {"map(x, 0, 257)", "map of x: dim 0 of its box is 257, expected 1 to 256"},
        {"map(x, 0, 0)", "map of x: dim 0 of its box is 0, expected 1 to 256"},
        {"map(x, 0, 1, n)", "map of x: its box has 2 dims, the tensor has only 1"},
        {"map(x, 32, 64)", "cuTensorMapEncodeTiled does not take the map (1): a box of 64 x 64, swizzle 1"},
        {"map(z, 0, 1)", "'z' is not a tensor of the call"},
        {"map(by, 0, 1)", "'by' is a scalar"},
        {"i64(n)", "hand its parts over one by one (a tensor map is map(TENSOR, SWIZZLE, BOX...))"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hone_code code = plain();
        char arguments[128];
        code.source = SOURCE("const float *x, float *y, int n, const __grid_constant__ tensor_map x_map");
        snprintf(arguments, sizeof arguments, "x, y, i32(n), %s", wrong[i].argument);
        code.arguments = arguments;
        assert_refused(l, &code, wrong[i].words);
    }
}

static void a_scalar_that_the_key_ignores_is_no_part_of_an_expression(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    code.constants = "BY = 2 * by";
    assert_refused(l, &code, "'by' is no part of the call's key (#ignore)");
    code = plain();
    code.source = SOURCE("const float *x, float *y, int n, float by");
    code.arguments = "x, y, i32(n), f32(by + 1)";
    assert_refused(l, &code, "'by' is no part of the call's key (#ignore)");
}

static void what_was_compiled_is_not_compiled_again(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(fake_count(&l->fake, "compile"), 1);
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(fake_count(&l->fake, "compile"), 1);
    code.constants = "MORE = n + 1";
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(fake_count(&l->fake, "compile"), 2);
}

static void a_file_of_the_cache_that_was_cut_is_compiled_anew(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    char command[TEMPORARY_PATH_SIZE + 64];
    assert_int_equal(bind(l, &code), HONE_OK);
    snprintf(command, sizeof command, "for f in %s/*; do truncate -s -1 $f; done", l->fake.cache);
    assert_int_equal(system(command), 0);
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(fake_count(&l->fake, "compile"), 2);
}

static void a_binary_is_loaded_as_it_is(void **state)
{
    launching *l = *state;
    static const char image[] = "fake cubin\nfunction triple 8 8 4\n";
    hone_code code = plain();
    code.source = NULL;
    code.binary = image;
    code.binary_size = sizeof image;
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(fake_count(&l->fake, "compile"), 0);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    code.binary = "nonsense";
    code.binary_size = 8;
    assert_refused(l, &code, "no such image");
}

static void code_that_cannot_be_launched_is_refused_with_a_reason(void **state)
{
    launching *l = *state;
    const struct {
        hone_code code;
        const char *words;
    } wrong[] = {
        {{HONE_CODE, .source = "does not compile"}, "a.cu(3): error: identifier \"nonsense\" is undefined"},
        {{HONE_CODE, .entry = "other"}, "the code has no function other (is it extern \"C\"?)"},
        {{HONE_CODE, .arguments = "x, y"}, "the function takes 3 arguments, 2 are listed"},
        {{HONE_CODE, .arguments = "x, y, i32(n), i32(n)"}, "the function takes 3 arguments, 4 are listed"},
        {{HONE_CODE, .arguments = "x, y, i64(n)"}, "argument 2 has 4 bytes at 16 in the function, and 8 at 16"},
        {{HONE_CODE, .arguments = "x, y, i32(n * 1000000000)"}, "arguments: 5000000000 does not fit 4 bytes"},
        {{HONE_CODE, .arguments = "x, z, i32(n)"}, "'z' is not a tensor of the call"},
        {{HONE_CODE, .scratch = "64"}, "scratch memory is requested, but 0 arguments are scratch, expected one"},
        {{HONE_CODE, .scratch = "64", .arguments = "scratch, scratch, i32(n)"}, "but 2 arguments are scratch"},
        {{HONE_CODE, .arguments = "x, scratch, i32(n)"}, "its size in 'scratch' is not said"},
        {{HONE_CODE, .scratch = "-n", .arguments = "x, scratch, i32(n)"}, "scratch: expected a number of bytes"},
        {{HONE_CODE, .scratch = "n << 4", .arguments = "x, scratch, i32(n)"}, "scratch: "},
        {{HONE_CODE, .scratch = "n * 4611686018427387904", .arguments = "x, scratch, i32(n)"}, "scratch: "},
        {{HONE_CODE, .scratch = "n * 1073741824", .arguments = "x, scratch, i32(n)"},
         "its runs need 5368709120 bytes of scratch memory, Fake GPU has 1073741824 in all"},
        {{HONE_CODE, .grid = "n / 0"}, "grid: "},
        {{HONE_CODE, .grid = "0"}, "grid is 0, and may be 1 to 2147483647"},
        {{HONE_CODE, .grid = "1, 70000"}, "grid is 70000, and may be 1 to 65535"},
        {{HONE_CODE, .grid = "n * 4611686018427387904"}, "grid: "},
        {{HONE_CODE, .block = "1024, 2"}, "block is 1024 x 2 x 1 threads, and may have 1024"},
        {{HONE_CODE, .block = "1024"}, "its block has 1024 threads, and with 96 registers each at most 512 fit"},
        {{HONE_CODE, .shared = "300000"}, "its blocks need 300000 bytes of shared memory, Fake GPU has 232448"},
        {{HONE_CODE, .cluster = "2"}, "does not divide into clusters of 2"},
        {{HONE_CODE, .condition = "n % 2 == 0"}, "asks for n % 2 == 0"},
        {{HONE_CODE, .target = "sm_100"}, "is for sm_100 and later, Fake GPU is sm_90"},
        {{HONE_CODE, .target = "sm_89a"}, "is for sm_89a, Fake GPU is sm_90"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hone_code code = plain();
        const hone_code *with = &wrong[i].code;
        if (with->source != NULL) code.source = with->source;
        if (with->entry != NULL) code.entry = with->entry;
        if (with->arguments != NULL) code.arguments = with->arguments;
        if (with->grid != NULL) code.grid = with->grid;
        if (with->block != NULL) code.block = with->block;
        code.shared = with->shared;
        code.scratch = with->scratch;
        code.cluster = with->cluster;
        code.condition = with->condition;
        code.target = with->target;
        assert_refused(l, &code, wrong[i].words);
    }
}

static void code_that_is_not_whole_is_not_registered(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    code.source = NULL;
    assert_int_equal(put(l, &code), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(l->err.message, "needs one of source, file and binary"));
    code.file = "/nowhere/a.cu";
    assert_int_not_equal(put(l, &code), HONE_OK);
    assert_non_null(strstr(l->err.message, "/nowhere/a.cu"));
    code = plain();
    code.entry = NULL;
    assert_int_equal(put(l, &code), HONE_INVALID_ARGUMENT);
}

static void tensors_elsewhere_are_not_read(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    assert_int_equal(put(l, &code), HONE_OK);
    l->x.device = l->y.device = (hone_device){HONE_DEVICE_CPU, 0};
    assert_int_equal(hone_bind(l->op, l->args, 3, &l->plan, &l->err), HONE_NOT_FOUND);
    l->x.device = l->y.device = (hone_device){HONE_DEVICE_CUDA, 1};
    assert_int_equal(hone_bind(l->op, l->args, 3, &l->plan, &l->err), HONE_UNAVAILABLE);
    assert_non_null(strstr(l->err.message, "device type 2, id 1"));
}

static void an_older_driver_loads_modules_and_has_no_clusters(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    assert_true(l->out[4] == 12);
    code.grid = "2";
    code.cluster = "2";
    assert_refused(l, &code, "clusters and launch flags need a driver of CUDA 11.8 or later (this one: CUDA 11.4)");
    code = scratched();
    assert_refused(l, &code, "its scratch memory needs a driver of CUDA 11.2 or later (this one: CUDA 11.4)");
}

// Streams and captures ------------------------------------------------------------------------------------------------

static hone_execution on(uintptr_t stream)
{
    return (hone_execution){.struct_size = sizeof(hone_execution), .stream = (void *)stream};
}

static void a_call_that_would_decide_inside_a_capture_is_refused(void **state)
{
    launching *l = *state;
    const hone_code code = plain();
    const hone_execution captured = on(0x2a), other = on(0x2b);
    assert_int_equal(put(l, &code), HONE_OK);
    setenv("FAKE_CUDA_CAPTURED", "42", 1);
    assert_int_equal(hone_run(l->op, l->args, 3, &captured, &l->err), HONE_UNSUPPORTED);
    assert_non_null(strstr(l->err.message, "scale: its stream is being captured"));
    assert_non_null(strstr(l->err.message, "Make the call once before the capture begins, or bind a plan"));
    assert_null(strstr(fake_read(&l->fake), "launch"));
    assert_int_equal(hone_run(l->op, l->args, 3, &other, &l->err), HONE_OK);
    assert_int_equal(hone_run(l->op, l->args, 3, &captured, &l->err), HONE_OK);
    assert_non_null(strstr(fake_read(&l->fake), "on 0x2a\nlaunch triple"));
}

static void a_call_on_the_default_stream_breaks_no_capture_of_one_that_waits_for_it(void **state)
{
    launching *l = *state;
    const hone_code code = plain();
    assert_int_equal(put(l, &code), HONE_OK);
    setenv("FAKE_CUDA_CAPTURED", "42", 1);
    setenv("FAKE_CUDA_BLOCKING", "1", 1);
    assert_int_equal(hone_run(l->op, l->args, 3, NULL, &l->err), HONE_UNSUPPORTED);
    assert_non_null(strstr(l->err.message, "scale: a stream that the default one waits for is being captured"));
    assert_null(strstr(fake_read(&l->fake), "launch"));
    unsetenv("FAKE_CUDA_BLOCKING");
    unsetenv("FAKE_CUDA_CAPTURED");
    assert_int_equal(hone_run(l->op, l->args, 3, NULL, &l->err), HONE_OK);
}

static void hear(void *ctx, int level, const char *message)
{
    int *told = ctx;
    *told += level == 2 && strstr(message, "brings no stream") != NULL;
}

static void a_run_without_a_stream_is_reported_once(void **state)
{
    launching *l = *state;
    const hone_code code = plain();
    const hone_execution given = on(0x2b);
    int told = 0;
    hone_runtime_options options = {
        .struct_size = sizeof options,
        .store = "none",
        .flags = HONE_RUNTIME_NO_BUILTINS | HONE_RUNTIME_UNVERIFIED,
        .log = hear,
        .log_ctx = &told,
        .log_level = 2};
    hone_algorithm algorithm = {.struct_size = sizeof algorithm, .signature = SCALE, .reference = reference};
    hone_runtime_close(&l->rt);
    assert_int_equal(hone_runtime_open(&options, &l->rt, &l->err), HONE_OK);
    assert_int_equal(hone_register_algorithm(l->rt, &algorithm, &l->err), HONE_OK);
    l->op = hone_op_find(l->rt, "scale", &l->err);
    assert_int_equal(put(l, &code), HONE_OK);
    assert_int_equal(hone_run(l->op, l->args, 3, &given, &l->err), HONE_OK);
    assert_int_equal(told, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(put(l, &code), HONE_OK); // its plans go: each run decides
        assert_int_equal(hone_run(l->op, l->args, 3, NULL, &l->err), HONE_OK);
    }
    assert_int_equal(told, 1);
}

typedef struct first_call {
    launching *l;
    hone_status status;
} first_call;

static void *call_first(void *ctx)
{
    first_call *call = ctx;
    const hone_execution captured = on(0x2a);
    call->status = hone_run(call->l->op, call->l->args, 3, &captured, &call->l->err);
    return NULL;
}

static void a_thread_whose_first_call_is_captured_runs_what_others_decided(void **state)
{
    launching *l = *state;
    const hone_code code = plain();
    first_call call = {.l = l};
    pthread_t thread;
    assert_int_equal(put(l, &code), HONE_OK);
    assert_int_equal(hone_run(l->op, l->args, 3, NULL, &l->err), HONE_OK);
    setenv("FAKE_CUDA_CAPTURED", "42", 1);
    assert_int_equal(pthread_create(&thread, NULL, call_first, &call), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (call.status != HONE_OK) fail_msg("%s", l->err.message);
    assert_non_null(strstr(fake_read(&l->fake), "on 0x2a\nlaunch triple"));
}

static void code_that_a_graph_launches_is_never_unloaded(void **state)
{
    launching *l = *state;
    const hone_code code = plain();
    const hone_execution captured = on(0x2a);
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, &captured), HONE_OK);
    hone_plan_release(&l->plan);
    assert_int_equal(put(l, &code), HONE_OK); // the table lets go of its plans
    assert_int_equal(fake_count(&l->fake, "unload"), 1);
    setenv("FAKE_CUDA_CAPTURED", "42", 1);
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, &captured), HONE_OK);
    hone_plan_release(&l->plan);
    assert_int_equal(put(l, &code), HONE_OK);
    assert_int_equal(fake_count(&l->fake, "unload"), 1);
}

static void a_stream_can_be_asked_and_waited_for(void **state)
{
    launching *l = *state;
    const hone_device cpu = {HONE_DEVICE_CPU, 0}, gpu = {HONE_DEVICE_CUDA, 0}, none = {HONE_DEVICE_CUDA, 7};
    bool captured = true;
    setenv("FAKE_CUDA_CAPTURED", "42", 1);
    assert_int_equal(hone_stream_is_captured(l->rt, cpu, (void *)0x2a, &captured, &l->err), HONE_OK);
    assert_false(captured);
    assert_int_equal(hone_stream_is_captured(l->rt, gpu, (void *)0x2a, &captured, &l->err), HONE_OK);
    assert_true(captured);
    assert_int_equal(hone_stream_is_captured(l->rt, gpu, (void *)0x2b, &captured, &l->err), HONE_OK);
    assert_false(captured);
    assert_int_equal(hone_stream_synchronize(l->rt, gpu, (void *)0x2b, &l->err), HONE_OK);
    assert_non_null(strstr(fake_read(&l->fake), "wait for 0x2b\n"));
    assert_int_equal(hone_stream_synchronize(l->rt, cpu, NULL, &l->err), HONE_OK);
    assert_int_equal(hone_stream_synchronize(l->rt, none, NULL, &l->err), HONE_UNAVAILABLE);
    assert_non_null(strstr(l->err.message, "device type 2, id 7"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_that_would_decide_inside_a_capture_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_thread_whose_first_call_is_captured_runs_what_others_decided, setup, teardown),
        cmocka_unit_test_setup_teardown(code_that_a_graph_launches_is_never_unloaded, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_call_on_the_default_stream_breaks_no_capture_of_one_that_waits_for_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_without_a_stream_is_reported_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stream_can_be_asked_and_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(a_launch_has_grid_block_and_arguments_byte_for_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(a_scalar_that_the_key_ignores_comes_with_each_run, setup, teardown),
        cmocka_unit_test_setup_teardown(a_scalar_that_the_key_ignores_is_no_part_of_an_expression, setup, teardown),
        cmocka_unit_test_setup_teardown(a_tensor_map_is_made_for_each_run, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_dims_of_a_tensor_count_as_one_in_a_smaller_box, setup, teardown),
        cmocka_unit_test_setup_teardown(a_tensor_map_that_cannot_be_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(of_a_scalar_that_is_none_what_it_is_then_is_passed, setup, teardown),
        cmocka_unit_test_setup_teardown(clusters_cooperation_and_early_launch_are_attributes, setup, teardown),
        cmocka_unit_test_setup_teardown(scratch_memory_is_the_streams_for_one_launch, setup, teardown),
        cmocka_unit_test_setup_teardown(a_second_function_runs_behind_the_first_with_its_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_second_function_that_is_not_there_or_does_not_fit_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(the_address_of_scratch_memory_stands_where_it_is_listed, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_compiled_is_not_compiled_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_of_the_cache_that_was_cut_is_compiled_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(a_binary_is_loaded_as_it_is, setup, teardown),
        cmocka_unit_test_setup_teardown(code_that_cannot_be_launched_is_refused_with_a_reason, setup, teardown),
        cmocka_unit_test_setup_teardown(code_that_is_not_whole_is_not_registered, setup, teardown),
        cmocka_unit_test_setup_teardown(tensors_elsewhere_are_not_read, setup, teardown),
        cmocka_unit_test_setup_teardown(an_older_driver_loads_modules_and_has_no_clusters, setup_old, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
