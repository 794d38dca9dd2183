// Checks whether earlier measurements are of the code that is here now. A revision is only a string, and a compiler
// reads more than one source, so the digest of the code that runs decides.
//
// The fastest measured config of each kernel is prepared once more. If its digest has changed, all measurements of the
// kernel that have a digest are dropped, because they are of other code.
#include "tune/contest/contest.h"

#include "base/assert.h"

static bool has_code(const hone_resumed *one, uint32_t kernel)
{
    return one->kernel == kernel && one->trial.failure == HONE_FAILURE_NONE && one->trial.digest != 0;
}

static const hone_resumed *find_fastest(const hone_known *known, uint32_t kernel)
{
    const hone_resumed *best = NULL;
    for (size_t i = 0; i < known->count; i++) {
        const hone_resumed *one = &known->resumed[i];
        if (has_code(one, kernel) && (best == NULL || one->trial.low_ns < best->trial.low_ns)) best = one;
    }
    return best;
}

static void forget(hone_known *known, uint32_t kernel)
{
    size_t kept = 0;
    for (size_t i = 0; i < known->count; i++)
        if (!has_code(&known->resumed[i], kernel)) known->resumed[kept++] = known->resumed[i];
    known->count = kept;
}

// Prepares the config and compares the digest. A config that cannot be prepared here says nothing about the code, so
// *out_same is true then.
static hone_status ask(
    hone_contest_state *state, uint32_t kernel, const hone_resumed *of, bool *out_same, hone_error *err)
{
    hone_trial trial;
    bool cut = false;
    const hone_try what = {
        .kernel = state->field.contestants[kernel].ref,
        .config = &of->config,
        .best_ns = of->trial.low_ns,
        .may_be_cut = true,
        .digests = &of->trial.digest,
        .digest_count = 1};
    hone_status status = hone_trials_try(&state->trials, &what, &trial, &cut, err);
    *out_same = trial.same || cut || trial.refused;
    return status;
}

hone_status hone_contest_forget_other_code(hone_contest_state *state, hone_error *err)
{
    hone_status status = HONE_OK;
    for (uint32_t kernel = 0; kernel < state->field.count && status == HONE_OK; kernel++) {
        const hone_contestant *contestant = &state->field.contestants[kernel];
        const hone_resumed *fastest = find_fastest(&state->known, kernel);
        bool same = true;
        if (fastest == NULL || contestant->space == NULL ||
            hone_bound_space_check(contestant->space, &fastest->config, NULL) != HONE_OK)
            continue;
        status = ask(state, kernel, fastest, &same, err);
        if (status == HONE_OK && !same) forget(&state->known, kernel);
    }
    return status;
}
