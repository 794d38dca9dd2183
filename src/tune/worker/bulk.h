// Large pieces of memory, worked on by all threads of a pool: what lies between a candidate's runs is to be short.
#ifndef HONE_TUNE_WORKER_BULK_H
#define HONE_TUNE_WORKER_BULK_H

#include "os/os.h"

#include <stddef.h>
#include <stdint.h>

// pool NULL: the calling thread alone.
void hone_bulk_fill(hone_pool *pool, void *to, unsigned char byte, size_t size);
void hone_bulk_copy(hone_pool *pool, void *to, const void *from, size_t size);
// The same number with any pool.
uint64_t hone_bulk_hash(hone_pool *pool, const void *bytes, size_t size);

#endif
