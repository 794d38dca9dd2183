// A tensor as rows: its last axis, once for every index of the axes before it.
#ifndef HONE_KERNELS_VECTOR_ROWS_H
#define HONE_KERNELS_VECTOR_ROWS_H

#include "kernels/common/matrix.h"

// Leading axes that are evenly spaced in memory are joined, so a dense tensor has one.
typedef struct hone_rows {
    char *data;                  // element [0, ..., 0]
    int64_t count, length, step; // rows, their elements, and the stride between two elements
    int32_t axes;
    int64_t shape[HONE_MAX_RANK], strides[HONE_MAX_RANK];
} hone_rows;

static inline hone_rows hone_rows_of(const hone_tensor *tensor)
{
    int32_t last = tensor->ndim - 1;
    hone_rows rows; // only the existing axes are set: zeroing all of them takes longer than the work of a small kernel
    rows.data = (char *)tensor->data + tensor->byte_offset;
    rows.count = 1;
    rows.length = tensor->shape[last];
    rows.step = hone_axis_stride(tensor, last);
    rows.axes = 0;
    for (int32_t i = 0; i < last; i++) {
        int64_t size = tensor->shape[i], stride = hone_axis_stride(tensor, i);
        rows.count *= size;
        if (size == 1) continue;
        int32_t top = rows.axes - 1;
        if (top >= 0 && rows.strides[top] == stride * size) {
            rows.shape[top] *= size;
            rows.strides[top] = stride;
        } else {
            rows.shape[rows.axes] = size;
            rows.strides[rows.axes++] = stride;
        }
    }
    return rows;
}

// The offset in elements of row `index`.
static inline int64_t hone_rows_offset(const hone_rows *rows, int64_t index)
{
    if (rows->axes == 1) return index * rows->strides[0];
    int64_t offset = 0;
    for (int32_t i = rows->axes - 1; i >= 0; i--) {
        offset += index % rows->shape[i] * rows->strides[i];
        index /= rows->shape[i];
    }
    return offset;
}

#endif
