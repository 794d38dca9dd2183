// hone space
#include "cli.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct listing {
    const hone_space *space;
    json_t *configs; // NULL: print as text
} listing;

static bool show(void *ctx, const hone_config *config)
{
    listing *list = ctx;
    char text[2048];
    if (list->configs == NULL) {
        hone_config_text(list->space, config, text, sizeof text);
        printf("%s\n", text);
    } else {
        hone_config_json(list->space, config, text, sizeof text);
        json_array_append_new(list->configs, json_loads(text, 0, NULL));
    }
    return !cli_cancel;
}

static hone_status show_sample(hone_cli *cli, const hone_bound_space *bound, listing *list, hone_error *err)
{
    size_t wanted = (size_t)cli->options.sample, count = 0;
    hone_config *configs = calloc(wanted + 1, sizeof *configs);
    if (configs == NULL) return HONE_OUT_OF_MEMORY;
    hone_status status = hone_bound_space_sample(bound, (uint64_t)cli->options.seed, wanted, configs, &count, err);
    for (size_t i = 0; i < count && status == HONE_OK; i++)
        show(list, &configs[i]);
    free(configs);
    return status;
}

static json_t *parameters_of(const hone_space *space)
{
    json_t *parameters = json_array();
    for (size_t i = 0; i < hone_space_parameters(space); i++) {
        json_t *values = json_array();
        for (size_t v = 0; v < hone_space_values(space, i); v++)
            json_array_append_new(values, json_string(hone_space_value_text(space, i, v)));
        json_array_append_new(
            parameters, json_pack("{s:s, s:o}", "name", hone_space_parameter_name(space, i), "values", values));
    }
    return parameters;
}

static json_t *number(uint64_t value)
{
    return value > INT64_MAX ? json_null() : json_integer((json_int_t)value);
}

static int show_space(hone_cli *cli, const hone_space *space)
{
    hone_error err;
    hone_bound_space *bound = NULL;
    uint64_t count = 0;
    listing list = {space, cli->options.json ? json_array() : NULL};
    hone_status status = hone_space_bind(space, NULL, NULL, &bound, &err);
    if (status == HONE_OK) status = hone_bound_space_count(bound, &count, &err);
    if (status == HONE_OK && cli->options.sample > 0) status = show_sample(cli, bound, &list, &err);
    if (status == HONE_OK && cli->options.list) status = hone_bound_space_enumerate(bound, show, &list, &err);
    if (status != HONE_OK) {
        json_decref(list.configs);
    } else if (cli->options.json) {
        json_t *root = json_pack(
            "{s:o, s:o, s:o}", "parameters", parameters_of(space), "count", number(count), "cartesian",
            number(hone_space_cartesian(space)));
        if (cli->options.sample > 0 || cli->options.list)
            json_object_set_new(root, "configs", list.configs);
        else
            json_decref(list.configs);
        cli_print_json(root);
    } else if (cli->options.count || !(cli->options.sample > 0 || cli->options.list)) {
        printf(
            "%zu parameters, %" PRIu64 " valid configs of %" PRIu64 "\n", hone_space_parameters(space), count,
            hone_space_cartesian(space));
    }
    hone_bound_space_release(&bound);
    return status == HONE_OK ? (count == 0 ? EXIT_NO : EXIT_DONE) : cli_fail(&err);
}

int cli_space(hone_cli *cli)
{
    // Counting may take for ever and has nothing to save: a signal ends it at once.
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    hone_buffer text;
    int status = cli_read(cli->arguments[0], &text);
    if (status != 0) return status;
    const char *start = hone_buffer_string(&text);
    bool is_json = start[strspn(start, " \t\r\n")] == '{';
    hone_space *space = NULL;
    hone_error err;
    hone_status parsed = is_json ? hone_space_parse_t1(hone_allocator_system(), start, text.size, &space, &err)
                                 : hone_space_parse(hone_allocator_system(), start, &space, &err);
    status = parsed == HONE_OK ? show_space(cli, space) : cli_fail_in(cli->arguments[0], &err);
    hone_space_release(&space);
    hone_buffer_deinit(&text);
    return status;
}
