// Measurements in the store: an interrupted contest goes on where it stopped, since each is written at once.
#include "tune/contest/contest.h"

#include "base/error.h"
#include "base/log.h"
#include "tune/contest/failures.h"
#include "tune/result/environment.h"

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

// "" when there is no memory for it: nothing is compared then.
static const char *environment_of(const hone_contest_state *state, hone_contestant *contestant)
{
    if (contestant->environment) return contestant->environment;
    hone_buffer text;
    hone_buffer_init(&text, state->environment->allocator);
    hone_environment_counted_json(state->environment->device, &contestant->ref->kernel, &text);
    if (!text.failed) contestant->environment = hone_copy_text(&text.allocator, text.data, text.size);
    hone_buffer_deinit(&text);
    return contestant->environment ? contestant->environment : "";
}

static bool is_of_today(
    const hone_contest_state *state, hone_contestant *contestant, const hone_store_measurement *measurement)
{
    char difference[HONE_DIFFERENCE_SIZE];
    const hone_kernel *kernel = &contestant->ref->kernel;
    const hone_device_info *device = state->environment->device;
    if (measurement->failure != HONE_FAILURE_NONE)
        return hone_failure_stands(measurement, kernel, device, hone_os_now_utc(), NULL, 0);
    if (!same_revision(kernel->revision, measurement->revision)) return false;
    if (state->any_environment) return true;
    // Texts first: thousands of measurements have the same.
    if (!measurement->environment || strcmp(measurement->environment, environment_of(state, contestant)) == 0)
        return true;
    return hone_environment_compare(measurement->environment, device, kernel, difference) == HONE_STANDS;
}

// What was measured of another revision of the kernel, in another environment or under another regime says nothing here.
static bool applies(
    const hone_contest_state *state, hone_contestant *contestant, const hone_store_measurement *measurement)
{
    return contestant->space && strcmp(contestant->ref->kernel.name, measurement->kernel) == 0 &&
           measurement->regime == state->options.regime && is_of_today(state, contestant, measurement);
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

// Forgetting ----------------------------------------------------------------------------------------------------------

// A failure of which nobody knows when it happened keeps nothing from being tried.
typedef struct forgotten {
    hone_arena arena;
    hone_store_measurement *failures;
    size_t count, capacity;
    bool failed;
} forgotten;

static const char *keep_text(forgotten *list, const char *text)
{
    if (!text) return NULL;
    const char *copy = hone_arena_text(&list->arena, text, strlen(text));
    list->failed = list->failed || !copy;
    return copy;
}

static bool note_failure(void *ctx, const hone_store_measurement *measurement)
{
    forgotten *list = ctx;
    if (measurement->failure == HONE_FAILURE_NONE || !measurement->measured) return true;
    if (!hone_grow(&list->arena.allocator, &list->failures, &list->capacity, list->count + 1, sizeof *list->failures)) {
        list->failed = true;
        return false;
    }
    hone_store_measurement *failure = &list->failures[list->count++];
    *failure = *measurement;
    failure->kernel = keep_text(list, measurement->kernel);
    failure->config = keep_text(list, measurement->config);
    failure->revision = keep_text(list, measurement->revision);
    failure->reason = keep_text(list, measurement->reason);
    failure->environment = keep_text(list, measurement->environment);
    failure->measured = NULL;
    return !list->failed;
}

// Fresh forgets all failures of the call, also those whose configs this contest will not come to.
static hone_status forget_failures(const hone_contest_state *state, hone_error *err)
{
    hone_store *store = state->environment->store;
    forgotten list = {.arena = {.allocator = state->environment->allocator}};
    hone_error why = {0};
    hone_status status = hone_store_measurements(store, &state->key, note_failure, &list, &why);
    for (size_t i = 0; i < list.count && !list.failed && status == HONE_OK; i++)
        status = hone_store_put_measurement(store, &state->key, &list.failures[i], &why);
    if (status != HONE_OK && status != HONE_NOT_FOUND)
        hone_log_write(
            state->environment->log, HONE_LOG_WARNING, "earlier failures are not forgotten: %s", why.message);
    hone_free(&list.arena.allocator, list.failures);
    hone_arena_destroy(&list.arena);
    return list.failed ? hone_fail_memory(err, where) : HONE_OK;
}

static hone_status load_from(hone_contest_state *state, hone_store *store, hone_error *err)
{
    loader load = {state, false};
    hone_error why = {0};
    if (!store) return HONE_OK;
    hone_status status = hone_store_measurements(store, &state->key, load_one, &load, &why);
    if (load.failed) return hone_fail_memory(err, where);
    if (status != HONE_OK && status != HONE_NOT_FOUND)
        hone_log_write(
            state->environment->log, HONE_LOG_WARNING, "earlier measurements cannot be read, all are taken anew: %s",
            why.message);
    return HONE_OK;
}

// Of two measurements of one config the first is taken: the user's own.
hone_status hone_contest_load(hone_contest_state *state, hone_error *err)
{
    const hone_tune_environment *environment = state->environment;
    if (state->options.fresh) return environment->store ? forget_failures(state, err) : HONE_OK;
    hone_status status = load_from(state, environment->store, err);
    return status == HONE_OK ? load_from(state, environment->system_store, err) : status;
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

// The contestant of a stored decision that was verified and could still be taken; NULL: there is none.
static hone_contestant *find_choice(
    const hone_contest_state *state, const hone_store_decision *row, hone_config *out_config)
{
    hone_contestant *contestant = row->verified ? find_contestant(state, row) : NULL;
    if (!contestant) return NULL;
    const hone_space *space = contestant->ref->space;
    if (hone_config_from_json(space, row->config, strlen(row->config), out_config, NULL) != HONE_OK) return NULL;
    return hone_bound_space_check(contestant->space, out_config, NULL) == HONE_OK ? contestant : NULL;
}

static void note_incumbent(void *ctx, const hone_store_decision *row)
{
    hone_contest_state *state = ctx;
    hone_incumbent *incumbent = &state->incumbent;
    const hone_contestant *contestant = find_choice(state, row, &incumbent->config);
    incumbent->is_there = contestant != NULL;
    if (contestant) incumbent->kernel = (uint32_t)(contestant - state->contestants);
}

void hone_contest_find_incumbent(hone_contest_state *state)
{
    hone_store *store = state->environment->store;
    if (store) (void)!hone_store_get(store, &state->key, state->options.regime, note_incumbent, state, NULL);
}

static void keep_row(void *ctx, const hone_store_decision *row)
{
    hone_contest_state *state = ctx;
    hone_decision *decision = &state->out->decision;
    hone_config config;
    const hone_contestant *contestant = find_choice(state, row, &config);
    if (!contestant) return;
    const hone_kernel_ref *ref = contestant->ref;
    char difference[HONE_DIFFERENCE_SIZE];
    if (hone_environment_compare(row->environment, state->environment->device, &ref->kernel, difference) != HONE_STANDS)
        return;
    hone_evidence evidence = {0};
    if (row->evidence) (void)!hone_evidence_parse(row->evidence, strlen(row->evidence), &evidence, NULL);
    evidence.time_ns = row->time_ns;
    evidence.regime = row->regime;
    hone_contest_fill_decision(state, ref, &config, decision);
    decision->evidence = evidence;
}

bool hone_contest_keep(hone_contest_state *state)
{
    hone_store *const stores[] = {state->environment->store, state->environment->system_store};
    bool kept = false;
    for (int i = 0; i < 2 && state->options.keep_existing && !kept; i++)
        kept = stores[i] &&
               hone_store_get(stores[i], &state->key, state->options.regime, keep_row, state, NULL) == HONE_OK &&
               state->out->decision.kernel[0] != '\0';
    return kept;
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
    char measured[24];
    hone_os_format_utc(hone_os_now_utc(), measured);
    const char *environment = environment_of(state, &state->contestants[candidate->kernel]);
    const hone_store_measurement measurement = {
        .kernel = ref->kernel.name,
        .config = config,
        .revision = ref->kernel.revision,
        .regime = state->options.regime,
        .time_ns = trial->time_ns,
        .low_ns = trial->low_ns,
        .high_ns = trial->high_ns,
        .samples = trial->samples,
        .max_error = trial->failure == HONE_FAILURE_NONE ? trial->max_error : -1,
        .failure = trial->failure,
        .reason = trial->reason[0] ? trial->reason : NULL,
        .environment = environment[0] ? environment : NULL,
        .measured = measured,
    };
    hone_error why = {0};
    if (hone_store_put_measurement(state->environment->store, &state->key, &measurement, &why) == HONE_OK) return;
    if (!state->store_warned)
        hone_log_write(state->environment->log, HONE_LOG_WARNING, "a measurement was not stored: %s", why.message);
    state->store_warned = true;
}
