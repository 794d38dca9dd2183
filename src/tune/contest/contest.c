// A contest from beginning to end: who competes, where, the race, the finals, what it came to.
#include "tune/contest/contest.h"

#include "base/error.h"
#include "tune/rule/statistics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_EVALUATIONS = 500, LEAST_PATIENCE = 30 };

static const double default_seconds = 30, default_candidate_seconds = 10;
// The rest of the time belongs to the finals.
static const double race_share = 0.85, least_race_share = 0.5;
static const char where[] = "tune.contest";

// Options ------------------------------------------------------------------------------------------------------------

static void fill_options(hone_contest_state *state, const hone_tune_options *options)
{
    hone_tune_options *to = &state->options;
    if (options) *to = *options;
    state->patience_given = to->patience > 0;
    if (to->evaluations == 0) to->evaluations = DEFAULT_EVALUATIONS;
    if (!(to->seconds > 0)) to->seconds = default_seconds;
    state->candidate_seconds_given = to->candidate_seconds > 0;
    if (!state->candidate_seconds_given) to->candidate_seconds = default_candidate_seconds;
    if (to->patience == 0) {
        uint32_t share = (uint32_t)(0.15 * to->evaluations);
        to->patience = share > LEAST_PATIENCE ? share : LEAST_PATIENCE;
    }
}

static void start_clock(hone_contest_state *state)
{
    state->started_ns = hone_contest_now(state);
    // A year is for ever, and no number overflows.
    double seconds = fmin(state->options.seconds, 3e7);
    state->end_ns = state->started_ns + (uint64_t)(seconds * 1e9);
    state->race_until_ns = state->started_ns + (uint64_t)(race_share * seconds * 1e9);
}

// A slow reference must not eat the whole time.
static void grant_race(hone_contest_state *state)
{
    double seconds = fmin(state->options.seconds, 3e7);
    uint64_t least = hone_contest_now(state) + (uint64_t)(least_race_share * seconds * 1e9);
    if (least > state->race_until_ns) state->race_until_ns = least;
}

// Words --------------------------------------------------------------------------------------------------------------

static void describe_row(const hone_contest_kernel *row, hone_buffer *out)
{
    hone_buffer_format(out, "; %s", row->kernel->kernel.name);
    if (row->tried > 0) hone_buffer_format(out, " (%u tried)", row->tried);
    if (row->reason[0]) hone_buffer_format(out, ": %s", row->reason);
}

// Nobody won: says why of each kernel.
static hone_status fail_nobody(const hone_contest_state *state, hone_error *err)
{
    hone_buffer words;
    hone_buffer_init(&words, state->environment->allocator);
    for (size_t i = 0; i < state->count; i++)
        describe_row(&state->out->kernels[i], &words);
    const char *text = hone_buffer_string(&words);
    hone_status status = hone_fail(
        err, HONE_NOT_FOUND, where, "no kernel passed for %s%s", state->title,
        state->count > 0 ? text : ": none is registered");
    hone_buffer_deinit(&words);
    return status;
}

// Running it ---------------------------------------------------------------------------------------------------------

// Bytes of a call's arrays, results counted in.
static double memory_of(const hone_call *call)
{
    double total = 0;
    for (size_t i = 0; i < hone_signature_count(hone_call_signature(call)); i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i);
        int64_t bytes = 0, below = 0;
        if (tensor && hone_tensor_span(tensor, &bytes, &below) != HONE_OK) return INFINITY;
        total += (double)bytes;
    }
    return total;
}

hone_status hone_call_fits(const hone_call *call, const hone_device_info *device, hone_error *err)
{
    // The rest is for the reference's results, packed copies, and whoever else works on the machine.
    const double share = 0.5;
    double needed = memory_of(call), there = (double)device->memory_bytes;
    if (there <= 0 || needed <= share * there) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where,
        "%s: its arrays take %.1f GB, and made-up data may take half of the %.1f GB of this machine: give a smaller "
        "call",
        hone_call_text(call), needed * 1e-9, there * 1e-9);
}

static hone_status check_inputs(const hone_contest_state *state, hone_error *err)
{
    if (!state->algorithm->algorithm.reference && !state->algorithm->algorithm.reference_kernel)
        return hone_fail(
            err, HONE_NOT_FOUND, where,
            "%s@v%s has no reference, so nothing can be verified and nobody can win: register one with the algorithm",
            state->algorithm->name, state->algorithm->version);
    return hone_call_fits(state->call, state->environment->device, err);
}

static hone_status gather(hone_contest_state *state, hone_error *err)
{
    hone_status status = check_inputs(state, err);
    if (status == HONE_OK) status = hone_contest_collect(state, err);
    return status == HONE_OK && !hone_contest_anybody(state) ? fail_nobody(state, err) : status;
}

static hone_status prepare(hone_contest_state *state, hone_error *err)
{
    hone_status status = hone_contest_take_seat(state, err);
    if (status == HONE_OK && !hone_contest_anybody(state)) status = fail_nobody(state, err);
    if (status == HONE_OK) status = hone_contest_load(state, err);
    if (status == HONE_OK) status = hone_contest_find_priors(state, err);
    if (status == HONE_OK) hone_contest_find_incumbent(state);
    return status;
}

static void store_finals(hone_contest_state *state, const hone_finals *finals)
{
    for (uint32_t i = 0; i < finals->count; i++)
        hone_contest_store(state, finals->finalists[i]);
}

static hone_status run_finals(hone_contest_state *state, hone_error *err)
{
    hone_finals *finals = hone_alloc(&state->environment->allocator, sizeof *finals);
    if (!finals) return hone_fail_memory(err, where);
    hone_status status = hone_contest_confirm(state, finals, err);
    if (status == HONE_OK) {
        hone_contest_adopt_finals(finals);
        store_finals(state, finals);
        hone_contest_choose(state, finals->finalists[finals->winner]);
        hone_contest_fill_runner_up(state, finals, &state->out->decision.evidence);
        status = hone_contest_keep_trail(state, finals, err);
    }
    hone_free(&state->environment->allocator, finals);
    return status == HONE_NOT_FOUND ? fail_nobody(state, err) : status;
}

// Broken off: the best so far was verified, if not confirmed.
static void settle_cancelled(hone_contest_state *state)
{
    state->best = hone_contest_find_best(state);
    if (state->best < 0) return;
    hone_contest_choose(state, &state->candidates[state->best]);
    (void)!hone_contest_keep_trail(state, NULL, NULL);
}

// Everything that is measured, and every limit, hangs on it.
static hone_status check_clock(hone_error *err)
{
    enum { LOOKS = 1000000 };
    uint64_t start = hone_os_now_ns();
    for (int i = 0; i < LOOKS; i++)
        if (hone_os_now_ns() != start) return HONE_OK;
    return hone_fail(
        err, HONE_UNAVAILABLE, where,
        "the monotonic clock stands still: %d readings are all %llu ns, so nothing can be measured; what was measured "
        "before is kept",
        LOOKS, (unsigned long long)start);
}

// From here on the machine is the contest's, and its time begins.
static hone_status begin_measuring(hone_contest_state *state, hone_error *err)
{
    const hone_tune_environment *environment = state->environment;
    hone_evidence *evidence = &state->out->decision.evidence;
    hone_status status = check_clock(err);
    if (status == HONE_OK && environment->begin_measuring)
        status = environment->begin_measuring(environment->measuring_ctx, err);
    if (status != HONE_OK) return status;
    start_clock(state);
    hone_os_conditions_read("", &state->before);
    evidence->load = fmax(state->before.load, 0);
    hone_os_format_utc(hone_os_now_utc(), evidence->started);
    if (environment->says_who) hone_os_who(evidence->who, sizeof evidence->who);
    return HONE_OK;
}

// Counters run since the machine started: only what they grew by says something of these times.
static void end_measuring(hone_contest_state *state)
{
    const hone_tune_environment *environment = state->environment;
    hone_evidence *evidence = &state->out->decision.evidence;
    hone_os_conditions after;
    hone_os_conditions_read("", &after);
    hone_os_disturbance came = hone_os_disturbance_between(&state->before, &after);
    evidence->throttled = came.throttled > 0 ? (uint32_t)fmin((double)came.throttled, UINT32_MAX) : 0;
    evidence->stolen = fmax(came.stolen, 0);
    if (environment->end_measuring) environment->end_measuring(environment->measuring_ctx);
}

// Everybody is there, and what was measured before is known.
static hone_status contend(hone_contest_state *state, hone_error *err)
{
    hone_status status = hone_contest_fill(state, err);
    if (status == HONE_OK) grant_race(state);
    if (status == HONE_OK) status = hone_contest_race(state, err);
    if (hone_contest_evaluations_left(state)) state->out->expected_gain = hone_contest_expected_gain(state);
    if (status == HONE_OK && state->best < 0) status = fail_nobody(state, err);
    if (status == HONE_OK) status = hone_contest_heat(state, err);
    if (status == HONE_OK) status = run_finals(state, err);
    if (status == HONE_CANCELLED) settle_cancelled(state);
    if (!state->out->decision.kernel[0]) hone_contest_fill_counts(state, &state->out->decision.evidence);
    return status;
}

hone_status hone_contest_compete(hone_contest_state *state, hone_error *err)
{
    start_clock(state);
    return contend(state, err);
}

static hone_status measure(hone_contest_state *state, void *ctx, hone_error *err)
{
    (void)ctx;
    hone_status status = prepare(state, err);
    if (status != HONE_OK) return status;
    status = contend(state, err);
    hone_contest_fill_rows(state);
    return status;
}

static hone_status run(hone_contest_state *state, hone_contest_measure *measures, void *ctx, hone_error *err)
{
    hone_status status = gather(state, err);
    if (status != HONE_OK || hone_contest_keep(state)) return status;
    status = begin_measuring(state, err);
    if (status != HONE_OK) return status;
    status = measures(state, ctx, err);
    end_measuring(state);
    return status;
}

void hone_contest_destroy(hone_contest_state **pointer)
{
    hone_contest_state *state = *pointer;
    if (!state) return;
    *pointer = NULL;
    const hone_allocator *allocator = &state->environment->allocator;
    if (state->seated) hone_seat_deinit(&state->seat);
    for (size_t i = 0; i < state->count; i++) {
        hone_search_destroy(&state->contestants[i].search);
        hone_bound_space_release(&state->contestants[i].space);
        hone_free(allocator, state->contestants[i].environment);
    }
    hone_free(allocator, state->contestants);
    hone_free(allocator, state->candidates);
    hone_free(allocator, state->resumed);
    hone_free(allocator, state->priors);
    hone_buffer_deinit(&state->message);
    hone_buffer_deinit(&state->answer);
    hone_free(allocator, state);
}

hone_status hone_contest_create(
    const hone_tune_environment *environment,
    const hone_algorithm_entry *algorithm,
    const hone_call *call,
    const hone_tune_options *options,
    hone_contest *out,
    hone_contest_state **out_state,
    hone_error *err)
{
    memset(out, 0, sizeof *out);
    out->allocator = environment->allocator;
    hone_contest_state *state = *out_state = hone_alloc(&environment->allocator, sizeof *state);
    if (!state) return hone_fail_memory(err, where);
    state->measurer = &hone_machine_measurer;
    state->environment = environment;
    state->algorithm = algorithm;
    state->call = call;
    state->title = call ? hone_call_text(call) : algorithm->name;
    state->out = out;
    state->best = -1;
    state->drift = 1;
    state->reference = -1;
    state->key = (hone_store_key){
        environment->device->fingerprint, algorithm->name, algorithm->version, call ? hone_call_key(call) : "",
        call ? hone_call_spec(call) : ""};
    hone_buffer_init(&state->message, environment->allocator);
    hone_buffer_init(&state->answer, environment->allocator);
    fill_options(state, options);
    return HONE_OK;
}

hone_status hone_contest_run_as(
    const hone_tune_environment *environment,
    const hone_algorithm_entry *algorithm,
    const hone_call *call,
    const hone_tune_options *options,
    hone_contest_measure *measures,
    void *ctx,
    hone_contest *out,
    hone_error *err)
{
    hone_contest_state *state = NULL;
    hone_status status = hone_contest_create(environment, algorithm, call, options, out, &state, err);
    if (status == HONE_OK) status = run(state, measures, ctx, err);
    hone_contest_destroy(&state);
    return status;
}

hone_status hone_contest_run(
    const hone_tune_environment *environment,
    const hone_algorithm_entry *algorithm,
    const hone_call *call,
    const hone_tune_options *options,
    hone_contest *out,
    hone_error *err)
{
    return hone_contest_run_as(environment, algorithm, call, options, measure, NULL, out, err);
}

void hone_contest_deinit(hone_contest *contest)
{
    if (contest->kernels) hone_free(&contest->allocator, contest->kernels);
    if (contest->trail) hone_free(&contest->allocator, contest->trail);
    memset(contest, 0, sizeof *contest);
}
