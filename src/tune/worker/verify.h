// Compares results with the reference's, element by element, under the algorithm's tolerance.
#ifndef HONE_TUNE_WORKER_VERIFY_H
#define HONE_TUNE_WORKER_VERIFY_H

#include "hone/kernel.h"
#include "os/os.h"

// The error that is allowed. Results may be compared in parts, but the largest |reference| is that of all parts.
typedef struct hone_yardstick {
    double absolute, relative; // of |reference|
    double base;               // allowed for every element
    bool takes_nan;            // NaN is right where the reference is NaN, and only there
} hone_yardstick;

// Finds the largest finite |element| of a tensor. False: the tensor has a NaN, and *out_index (may be NULL) is the
// index of the first one, in row-major order.
bool hone_verify_largest(const hone_tensor *tensor, double *out_largest, int64_t *out_index);
// The distance from 1 to the next number of the dtype; 0 for integers and booleans.
double hone_verify_eps(hone_dtype dtype);
// Computes what is allowed. tolerance all zero: the dtype's defaults (docs/tolerance.md). largest: max |reference|.
hone_yardstick hone_verify_yardstick(const hone_tolerance *tolerance, hone_dtype dtype, double largest);

// Compares two tensors of equal dtype and shape (strides may differ). A NaN passes only where the yardstick says so.
//   pool           its threads compare large tensors; NULL: the calling thread does
//   name           of the result, for the message
//   out_max_error  largest |out - reference| divided by what is allowed: more than 1 is wrong; always written
// Returns: HONE_OK; HONE_KERNEL_FAILED naming the first element that is wrong.
hone_status hone_verify_compare(
    hone_pool *pool,
    const char *name,
    const hone_tensor *out,
    const hone_tensor *reference,
    const hone_yardstick *yardstick,
    double *out_max_error,
    hone_error *err);
// The same, but returns the index of the first wrong element, in row-major order; -1: all are right.
int64_t hone_verify_find_wrong(
    hone_pool *pool, const hone_tensor *out, const hone_tensor *reference, const hone_yardstick *yardstick);
// The error of one element, divided by what is allowed.
double hone_verify_error(double out, double reference, const hone_yardstick *yardstick);
// Writes an index as "[1, 2]".
void hone_verify_format_index(const hone_tensor *tensor, int64_t index, char *out, size_t size);

#endif
