// Constraints answer through the library; the configs of a file are a list, asked the same questions.
#include "space_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_gzipped(const cli_text *bytes)
{
    return bytes->size > 1 && (uint8_t)bytes->data[0] == 0x1f && (uint8_t)bytes->data[1] == 0x8b;
}

static bool is_json(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '{';
}

static bool is_recorded(cli_text *bytes)
{
    const char *text = cli_text_string(bytes);
    if (is_gzipped(bytes)) return true;
    if (!is_json(text) || strstr(text, "\"ConfigurationSpace\"") != NULL) return false;
    return strstr(text, "\"tune_params") != NULL || strstr(text, "\"results\"") != NULL;
}

static hone_status parse_recorded(cli_space_source *source, const char *path, const cli_text *bytes, hone_error *err)
{
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    hone_status status =
        hone_recorded_parse(hone_allocator_system(), name, bytes->data, bytes->size, &source->recorded, err);
    if (status == HONE_OK) source->space = hone_space_retain(hone_recorded_space(source->recorded));
    return status;
}

static hone_status parse(cli_space_source *source, cli_text *bytes, hone_error *err)
{
    const char *text = cli_text_string(bytes);
    if (is_json(text)) return hone_space_parse_t1(hone_allocator_system(), text, bytes->size, &source->space, err);
    return hone_space_parse(hone_allocator_system(), text, &source->space, err);
}

int cli_space_open(cli_space_source *source, const char *path)
{
    hone_error err = {0};
    cli_text bytes;
    *source = (cli_space_source){0};
    int status = cli_read(path, &bytes);
    if (status != 0) return status;
    bool recorded = is_recorded(&bytes);
    hone_status parsed = recorded ? parse_recorded(source, path, &bytes, &err) : parse(source, &bytes, &err);
    if (parsed == HONE_OK) parsed = hone_space_bind(source->space, NULL, NULL, &source->bound, &err);
    cli_text_deinit(&bytes);
    if (parsed == HONE_OK) return 0;
    return recorded ? cli_fail(&err) : cli_fail_in(path, &err); // a recorded space's reader names the file
}

void cli_space_close(cli_space_source *source)
{
    hone_bound_space_release(&source->bound);
    hone_space_release(&source->space);
    hone_recorded_destroy(&source->recorded);
}

hone_status cli_space_bounds(const cli_space_source *source, uint64_t *out_low, uint64_t *out_high, hone_error *err)
{
    if (source->recorded == NULL) return hone_bound_space_bounds(source->bound, out_low, out_high, err);
    *out_low = *out_high = hone_recorded_count(source->recorded);
    return HONE_OK;
}

static hone_status not_recorded(hone_error *err, const char *what, uint64_t count)
{
    *err = (hone_error){.status = HONE_NOT_FOUND, .where = "space"};
    snprintf(err->message, sizeof err->message, "%s: the file has %" PRIu64 " configs", what, count);
    return HONE_NOT_FOUND;
}

hone_status cli_space_at(const cli_space_source *source, uint64_t rank, hone_config *out, hone_error *err)
{
    if (source->recorded == NULL) return hone_bound_space_at(source->bound, rank, out, err);
    size_t count = hone_recorded_count(source->recorded);
    if (rank >= count) return not_recorded(err, "no such rank", count);
    *out = hone_recorded_configs(source->recorded)[rank];
    return HONE_OK;
}

static bool is_equal(const hone_config *a, const hone_config *b)
{
    return memcmp(a->values, b->values, a->count * sizeof *a->values) == 0;
}

hone_status cli_space_rank(const cli_space_source *source, const hone_config *config, uint64_t *out, hone_error *err)
{
    if (source->recorded == NULL) return hone_bound_space_rank(source->bound, config, out, err);
    size_t count = hone_recorded_count(source->recorded);
    for (size_t i = 0; i < count; i++) {
        *out = i;
        if (is_equal(&hone_recorded_configs(source->recorded)[i], config)) return HONE_OK;
    }
    return not_recorded(err, "the config is not recorded", count);
}

hone_status cli_space_list(const cli_space_source *source, cli_space_visit *visit, void *ctx, hone_error *err)
{
    if (source->recorded == NULL) return hone_bound_space_enumerate(source->bound, visit, ctx, err);
    for (size_t i = 0; i < hone_recorded_count(source->recorded); i++)
        if (!visit(ctx, &hone_recorded_configs(source->recorded)[i])) break;
    return HONE_OK;
}

static hone_status no_memory(hone_error *err)
{
    *err = (hone_error){.status = HONE_OUT_OF_MEMORY, .where = "space", .message = "out of memory"};
    return HONE_OUT_OF_MEMORY;
}

// The first of a shuffle of all.
static hone_status sample_recorded(
    const cli_space_source *source, uint64_t seed, hone_config *out, size_t *count, hone_error *err)
{
    size_t all = hone_recorded_count(source->recorded);
    hone_config *configs = calloc(all + 1, sizeof *configs);
    if (configs == NULL) return no_memory(err);
    memcpy(configs, hone_recorded_configs(source->recorded), all * sizeof *configs);
    if (*count > all) *count = all;
    for (size_t i = 0; i < *count; i++) {
        size_t other = i + cli_random_below(&seed, (uint32_t)(all - i));
        out[i] = configs[other];
        configs[other] = configs[i];
    }
    free(configs);
    return HONE_OK;
}

hone_status cli_space_sample(
    const cli_space_source *source, uint64_t seed, size_t wanted, cli_space_visit *visit, void *ctx, hone_error *err)
{
    size_t count = wanted;
    hone_config *configs = calloc(wanted + 1, sizeof *configs);
    if (configs == NULL) return no_memory(err);
    hone_status status = source->recorded == NULL
                             ? hone_bound_space_sample(source->bound, seed, wanted, configs, &count, err)
                             : sample_recorded(source, seed, configs, &count, err);
    for (size_t i = 0; i < count && status == HONE_OK; i++)
        if (!visit(ctx, &configs[i])) break;
    free(configs);
    return status;
}

typedef struct filter {
    const cli_space_source *source;
    cli_space_visit *visit;
    void *ctx;
} filter;

static bool visit_recorded(void *ctx, const hone_config *config)
{
    const filter *f = ctx;
    return hone_recorded_find(f->source->recorded, config) == NULL || f->visit(f->ctx, config);
}

hone_status cli_space_neighbours(
    const cli_space_source *source,
    const hone_config *config,
    hone_neighbourhood which,
    cli_space_visit *visit,
    void *ctx,
    hone_error *err)
{
    filter f = {source, visit, ctx};
    if (source->recorded == NULL) return hone_bound_space_neighbours(source->bound, config, which, visit, ctx, err);
    return hone_bound_space_neighbours(source->bound, config, which, visit_recorded, &f, err);
}
