// dot_product_attention and biased_attention: their signatures and their kernels. The rules are in biased.h.
#include "kernels/dot_product_attention/biased.h"
#include "kernels/tables.h"
#include "kernels/vector/arguments.h"

#include <math.h>

static const char space[] = "rows: 1..16 *2 default 4\n" HONE_THREADS_SPACE;

// Counts the products of every query and key that causal and window leave; what a mask excludes depends on data.
static void model(const hone_call *call, hone_cost *out_cost)
{
    const hone_biased b = hone_biased_of_call(call);
    const hone_attention *p = &b.attention;
    double pairs = 0;
    for (int64_t i = 0; i < p->q_len; i++) {
        int64_t first, last;
        hone_biased_range(&b, i, &first, &last);
        pairs += (double)(last - first);
    }
    const bool hidden = b.mask.data != NULL || hone_call_values(call)[BIASED_MASK].tag == HONE_VALUE_TENSOR ||
                        hone_call_values(call)[BIASED_Q_SEGMENTS].tag == HONE_VALUE_TENSOR;
    const double dims = (double)(p->dim + p->value_dim), queries = (double)(p->batch * p->q_len * p->heads);
    out_cost->operations = hidden ? 0 : 2 * dims * pairs * (double)(p->batch * p->heads);
    const double made = b.has_weights ? dims + (double)p->kv_len : dims;
    out_cost->bytes = queries * made * (double)(p->dtype == HONE_F32 ? 4 : 2);
}

static bool supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    static const size_t dense[] = {BIASED_QUERY, BIASED_KEY, BIASED_VALUE, BIASED_OUT, BIASED_BIAS};
    for (size_t i = 0; i < sizeof dense / sizeof *dense; i++)
        if (!hone_last_axis_is_dense(call, dense[i], why)) return false;
    const hone_biased b = hone_biased_of_call(call);
    if (b.has_weights && !hone_last_axis_is_dense(call, BIASED_WEIGHTS, why)) return false;
    const hone_attention *p = &b.attention;
    const char *reason = NULL;
    if (p->kv_len == 0 || p->dim == 0)
        reason = "kv_len or dim is 0; this kernel asks for at least one key and one element";
    else if (p->has_cap && p->cap == 0)
        reason = "logits_soft_cap is 0, which divides by zero; give none for no cap";
    else if (!(fabs(p->scale) <= 1e38 && fabs(p->cap) <= 1e38 && fabs(p->scale / p->cap) <= 1e38))
        reason = "softmax_scale, logits_soft_cap or their quotient is over 1e38; this kernel keeps them in floats";
    if (reason == NULL) return true;
    hone_fail(why, HONE_UNSUPPORTED, "kernels.attention", "%s", reason);
    return false;
}

static bool heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    (void)kernel;
    const hone_biased b = hone_biased_of_call(call);
    const hone_attention *p = &b.attention;
    const double work = 2e0 * (double)(p->batch * p->heads * p->q_len * p->kv_len) * (double)(p->dim + p->value_dim);
    out_config->count = 2;
    out_config->values[BIASED_ROWS] = p->q_len * p->group < 4 ? 1 : 4;
    out_config->values[BIASED_THREADS] = hone_threads_for(device, (int64_t)(work / 2e6));
    return true;
}

#define PARAMETERS                                                                                                     \
    "query: T[batch, q_len, heads, dim], key: T[batch, kv_len, kv_heads, dim], "                                       \
    "value: T[batch, kv_len, kv_heads, value_dim], bias: B[bias_batch, bias_heads, bias_q, bias_kv]? = none ~ "        \
    "bias(), "                                                                                                         \
    "mask: M[mask_batch, mask_heads, mask_q, mask_kv]? = none, q_segment_ids: i32[batch, q_len]? = none ~ "            \
    "uniform(-1, 1), kv_segment_ids: i32[batch, kv_len]? = none ~ uniform(-1, 1), *, causal: bool = false, "           \
    "softmax_scale: f64 = 1 / sqrt(dim) #any, window_left: i64? = none, window_right: i64? = none, "                   \
    "logits_soft_cap: f64? = none #any"
#define CONDITIONS                                                                                                     \
    " where T in f32, f16, bf16 where B in f32, f16, bf16 where M in bool, i32 where heads % kv_heads == 0 "           \
    "where bias_batch == 1 or bias_batch == batch where bias_heads == 1 or bias_heads == heads "                       \
    "where bias_q == 1 or bias_q == q_len where bias_kv == 1 or bias_kv == kv_len "                                    \
    "where mask_batch == 1 or mask_batch == batch where mask_heads == 1 or mask_heads == heads "                       \
    "where mask_q == 1 or mask_q == q_len where mask_kv == 1 or mask_kv == kv_len"
#define ALGORITHM                                                                                                      \
    .struct_size = sizeof(hone_algorithm), .reference = hone_biased_reference,                                         \
    .tolerance = {.absolute = 2e-5, .scale = 1}, .model = model

static const hone_algorithm dot_product = {
    ALGORITHM,
    .signature = "dot_product_attention(" PARAMETERS ") -> out: T[batch, q_len, heads, value_dim]" CONDITIONS,
};
static const hone_algorithm biased = {
    ALGORITHM,
    .signature = "biased_attention(" PARAMETERS
                 ") -> (out: T[batch, q_len, heads, value_dim], weights: T[batch, heads, q_len, kv_len])" CONDITIONS,
};

#define NATIVE                                                                                                         \
    HONE_KERNEL, .platform = HONE_NATIVE, .backend = HONE_CPU, .space = space, .supports = supports,                   \
                 .heuristic = heuristic
#define KERNELS(of)                                                                                                    \
    {NATIVE,                                                                                                           \
     .algorithm = of,                                                                                                  \
     .name = "avx512",                                                                                                 \
     .priority = 30,                                                                                                   \
     .run = hone_biased_avx512,                                                                                        \
     .needs = HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ},                           \
        {NATIVE,         .algorithm = of,         .name = "avx2",                                                      \
         .priority = 20, .run = hone_biased_avx2, .needs = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C},              \
        {NATIVE, .algorithm = of, .name = "portable", .priority = 10, .run = hone_biased_portable},                    \
    {                                                                                                                  \
        HONE_KERNEL, .algorithm = of, .name = "reference", .platform = HONE_NATIVE, .backend = HONE_CPU,               \
                     .is_reference = true, .run = hone_biased_reference                                                \
    }

static const hone_kernel dot_product_kernels[] = {KERNELS("dot_product_attention")};
static const hone_kernel biased_kernels[] = {KERNELS("biased_attention")};

const hone_kernel_table hone_dot_product_attention_table = {
    &dot_product, dot_product_kernels, sizeof dot_product_kernels / sizeof *dot_product_kernels};
const hone_kernel_table hone_biased_attention_table = {
    &biased, biased_kernels, sizeof biased_kernels / sizeof *biased_kernels};
