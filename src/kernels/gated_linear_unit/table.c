// gated_linear_unit: its signature and its kernels.
#include "kernels/gated_linear_unit/gated_linear_unit.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"

static const char space[] = "rows: 4..64 *2 default 16\n"
                            "vectors: 1 | 2 default 2\n" HONE_THREADS_SPACE;

static bool knows_activation(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    if (hone_activation_of(&hone_call_values(call)[GATED_ACTIVATION]) != ACTIVATION_COUNT) return true;
    hone_fail(
        why, HONE_UNSUPPORTED, "kernels.gated_linear_unit",
        "there is no activation '%.60s'; the activations are: none silu sigmoid relu gelu tanh",
        hone_call_values(call)[GATED_ACTIVATION].as.string);
    return false;
}

static bool supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    for (size_t i = GATED_X; i <= GATED_Y; i++)
        if (!hone_last_axis_is_dense(call, i, why)) return false;
    return knows_activation(kernel, call, why);
}

static void model(const hone_call *call, hone_cost *out_cost)
{
    const double x = (double)hone_tensor_elements(hone_call_tensor(call, GATED_X)),
                 w = (double)hone_tensor_elements(hone_call_tensor(call, GATED_WEIGHTS)),
                 y = (double)hone_tensor_elements(hone_call_tensor(call, GATED_Y));
    out_cost->bytes = (x + w + y) * hone_call_dtype(call, "T")->bits / 8.0;
    out_cost->operations = 4 * y * (double)hone_dim_of(call, "deep");
}

// The rows of a task share the weights that they read.
static bool heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    hone_cost cost;
    model(call, &cost);
    out_config->count = 3;
    out_config->values[GATED_ROWS] = 16;
    out_config->values[GATED_VECTORS] = 2;
    out_config->values[GATED_THREADS] = hone_threads_for(device, (int64_t)(cost.operations / 2e6));
    return true;
}

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature = "gated_linear_unit(x: T[..., deep], weights: T[deep, 2, wide], *, activation: str? = none) -> "
                 "y: T[..., wide] where T in f32, f16, bf16",
    .reference = hone_gated_linear_unit_reference,
    .model = model,
    .independent = "...",
};

#define NATIVE                                                                                                         \
    HONE_KERNEL, .algorithm = "gated_linear_unit", .platform = HONE_NATIVE, .backend = HONE_CPU, .space = space,       \
                 .supports = supports, .heuristic = heuristic

static const hone_kernel kernels[] = {
    {NATIVE, .name = "avx512", .priority = 30, .run = hone_gated_linear_unit_avx512,
     .needs = HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ},
    {NATIVE, .name = "avx2", .priority = 20, .run = hone_gated_linear_unit_avx2,
     .needs = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C},
    {NATIVE, .name = "portable", .priority = 10, .run = hone_gated_linear_unit_portable},
    {HONE_KERNEL, .algorithm = "gated_linear_unit", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .is_reference = true, .supports = knows_activation, .run = hone_gated_linear_unit_reference},
};

const hone_kernel_table hone_gated_linear_unit_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
