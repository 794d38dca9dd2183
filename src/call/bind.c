// Binds values to a signature: fills in defaults, binds dims and types from left to right, checks everything,
// infers results. Scalars come first, since shapes may depend on them ("[n, k] if transpose_b else [k, n]").
#include "base/error.h"
#include "call/bound.h"
#include "call/call.h"

#include <stdio.h>
#include <string.h>

// Where a dim or type got its value, for messages.
typedef struct origin {
    const char *parameter;
    int32_t axis;
} origin;

typedef struct binder {
    hone_call *call;
    const hone_signature *signature;
    hone_error *err;
    bool describe, device_known;
    bool left_out[HONE_MAX_VALUES]; // parameters whose default stands
    origin slots[HONE_MAX_SLOTS];
    const char *types[HONE_MAX_VARIABLES];
    bool leading_known; // what "..." stands for
    int32_t leading_count;
    int64_t leading[HONE_MAX_RANK];
    const char *leading_from;
} binder;

static const char where[] = "call.bind";

__attribute__((format(printf, 2, 3))) static hone_status wrong(binder *b, const char *format, ...)
{
    char words[900];
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    return hone_fail(b->err, HONE_INVALID_ARGUMENT, where, "%s: %s", b->signature->name, words);
}

static hone_status wrong_value(binder *b, const hone_call_parameter *p, const hone_value *given, const char *expected)
{
    hone_buffer came;
    hone_buffer_init(&came, b->call->arena.allocator);
    hone_append_given(&came, given);
    hone_status status = wrong(b, "%s is %s, expected %s", p->shown.name, hone_buffer_string(&came), expected);
    hone_buffer_deinit(&came);
    return status;
}

// ---- values

static hone_status take_missing(binder *b, size_t i)
{
    const hone_call_parameter *p = &b->signature->parameters[i];
    b->call->values[i] = hone_of_none();
    if (p->shown.is_result) {
        b->call->inferred[i] = true;
        if (b->describe) return HONE_OK;
        return wrong(b, "the result %s is missing: give a tensor %s", p->shown.name, p->shown.type_text);
    }
    if (p->shown.has_default) {
        b->left_out[i] = true;
        b->call->values[i] = p->shown.default_value;
        return HONE_OK;
    }
    return wrong(b, "%s is missing, expected %s", p->shown.name, p->shown.type_text);
}

static hone_status copy_string(binder *b, const hone_call_parameter *p, hone_value *value)
{
    const char *text = value->as.string;
    if (text == NULL || !hone_text_is_utf8(text, strlen(text)))
        return wrong(b, "%s is a string that is %s, expected UTF-8", p->shown.name, text == NULL ? "NULL" : "no UTF-8");
    value->as.string = hone_arena_text(&b->call->arena, text, strlen(text));
    return value->as.string != NULL ? HONE_OK : hone_fail_memory(b->err, where);
}

static hone_status take_value(binder *b, size_t i, const hone_value *given)
{
    const hone_call_parameter *p = &b->signature->parameters[i];
    hone_value *value = &b->call->values[i];
    if (!hone_value_coerce(&p->shown, given, value)) return wrong_value(b, p, given, p->shown.type_text);
    return value->tag == HONE_VALUE_STRING ? copy_string(b, p, value) : HONE_OK;
}

static hone_status take_values(binder *b, const hone_call_source *source)
{
    const hone_signature *signature = b->signature;
    if (source->count > signature->count)
        return wrong(
            b, "%zu values came, but there are only %zu parameters and results: %s", source->count, signature->count,
            signature->text);
    if (source->values == NULL && source->count > 0)
        return wrong(b, "%zu values are said to come, and their array is NULL", source->count);
    for (size_t i = 0; i < signature->count; i++) {
        b->call->defaults[i] = signature->parameters[i].shown.default_value;
        const bool left_out = i >= source->count || (source->given != NULL && !source->given[i]);
        const bool none = left_out || source->values[i].tag == HONE_VALUE_NONE;
        const bool missing = none && (left_out || !signature->parameters[i].shown.nullable);
        hone_status status = missing ? take_missing(b, i) : take_value(b, i, &source->values[i]);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

// ---- tensors, each for itself

static hone_status check_device(binder *b, const char *name, hone_device device)
{
    const char *type = hone_device_type_name(device.type);
    if (type == NULL || device.id < 0)
        return wrong(b, "%s is on device type %d, id %d, which hone does not know", name, device.type, device.id);
    if (!b->device_known) {
        b->call->device = device;
        b->device_known = true;
        return HONE_OK;
    }
    const hone_device first = b->call->device;
    if (first.type == device.type && first.id == device.id) return HONE_OK;
    return wrong(
        b, "%s is on %s:%d, but the tensors before it are on %s:%d", name, type, device.id,
        hone_device_type_name(first.type), first.id);
}

static hone_status check_tensor(binder *b, const hone_call_parameter *p, const hone_tensor *tensor)
{
    const char *name = p->shown.name;
    if (tensor == NULL) return wrong(b, "%s is a NULL tensor, expected %s", name, p->shown.type_text);
    if (tensor->ndim < 0 || tensor->ndim > HONE_MAX_RANK)
        return wrong(
            b, "%s has %d dims, expected %s (at most %d)", name, tensor->ndim, p->shown.type_text, HONE_MAX_RANK);
    if (hone_dtype_find(tensor->dtype) == NULL)
        return wrong(
            b, "%s has an unknown dtype (code %u, %u bits, %u lanes), expected %s", name, tensor->dtype.code,
            tensor->dtype.bits, tensor->dtype.lanes, p->shown.type_text);
    if (tensor->ndim > 0 && tensor->shape == NULL) return wrong(b, "%s has no shape", name);
    for (int32_t i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] < 0)
            return wrong(b, "%s[%d] is %lld: a dim is never negative", name, i, (long long)tensor->shape[i]);
    int64_t bytes, below;
    if (hone_tensor_span(tensor, &bytes, &below) != HONE_OK)
        return wrong(b, "%s is larger than memory: its shape and strides overflow 64 bits", name);
    if (tensor->data == NULL && bytes > 0 && !b->describe) return wrong(b, "%s has no data", name);
    return check_device(b, name, tensor->device);
}

static int64_t *copy_dims(binder *b, const int64_t *dims, int32_t count)
{
    int64_t *copy = hone_arena_array(&b->call->arena, (size_t)count, sizeof *copy);
    if (copy != NULL && count > 0) memcpy(copy, dims, (size_t)count * sizeof *copy);
    return copy;
}

static hone_status take_tensor(binder *b, size_t i, const uint32_t *aligns)
{
    hone_call *call = b->call;
    const hone_tensor *given = call->values[i].as.tensor;
    hone_status status = check_tensor(b, &b->signature->parameters[i], given);
    if (status != HONE_OK) return status;
    hone_tensor *tensor = &call->tensors[i];
    *tensor = *given;
    tensor->shape = copy_dims(b, given->shape, given->ndim);
    if (given->strides != NULL) tensor->strides = copy_dims(b, given->strides, given->ndim);
    if (tensor->shape == NULL || (given->strides != NULL && tensor->strides == NULL))
        return hone_fail_memory(b->err, where);
    call->values[i] = hone_of_tensor(tensor);
    call->aligns[i] = aligns != NULL ? aligns[i] : hone_tensor_align(tensor);
    return HONE_OK;
}

static hone_status take_tensors(binder *b, const uint32_t *aligns)
{
    for (size_t i = 0; i < b->signature->count; i++) {
        if (b->call->values[i].tag != HONE_VALUE_TENSOR) continue;
        hone_status status = take_tensor(b, i, aligns);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

// ---- slots that need no binding

static hone_scalar scalar_of(const hone_value *value)
{
    switch (value->tag) {
    case HONE_VALUE_BOOL:
        return hone_scalar_bool(value->as.i64 != 0);
    case HONE_VALUE_INT:
        return hone_scalar_int(value->as.i64);
    case HONE_VALUE_FLOAT:
        return hone_scalar_float(value->as.f64);
    case HONE_VALUE_STRING:
        return hone_scalar_text(hone_view_of(value->as.string));
    default:
        return (hone_scalar){.kind = HONE_SCALAR_NONE};
    }
}

static hone_status take_fact(binder *b, size_t i)
{
    const hone_call_slot *s = &b->signature->slots[i];
    hone_call *call = b->call;
    const hone_value *value = &call->values[s->parameter];
    if (s->kind == SLOT_SCALAR) {
        call->slots[i] = scalar_of(value);
        call->known[i] = !b->left_out[s->parameter] || b->signature->parameters[s->parameter].standard == NULL;
        b->slots[i] = (origin){b->signature->parameters[s->parameter].shown.name, -1};
        return HONE_OK;
    }
    if (value->tag != HONE_VALUE_TENSOR) return HONE_OK;
    const hone_tensor *tensor = value->as.tensor;
    if (s->kind == SLOT_SHAPE && s->axis >= tensor->ndim)
        return wrong(
            b, "%s has %d dims, but the signature reads its dim %lld",
            b->signature->parameters[s->parameter].shown.name, tensor->ndim, (long long)s->axis);
    call->slots[i] = hone_scalar_int(s->kind == SLOT_NDIM ? tensor->ndim : tensor->shape[s->axis]);
    call->known[i] = true;
    return HONE_OK;
}

static hone_status take_facts(binder *b)
{
    for (size_t i = 0; i < b->signature->slot_count; i++) {
        hone_status status = b->signature->slots[i].kind == SLOT_DIM ? HONE_OK : take_fact(b, i);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

// ---- shapes

static hone_status evaluate(binder *b, const hone_expression *expression, hone_scalar *out)
{
    hone_status status = hone_expression_evaluate(expression, b->call->slots, out, b->err);
    if (status == HONE_OK) return HONE_OK;
    return hone_fail_prefix(b->err, status, "%s: %s", b->signature->name, hone_expression_source(expression).data);
}

// The shape that the conditions choose.
static hone_status choose_shape(binder *b, const hone_call_parameter *p, const hone_shape_pattern **out)
{
    const hone_shape_pattern *s = p->shape;
    while (s->condition != NULL) {
        hone_scalar truth;
        if (!hone_call_knows(b->call, s->condition))
            return wrong(
                b, "the shape of %s depends on '%s', which is not known before it", p->shown.name,
                hone_expression_source(s->condition).data);
        hone_status status = evaluate(b, s->condition, &truth);
        if (status != HONE_OK) return status;
        if (hone_scalar_truth(&truth)) break;
        s = s->otherwise;
    }
    *out = s;
    return HONE_OK;
}

static hone_status evaluate_dim(binder *b, const hone_dim *d, int64_t *out)
{
    hone_scalar value = {.kind = HONE_SCALAR_NONE};
    if (d->expression != NULL) {
        hone_status status = evaluate(b, d->expression, &value);
        if (status != HONE_OK) return status;
    } else {
        value = b->call->slots[d->slot];
    }
    if (value.kind != HONE_SCALAR_INT || value.as.i64 < 0)
        return wrong(b, "the dim %.*s is not a whole number, 0 or more", (int)d->text.size, d->text.data);
    *out = value.as.i64;
    return HONE_OK;
}

static hone_status match_leading(binder *b, const char *name, const hone_tensor *tensor, int32_t count)
{
    if (!b->leading_known) {
        b->leading_known = true;
        b->leading_count = count;
        b->leading_from = name;
        if (count > 0) memcpy(b->leading, tensor->shape, (size_t)count * sizeof *b->leading);
        return HONE_OK;
    }
    if (count != b->leading_count)
        return wrong(
            b, "%s has %d leading dims but '...' is %d dims (from %s)", name, count, b->leading_count, b->leading_from);
    for (int32_t i = 0; i < count; i++)
        if (tensor->shape[i] != b->leading[i])
            return wrong(
                b, "%s[%d] is %lld but %s[%d] is %lld, and '...' is the same everywhere", name, i,
                (long long)tensor->shape[i], b->leading_from, i, (long long)b->leading[i]);
    return HONE_OK;
}

// Binds a bare name at its first use and checks it at every other one.
static hone_status match_name(binder *b, const char *name, const hone_dim *d, int32_t axis, int64_t came)
{
    hone_call *call = b->call;
    const origin *from = &b->slots[d->slot];
    if (!call->known[d->slot]) {
        call->slots[d->slot] = hone_scalar_int(came);
        call->known[d->slot] = true;
        b->slots[d->slot] = (origin){name, axis};
        return HONE_OK;
    }
    int64_t wanted;
    hone_status status = evaluate_dim(b, d, &wanted);
    if (status != HONE_OK || wanted == came) return status;
    if (from->axis < 0)
        return wrong(
            b, "%s[%d] is %lld but %s is %lld", name, axis, (long long)came, from->parameter, (long long)wanted);
    return wrong(
        b, "%s[%d] is %lld but %.*s is %lld (from %s[%d])", name, axis, (long long)came, (int)d->text.size,
        d->text.data, (long long)wanted, from->parameter, from->axis);
}

static hone_status match_shape(binder *b, size_t i)
{
    const hone_call_parameter *p = &b->signature->parameters[i];
    const hone_tensor *tensor = &b->call->tensors[i];
    const hone_shape_pattern *s;
    hone_status status = choose_shape(b, p, &s);
    if (status != HONE_OK) return status;
    const int32_t leading = tensor->ndim - (int32_t)s->count;
    if (leading < 0 || (leading > 0 && !s->ellipsis)) {
        // People write vectors where numpy and torch take them for matrices.
        const bool is_short = leading < 0 && tensor->ndim > 0;
        char expected[600];
        hone_value given = hone_of_tensor(tensor);
        snprintf(
            expected, sizeof expected, "%s%s", p->shown.type_text,
            is_short ? "; give a dim that is missing as an axis of size 1" : "");
        return wrong_value(b, p, &given, expected);
    }
    if (s->ellipsis) status = match_leading(b, p->shown.name, tensor, leading);
    for (uint32_t k = 0; k < s->count && status == HONE_OK; k++)
        if (s->dims[k].expression == NULL)
            status =
                match_name(b, p->shown.name, &s->dims[k], leading + (int32_t)k, tensor->shape[leading + (int32_t)k]);
    return status;
}

// Dims that are expressions, when all names are bound. What only an absent tensor could tell is not checked.
static hone_status check_expressions(binder *b, size_t i)
{
    const hone_call_parameter *p = &b->signature->parameters[i];
    const hone_tensor *tensor = &b->call->tensors[i];
    const hone_shape_pattern *s;
    hone_status status = choose_shape(b, p, &s);
    for (uint32_t k = 0; status == HONE_OK && k < s->count; k++) {
        const hone_dim *d = &s->dims[k];
        const int32_t axis = tensor->ndim - (int32_t)s->count + (int32_t)k;
        int64_t wanted;
        if (d->expression == NULL || !hone_call_knows(b->call, d->expression)) continue;
        status = evaluate_dim(b, d, &wanted);
        if (status == HONE_OK && wanted != tensor->shape[axis])
            return wrong(
                b, "%s[%d] is %lld but %s is %lld", p->shown.name, axis, (long long)tensor->shape[axis],
                hone_expression_source(d->expression).data, (long long)wanted);
    }
    return status;
}

// ---- dtypes

static hone_status wrong_dtype(binder *b, const hone_call_parameter *p, const hone_dtype_info *came)
{
    const hone_type_variable *variable = &b->signature->variables[p->variable];
    char list[160] = "";
    size_t used = 0;
    for (int id = 0; id < HONE_DTYPE_COUNT; id++)
        if ((variable->allowed >> id & 1) != 0 && used < sizeof list)
            used += (size_t)snprintf(
                list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "",
                hone_dtype_info_of((hone_dtype_id)id)->name);
    return wrong(
        b, "%s is %s, expected %.*s in %s", p->shown.name, came->name, (int)variable->name.size, variable->name.data,
        list);
}

static hone_status match_dtype(binder *b, size_t i)
{
    const hone_call_parameter *p = &b->signature->parameters[i];
    const hone_dtype_info *came = hone_dtype_find(b->call->tensors[i].dtype);
    if (p->dtype != NULL) {
        if (came == p->dtype) return HONE_OK;
        return wrong(b, "%s is %s, expected %s", p->shown.name, came->name, p->shown.type_text);
    }
    const hone_type_variable *variable = &b->signature->variables[p->variable];
    const hone_dtype_info **bound = &b->call->types[p->variable];
    if (*bound == NULL) {
        if (variable->allowed != 0 && (variable->allowed >> came->id & 1) == 0) return wrong_dtype(b, p, came);
        *bound = came;
        b->types[p->variable] = p->shown.name;
    }
    if (*bound == came) return HONE_OK;
    return wrong(
        b, "%s is %s but %.*s is %s (from %s)", p->shown.name, came->name, (int)variable->name.size,
        variable->name.data, (*bound)->name, b->types[p->variable]);
}

static hone_status match_tensors(binder *b, bool results)
{
    for (size_t i = 0; i < b->signature->count; i++) {
        if (b->call->values[i].tag != HONE_VALUE_TENSOR || b->signature->parameters[i].shown.is_result != results)
            continue;
        hone_status status = match_dtype(b, i);
        if (status == HONE_OK) status = match_shape(b, i);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

// ---- defaults that dims say

static bool value_of(const hone_scalar *scalar, hone_value *out)
{
    if (scalar->kind == HONE_SCALAR_BOOL)
        *out = hone_of_bool(scalar->as.i64 != 0);
    else if (scalar->kind == HONE_SCALAR_INT)
        *out = hone_of_int(scalar->as.i64);
    else if (scalar->kind == HONE_SCALAR_FLOAT)
        *out = hone_of_float(scalar->as.f64);
    else
        *out = hone_of_none();
    return scalar->kind != HONE_SCALAR_TEXT;
}

static hone_status compute_default(binder *b, const hone_call_parameter *p, hone_value *out)
{
    hone_scalar scalar;
    hone_value value;
    if (!hone_call_knows(b->call, p->standard))
        return wrong(
            b, "%s is missing, and nothing given says what its default %s is", p->shown.name, p->shown.default_text);
    hone_status status = hone_expression_evaluate(p->standard, b->call->slots, &scalar, b->err);
    if (status != HONE_OK)
        return hone_fail_prefix(
            b->err, status, "%s: %s is missing, and its default", b->signature->name, p->shown.name);
    if (value_of(&scalar, &value) && hone_value_coerce(&p->shown, &value, out)) return HONE_OK;
    return wrong_value(b, p, &value, p->shown.type_text);
}

// What was left out is needed; of what was given it is good to know whether the default is the same.
static hone_status finish_defaults(binder *b)
{
    hone_call *call = b->call;
    for (size_t i = 0; i < b->signature->count; i++) {
        const hone_call_parameter *p = &b->signature->parameters[i];
        if (p->standard == NULL) continue;
        hone_error *err = b->err;
        if (!b->left_out[i]) b->err = NULL;
        hone_status status = compute_default(b, p, &call->defaults[i]);
        b->err = err;
        if (status != HONE_OK && b->left_out[i]) return status;
        if (status != HONE_OK) call->defaults[i] = hone_of_none();
        if (b->left_out[i]) call->values[i] = call->defaults[i];
    }
    for (size_t i = 0; i < b->signature->slot_count; i++) {
        const hone_call_slot *s = &b->signature->slots[i];
        if (s->kind != SLOT_SCALAR || call->known[i]) continue;
        call->slots[i] = scalar_of(&call->values[s->parameter]);
        call->known[i] = true;
    }
    return HONE_OK;
}

// ---- results

static hone_status infer_shape(binder *b, const hone_call_parameter *p, hone_tensor *tensor)
{
    int64_t dims[2 * HONE_MAX_RANK];
    const hone_shape_pattern *s;
    hone_status status = choose_shape(b, p, &s);
    if (status != HONE_OK) return status;
    int32_t count = 0;
    if (s->ellipsis) {
        if (!b->leading_known)
            return wrong(b, "the shape of %s cannot be inferred: nothing says what '...' is", p->shown.name);
        for (; count < b->leading_count; count++)
            dims[count] = b->leading[count];
    }
    for (uint32_t k = 0; k < s->count; k++) {
        const hone_dim *d = &s->dims[k];
        if (d->expression != NULL ? !hone_call_knows(b->call, d->expression) : !b->call->known[d->slot])
            return wrong(
                b, "the shape of %s cannot be inferred: nothing given says what %.*s is", p->shown.name,
                (int)d->text.size, d->text.data);
        status = evaluate_dim(b, d, &dims[count++]);
        if (status != HONE_OK) return status;
    }
    if (count > HONE_MAX_RANK)
        return wrong(b, "%s would have %d dims, at most %d are possible", p->shown.name, count, HONE_MAX_RANK);
    tensor->ndim = count;
    tensor->shape = copy_dims(b, dims, count);
    return tensor->shape != NULL ? HONE_OK : hone_fail_memory(b->err, where);
}

static hone_status infer_result(binder *b, size_t i)
{
    const hone_call_parameter *p = &b->signature->parameters[i];
    const hone_dtype_info *dtype = p->dtype != NULL ? p->dtype : b->call->types[p->variable];
    hone_tensor *tensor = &b->call->tensors[i];
    if (dtype == NULL) return wrong(b, "the dtype of %s cannot be inferred: no given tensor has it", p->shown.name);
    tensor->dtype = dtype->dtype;
    tensor->device = b->call->device;
    hone_status status = infer_shape(b, p, tensor);
    int64_t bytes, below;
    if (status == HONE_OK && hone_tensor_span(tensor, &bytes, &below) != HONE_OK)
        return wrong(b, "%s would be larger than memory: its shape overflows 64 bits", p->shown.name);
    b->call->values[i] = hone_of_tensor(tensor);
    return status;
}

static hone_status finish_tensors(binder *b)
{
    for (size_t i = 0; i < b->signature->count; i++) {
        if (b->signature->parameters[i].shape == NULL) continue;
        hone_status status = HONE_OK;
        if (b->call->inferred[i])
            status = infer_result(b, i);
        else if (b->call->values[i].tag == HONE_VALUE_TENSOR)
            status = check_expressions(b, i);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

// ---- where

typedef struct clause_words {
    binder *b;
    hone_buffer text;
} clause_words;

static void append_reading(void *ctx, uint32_t slot_number)
{
    clause_words *words = ctx;
    const hone_call_slot *s = &words->b->signature->slots[slot_number];
    const hone_scalar *value = &words->b->call->slots[slot_number];
    hone_buffer_text(&words->text, words->text.size == 0 ? " (" : ", ");
    hone_buffer_append(&words->text, s->name.data, s->name.size);
    if (s->kind == SLOT_SHAPE) hone_buffer_format(&words->text, "[%lld]", (long long)s->axis);
    if (value->kind == HONE_SCALAR_FLOAT)
        hone_buffer_format(&words->text, " is %g", value->as.f64);
    else if (value->kind == HONE_SCALAR_TEXT)
        hone_buffer_format(&words->text, " is '%s'", value->as.text.data);
    else if (value->kind == HONE_SCALAR_NONE)
        hone_buffer_text(&words->text, " is none");
    else
        hone_buffer_format(&words->text, " is %lld", (long long)value->as.i64);
}

static hone_status check_clause(binder *b, const hone_expression *clause)
{
    hone_scalar truth;
    if (!hone_call_knows(b->call, clause)) return HONE_OK; // it speaks of a tensor that was not given
    hone_status status = evaluate(b, clause, &truth);
    if (status != HONE_OK || hone_scalar_truth(&truth)) return status;
    clause_words words = {.b = b};
    hone_buffer_init(&words.text, b->call->arena.allocator);
    hone_expression_slots(clause, append_reading, &words);
    if (words.text.size > 0) hone_buffer_char(&words.text, ')');
    status = wrong(b, "%s does not hold%s", hone_expression_source(clause).data, hone_buffer_string(&words.text));
    hone_buffer_deinit(&words.text);
    return status;
}

static hone_status check_clauses(binder *b)
{
    for (size_t i = 0; i < b->signature->clause_count; i++) {
        hone_status status = check_clause(b, b->signature->clauses[i]);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

// ---- memory

static bool same_memory(const hone_tensor *a, const hone_tensor *b)
{
    int64_t a_strides[HONE_MAX_RANK], b_strides[HONE_MAX_RANK];
    if (hone_tensor_data(a) != hone_tensor_data(b) || a->ndim != b->ndim ||
        hone_dtype_find(a->dtype) != hone_dtype_find(b->dtype))
        return false;
    hone_tensor_strides(a, a_strides);
    hone_tensor_strides(b, b_strides);
    for (int32_t i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i] || (a->shape[i] > 1 && a_strides[i] != b_strides[i])) return false;
    return true;
}

// A result against everything else that has memory; of two results only the later one looks.
static hone_status check_result_memory(binder *b, size_t result)
{
    const hone_tensor *tensor = &b->call->tensors[result];
    const hone_parameter *r = &b->signature->parameters[result].shown;
    if (!hone_tensor_keeps_apart(tensor))
        return wrong(b, "the result %s has strides that put two of its elements in one place", r->name);
    bool taken = false;
    for (size_t i = 0; i < b->signature->count; i++) {
        const hone_parameter *other = &b->signature->parameters[i].shown;
        if (i == result || b->call->values[i].tag != HONE_VALUE_TENSOR || (other->is_result && i > result)) continue;
        if (!hone_tensors_overlap(tensor, &b->call->tensors[i])) continue;
        if (r->is_inout && !other->is_result && !taken && same_memory(tensor, &b->call->tensors[i])) {
            taken = true;
            continue;
        }
        return wrong(
            b, "the result %s overlaps %s%s", r->name, other->name,
            r->is_inout ? ": it may be exactly the memory of one parameter of the same dtype, shape and strides, or "
                          "apart from all"
                        : ": results must be apart from all other tensors");
    }
    return HONE_OK;
}

static hone_status check_memory(binder *b)
{
    for (size_t i = 0; i < b->signature->count; i++) {
        if (!b->signature->parameters[i].shown.is_result || b->call->tensors[i].data == NULL) continue;
        hone_status status = check_result_memory(b, i);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

// ---- all

static hone_status bind_all(binder *b, const hone_call_source *source)
{
    hone_status status = take_values(b, source);
    if (status == HONE_OK) status = take_tensors(b, source->aligns);
    if (status == HONE_OK) status = take_facts(b);
    if (status == HONE_OK) status = match_tensors(b, false);
    if (status == HONE_OK) status = finish_defaults(b);
    if (status == HONE_OK) status = match_tensors(b, true);
    if (status == HONE_OK) status = finish_tensors(b);
    if (status == HONE_OK) status = check_clauses(b);
    if (status == HONE_OK) status = check_memory(b);
    if (status == HONE_OK) status = hone_call_write_text(b->call, b->err);
    if (status == HONE_OK) status = hone_call_write_spec(b->call, b->err);
    return status;
}

static bool allocate_parts(hone_call *call)
{
    const hone_signature *signature = call->signature;
    const size_t count = signature->count;
    call->values = hone_arena_array(&call->arena, count, sizeof *call->values);
    call->defaults = hone_arena_array(&call->arena, count, sizeof *call->defaults);
    call->tensors = hone_arena_array(&call->arena, count, sizeof *call->tensors);
    call->aligns = hone_arena_array(&call->arena, count, sizeof *call->aligns);
    call->inferred = hone_arena_array(&call->arena, count, sizeof *call->inferred);
    call->slots = hone_arena_array(&call->arena, signature->slot_count, sizeof *call->slots);
    call->known = hone_arena_array(&call->arena, signature->slot_count, sizeof *call->known);
    call->types = hone_arena_array(&call->arena, signature->variable_count, sizeof *call->types);
    return call->values != NULL && call->defaults != NULL && call->tensors != NULL && call->aligns != NULL &&
           call->inferred != NULL && call->slots != NULL && call->known != NULL && call->types != NULL;
}

hone_status hone_call_build(
    hone_allocator allocator,
    hone_signature *signature,
    const hone_call_source *source,
    hone_call **out,
    hone_error *err)
{
    *out = NULL;
    hone_call *call = hone_alloc(&allocator, sizeof *call);
    if (call == NULL) return hone_fail_memory(err, where);
    atomic_init(&call->references, 1);
    call->arena.allocator = allocator;
    call->signature = hone_signature_retain(signature);
    call->description = source->describe;
    call->spelled = source->spelled;
    call->device = (hone_device){HONE_DEVICE_CPU, 0};
    binder b = {.call = call, .signature = signature, .err = err, .describe = source->describe};
    hone_status status = allocate_parts(call) ? bind_all(&b, source) : hone_fail_memory(err, where);
    if (status == HONE_OK)
        *out = call;
    else
        hone_call_release(&call);
    return status;
}

hone_status hone_call_bind(
    hone_allocator allocator,
    hone_signature *signature,
    const hone_value *values,
    size_t count,
    bool describe,
    hone_call **out,
    hone_error *err)
{
    if (signature == NULL || out == NULL) {
        if (out != NULL) *out = NULL;
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the signature or out is NULL");
    }
    const hone_call_source source = {.values = values, .count = count, .describe = describe};
    return hone_call_build(hone_allocator_given(allocator), signature, &source, out, err);
}
