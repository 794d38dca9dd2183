// A contest from beginning to end: who competes, where, the race, the finals, what it came to.
#include "tune/contest.h"

#include "base/error.h"
#include "tune/statistics.h"

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
    if (!(to->candidate_seconds > 0)) to->candidate_seconds = default_candidate_seconds;
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

// Seats --------------------------------------------------------------------------------------------------------------

// A spawned worker knows only what the library itself registers.
static bool is_hosts(const hone_contest_state *state, const hone_contestant *contestant)
{
    return !contestant->ref->builtin || !state->algorithm->builtin;
}

static bool any_hosts(const hone_contest_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->contestants[i].space && is_hosts(state, &state->contestants[i])) return true;
    return false;
}

static bool anybody(const hone_contest_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->contestants[i].space) return true;
    return false;
}

static void exclude_hosts(hone_contest_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->contestants[i].space && is_hosts(state, &state->contestants[i]))
            hone_contest_exclude(
                state, i,
                "is a function of this program, which has threads and cannot isolate it: open the runtime with "
                "HONE_RUNTIME_ZYGOTE while there is one thread, or consent with HONE_ISOLATION_IN_PROCESS");
}

// The seats that could serve this contest, best first.
static uint32_t list_seats(hone_contest_state *state, hone_seat_kind out[3])
{
    uint32_t count = 0;
    if (state->options.isolation == HONE_ISOLATION_IN_PROCESS) {
        out[count++] = HONE_SEAT_HERE;
        return count;
    }
    if (!any_hosts(state)) out[count++] = HONE_SEAT_SPAWN;
    if (state->environment->zygote && hone_zygote_alive(state->environment->zygote)) out[count++] = HONE_SEAT_ZYGOTE;
    if (hone_os_thread_count() == 1) out[count++] = HONE_SEAT_FORK;
    if (count > 0) return count;
    exclude_hosts(state);
    if (anybody(state)) out[count++] = HONE_SEAT_SPAWN;
    return count;
}

// Whether another seat may do what this one could not.
static bool is_seats_fault(hone_status status)
{
    return status == HONE_UNAVAILABLE || status == HONE_UNSUPPORTED || status == HONE_INCOMPATIBLE || status == HONE_IO;
}

hone_status hone_contest_take_seat(hone_contest_state *state, hone_error *err)
{
    hone_seat_kind kinds[3];
    hone_error first = {0};
    uint32_t count = list_seats(state, kinds);
    for (uint32_t i = 0; i < count; i++) {
        hone_error why = {0};
        hone_status status = hone_seat_init(&state->seat, state->environment, kinds[i], &why);
        state->seated = true;
        if (status == HONE_OK) status = hone_contest_open(state, &why);
        if (status == HONE_OK) return HONE_OK;
        // Of seats that cannot serve, what the best of them lacks is worth saying.
        if (i == 0 || !is_seats_fault(status)) first = why;
        if (!is_seats_fault(status) || i + 1 == count) break;
        hone_seat_deinit(&state->seat);
        state->seated = false;
    }
    if (count > 0) return hone_fail(err, first.status, where, "%s", first.message);
    return HONE_OK; // nobody competes any more
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
        err, HONE_NOT_FOUND, where, "no kernel passed for %s%s", hone_call_text(state->call),
        state->count > 0 ? text : ": none is registered");
    hone_buffer_deinit(&words);
    return status;
}

// What it came to ----------------------------------------------------------------------------------------------------

// A kernel's best: the one that the finals chose, else one that they confirmed, else the race's.
static bool shows_better(const hone_contest_state *state, const hone_candidate *a, const hone_candidate *b)
{
    if (!b) return true;
    if (a == state->winner || b == state->winner) return a == state->winner;
    if (a->confirmed != b->confirmed) return a->confirmed;
    return a->rank_ns < b->rank_ns;
}

static const hone_candidate *best_of(const hone_contest_state *state, size_t kernel)
{
    const hone_candidate *best = NULL;
    for (size_t i = 0; i < state->candidate_count; i++) {
        const hone_candidate *candidate = &state->candidates[i];
        if (candidate->kernel == kernel && !candidate->out && shows_better(state, candidate, best)) best = candidate;
    }
    return best;
}

static void fill_row(const hone_contest_state *state, size_t kernel)
{
    hone_contest_kernel *row = &state->out->kernels[kernel];
    const hone_candidate *best = best_of(state, kernel);
    for (size_t i = 0; i < state->candidate_count; i++) {
        const hone_candidate *candidate = &state->candidates[i];
        if (candidate->kernel == kernel && candidate->is_default && !candidate->out)
            row->default_time_ns = candidate->trial.time_ns;
    }
    if (!best) return;
    row->best = best->config;
    row->time_ns = best->trial.time_ns;
    row->low_ns = best->trial.low_ns;
    row->high_ns = best->trial.high_ns;
    row->max_error = best->trial.max_error;
}

// The reference was run once, whole: tables like to show it.
static void fill_reference_row(const hone_contest_state *state, size_t kernel)
{
    hone_contest_kernel *row = &state->out->kernels[kernel];
    bool runs = hone_kernel_eligible(row->kernel, state->call, state->environment->device, NULL) == HONE_OK;
    if (!runs || state->opened.reference_ns <= 0 || row->kernel->kernel.run != state->algorithm->algorithm.reference)
        return;
    row->time_ns = row->low_ns = row->high_ns = row->default_time_ns = state->opened.reference_ns;
    row->tried = 1;
}

static void fill_rows(const hone_contest_state *state)
{
    for (size_t i = 0; i < state->count; i++) {
        if (state->out->kernels[i].kernel->kernel.is_reference)
            fill_reference_row(state, i);
        else
            fill_row(state, i);
    }
}

// The finals' samples are better than the race's: they take their place.
static void adopt_finals(hone_finals *finals)
{
    for (uint32_t i = 0; i < finals->count; i++) {
        double copy[HONE_MAX_ROUNDS];
        memcpy(copy, finals->samples[i], finals->rounds * sizeof copy[0]);
        hone_interval interval = hone_median(copy, finals->rounds);
        hone_candidate *candidate = finals->finalists[i];
        candidate->trial.time_ns = candidate->rank_ns = interval.middle;
        candidate->trial.low_ns = interval.low;
        candidate->trial.high_ns = interval.high;
        candidate->trial.samples = finals->rounds;
        candidate->confirmed = true;
    }
}

static void store_finals(hone_contest_state *state, const hone_finals *finals)
{
    for (uint32_t i = 0; i < finals->count; i++)
        hone_contest_store(state, finals->finalists[i]);
}

static void fill_counts(const hone_contest_state *state, hone_evidence *evidence)
{
    for (size_t i = 0; i < state->candidate_count; i++) {
        const hone_candidate *candidate = &state->candidates[i];
        if (candidate->out)
            evidence->rejected[candidate->trial.failure]++;
        else
            evidence->measured++;
        bool is_default = candidate->is_default && !candidate->out;
        if (is_default && evidence->default_time_ns == 0) evidence->default_time_ns = candidate->trial.time_ns;
    }
}

static void fill_evidence(const hone_contest_state *state, const hone_candidate *winner, hone_evidence *evidence)
{
    evidence->time_ns = winner->trial.time_ns;
    evidence->low_ns = winner->trial.low_ns;
    evidence->high_ns = winner->trial.high_ns;
    evidence->samples = winner->trial.samples;
    evidence->regime = state->options.regime;
    evidence->tolerance = 1; // errors are told in units of what is allowed
    evidence->max_error = winner->trial.max_error;
    evidence->seconds = (double)(hone_contest_now(state) - state->started_ns) * 1e-9;
    evidence->seed = state->options.seed;
    evidence->isolated = state->seat.kind != HONE_SEAT_HERE;
    snprintf(evidence->verified_against, sizeof evidence->verified_against, "reference");
    snprintf(evidence->hone_version, sizeof evidence->hone_version, "%s", hone_version());
    fill_counts(state, evidence);
}

void hone_contest_fill_decision(
    const hone_contest_state *state, const hone_kernel_ref *ref, const hone_config *config, hone_decision *out)
{
    snprintf(out->algorithm, sizeof out->algorithm, "%s", state->algorithm->name);
    snprintf(out->version, sizeof out->version, "%s", state->algorithm->version);
    snprintf(out->key, sizeof out->key, "%s", hone_call_key(state->call));
    snprintf(out->kernel, sizeof out->kernel, "%s", ref->kernel.name);
    out->platform = ref->kernel.platform;
    out->backend = ref->kernel.backend;
    out->config = *config;
    hone_config_json(ref->space, config, out->config_json, sizeof out->config_json);
    out->source = HONE_SOURCE_AUTOTUNE;
    out->verified = true;
}

static void fill_decision(hone_contest_state *state, const hone_candidate *winner)
{
    hone_decision *decision = &state->out->decision;
    state->winner = winner;
    hone_contest_fill_decision(state, state->contestants[winner->kernel].ref, &winner->config, decision);
    fill_evidence(state, winner, &decision->evidence);
}

static void fill_runner_up(const hone_contest_state *state, const hone_finals *finals, hone_evidence *evidence)
{
    const hone_candidate *second = NULL;
    uint32_t index = 0;
    for (uint32_t i = 0; i < finals->count; i++) {
        if (i == finals->winner || (second && finals->finalists[i]->rank_ns >= second->rank_ns)) continue;
        second = finals->finalists[i];
        index = i;
    }
    evidence->rounds = finals->rounds;
    if (!second) return;
    hone_interval ratio =
        hone_ratio(finals->samples[finals->winner], finals->samples[index], finals->rounds, state->options.seed);
    snprintf(
        evidence->runner_up, sizeof evidence->runner_up, "%s", state->contestants[second->kernel].ref->kernel.name);
    evidence->ratio = ratio.middle;
    evidence->ratio_low = ratio.low;
    evidence->ratio_high = ratio.high;
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
    if (!state->algorithm->algorithm.reference)
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
    return status == HONE_OK && !anybody(state) ? fail_nobody(state, err) : status;
}

static hone_status prepare(hone_contest_state *state, hone_error *err)
{
    hone_status status = hone_contest_take_seat(state, err);
    if (status == HONE_OK && !anybody(state)) status = fail_nobody(state, err);
    if (status == HONE_OK) status = hone_contest_load(state, err);
    if (status == HONE_OK) status = hone_contest_fill(state, err);
    if (status == HONE_OK) grant_race(state);
    return status;
}

static hone_status run_finals(hone_contest_state *state, hone_error *err)
{
    hone_finals *finals = hone_alloc(&state->environment->allocator, sizeof *finals);
    if (!finals) return hone_fail_memory(err, where);
    hone_status status = hone_contest_confirm(state, finals, err);
    if (status == HONE_OK) {
        adopt_finals(finals);
        store_finals(state, finals);
        fill_decision(state, finals->finalists[finals->winner]);
        fill_runner_up(state, finals, &state->out->decision.evidence);
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
    fill_decision(state, &state->candidates[state->best]);
    (void)!hone_contest_keep_trail(state, NULL, NULL);
}

// From here on the machine is the contest's, and its time begins.
static hone_status begin_measuring(hone_contest_state *state, hone_error *err)
{
    const hone_tune_environment *environment = state->environment;
    hone_evidence *evidence = &state->out->decision.evidence;
    hone_status status =
        environment->begin_measuring ? environment->begin_measuring(environment->measuring_ctx, err) : HONE_OK;
    if (status != HONE_OK) return status;
    start_clock(state);
    double load = hone_os_load();
    evidence->load = load > 0 ? load : 0;
    hone_os_format_utc(hone_os_now_utc(), evidence->started);
    if (environment->says_who) hone_os_who(evidence->who, sizeof evidence->who);
    return HONE_OK;
}

static hone_status measure(hone_contest_state *state, void *ctx, hone_error *err)
{
    (void)ctx;
    hone_status status = prepare(state, err);
    if (status != HONE_OK) return status;
    status = hone_contest_race(state, err);
    if (status == HONE_OK && state->best < 0) status = fail_nobody(state, err);
    if (status == HONE_OK) status = hone_contest_heat(state, err);
    if (status == HONE_OK) status = run_finals(state, err);
    if (status == HONE_CANCELLED) settle_cancelled(state);
    if (!state->out->decision.kernel[0]) fill_counts(state, &state->out->decision.evidence);
    fill_rows(state);
    return status;
}

static hone_status run(hone_contest_state *state, hone_contest_measure *measures, void *ctx, hone_error *err)
{
    const hone_tune_environment *environment = state->environment;
    hone_status status = gather(state, err);
    if (status != HONE_OK || hone_contest_keep(state)) return status;
    status = begin_measuring(state, err);
    if (status != HONE_OK) return status;
    status = measures(state, ctx, err);
    if (environment->end_measuring) environment->end_measuring(environment->measuring_ctx);
    return status;
}

static void deinit_state(hone_contest_state *state)
{
    const hone_allocator *allocator = &state->environment->allocator;
    if (state->seated) hone_seat_deinit(&state->seat);
    for (size_t i = 0; i < state->count; i++) {
        hone_bound_space_release(&state->contestants[i].space);
        hone_free(allocator, state->contestants[i].queue);
        hone_free(allocator, state->contestants[i].environment);
    }
    hone_free(allocator, state->contestants);
    hone_free(allocator, state->candidates);
    hone_free(allocator, state->resumed);
    hone_buffer_deinit(&state->message);
    hone_buffer_deinit(&state->answer);
    hone_free(allocator, state);
}

static void init_state(
    hone_contest_state *state,
    const hone_tune_environment *environment,
    const hone_algorithm_entry *algorithm,
    const hone_call *call,
    const hone_tune_options *options,
    hone_contest *out)
{
    state->measurer = &hone_machine_measurer;
    state->environment = environment;
    state->algorithm = algorithm;
    state->call = call;
    state->out = out;
    state->best = -1;
    state->drift = 1;
    state->key = (hone_store_key){
        environment->device->fingerprint, algorithm->name, algorithm->version, hone_call_key(call),
        hone_call_spec(call)};
    hone_buffer_init(&state->message, environment->allocator);
    hone_buffer_init(&state->answer, environment->allocator);
    fill_options(state, options);
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
    memset(out, 0, sizeof *out);
    out->allocator = environment->allocator;
    hone_contest_state *state = hone_alloc(&environment->allocator, sizeof *state);
    if (!state) return hone_fail_memory(err, where);
    init_state(state, environment, algorithm, call, options, out);
    hone_status status = run(state, measures, ctx, err);
    deinit_state(state);
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
