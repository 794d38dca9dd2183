// The race: tries candidates one after the other until the budget is spent.
//
// The order: what an earlier contest measured (resumed), each kernel's default and after each of them a few configs of
// the kernel that leads, the store's choice, and then the configs that the search of the most promising kernel proposes
// (budget.c). Kernels whose code is a whole program (XLA's) start when half of that time is over: compiling them keeps
// a processor or the device busy for seconds, and a kernel that is not ready in time costs the contest its worker
// process. Each candidate is one trial; the stopping rule (rule/stopping.c) decides how many samples it has.
//
// A config whose binary was measured before, by the digest of its code, is not run: two configs that a compiler makes
// one program of would differ by noise alone.
//
// A machine's speed drifts while a contest runs. So the best candidate is measured again now and then, and all times
// are compared with the drift taken out. Least times are compared, not medians: what disturbs a sample on a shared
// machine makes it longer.
#include "tune/contest/contest.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/number.h"
#include "platforms/platform.h"
#include "registry/failure_kinds.h"
#include "tune/contest/family.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    DRIFT_PERIOD = 8,  // candidates between two measurements of the reference candidate
    LOST_LIMIT = 3,    // crashes and time-outs in a row after which a kernel is put aside
    LEADERS_STEPS = 3, // configs of the leading kernel after another kernel's default
    FEW_CONFIGS = 8    // of a kernel: too few to make up for a sample that other work on the machine disturbed
};

// Chosen by hand. A change within three deviations is taken for noise. A change beyond these factors is taken for a
// disturbed measurement.
static const double drift_least = 0.8, drift_most = 1.25, drift_deviations = 3;
static const double reference_reach = 1.5; // over the best: a slower candidate takes too long to measure repeatedly
// The share of the defaults' time that is granted to further configs of the leading kernel. On a GPU, compiling seven
// defaults left no time for the 31 other configs of a library: of five contests of 5 s, three kept the library's
// default, and the best config was 1.36 times as fast.
static const double leaders_part = 0.25;
// The share of the contest's seconds for the checks that only a leader gets: the finals make them anyway.
static const double proofs_share = 0.1;
static const double gain_counts = 0.995; // of the best time: a smaller improvement does not reset the patience
static const char where[] = "tune.race";

static void say_progress(const hone_contest_state *state, const char *kernel)
{
    const hone_tune_options *options = &state->question.options;
    if (options->progress == NULL) return;
    double elapsed = hone_trials_elapsed_seconds(&state->trials);
    const hone_candidate *best = hone_standings_best(&state->standings);
    uint32_t done = (uint32_t)state->standings.count, total = state->field.planned > done ? state->field.planned : done;
    double remaining = options->seconds - elapsed;
    if (done > 0) {
        double by_count = elapsed / done * (total - done);
        if (by_count < remaining) remaining = by_count;
    }
    const hone_progress progress = {
        .call = state->question.title,
        .done = done,
        .total = total,
        .kernel = kernel,
        .best_ns = best != NULL ? best->trial.time_ns : 0,
        .best_kernel = best != NULL ? state->field.contestants[best->kernel].ref->kernel.name : NULL,
        .elapsed_seconds = elapsed,
        .remaining_seconds = remaining > 0 ? remaining : 0,
    };
    options->progress(options->progress_ctx, &progress);
}

// Bookkeeping ---------------------------------------------------------------------------------------------------------

hone_budget hone_contest_budget(const hone_contest_state *state)
{
    return (hone_budget){&state->question, &state->trials, &state->field, &state->standings, &state->spending};
}

void hone_contest_reject(hone_contest_state *state, hone_candidate *candidate, hone_failure failure, const char *reason)
{
    hone_assert(failure != HONE_FAILURE_NONE);
    candidate->out = true;
    candidate->trial.failure = failure;
    hone_words_copy(candidate->trial.reason, sizeof candidate->trial.reason, reason);
    const hone_candidate *best = hone_standings_best_of(&state->standings, candidate->kernel);
    state->field.contestants[candidate->kernel].best_ns = best != NULL ? best->rank_ns : 0;
    hone_field_note_failure(&state->field, candidate->kernel, failure, reason);
    hone_known_store(&state->known, &state->question, &state->field, candidate);
    hone_standings_update(&state->standings);
}

static void put_aside_if_lost(hone_contestant *contestant, hone_contest_kernel *row, hone_failure failure)
{
    bool lost = hone_failure_kind_of(failure)->is_lost;
    contestant->lost_in_row = lost ? contestant->lost_in_row + 1 : 0;
    if (contestant->lost_in_row < LOST_LIMIT) return;
    contestant->put_aside = true;
    char reason[sizeof row->reason];
    snprintf(reason, sizeof reason, "put aside after %d in a row: %.200s", LOST_LIMIT, row->reason);
    memcpy(row->reason, reason, sizeof row->reason);
}

// How much of the patience a candidate without a gain uses up. Kernels that are far behind are tried too; where there
// are many, their tries would use up most of the patience before the kernels that may win were searched.
static double patience_of(const hone_contest_state *state, const hone_contestant *contestant)
{
    const double when_behind = 1.0 / 3;
    const hone_budget budget = hone_contest_budget(state);
    return hone_budget_is_far_behind(&budget, contestant) ? when_behind : 1;
}

static void note_passed(hone_contest_state *state, const hone_candidate *candidate)
{
    hone_contestant *contestant = &state->field.contestants[candidate->kernel];
    hone_spending *spending = &state->spending;
    contestant->passed++;
    contestant->lost_in_row = 0;
    if (contestant->best_ns == 0 || candidate->rank_ns < contestant->best_ns) contestant->best_ns = candidate->rank_ns;
    hone_standings_update(&state->standings);
    hone_assert(state->standings.best >= 0); // at least the candidate itself
    double best_ns = hone_standings_best(&state->standings)->rank_ns;
    spending->since_gain += patience_of(state, contestant);
    if (spending->gain_ns > 0 && best_ns >= spending->gain_ns * gain_counts) return;
    spending->gain_ns = best_ns;
    spending->since_gain = 0;
}

// A config of one kernel, before it has a trial.
typedef struct entry {
    uint32_t kernel;
    const hone_config *config;
    bool is_default;      // its kernel's
    double first_seconds; // that it may take to be ready; 0: as long as the contest lasts
} entry;

// Makes an entry with its trial a candidate.
static hone_status enter(
    hone_contest_state *state, const entry *entered, const hone_trial *trial, bool resumed, hone_error *err)
{
    const uint32_t kernel = entered->kernel;
    hone_assert(kernel < state->field.count);
    hone_contestant *contestant = &state->field.contestants[kernel];
    hone_candidate *candidate = hone_standings_add(&state->standings, &state->question.environment->allocator);
    if (candidate == NULL) return hone_fail_memory(err, where);
    *candidate = (hone_candidate){
        .kernel = kernel, .config = *entered->config, .is_default = entered->is_default, .trial = *trial};
    candidate->of_pack = hone_kernel_is_of_pack(contestant->ref);
    candidate->yields = contestant->yields;
    candidate->rank_ns = trial->low_ns / (resumed ? 1 : state->drift.factor);
    candidate->resumed = resumed;
    candidate->raced_ns = trial->time_ns;
    candidate->at_seconds = hone_trials_elapsed_seconds(&state->trials);
    candidate->out = trial->failure != HONE_FAILURE_NONE;
    contestant->tried++;
    state->field.rows[kernel].tried += !trial->same;
    if (!candidate->out) {
        note_passed(state, candidate);
        return HONE_OK;
    }
    state->spending.since_gain += patience_of(state, contestant);
    hone_field_note_failure(&state->field, kernel, trial->failure, trial->reason);
    // Resumed failures come after all resumed candidates that passed, not in the order of time, so they are not "in a
    // row".
    if (!resumed || contestant->passed == 0) put_aside_if_lost(contestant, &state->field.rows[kernel], trial->failure);
    return HONE_OK;
}

// Trying --------------------------------------------------------------------------------------------------------------

static double best_now(const hone_standings *standings, const hone_drift *drift)
{
    const hone_candidate *best = hone_standings_best(standings);
    return best != NULL ? best->rank_ns * drift->factor : 0;
}

static bool is_best_shared(const hone_standings *standings)
{
    const hone_candidate *best = hone_standings_best(standings);
    return best != NULL && hone_trial_shared_its_device(&best->trial);
}

// A small change is noise: applying it would rank later candidates wrongly before or behind earlier ones. A large
// change is not drift either: one of the two measurements was disturbed.
static double believed_drift(const hone_noise *noise, double drift)
{
    double change = fabs(drift - 1);
    bool is_drift = drift > drift_least && drift < drift_most && change > drift_deviations * hone_noise_level(noise);
    return is_drift ? drift : 1;
}

// Chooses the candidate that shows the machine's speed: the same one as long as it is not far behind. True: another one
// from now on.
static bool choose_reference(const hone_standings *standings, hone_drift *drift)
{
    const hone_candidate *best = hone_standings_best(standings);
    hone_assert(best != NULL);
    const hone_candidate *now = drift->reference >= 0 ? &standings->candidates[drift->reference] : NULL;
    if (now != NULL && !now->out && now->rank_ns <= reference_reach * best->rank_ns) return false;
    drift->reference = standings->best;
    return true;
}

// Measures the machine's speed by one candidate that is measured repeatedly, which also checks again that it still
// works. The candidate became the best partly by luck, so later measurements are compared with its first repeated
// measurement and not with its rank.
static hone_status look_at_drift(hone_contest_state *state, hone_error *err)
{
    hone_drift *drift = &state->drift;
    if (state->standings.best < 0 || ++drift->since < DRIFT_PERIOD) return HONE_OK;
    drift->since = 0;
    bool is_new = choose_reference(&state->standings, drift);
    hone_candidate *reference = &state->standings.candidates[drift->reference];
    const hone_try what = {
        .kernel = state->field.contestants[reference->kernel].ref,
        .config = &reference->config,
        // A candidate that leads because another was rejected was not verified as a leader yet.
        .sort = is_new ? HONE_TRY_RACES : HONE_TRY_AGAIN,
        .may_be_cut = true};
    hone_trial trial;
    bool cut;
    hone_status status = hone_trials_try(&state->trials, &what, &trial, &cut, err);
    if (status != HONE_OK || cut || trial.refused) {
        if (is_new) drift->reference = -1;
        return status;
    }
    if (trial.failure != HONE_FAILURE_NONE) {
        hone_contest_reject(state, reference, trial.failure, trial.reason);
        return HONE_OK;
    }
    if (is_new)
        drift->reference_ns = trial.low_ns / drift->factor;
    else
        drift->factor = believed_drift(&state->trials.noise, trial.low_ns / drift->reference_ns);
    return HONE_OK;
}

// The worker cannot run this kernel at all, which is not a failure of the kernel. It is not stored, because it applies
// only to this installation.
static void refuse(hone_field *field, const hone_question *question, uint32_t kernel, const hone_trial *trial)
{
    hone_field_warn_left_out(field, question, kernel, trial->reason);
    hone_contest_kernel *row = &field->rows[kernel];
    field->contestants[kernel].put_aside = field->contestants[kernel].is_refused = true;
    hone_words_copy(row->reason, sizeof row->reason, trial->reason);
}

// Lists the digests of the kernel's binaries that were measured: these are not measured again. The caller frees the
// list.
static hone_status list_digests(
    const hone_standings *standings, const hone_allocator *allocator, uint32_t kernel, hone_try *what, hone_error *err)
{
    uint64_t *digests = hone_alloc_array(allocator, standings->count + 1, sizeof *digests);
    if (digests == NULL) return hone_fail_memory(err, where);
    for (size_t i = 0; i < standings->count; i++) {
        const hone_candidate *candidate = &standings->candidates[i];
        if (candidate->kernel == kernel && !candidate->out && candidate->trial.digest != 0)
            digests[what->digest_count++] = candidate->trial.digest;
    }
    what->digests = digests;
    return HONE_OK;
}

// If the binary is that of another config, that config's measurement counts for both.
static void take_twins_trial(const hone_standings *standings, uint32_t kernel, hone_trial *trial)
{
    for (size_t i = 0; i < standings->count && trial->digest != 0; i++) {
        const hone_candidate *candidate = &standings->candidates[i];
        if (candidate->kernel != kernel || candidate->out || candidate->trial.same ||
            candidate->trial.digest != trial->digest)
            continue;
        const hone_spent spent = trial->spent;
        *trial = candidate->trial;
        trial->spent = spent;
        trial->same = true;
        return;
    }
}

// Tries one candidate. If its binary is that of another config, it takes over the trial of that config.
static hone_status try_new(
    hone_contest_state *state, const entry *tried, hone_trial *out, bool *out_cut, hone_error *err)
{
    const uint32_t kernel = tried->kernel;
    const hone_allocator *allocator = &state->question.environment->allocator;
    hone_try what = {
        .kernel = state->field.contestants[kernel].ref,
        .config = tried->config,
        .best_ns = best_now(&state->standings, &state->drift),
        .is_shared = is_best_shared(&state->standings),
        .is_patient = tried->is_default || state->field.contestants[kernel].size <= FEW_CONFIGS,
        .first_seconds = tried->first_seconds,
        .may_be_cut = state->standings.best >= 0,
    };
    hone_status status = HONE_OK;
    // A config that was measured before is to be measured again, so no digests are sent.
    if (!hone_standings_have(&state->standings, kernel, tried->config))
        status = list_digests(&state->standings, allocator, kernel, &what, err);
    if (status == HONE_OK) status = hone_trials_try(&state->trials, &what, out, out_cut, err);
    if (status == HONE_OK && out->same) take_twins_trial(&state->standings, kernel, out);
    hone_free(allocator, (void *)(uintptr_t)what.digests);
    return status;
}

// beside_ns: the part of spent_ns for preparing and verifying, including the time in which the worker opened the call.
static void note_costs(
    hone_spending *spending, hone_contestant *contestant, const hone_trial *trial, double spent_ns, double beside_ns)
{
    if (trial->spent.prepare_ns > contestant->prepare_ns) contestant->prepare_ns = trial->spent.prepare_ns;
    if (spending->measured++ == 0 || spent_ns < spending->least_ns) spending->least_ns = spent_ns;
    spending->measuring_ns += spent_ns;
    spending->sampling_ns += fmax(spent_ns - beside_ns, 0);
    contestant->measured++;
    contestant->measuring_ns += spent_ns;
    contestant->preparing_ns += trial->spent.prepare_ns;
}

static double beside_samples_ns(const hone_trials *trials)
{
    return trials->spent.prepare_ns + trials->spent.verify_ns;
}

static hone_status measure(hone_contest_state *state, const entry *tried, hone_error *err)
{
    hone_trial trial;
    bool cut;
    hone_contestant *contestant = &state->field.contestants[tried->kernel];
    hone_assert(contestant->space != NULL); // a kernel that does not compete is not tried
    uint64_t start = hone_trials_now(&state->trials);
    const double before_ns = beside_samples_ns(&state->trials);
    hone_status status = try_new(state, tried, &trial, &cut, err);
    if (status != HONE_OK || cut) return status;
    if (trial.refused) {
        refuse(&state->field, &state->question, tried->kernel, &trial);
        return HONE_OK;
    }
    status = enter(state, tried, &trial, false, err);
    if (status != HONE_OK) return status;
    const hone_candidate *candidate = &state->standings.candidates[state->standings.count - 1];
    hone_contestant_tell(contestant, tried->config, candidate->rank_ns, trial.failure);
    if (!candidate->out && state->question.options.tuner == NULL && !state->field.exhaustive)
        hone_family_tell(&state->field, &state->standings, tried->kernel, tried->config, candidate->rank_ns);
    hone_known_store(&state->known, &state->question, &state->field, candidate);
    note_costs(
        &state->spending, contestant, &trial, (double)(hone_trials_now(&state->trials) - start),
        beside_samples_ns(&state->trials) - before_ns);
    return look_at_drift(state, err);
}

static hone_status begin_step(const hone_contest_state *state, uint32_t kernel, hone_error *err)
{
    if (hone_question_is_cancelled(&state->question)) return hone_fail(err, HONE_CANCELLED, where, "cancelled");
    say_progress(state, state->field.contestants[kernel].ref->kernel.name);
    return HONE_OK;
}

static hone_status take(hone_contest_state *state, const entry *next, hone_error *err)
{
    hone_status status = begin_step(state, next->kernel, err);
    return status == HONE_OK ? measure(state, next, err) : status;
}

static hone_status try_config(hone_contest_state *state, uint32_t kernel, const hone_config *config, hone_error *err)
{
    const hone_contestant *contestant = &state->field.contestants[kernel];
    const bool is_default = contestant->has_default && hone_config_equal(config, &contestant->default_config);
    return take(state, &(entry){kernel, config, is_default, 0}, err);
}

// The order of candidates ---------------------------------------------------------------------------------------------

// Candidates that passed come before those that failed, and fast ones before slow ones.
static bool comes_before(const hone_resumed *a, const hone_resumed *b)
{
    bool a_failed = a->trial.failure != HONE_FAILURE_NONE, b_failed = b->trial.failure != HONE_FAILURE_NONE;
    if (a_failed != b_failed) return b_failed;
    return !a_failed && a->trial.low_ns < b->trial.low_ns;
}

static const hone_resumed *next_resumed(const hone_known *known, const hone_field *field)
{
    const hone_resumed *first = NULL;
    for (size_t i = 0; i < known->count; i++) {
        const hone_resumed *one = &known->resumed[i];
        const hone_contestant *contestant = &field->contestants[one->kernel];
        if (one->entered || contestant->space == NULL || contestant->put_aside) continue;
        if (first == NULL || comes_before(one, first)) first = one;
    }
    return first;
}

// Enters all candidates that an earlier contest measured, as far as this contest's evaluations go. A time that the
// device cannot reach is measured again.
static hone_status race_resumed(hone_contest_state *state, hone_error *err)
{
    hone_status status = HONE_OK;
    const hone_resumed *next;
    const hone_budget budget = hone_contest_budget(state);
    while (status == HONE_OK && hone_budget_has_evaluations(&budget) &&
           (next = next_resumed(&state->known, &state->field)) != NULL) {
        const hone_contestant *contestant = &state->field.contestants[next->kernel];
        state->known.resumed[next - state->known.resumed].entered = true;
        if (hone_standings_have(&state->standings, next->kernel, &next->config) ||
            hone_bound_space_check(contestant->space, &next->config, NULL) != HONE_OK)
            continue;
        status = begin_step(state, next->kernel, err);
        bool is_default = contestant->has_default && hone_config_equal(&next->config, &contestant->default_config);
        const entry resumed = {next->kernel, &next->config, is_default, 0};
        bool is_doubtful = false;
        hone_trial trial = next->trial;
        if (trial.failure == HONE_FAILURE_NONE) take_twins_trial(&state->standings, next->kernel, &trial);
        if (status == HONE_OK) status = hone_trials_doubt(&state->trials, &trial, &is_doubtful, err);
        if (status != HONE_OK) return status;
        status = is_doubtful ? measure(state, &resumed, err) : enter(state, &resumed, &trial, true, err);
    }
    return status;
}

// A function of Python imports its packages. A new process has yet to read them, and may have to compile them.
static double seconds_of_interpreter(const hone_contest_state *state, uint32_t kernel)
{
    const double most = 30, seconds = 2 * state->question.options.seconds;
    return !hone_kernel_is_interpreted(state->field.contestants[kernel].ref) ? 0 : seconds < most ? seconds : most;
}

// Tries a kernel's default. Time that it uses beyond its share does not reduce the time of the others.
static hone_status take_default(hone_contest_state *state, const entry *first, double share, hone_error *err)
{
    hone_trials *trials = &state->trials;
    const uint64_t start = hone_trials_now(trials), beyond = (uint64_t)((first->first_seconds - share) * 1e9);
    trials->end_ns += beyond;
    trials->race_until_ns += beyond;
    hone_status status = take(state, first, err);
    const double took = (double)(hone_trials_now(trials) - start), over = took - share * 1e9;
    const uint64_t used = over <= 0 ? 0 : over < (double)beyond ? (uint64_t)over : beyond;
    trials->end_ns -= beyond - used;
    trials->race_until_ns -= beyond - used;
    return status;
}

// The default may compile for long, or never return. This contest cannot tell which; a longer one may.
static void note_unready(hone_contest_state *state, uint32_t kernel, double seconds)
{
    hone_contestant *contestant = &state->field.contestants[kernel];
    hone_candidate candidate = {.kernel = kernel, .config = contestant->default_config, .out = true};
    candidate.trial.failure = HONE_FAILURE_TIMEOUT;
    hone_print(
        candidate.trial.reason, sizeof candidate.trial.reason,
        "was not ready after %.3g s, its share of the contest's time: give the contest more seconds", seconds);
    contestant->put_aside = contestant->is_unready = true;
    hone_words_copy(state->field.rows[kernel].reason, sizeof state->field.rows[kernel].reason, candidate.trial.reason);
    // A function of Python has had seconds of its own, and may never return. For other kernels the short contest is the
    // reason.
    if (!hone_kernel_is_interpreted(contestant->ref)) return;
    hone_field_note_failure(&state->field, kernel, HONE_FAILURE_TIMEOUT, candidate.trial.reason);
    state->field.rows[kernel].tried++;
    hone_known_store_unready(&state->known, &state->question, &state->field, &candidate);
}

// Tries a kernel's default for a limited time, so that a compiler that needs minutes leaves time for the others. A
// longer contest gives it more.
//   least   seconds that it may take to be ready, if its share is less
static hone_status race_default(hone_contest_state *state, uint32_t kernel, double least, hone_error *err)
{
    hone_contestant *contestant = &state->field.contestants[kernel];
    const hone_config config = contestant->default_config;
    const uint64_t start = hone_trials_now(&state->trials);
    if (hone_standings_have(&state->standings, kernel, &config)) return HONE_OK;
    const hone_budget budget = hone_contest_budget(state);
    const double share = fmax(hone_budget_first_seconds(&budget, kernel), least),
                 granted = fmax(share, seconds_of_interpreter(state, kernel));
    hone_status status = take_default(state, &(entry){kernel, &config, true, granted}, share, err);
    if (status != HONE_OK || contestant->tried > 0 || contestant->put_aside) return status;
    note_unready(state, kernel, (double)(hone_trials_now(&state->trials) - start) * 1e-9);
    return HONE_OK;
}

// The next config of one kernel. A constraint that cannot be evaluated for some configs ends the search of its kernel,
// not the contest: the end of a search and this error are both HONE_NOT_FOUND.
static hone_status next_of(hone_contest_state *state, size_t kernel, hone_config *out, hone_error *err)
{
    hone_error why = {0};
    hone_contestant *contestant = &state->field.contestants[kernel];
    size_t left = state->question.options.evaluations - state->standings.count;
    hone_status status = hone_contest_next_config(&state->trials, contestant, left, out, &why);
    if (status == HONE_OK) return HONE_OK;
    if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(err, where);
    if (status == HONE_CANCELLED) return hone_fail(err, status, where, "%s", why.message);
    contestant->exhausted = true;
    hone_contest_kernel *row = &state->field.rows[kernel];
    if (status != HONE_NOT_FOUND) hone_words_copy(row->reason, sizeof row->reason, why.message);
    return HONE_NOT_FOUND;
}

// The least cost of a further config of the leading kernel, in ns, estimated from its first configs: a compiler takes
// as long for each, and so do the runs. What a library does once, and the checks of a leader, are already done.
static double least_step_ns(const hone_contestant *leader, const hone_candidate *best)
{
    return leader->ref->kernel.code != NULL ? hone_budget_cost_ns(leader) : best->trial.spent.run_ns;
}

// Tries a few further configs of the leading kernel, as long as there is credit for them and evaluations are left for
// the default of every kernel. The time that they take is subtracted from the credit.
static hone_status race_leader(hone_contest_state *state, double *credit_ns, hone_error *err)
{
    const hone_budget budget = hone_contest_budget(state);
    hone_status status = HONE_OK;
    const uint64_t spared = (uint64_t)state->standings.count + state->field.count;
    for (int n = 0; n < LEADERS_STEPS && status == HONE_OK && state->standings.best >= 0 &&
                    spared + (uint64_t)n < state->question.options.evaluations && hone_budget_goes_on(&budget);
         n++) {
        const hone_candidate *best = hone_standings_best(&state->standings);
        const uint32_t kernel = best->kernel;
        const hone_contestant *leader = &state->field.contestants[kernel];
        const uint64_t start = hone_trials_now(&state->trials);
        hone_config config;
        if (!hone_contestant_is_left(leader) || leader->measured == 0) break;
        if (*credit_ns <= least_step_ns(leader, best)) break;
        status = next_of(state, kernel, &config, err);
        if (status != HONE_OK) break;
        state->spending.steps++;
        status = take(state, &(entry){kernel, &config, false, 0}, err);
        *credit_ns -= (double)(hone_trials_now(&state->trials) - start);
    }
    return status == HONE_NOT_FOUND ? HONE_OK : status;
}

// Work that is done once, before the first default has a time (the reference, what a worker loads), must not use up the
// time that the defaults of the other kernels need: half of the contest's seconds. Returns the ns that were added to
// the time that is left.
static uint64_t grant_defaults(hone_trials *trials)
{
    const uint64_t least = hone_trials_until(trials, 0.5);
    if (least <= trials->race_until_ns) return 0;
    const uint64_t granted = least - trials->race_until_ns;
    trials->end_ns += granted;
    trials->race_until_ns += granted;
    return granted;
}

// The kernel that answers without tuning comes first; it need not be the first in the registry. Where seconds are few,
// the last kernels are not tried at all, and without a time of the default nothing could be compared with it. The
// others follow in their order.
static uint32_t default_at(uint32_t place, uint32_t first)
{
    return place == 0 ? first : place <= first ? place - 1 : place;
}

static hone_status race_defaults(hone_contest_state *state, hone_error *err)
{
    hone_status status = HONE_OK;
    const hone_budget budget = hone_contest_budget(state);
    const hone_contestant *standing = hone_field_default(&state->field);
    const uint32_t first = standing != NULL ? (uint32_t)(standing - state->field.contestants) : 0;
    bool has_begun = false;
    uint64_t granted_ns = 0;
    double credit_ns = 0;
    for (uint32_t n = 0; n < state->field.count && status == HONE_OK && hone_budget_has_evaluations(&budget); n++) {
        const uint32_t i = default_at(n, first);
        hone_contestant *contestant = &state->field.contestants[i];
        const uint64_t start = hone_trials_now(&state->trials);
        // When the time is over, the search for the first default that passes continues. Otherwise a slow default would
        // keep the later ones from being tried, and the contest would have no candidate.
        if (contestant->space == NULL || !contestant->has_default || contestant->put_aside) continue;
        contestant->is_late = n > 0 && hone_platform_facts_of(contestant->ref->kernel.platform)->is_module;
        if (contestant->is_late) continue;
        if (state->standings.best >= 0 && !hone_budget_has_time(&budget)) continue;
        const size_t before = state->standings.count;
        status = race_default(state, i, 0, err);
        if (!has_begun && state->standings.best >= 0 && state->standings.count > before) {
            has_begun = true;
            granted_ns = grant_defaults(&state->trials);
        }
        credit_ns += leaders_part * (double)(hone_trials_now(&state->trials) - start);
        if (status == HONE_OK) status = race_leader(state, &credit_ns, err);
    }
    state->trials.end_ns -= granted_ns;
    state->trials.race_until_ns -= granted_ns;
    return status;
}

// Tries the config of the store's choice.
static hone_status race_incumbent(hone_contest_state *state, hone_error *err)
{
    const hone_incumbent *incumbent = &state->known.incumbent;
    const hone_budget budget = hone_contest_budget(state);
    if (!incumbent->is_there || state->field.contestants[incumbent->kernel].space == NULL ||
        hone_standings_have(&state->standings, incumbent->kernel, &incumbent->config) ||
        !hone_budget_has_evaluations(&budget))
        return HONE_OK;
    return take(state, &(entry){incumbent->kernel, &incumbent->config, false, 0}, err);
}

// Chooses the next config to try after the defaults: the best config of a kernel that differs in instruction set alone,
// if this kernel may win by it, else a config of the most promising kernel. Returns HONE_NOT_FOUND when no config is
// left.
static hone_status choose_next(
    hone_contest_state *state, uint32_t *out_kernel, hone_config *out_config, hone_error *err)
{
    const hone_budget budget = hone_contest_budget(state);
    if (hone_family_next(&state->field, &state->standings, out_kernel, out_config)) return HONE_OK;
    for (;;) {
        int64_t chosen;
        hone_status status = hone_budget_choose(&budget, &chosen, err);
        if (status != HONE_OK) return status;
        if (chosen < 0) return HONE_NOT_FOUND;
        hone_assert((size_t)chosen < state->field.count);
        *out_kernel = (uint32_t)chosen;
        status = next_of(state, (size_t)chosen, out_config, err);
        if (status == HONE_OK) state->spending.steps++;
        if (status != HONE_NOT_FOUND) return status;
    }
}

// Tries the default that answers without tuning: the other candidates are judged by it. If it fails, the kernels follow
// in their order until one passes.
static hone_status race_first_default(hone_contest_state *state, hone_error *err)
{
    const hone_contestant *first = hone_field_default(&state->field);
    hone_status status = HONE_OK;
    if (first != NULL) status = race_default(state, (uint32_t)(first - state->field.contestants), 0, err);
    for (uint32_t i = 0; i < state->field.count && status == HONE_OK && state->standings.best < 0; i++)
        if (state->field.contestants[i].space != NULL) status = race_default(state, i, 0, err);
    return status;
}

static hone_status race_for_tuner(hone_contest_state *state, hone_error *err)
{
    hone_status status = race_first_default(state, err);
    if (status == HONE_OK) status = race_incumbent(state, err);
    if (status == HONE_OK) status = hone_contest_run_tuner(state, try_config, err);
    if (status == HONE_OK) say_progress(state, NULL);
    return status;
}

static uint32_t count_late(const hone_field *field)
{
    uint32_t count = 0;
    for (size_t i = 0; i < field->count; i++)
        count += field->contestants[i].is_late;
    return count;
}

// Runs the searches until until_ns at most, and as long as evaluations are left for the defaults that wait.
static hone_status race_searches(hone_contest_state *state, uint64_t until_ns, hone_error *err)
{
    hone_status status = HONE_OK;
    const hone_budget budget = hone_contest_budget(state);
    const size_t spared = count_late(&state->field);
    while (status == HONE_OK && hone_budget_goes_on(&budget) && hone_trials_now(&state->trials) < until_ns &&
           state->standings.count + spared < state->question.options.evaluations) {
        uint32_t kernel;
        hone_config config;
        status = choose_next(state, &kernel, &config, err);
        if (status == HONE_OK) status = take(state, &(entry){kernel, &config, false, 0}, err);
    }
    return status == HONE_NOT_FOUND ? HONE_OK : status; // every config was tried
}

static uint64_t race_left_ns(const hone_contest_state *state)
{
    const uint64_t now = hone_trials_now(&state->trials);
    return now < state->trials.race_until_ns ? state->trials.race_until_ns - now : 0;
}

// Tries the defaults that had to wait, each for half of the time that is left then.
static hone_status race_late(hone_contest_state *state, hone_error *err)
{
    const double half = 0.5;
    hone_status status = HONE_OK;
    const hone_budget budget = hone_contest_budget(state);
    for (uint32_t i = 0; i < state->field.count && status == HONE_OK; i++) {
        hone_contestant *contestant = &state->field.contestants[i];
        if (!contestant->is_late) continue;
        contestant->is_late = false;
        const bool has_time = hone_budget_has_evaluations(&budget) && hone_budget_has_time(&budget);
        if (contestant->put_aside || (state->standings.best >= 0 && !has_time)) continue;
        status = race_default(state, i, half * 1e-9 * (double)race_left_ns(state), err);
    }
    return status;
}

hone_status hone_contest_race(hone_contest_state *state, hone_error *err)
{
    state->trials.proofs_ns = proofs_share * 1e9 * state->question.options.seconds;
    hone_status status = race_resumed(state, err);
    state->spending.since_gain = 0; // patience counts only what this contest tries
    if (status == HONE_OK && state->question.options.tuner != NULL) return race_for_tuner(state, err);
    if (status == HONE_OK) status = race_defaults(state, err);
    if (status == HONE_OK) status = race_incumbent(state, err);
    const uint64_t halfway_ns = hone_trials_now(&state->trials) + race_left_ns(state) / 2;
    if (status == HONE_OK) status = race_searches(state, halfway_ns, err);
    if (status == HONE_OK) status = race_late(state, err);
    if (status == HONE_OK) status = race_searches(state, UINT64_MAX, err);
    if (status == HONE_OK) say_progress(state, NULL);
    return status;
}
