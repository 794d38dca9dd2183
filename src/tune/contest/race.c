// The race: candidates one after the other, until what may be spent is spent.
//
// A machine's speed drifts while a contest runs, so the best is measured again now and then, and all times are compared
// with that taken out. Least times are compared, not medians: what disturbs a sample on a shared machine makes it longer.
#include "tune/contest/contest.h"

#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    DRIFT_PERIOD = 8, // candidates between two looks at the best
    LOST_LIMIT = 3    // crashes and time-outs in a row that put a kernel aside
};

static const double drift_least = 0.8, drift_most = 1.25, drift_deviations = 3;
static const double reference_reach = 1.5; // over the best: slower ones take too long to look at
static const double gain_counts = 0.995;   // of the best time: what patience waits for
static const char where[] = "tune.race";

bool hone_contest_cancelled(const hone_contest_state *state)
{
    return state->options.cancel && *state->options.cancel;
}

static void say_progress(const hone_contest_state *state, const char *kernel)
{
    const hone_tune_options *options = &state->options;
    if (!options->progress) return;
    double elapsed = (double)(hone_contest_now(state) - state->started_ns) * 1e-9;
    const hone_candidate *best = state->best >= 0 ? &state->candidates[state->best] : NULL;
    uint32_t done = (uint32_t)state->candidate_count, total = state->total > done ? state->total : done;
    double remaining = options->seconds - elapsed;
    if (done > 0) {
        double by_count = elapsed / done * (total - done);
        if (by_count < remaining) remaining = by_count;
    }
    const hone_progress progress = {
        .call = state->title,
        .done = done,
        .total = total,
        .kernel = kernel,
        .best_ns = best ? best->trial.time_ns : 0,
        .best_kernel = best ? state->contestants[best->kernel].ref->kernel.name : NULL,
        .elapsed_seconds = elapsed,
        .remaining_seconds = remaining > 0 ? remaining : 0,
    };
    options->progress(options->progress_ctx, &progress);
}

// Keeping the books ------------------------------------------------------------------------------------------------

static bool kernel_is_taken(
    const hone_contest_state *state, hone_candidate_taken *taken, const void *ctx, uint32_t kernel)
{
    for (size_t i = 0; i < state->candidate_count; i++)
        if (state->candidates[i].kernel == kernel && taken(ctx, &state->candidates[i])) return true;
    return false;
}

hone_candidate *hone_contest_next_best(
    const hone_contest_state *state, hone_candidate_taken *taken, const void *ctx, bool other)
{
    hone_candidate *best = NULL;
    for (size_t i = 0; i < state->candidate_count; i++) {
        hone_candidate *candidate = &state->candidates[i];
        if (candidate->out || candidate->trial.same || (state->heated && !candidate->heated) || taken(ctx, candidate))
            continue;
        if (best && candidate->rank_ns >= best->rank_ns) continue;
        if (!other || !kernel_is_taken(state, taken, ctx, candidate->kernel)) best = candidate;
    }
    return best;
}

static bool nobody(const void *ctx, const hone_candidate *candidate)
{
    (void)ctx;
    (void)candidate;
    return false;
}

int64_t hone_contest_find_best(const hone_contest_state *state)
{
    const hone_candidate *best = hone_contest_next_best(state, nobody, NULL, false);
    return best ? best - state->candidates : -1;
}

hone_candidate *hone_contest_standard(const hone_contest_state *state)
{
    hone_candidate *first = NULL;
    for (size_t i = 0; i < state->candidate_count; i++) {
        hone_candidate *candidate = &state->candidates[i];
        if (candidate->is_default && !candidate->out && (!first || candidate->kernel < first->kernel))
            first = candidate;
    }
    return first;
}

static void note_reason(hone_contest_state *state, uint32_t kernel, hone_failure failure, const char *reason)
{
    hone_contest_kernel *row = &state->out->kernels[kernel];
    row->rejected[failure]++;
    hone_words_copy(row->reason, sizeof row->reason, reason);
}

void hone_contest_reject(hone_contest_state *state, hone_candidate *candidate, hone_failure failure, const char *reason)
{
    candidate->out = true;
    candidate->trial.failure = failure;
    hone_words_copy(candidate->trial.reason, sizeof candidate->trial.reason, reason);
    note_reason(state, candidate->kernel, failure, reason);
    hone_contest_store(state, candidate);
    state->best = hone_contest_find_best(state);
}

static void put_aside_if_lost(hone_contestant *contestant, hone_contest_kernel *row, hone_failure failure)
{
    bool lost = failure == HONE_FAILURE_CRASH || failure == HONE_FAILURE_TIMEOUT;
    contestant->lost_in_row = lost ? contestant->lost_in_row + 1 : 0;
    if (contestant->lost_in_row < LOST_LIMIT) return;
    contestant->put_aside = true;
    char reason[sizeof row->reason];
    snprintf(reason, sizeof reason, "put aside after %d in a row: %.200s", LOST_LIMIT, row->reason);
    memcpy(row->reason, reason, sizeof row->reason);
}

static void note_passed(hone_contest_state *state, hone_candidate *candidate)
{
    hone_contestant *contestant = &state->contestants[candidate->kernel];
    contestant->passed++;
    contestant->lost_in_row = 0;
    if (contestant->best_ns == 0 || candidate->rank_ns < contestant->best_ns) contestant->best_ns = candidate->rank_ns;
    state->best = hone_contest_find_best(state);
    double best_ns = state->candidates[state->best].rank_ns;
    state->since_gain++;
    if (state->gain_ns > 0 && best_ns >= state->gain_ns * gain_counts) return;
    state->gain_ns = best_ns;
    state->since_gain = 0;
}

static hone_status enter(
    hone_contest_state *state,
    uint32_t kernel,
    const hone_config *config,
    bool is_default,
    const hone_trial *trial,
    bool resumed,
    hone_error *err)
{
    if (!hone_grow(
            &state->environment->allocator, &state->candidates, &state->candidate_capacity, state->candidate_count + 1,
            sizeof *state->candidates))
        return hone_fail_memory(err, where);
    hone_candidate *candidate = &state->candidates[state->candidate_count++];
    *candidate = (hone_candidate){.kernel = kernel, .config = *config, .is_default = is_default, .trial = *trial};
    candidate->rank_ns = trial->low_ns / (resumed ? 1 : state->drift);
    candidate->resumed = resumed;
    candidate->raced_ns = trial->time_ns;
    candidate->at_seconds = (double)(hone_contest_now(state) - state->started_ns) * 1e-9;
    candidate->out = trial->failure != HONE_FAILURE_NONE;
    state->contestants[kernel].tried++;
    state->out->kernels[kernel].tried++;
    if (!candidate->out) {
        note_passed(state, candidate);
        return HONE_OK;
    }
    state->since_gain++;
    note_reason(state, kernel, trial->failure, trial->reason);
    // Resumed failures come after all that passed, not in the order of time.
    if (!resumed || state->contestants[kernel].passed == 0)
        put_aside_if_lost(&state->contestants[kernel], &state->out->kernels[kernel], trial->failure);
    return HONE_OK;
}

// Trying -----------------------------------------------------------------------------------------------------------

static double best_now(const hone_contest_state *state)
{
    return state->best >= 0 ? state->candidates[state->best].rank_ns * state->drift : 0;
}

// Little is noise, and would put those that were tried later before or behind the others; much is no drift either: one of
// the two measurements was disturbed.
static double believed_drift(const hone_contest_state *state, double drift)
{
    double noise = hone_noise_level(&state->noise), change = fabs(drift - 1);
    return drift > drift_least && drift < drift_most && change > drift_deviations * noise ? drift : 1;
}

// Who shows the machine's speed: the same one as long as it is not far behind. True: another one from now on.
static bool choose_reference(hone_contest_state *state)
{
    const hone_candidate *best = &state->candidates[state->best];
    const hone_candidate *now = state->reference >= 0 ? &state->candidates[state->reference] : NULL;
    if (now && !now->out && now->rank_ns <= reference_reach * best->rank_ns) return false;
    state->reference = state->best;
    return true;
}

// The machine's speed by a candidate that is measured again and again: also a second look at whether it still works. What
// crowned it was luck in part, so that its first second look, and not its rank, is what later ones are compared with.
static hone_status look_at_drift(hone_contest_state *state, hone_error *err)
{
    if (state->best < 0 || ++state->since_drift < DRIFT_PERIOD) return HONE_OK;
    state->since_drift = 0;
    bool is_new = choose_reference(state);
    hone_candidate *reference = &state->candidates[state->reference];
    const hone_contestant *contestant = &state->contestants[reference->kernel];
    hone_trial trial;
    bool cut;
    hone_status status = hone_contest_try(state, contestant->ref, &reference->config, 0, &trial, &cut, err);
    if (status != HONE_OK || cut || trial.refused) {
        if (is_new) state->reference = -1;
        return status;
    }
    if (trial.failure != HONE_FAILURE_NONE) {
        hone_contest_reject(state, reference, trial.failure, trial.reason);
        return HONE_OK;
    }
    if (is_new)
        state->reference_ns = trial.low_ns / state->drift;
    else
        state->drift = believed_drift(state, trial.low_ns / state->reference_ns);
    return HONE_OK;
}

// The worker cannot take this kernel at all, which is no failure of the kernel's.
static void refuse(hone_contest_state *state, uint32_t kernel, const hone_trial *trial)
{
    hone_contest_kernel *row = &state->out->kernels[kernel];
    state->contestants[kernel].put_aside = true;
    hone_words_copy(row->reason, sizeof row->reason, trial->reason);
}

static hone_status measure(
    hone_contest_state *state, uint32_t kernel, const hone_config *config, bool is_default, hone_error *err)
{
    hone_trial trial;
    bool cut;
    hone_contestant *contestant = &state->contestants[kernel];
    uint64_t start = hone_contest_now(state);
    hone_status status = hone_contest_try(state, contestant->ref, config, best_now(state), &trial, &cut, err);
    if (status != HONE_OK || cut) return status;
    if (trial.refused) {
        refuse(state, kernel, &trial);
        return HONE_OK;
    }
    status = enter(state, kernel, config, is_default, &trial, false, err);
    if (status != HONE_OK) return status;
    if (trial.prepare_ns > contestant->prepare_ns) contestant->prepare_ns = trial.prepare_ns;
    const hone_candidate *candidate = &state->candidates[state->candidate_count - 1];
    hone_contest_tell(contestant, config, candidate->rank_ns, trial.failure);
    hone_contest_store(state, candidate);
    double spent_ns = (double)(hone_contest_now(state) - start);
    state->measured++;
    state->measuring_ns += spent_ns;
    contestant->measured++;
    contestant->measuring_ns += spent_ns;
    return look_at_drift(state, err);
}

static hone_status begin_step(hone_contest_state *state, uint32_t kernel, hone_error *err)
{
    if (hone_contest_cancelled(state)) return hone_fail(err, HONE_CANCELLED, where, "cancelled");
    say_progress(state, state->contestants[kernel].ref->kernel.name);
    return HONE_OK;
}

static hone_status take(
    hone_contest_state *state, uint32_t kernel, const hone_config *config, bool is_default, hone_error *err)
{
    hone_status status = begin_step(state, kernel, err);
    return status == HONE_OK ? measure(state, kernel, config, is_default, err) : status;
}

// In order ---------------------------------------------------------------------------------------------------------

static bool is_entered(const hone_contest_state *state, uint32_t kernel, const hone_config *config)
{
    for (size_t i = 0; i < state->candidate_count; i++)
        if (state->candidates[i].kernel == kernel && hone_config_equal(&state->candidates[i].config, config))
            return true;
    return false;
}

// What passed before what failed, the fast before the slow.
static bool comes_before(const hone_resumed *a, const hone_resumed *b)
{
    bool a_failed = a->trial.failure != HONE_FAILURE_NONE, b_failed = b->trial.failure != HONE_FAILURE_NONE;
    if (a_failed != b_failed) return b_failed;
    return !a_failed && a->trial.low_ns < b->trial.low_ns;
}

static const hone_resumed *next_resumed(const hone_contest_state *state)
{
    const hone_resumed *first = NULL;
    for (size_t i = 0; i < state->resumed_count; i++) {
        const hone_resumed *one = &state->resumed[i];
        const hone_contestant *contestant = &state->contestants[one->kernel];
        if (one->entered || !contestant->space || contestant->put_aside) continue;
        if (!first || comes_before(one, first)) first = one;
    }
    return first;
}

// All that an earlier contest measured takes part again, as far as this one's evaluations go.
static hone_status race_resumed(hone_contest_state *state, hone_error *err)
{
    hone_status status = HONE_OK;
    const hone_resumed *next;
    while (status == HONE_OK && hone_contest_evaluations_left(state) && (next = next_resumed(state)) != NULL) {
        const hone_contestant *contestant = &state->contestants[next->kernel];
        state->resumed[next - state->resumed].entered = true;
        if (is_entered(state, next->kernel, &next->config) ||
            hone_bound_space_check(contestant->space, &next->config, NULL) != HONE_OK)
            continue;
        status = begin_step(state, next->kernel, err);
        bool is_default = contestant->has_default && hone_config_equal(&next->config, &contestant->default_config);
        if (status == HONE_OK) status = enter(state, next->kernel, &next->config, is_default, &next->trial, true, err);
    }
    return status;
}

// A compiler that needs minutes must not leave the others without any: in a longer contest it has more.
static hone_status race_default(hone_contest_state *state, uint32_t kernel, hone_error *err)
{
    hone_contestant *contestant = &state->contestants[kernel];
    hone_contest_kernel *row = &state->out->kernels[kernel];
    const hone_config config = contestant->default_config;
    if (is_entered(state, kernel, &config)) return HONE_OK;
    double granted = state->first_seconds = hone_contest_first_seconds(state, kernel);
    hone_status status = take(state, kernel, &config, true, err);
    state->first_seconds = 0;
    if (status != HONE_OK || contestant->tried > 0 || contestant->put_aside) return status;
    contestant->put_aside = true;
    snprintf(
        row->reason, sizeof row->reason,
        "was not ready after %.3g s, its share of the contest's time: give the contest more seconds", granted);
    return HONE_OK;
}

static hone_status race_defaults(hone_contest_state *state, hone_error *err)
{
    hone_status status = HONE_OK;
    for (uint32_t i = 0; i < state->count && status == HONE_OK && hone_contest_evaluations_left(state); i++) {
        const hone_contestant *contestant = &state->contestants[i];
        // Out of time the search for the first that works goes on, else a slow one before it would hide it.
        if (!contestant->space || !contestant->has_default || contestant->put_aside) continue;
        if (state->best >= 0 && !hone_contest_time_left(state)) continue;
        status = race_default(state, i, err);
    }
    return status;
}

// What the store answers with today defends its place.
static hone_status race_incumbent(hone_contest_state *state, hone_error *err)
{
    const hone_incumbent *incumbent = &state->incumbent;
    if (!incumbent->is_there || !state->contestants[incumbent->kernel].space ||
        is_entered(state, incumbent->kernel, &incumbent->config) || !hone_contest_evaluations_left(state))
        return HONE_OK;
    return take(state, incumbent->kernel, &incumbent->config, false, err);
}

hone_status hone_contest_race(hone_contest_state *state, hone_error *err)
{
    hone_status status = race_resumed(state, err);
    state->since_gain = 0; // patience is for what this contest tries
    if (status == HONE_OK) status = race_defaults(state, err);
    if (status == HONE_OK) status = race_incumbent(state, err);
    while (status == HONE_OK && hone_contest_goes_on(state)) {
        uint32_t kernel;
        hone_config config;
        status = hone_contest_next(state, &kernel, &config, err);
        if (status == HONE_OK) status = take(state, kernel, &config, false, err);
    }
    if (status == HONE_NOT_FOUND) status = HONE_OK; // every config was looked at
    if (status == HONE_OK) say_progress(state, NULL);
    return status;
}
