// A bound plan against VOLK's bound call: the sum of two vectors of 8 floats, through the pointers that VOLK resolves
// once: the one for aligned data, and the one that tests the alignment at each call.
#include "bench.h"

#include <hone/hone.h>
#include <volk/volk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOATS = 8 };

static hone_status add(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    const float *a = hone_tensor_data(args[0].as.tensor), *b = hone_tensor_data(args[1].as.tensor);
    float *restrict c = hone_tensor_data(args[2].as.tensor);
    size_t n = (size_t)args[2].as.tensor->shape[0];
    for (; n >= FLOATS; n -= FLOATS, a += FLOATS, b += FLOATS, c += FLOATS)
        for (int i = 0; i < FLOATS; i++)
            c[i] = a[i] + b[i];
    for (size_t i = 0; i < n; i++)
        c[i] = a[i] + b[i];
    return HONE_OK;
}

typedef struct sum {
    const hone_plan *plan;
    const hone_value *args;
    p_32f_x2_add_32f *function; // VOLK's own variable, loaded at each call as its users do
    float *a, *b, *c;
} sum;

static int run_plan(void *ctx, uint64_t count)
{
    const sum *work = ctx;
    const hone_plan *plan = work->plan;
    const hone_value *args = work->args;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++)
        failed |= plan->run(plan, args, NULL) != HONE_OK;
    return failed;
}

static int run_volk(void *ctx, uint64_t count)
{
    const sum *work = ctx;
    p_32f_x2_add_32f *const volatile function = work->function;
    for (uint64_t i = 0; i < count; i++)
        (*function)(work->c, work->a, work->b, FLOATS);
    return 0;
}

static hone_status bind(hone_runtime *rt, const hone_value *args, size_t count, const hone_plan **plan, hone_error *err)
{
    hone_algorithm algorithm = {
        .struct_size = sizeof algorithm, .signature = "add(a: T[n], b: T[n], *) -> c: T[n] where T in f32"};
    hone_kernel kernel = {HONE_KERNEL,         .algorithm = "add", .name = "vectors", .platform = HONE_NATIVE,
                          .backend = HONE_CPU, .run = add};
    const hone_op *op = NULL;
    hone_status status = hone_register_algorithm(rt, &algorithm, err);
    if (status == HONE_OK) status = hone_register_kernels(rt, &kernel, 1, err);
    if (status == HONE_OK) status = hone_op_get(rt, "add", &op, err);
    return status != HONE_OK ? status : hone_bind(op, args, count, plan, err);
}

// Both sides give the sum, and not because the other left it there.
static int check(const sum *work)
{
    float expected[FLOATS];
    for (int i = 0; i < FLOATS; i++) {
        work->a[i] = (float)(i + 1);
        work->b[i] = 0.25f * (float)i;
        expected[i] = work->a[i] + work->b[i];
    }
    memset(work->c, 0, sizeof expected);
    int wrong =
        work->plan->run(work->plan, work->args, NULL) != HONE_OK || memcmp(work->c, expected, sizeof expected) != 0;
    memset(work->c, 0, sizeof expected);
    (*work->function)(work->c, work->a, work->b, FLOATS);
    return wrong || memcmp(work->c, expected, sizeof expected) != 0;
}

static int measure(const hone_plan *plan, const hone_value *args, float data[3][64])
{
    static const struct {
        p_32f_x2_add_32f *function;
        const char *name, *peer;
    } rows[] = {
        {&volk_32f_x2_add_32f_a, "bound/volk aligned", "volk_32f_x2_add_32f_a"},
        {&volk_32f_x2_add_32f, "bound/volk", "volk_32f_x2_add_32f"},
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && !failed; i++) {
        sum work = {plan, args, rows[i].function, data[0], data[1], data[2]};
        bench_row row;
        failed = check(&work) ||
                 bench_compare((bench_side){run_plan, &work}, (bench_side){run_volk, &work}, 1000000, 0, 101, &row);
        if (!failed) bench_print(rows[i].name, rows[i].peer, &row, "no slower");
    }
    return failed;
}

int main(void)
{
    static _Alignas(64) float data[3][64];
    int64_t shape[] = {FLOATS};
    hone_tensor tensors[3];
    hone_value args[3];
    for (int i = 0; i < 3; i++) {
        tensors[i] = hone_tensor_of(data[i], HONE_F32, 1, shape);
        args[i] = hone_of_tensor(&tensors[i]);
    }
    hone_runtime_options options = {
        .struct_size = sizeof options,
        .store = "none",
        .flags = HONE_RUNTIME_NO_BUILTINS | HONE_RUNTIME_NO_ENVIRONMENT};
    hone_runtime *rt = NULL;
    const hone_plan *plan = NULL;
    hone_error err;
    hone_status status = hone_runtime_open(&options, &rt, &err);
    if (status == HONE_OK) status = bind(rt, args, 3, &plan, &err);
    if (status != HONE_OK) {
        fprintf(stderr, "bench_volk: %s\n", err.message);
        return 1;
    }
    int failed = measure(plan, args, data);
    if (failed) fprintf(stderr, "bench_volk: a side failed or gave a wrong sum\n");
    hone_plan_release(&plan);
    hone_runtime_close(&rt);
    return failed;
}
