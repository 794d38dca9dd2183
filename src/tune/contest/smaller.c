// If a call is too large, or its reference too slow, for more than its ordinary inputs, the winner is verified on a
// smaller call, too. The same is done if the winner's own runs are so slow that the contest has no time for all checks
// of a winner. Errors with arrays in unusual places, with other threads or with unusual rows show in runs of a
// hundredth of the time as well.
#include "tune/contest/contest.h"

#include "base/assert.h"
#include "base/error.h"
#include "call/made_up.h"

#include <math.h>
#include <stdio.h>

static const char where[] = "tune.smaller";

// A call above either size is verified on ordinary inputs alone (hone_session_is_quick), and a smaller one in its
// place.
enum { MANY_BYTES = 64 << 20, FEW_BYTES = 2 << 20 };

static const double long_ns = 100e6, least_smaller_seconds = 0.2, most_smaller_seconds = 2, patience = 5;

// A kernel and a config that must take the smaller call.
typedef struct taker {
    const hone_question *question;
    const hone_kernel_ref *kernel;
    const hone_config *config;
} taker;

static bool takes(void *ctx, const hone_call *call)
{
    const taker *t = ctx;
    return hone_kernel_takes_config(t->kernel, call, t->question->environment->device, t->config);
}

static int64_t bytes_of(const hone_call *call)
{
    int64_t bytes = 0, span, below;
    for (size_t i = 0; i < hone_signature_count(hone_call_signature(call)); i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i);
        if (tensor != NULL && hone_tensor_span(tensor, &span, &below) == HONE_OK) bytes += span;
    }
    return bytes;
}

bool hone_contest_has_smaller(const hone_contest_state *state)
{
    const hone_trials *trials = &state->trials;
    return state->question.environment->verifies != NULL && (trials->was_opened[0] || trials->was_opened[1]) &&
           trials->sandbox.kind != HONE_SANDBOX_HERE && bytes_of(state->question.call) > FEW_BYTES;
}

static bool needs_smaller(const hone_contest_state *state)
{
    const hone_trials *trials = &state->trials;
    return bytes_of(state->question.call) >= MANY_BYTES || trials->opened.reference_ns == 0 ||
           trials->opened.reference_ns >= long_ns;
}

static hone_status verify_on(
    const taker *t, const hone_call *call, double seconds, hone_verification *out, hone_error *err)
{
    const hone_question *question = t->question;
    const hone_tune_options options = {
        .struct_size = sizeof options,
        .seconds = seconds,
        .candidate_seconds = question->options.candidate_seconds,
        .seed = question->options.seed,
        .cancel = question->options.cancel,
        .no_store = true};
    // The contest that asks has the permit already, and stores the result itself.
    hone_tune_environment environment = *question->environment;
    environment.store = environment.system_store = NULL;
    environment.failed = NULL;
    environment.begin_measuring = NULL;
    environment.end_measuring = NULL;
    environment.verifies = NULL;
    const hone_contest_request request = {&environment, question->algorithm, call, &options};
    return question->environment->verifies(&request, t->kernel, t->config, out, err);
}

// On a busy machine a right kernel may not get the processor in time. It is verified once more, with a longer deadline. A kernel
// of the library is not: a timeout does not count against it.
static bool deserves_patience(const hone_contest_state *state, const hone_kernel_ref *kernel)
{
    return !kernel->builtin && hone_trials_are_disturbed(&state->trials);
}

hone_status hone_contest_verify_smaller(
    hone_contest_state *state, hone_candidate *candidate, bool left_out, bool *out_done, hone_error *err)
{
    hone_assert(candidate->trial.failure == HONE_FAILURE_NONE);
    state->verified_smaller = *out_done = false;
    if (!hone_contest_has_smaller(state) || !(left_out || needs_smaller(state))) return HONE_OK;
    taker t = {&state->question, state->field.contestants[candidate->kernel].ref, &candidate->config};
    hone_call *call = NULL;
    hone_verification came;
    hone_error why;
    const hone_allocator allocator = state->question.environment->allocator;
    if (hone_made_up_smaller(allocator, state->question.call, FEW_BYTES, takes, &t, &call) != HONE_OK)
        return hone_fail_memory(err, where);
    if (call == NULL) return HONE_OK;
    const uint64_t start = hone_trials_now(&state->trials), end_ns = state->trials.end_ns;
    // Kernels of the library are checked in the time that is left.
    const double left = start < end_ns ? (double)(end_ns - start) * 1e-9 : 0,
                 seconds = t.kernel->builtin ? fmin(fmax(left, least_smaller_seconds), most_smaller_seconds)
                                             : most_smaller_seconds;
    hone_status status = verify_on(&t, call, seconds, &came, &why);
    if (status == HONE_OK && came.failure == HONE_FAILURE_TIMEOUT && deserves_patience(state, t.kernel))
        status = verify_on(&t, call, patience * seconds, &came, &why);
    state->trials.spent.verify_ns += (double)(hone_trials_now(&state->trials) - start);
    *out_done = status == HONE_OK && !came.is_brief;
    // A kernel of the library does not hang: the machine is too busy for its checks, which the library's tests have
    // made. For other kernels a time-out stays a failure, because a kernel could hang on purpose to avoid the checks.
    const bool is_late = status == HONE_OK && came.failure == HONE_FAILURE_TIMEOUT && t.kernel->builtin;
    if (status == HONE_OK && !is_late) {
        hone_trial *trial = &candidate->trial;
        state->verified_smaller = came.failure == HONE_FAILURE_NONE;
        trial->failure = came.failure;
        snprintf(
            trial->reason, sizeof trial->reason, "for the smaller %.90s: %.140s", hone_call_text(call), came.reason);
    }
    hone_call_release(&call);
    // If the check could not be made, nothing more is known than before.
    return status == HONE_OUT_OF_MEMORY || status == HONE_CANCELLED ? hone_fail(err, status, where, "%s", why.message)
                                                                    : HONE_OK;
}
