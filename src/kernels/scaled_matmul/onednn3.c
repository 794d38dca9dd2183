// oneDNN 3's product of integers. It supports no scale for each row of a (3.2: post-operations that scale rows run in
// its reference code). So it computes the sums, as PyTorch's _int_mm uses it, and the scales and the bias are applied
// here.
#include "kernels/common/half.h"
#include "kernels/common/scratch.h"
#include "kernels/rivals/rivals.h"
#include "kernels/scaled_matmul/scaled_matmul.h"

// OpenMP's threads spin for a while after the product, and take processors from the pool's: for fewer than WORTH_A_POOL
// results, about 100 us, the caller finishes alone.
enum { TASK_ROWS = 8, WORTH_A_POOL = 1 << 20 };

// The product without its epilogue. For f32 the sums are computed in c, else in separate memory.
static hone_matmul sums_of(const hone_matmul *product)
{
    return (hone_matmul){
        .a = product->a,
        .b = product->b,
        .c = product->c,
        .m = product->m,
        .n = product->n,
        .k = product->k,
        .a_stride = product->a_stride,
        .b_stride = product->b_stride,
        .c_stride = product->dtype == HONE_F32 ? product->c_stride : product->n,
        .transpose_b = product->transpose_b,
        .dtype = HONE_I32,
        .operands = HONE_I8,
    };
}

bool hone_scaled_onednn3_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    const hone_rival *rival = kernel->user;
    if (!hone_scaled_matmul_form.is_plain(call, why)) return false;
    const hone_matmul product = hone_scaled_matmul_form.of_call(call), sums = sums_of(&product);
    return rival->supports(rival, &sums, why);
}

hone_status hone_scaled_onednn3_prepare(
    const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    const hone_rival *rival = plan->kernel->user;
    const hone_matmul product = hone_scaled_matmul_form.of_call(plan->call), sums = sums_of(&product);
    *out_scratch_bytes = product.dtype == HONE_F32 ? 0 : (size_t)(product.m * product.n) * sizeof(float);
    return rival->create(rival, &sums, (int32_t)plan->config[0], out_state, err);
}

typedef struct finishing {
    const hone_gemm_set *set;
    const hone_matmul *product;
    float *sums;
    int64_t stride;
} finishing;

static void finish_rows(void *ctx, int64_t index)
{
    const finishing *job = ctx;
    const hone_matmul *product = job->product;
    for (int64_t row = index * TASK_ROWS; row < (index + 1) * TASK_ROWS && row < product->m; row++) {
        float *sums = job->sums + row * job->stride;
        job->set->finish(product, sums, row, 0, product->n);
        if (product->dtype == HONE_F32) continue;
        char *to = (char *)product->c + row * product->c_stride * hone_element_size(product->dtype);
        job->set->narrow(sums, to, product->dtype, product->n);
    }
}

hone_status hone_scaled_onednn3_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_rival *rival = plan->kernel->user;
    const hone_matmul product = hone_scaled_matmul_form.of(plan, args);
    const int64_t tasks = (product.m + TASK_ROWS - 1) / TASK_ROWS;
    const bool has_avx512 = (plan->device->features & HONE_SCALED_AVX512) == HONE_SCALED_AVX512;
    if (hone_matmul_is_done(&product)) return HONE_OK;
    hone_matmul sums = sums_of(&product);
    if (product.dtype != HONE_F32)
        sums.c = hone_scratch_piece(execution, 0, 1, (size_t)(product.m * product.n) * sizeof(float));
    if (sums.c == NULL) return HONE_OUT_OF_MEMORY;
    hone_status status = rival->run(plan->state, &sums, execution != NULL ? execution->threads : 0);
    if (status != HONE_OK) return status;
    finishing job = {
        .set = has_avx512 ? &hone_scaled_gemm_avx512 : &hone_scaled_gemm_avx2,
        .product = &product,
        .sums = sums.c,
        .stride = sums.c_stride,
    };
    if (plan->config[0] == 1 || product.m * product.n < WORTH_A_POOL)
        for (int64_t i = 0; i < tasks; i++)
            finish_rows(&job, i);
    else
        hone_plan_parallel_for(plan, execution, (int32_t)plan->config[0], tasks, finish_rows, &job);
    return HONE_OK;
}
