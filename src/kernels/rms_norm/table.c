// rms_norm: its signature, its kernels, and their cost model and heuristics.
#include "kernels/common/cuda.h"
#include "kernels/common/matrix.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"

const char hone_rms_norm_space[] = "unroll: 1..8 *2 default 4\n"
                                   "rows_per_task: 1..256 *4 default 4\n"
                                   "store: cached | streamed\n" HONE_THREADS_SPACE;

static bool supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    return hone_last_axis_is_dense(call, RMS_NORM_X, why) && hone_last_axis_is_dense(call, RMS_NORM_WEIGHT, why) &&
           hone_last_axis_is_dense(call, RMS_NORM_Y, why);
}

static void model(const hone_call *call, hone_cost *out_cost)
{
    double elements = (double)hone_tensor_elements(hone_call_tensor(call, RMS_NORM_X));
    double size = hone_call_dtype(call, "T")->bits / 8.0;
    out_cost->bytes = (2 * elements + (double)hone_dim_of(call, "dim")) * size;
    out_cost->operations = 4 * elements;
}

// A task is worth its overhead from about 64 KiB on, and a thread from about 5 us, the time for 32768 elements. Results
// that exceed the last cache are stored past it.
void hone_rms_norm_config(
    const hone_tensor *x, int64_t element_bytes, const hone_device_info *device, hone_config *out_config)
{
    int64_t dim = x->shape[x->ndim - 1], bytes = hone_tensor_elements(x) * element_bytes;
    out_config->count = 4;
    out_config->values[RMS_NORM_UNROLL] = 4;
    out_config->values[RMS_NORM_ROWS_PER_TASK] = hone_rows_per_task(dim * element_bytes, 1 << 16, 256);
    out_config->values[RMS_NORM_STORE] = hone_exceeds_cache(device, bytes);
    out_config->values[RMS_NORM_THREADS] = hone_threads_for(device, hone_tensor_elements(x) >> 15);
}

static bool heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    hone_rms_norm_config(hone_call_tensor(call, RMS_NORM_X), 4, device, out_config);
    return true;
}

#define SIGNATURE(DTYPES)                                                                                              \
    "rms_norm(x: T[..., dim], weight: T[dim], *, eps: f64 = 1e-6 #any) -> y: T[..., dim] where T in " DTYPES

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature = SIGNATURE(HONE_FLOATS_AND_F64),
    .reference = hone_rms_norm_reference,
    .tolerance = {.relative = 1e-5, .scale = 1},
    .model = model,
    .independent = "...",
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_INFINITY | HONE_SPECIAL_NAN | HONE_SPECIAL_EVERYWHERE,
};

static const hone_kernel kernels[] = {
    {HONE_KERNEL, .algorithm = "rms_norm", .signature = SIGNATURE(HONE_FLOATS), .name = "avx512",
     .platform = HONE_NATIVE, .backend = HONE_CPU, .priority = 30,
     .needs = HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ,
     .space = hone_rms_norm_space, .supports = supports, .heuristic = heuristic, .run = hone_rms_norm_avx512},
    {HONE_KERNEL, .algorithm = "rms_norm", .signature = SIGNATURE(HONE_FLOATS), .name = "avx2", .platform = HONE_NATIVE,
     .backend = HONE_CPU, .priority = 20, .needs = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C,
     .space = hone_rms_norm_space, .supports = supports, .heuristic = heuristic, .run = hone_rms_norm_avx2},
    {HONE_KERNEL, .algorithm = "rms_norm", .signature = SIGNATURE(HONE_FLOATS), .name = "portable",
     .platform = HONE_NATIVE, .backend = HONE_CPU, .priority = 10, .space = hone_rms_norm_space, .supports = supports,
     .heuristic = heuristic, .run = hone_rms_norm_portable},
    {HONE_KERNEL, .algorithm = "rms_norm", .signature = SIGNATURE(HONE_FLOATS), .name = "cuda", .platform = HONE_CUDA,
     .backend = HONE_GPU, .priority = 50, .space = hone_rms_norm_cuda_space, .heuristic = hone_rms_rows_cuda_heuristic,
     .code = &hone_rms_norm_cuda_code},
    {HONE_KERNEL, .algorithm = "rms_norm", .signature = SIGNATURE(HONE_FLOATS), .name = "opencl",
     .platform = HONE_OPENCL, .backend = HONE_ANY, .priority = 50, .space = hone_rms_norm_opencl_space,
     .code = &hone_rms_norm_opencl_code},
    {HONE_KERNEL, .algorithm = "rms_norm", .signature = SIGNATURE(HONE_FLOATS), .name = "xla", .platform = HONE_XLA,
     .backend = HONE_GPU, .priority = 40, .code = &hone_rms_norm_xla_gpu_code},
    {HONE_KERNEL, .algorithm = "rms_norm", .signature = SIGNATURE(HONE_FLOATS), .name = "xla", .platform = HONE_XLA,
     .backend = HONE_CPU, .priority = 5, .space = hone_rms_norm_xla_cpu_space, .code = &hone_rms_norm_xla_cpu_code},
    {HONE_KERNEL, .algorithm = "rms_norm", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .is_reference = true, .run = hone_rms_norm_reference},
};

const hone_kernel_table hone_rms_norm_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
