// The rule, and the two loops that follow it.
//
// The rule is a sequential test, in the manner of O. Maron and A. W. Moore, "Hoeffding Races" (1994): a candidate is
// dropped as soon as the best value that its samples still allow is worse than the best candidate's. Theirs bounds the
// mean of anything; this one bounds the least time of samples with normal noise:
//
//     dropped when  min(samples) > best * (1 + d * noise),   d = 2.33, and twice that for one sample
//
// noise is the standard deviation of samples, relative, as the contest has seen it so far in candidates with several;
// 2.33 deviations leave out one of a hundred. Least times are compared, not medians: what disturbs a sample on a shared
// machine makes it longer. Until noise is known, fixed factors stand in its place.
//
// Invariant: who is dropped has at least one sample, and a run shorter than 1 ms at least three. Cost: a look at all
// samples after each, at most 15. What the rule saves and what it costs is in docs/benchmarks.md ("What racing saves",
// scripts/racing); how often it picks the slower of two that differ by 2 % is there, too (bench_ab).
#include "tune/rule/stopping.h"

#include "base/assert.h"
#include "tune/rule/statistics.h"

#include <math.h>
#include <string.h>

enum { LEAST_SAMPLES = 5, MOST_SAMPLES = 15, LONG_SAMPLES = 2, LEAST_ROUNDS = 3, LEAST_NOISES = 4 };

// Factors and times were chosen by hand, and kept while bench_ab and scripts/racing held.
static const double enough_ns = 2e6;    // with LEAST_SAMPLES
static const double hopeless_warm = 4;  // over the best: no sample will mend that
static const double hopeless_first = 2; // over the best, of one sample, when the noise is not known
static const double hopeless_later = 1.15;
// So many standard deviations leave out one in a hundred; a single sample is given twice as many, since half of what
// disturbs comes alone.
static const double deviations = 2.33, first_deviations = 2 * 2.33;
static const double least_noise = 0.002;
// A sample this short may have been interrupted for a hundred times as long: so many are taken before one is believed
// to be slow, which costs little.
static const double short_ns = 1e6, short_spent_ns = 5e6;
enum { SHORT_SAMPLES = 3 };

// By how many standard deviations the least of so many normal samples lies under their median: the expected value of
// the largest of 0 to 5 standard normal numbers. The interval of more than five does not reach down to the least.
static const double depths[] = {0, 0, 0.564, 0.846, 1.029, 1.163};
enum { DEPTHS = sizeof depths / sizeof depths[0] };

void hone_noise_add(hone_noise *noise, const hone_trial *trial)
{
    if (trial->failure != HONE_FAILURE_NONE || trial->samples < 2 || !(trial->low_ns > 0)) return;
    noise->sum += (trial->time_ns / trial->low_ns - 1) / depths[trial->samples < DEPTHS ? trial->samples : DEPTHS - 1];
    noise->count++;
}

double hone_noise_level(const hone_noise *noise)
{
    if (noise->count < LEAST_NOISES) return 0;
    return fmax(noise->sum / noise->count, least_noise);
}

hone_stopping_verdict hone_stopping_judge_warm(const hone_stopping *stopping, double warm_ns)
{
    return stopping->best_ns > 0 && warm_ns > hopeless_warm * stopping->best_ns ? HONE_STOPPING_BEATEN
                                                                                : HONE_STOPPING_GOES_ON;
}

// What a candidate's least may be above the best and the candidate still win.
static double allowance(const hone_stopping *stopping, uint32_t count)
{
    hone_assert(count > 0);
    double most = count == 1 ? hopeless_first : hopeless_later;
    if (!(stopping->noise > 0)) return most;
    return fmin(most, 1 + (count == 1 ? first_deviations : deviations) * stopping->noise);
}

static double least_of(const double *samples, uint32_t count)
{
    double least = samples[0];
    for (uint32_t i = 1; i < count; i++)
        least = fmin(least, samples[i]);
    return least;
}

hone_stopping_verdict hone_stopping_judge(
    const hone_stopping *stopping, const double *samples, uint32_t count, double spent_ns, bool is_long)
{
    bool has_best = stopping->best_ns > 0;
    hone_assert(count > 0 && count <= MOST_SAMPLES && spent_ns >= 0);
    if (has_best && least_of(samples, count) > allowance(stopping, count) * stopping->best_ns)
        return HONE_STOPPING_BEATEN;
    uint32_t least = is_long ? LONG_SAMPLES : LEAST_SAMPLES;
    bool enough = count >= MOST_SAMPLES || (count >= least && spent_ns >= enough_ns);
    return enough ? HONE_STOPPING_ENOUGH : HONE_STOPPING_GOES_ON;
}

static void fill_trial(hone_trial *out, double *samples, uint32_t count, bool dropped)
{
    hone_assert(count > 0 && count <= MOST_SAMPLES);
    out->kept = count < HONE_KEPT_SAMPLES ? count : HONE_KEPT_SAMPLES;
    memcpy(out->kept_ns, samples, out->kept * sizeof samples[0]);
    hone_interval interval = hone_median(samples, count);
    out->time_ns = interval.middle;
    out->low_ns = interval.low;
    out->high_ns = interval.high;
    out->samples = count;
    out->dropped = dropped;
}

static bool may_be_disturbed(const hone_stopping *stopping, uint32_t count, double spent_ns)
{
    return stopping->best_ns < short_ns && count < SHORT_SAMPLES && spent_ns < short_spent_ns;
}

hone_failure hone_stopping_run(
    const hone_stopping *stopping, const hone_sampler *sampler, hone_trial *out, hone_error *err)
{
    double samples[MOST_SAMPLES], total_ns = 0;
    uint64_t start = sampler->now_ns(sampler->ctx);
    hone_failure failure = sampler->warm(sampler->ctx, &samples[0], err);
    if (failure != HONE_FAILURE_NONE) return failure;
    bool is_long = samples[0] > hone_long_run_ns;
    hone_stopping_verdict verdict = hone_stopping_judge_warm(stopping, samples[0]);
    if (verdict == HONE_STOPPING_BEATEN && may_be_disturbed(stopping, 0, samples[0])) verdict = HONE_STOPPING_GOES_ON;
    uint32_t count = verdict == HONE_STOPPING_BEATEN ? 1 : 0;
    while (verdict == HONE_STOPPING_GOES_ON) {
        double spent_ns = 0;
        failure = sampler->sample(sampler->ctx, &samples[count], &spent_ns, err);
        if (failure != HONE_FAILURE_NONE) return failure;
        total_ns += spent_ns;
        count++;
        verdict = hone_stopping_judge(stopping, samples, count, total_ns, is_long);
        if (verdict == HONE_STOPPING_BEATEN && may_be_disturbed(stopping, count, total_ns))
            verdict = HONE_STOPPING_GOES_ON;
        if ((double)(sampler->now_ns(sampler->ctx) - start) > stopping->limit_ns) break;
    }
    fill_trial(out, samples, count, verdict == HONE_STOPPING_BEATEN);
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
        if (late && out->rounds >= LEAST_ROUNDS) break;
    }
    return HONE_FAILURE_NONE;
}
