// What a contest measured, as T4 results: the form in which tuners exchange it.
#ifndef HONE_SIMULATE_T4_H
#define HONE_SIMULATE_T4_H

#include "base/buffer.h"
#include "hone/space.h"
#include "hone/tune.h"

// Writes every config of one kernel that was tried for entry `index`, in its order: all samples, those of the finals
// too, and how long trying it took.
//   space  the kernel's
// Returns: HONE_OK; HONE_NOT_FOUND: nothing is known of what was tried, or nothing of this kernel; HONE_OUT_OF_MEMORY.
hone_status hone_result_t4(
    const hone_result *result,
    size_t index,
    const char *kernel,
    const hone_space *space,
    hone_buffer *out,
    hone_error *err);

#endif
