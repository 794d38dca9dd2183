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
    HONE_PACKED_TENSORS = 32
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
#define HONE_PACKED_UNALIGNED ((uint64_t)1 << 8) // and the class, 0 to 3 for 1 to 8 bytes, 7 for no data, from bit 9 on
#define HONE_PACKED_ELSEWHERE ((uint64_t)1 << 16) // a word with the device follows: it is not cpu:0
#define HONE_PACKED_STRIDED   ((uint64_t)1 << 17) // the strides follow the dims
#define HONE_PACKED_SCALAR    ((uint64_t)1 << 18) // no tensor
#define HONE_PACKED_STRING    ((uint64_t)3 << 18)

// What is out of the ordinary about where the data lies.
static inline uint64_t hone_packed_alignment(const hone_tensor *tensor, uint64_t address)
{
    uint64_t class = tensor->data == NULL ? 7 : (uint64_t)__builtin_ctzll(address);
    return HONE_PACKED_UNALIGNED | class << 9;
}

// The words of one tensor, from next on: a head of rank, dtype and what is out of the ordinary; the dims; the
// device; the strides when they are not row-major. Returns where they end, at most 2 * HONE_MAX_RANK + 2 words on;
// NULL: the rank is none. The ordinary case has one branch a fact.
static inline uint64_t *hone_packed_tensor(uint64_t *next, const hone_tensor *tensor, uint64_t *out_address)
{
    static const hone_device cpu = {HONE_DEVICE_CPU, 0};
    if (tensor == NULL || (uint32_t)tensor->ndim > HONE_MAX_RANK) return NULL;
    uint32_t rank = (uint32_t)tensor->ndim;
    uint64_t address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset, head, *word = next++;
    memcpy(&head, &tensor->ndim, sizeof head); // rank, code, bits, lanes
    if ((address & 15) != 0 || tensor->data == NULL) head |= hone_packed_alignment(tensor, address);
    *out_address = address;
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
    return next;
}

// The words of a string of at most room * 8 bytes.
static inline uint64_t *hone_packed_string(uint64_t *next, size_t room, const char *string)
{
    if (string == NULL) return NULL;
    size_t size = strnlen(string, 8 * room + 1), words = (size + 7) / 8;
    if (words > room) return NULL;
    next[0] = HONE_PACKED_STRING | size;
    next[words] = words > 0 ? 0 : next[0];
    memcpy(next + 1, string, size);
    return next + words + 1;
}

// What of a scalar counts: nothing when its role in the key is "ignore".
static inline uint64_t hone_packed_payload(const hone_value *value, bool ignored)
{
    return ignored || value->tag == HONE_VALUE_NONE ? 0 : (uint64_t)value->as.i64;
}

static inline bool hone_packed_is_scalar(const hone_value *value)
{
    return (uint32_t)value->tag <= HONE_VALUE_DEVICE;
}

// Packs a call. head says which operation, how many values, and which context.
// ignored has bit i set when parameter i is a scalar of role "ignore".
// False: something is out of the ordinary, and the slow way finds the words for it.
static inline bool hone_pack(
    hone_packed *packed, uint64_t head, const hone_value *values, size_t count, uint64_t ignored)
{
    uint64_t *next = packed->word, *const end = packed->word + HONE_PACKED_WORDS;
    uint32_t tensors = 0;
    *next++ = head;
    for (size_t i = 0; i < count; i++) {
        const hone_value *value = &values[i];
        bool ignore = (ignored >> i & 1) != 0;
        if (end - next < 2 * HONE_MAX_RANK + 2 || tensors == HONE_PACKED_TENSORS) return false;
        if (value->tag == HONE_VALUE_TENSOR) {
            next = hone_packed_tensor(next, value->as.tensor, &packed->address[tensors++]);
        } else if (hone_packed_is_scalar(value)) {
            *next++ = HONE_PACKED_SCALAR | (uint64_t)value->tag;
            *next++ = hone_packed_payload(value, ignore);
        } else if (value->tag == HONE_VALUE_STRING && !ignore) {
            next = hone_packed_string(next, (size_t)(end - next) - 1, value->as.string);
        } else {
            return false;
        }
        if (next == NULL) return false;
    }
    packed->words = (uint32_t)(next - packed->word);
    packed->tensors = tensors;
    next[0] = next[1] = next[2] = 0; // the padding is compared too
    return true;
}

// Whether a call would pack to these very words, without packing it: tensors that are row-major, aligned and on
// the CPU, and scalars. False also for other calls: hone_pack then says.
static inline bool hone_packed_repeats(
    const uint64_t *word,
    uint64_t head,
    const hone_value *values,
    size_t count,
    uint64_t ignored,
    uint64_t *out_address)
{
    static const hone_device cpu = {HONE_DEVICE_CPU, 0};
    if (*word++ != head) return false; // from here on the words are those of as many values
    uint64_t differ = 0;
    for (size_t i = 0; i < count; i++) {
        const hone_value *value = &values[i];
        if (value->tag != HONE_VALUE_TENSOR) {
            if (!hone_packed_is_scalar(value) || word[0] != (HONE_PACKED_SCALAR | (uint64_t)value->tag)) return false;
            differ |= word[1] ^ hone_packed_payload(value, (ignored >> i & 1) != 0);
            word += 2;
            continue;
        }
        const hone_tensor *tensor = value->as.tensor;
        if (tensor == NULL) return false;
        uint64_t facts; // rank and dtype; what is out of the ordinary would stand in the word too
        memcpy(&facts, &tensor->ndim, sizeof facts);
        if (facts != *word++) return false;
        uint64_t address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
        if ((address & 15) != 0 || tensor->data == NULL || memcmp(&tensor->device, &cpu, sizeof cpu) != 0) return false;
        if (tensor->strides != NULL && !hone_packed_dense(tensor)) return false;
        *out_address++ = address;
        const int64_t *dim = tensor->shape;
        uint32_t rank = (uint32_t)facts;
        if (rank == 2) { // most of all: unrolled
            differ |= ((uint64_t)dim[0] ^ word[0]) | ((uint64_t)dim[1] ^ word[1]);
        } else {
            for (uint32_t axis = 0; axis < rank; axis++)
                differ |= (uint64_t)dim[axis] ^ word[axis];
        }
        word += rank;
    }
    return differ == 0;
}

#endif
