#include "composed.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { X, WEIGHT, Y, EPS, MOST_DIM = 1 << 16 };

typedef float dot_function(int n, const float *x, int x_step, const float *y, int y_step);

typedef struct norm_work {
    dot_function *dot;
    const char *x, *weight;
    char *y;
    int64_t rows, dim, tasks;
    double eps;
    bool is_f32;
} norm_work;

static float factor_of(const norm_work *work, const float *x)
{
    float sum = work->dot((int)work->dim, x, 1, x, 1);
    return (float)(1 / sqrt((double)sum / (double)work->dim + work->eps));
}

static void norm_f32(const norm_work *work, int64_t row)
{
    const float *x = (const float *)(const void *)work->x + row * work->dim,
                *weight = (const float *)(const void *)work->weight;
    float *restrict y = (float *)(void *)work->y + row * work->dim;
    float factor = factor_of(work, x);
    for (int64_t i = 0; i < work->dim; i++)
        y[i] = x[i] * factor * weight[i];
}

static float of_bf16(uint16_t value)
{
    uint32_t bits = (uint32_t)value << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static uint16_t to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Debian's OpenBLAS has no dot product of bf16, so the row is widened first.
static void norm_bf16(const norm_work *work, int64_t row)
{
    float wide[MOST_DIM];
    const uint16_t *x = (const uint16_t *)(const void *)work->x + row * work->dim,
                   *weight = (const uint16_t *)(const void *)work->weight;
    uint16_t *restrict y = (uint16_t *)(void *)work->y + row * work->dim;
    for (int64_t i = 0; i < work->dim; i++)
        wide[i] = of_bf16(x[i]);
    float factor = factor_of(work, wide);
    for (int64_t i = 0; i < work->dim; i++)
        y[i] = to_bf16(wide[i] * factor * of_bf16(weight[i]));
}

static void norm_rows(void *ctx, int64_t task)
{
    const norm_work *work = ctx;
    int64_t last = work->rows * (task + 1) / work->tasks;
    for (int64_t row = work->rows * task / work->tasks; row < last; row++)
        work->is_f32 ? norm_f32(work, row) : norm_bf16(work, row);
}

static hone_status run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_tensor *x = args[X].as.tensor;
    int32_t threads = (int32_t)plan->config[0];
    norm_work work = {
        .x = hone_tensor_data(x),
        .weight = hone_tensor_data(args[WEIGHT].as.tensor),
        .y = hone_tensor_data(args[Y].as.tensor),
        .dim = x->shape[x->ndim - 1],
        .rows = hone_tensor_elements(x) / x->shape[x->ndim - 1],
        .tasks = threads,
        .eps = args[EPS].as.f64,
        .is_f32 = x->dtype.bits == 32};
    memcpy(&work.dot, plan->state, sizeof work.dot);
    if (threads == 1)
        norm_rows(&work, 0);
    else
        hone_plan_parallel_for(plan, execution, threads, threads, norm_rows, &work);
    return HONE_OK;
}

// The state points at OpenBLAS' dot product, which stays loaded.
static hone_status prepare(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    static dot_function *dot;
    (void)plan;
    *out_scratch_bytes = 0;
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library != NULL ? dlsym(library, "cblas_sdot") : NULL;
    memcpy(&dot, &symbol, sizeof dot);
    *out_state = &dot;
    if (dot != NULL) return HONE_OK;
    snprintf(err->message, sizeof err->message, "no libopenblas.so.0: install libopenblas-dev");
    return HONE_UNAVAILABLE;
}

static bool supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    const hone_tensor *x = hone_call_tensor(call, X);
    (void)kernel;
    (void)why;
    return x->shape[x->ndim - 1] <= MOST_DIM && hone_tensor_is_row_major(x);
}

hone_status composed_register(hone_runtime *rt, hone_error *err)
{
    hone_kernel kernel = {
        HONE_KERNEL,
        .algorithm = "rms_norm",
        .name = "composed",
        .platform = HONE_NATIVE,
        .backend = HONE_CPU,
        .signature =
            "rms_norm(x: T[..., dim], weight: T[dim], *, eps: f64 = 1e-6) -> y: T[..., dim] where T in f32, bf16",
        .space = "threads: 1..64 *2\nwhere threads <= device.threads",
        .supports = supports,
        .prepare = prepare,
        .run = run};
    return hone_register_kernels(rt, &kernel, 1, err);
}
