// The kernel that the other one is verified against.
#include <stdint.h>

void scale_plain(const float *x, float *y, int64_t n, double factor);

void scale_plain(const float *x, float *y, int64_t n, double factor)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)(factor * x[i]);
}
