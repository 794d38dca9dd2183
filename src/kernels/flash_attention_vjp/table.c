// flash_attention_vjp: its signature, its kernels, and their cost model and heuristics.
#include "kernels/common/matrix.h"
#include "kernels/flash_attention_vjp/flash_attention_vjp.h"
#include "kernels/tables.h"

static const char space[] = "splits: 1..64 *2 default 1\n" HONE_THREADS_SPACE "\n"
                            "where splits == 1 or splits <= 2 * threads";

static bool supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    for (size_t i = ATTENTION_VJP_D_QUERY; i <= ATTENTION_VJP_D_VALUE; i++)
        if (!hone_last_axis_is_dense(call, i, why)) return false;
    return hone_attention_supports(call, &hone_attention_vjp_form, why);
}

// Five products where flash_attention has two; each array is read or written once.
static void model(const hone_call *call, hone_cost *out_cost)
{
    hone_attention_model(call, &hone_attention_vjp_form, out_cost);
    const hone_tensor *query = hone_call_tensor(call, ATTENTION_VJP_QUERY);
    out_cost->operations *= 2.5;
    out_cost->bytes = 2 * out_cost->bytes - (double)hone_tensor_elements(query) * query->dtype.bits / 8.0;
}

// Queries are split only if the heads alone do not keep the threads busy.
static bool heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    hone_cost cost;
    model(call, &cost);
    const int64_t heads = hone_dim_of(call, "batch") * hone_dim_of(call, "kv_heads");
    const int64_t rows = hone_dim_of(call, "q_len") * hone_dim_of(call, "heads");
    const int64_t threads = hone_threads_for(device, cost.operations < 6.4e8 ? (int64_t)(cost.operations / 1e7) : 64);
    int64_t splits = 1;
    while (splits < 64 && splits < threads && heads * splits < 2 * threads && splits * 32 <= rows)
        splits *= 2;
    out_config->count = 2;
    out_config->values[ATTENTION_VJP_SPLITS] = splits;
    out_config->values[ATTENTION_VJP_THREADS] = threads;
    return true;
}

// The tolerance is that of flash_attention, which has the same logits and weights: 2e-5 for the error of exponentials
// of logits in f32. A weight's error is multiplied by differences of products with d_out, and elements of d_key and
// d_value are sums over the queries, eight at a time in f32: their error is relative to the largest elements, and
// 16-bit floats round by more than that.
#define SIGNATURE(DTYPES)                                                                                              \
    "flash_attention_vjp(query: T[batch, q_len, heads, dim], key: T[batch, kv_len, kv_heads, dim], "                   \
    "value: T[batch, kv_len, kv_heads, dim], d_out: T[batch, q_len, heads, dim], *, causal: bool = false, "            \
    "softmax_scale: f64 = 1 / sqrt(dim) #any, sliding_window: i64? = none, logits_soft_cap: f64? = none #any) -> "     \
    "(d_query: T[batch, q_len, heads, dim], d_key: T[batch, kv_len, kv_heads, dim], "                                  \
    "d_value: T[batch, kv_len, kv_heads, dim]) where T in " DTYPES " where heads % kv_heads == 0"

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature = SIGNATURE(HONE_FLOATS_AND_F64),
    .reference = hone_attention_vjp_reference,
    .tolerance = {.absolute = 2e-5, .relative = 1e-5, .scale = 4},
    .model = model,
    .independent = "batch heads:kv_heads",
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_NAN,
};

#define NATIVE                                                                                                         \
    HONE_KERNEL, .algorithm = "flash_attention_vjp", .signature = SIGNATURE(HONE_FLOATS), .platform = HONE_NATIVE,     \
                 .backend = HONE_CPU, .space = space, .supports = supports, .heuristic = heuristic

static const hone_kernel kernels[] = {
    {NATIVE, .name = "avx512", .priority = 30, .run = hone_attention_vjp_avx512,
     .needs = HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ},
    {NATIVE, .name = "avx2", .priority = 20, .run = hone_attention_vjp_avx2,
     .needs = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C},
    {NATIVE, .name = "portable", .priority = 10, .run = hone_attention_vjp_portable},
    {HONE_KERNEL, .algorithm = "flash_attention_vjp", .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,
     .is_reference = true, .run = hone_attention_vjp_reference},
};

const hone_kernel_table hone_flash_attention_vjp_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
