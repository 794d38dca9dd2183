#include "kernels/vector/avx2.h"

#include "kernels/common/peak_loop.h"

float hone_peak_loop_avx2(int64_t rounds)
{
    return peak_loop(rounds);
}
