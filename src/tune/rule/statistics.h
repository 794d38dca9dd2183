// Statistics of samples: medians, their intervals, and whether one candidate is faster than another.
#ifndef HONE_TUNE_RULE_STATISTICS_H
#define HONE_TUNE_RULE_STATISTICS_H

#include "base/random.h"
#include "tune/wire/message.h"

#include <stddef.h>
#include <stdint.h>

typedef struct hone_interval {
    double middle, low, high;
} hone_interval;

// Chooses the samples that count: undisturbed ones, and if they are fewer than `least`, in addition those that waited
// least for a processor. The waiting time is subtracted from these, at most half of the time: where threads share their
// work dynamically, a waiting thread costs less than it waited. How long a sample waited for a device is not known, so
// samples that were disturbed on the device all count then. Sorts the samples. Writes their times, at most `count`, and
// returns how many.
uint32_t hone_count_samples(hone_sample *samples, uint32_t count, uint32_t least, double *out_times);
// The time of a sample; of a disturbed one, less the share that waiting for a processor has added.
double hone_sample_corrected(const hone_sample *sample);

// Median and its interval (95 %, from order statistics; with fewer than six samples the smallest and largest).
// Sorts the samples. count > 0.
hone_interval hone_median(double *samples, size_t count);
// The mean of the samples within five standard deviations of the median (estimated from the median absolute deviation):
// the average duration of the work where its times are skewed, without disturbances by other work on the machine. Sorts
// the samples. count > 0, at most 256.
double hone_center(double *samples, size_t count);
// The ratio of the centers of b over a, with its 95 % interval from a bootstrap over rounds: sample i of both was taken
// in the same round, so what disturbs a round disturbs both. count > 0, at most 256.
hone_interval hone_ratio(const double *a, const double *b, size_t count, uint64_t seed);
// The median of the ratios of b over a within rounds, with its 95 % interval from order statistics, for rounds that may
// depend on earlier ones: sample i of both was taken in round i, and the rounds come in the order in which they were
// taken. Rounds count in which nothing disturbed either side. If these are fewer than `least`, all rounds count,
// without the time that the samples waited (hone_sample_corrected). b over a and a over b are each other's inverse.
// count and least > 0; count at most 256.
hone_interval hone_rounds_ratio(const hone_sample *a, const hone_sample *b, size_t count, size_t least);
// The ratio of the medians of b over a, with its 95 % interval from a bootstrap of each: for samples that are not taken
// in pairs. Counts > 0, at most 256.
hone_interval hone_median_ratio(const double *a, size_t a_count, const double *b, size_t b_count, uint64_t seed);

#endif
