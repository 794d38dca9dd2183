// Checks whether a stored choice is still right. The choice is measured in rounds against the candidates that were next
// best when it was chosen, and against the default. A disturbance of a round disturbs all of its samples, so the ratio
// of two entrants says more than two times that were measured apart.
//
// The regret of the choice is its ratio to the fastest entrant, less 1, with the 95 % interval of statistics.c. Blocks
// of rounds continue until that interval lies on one side of the threshold: at least two blocks and at most five. If
// the interval still contains the threshold after five, nothing is claimed. The fastest entrant is found by the same
// samples that give its ratio, so the regret looks larger than it is, by the luck of the best of several. The interval,
// and a tie of half a percent, make up for that.
//
// Before that the choice passes alone the checks that a contest's winner passes. A choice that is rejected twice is
// reported, so that it is taken back. Its place is taken by the next best: the candidate that is fastest by what is
// stored and passes the same checks.
#include "tune/contest/contest.h"

#include "base/error.h"
#include "registry/failure_kinds.h"
#include "tune/rule/statistics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST = HONE_MAX_FINALISTS,
    BEST_COUNT = 4, // of all kernels, by the stored times
    BLOCK_ROUNDS = 8,
    LEAST_BLOCKS = 2,
    MOST_BLOCKS = 5,
    RETAKES = 2,    // of a disturbed sample
    MOST_FALLEN = 3 // rejected configs of a kernel after which no other config of it is tried as the next best
};

// Chosen by hand, like those of the finals (finals.c).
static const double tie = 0.005;
static const uint64_t pause_ns = 50000000;
static const char where[] = "tune.audit";

typedef struct audit {
    hone_contest_state *state;
    const hone_call *const *before;
    size_t before_count;
    const hone_decision *stored;
    double threshold;
    hone_audited *out;
    hone_decision *next;
    uint32_t count;
    hone_candidate entrants[MOST]; // the first is the choice
    uint32_t rounds;
    double samples[MOST][HONE_MAX_ROUNDS];
} audit;

// Entrants ------------------------------------------------------------------------------------------------------------

static bool has_entered(const audit *a, uint32_t kernel, const hone_config *config)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (a->entrants[i].kernel == kernel && hone_config_equal(&a->entrants[i].config, config)) return true;
    return false;
}

static bool kernel_has_entered(const audit *a, uint32_t kernel)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (a->entrants[i].kernel == kernel) return true;
    return false;
}

static void enter(audit *a, uint32_t kernel, const hone_config *config, bool is_default)
{
    const hone_contestant *contestant = &a->state->field.contestants[kernel];
    if (a->count == MOST || has_entered(a, kernel, config)) return;
    if (hone_bound_space_check(contestant->space, config, NULL) != HONE_OK) return;
    a->entrants[a->count++] = (hone_candidate){.kernel = kernel, .config = *config, .is_default = is_default};
}

static bool enter_choice(audit *a)
{
    const hone_decision *stored = a->stored;
    for (uint32_t i = 0; i < a->state->field.count; i++) {
        const hone_kernel *kernel = &a->state->field.contestants[i].ref->kernel;
        if (a->state->field.contestants[i].space != NULL && strcmp(kernel->name, stored->kernel) == 0 &&
            kernel->platform == stored->platform && kernel->backend == stored->backend)
            enter(a, i, &stored->config, false);
    }
    return a->count > 0;
}

// The stored measurement with the least time that has not entered. other: only of kernels of which no config has
// entered.
static const hone_resumed *next_best(const audit *a, bool other)
{
    const hone_resumed *best = NULL;
    for (size_t i = 0; i < a->state->known.count; i++) {
        const hone_resumed *measured = &a->state->known.resumed[i];
        const hone_contestant *contestant = &a->state->field.contestants[measured->kernel];
        if (measured->trial.failure != HONE_FAILURE_NONE || has_entered(a, measured->kernel, &measured->config))
            continue;
        if (hone_bound_space_check(contestant->space, &measured->config, NULL) != HONE_OK) continue;
        if (best != NULL && measured->trial.time_ns >= best->trial.time_ns) continue;
        if (!other || !kernel_has_entered(a, measured->kernel)) best = measured;
    }
    return best;
}

static void enter_default(audit *a)
{
    const hone_contestant *contestant = hone_field_default(&a->state->field);
    if (contestant == NULL) return;
    uint32_t kernel = (uint32_t)(contestant - a->state->field.contestants);
    const hone_config *config = &contestant->default_config;
    bool is_choice = has_entered(a, kernel, config);
    enter(a, kernel, config, true);
    if (is_choice) a->entrants[0].is_default = true;
}

static bool is_known_to_fail(const audit *a, uint32_t kernel, const hone_config *config)
{
    const hone_resumed *known = hone_known_find(&a->state->known, kernel, config);
    return known != NULL && known->trial.failure != HONE_FAILURE_NONE;
}

static void enter_rivals(audit *a)
{
    const hone_resumed *rival;
    enter_default(a);
    for (int i = 0; i < BEST_COUNT && (rival = next_best(a, false)) != NULL; i++)
        enter(a, rival->kernel, &rival->config, false);
    while (a->count < MOST && (rival = next_best(a, true)) != NULL)
        enter(a, rival->kernel, &rival->config, false);
    // Kernels of which nothing is stored enter with their default.
    for (uint32_t i = 0; i < a->state->field.count; i++) {
        const hone_contestant *contestant = &a->state->field.contestants[i];
        if (contestant->space == NULL || kernel_has_entered(a, i)) continue;
        if (!is_known_to_fail(a, i, &contestant->default_config)) enter(a, i, &contestant->default_config, false);
    }
}

static void leave(audit *a, uint32_t index)
{
    a->count--;
    memmove(&a->entrants[index], &a->entrants[index + 1], (a->count - index) * sizeof a->entrants[0]);
}

// The candidate was right once. From now on it is known to fail.
static void store_failure(audit *a, const hone_candidate *candidate)
{
    hone_known_store(&a->state->known, &a->state->question, &a->state->field, candidate);
}

// Measuring -----------------------------------------------------------------------------------------------------------

// Reports progress to the caller, who can cancel the audit between two steps.
static hone_status begin_step(const audit *a, hone_error *err)
{
    const hone_contest_state *state = a->state;
    const hone_tune_options *options = &state->question.options;
    const hone_progress progress = {
        .call = state->question.title,
        .done = a->rounds,
        .total = MOST_BLOCKS * BLOCK_ROUNDS,
        .best_ns = a->entrants[0].trial.time_ns,
        .best_kernel = a->stored->kernel,
        .elapsed_seconds = hone_trials_elapsed_seconds(&state->trials),
        .remaining_seconds = -1,
    };
    if (options->progress != NULL) options->progress(options->progress_ctx, &progress);
    return hone_question_is_cancelled(&state->question) ? hone_fail(err, HONE_CANCELLED, where, "cancelled") : HONE_OK;
}

// Tries one candidate alone: whether it runs, whether it is right, and how long it takes.
static hone_status try_alone(audit *a, hone_candidate *candidate, hone_error *err)
{
    bool cut;
    hone_contest_state *state = a->state;
    const hone_try what = {.kernel = state->field.contestants[candidate->kernel].ref, .config = &candidate->config};
    hone_status status = begin_step(a, err);
    return status == HONE_OK ? hone_trials_try(&state->trials, &what, &candidate->trial, &cut, err) : status;
}

// Runs all checks that a contest's winner passes.
static hone_status examine(audit *a, hone_candidate *candidate, hone_error *err)
{
    hone_contest_state *state = a->state;
    hone_status status = try_alone(a, candidate, err);
    if (status != HONE_OK || candidate->trial.failure != HONE_FAILURE_NONE) return status;
    const hone_kernel_ref *kernel = state->field.contestants[candidate->kernel].ref;
    hone_confirming how = {.seconds = state->question.options.seconds};
    status = hone_trials_confirm(&state->trials, kernel, candidate, &how, err);
    if (status != HONE_OK || candidate->trial.failure != HONE_FAILURE_NONE) return status;
    bool is_done;
    status = hone_contest_verify_smaller(state, candidate, false, &is_done, err);
    if (status != HONE_OK || candidate->trial.failure != HONE_FAILURE_NONE) return status;
    return hone_contest_verify_first_runs(state, candidate, err);
}

// Runs the checks of a winner on the choice. A choice that is rejected is checked again in a new process, because
// neither what another candidate left in this process nor an hour in which the machine was busy may take a choice back.
// A failure as racy is final, because two threads collide only by chance. So is a choice that is wrong again after
// another of its own calls in a process that runs nothing else: a value that it keeps from one call is used in another.
static hone_status examine_choice(audit *a, hone_error *err)
{
    hone_candidate *choice = &a->entrants[0];
    hone_status status = examine(a, choice, err);
    if (status != HONE_OK || choice->trial.failure == HONE_FAILURE_NONE) return status;
    if (choice->trial.refused) return hone_fail(err, HONE_UNSUPPORTED, where, "%s", choice->trial.reason);
    if (choice->trial.failure == HONE_FAILURE_RACY) return HONE_OK;
    const hone_trial first = choice->trial;
    hone_sandbox_drop(&a->state->trials.sandbox);
    status = examine(a, choice, err);
    const bool is_wrong = first.failure == HONE_FAILURE_WRONG || first.failure == HONE_FAILURE_PARTIAL;
    if (status == HONE_OK && choice->trial.failure == HONE_FAILURE_NONE && is_wrong)
        status = hone_contest_verify_after(a->state, a->before, a->before_count, choice, err);
    if (status == HONE_OK && choice->trial.failure == HONE_FAILURE_NONE)
        snprintf(
            a->out->reason, sizeof a->out->reason, "was rejected once (%s: %.120s), and passed in a new process",
            hone_failure_name(first.failure), first.reason);
    return status;
}

// Handles an entrant whose trial has failed. *out_goes_on: the choice is still valid. Any other rejected entrant is
// removed.
static hone_status fall_out(audit *a, uint32_t index, bool *out_goes_on, hone_error *err)
{
    if (index > 0) {
        const hone_candidate *entrant = &a->entrants[index];
        if (hone_failure_kind_of(entrant->trial.failure)->is_wrong) store_failure(a, entrant);
        leave(a, index);
        return HONE_OK;
    }
    hone_status status = examine_choice(a, err);
    *out_goes_on = a->entrants[0].trial.failure == HONE_FAILURE_NONE;
    return status;
}

static hone_status fall_out_in_rounds(audit *a, const hone_rounds_answer *block, bool *out_goes_on, hone_error *err)
{
    hone_trial *trial = &a->entrants[block->failed].trial;
    trial->failure = block->failure;
    hone_words_copy(trial->reason, sizeof trial->reason, block->reason);
    return fall_out(a, block->failed, out_goes_on, err);
}

// Runs the checks of a winner on one entrant, alone.
static hone_status confirm(audit *a, uint32_t index, bool *out_goes_on, hone_error *err)
{
    hone_candidate *entrant = &a->entrants[index];
    hone_confirming how = {.seconds = a->state->question.options.seconds};
    hone_status status = begin_step(a, err);
    if (status == HONE_OK)
        status = hone_trials_confirm(
            &a->state->trials, a->state->field.contestants[entrant->kernel].ref, entrant, &how, err);
    if (status != HONE_OK || entrant->trial.failure == HONE_FAILURE_NONE) return status;
    return fall_out(a, index, out_goes_on, err);
}

static hone_status try_rivals(audit *a, hone_error *err)
{
    bool unused = true;
    for (uint32_t i = 1; i < a->count;) {
        hone_status status = try_alone(a, &a->entrants[i], err);
        if (status == HONE_OK && a->entrants[i].trial.failure == HONE_FAILURE_NONE)
            i++;
        else if (status == HONE_OK)
            status = fall_out(a, i, &unused, err);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

static hone_status ask(audit *a, uint32_t block, hone_rounds_answer *out, hone_error *err)
{
    hone_contest_state *state = a->state;
    const hone_tune_options *options = &state->question.options;
    hone_block asked = {
        .count = a->count,
        .rounds = BLOCK_ROUNDS,
        .seed = options->seed + block + 1,
        .seconds = options->seconds / MOST_BLOCKS,
    };
    for (uint32_t i = 0; i < a->count; i++) {
        asked.retakes[i] = RETAKES;
        asked.finalists[i] = &a->entrants[i];
        asked.kernels[i] = state->field.contestants[a->entrants[i].kernel].ref;
    }
    return hone_trials_run_rounds(&state->trials, &asked, out, err);
}

// The worker was lost while all entrants ran in it. Runs each alone to find the one that caused the loss.
static hone_status find_culprits(audit *a, bool *out_goes_on, hone_error *err)
{
    uint32_t before = a->count;
    for (uint32_t i = 0; i < a->count && *out_goes_on;) {
        const uint32_t count = a->count;
        hone_status status = confirm(a, i, out_goes_on, err);
        if (status != HONE_OK) return status;
        i += a->count == count;
    }
    if (a->count < before || !*out_goes_on) return HONE_OK;
    return hone_fail(err, HONE_KERNEL_FAILED, where, "the worker was lost in the rounds, and nobody lost it alone");
}

static void add_samples(audit *a, const hone_rounds_answer *block)
{
    for (uint32_t r = 0; r < block->rounds && a->rounds < HONE_MAX_ROUNDS; r++, a->rounds++)
        for (uint32_t i = 0; i < a->count; i++)
            a->samples[i][a->rounds] = block->samples[i][r];
}

static hone_interval regret_over(const audit *a, uint32_t rival)
{
    hone_interval ratio = hone_ratio(a->samples[rival], a->samples[0], a->rounds, a->state->question.options.seed);
    return (hone_interval){ratio.middle - 1, ratio.low - 1, ratio.high - 1};
}

// Finds the entrant to which the choice has the largest regret; the choice itself if there is none.
static uint32_t find_fastest(const audit *a, hone_interval *out_regret)
{
    uint32_t best = 0;
    *out_regret = (hone_interval){0, 0, 0};
    for (uint32_t i = 1; i < a->count; i++) {
        hone_interval regret = regret_over(a, i);
        if (regret.middle <= out_regret->middle) continue;
        *out_regret = regret;
        best = i;
    }
    return best;
}

static bool is_certain(const audit *a)
{
    hone_interval regret;
    if (find_fastest(a, &regret) == 0) return true;
    return regret.low > a->threshold || regret.high < a->threshold;
}

// Runs rounds until it is clear on which side of the threshold the choice is. After a candidate was rejected they start
// again. Rounds are for times, and verify one run of each entrant.
static hone_status run_rounds(audit *a, bool *out_goes_on, hone_error *err)
{
    hone_rounds_answer block;
    a->rounds = 0;
    for (uint32_t b = 0; b < MOST_BLOCKS && *out_goes_on; b++) {
        hone_error why = {0};
        hone_status status = begin_step(a, err);
        if (status != HONE_OK) return status;
        status = ask(a, b, &block, &why);
        if (status != HONE_OK && status != HONE_KERNEL_FAILED) return hone_fail(err, status, where, "%s", why.message);
        bool fell = status == HONE_KERNEL_FAILED || block.failure != HONE_FAILURE_NONE;
        bool lost = fell && (status == HONE_KERNEL_FAILED || block.failed >= a->count);
        if (lost)
            status = find_culprits(a, out_goes_on, err);
        else if (fell)
            status = fall_out_in_rounds(a, &block, out_goes_on, err);
        if (status != HONE_OK) return status;
        if (fell) {
            a->rounds = 0;
            continue;
        }
        add_samples(a, &block);
        bool late = hone_trials_now(&a->state->trials) >= a->state->trials.end_ns;
        if (b + 1 >= LEAST_BLOCKS && (late || is_certain(a))) break;
        hone_trials_pause(&a->state->trials, pause_ns);
    }
    if (*out_goes_on && a->rounds == 0)
        return hone_fail(
            err, HONE_KERNEL_FAILED, where, "a candidate was rejected in every one of %d blocks", MOST_BLOCKS);
    return HONE_OK;
}

// An entrant is not reported as faster if it would not win a contest: the fastest rival passes all checks, too.
static hone_status compare(audit *a, bool *out_goes_on, hone_error *err)
{
    for (uint32_t before = a->count + 1; *out_goes_on && a->count < before;) {
        hone_interval regret;
        before = a->count;
        hone_status status = run_rounds(a, out_goes_on, err);
        if (status != HONE_OK || !*out_goes_on) return status;
        const uint32_t fastest = find_fastest(a, &regret);
        if (fastest == 0 || !hone_audit_is_flipped(&regret)) return HONE_OK;
        status = confirm(a, fastest, out_goes_on, err);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

// Results -------------------------------------------------------------------------------------------------------------

static hone_interval time_of(const audit *a, uint32_t entrant)
{
    double copy[HONE_MAX_ROUNDS];
    memcpy(copy, a->samples[entrant], a->rounds * sizeof copy[0]);
    return hone_median(copy, a->rounds);
}

static void fill_best(const audit *a, uint32_t index)
{
    hone_audited *out = a->out;
    const hone_candidate *best = &a->entrants[index];
    const hone_kernel_ref *ref = a->state->field.contestants[best->kernel].ref;
    snprintf(out->best_kernel, sizeof out->best_kernel, "%s", ref->kernel.name);
    hone_config_json(ref->space, &best->config, out->best_config, sizeof out->best_config);
    out->best_ns = time_of(a, index).middle;
}

bool hone_audit_is_flipped(const hone_interval *regret)
{
    return regret->middle > tie && regret->low > 0;
}

static void fill(const audit *a)
{
    hone_audited *out = a->out;
    hone_interval regret, now = time_of(a, 0);
    out->time_ns = now.middle;
    out->low_ns = now.low;
    out->high_ns = now.high;
    out->rivals = a->count - 1;
    out->rounds = a->rounds;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->entrants[i].is_default) out->default_ns = time_of(a, i).middle;
    fill_best(a, find_fastest(a, &regret));
    out->regret = regret.middle;
    out->regret_low = regret.low;
    out->regret_high = regret.high;
    out->flipped = hone_audit_is_flipped(&regret);
    if (out->stored_ns > 0) out->drift = out->time_ns / out->stored_ns - 1;
}

// The next best -------------------------------------------------------------------------------------------------------

static uint32_t fallen_of(const audit *a, uint32_t kernel)
{
    uint32_t fallen = 0;
    for (size_t i = 0; i < a->state->known.count; i++) {
        const hone_resumed *one = &a->state->known.resumed[i];
        fallen += one->kernel == kernel && one->entered && one->trial.failure != HONE_FAILURE_NONE;
    }
    return fallen;
}

// Finds the stored measurement with the least time that was not tried yet; NULL: none is left.
static hone_resumed *find_next(const audit *a)
{
    hone_resumed *best = NULL;
    const hone_candidate *choice = &a->entrants[0];
    for (size_t i = 0; i < a->state->known.count; i++) {
        hone_resumed *one = &a->state->known.resumed[i];
        const hone_contestant *contestant = &a->state->field.contestants[one->kernel];
        if (one->entered || one->trial.failure != HONE_FAILURE_NONE || contestant->space == NULL) continue;
        if (one->kernel == choice->kernel && hone_config_equal(&one->config, &choice->config)) continue;
        if (best != NULL && one->trial.time_ns >= best->trial.time_ns) continue;
        if (is_known_to_fail(a, one->kernel, &one->config) || fallen_of(a, one->kernel) >= MOST_FALLEN) continue;
        if (hone_bound_space_check(contestant->space, &one->config, NULL) == HONE_OK) best = one;
    }
    return best;
}

// Makes the candidate the contest's decision: it was verified today, and its time is the stored one.
static void choose(audit *a, const hone_resumed *measured, hone_candidate *next)
{
    char config[48];
    const hone_candidate *choice = &a->entrants[0];
    hone_evidence *evidence = &a->state->out->decision.evidence;
    const double max_error = next->trial.max_error;
    next->trial = measured->trial;
    next->trial.max_error = max_error;
    hone_contest_choose(a->state, next);
    evidence->rejected[choice->trial.failure]++;
    hone_words_copy(config, sizeof config, a->out->config);
    snprintf(
        evidence->undecided, sizeof evidence->undecided,
        "an audit took back %.32s %s (%.12s); this is the next best, by its time of %s; hone tune decides",
        a->stored->kernel, config, hone_failure_name(choice->trial.failure),
        measured->measured[0] != '\0' ? measured->measured : "an earlier day");
    *a->next = a->state->out->decision;
    snprintf(a->out->next_kernel, sizeof a->out->next_kernel, "%s", a->next->kernel);
    snprintf(a->out->next_config, sizeof a->out->next_config, "%s", a->next->config_json);
    a->out->next_ns = measured->trial.time_ns;
}

static hone_status find_next_best(audit *a, hone_error *err)
{
    hone_resumed *one;
    hone_status status = hone_contest_forget_other_code(a->state, err);
    while (status == HONE_OK && (one = find_next(a)) != NULL) {
        hone_candidate candidate = {.kernel = one->kernel, .config = one->config};
        bool is_impossible = false;
        one->entered = true;
        status = hone_trials_doubt(&a->state->trials, &one->trial, &is_impossible, err);
        if (status == HONE_OK && is_impossible) continue;
        if (status == HONE_OK) status = examine(a, &candidate, err);
        if (status != HONE_OK) return status;
        if (candidate.trial.refused) continue;
        if (candidate.trial.failure == HONE_FAILURE_NONE) {
            choose(a, one, &candidate);
            return HONE_OK;
        }
        one->trial.failure = candidate.trial.failure;
        store_failure(a, &candidate);
        a->state->out->decision.evidence.rejected[candidate.trial.failure]++;
    }
    return status;
}

bool hone_audit_takes_back(hone_failure failure)
{
    return failure != HONE_FAILURE_NONE && failure != HONE_FAILURE_UNSUPPORTED && failure != HONE_FAILURE_PREPARE;
}

// Handles a rejected choice. A choice that could not be run may lack only a package, so it is kept.
static hone_status settle_fallen(audit *a, hone_error *err)
{
    hone_candidate *choice = &a->entrants[0];
    a->out->failure = choice->trial.failure;
    hone_words_copy(a->out->reason, sizeof a->out->reason, choice->trial.reason);
    if (!hone_audit_takes_back(choice->trial.failure)) return HONE_OK;
    store_failure(a, choice);
    return find_next_best(a, err);
}

static hone_status measure(hone_contest_state *state, void *ctx, hone_error *err)
{
    audit *a = ctx;
    bool goes_on = true;
    a->state = state;
    state->known.any_environment = true;
    hone_status status = hone_contest_choose_sandbox(&state->trials, &state->field, &state->question, err);
    if (status == HONE_OK) status = hone_known_load(&state->known, &state->question, &state->field, err);
    if (status != HONE_OK) return status;
    if (!enter_choice(a)) {
        a->out->failure = HONE_FAILURE_UNSUPPORTED;
        snprintf(
            a->out->reason, sizeof a->out->reason, "its kernel cannot run the call here, or does not have the config");
        return HONE_OK;
    }
    status = examine_choice(a, err);
    if (status == HONE_OK && a->entrants[0].trial.failure != HONE_FAILURE_NONE) return settle_fallen(a, err);
    if (status == HONE_OK) enter_rivals(a);
    if (status == HONE_OK) status = try_rivals(a, err);
    if (status == HONE_OK) status = compare(a, &goes_on, err);
    if (status != HONE_OK) return status;
    if (!goes_on) return settle_fallen(a, err);
    fill(a);
    return HONE_OK;
}

hone_status hone_audit_run(
    const hone_contest_request *request,
    const hone_call *const *before,
    size_t before_count,
    const hone_decision *stored,
    double threshold,
    hone_audited *out,
    hone_decision *out_next,
    hone_error *err)
{
    hone_contest contest = {0};
    audit *a = hone_alloc(&request->environment->allocator, sizeof *a);
    if (a == NULL) return hone_fail_memory(err, where);
    a->before = before;
    a->before_count = before_count;
    a->stored = stored;
    a->threshold = threshold;
    a->out = out;
    a->next = out_next;
    out_next->kernel[0] = '\0';
    hone_status status = hone_contest_run_as(request, measure, a, &contest, err);
    hone_contest_deinit(&contest);
    hone_free(&request->environment->allocator, a);
    return status;
}
