// hone store
#include "cli.h"

#include "hone/offline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static json_t *parsed(const char *text)
{
    json_t *value = text == NULL ? NULL : json_loads(text, 0, NULL);
    return value == NULL ? json_object() : value;
}

// One entry of a result document.
static json_t *entry_of(const hone_store_decision *row)
{
    json_t *evidence = parsed(row->evidence);
    if (json_object_get(evidence, "time_ns") == NULL) json_object_set_new(evidence, "time_ns", json_real(row->time_ns));
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s?, s:s?, s:s, s:s, s:o, s:s, s:b, s:s?, s:o, s:o}", "device", row->key.device,
        "algorithm", row->key.algorithm, "version", row->key.version, "key", row->key.key, "call", row->call, "spec",
        row->key.spec, "kernel", row->kernel, "platform", row->platform, "config", parsed(row->config), "source",
        row->source, "verified", row->verified, "revision", row->revision, "evidence", evidence, "environment",
        parsed(row->environment));
}

typedef struct listing {
    cli_table *table; // NULL: JSON lines
    json_t *devices;  // that rows name
    size_t count;
} listing;

// Whether its contest left open which is the fastest.
static bool is_undecided(const hone_store_decision *row)
{
    json_t *evidence = parsed(row->evidence);
    const char *undecided = json_string_value(json_object_get(evidence, "undecided"));
    const bool is = undecided != NULL && undecided[0] != '\0';
    json_decref(evidence);
    return is;
}

static bool list_row(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *row = record->decision;
    listing *list = ctx;
    char time[32], source[80], number[24];
    list->count++;
    if (list->table == NULL)
        cli_print_json(entry_of(row));
    else {
        const bool is_warm = row->regime == HONE_WARM;
        snprintf(
            source, sizeof source, "%.30s%s%s%s", row->source != NULL ? row->source : "", is_warm ? "" : ", ",
            is_warm ? "" : hone_regime_name(row->regime), is_undecided(row) ? ", undecided" : "");
        cli_table_row(
            list->table, row->key.algorithm, row->key.key, cli_device_number(list->devices, row->key.device, number),
            row->kernel, cli_time_text(row->time_ns, time), source, row->config, row->call);
    }
    return !cli_is_cancelled();
}

static int list(hone_cli *cli, hone_store *store)
{
    listing rows = {.table = cli->options.json ? NULL : cli_table_new(8), .devices = json_array()};
    if (rows.table != NULL)
        cli_table_row(rows.table, "algorithm", "key", "device", "kernel", "time", "source", "config", "call");
    hone_error err;
    hone_status status = hone_store_scan(store, HONE_RECORD_DECISION, NULL, list_row, &rows, &err);
    if (rows.table != NULL) {
        cli_table_print(rows.table);
        cli_print_devices(rows.devices);
    } else
        json_decref(rows.devices);
    return status == HONE_OK ? EXIT_DONE : cli_fail(&err);
}

typedef struct collected {
    json_t *rows;
} collected;

static bool collect(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *row = record->decision;
    json_array_append_new(((collected *)ctx)->rows, entry_of(row));
    return true;
}

typedef struct collecting {
    hone_store *store;
    hone_store_key filter; // a key does not have its algorithm
    collected *found;
    bool with_bucket;
    hone_status status;
    hone_error *err;
} collecting;

// The first key that something is stored under is the answer's.
static bool collect_next(void *ctx, const hone_lookup_key *key)
{
    collecting *c = ctx;
    if (!key->is_exact && !c->with_bucket) return false;
    c->filter.key = key->key;
    c->status = hone_store_scan(c->store, HONE_RECORD_DECISION, &c->filter, collect, c->found, c->err);
    return c->status == HONE_OK && json_array_size(c->found->rows) == 0;
}

static hone_status collect_call(collecting *c, const hone_op *op, const hone_call *call)
{
    c->filter.algorithm = hone_op_name(op);
    c->filter.version = hone_signature_version(hone_op_signature(op));
    const hone_status status = hone_call_keys(call, collect_next, c, c->err);
    return status == HONE_OK ? c->status : status;
}

// What CALL|KEY|LABEL means: a key as it stands, else the call that a label, or its key, stands for.
static int collect_named(hone_cli *cli, hone_store *store, const char *text, bool with_bucket, collected *found)
{
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_error err;
    collecting c = {.store = store, .found = found, .with_bucket = with_bucket, .err = &err};
    if (cli_is_key(text) &&
        hone_store_scan(store, HONE_RECORD_DECISION, &(hone_store_key){.key = text}, collect, found, &err) != HONE_OK)
        return cli_fail(&err);
    if (json_array_size(found->rows) > 0) return 0;
    int status = cli_open(cli, HONE_POLICY_HEURISTIC);
    if (status != 0) return status;
    if (!cli_is_key(text))
        status = cli_parse_call(cli, text, &op, &call);
    else if (hone_call_of_label(cli->rt, text, &op, &call, &err) != HONE_OK && err.status != HONE_NOT_FOUND)
        status = cli_fail(&err);
    if (call != NULL && status == 0) status = cli_device_in(cli, text, call, &c.filter.device);
    if (call != NULL && status == 0 && collect_call(&c, op, call) != HONE_OK) status = cli_fail(&err);
    hone_call_release(&call);
    return status;
}

static int show_entries(hone_cli *cli, json_t *rows)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        char *text = json_dumps(row, (cli->options.json ? JSON_COMPACT : JSON_INDENT(2)) | JSON_REAL_PRECISION(12));
        puts(text);
        free(text);
    }
    return json_array_size(rows) > 0 ? EXIT_DONE : EXIT_NO;
}

static int get(hone_cli *cli, hone_store *store)
{
    if (cli->count < 2) return cli_usage("store get needs one call, key or label");
    collected found = {json_array()};
    const int named = collect_named(cli, store, cli->arguments[1], true, &found);
    int status = named;
    if (status == 0) status = show_entries(cli, found.rows);
    if (named == 0 && status == EXIT_NO)
        cli_warn("there is no decision for %s in %s", cli->arguments[1], hone_store_url(store));
    json_decref(found.rows);
    return status;
}

static int put(hone_cli *cli, hone_store *store)
{
    const char *file = cli->count > 1 ? cli->arguments[1] : "-";
    int status = cli_open(cli, HONE_POLICY_HEURISTIC);
    cli_text document;
    if (status == 0) status = cli_read(file, &document);
    if (status != 0) return status;
    hone_result *result = NULL;
    hone_error err;
    hone_status done = hone_result_parse(cli->rt, cli_text_string(&document), document.size, &result, &err);
    if (done == HONE_OK) done = hone_result_store(result, store, &err);
    size_t count = done == HONE_OK ? hone_result_size(result) : 0;
    hone_result_release(&result);
    cli_text_deinit(&document);
    if (done != HONE_OK) return cli_fail_in(file, &err);
    if (cli->options.json)
        cli_print_json(json_pack("{s:I}", "stored", (json_int_t)count));
    else
        cli_say("%zu stored\n", count);
    return EXIT_DONE;
}

// What `store get` of the same words shows stands under another call, which it serves, too.
static void say_what_serves(hone_cli *cli, hone_store *store)
{
    collected found = {json_array()};
    (void)collect_named(cli, store, cli->arguments[1], true, &found);
    const char *call = json_string_value(json_object_get(json_array_get(found.rows, 0), "call"));
    if (call != NULL) cli_warn("it has no decision of its own: that of '%s' answers it", call);
    json_decref(found.rows);
}

static int remove_entries(hone_cli *cli, hone_store *store)
{
    if (cli->count < 2) return cli_usage("store remove needs one call, key or label");
    collected found = {json_array()};
    hone_error err;
    const char *text = cli->arguments[1];
    int status = cli_is_key(text) ? cli_check_key_in(store, text) : 0;
    if (status == 0) status = collect_named(cli, store, text, false, &found);
    size_t i;
    const json_t *row;
    json_array_foreach(found.rows, i, row)
    {
        if (status != 0) break;
        hone_store_key key = {
            json_string_value(json_object_get(row, "device")), json_string_value(json_object_get(row, "algorithm")),
            json_string_value(json_object_get(row, "version")), json_string_value(json_object_get(row, "key")), NULL};
        // A key's first row takes its other regimes along.
        const hone_status removed = hone_store_remove(store, &key, &err);
        if (removed != HONE_OK && removed != HONE_NOT_FOUND) status = cli_fail(&err);
    }
    size_t count = json_array_size(found.rows);
    if (status == 0 && cli->options.json) cli_print_json(json_pack("{s:I}", "removed", (json_int_t)count));
    if (status == 0 && !cli->options.json) cli_say("%zu removed\n", count);
    if (status == 0 && count == 0) {
        say_what_serves(cli, store);
        status = EXIT_NO;
    }
    json_decref(found.rows);
    return status;
}

static int stat(hone_cli *cli, hone_store *store)
{
    hone_store_stat count;
    hone_error err;
    if (hone_store_get_stat(store, &count, &err) != HONE_OK) return cli_fail(&err);
    const struct {
        const char *name, *one, *words;
        uint64_t count;
    } rows[] = {
        {"decisions", "decision", "decisions", count.decisions},
        {"measurements", "measurement", "measurements", count.measurements},
        {"failures", "failure", "failures", count.failures},
        {"invocations", "recorded call", "recorded calls", count.invocations},
        {"aliases", "alias", "aliases", count.aliases},
        {"foreigns", "config of other systems", "configs of other systems", count.foreigns},
        {"quarantined", "damaged record set aside", "damaged records set aside", count.quarantined},
        {"bytes", "byte", "bytes", count.bytes},
    };
    json_t *object = json_pack("{s:s, s:I}", "store", hone_store_url(store), "schema", (json_int_t)count.schema);
    if (!cli->options.json) cli_say("%s\n", hone_store_url(store));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_object_set_new(object, rows[i].name, json_integer((json_int_t)rows[i].count));
        if (!cli->options.json)
            cli_say("%" PRIu64 " %s, ", rows[i].count, rows[i].count == 1 ? rows[i].one : rows[i].words);
    }
    if (!cli->options.json) cli_say("schema %u\n", count.schema);
    if (cli->options.json)
        cli_print_json(object);
    else
        json_decref(object);
    return EXIT_DONE;
}

static bool list_quarantined(void *ctx, const hone_store_record *record)
{
    const hone_store_quarantined *quarantined = record->quarantined;
    json_array_append_new(
        ctx, json_pack(
                 "{s:s, s:s, s:s}", "kind", quarantined->kind, "record", quarantined->record, "reason",
                 quarantined->reason));
    return true;
}

static void show_quarantine(const json_t *rows)
{
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row)
    {
        const char *kind, *record, *reason;
        json_unpack((json_t *)(uintptr_t)row, "{s:s, s:s, s:s}", "kind", &kind, "record", &record, "reason", &reason);
        cli_say("%s: %s: %.200s\n", kind, reason, record);
    }
}

// Damaged pages: what is sound of the file was carried into a new one, as the log says, and that one is verified.
static hone_status verify_all(hone_store *store, hone_store_health *out, bool *out_was_damaged, hone_error *err)
{
    hone_status status = hone_store_verify(store, out, err);
    *out_was_damaged = status == HONE_CORRUPT;
    return *out_was_damaged ? hone_store_verify(store, out, err) : status;
}

// Exit 1 while something is damaged or set aside.
static int verify(hone_cli *cli, hone_store *store)
{
    hone_store_health health;
    hone_error err;
    json_t *rows = json_array();
    bool was_damaged = false;
    int status = EXIT_DONE;
    if (verify_all(store, &health, &was_damaged, &err) != HONE_OK ||
        hone_store_scan(store, HONE_RECORD_QUARANTINED, NULL, list_quarantined, rows, &err) != HONE_OK)
        status = cli_fail(&err);
    if (status == EXIT_DONE && cli->options.json) {
        cli_print_json(json_pack(
            "{s:s, s:I, s:I, s:I, s:O}", "store", hone_store_url(store), "records", (json_int_t)health.records,
            "set_aside", (json_int_t)health.set_aside, "quarantined", (json_int_t)health.quarantined, "quarantine",
            rows));
    } else if (status == EXIT_DONE) {
        show_quarantine(rows);
        cli_say(
            "%" PRIu64 " sound record%s, %" PRIu64 " damaged set aside now, %" PRIu64 " in all\n", health.records,
            cli_plural(health.records), health.set_aside, health.quarantined);
    }
    json_decref(rows);
    if (status == EXIT_DONE && (was_damaged || health.quarantined > 0)) status = EXIT_NO;
    return status;
}

const cli_verb cli_store_verbs[] = {
    {"list", "", "lists the decisions, one a line (JSON lines with --json)", NULL, list, 1, 1, false},
    {"get", "CALL|KEY|LABEL", "prints one decision with its evidence; exits with 1 if it is not stored", NULL, get, 2,
     2, false},
    {"put", "[FILE]",
     "stores a result document from FILE or standard input, and prints how many decisions once they are durable", NULL,
     put, 1, 2, true},
    {"remove", "CALL|KEY|LABEL", "removes a decision with its measurements", NULL, remove_entries, 2, 2, false},
    {"stat", "", "prints counts and the size", NULL, stat, 1, 1, false},
    {"verify", "", "reads every record, sets damaged ones aside and lists them; exits with 1 if there are any", NULL,
     verify, 1, 1, false},
    {"export", "OUT", "writes all decisions to a file or into a folder; - is standard output",
     "format device foreign-device measurements", cli_store_export, 2, 2, false},
    {"import", "FILE...",
     "stores files, or folders of files, in one transaction: all or nothing; exits with 1 when entries were refused",
     "format verbose", cli_store_import, 2, 0, true},
    {"merge", "URL...", "copies other stores into this one; the better decision of two stays", "verbose",
     cli_store_merge, 2, 0, true},
    {"diff", "URL|FILE", "lists choices that differ from another store or a bundle, and exits with 1 if there are any",
     "verbose", cli_store_diff, 2, 2, false},
    {"prune", "", "removes damaged records that were set aside, and decisions that no kernel here can serve", "dry-run",
     cli_store_prune, 1, 1, false},
    {0},
};

int cli_store(hone_cli *cli)
{
    const cli_verb *verb = cli_find_verb(cli, "store", cli_store_verbs);
    hone_store *store = NULL;
    if (verb == NULL) return EXIT_USAGE;
    if (cli->count < verb->least) return verb->run(cli, NULL);
    int status = verb->makes ? 0 : cli_find_store(cli);
    if (status == 0) status = cli_open_store(cli, &store);
    if (status == 0) status = verb->run(cli, store);
    hone_store_close(&store);
    return status;
}
