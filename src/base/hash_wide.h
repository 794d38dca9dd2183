// hone_hash64 by wider vectors. Each file is compiled for its instruction set, and called where the processor has it.
#ifndef HONE_BASE_HASH_WIDE_H
#define HONE_BASE_HASH_WIDE_H

#include <stddef.h>
#include <stdint.h>

uint64_t hone_hash64_avx2(const void *bytes, size_t size);
uint64_t hone_hash64_avx512(const void *bytes, size_t size);

#endif
