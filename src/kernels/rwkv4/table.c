// rwkv4: its signature and its kernels, under the name and with the parameters that it has in ejkernel.
#include "kernels/common/cuda.h"
#include "kernels/rwkv4/rwkv4.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"

static const char space[] = "vectors: 1 | 2 | 3 | 4 default 2\n" HONE_THREADS_SPACE;

static bool supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    for (size_t i = 0; i <= RWKV4_WKV; i++)
        if (!hone_last_axis_is_dense(call, i, why)) return false;
    return true;
}

static void model(const hone_call *call, hone_cost *out_cost)
{
    double elements = (double)hone_tensor_elements(hone_call_tensor(call, RWKV4_K));
    out_cost->bytes = 3 * elements * hone_call_dtype(call, "T")->bits / 8.0;
    out_cost->operations = 18 * elements; // an exponential counted as one
}

static bool heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    out_config->count = 2;
    out_config->values[RWKV4_VECTORS] = 2;
    out_config->values[RWKV4_THREADS] =
        hone_threads_for(device, hone_tensor_elements(hone_call_tensor(call, RWKV4_K)) >> 14);
    return true;
}

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature = "rwkv4(w: W[chans], u: W[chans], k: T[batch, seq_len, chans], v: T[batch, seq_len, chans], "
                 "state: f32[batch, 3, chans]? = none ~ uniform(0, 1)) -> wkv: T[batch, seq_len, chans] "
                 "where W in f32, f16, bf16 where T in f32, f16, bf16",
    .reference = hone_rwkv4_reference,
    .tolerance = {.absolute = 2e-5, .scale = 1},
    .model = model,
    .independent = "batch chans",
};

#define NATIVE                                                                                                         \
    HONE_KERNEL, .algorithm = "rwkv4", .platform = HONE_NATIVE, .backend = HONE_CPU, .space = space,                   \
                 .supports = supports, .heuristic = heuristic

static const hone_kernel kernels[] = {
    {NATIVE, .name = "avx512", .priority = 30, .run = hone_rwkv4_avx512,
     .needs = HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ},
    {NATIVE, .name = "avx2", .priority = 20, .run = hone_rwkv4_avx2,
     .needs = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C},
    {NATIVE, .name = "portable", .priority = 10, .run = hone_rwkv4_portable},
    {HONE_KERNEL, .algorithm = "rwkv4", .name = "cuda", .platform = HONE_CUDA, .backend = HONE_GPU, .priority = 50,
     .space = hone_rwkv4_cuda_space, .code = &hone_rwkv4_cuda_code},
    {HONE_KERNEL, .algorithm = "rwkv4", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .is_reference = true, .run = hone_rwkv4_reference},
};

const hone_kernel_table hone_rwkv4_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
