// attention: its signature and its kernels. The rules are in flash_attention/problem.h; ejkernel's `dtype` is that of
// the arguments here, and sums are in f32.
#include "kernels/attention/attention.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"

static const char space[] = "rows: 1..16 *2 default 4\n" HONE_THREADS_SPACE;

static const hone_attention_form form = {
    .results = 2, .causal = 5, .softmax_scale = 6, .sliding_window = 7, .logits_soft_cap = 8};

static hone_status reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    hone_attention problem = hone_attention_of(plan, args, &form);
    return hone_attention_in_double(&problem, plan, execution);
}

static void model(const hone_call *call, hone_cost *out_cost)
{
    hone_attention_model(call, &form, out_cost);
}

// Four rows fill the registers that their products need; a single query has at most as many rows as its group.
static bool heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    hone_attention problem = hone_attention_of_call(call, &form);
    hone_cost cost;
    model(call, &cost);
    out_config->count = 2;
    out_config->values[ATTENTION_ROWS] = problem.q_len * problem.group < 4 ? 1 : 4;
    out_config->values[ATTENTION_THREADS] = hone_threads_for(device, (int64_t)(cost.operations / 2e6));
    return true;
}

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature =
        "attention(query: T[batch, seq_len, heads, dim], key: T[batch, kv_len ~pow2, kv_heads, dim], "
        "value: T[batch, kv_len, kv_heads, value_dim], *, causal: bool = false, "
        "softmax_scale: f64 = 1 / sqrt(dim) #any, sliding_window: i64? = none, logits_soft_cap: f64? = none #any) -> "
        "(out: T[batch, seq_len, heads, value_dim], weights: T[batch, heads, seq_len, kv_len]) "
        "where T in f32, f16, bf16 where heads % kv_heads == 0",
    .reference = reference,
    .tolerance = {.absolute = 2e-5, .scale = 1},
    .model = model,
    .independent = "batch heads:kv_heads",
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_NAN,
};

static const hone_attention_choice avx512 = {.form = &form, .function = hone_attention_weights_avx512};
static const hone_attention_choice avx2 = {.form = &form, .function = hone_attention_weights_avx2};
static const hone_attention_choice portable = {.form = &form, .function = hone_attention_weights_portable};

#define NATIVE                                                                                                         \
    HONE_KERNEL, .algorithm = "attention", .platform = HONE_NATIVE, .backend = HONE_CPU, .space = space,               \
                 .supports = hone_tiles_supports, .heuristic = heuristic, .run = hone_attention_run

static const hone_kernel kernels[] = {
    {NATIVE, .name = "avx512", .priority = 30, .user = (void *)&avx512,
     .needs = HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ},
    {NATIVE, .name = "avx2", .priority = 20, .user = (void *)&avx2,
     .needs = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C},
    {NATIVE, .name = "portable", .priority = 10, .user = (void *)&portable},
    {HONE_KERNEL, .algorithm = "attention", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .is_reference = true, .run = reference},
};

const hone_kernel_table hone_attention_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
