#include "tune/worker/variants.h"

#include "base/assert.h"
#include "base/error.h"
#include "tune/worker/bulk.h"

#include <assert.h>
#include <string.h>

static const char where[] = "tune.variants";

void hone_variants_init(hone_variants *variants, hone_allocator allocator)
{
    memset(variants, 0, sizeof *variants);
    variants->allocator = allocator;
}

void hone_variants_deinit(hone_variants *variants)
{
    for (int kind = 0; kind < HONE_VARIANT_COUNT; kind++) {
        hone_variant *variant = &variants->variants[kind];
        if (variant->has_reference) hone_reference_deinit(&variant->reference);
        for (int i = 0; i < HONE_MAX_VALUES; i++) {
            hone_free(&variants->allocator, variant->inputs[i]);
            hone_free(&variants->allocator, variant->bits[i]);
        }
    }
    hone_variants_init(variants, variants->allocator);
}

static hone_status copy_span(
    hone_variants *variants, const hone_buffers *buffers, size_t index, char **out, hone_error *err)
{
    const hone_fenced *fenced = &buffers->sets[0].fenced[index];
    if (*out == NULL) *out = hone_alloc_unset(&variants->allocator, fenced->span);
    if (*out == NULL) return hone_fail_memory(err, where);
    hone_bulk_copy(buffers->pool, *out, fenced->low, fenced->span);
    return HONE_OK;
}

static hone_status sprinkle(const hone_buffers *buffers, uint64_t seed, hone_error *err)
{
    const uint32_t defined = buffers->algorithm->special;
    hone_status status = hone_buffers_sprinkle(buffers, (size_t)buffers->varied, defined, seed, err);
    const bool has_zeros = (defined & HONE_SPECIAL_SMALL) != 0;
    return status == HONE_OK && has_zeros ? hone_buffers_put_zeros(buffers, false, seed, err) : status;
}

// Here a zero may meet an infinity or a NaN, too.
static hone_status sprinkle_others(const hone_buffers *buffers, uint64_t seed, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; i < buffers->count && status == HONE_OK; i++)
        if (hone_buffers_is_other(buffers, i))
            status = hone_buffers_sprinkle(buffers, i, buffers->algorithm->special, seed + i, err);
    const bool has_zeros = (buffers->algorithm->special & HONE_SPECIAL_SMALL) != 0;
    return status == HONE_OK && has_zeros ? hone_buffers_put_zeros(buffers, true, seed, err) : status;
}

static hone_status disguise(const hone_buffers *buffers, uint64_t seed, hone_error *err)
{
    hone_status status = hone_buffers_change_few(buffers, seed, err);
    return status == HONE_OK ? hone_buffers_disguise_rows(buffers, seed, err) : status;
}

#define NEAR                                                                                                           \
    {                                                                                                                  \
        .words = "inputs of which a few elements differ from the first's", .depth = HONE_FOR_LEADERS,                  \
        .is_filled = true, .slack = 1, .change = hone_buffers_change_few                                               \
    }

#define DISGUISED                                                                                                      \
    {                                                                                                                  \
        .words = "inputs whose rows begin and end alike, or with zeros or ones", .depth = HONE_FOR_LEADERS,            \
        .is_filled = true, .slack = 1, .change = disguise                                                              \
    }

#define DEFINED(number)                                                                                                \
    {                                                                                                                  \
        .words = "inputs with special values", .depth = HONE_FOR_LEADERS, .is_filled = true, .is_varied = true,        \
        .has_nan = true, .turn = number, .slack = 4, .change = sprinkle                                                \
    }

// The kinds. To add one: a value of hone_variant_kind, its row here, and a function that changes its values.
static const struct {
    const char *words;
    hone_verify_depth depth; // the candidates that are verified on it
    bool is_filled;          // made with a seed of its own; otherwise the values that are there
    bool is_stable;          // only in stable mode: the reference says nothing about it
    bool is_varied;          // only if there is a varied value
    bool is_others;          // changes the other arrays of floats
    bool is_rows;            // only if there are bools or integers
    bool is_wide;            // only if there are arrays with limits
    bool has_nan;
    uint32_t turn;            // number among the kinds that continue the special values of each other
    double scale, half_scale; // factor of the varied value, and of one in f16; 0: 1
    // Computing with large numbers multiplies their rounding errors: a softmax of logits of a hundred multiplies those
    // of their subtraction. The errors that these inputs must reveal, an overflow or a limit, are far larger.
    double slack;
    hone_status (*change)(
        const hone_buffers *buffers, uint64_t seed, hone_error *err); // changes what was made; NULL: nothing
} kinds[] = {
    [HONE_VARIANT_ORIGINAL] = {.words = "the first made-up inputs", .slack = 1},
    [HONE_VARIANT_NEAR] = NEAR,
    [HONE_VARIANT_NEAR_2] = NEAR,
    // With two seeds, one of which is odd: an array of one row has zeros with one of them, and ones with the other.
    [HONE_VARIANT_NEAR_3] = DISGUISED,
    [HONE_VARIANT_NEAR_4] = DISGUISED,
    [HONE_VARIANT_OTHER] = {.words = "the second made-up inputs", .is_filled = true, .slack = 1},
    // Normal numbers end at 3.5, which becomes 112: beyond 88, where exp leaves the range of f32.
    [HONE_VARIANT_LARGE] =
        {.words = "large inputs",
         .depth = HONE_FOR_LEADERS,
         .is_filled = true,
         .is_varied = true,
         .scale = 0x1p5,
         .slack = 64},
    // Squares of about 2^-24, far below the 1e-6 that is added to them.
    [HONE_VARIANT_TINY] =
        {.words = "tiny inputs",
         .depth = HONE_FOR_LEADERS,
         .is_filled = true,
         .is_varied = true,
         .scale = 0x1p-12,
         .half_scale = 0x1p-8,
         .slack = 4},
    [HONE_VARIANT_OUTLIERS] =
        {.words = "inputs with outliers",
         .depth = HONE_FOR_LEADERS,
         .is_filled = true,
         .is_varied = true,
         .slack = 4,
         .change = hone_buffers_put_outliers},
    [HONE_VARIANT_UNEVEN] =
        {.words = "inputs whose rows are unlike",
         .depth = HONE_FOR_LEADERS,
         .is_filled = true,
         .is_varied = true,
         .slack = 64,
         .change = hone_buffers_make_uneven},
    [HONE_VARIANT_LEVEL] =
        {.words = "inputs with rows of one number",
         .depth = HONE_FOR_LEADERS,
         .is_filled = true,
         .is_varied = true,
         // If n times the rounded 1/n is not 1, as for 41 * 64, a mean is off by its last bit, which is divided by a
         // small eps.
         .slack = 4096,
         .change = hone_buffers_level_rows},
    [HONE_VARIANT_DEFINED] = DEFINED(0),
    [HONE_VARIANT_DEFINED_2] = DEFINED(1),
    [HONE_VARIANT_DEFINED_3] = DEFINED(2),
    [HONE_VARIANT_DEFINED_4] = DEFINED(3),
    [HONE_VARIANT_DEFINED_5] = DEFINED(4),
    [HONE_VARIANT_DEFINED_6] = DEFINED(5),
    // Two large arrays multiply each other's errors: in attention those of the logits and those of the weighted values.
    [HONE_VARIANT_LARGE_OTHERS] =
        {.words = "large inputs beside the first",
         .depth = HONE_FOR_WINNERS,
         .is_filled = true,
         .is_varied = true,
         .is_others = true,
         .scale = 0x1p5,
         .slack = 1024},
    [HONE_VARIANT_DEFINED_OTHERS] =
        {.words = "inputs with special values beside the first",
         .depth = HONE_FOR_WINNERS,
         .is_filled = true,
         .is_varied = true,
         .is_others = true,
         .has_nan = true,
         .slack = 4,
         .change = sprinkle_others},
    [HONE_VARIANT_ROWS] =
        {.words = "inputs that leave out whole rows",
         .depth = HONE_FOR_WINNERS,
         .is_filled = true,
         .is_rows = true,
         .slack = 1,
         .change = hone_buffers_even_rows},
    // A kernel that sums in too few bits is right for small numbers, and one with a separate path for the last index
    // for all others.
    [HONE_VARIANT_WIDE] =
        {.words = "inputs at their limits", .depth = HONE_FOR_LEADERS, .is_filled = true, .is_wide = true, .slack = 1},
    [HONE_VARIANT_SPECIAL] =
        {.words = "inputs with NaN, infinities and subnormal numbers",
         .is_filled = true,
         .is_stable = true,
         .change = hone_buffers_season},
};
static_assert(sizeof kinds / sizeof kinds[0] == HONE_VARIANT_COUNT, "every kind has a row");

bool hone_variant_is_asked(hone_variant_kind kind, bool stable, const hone_buffers *buffers)
{
    const uint32_t special = buffers->algorithm->special;
    if (kinds[kind].is_varied && buffers->varied < 0) return false;
    if (kinds[kind].is_others && !hone_buffers_has_others(buffers)) return false;
    if (kinds[kind].is_wide && !buffers->has_wide) return false;
    if (kinds[kind].is_rows && !hone_buffers_has_choices(buffers)) return false;
    if (kinds[kind].has_nan && special == 0) return false;
    if (kinds[kind].turn > 0 && kinds[kind].turn * hone_buffers_special_rows(buffers, (size_t)buffers->varied) >=
                                    hone_buffers_special_kinds(special))
        return false;
    if (kinds[kind].has_nan && kinds[kind].is_others && (special & HONE_SPECIAL_EVERYWHERE) == 0) return false;
    return stable || !kinds[kind].is_stable;
}

bool hone_variant_use(hone_variant_kind kind, const double *largest, hone_reference_use *out)
{
    const double seconds = 0.1;
    *out = (hone_reference_use){
        .seconds = seconds, .slack = kinds[kind].slack, .largest = kinds[kind].has_nan ? largest : NULL};
    return kind != HONE_VARIANT_ORIGINAL && !kinds[kind].is_stable;
}

bool hone_variant_is_for(hone_variant_kind kind, hone_verify_depth depth)
{
    return kinds[kind].depth <= depth;
}

const char *hone_variant_words(hone_variant_kind kind)
{
    return kinds[kind].words;
}

static double scale_of(hone_variant_kind kind, const hone_buffers *buffers)
{
    const double scale = kinds[kind].scale, half = kinds[kind].half_scale;
    bool is_half = false;
    for (size_t i = 0; i < buffers->count; i++) {
        const hone_dtype dtype = buffers->sets[0].fenced[i].tensor.dtype;
        const bool is_scaled = kinds[kind].is_others ? hone_buffers_is_other(buffers, i) : (int)i == buffers->varied;
        is_half = is_half || (is_scaled && dtype.code == HONE_CODE_FLOAT && dtype.bits == 16);
    }
    return scale == 0 ? 1 : is_half && half != 0 ? half : scale;
}

// Whether a kind makes an array anew. The others begin as the first kind's: this saves most of the work for a large
// weight beside few rows.
static bool is_made(const hone_variants *variants, hone_variant_kind kind, const hone_buffers *buffers, size_t index)
{
    if (hone_variant_is_near(kind)) return false;
    if (!kinds[kind].is_varied || !variants->shares) return true;
    return kinds[kind].is_others ? hone_buffers_is_other(buffers, index) : (int)index == buffers->varied;
}

// Whether an array is not the first kind's: beside infinities and NaN other arrays may get zeros.
static bool is_own(const hone_variants *variants, hone_variant_kind kind, const hone_buffers *buffers, size_t index)
{
    return hone_variant_is_near(kind) || kinds[kind].has_nan || is_made(variants, kind, buffers, index);
}

// Puts the first kind's values into an array, unless the kind that was loaded before has left them there.
static hone_status set_first(
    const hone_variants *variants, hone_variant_kind before, const hone_buffers *buffers, size_t index, hone_error *err)
{
    const hone_variant *first = &variants->variants[HONE_VARIANT_ORIGINAL];
    if (before != HONE_VARIANT_ORIGINAL && !is_own(variants, before, buffers, index)) return HONE_OK;
    return hone_buffers_set_input(buffers, index, first->inputs[index], first->checksums[index], err);
}

static hone_status make_values(
    const hone_variants *variants,
    hone_variant_kind kind,
    hone_buffers *buffers,
    const hone_call *call,
    uint64_t seed,
    hone_error *err)
{
    if (!kinds[kind].is_filled) return HONE_OK;
    hone_assert(variants->variants[HONE_VARIANT_ORIGINAL].there);
    const uint64_t original = buffers->seed, own = seed + (uint64_t)kind;
    buffers->scale = scale_of(kind, buffers);
    buffers->scales_others = kinds[kind].is_others;
    buffers->widens = kinds[kind].is_wide;
    buffers->seed = own;
    buffers->first_special = (uint32_t)(seed % 60); // 60: a multiple of each number of kinds
    if (kinds[kind].turn > 0)
        buffers->first_special +=
            kinds[kind].turn * (uint32_t)hone_buffers_special_rows(buffers, (size_t)buffers->varied);
    hone_status status = HONE_OK;
    for (size_t i = 0; i < buffers->count && status == HONE_OK; i++) {
        if (!hone_buffers_is_input(buffers, i)) continue;
        status = is_made(variants, kind, buffers, i) ? hone_buffers_fill_one(buffers, call, i, err)
                                                     : set_first(variants, variants->loaded, buffers, i, err);
    }
    buffers->scale = 1;
    buffers->scales_others = buffers->widens = false;
    if (status == HONE_OK && kinds[kind].change != NULL) status = kinds[kind].change(buffers, own, err);
    buffers->seed = original; // for hone_buffers_restore
    return status;
}

hone_status hone_variants_make(
    hone_variants *variants,
    hone_variant_kind kind,
    hone_buffers *buffers,
    const hone_call *call,
    uint64_t seed,
    hone_error *err)
{
    hone_assert(kind < HONE_VARIANT_COUNT && buffers->set_count > 0);
    hone_variant *variant = &variants->variants[kind];
    hone_status status = make_values(variants, kind, buffers, call, seed, err);
    for (size_t i = 0; i < buffers->count && status == HONE_OK; i++)
        if (hone_buffers_is_input(buffers, i) && is_own(variants, kind, buffers, i)) {
            status = copy_span(variants, buffers, i, &variant->inputs[i], err);
            // Timed inputs are guarded. The others change often, and opening and closing a guard costs as much as a
            // hash.
            const bool is_timed = kind == HONE_VARIANT_ORIGINAL;
            variant->checksums[i] = is_timed ? buffers->sets[0].fenced[i].checksum : hone_buffers_checksum(buffers, i);
        }
    variant->there = status == HONE_OK;
    variants->loaded = kind; // even if only a part of it was made
    return status;
}

hone_status hone_variants_load(
    hone_variants *variants, hone_variant_kind kind, const hone_buffers *buffers, hone_error *err)
{
    const hone_variant *variant = &variants->variants[kind];
    const hone_variant_kind before = variants->loaded;
    hone_status status = HONE_OK;
    if (!variant->there) return HONE_OK;
    variants->loaded = kind; // even if only a part of it is loaded
    for (size_t i = 0; i < buffers->count && status == HONE_OK; i++) {
        if (!hone_buffers_is_input(buffers, i)) continue;
        status = is_own(variants, kind, buffers, i)
                     ? hone_buffers_set_input(buffers, i, variant->inputs[i], variant->checksums[i], err)
                     : set_first(variants, before, buffers, i, err);
    }
    return status;
}

hone_status hone_variants_keep_bits(hone_variants *variants, const hone_buffers *buffers, hone_error *err)
{
    hone_variant *variant = &variants->variants[variants->loaded];
    hone_status status = HONE_OK;
    for (size_t i = 0; i < buffers->count && status == HONE_OK; i++)
        if (hone_buffers_is_result(buffers, i)) status = copy_span(variants, buffers, i, &variant->bits[i], err);
    return status;
}

hone_status hone_variants_compare_bits(const hone_variants *variants, const hone_buffers *buffers, hone_error *err)
{
    const hone_variant *variant = &variants->variants[variants->loaded];
    for (size_t i = 0; i < buffers->count; i++) {
        const hone_fenced *fenced = &buffers->sets[0].fenced[i];
        if (variant->bits[i] == NULL || memcmp(variant->bits[i], fenced->low, fenced->span) == 0) continue;
        size_t at = 0;
        while (variant->bits[i][at] == fenced->low[at])
            at++;
        return hone_fail(
            err, HONE_KERNEL_FAILED, where,
            "%s differs from the default's in its bits, first in byte %zu of %zu, for %s",
            hone_signature_parameter(buffers->signature, i)->name, at, fenced->span, kinds[variants->loaded].words);
    }
    return HONE_OK;
}
