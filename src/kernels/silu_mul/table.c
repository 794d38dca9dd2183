// silu_mul and silu_mul_vjp: their signatures, their kernels, and their cost models and heuristics.
#include "kernels/common/cuda.h"
#include "kernels/common/matrix.h"
#include "kernels/silu_mul/silu_mul.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"

static const char space[] = "unroll: 1..4 *2 default 2\n"
                            "rows_per_task: 1..256 *4 default 4\n"
                            "store: cached | streamed\n" HONE_THREADS_SPACE;

static bool supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    size_t count = hone_signature_count(hone_call_signature(call));
    for (size_t i = 0; i < count; i++)
        if (!hone_last_axis_is_dense(call, i, why)) return false;
    return true;
}

// Counts an exponential as one operation.
static void count_work(const hone_call *call, double operations, hone_cost *out_cost)
{
    double elements = (double)hone_tensor_elements(hone_call_tensor(call, SILU_MUL_GATE));
    double arrays = (double)hone_signature_count(hone_call_signature(call));
    out_cost->bytes = arrays * elements * hone_call_dtype(call, "T")->bits / 8.0;
    out_cost->operations = operations * elements;
}

static void model(const hone_call *call, hone_cost *out_cost)
{
    count_work(call, 5, out_cost);
}

static void model_vjp(const hone_call *call, hone_cost *out_cost)
{
    count_work(call, 10, out_cost);
}

// A task is worth its overhead from about 32 KiB on; results that exceed the last cache are stored past it.
static bool heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    int64_t dim = hone_dim_of(call, "dim"), bytes = hone_tensor_elements(hone_call_tensor(call, SILU_MUL_GATE)) * 4;
    out_config->count = 4;
    out_config->values[SILU_MUL_UNROLL] = 2;
    out_config->values[SILU_MUL_ROWS_PER_TASK] = hone_rows_per_task(dim * 4, 1 << 15, 256);
    out_config->values[SILU_MUL_STORE] = hone_exceeds_cache(device, bytes);
    out_config->values[SILU_MUL_THREADS] = hone_threads_for(device, bytes >> 17);
    return true;
}

#define SIGNATURE(DTYPES) "silu_mul(gate: T[..., dim], up: T[..., dim]) -> y: T[..., dim] where T in " DTYPES

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature = SIGNATURE(HONE_FLOATS_AND_F64),
    .reference = hone_silu_mul_reference,
    .tolerance = {.relative = 1e-5, .scale = 1},
    .model = model,
    .independent = "...",
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_MINUS_INFINITY | HONE_SPECIAL_INFINITY | HONE_SPECIAL_NAN |
               HONE_SPECIAL_EVERYWHERE,
};

#define SIGNATURE_VJP(DTYPES)                                                                                          \
    "silu_mul_vjp(gate: T[..., dim], up: T[..., dim], d_y: T[..., dim]) -> "                                           \
    "(d_gate: T[..., dim], d_up: T[..., dim]) where T in " DTYPES

static const hone_algorithm algorithm_vjp = {
    .struct_size = sizeof algorithm_vjp,
    .signature = SIGNATURE_VJP(HONE_FLOATS_AND_F64),
    .reference = hone_silu_mul_vjp_reference,
    .tolerance = {.relative = 1e-5, .scale = 1},
    .model = model_vjp,
    .independent = "...",
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_MINUS_INFINITY | HONE_SPECIAL_INFINITY | HONE_SPECIAL_NAN |
               HONE_SPECIAL_EVERYWHERE,
};

#define AVX512 (HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ)
#define AVX2   (HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C)

static const hone_kernel kernels[] = {
    {HONE_KERNEL, .algorithm = "silu_mul", .signature = SIGNATURE(HONE_FLOATS), .name = "avx512",
     .platform = HONE_NATIVE, .backend = HONE_CPU, .priority = 30, .needs = AVX512, .space = space,
     .supports = supports, .heuristic = heuristic, .run = hone_silu_mul_avx512},
    {HONE_KERNEL, .algorithm = "silu_mul", .signature = SIGNATURE(HONE_FLOATS), .name = "avx2", .platform = HONE_NATIVE,
     .backend = HONE_CPU, .priority = 20, .needs = AVX2, .space = space, .supports = supports, .heuristic = heuristic,
     .run = hone_silu_mul_avx2},
    {HONE_KERNEL, .algorithm = "silu_mul", .signature = SIGNATURE(HONE_FLOATS), .name = "portable",
     .platform = HONE_NATIVE, .backend = HONE_CPU, .priority = 10, .space = space, .supports = supports,
     .heuristic = heuristic, .run = hone_silu_mul_portable},
    {HONE_KERNEL, .algorithm = "silu_mul", .signature = SIGNATURE(HONE_FLOATS), .name = "cuda", .platform = HONE_CUDA,
     .backend = HONE_GPU, .priority = 50, .space = hone_silu_mul_cuda_space, .heuristic = hone_silu_mul_cuda_heuristic,
     .code = &hone_silu_mul_cuda_code},
    {HONE_KERNEL, .algorithm = "silu_mul", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .is_reference = true, .run = hone_silu_mul_reference},
};

static const hone_kernel kernels_vjp[] = {
    {HONE_KERNEL, .algorithm = "silu_mul_vjp", .signature = SIGNATURE_VJP(HONE_FLOATS), .name = "avx512",
     .platform = HONE_NATIVE, .backend = HONE_CPU, .priority = 30, .needs = AVX512, .space = space,
     .supports = supports, .heuristic = heuristic, .run = hone_silu_mul_vjp_avx512},
    {HONE_KERNEL, .algorithm = "silu_mul_vjp", .signature = SIGNATURE_VJP(HONE_FLOATS), .name = "avx2",
     .platform = HONE_NATIVE, .backend = HONE_CPU, .priority = 20, .needs = AVX2, .space = space, .supports = supports,
     .heuristic = heuristic, .run = hone_silu_mul_vjp_avx2},
    {HONE_KERNEL, .algorithm = "silu_mul_vjp", .signature = SIGNATURE_VJP(HONE_FLOATS), .name = "portable",
     .platform = HONE_NATIVE, .backend = HONE_CPU, .priority = 10, .space = space, .supports = supports,
     .heuristic = heuristic, .run = hone_silu_mul_vjp_portable},
    {HONE_KERNEL, .algorithm = "silu_mul_vjp", .signature = SIGNATURE_VJP(HONE_FLOATS), .name = "cuda",
     .platform = HONE_CUDA, .backend = HONE_GPU, .priority = 50, .space = hone_silu_mul_cuda_space,
     .heuristic = hone_silu_mul_cuda_heuristic, .code = &hone_silu_mul_vjp_cuda_code},
    {HONE_KERNEL, .algorithm = "silu_mul_vjp", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .is_reference = true, .run = hone_silu_mul_vjp_reference},
};

const hone_kernel_table hone_silu_mul_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
const hone_kernel_table hone_silu_mul_vjp_table = {
    &algorithm_vjp, kernels_vjp, sizeof kernels_vjp / sizeof *kernels_vjp};
