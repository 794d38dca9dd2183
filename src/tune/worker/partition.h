// Parts of a call that are independent of each other: rows of a product, heads of an attention. A reference that would
// take minutes for a whole call is computed for some of its parts, each a smaller call over views of the same data.
//
// The algorithm says along which dims a call can be cut (hone_algorithm.independent).
#ifndef HONE_TUNE_WORKER_PARTITION_H
#define HONE_TUNE_WORKER_PARTITION_H

#include "hone/kernel.h"

enum { HONE_MAX_PART_GROUPS = 4, HONE_MAX_PART_AXES = 64 };

// An axis of a value that is cut.
typedef struct hone_part_axis {
    uint32_t value;
    int32_t axis;
    int64_t size; // of one part along it
} hone_part_axis;

// Dims that are cut together, into `count` pieces.
typedef struct hone_part_group {
    int64_t count;
    uint32_t axes;
    hone_part_axis axis[HONE_MAX_PART_AXES];
} hone_part_group;

typedef struct hone_parting {
    uint32_t groups; // 0: the call cannot be cut
    hone_part_group group[HONE_MAX_PART_GROUPS];
    uint64_t count; // parts in all, at least 1
} hone_parting;

// Finds how a call can be cut. A dim that occurs in an expression, or in one of two shapes ("if ... else"), is not cut.
void hone_parting_find(const char *independent, const hone_call *call, hone_parting *out);
// Merges neighbouring parts until there are at most `most`, which is at least 1.
void hone_parting_coarsen(hone_parting *parting, uint64_t most);
// The part that holds an element of a result, whose index is in row-major order.
uint64_t hone_part_of(const hone_parting *parting, uint32_t value, const hone_tensor *whole, int64_t index);
// One part's view of a tensor. shape and strides are the caller's, HONE_MAX_RANK each; out points to them.
void hone_part_view(
    const hone_parting *parting,
    uint64_t part,
    uint32_t value,
    const hone_tensor *whole,
    int64_t *shape,
    int64_t *strides,
    hone_tensor *out);

#endif
