// The rule, and the two loops that follow it.
//
// The rule is a sequential test, in the manner of O. Maron and A. W. Moore, "Hoeffding Races" (1994): a candidate is
// dropped as soon as the best value that its samples still allow is worse than the best candidate's. Theirs bounds the
// mean of any distribution; this one bounds the least time of samples with normal noise:
//
//     dropped when  min(samples) > best * (1 + d * noise),   d = 2.33, and twice that for one sample
//
// where only undisturbed samples count. A candidate that had none is dropped only beyond four times the best, after the
// time that it waited for a processor is subtracted: the machine may never leave it undisturbed. A kernel's default, or
// a config of a kernel with few, is then sampled further for a while. If the best had no undisturbed sample either, on
// a device that others use all the time, all samples count.
//
// noise is the relative standard deviation of samples, as the contest has seen it so far in candidates with several;
// 2.33 deviations leave out one sample in a hundred. Least times are compared, not medians: what disturbs a sample on a
// shared machine makes it longer. Until noise is known, fixed factors are used instead.
//
// Invariant: a dropped candidate has at least one sample, and at least three if its run is shorter than 1 ms. Cost: one
// pass over all samples, at most 15, after each. What the rule saves and what it costs is in docs/benchmarks.md ("What
// racing saves", lab/racing). How often it picks the slower of two that differ by 2 % is there, too (bench_ab).
#include "tune/rule/stopping.h"

#include "base/assert.h"
#include "platforms/platform.h"
#include "tune/rule/statistics.h"

#include <math.h>
#include <string.h>

enum {
    LEAST_SAMPLES = 5,
    LEAST_UNDISTURBED = 3, // of them
    MOST_DISTURBED = 8,    // samples of a candidate that is hardly ever undisturbed
    MOST_SAMPLES = HONE_KEPT_SAMPLES,
    LONG_SAMPLES = 2,
    LEAST_ROUNDS = 3,
    LEAST_NOISES = 4
};

// Factors and times were chosen by hand, and kept because bench_ab and lab/racing gave good results with them.
static const double enough_ns = 2e6;    // of all runs together, besides LEAST_SAMPLES
static const double hopeless_warm = 4;  // times the best: further samples cannot change the result
static const double hopeless_first = 2; // times the best, for one sample, when the noise is not known
static const double hopeless_later = 1.15;
// 2.33 standard deviations leave out one sample in a hundred. A single sample is allowed twice as many, because half of
// all disturbances affect a single sample.
static const double deviations = 2.33, first_deviations = 2 * 2.33;
static const double least_noise = 0.002;
// A sample of less than 1 ms may have been interrupted for a hundred times as long. So SHORT_SAMPLES are taken before a
// candidate counts as slow, which costs little.
static const double short_ns = 1e6, short_spent_ns = 5e6;
enum { SHORT_SAMPLES = 3 };
// Threads that wait for each other in a loop, as OpenMP's do, stop for a time slice of the scheduler, some
// milliseconds, when one of them has no processor. Then a sample says nothing, however long it waited. oneDNN's
// default, the fastest by far, was dropped after one sample of 14 ms instead of 75 us in four of five contests on a
// busy machine.
static const double patient_spent_ns = 100e6;
enum { PATIENT_SAMPLES = 6 };
// If slow batches come at random, one in three, nine of them come before three quick ones 1 time in 10,000. No clock of
// a thread shows that other processes took the shared cache from it: undisturbed runs over 8 MB took .13 to .6 ms while
// such processes ran, and three right kernels of sixty were rejected when three pairs were enough for runs of .2 ms.
enum { GUILTY_PAIRS = 9, GUILTY_LONG = 3 };
// A contest of seconds has few runs of this length. Time slices of the scheduler do not make such a run four times as
// long, while they do so with a run of 1 ms in half of the pairs. With three pairs, two right kernels were rejected in
// 96 contests on a machine with fifteen compilers running.
static const double few_runs_ns = 20e6;

// By how many standard deviations the least of 0 to 5 normal samples lies below their median: the expected value of the
// largest of so many standard normal numbers. The interval of more than five does not reach down to the least.
static const double depths[] = {0, 0, 0.564, 0.846, 1.029, 1.163};
enum { DEPTHS = sizeof depths / sizeof depths[0] };

void hone_noise_add(hone_noise *noise, const hone_trial *trial)
{
    if (trial->failure != HONE_FAILURE_NONE || !hone_trial_was_left_alone(trial) || trial->samples < 2 ||
        !(trial->low_ns > 0))
        return;
    noise->sum += (trial->time_ns / trial->low_ns - 1) / depths[trial->samples < DEPTHS ? trial->samples : DEPTHS - 1];
    noise->count++;
}

double hone_noise_level(const hone_noise *noise)
{
    if (noise->count < LEAST_NOISES) return 0;
    return fmax(noise->sum / noise->count, least_noise);
}

uint32_t hone_stopping_guilty_pairs(double run_ns)
{
    return run_ns > few_runs_ns ? GUILTY_LONG : GUILTY_PAIRS;
}

hone_stopping_verdict hone_stopping_judge_warm(const hone_stopping *stopping, const hone_sample *warm)
{
    bool is_beaten = stopping->best_ns > 0 && hone_sample_corrected(warm) > hopeless_warm * stopping->best_ns;
    return is_beaten ? HONE_STOPPING_BEATEN : HONE_STOPPING_GOES_ON;
}

// By which factor a candidate's least time may exceed the best if the candidate may still win.
static double allowance(const hone_stopping *stopping, uint32_t count)
{
    hone_assert(count > 0);
    double most = count == 1 ? hopeless_first : hopeless_later;
    if (!(stopping->noise > 0)) return most;
    return fmin(most, 1 + (count == 1 ? first_deviations : deviations) * stopping->noise);
}

// The least time of the undisturbed samples; of all samples, corrected, if every one was disturbed. *out_undisturbed:
// number of undisturbed samples.
static double least_of(const hone_sample *samples, uint32_t count, uint32_t *out_undisturbed)
{
    double least = INFINITY, corrected = INFINITY;
    *out_undisturbed = 0;
    for (uint32_t i = 0; i < count; i++) {
        corrected = fmin(corrected, hone_sample_corrected(&samples[i]));
        if (samples[i].marks != 0) continue;
        least = fmin(least, samples[i].time_ns);
        ++*out_undisturbed;
    }
    return *out_undisturbed > 0 ? least : corrected;
}

static bool is_enough(uint32_t count, uint32_t undisturbed, double spent_ns, bool is_long)
{
    if (count >= MOST_SAMPLES) return true;
    if (count < (is_long ? LONG_SAMPLES : LEAST_SAMPLES) || spent_ns < enough_ns) return false;
    return is_long || undisturbed >= LEAST_UNDISTURBED || count >= MOST_DISTURBED;
}

hone_stopping_verdict hone_stopping_judge(
    const hone_stopping *stopping, const hone_sample *samples, uint32_t count, double spent_ns, bool is_long)
{
    uint32_t undisturbed;
    hone_assert(count > 0 && count <= MOST_SAMPLES && spent_ns >= 0);
    double least = least_of(samples, count, &undisturbed);
    const uint32_t compared = undisturbed > 0 || !stopping->is_shared ? undisturbed : count;
    double bound = compared > 0 ? allowance(stopping, compared) : hopeless_warm;
    if (stopping->best_ns > 0 && least > bound * stopping->best_ns) return HONE_STOPPING_BEATEN;
    return is_enough(count, undisturbed, spent_ns, is_long) ? HONE_STOPPING_ENOUGH : HONE_STOPPING_GOES_ON;
}

static void keep_samples(hone_trial *out, const hone_sample *samples, uint32_t count)
{
    out->taken = out->kept = count;
    out->disturbed = 0;
    for (uint32_t i = 0; i < count; i++) {
        out->kept_ns[i] = samples[i].time_ns;
        out->kept_waited[i] = samples[i].waited;
        out->kept_marks[i] = (uint8_t)samples[i].marks;
        out->disturbed += samples[i].marks != 0;
    }
}

// Samples that an earlier contest kept were undisturbed, and are not counted in `taken`.
bool hone_trial_was_left_alone(const hone_trial *trial)
{
    return trial->disturbed == 0 || trial->disturbed < trial->taken;
}

bool hone_trial_shared_its_device(const hone_trial *trial)
{
    for (uint32_t i = 0; i < trial->kept; i++)
        if ((trial->kept_marks[i] & HONE_DEVICE_ANY) == 0) return false;
    return trial->kept > 0;
}

uint32_t hone_trial_times(const hone_trial *trial, double *out_times)
{
    hone_sample samples[HONE_KEPT_SAMPLES];
    hone_assert(trial->kept <= HONE_KEPT_SAMPLES);
    for (uint32_t i = 0; i < trial->kept; i++)
        samples[i] = (hone_sample){trial->kept_ns[i], trial->kept_waited[i], trial->kept_marks[i]};
    const uint32_t least = hone_trial_was_left_alone(trial) ? 1 : LEAST_UNDISTURBED;
    return hone_count_samples(samples, trial->kept, least, out_times);
}

void hone_trial_weigh(hone_trial *trial)
{
    double times[HONE_KEPT_SAMPLES];
    hone_assert(trial->kept > 0);
    trial->samples = hone_trial_times(trial, times);
    hone_interval interval = hone_median(times, trial->samples);
    trial->time_ns = interval.middle;
    trial->low_ns = interval.low;
    trial->high_ns = interval.high;
}

// Whether a candidate that seems slow may only have been slowed by other work on the machine.
//   samples  those that were taken; the discarded run when count is 0
static bool may_be_disturbed(const hone_stopping *stopping, const hone_sample *samples, uint32_t count, double spent_ns)
{
    uint32_t undisturbed;
    least_of(samples, count > 0 ? count : 1, &undisturbed);
    if (stopping->is_patient && undisturbed == 0) return count < PATIENT_SAMPLES && spent_ns < patient_spent_ns;
    return stopping->best_ns < short_ns && count < SHORT_SAMPLES && spent_ns < short_spent_ns;
}

hone_failure hone_stopping_run(
    const hone_stopping *stopping, const hone_sampler *sampler, hone_trial *out, hone_error *err)
{
    hone_sample samples[MOST_SAMPLES] = {{0}};
    double total_ns = 0;
    uint64_t start = sampler->now_ns(sampler->ctx);
    hone_failure failure = sampler->warm(sampler->ctx, &samples[0], err);
    if (failure != HONE_FAILURE_NONE) return failure;
    const double warm_ns = samples[0].time_ns;
    bool is_long = warm_ns > hone_long_run_ns;
    hone_stopping_verdict verdict = hone_stopping_judge_warm(stopping, &samples[0]);
    if (verdict == HONE_STOPPING_BEATEN && may_be_disturbed(stopping, samples, 0, warm_ns))
        verdict = HONE_STOPPING_GOES_ON;
    uint32_t count = verdict == HONE_STOPPING_BEATEN ? 1 : 0;
    while (verdict == HONE_STOPPING_GOES_ON) {
        double spent_ns = 0;
        failure = sampler->sample(sampler->ctx, &samples[count], &spent_ns, err);
        if (failure != HONE_FAILURE_NONE) return failure;
        total_ns += spent_ns;
        count++;
        verdict = hone_stopping_judge(stopping, samples, count, total_ns, is_long);
        if (verdict == HONE_STOPPING_BEATEN && may_be_disturbed(stopping, samples, count, total_ns))
            verdict = HONE_STOPPING_GOES_ON;
        const double took_ns = (double)(sampler->now_ns(sampler->ctx) - start);
        if (took_ns > stopping->limit_ns) break;
        if (stopping->samples_ns > 0 && took_ns > stopping->samples_ns && count >= LONG_SAMPLES) break;
    }
    keep_samples(out, samples, count);
    hone_trial_weigh(out);
    out->dropped = verdict == HONE_STOPPING_BEATEN;
    return HONE_FAILURE_NONE;
}

static hone_failure one_round(
    const hone_round_sampler *who, uint32_t count, uint64_t *random, hone_rounds_answer *out, hone_error *err)
{
    uint32_t order[HONE_MAX_TOGETHER];
    hone_random_order(random, count, order);
    for (uint32_t i = 0; i < count; i++) {
        hone_sample sample = {0};
        hone_failure failure = who->sample(who->ctx, order[i], &sample, err);
        if (failure != HONE_FAILURE_NONE) {
            out->failed = order[i];
            return failure;
        }
        out->samples[order[i]][out->rounds] = sample.time_ns;
        out->waited[order[i]][out->rounds] = sample.waited;
        out->marks[order[i]][out->rounds] = (uint8_t)sample.marks;
    }
    out->rounds++;
    return HONE_FAILURE_NONE;
}

hone_failure hone_rounds_run(
    const hone_round_sampler *who, const hone_rounds *asked, hone_rounds_answer *out, hone_error *err)
{
    uint64_t start = who->now_ns(who->ctx), seed = asked->seed;
    const uint32_t rounds = asked->rounds < HONE_MAX_ROUNDS ? asked->rounds : HONE_MAX_ROUNDS;
    hone_assert(asked->count <= HONE_MAX_TOGETHER);
    out->count = asked->count;
    out->rounds = 0;
    while (out->rounds < rounds) {
        hone_failure failure = one_round(who, asked->count, &seed, out, err);
        if (failure != HONE_FAILURE_NONE) return failure;
        bool late = (double)(who->now_ns(who->ctx) - start) > asked->limit_ns;
        if (late && (out->rounds >= LEAST_ROUNDS || asked->count == 1)) break; // one needs no comparison
    }
    return HONE_FAILURE_NONE;
}
