// Reads a canonical call spec by parameter names: hone's own, and ejkernel's recorded and stamped calls, which have
// parameters that hone's signature lacks. Those must say nothing, or what they say when nobody sets them.
#include "base/error.h"
#include "base/json.h"
#include "call/bound.h"
#include "call/ejkernel.h"

#include <math.h>
#include <string.h>

static const char where[] = "call.spec";

typedef struct spec_reader {
    hone_signature *signature;
    hone_error *err;
    hone_allocator allocator;
    hone_value values[HONE_MAX_VALUES];
    bool given[HONE_MAX_VALUES];
    hone_tensor tensors[HONE_MAX_VALUES];
    uint32_t aligns[HONE_MAX_VALUES];
    int64_t shapes[HONE_MAX_VALUES][HONE_MAX_RANK], strides[HONE_MAX_VALUES][HONE_MAX_RANK];
} spec_reader;

// Refuses a parameter, showing its value cut to a line.
static hone_status refuse(spec_reader *r, const char *name, const json_t *value, const char *why)
{
    hone_buffer text;
    hone_buffer_init(&text, r->allocator);
    hone_json_canonical(&text, value);
    hone_status status = hone_fail(
        r->err, HONE_UNSUPPORTED, where, "%s: parameter %s is %.200s, %s", r->signature->name, name,
        hone_buffer_string(&text), why);
    hone_buffer_deinit(&text);
    return status;
}

static bool read_integers(const json_t *array, int64_t *out, int32_t *out_count)
{
    const size_t count = json_array_size(array);
    if (!json_is_array(array) || count > HONE_MAX_RANK) return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(array, i);
        if (!json_is_integer(item)) return false;
        out[i] = json_integer_value(item);
    }
    *out_count = (int32_t)count;
    return true;
}

static bool read_layout(spec_reader *r, size_t i, const json_t *value)
{
    const json_t *layout = json_object_get(value, "layout"), *align = json_object_get(value, "align");
    int32_t count = 0;
    if (layout != NULL) {
        if (!read_integers(layout, r->strides[i], &count) || count != r->tensors[i].ndim) return false;
        r->tensors[i].strides = r->strides[i];
    }
    if (align != NULL) {
        const json_int_t power = json_integer_value(align);
        if (power <= 0 || power >= HONE_ORDINARY_ALIGN || (power & (power - 1)) != 0) return false;
        r->aligns[i] = (uint32_t)power;
    }
    return json_object_size(value) == 2 + (size_t)(layout != NULL) + (size_t)(align != NULL);
}

static hone_status read_tensor(spec_reader *r, size_t i, const json_t *value)
{
    const char *name = r->signature->parameters[i].shown.name;
    const char *dtype_name = json_string_value(json_object_get(value, "dtype"));
    const json_t *dims = json_object_get(value, "shape");
    if (dtype_name == NULL || dims == NULL)
        return refuse(r, name, value, "expected an array, {\"dtype\":...,\"shape\":[...]}");
    const hone_dtype_info *dtype = hone_dtype_by_name(dtype_name);
    if (dtype == NULL) return refuse(r, name, value, "whose dtype hone does not have");
    hone_tensor *tensor = &r->tensors[i];
    *tensor = (hone_tensor){.dtype = dtype->dtype, .device = {HONE_DEVICE_CPU, 0}, .shape = r->shapes[i]};
    if (!read_integers(dims, r->shapes[i], &tensor->ndim)) return refuse(r, name, value, "expected at most 8 dims");
    if (!read_layout(r, i, value)) return refuse(r, name, value, "with a layout or alignment that is not valid");
    r->values[i] = hone_of_tensor(tensor);
    return HONE_OK;
}

// A float that JSON cannot write: see hone_spec_json.
static bool special_float(const json_t *value, double *out)
{
    const char *name = json_string_value(json_object_get(value, "__float__"));
    if (name == NULL || json_object_size(value) != 1) return false;
    *out = strcmp(name, "NaN") == 0 ? (double)NAN : name[0] == '-' ? -(double)INFINITY : (double)INFINITY;
    return true;
}

static hone_status read_value(spec_reader *r, size_t i, const json_t *value)
{
    const hone_parameter *p = &r->signature->parameters[i].shown;
    hone_value given = hone_of_none(), fits;
    double special;
    r->given[i] = true;
    if (json_is_null(value)) return HONE_OK; // none, or the default where none is not allowed
    if (p->kind == HONE_KIND_TENSOR) return read_tensor(r, i, value);
    if (json_is_integer(value))
        given = hone_of_int(json_integer_value(value));
    else if (json_is_real(value))
        given = hone_of_float(json_real_value(value));
    else if (json_is_boolean(value))
        given = hone_of_bool(json_is_true(value));
    else if (json_is_string(value))
        given = hone_of_string(json_string_value(value));
    else if (special_float(value, &special))
        given = hone_of_float(special);
    else
        return refuse(r, p->name, value, "which hone's signature cannot hold");
    if (!hone_value_coerce(p, &given, &fits)) return refuse(r, p->name, value, "which hone's signature cannot hold");
    r->values[i] = given;
    return HONE_OK;
}

// The next parameter that may be given by its place; the count: there is none.
static size_t next_positional(const hone_signature *signature, size_t i)
{
    while (i < signature->count &&
           (signature->parameters[i].shown.is_result || signature->parameters[i].shown.keyword_only))
        i++;
    return i;
}

// Positional arguments have no names of their own: the signature's, in its order.
static hone_status read_args(spec_reader *r, json_t *args)
{
    size_t at = 0, index;
    json_t *value;
    json_array_foreach(args, index, value)
    {
        at = next_positional(r->signature, at);
        if (at == r->signature->count && json_is_null(value)) continue; // says nothing, whatever it is called
        if (at == r->signature->count)
            return hone_fail(
                r->err, HONE_UNSUPPORTED, where,
                "%s: positional argument %zu says something, and the signature has no name for it: it must come by its "
                "name",
                r->signature->name, index + 1);
        hone_status status = read_value(r, at++, value);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

static hone_status read_kwargs(spec_reader *r, json_t *kwargs)
{
    const char *name;
    json_t *value;
    json_object_foreach(kwargs, name, value)
    {
        const int i = hone_signature_find(r->signature, name);
        hone_status status = HONE_OK;
        if (i >= 0 && r->given[i])
            status = refuse(r, name, value, "and is given by its place, too");
        else if (i >= 0 && !r->signature->parameters[i].shown.is_result)
            status = read_value(r, (size_t)i, value);
        else if (!hone_ejkernel_is_default(name, value))
            status = refuse(r, name, value, "and hone's signature has no such parameter");
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

static hone_status read_root(spec_reader *r, json_t *root)
{
    json_t *kwargs = json_object_get(root, "kwargs_spec");
    if (!json_is_object(kwargs))
        return hone_fail(r->err, HONE_CORRUPT, where, "%s: a spec has an object 'kwargs_spec'", r->signature->name);
    static const char *const unset[] = {"batch_axes", "method"};
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) {
        const json_t *value = json_object_get(root, unset[i]);
        if (value != NULL && !json_is_null(value)) return refuse(r, unset[i], value, "expected null");
    }
    hone_status status = read_args(r, json_object_get(root, "args_spec"));
    return status == HONE_OK ? read_kwargs(r, kwargs) : status;
}

// The bare NaN, Infinity and -Infinity that Python writes are no JSON: each becomes {"__float__":"NaN"}.
static void append_json(hone_buffer *out, const char *text, size_t size)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        if (quoted && text[i] == '\\' && i + 1 < size)
            hone_buffer_char(out, text[i++]);
        else if (text[i] == '"')
            quoted = !quoted;
        size_t word = 0;
        while (!quoted && word < 3 &&
               (size - i < strlen(words[word]) || memcmp(text + i, words[word], strlen(words[word])) != 0))
            word++;
        if (quoted || word == 3) {
            hone_buffer_char(out, text[i]);
            continue;
        }
        hone_buffer_format(out, "{\"__float__\":\"%s\"}", words[word]);
        i += strlen(words[word]) - 1;
    }
}

hone_status hone_spec_json(
    const hone_allocator *allocator, const char *spec, size_t size, json_t **out, hone_error *err)
{
    hone_buffer json;
    hone_buffer_init(&json, *allocator);
    append_json(&json, spec, size);
    hone_status status =
        json.failed ? hone_fail_memory(err, where) : hone_json_parse(hone_buffer_string(&json), json.size, out, err);
    hone_buffer_deinit(&json);
    if (status == HONE_OK && !json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        return hone_fail(err, HONE_CORRUPT, where, "a spec is a JSON object");
    }
    return status;
}

hone_status hone_call_from_spec(
    hone_allocator allocator,
    hone_signature *signature,
    const char *spec,
    size_t spec_size,
    hone_call **out,
    hone_error *err)
{
    if (signature == NULL || out == NULL) {
        if (out != NULL) *out = NULL;
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the signature or out is NULL");
    }
    *out = NULL;
    allocator = hone_allocator_given(allocator);
    json_t *root = NULL;
    hone_status status = hone_spec_json(&allocator, spec, spec_size, &root, err);
    if (status != HONE_OK) return status;
    spec_reader *r = hone_alloc(&allocator, sizeof *r);
    if (r == NULL) {
        json_decref(root);
        return hone_fail_memory(err, where);
    }
    r->signature = signature;
    r->err = err;
    r->allocator = allocator;
    status = read_root(r, root);
    const hone_call_source source = {
        .values = r->values, .count = signature->count, .given = r->given, .aligns = r->aligns, .describe = true};
    if (status == HONE_OK) status = hone_call_build(allocator, signature, &source, out, err);
    json_decref(root);
    hone_free(&allocator, r);
    return status;
}
