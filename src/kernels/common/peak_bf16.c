// The loop of peak.h over pairs of bf16: an instruction adds two products to each of sixteen sums.
#include "kernels/common/peak.h"
#include "kernels/vector/avx512.h"

// The products of a pair cancel, so that no sum overflows.
float hone_peak_loop_avx512_bf16(int64_t rounds)
{
    enum { ONE = 0x3f80, MINUS_ONE = 0xbf80 };
    const __m512bh ones = (__m512bh)_mm512_set1_epi16(ONE);
    const __m512bh signs = (__m512bh)_mm512_set1_epi32((int)((uint32_t)MINUS_ONE << 16 | ONE));
    vec sums[HONE_PEAK_SUMS], total = vec_set(0.0f);
    HONE_UNROLL
    for (int i = 0; i < HONE_PEAK_SUMS; i++)
        sums[i] = vec_set((float)i);
    for (int64_t round = 0; round < rounds; round++) {
        HONE_UNROLL
        for (int i = 0; i < HONE_PEAK_SUMS; i++) {
            sums[i] = _mm512_dpbf16_ps(sums[i], ones, signs);
            __asm__ volatile("" : "+x"(sums[i]));
        }
    }
    HONE_UNROLL
    for (int i = 0; i < HONE_PEAK_SUMS; i++)
        total = vec_add(total, sums[i]);
    return vec_sum(total);
}
