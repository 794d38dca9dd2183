// Asking the seat, and what it means when no answer comes.
#include "tune/contest/contest.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "tune.trial";

// The reference may be slow, and prepares nothing that could hang.
static const double open_seconds = 120;
// What a contest may outlive its time by, so that a candidate that is at work can finish.
static const double grace_seconds = 1;

static uint64_t limit_ns(double seconds)
{
    return seconds > 0 ? (uint64_t)(seconds * 1e9) : 1;
}

static void describe_loss(const hone_outcome *outcome, char *out, size_t size)
{
    if (outcome->signal != 0)
        snprintf(out, size, "its process died of signal %d (%s)", outcome->signal, strsignal(outcome->signal));
    else
        snprintf(out, size, "it ended its process with exit code %d", outcome->exit_code);
}

// A question that was not answered, as a failure of the contest itself.
static hone_status fail_outcome(const hone_outcome *outcome, const char *what, double seconds, hone_error *err)
{
    char loss[128];
    switch (outcome->kind) {
    case HONE_OUTCOME_CANCELLED:
        return hone_fail(err, HONE_CANCELLED, where, "cancelled");
    case HONE_OUTCOME_MEMORY:
        return hone_fail_memory(err, where);
    case HONE_OUTCOME_TIMEOUT:
        return hone_fail(err, HONE_KERNEL_FAILED, where, "%s took longer than %.3g s", what, seconds);
    default:
        describe_loss(outcome, loss, sizeof loss);
        return hone_fail(err, HONE_KERNEL_FAILED, where, "%s: %s", what, loss);
    }
}

static hone_wire_reader reader_of(const hone_buffer *answer, hone_arena *arena)
{
    return (hone_wire_reader){answer->data, answer->size, 0, arena, false, false};
}

// Opening --------------------------------------------------------------------------------------------------------

static const hone_tolerance *tolerance_of(const hone_contest_state *state)
{
    const hone_tolerance *given = &state->options.tolerance;
    bool is_given = given->absolute != 0 || given->relative != 0 || given->scale != 0;
    return is_given ? given : &state->algorithm->algorithm.tolerance;
}

// Whose results everybody's must have the bits of: what the chain would take without tuning.
static const hone_contestant *find_standard(const hone_contest_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->contestants[i].space) return &state->contestants[i];
    return NULL;
}

static void put_standard(hone_contest_state *state)
{
    const hone_contestant *standard = find_standard(state);
    if (state->options.regime < HONE_WARM_STABLE || !standard) return;
    hone_message_put_kernel(&state->message, standard->ref, state->seat.by_value);
    hone_message_put_config(&state->message, &standard->default_config);
}

static void put_open(hone_contest_state *state)
{
    hone_buffer *message = &state->message;
    hone_buffer_clear(message);
    hone_message_put_device(message, state->environment->device);
    hone_message_put_algorithm(message, state->algorithm, state->seat.by_value);
    hone_message_put_call(message, state->call);
    hone_wire_put_text(message, hone_call_key(state->call));
    hone_wire_put_u8(message, (uint8_t)state->options.regime);
    hone_wire_put_u64(message, state->options.seed);
    hone_wire_put(message, tolerance_of(state), sizeof(hone_tolerance));
    put_standard(state);
}

static hone_status read_opened(hone_contest_state *state, hone_error *err)
{
    hone_arena arena = {.allocator = state->environment->allocator};
    hone_wire_reader reader = reader_of(&state->answer, &arena);
    hone_message_get_opened(&reader, &state->opened);
    hone_arena_destroy(&arena);
    hone_status status = hone_wire_check(&reader, err);
    if (status != HONE_OK || state->opened.status == HONE_OK) return status;
    return hone_fail(err, state->opened.status, where, "%s", state->opened.message);
}

hone_status hone_contest_open(hone_contest_state *state, hone_error *err)
{
    if (state->was_opened && hone_seat_is_warm(&state->seat)) return HONE_OK;
    state->was_opened = false;
    hone_status status = hone_seat_start(&state->seat, err);
    if (status != HONE_OK) return status;
    put_open(state);
    const hone_limits limits = {limit_ns(open_seconds), limit_ns(open_seconds)};
    hone_outcome outcome =
        hone_seat_ask(&state->seat, HONE_MESSAGE_OPEN, &state->message, &limits, state->options.cancel, &state->answer);
    if (outcome.kind != HONE_OUTCOME_ANSWERED) return fail_outcome(&outcome, "the reference", open_seconds, err);
    status = read_opened(state, err);
    state->was_opened = status == HONE_OK;
    return status;
}

// Trying ---------------------------------------------------------------------------------------------------------

// A run is not a compilation: it has no reason to take ten seconds when the best takes a millisecond.
static double run_seconds(double limit, double best_ns)
{
    double enough = 1 + 1e-9 * 1000 * best_ns;
    return best_ns > 0 && enough < limit ? enough : limit;
}

static const double compile_seconds = 60;

static double candidate_seconds(const hone_contest_state *state, const hone_kernel_ref *kernel, double best_ns)
{
    double limit = state->options.candidate_seconds;
    // On a machine that has other work a compiler takes many times its second.
    if (kernel->kernel.code && !state->candidate_seconds_given) limit = compile_seconds;
    return kernel->kernel.prepare || kernel->kernel.code ? limit : run_seconds(limit, best_ns);
}

static double seconds_left(const hone_contest_state *state)
{
    uint64_t now = hone_contest_now(state);
    return now < state->end_ns ? (double)(state->end_ns - now) * 1e-9 : 0;
}

// What the contest still has for one candidate.
static double time_for(const hone_contest_state *state)
{
    double left = seconds_left(state) + grace_seconds;
    return state->first_seconds > 0 && state->first_seconds < left ? state->first_seconds : left;
}

static hone_status read_trial(hone_contest_state *state, hone_trial *out, hone_error *err)
{
    hone_arena arena = {.allocator = state->environment->allocator};
    hone_wire_reader reader = reader_of(&state->answer, &arena);
    hone_message_get_trial(&reader, out);
    hone_arena_destroy(&arena);
    return hone_wire_check(&reader, err);
}

// Digests of what was measured -----------------------------------------------------------------------------------

static const hone_candidate *find_digest(
    const hone_contest_state *state, const hone_kernel_ref *kernel, uint64_t digest)
{
    for (size_t i = 0; i < state->candidate_count; i++) {
        const hone_candidate *candidate = &state->candidates[i];
        if (state->contestants[candidate->kernel].ref == kernel && !candidate->out && !candidate->trial.same &&
            candidate->trial.digest == digest)
            return candidate;
    }
    return NULL;
}

static bool was_tried(const hone_contest_state *state, const hone_kernel_ref *kernel, const hone_config *config)
{
    for (size_t i = 0; i < state->candidate_count; i++)
        if (state->contestants[state->candidates[i].kernel].ref == kernel &&
            hone_config_equal(&state->candidates[i].config, config))
            return true;
    return false;
}

// The digests of a kernel's configs that need not be measured once more. Who was measured already is asked to be so again.
static hone_status put_digests(
    hone_contest_state *state, const hone_kernel_ref *kernel, const hone_config *config, hone_error *err)
{
    const hone_allocator *allocator = &state->environment->allocator;
    bool wanted = !was_tried(state, kernel, config);
    uint32_t count = 0;
    uint64_t *digests = hone_alloc_array(allocator, state->candidate_count + 1, sizeof *digests);
    if (!digests) return hone_fail_memory(err, where);
    for (size_t i = 0; i < state->candidate_count && wanted; i++) {
        const hone_candidate *candidate = &state->candidates[i];
        if (state->contestants[candidate->kernel].ref == kernel && !candidate->out && candidate->trial.digest != 0)
            digests[count++] = candidate->trial.digest;
    }
    hone_message_put_digests(&state->message, digests, count);
    hone_free(allocator, digests);
    return HONE_OK;
}

// One attempt ------------------------------------------------------------------------------------------------------

static hone_status put_try(
    hone_contest_state *state,
    const hone_kernel_ref *kernel,
    const hone_config *config,
    const hone_racing *racing,
    hone_error *err)
{
    hone_buffer_clear(&state->message);
    hone_message_put_kernel(&state->message, kernel, state->seat.by_value);
    hone_message_put_config(&state->message, config);
    hone_message_put_racing(&state->message, racing);
    return put_digests(state, kernel, config, err);
}

static hone_status take_answer(
    hone_contest_state *state, const hone_kernel_ref *kernel, hone_trial *out, hone_error *err)
{
    hone_status status = read_trial(state, out, err);
    if (status != HONE_OK) return status;
    state->seat.served++;
    if (out->spoiled || out->retired) hone_seat_drop(&state->seat);
    const hone_candidate *twin = out->same ? find_digest(state, kernel, out->digest) : NULL;
    if (twin) {
        *out = twin->trial;
        out->same = true;
    }
    return HONE_OK;
}

static hone_status ask_once(
    hone_contest_state *state,
    const hone_kernel_ref *kernel,
    const hone_config *config,
    const hone_racing *by,
    hone_trial *out,
    bool *out_cut,
    hone_error *err)
{
    double limit = by->limit_ns * 1e-9, left = time_for(state);
    bool clamped = left < limit && state->best >= 0;
    if (clamped) limit = left;
    // The race ends before it is ended.
    const hone_racing racing = {by->best_ns, by->noise, limit * 1e9 / 2};
    const hone_limits limits = {limit_ns(limit), limit_ns(run_seconds(limit, by->best_ns))};
    hone_status status = put_try(state, kernel, config, &racing, err);
    if (status != HONE_OK) return status;
    hone_outcome outcome =
        hone_seat_ask(&state->seat, HONE_MESSAGE_TRY, &state->message, &limits, state->options.cancel, &state->answer);
    if (outcome.kind == HONE_OUTCOME_ANSWERED) return take_answer(state, kernel, out, err);
    if (outcome.kind == HONE_OUTCOME_TIMEOUT) {
        *out_cut = clamped;
        out->failure = HONE_FAILURE_TIMEOUT;
        snprintf(out->reason, sizeof out->reason, "no answer within %.3g s", limit);
        return HONE_OK;
    }
    if (outcome.kind != HONE_OUTCOME_LOST) return fail_outcome(&outcome, kernel->kernel.name, limit, err);
    out->failure = HONE_FAILURE_CRASH;
    describe_loss(&outcome, out->reason, sizeof out->reason);
    return HONE_OK;
}

// Failures that an earlier candidate may have brought about in the process that both were in. A wrong answer is asked for
// twice only where a new process is opened quickly, and one that does not come where it was not waited for for long.
static bool may_be_anothers(const hone_contest_state *state, const hone_trial *trial, double limit_seconds)
{
    const double quick_ns = 50e6, soon_seconds = 1;
    switch (trial->failure) {
    case HONE_FAILURE_CRASH:
    case HONE_FAILURE_TRACES:
    case HONE_FAILURE_BOUNDS:
        return true;
    case HONE_FAILURE_TIMEOUT:
        return limit_seconds <= soon_seconds;
    case HONE_FAILURE_WRONG:
        return state->opened.reference_ns > 0 && state->opened.reference_ns < quick_ns;
    default:
        return false;
    }
}

static hone_status attempt_here(
    hone_contest_state *state,
    const hone_kernel_ref *kernel,
    const hone_config *config,
    const hone_racing *by,
    hone_trial *out,
    bool *out_cut,
    hone_error *err)
{
    hone_status status = HONE_OK;
    bool again = true;
    while (status == HONE_OK && again) {
        memset(out, 0, sizeof *out);
        status = hone_contest_open(state, err);
        if (status != HONE_OK) return status;
        bool alone = state->seat.served == 0 || state->seat.kind == HONE_SEAT_HERE;
        status = ask_once(state, kernel, config, by, out, out_cut, err);
        again = !alone && may_be_anothers(state, out, by->limit_ns * 1e-9);
        if (again) hone_seat_drop(&state->seat);
    }
    return status;
}

// Preparing ahead ------------------------------------------------------------------------------------------------

static hone_status prepare_here(
    hone_contest_state *state, const hone_contestant *contestant, bool *out_answered, hone_error *err)
{
    hone_status status = hone_contest_open(state, err);
    if (status != HONE_OK) return status;
    hone_buffer *message = &state->message;
    hone_buffer_clear(message);
    hone_message_put_kernel(message, contestant->ref, state->seat.by_value);
    hone_wire_put_u32(message, contestant->ahead_count);
    for (uint32_t i = 0; i < contestant->ahead_count; i++)
        hone_message_put_config(message, &contestant->ahead[i]);
    double seconds = candidate_seconds(state, contestant->ref, 0), left = seconds_left(state) + grace_seconds;
    uint64_t limit = limit_ns(left < seconds ? left : seconds);
    hone_outcome outcome = hone_seat_ask(
        &state->seat, HONE_MESSAGE_PREPARE, message, &(hone_limits){limit, limit}, state->options.cancel,
        &state->answer);
    *out_answered = outcome.kind == HONE_OUTCOME_ANSWERED;
    if (outcome.kind == HONE_OUTCOME_CANCELLED || outcome.kind == HONE_OUTCOME_MEMORY)
        return fail_outcome(&outcome, "preparing", seconds, err);
    return HONE_OK;
}

// Confirming -----------------------------------------------------------------------------------------------------

// The longest that one phase of the finals can honestly take.
static double finals_seconds(
    const hone_contest_state *state, const hone_candidate *const *finalists, uint32_t count, double seconds)
{
    double run = 0;
    for (uint32_t i = 0; i < count; i++)
        run += finalists[i]->trial.time_ns * 1e-9;
    return 2 * seconds + state->options.candidate_seconds + 10 * run;
}

static hone_status read_confirmation(hone_contest_state *state, hone_confirmation *out, hone_error *err)
{
    hone_arena arena = {.allocator = state->environment->allocator};
    hone_wire_reader reader = reader_of(&state->answer, &arena);
    hone_message_get_confirmation(&reader, out);
    hone_arena_destroy(&arena);
    return hone_wire_check(&reader, err);
}

static hone_status confirm_here(
    hone_contest_state *state,
    const hone_candidate *const *finalists,
    uint32_t count,
    uint32_t rounds,
    uint64_t seed,
    double seconds,
    hone_confirmation *out,
    hone_error *err)
{
    hone_status status = hone_contest_open(state, err);
    if (status != HONE_OK) return status;
    hone_buffer *message = &state->message;
    hone_buffer_clear(message);
    hone_wire_put_u32(message, count);
    for (uint32_t i = 0; i < count; i++) {
        hone_message_put_kernel(message, state->contestants[finalists[i]->kernel].ref, state->seat.by_value);
        hone_message_put_config(message, &finalists[i]->config);
    }
    hone_wire_put_u32(message, rounds);
    hone_wire_put_u64(message, seed);
    hone_wire_put_f64(message, seconds);
    double limit = finals_seconds(state, finalists, count, seconds);
    const hone_limits limits = {limit_ns(limit), limit_ns(limit)};
    hone_outcome outcome =
        hone_seat_ask(&state->seat, HONE_MESSAGE_CONFIRM, message, &limits, state->options.cancel, &state->answer);
    if (outcome.kind != HONE_OUTCOME_ANSWERED) return fail_outcome(&outcome, "a finalist", limit, err);
    status = read_confirmation(state, out, err);
    state->seat.served++;
    if (status == HONE_OK && (out->spoiled || out->retired)) hone_seat_drop(&state->seat);
    return status;
}

// The measurer -----------------------------------------------------------------------------------------------------

static uint64_t now_here(const hone_contest_state *state)
{
    (void)state;
    return hone_os_now_ns();
}

static void pause_here(hone_contest_state *state, uint64_t ns)
{
    (void)state;
    hone_os_sleep_ns(ns);
}

const hone_measurer hone_machine_measurer = {attempt_here, confirm_here, prepare_here, now_here, pause_here};

uint64_t hone_contest_now(const hone_contest_state *state)
{
    return state->measurer->now_ns(state);
}

void hone_contest_pause(hone_contest_state *state, uint64_t ns)
{
    state->measurer->pause(state, ns);
}

hone_status hone_contest_try(
    hone_contest_state *state,
    const hone_kernel_ref *kernel,
    const hone_config *config,
    double best_ns,
    hone_trial *out,
    bool *out_cut,
    hone_error *err)
{
    const hone_racing racing = {
        best_ns, hone_noise_level(&state->noise), candidate_seconds(state, kernel, best_ns) * 1e9};
    memset(out, 0, sizeof *out);
    *out_cut = false;
    hone_status status = state->measurer->attempt(state, kernel, config, &racing, out, out_cut, err);
    if (status == HONE_OK && !*out_cut && !out->same) hone_noise_add(&state->noise, out);
    return status;
}

hone_status hone_contest_ask_confirm(
    hone_contest_state *state,
    const hone_candidate *const *finalists,
    uint32_t count,
    uint32_t rounds,
    uint64_t seed,
    double seconds,
    hone_confirmation *out,
    hone_error *err)
{
    memset(out, 0, sizeof *out);
    return state->measurer->confirm(state, finalists, count, rounds, seed, seconds, out, err);
}
