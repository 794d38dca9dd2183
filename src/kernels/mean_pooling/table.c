// mean_pooling: its signature and its kernels, under the name and with the parameters that it has in ejkernel.
#include "kernels/common/cuda.h"
#include "kernels/mean_pooling/mean_pooling.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"

static const char space[] = "channels: 64..4096 *4 default 1024\n"
                            "rows: 1..8 *2 default 4\n" HONE_THREADS_SPACE;

static bool supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    return hone_last_axis_is_dense(call, MEAN_POOLING_X, why) && hone_last_axis_is_dense(call, MEAN_POOLING_OUT, why);
}

static void model(const hone_call *call, hone_cost *out_cost)
{
    double elements = (double)hone_tensor_elements(hone_call_tensor(call, MEAN_POOLING_X));
    double results = (double)hone_tensor_elements(hone_call_tensor(call, MEAN_POOLING_OUT));
    out_cost->bytes = (elements + results) * hone_call_dtype(call, "T")->bits / 8.0;
    out_cost->operations = elements + results;
}

static bool heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    int64_t batch = hone_dim_of(call, "batch"), channels = hone_dim_of(call, "hidden_dim"), block = 4096;
    int64_t threads = hone_threads_for(device, hone_tensor_elements(hone_call_tensor(call, MEAN_POOLING_X)) >> 16);
    while (block > 64 && batch * ((channels + block - 1) / block) < threads)
        block /= 4;
    // EPYC, Zen 3: eight rows at a time take .86 to .95 of the time of four in f32, .99 and 1.09 if numbers are
    // widened. With AVX-512 both take the same time (EPYC, Zen 5), so four are used.
    const bool takes_eight =
        hone_call_tensor(call, MEAN_POOLING_X)->dtype.bits >= 32 && (kernel->needs & HONE_CPU_AVX512F) == 0;
    out_config->count = 3;
    out_config->values[MEAN_POOLING_CHANNELS] = block;
    out_config->values[MEAN_POOLING_ROWS] = takes_eight ? 8 : 4;
    out_config->values[MEAN_POOLING_THREADS] = threads;
    return true;
}

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature = "mean_pooling(x: T[batch, seq_len, hidden_dim], *, chunk_size: i64 = 32) -> out: T[batch, hidden_dim] "
                 "where T in f32, f16, bf16",
    .reference = hone_mean_pooling_reference,
    .tolerance = {.absolute = 2e-6, .scale = 1},
    .model = model,
    .independent = "batch hidden_dim",
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_MINUS_INFINITY | HONE_SPECIAL_INFINITY | HONE_SPECIAL_NAN,
};

#define NATIVE                                                                                                         \
    HONE_KERNEL, .algorithm = "mean_pooling", .platform = HONE_NATIVE, .backend = HONE_CPU, .space = space,            \
                 .supports = supports, .heuristic = heuristic

static const hone_kernel kernels[] = {
    {NATIVE, .name = "avx512", .priority = 30, .run = hone_mean_pooling_avx512,
     .needs = HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ},
    {NATIVE, .name = "avx2", .priority = 20, .run = hone_mean_pooling_avx2,
     .needs = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C},
    {NATIVE, .name = "portable", .priority = 10, .run = hone_mean_pooling_portable},
    {HONE_KERNEL, .algorithm = "mean_pooling", .name = "cuda", .platform = HONE_CUDA, .backend = HONE_GPU,
     .priority = 50, .space = hone_mean_pooling_cuda_space, .heuristic = hone_mean_pooling_cuda_heuristic,
     .code = &hone_mean_pooling_cuda_code},
    {HONE_KERNEL, .algorithm = "mean_pooling", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .is_reference = true, .run = hone_mean_pooling_reference},
};

const hone_kernel_table hone_mean_pooling_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
