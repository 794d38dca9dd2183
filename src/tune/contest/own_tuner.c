// The caller's own tuner in a contest: what it can read, what it may try, and what it chooses. All that it tries is
// verified and timed like the candidates that hone proposes.
#include "tune/contest/contest.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/structs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "tune.tuner";

struct hone_tuning {
    hone_contest_state *state;
    hone_contest_try *tries;
    hone_tuning_kernel *kernels;      // [count]
    const hone_tuning_kernel **shown; // [count], pointers into kernels
    uint32_t *contestants;            // [count], index of each kernel's contestant in the field
    size_t count;
};

// What the tuner can read ---------------------------------------------------------------------------------------------

const hone_call *hone_tuning_call(const hone_tuning *tuning)
{
    return tuning != NULL ? tuning->state->question.call : NULL;
}

const hone_device_info *hone_tuning_device(const hone_tuning *tuning)
{
    return tuning != NULL ? tuning->state->question.environment->device : NULL;
}

const hone_tuning_kernel *const *hone_tuning_kernels(const hone_tuning *tuning, size_t *out_count)
{
    if (out_count != NULL) *out_count = tuning != NULL ? tuning->count : 0;
    return tuning != NULL ? tuning->shown : NULL;
}

double hone_tuning_seconds(const hone_tuning *tuning)
{
    if (tuning == NULL) return 0;
    const hone_trials *trials = &tuning->state->trials;
    const uint64_t now = hone_trials_now(trials);
    if (hone_question_is_cancelled(&tuning->state->question) || now >= trials->race_until_ns) return 0;
    return (double)(trials->race_until_ns - now) * 1e-9;
}

uint32_t hone_tuning_evaluations(const hone_tuning *tuning)
{
    if (tuning == NULL) return 0;
    const hone_contest_state *state = tuning->state;
    const uint32_t all = state->question.options.evaluations;
    if (hone_question_is_cancelled(&state->question) || state->standings.count >= all) return 0;
    return all - (uint32_t)state->standings.count;
}

// Trying --------------------------------------------------------------------------------------------------------------

static hone_status check_kernel(const hone_tuning *tuning, size_t kernel, hone_error *err)
{
    if (kernel < tuning->count) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "there is no kernel %zu: %zu compete, numbered from 0", kernel,
        tuning->count);
}

hone_status hone_tuning_propose(hone_tuning *tuning, size_t kernel, hone_config *out_config, hone_error *err)
{
    if (tuning == NULL || out_config == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the tuning or out_config is NULL");
    hone_contest_state *state = tuning->state;
    hone_status status = check_kernel(tuning, kernel, err);
    if (status != HONE_OK) return status;
    hone_contestant *contestant = &state->field.contestants[tuning->contestants[kernel]];
    if (contestant->search == NULL)
        return hone_fail(
            err, HONE_NOT_FOUND, where, "kernel %s has nothing but its default", contestant->ref->kernel.name);
    const uint32_t left = hone_tuning_evaluations(tuning);
    status = hone_contest_next_config(&state->trials, contestant, left, out_config, err);
    if (status == HONE_OK) state->spending.steps++;
    return status;
}

static void fill_tried(const hone_candidate *candidate, hone_tried *out)
{
    const hone_trial *trial = &candidate->trial;
    memset(out, 0, sizeof *out);
    out->failure = trial->failure;
    if (trial->failure != HONE_FAILURE_NONE) {
        hone_words_copy(out->reason, sizeof out->reason, trial->reason);
        return;
    }
    out->time_ns = trial->time_ns;
    out->low_ns = trial->low_ns;
    out->high_ns = trial->high_ns;
}

static hone_status check_budget(const hone_tuning *tuning, hone_error *err)
{
    if (hone_tuning_seconds(tuning) > 0 && hone_tuning_evaluations(tuning) > 0) return HONE_OK;
    if (hone_question_is_cancelled(&tuning->state->question)) return hone_fail(err, HONE_CANCELLED, where, "cancelled");
    return hone_fail(
        err, HONE_CANCELLED, where, "the contest's %s are spent: the tuner returns now",
        hone_tuning_evaluations(tuning) == 0 ? "evaluations" : "seconds");
}

static hone_status tuning_try_known(
    hone_tuning *tuning, size_t kernel, const hone_config *config, hone_tried *out, hone_error *err)
{
    hone_contest_state *state = tuning->state;
    hone_status status = check_kernel(tuning, kernel, err);
    if (status != HONE_OK) return status;
    const uint32_t index = tuning->contestants[kernel];
    const hone_contestant *contestant = &state->field.contestants[index];
    const hone_candidate *known = hone_standings_find(&state->standings, index, config);
    if (known == NULL) status = hone_bound_space_check(tuning->kernels[kernel].bound, config, err);
    if (known == NULL && status == HONE_OK && contestant->put_aside)
        status = hone_fail(
            err, HONE_UNSUPPORTED, where, "kernel %s: %s", contestant->ref->kernel.name,
            state->field.rows[index].reason);
    if (known == NULL && status == HONE_OK) status = check_budget(tuning, err);
    if (known == NULL && status == HONE_OK) status = tuning->tries(state, index, config, err);
    if (status != HONE_OK) return status;
    if (known == NULL) known = hone_standings_find(&state->standings, index, config);
    if (known != NULL) {
        fill_tried(known, out);
        return HONE_OK;
    }
    if (contestant->is_refused)
        return hone_fail(
            err, HONE_UNSUPPORTED, where, "kernel %s: %s", contestant->ref->kernel.name,
            state->field.rows[index].reason);
    return hone_fail(err, HONE_CANCELLED, where, "the contest's end cut it short: the tuner returns now");
}

hone_status hone_tuning_try_sized(
    hone_tuning *tuning, size_t kernel, const hone_config *config, hone_tried *out, size_t size, hone_error *err)
{
    if (tuning == NULL || config == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the tuning or the config is NULL");
    hone_tried known;
    hone_status status = tuning_try_known(tuning, kernel, config, out != NULL ? &known : NULL, err);
    if (status == HONE_OK && out != NULL) hone_struct_give(out, size, &known, sizeof known);
    return status;
}

hone_status hone_tuning_choose(hone_tuning *tuning, size_t kernel, const hone_config *config, hone_error *err)
{
    if (tuning == NULL || config == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the tuning or the config is NULL");
    hone_contest_state *state = tuning->state;
    hone_status status = check_kernel(tuning, kernel, err);
    if (status != HONE_OK) return status;
    const uint32_t index = tuning->contestants[kernel];
    const hone_candidate *candidate = hone_standings_find(&state->standings, index, config);
    if (candidate == NULL || candidate->out)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "what is chosen of kernel %s %s: hone_tuning_try it before",
            tuning->kernels[kernel].name, candidate == NULL ? "was never tried" : "was rejected");
    state->chosen = (hone_tuner_choice){.is_there = true, .kernel = index, .config = *config};
    return HONE_OK;
}

// Running it ----------------------------------------------------------------------------------------------------------

static hone_status open_tuning(hone_tuning *tuning, hone_error *err)
{
    const hone_field *field = &tuning->state->field;
    const hone_allocator *allocator = &tuning->state->question.environment->allocator;
    tuning->kernels = hone_alloc_array(allocator, field->count, sizeof *tuning->kernels);
    tuning->shown = hone_alloc_array(allocator, field->count, sizeof *tuning->shown);
    tuning->contestants = hone_alloc_array(allocator, field->count, sizeof *tuning->contestants);
    if (tuning->kernels == NULL || tuning->shown == NULL || tuning->contestants == NULL)
        return hone_fail_memory(err, where);
    for (uint32_t i = 0; i < field->count; i++) {
        const hone_contestant *contestant = &field->contestants[i];
        if (contestant->space == NULL || contestant->is_refused) continue;
        const hone_kernel *kernel = &contestant->ref->kernel;
        tuning->contestants[tuning->count] = i;
        tuning->shown[tuning->count] = &tuning->kernels[tuning->count];
        tuning->kernels[tuning->count++] = (hone_tuning_kernel){
            .name = kernel->name,
            .platform = kernel->platform,
            .backend = kernel->backend,
            .space = contestant->ref->space,
            .bound = contestant->space,
            .default_config = contestant->default_config,
        };
    }
    return HONE_OK;
}

// A tuner that continues until the budget is spent, and then returns HONE_CANCELLED, has succeeded.
static hone_status run(hone_tuning *tuning, hone_error *err)
{
    const hone_question *question = &tuning->state->question;
    const hone_tuner *tuner = question->options.tuner;
    hone_error why = {.where = where, .message = ""};
    hone_status status = tuner->run(tuner->ctx, tuning, &why);
    if (hone_question_is_cancelled(question)) return hone_fail(err, HONE_CANCELLED, where, "cancelled");
    if (status == HONE_OK || status == HONE_CANCELLED) return HONE_OK;
    return hone_fail(
        err, status, where, "the tuner %s failed for %s: %s", tuner->name != NULL ? tuner->name : "own",
        question->title, why.message[0] != '\0' ? why.message : hone_status_name(status));
}

hone_status hone_contest_run_tuner(hone_contest_state *state, hone_contest_try *tries, hone_error *err)
{
    hone_tuning tuning = {.state = state, .tries = tries};
    const hone_allocator *allocator = &state->question.environment->allocator;
    hone_assert(state->question.options.tuner != NULL && state->question.options.tuner->run != NULL);
    hone_status status = open_tuning(&tuning, err);
    if (status == HONE_OK) status = run(&tuning, err);
    hone_free(allocator, tuning.kernels);
    hone_free(allocator, tuning.shown);
    hone_free(allocator, tuning.contestants);
    return status;
}
