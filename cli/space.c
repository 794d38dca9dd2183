// hone space
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct source {
    hone_space *space;
    hone_bound_space *bound;
} source;

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
    return !cli_is_cancelled();
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

static void print_count(const source *from, uint64_t low, uint64_t high)
{
    char least[32], most[32], all[32];
    number_text(low, least);
    number_text(high, most);
    number_text(hone_space_cartesian(from->space), all);
    printf(
        "%zu parameters, %s%s%s valid configs of %s\n", hone_space_parameters(from->space), least,
        low == high ? "" : " to ", low == high ? "" : most, all);
}

static hone_status run_at(const source *from, const char *text, listing *list, hone_error *err)
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
    hone_status status = hone_bound_space_at(from->bound, (uint64_t)rank, &config, err);
    if (status == HONE_OK) show(list, &config);
    return status;
}

static hone_status run_rank(const source *from, const char *text, listing *list, hone_error *err)
{
    uint64_t rank;
    hone_config config;
    hone_status status = hone_config_from_text(from->space, text, &config, err);
    if (status == HONE_OK) status = hone_bound_space_rank(from->bound, &config, &rank, err);
    if (status != HONE_OK) return status;
    if (list->configs == NULL)
        printf("%" PRIu64 "\n", rank);
    else
        list->rank = number(rank);
    return HONE_OK;
}

static hone_status run_neighbours(const source *from, const hone_cli *cli, listing *list, hone_error *err)
{
    hone_config config;
    hone_neighbourhood which = cli->options.adjacent ? HONE_NEIGHBOURS_ADJACENT : HONE_NEIGHBOURS_HAMMING;
    hone_status status = hone_config_from_text(from->space, cli->options.neighbours, &config, err);
    return status == HONE_OK ? hone_bound_space_neighbours(from->bound, &config, which, show, list, err) : status;
}

static hone_status run_sample(const source *from, uint64_t seed, size_t wanted, listing *list, hone_error *err)
{
    size_t count = wanted;
    hone_config *configs = calloc(wanted + 1, sizeof *configs);
    if (configs == NULL) cli_no_memory();
    const hone_status status = hone_bound_space_sample(from->bound, seed, wanted, configs, &count, err);
    for (size_t i = 0; i < count && status == HONE_OK; i++)
        if (!show(list, &configs[i])) break;
    free(configs);
    return status;
}

// What was asked for beside the number.
static hone_status run_options(const source *from, const hone_cli *cli, listing *list, hone_error *err)
{
    const cli_options *options = &cli->options;
    hone_status status = HONE_OK;
    if (options->at != NULL) status = run_at(from, options->at, list, err);
    if (status == HONE_OK && options->rank != NULL) status = run_rank(from, options->rank, list, err);
    if (status == HONE_OK && options->neighbours != NULL) status = run_neighbours(from, cli, list, err);
    if (status == HONE_OK && options->sample > 0)
        status = run_sample(from, (uint64_t)options->seed, (size_t)options->sample, list, err);
    if (status == HONE_OK && options->list) status = hone_bound_space_enumerate(from->bound, show, list, err);
    return status;
}

static void print_json(const source *from, const hone_cli *cli, uint64_t low, uint64_t high, const listing *list)
{
    json_t *root = json_pack(
        "{s:o, s:o, s:o}", "parameters", parameters_of(from->space), "count", low == high ? number(low) : json_null(),
        "cartesian", number(hone_space_cartesian(from->space)));
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

static int show_space(hone_cli *cli, const source *from)
{
    hone_error err;
    uint64_t low = 0, high = 0;
    const cli_options *options = &cli->options;
    bool asked = options->at != NULL || options->rank != NULL || options->neighbours != NULL || options->sample > 0 ||
                 options->list;
    listing list = {from->space, options->json ? json_array() : NULL, NULL};
    hone_status status = hone_bound_space_bounds(from->bound, &low, &high, &err);
    if (status == HONE_OK) status = run_options(from, cli, &list, &err);
    if (status == HONE_OK && options->json)
        print_json(from, cli, low, high, &list);
    else if (status == HONE_OK && (options->count || !asked))
        print_count(from, low, high);
    json_decref(list.configs);
    return status == HONE_OK ? (high == 0 ? EXIT_NO : EXIT_DONE) : cli_fail(&err);
}

static hone_status parse(const cli_text *bytes, source *out, hone_error *err)
{
    const char *text = cli_text_string(bytes);
    const bool is_json = text[strspn(text, " \t\r\n")] == '{';
    const hone_status status = is_json
                                   ? hone_space_parse_t1(hone_allocator_system(), text, bytes->size, &out->space, err)
                                   : hone_space_parse(hone_allocator_system(), text, &out->space, err);
    return status == HONE_OK ? hone_space_bind(out->space, NULL, NULL, &out->bound, err) : status;
}

int cli_space(hone_cli *cli)
{
    // Looking at a space has nothing to save: a signal ends it at once.
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (cli->options.adjacent && cli->options.neighbours == NULL)
        return cli_usage("--adjacent needs --neighbours CONFIG");
    cli_text bytes;
    hone_error err;
    source from = {NULL, NULL};
    int status = cli_read(cli->arguments[0], &bytes);
    if (status != 0) return status;
    status = parse(&bytes, &from, &err) == HONE_OK ? show_space(cli, &from) : cli_fail_in(cli->arguments[0], &err);
    cli_text_deinit(&bytes);
    hone_bound_space_release(&from.bound);
    hone_space_release(&from.space);
    return status;
}
