// Calls of an algorithm that nobody wrote down: sizes, dtypes, optional parameters and layouts drawn from what its
// signature allows.
#ifndef HONE_TESTS_KERNELS_WALK_CALLS_H
#define HONE_TESTS_KERNELS_WALK_CALLS_H

#include "registry/registry.h"

// A description, of tensors on the device; the same for the same seed. NULL: this seed leads to none that the
// signature's conditions allow, or to more work than a test is worth.
hone_call *call_make(const hone_algorithm_entry *algorithm, const hone_device_info *device, uint64_t seed);

// Calls with one dim that is no multiple of a vector's lanes: for each dim of the signature each dtype and each size of
// a list, all other dims being small.
size_t call_count_tails(const hone_algorithm_entry *algorithm);
// One of them; index < call_count_tails. The seed chooses the small dims and the scalars. NULL as above.
hone_call *call_make_tail(
    const hone_algorithm_entry *algorithm, const hone_device_info *device, size_t index, uint64_t seed);

#endif
