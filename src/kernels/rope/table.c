// rope and rope_vjp: their signatures, their kernels, and their cost models and heuristics.
#include "kernels/common/cuda.h"
#include "kernels/common/matrix.h"
#include "kernels/rope/rope.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"

static const char space[] = "tokens_per_task: 1..256 *4 default 4\n"
                            "store: cached | streamed\n" HONE_THREADS_SPACE;

static bool supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    for (size_t i = ROPE_X; i <= ROPE_Y; i++)
        if (!hone_last_axis_is_dense(call, i, why)) return false;
    return true;
}

static void model(const hone_call *call, hone_cost *out_cost)
{
    double elements = (double)hone_tensor_elements(hone_call_tensor(call, ROPE_X));
    double angles = 2.0 * (double)hone_tensor_elements(hone_call_tensor(call, ROPE_COS));
    out_cost->bytes =
        (2 * elements * hone_call_dtype(call, "T")->bits + angles * hone_call_dtype(call, "C")->bits) / 8.0;
    double dim = (double)hone_dim_of(call, "dim");
    out_cost->operations = dim > 0 ? 6 * elements / dim * (double)hone_dim_of(call, "half") : 0;
}

// A task is worth its overhead from about 64 KiB on; results that exceed the last cache are stored past it.
static bool heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    int64_t token = hone_dim_of(call, "heads") * hone_dim_of(call, "dim") * 4;
    int64_t bytes = hone_tensor_elements(hone_call_tensor(call, ROPE_X)) * 4;
    out_config->count = 3;
    out_config->values[ROPE_TOKENS_PER_TASK] = hone_rows_per_task(token, 1 << 16, 256);
    out_config->values[ROPE_STORE] = hone_exceeds_cache(device, bytes);
    out_config->values[ROPE_THREADS] = hone_threads_for(device, bytes >> 18);
    return true;
}

// An element is a cos - b sin with two products and a sum that round, by half an eps of |a cos| + |b sin| and of the
// element in f32. By Cauchy |a cos| + |b sin| <= |(a, b)| |(cos, sin)|, which is the length of the pair that comes out and
// so at most sqrt(2) times its larger element: .71 eps of the largest element of the output, and the rounding of its own.
#define SIGNATURE(DTYPES)                                                                                              \
    "rope(x: T[..., seq, heads, dim], cos: C[seq, half] ~ uniform(-1, 1), "                                            \
    "sin: C[seq, half] ~ uniform(-1, 1), *, interleaved: bool = false) -> y: T[..., seq, heads, dim] "                 \
    "where T in " DTYPES " where C in " DTYPES " where 2 * half <= dim"

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature = SIGNATURE(HONE_FLOATS_AND_F64),
    .reference = hone_rope_reference,
    .tolerance = {.relative = 1e-5, .scale = 1},
    .model = model,
    .independent = "...",
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_INFINITY | HONE_SPECIAL_NAN | HONE_SPECIAL_EVERYWHERE,
};

// The same as rope: rotating back has the same error.
#define SIGNATURE_VJP(DTYPES)                                                                                          \
    "rope_vjp(d_y: T[..., seq, heads, dim], cos: C[seq, half] ~ uniform(-1, 1), "                                      \
    "sin: C[seq, half] ~ uniform(-1, 1), *, interleaved: bool = false) -> d_x: T[..., seq, heads, dim] "               \
    "where T in " DTYPES " where C in " DTYPES " where 2 * half <= dim"

static const hone_algorithm algorithm_vjp = {
    .struct_size = sizeof algorithm_vjp,
    .signature = SIGNATURE_VJP(HONE_FLOATS_AND_F64),
    .reference = hone_rope_vjp_reference,
    .tolerance = {.relative = 1e-5, .scale = 1},
    .model = model,
    .independent = "...",
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_INFINITY | HONE_SPECIAL_NAN | HONE_SPECIAL_EVERYWHERE,
};

#define AVX512 (HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ)
#define AVX2   (HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C)
#define NATIVE(ALGORITHM, OWN)                                                                                         \
    HONE_KERNEL, .algorithm = ALGORITHM, .signature = OWN(HONE_FLOATS), .platform = HONE_NATIVE, .backend = HONE_CPU,  \
                 .space = space, .supports = supports, .heuristic = heuristic

static const hone_kernel kernels[] = {
    {NATIVE("rope", SIGNATURE), .name = "avx512", .priority = 30, .needs = AVX512, .run = hone_rope_avx512},
    {NATIVE("rope", SIGNATURE), .name = "avx2", .priority = 20, .needs = AVX2, .run = hone_rope_avx2},
    {NATIVE("rope", SIGNATURE), .name = "portable", .priority = 10, .run = hone_rope_portable},
    {HONE_KERNEL, .algorithm = "rope", .signature = SIGNATURE(HONE_FLOATS), .name = "cuda", .platform = HONE_CUDA,
     .backend = HONE_GPU, .priority = 50, .space = hone_rope_cuda_space, .heuristic = hone_rope_cuda_heuristic,
     .code = &hone_rope_cuda_code},
    {HONE_KERNEL, .algorithm = "rope", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .is_reference = true, .run = hone_rope_reference},
};

static const hone_kernel kernels_vjp[] = {
    {NATIVE("rope_vjp", SIGNATURE_VJP), .name = "avx512", .priority = 30, .needs = AVX512, .run = hone_rope_vjp_avx512},
    {NATIVE("rope_vjp", SIGNATURE_VJP), .name = "avx2", .priority = 20, .needs = AVX2, .run = hone_rope_vjp_avx2},
    {NATIVE("rope_vjp", SIGNATURE_VJP), .name = "portable", .priority = 10, .run = hone_rope_vjp_portable},
    {HONE_KERNEL, .algorithm = "rope_vjp", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .is_reference = true, .run = hone_rope_vjp_reference},
};

const hone_kernel_table hone_rope_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
const hone_kernel_table hone_rope_vjp_table = {&algorithm_vjp, kernels_vjp, sizeof kernels_vjp / sizeof *kernels_vjp};
