// xxHash, compiled with the flags of AVX2.
#include "base/hash_wide.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hone_hash64_avx2(const void *bytes, size_t size)
{
    return XXH3_64bits(bytes, size);
}
