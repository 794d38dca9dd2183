#include "tvm_ffi/plans.h"

#include <stdlib.h>
#include <string.h>

enum { FUNCTION = 68, ALIGNMENT = 64 };

typedef struct bound_plan {
    const hone_op *op;
    const hone_plan *plan;
    size_t count;
    hone_value values[HONE_TVM_FFI_VALUES]; // as they were bound; of texts and tensors the tag alone
    uint32_t offsets[HONE_TVM_FFI_VALUES];  // of tensors' data from a multiple of ALIGNMENT
} bound_plan;

static uint32_t offset_of(const hone_tensor *tensor)
{
    return (uint32_t)((uintptr_t)hone_tensor_data(tensor) % ALIGNMENT);
}

// A data pointer that is aligned as well as the one that was bound, for which the plan was made.
static bool is_aligned(uint32_t bound, uint32_t given)
{
    const uint32_t known = bound == 0 ? ALIGNMENT : bound & (0u - bound);
    return given % known == 0;
}

static bool has_strides(const hone_tensor *bound, const hone_tensor *given)
{
    if (hone_tensor_is_row_major(bound)) return hone_tensor_is_row_major(given);
    for (int32_t i = 0; i < bound->ndim; i++)
        if (given->strides == NULL || bound->strides[i] != given->strides[i]) return false;
    return true;
}

static bool has_data(const hone_tensor *tensor)
{
    return tensor->data != NULL || hone_tensor_elements(tensor) == 0;
}

static bool is_like(const hone_tensor *bound, const hone_tensor *given)
{
    const bool same = bound->ndim == given->ndim && memcmp(&bound->dtype, &given->dtype, sizeof bound->dtype) == 0 &&
                      bound->device.type == given->device.type && bound->device.id == given->device.id;
    for (int32_t i = 0; same && i < bound->ndim; i++)
        if (bound->shape[i] != given->shape[i]) return false;
    return same && has_strides(bound, given) && has_data(given);
}

static bool fits(const bound_plan *bound, size_t i, const hone_value *given)
{
    const hone_value *value = &bound->values[i];
    if (value->tag != given->tag) return false;
    if (value->tag == HONE_VALUE_TENSOR)
        return is_like(hone_call_tensor(bound->plan->call, i), given->as.tensor) &&
               is_aligned(bound->offsets[i], offset_of(given->as.tensor));
    if (hone_signature_parameter(hone_op_signature(bound->op), i)->role == HONE_ROLE_IGNORE) return true;
    if (value->tag == HONE_VALUE_STRING)
        return strcmp(hone_call_values(bound->plan->call)[i].as.string, given->as.string) == 0;
    return value->as.i64 == given->as.i64;
}

static int run(const bound_plan *bound, hone_tvm_ffi_call *call)
{
    hone_error err;
    for (size_t i = 0; i < call->count; i++)
        if (!fits(bound, i, &call->values[i]))
            return hone_tvm_ffi_raise_words(
                "ValueError", "a plan of %s was bound for other values: %s is not as it was; bind again",
                hone_call_text(bound->plan->call), hone_signature_parameter(hone_op_signature(bound->op), i)->name);
    const hone_status status = bound->plan->run(bound->plan, call->values, call->executes);
    if (status == HONE_OK) return 0;
    (void)hone_plan_failed(bound->plan, status, &err);
    return hone_tvm_ffi_raise(&err);
}

static int call_plan(void *self, const hone_value *arguments, int32_t count, hone_value *result)
{
    const bound_plan *bound = self;
    hone_tvm_ffi_call call;
    *result = hone_of_none();
    if (count < 0 || (size_t)count != bound->count)
        return hone_tvm_ffi_raise_words(
            "TypeError", "a plan of %s was bound with %zu values, and %d came", hone_call_text(bound->plan->call),
            bound->count, (int)count);
    return hone_tvm_ffi_read_of(bound->op, "a plan", arguments, bound->count, &call) == 0 ? run(bound, &call) : -1;
}

static void release(void *self)
{
    bound_plan *bound = self;
    hone_plan_release(&bound->plan);
    free(bound);
}

static void keep_values(const hone_tvm_ffi_call *call, bound_plan *bound)
{
    bound->op = call->op;
    bound->count = call->count;
    for (size_t i = 0; i < call->count; i++) {
        bound->values[i] = call->values[i];
        if (call->values[i].tag == HONE_VALUE_TENSOR) bound->offsets[i] = offset_of(call->values[i].as.tensor);
    }
}

int hone_tvm_ffi_make_plan(const hone_tvm_ffi_call *call, hone_value *result)
{
    hone_error err;
    void *function = NULL;
    bound_plan *bound = calloc(1, sizeof *bound);
    if (bound == NULL) return hone_tvm_ffi_raise_words("MemoryError", "no memory for a plan");
    keep_values(call, bound);
    if (hone_bind(call->op, call->values, call->count, &bound->plan, &err) != HONE_OK) {
        free(bound);
        return hone_tvm_ffi_raise(&err);
    }
    if (hone_tvm_ffi_host()->make_function(bound, call_plan, release, &function) != 0) {
        release(bound);
        return -1;
    }
    *result = hone_of_pointer(function);
    result->tag = FUNCTION;
    return 0;
}
