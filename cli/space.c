// hone space
#include "space_source.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct listing {
    const hone_space *space;
    json_t *configs; // NULL: print as text
    json_t *rank;    // NULL: not asked for
} listing;

static bool show(void *ctx, const hone_config *config)
{
    listing *list = ctx;
    char text[2048];
    if (list->configs == NULL) {
        hone_config_text(list->space, config, text, sizeof text);
        printf("%s\n", text);
    } else {
        json_array_append_new(list->configs, cli_config_object(list->space, config));
    }
    return !cli_cancel;
}

static json_t *parameters_of(const hone_space *space)
{
    json_t *parameters = json_array();
    for (size_t i = 0; i < hone_space_parameters(space); i++) {
        json_t *values = json_array();
        for (size_t v = 0; v < hone_space_values(space, i); v++)
            json_array_append_new(values, json_loads(hone_space_value_json(space, i, v), JSON_DECODE_ANY, NULL));
        json_array_append_new(
            parameters, json_pack("{s:s, s:o}", "name", hone_space_parameter_name(space, i), "values", values));
    }
    return parameters;
}

static json_t *number(uint64_t value)
{
    return value > INT64_MAX ? json_null() : json_integer((json_int_t)value);
}

static const char *number_text(uint64_t value, char out[32])
{
    if (value == UINT64_MAX)
        snprintf(out, 32, "2^64 or more");
    else
        snprintf(out, 32, "%" PRIu64, value);
    return out;
}

static void print_count(const cli_space_source *source, uint64_t low, uint64_t high)
{
    char from[32], to[32], all[32];
    number_text(low, from);
    number_text(high, to);
    number_text(hone_space_cartesian(source->space), all);
    printf(
        "%zu parameters, %s%s%s %s configs of %s\n", hone_space_parameters(source->space), from,
        low == high ? "" : " to ", low == high ? "" : to, source->recorded == NULL ? "valid" : "recorded", all);
}

static hone_status run_at(const cli_space_source *source, const char *text, listing *list, hone_error *err)
{
    hone_config config;
    errno = 0;
    const long long rank = strtoll(text, NULL, 10);
    const bool is_number = text[0] != '\0' && text[strspn(text, "0123456789")] == '\0' && errno == 0;
    if (!is_number) {
        *err = (hone_error){.status = HONE_INVALID_ARGUMENT, .where = "space"};
        snprintf(err->message, sizeof err->message, "--at '%.100s': expected a rank, an integer from 0 on", text);
        return err->status;
    }
    hone_status status = cli_space_at(source, (uint64_t)rank, &config, err);
    if (status == HONE_OK) show(list, &config);
    return status;
}

static hone_status run_rank(const cli_space_source *source, const char *text, listing *list, hone_error *err)
{
    uint64_t rank;
    hone_config config;
    hone_status status = hone_config_from_text(source->space, text, &config, err);
    if (status == HONE_OK) status = cli_space_rank(source, &config, &rank, err);
    if (status != HONE_OK) return status;
    if (list->configs == NULL)
        printf("%" PRIu64 "\n", rank);
    else
        list->rank = number(rank);
    return HONE_OK;
}

static hone_status run_neighbours(const cli_space_source *source, const hone_cli *cli, listing *list, hone_error *err)
{
    hone_config config;
    hone_neighbourhood which = cli->options.adjacent ? HONE_NEIGHBOURS_ADJACENT : HONE_NEIGHBOURS_HAMMING;
    hone_status status = hone_config_from_text(source->space, cli->options.neighbours, &config, err);
    return status == HONE_OK ? cli_space_neighbours(source, &config, which, show, list, err) : status;
}

// What was asked for beside the number.
static hone_status run_options(const cli_space_source *source, const hone_cli *cli, listing *list, hone_error *err)
{
    const cli_options *options = &cli->options;
    hone_status status = HONE_OK;
    if (options->at != NULL) status = run_at(source, options->at, list, err);
    if (status == HONE_OK && options->rank != NULL) status = run_rank(source, options->rank, list, err);
    if (status == HONE_OK && options->neighbours != NULL) status = run_neighbours(source, cli, list, err);
    if (status == HONE_OK && options->sample > 0)
        status = cli_space_sample(source, (uint64_t)options->seed, (size_t)options->sample, show, list, err);
    if (status == HONE_OK && options->list) status = cli_space_list(source, show, list, err);
    return status;
}

static void print_json(
    const cli_space_source *source, const hone_cli *cli, uint64_t low, uint64_t high, const listing *list)
{
    json_t *root = json_pack(
        "{s:o, s:o, s:o}", "parameters", parameters_of(source->space), "count", low == high ? number(low) : json_null(),
        "cartesian", number(hone_space_cartesian(source->space)));
    if (low != high) {
        json_object_set_new(root, "low", number(low));
        json_object_set_new(root, "high", number(high));
    }
    const cli_options *options = &cli->options;
    if (list->rank != NULL) json_object_set_new(root, "rank", list->rank);
    if (options->at != NULL || options->neighbours != NULL || options->list || options->sample > 0)
        json_object_set(root, "configs", list->configs);
    cli_print_json(root);
}

static int show_space(hone_cli *cli, const cli_space_source *source)
{
    hone_error err;
    uint64_t low = 0, high = 0;
    const cli_options *options = &cli->options;
    bool asked = options->at != NULL || options->rank != NULL || options->neighbours != NULL || options->sample > 0 ||
                 options->list;
    listing list = {source->space, options->json ? json_array() : NULL, NULL};
    hone_status status = cli_space_bounds(source, &low, &high, &err);
    if (status == HONE_OK) status = run_options(source, cli, &list, &err);
    if (status == HONE_OK && options->json)
        print_json(source, cli, low, high, &list);
    else if (status == HONE_OK && (options->count || !asked))
        print_count(source, low, high);
    json_decref(list.configs);
    return status == HONE_OK ? (high == 0 ? EXIT_NO : EXIT_DONE) : cli_fail(&err);
}

int cli_space(hone_cli *cli)
{
    // Looking at a space has nothing to save: a signal ends it at once.
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (cli->options.adjacent && cli->options.neighbours == NULL)
        return cli_usage("--adjacent says which neighbours: give --neighbours CONFIG as well");
    cli_space_source source;
    int status = cli_space_open(&source, cli->arguments[0]);
    if (status == 0) status = show_space(cli, &source);
    cli_space_close(&source);
    return status;
}
