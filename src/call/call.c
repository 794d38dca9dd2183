// Calls after binding: shared, immutable, counted; and what kernels ask of them.
#include "call/call.h"

#include "base/error.h"
#include "call/bound.h"

#include <string.h>

hone_call *hone_call_retain(hone_call *call)
{
    if (call != NULL) atomic_fetch_add_explicit(&call->references, 1, memory_order_relaxed);
    return call;
}

void hone_call_release(hone_call **call)
{
    if (call == NULL || *call == NULL) return;
    hone_call *last = *call;
    *call = NULL;
    if (atomic_fetch_sub_explicit(&last->references, 1, memory_order_acq_rel) != 1) return;
    const hone_allocator allocator = last->arena.allocator;
    hone_signature_release(&last->signature);
    hone_arena_destroy(&last->arena);
    hone_free(&allocator, last);
}

const hone_signature *hone_call_signature(const hone_call *call)
{
    return call != NULL ? call->signature : NULL;
}

// A signature of another runtime has the same text.
hone_status hone_call_check(const hone_call *call, const hone_signature *signature, const char *from, hone_error *err)
{
    const hone_signature *own = hone_call_signature(call);
    if (own == signature || strcmp(hone_signature_text(own), hone_signature_text(signature)) == 0) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, from, "%s is of another operation, expected a call of %s", hone_call_text(call),
        hone_signature_text(signature));
}

const hone_value *hone_call_values(const hone_call *call)
{
    return call != NULL ? call->values : NULL;
}

const hone_value *hone_call_defaults(const hone_call *call)
{
    return call->defaults;
}

bool hone_call_is_default(const hone_call *call, size_t index)
{
    const hone_call_parameter *p = &call->signature->parameters[index];
    return p->shown.has_default && !(call->spelled && p->standard != NULL) &&
           hone_values_equal(&call->defaults[index], &call->values[index]);
}

static bool has_tensor(const hone_call *call, size_t index)
{
    return index < call->signature->count && call->values[index].tag == HONE_VALUE_TENSOR;
}

const hone_tensor *hone_call_tensor(const hone_call *call, size_t index)
{
    return call != NULL && has_tensor(call, index) ? &call->tensors[index] : NULL;
}

void hone_call_forget_data(hone_call *call)
{
    for (size_t i = 0; i < call->signature->count; i++)
        if (has_tensor(call, i)) call->tensors[i].data = NULL;
}

bool hone_call_is_inferred(const hone_call *call, size_t index)
{
    return index < call->signature->count && call->inferred[index];
}

bool hone_call_is_description(const hone_call *call)
{
    return call->description;
}

uint32_t hone_call_align(const hone_call *call, size_t index)
{
    return has_tensor(call, index) ? call->aligns[index] : 0;
}

bool hone_call_is_ordinary(const hone_call *call, size_t index)
{
    return has_tensor(call, index) && call->aligns[index] == 0 && hone_tensor_is_row_major(&call->tensors[index]);
}

hone_device hone_call_device(const hone_call *call)
{
    return call != NULL ? call->device : (hone_device){0};
}

const char *hone_call_text(const hone_call *call)
{
    return call != NULL ? call->text : NULL;
}

const char *hone_call_spec(const hone_call *call)
{
    return call != NULL ? call->spec : NULL;
}

const char *hone_call_key(const hone_call *call)
{
    return call == NULL ? NULL : call->key;
}

const hone_dtype_info *hone_call_dtype(const hone_call *call, const char *variable)
{
    for (size_t i = 0; variable != NULL && i < call->signature->variable_count; i++)
        if (hone_view_is(call->signature->variables[i].name, variable)) return call->types[i];
    return NULL;
}

typedef struct knowledge {
    const hone_call *call;
    bool all;
} knowledge;

static void look_up(void *ctx, uint32_t number)
{
    knowledge *k = ctx;
    k->all = k->all && k->call->known[number];
}

bool hone_call_knows(const hone_call *call, const hone_expression *expression)
{
    knowledge k = {call, true};
    hone_expression_slots(expression, look_up, &k);
    return k.all;
}

static hone_status integer_of(const hone_scalar *scalar, int64_t *out)
{
    if (scalar->kind == HONE_SCALAR_NONE) return HONE_NOT_FOUND;
    if (scalar->kind != HONE_SCALAR_INT && scalar->kind != HONE_SCALAR_BOOL) return HONE_INVALID_ARGUMENT;
    *out = scalar->as.i64;
    return HONE_OK;
}

// A dim, or a scalar that no expression of the signature reads and that so has no slot.
static hone_status name_value(const hone_call *call, hone_view name, int64_t *out)
{
    const int found = hone_signature_slot(call->signature, name);
    if (found >= 0 && call->signature->slots[found].kind <= SLOT_SCALAR)
        return call->known[found] ? integer_of(&call->slots[found], out) : HONE_NOT_FOUND;
    for (size_t i = 0; i < call->signature->count; i++) {
        const hone_value *value = &call->values[i];
        if (!hone_view_is(name, call->signature->parameters[i].shown.name)) continue;
        if (value->tag == HONE_VALUE_NONE || value->tag == HONE_VALUE_TENSOR) return HONE_NOT_FOUND;
        if (value->tag != HONE_VALUE_INT && value->tag != HONE_VALUE_BOOL) return HONE_INVALID_ARGUMENT;
        *out = value->as.i64;
        return HONE_OK;
    }
    return HONE_NOT_FOUND;
}

// "x.shape" with an axis, or "x.ndim".
static hone_status fact_value(const hone_call *call, hone_view name, int64_t axis, int64_t *out)
{
    const char *dot = memchr(name.data, '.', name.size);
    if (dot == NULL) return HONE_NOT_FOUND;
    const hone_view owner = {name.data, (size_t)(dot - name.data)};
    const hone_view fact = {dot + 1, name.size - owner.size - 1};
    for (size_t i = 0; i < call->signature->count; i++) {
        if (!hone_view_is(owner, call->signature->parameters[i].shown.name) || !has_tensor(call, i)) continue;
        const hone_tensor *tensor = &call->tensors[i];
        if (hone_view_is(fact, "ndim"))
            *out = tensor->ndim;
        else if (hone_view_is(fact, "shape") && axis >= 0 && axis < tensor->ndim)
            *out = tensor->shape[axis];
        else
            return HONE_NOT_FOUND;
        return HONE_OK;
    }
    return HONE_NOT_FOUND;
}

// An expression's names, each with its value as it is met: slot numbers are only used once, here.
enum { MAX_NAMES = 16 };
typedef struct name_values {
    const hone_call *call;
    hone_scalar values[MAX_NAMES];
    uint32_t count;
    hone_status status;
} name_values;

static bool resolve(void *ctx, hone_view name, int64_t index, uint32_t *out_slot)
{
    name_values *names = ctx;
    int64_t value = 0;
    const bool fact = memchr(name.data, '.', name.size) != NULL;
    hone_status status = fact ? fact_value(names->call, name, index, &value) : name_value(names->call, name, &value);
    if (names->count == MAX_NAMES) status = HONE_INVALID_ARGUMENT;
    if (status != HONE_OK) {
        names->status = status;
        return false;
    }
    names->values[names->count] = hone_scalar_int(value);
    *out_slot = names->count++;
    return true;
}

static hone_status expression_value(const hone_call *call, const char *text, int64_t *out)
{
    hone_arena arena = {.allocator = call->arena.allocator};
    name_values values = {.call = call};
    const hone_expression_names names = {resolve, &values};
    const hone_expression *expression;
    hone_scalar scalar;
    hone_lexer lexer;
    hone_lexer_init(&lexer, hone_view_of(text), &arena, NULL);
    hone_status status = hone_expression_compile(&lexer, &names, 0, &expression, NULL);
    if (status == HONE_OK && lexer.token.kind != HONE_TOKEN_END) status = HONE_INVALID_ARGUMENT;
    if (status == HONE_OK) status = hone_expression_evaluate(expression, values.values, &scalar, NULL);
    if (status == HONE_OK) status = integer_of(&scalar, out);
    hone_arena_destroy(&arena);
    return values.status != HONE_OK ? values.status : status;
}

hone_status hone_call_dim(const hone_call *call, const char *name, int64_t *out_value)
{
    if (name == NULL) return HONE_NOT_FOUND;
    // The common case, a bare name, allocates nothing.
    if (strpbrk(name, " .+-*/%()<>=![]") == NULL) return name_value(call, hone_view_of(name), out_value);
    return expression_value(call, name, out_value);
}
