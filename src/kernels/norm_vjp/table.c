// rms_norm_vjp, add_rms_norm_vjp and layer_norm_vjp: their signatures, their kernels, and their cost models and
// heuristics.
#include "kernels/common/cuda.h"
#include "kernels/common/matrix.h"
#include "kernels/norm_vjp/norm_vjp.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"

#include <string.h>

static const char space[] = "parts: 1..64 *2 default 1\n" HONE_THREADS_SPACE "\n"
                            "where threads <= parts";

static bool supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    const hone_signature *signature = hone_call_signature(call);
    for (size_t i = 0; i < hone_signature_count(signature); i++) {
        const char *name = hone_signature_parameter(signature, i)->name;
        const bool is_vector = strstr(name, "weight") != NULL || strstr(name, "bias") != NULL; // an element at a time
        if (!is_vector && !hone_last_axis_is_dense(call, i, why)) return false;
    }
    return true;
}

// Counts x, d_y and d_x, and the other arrays of their shape.
static void count_work(const hone_call *call, double arrays, double operations, hone_cost *out_cost)
{
    double elements = (double)hone_tensor_elements(hone_call_tensor(call, 0));
    out_cost->bytes = arrays * elements * hone_call_dtype(call, "T")->bits / 8.0;
    out_cost->operations = operations * elements;
}

static void model(const hone_call *call, hone_cost *out_cost)
{
    count_work(call, 3, 11, out_cost);
}

static void add_model(const hone_call *call, hone_cost *out_cost)
{
    count_work(call, 4, 12, out_cost);
}

static void layer_model(const hone_call *call, hone_cost *out_cost)
{
    count_work(call, 3, 16, out_cost);
}

// A part for each thread, and a thread for each 256 KiB.
static bool heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    int64_t bytes = hone_tensor_elements(hone_call_tensor(call, 0)) * 8,
            threads = hone_threads_for(device, bytes >> 18);
    out_config->count = 2;
    out_config->values[NORM_VJP_PARTS] = threads;
    out_config->values[NORM_VJP_THREADS] = threads;
    return true;
}

// If less than a quarter of the squares of g is left in d_x, a kernel computes in double. Otherwise the largest element
// of the result is at least half of the root of mean(g^2), times f, and the error of an element is about three
// roundings of f g: four eps of the largest element are enough in rows of 16 and more. The sums of columns have the
// error of a block of 64 rows in floats. The tolerance of 16-bit floats is also four of their eps: only the last
// rounding contributes half of one.
#define RULES                                                                                                          \
    .tolerance = {.relative = 1e-5, .scale = 4},                                                                       \
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_INFINITY | HONE_SPECIAL_NAN | HONE_SPECIAL_EVERYWHERE

#define SIGNATURE(DTYPES)                                                                                              \
    "rms_norm_vjp(x: T[..., dim], weight: T[dim], d_y: T[..., dim], *, eps: f64 = 1e-6 #any) -> "                      \
    "(d_x: T[..., dim], d_weight: T[dim]) where T in " DTYPES

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature = SIGNATURE(HONE_FLOATS_AND_F64),
    .reference = hone_rms_norm_vjp_reference,
    .model = model,
    RULES,
};

#define ADD_SIGNATURE(DTYPES)                                                                                          \
    "add_rms_norm_vjp(sum: T[..., dim], weight: T[dim], d_sum: T[..., dim], d_y: T[..., dim], *, "                     \
    "eps: f64 = 1e-6 #any) -> (d_x: T[..., dim], d_weight: T[dim]) where T in " DTYPES

static const hone_algorithm add_algorithm = {
    .struct_size = sizeof add_algorithm,
    .signature = ADD_SIGNATURE(HONE_FLOATS_AND_F64),
    .reference = hone_add_rms_norm_vjp_reference,
    .model = add_model,
    RULES,
};

#define LAYER_SIGNATURE(DTYPES)                                                                                        \
    "layer_norm_vjp(x: T[..., dim], d_y: T[..., dim], weight: W[dim]? = none, *, subtract_mean: bool = true, "         \
    "eps: f64 = 1e-6 #any, weight_offset: f64 = 0 #any) -> "                                                           \
    "(d_x: T[..., dim], d_weight: f32[dim], d_bias: f32[dim]) "                                                        \
    "where T in " DTYPES " where W in " DTYPES

static const hone_algorithm layer_algorithm = {
    .struct_size = sizeof layer_algorithm,
    .signature = LAYER_SIGNATURE(HONE_FLOATS_AND_F64),
    .reference = hone_layer_norm_vjp_reference,
    .model = layer_model,
    RULES,
};

#define AVX512 (HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ)
#define AVX2   (HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C)
#define NATIVE(ALGORITHM, OWN)                                                                                         \
    HONE_KERNEL, .algorithm = ALGORITHM, .signature = OWN(HONE_FLOATS), .platform = HONE_NATIVE, .backend = HONE_CPU,  \
                 .space = space, .supports = supports, .heuristic = heuristic
#define KERNELS(ALGORITHM, OWN, NAME, X)                                                                               \
    {                                                                                                                  \
        {NATIVE(ALGORITHM, OWN), .name = "avx512", .priority = 30, .needs = AVX512, .run = NAME##_avx512},             \
            {NATIVE(ALGORITHM, OWN), .name = "avx2", .priority = 20, .needs = AVX2, .run = NAME##_avx2},               \
            {NATIVE(ALGORITHM, OWN), .name = "portable", .priority = 10, .run = NAME##_portable},                      \
            {HONE_KERNEL,                                                                                              \
             .algorithm = ALGORITHM,                                                                                   \
             .signature = OWN(HONE_FLOATS),                                                                            \
             .name = "cuda",                                                                                           \
             .platform = HONE_CUDA,                                                                                    \
             .backend = HONE_GPU,                                                                                      \
             .priority = 50,                                                                                           \
             .space = X##_cuda_space,                                                                                  \
             .heuristic = hone_norm_vjp_cuda_heuristic,                                                                \
             .code = &NAME##_cuda_code},                                                                               \
            {HONE_KERNEL,         .algorithm = ALGORITHM, .name = "reference",    .platform = HONE_NATIVE,             \
             .backend = HONE_CPU, .is_reference = true,   .run = NAME##_reference},                                    \
    }

static const hone_kernel kernels[] = KERNELS("rms_norm_vjp", SIGNATURE, hone_rms_norm_vjp, hone_rms_norm_vjp);
static const hone_kernel add_kernels[] =
    KERNELS("add_rms_norm_vjp", ADD_SIGNATURE, hone_add_rms_norm_vjp, hone_add_rms_norm_vjp);
static const hone_kernel layer_kernels[] =
    KERNELS("layer_norm_vjp", LAYER_SIGNATURE, hone_layer_norm_vjp, hone_rms_norm_vjp);

const hone_kernel_table hone_rms_norm_vjp_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
const hone_kernel_table hone_add_rms_norm_vjp_table = {
    &add_algorithm, add_kernels, sizeof add_kernels / sizeof *add_kernels};
const hone_kernel_table hone_layer_norm_vjp_table = {
    &layer_algorithm, layer_kernels, sizeof layer_kernels / sizeof *layer_kernels};
