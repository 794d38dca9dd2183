// What binding costs: plan->run(plan, args, NULL) of an empty kernel over the same empty function called through a
// pointer.
#include "bench.h"

#include <hone/hone.h>

#include <stdio.h>

static hone_status empty(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    __asm__ volatile("" : : "r"(args) : "memory");
    return HONE_OK;
}

typedef struct bound_call {
    const hone_plan *plan;
    hone_run_function *function;
    const hone_value *args;
} bound_call;

static int run_plan(void *ctx, uint64_t count)
{
    const bound_call *call = ctx;
    const hone_plan *plan = call->plan;
    const hone_value *args = call->args;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++)
        failed |= plan->run(plan, args, NULL) != HONE_OK;
    return failed;
}

// The compiler must not see which function it is: volatile makes it load the pointer each time, as the plan's is
// loaded.
static int run_pointer(void *ctx, uint64_t count)
{
    const bound_call *call = ctx;
    hone_run_function *volatile function = call->function;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++)
        failed |= function(call->plan, call->args, NULL) != HONE_OK;
    return failed;
}

static hone_status bind(hone_runtime *rt, const hone_value *args, size_t count, const hone_plan **plan, hone_error *err)
{
    hone_algorithm algorithm = {
        .struct_size = sizeof algorithm, .signature = "empty(a: T[m, k], b: T[k, n], *) -> c: T[m, n] where T in f32"};
    hone_kernel kernel = {HONE_KERNEL,         .algorithm = "empty", .name = "empty", .platform = HONE_NATIVE,
                          .backend = HONE_CPU, .run = empty};
    const hone_op *op = NULL;
    hone_status status = hone_register_algorithm(rt, &algorithm, err);
    if (status == HONE_OK) status = hone_register_kernels(rt, &kernel, 1, err);
    if (status == HONE_OK) status = hone_op_get(rt, "empty", &op, err);
    return status != HONE_OK ? status : hone_bind(op, args, count, plan, err);
}

int main(void)
{
    static float data[3][64];
    int64_t shape[] = {8, 8};
    hone_tensor tensors[3];
    hone_value args[3];
    for (int i = 0; i < 3; i++) {
        tensors[i] = hone_tensor_of(data[i], HONE_F32, 2, shape);
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
        fprintf(stderr, "bench_bound: %s\n", err.message);
        return 1;
    }
    bound_call call = {plan, empty, args};
    bench_row row;
    int failed = bench_compare((bench_side){run_plan, &call}, (bench_side){run_pointer, &call}, 2000000, 0, 101, &row);
    if (!failed) bench_print("bound/over function pointer", "function pointer", &row, "at most 2 ns more");
    hone_plan_release(&plan);
    hone_runtime_close(&rt);
    return failed;
}
