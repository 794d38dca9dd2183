// hone record
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *row_of(hone_runtime *rt, const hone_store_invocation *invocation)
{
    char first[24], last[24];
    cli_utc_text(invocation->first, first);
    cli_utc_text(invocation->last, last);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s?, s:s?, s:I, s:s, s:s, s:s?, s:s?, s:b}", "device", invocation->key.device,
        "algorithm", invocation->key.algorithm, "version", invocation->key.version, "key", invocation->key.key, "spec",
        invocation->key.spec, "call", invocation->call, "count", (json_int_t)invocation->count, "first", first, "last",
        last, "kernel", invocation->kernel, "answered", invocation->decided, "decided",
        hone_record_is_decided(rt, invocation));
}

typedef struct rows_of {
    hone_runtime *rt;
    json_t *rows;
} rows_of;

static bool add_row(void *ctx, const hone_store_invocation *invocation)
{
    const rows_of *all = ctx;
    json_array_append_new(all->rows, row_of(all->rt, invocation));
    return true;
}

static const char *text(const json_t *row, const char *name)
{
    const char *value = json_string_value(json_object_get(row, name));
    return value == NULL ? "" : value;
}

// The record document of all devices. NULL after printing what failed.
static json_t *document_of(hone_cli *cli, int *status)
{
    json_t *rows = json_array();
    hone_error err;
    size_t count = 0;
    rows_of all = {cli->rt, rows};
    *status = hone_record_scan(cli->rt, NULL, add_row, &all, &err) == HONE_OK ? EXIT_DONE : cli_fail(&err);
    const hone_device_info *const *devices = hone_runtime_devices(cli->rt, &count);
    if (*status == EXIT_DONE)
        return json_pack("{s:i, s:s, s:o}", "hone_record", 1, "device", devices[0]->fingerprint, "invocations", rows);
    json_decref(rows);
    return NULL;
}

// What another system recorded has its arguments as a spec alone: shown as the call of hone's that they make, or that
// they were tuned as.
static hone_call *call_of_spec(hone_cli *cli, const json_t *row)
{
    char label[200];
    const char *spec = text(row, "spec"), *name = text(row, "algorithm");
    const hone_op *op = hone_op_find(cli->rt, name, NULL);
    hone_call *call = NULL;
    if (spec[0] == '\0') return NULL;
    if (op != NULL &&
        hone_call_from_spec(hone_allocator_system(), hone_op_signature(op), spec, strlen(spec), &call, NULL) == HONE_OK)
        return call;
    snprintf(label, sizeof label, "%s@v%s:%s", name, text(row, "version"), text(row, "key"));
    return hone_call_of_label(cli->rt, label, &op, &call, NULL) == HONE_OK ? call : NULL;
}

static void list_row(hone_cli *cli, cli_table *table, json_t *devices, const json_t *row)
{
    char count[24], number[24];
    hone_call *call = text(row, "call")[0] == '\0' ? call_of_spec(cli, row) : NULL;
    snprintf(count, sizeof count, "%" PRId64, (int64_t)json_integer_value(json_object_get(row, "count")));
    cli_table_row(
        table, count, text(row, "algorithm"), text(row, "key"), cli_device_number(devices, text(row, "device"), number),
        json_is_true(json_object_get(row, "decided")) ? "yes" : "no", text(row, "answered"), text(row, "kernel"),
        call != NULL ? hone_call_text(call) : text(row, "call"));
    hone_call_release(&call);
}

static int list(hone_cli *cli, hone_store *store)
{
    (void)store;
    int status;
    json_t *document = document_of(cli, &status);
    if (document == NULL) return status;
    if (cli->options.json) {
        cli_print_json(document);
        return EXIT_DONE;
    }
    json_t *rows = json_object_get(document, "invocations");
    json_t *devices = json_array();
    cli_table *table = cli_table_new(8);
    cli_table_row(table, "count", "operation", "key", "device", "decided", "answered by", "kernel", "call");
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row) list_row(cli, table, devices, row);
    cli_table_print(table);
    cli_print_devices(devices);
    json_decref(document);
    return EXIT_DONE;
}

static int clear(hone_cli *cli, hone_store *store)
{
    (void)store;
    hone_error err;
    return hone_record_clear(cli->rt, NULL, &err) == HONE_OK ? EXIT_DONE : cli_fail(&err);
}

static int import(hone_cli *cli, hone_store *store)
{
    (void)store;
    if (cli->count < 2) return cli_usage("record import needs files (- is standard input)");
    size_t total = 0;
    for (size_t i = 1; i < cli->count; i++) {
        cli_text document;
        int status = cli_read(cli->arguments[i], &document);
        if (status != 0) return status;
        size_t count = 0;
        hone_error err;
        hone_status read = hone_record_import(cli->rt, cli_text_string(&document), document.size, &count, &err);
        if (read == HONE_OK) read = hone_record_flush(cli->rt, &err);
        cli_text_deinit(&document);
        if (read != HONE_OK) return cli_fail_in(cli->arguments[i], &err);
        total += count;
    }
    if (cli->options.json)
        cli_print_json(json_pack("{s:I}", "imported", (json_int_t)total));
    else
        cli_say("%zu recorded call%s imported\n", total, total == 1 ? "" : "s");
    return EXIT_DONE;
}

static int export(hone_cli *cli, hone_store *store)
{
    (void)store;
    int status;
    hone_error err;
    const char *path = cli->count == 2 ? cli->arguments[1] : "-";
    json_t *document = document_of(cli, &status);
    if (document == NULL) return status;
    if (strcmp(path, "-") == 0) {
        cli_print_json(document);
        return EXIT_DONE;
    }
    char *text_of = json_dumps(document, JSON_INDENT(1));
    size_t count = json_array_size(json_object_get(document, "invocations"));
    json_decref(document);
    if (cli_write_file(path, text_of, strlen(text_of), &err) != HONE_OK) status = cli_fail(&err);
    free(text_of);
    if (status == EXIT_DONE && cli->options.json) cli_print_json(json_pack("{s:I}", "exported", (json_int_t)count));
    if (status == EXIT_DONE && !cli->options.json)
        cli_say("%zu recorded call%s exported\n", count, count == 1 ? "" : "s");
    return status;
}

const cli_verb cli_record_verbs[] = {
    {"list", "", "lists the calls, how often each was made, and whether it is decided", NULL, list, 1, 1, false},
    {"clear", "", "forgets the recorded calls", NULL, clear, 1, 1, false},
    {"import", "FILE...", "adds record documents of hone and ejkernel", NULL, import, 1, 0, true},
    {"export", "[FILE]", "writes a record document to a file, or to standard output with - or without FILE", NULL,
     export, 1, 2, false},
    {0},
};

int cli_record(hone_cli *cli)
{
    const cli_verb *verb = cli_find_verb(cli, "record", cli_record_verbs);
    if (verb == NULL) return EXIT_USAGE;
    if (!verb->makes && cli_lacks_store(cli)) cli->options.store = "none";
    int status = cli_open(cli, HONE_POLICY_TUNE);
    if (status == 0) status = cli_need_store(cli);
    return status != 0 ? status : verb->run(cli, NULL);
}
