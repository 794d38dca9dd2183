// How much of the processor a product uses: hone's AVX-512 f32 matmul kernels at 512 x 512 x 512 on one thread, beside a loop
// of as many multiply-adds on registers in the same process. The bound, 70 % of the loop's rate, is 1 / 0.7 of its time.
#include "bench.h"

#include <hone/hone.h>

#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 512, VECTOR = 16, SUMS = 12 };

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

// Independent sums: more than latency times width of any FMA unit so far. Every loop over them is unrolled, else they would
// lie in memory.
__attribute__((target("avx512f"))) static int run_loop(void *ctx, uint64_t count)
{
    const __m512 factor = _mm512_set1_ps(*(const float *)ctx);
    const uint64_t rounds = count * SIDE * SIDE * SIDE / (VECTOR * SUMS);
    __m512 sum[SUMS], total = _mm512_setzero_ps();
#pragma GCC unroll 12
    for (int i = 0; i < SUMS; i++)
        sum[i] = _mm512_set1_ps((float)i);
    for (uint64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < SUMS; i++) {
            sum[i] = _mm512_fmadd_ps(sum[i], factor, factor);
            __asm__ volatile("" : "+v"(sum[i])); // each one is made
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < SUMS; i++)
        total = _mm512_add_ps(total, sum[i]);
    return _mm512_reduce_add_ps(total) < 0;
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
    float factor = 0.5f;
    char name[64];
    hone_error err;
    product p = {.args = args};
    bench_row row;
    if (bind(rt, kernel, config, args, count, &p.plan, &err) != HONE_OK) {
        fprintf(stderr, "bench_peak: %s\n", err.message);
        return 1;
    }
    int failed = bench_compare((bench_side){run_product, &p}, (bench_side){run_loop, &factor}, 0, 20e6, 41, &row);
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
