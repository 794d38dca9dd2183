#include "offline/tokamax.h"

#include "base/number.h"
#include "call/ejkernel.h"

#include <string.h>

// One argument of tokamax's: hone's parameter for it.
typedef struct argument {
    const char *theirs, *ours;
} argument;

typedef struct operation {
    const char *theirs, *ours;
    argument arguments[8];
} operation;

static const operation operations[] = {
    {"DotProductAttention",
     "flash_attention",
     {{"q", "query"},
      {"k", "key"},
      {"v", "value"},
      {"logits_scale", "softmax_scale"},
      {"logits_soft_cap", "logits_soft_cap"},
      {"is_causal", "causal"}}},
    {"Normalization", "rms_norm", {{"x", "x"}, {"scale", "weight"}, {"epsilon", "eps"}}},
};

// What arguments that hone has no parameter for say when they say nothing. NULL: of any operation.
static const struct {
    const char *operation, *argument, *json;
} defaults[] = {
    {NULL, "precision", "\"DEFAULT\""},
    {NULL, "precision", "[\"DEFAULT\",\"DEFAULT\"]"},
    {"DotProductAttention", "normalize_output", "true"},
    {"DotProductAttention", "logits_dtype", "\"f32\""},
    {"DotProductAttention", "dropout_rate", "0.0"},
    {"Normalization", "axis", "-1"},
    {"Normalization", "scale_offset", "0.0"},
};

static const operation *find_operation(hone_view name)
{
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (hone_view_is(name, operations[i].theirs)) return &operations[i];
    return NULL;
}

static const char *find_parameter(const operation *o, const char *theirs)
{
    for (const argument *a = o->arguments; a->theirs != NULL; a++)
        if (strcmp(a->theirs, theirs) == 0) return a->ours;
    return NULL;
}

static bool says_nothing(const operation *o, const char *name, const json_t *value, hone_allocator allocator)
{
    if (json_is_null(value) || json_is_false(value)) return true;
    hone_buffer text;
    bool found = false;
    hone_buffer_init(&text, allocator);
    hone_json_canonical(&text, value);
    for (size_t i = 0; !text.failed && i < sizeof defaults / sizeof defaults[0]; i++) {
        bool here = defaults[i].operation == NULL || strcmp(defaults[i].operation, o->theirs) == 0;
        found |=
            here && strcmp(defaults[i].argument, name) == 0 && strcmp(defaults[i].json, hone_buffer_string(&text)) == 0;
    }
    hone_buffer_deinit(&text);
    return found;
}

// An array stands as "bf16[2,64]"; one that vmap has put dims into says so behind its dims.
static bool write_value(hone_buffer *out, const json_t *value)
{
    char number[HONE_NUMBER_SIZE];
    if (json_is_string(value) && strchr(json_string_value(value), '{') != NULL) return false;
    if (json_is_string(value) && strchr(json_string_value(value), '[') != NULL)
        hone_buffer_text(out, json_string_value(value));
    else if (json_is_boolean(value))
        hone_buffer_text(out, json_is_true(value) ? "true" : "false");
    else if (json_is_number(value))
        hone_buffer_text(out, hone_number_print(json_number_value(value), number));
    else
        return false;
    return true;
}

// A mask of which only the causal part is set.
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

static bool refuse(hone_buffer *out, const operation *o, const char *name, const json_t *value)
{
    hone_buffer_clear(out);
    hone_buffer_format(out, "tokamax's %s has %.60s ", o->theirs, name);
    hone_json_canonical(out, value);
    hone_buffer_format(out, ", which hone's %s cannot hold", o->ours);
    return false;
}

static bool write_argument(const operation *o, const char *name, const json_t *value, hone_buffer *out)
{
    const char *ours = find_parameter(o, name), *comma = out->size > 0 && out->data[out->size - 1] == '(' ? "" : ", ";
    if (strcmp(name, "mask") == 0 && is_causal_mask(value)) {
        hone_buffer_format(out, "%scausal=true", comma);
        return true;
    }
    if (ours == NULL || json_is_null(value))
        return says_nothing(o, name, value, out->allocator) || refuse(out, o, name, value);
    hone_buffer_format(out, "%s%s=", comma, ours);
    return write_value(out, value) || refuse(out, o, name, value);
}

bool hone_tokamax_call(hone_view name, const json_t *payload, const char **out_algorithm, hone_buffer *out)
{
    const operation *o = find_operation(name);
    const json_t *arguments = json_object_get(payload, "arguments");
    if (!json_is_object(arguments)) arguments = payload;
    hone_buffer_clear(out);
    *out_algorithm = o != NULL ? o->ours : NULL;
    if (o == NULL) return false;
    hone_buffer_format(out, "%s(", o->ours);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)arguments, key, value)
    {
        if (out->failed || !write_argument(o, key, value, out)) return false;
    }
    hone_buffer_char(out, ')');
    return !out->failed;
}
