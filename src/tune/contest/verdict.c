// What the finals' samples show: which finalists are certainly slower, which one wins, and what is left open.
//
// Two finalists are compared by the rounds in which nothing disturbed either of them. If those are rare, they are
// compared by the rounds in which the same state of their device (clock, heat, power, other processes) disturbed both,
// else by all of their undisturbed samples, those of the race too (rule/statistics.c). The fastest wins, with two
// exceptions. A tie is won by the present choice, else it is decided by an order that does not depend on times, so that
// a tie always ends the same. And the store's choice stays until another candidate is certainly faster, as does the
// default if little was tried or little is to be gained.
#include "tune/contest/contest.h"

#include "base/assert.h"
#include "base/number.h"
#include "platforms/platform.h"
#include "tune/rule/statistics.h"
#include "tune/rule/stopping.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    LEAST_PAIRS = 5,  // undisturbed rounds that a ratio needs
    LEAST_ALONE = 3,  // undisturbed samples of one finalist that count without its disturbed ones
    MOST_LASTING = 4, // finalists that stay after the first block, unless others may well be faster
    MOST_TIMES = HONE_MOST_FINAL_ROUNDS + HONE_KEPT_SAMPLES
};

static const double told_share = 0.1; // of disturbed samples: from here on the machine counts as disturbed
static const double clearly = 1.1;    // slower, and certain after a single block
static const double hardly = 0.97;    // times the fastest: one beyond the first few stays if it may be so fast
static const double unsteady = 1.1;   // ratio of two finalists' slowdowns since the race
// What an undecided contest must promise before it leaves the default (docs/decisions/busy-machines.md).
static const double worth_leaving = 1.05;
// Upper end of an interval over its lower one. An interval that is wider has times of two sorts, and it is chance which
// of them the rounds have met.
static const double wide = 2;
static const double hopeless_standing = 1.5; // the present choice is out beyond this, after however few rounds
// Chosen by hand, wider at first: with these values lab/racing has less regret (docs/benchmarks.md).
static const double tie = 1.002, undecided_tie = 1.005, near_enough = 1.005;

// Ratios --------------------------------------------------------------------------------------------------------------

// The samples by which two finalists are compared.
typedef struct pairs {
    uint32_t count;
    double a[HONE_MOST_FINAL_ROUNDS], b[HONE_MOST_FINAL_ROUNDS];
} pairs;

// Finds the rounds in which nothing but `allowed` disturbed the two, and the same disturbed both.
static void find_pairs(const hone_finalist *a, const hone_finalist *b, unsigned allowed, pairs *out)
{
    const uint32_t end = a->rounds < b->rounds ? a->rounds : b->rounds;
    out->count = 0;
    for (uint32_t r = 0; r < end; r++) {
        const unsigned marks = a->samples[r].marks;
        if ((marks & ~allowed) != 0 || marks != b->samples[r].marks) continue;
        out->a[out->count] = a->samples[r].time_ns;
        out->b[out->count++] = b->samples[r].time_ns;
    }
}

// Collects all samples of a finalist that count, those of the race and of the finals.
static uint32_t count_all(const hone_finalist *finalist, double *out_times)
{
    hone_sample samples[MOST_TIMES];
    const hone_trial *raced = &finalist->candidate->trial;
    memcpy(samples, finalist->samples, finalist->rounds * sizeof samples[0]);
    for (uint32_t i = 0; i < raced->kept; i++)
        samples[finalist->rounds + i] = (hone_sample){raced->kept_ns[i], raced->kept_waited[i], raced->kept_marks[i]};
    uint32_t count = hone_count_samples(samples, finalist->rounds + raced->kept, LEAST_ALONE, out_times);
    return count < HONE_MOST_FINAL_ROUNDS ? count : HONE_MOST_FINAL_ROUNDS;
}

hone_interval hone_finals_ratio(const hone_finals *finals, uint32_t a, uint32_t b, uint64_t seed)
{
    pairs p;
    const hone_finalist *one = &finals->finalists[a], *other = &finals->finalists[b];
    find_pairs(one, other, 0, &p);
    if (p.count < LEAST_PAIRS) find_pairs(one, other, HONE_DEVICE_ANY, &p);
    if (p.count >= LEAST_PAIRS) return hone_ratio(p.a, p.b, p.count, seed);
    double a_ns[MOST_TIMES], b_ns[MOST_TIMES];
    const uint32_t a_count = count_all(one, a_ns), b_count = count_all(other, b_ns);
    return hone_median_ratio(a_ns, a_count, b_ns, b_count, seed);
}

// If most samples of the finals were disturbed, undisturbed samples of the race count instead of the disturbed ones.
uint32_t hone_finalist_times(const hone_finalist *finalist, double *out_times)
{
    hone_sample samples[HONE_MOST_FINAL_ROUNDS];
    uint32_t undisturbed = 0;
    memcpy(samples, finalist->samples, finalist->rounds * sizeof samples[0]);
    for (uint32_t i = 0; i < finalist->rounds; i++)
        undisturbed += samples[i].marks == 0;
    if (undisturbed < LEAST_PAIRS) return count_all(finalist, out_times);
    return hone_count_samples(samples, finalist->rounds, LEAST_PAIRS, out_times);
}

// The time of each finalist in ns; INFINITY: it no longer takes part.
static void find_centers(const hone_finals *finals, double *out_ns)
{
    for (uint32_t i = 0; i < finals->count; i++) {
        double times[MOST_TIMES];
        out_ns[i] = INFINITY;
        if (finals->finalists[i].out) continue;
        uint32_t count = hone_finalist_times(&finals->finalists[i], times);
        out_ns[i] = hone_center(times, count);
    }
}

static uint32_t least_of(const double *centers_ns, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (centers_ns[i] < centers_ns[best]) best = i;
    hone_assert(isfinite(centers_ns[best])); // at least one finalist still takes part
    return best;
}

uint32_t hone_finals_fastest(const hone_finals *finals)
{
    double centers_ns[HONE_MAX_TOGETHER];
    find_centers(finals, centers_ns);
    return least_of(centers_ns, finals->count);
}

static uint32_t count_faster(const double *centers_ns, uint32_t count, uint32_t than)
{
    uint32_t faster = 0;
    for (uint32_t i = 0; i < count; i++)
        faster += centers_ns[i] < centers_ns[than];
    return faster;
}

// How many times slower a finalist was in the finals than in the race; 0: the race has no samples of it that count.
static double change_of(const hone_finalist *finalist)
{
    double raced[HONE_KEPT_SAMPLES], times[MOST_TIMES];
    const hone_trial *trial = &finalist->candidate->trial;
    if (trial->kept == 0 || !hone_trial_was_left_alone(trial)) return 0;
    uint32_t raced_count = hone_trial_times(trial, raced), count = hone_finalist_times(finalist, times);
    return hone_median(times, count).middle / hone_median(raced, raced_count).middle;
}

bool hone_finals_are_unsteady(const hone_finals *finals)
{
    double least = INFINITY, most = 0;
    for (uint32_t i = 0; i < finals->count; i++) {
        double change = finals->finalists[i].out ? 0 : change_of(&finals->finalists[i]);
        if (change <= 0) continue;
        least = fmin(least, change);
        most = fmax(most, change);
    }
    return most > unsteady * least;
}

// A few unlucky rounds must not replace the present choice by a candidate that is no faster. Where times are of two
// sorts, as with busy processes on the other hardware thread of a core, five rounds are all of the slow sort in one
// contest of 32.
static bool is_no_more_asked(const hone_finalist *standing, const hone_interval *ratio)
{
    return ratio->low > (standing->rounds >= HONE_SURE_ROUNDS ? worth_leaving : hopeless_standing);
}

static bool is_certainly_slower(const hone_finalist *finalist, const hone_interval *ratio)
{
    bool slower = ratio->low > 1 && ratio->middle > near_enough; // a candidate that ties may still win by being simpler
    if (finalist->keeps_place && !is_no_more_asked(finalist, ratio)) return false;
    return slower && (ratio->middle > clearly || finalist->rounds >= HONE_SURE_ROUNDS);
}

// Whether a finalist beyond the first few can hardly be faster.
static bool is_crowded_out(const hone_finalist *finalist, const hone_interval *ratio, uint32_t faster)
{
    return !finalist->keeps_place && faster >= MOST_LASTING && ratio->low > hardly;
}

// A few rounds are not enough for a comparison that is shown: finalists that tables compare the winner with get more.
static bool is_owed(const hone_finalist *finalist, uint32_t faster)
{
    return (finalist->is_shown || faster == 1) && hone_finalist_missing_rounds(finalist) > 0;
}

bool hone_finals_settle(hone_finals *finals, uint64_t seed)
{
    double centers_ns[HONE_MAX_TOGETHER];
    bool certain = true;
    find_centers(finals, centers_ns);
    const uint32_t best = least_of(centers_ns, finals->count);
    for (uint32_t i = 0; i < finals->count; i++) {
        hone_finalist *other = &finals->finalists[i];
        if (i == best || other->out) continue;
        hone_interval ratio = hone_finals_ratio(finals, best, i, seed);
        const uint32_t faster = count_faster(centers_ns, finals->count, i);
        const bool slower = is_certainly_slower(other, &ratio), stays = is_owed(other, faster),
                   crowded = !slower && is_crowded_out(other, &ratio, faster);
        other->out = (slower || crowded) && !stays;
        other->crowded_out = crowded && !stays;
        certain = certain && (slower || crowded || ratio.low > 1 || ratio.high <= near_enough);
    }
    return certain;
}

// The winner ----------------------------------------------------------------------------------------------------------

static uint32_t differing(const hone_field *field, const hone_candidate *candidate)
{
    const hone_config *standard = &field->contestants[candidate->kernel].default_config;
    uint32_t count = 0;
    for (uint32_t i = 0; i < candidate->config.count; i++)
        count += candidate->config.values[i] != standard->values[i];
    return count;
}

// Whether a is simpler than b: nearer to its kernel's default, of a kernel that comes earlier in the registry, of
// smaller values. This is a total order, so that a tie always ends the same.
static bool is_simpler(const hone_field *field, const hone_candidate *a, const hone_candidate *b)
{
    uint32_t a_differs = differing(field, a), b_differs = differing(field, b);
    if (a_differs != b_differs) return a_differs < b_differs;
    if (a->kernel != b->kernel) return a->kernel < b->kernel;
    for (uint32_t i = 0; i < a->config.count; i++)
        if (a->config.values[i] != b->config.values[i]) return a->config.values[i] < b->config.values[i];
    return false;
}

static void count_kernels(const hone_field *field, uint32_t *out_competing, uint32_t *out_untried)
{
    *out_competing = *out_untried = 0; // includes those that were begun
    for (size_t i = 0; i < field->count; i++) {
        const hone_contestant *contestant = &field->contestants[i];
        if (contestant->space == NULL || contestant->is_refused) continue;
        ++*out_competing;
        *out_untried += contestant->tried == 0;
    }
}

// Counts the kernels whose default was begun but never ready; *out: the last of them.
static uint32_t count_unready(const hone_field *field, const hone_contestant **out)
{
    uint32_t count = 0;
    for (size_t i = 0; i < field->count; i++) {
        const hone_contestant *contestant = &field->contestants[i];
        if (!contestant->is_unready || contestant->tried > 0 || contestant->is_refused) continue;
        *out = contestant;
        count++;
    }
    return count;
}

static bool is_tried_little(const hone_field *field)
{
    uint32_t competing, untried;
    count_kernels(field, &competing, &untried);
    return 2 * untried > competing;
}

// Finds what answers without this contest: the store's choice, else the default; -1: neither takes part.
static int64_t find_standing(const hone_contest_state *state, const hone_finals *finals)
{
    int64_t standing = -1;
    const hone_candidate *standard = hone_standings_default(&state->standings);
    for (uint32_t i = 0; i < finals->count; i++) {
        const hone_candidate *candidate = finals->finalists[i].candidate;
        if (hone_incumbent_is(&state->known.incumbent, candidate)) return i;
        if (candidate == standard) standing = i;
    }
    return standing;
}

static double least_time(const hone_finalist *finalist)
{
    double least = INFINITY;
    for (uint32_t i = 0; i < finalist->rounds; i++)
        least = fmin(least, finalist->samples[i].time_ns);
    return least;
}

// Whether a is faster than b by every reading: by the center and the least sample of the rounds, and by the race.
static bool leads_by_all(const hone_finalist *a, const hone_finalist *b, double a_ns, double b_ns)
{
    double a_raced[HONE_KEPT_SAMPLES], b_raced[HONE_KEPT_SAMPLES];
    const hone_trial *one = &a->candidate->trial, *other = &b->candidate->trial;
    if (one->kept == 0 || other->kept == 0) return false;
    const uint32_t a_count = hone_trial_times(one, a_raced), b_count = hone_trial_times(other, b_raced);
    return a_ns < b_ns && least_time(a) < least_time(b) &&
           hone_median(a_raced, a_count).middle < hone_median(b_raced, b_count).middle;
}

bool hone_finals_standing_leads(const hone_contest_state *state, const hone_finals *finals)
{
    double centers_ns[HONE_MAX_TOGETHER];
    const int64_t standing = find_standing(state, finals);
    find_centers(finals, centers_ns);
    bool leads = standing >= 0;
    for (uint32_t i = 0; i < finals->count && leads; i++)
        leads = i == standing || finals->finalists[i].out ||
                leads_by_all(&finals->finalists[standing], &finals->finalists[i], centers_ns[standing], centers_ns[i]);
    return leads;
}

// Whether there are too few rounds to replace the present choice. The error of a few rounds is larger than their
// interval says: three samples of the fastest of many similar finalists may all be lucky, and on a disturbed machine
// the interval may even look certain.
static bool are_too_few(const hone_finals *finals, const hone_finalist *standing, bool undecided)
{
    return standing->rounds < LEAST_PAIRS && (undecided || finals->disturbed >= told_share);
}

// Whether the present choice stays. ratio: its time over that of the fastest.
static bool stays(
    const hone_contest_state *state,
    const hone_finals *finals,
    const hone_finalist *standing,
    const hone_interval *ratio)
{
    const bool undecided = ratio->low <= 1;
    if (ratio->middle <= tie || (undecided && ratio->middle <= undecided_tie)) return true;
    if (are_too_few(finals, standing, undecided) && !is_no_more_asked(standing, ratio)) return true;
    if (!undecided) return false;
    if (ratio->low * ratio->high < 1) return true; // the possible loss is larger than the possible gain
    if (ratio->high > wide * ratio->low) return true;
    return hone_incumbent_is(&state->known.incumbent, standing->candidate) || is_tried_little(&state->field) ||
           ratio->middle <= worth_leaving;
}

uint32_t hone_finals_choose_winner(const hone_contest_state *state, const hone_finals *finals)
{
    const uint64_t seed = state->question.options.seed;
    hone_assert(finals->count > 0 && (finals->rounds > 0 || finals->count == 1));
    uint32_t best = hone_finals_fastest(finals), winner = best;
    int64_t standing = find_standing(state, finals);
    // A finalist that is out was certainly slower than some other; its few rounds may not show its ratio to the present
    // best.
    if (standing >= 0 && (uint32_t)standing != best && !finals->finalists[standing].out) {
        hone_interval ratio = hone_finals_ratio(finals, best, (uint32_t)standing, seed);
        if (stays(state, finals, &finals->finalists[standing], &ratio)) return (uint32_t)standing;
    }
    if (standing == best) return best;
    for (uint32_t i = 0; i < finals->count; i++) {
        if (i == best || finals->finalists[i].out) continue;
        hone_interval ratio = hone_finals_ratio(finals, best, i, seed);
        bool tied = ratio.middle <= tie || (ratio.low <= 1 && ratio.middle <= undecided_tie);
        if (tied && is_simpler(&state->field, finals->finalists[i].candidate, finals->finalists[winner].candidate))
            winner = i;
    }
    return winner;
}

// Undecided results ---------------------------------------------------------------------------------------------------

// Whether another finalist may be as fast as the winner, or is faster by a few rounds. A finalist that was crowded out
// has few rounds: it counts if by now it may be much faster.
static bool is_equal(const hone_finalist *other, const hone_interval *ratio)
{
    if (other->out && !(other->crowded_out && ratio->low <= hardly)) return false;
    return ratio->low <= 1 && (ratio->high > near_enough || ratio->middle < hardly);
}

// Finds another finalist that may be the fastest as well; its index, or -1.
static int64_t find_equal(const hone_finals *finals, uint64_t seed, hone_interval *out_ratio)
{
    for (uint32_t i = 0; i < finals->count; i++) {
        if (i == finals->winner) continue;
        *out_ratio = hone_finals_ratio(finals, finals->winner, i, seed);
        if (is_equal(&finals->finalists[i], out_ratio)) return i;
    }
    return -1;
}

// A list of phrases, as many as there is room for.
typedef struct words {
    char *out;
    size_t size, used;
} words;

static void append(words *to, const char *text)
{
    int length = snprintf(to->out + to->used, to->size - to->used, "%s%s", to->used > 0 ? ", " : "", text);
    if (length > 0 && to->used + (size_t)length < to->size) to->used += (size_t)length;
    to->out[to->used] = '\0';
}

// A cause that a user can look for. On the host it is always other work, so nothing is added.
static const char *cause_of(unsigned marks)
{
    if (marks & HONE_DEVICE_SHARED) return " by other processes on the device";
    if (marks & HONE_DEVICE_THROTTLED) return " by heat or power that hold the device back";
    return marks & HONE_DEVICE_SLOWED ? " by a lower clock of the device" : "";
}

// Whether there was a round in which neither of the two was disturbed.
static bool were_left_alone(const hone_finalist *a, const hone_finalist *b)
{
    pairs p;
    find_pairs(a, b, 0, &p);
    return p.count > 0;
}

// Writes the advice to the user. More seconds than this contest had, and no fewer than the default, are advised only if
// the time ran out: finals that ended earlier have learned all that rounds can show, and a race that had no evaluations
// left tries nothing more.
static void advise(const hone_contest_state *state, uint32_t untried, bool needs_quiet, char *out, size_t size)
{
    const hone_tune_options *options = &state->question.options;
    const bool had_all = options->evaluations > 0 && state->standings.count >= options->evaluations;
    const bool ran_out = untried > 0 ? !had_all : hone_trials_now(&state->trials) >= state->trials.end_ns;
    const bool is_disturbed = hone_trials_disturbed(&state->trials) >= told_share;
    const char *quiet = needs_quiet ? " on a quieter machine: no round was left alone" : "";
    out[0] = '\0';
    if (ran_out)
        snprintf(out, size, "; try --seconds %.0f%s", fmax(30, ceil(2 * options->seconds)), quiet);
    else if (untried > 0)
        snprintf(out, size, "; try more than --evals %u", options->evaluations);
    else if (needs_quiet || is_disturbed)
        snprintf(out, size, "; try again%s", needs_quiet ? quiet : " on a quieter machine");
}

void hone_finals_say_undecided(const hone_contest_state *state, const hone_finals *finals, char *out, size_t size)
{
    char text[160], advice[96];
    uint32_t competing, untried;
    hone_interval ratio;
    const double disturbed = hone_trials_disturbed(&state->trials);
    count_kernels(&state->field, &competing, &untried);
    int64_t equal = find_equal(finals, state->question.options.seed, &ratio);
    out[0] = '\0';
    if (untried == 0 && equal < 0) return;
    // More rounds that are all disturbed would show no more.
    const bool needs_quiet =
        untried == 0 && !were_left_alone(&finals->finalists[equal], &finals->finalists[finals->winner]);
    advise(state, untried, needs_quiet, advice, sizeof advice);
    words to = {out, size - strlen(advice), 0};
    if (untried > 0) {
        const hone_contestant *unready = NULL;
        const uint32_t begun = count_unready(&state->field, &unready);
        if (begun == 1)
            snprintf(text, sizeof text, "%.60s was not ready in its time", unready->ref->kernel.name);
        else
            snprintf(text, sizeof text, "%u of %u kernels were not ready in their time", begun, competing);
        if (begun > 0) append(&to, text);
        snprintf(text, sizeof text, "%u of %u kernels were never tried", untried - begun, competing);
        if (untried > begun) append(&to, text);
    }
    if (equal >= 0) {
        const hone_candidate *other = finals->finalists[equal].candidate,
                             *winner = finals->finalists[finals->winner].candidate;
        hone_print(
            text, sizeof text, "%s%s takes %.3g (%.3g to %.3g) times as long",
            other->kernel == winner->kernel ? "another config of " : "",
            state->field.contestants[other->kernel].ref->kernel.name, ratio.middle, ratio.low, ratio.high);
        append(&to, text);
    }
    if (disturbed >= told_share) {
        snprintf(
            text, sizeof text, "%.0f %% of the samples were disturbed%s", 100 * disturbed,
            cause_of(state->trials.marks));
        append(&to, text);
    }
    snprintf(out + to.used, size - to.used, "%s", advice);
}
