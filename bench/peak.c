// How much of the processor a product uses: hone's AVX-512 f32 matmul kernels at 512 x 512 x 512 on one thread, beside
// a loop of as many multiply-adds on registers in the same process. The bound, 70 % of the loop's rate, is 1 / 0.7 of
// its time.
#include "kernels/common/peak.h"
#include "bench.h"

#include <hone/hone.h>

#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 512, VECTOR = 16 };

typedef struct product {
    const hone_plan *plan;
    const hone_value *args;
} product;

static int run_product(void *ctx, uint64_t count)
{
    const product *p = ctx;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++)
        failed |= p->plan->run(p->plan, p->args, NULL) != HONE_OK;
    return failed;
}

static int run_loop(void *ctx, uint64_t count)
{
    (void)ctx;
    return hone_peak_loop_avx512((int64_t)(count * SIDE * SIDE * SIDE / (VECTOR * HONE_PEAK_SUMS))) < 0;
}

static hone_status bind(
    hone_runtime *rt,
    const char *kernel,
    const char *config,
    const hone_value *args,
    size_t count,
    const hone_plan **plan,
    hone_error *err)
{
    hone_override override_ = {.algorithm = "matmul", .kernel = kernel, .platform = HONE_NATIVE, .config = config};
    hone_context *context = NULL;
    const hone_op *op = NULL;
    hone_status status = hone_op_get(rt, "matmul", &op, err);
    if (status == HONE_OK) status = hone_context_derive(rt, NULL, NULL, &override_, HONE_POLICY_DEFAULT, &context, err);
    if (status != HONE_OK) return status;
    hone_context *before = hone_context_enter(context);
    status = hone_bind(op, args, count, plan, err);
    (void)hone_context_enter(before);
    hone_context_release(&context);
    return status;
}

static int measure(hone_runtime *rt, const char *kernel, const char *config, const hone_value *args, size_t count)
{
    char name[64];
    hone_error err;
    product p = {.args = args};
    bench_row row;
    if (bind(rt, kernel, config, args, count, &p.plan, &err) != HONE_OK) {
        fprintf(stderr, "bench_peak: %s\n", err.message);
        return 1;
    }
    int failed = bench_compare((bench_side){run_product, &p}, (bench_side){run_loop, NULL}, 0, 20e6, 41, &row);
    snprintf(name, sizeof name, "peak/matmul f32 512^3/%s", kernel);
    if (!failed) bench_print(name, "FMA loop", &row, "at most 1.428");
    hone_plan_release(&p.plan);
    return failed;
}

int main(void)
{
    static _Alignas(64) float data[3][SIDE * SIDE];
    int64_t shape[] = {SIDE, SIDE};
    hone_tensor tensors[3];
    hone_value args[3];
    if (!__builtin_cpu_supports("avx512f")) {
        fprintf(stderr, "bench_peak: this processor has no AVX-512\n");
        return 1;
    }
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < SIDE * SIDE; j++)
            data[i][j] = (float)(j % 7) - 3;
        tensors[i] = hone_tensor_of(data[i], HONE_F32, 2, shape);
        args[i] = hone_of_tensor(&tensors[i]);
    }
    hone_runtime_options options = {
        .struct_size = sizeof options, .store = "none", .flags = HONE_RUNTIME_NO_ENVIRONMENT};
    hone_runtime *rt = NULL;
    hone_error err;
    if (hone_runtime_open(&options, &rt, &err) != HONE_OK) {
        fprintf(stderr, "bench_peak: %s\n", err.message);
        return 1;
    }
    int failed = measure(rt, "avx512", "{\"mr\":9,\"nr\":48,\"kc\":512,\"mc\":224,\"threads\":1}", args, 3) ||
                 measure(rt, "avx512_in_place", "{\"mr\":9,\"nr\":48,\"kc\":512,\"mc\":112,\"threads\":1}", args, 3) ||
                 measure(rt, "avx512_unpacked", "{\"mr\":6,\"nr\":64,\"kc\":512,\"mc\":112,\"threads\":1}", args, 3);
    hone_runtime_close(&rt);
    return failed;
}
