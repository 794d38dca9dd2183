/* The reference of the pack's algorithm: in higher precision than the dtype, and plainly. */
#include <stdint.h>

void saxpy_plain(const float *x, const float *y, float *z, int64_t n, double alpha)
{
    for (int64_t i = 0; i < n; i++)
        z[i] = (float)(alpha * x[i] + y[i]);
}
