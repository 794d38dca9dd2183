// Enumerating is in the order of the text, the last parameter fastest: rows stand in the order of their positions, and
// are found by halving.
#include "space/rows.h"

#include "base/assert.h"
#include "base/error.h"

#include <string.h>

static const char where[] = "space.rows";

typedef struct filling {
    hone_space_rows *rows;
    size_t limit, capacity;
    bool too_many, out_of_memory;
} filling;

static bool add_row(void *ctx, const hone_space_point *point)
{
    filling *f = ctx;
    hone_space_rows *rows = f->rows;
    size_t width = rows->width, count = rows->count;
    f->too_many = count == f->limit;
    if (f->too_many) return false;
    f->out_of_memory =
        !hone_grow(&rows->allocator, &rows->positions, &f->capacity, (count + 1) * width + 1, sizeof *rows->positions);
    if (f->out_of_memory) return false;
    memcpy(rows->positions + count * width, point->positions, width * sizeof *rows->positions);
    rows->count = count + 1;
    return true;
}

static hone_status too_many(size_t limit, hone_error *err)
{
    return hone_fail(err, HONE_UNSUPPORTED, where, "the space has more than %zu valid configs", limit);
}

// A number of configs that is known is room that need not grow.
static hone_status make_room(filling *f, const hone_bound_space *bound, hone_error *err)
{
    uint64_t low, high;
    hone_space_rows *rows = f->rows;
    hone_status status = hone_bound_space_bounds(bound, &low, &high, err);
    if (status == HONE_OK && low > f->limit) return too_many(f->limit, err);
    if (status != HONE_OK || low != high) return status;
    f->capacity = (size_t)low * rows->width + 1;
    rows->positions = hone_alloc_array(&rows->allocator, f->capacity, sizeof *rows->positions);
    return rows->positions == NULL ? hone_fail_memory(err, where) : HONE_OK;
}

hone_status hone_space_rows_init(hone_space_rows *rows, const hone_bound_space *bound, size_t limit, hone_error *err)
{
    filling f = {.rows = rows, .limit = limit};
    *rows = (hone_space_rows){.allocator = bound->allocator, .space = hone_space_retain(bound->space)};
    rows->width = bound->space->parameter_count;
    hone_status status = make_room(&f, bound, err);
    if (status == HONE_OK) status = hone_space_enumerate_points(bound, add_row, &f, err);
    if (status == HONE_OK && f.out_of_memory) return hone_fail_memory(err, where);
    return status == HONE_OK && f.too_many ? too_many(limit, err) : status;
}

void hone_space_rows_deinit(hone_space_rows *rows)
{
    hone_free(&rows->allocator, rows->positions);
    rows->positions = NULL;
    rows->count = 0;
    hone_space_release(&rows->space);
}

void hone_space_row_config(const hone_space_rows *rows, size_t index, hone_config *out_config)
{
    hone_assert(index < rows->count);
    const uint16_t *row = hone_space_row(rows, index);
    *out_config = (hone_config){.count = (uint32_t)rows->width};
    for (size_t i = 0; i < rows->width; i++)
        out_config->values[i] = hone_space_number(&rows->space->parameters[i], row[i]);
}

static int order_of_rows(const uint16_t *a, const uint16_t *b, size_t width)
{
    for (size_t i = 0; i < width; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}

int64_t hone_space_rows_find(const hone_space_rows *rows, const uint16_t *positions)
{
    size_t low = 0, high = rows->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = order_of_rows(hone_space_row(rows, middle), positions, rows->width);
        if (order == 0) return (int64_t)middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

int64_t hone_space_rows_find_config(const hone_space_rows *rows, const hone_config *config)
{
    uint16_t positions[HONE_MAX_PARAMETERS];
    if (config->count != rows->width) return -1;
    for (size_t i = 0; i < rows->width; i++) {
        int64_t position = hone_space_find_number(&rows->space->parameters[i], config->values[i]);
        if (position < 0) return -1;
        positions[i] = (uint16_t)position;
    }
    return hone_space_rows_find(rows, positions);
}
