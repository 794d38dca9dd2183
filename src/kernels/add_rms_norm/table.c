// add_rms_norm: its signature, its kernels, and their cost model and heuristics.
#include "kernels/add_rms_norm/add_rms_norm.h"
#include "kernels/common/cuda.h"
#include "kernels/common/matrix.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"

static bool supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    for (size_t i = ADD_RMS_NORM_X; i <= ADD_RMS_NORM_Y; i++)
        if (!hone_last_axis_is_dense(call, i, why)) return false;
    return true;
}

static void model(const hone_call *call, hone_cost *out_cost)
{
    double elements = (double)hone_tensor_elements(hone_call_tensor(call, ADD_RMS_NORM_X));
    double size = hone_call_dtype(call, "T")->bits / 8.0;
    out_cost->bytes = (4 * elements + (double)hone_dim_of(call, "dim")) * size;
    out_cost->operations = 5 * elements;
}

static bool heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    hone_rms_norm_config(hone_call_tensor(call, ADD_RMS_NORM_X), 8, device, out_config); // x and the residual
    return true;
}

// The sum of two floats is computed in double and rounded, so all kernels have the same sum, and y has the error of
// rms_norm. A foreign kernel that normalises the sum before it is rounded has half an eps of y more: one eps in all.
#define SIGNATURE(DTYPES)                                                                                              \
    "add_rms_norm(x: T[..., dim], residual: T[..., dim], weight: T[dim], *, eps: f64 = 1e-6 #any) -> "                 \
    "(sum: T[..., dim], y: T[..., dim]) where T in " DTYPES

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature = SIGNATURE(HONE_FLOATS_AND_F64),
    .reference = hone_add_rms_norm_reference,
    .tolerance = {.relative = 1e-5, .scale = 1},
    .model = model,
    .independent = "...",
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_INFINITY | HONE_SPECIAL_NAN | HONE_SPECIAL_EVERYWHERE,
};

#define NATIVE                                                                                                         \
    HONE_KERNEL, .algorithm = "add_rms_norm", .signature = SIGNATURE(HONE_FLOATS), .platform = HONE_NATIVE,            \
                 .backend = HONE_CPU, .space = hone_rms_norm_space, .supports = supports, .heuristic = heuristic

static const hone_kernel kernels[] = {
    {NATIVE, .name = "avx512", .priority = 30, .run = hone_add_rms_norm_avx512,
     .needs = HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ},
    {NATIVE, .name = "avx2", .priority = 20, .run = hone_add_rms_norm_avx2,
     .needs = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C},
    {NATIVE, .name = "portable", .priority = 10, .run = hone_add_rms_norm_portable},
    {HONE_KERNEL, .algorithm = "add_rms_norm", .signature = SIGNATURE(HONE_FLOATS), .name = "xla", .platform = HONE_XLA,
     .backend = HONE_CPU, .priority = 5, .space = hone_add_rms_norm_xla_space, .code = &hone_add_rms_norm_xla_code},
    {HONE_KERNEL, .algorithm = "add_rms_norm", .signature = SIGNATURE(HONE_FLOATS), .name = "cuda",
     .platform = HONE_CUDA, .backend = HONE_GPU, .priority = 50, .space = HONE_ROWS_CUDA_SPACE,
     .heuristic = hone_rms_rows_cuda_heuristic, .code = &hone_add_rms_norm_cuda_code},
    {HONE_KERNEL, .algorithm = "add_rms_norm", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .is_reference = true, .run = hone_add_rms_norm_reference},
};

const hone_kernel_table hone_add_rms_norm_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
