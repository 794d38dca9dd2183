// hone store export, import, merge, diff and prune.
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_LINES = 20, JSON_LINES = 1000, PATH_SIZE = 4096 };

// Reports -------------------------------------------------------------------------------------------------------------

// What imports, merges and exports say of single entries: all of what was refused, and everything with --verbose.
typedef struct report {
    hone_cli *cli;
    json_t *lines; // up to JSON_LINES
    size_t shown, left;
} report;

static void note_line(void *ctx, const hone_import_line *line)
{
    report *r = ctx;
    if (line->outcome != HONE_IMPORT_REFUSED && !r->cli->options.verbose) return;
    if (r->cli->options.json) {
        if (json_array_size(r->lines) < JSON_LINES)
            json_array_append_new(
                r->lines, json_pack(
                              "{s:s, s:s, s:s, s:s}", "outcome", hone_import_outcome_name(line->outcome), "origin",
                              line->origin == NULL ? "" : line->origin, "entry", line->what, "reason", line->reason));
        return;
    }
    if (r->shown == SHOWN_LINES) {
        r->left++;
        return;
    }
    r->shown++;
    cli_warn(
        "%s: %s %s: %s", line->origin == NULL ? "" : line->origin, hone_import_outcome_name(line->outcome), line->what,
        line->reason);
}

static void end_lines(const report *r)
{
    if (r->left > 0) cli_warn("and %zu more (--json lists them)", r->left);
}

// Prints what became of all entries and drops the lines. Exit 1 when some were refused.
static int show_report(report *r, const hone_import_report *counts)
{
    const size_t *outcomes = counts->outcomes;
    end_lines(r);
    if (r->cli->options.json) {
        cli_print_json(json_pack(
            "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:O}", "taken", (json_int_t)outcomes[HONE_IMPORT_TAKEN], "kept",
            (json_int_t)outcomes[HONE_IMPORT_KEPT], "equal", (json_int_t)outcomes[HONE_IMPORT_EQUAL], "foreign",
            (json_int_t)outcomes[HONE_IMPORT_FOREIGN], "refused", (json_int_t)outcomes[HONE_IMPORT_REFUSED], "aliases",
            (json_int_t)counts->aliases, "measurements", (json_int_t)counts->measurements, "lines", r->lines));
    } else {
        printf(
            "%zu taken, %zu kept as the better ones here, %zu equal, %zu foreign, %zu refused; %zu aliases, %zu "
            "measurements\n",
            outcomes[HONE_IMPORT_TAKEN], outcomes[HONE_IMPORT_KEPT], outcomes[HONE_IMPORT_EQUAL],
            outcomes[HONE_IMPORT_FOREIGN], outcomes[HONE_IMPORT_REFUSED], counts->aliases, counts->measurements);
    }
    return outcomes[HONE_IMPORT_REFUSED] > 0 ? EXIT_NO : EXIT_DONE;
}

static int read_format(const hone_cli *cli, hone_exchange *out)
{
    hone_error err;
    *out = HONE_EXCHANGE_ANY;
    if (cli->options.format == NULL || hone_exchange_parse(cli->options.format, out, &err) == HONE_OK) return 0;
    return cli_usage("--format: %s", err.message);
}

// Importing -----------------------------------------------------------------------------------------------------------

typedef struct importing {
    hone_importer *importer;
    hone_exchange format;
    size_t files, empty, damaged;
    bool in_folder;
} importing;

// tokamax ships files of no bytes for what it has not tuned on a device. One that is named without its format is
// damaged.
static bool is_passed_over(importing *i, const char *path, const cli_text *text)
{
    const bool may_be_tokamax = i->format == HONE_EXCHANGE_TOKAMAX || (i->format == HONE_EXCHANGE_ANY && i->in_folder);
    if (text->size > 0 || !may_be_tokamax) return false;
    cli_warn("%s: is empty, passed over", path);
    i->empty++;
    return true;
}

// Nothing is stored before all files were read.
static int say_cancelled(void)
{
    cli_warn("interrupted: nothing was imported");
    return EXIT_INTERRUPTED;
}

static int add_file(importing *i, const char *path)
{
    cli_text text;
    hone_error err;
    int status = cli_read(path, &text);
    if (status != 0) return status;
    if (cli_is_cancelled()) {
        cli_text_deinit(&text);
        return say_cancelled();
    }
    i->files++;
    hone_status added = is_passed_over(i, path, &text)
                            ? HONE_OK
                            : hone_importer_add(i->importer, path, i->format, cli_text_string(&text), text.size, &err);
    cli_text_deinit(&text);
    if (added == HONE_OK) return 0;
    // One damaged file among a folder's, as tokamax ships, keeps no other out; the exit code is then no success.
    if (!i->in_folder || i->format != HONE_EXCHANGE_TOKAMAX || added != HONE_CORRUPT) return cli_fail(&err);
    cli_warn("%s; nothing of it is taken", err.message);
    i->damaged++;
    return 0;
}

static bool list_name(void *ctx, const char *name)
{
    if (name[0] != '.') json_array_append_new(ctx, json_string(name));
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(json_string_value(*(json_t *const *)a), json_string_value(*(json_t *const *)b));
}

static bool is_json(const char *name)
{
    size_t size = strlen(name);
    return size > 5 && strcmp(name + size - 5, ".json") == 0;
}

static bool is_own_folder(const char *path)
{
    char real[PATH_SIZE];
    return cli_is_folder(path) && cli_real_path(path, real, sizeof real) && strcmp(path, real) == 0;
}

static int add_folder(importing *i, const char *folder, int depth);

// One pass over a folder's names: its plain .json files, or the folders in it. Links are passed over: they lead
// elsewhere.
static int add_names(importing *i, const char *folder, json_t *const *names, size_t count, int depth, bool folders)
{
    int status = 0;
    for (size_t k = 0; status == 0 && k < count; k++) {
        char path[PATH_SIZE];
        const char *name = json_string_value(names[k]);
        int size = snprintf(path, sizeof path, "%s/%s", folder, name);
        if (size <= 0 || size >= PATH_SIZE) continue;
        if (folders && is_own_folder(path)) status = add_folder(i, path, depth - 1);
        if (!folders && is_json(name) && cli_is_plain_file(path)) status = add_file(i, path);
    }
    return status;
}

// By name. A folder without files of its own, as that of tokamax's devices, is looked through.
static int add_folder(importing *i, const char *folder, int depth)
{
    hone_error err;
    json_t *names = json_array();
    int status = cli_list_folder(folder, list_name, names, &err) == HONE_OK ? 0 : cli_fail(&err);
    size_t count = json_array_size(names), before = i->files;
    json_t **sorted = calloc(count + 1, sizeof(json_t *));
    for (size_t k = 0; sorted != NULL && k < count; k++)
        sorted[k] = json_array_get(names, k);
    if (sorted != NULL) qsort(sorted, count, sizeof *sorted, by_text);
    if (sorted != NULL && status == 0) status = add_names(i, folder, sorted, count, depth, false);
    if (sorted != NULL && status == 0 && depth > 0 && i->files == before)
        status = add_names(i, folder, sorted, count, depth, true);
    free(sorted);
    json_decref(names);
    return status;
}

// "." and "nvidia_h100/" by their own names, since tokamax's device is the name of a folder.
static int add_argument(importing *i, const char *argument)
{
    enum { MOST_DEPTH = 3 };
    char path[PATH_SIZE];
    i->in_folder = cli_is_folder(argument);
    if (!i->in_folder) return add_file(i, argument);
    return add_folder(i, cli_real_path(argument, path, sizeof path) ? path : argument, MOST_DEPTH);
}

// An import of which nothing came is no success.
static int say_nothing(const importing *i, const hone_import_report *counts)
{
    size_t sum = counts->aliases + counts->measurements;
    for (int k = 0; k < HONE_IMPORT_COUNT; k++)
        sum += counts->outcomes[k];
    if (sum > 0) return i->damaged > 0 ? EXIT_NO : 0;
    cli_warn(
        "nothing was imported: %zu file%s read, %zu of them empty, and no entry in the others; name a file, or "
        "a folder of .json files",
        i->files, i->files == 1 ? "" : "s", i->empty);
    return EXIT_NO;
}

int cli_store_import(hone_cli *cli, hone_store *store)
{
    if (cli->count < 2) return cli_usage("store import needs files or folders (- is standard input)");
    importing i = {0};
    report r = {.cli = cli, .lines = json_array()};
    hone_import_report counts;
    hone_error err;
    int status = read_format(cli, &i.format);
    if (status == 0) status = cli_open_unlocked(cli, HONE_POLICY_HEURISTIC);
    const hone_import_options options = {.struct_size = sizeof options, .line = note_line, .ctx = &r};
    if (status == 0 && hone_importer_create(cli->rt, &options, &i.importer, &err) != HONE_OK) status = cli_fail(&err);
    for (size_t k = 1; status == 0 && k < cli->count; k++)
        status = add_argument(&i, cli->arguments[k]);
    if (status == 0 && hone_importer_commit(i.importer, store, &counts, &err) != HONE_OK) status = cli_fail(&err);
    if (status == 0) status = show_report(&r, &counts);
    if (status == 0) status = say_nothing(&i, &counts);
    hone_importer_release(&i.importer);
    json_decref(r.lines);
    return status;
}

// Exporting -----------------------------------------------------------------------------------------------------------

typedef struct exporting {
    hone_cli *cli;
    hone_export_options options;
    report report;
    json_t *files;        // written, or to be written
    const char **devices; // of options
} exporting;

static int export_text(exporting *e, hone_store *store, const char *file, char **out, size_t *out_size)
{
    hone_error err;
    e->options.file = file;
    return hone_export(store, &e->options, out, out_size, &err) == HONE_OK ? 0 : cli_fail(&err);
}

// What ejkernel put into its file since, or hone never read, stays there before what is written.
static int export_file(exporting *e, hone_store *store, const char *file, const char *path)
{
    hone_error err;
    cli_text there;
    char *text = NULL;
    size_t size = 0;
    int status = 0;
    const bool is_shared = e->options.format == HONE_EXCHANGE_EJKERNEL && cli_is_plain_file(path);
    cli_text_init(&there);
    if (is_shared) status = cli_read(path, &there);
    if (status != 0) return status;
    e->options.file = file;
    e->options.there = is_shared ? cli_text_string(&there) : NULL;
    e->options.there_size = there.size;
    const hone_status done = hone_export(store, &e->options, &text, &size, &err);
    if (done == HONE_CORRUPT && is_shared)
        status = cli_fail_in(path, &err);
    else if (done != HONE_OK || cli_write_file(path, text, size, &err) != HONE_OK)
        status = cli_fail(&err);
    hone_text_release(&text);
    cli_text_deinit(&there);
    return status;
}

static bool list_export(void *ctx, const char *file)
{
    json_array_append_new(ctx, json_string(file));
    return true;
}

// hone_export_files says that its names lead nowhere else; the only folder in them is tokamax's device.
static int export_folder(exporting *e, hone_store *store, const char *folder)
{
    hone_error err;
    int status = cli_make_folders(folder, &err) == HONE_OK ? 0 : cli_fail(&err);
    if (status == 0 && hone_export_files(store, &e->options, list_export, e->files, &err) != HONE_OK)
        status = cli_fail(&err);
    for (size_t i = 0; status == 0 && i < json_array_size(e->files); i++) {
        char path[PATH_SIZE];
        const char *file = json_string_value(json_array_get(e->files, i));
        if (snprintf(path, sizeof path, "%s/%s", folder, file) >= PATH_SIZE)
            return cli_usage("%.60s...: the path is too long", folder);
        char *slash = strrchr(path, '/');
        *slash = '\0';
        if (cli_make_folders(path, &err) != HONE_OK) return cli_fail(&err);
        *slash = '/';
        bool whole = e->options.format == HONE_EXCHANGE_ANY || e->options.format == HONE_EXCHANGE_HONE;
        status = export_file(e, store, whole ? NULL : file, path);
    }
    return status;
}

// tokamax's files do not say which device and operation they are of: their names do.
static int check_one_file(exporting *e, hone_store *store, const char *out)
{
    hone_error err;
    hone_export_options silent = e->options;
    silent.line = NULL;
    if (e->options.format != HONE_EXCHANGE_TOKAMAX) return 0;
    if (hone_export_files(store, &silent, list_export, e->files, &err) != HONE_OK) return cli_fail(&err);
    const size_t count = json_array_size(e->files);
    json_array_clear(e->files);
    if (count <= 1) return 0;
    const char *folder = strcmp(out, "-") == 0 ? "DIR" : out;
    return cli_usage("tokamax has a file for each device and operation, %zu here: name a folder, %s/", count, folder);
}

static int export_to(exporting *e, hone_store *store, const char *out)
{
    size_t size = strlen(out);
    if (cli_is_folder(out) || (size > 1 && out[size - 1] == '/')) return export_folder(e, store, out);
    int status = check_one_file(e, store, out);
    if (status != 0) return status;
    json_array_append_new(e->files, json_string(out));
    return export_file(e, store, NULL, out);
}

static int export_standard(exporting *e, hone_store *store)
{
    char *text = NULL;
    size_t size = 0;
    int status = check_one_file(e, store, "-");
    if (status == 0) status = export_text(e, store, NULL, &text, &size);
    if (status == 0) fwrite(text, 1, size, stdout);
    if (status == 0 && size > 0 && text[size - 1] != '\n') putchar('\n');
    hone_text_release(&text);
    end_lines(&e->report);
    return status;
}

static int show_files(const exporting *e)
{
    end_lines(&e->report);
    if (e->cli->options.json) {
        cli_print_json(json_pack("{s:O, s:O}", "files", e->files, "lines", e->report.lines));
        return EXIT_DONE;
    }
    for (size_t i = 0; i < json_array_size(e->files); i++)
        printf("%s\n", json_string_value(json_array_get(e->files, i)));
    return EXIT_DONE;
}

static bool has_decision(void *ctx, const hone_store_record *record)
{
    (void)record;
    *(bool *)ctx = true;
    return false;
}

// Takes the devices that are named, whose decisions there must be.
static int take_devices(exporting *e, hone_store *store, json_t *named)
{
    const char *device;
    json_t *value;
    hone_error err;
    bool has = named == NULL;
    e->devices = calloc(json_object_size(named) + 1, sizeof *e->devices);
    if (e->devices == NULL) cli_no_memory();
    e->options.devices = e->devices;
    json_object_foreach(named, device, value)
    {
        e->devices[e->options.device_count++] = device;
        if (!has &&
            hone_store_scan(
                store, HONE_RECORD_DECISION, &(hone_store_key){.device = device}, has_decision, &has, &err) != HONE_OK)
            return cli_fail(&err);
    }
    if (has) return 0;
    cli_warn("%s has no decision for %s: nothing was written", hone_store_url(store), e->cli->options.device);
    return EXIT_NO;
}

int cli_store_export(hone_cli *cli, hone_store *store)
{
    if (cli->count < 2) return cli_usage("store export needs a file or a folder (- is standard output)");
    exporting e = {
        .cli = cli,
        .options =
            {.struct_size = sizeof e.options,
             .foreign_device = cli->options.foreign_device,
             .measurements = cli->options.measurements,
             .line = note_line},
        .report = {.cli = cli, .lines = json_array()},
        .files = json_array(),
    };
    e.options.ctx = &e.report;
    int status = read_format(cli, &e.options.format);
    json_t *named = NULL;
    if (status == 0 && (cli->options.device != NULL || e.options.format == HONE_EXCHANGE_EJKERNEL))
        status = cli_open_unlocked(cli, HONE_POLICY_HEURISTIC);
    e.options.rt = cli->rt;
    if (status == 0) status = cli_named_devices(cli, &named);
    if (status == 0) status = take_devices(&e, store, named);
    bool standard = strcmp(cli->arguments[1], "-") == 0;
    if (status == 0) status = standard ? export_standard(&e, store) : export_to(&e, store, cli->arguments[1]);
    if (status == 0 && !standard) status = show_files(&e);
    json_decref(e.report.lines);
    json_decref(e.files);
    json_decref(named);
    free(e.devices);
    return status;
}

// Merging -------------------------------------------------------------------------------------------------------------

static void add_counts(hone_import_report *sum, const hone_import_report *counts)
{
    for (int i = 0; i < HONE_IMPORT_COUNT; i++)
        sum->outcomes[i] += counts->outcomes[i];
    sum->aliases += counts->aliases;
    sum->measurements += counts->measurements;
}

int cli_store_merge(hone_cli *cli, hone_store *store)
{
    if (cli->count < 2) return cli_usage("store merge needs the URLs of stores");
    report r = {.cli = cli, .lines = json_array()};
    const hone_import_options options = {.struct_size = sizeof options, .line = note_line, .ctx = &r};
    hone_import_report sum = {0};
    hone_error err;
    int status = 0;
    for (size_t i = 1; status == 0 && i < cli->count; i++) {
        hone_store *from = NULL;
        hone_import_report counts;
        status = cli_open_other(cli->arguments[i], &from);
        if (status == 0 && hone_store_merge_from(store, from, &options, &counts, &err) != HONE_OK)
            status = cli_fail(&err);
        if (status == 0) add_counts(&sum, &counts);
        hone_store_close(&from);
    }
    if (status == 0) status = show_report(&r, &sum);
    json_decref(r.lines);
    return status;
}

// Comparing -----------------------------------------------------------------------------------------------------------

static const char *const difference_names[] = {
    [HONE_ONLY_LEFT] = "left",
    [HONE_ONLY_RIGHT] = "right",
    [HONE_OTHER_CHOICE] = "choice",
    [HONE_OTHER_TIMES] = "times",
};

typedef struct differing {
    hone_cli *cli;
    json_t *rows;
    size_t choices; // that differ, or are on one side only
} differing;

static json_t *choice_of(const hone_store_decision *decision)
{
    if (decision == NULL) return json_null();
    json_t *config = json_loads(decision->config, 0, NULL);
    return json_pack(
        "{s:s, s:s, s:o, s:f}", "kernel", decision->kernel, "platform", decision->platform, "config",
        config != NULL ? config : json_object(), "time_ns", decision->time_ns);
}

static void print_choice(char side, const hone_store_decision *decision)
{
    char time[32];
    if (decision != NULL)
        printf(
            "%c %s/%s %s  %s\n", side, decision->platform, decision->kernel, decision->config,
            cli_time_text(decision->time_ns, time));
}

static bool show_difference(void *ctx, const hone_store_pair *pair)
{
    differing *d = ctx;
    const hone_store_decision *left = pair->left, *right = pair->right;
    const hone_store_decision *either = left != NULL ? left : right;
    const hone_store_key *key = &either->key;
    d->choices += pair->difference != HONE_OTHER_TIMES;
    if (pair->difference == HONE_OTHER_TIMES && !d->cli->options.verbose) return true;
    if (d->cli->options.json) {
        json_array_append_new(
            d->rows, json_pack(
                         "{s:s, s:s, s:s, s:s, s:s, s:s?, s:o, s:o}", "difference", difference_names[pair->difference],
                         "device", key->device, "algorithm", key->algorithm, "version", key->version, "key", key->key,
                         "call", either->call, "left", choice_of(left), "right", choice_of(right)));
        return !cli_is_cancelled();
    }
    printf(
        "%s@v%s %s on %s  %s\n", key->algorithm, key->version, key->key, key->device,
        either->call == NULL ? "" : either->call);
    print_choice('-', left);
    print_choice('+', right);
    return !cli_is_cancelled();
}

// A bundle, read into memory.
static int open_bundle(const char *path, hone_store **out)
{
    hone_error err;
    importing i = {0};
    if (hone_store_open(hone_allocator_system(), cli_scratch_url(), out, &err) != HONE_OK) return cli_fail(&err);
    if (hone_importer_create(NULL, NULL, &i.importer, &err) != HONE_OK) return cli_fail(&err);
    int status = add_file(&i, path);
    if (status == 0 && hone_importer_commit(i.importer, *out, NULL, &err) != HONE_OK) status = cli_fail(&err);
    hone_importer_release(&i.importer);
    return status;
}

int cli_store_diff(hone_cli *cli, hone_store *store)
{
    if (cli->count < 2) return cli_usage("store diff needs the URL of another store, or a bundle");
    const char *name = cli->arguments[1];
    hone_store *other = NULL;
    hone_error err;
    differing d = {.cli = cli, .rows = json_array()};
    bool is_url = strchr(name, ':') != NULL && !cli_is_plain_file(name);
    int status = is_url ? cli_open_other(name, &other) : open_bundle(name, &other);
    if (status == 0 && hone_store_diff(store, other, show_difference, &d, &err) != HONE_OK) status = cli_fail(&err);
    if (status == 0 && cli->options.json) cli_print_json(json_pack("{s:O}", "differences", d.rows));
    if (status == 0 && !cli->options.json && d.choices == 0) printf("no choice differs\n");
    hone_store_close(&other);
    json_decref(d.rows);
    return status != 0 ? status : d.choices > 0 ? EXIT_NO : EXIT_DONE;
}

// Pruning -------------------------------------------------------------------------------------------------------------

int cli_store_prune(hone_cli *cli, hone_store *store)
{
    hone_prune_report counts;
    hone_error err;
    int status = cli_open_unlocked(cli, HONE_POLICY_HEURISTIC);
    if (status != 0) return status;
    if (hone_store_prune(cli->rt, store, cli->options.dry_run, &counts, &err) != HONE_OK) return cli_fail(&err);
    if (cli->options.json)
        cli_print_json(json_pack(
            "{s:I, s:I, s:I, s:b}", "decisions", (json_int_t)counts.decisions, "measurements",
            (json_int_t)counts.measurements, "quarantined", (json_int_t)counts.quarantined, "dry_run",
            cli->options.dry_run));
    else
        printf(
            "%s %zu decision%s, %zu measurement%s and failures, %zu record%s set aside before\n",
            cli->options.dry_run ? "would take away" : "took away", counts.decisions, cli_plural(counts.decisions),
            counts.measurements, cli_plural(counts.measurements), counts.quarantined, cli_plural(counts.quarantined));
    return EXIT_DONE;
}
