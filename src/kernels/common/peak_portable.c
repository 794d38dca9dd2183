#include "kernels/vector/portable.h"

#include "kernels/common/peak_loop.h"

float hone_peak_loop_portable(int64_t rounds)
{
    return peak_loop(rounds);
}
