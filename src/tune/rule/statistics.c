#include "tune/rule/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESAMPLES = 1000, MAX_SAMPLES = 256 };

static const double fence_deviations = 5;

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

double hone_center(double *samples, size_t count)
{
    // 1.4826 times the median absolute deviation is the standard deviation of a normal distribution.
    double distances[MAX_SAMPLES], sum = 0;
    if (count > MAX_SAMPLES) count = MAX_SAMPLES;
    qsort(samples, count, sizeof *samples, compare);
    double middle = middle_of(samples, count);
    for (size_t i = 0; i < count; i++)
        distances[i] = fabs(samples[i] - middle);
    qsort(distances, count, sizeof distances[0], compare);
    double fence = fence_deviations * 1.4826 * middle_of(distances, count);
    size_t inside = 0;
    for (size_t i = 0; i < count; i++) {
        if (fabs(samples[i] - middle) > fence) continue;
        sum += samples[i];
        inside++;
    }
    return inside > 0 ? sum / (double)inside : middle;
}

static double center_of(const double *samples, const uint32_t *picked, size_t count)
{
    double copy[MAX_SAMPLES];
    for (size_t i = 0; i < count; i++)
        copy[i] = samples[picked[i]];
    return hone_center(copy, count);
}

static double ratio_of(const double *a, const double *b, const uint32_t *picked, size_t count)
{
    double below = center_of(a, picked, count);
    return below > 0 ? center_of(b, picked, count) / below : 1;
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
