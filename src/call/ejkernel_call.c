// ejkernel's text of a call of hone's. ejkernel's public operations pass every parameter by keyword, so that an
// operation is the list of its parameters; what hone's signature lacks stands at ejkernel's default.
// Source: texts recorded with ejkernel 0.0.80.3.
#include "call/ejkernel.h"

#include "base/error.h"
#include "call/bound.h"

#include <string.h>

#define DTYPE_CLASS "{\"__callable_obj__\":\"jax._src.numpy.scalar_types._ScalarMeta\"}"

enum { MAX_PARAMETERS = 24 };

typedef struct operation {
    const char *name; // with version
    struct {
        const char *name;
        const char *json; // default; NULL: null
    } parameters[MAX_PARAMETERS];
} operation;

// Parameters by name, as the text has them.
static const operation operations[] = {
    {"flash_attention@v2",
     {{"attention_mask", NULL},
      {"bias", NULL},
      {"block_tables", NULL},
      {"causal", "false"},
      {"cum_seqlens_k", NULL},
      {"cum_seqlens_q", NULL},
      {"dropout_prob", "0.0"},
      {"dropout_seed", NULL},
      {"key", NULL},
      {"kv_segment_ids", NULL},
      {"logits_dtype", DTYPE_CLASS},
      {"logits_soft_cap", NULL},
      {"normalize_output", "true"},
      {"platform", NULL},
      {"precision", "\"Precision.DEFAULT\""},
      {"q_segment_ids", NULL},
      {"query", NULL},
      {"sliding_window", NULL},
      {"softmax_aux", NULL},
      {"softmax_scale", NULL},
      {"value", NULL}}},
    {"scaled_dot_product_attention@v0",
     {{"attention_mask", NULL},
      {"bias", NULL},
      {"causal", "false"},
      {"cum_seqlens_k", NULL},
      {"cum_seqlens_q", NULL},
      {"init_bias", NULL},
      {"key", NULL},
      {"platform", NULL},
      {"query", NULL},
      {"sliding_window", NULL},
      {"softmax_scale", NULL},
      {"value", NULL}}},
    {"attention@v0",
     {{"attention_mask", NULL},
      {"bias", NULL},
      {"causal", "false"},
      {"deterministic", "true"},
      {"dropout_prob", "0.0"},
      {"dropout_rng", NULL},
      {"dtype", DTYPE_CLASS},
      {"init_bias", NULL},
      {"key", NULL},
      {"logits_soft_cap", NULL},
      {"query", NULL},
      {"sliding_window", NULL},
      {"softmax_aux", NULL},
      {"softmax_dtype", NULL},
      {"softmax_scale", NULL},
      {"value", NULL}}},
    {"mean_pooling@v0", {{"chunk_size", "32"}, {"cu_seqlens", NULL}, {"platform", NULL}, {"x", NULL}}},
    {"rwkv4@v0",
     {{"k", NULL},
      {"platform", NULL},
      {"return_state", "false"},
      {"state", NULL},
      {"u", NULL},
      {"v", NULL},
      {"w", NULL}}},
};

// What a parameter that hone lacks may say without changing what is computed. A name of NULL stands for every one.
typedef enum known_value { IS_TRUE, IS_FALSE, IS_ZERO, IS_TEXT, IS_CLASS } known_value;

static const struct {
    const char *name;
    known_value value;
    const char *text;
} defaults[] = {
    {NULL, IS_CLASS, "jax._src.numpy.scalar_types._ScalarMeta"}, // jnp.float32 and the like: ejkernel cannot tell which
    {NULL, IS_CLASS, "builtins.type"},                           // np.float32 and the like
    {"precision", IS_TEXT, "Precision.DEFAULT"},
    {"normalize_output", IS_TRUE, NULL},
    {"deterministic", IS_TRUE, NULL},
    {"dropout_prob", IS_ZERO, NULL},
    {"return_state", IS_FALSE, NULL},
};

static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

static bool value_is(const json_t *value, known_value known, const char *text)
{
    switch (known) {
    case IS_TRUE:
        return json_is_true(value);
    case IS_FALSE:
        return json_is_false(value);
    case IS_ZERO:
        return json_is_number(value) && !(json_number_value(value) < 0) && !(json_number_value(value) > 0);
    case IS_TEXT:
        return is_text(value, text);
    case IS_CLASS:
        return json_object_size(value) == 1 && is_text(json_object_get(value, "__callable_obj__"), text);
    }
    return false;
}

bool hone_ejkernel_is_default(const char *name, const json_t *value)
{
    if (json_is_null(value) || strcmp(name, "platform") == 0) return true;
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        if ((defaults[i].name == NULL || strcmp(defaults[i].name, name) == 0) &&
            value_is(value, defaults[i].value, defaults[i].text))
            return true;
    return false;
}

static const operation *find_operation(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (strcmp(operations[i].name, name) == 0) return &operations[i];
    return NULL;
}

static bool has_parameter(const operation *o, const char *name)
{
    for (size_t i = 0; i < MAX_PARAMETERS && o->parameters[i].name != NULL; i++)
        if (strcmp(o->parameters[i].name, name) == 0) return true;
    return false;
}

// A parameter that only hone has must say nothing: ejkernel's text could not tell.
static hone_status check_parameters(const operation *o, const hone_call *call, hone_error *err)
{
    for (size_t i = 0; i < call->signature->count; i++) {
        const hone_parameter *p = &call->signature->parameters[i].shown;
        if (p->is_result || has_parameter(o, p->name)) continue;
        if (p->has_default && hone_values_equal(&p->default_value, &call->values[i])) continue;
        return hone_fail(err, HONE_UNSUPPORTED, "ejkernel.call", "%s has no parameter %s", o->name, p->name);
    }
    return HONE_OK;
}

static const char *extra_value(const char *name, const hone_ejkernel_extra *extras, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(extras[i].name, name) == 0) return extras[i].json;
    return NULL;
}

static void append_parameter(
    hone_buffer *out, const hone_call *call, const char *name, const char *json, const char *extra)
{
    const int index = hone_signature_find(call->signature, name);
    const bool known = index >= 0 && !call->signature->parameters[index].shown.is_result;
    hone_buffer_text(out, "\"");
    hone_buffer_text(out, name);
    hone_buffer_text(out, "\":");
    if (extra != NULL)
        hone_buffer_text(out, extra);
    else if (known)
        hone_append_argument(out, call, (size_t)index);
    else
        hone_buffer_text(out, json != NULL ? json : "null");
}

hone_status hone_ejkernel_call_text(
    const char *operation_name,
    const hone_call *call,
    const hone_ejkernel_extra *extras,
    size_t extra_count,
    hone_buffer *out,
    hone_error *err)
{
    const operation *o = find_operation(operation_name);
    if (o == NULL)
        return hone_fail(
            err, HONE_NOT_FOUND, "ejkernel.call", "the parameters of %.100s are not known", operation_name);
    hone_status status = check_parameters(o, call, err);
    if (status != HONE_OK) return status;
    hone_buffer_text(out, "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{");
    for (size_t i = 0; i < MAX_PARAMETERS && o->parameters[i].name != NULL; i++) {
        const char *name = o->parameters[i].name;
        if (i > 0) hone_buffer_char(out, ',');
        append_parameter(out, call, name, o->parameters[i].json, extra_value(name, extras, extra_count));
    }
    hone_buffer_text(out, "},\"method\":null}");
    return out->failed ? hone_fail_memory(err, "ejkernel.call") : HONE_OK;
}
