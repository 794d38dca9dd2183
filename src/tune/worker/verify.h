// Is an output right? Compares results with the reference's, element by element, under the algorithm's tolerance.
#ifndef HONE_TUNE_WORKER_VERIFY_H
#define HONE_TUNE_WORKER_VERIFY_H

#include "hone/kernel.h"
#include "os/os.h"

// Results may be compared in parts; how large the reference is, is known over all of them.
typedef struct hone_yardstick {
    double absolute, relative; // of |reference|
    double base;               // allowed whatever the element
    bool takes_nan;            // where the reference is NaN, and there alone, NaN is right
} hone_yardstick;

// The largest finite |element| of a tensor. False when it holds a NaN: *out_index (may be NULL) says where the first one is, in
// row-major order.
bool hone_verify_largest(const hone_tensor *tensor, double *out_largest, int64_t *out_index);
// The distance from 1 to the next number; 0: integers and booleans.
double hone_verify_eps(hone_dtype dtype);
// What is allowed. tolerance all zero: the dtype's defaults (docs/tolerance.md). largest: max |reference|.
hone_yardstick hone_verify_yardstick(const hone_tolerance *tolerance, hone_dtype dtype, double largest);

// Compares two tensors of equal dtype and shape (strides may differ). A NaN passes only where the yardstick says so.
//   pool           large ones are compared by its threads; NULL: by this one
//   name           of the result, for the message
//   out_max_error  largest |out - reference| over what is allowed: more than 1 is wrong; written always
// Returns: HONE_OK; HONE_KERNEL_FAILED naming the first element that is wrong.
hone_status hone_verify_compare(
    hone_pool *pool,
    const char *name,
    const hone_tensor *out,
    const hone_tensor *reference,
    const hone_yardstick *yardstick,
    double *out_max_error,
    hone_error *err);
// The same, for the index of the first element that is wrong, in row-major order; -1: none is.
int64_t hone_verify_find_wrong(
    hone_pool *pool, const hone_tensor *out, const hone_tensor *reference, const hone_yardstick *yardstick);
// Of one element, over what is allowed.
double hone_verify_error(double out, double reference, const hone_yardstick *yardstick);
// Index as "[1, 2]".
void hone_verify_format_index(const hone_tensor *tensor, int64_t index, char *out, size_t size);

#endif
