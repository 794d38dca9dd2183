// Checks all of a product that plain loops would take minutes to compute. Freivalds' check finds the rows that are most
// likely wrong in the time that reading the matrices takes; these rows are computed and compared element by element.
#ifndef HONE_TUNE_WORKER_PRODUCT_H
#define HONE_TUNE_WORKER_PRODUCT_H

#include "hone/kernel.h"
#include "os/os.h"
#include "tune/worker/verify.h"

// Compares out with a times b: tensors of the host, of one dtype.
//   which          the axes (hone_product)
//   yardstick      from the algorithm's tolerance
//   out_max_error  for the rows that were computed, as in hone_verify_compare
// Returns: HONE_OK; HONE_KERNEL_FAILED naming the first element that is wrong; HONE_OUT_OF_MEMORY.
hone_status hone_product_check(
    hone_pool *pool,
    const char *name,
    const hone_product *which,
    const hone_tensor *a,
    const hone_tensor *b,
    const hone_tensor *out,
    const hone_yardstick *yardstick,
    double *out_max_error,
    hone_error *err);

#endif
