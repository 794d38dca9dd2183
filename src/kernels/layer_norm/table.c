// layer_norm: its signature, its kernels, and their cost model and heuristics.
#include "kernels/common/cuda.h"
#include "kernels/common/matrix.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/layer_norm/onednn.h"
#include "kernels/rivals/rivals.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"

static const char space[] = "rows_per_task: 1..256 *4 default 4\n" HONE_THREADS_SPACE;

static bool supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    return hone_last_axis_is_dense(call, LAYER_NORM_X, why) && hone_last_axis_is_dense(call, LAYER_NORM_Y, why);
}

static void model(const hone_call *call, hone_cost *out_cost)
{
    double elements = (double)hone_tensor_elements(hone_call_tensor(call, LAYER_NORM_X));
    out_cost->bytes = 2 * elements * hone_call_dtype(call, "T")->bits / 8.0;
    out_cost->operations = 6 * elements;
}

// A task is worth its overhead from about 64 KiB on.
static bool heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    int64_t dim = hone_dim_of(call, "dim"), bytes = hone_tensor_elements(hone_call_tensor(call, LAYER_NORM_X)) * 4;
    out_config->count = 2;
    out_config->values[LAYER_NORM_ROWS_PER_TASK] = hone_rows_per_task(dim * 4, 1 << 16, 256);
    out_config->values[LAYER_NORM_THREADS] = hone_threads_for(device, bytes >> 18);
    return true;
}

static bool onednn_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    hone_config own;
    heuristic(kernel, call, device, &own);
    out_config->count = 1;
    out_config->values[0] = own.values[LAYER_NORM_THREADS];
    return true;
}

#define SIGNATURE(DTYPES)                                                                                              \
    "layer_norm(x: T[..., dim], weight: W[dim]? = none, bias: B[dim]? = none, *, subtract_mean: bool = true, "         \
    "eps: f64 = 1e-6 #any, weight_offset: f64 = 0 #any) -> y: T[..., dim] "                                            \
    "where T in " DTYPES " where W in " DTYPES " where B in " DTYPES

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature = SIGNATURE(HONE_FLOATS_AND_F64),
    .reference = hone_layer_norm_reference,
    .tolerance = {.relative = 1e-5, .scale = 1},
    .model = model,
    .independent = "...",
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_INFINITY | HONE_SPECIAL_NAN | HONE_SPECIAL_EVERYWHERE,
};

#define NATIVE                                                                                                         \
    HONE_KERNEL, .algorithm = "layer_norm", .signature = SIGNATURE(HONE_FLOATS), .platform = HONE_NATIVE,              \
                 .backend = HONE_CPU, .space = space, .supports = supports, .heuristic = heuristic

static const hone_kernel kernels[] = {
    {NATIVE, .name = "avx512", .priority = 30, .run = hone_layer_norm_avx512,
     .needs = HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ},
    {NATIVE, .name = "avx2", .priority = 20, .run = hone_layer_norm_avx2,
     .needs = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C},
    {HONE_KERNEL, .algorithm = "layer_norm", .signature = SIGNATURE(HONE_FLOATS), .name = "onednn",
     .platform = HONE_NATIVE, .backend = HONE_CPU, .library = HONE_ONEDNN_SONAME, .priority = 15,
     .space = HONE_THREADS_SPACE, .supports = hone_layer_norm_onednn_supports, .heuristic = onednn_heuristic,
     .prepare = hone_layer_norm_onednn_prepare, .release = hone_onednn_release, .run = hone_layer_norm_onednn},
    {NATIVE, .name = "portable", .priority = 10, .run = hone_layer_norm_portable},
    {HONE_KERNEL, .algorithm = "layer_norm", .signature = SIGNATURE(HONE_FLOATS), .name = "cuda", .platform = HONE_CUDA,
     .backend = HONE_GPU, .priority = 50, .space = HONE_ROWS_CUDA_SPACE, .heuristic = hone_rows_cuda_wide_heuristic,
     .code = &hone_layer_norm_cuda_code},
    {HONE_KERNEL, .algorithm = "layer_norm", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .is_reference = true, .run = hone_layer_norm_reference},
};

const hone_kernel_table hone_layer_norm_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
