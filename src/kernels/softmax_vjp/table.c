// softmax_vjp: its signature, its kernels, and their cost model and heuristics.
#include "kernels/common/cuda.h"
#include "kernels/common/matrix.h"
#include "kernels/softmax/softmax.h"
#include "kernels/softmax_vjp/softmax_vjp.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"

#include <math.h>

static const char space[] = "unroll: 1..4 *2 default 2\n"
                            "rows_per_task: 1..256 *4 default 4\n"
                            "store: cached | streamed\n" HONE_THREADS_SPACE;

static bool has_scale(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    double scale = hone_number_of(&hone_call_values(call)[SOFTMAX_VJP_SCALE], 1);
    if (!(fabs(scale) <= SOFTMAX_MOST_SCALE)) {
        hone_fail(
            why, HONE_UNSUPPORTED, "kernels",
            "scale is %g; this kernel asks for a magnitude of at most %g, as f32 has it", scale, SOFTMAX_MOST_SCALE);
        return false;
    }
    return true;
}

static bool supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    if (!has_scale(kernel, call, why)) return false;
    for (size_t i = SOFTMAX_VJP_Y; i <= SOFTMAX_VJP_D_X; i++)
        if (!hone_last_axis_is_dense(call, i, why)) return false;
    return true;
}

static void model(const hone_call *call, hone_cost *out_cost)
{
    double elements = (double)hone_tensor_elements(hone_call_tensor(call, SOFTMAX_VJP_Y));
    out_cost->bytes = 3 * elements * hone_call_dtype(call, "T")->bits / 8.0;
    out_cost->operations = 5 * elements;
}

// A task is worth its overhead from about 64 KiB on; results that exceed the last cache are stored past it.
static bool heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    int64_t dim = hone_dim_of(call, "dim"), bytes = hone_tensor_elements(hone_call_tensor(call, SOFTMAX_VJP_Y)) * 8;
    out_config->count = 4;
    out_config->values[SOFTMAX_VJP_UNROLL] = 2;
    out_config->values[SOFTMAX_VJP_ROWS_PER_TASK] = hone_rows_per_task(dim * 8, 1 << 16, 256);
    out_config->values[SOFTMAX_VJP_STORE] = hone_exceeds_cache(device, bytes);
    out_config->values[SOFTMAX_VJP_THREADS] = hone_threads_for(device, bytes >> 18);
    return true;
}

// An element is y (d - s) scale: the products round by half an eps of it, the difference by half an eps of |d| + |s|. y
// |d| is at most the largest element of the result as long as y is spread over the row, as it is in generated rows of
// 16 and more; shorter ones are computed in double. s is a sum of products in f32 whose error is some eps of sum(|y
// d|). Elements of y are generated so that a row sums to 1.
#define SIGNATURE(DTYPES)                                                                                              \
    "softmax_vjp(y: T[..., dim] ~ uniform(0, 2.0 / max(dim, 1)), d_y: T[..., dim], *, "                                \
    "scale: f64 = 1.0 #any) -> d_x: T[..., dim] where T in " DTYPES

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature = SIGNATURE(HONE_FLOATS_AND_F64),
    .reference = hone_softmax_vjp_reference,
    .tolerance = {.relative = 1e-5, .scale = 1},
    .model = model,
    .independent = "...",
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_INFINITY | HONE_SPECIAL_NAN,
};

#define NATIVE                                                                                                         \
    HONE_KERNEL, .algorithm = "softmax_vjp", .signature = SIGNATURE(HONE_FLOATS), .platform = HONE_NATIVE,             \
                 .backend = HONE_CPU, .space = space, .supports = supports, .heuristic = heuristic

static const hone_kernel kernels[] = {
    {NATIVE, .name = "avx512", .priority = 30, .run = hone_softmax_vjp_avx512,
     .needs = HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ},
    {NATIVE, .name = "avx2", .priority = 20, .run = hone_softmax_vjp_avx2,
     .needs = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C},
    {NATIVE, .name = "portable", .priority = 10, .run = hone_softmax_vjp_portable},
    {HONE_KERNEL, .algorithm = "softmax_vjp", .signature = SIGNATURE(HONE_FLOATS), .name = "cuda",
     .platform = HONE_CUDA, .backend = HONE_GPU, .priority = 50, .space = HONE_ROWS_CUDA_SPACE_OF("y"),
     .supports = has_scale, .heuristic = hone_rows_cuda_heuristic, .code = &hone_softmax_vjp_cuda_code},
    {HONE_KERNEL, .algorithm = "softmax_vjp", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .is_reference = true, .run = hone_softmax_vjp_reference},
};

const hone_kernel_table hone_softmax_vjp_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
