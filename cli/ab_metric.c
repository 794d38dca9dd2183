// The metric of a program: numbers in what it prints, found by a regular expression or by a path into JSON.
#include "ab.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef void taking(void *ctx, double value);

int ab_read_metric(const cli_options *options, ab_metric *out)
{
    char words[256];
    const char *regex = options->step != NULL ? options->step : options->metric;
    const char *name = options->step != NULL ? "--step" : "--metric";
    *out = (ab_metric){.higher = options->higher, .path = options->metric_json, .is_step = options->step != NULL};
    if ((options->metric != NULL) + (options->metric_json != NULL) + (options->step != NULL) > 1)
        return cli_usage("--metric, --metric-json and --step: expected one of them");
    if (options->higher && options->metric == NULL && options->metric_json == NULL)
        return cli_usage("--higher: time is better when it is lower; give --metric or --metric-json");
    out->is_json = options->metric_json != NULL;
    if (out->is_json && out->path[0] == '\0') return cli_usage("--metric-json is empty, expected a path as a.b[0]");
    if (regex == NULL) return 0;
    const int wrong = regcomp(&out->regex, regex, REG_EXTENDED);
    if (wrong != 0) {
        regerror(wrong, &out->regex, words, sizeof words);
        return cli_usage("%s '%s': %s (extended regular expressions, as grep -E has them)", name, regex, words);
    }
    out->is_regex = true;
    if (out->is_step || out->regex.re_nsub == 1) return 0;
    const size_t groups = out->regex.re_nsub;
    ab_free_metric(out);
    return cli_usage(
        "--metric '%s' has %zu groups, expected one around the number: 'step ([0-9.]+) ms'", options->metric, groups);
}

void ab_free_metric(ab_metric *metric)
{
    if (metric->is_regex) regfree(&metric->regex);
    metric->is_regex = false;
}

// Text that is no number says nothing; a number that no ratio can be made of is passed on, to be told of.
static void take_number(const char *text, size_t size, taking *take, void *ctx)
{
    char copy[64], *end;
    while (size > 0 && isspace((unsigned char)*text)) {
        text++;
        size--;
    }
    if (size == 0 || size >= sizeof copy) return;
    memcpy(copy, text, size);
    copy[size] = '\0';
    const double value = strtod(copy, &end);
    while (isspace((unsigned char)*end))
        end++;
    if (end != copy && *end == '\0') take(ctx, value);
}

static void match_all(const ab_metric *metric, const char *line, taking *take, void *ctx)
{
    regmatch_t found[2];
    for (int flags = 0; *line != '\0' && regexec(&metric->regex, line, 2, found, flags) == 0; flags = REG_NOTBOL) {
        if (found[1].rm_so >= 0)
            take_number(line + found[1].rm_so, (size_t)(found[1].rm_eo - found[1].rm_so), take, ctx);
        line += found[0].rm_eo > 0 ? found[0].rm_eo : 1;
    }
}

// JSON ----------------------------------------------------------------------------------------------------------------

static void take_json(const json_t *value, taking *take, void *ctx)
{
    size_t i;
    const json_t *item;
    if (json_is_number(value)) take(ctx, json_number_value(value));
    json_array_foreach(value, i, item) take_json(item, take, ctx);
}

// "a.b[0].c": names with dots between, numbers in brackets. NULL: there is nothing.
static const json_t *at_path(const json_t *value, const char *path)
{
    char name[256];
    while (value != NULL && *path != '\0') {
        if (*path == '[') {
            char *end;
            const unsigned long index = strtoul(path + 1, &end, 10);
            if (end == path + 1 || *end != ']') return NULL;
            value = json_array_get(value, index);
            path = end + 1;
        } else {
            path += *path == '.';
            const size_t size = strcspn(path, ".[");
            if (size == 0 || size >= sizeof name) return NULL;
            memcpy(name, path, size);
            name[size] = '\0';
            value = json_object_get(value, name);
            path += size;
        }
    }
    return value;
}

void ab_metric_whole(const ab_metric *metric, const char *text, taking *take, void *ctx)
{
    json_t *value = metric->is_json ? json_loads(text, 0, NULL) : NULL;
    take_json(at_path(value, metric->path), take, ctx);
    json_decref(value);
}

void ab_metric_line(const ab_metric *metric, const char *line, taking *take, void *ctx)
{
    if (metric->is_step) {
        if (regexec(&metric->regex, line, 0, NULL, 0) == 0) take(ctx, 1);
        return;
    }
    if (metric->is_regex) match_all(metric, line, take, ctx);
    line += strspn(line, " \t");
    if (metric->is_json && (*line == '{' || *line == '[')) ab_metric_whole(metric, line, take, ctx);
}
