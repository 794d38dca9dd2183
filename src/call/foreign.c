// To add an operation: a row here; the algorithm is registered like any other. Source: texts recorded with ejkernel
// 0.0.80.3, and labels that tokamax wrote.
#include "call/foreign.h"

#include "base/assert.h"

#include <string.h>

// A dtype's class, of which ejkernel's text does not say which it is: jnp.float32 and the like, np.float32 and the
// like.
#define JAX_CLASS   "{\"__callable_obj__\":\"jax._src.numpy.scalar_types._ScalarMeta\"}"
#define NUMPY_CLASS "{\"__callable_obj__\":\"builtins.type\"}"

// A parameter that hone has under the same name, and one that it lacks.
#define BOTH(name, json)                                                                                               \
    {                                                                                                                  \
        name, name, json, NULL, NULL                                                                                   \
    }
#define THEIRS(name, json)                                                                                             \
    {                                                                                                                  \
        name, NULL, json, NULL, NULL                                                                                   \
    }

// tokamax's mask, of which only the causal part is set.
static bool is_causal_mask(const json_t *mask)
{
    const char *name;
    json_t *part;
    if (!json_is_true(json_object_get(mask, "is_causal"))) return false;
    json_object_foreach((json_t *)(uintptr_t)mask, name, part)
    {
        bool known = strcmp(name, "is_causal") == 0 || strcmp(name, "__type") == 0;
        if (!known && !json_is_null(part) && !json_is_false(part)) return false;
    }
    return true;
}

const hone_foreign_operation hone_foreign_operations[] = {
    {HONE_FOREIGN_EJKERNEL,
     "flash_attention@v2",
     "flash_attention",
     {THEIRS("attention_mask", NULL),
      THEIRS("bias", NULL),
      THEIRS("block_tables", NULL),
      BOTH("causal", "false"),
      THEIRS("cum_seqlens_k", NULL),
      THEIRS("cum_seqlens_q", NULL),
      THEIRS("dropout_prob", "0.0"),
      THEIRS("dropout_seed", NULL),
      BOTH("key", NULL),
      THEIRS("kv_segment_ids", NULL),
      THEIRS("logits_dtype", JAX_CLASS),
      BOTH("logits_soft_cap", NULL),
      THEIRS("normalize_output", "true"),
      THEIRS("platform", NULL),
      THEIRS("precision", "\"Precision.DEFAULT\""),
      THEIRS("q_segment_ids", NULL),
      BOTH("query", NULL),
      BOTH("sliding_window", NULL),
      THEIRS("softmax_aux", NULL),
      BOTH("softmax_scale", NULL),
      BOTH("value", NULL)},
     {{"precision", "null"}, {"precision", "\"Precision.HIGHEST\""}, {"logits_dtype", NUMPY_CLASS}}},
    {HONE_FOREIGN_EJKERNEL,
     "scaled_dot_product_attention@v0",
     "scaled_dot_product_attention",
     {THEIRS("attention_mask", NULL), THEIRS("bias", NULL), BOTH("causal", "false"), THEIRS("cum_seqlens_k", NULL),
      THEIRS("cum_seqlens_q", NULL), THEIRS("init_bias", NULL), BOTH("key", NULL), THEIRS("platform", NULL),
      BOTH("query", NULL), BOTH("sliding_window", NULL), BOTH("softmax_scale", NULL), BOTH("value", NULL)},
     {{NULL, NULL}}},
    {HONE_FOREIGN_EJKERNEL,
     "attention@v0",
     "attention",
     {THEIRS("attention_mask", NULL), THEIRS("bias", NULL), BOTH("causal", "false"), THEIRS("deterministic", "true"),
      THEIRS("dropout_prob", "0.0"), THEIRS("dropout_rng", NULL), THEIRS("dtype", JAX_CLASS), THEIRS("init_bias", NULL),
      BOTH("key", NULL), BOTH("logits_soft_cap", NULL), BOTH("query", NULL), BOTH("sliding_window", NULL),
      THEIRS("softmax_aux", NULL), THEIRS("softmax_dtype", NULL), BOTH("softmax_scale", NULL), BOTH("value", NULL)},
     {{"dtype", NUMPY_CLASS}, {"softmax_dtype", JAX_CLASS}}},
    {HONE_FOREIGN_EJKERNEL,
     "mean_pooling@v0",
     "mean_pooling",
     {BOTH("chunk_size", "32"), THEIRS("cu_seqlens", NULL), THEIRS("platform", NULL), BOTH("x", NULL)},
     {{NULL, NULL}}},
    {HONE_FOREIGN_EJKERNEL,
     "rwkv4@v0",
     "rwkv4",
     {BOTH("k", NULL), THEIRS("platform", NULL), THEIRS("return_state", "false"), BOTH("state", NULL), BOTH("u", NULL),
      BOTH("v", NULL), BOTH("w", NULL)},
     {{NULL, NULL}}},
    {HONE_FOREIGN_TOKAMAX,
     "DotProductAttention",
     "flash_attention",
     {{"q", "query", NULL, NULL, NULL},
      {"k", "key", NULL, NULL, NULL},
      {"v", "value", NULL, NULL, NULL},
      {"logits_scale", "softmax_scale", NULL, NULL, NULL},
      {"logits_soft_cap", "logits_soft_cap", NULL, NULL, NULL},
      {"is_causal", "causal", NULL, NULL, NULL},
      {"mask", NULL, NULL, is_causal_mask, "causal=true"},
      THEIRS("precision", "\"DEFAULT\""),
      THEIRS("precision", "[\"DEFAULT\",\"DEFAULT\"]"),
      THEIRS("normalize_output", "true"),
      THEIRS("logits_dtype", "\"f32\""),
      THEIRS("dropout_rate", "0.0")},
     {{NULL, NULL}}},
    {HONE_FOREIGN_TOKAMAX,
     "Normalization",
     "rms_norm",
     {{"x", "x", NULL, NULL, NULL},
      {"scale", "weight", NULL, NULL, NULL},
      {"epsilon", "eps", NULL, NULL, NULL},
      THEIRS("precision", "\"DEFAULT\""),
      THEIRS("precision", "[\"DEFAULT\",\"DEFAULT\"]"),
      THEIRS("axis", "-1"),
      THEIRS("scale_offset", "0.0")},
     {{NULL, NULL}}},
};
const size_t hone_foreign_operation_count = sizeof hone_foreign_operations / sizeof hone_foreign_operations[0];

const hone_foreign_operation *hone_foreign_find(hone_foreign_library library, hone_view name)
{
    for (size_t i = 0; i < hone_foreign_operation_count; i++)
        if (hone_foreign_operations[i].library == library && hone_view_is(name, hone_foreign_operations[i].name))
            return &hone_foreign_operations[i];
    return NULL;
}

const hone_foreign_parameter *hone_foreign_parameter_find(
    const hone_foreign_operation *operation, const hone_foreign_parameter *from, const char *theirs)
{
    const size_t room = sizeof operation->parameters / sizeof operation->parameters[0];
    const hone_foreign_parameter *at = from != NULL ? from : operation->parameters;
    hone_assert(at >= operation->parameters && at <= operation->parameters + room);
    for (; at < operation->parameters + room && at->theirs != NULL; at++)
        if (strcmp(at->theirs, theirs) == 0) return at;
    return NULL;
}
