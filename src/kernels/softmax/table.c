// softmax: its signature, its kernels, and their cost model and heuristics.
#include "kernels/common/cuda.h"
#include "kernels/common/matrix.h"
#include "kernels/rivals/rivals.h"
#include "kernels/softmax/onednn.h"
#include "kernels/softmax/softmax.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"

#include <math.h>

static const char space[] = "method: buffered | recomputed | online\n"
                            "unroll: 1..4 *2 default 4\n"
                            "rows_per_task: 1..256 *4 default 4\n"
                            "store: cached | streamed\n" HONE_THREADS_SPACE;

static bool has_scale(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    double scale = hone_number_of(&hone_call_values(call)[SOFTMAX_SCALE], 1);
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
    return has_scale(kernel, call, why) && hone_last_axis_is_dense(call, SOFTMAX_X, why) &&
           hone_last_axis_is_dense(call, SOFTMAX_Y, why);
}

static void model(const hone_call *call, hone_cost *out_cost)
{
    double elements = (double)hone_tensor_elements(hone_call_tensor(call, SOFTMAX_X));
    out_cost->bytes = 2 * elements * hone_call_dtype(call, "T")->bits / 8.0;
    out_cost->operations = 5 * elements; // counts an exponential as one
}

// A task is worth its overhead from about 32 KiB on; results that exceed the last cache are stored past it.
static bool heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    int64_t dim = hone_dim_of(call, "dim"), bytes = hone_tensor_elements(hone_call_tensor(call, SOFTMAX_X)) * 4;
    out_config->count = 5;
    out_config->values[SOFTMAX_METHOD] = SOFTMAX_BUFFERED;
    out_config->values[SOFTMAX_UNROLL] = 4;
    out_config->values[SOFTMAX_ROWS_PER_TASK] = hone_rows_per_task(dim * 4, 1 << 15, 256);
    out_config->values[SOFTMAX_STORE] = hone_exceeds_cache(device, bytes);
    out_config->values[SOFTMAX_THREADS] = hone_threads_for(device, bytes >> 17);
    return true;
}

static bool onednn_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    out_config->count = 1;
    out_config->values[0] = hone_threads_for(device, hone_tensor_elements(hone_call_tensor(call, SOFTMAX_X)) >> 15);
    return true;
}

#define SIGNATURE(DTYPES) "softmax(x: T[..., dim], *, scale: f64 = 1.0 #any) -> y: T[..., dim] where T in " DTYPES

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature = SIGNATURE(HONE_FLOATS_AND_F64),
    .reference = hone_softmax_reference,
    .tolerance = {.relative = 1e-5, .scale = 1},
    .model = model,
    .independent = "...",
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_LOWEST | HONE_SPECIAL_MINUS_INFINITY,
};

static const hone_kernel kernels[] = {
    {HONE_KERNEL, .algorithm = "softmax", .signature = SIGNATURE(HONE_FLOATS), .name = "avx512",
     .platform = HONE_NATIVE, .backend = HONE_CPU, .priority = 30,
     .needs = HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ, .space = space,
     .supports = supports, .heuristic = heuristic, .run = hone_softmax_avx512},
    {HONE_KERNEL, .algorithm = "softmax", .signature = SIGNATURE(HONE_FLOATS), .name = "avx2", .platform = HONE_NATIVE,
     .backend = HONE_CPU, .priority = 20, .needs = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C, .space = space,
     .supports = supports, .heuristic = heuristic, .run = hone_softmax_avx2},
    {HONE_KERNEL, .algorithm = "softmax", .signature = SIGNATURE(HONE_FLOATS), .name = "onednn",
     .platform = HONE_NATIVE, .backend = HONE_CPU, .library = HONE_ONEDNN_SONAME, .priority = 15,
     .space = HONE_THREADS_SPACE, .supports = hone_softmax_onednn_supports, .heuristic = onednn_heuristic,
     .prepare = hone_softmax_onednn_prepare, .release = hone_onednn_release, .run = hone_softmax_onednn},
    {HONE_KERNEL, .algorithm = "softmax", .signature = SIGNATURE(HONE_FLOATS), .name = "portable",
     .platform = HONE_NATIVE, .backend = HONE_CPU, .priority = 10, .space = space, .supports = supports,
     .heuristic = heuristic, .run = hone_softmax_portable},
    {HONE_KERNEL, .algorithm = "softmax", .signature = SIGNATURE(HONE_FLOATS), .name = "cuda", .platform = HONE_CUDA,
     .backend = HONE_GPU, .priority = 50, .space = HONE_ROWS_CUDA_SPACE, .supports = has_scale,
     .heuristic = hone_rows_cuda_heuristic, .code = &hone_softmax_cuda_code},
    {HONE_KERNEL, .algorithm = "softmax", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .is_reference = true, .run = hone_softmax_reference},
};

const hone_kernel_table hone_softmax_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
