// Measurements in the store: an interrupted contest goes on where it stopped, since each is written at once.
#include "tune/contest.h"

#include "base/error.h"
#include "base/log.h"

#include <string.h>

static const char where[] = "tune.resume";

typedef struct loader {
    hone_contest_state *state;
    bool failed;
} loader;

static bool same_revision(const char *a, const char *b)
{
    return strcmp(a ? a : "1", b ? b : "1") == 0;
}

// What was measured of another revision of the kernel, or under another regime, says nothing here.
static bool applies(
    const hone_contest_state *state, const hone_contestant *contestant, const hone_store_measurement *measurement)
{
    const hone_kernel *kernel = &contestant->ref->kernel;
    return contestant->space && strcmp(kernel->name, measurement->kernel) == 0 &&
           same_revision(kernel->revision, measurement->revision) && measurement->regime == state->options.regime;
}

static bool read_trial(const hone_store_measurement *measurement, hone_trial *out)
{
    memset(out, 0, sizeof *out);
    out->failure = measurement->failure;
    out->max_error = measurement->max_error;
    out->time_ns = measurement->time_ns;
    out->low_ns = measurement->low_ns;
    out->high_ns = measurement->high_ns;
    out->samples = measurement->samples;
    hone_words_copy(out->reason, sizeof out->reason, measurement->reason ? measurement->reason : "");
    if (out->failure != HONE_FAILURE_NONE) return true;
    return measurement->max_error >= 0 && measurement->time_ns > 0 && measurement->samples > 0;
}

static bool load_one(void *ctx, const hone_store_measurement *measurement)
{
    loader *load = ctx;
    hone_contest_state *state = load->state;
    for (uint32_t i = 0; i < state->count; i++) {
        hone_resumed resumed = {.kernel = i};
        hone_contestant *contestant = &state->contestants[i];
        if (!applies(state, contestant, measurement) || !read_trial(measurement, &resumed.trial)) continue;
        if (hone_config_from_json(
                contestant->ref->space, measurement->config, strlen(measurement->config), &resumed.config, NULL) !=
            HONE_OK)
            continue;
        load->failed = !hone_grow(
            &state->environment->allocator, &state->resumed, &state->resumed_capacity, state->resumed_count + 1,
            sizeof *state->resumed);
        if (load->failed) return false;
        state->resumed[state->resumed_count++] = resumed;
    }
    return true;
}

hone_status hone_contest_load(hone_contest_state *state, hone_error *err)
{
    hone_store *store = state->environment->store;
    if (!store || state->options.fresh) return HONE_OK;
    loader load = {state, false};
    hone_error why = {0};
    hone_status status = hone_store_measurements(store, &state->key, load_one, &load, &why);
    if (load.failed) return hone_fail_memory(err, where);
    if (status != HONE_OK && status != HONE_NOT_FOUND)
        hone_log_write(
            state->environment->log, HONE_LOG_WARNING, "earlier measurements cannot be read, all are taken anew: %s",
            why.message);
    return HONE_OK;
}

// Keeping what is there ------------------------------------------------------------------------------------------------

static hone_contestant *find_contestant(const hone_contest_state *state, const hone_store_decision *row)
{
    for (size_t i = 0; i < state->count; i++) {
        const hone_kernel *kernel = &state->contestants[i].ref->kernel;
        if (state->contestants[i].space && strcmp(kernel->name, row->kernel) == 0 &&
            strcmp(hone_platform_name(kernel->platform), row->platform) == 0 &&
            (!row->revision || same_revision(kernel->revision, row->revision)))
            return &state->contestants[i];
    }
    return NULL;
}

static void keep_row(void *ctx, const hone_store_decision *row)
{
    hone_contest_state *state = ctx;
    hone_decision *decision = &state->out->decision;
    const hone_contestant *contestant = row->verified ? find_contestant(state, row) : NULL;
    hone_config config;
    if (!contestant) return;
    const hone_kernel_ref *ref = contestant->ref;
    if (hone_config_from_json(ref->space, row->config, strlen(row->config), &config, NULL) != HONE_OK) return;
    if (hone_bound_space_check(contestant->space, &config, NULL) != HONE_OK) return;
    hone_evidence evidence = {0};
    if (row->evidence) (void)!hone_evidence_parse(row->evidence, strlen(row->evidence), &evidence, NULL);
    evidence.time_ns = row->time_ns;
    evidence.regime = row->regime;
    hone_contest_fill_decision(state, ref, &config, decision);
    decision->evidence = evidence;
}

bool hone_contest_keep(hone_contest_state *state)
{
    hone_store *store = state->environment->store;
    if (!store || !state->options.keep_existing) return false;
    hone_status status = hone_store_get(store, &state->key, state->options.regime, keep_row, state, NULL);
    return status == HONE_OK && state->out->decision.kernel[0] != '\0';
}

const hone_resumed *hone_contest_find_resumed(
    const hone_contest_state *state, uint32_t kernel, const hone_config *config)
{
    for (size_t i = 0; i < state->resumed_count; i++)
        if (state->resumed[i].kernel == kernel && hone_config_equal(&state->resumed[i].config, config))
            return &state->resumed[i];
    return NULL;
}

void hone_contest_store(hone_contest_state *state, const hone_candidate *candidate)
{
    char config[1024];
    const hone_kernel_ref *ref = state->contestants[candidate->kernel].ref;
    if (!state->environment->store) return;
    if (hone_config_json(ref->space, &candidate->config, config, sizeof config) >= sizeof config) return;
    const hone_trial *trial = &candidate->trial;
    const hone_store_measurement measurement = {
        .kernel = ref->kernel.name,
        .config = config,
        .revision = ref->kernel.revision ? ref->kernel.revision : "1",
        .regime = state->options.regime,
        .time_ns = trial->time_ns,
        .low_ns = trial->low_ns,
        .high_ns = trial->high_ns,
        .samples = trial->samples,
        .max_error = trial->failure == HONE_FAILURE_NONE ? trial->max_error : -1,
        .failure = trial->failure,
        .reason = trial->reason[0] ? trial->reason : NULL,
    };
    hone_error why = {0};
    if (hone_store_put_measurement(state->environment->store, &state->key, &measurement, &why) == HONE_OK) return;
    if (!state->store_warned)
        hone_log_write(state->environment->log, HONE_LOG_WARNING, "a measurement was not stored: %s", why.message);
    state->store_warned = true;
}
