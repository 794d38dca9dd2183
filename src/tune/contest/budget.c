// What may still be spent, and on which kernel: evaluations, time, patience, and where the next step is worth most.
#include "tune/contest/contest.h"

#include "base/error.h"

#include <math.h>

enum {
    FINALS_RUNS = 28,    // of the best: two finalists, two blocks of seven runs
    FAIR_TRIES = 3,      // that every kernel gets before it is judged
    EXPLORE_PERIOD = 12, // turns of which one goes to who had fewest
    HOPELESS_TRIES = 8
};

static const double most_finals_share = 0.5;
static const double defaults_share = 0.5; // of the race, for all defaults together
static const double least_first_seconds = 5;
static const double hopeless_factor = 2.0;  // over the best, and
static const double hopeless_chance = 1e-3; // to beat it with one config more
static const char where[] = "tune.budget";

// How long -----------------------------------------------------------------------------------------------------------

bool hone_contest_evaluations_left(const hone_contest_state *state)
{
    return state->candidate_count < state->options.evaluations;
}

// Runs of half a second need more than the usual share of the time for their finals.
bool hone_contest_time_left(const hone_contest_state *state)
{
    uint64_t now = hone_contest_now(state);
    double left = now < state->end_ns ? (double)(state->end_ns - now) : 0;
    double finals = state->best >= 0 ? FINALS_RUNS * state->candidates[state->best].rank_ns : 0;
    double most = most_finals_share * 1e9 * state->options.seconds;
    return now < state->race_until_ns && left > (finals < most ? finals : most);
}

static bool is_patient(const hone_contest_state *state)
{
    // A space that is looked through whole is worth its end, unless the caller said how patient he is.
    if (state->exhaustive && !state->patience_given) return true;
    return state->since_gain < state->options.patience;
}

// Of the first `end` kernels those that begin with a default.
static size_t count_defaults(const hone_contest_state *state, size_t end)
{
    size_t count = 0;
    for (size_t i = 0; i < end; i++)
        count += state->contestants[i].space && state->contestants[i].has_default;
    return count;
}

double hone_contest_first_seconds(const hone_contest_state *state, size_t index)
{
    double race = (double)(state->race_until_ns - state->started_ns) * 1e-9;
    double elapsed = (double)(hone_contest_now(state) - state->started_ns) * 1e-9;
    double part = (double)count_defaults(state, index + 1) / (double)count_defaults(state, state->count);
    return fmax(defaults_share * race * part - elapsed, least_first_seconds);
}

// Whose turn ---------------------------------------------------------------------------------------------------------

static bool is_left(const hone_contestant *contestant)
{
    return contestant->search && !contestant->put_aside && !contestant->exhausted;
}

// That one config more of it beats the best of all: as if its gains were spread exponentially about what its search
// expects. A kernel of which nothing has passed is ever less likely to.
static double chance_of(const hone_contest_state *state, const hone_contestant *contestant, double gain)
{
    if (state->best < 0) return 1;
    if (contestant->best_ns <= 0) return 1.0 / (1 + contestant->tried);
    double missing = 1 - state->candidates[state->best].rank_ns / contestant->best_ns;
    if (missing <= 0) return 1;
    return gain > 0 ? exp(-missing / gain) : 0;
}

static bool is_hopeless(const hone_contest_state *state, const hone_contestant *contestant, double chance)
{
    if (state->best < 0 || contestant->tried < HOPELESS_TRIES || contestant->best_ns <= 0) return false;
    double best_ns = state->candidates[state->best].rank_ns;
    return contestant->best_ns > hopeless_factor * best_ns && chance < hopeless_chance;
}

// What a step of this kernel is expected to take off the best time of all, relative; negative: it gets none.
static double worth_of(const hone_contest_state *state, const hone_contestant *contestant)
{
    if (!is_left(contestant)) return -1;
    double gain = hone_search_expected_gain(contestant->search), chance = chance_of(state, contestant, gain);
    return is_hopeless(state, contestant, chance) ? -1 : gain * chance;
}

// What a config of this kernel takes, preparing counted in; 0: not known.
static double cost_ns(const hone_contestant *contestant)
{
    return contestant->measured > 0 ? contestant->measuring_ns / contestant->measured : 0;
}

// What takes long to prepare or to run gets no more of the time than others for being tried at all.
static bool is_within_share(const hone_contest_state *state, const hone_contestant *contestant, size_t sharers)
{
    double share = (double)(state->race_until_ns - state->started_ns) / (double)sharers;
    return contestant->measuring_ns + cost_ns(contestant) <= share;
}

static size_t count_left(const hone_contest_state *state, const double *worths)
{
    size_t left = 0;
    for (size_t i = 0; i < state->count; i++)
        left += worths[i] >= 0;
    return left;
}

// Of those that are within their share of the time; -1: nobody is.
static int64_t least_tried(const hone_contest_state *state, const double *worths)
{
    int64_t least = -1;
    size_t sharers = count_left(state, worths);
    for (size_t i = 0; i < state->count; i++) {
        const hone_contestant *contestant = &state->contestants[i];
        if (worths[i] < 0 || !is_within_share(state, contestant, sharers)) continue;
        if (least < 0 || contestant->tried < state->contestants[least].tried) least = (int64_t)i;
    }
    return least;
}

// How many steps of this kernel alone there is time for.
static double steps_left(const hone_contest_state *state, const hone_contestant *contestant)
{
    double evaluations = (double)(state->options.evaluations - state->candidate_count), cost = cost_ns(contestant);
    uint64_t now = hone_contest_now(state);
    double left = now < state->race_until_ns ? (double)(state->race_until_ns - now) : 0;
    return cost > 0 ? fmin(evaluations, left / cost) : evaluations;
}

// Where the steps that are left are expected to take off most: where evaluations run out first they are as many for
// each kernel, where the time does there are more of the quick ones.
static int64_t worth_most(const hone_contest_state *state, const double *worths)
{
    int64_t best = -1;
    double most = -1;
    for (size_t i = 0; i < state->count; i++) {
        double all = worths[i] * steps_left(state, &state->contestants[i]);
        if (worths[i] < 0 || (best >= 0 && all <= most)) continue;
        best = (int64_t)i;
        most = all;
    }
    return best;
}

double hone_contest_expected_gain(const hone_contest_state *state)
{
    double most = 0;
    for (size_t i = 0; i < state->count; i++)
        most = fmax(most, worth_of(state, &state->contestants[i]));
    return most;
}

// -1: there is nobody left.
static int64_t choose(hone_contest_state *state, hone_error *err, hone_status *out_status)
{
    double *worths = hone_alloc_array(&state->environment->allocator, state->count, sizeof *worths);
    *out_status = worths ? HONE_OK : hone_fail_memory(err, where);
    if (!worths) return -1;
    for (size_t i = 0; i < state->count; i++)
        worths[i] = worth_of(state, &state->contestants[i]);
    int64_t least = least_tried(state, worths);
    bool explores = state->turn % EXPLORE_PERIOD == EXPLORE_PERIOD - 1;
    bool is_early = least >= 0 && state->contestants[least].tried < FAIR_TRIES;
    int64_t chosen = is_early || explores ? least : worth_most(state, worths);
    hone_free(&state->environment->allocator, worths);
    return chosen;
}

static hone_status next_of(hone_contest_state *state, hone_contestant *contestant, hone_config *out, hone_error *err)
{
    hone_status status = hone_contest_next_config(state, contestant, out, err);
    if (status == HONE_NOT_FOUND) contestant->exhausted = true;
    return status;
}

hone_status hone_contest_next(hone_contest_state *state, uint32_t *out_kernel, hone_config *out_config, hone_error *err)
{
    hone_status status = HONE_OK;
    for (;;) {
        int64_t chosen = choose(state, err, &status);
        if (status != HONE_OK) return status;
        if (chosen < 0) return HONE_NOT_FOUND;
        hone_error why = {0};
        *out_kernel = (uint32_t)chosen;
        status = next_of(state, &state->contestants[chosen], out_config, &why);
        if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(err, where);
        if (status == HONE_CANCELLED) return hone_fail(err, status, where, "%s", why.message);
        if (status == HONE_OK) {
            state->turn++;
            return HONE_OK;
        }
        if (status == HONE_NOT_FOUND) continue;
        // A constraint that cannot be evaluated for some configs ends its kernel's search, not the contest.
        state->contestants[chosen].exhausted = true;
        hone_contest_kernel *row = &state->out->kernels[chosen];
        hone_words_copy(row->reason, sizeof row->reason, why.message);
    }
}

// Whether one step more costs less than it can be expected to save, where the caller said how often the call is made.
static bool is_worth_it(const hone_contest_state *state)
{
    double calls = state->options.expected_calls;
    if (!(calls > 0) || state->best < 0 || state->measured == 0) return true;
    double saved_ns = hone_contest_expected_gain(state) * state->candidates[state->best].rank_ns * calls;
    return saved_ns >= state->measuring_ns / state->measured;
}

bool hone_contest_goes_on(const hone_contest_state *state)
{
    return hone_contest_evaluations_left(state) && hone_contest_time_left(state) && is_patient(state) &&
           is_worth_it(state);
}
