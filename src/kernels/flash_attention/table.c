// flash_attention: its signature and its kernels. The rules are in problem.h.
#include "kernels/common/matrix.h"
#include "kernels/flash_attention/flash_attention.h"
#include "kernels/tables.h"

static const hone_attention_form form = {
    .results = 1, .causal = 4, .softmax_scale = 5, .sliding_window = 6, .logits_soft_cap = 7};

#define ATTENTION_RANGED_CODE hone_attention_cuda_ranged_code
#define ATTENTION_ALGORITHM   "flash_attention"
#define ATTENTION_SIGNATURE(DTYPES)                                                                                    \
    "flash_attention(query: T[batch, q_len, heads, dim], key: T[batch, kv_len ~pow2, kv_heads, dim], "                 \
    "value: T[batch, kv_len, kv_heads, dim], *, causal: bool = false, softmax_scale: f64 = 1 / sqrt(dim) #any, "       \
    "sliding_window: i64? = none, logits_soft_cap: f64? = none #any) -> out: T[batch, q_len, heads, dim] "             \
    "where T in " DTYPES " where heads % kv_heads == 0"
#include "kernels/flash_attention/kernels_of_form.h"

static const hone_algorithm algorithm = {
    .struct_size = sizeof algorithm,
    .signature = ATTENTION_SIGNATURE(HONE_FLOATS_AND_F64),
    .reference = reference,
    .tolerance = {.absolute = 2e-5, .scale = 1},
    .model = model,
    .independent = "batch heads:kv_heads",
    .special = HONE_SPECIAL_SMALL | HONE_SPECIAL_NAN,
};

const hone_kernel_table hone_flash_attention_table = {&algorithm, kernels, sizeof kernels / sizeof *kernels};
