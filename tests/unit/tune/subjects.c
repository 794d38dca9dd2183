#include "subjects.h"

#include "base/error.h"
#include "base/random.h"
#include "os/os.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct arguments {
    const float *x;
    float *y;
    int64_t size;
    double by;
} arguments;

// Values in C: x, y, by.
static arguments read_arguments(const hone_value *args)
{
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    return (arguments){hone_tensor_data(x), hone_tensor_data(y), x->shape[0], args[2].as.f64};
}

static void scale(const hone_value *args)
{
    arguments a = read_arguments(args);
    for (int64_t i = 0; i < a.size; i++)
        a.y[i] = (float)(a.by * (double)a.x[i]);
}

static hone_status run_good(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    scale(args);
    return HONE_OK;
}

// delay: microseconds that a run takes longer.
static hone_status run_delayed(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    uint64_t until = hone_os_now_ns() + (uint64_t)plan->config[0] * 1000;
    scale(args);
    while (hone_os_now_ns() < until)
        ;
    return HONE_OK;
}

// Three times as slow in half of all stretches of 16 ms, as beside a neighbour that comes and goes. more: per cent that a
// run takes longer.
static hone_status run_changing(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const uint64_t start = hone_os_now_ns(), stretch = start >> 24;
    uint64_t random = stretch;
    const uint64_t base_ns = hone_random_below(&random, 2) == 0 ? 100000 : 300000;
    scale(args);
    while (hone_os_now_ns() < start + base_ns * (100 + (uint64_t)plan->config[0]) / 100)
        ;
    return HONE_OK;
}

static hone_status run_segv(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    return HONE_OK;
}

static hone_status run_abort(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    fprintf(stderr, "a library's last words\n");
    abort();
}

// Only where libraries whose threads look for work while they are idle were told not to do so for long, unless the user has said how
// OpenMP's threads wait.
static hone_status run_told(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    const bool is_said = getenv("OMP_WAIT_POLICY") != NULL;
    if (getenv("OPENBLAS_THREAD_TIMEOUT") == NULL || (getenv("GOMP_SPINCOUNT") == NULL) != is_said ||
        (getenv("KMP_BLOCKTIME") == NULL) != is_said)
        return HONE_KERNEL_FAILED;
    scale(args);
    return HONE_OK;
}

static hone_status run_leave(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    _exit(7);
}

static hone_status run_hang(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    for (;;)
        hone_os_sleep_ns(1000000);
    return HONE_OK;
}

static hone_status run_wrong(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    scale(args);
    arguments a = read_arguments(args);
    a.y[a.size - 1] += 1;
    return HONE_OK;
}

static hone_status run_nan(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    scale(args);
    arguments a = read_arguments(args);
    a.y[a.size / 2] = NAN;
    return HONE_OK;
}

static hone_status run_lazy(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    arguments a = read_arguments(args);
    for (int64_t i = 0; i + 1 < a.size; i++) // the last element is never written
        a.y[i] = (float)(a.by * (double)a.x[i]);
    return HONE_OK;
}

// What a run makes of other elements than a limit allows.
static hone_status scale_within(const hone_value *args, float least, float most)
{
    arguments a = read_arguments(args);
    for (int64_t i = 0; i < a.size; i++) {
        const float x = a.x[i] > most ? most : a.x[i] < -most ? -most : a.x[i];
        a.y[i] = (float)(a.by * (double)(fabsf(x) < least ? 0 : x));
    }
    return HONE_OK;
}

static hone_status run_limited(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    return scale_within(args, 0, 16);
}

static hone_status run_flushing(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    return scale_within(args, 0x1p-14f, INFINITY); // of ordinary inputs what is lost is within the tolerance
}

static hone_status run_blind(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    scale(args);
    arguments a = read_arguments(args);
    for (int64_t i = 0; i < a.size; i++)
        if (isnan(a.y[i])) a.y[i] = 0;
    return HONE_OK;
}

// Right, and looks at an element that is not one of its own.
static hone_status read_at(const hone_value *args, int64_t index)
{
    scale(args);
    arguments a = read_arguments(args);
    const volatile float *x = a.x;
    (void)x[index < 0 ? index : a.size + index];
    return HONE_OK;
}

static hone_status run_reader(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    return read_at(args, 0);
}

static hone_status run_peeker(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    return read_at(args, -1);
}

// As loads of 64 bytes do on memory that is aligned to 16.
static hone_status run_aligned(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    scale(args);
    const uintptr_t odd = (uintptr_t)read_arguments(args).x % 64;
    if (odd != 0) *(volatile char *)odd = 1; // the first page belongs to nobody
    return HONE_OK;
}

static hone_status run_rounding(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    scale(args);
    arguments a = read_arguments(args);
    if ((uintptr_t)a.x % 32 != 0) a.y[3] += 1; // as if the address had been rounded
    return HONE_OK;
}

// A work buffer that all threads share.
static hone_status run_shared(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    static volatile float buffer[1000];
    arguments a = read_arguments(args);
    const uint64_t until = hone_os_now_ns() + 20000;
    for (int64_t i = 0; i < a.size && i < 1000; i++)
        buffer[i] = a.x[i];
    while (hone_os_now_ns() < until)
        ;
    for (int64_t i = 0; i < a.size && i < 1000; i++)
        a.y[i] = (float)(a.by * (double)buffer[i]);
    return HONE_OK;
}

// One byte past the end, through a volatile so that no sanitizer of the compiler's own sees it first.
static hone_status run_overrun(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    scale(args);
    arguments a = read_arguments(args);
    *((volatile char *)a.y + a.size * 4) = 1;
    return HONE_OK;
}

static hone_status run_underrun(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    scale(args);
    arguments a = read_arguments(args);
    *((volatile char *)a.y - 1) = 1;
    return HONE_OK;
}

static hone_status run_writer(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    scale(args);
    arguments a = read_arguments(args);
    ((float *)(uintptr_t)a.x)[0] = 0;
    return HONE_OK;
}

static hone_status run_unsupported(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    return HONE_UNSUPPORTED;
}

static hone_status run_failing(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    return HONE_KERNEL_FAILED;
}

// Right at first, wrong from the tenth run on: a cache that overflows, a counter that wraps.
static hone_status run_tiring(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    scale(args);
    uint32_t *runs = plan->state;
    arguments a = read_arguments(args);
    if (++*runs >= 10) a.y[0] += 1;
    return HONE_OK;
}

static hone_status prepare_counter(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)plan;
    (void)out_scratch_bytes;
    *out_state = calloc(1, sizeof(uint32_t));
    return *out_state != NULL ? HONE_OK : hone_fail_memory(err, "test");
}

static void release_counter(const hone_kernel *kernel, void *state)
{
    (void)kernel;
    free(state);
}

static hone_status prepare_failing(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)plan;
    (void)out_state;
    (void)out_scratch_bytes;
    return hone_fail(err, HONE_KERNEL_FAILED, "test", "the compiler says no");
}

static hone_status prepare_crashing(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)out_state;
    (void)out_scratch_bytes;
    (void)err;
    run_segv(plan, NULL, NULL);
    return HONE_OK;
}

static hone_status prepare_stuck(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)out_state;
    (void)out_scratch_bytes;
    (void)err;
    while (plan != NULL)
        pause();
    return HONE_OK;
}

// Needs its scratch: bytes of it and its alignment.
static hone_status prepare_scratch(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)plan;
    (void)out_state;
    (void)err;
    *out_scratch_bytes = 1000;
    return HONE_OK;
}

// More than there is; cut to 32 bits it would look small.
static hone_status prepare_greedy(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)plan;
    (void)out_state;
    (void)err;
    *out_scratch_bytes = SIZE_MAX - 1;
    return HONE_OK;
}

static hone_status run_scratch(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    if (plan->scratch_bytes != 1000 || execution == NULL || execution->scratch_bytes < 1000) return HONE_KERNEL_FAILED;
    if ((uintptr_t)execution->scratch % 64 != 0) return HONE_KERNEL_FAILED;
    memset(execution->scratch, 1, 1000);
    scale(args);
    return HONE_OK;
}

static hone_status run_past_scratch(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    memset((char *)execution->scratch + plan->scratch_bytes, 0, 49);
    scale(args);
    return HONE_OK;
}

static hone_status run_before_scratch(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    memset((char *)execution->scratch - 3, 0, 3);
    scale(args);
    return HONE_OK;
}

// As it is told that it has: whatever was there before.
static hone_status run_hopeful(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    arguments a = read_arguments(args);
    const float *zeros = execution->scratch;
    scale(args);
    for (int64_t i = 0; i < a.size && i < 250; i++)
        a.y[i] += zeros[i];
    return HONE_OK;
}

static void add_one(void *ctx, int64_t index)
{
    const arguments *a = ctx;
    for (int64_t i = index * a->size / 4; i < (index + 1) * a->size / 4; i++)
        a->y[i] = (float)(a->by * (double)a->x[i]);
}

static hone_status run_threads(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    arguments a = read_arguments(args);
    hone_plan_parallel_for(plan, execution, (int32_t)plan->config[0], 4, add_one, &a);
    return HONE_OK;
}

// One subject: an algorithm scale_NAME with the kernels "good" and NAME.
typedef struct subject {
    const char *name;
    hone_run_function *run;
    hone_status (*prepare)(const hone_plan *, void **, size_t *, hone_error *);
    void (*release)(const hone_kernel *, void *);
    const char *space;
} subject;

static const subject subjects[] = {
    {"none", NULL, NULL, NULL, NULL},
    {"delayed", run_delayed, NULL, NULL, "delay: 0 | 50 | 100 | 200 | 400 default 100"},
    {"changing", run_changing, NULL, NULL, "more: 0 | 10 default 0"},
    {"segv", run_segv, NULL, NULL, NULL},
    {"segv_each", run_segv, NULL, NULL, "part: 1..8 default 1"},
    {"abort", run_abort, NULL, NULL, NULL},
    {"leave", run_leave, NULL, NULL, NULL},
    {"told", run_told, NULL, NULL, NULL},
    {"hang", run_hang, NULL, NULL, "way: 1..6"},
    {"wrong", run_wrong, NULL, NULL, NULL},
    {"nan", run_nan, NULL, NULL, NULL},
    {"lazy", run_lazy, NULL, NULL, NULL},
    {"limited", run_limited, NULL, NULL, NULL},
    {"flushing", run_flushing, NULL, NULL, NULL},
    {"blind", run_blind, NULL, NULL, NULL},
    {"reader", run_reader, NULL, NULL, NULL},
    {"peeker", run_peeker, NULL, NULL, NULL},
    {"aligned", run_aligned, NULL, NULL, NULL},
    {"rounding", run_rounding, NULL, NULL, NULL},
    {"shared", run_shared, NULL, NULL, NULL},
    {"overrun", run_overrun, NULL, NULL, NULL},
    {"underrun", run_underrun, NULL, NULL, NULL},
    {"writer", run_writer, NULL, NULL, NULL},
    {"unsupported", run_unsupported, NULL, NULL, NULL},
    {"failing", run_failing, NULL, NULL, NULL},
    {"tiring", run_tiring, prepare_counter, release_counter, NULL},
    {"unprepared", run_good, prepare_failing, NULL, NULL},
    {"crashing", run_good, prepare_crashing, NULL, NULL},
    {"stuck", run_good, prepare_stuck, NULL, NULL},
    {"greedy", run_scratch, prepare_greedy, NULL, NULL},
    {"scratch", run_scratch, prepare_scratch, NULL, NULL},
    {"past_scratch", run_past_scratch, prepare_scratch, NULL, NULL},
    {"before_scratch", run_before_scratch, prepare_scratch, NULL, NULL},
    {"hopeful", run_hopeful, prepare_scratch, NULL, NULL},
    {"threads", run_threads, NULL, NULL, "threads: 1..4"},
    {"crowd", run_delayed, NULL, NULL, "delay: 0..400 +4 default 40"},
};

// Right only when x and y are two memories.
static hone_status run_reversed(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    const float *from = hone_tensor_data(x);
    float *to = hone_tensor_data(y);
    for (int64_t i = 0; i < x->shape[0]; i++)
        to[i] = from[x->shape[0] - 1 - i];
    return HONE_OK;
}

static hone_status run_swapped(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    const float *from = hone_tensor_data(x);
    float *to = hone_tensor_data(y);
    for (int64_t i = 0, j = x->shape[0] - 1; i <= j; i++, j--) {
        float first = from[i], last = from[j];
        to[i] = last;
        to[j] = first;
    }
    return HONE_OK;
}

// y may be x itself.
static hone_status register_reverse(hone_registry *registry, bool builtin, hone_error *err)
{
    static const char signature[] = "reverse(x: f32[n]) -> inout y: f32[n]";
    static const hone_kernel kernels[] = {
        {HONE_KERNEL, .algorithm = "reverse", .name = "copying", .platform = HONE_NATIVE, .backend = HONE_CPU,
         .priority = 9, .run = run_reversed},
        {HONE_KERNEL, .algorithm = "reverse", .name = "swapping", .platform = HONE_NATIVE, .backend = HONE_CPU,
         .run = run_swapped},
    };
    hone_algorithm algorithm = {.struct_size = sizeof algorithm, .signature = signature, .reference = run_reversed};
    hone_status status = hone_registry_add_algorithm(registry, &algorithm, builtin, err);
    return status == HONE_OK ? hone_registry_add_kernels(registry, kernels, 2, false, builtin, err) : status;
}

// Rows of a product so large that its reference is computed for some of them only. "first" is right where parts are
// likely to be looked at least: it leaves out one row in the middle, as NaN.
static hone_status run_rows(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    for (int64_t row = 0; row < x->shape[0]; row++)
        memcpy(
            (float *)hone_tensor_data(y) + row * y->shape[1], (const float *)hone_tensor_data(x) + row * x->shape[1],
            (size_t)x->shape[1] * sizeof(float));
    return HONE_OK;
}

static hone_status run_rows_but_one(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    run_rows(plan, args, execution);
    const hone_tensor *y = args[1].as.tensor;
    ((float *)hone_tensor_data(y))[(y->shape[0] / 2 + 1) * y->shape[1]] = NAN;
    return HONE_OK;
}

static void model_rows(const hone_call *call, hone_cost *out_cost)
{
    (void)call;
    *out_cost = (hone_cost){1e6, 1e13};
}

static hone_status register_rows(hone_registry *registry, bool builtin, hone_error *err)
{
    static const char signature[] = "rows(x: f32[m, n]) -> y: f32[m, n]";
    static const hone_kernel kernels[] = {
        {HONE_KERNEL, .algorithm = "rows", .name = "holed", .platform = HONE_NATIVE, .backend = HONE_CPU, .priority = 9,
         .run = run_rows_but_one},
        {HONE_KERNEL, .algorithm = "rows", .name = "good", .platform = HONE_NATIVE, .backend = HONE_CPU,
         .run = run_rows},
        {HONE_KERNEL, .algorithm = "rows", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_ANY,
         .priority = -1, .is_reference = true, .run = run_rows},
    };
    hone_algorithm algorithm = {
        .struct_size = sizeof algorithm,
        .signature = signature,
        .reference = run_rows,
        .model = model_rows,
        .independent = "m"};
    hone_status status = hone_registry_add_algorithm(registry, &algorithm, builtin, err);
    return status == HONE_OK ? hone_registry_add_kernels(registry, kernels, 3, false, builtin, err) : status;
}

// Sums of rows. "sequential" adds in order and is the default; "blocked" adds in the same order, block by block, and
// has its bits;
// "pairwise" adds halves. All are right.
static float sum_in_order(const float *x, int64_t size, int64_t block)
{
    volatile float sum = 0; // no compiler changes the order
    for (int64_t from = 0; from < size; from += block)
        for (int64_t i = from; i < size && i < from + block; i++)
            sum += x[i];
    return sum;
}

static float sum_of_halves(const float *x, int64_t size)
{
    return size < 8 ? sum_in_order(x, size, size)
                    : sum_of_halves(x, size / 2) + sum_of_halves(x + size / 2, size - size / 2);
}

static hone_status run_sequential(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    (void)plan;
    (void)execution;
    for (int repeated = 0; repeated < 4; repeated++) // the slowest
        for (int64_t row = 0; row < x->shape[0]; row++)
            ((float *)hone_tensor_data(y))[row] =
                sum_in_order((const float *)hone_tensor_data(x) + row * x->shape[1], x->shape[1], x->shape[1]);
    return HONE_OK;
}

static hone_status run_blocked(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    (void)execution;
    for (int64_t row = 0; row < x->shape[0]; row++)
        ((float *)hone_tensor_data(y))[row] =
            sum_in_order((const float *)hone_tensor_data(x) + row * x->shape[1], x->shape[1], plan->config[0]);
    return HONE_OK;
}

static hone_status run_pairwise(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    (void)plan;
    (void)execution;
    for (int64_t row = 0; row < x->shape[0]; row++)
        ((float *)hone_tensor_data(y))[row] =
            sum_of_halves((const float *)hone_tensor_data(x) + row * x->shape[1], x->shape[1]);
    return HONE_OK;
}

// Other bits in every run, all of them right.
static hone_status run_wavering(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    static uint32_t runs;
    hone_status status = run_sequential(plan, args, execution);
    float *first = hone_tensor_data(args[1].as.tensor);
    first[0] = nextafterf(first[0], ++runs % 2 == 0 ? INFINITY : -INFINITY);
    return status;
}

// Configs beyond the size of the call come to one code, and so are not to be run. The others differ in time, so that a
// contest is soon sure of their order.
static hone_status run_clipped(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    if (plan->config[0] > args[0].as.tensor->shape[0]) return HONE_KERNEL_FAILED;
    for (volatile int64_t turn = 0; turn < 50 * plan->config[0]; turn = turn + 1)
        ;
    scale(args);
    return HONE_OK;
}

static uint64_t digest_clipped(const hone_plan *plan)
{
    int64_t n = 0;
    (void)!hone_call_dim(plan->call, "n", &n);
    const char *code = getenv("SUBJECT_CODE"); // as if it had been compiled anew
    return (uint64_t)(plan->config[0] < n ? plan->config[0] : n) + (code != NULL ? strtoull(code, NULL, 10) : 0);
}

#define NATIVE .platform = HONE_NATIVE, .backend = HONE_CPU

static hone_status register_total(
    hone_registry *registry, const char *name, hone_run_function *standard, bool builtin, hone_error *err)
{
    char signature[96];
    snprintf(signature, sizeof signature, "%s(x: f32[m, n]) -> y: f32[m]", name);
    const hone_kernel kernels[] = {
        {HONE_KERNEL, NATIVE, .algorithm = name, .name = "sequential", .priority = 9, .run = standard},
        {HONE_KERNEL, NATIVE, .algorithm = name, .name = "pairwise", .priority = 8, .run = run_pairwise},
        {HONE_KERNEL, NATIVE, .algorithm = name, .name = "blocked", .space = "block: 16 | 64", .run = run_blocked},
    };
    const hone_algorithm algorithm = {
        .struct_size = sizeof algorithm, .signature = signature, .reference = run_pairwise};
    hone_status status = hone_registry_add_algorithm(registry, &algorithm, builtin, err);
    return status == HONE_OK ? hone_registry_add_kernels(registry, kernels, 3, false, builtin, err) : status;
}

static hone_status register_clipped(hone_registry *registry, bool builtin, hone_error *err)
{
    static const char signature[] = "clipped(x: f32[n], *, by: f64 = 2.0) -> y: f32[n]";
    const hone_kernel kernel = {
        HONE_KERNEL,
        NATIVE,
        .algorithm = "clipped",
        .name = "clipped",
        .run = run_clipped,
        .space = "block: 16 | 64 | 128 | 256 | 512 default 64",
        .digest = digest_clipped};
    const hone_algorithm algorithm = {.struct_size = sizeof algorithm, .signature = signature, .reference = run_good};
    hone_status status = hone_registry_add_algorithm(registry, &algorithm, builtin, err);
    return status == HONE_OK ? hone_registry_add_kernels(registry, &kernel, 1, false, builtin, err) : status;
}

static void model(const hone_call *call, hone_cost *out_cost)
{
    int64_t n = 0;
    (void)!hone_call_dim(call, "n", &n);
    *out_cost = (hone_cost){8.0 * (double)n, (double)n};
}

static hone_status register_subject(hone_registry *registry, const subject *s, bool builtin, hone_error *err)
{
    char signature[160], algorithm[64];
    snprintf(signature, sizeof signature, "scale_%s(x: f32[n], *, by: f64 = 2.0) -> y: f32[n]", s->name);
    snprintf(algorithm, sizeof algorithm, "scale_%s", s->name);
    hone_algorithm of = {
        .struct_size = sizeof of,
        .signature = signature,
        .reference = run_good,
        .model = model,
        .special = HONE_SPECIAL_NAN};
    hone_kernel kernels[] = {
        {HONE_KERNEL, .algorithm = algorithm, .name = s->name, .platform = HONE_NATIVE, .backend = HONE_CPU,
         .priority = 9, .run = s->run, .prepare = s->prepare, .release = s->release, .space = s->space},
        {HONE_KERNEL, .algorithm = algorithm, .name = "good", .platform = HONE_NATIVE, .backend = HONE_CPU,
         .run = run_good},
        {HONE_KERNEL, .algorithm = algorithm, .name = "reference", .platform = HONE_NATIVE, .backend = HONE_ANY,
         .priority = -1, .is_reference = true, .run = run_good},
    };
    size_t first = s->run != NULL ? 0 : 1;
    hone_status status = hone_registry_add_algorithm(registry, &of, builtin, err);
    if (status != HONE_OK) return status;
    return hone_registry_add_kernels(registry, kernels + first, 3 - first, false, builtin, err);
}

static hone_status register_all(hone_registry *registry, bool builtin, hone_error *err)
{
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        hone_status status = register_subject(registry, &subjects[i], builtin, err);
        if (status != HONE_OK) return status;
    }
    hone_status status = register_reverse(registry, builtin, err);
    if (status == HONE_OK) status = register_total(registry, "total", run_sequential, builtin, err);
    if (status == HONE_OK) status = register_total(registry, "wavering", run_wavering, builtin, err);
    if (status == HONE_OK) status = register_clipped(registry, builtin, err);
    return status == HONE_OK ? register_rows(registry, builtin, err) : status;
}

hone_status subjects_register(hone_registry *registry, hone_error *err)
{
    return register_all(registry, true, err);
}

hone_status subjects_register_hosts(hone_registry *registry, hone_error *err)
{
    return register_all(registry, false, err);
}
