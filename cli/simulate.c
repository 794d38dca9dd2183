// hone simulate
#include "cli.h"

#include "simulate/simulate.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct warm {
    hone_search_prior priors[CLI_NAMES_SIZE * HONE_WARM_CONFIGS];
    size_t count;
} warm;

// A file that is not there is no answer to what was asked, as in hone space.
static int fail_open(const hone_error *err)
{
    const int code = cli_fail(err);
    return code == EXIT_NO ? EXIT_WORLD : code;
}

// The best of another space; what this one does not have is left out with a word.
static int add_warm(warm *w, const hone_recorded *space, const char *path, uint32_t source)
{
    hone_error err;
    size_t foreign = 0;
    hone_recorded *other = NULL;
    if (hone_recorded_open(hone_allocator_system(), path, &other, &err) != HONE_OK) return fail_open(&err);
    w->count += hone_simulate_warm(space, other, source, w->priors + w->count, &foreign);
    if (foreign > 0)
        fprintf(stderr, "hone: %s: %zu of its best configs are not in this space and are left out\n", path, foreign);
    hone_recorded_destroy(&other);
    return EXIT_DONE;
}

static int add_all_warm(const hone_cli *cli, warm *w, const hone_recorded *space)
{
    const cli_names *given = &cli->options.warm;
    uint32_t source = 0;
    int status = EXIT_DONE;
    for (size_t i = 0; i < given->count && status == EXIT_DONE; i++)
        status = add_warm(w, space, given->items[i], source++);
    for (size_t i = 1; i < cli->count && status == EXIT_DONE; i++)
        status = add_warm(w, space, cli->arguments[i], source++);
    return status;
}

// For people ----------------------------------------------------------------------------------------------------------

static void show_steps(const json_t *steps)
{
    double best = 0;
    cli_table *table = cli_table_new(4);
    cli_table_row(table, "step", "seconds", "time", "config");
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        double time = json_number_value(json_object_get(step, "time"));
        char number[24], seconds[32], text[32];
        if (!(time > 0) || (best > 0 && time >= best)) continue;
        best = time;
        char *config = json_dumps(json_object_get(step, "config"), JSON_COMPACT);
        snprintf(number, sizeof number, "%zu", i + 1);
        snprintf(seconds, sizeof seconds, "%.1f", json_number_value(json_object_get(step, "seconds")));
        cli_table_row(table, number, seconds, cli_time_text(time * 1e6, text), config != NULL ? config : "");
        free(config);
    }
    cli_table_print(table);
}

static void count_steps(const json_t *steps, size_t *out_failed, double *out_whole_ms)
{
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        *out_failed += json_is_null(json_object_get(step, "time"));
        *out_whole_ms += json_number_value(json_object_get(step, "cost_ms"));
    }
}

static void show(const json_t *document)
{
    const json_t *steps = json_object_get(document, "evaluations"), *best = json_object_get(document, "best");
    size_t failed = 0;
    double whole_ms = 0;
    char time[32];
    count_steps(steps, &failed, &whole_ms);
    show_steps(steps);
    if (best != NULL) {
        char *config = json_dumps(json_object_get(best, "config"), JSON_COMPACT);
        printf(
            "chosen %s: %s, %.2f %% over the best that was tried\n", config != NULL ? config : "",
            cli_time_text(json_number_value(json_object_get(best, "time")) * 1e6, time),
            100 * json_number_value(json_object_get(best, "regret")));
        free(config);
    }
    printf(
        "%zu of %lld configs tried, %zu failed; %.1f s of its time, %.1f s were each measured in full; the tuner "
        "took %.0f ms\n",
        json_array_size(steps), (long long)json_integer_value(json_object_get(document, "configs")), failed,
        json_number_value(json_object_get(document, "paid_ms")) * 1e-3, whole_ms * 1e-3,
        json_number_value(json_object_get(document, "tuner_ms")));
}

static int print(const hone_cli *cli, const hone_buffer *text)
{
    if (cli->options.json) {
        printf("%s\n", hone_buffer_string(text));
        return EXIT_DONE;
    }
    json_error_t why;
    json_t *document = json_loads(hone_buffer_string(text), 0, &why);
    if (document == NULL) return EXIT_WORLD;
    show(document);
    json_decref(document);
    return EXIT_DONE;
}

// Running -------------------------------------------------------------------------------------------------------------

static int simulate(const hone_cli *cli, const hone_recorded *recorded, const warm *w)
{
    const cli_options *options = &cli->options;
    const hone_allocator allocator = hone_allocator_system();
    const hone_simulation simulation = {
        .recorded = recorded,
        .name = cli->arguments[0],
        .seed = (uint64_t)options->seed,
        .evaluations = (uint32_t)options->evals,
        .seconds = options->seconds,
        .patience = (uint32_t)options->patience,
        .races = options->racing,
        .priors = w->priors,
        .prior_count = w->count,
        .cancel = &cli_cancel,
    };
    hone_error err;
    hone_buffer out;
    hone_buffer_init(&out, allocator);
    hone_status status = hone_simulate(&allocator, &simulation, &out, &err);
    int code = out.size > 0 ? print(cli, &out) : EXIT_DONE;
    hone_buffer_deinit(&out);
    return status == HONE_OK ? code : cli_fail(&err);
}

int cli_simulate(hone_cli *cli)
{
    if (cli->count > 1 && cli->options.warm.count == 0)
        return cli_usage("%zu spaces, expected one; others that hand on their best go after --warm", cli->count);
    if (cli->count - 1 + cli->options.warm.count > CLI_NAMES_SIZE)
        return cli_usage("more than %d spaces after --warm", CLI_NAMES_SIZE);
    hone_error err;
    hone_recorded *recorded = NULL;
    if (hone_recorded_open(hone_allocator_system(), cli->arguments[0], &recorded, &err) != HONE_OK)
        return fail_open(&err);
    if (hone_recorded_is_cut(recorded))
        fprintf(
            stderr, "hone: %s ends too early: %zu configs of it are whole\n", cli->arguments[0],
            hone_recorded_count(recorded));
    warm *w = calloc(1, sizeof *w);
    int status = w != NULL ? add_all_warm(cli, w, recorded) : EXIT_WORLD;
    if (status == EXIT_DONE) status = simulate(cli, recorded, w);
    free(w);
    hone_recorded_destroy(&recorded);
    return status;
}
