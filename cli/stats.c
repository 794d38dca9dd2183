// hone stats: what was hit, of documents that HONE_STATS=FILE made, of recorded calls, or of a store's.
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct statistics {
    hone_stats_row *rows;
    size_t count, capacity;
    json_t *index; // of what tells rows apart: the place of the row
    json_t *kept;  // the documents that rows borrow texts of
    size_t documents, without_bound;
    bool is_recorded; // of some rows nobody knows how many were decided
    size_t told;      // lines of this file that could not be read
    int status;       // of what could not be read
} statistics;

// Reading --------------------------------------------------------------------------------------------------------------

enum { MOST_TOLD = 10 }; // lines of one file that are named

static void refuse(statistics *all, const char *file, size_t line, const char *why)
{
    all->status = EXIT_WORLD;
    if (line > 0 && ++all->told > MOST_TOLD) return;
    if (strcmp(file, "-") == 0) file = "standard input";
    if (line > 0)
        cli_warn("%s:%zu: %s", file, line, why);
    else
        cli_warn("%s: %s", file, why);
}

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

// HONE_SOURCE_COUNT: no link has this name.
static hone_source link_of(const char *name)
{
    int link = HONE_SOURCE_NONE;
    if (name == NULL) return HONE_SOURCE_NONE;
    while (link < HONE_SOURCE_COUNT && strcmp(name, hone_source_name((hone_source)link)) != 0)
        link++;
    return (hone_source)link;
}

// False: it is none, or below 0.
static bool count_of(const json_t *object, const char *name, uint64_t *out)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

// Adds a row to the one of the same call and choice.
static void add_row(statistics *all, const hone_stats_row *row)
{
    cli_text name;
    const hone_store_key *key = &row->key;
    const char *parts[] = {key->device, key->algorithm, key->version,  key->key,    key->spec,
                           row->call,   row->kernel,    row->platform, row->config, hone_source_name(row->source)};
    cli_text_init(&name);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        cli_text_format(&name, "%s\n", or_empty(parts[i]));
    json_t *place = json_object_get(all->index, cli_text_string(&name));
    if (place == NULL) {
        if (all->count == all->capacity) {
            all->capacity = 2 * all->capacity + 64;
            all->rows = realloc(all->rows, all->capacity * sizeof all->rows[0]);
            if (all->rows == NULL) cli_no_memory();
        }
        place = json_integer((json_int_t)all->count);
        if (name.failed || json_object_set_new_nocheck(all->index, cli_text_string(&name), place) != 0) cli_no_memory();
        all->rows[all->count++] = *row;
    } else {
        hone_stats_row *known = &all->rows[json_integer_value(place)];
        known->hits = add(known->hits, row->hits);
        known->misses = add(known->misses, row->misses);
        known->decided_seconds += row->decided_seconds;
    }
    cli_text_deinit(&name);
}

// What would move a terminal's cursor is no name that hone gives.
static bool is_plain(const json_t *object, const char *name)
{
    const char *text = text_of(object, name);
    for (; text != NULL && *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f) return false;
    return true;
}

static bool read_key(const json_t *object, hone_stats_row *row)
{
    static const char *const names[] = {"device", "algorithm", "version", "key", "call", "kernel", "platform"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!is_plain(object, names[i])) return false;
    row->key = (hone_store_key){
        text_of(object, "device"), text_of(object, "algorithm"), text_of(object, "version"), text_of(object, "key"),
        text_of(object, "spec")};
    row->call = text_of(object, "call");
    const hone_store_key *key = &row->key;
    const bool has_all = key->device != NULL && key->algorithm != NULL && key->version != NULL && key->key != NULL;
    const bool has_none = key->device == NULL && key->algorithm == NULL && key->key == NULL;
    return has_all || has_none;
}

// A config's text is kept with its document.
static const char *config_of(statistics *all, const json_t *value)
{
    char *text = json_is_object(value) ? json_dumps(value, JSON_COMPACT) : NULL;
    if (text == NULL) return "";
    json_t *kept = json_string_nocheck(text);
    free(text);
    if (kept == NULL || json_array_append_new(all->kept, kept) != 0) cli_no_memory();
    return json_string_value(kept);
}

static bool read_row(statistics *all, const json_t *object, hone_stats_row *row)
{
    const json_t *seconds = json_object_get(object, "decided_seconds");
    *row = (hone_stats_row){
        .source = link_of(text_of(object, "link")),
        .kernel = or_empty(text_of(object, "kernel")),
        .platform = or_empty(text_of(object, "platform")),
        .decided_seconds = json_number_value(seconds),
    };
    if (!json_is_object(object) || !read_key(object, row) || row->source == HONE_SOURCE_COUNT ||
        !count_of(object, "hits", &row->hits) || !count_of(object, "misses", &row->misses) ||
        !json_is_number(seconds) || row->decided_seconds < 0)
        return false;
    row->config = config_of(all, json_object_get(object, "config"));
    return true;
}

// All rows or none: a document that is damaged in one place is not to be trusted in another.
static void take_statistics(statistics *all, json_t *document, const char *file, size_t line)
{
    const json_t *rows = json_object_get(document, "rows"), *object;
    hone_stats_row row;
    size_t i;
    if (json_integer_value(json_object_get(document, "hone_stats")) != 1 || !json_is_array(rows)) {
        refuse(all, file, line, "is of no version of statistics that this hone reads, which is 1");
        return;
    }
    json_array_foreach(rows, i, object)
    {
        if (read_row(all, object, &row)) continue;
        char why[80];
        snprintf(why, sizeof why, "row %zu is not a row of statistics: the document is left out", i + 1);
        refuse(all, file, line, why);
        return;
    }
    json_array_append(all->kept, document);
    json_array_foreach(rows, i, object) if (read_row(all, object, &row)) add_row(all, &row);
    all->documents++;
    if (json_is_false(json_object_get(document, "counts_bound"))) all->without_bound++;
}

static bool add_invocation(void *ctx, const hone_store_invocation *invocation)
{
    statistics *all = ctx;
    json_t *texts = json_pack(
        "[s, s, s, s, s?, s?, s?]", invocation->key.device, invocation->key.algorithm, invocation->key.version,
        invocation->key.key, invocation->key.spec, invocation->call, invocation->kernel);
    if (texts == NULL || json_array_append_new(all->kept, texts) != 0) cli_no_memory();
    hone_source source = link_of(invocation->decided);
    const hone_stats_row row = {
        .key =
            {json_string_value(json_array_get(texts, 0)), json_string_value(json_array_get(texts, 1)),
             json_string_value(json_array_get(texts, 2)), json_string_value(json_array_get(texts, 3)),
             json_string_value(json_array_get(texts, 4))},
        .call = json_string_value(json_array_get(texts, 5)),
        .source = source == HONE_SOURCE_COUNT ? HONE_SOURCE_NONE : source,
        .kernel = or_empty(json_string_value(json_array_get(texts, 6))),
        .platform = "",
        .config = "",
        .hits = invocation->count,
    };
    add_row(all, &row);
    all->is_recorded = true;
    return true;
}

// What `hone record export` wrote.
static void take_record(statistics *all, json_t *document, const char *file)
{
    const json_t *rows = json_object_get(document, "invocations"), *object;
    size_t i;
    json_array_foreach(rows, i, object)
    {
        hone_stats_row row = {.kernel = or_empty(text_of(object, "kernel")), .platform = "", .config = ""};
        const hone_source source = link_of(text_of(object, "answered"));
        const bool has_key = read_key(object, &row);
        if (row.key.device == NULL) row.key.device = text_of(document, "device"); // of older documents
        if ((!has_key && json_object_get(object, "device") != NULL) || row.key.device == NULL ||
            row.key.algorithm == NULL || row.key.version == NULL || row.key.key == NULL ||
            !count_of(object, "count", &row.hits)) {
            refuse(all, file, 0, "has an invocation without device, algorithm, version, key and count: it is left out");
            continue;
        }
        row.source = source == HONE_SOURCE_COUNT ? HONE_SOURCE_NONE : source;
        add_row(all, &row);
        all->is_recorded = true;
    }
    json_array_append(all->kept, document);
    all->documents++;
}

// A line for each process; an empty one stands between them.
static void read_lines(statistics *all, const char *file, const char *text, size_t size)
{
    size_t number = 0, found = 0;
    all->told = 0;
    for (const char *at = text, *end = text + size; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t length = stop != NULL ? (size_t)(stop - at) : (size_t)(end - at);
        json_error_t why;
        number++;
        if (length > 0) {
            json_t *document = json_loadb(at, length, 0, &why);
            found++;
            if (document == NULL) {
                char words[JSON_ERROR_TEXT_LENGTH + 100];
                snprintf(words, sizeof words, "is not a document of statistics (%s): it is left out", why.text);
                refuse(all, file, number, words);
            } else {
                take_statistics(all, document, file, number);
            }
            json_decref(document);
        }
        at += length + (stop != NULL);
    }
    if (all->told > MOST_TOLD) cli_warn("%s: and %zu more lines", file, all->told - MOST_TOLD);
    if (found == 0) refuse(all, file, 0, "is empty: no process has ended with HONE_STATS naming it yet");
}

static void read_file(statistics *all, const char *path)
{
    cli_text text;
    const int status = cli_read(path, &text);
    if (status != 0) {
        all->status = EXIT_WORLD;
        return;
    }
    json_t *document = json_loadb(cli_text_string(&text), text.size, 0, NULL);
    if (json_object_get(document, "hone_record") != NULL)
        take_record(all, document, path);
    else if (document != NULL && text.size > 0)
        take_statistics(all, document, path, 0);
    else
        read_lines(all, path, cli_text_string(&text), text.size);
    json_decref(document);
    cli_text_deinit(&text);
}

typedef struct folder {
    const char *path;
    json_t *names;
} folder;

static bool note_name(void *ctx, const char *name)
{
    const folder *f = ctx;
    const size_t size = strlen(name);
    char path[4200];
    if (size < 6 || strcmp(name + size - 5, ".json") != 0) return true;
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    json_array_append_new(f->names, json_string_nocheck(path));
    return true;
}

static void read_path(statistics *all, const char *path)
{
    folder f = {path, NULL};
    hone_error err;
    size_t i;
    const json_t *name;
    if (!cli_is_folder(path)) {
        read_file(all, path);
        return;
    }
    f.names = json_array();
    if (cli_list_folder(path, note_name, &f, &err) != HONE_OK) {
        (void)cli_fail(&err);
        all->status = EXIT_WORLD;
    } else if (json_array_size(f.names) == 0) {
        refuse(all, path, 0, "has no .json in it: no process has ended with HONE_STATS naming it yet");
    }
    json_array_foreach(f.names, i, name) read_file(all, json_string_value(name));
    json_decref(f.names);
}

// Comparing ------------------------------------------------------------------------------------------------------------

typedef struct comparison {
    json_t *unstored, *unasked;
    bool is_done;
} comparison;

static json_t *lines_of(const char *text)
{
    json_t *lines = json_array();
    while (text != NULL && *text != '\0') {
        const size_t size = strcspn(text, "\n");
        json_array_append_new(lines, json_stringn_nocheck(text, size));
        text += size + (text[size] == '\n');
    }
    return lines;
}

static bool take_finding(void *ctx, const hone_stats_finding *found)
{
    comparison *c = ctx;
    json_t *row = json_pack(
        "{s:s, s:s, s:s, s:s, s:s?, s:s}", "device", found->key.device, "algorithm", found->key.algorithm, "version",
        found->key.version, "key", found->key.key, "call", found->call, "kernel", found->kernel);
    if (row == NULL) cli_no_memory();
    if (!found->is_stored) {
        json_object_set_new(row, "link", json_string(hone_source_name(found->source)));
        json_object_set_new(row, "calls", json_integer((json_int_t)found->calls));
        json_object_set_new(row, "nearest", found->nearest != NULL ? json_string(found->nearest) : json_null());
        json_object_set_new(row, "differs", lines_of(found->differs));
    }
    json_array_append_new(found->is_stored ? c->unasked : c->unstored, row);
    return true;
}

static comparison compare(hone_cli *cli, const statistics *all)
{
    comparison c = {json_array(), json_array(), false};
    static const hone_stats_row none;
    hone_error err;
    const hone_stats_row *rows = all->count > 0 ? all->rows : &none; // NULL would be this process's own
    hone_status status = hone_stats_compare(cli->rt, rows, all->count, take_finding, &c, &err);
    c.is_done = status == HONE_OK;
    if (!c.is_done && !cli->options.prometheus && !cli->options.json)
        cli_warn("not compared with what is stored: %s", err.message);
    return c;
}

// Printing -------------------------------------------------------------------------------------------------------------

static void into_buffer(void *ctx, const char *text, size_t size)
{
    cli_text_append(ctx, text, size);
}

// The statistics in a form of the library's.
static int print_to(hone_cli *cli, const statistics *all, hone_stats_format format, cli_text *out)
{
    hone_error err;
    static const hone_stats_row none;
    cli_text_init(out);
    const hone_stats_row *rows = all->count > 0 ? all->rows : &none;
    if (hone_stats_print(cli->rt, rows, all->count, format, into_buffer, out, &err) == HONE_OK) return 0;
    cli_text_deinit(out);
    return cli_fail(&err);
}

static int print_json(hone_cli *cli, const statistics *all, const comparison *c)
{
    cli_text text;
    const int status = print_to(cli, all, HONE_STATS_JSON, &text);
    if (status != 0) return status;
    json_t *document = json_loadb(cli_text_string(&text), text.size, 0, NULL);
    cli_text_deinit(&text);
    if (document == NULL) cli_no_memory();
    json_object_set_new(document, "documents", json_integer((json_int_t)all->documents));
    json_object_set_new(document, "counts_bound", json_boolean(all->without_bound == 0));
    json_object_set(document, "asked_never_stored", c->is_done ? c->unstored : json_null());
    json_object_set(document, "stored_never_asked", c->is_done ? c->unasked : json_null());
    cli_print_json(document);
    return 0;
}

static int print_prometheus(hone_cli *cli, const statistics *all, const comparison *c)
{
    cli_text text;
    const int status = print_to(cli, all, HONE_STATS_PROMETHEUS, &text);
    if (status != 0) return status;
    fwrite(cli_text_string(&text), 1, text.size, stdout);
    cli_text_deinit(&text);
    if (!c->is_done) return 0;
    cli_say(
        "# HELP hone_asked_never_stored Calls that were guessed or not answered, and are not stored.\n"
        "# TYPE hone_asked_never_stored gauge\nhone_asked_never_stored %zu\n"
        "# HELP hone_stored_never_asked Stored choices that no call asked for.\n"
        "# TYPE hone_stored_never_asked gauge\nhone_stored_never_asked %zu\n",
        json_array_size(c->unstored), json_array_size(c->unasked));
    return 0;
}

static int heavier(const void *left, const void *right)
{
    const hone_stats_row *a = left, *b = right;
    const uint64_t calls_a = add(a->hits, a->misses), calls_b = add(b->hits, b->misses);
    return (calls_a < calls_b) - (calls_a > calls_b);
}

static void print_rows(const statistics *all)
{
    json_t *devices = json_array();
    cli_table *table = cli_table_new(8);
    cli_table_row(table, "calls", "hits", "decided", "seconds", "answered by", "kernel", "device", "call");
    qsort(all->rows, all->count, sizeof all->rows[0], heavier);
    for (size_t i = 0; i < all->count; i++) {
        const hone_stats_row *row = &all->rows[i];
        char calls[24], hits[24], misses[24], seconds[24], number[24] = "";
        snprintf(calls, sizeof calls, "%" PRIu64, add(row->hits, row->misses));
        snprintf(hits, sizeof hits, "%" PRIu64, row->hits);
        snprintf(misses, sizeof misses, "%" PRIu64, row->misses);
        snprintf(seconds, sizeof seconds, "%.3g", row->decided_seconds);
        if (row->key.device != NULL) cli_device_number(devices, row->key.device, number);
        const char *call = row->key.algorithm == NULL ? "all further calls" : row->call;
        cli_table_row(
            table, calls, hits, misses, seconds, hone_source_name(row->source), row->kernel, number,
            call != NULL ? call : row->key.key);
    }
    cli_table_print(table);
    cli_print_devices(devices);
}

static const char *call_text(const json_t *row)
{
    const char *call = text_of(row, "call");
    return call != NULL ? call : text_of(row, "key");
}

static void print_findings(const comparison *c)
{
    size_t i, j;
    const json_t *row, *line;
    if (json_array_size(c->unstored) > 0) cli_say("asked for, never stored\n");
    json_array_foreach(c->unstored, i, row)
    {
        cli_say(
            "  %" JSON_INTEGER_FORMAT " calls  %s, %s %s\n", json_integer_value(json_object_get(row, "calls")),
            call_text(row), text_of(row, "link"), or_empty(text_of(row, "kernel")));
        if (text_of(row, "nearest") != NULL) cli_say("    nearest %s\n", text_of(row, "nearest"));
        json_array_foreach(json_object_get(row, "differs"), j, line) cli_say("      %s\n", json_string_value(line));
    }
    if (json_array_size(c->unasked) > 0) cli_say("stored, never asked for\n");
    json_array_foreach(c->unasked, i, row) cli_say("  %s, %s\n", call_text(row), or_empty(text_of(row, "kernel")));
}

static int print_text(hone_cli *cli, const statistics *all, const comparison *c)
{
    cli_text line;
    const int status = print_to(cli, all, HONE_STATS_LINE, &line);
    if (status != 0) return status;
    if (all->documents > 0) cli_say("%zu document%s: ", all->documents, all->documents == 1 ? "" : "s");
    if (all->is_recorded) cli_say("recorded, hits and decided ones as one: ");
    cli_say("%s", cli_text_string(&line));
    cli_text_deinit(&line);
    if (all->without_bound > 0) cli_say("%zu did not count runs of bound plans\n", all->without_bound);
    print_rows(all);
    print_findings(c);
    return 0;
}

static int print_all(hone_cli *cli, statistics *all)
{
    comparison c = compare(cli, all);
    int status;
    if (cli->options.json)
        status = print_json(cli, all, &c);
    else if (cli->options.prometheus)
        status = print_prometheus(cli, all, &c);
    else
        status = print_text(cli, all, &c);
    json_decref(c.unstored);
    json_decref(c.unasked);
    return status != 0 ? status : all->status;
}

static int read_and_print(hone_cli *cli, statistics *all)
{
    hone_error err;
    for (size_t i = 0; i < cli->count; i++)
        read_path(all, cli->arguments[i]);
    if (cli->count == 0 && hone_record_scan(cli->rt, NULL, add_invocation, all, &err) != HONE_OK) return cli_fail(&err);
    if (cli->count > 0 && all->documents == 0) return all->status;
    if (cli->count == 0 && all->count == 0)
        cli_warn("the store has no recorded calls: programs record with HONE_RECORD=1");
    return print_all(cli, all);
}

int cli_stats(hone_cli *cli)
{
    if (cli->options.json && cli->options.prometheus)
        return cli_usage("--json and --prometheus are two forms: give one");
    int status = cli->count == 0 ? cli_find_store(cli) : 0;
    if (status != 0) return status;
    if (cli_lacks_store(cli)) cli->options.store = "none";
    status = cli_open_unlocked(cli, HONE_POLICY_HEURISTIC);
    if (status == 0 && cli->count == 0) status = cli_need_store(cli);
    if (status != 0) return status;
    statistics all = {.index = json_object(), .kept = json_array()};
    status = read_and_print(cli, &all);
    json_decref(all.index);
    json_decref(all.kept);
    free(all.rows);
    return status;
}
