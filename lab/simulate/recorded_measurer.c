#include "simulate/recorded_measurer.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

static const double ns_per_ms = 1e6;
static const char where[] = "tune.recorded";

hone_status hone_recorded_replay_init(
    hone_recorded_replay *replay,
    const hone_allocator *allocator,
    const hone_recorded *recorded,
    bool races,
    hone_error *err)
{
    *replay = (hone_recorded_replay){.recorded = recorded, .races = races};
    replay->uses = hone_alloc_array(allocator, hone_recorded_count(recorded), sizeof *replay->uses);
    return replay->uses != NULL ? HONE_OK : hone_fail_memory(err, where);
}

void hone_recorded_replay_deinit(hone_recorded_replay *replay, const hone_allocator *allocator)
{
    hone_free(allocator, replay->uses);
    replay->uses = NULL;
}

hone_recorded_use *hone_recorded_replay_use(const hone_recorded_replay *replay, const hone_config *config)
{
    const hone_recorded_row *row = hone_recorded_find(replay->recorded, config);
    return row != NULL ? &replay->uses[row - hone_recorded_at(replay->recorded, 0)] : NULL;
}

// Runs ----------------------------------------------------------------------------------------------------------------

// One config as it runs.
typedef struct run {
    hone_recorded_replay *replay;
    const hone_recorded_row *row;
    hone_recorded_use *use;
} run;

static double sample_at(const hone_recorded_row *row, uint32_t index)
{
    return ns_per_ms * (row->sample_count > 0 ? row->samples[index % row->sample_count] : row->time);
}

static hone_failure take(run *r, double *out_ns, hone_error *err)
{
    *out_ns = sample_at(r->row, r->use->taken);
    if (!(*out_ns > 0)) {
        hone_fail(err, HONE_KERNEL_FAILED, where, "a run of it was recorded with no time: the clock stood still");
        return HONE_FAILURE_RUN;
    }
    r->use->taken++;
    if (r->replay->races) r->replay->clock_ns += *out_ns;
    return HONE_FAILURE_NONE;
}

static hone_failure warm(void *ctx, hone_sample *out, hone_error *err)
{
    *out = (hone_sample){0};
    return take(ctx, &out->time_ns, err);
}

static hone_failure sample(void *ctx, hone_sample *out, double *out_spent_ns, hone_error *err)
{
    *out = (hone_sample){0};
    hone_failure failure = take(ctx, &out->time_ns, err);
    *out_spent_ns = out->time_ns;
    return failure;
}

static uint64_t run_now(void *ctx)
{
    return (uint64_t)((const run *)ctx)->replay->clock_ns;
}

// Trying --------------------------------------------------------------------------------------------------------------

// Everything that its file has of it, as the file has it.
static void measure_whole(run *r, hone_trial *out)
{
    out->time_ns = out->low_ns = out->high_ns = r->row->time * ns_per_ms;
    out->samples = r->row->sample_count > 0 ? (uint32_t)r->row->sample_count : 1;
    while (out->kept < HONE_KEPT_SAMPLES && out->kept < r->row->sample_count) {
        out->kept_ns[out->kept] = sample_at(r->row, out->kept);
        out->kept++;
    }
}

static hone_failure measure(run *r, const hone_stopping *stopping, hone_trial *out, hone_error *err)
{
    const hone_recorded_row *row = r->row;
    bool fails = row->failure != HONE_FAILURE_NONE;
    // What is made stays made, and what was paid for whole stays paid.
    if (!r->use->tried) r->replay->clock_ns += ns_per_ms * (row->compile + row->verification + row->framework);
    if (!r->use->tried && (fails || !r->replay->races)) r->replay->clock_ns += ns_per_ms * row->benchmark;
    r->use->tried = true;
    if (fails) {
        hone_fail(err, HONE_KERNEL_FAILED, where, "recorded as failed: %s", hone_failure_name(row->failure));
        return row->failure;
    }
    if (r->replay->races) {
        const hone_sampler sampler = {r, warm, sample, run_now};
        return hone_stopping_run(stopping, &sampler, out, err);
    }
    measure_whole(r, out);
    return HONE_FAILURE_NONE;
}

static hone_status start(hone_trials *trials, const hone_config *config, run *out, hone_error *err)
{
    hone_recorded_replay *replay = trials->measurer_ctx;
    *out = (run){replay, hone_recorded_find(replay->recorded, config), hone_recorded_replay_use(replay, config)};
    if (out->row != NULL) return HONE_OK;
    return hone_fail(
        err, HONE_NOT_FOUND, where, "%s: a config was asked for that was not recorded", trials->question->title);
}

static hone_status attempt(
    hone_trials *trials,
    const hone_try *what,
    const hone_stopping *stopping,
    hone_trial *out,
    bool *out_cut,
    hone_error *err)
{
    run r;
    hone_error why = {0};
    (void)out_cut;
    hone_status status = start(trials, what->config, &r, err);
    if (status != HONE_OK) return status;
    bool is_first = !r.use->tried;
    double before_ns = r.replay->clock_ns;
    out->failure = measure(&r, stopping, out, &why);
    if (out->failure != HONE_FAILURE_NONE) hone_words_copy(out->reason, sizeof out->reason, why.message);
    if (is_first) {
        r.use->trial_runs = r.replay->races || out->failure != HONE_FAILURE_NONE ? r.use->taken : out->samples;
        r.use->trial_ns = r.replay->clock_ns - before_ns;
        r.use->estimate_ns = out->failure == HONE_FAILURE_NONE ? out->time_ns : 0;
    }
    return HONE_OK;
}

// Confirming ----------------------------------------------------------------------------------------------------------

static hone_failure sample_in_round(void *ctx, uint32_t index, hone_sample *out, hone_error *err)
{
    run *runs = ctx;
    return take(&runs[index], &out->time_ns, err);
}

static hone_status run_rounds(hone_trials *trials, const hone_block *block, hone_rounds_answer *out, hone_error *err)
{
    run runs[HONE_MAX_TOGETHER];
    hone_error why = {0};
    for (uint32_t i = 0; i < block->count; i++) {
        hone_status status = start(trials, &block->finalists[i]->config, &runs[i], err);
        if (status != HONE_OK) return status;
    }
    const hone_rounds asked = {block->count, block->rounds, block->seed, block->seconds * 1e9, {0}};
    const hone_round_sampler who = {runs, sample_in_round, run_now};
    out->failure = hone_rounds_run(&who, &asked, out, &why);
    if (out->failure != HONE_FAILURE_NONE) hone_words_copy(out->reason, sizeof out->reason, why.message);
    return HONE_OK;
}

// Clock ---------------------------------------------------------------------------------------------------------------

static uint64_t now_ns(const hone_trials *trials)
{
    return (uint64_t)((const hone_recorded_replay *)trials->measurer_ctx)->clock_ns;
}

static void pause_for(hone_trials *trials, uint64_t ns)
{
    ((hone_recorded_replay *)trials->measurer_ctx)->clock_ns += (double)ns;
}

const hone_measurer hone_recorded_measurer = {attempt, run_rounds, NULL, now_ns, pause_for};
