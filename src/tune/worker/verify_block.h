// The quick look at results: whether a block of elements is surely right, by vectors of this processor. What is not is
// looked at element by element.
#ifndef HONE_TUNE_WORKER_VERIFY_BLOCK_H
#define HONE_TUNE_WORKER_VERIFY_BLOCK_H

#include "tune/worker/verify.h"

#include <stdbool.h>
#include <stddef.h>

enum { HONE_VERIFY_BLOCK = 512 };

// Whether blocks of this dtype can be looked at.
bool hone_verify_block_takes(hone_dtype_id id);
// Whether every |out - reference| is at most `most` of what is allowed: NaN and infinities never are. False may also
// mean that one of them is only just so. Both hold count elements side by side, and hone_verify_block_takes(id).
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
