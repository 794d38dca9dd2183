#include "tune/contest/known.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/number.h"
#include "registry/failure_kinds.h"
#include "store/ops.h"
#include "tune/contest/failures.h"
#include "tune/result/environment.h"
#include "tune/rule/stopping.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "tune.known";

enum { SAMPLES_SIZE = HONE_NUMBER_SIZE * HONE_KEPT_SAMPLES + 2 }; // of the list as text

typedef struct loader {
    hone_known *known;
    const hone_question *question;
    hone_field *field;
    bool failed;
} loader;

// The text of a kernel's environment; "" when there is no memory for it, and then nothing is compared.
static const char *environment_of(const hone_question *question, hone_contestant *contestant)
{
    if (contestant->environment != NULL) return contestant->environment;
    hone_buffer text;
    hone_buffer_init(&text, question->environment->allocator);
    hone_environment_counted_json(question->environment->device, &contestant->ref->kernel, &text);
    if (!text.failed) contestant->environment = hone_copy_text(&text.allocator, text.data, text.size);
    hone_buffer_deinit(&text);
    return contestant->environment != NULL ? contestant->environment : "";
}

static bool is_of_today(const loader *load, hone_contestant *contestant, const hone_store_measurement *measurement)
{
    char difference[HONE_DIFFERENCE_SIZE];
    const hone_kernel *kernel = &contestant->ref->kernel;
    const hone_device_info *device = load->question->environment->device;
    if (measurement->failure != HONE_FAILURE_NONE)
        return hone_failure_stands(measurement, kernel, device, hone_os_now_utc(), NULL, 0);
    if (!hone_same_revision(kernel->revision, measurement->revision)) return false;
    if (load->known->any_environment) return true;
    // Compares the texts first: thousands of measurements have the same one.
    if (measurement->environment == NULL ||
        hone_environment_is(measurement->environment, environment_of(load->question, contestant)))
        return true;
    return hone_environment_compare(measurement->environment, device, kernel, difference) == HONE_STANDS;
}

// Whether a measurement applies to this contest. It does not if it is of another revision of the kernel, another
// environment or another regime.
static bool applies(const loader *load, hone_contestant *contestant, const hone_store_measurement *measurement)
{
    return contestant->space != NULL && strcmp(contestant->ref->kernel.name, measurement->kernel) == 0 &&
           measurement->regime == load->question->options.regime && is_of_today(load, contestant, measurement);
}

// Reads the samples that were kept, so that a contest that continues uses all of them. A text that is not a list of
// times was not written by hone, and counts as none.
static void read_samples(const char *text, hone_trial *out)
{
    hone_view list, key, item;
    if (text == NULL || hone_json_text_check(hone_view_of(text), HONE_JSON_STRICT, &list, NULL) != HONE_OK) return;
    hone_json_walk walk = hone_json_walk_of(list);
    while (out->kept < HONE_KEPT_SAMPLES && out->kept < out->samples && hone_json_walk_next(&walk, &key, &item)) {
        double *time_ns = &out->kept_ns[out->kept];
        if (!hone_json_is_number(item) || !hone_number_parse(item.data, item.size, time_ns) || !(*time_ns > 0)) {
            out->kept = 0;
            return;
        }
        out->kept++;
    }
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
    out->digest = hone_environment_code(measurement->environment);
    hone_words_copy(out->reason, sizeof out->reason, measurement->reason != NULL ? measurement->reason : "");
    if (out->failure != HONE_FAILURE_NONE) return true;
    read_samples(measurement->samples_ns, out);
    return measurement->max_error >= 0 && measurement->time_ns > 0 && measurement->samples > 0;
}

// False: out of memory.
static bool add(loader *load, hone_resumed *resumed, const char *config)
{
    hone_known *known = load->known;
    const hone_space *space = load->field->contestants[resumed->kernel].ref->space;
    if (hone_config_from_json(space, config, strlen(config), &resumed->config, NULL) != HONE_OK) return true;
    load->failed = !hone_grow(
        &load->question->environment->allocator, &known->resumed, &known->capacity, known->count + 1,
        sizeof *known->resumed);
    if (!load->failed) known->resumed[known->count++] = *resumed;
    return !load->failed;
}

static bool load_one(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *measurement = record->measurement;
    loader *load = ctx;
    for (uint32_t i = 0; i < load->field->count; i++) {
        hone_resumed resumed = {.kernel = i};
        hone_contestant *contestant = &load->field->contestants[i];
        if (!applies(load, contestant, measurement) || !read_trial(measurement, &resumed.trial)) continue;
        if (measurement->measured != NULL)
            snprintf(resumed.measured, sizeof resumed.measured, "%s", measurement->measured);
        if (!add(load, &resumed, measurement->config)) return false;
    }
    return true;
}

// A config of a kernel that is not the library's own, and was wrong for another call, cannot win this contest: a wrong
// kernel may be right for some data. Kernels of the library are verified by the library's tests.
static bool load_wrong(void *ctx, const hone_store_measured *row)
{
    loader *load = ctx;
    const hone_store_key *own = &load->question->key;
    const hone_store_measurement *failure = &row->measurement;
    if (!hone_failure_kind_of(failure->failure)->is_wrong) return true;
    const bool is_own = strcmp(row->key.key, own->key) == 0 && strcmp(row->key.device, own->device) == 0;
    if (failure->measured == NULL || is_own) return true;
    for (uint32_t i = 0; i < load->field->count; i++) {
        const hone_contestant *contestant = &load->field->contestants[i];
        const hone_kernel *kernel = &contestant->ref->kernel;
        hone_resumed resumed = {.kernel = i, .trial = {.failure = failure->failure}};
        if (contestant->space == NULL || contestant->ref->builtin || strcmp(kernel->name, failure->kernel) != 0 ||
            !hone_same_revision(kernel->revision, failure->revision))
            continue;
        char reason[sizeof resumed.trial.reason];
        snprintf(
            reason, sizeof reason, "for the call %s: %s", row->key.key,
            failure->reason != NULL ? failure->reason : "wrong");
        hone_words_copy(resumed.trial.reason, sizeof resumed.trial.reason, reason);
        if (!add(load, &resumed, failure->config)) return false;
    }
    return true;
}

static bool has_foreign_kernels(const hone_field *field)
{
    for (uint32_t i = 0; i < field->count; i++)
        if (field->contestants[i].space != NULL && !field->contestants[i].ref->builtin) return true;
    return false;
}

// Forgetting failures -------------------------------------------------------------------------------------------------

// Failures to be written again without their time, which is how they are forgotten: a failure without a time does not
// keep its config from being tried.
typedef struct forgotten {
    hone_arena arena;
    hone_store_measurement *failures;
    size_t count, capacity;
    bool failed;
} forgotten;

static const char *keep_text(forgotten *list, const char *text)
{
    if (text == NULL) return NULL;
    const char *copy = hone_arena_text(&list->arena, text, strlen(text));
    list->failed = list->failed || copy == NULL;
    return copy;
}

static bool note_failure(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *measurement = record->measurement;
    forgotten *list = ctx;
    if (measurement->failure == HONE_FAILURE_NONE || measurement->measured == NULL) return true;
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
    failure->measured = failure->samples_ns = NULL;
    return !list->failed;
}

// options.fresh forgets all failures of the call, also those of configs that this contest will not try.
static hone_status forget_failures(const hone_question *question, hone_error *err)
{
    hone_store *store = question->environment->store;
    forgotten list = {.arena = {.allocator = question->environment->allocator}};
    hone_error why = {0};
    hone_status status = hone_store_scan(store, HONE_RECORD_MEASUREMENT, &question->key, note_failure, &list, &why);
    for (size_t i = 0; i < list.count && !list.failed && status == HONE_OK; i++)
        status = hone_store_put_measurement(store, &question->key, &list.failures[i], &why);
    if (status != HONE_OK && status != HONE_NOT_FOUND)
        hone_log_write(
            question->environment->log, HONE_LOG_WARNING, "earlier failures are not forgotten: %s", why.message);
    hone_free(&list.arena.allocator, list.failures);
    hone_arena_destroy(&list.arena);
    return list.failed ? hone_fail_memory(err, where) : HONE_OK;
}

static hone_status load_from(loader *load, hone_store *store, hone_error *err)
{
    hone_error why = {0};
    if (store == NULL) return HONE_OK;
    hone_status status = hone_store_scan(store, HONE_RECORD_MEASUREMENT, &load->question->key, load_one, load, &why);
    if (load->failed) return hone_fail_memory(err, where);
    if (status != HONE_OK && status != HONE_NOT_FOUND)
        hone_log_write(
            load->question->environment->log, HONE_LOG_WARNING,
            "earlier measurements cannot be read, all are taken anew: %s", why.message);
    return HONE_OK;
}

static hone_status load_wrongs(loader *load, hone_error *err)
{
    const hone_question *question = load->question;
    hone_store *const stores[] = {question->environment->store, question->environment->system_store};
    const hone_store_key all = {.algorithm = question->key.algorithm, .version = question->key.version};
    for (int i = 0; i < 2 && has_foreign_kernels(load->field); i++) {
        hone_error why = {0}; // a store that cannot be read is reported elsewhere
        if (stores[i] != NULL) (void)!hone_store_failures(stores[i], &all, load_wrong, load, &why);
    }
    return load->failed ? hone_fail_memory(err, where) : HONE_OK;
}

// If there are two measurements of one config, the first that is loaded counts: wrong results for other calls come
// before the user's store, and that before the system's.
hone_status hone_known_load(hone_known *known, const hone_question *question, hone_field *field, hone_error *err)
{
    const hone_tune_environment *environment = question->environment;
    loader load = {known, question, field, false};
    if (load_wrongs(&load, err) != HONE_OK) return HONE_OUT_OF_MEMORY;
    if (question->options.fresh) return environment->store != NULL ? forget_failures(question, err) : HONE_OK;
    hone_status status = load_from(&load, environment->store, err);
    return status == HONE_OK ? load_from(&load, environment->system_store, err) : status;
}

// Keeping existing decisions ------------------------------------------------------------------------------------------

static hone_contestant *find_contestant(const hone_field *field, const hone_store_decision *row)
{
    for (size_t i = 0; i < field->count; i++) {
        const hone_kernel *kernel = &field->contestants[i].ref->kernel;
        if (field->contestants[i].space != NULL && strcmp(kernel->name, row->kernel) == 0 &&
            strcmp(hone_platform_name(kernel->platform), row->platform) == 0 &&
            (row->revision == NULL || hone_same_revision(kernel->revision, row->revision)))
            return &field->contestants[i];
    }
    return NULL;
}

// Finds the contestant of a stored decision that was verified and could still be taken; NULL: there is none.
static hone_contestant *find_choice(const hone_field *field, const hone_store_decision *row, hone_config *out_config)
{
    hone_contestant *contestant = row->verified ? find_contestant(field, row) : NULL;
    if (contestant == NULL) return NULL;
    const hone_space *space = contestant->ref->space;
    if (hone_config_from_json(space, row->config, strlen(row->config), out_config, NULL) != HONE_OK) return NULL;
    return hone_bound_space_check(contestant->space, out_config, NULL) == HONE_OK ? contestant : NULL;
}

typedef struct incumbent_reader {
    const hone_field *field;
    hone_incumbent *out;
} incumbent_reader;

static bool note_incumbent(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *row = record->decision;
    const incumbent_reader *reader = ctx;
    const hone_contestant *contestant = find_choice(reader->field, row, &reader->out->config);
    reader->out->is_there = contestant != NULL;
    reader->out->time_ns = row->time_ns;
    if (contestant != NULL) reader->out->kernel = (uint32_t)(contestant - reader->field->contestants);
    return true;
}

void hone_known_find_incumbent(hone_known *known, const hone_question *question, const hone_field *field)
{
    hone_store *store = question->environment->store;
    incumbent_reader reader = {field, &known->incumbent};
    if (store != NULL)
        (void)!hone_store_get(
            store, HONE_RECORD_DECISION, &question->key, question->options.regime, note_incumbent, &reader, NULL);
}

typedef struct existing_reader {
    const hone_question *question;
    const hone_field *field;
    hone_decision *out;
} existing_reader;

static bool read_existing(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *row = record->decision;
    const existing_reader *reader = ctx;
    hone_config config;
    const hone_contestant *contestant = find_choice(reader->field, row, &config);
    if (contestant == NULL) return true;
    const hone_kernel_ref *ref = contestant->ref;
    const hone_device_info *device = reader->question->environment->device;
    char difference[HONE_DIFFERENCE_SIZE];
    if (hone_environment_compare(row->environment, device, &ref->kernel, difference) != HONE_STANDS) return true;
    hone_evidence evidence;
    (void)hone_evidence_of(row->evidence, &evidence);
    evidence.time_ns = row->time_ns;
    evidence.regime = row->regime;
    hone_question_fill_decision(reader->question, ref, &config, reader->out);
    reader->out->evidence = evidence;
    return true;
}

bool hone_known_keeps(const hone_question *question, const hone_field *field, hone_decision *out)
{
    hone_store *const stores[] = {question->environment->store, question->environment->system_store};
    existing_reader reader = {question, field, out};
    bool kept = false;
    for (int i = 0; i < 2 && question->options.keep_existing && !kept; i++)
        kept = stores[i] != NULL &&
               hone_store_get(
                   stores[i], HONE_RECORD_DECISION, &question->key, question->options.regime, read_existing, &reader,
                   NULL) == HONE_OK &&
               out->kernel[0] != '\0';
    return kept;
}

const hone_resumed *hone_known_find(const hone_known *known, uint32_t kernel, const hone_config *config)
{
    for (size_t i = 0; i < known->count; i++)
        if (known->resumed[i].kernel == kernel && hone_config_equal(&known->resumed[i].config, config))
            return &known->resumed[i];
    return NULL;
}

// Writes the samples that count, to a thousandth of a nanosecond: more digits are noise. NULL if none were kept, or
// none was undisturbed.
static const char *write_samples(const hone_trial *trial, char out[SAMPLES_SIZE])
{
    char number[HONE_NUMBER_SIZE];
    size_t used = 0;
    double times[HONE_KEPT_SAMPLES];
    if (trial->failure != HONE_FAILURE_NONE || trial->kept == 0 || !hone_trial_was_left_alone(trial)) return NULL;
    const uint32_t count = hone_trial_times(trial, times);
    for (uint32_t i = 0; i < count; i++)
        used += (size_t)snprintf(
            out + used, SAMPLES_SIZE - used, "%c%s", i == 0 ? '[' : ',',
            hone_number_print(round(times[i] * 1e3) * 1e-3, number));
    snprintf(out + used, SAMPLES_SIZE - used, "]");
    return out;
}

// when: NULL for a record that is only shown, and that no contest uses.
static void store(
    hone_known *known,
    const hone_question *question,
    hone_field *field,
    const hone_candidate *candidate,
    const char *when)
{
    char config[1024];
    hone_assert(candidate->kernel < field->count);
    const hone_kernel_ref *ref = field->contestants[candidate->kernel].ref;
    const hone_tune_environment *to = question->environment;
    const hone_trial *trial = &candidate->trial;
    if (hone_config_json(ref->space, &candidate->config, config, sizeof config) >= sizeof config) return;
    if (trial->failure != HONE_FAILURE_NONE && to->failed != NULL)
        to->failed(to->failed_ctx, ref, config, question->title, trial->failure, trial->reason);
    if (to->store == NULL || question->options.no_store) return;
    char samples[SAMPLES_SIZE];
    hone_buffer environment;
    hone_buffer_init(&environment, to->allocator);
    hone_buffer_text(&environment, environment_of(question, &field->contestants[candidate->kernel]));
    if (environment.size > 0) hone_environment_add_code(&environment, trial->digest);
    const hone_store_measurement measurement = {
        .kernel = ref->kernel.name,
        .config = config,
        .revision = ref->kernel.revision,
        .regime = question->options.regime,
        .time_ns = trial->time_ns,
        .low_ns = trial->low_ns,
        .high_ns = trial->high_ns,
        .samples = trial->samples,
        .max_error = trial->failure == HONE_FAILURE_NONE ? trial->max_error : -1,
        .failure = trial->failure,
        .reason = trial->reason[0] ? trial->reason : NULL,
        .environment = environment.size > 0 && !environment.failed ? hone_buffer_string(&environment) : NULL,
        .measured = when,
        .samples_ns = write_samples(trial, samples),
    };
    hone_error why = {0};
    const bool stored = hone_store_put_measurement(to->store, &question->key, &measurement, &why) == HONE_OK;
    hone_buffer_deinit(&environment);
    if (!stored && !known->store_warned)
        hone_log_write(to->log, HONE_LOG_WARNING, "a measurement was not stored: %s", why.message);
    known->store_warned = known->store_warned || !stored;
}

void hone_known_store(
    hone_known *known, const hone_question *question, hone_field *field, const hone_candidate *candidate)
{
    char now[24];
    hone_os_format_utc(hone_os_now_utc(), now);
    store(known, question, field, candidate, now);
}

void hone_known_store_unready(
    hone_known *known, const hone_question *question, hone_field *field, const hone_candidate *candidate)
{
    if (!question->options.fresh) store(known, question, field, candidate, NULL);
}
