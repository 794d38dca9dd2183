// The two documents: Kernel Tuner's cache and T4 results.
#include "simulate/inside.h"

#include "base/error.h"
#include "space/builder.h"

#include <math.h>
#include <string.h>

static const char where[] = "recorded.read";

static const struct {
    const char *word;
    hone_failure failure;
} failures[] = {
    {"CompilationFailedConfig", HONE_FAILURE_PREPARE},
    {"RuntimeFailedConfig", HONE_FAILURE_RUN},
    {"InvalidConfig", HONE_FAILURE_UNSUPPORTED},
    {"compile", HONE_FAILURE_PREPARE},
    {"runtime", HONE_FAILURE_RUN},
    {"constraints", HONE_FAILURE_UNSUPPORTED},
    {"correctness", HONE_FAILURE_WRONG},
    {"timeout", HONE_FAILURE_TIMEOUT},
};

// A word that is not one of these is some failure of a run.
static hone_failure failure_of(const char *word)
{
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        if (strcmp(failures[i].word, word) == 0) return failures[i].failure;
    return HONE_FAILURE_RUN;
}

static double number_of(const json_t *object, const char *name)
{
    double value = json_number_value(json_object_get(object, name));
    return isfinite(value) && value > 0 ? value : 0;
}

static bool scalar_of(const json_t *json, hone_scalar *out)
{
    if (json_is_integer(json))
        *out = hone_scalar_int(json_integer_value(json));
    else if (json_is_real(json))
        *out = hone_scalar_float(json_real_value(json));
    else if (json_is_boolean(json))
        *out = hone_scalar_bool(json_is_true(json));
    else if (json_is_string(json))
        *out = hone_scalar_text((hone_view){json_string_value(json), json_string_length(json)});
    else
        return false;
    return true;
}

// The space -----------------------------------------------------------------------------------------------------------

static void add_parameter(hone_space_builder *builder, const char *name, const json_t *values)
{
    size_t i;
    json_t *value;
    hone_scalar scalar;
    hone_space_begin_parameter(builder, hone_view_of(name));
    if (!json_is_array(values))
        hone_space_builder_fail(builder, "tune_params: expected a list of values for '%s'", name);
    json_array_foreach(values, i, value)
    {
        if (scalar_of(value, &scalar))
            hone_space_add_value(builder, scalar);
        else
            hone_space_builder_fail(builder, "parameter '%s': value %zu is not a number, string or boolean", name, i);
        if (hone_space_builder_failed(builder)) return;
    }
    hone_space_end_parameter(builder, NULL);
}

static void add_parameters(hone_space_builder *builder, const json_t *keys, const json_t *values)
{
    size_t i;
    json_t *key;
    json_array_foreach(keys, i, key)
    {
        if (hone_space_builder_failed(builder)) return;
        if (!json_is_string(key))
            hone_space_builder_fail(builder, "tune_params_keys[%zu]: expected a name", i);
        else
            add_parameter(builder, json_string_value(key), json_object_get(values, json_string_value(key)));
    }
}

// What is wrong with a space is here a file that is wrong.
static hone_status make_space(
    hone_recorded *recorded, const char *name, const json_t *keys, const json_t *values, hone_error *err)
{
    hone_space_builder builder;
    hone_status status = hone_space_builder_begin(&builder, recorded->allocator, where, err);
    if (status != HONE_OK) return status;
    add_parameters(&builder, keys, values);
    status = hone_space_builder_end(&builder, &recorded->space);
    if (status == HONE_OK) return hone_space_bind(recorded->space, NULL, NULL, &recorded->bound, err);
    if (status != HONE_INVALID_ARGUMENT) return status;
    if (err != NULL) err->status = HONE_CORRUPT;
    return hone_fail_prefix(err, HONE_CORRUPT, "%s", name);
}

// Rows ----------------------------------------------------------------------------------------------------------------

typedef struct reader {
    hone_recorded *recorded;
    const char *name;
    hone_error *err;
} reader;

static hone_status read_config(const reader *r, const char *entry, const json_t *values, hone_config *out)
{
    const hone_space *space = r->recorded->space;
    *out = (hone_config){.count = (uint32_t)space->parameter_count};
    for (size_t i = 0; i < space->parameter_count; i++) {
        hone_scalar scalar;
        const hone_space_parameter *parameter = &space->parameters[i];
        const json_t *value = json_object_get(values, parameter->name);
        int64_t position = value != NULL && scalar_of(value, &scalar) ? hone_space_find_value(parameter, &scalar) : -1;
        if (position < 0)
            return hone_fail(
                r->err, HONE_CORRUPT, where, "%s: entry '%.100s': %s for parameter '%s'", r->name, entry,
                value == NULL ? "no value" : "none of the space's values", parameter->name);
        out->values[i] = hone_space_number(parameter, (size_t)position);
    }
    return HONE_OK;
}

static hone_status read_samples(const reader *r, const json_t *list, hone_recorded_row *row)
{
    size_t i, count = json_array_size(list);
    json_t *value;
    if (count == 0) return HONE_OK;
    double *samples = hone_arena_array(&r->recorded->arena, count, sizeof *samples);
    if (samples == NULL) return hone_fail_memory(r->err, where);
    json_array_foreach(list, i, value)
    {
        double sample = json_number_value(value);
        if (isfinite(sample) && sample > 0) samples[row->sample_count++] = sample;
    }
    row->samples = samples;
    return HONE_OK;
}

// A config without a time that is a time has failed, whatever the file calls it.
static void settle_time(hone_recorded_row *row, double time)
{
    row->time = isfinite(time) && time > 0 && row->failure == HONE_FAILURE_NONE ? time : 0;
    if (row->time == 0 && row->failure == HONE_FAILURE_NONE) row->failure = HONE_FAILURE_RUN;
}

static hone_status read_cache_row(const reader *r, const char *key, const json_t *entry)
{
    hone_recorded_row row = {.failure = HONE_FAILURE_NONE};
    const json_t *time = json_object_get(entry, "time"), *error = json_object_get(entry, "__error__");
    hone_status status = read_config(r, key, entry, &row.config);
    if (status == HONE_OK) status = read_samples(r, json_object_get(entry, "times"), &row);
    if (status != HONE_OK) return status;
    if (json_is_string(time)) row.failure = failure_of(json_string_value(time));
    if (json_is_string(error)) row.failure = failure_of(json_string_value(error));
    settle_time(&row, json_number_value(time));
    row.compile = number_of(entry, "compile_time");
    row.verification = number_of(entry, "verification_time");
    row.benchmark = number_of(entry, "benchmark_time");
    row.framework = number_of(entry, "framework_time");
    return hone_recorded_add(r->recorded, &row, r->err);
}

static hone_status read_cache(reader *r, const json_t *document)
{
    const char *key;
    json_t *entry;
    const json_t *keys = json_object_get(document, "tune_params_keys"), *cache = json_object_get(document, "cache");
    if (!json_is_array(keys) || !json_is_object(cache))
        return hone_fail(
            r->err, HONE_CORRUPT, where, "%s: expected tune_params_keys, a list, and cache, an object", r->name);
    hone_status status = make_space(r->recorded, r->name, keys, json_object_get(document, "tune_params"), r->err);
    json_object_foreach((json_t *)(uintptr_t)cache, key, entry)
    {
        if (status != HONE_OK) return status;
        status = read_cache_row(r, key, entry);
    }
    return status;
}

// T4 has no list of parameters: their names are those of the first configuration, their values those that occur.
static hone_status collect_values(const json_t *results, json_t *keys, json_t *values)
{
    size_t i, j;
    const char *name;
    json_t *result, *value, *known;
    json_object_foreach(json_object_get(json_array_get(results, 0), "configuration"), name, value)
    {
        if (json_array_append_new(keys, json_string(name)) != 0) return HONE_OUT_OF_MEMORY;
        if (json_object_set_new(values, name, json_array()) != 0) return HONE_OUT_OF_MEMORY;
    }
    json_array_foreach(results, i, result)
    {
        json_object_foreach(json_object_get(result, "configuration"), name, value)
        {
            json_t *list = json_object_get(values, name);
            bool seen = list == NULL;
            json_array_foreach(list, j, known) seen = seen || json_equal(known, value);
            if (!seen && json_array_append(list, value) != 0) return HONE_OUT_OF_MEMORY;
        }
    }
    return HONE_OK;
}

static double measurement(const json_t *result)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(result, "measurements"), i, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (name != NULL && strcmp(name, "time") == 0) return json_number_value(json_object_get(entry, "value"));
    }
    return 0;
}

static double mean(const double *samples, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += samples[i];
    return count > 0 ? sum / (double)count : 0;
}

static hone_status read_result(const reader *r, size_t index, const json_t *result)
{
    char entry[32];
    hone_recorded_row row = {.failure = HONE_FAILURE_NONE};
    const json_t *times = json_object_get(result, "times");
    const char *invalidity = json_string_value(json_object_get(result, "invalidity"));
    snprintf(entry, sizeof entry, "results[%zu]", index);
    hone_status status = read_config(r, entry, json_object_get(result, "configuration"), &row.config);
    if (status == HONE_OK) status = read_samples(r, json_object_get(times, "runtimes"), &row);
    if (status != HONE_OK) return status;
    if (invalidity != NULL && strcmp(invalidity, "correct") != 0) row.failure = failure_of(invalidity);
    double time = measurement(result);
    settle_time(&row, time > 0 ? time : mean(row.samples, row.sample_count));
    row.compile = number_of(times, "compilation") + number_of(times, "compilation_time");
    row.verification = number_of(times, "verification") + number_of(times, "validation");
    row.benchmark = number_of(times, "benchmark");
    row.framework = number_of(times, "framework");
    return hone_recorded_add(r->recorded, &row, r->err);
}

static hone_status read_results(reader *r, const json_t *results)
{
    size_t i;
    json_t *result, *keys = json_array(), *values = json_object();
    hone_status status = keys == NULL || values == NULL ? HONE_OUT_OF_MEMORY : collect_values(results, keys, values);
    if (status == HONE_OUT_OF_MEMORY)
        hone_fail_memory(r->err, where);
    else
        status = make_space(r->recorded, r->name, keys, values, r->err);
    json_decref(keys);
    json_decref(values);
    json_array_foreach(results, i, result)
    {
        if (status != HONE_OK) return status;
        status = read_result(r, i, result);
    }
    return status;
}

static const char *text_of(hone_recorded *recorded, const json_t *document, const char *name)
{
    const json_t *value = json_object_get(document, name);
    return json_is_string(value)
               ? hone_arena_text(&recorded->arena, json_string_value(value), json_string_length(value))
               : "";
}

hone_status hone_recorded_fill(hone_recorded *recorded, const char *name, const json_t *document, hone_error *err)
{
    reader r = {recorded, name, err};
    const json_t *results = json_object_get(document, "results");
    recorded->device = text_of(recorded, document, "device_name");
    recorded->kernel = text_of(recorded, document, "kernel_name");
    if (recorded->device == NULL || recorded->kernel == NULL) return hone_fail_memory(err, where);
    if (json_object_get(document, "cache") != NULL) return read_cache(&r, document);
    if (json_is_array(results)) return read_results(&r, results);
    return hone_fail(
        err, HONE_CORRUPT, where, "%s: expected an object with 'cache' (a Kernel Tuner cache file) or 'results' (T4)",
        name);
}
