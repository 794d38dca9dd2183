// Kernels of code: what they are compiled with, what reaches the driver, and what is refused before it does.
#include "fake.h"

#include "os/os.h"
#include "platforms/opencl/icd.h"

#include <dlfcn.h>
#include <pthread.h>

#define SCALE              "scale(x: f32[n], *, by: f64 = 3.0 #ignore) -> y: f32[n]"
#define SOURCE(parameters) "__kernel void triple(" parameters ") {}"

enum { N = 5, OFFSET = 256 };

typedef struct launching {
    fake fake;
    hone_runtime *rt;
    const hone_op *op;
    opencl_icd icd; // the test's own use of the fake: a caller with a context
    opencl_context *context;
    opencl_queue *queue;
    opencl_memory *in, *out;
    int64_t shape[1];
    hone_tensor x, y;
    hone_value args[3];
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

static void make_buffers(launching *l)
{
    const hone_allocator allocator = hone_allocator_system();
    const float values[N] = {0, 1, 2, 3, 4};
    opencl_result result = 0;
    uint32_t count = 0;
    opencl_id *id = NULL;
    assert_int_equal(hone_opencl_icd_open(&allocator, &l->icd, &l->err), HONE_OK);
    assert_int_equal(l->icd.get_devices(NULL, OPENCL_TYPE_ALL, 1, &id, &count), 0);
    l->context = l->icd.create_context(NULL, 1, &id, NULL, NULL, &result);
    l->queue = l->icd.create_queue(l->context, id, 0, &result);
    l->in = l->icd.create_buffer(l->context, OPENCL_READ_WRITE, 1024, NULL, &result);
    l->out = l->icd.create_buffer(l->context, OPENCL_READ_WRITE, 1024, NULL, &result);
    assert_int_equal(l->icd.write(l->queue, l->in, 1, OFFSET, sizeof values, values, 0, NULL, NULL), 0);
}

static int setup(void **state)
{
    launching *l = calloc(1, sizeof *l);
    hone_runtime_options options = {
        .struct_size = sizeof options, .store = "none", .flags = HONE_RUNTIME_NO_BUILTINS | HONE_RUNTIME_UNVERIFIED};
    hone_algorithm algorithm = {.struct_size = sizeof algorithm, .signature = SCALE, .reference = reference};
    fake_choose(&l->fake, "fake_opencl.so");
    assert_int_equal(hone_runtime_open(&options, &l->rt, &l->err), HONE_OK);
    if (hone_register_algorithm(l->rt, &algorithm, &l->err) != HONE_OK) fail_msg("%s", l->err.message);
    l->op = hone_op_find(l->rt, "scale", &l->err);
    assert_non_null(l->op);
    make_buffers(l);
    l->shape[0] = N;
    l->x = hone_tensor_of(l->in, HONE_F32, 1, l->shape);
    l->y = hone_tensor_of(l->out, HONE_F32, 1, l->shape);
    l->x.device = l->y.device = (hone_device){HONE_DEVICE_OPENCL, 0};
    l->x.byte_offset = OFFSET;
    l->args[0] = hone_of_tensor(&l->x);
    l->args[1] = hone_of_tensor(&l->y);
    l->args[2] = hone_of_float(3);
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    launching *l = *state;
    const hone_allocator allocator = hone_allocator_system();
    hone_plan_release(&l->plan);
    hone_runtime_close(&l->rt);
    l->icd.release_memory(l->in);
    l->icd.release_memory(l->out);
    l->icd.release_queue(l->queue);
    l->icd.release_context(l->context);
    hone_opencl_icd_close(&allocator, &l->icd);
    // Also what hone held of the caller's context.
    const char *log = fake_read(&l->fake), *last = strstr(log, "context ended, live 0\n");
    fake_forget(&l->fake);
    bool whole = last != NULL;
    free(l);
    return whole ? 0 : -1;
}

static hone_code plain(void)
{
    return (hone_code){
        HONE_CODE,
        .source = SOURCE("__global const float *x, __global float *y, int n"),
        .entry = "triple",
        .arguments = "x, y, i32(n)",
        .grid = "ceildiv(n, items)",
        .block = "items",
    };
}

static hone_status put(launching *l, const hone_code *code)
{
    const hone_kernel kernel = {
        HONE_KERNEL,         .algorithm = "scale",
        .name = "triple",    .platform = HONE_OPENCL,
        .backend = HONE_ANY, .space = "items: 2 | 64 default 64\nmode: fast | slow",
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

static void assert_tripled(launching *l)
{
    float values[N];
    assert_int_equal(l->icd.read(l->queue, l->out, 1, 0, sizeof values, values, 0, NULL, NULL), 0);
    for (int i = 0; i < N; i++)
        assert_true(values[i] == 3.0f * (float)i);
}

static void a_launch_has_sizes_and_arguments_byte_for_byte(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    const hone_execution execution = {.struct_size = sizeof execution, .stream = l->queue};
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, &execution), HONE_OK);
    // x begins 256 bytes into its buffer and is handed over as a view of its own bytes.
    assert_non_null(strstr(
        fake_read(&l->fake),
        "launch triple global 64,1,1 local 64,1,1 arguments buffer:256+20 buffer:0+1024 05000000\n"));
    assert_tripled(l);
}

static void a_run_without_a_queue_is_done_when_it_returns(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    assert_tripled(l);
    setenv("FAKE_OPENCL_FAULT", "finish=-14", 1);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_KERNEL_FAILED);
    unsetenv("FAKE_OPENCL_FAULT");
}

static void a_run_on_the_callers_queue_is_started_and_not_waited_for(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    const hone_execution execution = {.struct_size = sizeof execution, .stream = l->queue};
    assert_int_equal(bind(l, &code), HONE_OK);
    setenv("FAKE_OPENCL_FAULT", "finish=-14", 1); // who waits, fails
    assert_int_equal(l->plan->run(l->plan, l->args, &execution), HONE_OK);
    unsetenv("FAKE_OPENCL_FAULT");
    assert_tripled(l); // a read on the same queue comes behind it
}

typedef struct lent {
    opencl_memory *memory;
    int out;
} lent;

static void *lend(void *ctx, size_t size)
{
    lent *from = ctx;
    assert_int_equal(size, 20);
    from->out++;
    return from->memory;
}

static void get_back(void *ctx, void *taken, size_t size)
{
    lent *from = ctx;
    assert_ptr_equal(taken, from->memory);
    assert_int_equal(size, 20);
    from->out--;
}

static void memory_that_the_caller_lends_is_the_scratch_of_a_run(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    lent from = {.memory = l->out};
    const hone_execution execution = {
        .struct_size = sizeof execution, .stream = l->queue, .take = lend, .give_back = get_back, .memory = &from};
    code.source = SOURCE("__global const float *x, __global float *y, int n, __global float *s");
    code.arguments = "x, y, i32(n), scratch";
    code.scratch = "4 * n";
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, &execution), HONE_OK);
    assert_int_equal(from.out, 0);
    assert_non_null(strstr(fake_read(&l->fake), " 05000000 buffer:0+1024\n")); // the whole buffer that was lent
}

static void a_context_that_is_new_takes_the_binary_once(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(fake_count(&l->fake, "build "), 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    assert_int_equal(fake_count(&l->fake, "build "), 2);
    assert_int_equal(fake_count(&l->fake, "binary of"), 1);
    assert_int_equal(fake_count(&l->fake, "launch triple"), 3);
}

static void scalars_and_local_memory_reach_the_kernel(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    code.source = SOURCE("__global const float *x, __global float *y, int n, float by, __local float *t, long n2");
    code.arguments = "x, y, i32(n), f32(by), local(4 * items), i64(n * n)";
    assert_int_equal(bind(l, &code), HONE_OK);
    l->args[2] = hone_of_float(0.5);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    assert_non_null(strstr(fake_read(&l->fake), " 05000000 0000003f local:256 1900000000000000\n"));
}

static void scratch_memory_is_a_buffer_of_the_run(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    code.source = SOURCE("__global const float *x, __global float *y, int n, __global float *s");
    code.arguments = "x, y, i32(n), scratch";
    code.scratch = "4 * n";
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    assert_non_null(strstr(fake_read(&l->fake), " buffer:256+20 buffer:0+1024 05000000 buffer:0+20\n"));
    // It is gone behind the launch: there is room for the next one, and for no larger one.
    setenv("FAKE_OPENCL_MEMORY", "2068", 1);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    setenv("FAKE_OPENCL_MEMORY", "2067", 1);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_UNSUPPORTED);
    unsetenv("FAKE_OPENCL_MEMORY");
    code.scratch = "0";
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    assert_non_null(strstr(fake_read(&l->fake), " 05000000 buffer:none\n"));
    code.scratch = "n * 1073741824";
    assert_refused(l, &code, "its runs need 5368709120 bytes of scratch memory, Fake device has");
    code.scratch = NULL;
    assert_refused(l, &code, "its size in 'scratch' is not said");
}

static void macros_and_options_are_one_line(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    code.constants = "TWICE = 2 * n";
    code.options = "-cl-mad-enable";
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_non_null(strstr(
        fake_read(&l->fake),
        "build -cl-kernel-arg-info -Ditems=64 -Dmode=fast -Dhone_x_f32=1 -Dhone_y_f32=1 -DTWICE=10 -cl-mad-enable\n"));
}

static void what_was_compiled_is_not_compiled_again(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    char command[TEMPORARY_PATH_SIZE + 64];
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(fake_count(&l->fake, "binary of"), 0);
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(fake_count(&l->fake, "binary of"), 1);
    snprintf(command, sizeof command, "for f in %s/*; do truncate -s -1 $f; done", l->fake.cache);
    assert_int_equal(system(command), 0);
    assert_int_equal(bind(l, &code), HONE_OK); // a file that was cut is compiled anew
    assert_int_equal(fake_count(&l->fake, "binary of"), 1);
    setenv("FAKE_OPENCL_FAULT", "binary=-42", 1); // a binary that the driver no longer takes, too
    assert_int_equal(bind(l, &code), HONE_OK);
    unsetenv("FAKE_OPENCL_FAULT");
}

static void write_header(const launching *l, const char *text)
{
    char path[TEMPORARY_PATH_SIZE + 16];
    snprintf(path, sizeof path, "%s/factor.h", l->fake.folder.path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void a_header_that_changed_is_compiled_again(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    char options[TEMPORARY_PATH_SIZE + 32];
    snprintf(options, sizeof options, "-cl-mad-enable -I%s", l->fake.folder.path);
    code.source = "#include \"factor.h\"\n" SOURCE("__global const float *x, __global float *y, int n");
    code.options = options;
    write_header(l, "#define FACTOR 3\n");
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(fake_count(&l->fake, "binary of"), 1);
    write_header(l, "#define FACTOR 4\n");
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(fake_count(&l->fake, "binary of"), 1);
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(fake_count(&l->fake, "binary of"), 2);
}

static void a_binary_is_loaded_as_it_is(void **state)
{
    launching *l = *state;
    static const char image[] = "fake clbin\n" SOURCE("__global const float *x, __global float *y, int n");
    hone_code code = plain();
    code.source = NULL;
    code.binary = image;
    code.binary_size = sizeof image;
    assert_int_equal(bind(l, &code), HONE_OK);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    assert_tripled(l);
    code.binary = "nonsense";
    code.binary_size = 8;
    assert_refused(l, &code, "the driver does not take the binary: CL_INVALID_BINARY (-42)");
}

static void code_that_cannot_be_launched_is_refused_with_a_reason(void **state)
{
    launching *l = *state;
    const struct {
        hone_code code;
        const char *words;
    } wrong[] = {
        {{HONE_CODE, .source = "#error no such thing"}, "triple does not compile: fake.cl:1: error: no such thing"},
        {{HONE_CODE, .entry = "other"}, "the program has no kernel other"},
        {{HONE_CODE, .arguments = "x, y"}, "the kernel takes 3 arguments, 2 are listed"},
        {{HONE_CODE, .arguments = "x, y, i32(n), i32(n)"}, "the kernel takes 3 arguments, 4 are listed"},
        {{HONE_CODE, .arguments = "x, y, i64(n)"}, "argument 2, of 8 bytes in the list: CL_INVALID_ARG_SIZE (-51)"},
        {{HONE_CODE, .arguments = "x, i32(n), y"},
         "argument 1 is global memory in the kernel, and a scalar in the list"},
        {{HONE_CODE, .arguments = "x, y, y"}, "argument 2 is private memory in the kernel, and a tensor in the list"},
        {{HONE_CODE, .arguments = "x, y, local(16)"},
         "argument 2 is private memory in the kernel, and local in the list"},
        {{HONE_CODE, .arguments = "x, y, i32(n * 1000000000)"}, "arguments: 5000000000 does not fit 4 bytes"},
        {{HONE_CODE, .arguments = "x, z, i32(n)"}, "'z' is not a tensor of the call"},
        {{HONE_CODE, .grid = "n / 0"}, "grid: "},
        {{HONE_CODE, .grid = "0"}, "grid is 0, and may be 1 to 2147483647"},
        {{HONE_CODE, .grid = "n * 4611686018427387904"}, "grid: "},
        {{HONE_CODE, .block = "128, 2"}, "its work-groups have 256 items, and this kernel may have 128 on Fake device"},
        {{HONE_CODE, .block = "512"}, "its work-groups have 512 items along axis 0, Fake device takes 256"},
        {{HONE_CODE, .condition = "n % 2 == 0"}, "asks for n % 2 == 0"},
        {{HONE_CODE, .target = "cl_31"}, "is for OpenCL 3.1 and later, Fake device has 3.0"},
        {{HONE_CODE, .target = "sm_80"}, "'sm_80' is not a target: write cl_12 or cl_30"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hone_code code = plain();
        const hone_code *with = &wrong[i].code;
        if (with->source != NULL) code.source = with->source;
        if (with->entry != NULL) code.entry = with->entry;
        if (with->arguments != NULL) code.arguments = with->arguments;
        if (with->grid != NULL) code.grid = with->grid;
        if (with->block != NULL) code.block = with->block;
        code.condition = with->condition;
        code.target = with->target;
        assert_refused(l, &code, wrong[i].words);
    }
}

static void too_much_local_memory_is_refused(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    code.source = SOURCE("__global const float *x, __global float *y, __local float *t");
    code.arguments = "x, y, local(40000)";
    assert_refused(l, &code, "its work-groups need 41024 bytes of local memory, Fake device has 32768");
}

static void what_opencl_does_not_have_is_not_registered(void **state)
{
    launching *l = *state;
    const struct {
        hone_code code;
        const char *words;
    } wrong[] = {
        {{HONE_CODE, .cluster = "2"}, "asks for clusters, which opencl does not have"},
        {{HONE_CODE, .shared = "1024"}, "on opencl it is an argument, local(BYTES)"},
        {{HONE_CODE, .flags = HONE_CODE_COOPERATIVE}, "has flags, and opencl knows none"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hone_code code = plain();
        code.cluster = wrong[i].code.cluster;
        code.shared = wrong[i].code.shared;
        code.flags = wrong[i].code.flags;
        assert_int_equal(put(l, &code), HONE_INVALID_ARGUMENT);
        if (strstr(l->err.message, wrong[i].words) == NULL) fail_msg("%s", l->err.message);
    }
}

static void a_launch_that_fails_says_whether_another_kernel_may_do(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    assert_int_equal(bind(l, &code), HONE_OK);
    setenv("FAKE_OPENCL_FAULT", "launch=-5", 1);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_UNSUPPORTED);
    setenv("FAKE_OPENCL_FAULT", "launch=-36", 1);
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_KERNEL_FAILED);
    unsetenv("FAKE_OPENCL_FAULT");
    l->x.byte_offset = 4; // no view begins there
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_KERNEL_FAILED);
    l->x.byte_offset = OFFSET;
    assert_int_equal(l->plan->run(l->plan, l->args, NULL), HONE_OK);
    assert_tripled(l);
}

static void *run_often(void *ctx)
{
    launching *l = ctx;
    intptr_t wrong = 0;
    for (int i = 0; i < 200; i++)
        wrong += l->plan->run(l->plan, l->args, NULL) != HONE_OK;
    return (void *)wrong;
}

static void two_threads_meet_in_a_context_that_is_new(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    pthread_t threads[2];
    assert_int_equal(bind(l, &code), HONE_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_often, l), 0);
    for (int i = 0; i < 2; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(fake_count(&l->fake, "build "), 2);
    assert_tripled(l);
}

static void tensors_elsewhere_are_not_read(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    assert_int_equal(put(l, &code), HONE_OK);
    l->x.device = l->y.device = (hone_device){HONE_DEVICE_CPU, 0};
    assert_int_equal(hone_bind(l->op, l->args, 3, &l->plan, &l->err), HONE_NOT_FOUND);
    l->x.device = l->y.device = (hone_device){HONE_DEVICE_OPENCL, 1};
    assert_int_equal(hone_bind(l->op, l->args, 3, &l->plan, &l->err), HONE_UNAVAILABLE);
}

static void two_buffers_are_two_however_near_their_handles_are(void **state)
{
    launching *l = *state;
    hone_code code = plain();
    int64_t shape[1] = {1 << 20}; // far more bytes than lie between two handles
    l->x.shape = l->y.shape = shape;
    l->x.byte_offset = 0;
    assert_int_equal(bind(l, &code), HONE_OK);
    l->y.data = l->x.data;
    l->y.byte_offset = 1024;
    assert_int_not_equal(bind(l, &code), HONE_OK);
    assert_non_null(strstr(l->err.message, "overlap"));
}

#define launch_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        launch_test(a_launch_has_sizes_and_arguments_byte_for_byte),
        launch_test(a_run_without_a_queue_is_done_when_it_returns),
        launch_test(a_context_that_is_new_takes_the_binary_once),
        launch_test(scalars_and_local_memory_reach_the_kernel),
        launch_test(scratch_memory_is_a_buffer_of_the_run),
        launch_test(a_run_on_the_callers_queue_is_started_and_not_waited_for),
        launch_test(memory_that_the_caller_lends_is_the_scratch_of_a_run),
        launch_test(macros_and_options_are_one_line),
        launch_test(what_was_compiled_is_not_compiled_again),
        launch_test(a_header_that_changed_is_compiled_again),
        launch_test(a_binary_is_loaded_as_it_is),
        launch_test(code_that_cannot_be_launched_is_refused_with_a_reason),
        launch_test(too_much_local_memory_is_refused),
        launch_test(what_opencl_does_not_have_is_not_registered),
        launch_test(a_launch_that_fails_says_whether_another_kernel_may_do),
        launch_test(two_threads_meet_in_a_context_that_is_new),
        launch_test(tensors_elsewhere_are_not_read),
        launch_test(two_buffers_are_two_however_near_their_handles_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
