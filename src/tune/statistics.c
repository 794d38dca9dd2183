#include "tune/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESAMPLES = 1000, MAX_SAMPLES = 256 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle_of(const double *sorted, size_t count)
{
    return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

hone_interval hone_median(double *samples, size_t count)
{
    qsort(samples, count, sizeof *samples, compare);
    // The ranks n/2 -+ 0.98 sqrt(n) hold the median in 95 % of cases (normal approximation of the binomial).
    double reach = 0.98 * sqrt((double)count), low = floor((double)count / 2 - reach) - 1;
    size_t first = low > 0 ? (size_t)low : 0;
    return (hone_interval){middle_of(samples, count), samples[first], samples[count - 1 - first]};
}

static double median_of(const double *samples, const uint32_t *picked, size_t count)
{
    double sorted[MAX_SAMPLES];
    for (size_t i = 0; i < count; i++)
        sorted[i] = samples[picked[i]];
    qsort(sorted, count, sizeof sorted[0], compare);
    return middle_of(sorted, count);
}

static double ratio_of(const double *a, const double *b, const uint32_t *picked, size_t count)
{
    double below = median_of(a, picked, count);
    return below > 0 ? median_of(b, picked, count) / below : 1;
}

hone_interval hone_ratio(const double *a, const double *b, size_t count, uint64_t seed)
{
    uint32_t picked[MAX_SAMPLES];
    double ratios[RESAMPLES];
    if (count > MAX_SAMPLES) count = MAX_SAMPLES;
    for (uint32_t i = 0; i < count; i++)
        picked[i] = i;
    hone_interval interval = {.middle = ratio_of(a, b, picked, count)};
    for (size_t r = 0; r < RESAMPLES; r++) {
        for (size_t i = 0; i < count; i++)
            picked[i] = hone_random_below(&seed, (uint32_t)count);
        ratios[r] = ratio_of(a, b, picked, count);
    }
    qsort(ratios, RESAMPLES, sizeof ratios[0], compare);
    interval.low = ratios[RESAMPLES / 40];
    interval.high = ratios[RESAMPLES - 1 - RESAMPLES / 40];
    return interval;
}
