// A call's bucket: "~pow2" dims rounded up, so that a growing length finds one answer for many values.
//
// The rounded dims are put into the shapes of all arguments, expressions of dims are evaluated anew, and the call is
// bound once more as if somebody had made it: so a bucket is a call like any other, with a text, a spec and a key, and
// the conditions of the signature hold for it or it is none. A length in (2^(n-1), 2^n] costs at most one contest, and
// a choice is made for a length at most twice the one that it serves.
#include "base/assert.h"
#include "base/error.h"
#include "call/bound.h"

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

static hone_status rebuild(bucketing *b, hone_call **out)
{
    const hone_call *call = b->call;
    const hone_signature *signature = call->signature;
    for (size_t i = 0; i < signature->count; i++) {
        const bool is_result = signature->parameters[i].shown.is_result;
        b->values[i] = is_result ? hone_of_none() : call->values[i];
        b->given[i] = is_result || !hone_call_is_default(call, i); // other dims may say another default
        if (is_result || call->values[i].tag != HONE_VALUE_TENSOR) continue;
        hone_status status = reshape(b, i);
        if (status != HONE_OK) return hone_fail_prefix(b->err, status, "the bucket of %s", call->text);
    }
    const hone_call_source source = {
        .values = b->values, .count = signature->count, .given = b->given, .aligns = call->aligns, .describe = true};
    hone_status status = hone_call_build(call->arena.allocator, call->signature, &source, out, b->err);
    return status == HONE_OK ? status : hone_fail_prefix(b->err, status, "the bucket of %s", call->text);
}

hone_status hone_call_bucket(const hone_call *call, bool upper, hone_call **out, hone_error *err)
{
    *out = NULL;
    if (!call->signature->has_buckets) return HONE_OK;
    const hone_allocator allocator = call->arena.allocator;
    bucketing *b = hone_alloc(&allocator, sizeof *b);
    if (b == NULL) return hone_fail_memory(err, where);
    b->call = call;
    b->err = err;
    hone_status status = round_dims(b, upper) ? rebuild(b, out) : HONE_OK;
    hone_free(&allocator, b);
    return status;
}
