// Views of tensors for kernels.
#ifndef HONE_KERNELS_COMMON_MATRIX_H
#define HONE_KERNELS_COMMON_MATRIX_H

#include "hone/value.h"

#include <stdbool.h>

// The last two axes of a tensor. Strides are in elements.
typedef struct hone_matrix {
    void *data; // element [0, 0]
    int64_t rows, columns;
    int64_t row_stride, column_stride;
} hone_matrix;

// The stride of an axis in elements, also of a tensor without strides.
static inline int64_t hone_axis_stride(const hone_tensor *tensor, int32_t axis)
{
    if (tensor->strides != NULL) return tensor->strides[axis];
    int64_t stride = 1;
    for (int32_t i = tensor->ndim - 1; i > axis; i--)
        stride *= tensor->shape[i];
    return stride;
}

// The first matrix along the leading axes.
static inline hone_matrix hone_matrix_of(const hone_tensor *tensor)
{
    const int32_t rows = tensor->ndim - 2, columns = tensor->ndim - 1;
    hone_matrix matrix = {
        (char *)tensor->data + tensor->byte_offset,
        tensor->shape[rows],
        tensor->shape[columns],
        hone_axis_stride(tensor, rows),
        hone_axis_stride(tensor, columns),
    };
    return matrix;
}

static inline hone_matrix hone_matrix_transposed(hone_matrix matrix)
{
    return (hone_matrix){matrix.data, matrix.columns, matrix.rows, matrix.column_stride, matrix.row_stride};
}

// The elements of a row are adjacent, and rows do not overlap.
static inline bool hone_matrix_has_dense_rows(const hone_matrix *matrix)
{
    return (matrix->columns <= 1 || matrix->column_stride == 1) &&
           (matrix->rows <= 1 || matrix->row_stride >= matrix->columns);
}

// The distance in elements from a batch's first matrix to matrix `index`, counted in C order over the leading axes.
static inline int64_t hone_matrix_offset(const hone_tensor *tensor, int32_t leading, int64_t index)
{
    int64_t elements = 0;
    for (int32_t axis = leading - 1; axis >= 0; axis--) {
        elements += index % tensor->shape[axis] * hone_axis_stride(tensor, axis);
        index /= tensor->shape[axis];
    }
    return elements;
}

// Dtypes in signatures: those that kernels accept, and those that references, which compute in double, accept in
// addition.
#define HONE_FLOATS         "f32, f16, bf16"
#define HONE_FLOATS_AND_F64 HONE_FLOATS ", f64"

// The id of one of the float types that kernels support; HONE_DTYPE_COUNT for any other.
static inline hone_dtype_id hone_float_id(hone_dtype dtype)
{
    if (dtype.lanes > 1) return HONE_DTYPE_COUNT;
    if (dtype.code == HONE_CODE_BFLOAT && dtype.bits == 16) return HONE_BF16;
    if (dtype.code != HONE_CODE_FLOAT) return HONE_DTYPE_COUNT;
    return dtype.bits == 64 ? HONE_F64 : dtype.bits == 32 ? HONE_F32 : dtype.bits == 16 ? HONE_F16 : HONE_DTYPE_COUNT;
}

#endif
