// Remeasuring, between the race and the finals: of hundreds that were timed once, the first in rank are those that
// were fast and those that were lucky, and the lucky would crowd the fast out of the finals.
//
// The second time takes the place of the first: the least of both would be lucky twice. So the first twelve in rank
// have one unbiased look each, and only they can be finalists. It is called off when there is time for fewer than four.
#include "tune/contest/contest.h"

enum { BEST_COUNT = 12, LEAST_REMEASURED = 4 };

static const double near = 2.0;        // over the best: a kernel's best is worth a second look
static const double least_left = 0.15; // of the contest's time, for the finals

static bool is_time_left(const hone_trials *trials)
{
    uint64_t now = hone_trials_now(trials);
    double left = now < trials->end_ns ? (double)(trials->end_ns - now) : 0;
    return left > least_left * 1e9 * trials->question->options.seconds;
}

static bool is_remeasured(const void *ctx, const hone_candidate *candidate)
{
    (void)ctx;
    return candidate->remeasured;
}

static hone_status remeasure(hone_contest_state *state, hone_candidate *candidate, hone_error *err)
{
    hone_trial trial;
    bool cut;
    const hone_try what = {
        .kernel = state->field.contestants[candidate->kernel].ref, .config = &candidate->config, .may_be_cut = true};
    hone_status status = hone_trials_try(&state->trials, &what, &trial, &cut, err);
    if (status != HONE_OK) return status;
    candidate->remeasured = true;
    if (cut || trial.refused) return HONE_OK;
    if (trial.failure != HONE_FAILURE_NONE) {
        hone_contest_reject(state, candidate, trial.failure, trial.reason);
        return HONE_OK;
    }
    candidate->trial = trial;
    candidate->rank_ns = trial.time_ns;
    hone_known_store(&state->known, &state->question, &state->field, candidate);
    return HONE_OK;
}

// Puts the candidates back as if there had been none.
static void call_off(hone_standings *standings)
{
    for (size_t i = 0; i < standings->count; i++)
        standings->candidates[i].remeasured = false;
}

hone_status hone_contest_remeasure(hone_contest_state *state, hone_error *err)
{
    hone_standings *standings = &state->standings;
    if (standings->best < 0 || standings->count <= BEST_COUNT) return HONE_OK;
    const double best_ns = hone_standings_best(standings)->rank_ns;
    hone_candidate *candidate = hone_standings_default(standings);
    hone_status status = candidate != NULL ? remeasure(state, candidate, err) : HONE_OK;
    uint32_t remeasured = 0;
    for (; status == HONE_OK && remeasured < BEST_COUNT && is_time_left(&state->trials); remeasured++) {
        candidate = hone_standings_next_best(standings, is_remeasured, NULL, false);
        if (candidate == NULL) break;
        status = remeasure(state, candidate, err);
    }
    while (status == HONE_OK && is_time_left(&state->trials)) {
        candidate = hone_standings_next_best(standings, is_remeasured, NULL, true);
        if (candidate == NULL || candidate->rank_ns > near * best_ns) break;
        status = remeasure(state, candidate, err);
    }
    standings->remeasured = remeasured >= LEAST_REMEASURED;
    if (!standings->remeasured) call_off(standings);
    hone_standings_update(standings);
    return status;
}
