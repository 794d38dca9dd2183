#include "kernels/vector/avx512.h"

#include "kernels/common/peak_loop.h"

float hone_peak_loop_avx512(int64_t rounds)
{
    return peak_loop(rounds);
}
