// How long does it take? A race that drops what is clearly slower early, and rounds in which the finalists take turns:
// on a shared machine separate blocks of samples drift apart by several percent, interleaved ones by one.
#include "tune/session.h"

#include "base/error.h"
#include "tune/statistics.h"

#include <math.h>
#include <string.h>

enum { LEAST_SAMPLES = 5, MOST_SAMPLES = 15, LONG_SAMPLES = 2, LEAST_ROUNDS = 3 };

static const double drop_first = 2.0, drop_later = 1.15; // over the best so far
static const double enough_ns = 2e6;                     // with LEAST_SAMPLES

static void fill_trial(hone_trial *out, double *samples, uint32_t count, bool dropped)
{
    out->kept = count < HONE_KEPT_SAMPLES ? count : HONE_KEPT_SAMPLES;
    memcpy(out->kept_ns, samples, out->kept * sizeof samples[0]);
    hone_interval interval = hone_median(samples, count);
    out->time_ns = interval.middle;
    out->low_ns = interval.low;
    out->high_ns = interval.high;
    out->samples = count;
    out->dropped = dropped;
}

// Can a candidate with these samples still win? The smallest of them is what it can do at best.
static bool is_beaten(const double *samples, uint32_t count, double best_ns)
{
    if (best_ns <= 0) return false;
    if (count == 1) return samples[0] > drop_first * best_ns;
    double least = samples[0];
    for (uint32_t i = 1; i < count; i++)
        least = fmin(least, samples[i]);
    return least > drop_later * best_ns;
}

hone_failure hone_race(hone_runner *runner, double best_ns, double limit_seconds, hone_trial *out, hone_error *err)
{
    double samples[MOST_SAMPLES], total = 0;
    uint64_t start = hone_os_now_ns();
    hone_failure failure = hone_runner_warm(runner, &samples[0], err);
    if (failure != HONE_FAILURE_NONE) return failure;
    // Four times the best, warm: no sample will mend that.
    bool beaten = is_beaten(samples, 1, 2 * best_ns), is_long = samples[0] > hone_long_run_ns;
    uint32_t count = beaten || is_long ? 1 : 0, least = is_long ? LONG_SAMPLES : LEAST_SAMPLES;
    while (!beaten && count < MOST_SAMPLES && (count < least || total < enough_ns)) {
        failure = hone_runner_sample(runner, &samples[count], err);
        if (failure != HONE_FAILURE_NONE) return failure;
        total += samples[count++] * runner->batch;
        beaten = is_beaten(samples, count, best_ns);
        if ((double)(hone_os_now_ns() - start) > limit_seconds * 1e9) break;
    }
    fill_trial(out, samples, count, beaten);
    return HONE_FAILURE_NONE;
}

static hone_failure one_round(
    hone_runner *const *runners, uint32_t count, uint64_t *random, hone_confirmation *out, hone_error *err)
{
    uint32_t order[HONE_MAX_FINALISTS];
    hone_random_order(random, count, order);
    for (uint32_t i = 0; i < count; i++) {
        hone_failure failure = hone_runner_turn(runners[order[i]], &out->samples[order[i]][out->rounds], err);
        if (failure != HONE_FAILURE_NONE) {
            out->failed = order[i];
            return failure;
        }
    }
    out->rounds++;
    return HONE_FAILURE_NONE;
}

hone_failure hone_interleave(
    hone_runner *const *runners,
    uint32_t count,
    uint32_t rounds,
    uint64_t seed,
    double limit_seconds,
    hone_confirmation *out,
    hone_error *err)
{
    uint64_t start = hone_os_now_ns();
    out->count = count;
    out->rounds = 0;
    if (rounds > HONE_MAX_ROUNDS) rounds = HONE_MAX_ROUNDS;
    while (out->rounds < rounds) {
        hone_failure failure = one_round(runners, count, &seed, out, err);
        if (failure != HONE_FAILURE_NONE) return failure;
        bool late = (double)(hone_os_now_ns() - start) > limit_seconds * 1e9;
        if (late && out->rounds >= LEAST_ROUNDS) break;
    }
    return HONE_FAILURE_NONE;
}
