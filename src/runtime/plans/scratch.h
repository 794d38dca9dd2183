// Scratch memory for runs whose caller provides none: a kernel that asks for it always gets it in
// hone_execution.scratch.
//
// A thread keeps one block, as large as the largest that it ever lent, until it ends. Two simultaneous runs are on two
// threads, or one is nested in the other: the nested run then gets separate memory for its duration.
#ifndef HONE_RUNTIME_PLANS_SCRATCH_H
#define HONE_RUNTIME_PLANS_SCRATCH_H

#include "hone/kernel.h"

// Whether an execution provides the scratch memory that a plan asks for: enough bytes, aligned to 64 bytes.
bool hone_scratch_is_brought(const hone_execution *execution, size_t size);
// Makes the calling thread's block at least this large, so that its next run allocates nothing. False if there is no
// memory.
bool hone_scratch_reserve(size_t size);
// Lends at least size bytes, aligned to 64 bytes, until the same thread returns them; they are not initialised. NULL if
// there is no memory. The system's allocator serves all runtimes, since the block outlives each of them.
void *hone_scratch_lend(size_t size);
void hone_scratch_return(void *scratch);

#endif
