// A call's facts packed into words: what the plan table hashes and compares.
//
// The words hold everything that the check of a call depends on, so equal words mean that the call was checked before.
// Only the overlap of results, which depends on addresses, is checked again.
//
// The words of rms_norm(f32[64,4096], f32[4096], eps=1e-6), one a line, bit 0 on the right:
//
//     context (32) | values given (8) | number of the operation (24)   the head of the call
//     lanes (16) | bits (8) | code (8) | flags (24) | rank (8)         x: DLPack's rank and dtype as they lie
//     64
//     4096
//     lanes | bits | code | flags | rank                               weight
//     4096
//     flag of a scalar | tag                                           eps
//     the bits of 1e-6
//
// A tensor's device and its strides follow its dims where a flag of its head says so. A string is its size with a flag,
// then its bytes, eight a word.
#ifndef HONE_RUNTIME_STATE_PACKED_H
#define HONE_RUNTIME_STATE_PACKED_H

#include "hone/value.h"

#include <string.h>

enum {
    HONE_PACKED_WORDS = 192, // a call that needs more takes the slow path each time
    HONE_PACKED_TENSORS = 32
};

typedef struct hone_packed {
    uint32_t words, tensors;
    uint64_t hash;
    uint64_t word[HONE_PACKED_WORDS + 4];  // zeros up to a multiple of four behind the last
    uint64_t address[HONE_PACKED_TENSORS]; // of element [0, 0, ...] of each tensor, in order
} hone_packed;

// A word's share of the hash: the products of words and odd numbers are summed, so they do not depend on each other.
// The hash is only a filter, since the words are compared. XXH3, which is made for bytes of any length, takes twice as
// long for these ten to twenty words. Source: multilinear hashing, J. L. Carter and M. N. Wegman, "Universal classes of
// hash functions", 1979.
extern const uint64_t hone_packed_salt[HONE_PACKED_WORDS] __attribute__((visibility("hidden")));

// A packed call under construction.
typedef struct hone_packing {
    hone_packed *into;
    size_t words, tensors;
    uint64_t sum;
} hone_packing;

static inline void hone_packing_add(hone_packing *to, uint64_t word)
{
    to->into->word[to->words] = word;
    to->sum += word * hone_packed_salt[to->words];
    to->words++;
}

static inline void hone_packing_add_address(hone_packing *to, uint64_t address)
{
    to->into->address[to->tensors++] = address;
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

// Bits of a tensor's head that DLPack's rank and dtype, read as one word, leave free.
#define HONE_PACKED_UNALIGNED ((uint64_t)1 << 8) // and the class, 0 to 3 for 1 to 8 bytes, 7 for no data, from bit 9 on
#define HONE_PACKED_ELSEWHERE ((uint64_t)1 << 16) // a word with the device follows: it is not cpu:0
#define HONE_PACKED_STRIDED   ((uint64_t)1 << 17) // the strides follow the dims
#define HONE_PACKED_SCALAR    ((uint64_t)1 << 18) // no tensor
#define HONE_PACKED_STRING    ((uint64_t)3 << 18)

static inline uint64_t hone_packed_address(const hone_tensor *tensor)
{
    return (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
}

// Whether a tensor of valid rank is row-major, aligned and on the CPU.
static inline bool hone_packed_is_ordinary(const hone_tensor *tensor)
{
    static const hone_device cpu = {HONE_DEVICE_CPU, 0};
    if ((hone_packed_address(tensor) & 15) != 0 || tensor->data == NULL || tensor->shape == NULL) return false;
    if (memcmp(&tensor->device, &cpu, sizeof cpu) != 0) return false;
    return __builtin_expect(tensor->strides == NULL, true) || hone_packed_dense(tensor);
}

// Rank, code, bits and lanes: the head of an ordinary tensor.
static inline uint64_t hone_packed_head(const hone_tensor *tensor)
{
    uint64_t head;
    memcpy(&head, &tensor->ndim, sizeof head);
    return head;
}

// The head, which may have flags, and the dims.
static inline void hone_packing_add_tensor(hone_packing *to, uint64_t head, const int64_t *shape)
{
    uint32_t rank = (uint8_t)head; // the flags are in the bits above it
    hone_packing_add(to, head);
    if (__builtin_expect(rank == 2, true)) { // the most frequent rank: unrolled
        hone_packing_add(to, (uint64_t)shape[0]);
        hone_packing_add(to, (uint64_t)shape[1]);
        return;
    }
    for (uint32_t i = 0; i < rank; i++)
        hone_packing_add(to, (uint64_t)shape[i]);
}

static inline uint64_t hone_packed_scalar(const hone_value *value)
{
    return HONE_PACKED_SCALAR | (uint64_t)value->tag;
}

// The part of a scalar that counts: none if its role in the key is "ignore".
static inline uint64_t hone_packed_payload(const hone_value *value, bool ignored)
{
    return ignored || value->tag == HONE_VALUE_NONE ? 0 : (uint64_t)value->as.i64;
}

static inline void hone_packing_add_scalar(hone_packing *to, const hone_value *value, bool ignored)
{
    hone_packing_add(to, hone_packed_scalar(value));
    hone_packing_add(to, hone_packed_payload(value, ignored));
}

static inline bool hone_packed_is_scalar(const hone_value *value)
{
    return (uint32_t)value->tag <= HONE_VALUE_DEVICE;
}

static inline void hone_packing_end(const hone_packing *from)
{
    hone_packed *packed = from->into;
    packed->words = (uint32_t)from->words;
    packed->tensors = (uint32_t)from->tensors;
    uint64_t hash = (from->sum ^ from->words ^ from->sum >> 32) * 0x9e3779b97f4a7c15ull;
    packed->hash = (hash ^ hash >> 29) | 1;
    uint64_t *padding = packed->word + from->words; // it is compared too
    padding[0] = padding[1] = padding[2] = 0;
}

// Packs a call of few values, each a scalar or an ordinary tensor, with the same result as hone_pack, in half the time.
// False also for valid calls of other kinds: hone_pack then decides.
static inline bool hone_pack_ordinary(
    hone_packed *packed, uint64_t head, const hone_value *values, size_t count, uint64_t ignored)
{
    hone_packing to = {packed, 0, 0, 0};
    if (count > HONE_PACKED_WORDS / (HONE_MAX_RANK + 1) - 1) return false; // otherwise there is room for all words
    hone_packing_add(&to, head);
    for (const hone_value *value = values; value < values + count; value++) {
        if (__builtin_expect(value->tag != HONE_VALUE_TENSOR, false)) {
            if (!hone_packed_is_scalar(value)) return false;
            hone_packing_add_scalar(&to, value, (ignored >> (value - values) & 1) != 0);
            continue;
        }
        const hone_tensor *tensor = value->as.tensor;
        if (tensor == NULL || (uint32_t)tensor->ndim > HONE_MAX_RANK || !hone_packed_is_ordinary(tensor)) return false;
        hone_packing_add_address(&to, hone_packed_address(tensor));
        hone_packing_add_tensor(&to, hone_packed_head(tensor), tensor->shape);
    }
    hone_packing_end(&to);
    return true;
}

// Whether a call would pack to exactly these words, without packing it. False also for calls that are not ordinary:
// hone_pack then decides.
static inline bool hone_packed_repeats(
    const uint64_t *word,
    uint64_t head,
    const hone_value *values,
    size_t count,
    uint64_t ignored,
    uint64_t *out_address)
{
    if (*word++ != head) return false; // from here on both calls have the same number of values
    uint64_t differ = 0;
    for (const hone_value *value = values; value < values + count; value++) {
        if (__builtin_expect(value->tag != HONE_VALUE_TENSOR, false)) {
            if (!hone_packed_is_scalar(value) || *word++ != hone_packed_scalar(value)) return false;
            differ |= *word++ ^ hone_packed_payload(value, (ignored >> (value - values) & 1) != 0);
            continue;
        }
        const hone_tensor *tensor = value->as.tensor;
        if (tensor == NULL || hone_packed_head(tensor) != word[0] || !hone_packed_is_ordinary(tensor)) return false;
        *out_address++ = hone_packed_address(tensor);
        uint32_t rank = (uint32_t)*word++;
        const int64_t *shape = tensor->shape;
        if (__builtin_expect(rank == 2, true)) {
            differ |= ((uint64_t)shape[0] ^ word[0]) | ((uint64_t)shape[1] ^ word[1]);
        } else {
            for (uint32_t axis = 0; axis < rank; axis++)
                differ |= (uint64_t)shape[axis] ^ word[axis];
        }
        word += rank;
    }
    return differ == 0;
}

// Packs a call. head holds the operation, the number of values, and the context. ignored has bit i set if parameter i
// is a scalar of role "ignore". False if the call is exceptional; the slow path then produces the error message.
bool hone_pack(hone_packed *packed, uint64_t head, const hone_value *values, size_t count, uint64_t ignored);

#endif
