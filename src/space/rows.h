// All valid configs of a bound space as a table, two bytes a value: for those who look at every config again and
// again. Row i is the i-th config in the order of hone_bound_space_enumerate.
#ifndef HONE_SPACE_ROWS_H
#define HONE_SPACE_ROWS_H

#include "space/bound.h"

typedef struct hone_space_rows {
    hone_allocator allocator;
    hone_space *space; // retained
    size_t count;
    size_t width;        // parameters
    uint16_t *positions; // count x width: the position of each value in its parameter's list
} hone_space_rows;

// HONE_UNSUPPORTED when there are more than `limit` valid configs: sample instead. deinit also after a failure.
hone_status hone_space_rows_init(hone_space_rows *rows, const hone_bound_space *bound, size_t limit, hone_error *err);
void hone_space_rows_deinit(hone_space_rows *rows);

static inline const uint16_t *hone_space_row(const hone_space_rows *rows, size_t index)
{
    return rows->positions + index * rows->width;
}

void hone_space_row_config(const hone_space_rows *rows, size_t index, hone_config *out_config);
// The row of these positions, or of this config; -1 when it is not valid. Both take the logarithm of count.
int64_t hone_space_rows_find(const hone_space_rows *rows, const uint16_t *positions);
int64_t hone_space_rows_find_config(const hone_space_rows *rows, const hone_config *config);

#endif
