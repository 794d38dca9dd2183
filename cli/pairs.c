// The interval of a ratio from pairs, for who looks after each pair and stops when it likes what it sees.
//
// An interval of a fixed number of samples is wrong there: looked at often enough, it leaves out the truth at some time.
// So this one is a confidence sequence, by betting (I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random
// variables by betting", Journal of the Royal Statistical Society B, 2024). Who claims that the ratio is r is bet
// against: before each pair a share of the money goes on the pair's ratio being above r, and the money grows or shrinks
// by as much as it is. Where the order within pairs is random, and r is true, the logarithm of a pair's ratio over r is
// as often so far above zero as below, whatever the machine does meanwhile: no bet wins on average, and the money
// reaches 40 times what it was in one of 40 series at most (J. Ville, 1939). The interval holds every r against which
// neither side, above or below, has come to that.
//
// A bet counts a pair in units of how far the pairs before it lay apart, and a pair beyond that as just that: so one
// that other work disturbed tells no more than its direction. How large a share is best depends on the ratio, so the
// money is split over eight shares.
#include "pairs.h"

#include "cli.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHARES = 8, STEPS = 36 };

static const double ruin = 40; // one side's: 1 / (5 % / 2)
static const double least_share = 0.08, most_share = 0.95;
// In standard deviations, as 1.4826 times the median absolute deviation estimates them; chosen by simulation over normal
// and heavy tails: from 1 to 2 the number of pairs hardly changes, beyond that disturbed pairs cost more.
static const double reach = 1.5;
static const double first_scale = 0.05, least_scale = 1e-4, widest = 50;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double cli_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

// Of the pairs so far: a bet must know nothing of the pair that it is on.
static double scale_of(const cli_pairs *pairs)
{
    double copy[256];
    size_t count = pairs->count < 256 ? pairs->count : 256;
    if (count < 3) return first_scale;
    memcpy(copy, pairs->logs + pairs->count - count, count * sizeof *copy);
    const double middle = cli_median(copy, count);
    for (size_t i = 0; i < count; i++)
        copy[i] = fabs(copy[i] - middle);
    return fmax(reach * 1.4826 * cli_median(copy, count), least_scale);
}

void cli_pairs_add(cli_pairs *pairs, double ratio)
{
    assert(ratio > 0 && isfinite(ratio));
    if (pairs->count == pairs->capacity) {
        pairs->capacity = pairs->capacity == 0 ? 64 : pairs->capacity * 2;
        pairs->logs = realloc(pairs->logs, pairs->capacity * sizeof *pairs->logs);
        pairs->scales = realloc(pairs->scales, pairs->capacity * sizeof *pairs->scales);
        if (pairs->logs == NULL || pairs->scales == NULL) cli_no_memory();
    }
    pairs->scales[pairs->count] = scale_of(pairs);
    pairs->logs[pairs->count++] = log(ratio);
}

void cli_pairs_clear(cli_pairs *pairs)
{
    free(pairs->logs);
    free(pairs->scales);
    *pairs = (cli_pairs){0};
}

// How far pair i lies above the claim: -1 to 1.
static double above(const cli_pairs *pairs, size_t i, double claim)
{
    return fmax(-1, fmin(1, (pairs->logs[i] - claim) / pairs->scales[i]));
}

static double sum_above(const cli_pairs *pairs, double claim)
{
    double sum = 0;
    for (size_t i = 0; i < pairs->count; i++)
        sum += above(pairs, i, claim);
    return sum;
}

// The money of who bets that pairs lie above the claim (side 1), or below (-1), after all pairs; 1 before. It falls with
// the claim on side 1 and grows on the other.
static double money(const cli_pairs *pairs, double claim, double side)
{
    double all = 0;
    for (int k = 0; k < SHARES; k++) {
        const double share = least_share * pow(most_share / least_share, (double)k / (SHARES - 1));
        double logarithm = 0;
        for (size_t i = 0; i < pairs->count; i++)
            logarithm += log1p(side * share * above(pairs, i, claim));
        all += exp(fmin(logarithm, 600)) / SHARES;
    }
    return all;
}

static bool is_refuted(const cli_pairs *pairs, double claim, double side)
{
    return side == 0 ? sum_above(pairs, claim) >= 0 : money(pairs, claim, side) >= ruin;
}

// Where claims stop being refuted, from `refuted`, which is, to `held`, which is not.
static double border(const cli_pairs *pairs, double refuted, double held, double side)
{
    for (int step = 0; step < STEPS; step++) {
        const double between = (refuted + held) / 2;
        if (is_refuted(pairs, between, side))
            refuted = between;
        else
            held = between;
    }
    return held;
}

cli_ratio cli_pairs_ratio(const cli_pairs *pairs)
{
    cli_ratio out = {1, 0, INFINITY};
    if (pairs->count == 0) return out;
    const double middle = border(pairs, -widest, widest, 0);
    out.middle = exp(middle);
    if (is_refuted(pairs, -widest, 1)) out.low = exp(border(pairs, -widest, widest, 1));
    if (is_refuted(pairs, widest, -1)) out.high = exp(border(pairs, widest, -widest, -1));
    return out;
}
