// What of a call tells how near another one is: dtypes, layouts, dims and scalars, read from its canonical text.
#ifndef HONE_TRANSFER_TRAITS_H
#define HONE_TRANSFER_TRAITS_H

#include "base/memory.h"
#include "hone/tensor.h"

typedef enum hone_trait_kind {
    HONE_TRAIT_TENSOR,
    HONE_TRAIT_INTEGER,
    HONE_TRAIT_REAL,
    HONE_TRAIT_WORD // true, false, null, a string
} hone_trait_kind;

// One parameter.
typedef struct hone_trait {
    uint64_t name;   // hash
    uint64_t class_; // hash of what must be the same: a tensor's dtype and layout; a word
    hone_trait_kind kind;
    bool is_negative; // a number's sign
    uint8_t rank;
    float align;                // log2; 0: as usual
    float sizes[HONE_MAX_RANK]; // log2 of a tensor's dims; of a number's size
} hone_trait;

typedef struct hone_traits {
    hone_trait *rows; // in order of their names, as the canonical text has them
    size_t count;
} hone_traits;

// Reads them into the arena. HONE_CORRUPT: that is no canonical text of a call.
hone_status hone_traits_read(hone_arena *arena, const char *spec, hone_traits *out, hone_error *err);
// The sum over the parameters: of a tensor |difference of the log2| of each dim, a dim that several tensors share once;
// of numbers likewise. INFINITY: they differ in what makes another operation of them, a dtype or a layout.
double hone_traits_distance(const hone_traits *a, const hone_traits *b);
// How far apart two devices are by their fingerprints: 0 the same, 1 the same family, 2 the same vendor or instruction
// sets, 4 any other.
double hone_device_distance(const char *a, const char *b);

#endif
