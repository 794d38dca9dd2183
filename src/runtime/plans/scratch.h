// Scratch memory for runs that bring none: hone_execution.scratch is always there for a kernel that asks for some.
//
// A thread keeps one block, as large as the largest that it ever lent, until it ends. Two runs that happen at the same
// time are on two threads, or one is inside the other: the inner one then gets memory of its own for its time.
#ifndef HONE_RUNTIME_PLANS_SCRATCH_H
#define HONE_RUNTIME_PLANS_SCRATCH_H

#include "hone/kernel.h"

// Whether an execution brings what a plan asks for: enough, and aligned to 64 bytes.
bool hone_scratch_is_brought(const hone_execution *execution, size_t size);
// Makes the calling thread's block at least this large, so that its next run allocates nothing. False: no memory.
bool hone_scratch_reserve(size_t size);
// At least size bytes, aligned to 64, until they are given back by the same thread; what is in them is whatever was
// there.
// NULL: no memory. The system's allocator serves all runtimes: the block outlives each of them.
void *hone_scratch_lend(size_t size);
void hone_scratch_return(void *scratch);

#endif
