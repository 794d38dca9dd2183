// The FMA loop of peak.h over the including file's vectors.
#ifndef HONE_KERNELS_COMMON_PEAK_LOOP_H
#define HONE_KERNELS_COMMON_PEAK_LOOP_H

#include "kernels/common/peak.h"

// The empty assembler text keeps every round: the compiler cannot know what it does with a sum.
float VEC_NAME(hone_peak_loop)(int64_t rounds)
{
    vec sums[HONE_PEAK_SUMS], factor = vec_set(0.999f), term = vec_set(0.001f), total = vec_set(0.0f);
    HONE_UNROLL
    for (int i = 0; i < HONE_PEAK_SUMS; i++)
        sums[i] = vec_set((float)i);
    for (int64_t round = 0; round < rounds; round++) {
        HONE_UNROLL
        for (int i = 0; i < HONE_PEAK_SUMS; i++) {
            sums[i] = vec_fma(sums[i], factor, term);
            __asm__ volatile("" : "+x"(sums[i]));
        }
    }
    HONE_UNROLL
    for (int i = 0; i < HONE_PEAK_SUMS; i++)
        total = vec_add(total, sums[i]);
    return vec_sum(total);
}

#endif
