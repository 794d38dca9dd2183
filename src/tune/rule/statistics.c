// Robust statistics of a few samples.
//
// Times on a shared machine are skewed: most lie close above the least, some far above. So the place of one candidate's
// samples is their median, with the interval of the sign test (W. J. Conover, "Practical Nonparametric Statistics", on
// intervals of quantiles), which asks nothing of their distribution. Finalists are compared by means instead: what the
// work takes on average. What lies five deviations away is left out of the mean. The deviation is
// 1.4826 times the median absolute deviation (P. J. Rousseeuw and C. Croux, "Alternatives to the Median Absolute
// Deviation", 1993), which half of the samples being disturbed cannot move far.
//
// The interval of a ratio is the percentile bootstrap (B. Efron and R. J. Tibshirani, "An Introduction to the
// Bootstrap", 1993, chapter 13, which asks for 1,000 resamples for an interval). Rounds are drawn, not samples: both
// candidates of a round are drawn together, so that what disturbed the round stays in both. The seed decides the draws,
// so that the same samples have the same interval. Cost: 1,000 sorts of each side's samples.
//
// A duel has many rounds, and what disturbs one of them often lasts for the next ones, too. Its ratio is the median of
// the ratios within rounds, and its interval that of the sign test, between ranks interpolated (T. P. Hettmansperger and
// S. J. Sheather, "Confidence Intervals Based on Interpolated Order Statistics", 1986). Of rounds that depend on each
// other, the variance of the median is that of the sum of their signs about it (P. K. Sen, "On the Bahadur
// Representation of Sample Quantiles for Sequences of phi-Mixing Random Variables", 1972), so that the rounds are worth
// as many fewer as that variance is larger than of independent ones. It is measured by sums of successive signs
// (M. S. Meketon and B. Schmeiser, "Overlapping Batch Means: Something for Nothing?", 1984). Resampling blocks of rounds
// (H. R. Kuensch, 1989) makes the interval too short where a duel has a few dozen rounds: docs/benchmarks.md compares.
#include "tune/rule/statistics.h"

#include "base/assert.h"
#include "platforms/platform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    RESAMPLES = 1000,
    MAX_SAMPLES = 256,
    MOST_DEPENDENT = 16, // successive rounds, as many as are measured without a pause
    LEAST_BATCHES = 4    // of so many, of which a variance says something
};

// Chosen by hand; docs/benchmarks.md has the wrong picks of bench_ab with it.
static const double fence_deviations = 5;
// Of two threads that share their work as they come, one that has no processor at all leaves the other twice the work.
static const double least_corrected = 0.5;

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
    hone_assert(count > 0);
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
    hone_assert(count > 0);
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

// Which samples count -------------------------------------------------------------------------------------------------

double hone_sample_corrected(const hone_sample *sample)
{
    return sample->marks == 0 ? sample->time_ns : sample->time_ns * fmax(1 - sample->waited, least_corrected);
}

static int by_disturbance(const void *a, const void *b)
{
    const hone_sample *x = a, *y = b;
    if ((x->marks != 0) != (y->marks != 0)) return x->marks != 0 ? 1 : -1;
    return (x->waited > y->waited) - (x->waited < y->waited);
}

// counted: samples before it that count.
static bool counts(const hone_sample *sample, uint32_t counted, uint32_t least, bool is_alone)
{
    if (sample->marks == 0 || counted < least) return true;
    return !is_alone && (sample->marks & HONE_DEVICE_ANY) != 0;
}

uint32_t hone_count_samples(hone_sample *samples, uint32_t count, uint32_t least, double *out_times)
{
    uint32_t counted = 0;
    qsort(samples, count, sizeof *samples, by_disturbance);
    const bool is_alone = least == 0 || (least <= count && samples[least - 1].marks == 0);
    for (; counted < count && counts(&samples[counted], counted, least, is_alone); counted++)
        out_times[counted] = hone_sample_corrected(&samples[counted]);
    return counted;
}

// Rounds of two -------------------------------------------------------------------------------------------------------

static bool is_left_alone(const hone_sample *a, const hone_sample *b)
{
    return a->marks == 0 && b->marks == 0;
}

static double log_ratio(const hone_sample *a, const hone_sample *b)
{
    const double above = hone_sample_corrected(b), below = hone_sample_corrected(a);
    return above > 0 && below > 0 ? log(above / below) : 0;
}

// How many rounds are worth one that depends on no other: the variance of sums of successive signs about the middle over
// that of independent signs, the largest of all lengths.
static double dependence_of(const double *values, size_t count, double middle)
{
    double sums[MAX_SAMPLES + 1] = {0}, most = 1;
    for (size_t i = 0; i < count; i++)
        sums[i + 1] = sums[i] + (values[i] > middle) - (values[i] < middle);
    for (size_t length = 2; length <= MOST_DEPENDENT && LEAST_BATCHES * length <= count; length *= 2) {
        const size_t batches = count - length + 1;
        double squares = 0;
        for (size_t i = 0; i < batches; i++)
            squares += (sums[i + length] - sums[i]) * (sums[i + length] - sums[i]);
        // All signs together are 0 about their own median, which makes the sums smaller than about the true one.
        const double independent = (double)length * (1 - (double)length / (double)count);
        most = fmax(most, squares / (double)batches / independent);
    }
    return most;
}

// The value at a rank that may lie between two.
static double at_rank(const double *sorted, size_t count, double rank)
{
    const double inside = fmin(fmax(rank, 0), (double)(count - 1));
    const size_t below = (size_t)inside, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (inside - (double)below) * (sorted[above] - sorted[below]);
}

// The ratios of the rounds that count, in the order of these; returns how many.
static size_t find_ratios(const hone_sample *a, const hone_sample *b, size_t count, size_t least, double *out)
{
    size_t alone = 0, found = 0;
    for (size_t i = 0; i < count; i++)
        alone += is_left_alone(&a[i], &b[i]);
    for (size_t i = 0; i < count; i++)
        if (alone < least || is_left_alone(&a[i], &b[i])) out[found++] = log_ratio(&a[i], &b[i]);
    return found;
}

hone_interval hone_rounds_ratio(const hone_sample *a, const hone_sample *b, size_t count, size_t least)
{
    double ratios[MAX_SAMPLES], sorted[MAX_SAMPLES];
    hone_assert(count > 0 && least > 0);
    const size_t used = find_ratios(a, b, count < MAX_SAMPLES ? count : MAX_SAMPLES, least, ratios);
    memcpy(sorted, ratios, used * sizeof sorted[0]);
    qsort(sorted, used, sizeof sorted[0], compare);
    const double middle = middle_of(sorted, used), center = (double)(used - 1) / 2;
    const double reach = 0.98 * sqrt((double)used * dependence_of(ratios, used, middle)); // as in hone_median
    return (hone_interval){
        exp(middle), exp(at_rank(sorted, used, center - reach)), exp(at_rank(sorted, used, center + reach))};
}

// Ratios --------------------------------------------------------------------------------------------------------------

static double resampled_median(const double *samples, size_t count, uint64_t *seed)
{
    double copy[MAX_SAMPLES];
    for (size_t i = 0; i < count; i++)
        copy[i] = samples[hone_random_below(seed, (uint32_t)count)];
    qsort(copy, count, sizeof copy[0], compare);
    return middle_of(copy, count);
}

static double median_of(const double *samples, size_t count)
{
    double copy[MAX_SAMPLES];
    memcpy(copy, samples, count * sizeof copy[0]);
    qsort(copy, count, sizeof copy[0], compare);
    return middle_of(copy, count);
}

// The middle 95 % of the resampled ratios (the bootstrap's percentile interval: Efron and Tibshirani, An Introduction
// to the Bootstrap, 1993, chapter 13).
static hone_interval interval_of(double middle, double *ratios)
{
    qsort(ratios, RESAMPLES, sizeof ratios[0], compare);
    return (hone_interval){middle, ratios[RESAMPLES / 40], ratios[RESAMPLES - 1 - RESAMPLES / 40]};
}

hone_interval hone_median_ratio(const double *a, size_t a_count, const double *b, size_t b_count, uint64_t seed)
{
    double ratios[RESAMPLES];
    if (a_count > MAX_SAMPLES) a_count = MAX_SAMPLES;
    if (b_count > MAX_SAMPLES) b_count = MAX_SAMPLES;
    for (size_t r = 0; r < RESAMPLES; r++) {
        double below = resampled_median(a, a_count, &seed);
        ratios[r] = below > 0 ? resampled_median(b, b_count, &seed) / below : 1;
    }
    double below = median_of(a, a_count);
    return interval_of(below > 0 ? median_of(b, b_count) / below : 1, ratios);
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
    hone_assert(count > 0);
    if (count > MAX_SAMPLES) count = MAX_SAMPLES;
    for (uint32_t i = 0; i < count; i++)
        picked[i] = i;
    double middle = ratio_of(a, b, picked, count);
    for (size_t r = 0; r < RESAMPLES; r++) {
        for (size_t i = 0; i < count; i++)
            picked[i] = hone_random_below(&seed, (uint32_t)count);
        ratios[r] = ratio_of(a, b, picked, count);
    }
    return interval_of(middle, ratios);
}
