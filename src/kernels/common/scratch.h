// Scratch memory of kernels: the execution's when it brings enough, else a block that the thread keeps.
#ifndef HONE_KERNELS_COMMON_SCRATCH_H
#define HONE_KERNELS_COMMON_SCRATCH_H

#include "hone/kernel.h"

// A block of at least size bytes, aligned to 64, that belongs to the calling thread until its next call of this
// function; its contents are whatever they were. Grown only when it is too small, freed when the thread ends, so
// that a hot path allocates nothing after its first run. NULL when there is no memory.
// A kernel that runs inside another kernel's body on the same thread must not use it at the same time.
void *hone_scratch_get(size_t size);

// The piece for worker `index` of a run that needs `size` bytes a worker: out of execution->scratch when that holds
// `workers` such pieces, else the calling thread's own block. size is rounded up to 64. NULL when there is no memory.
void *hone_scratch_piece(const hone_execution *execution, int64_t index, int64_t workers, size_t size);

#endif
