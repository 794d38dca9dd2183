// Robust statistics of a few samples.
//
// Times on a shared machine are skewed: most lie close above the least, some far above. So the location of one
// candidate's samples is their median, with the interval of the sign test (W. J. Conover, "Practical Nonparametric
// Statistics", on intervals of quantiles), which assumes nothing about their distribution. Finalists are compared by
// means instead: the average duration of the work. Samples more than five deviations away are left out of the mean. The
// deviation is 1.4826 times the median absolute deviation (P. J. Rousseeuw and C. Croux, "Alternatives to the Median
// Absolute Deviation", 1993), which does not move far even if half of the samples are disturbed.
//
// The interval of a ratio is the percentile bootstrap (B. Efron and R. J. Tibshirani, "An Introduction to the
// Bootstrap", 1993, chapter 13, which asks for 1,000 resamples for an interval). Rounds are drawn, not samples: both
// candidates of a round are drawn together, so that a disturbance of the round stays in both. The seed decides the
// draws, so that the same samples have the same interval. Each side is sorted once: a resample is represented by how
// often each of the sorted samples was drawn.
//
// A comparison of two choices has many rounds, and a disturbance of one often lasts for the next ones, too. Its ratio
// is the median of the ratios within rounds, and its interval that of the sign test, interpolated between ranks (T. P.
// Hettmansperger and S. J. Sheather, "Confidence Intervals Based on Interpolated Order Statistics", 1986). For rounds
// that depend on each other, the variance of the median is that of the sum of their signs about it (P. K. Sen, "On the
// Bahadur Representation of Sample Quantiles for Sequences of phi-Mixing Random Variables", 1972). So the effective
// number of rounds is smaller by the ratio of that variance to the variance for independent rounds. It is measured by
// sums of successive signs (M. S. Meketon and B. Schmeiser, "Overlapping Batch Means: Something for Nothing?", 1984).
// Resampling blocks of rounds (H. R. Kuensch, 1989) makes the interval too short where there are a few dozen rounds:
// docs/benchmarks.md compares.
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
    LEAST_BATCHES = 4    // the least number of batches from which a variance is estimated
};

// Chosen by hand; docs/benchmarks.md has the wrong picks of bench_ab for it.
static const double fence_deviations = 5;
// If two threads share their work dynamically and one has no processor at all, the other does twice the work.
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

// A resample without a sort of its own: the sorted samples, and how often each of them counts.
typedef struct drawn {
    const double *sorted;
    const uint16_t *times; // how often each sample counts
    size_t count, total;   // number of different samples, and sum of times
} drawn;

// The mean of the samples at the two middle ranks, which are one sample if the total is odd.
static double middle_of_drawn(const drawn *d)
{
    size_t i = 0, seen = d->times[0];
    while (seen <= (d->total - 1) / 2)
        seen += d->times[++i];
    const double lower = d->sorted[i];
    while (seen <= d->total / 2)
        seen += d->times[++i];
    return (lower + d->sorted[i]) / 2;
}

// The median of the distances from the middle. Visits the samples by increasing distance, from both sides.
static double deviation_of_drawn(const drawn *d, double middle)
{
    size_t above = 0;
    while (above < d->count && d->sorted[above] <= middle)
        above++;
    double lower = 0, distance = 0;
    bool is_found = false;
    for (size_t below = above, seen = 0; seen <= d->total / 2;) {
        const double down = below > 0 ? middle - d->sorted[below - 1] : INFINITY;
        const double up = above < d->count ? d->sorted[above] - middle : INFINITY;
        distance = fmin(down, up);
        seen += d->times[below > 0 && down <= up ? --below : above++];
        if (!is_found && seen > (d->total - 1) / 2) {
            lower = distance;
            is_found = true;
        }
    }
    return (lower + distance) / 2;
}

static double center_of_drawn(const drawn *d)
{
    // 1.4826 times the median absolute deviation is the standard deviation of a normal distribution.
    const double middle = middle_of_drawn(d), fence = fence_deviations * 1.4826 * deviation_of_drawn(d, middle);
    double sum = 0;
    size_t inside = 0;
    for (size_t i = 0; i < d->count; i++) {
        if (fabs(d->sorted[i] - middle) > fence) continue;
        sum += d->times[i] * d->sorted[i];
        inside += d->times[i];
    }
    return inside > 0 ? sum / (double)inside : middle;
}

double hone_center(double *samples, size_t count)
{
    uint16_t once[MAX_SAMPLES];
    hone_assert(count > 0);
    if (count > MAX_SAMPLES) count = MAX_SAMPLES;
    qsort(samples, count, sizeof *samples, compare);
    for (size_t i = 0; i < count; i++)
        once[i] = 1;
    return center_of_drawn(&(drawn){samples, once, count, count});
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

// counted: number of samples before this one that count.
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

// Rounds of two candidates --------------------------------------------------------------------------------------------

static bool is_left_alone(const hone_sample *a, const hone_sample *b)
{
    return a->marks == 0 && b->marks == 0;
}

static double log_ratio(const hone_sample *a, const hone_sample *b)
{
    const double above = hone_sample_corrected(b), below = hone_sample_corrected(a);
    return above > 0 && below > 0 ? log(above / below) : 0;
}

// How many dependent rounds are worth an independent one: the variance of sums of successive signs about the middle,
// over that for independent signs. The largest ratio over all lengths is taken.
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
        // All signs about their own median sum to 0, which makes the sums smaller than those about the true median.
        const double independent = (double)length * (1 - (double)length / (double)count);
        most = fmax(most, squares / (double)batches / independent);
    }
    return most;
}

// The value at a rank, interpolated if the rank lies between two samples.
static double at_rank(const double *sorted, size_t count, double rank)
{
    const double inside = fmin(fmax(rank, 0), (double)(count - 1));
    const size_t below = (size_t)inside, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (inside - (double)below) * (sorted[above] - sorted[below]);
}

// Writes the logarithms of the ratios of the rounds that count, in the order of the rounds; returns how many.
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

// Sorted samples, and the rank of each.
typedef struct ordered {
    size_t count;
    double sorted[MAX_SAMPLES];
    uint16_t ranks[MAX_SAMPLES];
} ordered;

typedef struct placed {
    double sample; // must be first: compare reads it
    size_t index;
} placed;

static void order(ordered *out, const double *samples, size_t count)
{
    placed all[MAX_SAMPLES];
    hone_assert(count > 0);
    out->count = count < MAX_SAMPLES ? count : MAX_SAMPLES;
    for (size_t i = 0; i < out->count; i++)
        all[i] = (placed){samples[i], i};
    qsort(all, out->count, sizeof all[0], compare);
    for (size_t i = 0; i < out->count; i++) {
        out->sorted[i] = all[i].sample;
        out->ranks[all[i].index] = (uint16_t)i;
    }
}

// picked NULL: each sample once.
static drawn draw(const ordered *from, const uint32_t *picked, uint16_t times[MAX_SAMPLES])
{
    memset(times, 0, from->count * sizeof times[0]);
    for (size_t i = 0; i < from->count; i++)
        times[from->ranks[picked != NULL ? picked[i] : i]]++;
    return (drawn){from->sorted, times, from->count, from->count};
}

static void pick(uint32_t *out, size_t count, uint64_t *seed)
{
    for (size_t i = 0; i < count; i++)
        out[i] = hone_random_below(seed, (uint32_t)count);
}

static double median_drawn(const ordered *from, const uint32_t *picked)
{
    uint16_t times[MAX_SAMPLES];
    const drawn d = draw(from, picked, times);
    return middle_of_drawn(&d);
}

static double center_drawn(const ordered *from, const uint32_t *picked)
{
    uint16_t times[MAX_SAMPLES];
    const drawn d = draw(from, picked, times);
    return center_of_drawn(&d);
}

// The middle 95 % of the resampled ratios (the bootstrap's percentile interval: Efron and Tibshirani, An Introduction
// to the Bootstrap, 1993, chapter 13).
static hone_interval interval_of(double middle, double *ratios)
{
    qsort(ratios, RESAMPLES, sizeof ratios[0], compare);
    return (hone_interval){middle, ratios[RESAMPLES / 40], ratios[RESAMPLES - 1 - RESAMPLES / 40]};
}

static double over(double above, double below)
{
    return below > 0 ? above / below : 1;
}

hone_interval hone_median_ratio(const double *a, size_t a_count, const double *b, size_t b_count, uint64_t seed)
{
    double ratios[RESAMPLES];
    uint32_t picked[MAX_SAMPLES];
    ordered one, other;
    order(&one, a, a_count);
    order(&other, b, b_count);
    for (size_t r = 0; r < RESAMPLES; r++) {
        pick(picked, one.count, &seed);
        const double below = median_drawn(&one, picked);
        pick(picked, other.count, &seed);
        ratios[r] = over(median_drawn(&other, picked), below);
    }
    return interval_of(over(median_drawn(&other, NULL), median_drawn(&one, NULL)), ratios);
}

hone_interval hone_ratio(const double *a, const double *b, size_t count, uint64_t seed)
{
    double ratios[RESAMPLES];
    uint32_t picked[MAX_SAMPLES];
    ordered one, other;
    order(&one, a, count);
    order(&other, b, count);
    for (size_t r = 0; r < RESAMPLES; r++) {
        pick(picked, one.count, &seed);
        ratios[r] = over(center_drawn(&other, picked), center_drawn(&one, picked));
    }
    return interval_of(over(center_drawn(&other, NULL), center_drawn(&one, NULL)), ratios);
}
