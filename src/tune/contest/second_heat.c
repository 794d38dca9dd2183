// A second heat between the race and the finals: of hundreds that were timed once, the first in rank are those that were
// fast and those that were lucky, and the lucky would crowd the fast out of the finals.
#include "tune/contest/contest.h"

enum { BEST_COUNT = 12, LEAST_HEATED = 4 };

static const double near = 2.0;        // over the best: a kernel's best is worth a second look
static const double least_left = 0.15; // of the contest's time, for the finals

static bool is_time_left(const hone_contest_state *state)
{
    uint64_t now = hone_contest_now(state);
    return now < state->end_ns && (double)(state->end_ns - now) > least_left * 1e9 * state->options.seconds;
}

static bool is_heated(const void *ctx, const hone_candidate *candidate)
{
    (void)ctx;
    return candidate->heated;
}

static hone_status heat(hone_contest_state *state, hone_candidate *candidate, hone_error *err)
{
    hone_trial trial;
    bool cut;
    hone_status status =
        hone_contest_try(state, state->contestants[candidate->kernel].ref, &candidate->config, 0, &trial, &cut, err);
    if (status != HONE_OK) return status;
    candidate->heated = true;
    if (cut || trial.refused) return HONE_OK;
    if (trial.failure != HONE_FAILURE_NONE) {
        hone_contest_reject(state, candidate, trial.failure, trial.reason);
        return HONE_OK;
    }
    candidate->trial = trial;
    candidate->rank_ns = trial.time_ns;
    hone_contest_store(state, candidate);
    return HONE_OK;
}

// Puts the candidates back as if there had been no second heat.
static void call_off(hone_contest_state *state)
{
    for (size_t i = 0; i < state->candidate_count; i++)
        state->candidates[i].heated = false;
}

hone_status hone_contest_heat(hone_contest_state *state, hone_error *err)
{
    if (state->best < 0 || state->candidate_count <= BEST_COUNT) return HONE_OK;
    const double best_ns = state->candidates[state->best].rank_ns;
    hone_candidate *candidate = hone_contest_standard(state);
    hone_status status = candidate ? heat(state, candidate, err) : HONE_OK;
    uint32_t heated = 0;
    for (; status == HONE_OK && heated < BEST_COUNT && is_time_left(state); heated++) {
        candidate = hone_contest_next_best(state, is_heated, NULL, false);
        if (!candidate) break;
        status = heat(state, candidate, err);
    }
    while (status == HONE_OK && is_time_left(state)) {
        candidate = hone_contest_next_best(state, is_heated, NULL, true);
        if (!candidate || candidate->rank_ns > near * best_ns) break;
        status = heat(state, candidate, err);
    }
    state->heated = heated >= LEAST_HEATED;
    if (!state->heated) call_off(state);
    state->best = hone_contest_find_best(state);
    return status;
}
