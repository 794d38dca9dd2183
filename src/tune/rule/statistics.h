// Numbers out of samples: medians, their intervals, and whether one candidate is faster than another.
#ifndef HONE_TUNE_RULE_STATISTICS_H
#define HONE_TUNE_RULE_STATISTICS_H

#include "base/random.h"
#include "tune/wire/message.h"

#include <stddef.h>
#include <stdint.h>

typedef struct hone_interval {
    double middle, low, high;
} hone_interval;

// Which samples count: those that nothing disturbed, and where they are fewer than `least`, beside them those that waited
// least for a processor, with what they waited taken off (at most half: where threads share their work as they come,
// one that waits costs less than it waited). Of a device nobody knows how long a sample waited: all count then. Sorts the samples. Writes their times, count at most, and returns how many.
uint32_t hone_count_samples(hone_sample *samples, uint32_t count, uint32_t least, double *out_times);
// What one sample says: its time, and of a disturbed one what waiting has not put on it.
double hone_sample_corrected(const hone_sample *sample);

// Median and its interval (95 %, from order statistics; with fewer than six samples the smallest and largest).
// Sorts the samples. count > 0.
hone_interval hone_median(double *samples, size_t count);
// The mean of the samples within five standard deviations of the median (estimated from the median absolute deviation):
// what the work takes on average where its times are skewed, without what others did to the machine. Sorts the samples.
// count > 0, at most 256.
double hone_center(double *samples, size_t count);
// The ratio of the centers of b over a, with its 95 % interval from a bootstrap over rounds: sample i of both was taken
// in the same round, so what disturbs a round disturbs both. count > 0, at most 256.
hone_interval hone_ratio(const double *a, const double *b, size_t count, uint64_t seed);
// The median of the ratios of b over a within rounds, with its 95 % interval from order statistics, for rounds that may
// depend on the ones before: sample i of both was taken in round i, and the rounds come in the order in which they were
// taken. The rounds count in which nothing disturbed either side; where they are fewer than `least`, all count, without
// what the samples waited (hone_sample_corrected). b over a and a over b are each other's inverse. count and least > 0;
// count at most 256.
hone_interval hone_rounds_ratio(const hone_sample *a, const hone_sample *b, size_t count, size_t least);
// The ratio of the medians of b over a, with its 95 % interval from a bootstrap of each: for samples that are not taken
// in pairs. Counts > 0, at most 256.
hone_interval hone_median_ratio(const double *a, size_t a_count, const double *b, size_t b_count, uint64_t seed);

#endif
