// reduction: its signature, its kernels, and their cost model and heuristics.
#include "kernels/reduction/reduction.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"

static const char space[] = "unroll: 1..8 *2 default 4\n"
                            "rows: 1 | 2 | 4\n"
                            "rows_per_task: 1..64 *4 default 4\n"
                            "block: 256..16384 *4 default 256\n"
                            "prefetch: 0 | 256 | 1024 | 4096\n" HONE_THREADS_SPACE "\n"
                            "where rows <= rows_per_task\n"
                            "where block == 256 or block < 4 * length";

static bool supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    return hone_last_axis_is_dense(call, REDUCTION_X, why);
}

static void model(const hone_call *call, hone_cost *out_cost)
{
    double elements = (double)hone_tensor_elements(hone_call_tensor(call, REDUCTION_X));
    out_cost->bytes = 4 * (elements + (double)hone_dim_of(call, "count"));
    out_cost->operations = elements;
}

// A task is worth its overhead from about 64 KiB on. Four rows at a time overlap the latencies of their sums (EPYC, Zen
// 3: .71 to .97 of the time of one, and 1.08 if rows have 300 elements). With AVX-512 this pays from some MB on (EPYC,
// Zen 5: .86 to .99 of the time beyond 8 MB, 1.68 for 1 MB).
static bool heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    int64_t length = hone_dim_of(call, "length"), count = hone_dim_of(call, "count");
    int64_t block = 256, rows_per_task = hone_rows_per_task(length * 4, 1 << 16, 64);
    while (block < 4096 && block < length)
        block *= 4;
    const bool hides = (kernel->needs & HONE_CPU_AVX512F) == 0 || count * length * 4 > 8 << 20;
    out_config->count = 6;
    out_config->values[REDUCTION_UNROLL] = 4;
    out_config->values[REDUCTION_ROWS] = hides && rows_per_task >= 4 ? 4 : 1;
    out_config->values[REDUCTION_ROWS_PER_TASK] = rows_per_task;
    out_config->values[REDUCTION_BLOCK] = block;
    out_config->values[REDUCTION_PREFETCH] = 0;
    out_config->values[REDUCTION_THREADS] = hone_threads_for(device, (count * length) >> 16);
    return true;
}

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature = "reduction(x: f32[count, length]) -> y: f32[count]",
    .reference = hone_reduction_reference,
    .tolerance = {.relative = 1e-5, .scale = 256},
    .model = model,
    .independent = "count",
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_MINUS_INFINITY | HONE_SPECIAL_INFINITY | HONE_SPECIAL_NAN,
};

#define NATIVE                                                                                                         \
    HONE_KERNEL, .algorithm = "reduction", .platform = HONE_NATIVE, .backend = HONE_CPU, .space = space,               \
                 .supports = supports, .heuristic = heuristic

static const hone_kernel kernels[] = {
    {NATIVE, .name = "avx512", .priority = 30, .run = hone_reduction_avx512,
     .needs = HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ},
    {NATIVE, .name = "avx2", .priority = 20, .run = hone_reduction_avx2,
     .needs = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C},
    {NATIVE, .name = "portable", .priority = 10, .run = hone_reduction_portable},
    {HONE_KERNEL, .algorithm = "reduction", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .is_reference = true, .run = hone_reduction_reference},
};

const hone_kernel_table hone_reduction_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
