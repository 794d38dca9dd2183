// hone report: one store, or a fleet of them, as one page for a browser (fleet.js over src/report's style): what is covered,
// what is stale, what is known to be slower than it might be, who tuned what when.
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// The page draws what was measured for the heaviest calls alone: a store may hold thousands of calls with hundreds of
// configs each.
enum { MOST_CONTESTS = 60, MOST_CONFIGS = 400, MOST_CALLS = 2000, KEY_SIZE = 1024, URL_SIZE = 4096 };

extern const char hone_fleet_page[];

typedef struct fleet {
    hone_cli *cli;
    int store;       // that is read
    json_t *devices; // fingerprints, in the order they come
    json_t *decisions, *calls, *contests;
    json_t *fastest; // by call and regime: the fastest measurement
    size_t left_out; // recorded calls beyond MOST_CALLS
} fleet;

static json_int_t device_of(const fleet *f, const char *fingerprint)
{
    size_t i;
    const json_t *known;
    json_array_foreach(f->devices, i, known) if (strcmp(json_string_value(known), fingerprint) == 0) return (
        json_int_t)i;
    json_array_append_new(f->devices, json_string(fingerprint));
    return (json_int_t)i;
}

// As this machine knows it; NULL: it is not a device of this machine.
static const hone_device_info *device_here(const fleet *f, const char *fingerprint)
{
    size_t count = 0;
    const hone_device_info *const *all = hone_runtime_devices(f->cli->rt, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i]->fingerprint, fingerprint) == 0) return all[i];
    return NULL;
}

static const char *name_of(const hone_store_key *key, hone_regime regime, char out[KEY_SIZE])
{
    snprintf(
        out, KEY_SIZE, "%.600s %.100s %.60s %.40s %d", key->device, key->algorithm, key->version, key->key,
        (int)regime);
    return out;
}

// Decisions -----------------------------------------------------------------------------------------------------------

// Why a decision cannot be served by this hone, or is to be checked again; "" when neither.
static void find_staleness(const fleet *f, const hone_store_decision *row, char *out, size_t size)
{
    hone_decision decision;
    hone_error why = {.message = ""};
    const hone_device_info *device = device_here(f, row->key.device);
    const hone_status status = hone_decision_read(f->cli->rt, device, row, &decision, &why);
    snprintf(out, size, "%s", status != HONE_OK ? why.message : decision.changed);
}

static json_t *text_or_null(const char *text)
{
    return text == NULL || text[0] == '\0' ? json_null() : json_string(text);
}

static json_t *positive(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

// Times and texts that are not known are null, numbers 0.
static void add_evidence(json_t *out, const hone_store_decision *row)
{
    static const char *const times[][2] = {
        {"low_ns", "low_ns"},
        {"high_ns", "high_ns"},
        {"default_ns", "default_time_ns"},
        {"floor_ns", "floor_ns"},
        {"predicted_regret", "predicted_regret"},
        {"seconds", "seconds"}};
    static const char *const numbers[][2] = {
        {"prepare", "prepare_seconds"},
        {"verify", "verify_seconds"},
        {"run", "run_seconds"},
        {"wait", "wait_seconds"},
        {"disturbed", "disturbed"}};
    static const char *const texts[][2] = {
        {"undecided", "undecided"}, {"started", "started"}, {"who", "who"}, {"hone", "hone_version"}};
    json_t *e = row->evidence == NULL ? NULL : json_loads(row->evidence, 0, NULL);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        json_object_set_new(out, times[i][0], positive(json_number_value(json_object_get(e, times[i][1]))));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_object_set_new(out, numbers[i][0], json_real(json_number_value(json_object_get(e, numbers[i][1]))));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        json_object_set_new(out, texts[i][0], text_or_null(json_string_value(json_object_get(e, texts[i][1]))));
    json_object_set_new(out, "measured", json_integer(json_integer_value(json_object_get(e, "measured"))));
    json_decref(e);
}

static bool add_decision(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *row = record->decision;
    fleet *f = ctx;
    char stale[sizeof((hone_error *)0)->message], name[KEY_SIZE];
    find_staleness(f, row, stale, sizeof stale);
    json_t *config = row->config == NULL ? NULL : json_loads(row->config, 0, NULL);
    json_t *out = json_pack(
        "{s:i, s:I, s:s, s:s, s:s, s:s?, s:s, s:s, s:o, s:s?, s:s?, s:b, s:i, s:f}", "store", f->store, "device",
        device_of(f, row->key.device), "algorithm", row->key.algorithm, "version", row->key.version, "key",
        row->key.key, "call", row->call, "kernel", row->kernel, "platform", row->platform == NULL ? "" : row->platform,
        "config", config == NULL ? json_object() : config, "source", row->source, "revision", row->revision, "verified",
        row->verified, "regime", (int)row->regime, "time_ns", row->time_ns);
    if (out == NULL) return true;
    add_evidence(out, row);
    json_object_set_new(out, "stale", text_or_null(stale));
    json_object_set_new(out, "name", json_string(name_of(&row->key, row->regime, name)));
    json_array_append_new(f->decisions, out);
    return !cli_is_cancelled();
}

// What was measured ---------------------------------------------------------------------------------------------------

static json_t *measured(const hone_store_measurement *row)
{
    json_t *config = row->config == NULL ? NULL : json_loads(row->config, 0, NULL);
    return json_pack(
        "{s:s, s:o, s:s?, s:o, s:o, s:o, s:s?, s:s?}", "kernel", row->kernel, "config",
        config == NULL ? json_object() : config, "revision", row->revision, "time_ns", positive(row->time_ns), "low_ns",
        positive(row->low_ns), "high_ns", positive(row->high_ns), "failure",
        row->failure == HONE_FAILURE_NONE ? NULL : hone_failure_name(row->failure), "reason", row->reason);
}

static bool find_fastest(void *ctx, const hone_store_record *record)
{
    const hone_store_key *key = record->key;
    const hone_store_measurement *row = record->measurement;
    fleet *f = ctx;
    char name[KEY_SIZE];
    if (row->failure != HONE_FAILURE_NONE || row->time_ns <= 0) return !cli_is_cancelled();
    name_of(key, row->regime, name);
    const json_t *known = json_object_get(f->fastest, name);
    if (known == NULL || row->time_ns < json_number_value(json_object_get(known, "time_ns")))
        json_object_set_new(f->fastest, name, measured(row));
    return !cli_is_cancelled();
}

typedef struct contest {
    json_t *rows;
    hone_regime regime;
    size_t left_out;
} contest;

static bool add_config(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *row = record->measurement;
    contest *c = ctx;
    if (row->regime != c->regime) return true;
    if (json_array_size(c->rows) < MOST_CONFIGS)
        json_array_append_new(c->rows, measured(row));
    else
        c->left_out++;
    return true;
}

// Calls ---------------------------------------------------------------------------------------------------------------

static bool add_call(void *ctx, const hone_store_record *record)
{
    const hone_store_invocation *row = record->invocation;
    fleet *f = ctx;
    char last[24], name[KEY_SIZE];
    if (json_array_size(f->calls) >= MOST_CALLS) {
        f->left_out++;
        return true;
    }
    cli_utc_text(row->last, last);
    json_t *out = json_pack(
        "{s:i, s:I, s:s, s:s, s:s?, s:I, s:s, s:s?, s:s?, s:s}", "store", f->store, "device",
        device_of(f, row->key.device), "algorithm", row->key.algorithm, "key", row->key.key, "call", row->call, "count",
        (json_int_t)row->count, "last", last, "kernel", row->kernel, "answered", row->decided, "name",
        name_of(&row->key, HONE_WARM, name));
    if (out != NULL) json_array_append_new(f->calls, out);
    return !cli_is_cancelled();
}

static bool count_damaged(void *ctx, const hone_store_record *record)
{
    (void)record;
    ++*(json_int_t *)ctx;
    return true;
}

// Stores --------------------------------------------------------------------------------------------------------------

static hone_status read_store(fleet *f, hone_store *store, json_t *out, hone_error *err)
{
    hone_store_stat stat;
    json_int_t damaged = 0;
    hone_status status = hone_store_get_stat(store, &stat, err);
    if (status != HONE_OK) return status;
    json_object_set_new(out, "decisions", json_integer((json_int_t)stat.decisions));
    json_object_set_new(out, "measurements", json_integer((json_int_t)stat.measurements));
    json_object_set_new(out, "failures", json_integer((json_int_t)stat.failures));
    json_object_set_new(out, "invocations", json_integer((json_int_t)stat.invocations));
    json_object_set_new(out, "bytes", json_integer((json_int_t)stat.bytes));
    status = hone_store_scan(store, HONE_RECORD_DECISION, NULL, add_decision, f, err);
    if (status == HONE_OK) status = hone_store_scan(store, HONE_RECORD_MEASUREMENT, NULL, find_fastest, f, err);
    if (status == HONE_OK) status = hone_store_scan(store, HONE_RECORD_INVOCATION, NULL, add_call, f, err);
    if (status == HONE_OK) status = hone_store_scan(store, HONE_RECORD_QUARANTINED, NULL, count_damaged, &damaged, err);
    json_object_set_new(out, "set_aside", json_integer(damaged));
    return status;
}

static double weight_of(const json_t *row)
{
    return json_number_value(json_object_get(row, "weight"));
}

static int by_weight(const void *a, const void *b)
{
    const double x = weight_of(*(json_t *const *)a), y = weight_of(*(json_t *const *)b);
    return (x < y) - (x > y);
}

// How often a call was made, times its time; without records the time that its contest took is as good a word as any.
static void weigh(const fleet *f)
{
    json_t *counts = json_object(), *row;
    size_t i;
    json_array_foreach(f->calls, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        const json_int_t so_far = json_integer_value(json_object_get(counts, name));
        json_object_set_new(counts, name, json_integer(so_far + json_integer_value(json_object_get(row, "count"))));
    }
    json_array_foreach(f->decisions, i, row)
    {
        const double count =
            json_number_value(json_object_get(counts, json_string_value(json_object_get(row, "name"))));
        const double time = json_number_value(json_object_get(row, "time_ns"));
        json_object_set_new(row, "count", json_integer((json_int_t)count));
        json_object_set_new(row, "weight", json_real((count > 0 ? 1e12 + count * time : time)));
    }
    json_decref(counts);
}

static hone_status add_contest(fleet *f, hone_store *store, size_t index, hone_error *err)
{
    const json_t *row = json_array_get(f->decisions, index);
    const json_t *device = json_array_get(f->devices, (size_t)json_integer_value(json_object_get(row, "device")));
    const hone_store_key key = {
        .device = json_string_value(device),
        .algorithm = json_string_value(json_object_get(row, "algorithm")),
        .version = json_string_value(json_object_get(row, "version")),
        .key = json_string_value(json_object_get(row, "key"))};
    contest c = {json_array(), (hone_regime)json_integer_value(json_object_get(row, "regime")), 0};
    const hone_status status = hone_store_scan(store, HONE_RECORD_MEASUREMENT, &key, add_config, &c, err);
    if (status == HONE_OK && json_array_size(c.rows) > 1)
        json_array_append_new(
            f->contests, json_pack(
                             "{s:I, s:O, s:I}", "decision", (json_int_t)index, "configs", c.rows, "left_out",
                             (json_int_t)c.left_out));
    json_decref(c.rows);
    return status;
}

// Of the heaviest calls of all stores.
static hone_status add_contests(fleet *f, hone_store *const *stores, hone_error *err)
{
    const size_t count = json_array_size(f->decisions);
    json_t **order = malloc((count + 1) * sizeof *order);
    if (order == NULL) cli_no_memory();
    for (size_t i = 0; i < count; i++) {
        order[i] = json_array_get(f->decisions, i);
        json_object_set_new(order[i], "index", json_integer((json_int_t)i));
    }
    qsort(order, count, sizeof *order, by_weight);
    hone_status status = HONE_OK;
    for (size_t i = 0;
         i < count && json_array_size(f->contests) < MOST_CONTESTS && status == HONE_OK && !cli_is_cancelled(); i++) {
        if (json_object_get(f->fastest, json_string_value(json_object_get(order[i], "name"))) == NULL) continue;
        hone_store *store = stores[json_integer_value(json_object_get(order[i], "store"))];
        if (store != NULL)
            status = add_contest(f, store, (size_t)json_integer_value(json_object_get(order[i], "index")), err);
    }
    free(order);
    return status;
}

static int open_store(const char *url, hone_store **out, json_t *row)
{
    hone_store_place place;
    hone_error err = {.message = "there is no such store"};
    hone_status status = hone_store_get_place(url, &place, &err);
    if (status == HONE_OK && place.is_missing)
        status = HONE_NOT_FOUND;
    else if (status == HONE_OK)
        status = cli_open_reading(url, out, &err);
    if (status == HONE_OK) return 0;
    cli_warn("%s: %s", url, err.message);
    json_object_set_new(row, "failed", json_string(err.message));
    return status == HONE_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_WORLD;
}

// One that cannot be read stands in the page with the reason, and the others beside it.
static int read_stores(fleet *f, char *const *urls, size_t count, json_t *rows)
{
    hone_store **stores = calloc(count, sizeof(hone_store *));
    int result = EXIT_DONE;
    hone_error err;
    if (stores == NULL) cli_no_memory();
    for (size_t i = 0; i < count && !cli_is_cancelled(); i++) {
        json_t *row = json_pack("{s:s}", "url", urls[i]);
        if (row == NULL) row = json_pack("{s:s}", "url", "(a name that is not UTF-8)");
        json_array_append_new(rows, row);
        f->store = (int)i;
        const int opened = open_store(urls[i], &stores[i], row);
        if (opened != 0) result = opened;
        if (opened == 0 && read_store(f, stores[i], row, &err) != HONE_OK) {
            result = cli_fail_in(urls[i], &err);
            json_object_set_new(row, "failed", json_string(err.message));
        }
    }
    weigh(f);
    if (add_contests(f, stores, &err) != HONE_OK) result = cli_fail(&err);
    for (size_t i = 0; i < count; i++)
        hone_store_close(&stores[i]);
    free(stores);
    return result;
}

static json_t *document_of(fleet *f, json_t *stores)
{
    char now[24];
    cli_utc_text((double)time(NULL), now);
    return json_pack(
        "{s:i, s:s, s:s, s:o, s:O, s:O, s:O, s:O, s:O, s:I}", "hone_fleet", 1, "hone", hone_version(), "made", now,
        "stores", stores, "devices", f->devices, "decisions", f->decisions, "calls", f->calls, "contests", f->contests,
        "fastest", f->fastest, "calls_left_out", (json_int_t)f->left_out);
}

// The document goes where the page has its mark. A "<" stands only inside strings of JSON, where its escape means the same and
// ends no script element.
static void put_page(const char *json, cli_text *out)
{
    static const char mark[] = "@HONE_REPORT_DATA@";
    const char *at = strstr(hone_fleet_page, mark);
    cli_text_append(out, hone_fleet_page, (size_t)(at - hone_fleet_page));
    for (const char *end; (end = strchr(json, '<')) != NULL; json = end + 1) {
        cli_text_append(out, json, (size_t)(end - json));
        cli_text_put(out, "\\u003c");
    }
    cli_text_put(out, json);
    cli_text_put(out, at + sizeof mark - 1);
}

static int write_page(const char *path, const char *json)
{
    cli_text page;
    hone_error err;
    hone_status status = HONE_OK;
    cli_text_init(&page);
    put_page(json, &page);
    if (page.failed) cli_no_memory();
    if (strcmp(path, "-") == 0)
        fputs(cli_text_string(&page), stdout);
    else
        status = cli_write_file(path, page.data, page.size, &err);
    cli_text_deinit(&page);
    if (status != HONE_OK) return cli_fail(&err);
    if (strcmp(path, "-") != 0) printf("report in %s\n", path);
    return EXIT_DONE;
}

static int write_out(const hone_cli *cli, json_t *document)
{
    char *json = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(9));
    int status = EXIT_WORLD;
    if (json == NULL)
        cli_warn("the report's data cannot be written as JSON");
    else if (cli->options.json)
        status = puts(json) < 0 ? EXIT_WORLD : EXIT_DONE;
    else
        status = write_page(cli->options.output, json);
    free(json);
    json_decref(document);
    return status;
}

static bool any_was_read(const json_t *stores)
{
    size_t i;
    const json_t *row;
    json_array_foreach(stores, i, row) if (json_object_get(row, "decisions") != NULL) return true;
    return false;
}

int cli_report(hone_cli *cli)
{
    char own[URL_SIZE];
    char *const mine[] = {own};
    if (cli->options.output == NULL && !cli->options.json)
        return cli_usage("report needs a file for its page: hone report [URL...] -o FILE.html");
    if (cli->options.output != NULL && cli->options.json)
        return cli_usage("--json prints the data and writes no page: leave -o out");
    if (cli->options.output != NULL && strcmp(cli->options.output, "-") != 0) {
        const int wrong = cli_check_file("-o", cli->options.output);
        if (wrong != 0) return wrong;
    }
    int status = cli_open_unlocked(cli, HONE_POLICY_HEURISTIC);
    if (status == 0 && cli->count == 0) status = cli_store_url(cli, own, sizeof own);
    if (status == 0 && cli->count == 0 && strcmp(own, "none") == 0)
        status = cli_usage("no store is configured: name one, or set HONE_STORE");
    if (status != 0) return status;
    // A page of nothing would only hide that.
    json_t *stores = json_array();
    fleet f = {cli, 0, json_array(), json_array(), json_array(), json_array(), json_object(), 0};
    const int found =
        cli->count > 0 ? read_stores(&f, cli->arguments, cli->count, stores) : read_stores(&f, mine, 1, stores);
    const bool is_cancelled = cli_is_cancelled(), is_nothing = found == EXIT_USAGE || !any_was_read(stores);
    status = is_cancelled ? EXIT_INTERRUPTED : is_nothing ? found : write_out(cli, document_of(&f, stores));
    if (is_cancelled || is_nothing) json_decref(stores);
    json_t *const all[] = {f.devices, f.decisions, f.calls, f.contests, f.fastest};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        json_decref(all[i]);
    return status == 0 ? found : status;
}
