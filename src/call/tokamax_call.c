// tokamax describes a call by JSON; its arrays stand in it as in call text. The rows of its operations are in
// foreign.c.
#include "call/tokamax.h"

#include "base/number.h"
#include "call/ejkernel.h"
#include "call/foreign.h"

#include <string.h>

// What hone has no parameter for, and need not have: null, false, or what tokamax's default is.
static bool says_nothing(
    const hone_foreign_operation *operation, const char *name, const json_t *value, hone_allocator allocator)
{
    if (json_is_null(value) || json_is_false(value)) return true;
    hone_buffer text;
    bool found = false;
    hone_buffer_init(&text, allocator);
    hone_json_canonical(&text, value);
    const hone_foreign_parameter *p = hone_foreign_parameter_find(operation, NULL, name);
    for (; !text.failed && p != NULL; p = hone_foreign_parameter_find(operation, p + 1, name))
        found |= p->ours == NULL && p->json != NULL && strcmp(p->json, hone_buffer_string(&text)) == 0;
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

static bool refuse(hone_buffer *out, const hone_foreign_operation *o, const char *name, const json_t *value)
{
    hone_buffer_clear(out);
    hone_buffer_format(out, "tokamax's %s has %.60s ", o->name, name);
    hone_json_canonical(out, value);
    hone_buffer_format(out, ", which hone's %s cannot hold", o->algorithm);
    return false;
}

static bool write_argument(const hone_foreign_operation *o, const char *name, const json_t *value, hone_buffer *out)
{
    const hone_foreign_parameter *p = hone_foreign_parameter_find(o, NULL, name);
    const char *comma = out->size > 0 && out->data[out->size - 1] == '(' ? "" : ", ";
    if (p != NULL && p->is != NULL && p->is(value)) {
        hone_buffer_format(out, "%s%s", comma, p->says);
        return true;
    }
    if (p == NULL || p->ours == NULL || json_is_null(value))
        return says_nothing(o, name, value, out->allocator) || refuse(out, o, name, value);
    hone_buffer_format(out, "%s%s=", comma, p->ours);
    return write_value(out, value) || refuse(out, o, name, value);
}

bool hone_tokamax_call(hone_view name, const json_t *payload, const char **out_algorithm, hone_buffer *out)
{
    const hone_foreign_operation *o = hone_foreign_find(HONE_FOREIGN_TOKAMAX, name);
    const json_t *arguments = json_object_get(payload, "arguments");
    if (!json_is_object(arguments)) arguments = payload;
    hone_buffer_clear(out);
    *out_algorithm = o != NULL ? o->algorithm : NULL;
    if (o == NULL) return false;
    hone_buffer_format(out, "%s(", o->algorithm);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)arguments, key, value)
    {
        if (out->failed || !write_argument(o, key, value, out)) return false;
    }
    hone_buffer_char(out, ')');
    return !out->failed;
}
