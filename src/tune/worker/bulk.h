// Operations on large pieces of memory by all threads of a pool, so that the time between a candidate's runs is short.
#ifndef HONE_TUNE_WORKER_BULK_H
#define HONE_TUNE_WORKER_BULK_H

#include "os/os.h"

#include <stddef.h>
#include <stdint.h>

// pool NULL: the calling thread works alone.
void hone_bulk_fill(hone_pool *pool, void *to, unsigned char byte, size_t size);
void hone_bulk_copy(hone_pool *pool, void *to, const void *from, size_t size);
// Returns the same number for any pool.
uint64_t hone_bulk_hash(hone_pool *pool, const void *bytes, size_t size);

#endif
