// Other values for the tensors of an open call, in the very same memory: a kernel that kept its answers, or that is
// right for one set of values only, shows. In stable mode each variant also has the bits of the default's results.
#ifndef HONE_TUNE_WORKER_VARIANTS_H
#define HONE_TUNE_WORKER_VARIANTS_H

#include "tune/worker/reference.h"

// What a candidate may come to: the more, the more of it is looked at.
typedef enum hone_verify_depth { HONE_FOR_ALL, HONE_FOR_LEADERS, HONE_FOR_WINNERS } hone_verify_depth;

// ORIGINAL: what the reference was computed for and what is timed. NEAR: all but a few elements of each input are the
// same, so that who looks at some of them takes it for the original, which it has just answered; _2: others are the
// few, since the few of one may be what it looks at; _3, _4: and rows begin and end with what tells nothing of the rest (hone_buffers_disguise_rows). OTHER: another seed. LARGE, TINY: the varied value's elements
// multiplied. OUTLIERS: one in every other row of it; UNEVEN: its rows unlike
// each other (hone_buffers_put_outliers, hone_buffers_make_uneven); LEVEL: three of four rows of one number each
// (hone_buffers_level_rows). DEFINED: rows of it with what the algorithm gives a meaning (hone_algorithm.special); _2 to _6: where there are fewer
// such rows than kinds of it, the kinds that come next. _OTHERS: the
// same of the other arrays of floats. ROWS: whole rows of bools and integers are one value, as masks and segments that
// leave out all of a row. WIDE: whole numbers as large as results allow, or at the ends of what their generators say, and floats that are not those of ones() and zeros(). SPECIAL: NaN, infinities, zeros of both signs and subnormal numbers anywhere; the reference says
// nothing of them.
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
    char *inputs[HONE_MAX_VALUES];       // copies of the spans; NULL: no input, or the first kind's
    uint64_t checksums[HONE_MAX_VALUES]; // of the blocks with these inputs; 0 where a guard stands for it
    hone_reference reference;
    bool has_reference;
    char *bits[HONE_MAX_VALUES]; // the default's results; NULL: none are asked for
} hone_variant;

typedef struct hone_variants {
    hone_allocator allocator;
    hone_variant variants[HONE_VARIANT_COUNT];
    hone_variant_kind loaded;
    // Large, tiny and special values share the arrays that they do not change with the first kind. Only where other kinds change
    // them all: else who keeps one by its address would be verified with the one that it has kept.
    bool shares;
} hone_variants;

static inline bool hone_variant_is_near(hone_variant_kind kind)
{
    return kind >= HONE_VARIANT_NEAR && kind <= HONE_VARIANT_NEAR_4;
}
// One kind of several that show the same: the others beside it are made where that is quick.
static inline bool hone_variant_is_further(hone_variant_kind kind)
{
    return (hone_variant_is_near(kind) && kind != HONE_VARIANT_NEAR) ||
           (kind > HONE_VARIANT_DEFINED && kind <= HONE_VARIANT_DEFINED_6);
}
// Whether a session makes this kind.
bool hone_variant_is_asked(hone_variant_kind kind, bool stable, const hone_buffers *buffers);
// How a reference of this kind's values is used: largest is that of the ordinary ones. False: it says nothing of them.
bool hone_variant_use(hone_variant_kind kind, const double *largest, hone_reference_use *out);
bool hone_variant_is_for(hone_variant_kind kind, hone_verify_depth depth);
const char *hone_variant_words(hone_variant_kind kind); // "large inputs"
void hone_variants_init(hone_variants *variants, hone_allocator allocator);
void hone_variants_deinit(hone_variants *variants);
// Makes values of a kind in the first set, keeps a copy, and leaves them loaded. ORIGINAL: those that are there.
hone_status hone_variants_make(
    hone_variants *variants,
    hone_variant_kind kind,
    hone_buffers *buffers,
    const hone_call *call,
    uint64_t seed,
    hone_error *err);
// Puts a variant's values into the first set, also where it lies on a device.
hone_status hone_variants_load(
    hone_variants *variants, hone_variant_kind kind, const hone_buffers *buffers, hone_error *err);
// Keeps the results that lie in the first set, fetched if they are a device's, as what the loaded variant's must be
// equal to.
hone_status hone_variants_keep_bits(hone_variants *variants, const hone_buffers *buffers, hone_error *err);
// HONE_KERNEL_FAILED with the first byte where the results in the first set differ from what was kept, if anything was.
hone_status hone_variants_compare_bits(const hone_variants *variants, const hone_buffers *buffers, hone_error *err);

#endif
