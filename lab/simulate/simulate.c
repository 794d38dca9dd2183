#include "simulate/simulate.h"

#include "base/error.h"
#include "base/json.h"
#include "simulate/recorded_measurer.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { CONFIG_SIZE = 2048 };

static const double forever_seconds = 3e7;
static const char where[] = "tune.simulate";

// The one contestant: a kernel of which nothing is there but its space.
typedef struct stage {
    hone_device_info device;
    hone_tune_environment environment;
    hone_algorithm_entry algorithm;
    hone_kernel_ref kernel;
    hone_recorded_replay replay;
    hone_contest contest;
} stage;

static void set_stage(stage *s, const hone_allocator *allocator, const hone_simulation *simulation)
{
    const char *name = hone_recorded_kernel(simulation->recorded);
    s->environment = (hone_tune_environment){.allocator = *allocator, .device = &s->device};
    s->algorithm = (hone_algorithm_entry){.name = name[0] ? name : "recorded", .version = "recorded"};
    s->kernel = (hone_kernel_ref){
        .algorithm = &s->algorithm,
        .kernel = {.name = s->algorithm.name, .revision = "1"},
        .space = hone_recorded_space(simulation->recorded),
    };
}

static hone_tune_options options_of(const hone_simulation *simulation)
{
    return (hone_tune_options){
        .struct_size = sizeof(hone_tune_options),
        .seed = simulation->seed,
        .evaluations = simulation->evaluations,
        .seconds = simulation->seconds > 0 ? simulation->seconds : forever_seconds,
        .patience = simulation->patience > 0 ? simulation->patience : UINT32_MAX,
        .cancel = simulation->cancel,
    };
}

static hone_status enter(hone_contest_state *state, stage *s, const hone_simulation *simulation, hone_error *err)
{
    const hone_allocator *allocator = &state->question.environment->allocator;
    state->field.contestants = hone_alloc(allocator, sizeof *state->field.contestants);
    state->field.rows = state->out->kernels = hone_alloc(allocator, sizeof *state->out->kernels);
    if (state->field.contestants == NULL || state->out->kernels == NULL) return hone_fail_memory(err, where);
    state->field.count = state->out->count = 1;
    state->out->kernels[0].kernel = &s->kernel;
    state->field.contestants[0] = (hone_contestant){
        .ref = &s->kernel,
        .configs = hone_recorded_configs(simulation->recorded),
        .config_count = hone_recorded_count(simulation->recorded),
        .priors = simulation->priors,
        .prior_count = simulation->prior_count,
    };
    return hone_space_bind(s->kernel.space, NULL, NULL, &state->field.contestants[0].space, err);
}

// The document --------------------------------------------------------------------------------------------------------

static void put_number(hone_buffer *out, const char *name, double value)
{
    hone_buffer_format(out, ",\"%s\":", name);
    hone_json_number(out, value);
}

static void put_config(hone_buffer *out, const hone_space *space, const hone_config *config)
{
    char text[CONFIG_SIZE];
    bool fits = hone_config_json(space, config, text, sizeof text) < sizeof text;
    hone_buffer_format(out, "\"config\":%s", fits ? text : "null");
}

// As the spaces' files tell failures apart.
static const char *failure_word(hone_failure failure)
{
    return failure == HONE_FAILURE_PREPARE ? "compile" : hone_failure_name(failure);
}

static void put_costs(hone_buffer *out, const hone_recorded_row *row)
{
    put_number(out, "cost_ms", hone_recorded_cost(row));
    put_number(out, "compile_ms", row->compile);
    put_number(out, "verification_ms", row->verification);
    put_number(out, "benchmark_ms", row->benchmark);
    put_number(out, "framework_ms", row->framework);
}

static void put_evaluation(const stage *s, const hone_candidate *candidate, double best, hone_buffer *out)
{
    const hone_recorded_row *row = hone_recorded_find(s->replay.recorded, &candidate->config);
    const hone_recorded_use *use = hone_recorded_replay_use(&s->replay, &candidate->config);
    hone_buffer_char(out, '{');
    put_config(out, s->kernel.space, &candidate->config);
    if (row->failure == HONE_FAILURE_NONE) {
        put_number(out, "time", row->time);
        put_number(out, "measured", use->estimate_ns * 1e-6);
    } else {
        hone_buffer_text(out, ",\"time\":null,");
        hone_json_field(out, "failure", failure_word(row->failure));
    }
    put_costs(out, row);
    put_number(out, "paid_ms", use->trial_ns * 1e-6);
    hone_buffer_format(out, ",\"runs\":%u", use->trial_runs);
    if (candidate->trial.dropped) hone_buffer_text(out, ",\"dropped\":true");
    put_number(out, "seconds", candidate->at_seconds);
    if (isfinite(best)) put_number(out, "best", best);
    hone_buffer_char(out, '}');
}

static void put_evaluations(const hone_contest_state *state, const stage *s, double *out_best, hone_buffer *out)
{
    *out_best = INFINITY;
    hone_buffer_text(out, ",\"evaluations\":[");
    for (size_t i = 0; i < state->standings.count; i++) {
        const hone_recorded_row *row = hone_recorded_find(s->replay.recorded, &state->standings.candidates[i].config);
        if (row->failure == HONE_FAILURE_NONE) *out_best = fmin(*out_best, row->time);
        if (i > 0) hone_buffer_char(out, ',');
        put_evaluation(s, &state->standings.candidates[i], *out_best, out);
    }
    hone_buffer_char(out, ']');
}

// best: of those that were tried, by the file's own times.
static void put_best(const hone_contest_state *state, const stage *s, double best, hone_buffer *out)
{
    const hone_decision *decision = &state->out->decision;
    if (!decision->kernel[0]) return;
    const hone_evidence *evidence = &decision->evidence;
    const hone_recorded_row *row = hone_recorded_find(s->replay.recorded, &decision->config);
    hone_buffer_text(out, ",\"best\":{");
    put_config(out, s->kernel.space, &decision->config);
    put_number(out, "time", row->time);
    put_number(out, "measured", evidence->time_ns * 1e-6);
    put_number(out, "low", evidence->low_ns * 1e-6);
    put_number(out, "high", evidence->high_ns * 1e-6);
    hone_buffer_format(out, ",\"rounds\":%u", evidence->rounds);
    put_number(out, "ratio", evidence->ratio);
    put_number(out, "ratio_low", evidence->ratio_low);
    put_number(out, "ratio_high", evidence->ratio_high);
    put_number(out, "regret", row->time / best - 1);
    hone_buffer_char(out, '}');
}

static void put_document(
    const hone_contest_state *state,
    const stage *s,
    const hone_simulation *simulation,
    double tuner_ms,
    hone_buffer *out)
{
    double best;
    hone_buffer_char(out, '{');
    hone_json_field(out, "space", simulation->name);
    hone_buffer_char(out, ',');
    hone_json_field(out, "device", hone_recorded_device(simulation->recorded));
    hone_buffer_format(out, ",\"seed\":%llu", (unsigned long long)simulation->seed);
    hone_buffer_format(out, ",\"configs\":%zu", hone_recorded_count(simulation->recorded));
    hone_buffer_format(out, ",\"racing\":%s", simulation->races ? "true" : "false");
    put_evaluations(state, s, &best, out);
    put_best(state, s, best, out);
    put_number(out, "paid_ms", s->replay.clock_ns * 1e-6);
    put_number(out, "tuner_ms", tuner_ms);
    hone_buffer_char(out, '}');
}

// Running -------------------------------------------------------------------------------------------------------------

static hone_status run(
    hone_contest_state *state, stage *s, const hone_simulation *simulation, hone_buffer *out, hone_error *err)
{
    state->question.title = simulation->name;
    state->trials.measurer = &hone_recorded_measurer;
    state->trials.measurer_ctx = &s->replay;
    uint64_t start = hone_os_now_ns();
    hone_status status = enter(state, s, simulation, err);
    if (status == HONE_OK) status = hone_contest_compete(state, err);
    bool is_told = status == HONE_OK || status == HONE_NOT_FOUND || status == HONE_CANCELLED;
    if (!is_told) return status;
    put_document(state, s, simulation, (double)(hone_os_now_ns() - start) * 1e-6, out);
    return out->failed ? hone_fail_memory(err, where) : status;
}

hone_status hone_simulate(
    const hone_allocator *allocator, const hone_simulation *simulation, hone_buffer *out, hone_error *err)
{
    const hone_tune_options options = options_of(simulation);
    stage *s = hone_alloc(allocator, sizeof *s);
    if (s == NULL) return hone_fail_memory(err, where);
    set_stage(s, allocator, simulation);
    hone_contest_state *state = NULL;
    hone_status status = hone_recorded_replay_init(&s->replay, allocator, simulation->recorded, simulation->races, err);
    if (status == HONE_OK)
        status = hone_contest_create(
            &(hone_contest_request){&s->environment, &s->algorithm, NULL, &options}, &s->contest, &state, err);
    if (status == HONE_OK) status = run(state, s, simulation, out, err);
    hone_contest_destroy(&state);
    hone_contest_deinit(&s->contest);
    hone_recorded_replay_deinit(&s->replay, allocator);
    hone_free(allocator, s);
    return status;
}

// Warm ----------------------------------------------------------------------------------------------------------------

// The next best row after the last one; NULL: there is none.
static const hone_recorded_row *next_best(const hone_recorded *recorded, const hone_recorded_row *last)
{
    const hone_recorded_row *best = NULL;
    for (size_t i = 0; i < hone_recorded_count(recorded); i++) {
        const hone_recorded_row *row = hone_recorded_at(recorded, i);
        bool is_after = last == NULL || row->time > last->time || (row->time == last->time && row > last);
        if (row->failure == HONE_FAILURE_NONE && is_after && (best == NULL || row->time < best->time)) best = row;
    }
    return best;
}

static size_t first_word(const char *text)
{
    return strcspn(text, " ");
}

// The same device 0, one of the same maker 2, any other 4.
static double distance_of(const char *device, const char *other)
{
    size_t maker = first_word(device);
    if (device[0] && strcmp(device, other) == 0) return 0;
    return device[0] && maker == first_word(other) && strncmp(device, other, maker) == 0 ? 2 : 4;
}

size_t hone_simulate_warm(
    const hone_recorded *space,
    const hone_recorded *other,
    uint32_t source,
    hone_search_prior *priors,
    size_t *out_foreign)
{
    size_t count = 0;
    const hone_recorded_row *row = next_best(other, NULL);
    double best = row != NULL ? row->time : 1;
    double distance = distance_of(hone_recorded_device(space), hone_recorded_device(other));
    *out_foreign = 0;
    for (int i = 0; row != NULL && i < HONE_WARM_CONFIGS; i++, row = next_best(other, row)) {
        char text[CONFIG_SIZE];
        hone_search_prior prior = {.relative = row->time / best, .distance = distance, .source = source};
        size_t size = hone_config_json(hone_recorded_space(other), &row->config, text, sizeof text);
        bool known = size < sizeof text &&
                     hone_config_from_json(hone_recorded_space(space), text, size, &prior.config, NULL) == HONE_OK &&
                     hone_recorded_find(space, &prior.config) != NULL;
        if (known)
            priors[count++] = prior;
        else
            ++*out_foreign;
    }
    return count;
}
