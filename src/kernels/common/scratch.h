// Scratch memory of kernels: the execution's if it is large enough, else a block that the thread keeps.
#ifndef HONE_KERNELS_COMMON_SCRATCH_H
#define HONE_KERNELS_COMMON_SCRATCH_H

#include "hone/kernel.h"

// A block of at least size bytes, aligned to 64 bytes, that belongs to the calling thread until its next call of this
// function; its contents are undefined. It grows only if it is too small, and is freed when the thread ends, so that a
// hot path allocates nothing after its first run. NULL if there is no memory. A kernel that runs inside another
// kernel's body on the same thread must not use it at the same time.
void *hone_scratch_get(size_t size);

// The memory for worker `index` of a run that needs `size` bytes per worker: a part of execution->scratch if that holds
// `workers` such parts, else the calling thread's own block. size is rounded up to 64 bytes. NULL if there is no
// memory.
void *hone_scratch_piece(const hone_execution *execution, int64_t index, int64_t workers, size_t size);

#endif
