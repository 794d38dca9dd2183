// Is a stored choice still right? It meets those that came next when it was chosen, and the default, in rounds: what
// disturbs a round disturbs all of it, so that their ratio says more than any two times taken apart.
//
// The regret of the choice is its ratio to the fastest entrant, less 1, with the 95 % interval of statistics.c. Blocks
// of rounds go on until that interval lies on one side of the threshold, at least two and at most five; where five
// leave it across, nothing is claimed. The fastest is found by the same samples that give its ratio, which makes regret
// look larger than it is by the luck of the best of several: the interval and a tie of half a percent stand against
// that.
#include "tune/contest/contest.h"

#include "base/error.h"
#include "registry/failure_kinds.h"
#include "tune/rule/statistics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST = HONE_MAX_FINALISTS,
    BEST_COUNT = 4, // of all kernels, by what is stored
    BLOCK_ROUNDS = 8,
    LEAST_BLOCKS = 2,
    MOST_BLOCKS = 5,
    RETAKES = 2 // of a disturbed sample
};

// Chosen by hand, as the finals' (finals.c).
static const double tie = 0.005;
static const uint64_t pause_ns = 50000000;
static const char where[] = "tune.audit";

typedef struct audit {
    hone_contest_state *state;
    const hone_decision *stored;
    double threshold;
    hone_audited *out;
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

// The fastest by what is stored that has not entered; other: of a kernel of which none has.
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
    // Kernels that nothing is known of.
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

// An entrant fell out. False: it was the choice, and there is nothing more to measure.
static bool fall_out(audit *a, uint32_t index, hone_failure failure, const char *reason)
{
    hone_candidate *entrant = &a->entrants[index];
    if (hone_failure_kind_of(failure)->is_wrong) {
        // It answered right once, and is known to be wrong from now on.
        entrant->trial.failure = failure;
        hone_words_copy(entrant->trial.reason, sizeof entrant->trial.reason, reason);
        hone_known_store(&a->state->known, &a->state->question, &a->state->field, entrant);
    }
    if (index > 0) {
        leave(a, index);
        return true;
    }
    a->out->failure = failure;
    hone_words_copy(a->out->reason, sizeof a->out->reason, reason);
    return false;
}

// Measuring -----------------------------------------------------------------------------------------------------------

// Who waits for an audit sees it go on, and can end it between two steps.
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

// Each alone first: that it runs, that it is right, and how long it takes.
static hone_status try_all(audit *a, bool *out_goes_on, hone_error *err)
{
    hone_contest_state *state = a->state;
    *out_goes_on = true;
    for (uint32_t i = 0; i < a->count && *out_goes_on;) {
        hone_candidate *entrant = &a->entrants[i];
        hone_trial trial;
        bool cut;
        hone_status status = begin_step(a, err);
        const hone_try what = {.kernel = state->field.contestants[entrant->kernel].ref, .config = &entrant->config};
        if (status == HONE_OK) status = hone_trials_try(&state->trials, &what, &trial, &cut, err);
        if (status != HONE_OK) return status;
        if (i == 0 && trial.refused) return hone_fail(err, HONE_UNAVAILABLE, where, "%s", trial.reason);
        entrant->trial = trial;
        if (trial.failure == HONE_FAILURE_NONE && !cut)
            i++;
        else
            *out_goes_on = fall_out(a, i, trial.failure, trial.reason);
    }
    return HONE_OK;
}

static hone_status ask(
    audit *a, uint32_t first, uint32_t count, uint32_t block, hone_rounds_answer *out, hone_error *err)
{
    hone_contest_state *state = a->state;
    const hone_tune_options *options = &state->question.options;
    hone_block asked = {
        .count = count,
        .rounds = BLOCK_ROUNDS,
        .seed = options->seed + block + 1,
        .seconds = options->seconds / MOST_BLOCKS,
        .retakes = RETAKES,
        .verifies = true,
    };
    for (uint32_t i = 0; i < count; i++) {
        asked.finalists[i] = &a->entrants[first + i];
        asked.kernels[i] = state->field.contestants[asked.finalists[i]->kernel].ref;
    }
    return hone_trials_run_rounds(&state->trials, &asked, out, err);
}

// The worker was lost with all of them in it; alone, the culprit shows itself.
static hone_status find_culprits(audit *a, hone_rounds_answer *block, bool *out_goes_on, hone_error *err)
{
    uint32_t before = a->count;
    for (uint32_t i = 0; i < a->count && *out_goes_on;) {
        hone_error why = {0};
        if (begin_step(a, err) != HONE_OK) return HONE_CANCELLED;
        hone_status status = ask(a, i, 1, i, block, &why);
        if (status != HONE_OK && status != HONE_KERNEL_FAILED) return hone_fail(err, status, where, "%s", why.message);
        if (status == HONE_KERNEL_FAILED)
            *out_goes_on = fall_out(a, i, HONE_FAILURE_CRASH, why.message);
        else if (block->failure != HONE_FAILURE_NONE)
            *out_goes_on = fall_out(a, i, block->failure, block->reason);
        else
            i++;
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

// The entrant that the choice is slower than by most; the choice itself when there is none.
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

// Rounds until it is clear on which side of the threshold the choice stands. After somebody fell out they begin anew.
static hone_status run_rounds(audit *a, bool *out_goes_on, hone_error *err)
{
    hone_rounds_answer block;
    for (uint32_t b = 0; b < MOST_BLOCKS && *out_goes_on; b++) {
        hone_error why = {0};
        hone_status status = ask(a, 0, a->count, b, &block, &why);
        if (status != HONE_OK && status != HONE_KERNEL_FAILED) return hone_fail(err, status, where, "%s", why.message);
        bool lost = status == HONE_KERNEL_FAILED, fell = !lost && block.failure != HONE_FAILURE_NONE;
        if (lost) status = find_culprits(a, &block, out_goes_on, err);
        if (lost && status != HONE_OK) return status;
        if (fell) *out_goes_on = fall_out(a, block.failed < a->count ? block.failed : 0, block.failure, block.reason);
        if (lost || fell) {
            a->rounds = 0;
            continue;
        }
        add_samples(a, &block);
        bool late = hone_trials_now(&a->state->trials) >= a->state->trials.end_ns;
        if (b + 1 >= LEAST_BLOCKS && (late || is_certain(a))) break;
        hone_trials_pause(&a->state->trials, pause_ns);
    }
    if (*out_goes_on && a->rounds == 0)
        return hone_fail(err, HONE_KERNEL_FAILED, where, "somebody fell out in every one of %d blocks", MOST_BLOCKS);
    return HONE_OK;
}

// What it came to -----------------------------------------------------------------------------------------------------

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
        fall_out(a, 0, HONE_FAILURE_UNSUPPORTED, "its kernel cannot run the call here, or does not have the config");
        return HONE_OK;
    }
    enter_rivals(a);
    status = try_all(a, &goes_on, err);
    if (status == HONE_OK && goes_on) status = run_rounds(a, &goes_on, err);
    if (status == HONE_OK && goes_on) fill(a);
    return status;
}

hone_status hone_audit_run(
    const hone_contest_request *request,
    const hone_decision *stored,
    double threshold,
    hone_audited *out,
    hone_error *err)
{
    hone_contest contest = {0};
    audit *a = hone_alloc(&request->environment->allocator, sizeof *a);
    if (a == NULL) return hone_fail_memory(err, where);
    a->stored = stored;
    a->threshold = threshold;
    a->out = out;
    hone_status status = hone_contest_run_as(request, measure, a, &contest, err);
    hone_contest_deinit(&contest);
    hone_free(&request->environment->allocator, a);
    return status;
}
