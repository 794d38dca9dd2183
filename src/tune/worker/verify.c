#include "tune/worker/verify.h"

#include "base/error.h"
#include "call/call.h"
#include "tune/worker/verify_block.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "tune.verify";

// The default tolerance, for algorithms that do not state one: a few roundings of every element and, relative to the
// largest element, the roundings of a long sum. eps is the distance from 1 to the next number of the dtype, least the
// distance from 0: if all of a result lies near 0, neighbouring numbers of 16 and 8 bits are further apart than a share
// of the largest. For longer dtypes least is 0.
typedef struct dtype_rule {
    hone_dtype_id id;
    double eps, relative, scale, least;
} dtype_rule;

static const dtype_rule rules[] = {
    {HONE_F64, 0x1p-52, 1e-9, 4096, 0},        {HONE_F32, 0x1p-23, 1e-5, 256, 0},
    {HONE_F16, 0x1p-10, 8e-3, 8, 0x1p-24},     {HONE_BF16, 0x1p-7, 3.2e-2, 4, 0},
    {HONE_F8_E4M3FN, 0x1p-3, 0.25, 2, 0x1p-9}, {HONE_F8_E5M2, 0x1p-2, 0.5, 2, 0x1p-16},
    {HONE_C64, 0x1p-23, 1e-5, 256, 0},         {HONE_C128, 0x1p-52, 1e-9, 4096, 0},
};

static const dtype_rule *rule_of(hone_dtype dtype)
{
    const hone_dtype_info *info = hone_dtype_find(dtype);
    for (size_t i = 0; info != NULL && i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].id == info->id) return &rules[i];
    return NULL; // integers and booleans: exact
}

double hone_verify_eps(hone_dtype dtype)
{
    const dtype_rule *rule = rule_of(dtype);
    return rule != NULL ? rule->eps : 0;
}

hone_yardstick hone_verify_yardstick(const hone_tolerance *tolerance, hone_dtype dtype, double largest)
{
    const dtype_rule *rule = rule_of(dtype);
    bool given = tolerance->absolute != 0 || tolerance->relative != 0 || tolerance->scale != 0;
    const double eps = hone_verify_eps(dtype), least = rule != NULL ? rule->least : 0;
    if (given)
        return (hone_yardstick){
            .absolute = tolerance->absolute,
            .relative = tolerance->relative,
            .base = tolerance->absolute + tolerance->scale * eps * largest + least};
    if (rule == NULL) return (hone_yardstick){.base = 0};
    return (hone_yardstick){.relative = rule->relative, .base = rule->scale * eps * largest + least};
}

// Rows ----------------------------------------------------------------------------------------------------------------

// A tensor as rows of real numbers: a complex element is two of them, side by side.
typedef struct row_walk {
    int64_t strides[HONE_MAX_RANK]; // elements
    int64_t at[HONE_MAX_RANK];
    int64_t offset; // of the row's first element
} row_walk;

static hone_dtype_id real_id(hone_dtype dtype)
{
    const hone_dtype_info *info = hone_dtype_find(dtype);
    if (info == NULL) return HONE_DTYPE_COUNT;
    return info->id == HONE_C64 ? HONE_F32 : info->id == HONE_C128 ? HONE_F64 : info->id;
}

static int64_t reals(hone_dtype dtype)
{
    return dtype.code == HONE_CODE_COMPLEX ? 2 : 1;
}

static void walk_start(row_walk *walk, const hone_tensor *tensor)
{
    memset(walk, 0, sizeof *walk);
    hone_tensor_strides(tensor, walk->strides);
}

static void walk_next(row_walk *walk, const hone_tensor *tensor)
{
    for (int32_t axis = tensor->ndim - 2; axis >= 0; axis--) {
        walk->offset += walk->strides[axis];
        if (++walk->at[axis] < tensor->shape[axis]) return;
        walk->offset -= walk->strides[axis] * walk->at[axis];
        walk->at[axis] = 0;
    }
}

static int64_t row_size(const hone_tensor *tensor)
{
    return tensor->ndim > 0 ? tensor->shape[tensor->ndim - 1] : 1;
}

static int64_t row_stride(const row_walk *walk, const hone_tensor *tensor)
{
    return tensor->ndim > 0 ? walk->strides[tensor->ndim - 1] : 1;
}

// Element at offset, or its real or imaginary part. f32 and f64 are read here: most results that are compared have
// them.
static inline double load(hone_dtype_id id, const void *data, int64_t offset)
{
    if (id == HONE_F32) return (double)((const float *)data)[offset];
    if (id == HONE_F64) return ((const double *)data)[offset];
    return hone_element_load(id, data, offset);
}

// Finds the largest of reals [from, to) of a row. False: there is a NaN, *out_nan is the index of the first one, and
// the largest is that of the others.
static bool largest_of_reals(
    const hone_tensor *tensor, const row_walk *walk, int64_t from, int64_t to, double *largest, int64_t *out_nan)
{
    const hone_dtype_id id = real_id(tensor->dtype);
    const int64_t width = reals(tensor->dtype), stride = row_stride(walk, tensor);
    const void *data = hone_tensor_data(tensor);
    bool has_nan = false;
    for (int64_t i = from; i < to; i++) {
        double value = fabs(load(id, data, (walk->offset + i / width * stride) * width + i % width));
        if (isnan(value)) {
            if (!has_nan) *out_nan = i;
            has_nan = true;
        }
        if (value > *largest && isfinite(value)) *largest = value;
    }
    return !has_nan;
}

// The same for a whole row. If its elements are contiguous, vectors search it first.
static bool largest_of_row(
    const hone_tensor *tensor, const row_walk *walk, int64_t count, double *largest, int64_t *out_nan)
{
    const hone_dtype_id id = real_id(tensor->dtype);
    if (row_stride(walk, tensor) == 1 && hone_verify_block_takes(id)) {
        const char *row = (const char *)hone_tensor_data(tensor) + walk->offset * (tensor->dtype.bits / 8);
        if (hone_verify_block_largest(id, row, (size_t)count, largest)) return true;
    }
    return largest_of_reals(tensor, walk, 0, count, largest, out_nan);
}

bool hone_verify_largest(const hone_tensor *tensor, double *out_largest, int64_t *out_index)
{
    const int64_t width = reals(tensor->dtype), elements = hone_tensor_elements(tensor);
    const int64_t size = hone_tensor_is_row_major(tensor) ? elements : row_size(tensor);
    const int64_t rows = size > 0 ? elements / size : 0;
    bool has_nan = false;
    row_walk walk;
    *out_largest = 0;
    walk_start(&walk, tensor);
    for (int64_t row = 0; row < rows; row++, walk_next(&walk, tensor)) {
        int64_t nan = 0;
        if (largest_of_row(tensor, &walk, size * width, out_largest, &nan)) continue;
        if (!has_nan && out_index != NULL) *out_index = row * size + nan / width;
        has_nan = true;
    }
    return !has_nan;
}

// Comparing -----------------------------------------------------------------------------------------------------------

// The distance of `out` from `reference`, divided by what is allowed.
static inline double error_of(double out, double reference, const hone_yardstick *yardstick)
{
    if (out == reference || (yardstick->takes_nan && isnan(out) && isnan(reference))) return 0;
    double difference = fabs(out - reference), allowed = yardstick->base + yardstick->relative * fabs(reference);
    if (isnan(difference) || isinf(difference)) return INFINITY;
    return allowed > 0 ? difference / allowed : INFINITY;
}

double hone_verify_error(double out, double reference, const hone_yardstick *yardstick)
{
    return error_of(out, reference, yardstick);
}

// Whether integers beyond 2^53 differ although they are equal as doubles.
static inline bool differ_unseen(
    hone_dtype_id id, const void *a, int64_t a_at, const void *b, int64_t b_at, const hone_yardstick *yardstick)
{
    if ((id != HONE_I64 && id != HONE_U64) || yardstick->base > 0 || yardstick->relative > 0) return false;
    return ((const int64_t *)a)[a_at] != ((const int64_t *)b)[b_at];
}

typedef struct comparison {
    const hone_tensor *out, *reference;
    const hone_yardstick *yardstick;
    double max_error;
    int64_t wrong; // index of the first wrong element; -1: none
    double came, expected;
} comparison;

// Compares reals [from, to) of a row.
static void compare_reals(comparison *c, int64_t first, const row_walk *a, const row_walk *b, int64_t from, int64_t to)
{
    const hone_dtype_id id = real_id(c->out->dtype);
    const int64_t width = reals(c->out->dtype);
    const int64_t a_stride = row_stride(a, c->out), b_stride = row_stride(b, c->reference);
    const void *a_data = hone_tensor_data(c->out), *b_data = hone_tensor_data(c->reference);
    for (int64_t i = from; i < to; i++) {
        int64_t a_at = (a->offset + i / width * a_stride) * width + i % width;
        int64_t b_at = (b->offset + i / width * b_stride) * width + i % width;
        double came = load(id, a_data, a_at), expected = load(id, b_data, b_at);
        double error = error_of(came, expected, c->yardstick);
        if (error == 0 && differ_unseen(id, a_data, a_at, b_data, b_at, c->yardstick)) error = INFINITY;
        if (error > c->max_error) c->max_error = error;
        if (error > 1 && c->wrong < 0) {
            c->wrong = first + i / width;
            c->came = came;
            c->expected = expected;
        }
    }
}

static bool is_blocked(const comparison *c, const row_walk *a, const row_walk *b)
{
    return row_stride(a, c->out) == 1 && row_stride(b, c->reference) == 1 &&
           hone_verify_block_takes(real_id(c->out->dtype));
}

// Compares reals [from, to) of a row whose elements are contiguous. The largest error so far is the bound of the quick
// comparison: a block within it can neither be wrong nor raise it, and few blocks raise it.
static void compare_blocks(comparison *c, int64_t first, const row_walk *a, const row_walk *b, int64_t from, int64_t to)
{
    const hone_dtype_id id = real_id(c->out->dtype);
    const int64_t width = reals(c->out->dtype);
    const size_t bytes = c->out->dtype.bits / 8u / (size_t)width;
    const char *a_data = (const char *)hone_tensor_data(c->out) + (size_t)(a->offset * width) * bytes;
    const char *b_data = (const char *)hone_tensor_data(c->reference) + (size_t)(b->offset * width) * bytes;
    for (int64_t i = from; i < to; i += HONE_VERIFY_BLOCK) {
        int64_t end = i + HONE_VERIFY_BLOCK < to ? i + HONE_VERIFY_BLOCK : to;
        size_t skip = (size_t)i * bytes;
        if (c->max_error < INFINITY &&
            hone_verify_block_within(id, a_data + skip, b_data + skip, (size_t)(end - i), c->yardstick, c->max_error))
            continue;
        compare_reals(c, first, a, b, i, end);
    }
}

// Compares a row of `size` elements, the first of which has the row-major index `first`.
static void compare_row(comparison *c, int64_t first, const row_walk *a, const row_walk *b, int64_t size)
{
    const int64_t count = size * reals(c->out->dtype);
    if (is_blocked(c, a, b))
        compare_blocks(c, first, a, b, 0, count);
    else
        compare_reals(c, first, a, b, 0, count);
}

void hone_verify_format_index(const hone_tensor *tensor, int64_t index, char *out, size_t size)
{
    int64_t at[HONE_MAX_RANK];
    for (int32_t axis = tensor->ndim - 1; axis >= 0; axis--) {
        at[axis] = tensor->shape[axis] > 0 ? index % tensor->shape[axis] : 0;
        index = tensor->shape[axis] > 0 ? index / tensor->shape[axis] : 0;
    }
    size_t used = (size_t)snprintf(out, size, "[");
    for (int32_t axis = 0; axis < tensor->ndim && used < size; axis++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld", axis > 0 ? ", " : "", (long long)at[axis]);
    if (used < size) snprintf(out + used, size - used, "]");
}

// One dense row, cut into pieces.
enum { LEAST_PIECE = 128 * HONE_VERIFY_BLOCK, MOST_PIECES = 16 };

typedef struct pieces {
    const row_walk *out_walk, *reference_walk;
    int64_t count, size; // reals in all; reals per piece
    comparison each[MOST_PIECES];
    _Atomic double max_error; // of the pieces that are done
} pieces;

static void compare_piece(void *ctx, int64_t index)
{
    pieces *all = ctx;
    comparison *c = &all->each[index];
    const int64_t from = index * all->size, rest = all->count - from;
    const double before = atomic_load_explicit(&all->max_error, memory_order_relaxed);
    c->max_error = fmin(before, 1); // of other pieces; more than 1 would hide what is wrong here
    compare_blocks(c, 0, all->out_walk, all->reference_walk, from, from + (rest < all->size ? rest : all->size));
    double seen = before;
    while (c->max_error > seen && !atomic_compare_exchange_weak(&all->max_error, &seen, c->max_error))
        ;
}

static void compare_in_pieces(hone_pool *pool, comparison *c, const row_walk *a, const row_walk *b, int64_t count)
{
    pieces all = {.out_walk = a, .reference_walk = b, .count = count};
    const int64_t blocks = (count + HONE_VERIFY_BLOCK - 1) / HONE_VERIFY_BLOCK;
    all.size = (blocks + MOST_PIECES - 1) / MOST_PIECES * HONE_VERIFY_BLOCK;
    if (all.size < LEAST_PIECE) all.size = LEAST_PIECE;
    const int64_t number = (count + all.size - 1) / all.size;
    for (int64_t i = 0; i < number; i++)
        all.each[i] = *c;
    hone_pool_share(pool, number, compare_piece, &all);
    c->max_error = atomic_load(&all.max_error);
    for (int64_t i = number - 1; i >= 0; i--)
        if (all.each[i].wrong >= 0) {
            c->wrong = all.each[i].wrong;
            c->came = all.each[i].came;
            c->expected = all.each[i].expected;
        }
}

static void compare_rows(comparison *c, row_walk *a, row_walk *b, int64_t size)
{
    const int64_t elements = hone_tensor_elements(c->out), rows = size > 0 ? elements / size : 0;
    for (int64_t row = 0; row < rows; row++) {
        compare_row(c, row * size, a, b, size);
        walk_next(a, c->out);
        walk_next(b, c->reference);
    }
}

static comparison compare(
    hone_pool *pool, const hone_tensor *out, const hone_tensor *reference, const hone_yardstick *yardstick)
{
    comparison c = {out, reference, yardstick, 0, -1, 0, 0};
    row_walk a, b;
    walk_start(&a, out);
    walk_start(&b, reference);
    const int64_t elements = hone_tensor_elements(out), count = elements * reals(out->dtype);
    // Without gaps the whole tensor is one row.
    const bool dense = row_stride(&a, out) == 1 && row_stride(&b, reference) == 1 && hone_tensor_is_row_major(out) &&
                       hone_tensor_is_row_major(reference);
    if (pool != NULL && dense && is_blocked(&c, &a, &b) && count > LEAST_PIECE)
        compare_in_pieces(pool, &c, &a, &b, count);
    else
        compare_rows(&c, &a, &b, dense ? elements : row_size(out));
    return c;
}

int64_t hone_verify_find_wrong(
    hone_pool *pool, const hone_tensor *out, const hone_tensor *reference, const hone_yardstick *yardstick)
{
    return compare(pool, out, reference, yardstick).wrong;
}

hone_status hone_verify_compare(
    hone_pool *pool,
    const char *name,
    const hone_tensor *out,
    const hone_tensor *reference,
    const hone_yardstick *yardstick,
    double *out_max_error,
    hone_error *err)
{
    const comparison c = compare(pool, out, reference, yardstick);
    *out_max_error = c.max_error;
    if (c.wrong < 0) return HONE_OK;
    char at[128];
    hone_verify_format_index(out, c.wrong, at, sizeof at);
    return hone_fail(
        err, HONE_KERNEL_FAILED, where, "%s%s is %.9g, the reference says %.9g (allowed %.3g)", name, at, c.came,
        c.expected, yardstick->base + yardstick->relative * fabs(c.expected));
}
