// A contest from beginning to end: which kernels compete, where they run, the race, the finals, the result.
#include "tune/contest/contest.h"

#include "base/assert.h"
#include "base/error.h"
#include "registry/names.h"
#include "tune/contest/family.h"
#include "tune/rule/statistics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_EVALUATIONS = 500, LEAST_PATIENCE = 30 };

static const double default_candidate_seconds = 10;
// Of the contest's time. The rest is for the finals.
static const double race_share = 0.7, least_race_share = 0.5;
static const char where[] = "tune.contest";

// Options -------------------------------------------------------------------------------------------------------------

static void fill_options(hone_question *question, const hone_tune_options *options)
{
    hone_tune_options *to = &question->options;
    if (options != NULL) *to = *options;
    question->patience_given = to->patience > 0;
    if (to->evaluations == 0) to->evaluations = DEFAULT_EVALUATIONS;
    if (!(to->seconds > 0)) to->seconds = HONE_TUNE_SECONDS;
    question->candidate_seconds_given = to->candidate_seconds > 0;
    if (!question->candidate_seconds_given) to->candidate_seconds = default_candidate_seconds;
    if (to->patience == 0) {
        uint32_t share = (uint32_t)(0.15 * to->evaluations);
        to->patience = share > LEAST_PATIENCE ? share : LEAST_PATIENCE;
    }
}

static void start_clock(hone_trials *trials)
{
    trials->started_ns = hone_trials_now(trials);
    // Limited to a year, so that no number overflows.
    double seconds = fmin(trials->question->options.seconds, 3e7);
    trials->end_ns = trials->started_ns + (uint64_t)(seconds * 1e9);
    trials->race_until_ns = trials->started_ns + (uint64_t)(race_share * seconds * 1e9);
}

// Grants the race its least share from now on, so that a slow reference does not use up its time.
static void grant_race(hone_trials *trials)
{
    const uint64_t least = hone_trials_until(trials, least_race_share);
    if (least > trials->race_until_ns) trials->race_until_ns = least;
}

// Messages ------------------------------------------------------------------------------------------------------------

static bool has_same_words(const hone_contest_kernel *a, const hone_contest_kernel *b)
{
    return a->tried == 0 && b->tried == 0 && a->reason[0] != '\0' && strcmp(a->reason, b->reason) == 0;
}

// Describes a row together with later rows that have the same reason, unless an earlier row has it.
static void describe_row(const hone_contest_state *state, size_t index, hone_buffer *out)
{
    const hone_contest_kernel *rows = state->field.rows, *row = &rows[index];
    for (size_t i = 0; i < index; i++)
        if (has_same_words(&rows[i], row)) return;
    hone_buffer_format(out, "; %s", row->kernel->kernel.name);
    for (size_t i = index + 1; i < state->field.count; i++)
        if (has_same_words(&rows[i], row)) hone_buffer_format(out, ", %s", rows[i].kernel->kernel.name);
    if (row->tried > 0) hone_buffer_format(out, " (%u tried)", row->tried);
    if (row->reason[0]) hone_buffer_format(out, ": %s", row->reason);
}

// No kernel passed: reports the reason for each kernel that was asked for. The reasons of the others would take up the
// room of these.
static hone_status fail_nobody(const hone_contest_state *state, hone_error *err)
{
    hone_buffer words;
    hone_buffer_init(&words, state->question.environment->allocator);
    uint32_t others = 0;
    hone_error why = {.message = ""};
    for (size_t i = 0; i < state->field.count; i++) {
        const hone_kernel *kernel = &state->field.rows[i].kernel->kernel;
        if (hone_tune_asks_for(&state->question.options, kernel->name, kernel->platform, &why) == HONE_OK)
            describe_row(state, i, &words);
        else
            others++;
    }
    if (others > 0) hone_buffer_format(&words, "; %u others: %s", others, why.message);
    const char *text = hone_buffer_string(&words);
    hone_status status = hone_fail(
        err, HONE_NOT_FOUND, where, "no kernel passed for %s%s", state->question.title,
        state->field.count > 0 ? text : ": none is registered");
    hone_buffer_deinit(&words);
    return status;
}

// Running it ----------------------------------------------------------------------------------------------------------

// Bytes of a call's arrays, including results.
static double memory_of(const hone_call *call)
{
    double total = 0;
    for (size_t i = 0; i < hone_signature_count(hone_call_signature(call)); i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i);
        int64_t bytes = 0, below = 0;
        if (tensor != NULL && hone_tensor_span(tensor, &bytes, &below) != HONE_OK) return INFINITY;
        total += (double)bytes;
    }
    return total;
}

hone_status hone_call_fits(const hone_call *call, const hone_device_info *device, hone_error *err)
{
    // The rest is for the reference's results, packed copies, and other programs on the machine.
    const double share = 0.5;
    double needed = memory_of(call), there = (double)device->memory_bytes;
    if (there <= 0 || needed <= share * there) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where,
        "%s: its arrays take %.1f GB, and made-up data may take half of the %.1f GB of this machine: give a smaller "
        "call",
        hone_call_text(call), needed * 1e-9, there * 1e-9);
}

static hone_status check_regime(const hone_question *question, hone_error *err)
{
    const hone_device_info *device = question->environment->device;
    const hone_regime regime = hone_regime_with(question->options.regime, false);
    if (hone_platform_has_regime(device->platform, regime)) return HONE_OK;
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "%s: %s has no regime %s: %s. Ask for warm or cold%s", question->title,
        device->name, hone_regime_name(regime),
        regime == HONE_GRAPH ? "its runs cannot be captured into a graph"
                             : "a run has ended when it returns, so that warm times have all that a call costs",
        regime == HONE_GRAPH && hone_platform_has_regime(device->platform, HONE_EAGER) ? ", or for eager" : "");
}

static hone_status check_inputs(const hone_question *question, hone_error *err)
{
    if (question->algorithm->algorithm.reference == NULL && question->algorithm->algorithm.reference_kernel == NULL)
        return hone_fail(
            err, HONE_NOT_FOUND, where,
            "%s@v%s has no reference, so nothing can be verified and nobody can win: register one with the algorithm",
            question->algorithm->name, question->algorithm->version);
    hone_status status = check_regime(question, err);
    return status == HONE_OK ? hone_call_fits(question->call, question->environment->device, err) : status;
}

// A name that no kernel has is an error of the caller. It is reported before anything about the kernels that exist.
static hone_status check_kernel(const hone_contest_state *state, hone_error *err)
{
    const char *wanted = state->question.options.kernel, *algorithm = state->question.algorithm->name;
    if (wanted == NULL || state->field.count == 0) return HONE_OK;
    for (size_t i = 0; i < state->field.count; i++)
        if (strcmp(state->field.rows[i].kernel->kernel.name, wanted) == 0) return HONE_OK;
    return hone_fail(
        err, HONE_NOT_FOUND, where, "%s has no kernel %s (hone list %s shows them)", algorithm, wanted, algorithm);
}

// Collects the kernels that compete.
static hone_status gather(hone_contest_state *state, hone_error *err)
{
    hone_status status = check_inputs(&state->question, err);
    if (status == HONE_OK) status = hone_field_collect(&state->field, &state->question, state->out, err);
    if (status == HONE_OK) status = check_kernel(state, err);
    return status == HONE_OK && !hone_field_has_anybody(&state->field) ? fail_nobody(state, err) : status;
}

// Chooses where the kernels run, and loads what is known of them.
static hone_status prepare(hone_contest_state *state, hone_error *err)
{
    hone_field *field = &state->field;
    const hone_question *question = &state->question;
    hone_status status = hone_contest_choose_sandbox(&state->trials, field, question, err);
    if (status == HONE_OK && !hone_field_has_anybody(field)) status = fail_nobody(state, err);
    if (status == HONE_OK) status = hone_known_load(&state->known, question, field, err);
    if (status == HONE_OK) status = hone_field_find_priors(field, question, err);
    if (status == HONE_OK) hone_known_find_incumbent(&state->known, question, field);
    return status;
}

static void store_finals(hone_contest_state *state, const hone_finals *finals)
{
    for (uint32_t i = 0; i < finals->count; i++)
        hone_known_store(&state->known, &state->question, &state->field, finals->finalists[i].candidate);
}

static hone_status run_finals(hone_contest_state *state, hone_error *err)
{
    hone_finals *finals = hone_alloc(&state->question.environment->allocator, sizeof *finals);
    if (finals == NULL) return hone_fail_memory(err, where);
    hone_status status = hone_contest_run_finals(state, finals, err);
    if (status == HONE_OK) {
        hone_contest_adopt_finals(finals);
        store_finals(state, finals);
        hone_contest_choose(state, finals->finalists[finals->winner].candidate);
        hone_evidence *evidence = &state->out->decision.evidence;
        hone_contest_fill_runner_up(&state->question, &state->field, finals, evidence);
        hone_finals_say_undecided(state, finals, evidence->undecided, sizeof evidence->undecided);
        status = hone_contest_keep_history(state, finals, err);
    }
    hone_free(&state->question.environment->allocator, finals);
    return status == HONE_NOT_FOUND ? fail_nobody(state, err) : status;
}

// Whether the candidate was a leader whose checks were left to the finals.
static bool is_unproven(const void *ctx, const hone_candidate *candidate)
{
    (void)ctx;
    return candidate->trial.unproven;
}

// After a cancellation: chooses the best candidate so far that was verified, though not in the finals.
static void settle_cancelled(hone_contest_state *state)
{
    const hone_candidate *best = hone_standings_next_best(&state->standings, is_unproven, NULL, false);
    if (best == NULL) return;
    hone_contest_choose(state, best);
    char *undecided = state->out->decision.evidence.undecided;
    snprintf(undecided, sizeof state->out->decision.evidence.undecided, "it was cancelled before the finals");
    (void)!hone_contest_keep_history(state, NULL, NULL);
}

// Checks that the clock runs: everything that is measured, and every limit, depends on it.
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

// Waits for the machine. From here on this contest alone measures on it, and the contest's time begins.
static hone_status begin_measuring(hone_contest_state *state, hone_error *err)
{
    const hone_tune_environment *environment = state->question.environment;
    hone_evidence *evidence = &state->out->decision.evidence;
    hone_status status = check_clock(err);
    if (status == HONE_OK && environment->begin_measuring != NULL)
        status = environment->begin_measuring(environment->measuring_ctx, err);
    if (status != HONE_OK) return status;
    // A random seed, so that the data that a kernel is tried on cannot be known before: a kernel that is made for the
    // inputs of one seed is found out.
    if (state->question.options.seed == 0) state->question.options.seed = hone_os_random_seed();
    start_clock(&state->trials);
    hone_os_conditions_read("", &state->before);
    evidence->load = fmax(state->before.load, 0);
    hone_os_format_utc(hone_os_now_utc(), evidence->started);
    if (environment->says_who) hone_os_who(evidence->who, sizeof evidence->who);
    return HONE_OK;
}

// Reads the counters again. They run since the machine started, so only their growth says something of these times.
static void end_measuring(hone_contest_state *state)
{
    const hone_tune_environment *environment = state->question.environment;
    hone_evidence *evidence = &state->out->decision.evidence;
    hone_os_conditions after;
    hone_os_conditions_read("", &after);
    hone_os_disturbance came = hone_os_disturbance_between(&state->before, &after);
    evidence->throttled = came.throttled > 0 ? (uint32_t)fmin((double)came.throttled, UINT32_MAX) : 0;
    evidence->stolen = fmax(came.stolen, 0);
    if (environment->end_measuring != NULL) environment->end_measuring(environment->measuring_ctx);
}

// Runs the race and the finals. The contestants are in the state, with what was measured before.
static hone_status contend(hone_contest_state *state, hone_error *err)
{
    const hone_budget budget = hone_contest_budget(state);
    hone_status status = hone_contest_forget_other_code(state, err);
    hone_family_find(&state->field);
    if (status == HONE_OK) status = hone_field_begin_searches(&state->field, &state->question, &state->known, err);
    if (status == HONE_OK) grant_race(&state->trials);
    if (status == HONE_OK) status = hone_contest_race(state, err);
    if (hone_budget_has_evaluations(&budget)) state->out->expected_gain = hone_budget_expected_gain(&budget);
    if (status == HONE_OK && state->standings.best < 0) status = fail_nobody(state, err);
    if (status == HONE_OK) status = run_finals(state, err);
    if (status == HONE_CANCELLED) settle_cancelled(state);
    if (!state->out->decision.kernel[0]) hone_contest_fill_counts(&state->standings, &state->out->decision.evidence);
    return status;
}

hone_status hone_contest_compete(hone_contest_state *state, hone_error *err)
{
    hone_assert(state->field.count > 0 && state->field.rows != NULL);
    start_clock(&state->trials);
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
    if (status != HONE_OK || hone_known_keeps(&state->question, &state->field, &state->out->decision)) return status;
    status = begin_measuring(state, err);
    if (status != HONE_OK) return status;
    status = measures(state, ctx, err);
    end_measuring(state);
    return status;
}

void hone_contest_destroy(hone_contest_state **pointer)
{
    hone_contest_state *state = *pointer;
    if (state == NULL) return;
    *pointer = NULL;
    const hone_allocator *allocator = &state->question.environment->allocator;
    hone_trials_deinit(&state->trials);
    hone_field_deinit(&state->field, allocator);
    hone_free(allocator, state->standings.candidates);
    hone_free(allocator, state->known.resumed);
    hone_free(allocator, state);
}

static void ask(hone_question *question, const hone_contest_request *request)
{
    const hone_algorithm_entry *algorithm = request->algorithm;
    const hone_call *call = request->call;
    *question = (hone_question){
        .environment = request->environment,
        .algorithm = algorithm,
        .call = call,
        .title = call != NULL ? hone_call_text(call) : algorithm->name,
        .key =
            {request->environment->device->fingerprint, algorithm->name, algorithm->version,
             call != NULL ? hone_call_key(call) : "", call != NULL ? hone_call_spec(call) : ""},
    };
    fill_options(question, request->options);
}

hone_status hone_contest_create(
    const hone_contest_request *request, hone_contest *out, hone_contest_state **out_state, hone_error *err)
{
    hone_assert(request->environment != NULL && request->algorithm != NULL);
    memset(out, 0, sizeof *out);
    out->allocator = request->environment->allocator;
    hone_contest_state *state = *out_state = hone_alloc(&request->environment->allocator, sizeof *state);
    if (state == NULL) return hone_fail_memory(err, where);
    state->out = out;
    state->standings.best = -1;
    state->drift = (hone_drift){.factor = 1, .reference = -1};
    ask(&state->question, request);
    hone_trials_init(&state->trials, &state->question, &state->field);
    return HONE_OK;
}

hone_status hone_contest_run_as(
    const hone_contest_request *request, hone_contest_measure *measures, void *ctx, hone_contest *out, hone_error *err)
{
    hone_contest_state *state = NULL;
    hone_status status = hone_contest_create(request, out, &state, err);
    if (status == HONE_OK) status = run(state, measures, ctx, err);
    hone_contest_destroy(&state);
    return status;
}

hone_status hone_contest_run(const hone_contest_request *request, hone_contest *out, hone_error *err)
{
    return hone_contest_run_as(request, measure, NULL, out, err);
}

void hone_contest_deinit(hone_contest *contest)
{
    if (contest->kernels != NULL) hone_free(&contest->allocator, contest->kernels);
    if (contest->history != NULL) hone_free(&contest->allocator, contest->history);
    memset(contest, 0, sizeof *contest);
}
