#include "space/term.h"

#include "base/error.h"
#include "call/call.h"
#include "space/space.h"

#include <stdio.h>
#include <string.h>

enum { MAX_NAMES = 64, NAME_SIZE = 160 };

static const char where[] = "space.term";

// Names as they are met: each gets a slot with its value.
typedef struct reading {
    const hone_term_scope *scope;
    hone_scalar slots[MAX_NAMES];
    uint32_t count;
    char ignored[NAME_SIZE]; // the scalar of role "ignore" that was named; "": none
} reading;

hone_scalar hone_term_parameter(const hone_space *space, const int64_t *config, size_t index)
{
    const hone_space_parameter *parameter = &space->parameters[index];
    int64_t position = hone_space_find_number(parameter, config[index]);
    return position < 0 ? hone_scalar_int(config[index]) : parameter->values[position].scalar;
}

static bool of_device(const hone_term_scope *scope, hone_view name, hone_scalar *out)
{
    for (size_t i = 0; scope->device != NULL && i < hone_space_device_limit_count; i++) {
        if (!hone_view_is(name, hone_space_device_limits[i].name)) continue;
        *out = hone_scalar_int(hone_space_device_limits[i].read(scope->device));
        return true;
    }
    return false;
}

static bool of_value(const hone_value *value, hone_scalar *out)
{
    switch (value->tag) {
    case HONE_VALUE_NONE:
        *out = (hone_scalar){.kind = HONE_SCALAR_NONE};
        return true;
    case HONE_VALUE_BOOL:
        *out = hone_scalar_bool(value->as.i64 != 0);
        return true;
    case HONE_VALUE_INT:
        *out = hone_scalar_int(value->as.i64);
        return true;
    case HONE_VALUE_FLOAT:
        *out = hone_scalar_float(value->as.f64);
        return true;
    case HONE_VALUE_STRING:
        *out = hone_scalar_text(hone_view_of(value->as.string));
        return true;
    default:
        return false;
    }
}

bool hone_term_size(const hone_call *call, hone_view name, hone_scalar *out)
{
    static const char suffix[] = ".size";
    const size_t size = strlen(suffix);
    char text[NAME_SIZE];
    if (name.size <= size || memcmp(name.data + name.size - size, suffix, size) != 0) return false;
    snprintf(text, sizeof text, "%.*s", (int)(name.size - size), name.data);
    int index = hone_signature_find(hone_call_signature(call), text);
    const hone_tensor *tensor = index >= 0 ? hone_call_tensor(call, (size_t)index) : NULL;
    if (tensor != NULL) *out = hone_scalar_int(hone_tensor_elements(tensor));
    return tensor != NULL;
}

static bool of_call(const hone_term_scope *scope, hone_view name, int64_t index, hone_scalar *out)
{
    char text[NAME_SIZE];
    int64_t dim;
    if (scope->call == NULL || name.size + 32 > sizeof text) return false;
    if (index < 0 && hone_term_size(scope->call, name, out)) return true;
    if (index < 0)
        snprintf(text, sizeof text, "%.*s", (int)name.size, name.data);
    else
        snprintf(text, sizeof text, "%.*s[%lld]", (int)name.size, name.data, (long long)index);
    int scalar = hone_signature_find(hone_call_signature(scope->call), text);
    if (scalar >= 0) return of_value(&hone_call_values(scope->call)[scalar], out);
    if (hone_call_dim(scope->call, text, &dim) != HONE_OK) return false;
    *out = hone_scalar_int(dim);
    return true;
}

static bool is_limit(hone_view name)
{
    for (size_t i = 0; i < hone_space_device_limit_count; i++)
        if (hone_view_is(name, hone_space_device_limits[i].name)) return true;
    return false;
}

static bool only_names(const hone_term_scope *scope)
{
    return scope->call == NULL && scope->signature != NULL;
}

// A plan is for every value of such a scalar: an expression would fix the first one's.
static bool is_ignored(reading *r, hone_view name)
{
    const hone_term_scope *scope = r->scope;
    const hone_signature *signature = scope->call != NULL ? hone_call_signature(scope->call) : scope->signature;
    char text[NAME_SIZE];
    if (signature == NULL || name.size >= sizeof text) return false;
    snprintf(text, sizeof text, "%.*s", (int)name.size, name.data);
    const int index = hone_signature_find(signature, text);
    const hone_parameter *parameter = index >= 0 ? hone_signature_parameter(signature, (size_t)index) : NULL;
    if (parameter == NULL || parameter->kind == HONE_KIND_TENSOR || parameter->role != HONE_ROLE_IGNORE) return false;
    memcpy(r->ignored, text, sizeof text);
    return true;
}

static bool resolve(void *ctx, hone_view name, int64_t index, uint32_t *out_slot)
{
    reading *r = ctx;
    const hone_term_scope *scope = r->scope;
    if (r->count == MAX_NAMES) return false;
    hone_scalar *slot = &r->slots[r->count];
    int parameter = scope->space != NULL && index < 0 ? hone_space_find_parameter(scope->space, name) : -1;
    if (parameter >= 0)
        *slot = only_names(scope) ? hone_scalar_int(1)
                                  : hone_term_parameter(scope->space, scope->config, (size_t)parameter);
    else if (is_ignored(r, name))
        return false;
    else if (only_names(scope) && (is_limit(name) || hone_signature_knows(scope->signature, name, index)))
        *slot = hone_scalar_int(1);
    else if (!of_device(scope, name, slot) && !of_call(scope, name, index, slot))
        return false;
    *out_slot = r->count++;
    return true;
}

hone_status hone_term_read(hone_lexer *lexer, const hone_term_scope *scope, hone_scalar *out, hone_error *err)
{
    reading r = {.scope = scope};
    const hone_expression_names names = {resolve, &r};
    const hone_expression *expression = NULL;
    hone_status status = hone_expression_compile(lexer, &names, 0, &expression, err);
    if (status != HONE_OK && r.ignored[0] != '\0')
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "'%s' is no part of the call's key (#ignore), so that one plan is for all of its values: take it as an "
            "argument of its own, as f64(%s)",
            r.ignored, r.ignored);
    if (status == HONE_OK && only_names(scope)) {
        *out = hone_scalar_int(1);
        return HONE_OK;
    }
    return status == HONE_OK ? hone_expression_evaluate(expression, r.slots, out, err) : status;
}

hone_status hone_term_of(
    hone_allocator allocator, const char *text, const hone_term_scope *scope, hone_scalar *out, hone_error *err)
{
    hone_arena arena = {.allocator = allocator};
    hone_lexer lexer;
    hone_lexer_init(&lexer, hone_view_of(text), &arena, err);
    hone_status status = hone_term_read(&lexer, scope, out, err);
    if (status == HONE_OK && lexer.token.kind != HONE_TOKEN_END)
        status = hone_lexer_fail(&lexer, err, where, "the end of the expression");
    hone_arena_destroy(&arena);
    return status;
}
