// xxHash, compiled with the flags of AVX-512.
#include "base/hash_wide.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hone_hash64_avx512(const void *bytes, size_t size)
{
    return XXH3_64bits(bytes, size);
}
