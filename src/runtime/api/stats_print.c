// The hits as text: a line for people, a JSON document, Prometheus' text.
#include "runtime/api/stats.h"

#include "base/error.h"
#include "base/json.h"
#include "base/structs.h"
#include "config/chain.h"
#include "os/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "stats.print";

typedef struct sums {
    uint64_t hits, misses, of_link[HONE_SOURCE_COUNT];
    double seconds;
} sums;

static uint64_t calls_of(const hone_stats_row *row)
{
    return row->hits + row->misses;
}

static sums sum_up(const hone_stats_row *rows, size_t count)
{
    sums all = {0};
    for (size_t i = 0; i < count; i++) {
        all.hits += rows[i].hits;
        all.misses += rows[i].misses;
        all.seconds += rows[i].decided_seconds;
        if (rows[i].source >= 0 && rows[i].source < HONE_SOURCE_COUNT)
            all.of_link[rows[i].source] += calls_of(&rows[i]);
    }
    return all;
}

// The line -------------------------------------------------------------------------------------------------------------

static void print_line(const hone_stats_row *rows, size_t count, hone_buffer *out)
{
    const sums all = sum_up(rows, count);
    hone_buffer_format(
        out, "%" PRIu64 " calls, %" PRIu64 " hits, %" PRIu64 " decided in %.3g s", all.hits + all.misses, all.hits,
        all.misses, all.seconds);
    const char *before = "; answered by ";
    for (int link = HONE_SOURCE_NONE + 1; link < HONE_SOURCE_COUNT; link++) {
        if (all.of_link[link] == 0) continue;
        hone_buffer_format(out, "%s%s %" PRIu64, before, hone_source_name((hone_source)link), all.of_link[link]);
        before = ", ";
    }
    if (all.of_link[HONE_SOURCE_NONE] > 0)
        hone_buffer_format(out, "; not answered, or not known by what: %" PRIu64, all.of_link[HONE_SOURCE_NONE]);
    hone_buffer_char(out, '\n');
}

// JSON -----------------------------------------------------------------------------------------------------------------

static void json_row(const hone_stats_row *row, hone_buffer *out)
{
    const struct {
        const char *name, *text;
    } fields[] = {
        {"device", row->key.device},
        {"algorithm", row->key.algorithm},
        {"version", row->key.version},
        {"key", row->key.key},
        {"spec", row->key.spec},
        {"call", row->call},
        {"link", hone_source_name(row->source)},
        {"kernel", row->kernel},
        {"platform", row->platform}};
    hone_buffer_char(out, '{');
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        hone_json_field(out, fields[i].name, fields[i].text);
        hone_buffer_char(out, ',');
    }
    hone_buffer_format(
        out, "\"config\":%s,\"hits\":%" PRIu64 ",\"misses\":%" PRIu64 ",\"decided_seconds\":",
        row->config[0] != '\0' ? row->config : "null", row->hits, row->misses);
    hone_json_number(out, row->decided_seconds);
    hone_buffer_char(out, '}');
}

static void print_json(hone_runtime *rt, const hone_stats_row *rows, size_t count, hone_buffer *out)
{
    char ended[24];
    hone_os_format_utc(hone_os_now_utc(), ended);
    hone_buffer_format(out, "{\"hone_stats\":1,\"hone\":\"%s\",\"process\":%d,", hone_version(), hone_os_process_id());
    hone_json_field(out, "at", ended);
    hone_buffer_char(out, ',');
    hone_json_field(out, "policy", hone_policy_name(rt->policy));
    hone_buffer_char(out, ',');
    hone_json_field(out, "store", rt->store.url);
    hone_buffer_format(out, ",\"counts_bound\":%s,\"rows\":[", rt->plans.counts_bound ? "true" : "false");
    for (size_t i = 0; i < count; i++) {
        if (i > 0) hone_buffer_char(out, ',');
        json_row(&rows[i], out);
    }
    hone_buffer_text(out, "]}\n");
}

// Prometheus -----------------------------------------------------------------------------------------------------------

// Rows of one algorithm, link and kernel form one series: a label per call would create as many series as there are
// shapes.
typedef struct series {
    const hone_stats_row *first;
    uint64_t hits, misses;
    double seconds;
} series;

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static bool is_of(const series *s, const hone_stats_row *row)
{
    return s->first->source == row->source && strcmp(s->first->kernel, row->kernel) == 0 &&
           strcmp(s->first->platform, row->platform) == 0 &&
           strcmp(or_empty(s->first->key.algorithm), or_empty(row->key.algorithm)) == 0 &&
           strcmp(or_empty(s->first->key.version), or_empty(row->key.version)) == 0;
}

static size_t collect_series(const hone_stats_row *rows, size_t count, series *all)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < found && !is_of(&all[at], &rows[i]))
            at++;
        if (at == found) all[found++] = (series){.first = &rows[i]};
        all[at].hits += rows[i].hits;
        all[at].misses += rows[i].misses;
        all[at].seconds += rows[i].decided_seconds;
    }
    return found;
}

// Prometheus escapes backslashes, quotes and line ends in values of labels, and nothing else.
static void print_label(hone_buffer *out, const char *before, const char *name, const char *value)
{
    hone_buffer_format(out, "%s%s=\"", before, name);
    for (const char *at = value; *at != '\0'; at++) {
        if (*at == '\\' || *at == '"') hone_buffer_char(out, '\\');
        if (*at == '\n')
            hone_buffer_text(out, "\\n");
        else
            hone_buffer_char(out, *at);
    }
    hone_buffer_char(out, '"');
}

static void print_labels(const hone_stats_row *row, hone_buffer *out)
{
    print_label(out, "{", "algorithm", or_empty(row->key.algorithm));
    print_label(out, ",", "version", or_empty(row->key.version));
    print_label(out, ",", "link", hone_source_name(row->source));
    print_label(out, ",", "platform", row->platform);
    print_label(out, ",", "kernel", row->kernel);
    hone_buffer_text(out, "} ");
}

static void print_head(hone_buffer *out, const char *name, const char *help)
{
    hone_buffer_format(out, "# HELP %s %s\n# TYPE %s counter\n", name, help, name);
}

static void print_prometheus(const series *all, size_t count, hone_buffer *out)
{
    print_head(out, "hone_hits_total", "Calls that found a plan.");
    for (size_t i = 0; i < count; i++) {
        hone_buffer_text(out, "hone_hits_total");
        print_labels(all[i].first, out);
        hone_buffer_format(out, "%" PRIu64 "\n", all[i].hits);
    }
    print_head(out, "hone_misses_total", "Calls that had to be decided.");
    for (size_t i = 0; i < count; i++) {
        hone_buffer_text(out, "hone_misses_total");
        print_labels(all[i].first, out);
        hone_buffer_format(out, "%" PRIu64 "\n", all[i].misses);
    }
    print_head(out, "hone_decided_seconds_total", "Time that deciding took, preparing and tuning included.");
    for (size_t i = 0; i < count; i++) {
        hone_buffer_text(out, "hone_decided_seconds_total");
        print_labels(all[i].first, out);
        hone_json_number(out, all[i].seconds);
        hone_buffer_char(out, '\n');
    }
}

static hone_status print_as_prometheus(
    hone_runtime *rt, const hone_stats_row *rows, size_t count, hone_buffer *out, hone_error *err)
{
    series *all = hone_alloc_array(&rt->allocator, count + 1, sizeof all[0]);
    if (all == NULL) return hone_fail_memory(err, where);
    print_prometheus(all, collect_series(rows, count, all), out);
    hone_free(&rt->allocator, all);
    return HONE_OK;
}

static hone_status stats_print_known(
    hone_runtime *rt,
    const hone_stats_row *rows,
    size_t count,
    hone_stats_format format,
    hone_sink *sink,
    void *ctx,
    hone_error *err)
{
    hone_stats_rows own = {.rows = NULL};
    hone_buffer text;
    if (rt == NULL || sink == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the runtime and the sink must not be NULL");
    if (format < HONE_STATS_LINE || format > HONE_STATS_PROMETHEUS)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "the format is %d, expected HONE_STATS_LINE, HONE_STATS_JSON or HONE_STATS_PROMETHEUS", (int)format);
    hone_status status = rows == NULL ? hone_stats_collect(rt, &own, err) : HONE_OK;
    if (status != HONE_OK) return status;
    if (rows == NULL) {
        rows = own.rows;
        count = own.count;
    }
    hone_buffer_init(&text, rt->allocator);
    if (format == HONE_STATS_LINE) print_line(rows, count, &text);
    if (format == HONE_STATS_JSON) print_json(rt, rows, count, &text);
    if (format == HONE_STATS_PROMETHEUS) status = print_as_prometheus(rt, rows, count, &text, err);
    if (status == HONE_OK && text.failed) status = hone_fail_memory(err, where);
    if (status == HONE_OK) sink(ctx, hone_buffer_string(&text), text.size);
    hone_buffer_deinit(&text);
    hone_free(&rt->allocator, own.rows);
    return status;
}

hone_status hone_stats_print_sized(
    hone_runtime *rt,
    const hone_stats_row *rows,
    size_t count,
    size_t size,
    hone_stats_format format,
    hone_sink *sink,
    void *ctx,
    hone_error *err)
{
    hone_structs taken;
    hone_status status = hone_structs_take(&taken, rows, count, size, sizeof *rows, "hone_stats_row", where, err);
    if (status == HONE_OK) status = stats_print_known(rt, taken.items, count, format, sink, ctx, err);
    hone_structs_drop(&taken);
    return status;
}
