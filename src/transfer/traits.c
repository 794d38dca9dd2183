// How far two calls are apart: a sum over their parameters, in doublings of a size (docs/transfer.md has the table). A
// dim that several tensors share is known by the pair of sizes that it has in both calls, and counts as often as the one
// tensor that has the pair most often: a larger batch of every tensor is one difference. The costs of what has no size
// were chosen by hand; docs/benchmarks.md ("Transfer") has how good answers by them are.
#include "transfer/traits.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARAMETERS = 64 };

static const char where[] = "transfer.traits";

// What differences cost that no size can tell.
static const double word_distance = 4, missing_distance = 2, sign_distance = 2, rank_distance = 1;
static const double most_real_distance = 1; // an epsilon of 1e-6 and one of 1e-3 are nearly the same call

// Reading -------------------------------------------------------------------------------------------------------------

static double number_of(hone_view text)
{
    char copy[64];
    double number = 0;
    size_t i = 0;
    for (; i < text.size && i < 15 && text.data[i] >= '0' && text.data[i] <= '9'; i++)
        number = 10 * number + (text.data[i] - '0');
    if (i == text.size) return number; // nearly all of them are short whole numbers
    size_t size = text.size < sizeof copy - 1 ? text.size : sizeof copy - 1;
    memcpy(copy, text.data, size);
    copy[size] = '\0';
    return hone_number_read(copy, NULL);
}

static uint8_t read_numbers(hone_view array, double out[HONE_MAX_RANK])
{
    uint8_t count = 0;
    hone_view key, value;
    for (hone_json_walk walk = hone_json_walk_of(array); hone_json_walk_next(&walk, &key, &value);)
        if (count < HONE_MAX_RANK) out[count++] = number_of(value);
    return count;
}

// The order of the axes in memory, and whether there are gaps between them: not how long they are.
static uint64_t layout_class(hone_view layout, const double *shape, uint8_t rank)
{
    struct {
        uint8_t order[HONE_MAX_RANK], rank, has_gaps;
    } is = {.rank = rank};
    double strides[HONE_MAX_RANK] = {0}, dense = 1;
    if (read_numbers(layout, strides) != rank) return 0; // row-major
    for (uint8_t i = 0; i < rank; i++) {
        uint8_t at = i;
        for (; at > 0 && strides[is.order[at - 1]] < strides[i]; at--)
            is.order[at] = is.order[at - 1];
        is.order[at] = i;
    }
    for (uint8_t i = rank; i-- > 0;) {
        uint8_t axis = is.order[i];
        is.has_gaps = is.has_gaps || (shape[axis] > 1 && strides[axis] != dense);
        dense *= shape[axis];
    }
    return hone_hash64(&is, sizeof is);
}

static void read_tensor(hone_view value, hone_trait *out)
{
    double shape[HONE_MAX_RANK] = {0};
    hone_view key, member, layout = {NULL, 0};
    out->kind = HONE_TRAIT_TENSOR;
    for (hone_json_walk walk = hone_json_walk_of(value); hone_json_walk_next(&walk, &key, &member);) {
        if (hone_view_is(key, "\"shape\""))
            out->rank = read_numbers(member, shape);
        else if (hone_view_is(key, "\"dtype\""))
            out->class_ = hone_hash64(member.data, member.size);
        else if (hone_view_is(key, "\"layout\""))
            layout = member;
        else if (hone_view_is(key, "\"align\""))
            out->align = (float)log2(fmax(number_of(member), 1));
    }
    for (uint8_t i = 0; i < out->rank; i++)
        out->sizes[i] = (float)log2(fmax(shape[i], 1));
    if (layout.size > 0) out->class_ ^= layout_class(layout, shape, out->rank);
}

static void read_value(hone_view value, hone_trait *out)
{
    if (hone_json_is_object(value)) {
        read_tensor(value, out);
        return;
    }
    if (!hone_json_is_number(value)) {
        out->kind = HONE_TRAIT_WORD;
        out->class_ = hone_hash64(value.data, value.size);
        return;
    }
    double number = number_of(value);
    bool is_real = memchr(value.data, '.', value.size) != NULL || memchr(value.data, 'e', value.size) != NULL;
    out->kind = is_real ? HONE_TRAIT_REAL : HONE_TRAIT_INTEGER;
    out->is_negative = number < 0;
    out->rank = 1;
    // Integers count from 0; a real of 0 is as far as can be from all others.
    out->sizes[0] = (float)(is_real ? log2(fmax(fabs(number), 1e-300)) : log2(fabs(number) + 1));
}

hone_status hone_traits_read(hone_arena *arena, const char *spec, hone_traits *out, hone_error *err)
{
    hone_view document, key, value;
    *out = (hone_traits){.count = 0};
    hone_status status = hone_json_text_check(hone_view_of(spec), HONE_JSON_PYTHON, &document, err);
    if (status != HONE_OK) return status;
    hone_view parameters = hone_json_member(document, "kwargs_spec");
    if (!hone_json_is_object(parameters)) return hone_fail(err, HONE_CORRUPT, where, "there is no kwargs_spec");
    size_t count = 0;
    hone_trait rows[MOST_PARAMETERS];
    for (hone_json_walk walk = hone_json_walk_of(parameters); hone_json_walk_next(&walk, &key, &value);) {
        if (count == MOST_PARAMETERS)
            return hone_fail(err, HONE_CORRUPT, where, "there are more parameters than a call has");
        memset(&rows[count], 0, sizeof rows[count]);
        rows[count].name = hone_hash64(key.data, key.size);
        read_value(value, &rows[count++]);
    }
    out->rows = hone_arena_array(arena, count, sizeof *out->rows);
    if (out->rows == NULL) return hone_fail_memory(err, where);
    memcpy(out->rows, rows, count * sizeof *out->rows);
    out->count = count;
    return HONE_OK;
}

// Comparing -----------------------------------------------------------------------------------------------------------

// A pair of sizes that differ, and how often one tensor has it: what several tensors share is one dim of the call.
typedef struct pair {
    float a, b;
    uint32_t here, most;
} pair;

typedef struct pairs {
    pair rows[4 * HONE_MAX_RANK]; // those of more tensors are counted for themselves
    size_t count;
    double distance;
} pairs;

static void add_pair(pairs *all, float a, float b)
{
    size_t i = 0;
    while (i < all->count && (all->rows[i].a != a || all->rows[i].b != b))
        i++;
    if (i == sizeof all->rows / sizeof all->rows[0]) {
        all->distance += fabs((double)a - (double)b);
        return;
    }
    if (i == all->count) all->rows[all->count++] = (pair){a, b, 0, 0};
    pair *row = &all->rows[i];
    if (++row->here <= row->most) return;
    row->most = row->here;
    all->distance += fabs((double)a - (double)b);
}

// Axes are matched from the last: leading ones are the batch. One that is not there counts as 1.
static void compare_shapes(pairs *all, const hone_trait *a, const hone_trait *b)
{
    uint8_t most = a->rank > b->rank ? a->rank : b->rank;
    for (size_t i = 0; i < all->count; i++)
        all->rows[i].here = 0;
    for (uint8_t i = 1; i <= most; i++) {
        float x = i <= a->rank ? a->sizes[a->rank - i] : 0, y = i <= b->rank ? b->sizes[b->rank - i] : 0;
        if (x != y) add_pair(all, x, y);
    }
    if (a->rank != b->rank) all->distance += rank_distance;
    if (a->align != b->align) all->distance += rank_distance;
}

static double number_distance(const hone_trait *a, const hone_trait *b)
{
    double distance = fabs((double)a->sizes[0] - (double)b->sizes[0]);
    if (a->kind == HONE_TRAIT_REAL && distance > most_real_distance) distance = most_real_distance;
    return distance + (a->is_negative != b->is_negative ? sign_distance : 0);
}

static void compare_traits(pairs *all, const hone_trait *a, const hone_trait *b)
{
    bool is_tensor = a->kind == HONE_TRAIT_TENSOR;
    if (is_tensor != (b->kind == HONE_TRAIT_TENSOR) || (is_tensor && a->class_ != b->class_))
        all->distance = INFINITY;
    else if (is_tensor)
        compare_shapes(all, a, b);
    else if (a->kind != b->kind)
        all->distance += word_distance;
    else if (a->kind == HONE_TRAIT_WORD)
        all->distance += a->class_ == b->class_ ? 0 : word_distance;
    else
        all->distance += number_distance(a, b);
}

static const hone_trait *find(const hone_traits *in, const hone_trait *like, size_t guess)
{
    if (guess < in->count && in->rows[guess].name == like->name) return &in->rows[guess];
    for (size_t i = 0; i < in->count; i++)
        if (in->rows[i].name == like->name) return &in->rows[i];
    return NULL;
}

double hone_traits_distance(const hone_traits *a, const hone_traits *b)
{
    pairs all = {.count = 0};
    size_t matched = 0;
    for (size_t i = 0; i < a->count && isfinite(all.distance); i++) {
        const hone_trait *other = find(b, &a->rows[i], i);
        matched += other != NULL;
        if (other != NULL)
            compare_traits(&all, &a->rows[i], other);
        else
            all.distance += missing_distance;
    }
    return all.distance + missing_distance * (double)(b->count - matched);
}

// Devices -------------------------------------------------------------------------------------------------------------

// A part of a fingerprint, "KIND|VENDOR,FAMILY,INSTRUCTION SETS,...".
static hone_view part_of(const char *fingerprint, int index)
{
    const char *at = fingerprint;
    for (int i = 0; i < index; i++) {
        at += strcspn(at, i == 0 ? "|" : ",");
        if (*at != '\0') at++;
    }
    return (hone_view){at, strcspn(at, index == 0 ? "|" : ",")};
}

static bool agree(const char *a, const char *b, int index)
{
    hone_view mine = part_of(a, index);
    return mine.size > 0 && hone_view_equal(mine, part_of(b, index));
}

double hone_device_distance(const char *a, const char *b)
{
    enum { KIND, VENDOR, FAMILY, SETS };
    if (strcmp(a, b) == 0) return 0;
    if (!agree(a, b, KIND)) return 4;
    if (agree(a, b, VENDOR) && agree(a, b, FAMILY)) return 1;
    return agree(a, b, VENDOR) || agree(a, b, SETS) ? 2 : 4;
}
