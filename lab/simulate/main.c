// hone-simulate: the tuner against a recorded space. README.md has its options.
#include "simulate/simulate.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Exit codes, as those of the command.
enum { DONE = 0, NO = 1, USAGE = 2, WORLD = 3, INTERRUPTED = 130 };
enum { MOST_OTHERS = 32 };

typedef struct asked {
    const char *space, *others[MOST_OTHERS];
    size_t count; // of others
    long long seed, evaluations, patience;
    double seconds;
    int races, json, help;
} asked;

typedef struct warm {
    hone_search_prior priors[MOST_OTHERS * HONE_WARM_CONFIGS];
    size_t count;
} warm;

static volatile int cancelled;

static void on_signal(int number)
{
    (void)number;
    cancelled = 1;
}

static int fail(const hone_error *err, int code)
{
    fprintf(stderr, "hone-simulate: %s\n", err->message);
    return code;
}

static int open_space(const char *path, hone_recorded **out)
{
    hone_error err;
    return hone_recorded_open(hone_allocator_system(), path, out, &err) == HONE_OK ? DONE : fail(&err, WORLD);
}

// The best of another space; what this one does not have is left out with a word.
static int add_warm(warm *w, const hone_recorded *space, const char *path, uint32_t source)
{
    size_t foreign = 0;
    hone_recorded *other = NULL;
    if (open_space(path, &other) != DONE) return WORLD;
    w->count += hone_simulate_warm(space, other, source, w->priors + w->count, &foreign);
    if (foreign > 0)
        fprintf(
            stderr, "hone-simulate: %s: %zu of its best configs are not in this space and are left out\n", path,
            foreign);
    hone_recorded_destroy(&other);
    return DONE;
}

// For people ----------------------------------------------------------------------------------------------------------

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static void show_config(const char *before, const json_t *of, const char *after)
{
    char *config = json_dumps(json_object_get(of, "config"), JSON_COMPACT);
    printf("%s%s%s", before, config != NULL ? config : "", after);
    free(config);
}

// The steps that found a better one.
static void show_steps(const json_t *steps)
{
    size_t i;
    const json_t *step;
    double best = 0;
    printf("%5s  %10s  %12s  config\n", "step", "seconds", "time");
    json_array_foreach(steps, i, step)
    {
        const double time = number(step, "time");
        if (!(time > 0) || (best > 0 && time >= best)) continue;
        best = time;
        printf("%5zu  %10.3g  %9.4g ms", i + 1, number(step, "seconds"), time);
        show_config("  ", step, "\n");
    }
}

static void show(const json_t *document)
{
    size_t i, failed = 0;
    double whole_ms = 0;
    const json_t *step, *steps = json_object_get(document, "evaluations"), *best = json_object_get(document, "best");
    json_array_foreach(steps, i, step)
    {
        failed += json_is_null(json_object_get(step, "time"));
        whole_ms += number(step, "cost_ms");
    }
    show_steps(steps);
    if (best != NULL) {
        show_config("chosen ", best, "");
        printf(": %.4g ms, %.2f %% over the best that was tried\n", number(best, "time"), 100 * number(best, "regret"));
    }
    printf(
        "%zu of %.0f configs tried, %zu failed; %.1f s of its time, %.1f s were each measured in full; the tuner took "
        "%.0f ms\n",
        json_array_size(steps), number(document, "configs"), failed, number(document, "paid_ms") * 1e-3,
        whole_ms * 1e-3, number(document, "tuner_ms"));
}

static int print(const asked *a, const hone_buffer *text)
{
    if (a->json) {
        printf("%s\n", hone_buffer_string(text));
        return DONE;
    }
    json_t *document = json_loads(hone_buffer_string(text), 0, NULL);
    if (document == NULL) return WORLD;
    show(document);
    json_decref(document);
    return DONE;
}

// Running -------------------------------------------------------------------------------------------------------------

static int simulate(const asked *a, const hone_recorded *recorded, const warm *w)
{
    const hone_allocator allocator = hone_allocator_system();
    const hone_simulation simulation = {
        .recorded = recorded,
        .name = a->space,
        .seed = (uint64_t)a->seed,
        .evaluations = (uint32_t)a->evaluations,
        .seconds = a->seconds,
        .patience = (uint32_t)a->patience,
        .races = a->races,
        .priors = w->priors,
        .prior_count = w->count,
        .cancel = &cancelled,
    };
    hone_error err;
    hone_buffer out;
    hone_buffer_init(&out, allocator);
    const hone_status status = hone_simulate(&allocator, &simulation, &out, &err);
    const int code = out.size > 0 ? print(a, &out) : DONE;
    hone_buffer_deinit(&out);
    if (status == HONE_OK) return code;
    return fail(&err, status == HONE_NOT_FOUND ? NO : status == HONE_CANCELLED ? INTERRUPTED : WORLD);
}

static int run(const asked *a)
{
    hone_recorded *recorded = NULL;
    int status = open_space(a->space, &recorded);
    if (status == DONE && hone_recorded_is_cut(recorded))
        fprintf(
            stderr, "hone-simulate: %s ends too early: %zu configs of it are whole\n", a->space,
            hone_recorded_count(recorded));
    warm *w = calloc(1, sizeof *w);
    if (w == NULL) status = WORLD;
    for (size_t i = 0; i < a->count && status == DONE; i++)
        status = add_warm(w, recorded, a->others[i], (uint32_t)i);
    if (status == DONE) status = simulate(a, recorded, w);
    free(w);
    hone_recorded_destroy(&recorded);
    return status;
}

// What is asked -------------------------------------------------------------------------------------------------------

static int show_usage(FILE *to, int code)
{
    fprintf(
        to, "usage: hone-simulate SPACE [--seed N] [--evals N] [--seconds N] [--patience N] [--racing] [--json] "
            "[--warm OTHER...]\n"
            "SPACE and OTHER: cache files of Kernel Tuner or T4 results; at most 32 others\n");
    return code;
}

static bool read_count(const char *text, long long least, long long *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *out >= least && *out <= UINT32_MAX;
}

static bool read_seconds(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out > 0;
}

static bool add_other(asked *a, const char *path)
{
    if (a->count == MOST_OTHERS) return false;
    a->others[a->count++] = path;
    return true;
}

static bool read_option(asked *a, int option, const char *value)
{
    switch (option) {
    case 's':
        return read_count(value, 0, &a->seed);
    case 'e':
        return read_count(value, 1, &a->evaluations);
    case 'p':
        return read_count(value, 1, &a->patience);
    case 't':
        return read_seconds(value, &a->seconds);
    case 'w':
        return add_other(a, value);
    default:
        return option == 0; // a flag
    }
}

// The first argument is the space; what stands after it and a --warm are others.
static bool read_arguments(asked *a, int argc, char **argv)
{
    const struct option options[] = {
        {"seed", required_argument, NULL, 's'},
        {"evals", required_argument, NULL, 'e'},
        {"patience", required_argument, NULL, 'p'},
        {"seconds", required_argument, NULL, 't'},
        {"warm", required_argument, NULL, 'w'},
        {"racing", no_argument, &a->races, 1},
        {"json", no_argument, &a->json, 1},
        {"help", no_argument, &a->help, 1},
        {NULL, 0, NULL, 0},
    };
    for (int found; (found = getopt_long(argc, argv, "", options, NULL)) != -1;)
        if (!read_option(a, found, optarg)) return false;
    if (a->help) return true;
    if (optind == argc || (argc - optind > 1 && a->count == 0)) return false;
    a->space = argv[optind];
    for (int i = optind + 1; i < argc; i++)
        if (!add_other(a, argv[i])) return false;
    return true;
}

int main(int argc, char **argv)
{
    asked a = {.space = NULL};
    if (!read_arguments(&a, argc, argv)) return show_usage(stderr, USAGE);
    if (a.help) return show_usage(stdout, DONE);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    return run(&a);
}
