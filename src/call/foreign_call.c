// A foreign operation's arguments as a call of hone's.
//
// Arguments are walked as paths: a parameter, and behind dots what its value consists of, "mask.is_causal",
// "precision.0". A path goes to the parameter of hone's that the row names, else to the one of its own name; what goes
// nowhere must say nothing: null, false, the default of the library's signature, or a value that the row lists.
#include "call/foreign.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"
#include "call/bound.h"
#include "call/call.h"
#include "call/ejkernel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "foreign.call";

enum { PATH_SIZE = 160, VMAPS_MAX = 8, DEPTH_MAX = 8 };

// How dims that vmap put in are said: by leading dims, in the first dim, or as so many calls.
typedef enum batching { BATCH_LEADING, BATCH_FIRST, BATCH_CALLS, BATCHINGS } batching;

// An array as it came: its dims within vmap, and the sizes that vmap put around, outermost first; 0: it was not mapped.
typedef struct array {
    hone_dtype dtype;
    int32_t ndim, vmaps;
    int64_t dims[HONE_MAX_RANK], sizes[VMAPS_MAX];
} array;

typedef struct conversion {
    const hone_foreign_row *row;
    const json_t *arguments, *spelled; // of the take
    hone_signature *signature;
    hone_allocator allocator;
    batching batching;
    int64_t times;
    hone_value values[HONE_MAX_VALUES];
    bool given[HONE_MAX_VALUES];
    hone_tensor tensors[HONE_MAX_VALUES];
    int64_t shapes[HONE_MAX_VALUES][HONE_MAX_RANK];
    char texts[HONE_MAX_VALUES][64]; // strings that were spelled otherwise
    hone_error *err;
} conversion;

// --- values

static bool same_dtype(const char *a, const char *b)
{
    const hone_dtype_info *x = hone_dtype_by_name(a), *y = hone_dtype_by_name(b);
    return x != NULL && x == y;
}

// Equal as JSON; numbers by value, and dtypes by any of their names.
static bool same(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return !(json_number_value(a) < json_number_value(b)) && !(json_number_value(a) > json_number_value(b));
    if (json_is_string(a) && json_is_string(b) && same_dtype(json_string_value(a), json_string_value(b))) return true;
    return json_equal(a, b) != 0;
}

// The values of a parameter that mean nothing; those of "precision" hold for "precision.0".
static const json_t *values_of(const conversion *c, const char *path)
{
    char name[PATH_SIZE];
    const json_t *values = c->row != NULL ? c->row->values : NULL;
    const json_t *found = json_object_get(values, path);
    if (found != NULL) return found;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(path, "."), path);
    return json_object_get(values, name);
}

static bool is_default(const hone_signature *signature, const char *path, const json_t *value)
{
    const int index = signature != NULL ? hone_signature_find(signature, path) : -1;
    const hone_parameter *p = index >= 0 ? hone_signature_parameter(signature, (size_t)index) : NULL;
    if (p == NULL || !p->has_default) return false;
    switch (p->default_value.tag) {
    case HONE_VALUE_BOOL:
        return json_is_boolean(value) && json_is_true(value) == (p->default_value.as.i64 != 0);
    case HONE_VALUE_INT:
        return json_is_integer(value) && json_integer_value(value) == p->default_value.as.i64;
    case HONE_VALUE_FLOAT:
        return json_is_number(value) && !(json_number_value(value) < p->default_value.as.f64) &&
               !(json_number_value(value) > p->default_value.as.f64);
    default:
        return false;
    }
}

static bool says_nothing(const conversion *c, const char *path, const json_t *value)
{
    const json_t *values = values_of(c, path);
    for (size_t i = 0; i < json_array_size(values); i++)
        if (same(json_array_get(values, i), value)) return true;
    if (json_is_null(value) || strcmp(path, "platform") == 0) return true;
    if (c->row == NULL && strncmp(path, "precision", strlen("precision")) == 0) return true; // most operations have one
    const hone_signature *theirs = c->row != NULL ? c->row->signature : NULL;
    if (is_default(theirs, path, value)) return true;
    const bool told = values != NULL || (theirs != NULL && hone_signature_find(theirs, path) >= 0);
    return !told && (json_is_false(value) || hone_ejkernel_is_default(path, value));
}

static hone_status refuse(const conversion *c, const char *path, const json_t *value)
{
    hone_buffer text;
    hone_buffer_init(&text, c->allocator);
    hone_json_canonical(&text, value);
    hone_status status = hone_fail(
        c->err, HONE_UNSUPPORTED, where, "%s is %.200s, which hone's %s cannot hold", path, hone_buffer_string(&text),
        hone_signature_name(c->signature));
    hone_buffer_deinit(&text);
    return status;
}

// --- arrays

// "[[0,5],null]": which dim of how many vmap put in, outermost first.
static bool read_vmaps(const char *text, array *out)
{
    const char *open = strchr(text, '='), *close = strrchr(text, '}');
    json_t *axes = NULL;
    if (open == NULL || close == NULL || hone_json_parse(open + 1, (size_t)(close - open - 1), &axes, NULL) != HONE_OK)
        return false;
    bool read = json_is_array(axes) && json_array_size(axes) <= VMAPS_MAX;
    for (size_t i = 0; read && i < json_array_size(axes); i++) {
        const json_t *axis = json_array_get(axes, i);
        const int64_t size = json_is_null(axis) ? 0 : json_integer_value(json_array_get(axis, 1));
        read = size >= 0 && (json_is_null(axis) || size > 0);
        out->sizes[out->vmaps++] = size;
    }
    json_decref(axes);
    return read;
}

// "bf16[2,64]", and {vmap_axes=...} behind it.
static bool read_text_array(const char *text, array *out)
{
    char name[32];
    const char *open = strchr(text, '['), *at = open;
    if (open == NULL || (size_t)(open - text) >= sizeof name) return false;
    snprintf(name, sizeof name, "%.*s", (int)(open - text), text);
    const hone_dtype_info *info = hone_dtype_by_name(name);
    if (info == NULL) return false;
    out->dtype = info->dtype;
    for (at++; *at != '\0' && *at != ']'; at += *at == ',') {
        const size_t size = strspn(at, "0123456789");
        if (out->ndim == HONE_MAX_RANK || !hone_integer_parse(at, size, &out->dims[out->ndim++])) return false;
        at += size;
    }
    if (*at != ']') return false;
    return at[1] == '\0' || (at[1] == '{' && read_vmaps(at + 1, out));
}

static bool read_object_array(const json_t *value, array *out)
{
    const hone_dtype_info *info = hone_dtype_by_name(json_string_value(json_object_get(value, "dtype")));
    const json_t *shape = json_object_get(value, "shape");
    if (info == NULL || !json_is_array(shape) || json_array_size(shape) > HONE_MAX_RANK) return false;
    out->dtype = info->dtype;
    for (size_t i = 0; i < json_array_size(shape); i++)
        out->dims[out->ndim++] = (int64_t)json_integer_value(json_array_get(shape, i));
    return true;
}

static bool read_array(const json_t *value, array *out)
{
    *out = (array){.ndim = 0};
    if (json_is_string(value)) return read_text_array(json_string_value(value), out);
    return json_is_object(value) && read_object_array(value, out);
}

// What vmap put around the array, in all.
static int64_t mapped(const array *a)
{
    int64_t product = 1;
    for (int32_t i = 0; i < a->vmaps; i++)
        if (a->sizes[i] > 0 && __builtin_mul_overflow(product, a->sizes[i], &product)) return -1;
    return product;
}

// As many dims as the parameter has: leading ones are taken together, or are 1.
static bool fit_rank(const hone_shape_pattern *pattern, int64_t *dims, int32_t *ndim)
{
    const int32_t rank =
        pattern != NULL && !pattern->ellipsis && pattern->condition == NULL ? (int32_t)pattern->count : *ndim;
    for (; *ndim < rank && *ndim < HONE_MAX_RANK; (*ndim)++) {
        memmove(dims + 1, dims, (size_t)*ndim * sizeof *dims);
        dims[0] = 1;
    }
    for (; *ndim > rank && rank > 0; (*ndim)--) {
        if (__builtin_mul_overflow(dims[0], dims[1], &dims[1])) return false;
        memmove(dims, dims + 1, (size_t)(*ndim - 1) * sizeof *dims);
    }
    return *ndim == rank;
}

static bool put_array(conversion *c, size_t index, const array *a)
{
    const int64_t batch = mapped(a);
    int64_t *dims = c->shapes[index];
    int32_t ndim = 0;
    if (batch < 0) return false;
    for (int32_t i = 0; c->batching == BATCH_LEADING && i < a->vmaps; i++) {
        if (ndim == HONE_MAX_RANK) return false;
        if (a->sizes[i] > 0) dims[ndim++] = a->sizes[i];
    }
    if (ndim + a->ndim > HONE_MAX_RANK) return false;
    memcpy(dims + ndim, a->dims, (size_t)a->ndim * sizeof *dims);
    ndim += a->ndim;
    if (!fit_rank(c->signature->parameters[index].shape, dims, &ndim)) return false;
    if (c->batching == BATCH_FIRST && ndim > 0 && __builtin_mul_overflow(dims[0], batch, &dims[0])) return false;
    if (c->batching == BATCH_CALLS && batch > c->times) c->times = batch;
    c->tensors[index] = (hone_tensor){.dtype = a->dtype, .device = {HONE_DEVICE_CPU, 0}, .shape = dims, .ndim = ndim};
    c->values[index] = hone_of_tensor(&c->tensors[index]);
    return true;
}

// --- scalars

// A word of the library's for hone's: by the row's list, also without what stands in front of its last dot.
static const char *spell(const conversion *c, const char *path, const char *text)
{
    const json_t *words = json_object_get(c->spelled, path);
    const char *last = strrchr(text, '.');
    const char *found = json_string_value(json_object_get(words, text));
    if (found == NULL && last != NULL) found = json_string_value(json_object_get(words, last + 1));
    return words == NULL ? text : found;
}

static bool put_scalar(conversion *c, size_t index, const char *path, const json_t *value)
{
    const hone_parameter *p = &c->signature->parameters[index].shown;
    hone_value fits, *out = &c->values[index];
    if (json_is_integer(value)) {
        *out = hone_of_int(json_integer_value(value));
    } else if (json_is_real(value)) {
        *out = hone_of_float(json_real_value(value));
    } else if (json_is_boolean(value)) {
        *out = hone_of_bool(json_is_true(value));
    } else if (json_is_string(value)) {
        const char *text = spell(c, path, json_string_value(value));
        if (text == NULL) return false;
        snprintf(c->texts[index], sizeof c->texts[index], "%s", text);
        *out = hone_of_string(c->texts[index]);
    } else {
        return false;
    }
    return hone_value_coerce(p, out, &fits);
}

static hone_status put(conversion *c, const char *path, const char *ours, const json_t *value)
{
    const int index = hone_signature_find(c->signature, ours);
    array a;
    if (index < 0) return says_nothing(c, path, value) ? HONE_OK : refuse(c, path, value);
    if (json_is_null(value)) return HONE_OK;
    const hone_parameter *p = &c->signature->parameters[index].shown;
    // Two spellings of one thing: `is_causal` and that of a mask. A truth that is false says nothing beside another.
    if (c->given[index] && json_is_false(value)) return HONE_OK;
    c->given[index] = true;
    const bool held = p->kind != HONE_KIND_TENSOR ? put_scalar(c, (size_t)index, path, value)
                                                  : read_array(value, &a) && put_array(c, (size_t)index, &a);
    return held ? HONE_OK : refuse(c, path, value);
}

// --- walking

static const char *target_of(const conversion *c, const char *path)
{
    const json_t *named = json_object_get(c->arguments, path);
    if (named != NULL) return json_string_value(named);
    const int index = strchr(path, '.') == NULL ? hone_signature_find(c->signature, path) : -1;
    return index >= 0 && !c->signature->parameters[index].shown.is_result ? path : NULL;
}

static bool is_window(const conversion *c, const char *path)
{
    const json_t *windows = c->row != NULL ? c->row->windows : NULL;
    for (size_t i = 0; i < json_array_size(windows); i++)
        if (strcmp(json_string_value(json_array_get(windows, i)), path) == 0) return true;
    return false;
}

static hone_status walk(conversion *c, const char *path, const json_t *value, int depth);

// A window of two sides, for a parameter of one number: both are equal, or nothing is seen to the right of the query.
static bool one_side(conversion *c, const json_t *window, json_int_t *out)
{
    const json_int_t left = json_integer_value(json_array_get(window, 0)),
                     right = json_integer_value(json_array_get(window, 1));
    const int causal = hone_signature_find(c->signature, "causal");
    *out = left;
    if (left == right) return true;
    if (causal < 0 || right < 0) return false;
    const bool is_causal = c->given[causal] && c->values[causal].as.i64 != 0;
    if (!is_causal && right != 0) return false;
    c->given[causal] = true;
    c->values[causal] = hone_of_bool(true);
    return true;
}

static hone_status put_window(conversion *c, const char *path, const json_t *value)
{
    char side[PATH_SIZE + 8];
    const char *target = target_of(c, path);
    const bool pair = json_array_size(value) == 2;
    json_int_t number = 0;
    if (!pair && !json_is_integer(value)) return json_is_null(value) ? HONE_OK : refuse(c, path, value);
    if (target != NULL && pair) {
        if (!one_side(c, value, &number)) return refuse(c, path, value);
        json_t *one = json_integer(number);
        hone_status status = one != NULL ? put(c, path, target, one) : hone_fail_memory(c->err, where);
        json_decref(one);
        return status;
    }
    if (target != NULL) return put(c, path, target, value);
    for (size_t i = 0; i < 2; i++) {
        snprintf(side, sizeof side, "%s.%s", path, i == 0 ? "left" : "right");
        target = target_of(c, side);
        if (target == NULL) return refuse(c, path, value);
        hone_status status = put(c, side, target, pair ? json_array_get(value, i) : value);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

static hone_status walk_parts(conversion *c, const char *path, const json_t *value, int depth)
{
    char part[PATH_SIZE];
    const char *name;
    const json_t *item;
    hone_status status = HONE_OK;
    json_object_foreach((json_t *)(uintptr_t)value, name, item)
    {
        if (strcmp(name, "__type") == 0 || status != HONE_OK) continue;
        const int size = snprintf(part, sizeof part, "%s.%s", path, name);
        status = size < (int)sizeof part ? walk(c, part, item, depth + 1) : refuse(c, path, value);
    }
    for (size_t i = 0; status == HONE_OK && i < json_array_size(value); i++) {
        const int size = snprintf(part, sizeof part, "%s.%zu", path, i);
        status = size < (int)sizeof part ? walk(c, part, json_array_get(value, i), depth + 1) : refuse(c, path, value);
    }
    return status;
}

static hone_status walk(conversion *c, const char *path, const json_t *value, int depth)
{
    array a;
    if (is_window(c, path)) return put_window(c, path, value);
    const char *target = target_of(c, path);
    const bool parts = (json_is_object(value) && !read_array(value, &a)) || json_array_size(value) > 0;
    if (target != NULL && !(parts && json_is_object(value))) return put(c, path, target, value);
    if (says_nothing(c, path, value)) return HONE_OK;
    return parts && depth < DEPTH_MAX ? walk_parts(c, path, value, depth) : refuse(c, path, value);
}

// Windows last: what they mean may hang on whether the call is causal.
static hone_status walk_all(conversion *c, const json_t *arguments)
{
    hone_status status = HONE_OK;
    for (int windows = 0; windows < 2; windows++) {
        const char *name;
        const json_t *value;
        json_object_foreach((json_t *)(uintptr_t)arguments, name, value)
        {
            if (status == HONE_OK && is_window(c, name) == (windows == 1)) status = walk(c, name, value, 0);
        }
    }
    return status;
}

static hone_status convert(conversion *c, const json_t *arguments, hone_call **out)
{
    memset(c->given, 0, sizeof c->given);
    for (size_t i = 0; i < HONE_MAX_VALUES; i++)
        c->values[i] = hone_of_none();
    c->times = 1;
    hone_status status = walk_all(c, arguments);
    const hone_call_source source = {
        .values = c->values, .count = c->signature->count, .given = c->given, .describe = true};
    return status == HONE_OK ? hone_call_build(c->allocator, c->signature, &source, out, c->err) : status;
}

static bool has_vmaps(const json_t *value)
{
    const char *name;
    const json_t *item;
    if (json_is_string(value)) return strstr(json_string_value(value), "{vmap_axes=") != NULL;
    json_object_foreach((json_t *)(uintptr_t)value, name, item)
    {
        if (has_vmaps(item)) return true;
    }
    return false;
}

// --- defaults that dims say

static bool is_said(const json_t *value)
{
    return value != NULL && !json_is_null(value);
}

static bool is_left_to_dims(const hone_signature *theirs, size_t index, const json_t *arguments)
{
    const hone_call_parameter *p = &theirs->parameters[index];
    return p->standard != NULL && !is_said(json_object_get(arguments, p->shown.name));
}

static json_t *only_arrays(const hone_signature *theirs, const json_t *arguments)
{
    json_t *out = json_object();
    for (size_t i = 0; out != NULL && i < theirs->count; i++) {
        const hone_parameter *p = &theirs->parameters[i].shown;
        json_t *value = p->kind == HONE_KIND_TENSOR ? json_object_get(arguments, p->name) : NULL;
        if (value != NULL) json_object_set(out, p->name, value);
    }
    return out;
}

static void set_number(json_t *arguments, const char *name, const hone_value *value)
{
    if (value->tag == HONE_VALUE_FLOAT) json_object_set_new(arguments, name, json_real(value->as.f64));
    if (value->tag == HONE_VALUE_INT) json_object_set_new(arguments, name, json_integer(value->as.i64));
}

// The arguments with what the library works out of dims where nobody said it: hone's algorithm may work out another.
// NULL: memory was short.
static json_t *with_defaults(const hone_allocator *allocator, hone_signature *theirs, const json_t *arguments)
{
    bool left = false;
    for (size_t i = 0; theirs != NULL && i < theirs->count; i++)
        left |= is_left_to_dims(theirs, i, arguments);
    json_t *out = json_copy((json_t *)(uintptr_t)arguments), *arrays = left ? only_arrays(theirs, arguments) : NULL;
    hone_call *call = NULL;
    int64_t times;
    hone_status status = left && arrays == NULL ? HONE_OUT_OF_MEMORY : HONE_OK;
    if (arrays != NULL) status = hone_foreign_call(allocator, NULL, 0, theirs, arrays, &call, &times, NULL);
    for (size_t i = 0; call != NULL && out != NULL && i < theirs->count; i++)
        if (is_left_to_dims(theirs, i, arguments))
            set_number(out, theirs->parameters[i].shown.name, &hone_call_defaults(call)[i]);
    hone_call_release(&call);
    json_decref(arrays);
    if (status != HONE_OUT_OF_MEMORY) return out;
    json_decref(out);
    return NULL;
}

// --- arguments by position

bool hone_foreign_name_arguments(hone_signature *theirs, const json_t *args, json_t *kwargs)
{
    size_t next = 0;
    for (size_t i = 0; i < json_array_size(args); i++, next++) {
        while (theirs != NULL && next < hone_signature_count(theirs) &&
               hone_signature_parameter(theirs, next)->is_result)
            next++;
        if (theirs == NULL || next >= hone_signature_count(theirs)) return false;
        if (json_object_set(kwargs, hone_signature_parameter(theirs, next)->name, json_array_get(args, i)) != 0)
            return false;
    }
    return true;
}

hone_status hone_foreign_call(
    const hone_allocator *allocator,
    const hone_foreign_row *row,
    size_t take,
    hone_signature *signature,
    const json_t *arguments,
    hone_call **out,
    int64_t *out_times,
    hone_error *err)
{
    *out = NULL;
    *out_times = 1;
    const json_t *taken = row != NULL ? json_array_get(row->takes, take) : NULL;
    json_t *whole = with_defaults(allocator, row != NULL ? row->signature : NULL, arguments);
    conversion *c = whole != NULL ? hone_alloc(allocator, sizeof *c) : NULL;
    if (c == NULL) {
        json_decref(whole);
        return hone_fail_memory(err, where);
    }
    c->row = row;
    c->arguments = json_object_get(taken, "arguments");
    c->spelled = json_object_get(taken, "spelled");
    c->signature = signature;
    c->allocator = *allocator;
    c->err = err;
    const int ways = has_vmaps(whole) ? BATCHINGS : 1;
    hone_status status = HONE_UNSUPPORTED;
    for (int way = 0; way < ways && status != HONE_OK && status != HONE_OUT_OF_MEMORY; way++) {
        c->batching = (batching)way;
        status = convert(c, whole, out);
    }
    *out_times = c->times;
    json_decref(whole);
    hone_free(allocator, c);
    return status;
}
