/* What is tuned: block and lanes are macros, one for each parameter of the space. */
#include <stdint.h>

#include "blocks.h"

void saxpy_blocked(const float *restrict x, const float *restrict y, float *restrict z, int64_t n, float alpha)
{
    for (int64_t from = 0; from < n; from += block) {
        int64_t i = from;
        const int64_t to = end_of_block(from, n);
        for (; i + lanes <= to; i += lanes)
            for (int64_t lane = 0; lane < lanes; lane++)
                z[i + lane] = alpha * x[i + lane] + y[i + lane];
        for (; i < to; i++)
            z[i] = alpha * x[i] + y[i];
    }
}
