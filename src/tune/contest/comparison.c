// Finds which of several choices is the fastest, and by how much. They are measured in rounds of random order for the
// seconds that were asked for.
//
// Disturbances by other work on a busy machine are removed sample by sample: a sample during which a thread of the
// choice waited for a processor, was moved, or the host took time, is taken again, and does not count if it was
// disturbed again. What is left of the disturbances affects both sides of a ratio, because the choices run alternately:
// two choices are compared round by round.
#include "tune/contest/contest.h"

#include "base/assert.h"
#include "base/error.h"
#include "tune/rule/statistics.h"
#include "tune/tuner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_SAMPLES = 256, // of a choice, as many as the statistics take
    LEAST_ROUNDS = 5,
    MOST_BLOCK_ROUNDS = 16,
    EXTRA_ROUNDS = 4, // runs that a block needs besides its rounds: to verify before and after
    RETAKES = 2,
    LEAST_UNDISTURBED = 5
};

static const double turn_ns = 1e6; // in addition to a sample, until threads rest and the next choice is warm again
static const uint64_t pause_ns = 20000000;
static const char where[] = "tune.compare";

typedef struct entrant {
    hone_candidate candidate;
    hone_sample samples[MOST_SAMPLES]; // one per round
} entrant;

typedef struct comparison {
    hone_contest_state *state;
    const hone_choice *choices;
    uint32_t count;
    uint32_t rounds;
    hone_compared *out;
    entrant *entrants;
} comparison;

// Choices -------------------------------------------------------------------------------------------------------------

static void describe(const comparison *c, uint32_t index, char *out, size_t size)
{
    char config[256] = "";
    const hone_choice *choice = &c->choices[index];
    hone_config_text(choice->kernel->space, &choice->config, config, sizeof config);
    snprintf(out, size, "choice %u, %s%s%s", index + 1, choice->kernel->kernel.name, config[0] ? " " : "", config);
}

static hone_status refuse(
    const comparison *c, uint32_t index, hone_status status, const char *how, const char *reason, hone_error *err)
{
    char name[384];
    describe(c, index, name, sizeof name);
    return hone_fail(err, status, where, "%s %s%s%s", name, how, reason[0] != '\0' ? ": " : "", reason);
}

static hone_status refuse_failed(
    const comparison *c, uint32_t index, hone_failure failure, const char *reason, hone_error *err)
{
    char how[64];
    snprintf(how, sizeof how, "is refused, %s", hone_failure_name(failure));
    return refuse(c, index, HONE_KERNEL_FAILED, how, reason, err);
}

static hone_status enter_one(comparison *c, uint32_t index, hone_error *err)
{
    const hone_field *field = &c->state->field;
    const hone_choice *choice = &c->choices[index];
    for (uint32_t i = 0; i < field->count; i++) {
        const hone_contestant *contestant = &field->contestants[i];
        hone_error why = {0};
        if (contestant->ref != choice->kernel) continue;
        if (contestant->space == NULL)
            return refuse(c, index, HONE_UNSUPPORTED, "cannot run the call", field->rows[i].reason, err);
        if (hone_bound_space_check(contestant->space, &choice->config, &why) != HONE_OK)
            return refuse(c, index, HONE_INVALID_ARGUMENT, "is not in the kernel's space", why.message, err);
        c->entrants[index].candidate = (hone_candidate){.kernel = i, .config = choice->config};
        return HONE_OK;
    }
    return refuse(c, index, HONE_UNSUPPORTED, "is of another algorithm", "", err);
}

static hone_status enter_all(comparison *c, hone_error *err)
{
    hone_status status = HONE_OK;
    for (uint32_t i = 0; i < c->count && status == HONE_OK; i++)
        status = enter_one(c, i, err);
    return status;
}

// Measuring -----------------------------------------------------------------------------------------------------------

// Reports progress to the caller, who can cancel the comparison between two steps.
static hone_status begin_step(const comparison *c, const char *kernel, hone_error *err)
{
    const hone_contest_state *state = c->state;
    const hone_tune_options *options = &state->question.options;
    double elapsed = hone_trials_elapsed_seconds(&state->trials);
    const hone_progress progress = {
        .call = state->question.title,
        .done = c->rounds,
        .total = MOST_SAMPLES,
        .kernel = kernel,
        .elapsed_seconds = elapsed,
        .remaining_seconds = fmax(options->seconds - elapsed, 0),
    };
    if (options->progress != NULL) options->progress(options->progress_ctx, &progress);
    return hone_question_is_cancelled(&state->question) ? hone_fail(err, HONE_CANCELLED, where, "cancelled") : HONE_OK;
}

// Tries each choice alone first: whether it runs, whether it is right, and how long it takes.
static hone_status try_all(comparison *c, hone_error *err)
{
    hone_contest_state *state = c->state;
    for (uint32_t i = 0; i < c->count; i++) {
        hone_candidate *candidate = &c->entrants[i].candidate;
        hone_trial trial = {0};
        bool cut;
        const hone_try what = {.kernel = c->choices[i].kernel, .config = &candidate->config};
        hone_status status = begin_step(c, c->choices[i].kernel->kernel.name, err);
        if (status == HONE_OK) status = hone_trials_try(&state->trials, &what, &trial, &cut, err);
        if (status != HONE_OK) return status;
        if (trial.refused) return refuse(c, i, HONE_UNAVAILABLE, "cannot be measured here", trial.reason, err);
        if (trial.failure != HONE_FAILURE_NONE) return refuse_failed(c, i, trial.failure, trial.reason, err);
        candidate->trial = trial;
    }
    return HONE_OK;
}

static double round_seconds(const comparison *c)
{
    double round = 0;
    for (uint32_t i = 0; i < c->count; i++)
        round += (fmax(c->entrants[i].candidate.trial.time_ns, 20e3) + turn_ns) * 1e-9;
    return round;
}

static double seconds_left(const comparison *c)
{
    const hone_trials *trials = &c->state->trials;
    uint64_t now = hone_trials_now(trials);
    return now < trials->end_ns ? (double)(trials->end_ns - now) * 1e-9 : 0;
}

static uint32_t rounds_for_block(const comparison *c)
{
    double fit = seconds_left(c) / round_seconds(c) - EXTRA_ROUNDS;
    return fit >= MOST_BLOCK_ROUNDS ? MOST_BLOCK_ROUNDS : fit > LEAST_ROUNDS ? (uint32_t)fit : LEAST_ROUNDS;
}

static hone_status ask(comparison *c, uint32_t number, hone_rounds_answer *out, hone_error *err)
{
    hone_contest_state *state = c->state;
    hone_block block = {
        .count = c->count,
        .rounds = rounds_for_block(c),
        .seed = state->question.options.seed + number + 1,
        .seconds = fmax(seconds_left(c), LEAST_ROUNDS * round_seconds(c)),
        .verifies = true,
    };
    for (uint32_t i = 0; i < c->count; i++) {
        block.retakes[i] = RETAKES;
        block.finalists[i] = &c->entrants[i].candidate;
        block.kernels[i] = c->choices[i].kernel;
    }
    return hone_trials_run_rounds(&state->trials, &block, out, err);
}

// The worker was lost while all choices ran in it. Runs each alone to find the one that caused the loss.
static hone_status name_culprit(comparison *c, hone_error *err)
{
    for (uint32_t i = 0; i < c->count; i++) {
        hone_candidate *one = &c->entrants[i].candidate;
        hone_confirming how = {.seconds = c->state->question.options.seconds};
        hone_status status = hone_trials_confirm(&c->state->trials, c->choices[i].kernel, one, &how, err);
        if (status != HONE_OK) return status;
        if (one->trial.failure != HONE_FAILURE_NONE)
            return refuse_failed(c, i, one->trial.failure, one->trial.reason, err);
    }
    return hone_fail(err, HONE_KERNEL_FAILED, where, "the worker was lost in the rounds, and no choice lost it alone");
}

static void add_samples(comparison *c, const hone_rounds_answer *block)
{
    hone_assert(block->count == c->count);
    for (uint32_t r = 0; r < block->rounds && c->rounds < MOST_SAMPLES; r++, c->rounds++)
        for (uint32_t i = 0; i < c->count; i++)
            c->entrants[i].samples[c->rounds] =
                (hone_sample){block->samples[i][r], block->waited[i][r], block->marks[i][r]};
}

// The seconds are for the rounds: a slow reference must not use them up.
static void start_rounds(hone_trials *trials)
{
    trials->end_ns = hone_trials_now(trials) + (uint64_t)(fmin(trials->question->options.seconds, 3e7) * 1e9);
}

static hone_status run_rounds(comparison *c, hone_error *err)
{
    hone_rounds_answer block;
    for (uint32_t number = 0; c->rounds == 0 || (c->rounds < MOST_SAMPLES && seconds_left(c) > 0); number++) {
        hone_error why = {0};
        hone_status status = begin_step(c, NULL, err);
        if (status != HONE_OK) return status;
        status = ask(c, number, &block, &why);
        if (status == HONE_KERNEL_FAILED) return name_culprit(c, err);
        if (status != HONE_OK) return hone_fail(err, status, where, "%s", why.message);
        if (block.failure != HONE_FAILURE_NONE)
            return refuse_failed(c, block.failed < c->count ? block.failed : 0, block.failure, block.reason, err);
        add_samples(c, &block);
        hone_trials_pause(&c->state->trials, pause_ns);
    }
    return HONE_OK;
}

// Results -------------------------------------------------------------------------------------------------------------

static void fill_times(const comparison *c, uint32_t index)
{
    hone_sample samples[MOST_SAMPLES];
    double counted[MOST_SAMPLES];
    hone_compared *out = &c->out[index];
    const hone_choice *choice = &c->choices[index];
    memset(out, 0, sizeof *out);
    snprintf(out->kernel, sizeof out->kernel, "%s", choice->kernel->kernel.name);
    hone_config_json(choice->kernel->space, &choice->config, out->config, sizeof out->config);
    memcpy(samples, c->entrants[index].samples, c->rounds * sizeof samples[0]);
    for (uint32_t i = 0; i < c->rounds; i++)
        out->disturbed += samples[i].marks != 0;
    out->samples = c->rounds;
    hone_interval time = hone_median(counted, hone_count_samples(samples, c->rounds, LEAST_UNDISTURBED, counted));
    out->time_ns = time.middle;
    out->low_ns = time.low;
    out->high_ns = time.high;
}

static hone_interval ratio_over(const comparison *c, uint32_t below, uint32_t above)
{
    return hone_rounds_ratio(c->entrants[below].samples, c->entrants[above].samples, c->rounds, LEAST_UNDISTURBED);
}

static double least_ratio_over(const comparison *c, uint32_t below)
{
    double least = INFINITY;
    for (uint32_t i = 0; i < c->count; i++)
        if (i != below) least = fmin(least, ratio_over(c, below, i).middle);
    return least;
}

// Finds the choice that no other is faster than. Among three similar ones each can be faster than the next; then it is
// the one that the others are faster than by the least.
static uint32_t find_fastest(const comparison *c)
{
    uint32_t fastest = 0;
    double most = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const double least = least_ratio_over(c, i);
        if (least <= most) continue;
        fastest = i;
        most = least;
    }
    return fastest;
}

static void fill(const comparison *c)
{
    const uint32_t fastest = find_fastest(c);
    for (uint32_t i = 0; i < c->count; i++) {
        fill_times(c, i);
        hone_interval ratio = i == fastest ? (hone_interval){1, 1, 1} : ratio_over(c, fastest, i);
        // In such a circle, a choice that is faster than the fastest is shown as equally fast.
        c->out[i].ratio = fmax(ratio.middle, 1);
        c->out[i].low = ratio.low;
        c->out[i].high = fmax(ratio.high, 1);
    }
}

static hone_status measure(hone_contest_state *state, void *ctx, hone_error *err)
{
    comparison *c = ctx;
    c->state = state;
    hone_status status = enter_all(c, err);
    if (status == HONE_OK) status = hone_contest_choose_sandbox(&state->trials, &state->field, &state->question, err);
    // A function of a program with threads cannot be isolated: choose_sandbox excludes it, and enter_all then fails.
    if (status == HONE_OK) status = enter_all(c, err);
    if (status == HONE_OK) status = try_all(c, err);
    if (status == HONE_OK) start_rounds(&state->trials);
    if (status == HONE_OK) status = run_rounds(c, err);
    if (status == HONE_OK) fill(c);
    return status;
}

hone_status hone_comparison_run(
    const hone_contest_request *request, const hone_choice *choices, size_t count, hone_compared *out, hone_error *err)
{
    hone_assert(count >= 2 && count <= HONE_MOST_COMPARED);
    const hone_allocator *allocator = &request->environment->allocator;
    hone_contest contest = {0};
    comparison c = {.choices = choices, .count = (uint32_t)count, .out = out};
    c.entrants = hone_alloc_array(allocator, count, sizeof *c.entrants);
    if (c.entrants == NULL) return hone_fail_memory(err, where);
    hone_status status = hone_contest_run_as(request, measure, &c, &contest, err);
    hone_contest_deinit(&contest);
    hone_free(allocator, c.entrants);
    return status;
}
