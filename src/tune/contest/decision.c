// The result of a contest: a row per kernel, the decision, its evidence.
#include "tune/contest/contest.h"

#include "base/assert.h"
#include "registry/names.h"
#include "tune/rule/statistics.h"

#include <stdio.h>
#include <string.h>

// Whether a is shown as a kernel's best instead of b: first the winner, then candidates that the finals timed, then the
// fastest of the race.
static bool shows_better(const hone_contest_state *state, const hone_candidate *a, const hone_candidate *b)
{
    if (b == NULL) return true;
    if (a == state->winner || b == state->winner) return a == state->winner;
    if (a->timed_in_finals != b->timed_in_finals) return a->timed_in_finals;
    return a->rank_ns < b->rank_ns;
}

static const hone_candidate *best_of(const hone_contest_state *state, size_t kernel)
{
    const hone_candidate *best = NULL;
    for (size_t i = 0; i < state->standings.count; i++) {
        const hone_candidate *candidate = &state->standings.candidates[i];
        if (candidate->kernel == kernel && !candidate->out && shows_better(state, candidate, best)) best = candidate;
    }
    return best;
}

static void fill_row(const hone_contest_state *state, size_t kernel)
{
    hone_contest_kernel *row = &state->field.rows[kernel];
    const hone_candidate *best = best_of(state, kernel);
    for (size_t i = 0; i < state->standings.count; i++) {
        const hone_candidate *candidate = &state->standings.candidates[i];
        if (candidate->kernel != kernel || !candidate->is_default || candidate->out) continue;
        row->default_time_ns = candidate->trial.time_ns;
        row->default_samples = candidate->trial.samples;
    }
    if (best == NULL) return;
    row->best = best->config;
    row->time_ns = best->trial.time_ns;
    row->low_ns = best->trial.low_ns;
    row->high_ns = best->trial.high_ns;
    row->samples = best->trial.samples;
    row->max_error = best->trial.max_error;
}

// The reference was run once, as a whole: its row shows that time.
static void fill_reference_row(const hone_contest_state *state, size_t kernel)
{
    hone_contest_kernel *row = &state->field.rows[kernel];
    bool runs =
        hone_kernel_eligible(row->kernel, state->question.call, state->question.environment->device, NULL) == HONE_OK;
    const hone_algorithm *algorithm = &state->question.algorithm->algorithm;
    const hone_kernel *described = &row->kernel->kernel;
    const bool is_it = algorithm->reference != NULL ? described->run == algorithm->reference
                                                    : algorithm->reference_kernel != NULL &&
                                                          strcmp(described->name, algorithm->reference_kernel) == 0;
    if (!runs || state->trials.opened.reference_ns <= 0 || !is_it) return;
    row->time_ns = row->low_ns = row->high_ns = row->default_time_ns = state->trials.opened.reference_ns;
    row->tried = row->samples = row->default_samples = 1;
}

void hone_contest_fill_rows(const hone_contest_state *state)
{
    for (size_t i = 0; i < state->field.count; i++) {
        if (state->field.rows[i].kernel->kernel.is_reference)
            fill_reference_row(state, i);
        else
            fill_row(state, i);
    }
}

// The finals' samples are better than the race's, so they replace them.
void hone_contest_adopt_finals(hone_finals *finals)
{
    for (uint32_t i = 0; i < finals->count; i++) {
        double times[HONE_MOST_FINAL_ROUNDS + HONE_KEPT_SAMPLES];
        const uint32_t count = hone_finalist_times(&finals->finalists[i], times);
        hone_interval interval = hone_median(times, count);
        hone_candidate *candidate = finals->finalists[i].candidate;
        candidate->trial.time_ns = candidate->rank_ns = interval.middle;
        candidate->trial.low_ns = interval.low;
        candidate->trial.high_ns = interval.high;
        candidate->trial.samples = count;
        candidate->timed_in_finals = true;
    }
}

void hone_contest_fill_counts(const hone_standings *standings, hone_evidence *evidence)
{
    for (size_t i = 0; i < standings->count; i++) {
        const hone_candidate *candidate = &standings->candidates[i];
        if (candidate->out)
            evidence->rejected[candidate->trial.failure]++;
        else if (!candidate->trial.same)
            evidence->measured++;
    }
    const hone_candidate *standard = hone_standings_default(standings);
    if (standard == NULL) return;
    evidence->default_time_ns = standard->trial.time_ns;
    evidence->default_samples = standard->trial.samples;
}

static void fill_evidence(const hone_contest_state *state, const hone_candidate *winner, hone_evidence *evidence)
{
    evidence->time_ns = winner->trial.time_ns;
    evidence->low_ns = winner->trial.low_ns;
    evidence->high_ns = winner->trial.high_ns;
    evidence->samples = winner->trial.samples;
    evidence->regime = state->question.options.regime;
    evidence->tolerance = 1; // errors are given in units of the tolerance
    evidence->max_error = winner->trial.max_error;
    evidence->floor_ns = state->trials.floor.ns;
    if (state->trials.has_floor) hone_floor_say(&state->trials.floor, evidence->floor, sizeof evidence->floor);
    hone_trials_fill_spent(&state->trials, evidence);
    evidence->seed = state->question.options.seed;
    evidence->disturbed = hone_trials_disturbed(&state->trials);
    evidence->isolated = state->trials.sandbox.kind != HONE_SANDBOX_HERE;
    snprintf(
        evidence->verified_against, sizeof evidence->verified_against, "%s",
        hone_regime_is_stable(state->question.options.regime) ? "reference, and the default's bits" : "reference");
    char how[sizeof state->trials.opened.how + 64];
    snprintf(
        how, sizeof how, "%s%s%s%s", state->trials.opened.how, winner->trial.witnessed ? ", all as another kernel" : "",
        state->verified_smaller ? ", and a smaller call" : "", state->verified_briefly ? ", in few places" : "");
    hone_words_copy(evidence->verified_by, sizeof evidence->verified_by, how);
    const hone_tuner *tuner = state->question.options.tuner;
    if (tuner != NULL)
        snprintf(evidence->tuner, sizeof evidence->tuner, "%s", tuner->name != NULL ? tuner->name : "own");
    snprintf(evidence->hone_version, sizeof evidence->hone_version, "%s", hone_version());
    hone_contest_fill_counts(&state->standings, evidence);
}

void hone_question_fill_decision(
    const hone_question *question, const hone_kernel_ref *ref, const hone_config *config, hone_decision *out)
{
    snprintf(out->algorithm, sizeof out->algorithm, "%s", question->algorithm->name);
    snprintf(out->version, sizeof out->version, "%s", question->algorithm->version);
    snprintf(out->key, sizeof out->key, "%s", question->key.key);
    snprintf(out->kernel, sizeof out->kernel, "%s", ref->kernel.name);
    out->platform = ref->kernel.platform;
    out->backend = ref->kernel.backend;
    out->config = *config;
    hone_config_json(ref->space, config, out->config_json, sizeof out->config_json);
    out->source = HONE_SOURCE_AUTOTUNE;
    out->verified = true;
}

void hone_contest_choose(hone_contest_state *state, const hone_candidate *winner)
{
    hone_decision *decision = &state->out->decision;
    hone_assert(!winner->out && winner->kernel < state->field.count);
    state->winner = winner;
    hone_question_fill_decision(
        &state->question, state->field.contestants[winner->kernel].ref, &winner->config, decision);
    fill_evidence(state, winner, &decision->evidence);
}

void hone_contest_fill_runner_up(
    const hone_question *question, const hone_field *field, const hone_finals *finals, hone_evidence *evidence)
{
    hone_assert(finals->winner < finals->count);
    const hone_candidate *second = NULL;
    uint32_t index = 0;
    for (uint32_t i = 0; i < finals->count; i++) {
        const hone_candidate *candidate = finals->finalists[i].candidate;
        if (i == finals->winner || (second != NULL && candidate->rank_ns >= second->rank_ns)) continue;
        second = candidate;
        index = i;
    }
    evidence->rounds = finals->rounds;
    if (second == NULL) return;
    const uint32_t of_winner = finals->finalists[finals->winner].rounds, of_second = finals->finalists[index].rounds;
    evidence->rounds = of_winner < of_second ? of_winner : of_second;
    hone_interval ratio = hone_finals_ratio(finals, finals->winner, index, question->options.seed);
    snprintf(
        evidence->runner_up, sizeof evidence->runner_up, "%s", field->contestants[second->kernel].ref->kernel.name);
    evidence->ratio = ratio.middle;
    evidence->ratio_low = ratio.low;
    evidence->ratio_high = ratio.high;
}
