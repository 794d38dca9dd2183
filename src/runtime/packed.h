// A call's facts packed into words: what the plan table hashes and compares.
//
// The words hold everything that the check of a call looks at, so that equal words mean the call was checked before:
// only the overlap of results, which depends on addresses, is looked at again.
#ifndef HONE_RUNTIME_PACKED_H
#define HONE_RUNTIME_PACKED_H

#include "hone/value.h"

#include <string.h>

enum {
    HONE_PACKED_WORDS = 192, // a call that needs more takes the slow way each time
    HONE_PACKED_TENSORS = 32,
    HONE_PACKED_IRREGULAR = 0
};

typedef struct hone_packed {
    uint32_t words, tensors;
    uint64_t word[HONE_PACKED_WORDS];
    uint64_t address[HONE_PACKED_TENSORS]; // of element [0, 0, ...] of each tensor, in order
} hone_packed;

// Alignment of an address in the key: 0 to 3 for 1 to 8 bytes, 4 for 16 and more, 7 for NULL.
static inline uint64_t hone_packed_alignment(uint64_t address)
{
    if ((address & 15) == 0) return address == 0 ? 7 : 4;
    return (uint64_t)__builtin_ctzll(address);
}

static inline bool hone_packed_dense(const hone_tensor *tensor)
{
    int64_t expected = 1;
    for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
        if (tensor->strides[i] != expected && tensor->shape[i] != 1) return false;
        expected = (int64_t)((uint64_t)expected * (uint64_t)tensor->shape[i]);
    }
    return true;
}

// One tensor: a head of dtype, rank, alignment, device; the dims; the strides when they are not row-major.
// False: something is out of the ordinary, and the slow way finds the words for it.
static inline bool hone_packed_tensor(hone_packed *packed, const hone_tensor *tensor)
{
    if (tensor == NULL) return false;
    uint32_t rank = (uint32_t)tensor->ndim;
    if (rank > HONE_MAX_RANK || packed->words + 2 * rank + 1 > HONE_PACKED_WORDS) return false;
    if (packed->tensors == HONE_PACKED_TENSORS) return false;
    if (((uint32_t)tensor->device.type | (uint32_t)tensor->device.id) > 255) return false;
    uint64_t address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
    if (tensor->data == NULL) address = 0;
    packed->address[packed->tensors++] = address;
    uint64_t *word = packed->word + packed->words;
    uint32_t dtype;
    memcpy(&dtype, &tensor->dtype, sizeof dtype);
    uint64_t head = dtype | (uint64_t)rank << 32 | hone_packed_alignment(address) << 36 |
                    (uint64_t)(uint8_t)tensor->device.type << 40 | (uint64_t)(uint8_t)tensor->device.id << 48 |
                    1ull << 63;
    for (uint32_t i = 0; i < rank; i++)
        word[1 + i] = (uint64_t)tensor->shape[i];
    packed->words += rank + 1;
    if (tensor->strides != NULL && !hone_packed_dense(tensor)) {
        head |= 1ull << 62;
        for (uint32_t i = 0; i < rank; i++)
            word[1 + rank + i] = (uint64_t)tensor->strides[i];
        packed->words += rank;
    }
    word[0] = head;
    return true;
}

static inline bool hone_packed_string(hone_packed *packed, const char *string)
{
    if (string == NULL) return false;
    size_t size = strnlen(string, 8 * HONE_PACKED_WORDS);
    size_t words = (size + 7) / 8;
    if (packed->words + words + 1 > HONE_PACKED_WORDS) return false;
    uint64_t *word = packed->word + packed->words;
    word[0] = 1ull << 61 | size;
    if (words > 0) word[words] = 0;
    memcpy(word + 1, string, size);
    packed->words += (uint32_t)words + 1;
    return true;
}

// One scalar. ignored: its role in the key is "ignore", so only its kind counts.
static inline bool hone_packed_scalar(hone_packed *packed, const hone_value *value, bool ignored)
{
    if (packed->words + 2 > HONE_PACKED_WORDS || (uint32_t)value->tag > HONE_VALUE_DEVICE) return false;
    uint64_t *word = packed->word + packed->words;
    word[0] = (uint64_t)(uint32_t)value->tag;
    word[1] = ignored || value->tag == HONE_VALUE_NONE ? 0 : (uint64_t)value->as.i64;
    packed->words += 2;
    return true;
}

// Packs a call. head says which operation, how many values, and which context.
// ignored has bit i set when parameter i is a scalar of role "ignore".
static inline bool hone_pack(
    hone_packed *packed, uint64_t head, const hone_value *values, size_t count, uint64_t ignored)
{
    packed->words = 1;
    packed->tensors = 0;
    packed->word[0] = head;
    for (size_t i = 0; i < count; i++) {
        const hone_value *value = &values[i];
        bool fits;
        if (value->tag == HONE_VALUE_TENSOR)
            fits = hone_packed_tensor(packed, value->as.tensor);
        else if (value->tag == HONE_VALUE_STRING && !(ignored >> i & 1))
            fits = hone_packed_string(packed, value->as.string);
        else if (value->tag == HONE_VALUE_STRING)
            fits = hone_packed_scalar(packed, &(hone_value){HONE_VALUE_NONE, 0, {0}}, true);
        else
            fits = hone_packed_scalar(packed, value, ignored >> i & 1);
        if (!fits) return false;
    }
    return true;
}

#endif
