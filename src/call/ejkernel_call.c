// ejkernel's text of a call of hone's. ejkernel's public operations pass every parameter by keyword, so that an
// operation is the list of its parameters, a row of foreign.c; what hone's signature lacks stands at ejkernel's
// default.
#include "call/ejkernel.h"

#include "base/error.h"
#include "base/number.h"
#include "call/bound.h"
#include "call/foreign.h"

#include <string.h>

static const char where[] = "ejkernel.call";

static bool is_text(const json_t *value, const char *text, size_t size)
{
    return json_is_string(value) && json_string_length(value) == size &&
           memcmp(json_string_value(value), text, size) == 0;
}

// ejkernel's text of a dtype says that it is a class, and not which: no value of it says anything.
static bool is_class(const json_t *value)
{
    static const char *const names[] = {"jax._src.numpy.scalar_types._ScalarMeta", "builtins.type"};
    const json_t *class = json_object_get(value, "__callable_obj__");
    for (size_t i = 0; json_object_size(value) == 1 && i < sizeof names / sizeof *names; i++)
        if (is_text(class, names[i], strlen(names[i]))) return true;
    return false;
}

// A truth, a number or a string that is what `json` says; 0 is 0.0.
static bool value_is(const json_t *value, const char *json)
{
    const size_t size = strlen(json);
    double number;
    if (json_is_boolean(value)) return strcmp(json, json_is_true(value) ? "true" : "false") == 0;
    if (json_is_number(value))
        return hone_number_parse(json, size, &number) && !(json_number_value(value) < number) &&
               !(json_number_value(value) > number);
    return size >= 2 && json[0] == '"' && is_text(value, json + 1, size - 2);
}

bool hone_ejkernel_is_default(const char *name, const json_t *value)
{
    if (json_is_null(value) || strcmp(name, "platform") == 0 || is_class(value)) return true;
    for (size_t i = 0; i < hone_foreign_operation_count; i++) {
        const hone_foreign_operation *o = &hone_foreign_operations[i];
        const hone_foreign_parameter *p =
            o->library == HONE_FOREIGN_EJKERNEL ? hone_foreign_parameter_find(o, NULL, name) : NULL;
        if (p != NULL && p->ours == NULL && p->json != NULL && value_is(value, p->json)) return true;
    }
    return false;
}

// A parameter that only hone has must say nothing: ejkernel's text could not tell.
static hone_status check_parameters(const hone_foreign_operation *o, const hone_call *call, hone_error *err)
{
    for (size_t i = 0; i < call->signature->count; i++) {
        const hone_parameter *p = &call->signature->parameters[i].shown;
        if (p->is_result || hone_foreign_parameter_find(o, NULL, p->name) != NULL) continue;
        if (p->has_default && hone_values_equal(&p->default_value, &call->values[i])) continue;
        return hone_fail(err, HONE_UNSUPPORTED, where, "%s has no parameter %s", o->name, p->name);
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
    const hone_foreign_operation *o = hone_foreign_find(HONE_FOREIGN_EJKERNEL, hone_view_of(operation_name));
    if (o == NULL)
        return hone_fail(err, HONE_NOT_FOUND, where, "the parameters of %.100s are not known", operation_name);
    hone_status status = check_parameters(o, call, err);
    if (status != HONE_OK) return status;
    hone_buffer_text(out, "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{");
    for (size_t i = 0; i < sizeof o->parameters / sizeof *o->parameters && o->parameters[i].theirs != NULL; i++) {
        const char *name = o->parameters[i].theirs;
        if (i > 0) hone_buffer_char(out, ',');
        append_parameter(out, call, name, o->parameters[i].json, extra_value(name, extras, extra_count));
    }
    hone_buffer_text(out, "},\"method\":null}");
    return out->failed ? hone_fail_memory(err, where) : HONE_OK;
}
