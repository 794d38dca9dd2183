// hone queue: the calls that wait in a store until a machine with their device tunes them (hone work).
#include "cli.h"

#include "call/call.h"
#include "runtime/api/work.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 1024 };

static const char *const state_names[] = {
    [HONE_JOB_WAITING] = "waiting", [HONE_JOB_HELD] = "held", [HONE_JOB_ASIDE] = "aside"};

// The device that --device means: "here" is this machine's CPU. NULL: none was given.
static const char *device_text(hone_cli *cli)
{
    size_t count = 0;
    const char *text = cli->options.device;
    if (text == NULL || strcmp(text, "here") != 0) return text;
    return hone_runtime_devices(cli->rt, &count)[0]->fingerprint;
}

// Listing -------------------------------------------------------------------------------------------------------------

typedef struct listing {
    const hone_cli *cli;
    const char *device;
    cli_table *table; // NULL: JSON
    json_t *rows, *devices;
    size_t count;
} listing;

static json_t *row_of(const hone_job *job)
{
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s?, s:s, s:f, s:i, s:f, s:I, s:f, s:i, s:s?, s:s?}", "device", job->key.device,
        "algorithm", job->key.algorithm, "version", job->key.version, "key", job->key.key, "call", job->call, "state",
        state_names[job->state], "priority", job->priority, "round", (int)job->round, "weight_ns", job->weight, "count",
        (json_int_t)job->count, "seconds", job->seconds, "tries", (int)job->tries, "holder", job->holder, "reason",
        job->reason);
}

static void table_row(listing *list, const hone_job *job)
{
    char priority[32], round[16], tries[16], count[24], weight[32], device[24], state[200];
    const bool aside = job->state == HONE_JOB_ASIDE;
    snprintf(priority, sizeof priority, "%g", job->priority);
    snprintf(round, sizeof round, "%u", (unsigned)job->round);
    snprintf(tries, sizeof tries, "%u", (unsigned)job->tries);
    snprintf(count, sizeof count, "%" PRIu64, job->count);
    snprintf(
        state, sizeof state, "%s%s%.180s", state_names[job->state], aside || job->state == HONE_JOB_HELD ? ": " : "",
        aside                         ? job->reason != NULL ? job->reason : ""
        : job->state == HONE_JOB_HELD ? job->holder != NULL ? job->holder : ""
                                      : "");
    cli_table_row(
        list->table, cli_time_text(job->weight, weight), count, priority, round, tries, job->key.key,
        cli_device_number(list->devices, job->key.device, device), job->call != NULL ? job->call : job->key.algorithm,
        state);
}

static bool list_job(void *ctx, const hone_job *job)
{
    listing *list = ctx;
    if (list->device != NULL && strcmp(list->device, job->key.device) != 0 &&
        !hone_queue_fits(job->key.device, list->device) && !hone_queue_fits(list->device, job->key.device))
        return true;
    list->count++;
    if (list->table != NULL)
        table_row(list, job);
    else
        json_array_append_new(list->rows, row_of(job));
    return !cli_cancel;
}

static int list(hone_cli *cli, hone_store *store)
{
    hone_error err;
    if (cli->count > 1) return cli_usage("queue list takes no %s", cli->arguments[1]);
    listing rows = {
        .cli = cli,
        .device = device_text(cli),
        .table = cli->options.json ? NULL : cli_table_new(9),
        .rows = json_array(),
        .devices = json_array()};
    if (rows.table != NULL)
        cli_table_row(rows.table, "weight", "calls", "priority", "round", "tries", "key", "device", "call", "state");
    hone_status status = hone_queue_visit(store, NULL, list_job, &rows, &err);
    if (rows.table != NULL && rows.count == 0) {
        if (status == HONE_OK) printf("nothing is queued\n");
        rows.table = NULL;
    }
    if (rows.table != NULL) {
        cli_table_print(rows.table);
        cli_print_devices(rows.devices);
    } else
        json_decref(rows.devices);
    if (cli->options.json && status == HONE_OK) cli_print_json(json_pack("{s:O}", "jobs", rows.rows));
    json_decref(rows.rows);
    return status == HONE_OK ? EXIT_DONE : cli_fail(&err);
}

// Adding --------------------------------------------------------------------------------------------------------------

typedef struct adding {
    size_t added, known;
} adding;

static int tell_added(const hone_cli *cli, const adding *sum)
{
    if (cli->options.json)
        cli_print_json(json_pack("{s:I, s:I}", "added", (json_int_t)sum->added, "known", (json_int_t)sum->known));
    else
        printf("%zu queued, %zu were there already\n", sum->added, sum->known);
    return EXIT_DONE;
}

// What is queued for other machines may be meant so, or be a slip.
static void tell_elsewhere(const hone_cli *cli, const char *text)
{
    size_t count = 0;
    const hone_device_info *const *devices = hone_runtime_devices(cli->rt, &count);
    for (size_t i = 0; i < count; i++)
        if (hone_queue_fits(text, devices[i]->fingerprint)) return;
    fprintf(stderr, "hone: no device here is '%s': it waits for another machine (hone devices)\n", text);
}

static int find_device(hone_cli *cli, const hone_call *call, const char **out)
{
    size_t count = 0;
    *out = device_text(cli);
    if (*out != NULL && **out == '\0')
        return cli_usage("--device is empty: expected a fingerprint, or its beginning up to a comma or bar");
    if (*out != NULL) {
        tell_elsewhere(cli, *out);
        return 0;
    }
    const hone_device at = hone_call_device(call);
    const hone_device_info *const *devices = hone_runtime_devices(cli->rt, &count);
    for (size_t i = 0; i < count && *out == NULL; i++)
        if (devices[i]->device.type == at.type && devices[i]->device.id == at.id) *out = devices[i]->fingerprint;
    if (*out != NULL) return 0;
    return cli_usage(
        "%s: its device is not here: --device names its fingerprint, or the fingerprint's beginning (hone devices)",
        hone_call_text(call));
}

static int add_call(hone_cli *cli, hone_store *store, const char *text, adding *sum)
{
    const hone_op *op = NULL;
    hone_call *call = NULL;
    const char *device = NULL;
    hone_error err;
    size_t added = 0;
    int status = cli_parse_call(cli, text, &op, &call);
    if (status == 0) status = find_device(cli, call, &device);
    if (status == 0) {
        const double count = cli->options.calls > 0 ? (double)cli->options.calls : 1;
        char lower[HONE_NAME_SIZE];
        snprintf(lower, sizeof lower, "%s", op->algorithm->name);
        hone_job job = {
            .key =
                {device, lower, hone_signature_version(hone_call_signature(call)), hone_call_key(call),
                 hone_call_spec(call)},
            .call = hone_call_text(call),
            .priority = (double)cli->options.priority,
            .count = (uint64_t)count,
            .weight = hone_work_weight(call, 0, count),
            .seconds = cli->options.seconds,
        };
        hone_status done = hone_queue_add(store, &job, 1, &added, &err);
        if (done == HONE_OK && added == 0) done = hone_queue_raise(store, &job.key, job.priority, &err);
        if (done != HONE_OK) status = cli_fail(&err);
        sum->added += added;
        sum->known += 1 - added;
    }
    hone_call_release(&call);
    return status;
}

static int add(hone_cli *cli, hone_store *store)
{
    adding sum = {0};
    int status = 0;
    hone_error err;
    if (cli->count == 1) {
        hone_tune_options options;
        cli_tune_options(cli, &options);
        if (hone_work_fill(cli->rt, device_text(cli), &options, (double)cli->options.priority, &sum.added, &err) !=
            HONE_OK)
            return cli_fail(&err);
        if (cli->options.json) return tell_added(cli, &sum);
        printf("%zu recorded calls queued\n", sum.added);
        return EXIT_DONE;
    }
    for (size_t i = 1; i < cli->count && status == 0; i++)
        status = add_call(cli, store, cli->arguments[i], &sum);
    return status == 0 ? tell_added(cli, &sum) : status;
}

// Dropping ------------------------------------------------------------------------------------------------------------

typedef struct dropping {
    const char *key;
    const char *device;
    hone_store_key *keys;
    char (*texts)[4][TEXT_SIZE];
    size_t count, capacity;
} dropping;

static bool note_key(void *ctx, const hone_job *job)
{
    dropping *d = ctx;
    const char *const texts[] = {job->key.device, job->key.algorithm, job->key.version, job->key.key};
    if (d->key != NULL && strcmp(d->key, job->key.key) != 0) return true;
    if (d->device != NULL && strcmp(d->device, job->key.device) != 0) return true;
    if (d->count == d->capacity) {
        d->capacity = d->capacity == 0 ? 16 : 2 * d->capacity;
        d->texts = realloc(d->texts, d->capacity * sizeof *d->texts);
        if (d->texts == NULL) cli_no_memory();
    }
    for (int i = 0; i < 4; i++)
        snprintf(d->texts[d->count][i], TEXT_SIZE, "%s", texts[i]);
    d->count++;
    return true;
}

static int drop_key(hone_cli *cli, hone_store *store, const char *key, size_t *out_dropped)
{
    dropping d = {.key = key, .device = device_text(cli)};
    hone_error err;
    int status = hone_queue_visit(store, NULL, note_key, &d, &err) == HONE_OK ? 0 : cli_fail(&err);
    for (size_t i = 0; i < d.count && status == 0; i++) {
        const hone_store_key whole = {d.texts[i][0], d.texts[i][1], d.texts[i][2], d.texts[i][3], NULL};
        const hone_status dropped = hone_queue_drop(store, &whole, &err);
        if (dropped == HONE_OK)
            ++*out_dropped;
        else if (dropped != HONE_NOT_FOUND)
            status = cli_fail(&err);
    }
    free(d.texts);
    return status;
}

static int drop_named(hone_cli *cli, hone_store *store, const char *text, size_t *out_dropped)
{
    const hone_op *op = NULL;
    hone_call *call = NULL;
    if (hone_is_key(text)) return drop_key(cli, store, text, out_dropped);
    int status = cli_parse_call(cli, text, &op, &call);
    if (status == 0) status = drop_key(cli, store, hone_call_key(call), out_dropped);
    hone_call_release(&call);
    return status;
}

static int drop(hone_cli *cli, hone_store *store)
{
    size_t dropped = 0;
    int status = 0;
    if (cli->options.all == (cli->count > 1))
        return cli_usage("queue drop needs calls or keys, or --all for all that no worker has");
    if (cli->options.all) status = drop_key(cli, store, NULL, &dropped);
    for (size_t i = 1; i < cli->count && status == 0; i++)
        status = drop_named(cli, store, cli->arguments[i], &dropped);
    if (status != 0) return status;
    if (cli->options.json)
        cli_print_json(json_pack("{s:I}", "dropped", (json_int_t)dropped));
    else
        printf("%zu dropped\n", dropped);
    return dropped > 0 || cli->options.all ? EXIT_DONE : EXIT_NO;
}

// Pausing and counting ------------------------------------------------------------------------------------------------

static int pause_queue(hone_cli *cli, hone_store *store)
{
    hone_error err;
    const bool on = !cli->options.off;
    const char *device = device_text(cli);
    if (cli->count > 1) return cli_usage("queue pause takes no %s: --device names what pauses", cli->arguments[1]);
    if (hone_queue_pause(store, device, on, &err) != HONE_OK) return cli_fail(&err);
    if (cli->options.json)
        cli_print_json(json_pack("{s:b, s:s?}", "paused", on, "device", device));
    else
        printf(
            "%s of %s\n", on ? "workers claim nothing" : "workers claim calls", device != NULL ? device : "any device");
    return EXIT_DONE;
}

static int stat(hone_cli *cli, hone_store *store)
{
    hone_queue_stat all;
    hone_error err;
    bool paused = false;
    if (cli->count > 1) return cli_usage("queue stat takes no %s", cli->arguments[1]);
    const char *device = device_text(cli);
    if (hone_queue_count(store, device, &all, &err) != HONE_OK ||
        hone_queue_is_paused(store, device, &paused, &err) != HONE_OK)
        return cli_fail(&err);
    if (cli->options.json)
        cli_print_json(json_pack(
            "{s:s, s:s?, s:I, s:I, s:I, s:b}", "store", hone_store_url(store), "device", device, "waiting",
            (json_int_t)all.waiting, "held", (json_int_t)all.held, "aside", (json_int_t)all.aside, "paused", paused));
    else
        printf(
            "%" PRIu64 " waiting, %" PRIu64 " held by workers, %" PRIu64 " set aside%s\n", all.waiting, all.held,
            all.aside, paused ? "; paused" : "");
    return EXIT_DONE;
}

const cli_verb cli_queue_verbs[] = {
    {"list", "", "what waits, who holds what, and what was set aside and why", list, 1, false},
    {"add", "[CALL...]", "calls; without any the recorded ones that nobody has decided", add, 1, true},
    {"drop", "CALL|KEY...", "takes away what no worker has; --all: everything", drop, 1, false},
    {"pause", "", "workers claim nothing more, of --device or at all, until --off", pause_queue, 1, true},
    {"stat", "", "counts", stat, 1, false},
    {0},
};

int cli_queue(hone_cli *cli)
{
    const cli_verb *verb = cli_find_verb(cli, "queue", cli_queue_verbs);
    if (verb == NULL) return EXIT_USAGE;
    int status = verb->makes ? 0 : cli_find_store(cli);
    if (status == 0) status = cli_open(cli, HONE_POLICY_HEURISTIC);
    if (status != 0) return status;
    hone_store *store = hone_runtime_store(cli->rt);
    if (store == NULL) {
        fprintf(stderr, "hone: %s\n", hone_runtime_store_reason(cli->rt));
        return EXIT_WORLD;
    }
    return verb->run(cli, store);
}
