#include "simulate/t4.h"

#include "base/error.h"
#include "base/json.h"
#include "recorded/recorded.h"
#include "registry/failure_kinds.h"
#include "registry/names.h"
#include "tune/result/result.h"

#include <stdlib.h>
#include <string.h>

static const char where[] = "report.t4";
static const double ns_a_ms = 1e6, ms_a_second = 1e3;

typedef struct collecting {
    hone_arena arena; // samples
    const hone_space *space;
    const json_t *finals;
    hone_recorded_row *rows;
    size_t count, capacity;
} collecting;

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value != NULL ? value : "";
}

// What the finals sampled of an evaluation; NULL: it was no finalist.
static const json_t *finals_of(const collecting *c, size_t evaluation)
{
    size_t i;
    const json_t *finalist;
    json_array_foreach(json_object_get(c->finals, "finalists"), i, finalist)
    {
        if ((size_t)json_integer_value(json_object_get(finalist, "evaluation")) == evaluation)
            return json_object_get(finalist, "samples_ns");
    }
    return NULL;
}

static void add_samples(double *to, size_t *count, const json_t *samples)
{
    size_t i;
    const json_t *sample;
    json_array_foreach(samples, i, sample) to[(*count)++] = json_number_value(sample) / ns_a_ms;
}

static bool fill_samples(collecting *c, size_t evaluation, const json_t *tried, hone_recorded_row *row)
{
    const json_t *runs = json_object_get(tried, "runs_ns"), *finals = finals_of(c, evaluation);
    size_t most = json_array_size(runs) + json_array_size(finals);
    double *samples = hone_arena_alloc(&c->arena, (most > 0 ? most : 1) * sizeof *samples);
    if (samples == NULL) return false;
    add_samples(samples, &row->sample_count, runs);
    add_samples(samples, &row->sample_count, finals);
    row->samples = samples;
    return true;
}

static hone_status add_row(collecting *c, size_t evaluation, const json_t *tried, double took_seconds, hone_error *err)
{
    hone_recorded_row row = {.failure = HONE_FAILURE_NONE, .benchmark = took_seconds * ms_a_second};
    (void)hone_failure_by_name(text(tried, "failure"), &row.failure);
    row.time = row.failure == HONE_FAILURE_NONE ? number(tried, "time_ns") / ns_a_ms : 0;
    char *config = json_dumps(json_object_get(tried, "config"), JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (config == NULL) return hone_fail_memory(err, where);
    hone_status status = hone_config_from_json(c->space, config, strlen(config), &row.config, err);
    free(config);
    if (status != HONE_OK) return status;
    if (!fill_samples(c, evaluation, tried, &row) ||
        !hone_grow(&c->arena.allocator, &c->rows, &c->capacity, c->count + 1, sizeof row))
        return hone_fail_memory(err, where);
    c->rows[c->count++] = row;
    return HONE_OK;
}

static hone_status collect(collecting *c, const json_t *history, const char *kernel, hone_error *err)
{
    hone_status status = HONE_OK;
    double before = 0;
    const json_t *all = json_object_get(history, "evaluations");
    c->finals = json_object_get(history, "finals");
    for (size_t i = 0; i < json_array_size(all) && status == HONE_OK; i++) {
        const json_t *tried = json_array_get(all, i);
        double at = number(tried, "at");
        if (strcmp(text(tried, "kernel"), kernel) == 0) status = add_row(c, i, tried, at - before, err);
        before = at;
    }
    return status;
}

hone_status hone_result_t4(
    const hone_result *result,
    size_t index,
    const char *kernel,
    const hone_space *space,
    hone_buffer *out,
    hone_error *err)
{
    const char *text = result->entries[index].history;
    if (!text[0])
        return hone_fail(
            err, HONE_NOT_FOUND, where,
            "%s: the answer was there already and nothing was measured: --fresh measures again",
            result->entries[index].call);
    json_t *history = NULL;
    collecting c = {.arena = {.allocator = result->allocator}, .space = space};
    hone_status status = hone_json_parse(text, strlen(text), &history, err);
    if (status == HONE_OK) status = collect(&c, history, kernel, err);
    if (status == HONE_OK && c.count == 0)
        status = hone_fail(err, HONE_NOT_FOUND, where, "no config of kernel %s was tried", kernel);
    if (status == HONE_OK) hone_recorded_write_t4(space, c.rows, c.count, out);
    if (status == HONE_OK && out->failed) status = hone_fail_memory(err, where);
    json_decref(history);
    hone_free(&c.arena.allocator, c.rows);
    hone_arena_destroy(&c.arena);
    return status;
}
