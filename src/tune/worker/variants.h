// Other values for the tensors of an open call, in the same memory: they detect a kernel that has kept its results, or
// that is right for one set of values only. In stable mode each variant also has the bits of the default's results.
#ifndef HONE_TUNE_WORKER_VARIANTS_H
#define HONE_TUNE_WORKER_VARIANTS_H

#include "tune/worker/reference.h"

// What a candidate may become: the more, the more checks it gets.
typedef enum hone_verify_depth { HONE_FOR_ALL, HONE_FOR_LEADERS, HONE_FOR_WINNERS } hone_verify_depth;

// ORIGINAL: the values that the reference was computed for and that are timed.
// NEAR: all but a few elements of each input are the same, so that a kernel that checks some of them takes the input
// for the original, whose results it has just returned. _2: other elements are the few, since a kernel may check those
// of one variant. _3, _4: in addition rows begin and end with what says nothing about the rest
// (hone_buffers_disguise_rows).
// OTHER: another seed.
// LARGE, TINY: the elements of the varied value are multiplied.
// OUTLIERS: there is one in every other row of it (hone_buffers_put_outliers). UNEVEN: its rows differ from each other
// (hone_buffers_make_uneven). LEVEL: three of four rows hold one number each (hone_buffers_level_rows).
// DEFINED: some rows of it hold what the algorithm gives a meaning (hone_algorithm.special). _2 to _6: if there are
// fewer such rows than kinds of it, the next kinds.
// _OTHERS: the same for the other arrays of floats.
// ROWS: whole rows of bools and integers are one value, as in masks and segments that leave out all of a row.
// WIDE: whole numbers as large as results allow, or at the ends of what their generators say, and floats other than
// those of ones() and zeros().
// SPECIAL: NaN, infinities, zeros of both signs and subnormal numbers anywhere; the reference says nothing about them.
typedef enum hone_variant_kind {
    HONE_VARIANT_ORIGINAL,
    HONE_VARIANT_NEAR,
    HONE_VARIANT_NEAR_2,
    HONE_VARIANT_NEAR_3,
    HONE_VARIANT_NEAR_4,
    HONE_VARIANT_OTHER,
    HONE_VARIANT_LARGE,
    HONE_VARIANT_TINY,
    HONE_VARIANT_OUTLIERS,
    HONE_VARIANT_UNEVEN,
    HONE_VARIANT_LEVEL,
    HONE_VARIANT_DEFINED,
    HONE_VARIANT_DEFINED_2,
    HONE_VARIANT_DEFINED_3,
    HONE_VARIANT_DEFINED_4,
    HONE_VARIANT_DEFINED_5,
    HONE_VARIANT_DEFINED_6,
    HONE_VARIANT_LARGE_OTHERS,
    HONE_VARIANT_DEFINED_OTHERS,
    HONE_VARIANT_ROWS,
    HONE_VARIANT_WIDE,
    HONE_VARIANT_SPECIAL,
    HONE_VARIANT_COUNT
} hone_variant_kind;

typedef struct hone_variant {
    bool there;
    char *inputs[HONE_MAX_VALUES];       // copies of the spans; NULL: no input, or the same as the first kind's
    uint64_t checksums[HONE_MAX_VALUES]; // of the blocks with these inputs; 0 if a guard replaces it
    hone_reference reference;
    bool has_reference;
    char *bits[HONE_MAX_VALUES]; // the default's results; NULL: not required
} hone_variant;

typedef struct hone_variants {
    hone_allocator allocator;
    hone_variant variants[HONE_VARIANT_COUNT];
    hone_variant_kind loaded;
    // Large, tiny and special values share the arrays that they do not change with the first kind. Only if other kinds
    // change all of them: otherwise a kernel that keeps an array by its address would be verified with the one it has
    // kept.
    bool shares;
} hone_variants;

static inline bool hone_variant_is_near(hone_variant_kind kind)
{
    return kind >= HONE_VARIANT_NEAR && kind <= HONE_VARIANT_NEAR_4;
}
// Whether a kind is one of several that detect the same: the further ones are made if that is quick.
static inline bool hone_variant_is_further(hone_variant_kind kind)
{
    return (hone_variant_is_near(kind) && kind != HONE_VARIANT_NEAR) ||
           (kind > HONE_VARIANT_DEFINED && kind <= HONE_VARIANT_DEFINED_6);
}
// Whether a session makes this kind.
bool hone_variant_is_asked(hone_variant_kind kind, bool stable, const hone_buffers *buffers);
// How a reference for this kind's values is used. largest: of the ordinary values. False: it says nothing about them.
bool hone_variant_use(hone_variant_kind kind, const double *largest, hone_reference_use *out);
bool hone_variant_is_for(hone_variant_kind kind, hone_verify_depth depth);
const char *hone_variant_words(hone_variant_kind kind); // "large inputs"
void hone_variants_init(hone_variants *variants, hone_allocator allocator);
void hone_variants_deinit(hone_variants *variants);
// Makes values of a kind in the first set, keeps a copy, and leaves them loaded. ORIGINAL: keeps those that are there.
hone_status hone_variants_make(
    hone_variants *variants,
    hone_variant_kind kind,
    hone_buffers *buffers,
    const hone_call *call,
    uint64_t seed,
    hone_error *err);
// Puts a variant's values into the first set, also on a device.
hone_status hone_variants_load(
    hone_variants *variants, hone_variant_kind kind, const hone_buffers *buffers, hone_error *err);
// Keeps the results in the first set, fetched if they are a device's: later results of the loaded variant must equal
// them.
hone_status hone_variants_keep_bits(hone_variants *variants, const hone_buffers *buffers, hone_error *err);
// HONE_KERNEL_FAILED with the first byte where the results in the first set differ from those that were kept, if any.
hone_status hone_variants_compare_bits(const hone_variants *variants, const hone_buffers *buffers, hone_error *err);

#endif
