// The quick comparison of results: decides with the processor's vectors whether a block of elements is certainly right.
// Other blocks are compared element by element.
#ifndef HONE_TUNE_WORKER_VERIFY_BLOCK_H
#define HONE_TUNE_WORKER_VERIFY_BLOCK_H

#include "tune/worker/verify.h"

#include <stdbool.h>
#include <stddef.h>

enum { HONE_VERIFY_BLOCK = 512 };

// Whether blocks of this dtype can be compared.
bool hone_verify_block_takes(hone_dtype_id id);
// Whether every |out - reference| is at most `most` times what is allowed; NaN and infinities never are. False may also
// mean that an element is barely within the bound. Both hold count contiguous elements, and
// hone_verify_block_takes(id).
bool hone_verify_block_within(
    hone_dtype_id id,
    const void *out,
    const void *reference,
    size_t count,
    const hone_yardstick *yardstick,
    double most);
// Raises *out_largest to the largest finite |element|; false when one is NaN.
bool hone_verify_block_largest(hone_dtype_id id, const void *data, size_t count, double *out_largest);

#endif
