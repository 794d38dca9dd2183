// A call's bucket: "~pow2" dims rounded up, so that a growing length finds one answer for many values, and scalars of role
// `any` at their default. And the other calls that its answer may stand under.
//
// The rounded dims are put into the shapes of all arguments, expressions of dims are evaluated anew, and the call is
// bound once more as if somebody had made it: so a bucket is a call like any other, with a text, a spec and a key, and
// the conditions of the signature hold for it or it is none. A length in (2^(n-1), 2^n] costs at most one contest, and
// a choice is made for a length at most twice the one that it serves.
#include "base/assert.h"
#include "base/error.h"
#include "call/bound.h"

#include <math.h>
#include <string.h>

static const char where[] = "call.bucket";

int64_t hone_round_up_pow2(int64_t v)
{
    int64_t power = 1;
    while (power < v && power <= INT64_MAX / 2)
        power *= 2;
    return v <= 0 || power < v ? v : power;
}

// The bucket (upper / 2, upper] has its middle at 3/4 of its upper end.
static int64_t bucket_of(int64_t v, bool upper)
{
    const int64_t end = hone_round_up_pow2(v);
    hone_assert(end >= v);
    return upper || end < 4 ? end : end / 4 * 3;
}

typedef struct bucketing {
    const hone_call *call;
    bool frees; // scalars of role `any` are left at their default
    hone_scalar slots[HONE_MAX_SLOTS];
    hone_value values[HONE_MAX_VALUES];
    bool given[HONE_MAX_VALUES];
    hone_tensor tensors[HONE_MAX_VALUES];
    int64_t shapes[HONE_MAX_VALUES][HONE_MAX_RANK];
    hone_error *err;
} bucketing;

static bool round_dims(bucketing *b, bool upper)
{
    const hone_signature *signature = b->call->signature;
    bool changed = false;
    for (size_t i = 0; i < signature->slot_count; i++) {
        b->slots[i] = b->call->slots[i];
        if (signature->slots[i].kind != SLOT_DIM || !signature->slots[i].pow2 || !b->call->known[i]) continue;
        b->slots[i].as.i64 = bucket_of(b->slots[i].as.i64, upper);
        changed = changed || b->slots[i].as.i64 != b->call->slots[i].as.i64;
    }
    return changed;
}

// The rounded shapes decide for themselves which branch of a conditional shape they take.
static hone_status reshape(bucketing *b, size_t i)
{
    const hone_shape_pattern *s = b->call->signature->parameters[i].shape;
    hone_tensor *tensor = &b->tensors[i];
    for (hone_scalar truth; s->condition != NULL; s = s->otherwise) {
        hone_status status = hone_expression_evaluate(s->condition, b->slots, &truth, b->err);
        if (status != HONE_OK) return status;
        if (hone_scalar_truth(&truth)) break;
    }
    *tensor = b->call->tensors[i];
    tensor->data = NULL;
    tensor->byte_offset = 0;
    if (tensor->ndim > 0) memcpy(b->shapes[i], tensor->shape, (size_t)tensor->ndim * sizeof(int64_t));
    tensor->shape = b->shapes[i];
    for (uint32_t k = 0; k < s->count; k++) {
        const hone_dim *d = &s->dims[k];
        hone_scalar value = b->slots[d->slot];
        if (d->expression != NULL) {
            if (!hone_call_knows(b->call, d->expression)) continue;
            hone_status status = hone_expression_evaluate(d->expression, b->slots, &value, b->err);
            if (status != HONE_OK) return status;
        }
        tensor->shape[tensor->ndim - (int32_t)s->count + (int32_t)k] = value.as.i64;
    }
    // A dense tensor stays dense; a view keeps the strides of the buffer it is cut from, which does not grow.
    if (hone_tensor_is_row_major(&b->call->tensors[i])) tensor->strides = NULL;
    b->values[i] = hone_of_tensor(tensor);
    return HONE_OK;
}

// A scalar of role `any` that the bucket leaves at its default, or at 1 where it has none.
static bool is_freed(const bucketing *b, size_t i)
{
    return b->frees && b->call->signature->parameters[i].shown.role == HONE_ROLE_ANY &&
           b->call->values[i].tag != HONE_VALUE_NONE;
}

static bool has_value(const hone_call_parameter *p)
{
    return p->standard != NULL || (p->shown.has_default && p->shown.default_value.tag != HONE_VALUE_NONE);
}

static void free_scalar(bucketing *b, size_t i)
{
    b->given[i] = !has_value(&b->call->signature->parameters[i]);
    b->values[i] = hone_of_int(1);
}

static bool is_one(const hone_value *value)
{
    return value->tag == HONE_VALUE_INT ? value->as.i64 == 1 : !(value->as.f64 < 1) && value->as.f64 <= 1;
}

static bool frees_some(const bucketing *b)
{
    const hone_call *call = b->call;
    for (size_t i = 0; i < call->signature->count; i++) {
        const bool stays = has_value(&call->signature->parameters[i])
                               ? hone_values_equal(&call->values[i], &call->defaults[i])
                               : is_one(&call->values[i]);
        if (is_freed(b, i) && !stays) return true;
    }
    return false;
}

static hone_status rebuild(bucketing *b, hone_call **out)
{
    const hone_call *call = b->call;
    const hone_signature *signature = call->signature;
    for (size_t i = 0; i < signature->count; i++) {
        const bool is_result = signature->parameters[i].shown.is_result;
        b->values[i] = is_result ? hone_of_none() : call->values[i];
        b->given[i] = is_result || !hone_call_is_default(call, i); // other dims may say another default
        if (is_freed(b, i)) free_scalar(b, i);
        if (is_result || call->values[i].tag != HONE_VALUE_TENSOR) continue;
        hone_status status = reshape(b, i);
        if (status != HONE_OK) return hone_fail_prefix(b->err, status, "the bucket of %s", call->text);
    }
    const hone_call_source source = {
        .values = b->values, .count = signature->count, .given = b->given, .aligns = call->aligns, .describe = true};
    hone_status status = hone_call_build(call->arena.allocator, call->signature, &source, out, b->err);
    return status == HONE_OK ? status : hone_fail_prefix(b->err, status, "the bucket of %s", call->text);
}

static hone_status bucket_of_call(const hone_call *call, bool upper, bool frees, hone_call **out, hone_error *err)
{
    *out = NULL;
    if (!call->signature->has_buckets) return HONE_OK;
    const hone_allocator allocator = call->arena.allocator;
    bucketing *b = hone_alloc(&allocator, sizeof *b);
    if (b == NULL) return hone_fail_memory(err, where);
    b->call = call;
    b->frees = frees;
    b->err = err;
    const bool rounded = round_dims(b, upper);
    hone_status status = rounded || frees_some(b) ? rebuild(b, out) : HONE_OK;
    hone_free(&allocator, b);
    return status;
}

hone_status hone_call_bucket(const hone_call *call, bool upper, hone_call **out, hone_error *err)
{
    if (call == NULL || out == NULL) {
        if (out != NULL) *out = NULL;
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the call or out is NULL");
    }
    return bucket_of_call(call, upper, true, out, err);
}

// The same call with these values of scalars. Returns no call if the signature refuses them.
static hone_status with_scalars(
    const hone_call *call, const hone_value *values, bool spelled, hone_call **out, hone_error *err)
{
    hone_error why = {.message = ""};
    hone_value given[HONE_MAX_VALUES];
    for (size_t i = 0; i < call->signature->count; i++)
        given[i] = call->signature->parameters[i].shown.is_result ? hone_of_none() : values[i];
    const hone_call_source source = {
        .values = given, .count = call->signature->count, .aligns = call->aligns, .describe = true, .spelled = spelled};
    hone_status status = hone_call_build(call->arena.allocator, call->signature, &source, out, &why);
    if (status == HONE_INVALID_ARGUMENT) return HONE_OK;
    if (status != HONE_OK && err != NULL) *err = why;
    return status;
}

hone_status hone_call_general(const hone_call *call, hone_call **out, hone_error *err)
{
    const hone_signature *signature = call->signature;
    hone_value values[HONE_MAX_VALUES];
    bool changed = false;
    *out = NULL;
    memcpy(values, call->values, signature->count * sizeof values[0]);
    for (size_t i = 0; i < signature->count; i++) {
        if (signature->parameters[i].shown.role != HONE_ROLE_ANY || values[i].tag == HONE_VALUE_NONE) continue;
        if (values[i].tag == HONE_VALUE_INT)
            values[i] = hone_of_int(values[i].as.i64 == 1 ? 2 : 1);
        else if (isfinite(values[i].as.f64))
            values[i] = hone_of_float(hone_other_float(values[i].as.f64));
        changed = changed || !hone_values_equal(&values[i], &call->values[i]);
    }
    return changed ? with_scalars(call, values, false, out, err) : HONE_OK;
}

// Stand-ins -----------------------------------------------------------------------------------------------------------

static bool says_defaults_of_dims(const hone_call *call)
{
    for (size_t i = 0; i < call->signature->count; i++)
        if (call->signature->parameters[i].standard != NULL && hone_call_is_default(call, i)) return true;
    return false;
}

// Takes the call over. One whose key is there is let go.
static const hone_call *add(hone_stand_ins *out, hone_call *call)
{
    const hone_call *there = call != NULL ? hone_stand_ins_find(out, call->key) : NULL;
    hone_assert(out->count < HONE_STAND_INS);
    if (call != NULL && there == NULL) {
        out->calls[out->count++] = call;
        return call;
    }
    hone_call_release(&call);
    return there;
}

static hone_status add_spelled(hone_stand_ins *out, const hone_call *call, hone_error *err)
{
    hone_call *spelled = NULL;
    if (!says_defaults_of_dims(call)) return HONE_OK;
    hone_status status = with_scalars(call, call->values, true, &spelled, err);
    (void)add(out, spelled);
    return status;
}

// A rounded call that breaks a condition of the signature is not used.
static hone_status add_bucket(
    hone_stand_ins *out, const hone_call *call, bool frees, const hone_call **added, hone_error *err)
{
    hone_error why = {.message = ""};
    hone_call *bucket = NULL;
    hone_status status = bucket_of_call(call, true, frees, &bucket, &why);
    *added = add(out, bucket);
    if (status == HONE_INVALID_ARGUMENT) return HONE_OK;
    if (status != HONE_OK && err != NULL) *err = why;
    return status;
}

static hone_status add_general(hone_stand_ins *out, hone_error *err)
{
    hone_call *general = NULL;
    hone_status status = hone_call_general(out->bucket, &general, err);
    out->general = add(out, general);
    return status;
}

hone_status hone_call_stand_ins(const hone_call *call, hone_stand_ins *out, hone_error *err)
{
    const hone_call *rounded = NULL;
    *out = (hone_stand_ins){.count = 0};
    (void)add(out, hone_call_retain((hone_call *)(uintptr_t)call));
    hone_status status = add_spelled(out, call, err);
    out->exact = out->count;
    if (!call->signature->has_buckets || status != HONE_OK) return status;
    status = add_bucket(out, call, false, &rounded, err);
    if (status == HONE_OK && rounded != NULL) status = add_spelled(out, rounded, err);
    if (status == HONE_OK) status = add_bucket(out, call, true, &out->bucket, err);
    const bool frees = out->bucket != NULL && out->bucket != rounded && out->bucket != call;
    return status == HONE_OK && frees ? add_general(out, err) : status;
}

void hone_stand_ins_deinit(hone_stand_ins *stand_ins)
{
    for (size_t i = 0; i < stand_ins->count; i++)
        hone_call_release(&stand_ins->calls[i]);
    stand_ins->count = 0;
}

const hone_call *hone_stand_ins_find(const hone_stand_ins *stand_ins, const char *key)
{
    for (size_t i = 0; i < stand_ins->count; i++)
        if (strcmp(stand_ins->calls[i]->key, key) == 0) return stand_ins->calls[i];
    return NULL;
}

hone_status hone_call_keys(
    const hone_call *call, bool (*visit)(void *ctx, const hone_lookup_key *key), void *ctx, hone_error *err)
{
    if (call == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "call.keys", "the call and visit must not be NULL");
    hone_stand_ins all;
    const hone_status status = hone_call_stand_ins(call, &all, err);
    for (size_t i = 0; status == HONE_OK && i < all.count; i++) {
        const hone_lookup_key key = {hone_call_key(all.calls[i]), i < all.exact};
        if (!visit(ctx, &key)) break;
    }
    hone_stand_ins_deinit(&all);
    return status;
}
