// Facts about a view of memory: how many elements, how far it reaches, whether two views meet.
#include "call/call.h"

#include "base/assert.h"

_Static_assert(sizeof(void *) != 8 || sizeof(hone_tensor) == 48, "hone_tensor is DLPack's DLTensor");
_Static_assert(sizeof(hone_value) == 16, "hone_value is tvm-ffi's TVMFFIAny");

int64_t hone_tensor_elements(const hone_tensor *tensor)
{
    if (tensor == NULL || (tensor->ndim > 0 && tensor->shape == NULL)) return -1;
    int64_t elements = 1;
    bool empty = false, overflow = false;
    for (int32_t i = 0; i < tensor->ndim; i++) {
        if (tensor->shape[i] < 0) return -1;
        empty = empty || tensor->shape[i] == 0;
        // Goes on after an overflow: a dim of 0 behind it leaves no elements at all.
        overflow = overflow || (!empty && __builtin_mul_overflow(elements, tensor->shape[i], &elements));
    }
    return empty ? 0 : overflow ? -1 : elements;
}

bool hone_tensor_is_row_major(const hone_tensor *tensor)
{
    if (tensor == NULL) return false;
    if (tensor->strides == NULL || hone_tensor_elements(tensor) == 0) return true;
    int64_t expected = 1;
    for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
        if (tensor->shape[i] == 1) continue;
        if (tensor->strides[i] != expected || __builtin_mul_overflow(expected, tensor->shape[i], &expected))
            return false;
    }
    return true;
}

void hone_tensor_strides(const hone_tensor *tensor, int64_t out_strides[HONE_MAX_RANK])
{
    int64_t dense = 1;
    for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
        out_strides[i] = tensor->strides != NULL ? tensor->strides[i] : dense;
        // Overflow is possible only where some dim is 0, and then no stride is used.
        if (tensor->shape[i] > 1 && __builtin_mul_overflow(dense, tensor->shape[i], &dense)) dense = 0;
    }
}

int64_t hone_tensor_offset(const hone_tensor *tensor, int64_t index)
{
    int64_t strides[HONE_MAX_RANK], offset = 0;
    hone_tensor_strides(tensor, strides);
    for (int32_t axis = tensor->ndim - 1; axis >= 0; axis--) {
        offset += index % tensor->shape[axis] * strides[axis];
        index /= tensor->shape[axis];
    }
    hone_assert(index == 0);
    return offset * (tensor->dtype.bits / 8);
}

// Element numbers of the lowest and the highest element, relative to [0, 0, ...]. False on overflow.
static bool element_range(const hone_tensor *tensor, int64_t *out_low, int64_t *out_high)
{
    int64_t strides[HONE_MAX_RANK];
    hone_tensor_strides(tensor, strides);
    *out_low = *out_high = 0;
    for (int32_t i = 0; i < tensor->ndim; i++) {
        int64_t reach;
        int64_t *side = strides[i] < 0 ? out_low : out_high;
        if (__builtin_mul_overflow(tensor->shape[i] - 1, strides[i], &reach) ||
            __builtin_add_overflow(*side, reach, side))
            return false;
    }
    return true;
}

hone_status hone_tensor_span(const hone_tensor *tensor, int64_t *out_bytes, int64_t *out_below)
{
    if (tensor == NULL || out_bytes == NULL || out_below == NULL) return HONE_INVALID_ARGUMENT;
    const hone_dtype_info *dtype = hone_dtype_find(tensor->dtype);
    if (dtype == NULL || tensor->ndim < 0 || tensor->ndim > HONE_MAX_RANK) return HONE_INVALID_ARGUMENT;
    const int64_t elements = hone_tensor_elements(tensor);
    if (elements < 0) return HONE_INVALID_ARGUMENT;
    int64_t low = 0, high = 0, above, below;
    if (elements == 0) {
        *out_bytes = *out_below = 0;
        return HONE_OK;
    }
    if (!element_range(tensor, &low, &high) || __builtin_mul_overflow(high + 1, (int64_t)dtype->bits, &above) ||
        __builtin_mul_overflow(-low, (int64_t)dtype->bits, &below) || above > INT64_MAX - 7 || below > INT64_MAX - 7 ||
        above / 8 > INT64_MAX - below / 8 - 2)
        return HONE_INVALID_ARGUMENT;
    *out_below = (below + 7) / 8;
    *out_bytes = *out_below + (above + 7) / 8;
    return HONE_OK;
}

uint32_t hone_tensor_align(const hone_tensor *tensor)
{
    const uintptr_t address = (uintptr_t)tensor->data + tensor->byte_offset;
    if (tensor->data == NULL || address % HONE_ORDINARY_ALIGN == 0 || hone_tensor_elements(tensor) == 0) return 0;
    return (uint32_t)(address & (~address + 1));
}

bool hone_tensor_keeps_apart(const hone_tensor *tensor)
{
    int64_t strides[HONE_MAX_RANK];
    int32_t order[HONE_MAX_RANK];
    int32_t count = 0;
    hone_tensor_strides(tensor, strides);
    for (int32_t i = 0; i < tensor->ndim; i++) {
        if (tensor->shape[i] == 0) return true;
        if (tensor->shape[i] == 1) continue;
        strides[i] = strides[i] < 0 ? -strides[i] : strides[i];
        int32_t at = count++;
        for (; at > 0 && strides[order[at - 1]] > strides[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    // Sorted by stride, each dim must step over all that the smaller ones reach.
    int64_t reach = 0;
    for (int32_t i = 0; i < count; i++) {
        if (strides[order[i]] <= reach) return false;
        reach += strides[order[i]] * (tensor->shape[order[i]] - 1);
    }
    return true;
}
