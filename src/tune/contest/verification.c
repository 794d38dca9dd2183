// Verifies that a kernel is right for a call. A guess needs only this, while a contest finds the fastest kernel.
#include "tune/contest/contest.h"

#include "base/assert.h"
#include "base/error.h"

#include <stdio.h>

static const char where[] = "tune.verify";

typedef struct verification {
    const hone_kernel_ref *kernel;
    const hone_config *config;
    hone_verification *out;
} verification;

static hone_status find(const hone_field *field, const hone_kernel_ref *kernel, uint32_t *out, hone_error *err)
{
    for (uint32_t i = 0; i < field->count; i++) {
        if (field->contestants[i].ref != kernel) continue;
        *out = i;
        if (field->contestants[i].space != NULL) return HONE_OK;
        return hone_fail(err, HONE_UNSUPPORTED, where, "%s: %s", kernel->kernel.name, field->rows[i].reason);
    }
    return hone_fail(err, HONE_UNSUPPORTED, where, "%s is of another algorithm", kernel->kernel.name);
}

// Stores a record without a time: the kernel was right, and its speed is not known. Contests ignore such a record.
static void keep(hone_contest_state *state, hone_candidate *candidate)
{
    hone_trial *trial = &candidate->trial;
    trial->time_ns = trial->low_ns = trial->high_ns = 0;
    trial->samples = trial->kept = 0;
    hone_known_store(&state->known, &state->question, &state->field, candidate);
}

static hone_status try_it(hone_contest_state *state, const verification *v, hone_candidate *candidate, hone_error *err)
{
    bool cut;
    hone_try what = {.kernel = v->kernel, .config = v->config, .sort = HONE_TRY_VERIFIES};
    if (v->kernel->builtin) what.looks_seconds = what.repeats_seconds = state->question.options.seconds;
    hone_status status = hone_trials_try(&state->trials, &what, &candidate->trial, &cut, err);
    if (status != HONE_OK) return status;
    if (candidate->trial.refused) return hone_fail(err, HONE_UNAVAILABLE, where, "%s", candidate->trial.reason);
    return HONE_OK;
}

static hone_status verify(hone_contest_state *state, void *ctx, hone_error *err)
{
    const verification *v = ctx;
    hone_candidate candidate = {.config = *v->config};
    state->trials.open_seconds = state->question.options.seconds;
    hone_status status = find(&state->field, v->kernel, &candidate.kernel, err);
    if (status == HONE_OK) status = hone_contest_choose_sandbox(&state->trials, &state->field, &state->question, err);
    // A function of a program with threads cannot be isolated: choose_sandbox has excluded it, and find fails then.
    if (status == HONE_OK) status = find(&state->field, v->kernel, &candidate.kernel, err);
    if (status == HONE_OK) status = try_it(state, v, &candidate, err);
    if (status != HONE_OK) return status;
    if (candidate.trial.failure == HONE_FAILURE_NONE && state->question.environment->verifies != NULL)
        status = hone_contest_verify_first_runs(state, &candidate, err);
    if (status != HONE_OK) return status;
    v->out->failure = candidate.trial.failure;
    v->out->is_brief = candidate.trial.unproven;
    hone_words_copy(v->out->reason, sizeof v->out->reason, candidate.trial.reason);
    // A kernel that cannot run the call is not at fault.
    if (v->out->failure == HONE_FAILURE_UNSUPPORTED)
        return hone_fail(err, HONE_UNSUPPORTED, where, "%s: %s", v->kernel->kernel.name, v->out->reason);
    keep(state, &candidate);
    return HONE_OK;
}

hone_status hone_verification_run(
    const hone_contest_request *request,
    const hone_kernel_ref *kernel,
    const hone_config *config,
    hone_verification *out,
    hone_error *err)
{
    hone_assert(request->call != NULL && request->options != NULL && request->options->seconds > 0);
    hone_tune_options options = *request->options;
    hone_contest contest = {0};
    verification v = {kernel, config, out};
    options.kernel = kernel->kernel.name;
    options.platform = hone_platform_name(kernel->kernel.platform);
    const hone_contest_request alone = {request->environment, request->algorithm, request->call, &options};
    *out = (hone_verification){.failure = HONE_FAILURE_NONE};
    hone_status status = hone_contest_run_as(&alone, verify, &v, &contest, err);
    hone_contest_deinit(&contest);
    return status;
}
