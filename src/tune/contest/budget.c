// The remaining budget and how it is distributed over the kernels: evaluations, time, patience, and which kernel gets
// the next step.
//
// Each kernel has a search of its own, and each search predicts by how much its next config improves its own best
// (expected improvement of its model). The worth of a step for the contest is this gain times the chance that it takes
// the kernel past the best of all: exp(-missing / gain), as if gains were distributed exponentially with the expected
// one as mean, where `missing` is how far the kernel's best lies behind. The next step goes to the kernel for which
// worth times the number of steps that there is time for is largest. Two rules keep a wrong model from starving a
// kernel: every kernel gets FAIR_TRIES first, and one step of EXPLORE_PERIOD goes to the kernel with the fewest. A
// third rule keeps kernels that are far behind from taking the time of the others where there is little: together they
// have a share of the race. By a fourth rule the next config of a leader that needs no compiler comes before a config
// of another kernel is compiled: of a library's 16 configs for an H200 two were tried in contests of 5 s, and the best
// was 1.26 times as fast as the best of those. No source: the rules are our own.
//
// Cost: one pass over the kernels per step.
#include "tune/contest/budget.h"

#include "base/assert.h"
#include "base/error.h"
#include "tune/contest/family.h"

#include <math.h>

enum {
    FINALS_RUNS = 28,    // of the best, for two finalists and two blocks of seven runs
    FAIR_TRIES = 3,      // configs that every kernel gets before it is judged
    EXPLORE_PERIOD = 12, // one of so many steps goes to the kernel with the fewest tries
    HOPELESS_TRIES = 8,  // the least tries after which a kernel is hopeless, and the most that it needs
    MOST_HOPELESS_TRIES = 100
};

// The checks of a winner: some twenty kinds of values, twenty places, and what belongs to both. Fewer are made where
// that takes a larger share of the contest's seconds: the rest is left to a smaller call (smaller.c).
enum { WINNERS_LOOKS = 60, WINNERS_VALUES = 15 }; // the reference runs for each of WINNERS_VALUES

// Chosen by hand.
static const double most_finals_share = 0.5;
static const double race_share_of_confirm = 0.7; // the rest of the checks' time is taken from the rounds of the finals
static const double defaults_share = 0.6;        // of the race, for all defaults together
static const double least_first_seconds = 5, least_first_share = 0.25; // of the contest
static const double far_behind = 1.5;       // times the best: few configs cannot make up for that
static const double behind_share = 0.25;    // of the race, for all kernels that are far behind, with their defaults
static const double leader_share = 1.0 / 3; // of the race, that a leader gets before configs of others are compiled
static const double hopeless_factor = 2.0;  // times the best, for a kernel that is hopeless, and
static const double hopeless_chance = 1e-3; // the least chance to beat the best with one more config
static const char where[] = "tune.budget";

// The time ------------------------------------------------------------------------------------------------------------

bool hone_budget_has_evaluations(const hone_budget *budget)
{
    return budget->standings->count < budget->question->options.evaluations;
}

double hone_budget_confirm_ns(const hone_budget *budget)
{
    const hone_candidate *best = hone_standings_best(budget->standings);
    if (best == NULL) return 0;
    const double looks_ns = WINNERS_LOOKS * best->trial.look_ns + WINNERS_VALUES * budget->trials->opened.reference_ns;
    return fmin(looks_ns, hone_confirm_share * 1e9 * budget->question->options.seconds);
}

// On a busy machine, half of the time that the quickest candidate took, in ns: a candidate that begins later is
// likelier to end after the race than before. On a machine with four busy processes a default took 1.5 s of a contest
// of 4 s.
static double half_of_one_ns(const hone_budget *budget)
{
    return hone_trials_are_disturbed(budget->trials) ? budget->spending->least_ns / 2 : 0;
}

// Runs of half a second need more than the usual share of the time for their finals.
bool hone_budget_has_time(const hone_budget *budget)
{
    const double now = (double)hone_trials_now(budget->trials) + half_of_one_ns(budget),
                 race_until = (double)budget->trials->race_until_ns,
                 left = fmax((double)budget->trials->end_ns - now, 0), confirm = hone_budget_confirm_ns(budget);
    double finals = budget->standings->best >= 0 ? FINALS_RUNS * hone_standings_best(budget->standings)->rank_ns : 0;
    double most = most_finals_share * 1e9 * budget->question->options.seconds;
    return now < race_until - race_share_of_confirm * confirm && left > fmin(finals, most) + confirm;
}

static bool is_patient(const hone_budget *budget)
{
    // A space that can be searched completely is searched to its end, unless the caller gave a patience.
    if (budget->field->exhaustive && !budget->question->patience_given) return true;
    return budget->spending->since_gain < budget->question->options.patience;
}

// Counts the kernels that have a default among the first `end`.
static size_t count_defaults(const hone_budget *budget, size_t end)
{
    size_t count = 0;
    for (size_t i = 0; i < end; i++)
        count += budget->field->contestants[i].space != NULL && budget->field->contestants[i].has_default;
    return count;
}

double hone_budget_first_seconds(const hone_budget *budget, size_t index)
{
    hone_assert(index < budget->field->count && budget->trials->race_until_ns >= budget->trials->started_ns);
    double race = (double)(budget->trials->race_until_ns - budget->trials->started_ns) * 1e-9;
    double elapsed = (double)(hone_trials_now(budget->trials) - budget->trials->started_ns) * 1e-9;
    double part = (double)count_defaults(budget, index + 1) / (double)count_defaults(budget, budget->field->count);
    const double least = fmin(least_first_seconds, least_first_share * budget->question->options.seconds);
    return fmax(defaults_share * race * part - elapsed, least);
}

// Choosing the kernel -------------------------------------------------------------------------------------------------

// The chance that one more config of the kernel beats the best of all, as if its gains were distributed exponentially
// with the expected one as mean. A kernel of which no config has passed gets a lower chance with each try.
static double chance_of(const hone_budget *budget, const hone_contestant *contestant, double gain)
{
    if (budget->standings->best < 0) return 1;
    if (contestant->best_ns <= 0) return 1.0 / (1 + contestant->tried);
    double missing = 1 - hone_standings_best(budget->standings)->rank_ns / contestant->best_ns;
    if (missing <= 0) return 1;
    return gain > 0 ? exp(-missing / gain) : 0;
}

// Configs that must have been tried before the model of their search is used: the first 8 of 5,400 say little, and on a
// GPU the best of the 5,400 was 13 % ahead of all others.
static double hopeless_tries(const hone_contestant *contestant)
{
    return fmin(fmax(HOPELESS_TRIES, sqrt((double)contestant->size)), MOST_HOPELESS_TRIES);
}

static bool is_hopeless(const hone_budget *budget, const hone_contestant *contestant, double chance)
{
    if (budget->standings->best < 0 || contestant->best_ns <= 0) return false;
    if (contestant->tried < hopeless_tries(contestant)) return false;
    double best_ns = hone_standings_best(budget->standings)->rank_ns;
    return contestant->best_ns > hopeless_factor * best_ns && chance < hopeless_chance;
}

// By how much a step of this kernel is expected to improve the best time of all, relative; negative: it gets none.
static double worth_of(const hone_budget *budget, const hone_contestant *contestant)
{
    if (!hone_contestant_is_left(contestant) || hone_family_follows(budget->field, budget->standings, contestant))
        return -1;
    double gain = hone_search_expected_gain(contestant->search), chance = chance_of(budget, contestant, gain);
    return is_hopeless(budget, contestant, chance) ? -1 : gain * chance;
}

// Its next config was prepared together with others, and preparing has ended.
static bool is_ready(const hone_contestant *contestant)
{
    return hone_contestant_is_prepared(contestant) && !contestant->prepares_alone;
}

// The time of a prepared config does not include preparing, which is already done. When it did, two of sixteen configs
// that a compiler had prepared together were tried, because both had seemed to take half a second.
double hone_budget_cost_ns(const hone_contestant *contestant)
{
    if (contestant->measured == 0) return 0;
    const double run_ns = fmax(contestant->measuring_ns - contestant->preparing_ns, 0) / contestant->measured;
    if (is_ready(contestant)) return run_ns;
    return run_ns + (contestant->ahead_ns > 0 ? contestant->ahead_ns : contestant->preparing_ns / contestant->measured);
}

// A kernel whose configs take long to prepare or to run gets no more of the time than others by the rules that let
// every kernel try.
static bool is_within_share(const hone_budget *budget, const hone_contestant *contestant, size_t sharers)
{
    if (is_ready(contestant)) return true;
    double share = (double)(budget->trials->race_until_ns - budget->trials->started_ns) / (double)sharers;
    return contestant->measuring_ns + hone_budget_cost_ns(contestant) <= share;
}

bool hone_budget_is_far_behind(const hone_budget *budget, const hone_contestant *contestant)
{
    if (budget->standings->best < 0 || contestant->tried == 0) return false;
    const double best_ns = hone_standings_best(budget->standings)->rank_ns;
    return contestant->best_ns <= 0 || contestant->best_ns > far_behind * best_ns;
}

// The ns that are left for kernels that are far behind.
static double left_behind_ns(const hone_budget *budget)
{
    double left = behind_share * (double)(budget->trials->race_until_ns - budget->trials->started_ns);
    for (size_t i = 0; i < budget->field->count; i++)
        if (hone_budget_is_far_behind(budget, &budget->field->contestants[i]))
            left -= budget->field->contestants[i].measuring_ns;
    return left;
}

// Makes the worth of kernels that are far behind negative when their share is spent and another kernel is left.
static void leave_behind(const hone_budget *budget, double *worths)
{
    bool is_near = false;
    const double left_ns = left_behind_ns(budget);
    for (size_t i = 0; i < budget->field->count; i++)
        is_near = is_near || (worths[i] >= 0 && !hone_budget_is_far_behind(budget, &budget->field->contestants[i]));
    for (size_t i = 0; i < budget->field->count && is_near; i++) {
        const hone_contestant *contestant = &budget->field->contestants[i];
        if (hone_budget_is_far_behind(budget, contestant) && hone_budget_cost_ns(contestant) > left_ns) worths[i] = -1;
    }
}

static size_t count_left(const hone_budget *budget, const double *worths)
{
    size_t left = 0;
    for (size_t i = 0; i < budget->field->count; i++)
        left += worths[i] >= 0;
    return left;
}

// The kernel with the fewest tries of those that are within their share of the time; -1: there is none.
static int64_t least_tried(const hone_budget *budget, const double *worths)
{
    int64_t least = -1;
    size_t sharers = count_left(budget, worths);
    for (size_t i = 0; i < budget->field->count; i++) {
        const hone_contestant *contestant = &budget->field->contestants[i];
        if (worths[i] < 0 || !is_within_share(budget, contestant, sharers)) continue;
        if (least < 0 || contestant->tried < budget->field->contestants[least].tried) least = (int64_t)i;
    }
    return least;
}

// How many steps there is time for if all are of this kernel.
static double steps_left(const hone_budget *budget, const hone_contestant *contestant)
{
    double evaluations = (double)(budget->question->options.evaluations - budget->standings->count),
           cost = hone_budget_cost_ns(contestant);
    uint64_t now = hone_trials_now(budget->trials);
    double left = now < budget->trials->race_until_ns ? (double)(budget->trials->race_until_ns - now) : 0;
    return cost > 0 ? fmin(evaluations, left / cost) : evaluations;
}

// Finds the kernel whose remaining steps are expected to improve the best time most. If evaluations run out first, each
// kernel has the same number of steps left; if the time runs out first, quick kernels have more.
static int64_t worth_most(const hone_budget *budget, const double *worths)
{
    int64_t best = -1;
    double most = -1;
    for (size_t i = 0; i < budget->field->count; i++) {
        double all = worths[i] * steps_left(budget, &budget->field->contestants[i]);
        if (worths[i] < 0 || (best >= 0 && all <= most)) continue;
        best = (int64_t)i;
        most = all;
    }
    return best;
}

double hone_budget_expected_gain(const hone_budget *budget)
{
    double most = 0;
    for (size_t i = 0; i < budget->field->count; i++)
        most = fmax(most, worth_of(budget, &budget->field->contestants[i]));
    return most;
}

static bool needs_compiler(const hone_contestant *contestant)
{
    return contestant->ref->kernel.code != NULL && !is_ready(contestant);
}

// Whether the leader's next config comes before the chosen kernel's.
static bool goes_first(const hone_budget *budget, const hone_contestant *leader, const hone_contestant *chosen)
{
    const double race_ns = (double)(budget->trials->race_until_ns - budget->trials->started_ns);
    return needs_compiler(chosen) && hone_contestant_is_left(leader) && leader->ref->kernel.code == NULL &&
           leader->measuring_ns < leader_share * race_ns;
}

hone_status hone_budget_choose(const hone_budget *budget, int64_t *out, hone_error *err)
{
    const hone_allocator *allocator = &budget->question->environment->allocator;
    hone_assert(budget->field->count > 0);
    double *worths = hone_alloc_array(allocator, budget->field->count, sizeof *worths);
    if (worths == NULL) return hone_fail_memory(err, where);
    for (size_t i = 0; i < budget->field->count; i++)
        worths[i] = worth_of(budget, &budget->field->contestants[i]);
    leave_behind(budget, worths);
    int64_t least = least_tried(budget, worths);
    bool explores = budget->spending->steps % EXPLORE_PERIOD == EXPLORE_PERIOD - 1;
    bool is_early = least >= 0 && budget->field->contestants[least].tried < FAIR_TRIES;
    *out = is_early || explores ? least : worth_most(budget, worths);
    const hone_candidate *best = hone_standings_best(budget->standings);
    if (*out >= 0 && best != NULL && worths[best->kernel] >= 0 &&
        goes_first(budget, &budget->field->contestants[best->kernel], &budget->field->contestants[*out]))
        *out = best->kernel;
    hone_free(allocator, worths);
    return HONE_OK;
}

// Whether one more step costs less than it is expected to save. Applies if the caller said how often the call is made.
static bool is_worth_it(const hone_budget *budget)
{
    double calls = budget->question->options.expected_calls;
    if (!(calls > 0) || budget->standings->best < 0 || budget->spending->measured == 0) return true;
    double saved_ns = hone_budget_expected_gain(budget) * hone_standings_best(budget->standings)->rank_ns * calls;
    return saved_ns >= budget->spending->measuring_ns / budget->spending->measured;
}

bool hone_budget_goes_on(const hone_budget *budget)
{
    return hone_budget_has_evaluations(budget) && hone_budget_has_time(budget) && is_patient(budget) &&
           is_worth_it(budget);
}
