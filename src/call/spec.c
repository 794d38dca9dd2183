// The canonical JSON of a call, over which its key is hashed: every parameter under its name in kwargs_spec, sorted,
// defaults filled in, results left out. Strict: bind has refused by name whatever has no value of its own.
//
//     {"args_spec":[],"batch_axes":null,"kwargs_spec":{"NAME":VALUE,...},"method":null}
//     VALUE of an array: {"align":8,"dtype":"float32","layout":[1,4096],"shape":[64,4096]}
//     align and layout only where they are out of the ordinary; null also for a default that dims say
//     a parameter with '#given' only where it has another value than its default
//
// The members and their order are ejkernel's, so that what both can say has one text; the key is the first 64 bits of
// its SHA-256 in hex, as ejkernel's is.
#include "base/assert.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "call/bound.h"

#include <string.h>

static const char where[] = "call.bind";

static void append_tensor(hone_buffer *out, const hone_tensor *tensor, uint32_t align)
{
    int64_t strides[HONE_MAX_RANK];
    hone_buffer_text(out, "{");
    if (align != 0) hone_buffer_format(out, "\"align\":%u,", align);
    hone_buffer_text(out, "\"dtype\":\"");
    hone_buffer_text(out, hone_dtype_find(tensor->dtype)->numpy_name);
    hone_buffer_text(out, "\",");
    if (!hone_tensor_is_row_major(tensor)) {
        hone_call_layout(tensor, strides);
        hone_buffer_text(out, "\"layout\":[");
        hone_buffer_integers(out, strides, (size_t)tensor->ndim);
        hone_buffer_text(out, "],");
    }
    hone_buffer_text(out, "\"shape\":[");
    hone_buffer_integers(out, tensor->shape, (size_t)tensor->ndim);
    hone_buffer_text(out, "]}");
}

static void append_value(hone_buffer *out, const hone_value *value, hone_role role)
{
    char number[HONE_NUMBER_SIZE];
    switch (value->tag) {
    case HONE_VALUE_BOOL:
        hone_buffer_text(out, value->as.i64 != 0 ? "true" : "false");
        return;
    case HONE_VALUE_INT: {
        const int64_t shown = role == HONE_ROLE_BUCKET ? hone_round_up_pow2(value->as.i64) : value->as.i64;
        hone_buffer_integer(out, shown);
        return;
    }
    case HONE_VALUE_FLOAT:
        hone_buffer_text(out, hone_number_print(value->as.f64, number));
        return;
    case HONE_VALUE_STRING:
        hone_json_string(out, value->as.string, strlen(value->as.string));
        return;
    default:
        hone_buffer_text(out, "null");
        return;
    }
}

// A default that dims say stands as null, as what was left out does in ejkernel's keys, however it was given: but for a
// parameter for which null means that it is not given.
static bool stands_for_default(const hone_call *call, size_t index)
{
    const hone_call_parameter *p = &call->signature->parameters[index];
    return p->standard != NULL && !p->shown.nullable && hone_call_is_default(call, index);
}

void hone_append_argument(hone_buffer *out, const hone_call *call, size_t index)
{
    hone_assert(index < call->signature->count);
    const hone_value *value = &call->values[index];
    if (value->tag == HONE_VALUE_TENSOR)
        append_tensor(out, value->as.tensor, call->aligns[index]);
    else if (stands_for_default(call, index))
        hone_buffer_text(out, "null");
    else
        append_value(out, value, call->signature->parameters[index].shown.role);
}

static bool is_left_out(const hone_call *call, size_t index)
{
    const hone_parameter *p = &call->signature->parameters[index].shown;
    if (p->is_result || p->role == HONE_ROLE_IGNORE) return true;
    return p->role == HONE_ROLE_GIVEN && hone_call_is_default(call, index);
}

hone_status hone_call_write_spec(hone_call *call, hone_error *err)
{
    const hone_signature *signature = call->signature;
    hone_buffer out;
    hone_buffer_init(&out, call->arena.allocator);
    hone_buffer_text(&out, "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{");
    bool first = true;
    for (size_t i = 0; i < signature->count; i++) {
        const size_t index = signature->sorted[i];
        const hone_parameter *p = &signature->parameters[index].shown;
        if (is_left_out(call, index)) continue;
        if (!first) hone_buffer_text(&out, ",");
        first = false;
        hone_json_string(&out, p->name, strlen(p->name));
        hone_buffer_text(&out, ":");
        hone_append_argument(&out, call, index);
    }
    hone_buffer_text(&out, "},\"method\":null}");
    if (!out.failed) call->spec = hone_arena_text(&call->arena, out.data, out.size);
    if (call->spec != NULL) hone_hash_key(out.data, out.size, call->key);
    hone_buffer_deinit(&out);
    return call->spec != NULL ? HONE_OK : hone_fail_memory(err, where);
}
