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
    uint64_t word[HONE_PACKED_WORDS + 4];  // zeros up to a multiple of four behind the last
    uint64_t address[HONE_PACKED_TENSORS]; // of element [0, 0, ...] of each tensor, in order
} hone_packed;

static inline bool hone_packed_dense(const hone_tensor *tensor)
{
    int64_t expected = 1;
    for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
        if (tensor->strides[i] != expected && tensor->shape[i] != 1) return false;
        expected = (int64_t)((uint64_t)expected * (uint64_t)tensor->shape[i]);
    }
    return true;
}

// Bits of a tensor's head that DLPack's rank and dtype, read as one word, leave free.
#define HONE_PACKED_UNALIGNED (1ull << 8)  // and the class, 0 to 3 for 1 to 8 bytes, 7 for no data, from bit 9 on
#define HONE_PACKED_ELSEWHERE (1ull << 16) // a word with the device follows: it is not cpu:0
#define HONE_PACKED_STRIDED   (1ull << 17) // the strides follow the dims
#define HONE_PACKED_SCALAR    (1ull << 18) // no tensor
#define HONE_PACKED_STRING    (3ull << 18)

// What is out of the ordinary about where the data lies.
static inline uint64_t hone_packed_alignment(const hone_tensor *tensor, uint64_t address)
{
    uint64_t class = tensor->data == NULL ? 7 : (uint64_t)__builtin_ctzll(address);
    return HONE_PACKED_UNALIGNED | class << 9;
}

// One tensor: a head of rank, dtype and what is out of the ordinary; the dims; the strides when they are not
// row-major. False: it does not fit, and the slow way finds the words for it. The ordinary case has one branch a fact.
static inline bool hone_packed_tensor(hone_packed *packed, const hone_tensor *tensor)
{
    static const hone_device cpu = {HONE_DEVICE_CPU, 0};
    if (tensor == NULL) return false;
    uint32_t rank = (uint32_t)tensor->ndim;
    if (rank > HONE_MAX_RANK || packed->words + 2 * HONE_MAX_RANK + 2 > HONE_PACKED_WORDS ||
        packed->tensors == HONE_PACKED_TENSORS)
        return false;
    uint64_t *word = packed->word + packed->words;
    uint64_t address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
    uint64_t head;
    memcpy(&head, &tensor->ndim, sizeof head); // rank, code, bits, lanes
    if ((address & 15) != 0 || tensor->data == NULL) head |= hone_packed_alignment(tensor, address);
    packed->address[packed->tensors++] = address;
    uint64_t *next = word + 1;
    for (uint32_t i = 0; i < rank; i++)
        *next++ = (uint64_t)tensor->shape[i];
    if (memcmp(&tensor->device, &cpu, sizeof cpu) != 0) {
        head |= HONE_PACKED_ELSEWHERE;
        memcpy(next++, &tensor->device, sizeof tensor->device);
    }
    if (tensor->strides != NULL && !hone_packed_dense(tensor)) {
        head |= HONE_PACKED_STRIDED;
        for (uint32_t i = 0; i < rank; i++)
            *next++ = (uint64_t)tensor->strides[i];
    }
    *word = head;
    packed->words += (uint32_t)(next - word);
    return true;
}

static inline bool hone_packed_string(hone_packed *packed, const char *string)
{
    if (string == NULL) return false;
    size_t size = strnlen(string, 8 * HONE_PACKED_WORDS);
    size_t words = (size + 7) / 8;
    if (packed->words + words + 1 > HONE_PACKED_WORDS) return false;
    uint64_t *word = packed->word + packed->words;
    word[0] = HONE_PACKED_STRING | size;
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
    word[0] = HONE_PACKED_SCALAR | (uint64_t)(uint32_t)value->tag;
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
    // The padding is compared too.
    packed->word[packed->words] = packed->word[packed->words + 1] = packed->word[packed->words + 2] = 0;
    return true;
}

#endif
