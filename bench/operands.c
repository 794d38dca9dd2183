#include "operands.h"

#include <stdlib.h>
#include <string.h>

// Operands stand at different places in their pages: a load that follows a store to the same place in another page
// waits for it, or not, as chance will have it, and that would be measured.
enum { PAGE = 4096, APART = 1088 };

static uint16_t to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float of_bf16(uint16_t value)
{
    uint32_t bits = (uint32_t)value << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

// Of numbers below 2 alone, as fill makes them. 2^112 is between the exponents of the two.
static uint16_t to_f16(float value)
{
    uint32_t bits;
    value *= 0x1p-112f;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits >> 16 & 0x8000) | ((bits & 0x7fffffff) + 0xfff + (bits >> 13 & 1)) >> 13);
}

static float of_f16(uint16_t value)
{
    uint32_t bits = (uint32_t)(value & 0x8000) << 16 | (uint32_t)(value & 0x7fff) << 13;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number * 0x1p112f;
}

static void fill(void *memory, hone_dtype_id dtype, int64_t count, uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
    for (int64_t i = 0; i < count; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        float value = (float)(int32_t)(uint32_t)(state >> 32) / 2147483648.0f;
        if (dtype == HONE_F64)
            ((double *)memory)[i] = (double)value;
        else if (dtype == HONE_F32)
            ((float *)memory)[i] = value;
        else if (dtype == HONE_I8)
            ((int8_t *)memory)[i] = (int8_t)(127 * value);
        else
            ((uint16_t *)memory)[i] = dtype == HONE_F16 ? to_f16(value) : to_bf16(value);
    }
}

// The call's tensors take no more than their elements: they are dense, or repeat some.
static bool is_filled(hone_dtype_id dtype)
{
    return dtype == HONE_F64 || dtype == HONE_F32 || dtype == HONE_BF16 || dtype == HONE_F16 || dtype == HONE_I8;
}

static int make_tensor(const hone_call *call, size_t index, bench_operands *out)
{
    const hone_signature *signature = hone_call_signature(call);
    hone_tensor *tensor = &out->tensors[index];
    *tensor = *hone_call_tensor(call, index);
    const hone_dtype_info *dtype = hone_dtype_find(tensor->dtype);
    int64_t elements = hone_tensor_elements(tensor);
    if (dtype == NULL || elements <= 0 || !is_filled(dtype->id)) return 1;
    size_t bytes = ((size_t)elements * dtype->bits / 8 + 2 * PAGE - 1) & ~(size_t)(PAGE - 1);
    char *memory = out->memory[index] = aligned_alloc(PAGE, bytes);
    if (memory == NULL) return 1;
    memset(memory, 0, bytes);
    tensor->data = memory + index * APART % PAGE;
    if (!hone_signature_parameter(signature, index)->is_result) fill(tensor->data, dtype->id, elements, index + 1);
    out->values[index] = hone_of_tensor(tensor);
    return 0;
}

int operands_make(const hone_call *call, bench_operands *out)
{
    const hone_signature *signature = hone_call_signature(call);
    memset(out, 0, sizeof *out);
    out->count = hone_signature_count(signature);
    out->result = -1;
    int failed = out->count > OPERANDS_MOST;
    for (size_t i = 0; i < out->count && !failed; i++) {
        out->values[i] = hone_call_values(call)[i];
        if (hone_call_tensor(call, i) != NULL) failed = make_tensor(call, i, out);
        if (out->result < 0 && hone_signature_parameter(signature, i)->is_result) out->result = (int)i;
    }
    failed |= out->result < 0;
    if (failed) operands_free(out);
    return failed;
}

void operands_free(bench_operands *operands)
{
    for (size_t i = 0; i < OPERANDS_MOST; i++)
        free(operands->memory[i]);
    memset(operands, 0, sizeof *operands);
}

float *operands_result(const bench_operands *operands, size_t *out_count)
{
    const hone_tensor *tensor = &operands->tensors[operands->result];
    size_t count = (size_t)hone_tensor_elements(tensor);
    float *values = malloc(count * sizeof *values);
    const hone_dtype_id dtype = hone_dtype_find(tensor->dtype)->id;
    for (size_t i = 0; values != NULL && i < count; i++)
        values[i] = dtype == HONE_F64    ? (float)((const double *)tensor->data)[i]
                    : dtype == HONE_F32  ? ((const float *)tensor->data)[i]
                    : dtype == HONE_BF16 ? of_bf16(((const uint16_t *)tensor->data)[i])
                                         : of_f16(((const uint16_t *)tensor->data)[i]);
    *out_count = count;
    return values;
}
