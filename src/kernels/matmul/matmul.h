// What the kernels of matmul share: their arguments, and what a table asks of a call.
#ifndef HONE_KERNELS_MATMUL_MATMUL_H
#define HONE_KERNELS_MATMUL_MATMUL_H

#include "hone/kernel.h"

// The order of values.
enum { MATMUL_A, MATMUL_B, MATMUL_C, MATMUL_TRANSPOSE_B };

// One product c = a b whose rows are dense. Strides are in elements, from one row to the next as the array lies.
typedef struct hone_matmul {
    const void *a, *b;
    void *c;
    int64_t m, n, k;
    int64_t a_stride, b_stride, c_stride;
    bool transpose_b; // b is [n, k]
    hone_dtype_id dtype;
} hone_matmul;

// The product of a run's arguments.
hone_matmul hone_matmul_of(const hone_plan *plan, const hone_value *args);
// The product that a call describes; its pointers mean nothing.
hone_matmul hone_matmul_of_call(const hone_call *call);
// Whether b is [n, k]: read from the plan's call, since a run's arguments may leave a default out.
bool hone_matmul_transposes(const hone_plan *plan);
// c = 0: what a product over an empty k is.
void hone_matmul_clear(const hone_matmul *product);

// The rows of a, b and c are dense; else why says which are not.
bool hone_matmul_rows_are_dense(const hone_call *call, hone_error *why);
// The largest power of two of threads that a product of this size is worth, at most the device's and 64.
int64_t hone_matmul_threads(const hone_matmul *product, const hone_device_info *device);

hone_status hone_matmul_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution);

#endif
