// Numbers out of samples: medians, their intervals, and whether one candidate is faster than another.
#ifndef HONE_TUNE_STATISTICS_H
#define HONE_TUNE_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

// A small generator of random numbers with a state of its own (splitmix64), so that equal seeds give equal contests.
uint64_t hone_random_next(uint64_t *state);
// Uniform in [0, bound), bound > 0.
uint32_t hone_random_below(uint64_t *state, uint32_t bound);
// Puts the numbers 0 to count - 1 into out in random order.
void hone_random_order(uint64_t *state, uint32_t count, uint32_t *out);

typedef struct hone_interval {
    double middle, low, high;
} hone_interval;

// Median and its interval (95 %, from order statistics; with fewer than six samples the smallest and largest).
// Sorts the samples. count > 0.
hone_interval hone_median(double *samples, size_t count);
// The ratio of the medians of b over a, with its 95 % interval from a bootstrap over rounds: sample i of both was taken in
// the same round, so what disturbs a round disturbs both. count > 0, at most 256.
hone_interval hone_ratio(const double *a, const double *b, size_t count, uint64_t seed);

#endif
