// Verifies what a kernel does once for all of its calls: for instance it keeps a number from the shape of the first
// call, or its first run fills a table. A contest has only one call, and threads run it at once only after all of that
// is done. So the winner runs on two small calls alternately, in a process in which it has not run before. Then it runs
// on calls with the sizes of the first one that differ in transposition, masking or dtype, and on calls whose arrays
// have as many elements in another shape. Last, its very first runs happen in two threads at once.
#include "tune/contest/contest.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/random.h"
#include "call/made_up.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MANY_BYTES = 256 << 10,
    FEW_BYTES = 32 << 10,
    HOLDS = 4,
    MOST_MISSED = 4,
    MOST_SIBLINGS = 6,
    MOST_SHAPES = 3,
    MOST_RESTARTS = 2
};

static const char where[] = "tune.first_runs";
static const double most_seconds = 10; // of one call: the kernel may start a compiler
// The share of the contest's seconds for the runs of one call, and the least seconds of it. These are the smallest
// calls of all: a kernel that has not returned from one by then is not run on any other.
static const double runs_share = 0.5, least_runs_seconds = 2;
// Of a function of an interpreter: if one call takes longer than most_turn_ns, the function probably compiles for each
// call. The time of the siblings is limited too.
static const uint64_t most_turn_ns = 500000000, most_siblings_ns = 3000000000;

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

static uint64_t runs_ns(const hone_contest_state *state)
{
    return (uint64_t)(1e9 * fmin(fmax(runs_share * state->question.options.seconds, least_runs_seconds), most_seconds));
}

// Runs the same candidate on another call, in the sandbox's process or in a new one. HONE_UNAVAILABLE: it did not
// return.
static hone_status try_on(
    hone_contest_state *state, const taker *t, const hone_call *call, double hold_ns, hone_trial *out, hone_error *err)
{
    hone_question question = state->question;
    hone_trials trials;
    bool cut = false;
    question.call = call;
    question.title = hone_call_text(call);
    question.options.regime = HONE_WARM;
    question.options.candidate_seconds = most_seconds;
    hone_trials_init(&trials, &question, &state->field);
    trials.has_floor = true; // no time is measured
    trials.open_seconds = most_seconds;
    trials.end_ns = hone_trials_now(&trials) + runs_ns(state);
    trials.sandbox = state->trials.sandbox;
    trials.has_sandbox = false; // it is borrowed
    const hone_try what = {
        .kernel = t->kernel,
        .config = t->config,
        .best_ns = hold_ns,
        .sort = HONE_TRY_FIRST_RUNS,
        .repeats_seconds = state->repeats_seconds,
        .stays = true};
    const hone_status status = hone_trials_try(&trials, &what, out, &cut, err);
    state->trials.sandbox = trials.sandbox;
    state->trials.was_opened[0] = state->trials.was_opened[1] = false;
    state->trials.spent.prepare_ns += trials.spent.prepare_ns;
    state->trials.spent.verify_ns += trials.spent.verify_ns;
    state->trials.spent.run_ns += trials.spent.run_ns;
    hone_trials_deinit(&trials);
    // A kernel that did not return would keep each of the next calls from returning, too.
    if (status == HONE_OK && out->failure == HONE_FAILURE_TIMEOUT)
        return hone_fail(err, HONE_UNAVAILABLE, where, "%s", out->reason);
    return status;
}

// Whether a failure on one of the calls counts against the candidate. A kernel that reports an error there gives no
// wrong result: it may support calls of some sizes only.
static bool counts(const hone_trial *came)
{
    return !came->refused && came->failure != HONE_FAILURE_NONE && came->failure != HONE_FAILURE_UNSUPPORTED &&
           came->failure != HONE_FAILURE_PREPARE && came->failure != HONE_FAILURE_RUN;
}

static void judge(hone_candidate *candidate, const hone_trial *came, const hone_call *call, const hone_call *before)
{
    hone_trial *trial = &candidate->trial;
    if (!counts(came)) return;
    trial->failure = came->failure;
    if (before == NULL)
        snprintf(trial->reason, sizeof trial->reason, "for %.90s: %.150s", hone_call_text(call), came->reason);
    else
        snprintf(
            trial->reason, sizeof trial->reason, "for %.60s after %.60s: %.120s", hone_call_text(call),
            hone_call_text(before), came->reason);
}

// out_ns: duration of the first run. out_turn_ns: duration of the last call with all that is done around its runs.
static hone_status try_by_turns(
    hone_contest_state *state,
    const taker *t,
    hone_call *const calls[2],
    hone_candidate *candidate,
    double *out_ns,
    uint64_t *out_turn_ns,
    hone_error *err)
{
    const hone_call *before = NULL;
    hone_status status = HONE_OK;
    hone_sandbox_drop(&state->trials.sandbox);
    for (int i = 0; i < 3 && status == HONE_OK && candidate->trial.failure == HONE_FAILURE_NONE; i++) {
        hone_trial came;
        const hone_call *call = calls[i % 2];
        if (call == NULL) continue;
        const uint64_t start = hone_trials_now(&state->trials);
        status = try_on(state, t, call, 0, &came, err);
        *out_turn_ns = hone_trials_now(&state->trials) - start;
        if (status == HONE_OK) judge(candidate, &came, call, before);
        if (before == NULL) *out_ns = came.time_ns;
        before = call;
    }
    return status;
}

// Runs a sibling in a process that has run the call. If the result is wrong for the sibling in a process of its own as
// well, no kept value is the cause: the kernel accepts calls that it does not compute, and contests of these calls will
// reject it.
static hone_status try_sibling(
    hone_contest_state *state,
    const taker *t,
    const hone_call *call,
    const hone_call *sibling,
    hone_candidate *candidate,
    hone_error *err)
{
    hone_trial came, alone;
    hone_status status = try_on(state, t, sibling, 0, &came, err);
    if (status != HONE_OK) return status;
    if (counts(&came)) {
        hone_sandbox_drop(&state->trials.sandbox);
        status = try_on(state, t, sibling, 0, &alone, err);
        if (status == HONE_OK && alone.failure == HONE_FAILURE_NONE) judge(candidate, &came, sibling, call);
        hone_sandbox_drop(&state->trials.sandbox);
        return status;
    }
    status = try_on(state, t, call, 0, &came, err);
    if (status == HONE_OK) judge(candidate, &came, call, sibling);
    return status;
}

// Whether the sibling omits an argument that the call has, or has a tensor of fewer bits.
static bool says_less(const hone_call *call, const hone_call *sibling)
{
    const hone_value *given = hone_call_values(call), *left = hone_call_values(sibling);
    for (size_t i = 0; i < hone_signature_count(hone_call_signature(call)); i++) {
        if (given[i].tag != HONE_VALUE_NONE && left[i].tag == HONE_VALUE_NONE) return true;
        const bool are_tensors = given[i].tag == HONE_VALUE_TENSOR && left[i].tag == HONE_VALUE_TENSOR;
        if (are_tensors && left[i].as.tensor->dtype.bits < given[i].as.tensor->dtype.bits) return true;
    }
    return false;
}

// Runs the call in a process that has run the sibling alone. A kernel that keeps by the sizes that an argument is
// present is right when the argument is omitted later, while one that keeps that it is omitted is wrong when it is
// present later. The same holds for a table in the dtype of the first call. A kernel that cannot run the sibling is not
// checked.
static hone_status try_after_sibling(
    hone_contest_state *state,
    const taker *t,
    const hone_call *call,
    const hone_call *sibling,
    hone_candidate *candidate,
    hone_error *err)
{
    hone_trial came;
    hone_sandbox_drop(&state->trials.sandbox);
    hone_status status = try_on(state, t, sibling, 0, &came, err);
    if (status == HONE_OK && came.failure == HONE_FAILURE_NONE && !came.refused) {
        status = try_on(state, t, call, 0, &came, err);
        if (status == HONE_OK) judge(candidate, &came, call, sibling);
    }
    hone_sandbox_drop(&state->trials.sandbox);
    return status;
}

// Makes the number-th call that differs from the first one in something that a kernel that keeps values by sizes may
// ignore: make_other_kind changes what else the call says, make_other_shape its shape alone. NULL if there are fewer.
typedef hone_status make_sibling(const taker *t, const hone_call *call, uint32_t number, hone_call **out);

static hone_status make_other_kind(const taker *t, const hone_call *call, uint32_t number, hone_call **out)
{
    const hone_allocator allocator = t->question->environment->allocator;
    return hone_made_up_sibling(allocator, call, number, takes, (void *)(uintptr_t)t, out);
}

static hone_status make_other_shape(const taker *t, const hone_call *call, uint32_t number, hone_call **out)
{
    const hone_allocator allocator = t->question->environment->allocator;
    return hone_made_up_rearranged(allocator, call, number, 2 * MANY_BYTES, takes, (void *)(uintptr_t)t, out);
}

static hone_status try_siblings(
    hone_contest_state *state,
    const taker *t,
    const hone_call *call,
    make_sibling *make,
    uint32_t most,
    hone_candidate *candidate,
    hone_error *err)
{
    const bool is_interpreted = hone_kernel_is_interpreted(t->kernel);
    const uint64_t end_ns = is_interpreted ? hone_trials_now(&state->trials) + most_siblings_ns : UINT64_MAX;
    hone_status status = HONE_OK;
    uint32_t restarts = is_interpreted ? MOST_RESTARTS : UINT32_MAX;
    for (uint32_t i = 0; i < most && status == HONE_OK && candidate->trial.failure == HONE_FAILURE_NONE; i++) {
        hone_call *sibling = NULL;
        hone_trial came;
        if (hone_trials_now(&state->trials) > end_ns) break;
        status = make(t, call, i, &sibling);
        if (sibling == NULL) break;
        // A new process has yet to run the call.
        if (!hone_sandbox_is_warm(&state->trials.sandbox)) status = try_on(state, t, call, 0, &came, err);
        if (status == HONE_OK) status = try_sibling(state, t, call, sibling, candidate, err);
        if (status == HONE_OK && candidate->trial.failure == HONE_FAILURE_NONE && says_less(call, sibling) &&
            restarts > 0) {
            restarts--; // starting an interpreter again takes long
            status = try_after_sibling(state, t, call, sibling, candidate, err);
        }
        hone_call_release(&sibling);
    }
    return status;
}

// Chooses where in a run of run_ns to hold it, in ns: alternately anywhere in one of its halves, and near its start,
// where most of the work that is done once is done. However much of the run that work takes, one of the holds is likely
// within it.
static double draw_hold(uint64_t *random, int number, double run_ns)
{
    const double parts = HOLDS / 2, shortest_ns = fmin(1000, run_ns);
    const double at = ((number / 2) % (HOLDS / 2) + hone_random_unit(random)) / parts;
    return number % 2 == 0 ? at * run_ns : shortest_ns * pow(run_ns / shortest_ns, at);
}

// Runs the call in a new process each time, until HOLDS first runs were held. A run that ended before it could be held
// is repeated with half of run_ns, because it is shorter than assumed.
static hone_status try_held(
    hone_contest_state *state,
    const taker *t,
    const hone_call *call,
    double run_ns,
    hone_candidate *candidate,
    hone_error *err)
{
    uint64_t random = state->question.options.seed;
    hone_status status = HONE_OK;
    for (int held = 0, missed = 0; held < HOLDS && missed < MOST_MISSED && run_ns > 1 && status == HONE_OK;) {
        hone_trial came;
        hone_sandbox_drop(&state->trials.sandbox);
        status = try_on(state, t, call, draw_hold(&random, held, run_ns), &came, err);
        if (status == HONE_OK) judge(candidate, &came, call, NULL);
        if (candidate->trial.failure != HONE_FAILURE_NONE) break;
        const bool was_held = came.time_ns > 0;
        held += was_held;
        missed += !was_held;
        if (!was_held) run_ns /= 2;
    }
    return status;
}

static hone_status try_all(
    hone_contest_state *state, const taker *t, hone_call *const calls[2], hone_candidate *candidate, hone_error *err)
{
    const bool is_interpreted = hone_kernel_is_interpreted(t->kernel);
    double run_ns = 0; // of the first run in a process
    uint64_t turn_ns = 0;
    hone_status status = try_by_turns(state, t, calls, candidate, &run_ns, &turn_ns, err);
    // A device's kernels are compiled for seconds for each sibling, and the compiled code keeps nothing of another
    // call. The same holds for some functions of an interpreter.
    const bool compiles =
        state->question.environment->device->backend == HONE_GPU || (is_interpreted && turn_ns > most_turn_ns);
    if (compiles || status != HONE_OK || candidate->trial.failure != HONE_FAILURE_NONE) return status;
    status = try_siblings(state, t, calls[0], make_other_kind, MOST_SIBLINGS, candidate, err);
    if (status == HONE_OK) status = try_siblings(state, t, calls[0], make_other_shape, MOST_SHAPES, candidate, err);
    if (status != HONE_OK || candidate->trial.failure != HONE_FAILURE_NONE) return status;
    // On a device, first runs in two threads show nothing that two streams do not show. In an interpreter, which has
    // one lock, they show nothing that one process does not show, and each process takes seconds to import what it
    // needs.
    return is_interpreted ? HONE_OK : try_held(state, t, calls[0], run_ns, candidate, err);
}

// For a kernel that takes no smaller call: the call itself, and a larger one.
static hone_status make_larger(const hone_contest_state *state, taker *t, hone_call *out[2])
{
    const hone_allocator allocator = state->question.environment->allocator;
    hone_status status = hone_made_up_double(allocator, state->question.call, NULL, MANY_BYTES, takes, t, &out[1]);
    if (status == HONE_OK && out[1] != NULL)
        status = hone_made_up_half(allocator, out[1], MANY_BYTES, takes, t, &out[0]);
    return status;
}

// Replaces the second call by one in which those dims are doubled that have the same size in the first call, because
// the kernel may take no smaller size of them. If there is no second call, it becomes the double of the first one.
static hone_status tell_apart(const hone_contest_state *state, taker *t, hone_call *out[2])
{
    hone_call *larger = NULL;
    const hone_allocator allocator = state->question.environment->allocator;
    const hone_call *like = out[1] != NULL ? out[1] : out[0], *other = out[1] != NULL ? out[0] : NULL;
    const hone_status status = hone_made_up_double(allocator, like, other, 2 * MANY_BYTES, takes, t, &larger);
    if (larger == NULL) return status;
    hone_call_release(&out[1]);
    out[1] = larger;
    return status;
}

// Makes two calls, one smaller than the other in as many dims as possible, or NULL.
static hone_status make_calls(const hone_contest_state *state, taker *t, hone_call *out[2])
{
    const hone_allocator allocator = state->question.environment->allocator;
    hone_status status = hone_made_up_half(allocator, state->question.call, MANY_BYTES, takes, t, &out[1]);
    if (status == HONE_OK && out[1] == NULL) return make_larger(state, t, out);
    if (status == HONE_OK && out[1] != NULL)
        status = hone_made_up_half(allocator, out[1], FEW_BYTES, takes, t, &out[0]);
    if (status != HONE_OK || out[1] == NULL) return status;
    if (out[0] == NULL) {
        out[0] = out[1];
        out[1] = NULL;
    }
    return tell_apart(state, t, out);
}

// Kernels of the library are not checked here: the library's tests check them.
static bool is_looked_at(const hone_contest_state *state, const hone_kernel_ref *kernel)
{
    return !kernel->builtin && state->trials.sandbox.kind != HONE_SANDBOX_HERE && state->trials.has_sandbox;
}

// If the check could not be made, nothing is known against the candidate, so only these two errors are returned.
static hone_status pass_on(hone_status status, hone_error *err)
{
    if (status != HONE_OUT_OF_MEMORY && status != HONE_CANCELLED) return HONE_OK;
    return hone_fail(err, status, where, "%s", status == HONE_OUT_OF_MEMORY ? "out of memory" : "cancelled");
}

hone_status hone_contest_verify_first_runs(hone_contest_state *state, hone_candidate *candidate, hone_error *err)
{
    hone_assert(candidate->trial.failure == HONE_FAILURE_NONE);
    const hone_kernel_ref *kernel = state->field.contestants[candidate->kernel].ref;
    taker t = {&state->question, kernel, &candidate->config};
    hone_call *calls[2] = {NULL, NULL};
    hone_error why = {0};
    if (!is_looked_at(state, kernel)) return HONE_OK;
    hone_sandbox_turn(&state->trials.sandbox, hone_kernel_is_interpreted(kernel));
    hone_status status = make_calls(state, &t, calls);
    if (status == HONE_OK && calls[0] != NULL) status = try_all(state, &t, calls, candidate, &why);
    hone_call_release(&calls[0]);
    hone_call_release(&calls[1]);
    return pass_on(status, err);
}

hone_status hone_contest_verify_after(
    hone_contest_state *state, const hone_call *const *calls, size_t count, hone_candidate *candidate, hone_error *err)
{
    const hone_kernel_ref *kernel = state->field.contestants[candidate->kernel].ref;
    const taker t = {&state->question, kernel, &candidate->config};
    const hone_call *call = state->question.call;
    hone_error why = {0};
    hone_status status = HONE_OK;
    if (!is_looked_at(state, kernel)) return HONE_OK;
    hone_sandbox_turn(&state->trials.sandbox, hone_kernel_is_interpreted(kernel));
    for (size_t i = 0; i < count && status == HONE_OK && candidate->trial.failure == HONE_FAILURE_NONE; i++) {
        hone_trial came;
        hone_sandbox_drop(&state->trials.sandbox);
        status = try_on(state, &t, calls[i], 0, &came, &why);
        if (status == HONE_OK && came.failure == HONE_FAILURE_NONE) status = try_on(state, &t, call, 0, &came, &why);
        if (status == HONE_OK && came.failure != HONE_FAILURE_NONE) judge(candidate, &came, call, calls[i]);
    }
    hone_sandbox_drop(&state->trials.sandbox);
    return pass_on(status, err);
}
