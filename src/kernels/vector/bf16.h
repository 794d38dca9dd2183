// Words of two bf16, for files compiled with AVX512_BF16: one instruction multiplies pairs and adds both products to a
// float. It treats subnormal bf16 as zero; this does not affect a float sum of normal products.
#ifndef HONE_KERNELS_VECTOR_BF16_H
#define HONE_KERNELS_VECTOR_BF16_H

#include "kernels/vector/avx512.h"

HONE_INLINE vec dot_pairs(vec a, vec b, vec sum)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_castps_si512(a), (__m512bh)_mm512_castps_si512(b));
}

HONE_INLINE __mmask32 mask32(int64_t count)
{
    return count >= 32 ? 0xffffffffu : count <= 0 ? 0 : (1u << count) - 1;
}

// The words of a row, without rearrangement.
HONE_INLINE vec along(const void *data, int64_t index, int64_t left)
{
    const uint16_t *from = (const uint16_t *)data + index;
    if (__builtin_constant_p(left) && left >= 32) return _mm512_castsi512_ps(_mm512_loadu_si512(from));
    return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(mask32(left), from));
}

#endif
