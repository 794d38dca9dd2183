// hone queue: the calls that wait in a store until a machine with their device tunes them (hone work).
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = {
    [HONE_JOB_WAITING] = "waiting", [HONE_JOB_HELD] = "held", [HONE_JOB_ASIDE] = "aside"};

// Devices -------------------------------------------------------------------------------------------------------------

// "cuda:0": the name of a device on its own machine, and no beginning of a fingerprint.
static bool is_numbered(const char *text)
{
    const size_t type = strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789");
    if (type == 0 || text[type] != ':' || text[type + 1] == '\0') return false;
    return strspn(text + type + 1, "0123456789") == strlen(text + type + 1);
}

// What --device means, as texts of devices: none of them is any device.
typedef struct meant {
    const char *texts[CLI_NAMES_SIZE];
    size_t count;
} meant;

static meant chosen;

static bool is_here(const hone_cli *cli)
{
    return cli->options.device != NULL && strcmp(cli->options.device, "here") == 0;
}

static bool is_chosen(const char *fingerprint)
{
    bool found = false;
    for (size_t i = 0; i < chosen.count; i++)
        found = found || strcmp(chosen.texts[i], fingerprint) == 0;
    return found;
}

// The names of devices here become fingerprints, as in other commands: "here" is all that this machine has, "cuda:0" one of
// them.
static int settle_devices(hone_cli *cli)
{
    size_t count = 0;
    const char *text = cli->options.device;
    if (text == NULL) return 0;
    if (!is_here(cli) && !is_numbered(text)) {
        chosen.texts[chosen.count++] = text;
        return 0;
    }
    const hone_device_info *const *devices = hone_runtime_devices(cli->rt, &count);
    for (size_t i = 0; i < count; i++) {
        char name[64];
        const hone_device_info *device = devices[i];
        hone_device_text(device->device, name, sizeof name);
        const bool is_wanted = is_here(cli) || strcmp(text, name) == 0;
        // Two devices of one kind share a fingerprint.
        if (is_wanted && !is_chosen(device->fingerprint) && chosen.count < CLI_NAMES_SIZE)
            chosen.texts[chosen.count++] = device->fingerprint;
    }
    if (chosen.count > 0) return 0;
    cli_warn(
        "--device %s: this machine has no such device (hone devices); a device of another machine is "
        "named by its fingerprint, or the fingerprint's beginning up to a comma or bar",
        text);
    return EXIT_NO;
}

// What documents say of --device: the text of one device, "here" for several.
static const char *device_words(const hone_cli *cli)
{
    return chosen.count == 1 ? chosen.texts[0] : cli->options.device;
}

// Whether a job is shown and counted for --device: it is of that device, or of a class that the device is in, or that it
// names.
static bool is_of_chosen(const hone_queued *job)
{
    bool is_one = chosen.count == 0;
    for (size_t i = 0; i < chosen.count && !is_one; i++)
        is_one = hone_queue_fits(job->key.device, chosen.texts[i]) || hone_queue_fits(chosen.texts[i], job->key.device);
    return is_one;
}

// Pauses --------------------------------------------------------------------------------------------------------------

// What is paused, as a list of device texts; "*": all. NULL: it could not be asked, and *err says why.
static bool note_pause(void *ctx, const char *device)
{
    // Bytes that are no UTF-8, of an older hone, are shown as they can be.
    if (json_array_append_new(ctx, json_string(device)) != 0)
        json_array_append_new(ctx, json_string("a device whose name is not UTF-8"));
    return true;
}

static json_t *pauses_of(hone_store *store, hone_error *err)
{
    json_t *list = json_array();
    if (hone_queue_pauses(store, note_pause, list, err) == HONE_OK) return list;
    json_decref(list);
    return NULL;
}

static void print_pauses(const json_t *pauses, const char *before)
{
    size_t i;
    const json_t *pause;
    json_array_foreach(pauses, i, pause)
    {
        const char *device = json_string_value(pause);
        cli_say("%s%s\n", before, strcmp(device, "*") == 0 ? "all devices" : device);
    }
}

// Listing -------------------------------------------------------------------------------------------------------------

typedef struct listing {
    const hone_cli *cli;
    cli_table *table; // NULL: JSON
    json_t *rows, *devices;
    size_t count;
} listing;

static json_t *row_of(const hone_queued *job)
{
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s?, s:s, s:f, s:i, s:f, s:I, s:f, s:i, s:s?, s:b, s:s?}", "device", job->key.device,
        "algorithm", job->key.algorithm, "version", job->key.version, "key", job->key.key, "call", job->call, "state",
        state_names[job->state], "priority", job->priority, "round", (int)job->round, "weight_ns", job->weight, "count",
        (json_int_t)job->count, "seconds", job->seconds, "tries", (int)job->tries, "holder", job->holder, "dead",
        job->is_dead, "reason", job->reason);
}

static void table_row(listing *list, const hone_queued *job)
{
    char priority[32], round[16], tries[16], count[24], weight[32], device[24], state[200];
    const bool aside = job->state == HONE_JOB_ASIDE;
    snprintf(priority, sizeof priority, "%g", job->priority);
    snprintf(round, sizeof round, "%u", (unsigned)job->round);
    snprintf(tries, sizeof tries, "%u", (unsigned)job->tries);
    snprintf(count, sizeof count, "%" PRIu64, job->count);
    const bool held = job->state == HONE_JOB_HELD;
    const char *words = aside ? job->reason : held ? job->holder : NULL;
    snprintf(
        state, sizeof state, "%s%s%s%.180s", state_names[job->state], aside || held ? ": " : "",
        job->is_dead ? "its worker died, and another claims it: " : "", words != NULL ? words : "");
    cli_table_row(
        list->table, cli_time_text(job->weight, weight), count, priority, round, tries, job->key.key,
        cli_device_number(list->devices, job->key.device, device), job->call != NULL ? job->call : job->key.algorithm,
        state);
}

static bool list_job(void *ctx, const hone_queued *job)
{
    listing *list = ctx;
    if (!is_of_chosen(job)) return true;
    if (job->unfit != NULL) {
        cli_warn(
            "a call of an older hone is passed over: %s; hone queue drop %s takes it away", job->unfit, job->key.key);
        return true;
    }
    list->count++;
    if (list->table != NULL)
        table_row(list, job);
    else
        json_array_append_new(list->rows, row_of(job));
    return !cli_is_cancelled();
}

static int list(hone_cli *cli, hone_store *store)
{
    hone_error err;
    listing rows = {
        .cli = cli,
        .table = cli->options.json ? NULL : cli_table_new(9),
        .rows = json_array(),
        .devices = json_array()};
    if (rows.table != NULL)
        cli_table_row(rows.table, "weight", "calls", "priority", "round", "tries", "key", "device", "call", "state");
    const hone_status status = hone_queue_scan(store, true, list_job, &rows, &err);
    json_t *pauses = status == HONE_OK ? pauses_of(store, &err) : NULL;
    const bool listed = pauses != NULL;
    if (rows.table != NULL && rows.count > 0) {
        cli_table_print(rows.table);
        cli_print_devices(rows.devices);
    } else {
        if (rows.table != NULL && listed) cli_say("nothing is queued\n");
        cli_table_drop(rows.table);
        json_decref(rows.devices);
    }
    if (cli->options.json && listed)
        cli_print_json(json_pack("{s:O, s:O}", "jobs", rows.rows, "paused", pauses));
    else
        print_pauses(pauses, "paused: ");
    json_decref(pauses);
    json_decref(rows.rows);
    return listed ? EXIT_DONE : cli_fail(&err);
}

// Adding --------------------------------------------------------------------------------------------------------------

typedef struct adding {
    size_t added, known, refused;
    size_t again;  // of known: they were set aside
    json_t *aside; // calls that are, before; an object
} adding;

static bool note_aside(void *ctx, const hone_queued *job)
{
    char *name = cli_key_name(&job->key);
    if (job->state == HONE_JOB_ASIDE) json_object_set_new(ctx, name, json_true());
    free(name);
    return true;
}

static bool was_aside(hone_cli *cli, const adding *sum, const hone_op *op, const hone_call *call, const char *device)
{
    const hone_store_key key = {
        .device = device != NULL ? device : cli_device_of(cli, call)->fingerprint,
        .algorithm = hone_op_name(op),
        .version = hone_signature_version(hone_op_signature(op)),
        .key = hone_call_key(call)};
    char *name = cli_key_name(&key);
    const bool was = json_object_get(sum->aside, name) != NULL;
    free(name);
    return was;
}

static int tell_added(const hone_cli *cli, const adding *sum)
{
    if (cli->options.json)
        cli_print_json(json_pack(
            "{s:I, s:I, s:I, s:I}", "added", (json_int_t)sum->added, "known", (json_int_t)sum->known, "again",
            (json_int_t)sum->again, "refused", (json_int_t)sum->refused));
    else {
        cli_say("%zu queued, %zu were there already", sum->added, sum->known);
        if (sum->again > 0) cli_say(", %zu of them set aside: taken up again", sum->again);
        if (sum->refused > 0) cli_say(", %zu refused", sum->refused);
        cli_say("\n");
    }
    return EXIT_DONE;
}

// What is queued for other machines may be meant so, or be a slip.
static void tell_elsewhere(const hone_cli *cli, const char *text)
{
    size_t count = 0;
    const hone_device_info *const *devices = hone_runtime_devices(cli->rt, &count);
    for (size_t i = 0; i < count; i++)
        if (hone_queue_fits(text, devices[i]->fingerprint)) return;
    cli_warn("no device here is '%s': it waits for another machine (hone devices)", text);
}

// The device text that a call is queued for; NULL: its own device's, which is here.
static int find_device(hone_cli *cli, const hone_call *call, const char **out)
{
    *out = is_here(cli) || chosen.count == 0 ? NULL : chosen.texts[0];
    if (*out != NULL || cli_device_of(cli, call) != NULL) return 0;
    return cli_usage(
        "%s: its device is not here: --device names its fingerprint, or the fingerprint's beginning (hone devices)",
        hone_call_text(call));
}

static int add_call(hone_cli *cli, hone_store *store, const char *text, adding *sum)
{
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_queue_options options = {
        .struct_size = sizeof options,
        .priority = (double)cli->options.priority,
        .count = (uint64_t)cli->options.calls,
        .seconds = cli->options.seconds,
    };
    bool added = false;
    hone_error err;
    int status = cli_parse_call(cli, text, &op, &call);
    if (status == 0) status = find_device(cli, call, &options.device);
    if (status == 0) {
        const hone_status done = hone_queue_call(store, op, call, &options, &added, &err);
        if (done == HONE_INVALID_ARGUMENT && options.device != NULL)
            status = cli_usage("--device: %s", err.message);
        else if (done != HONE_OK)
            status = cli_fail(&err);
        else if (options.device != NULL)
            tell_elsewhere(cli, options.device);
        sum->added += done == HONE_OK && added;
        sum->known += done == HONE_OK && !added;
        sum->again += done == HONE_OK && !added && was_aside(cli, sum, op, call, options.device);
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
        // Without --device those of all devices; `here` is each of this machine's.
        for (size_t i = 0; i == 0 || i < chosen.count; i++) {
            size_t added = 0;
            const char *device = chosen.count > 0 ? chosen.texts[i] : NULL;
            if (hone_work_fill(cli->rt, device, &options, (double)cli->options.priority, &added, &err) != HONE_OK)
                return cli_fail(&err);
            sum.added += added;
        }
        if (cli->options.json) return tell_added(cli, &sum);
        cli_say("%zu recorded call%s queued\n", sum.added, cli_plural(sum.added));
        return EXIT_DONE;
    }
    sum.aside = json_object();
    (void)!hone_queue_scan(store, false, note_aside, sum.aside, &err); // what fails, fails each call, too
    // One that is refused keeps nobody from the others; a store that cannot be written does.
    for (size_t i = 1; i < cli->count && status != EXIT_WORLD; i++) {
        const int one = add_call(cli, store, cli->arguments[i], &sum);
        if (one == 0) continue;
        cli_warn("not queued: %s", cli->arguments[i]);
        sum.refused++;
        if (status == 0 || one == EXIT_WORLD) status = one;
    }
    if (sum.added + sum.known > 0 || status == 0) (void)tell_added(cli, &sum);
    json_decref(sum.aside);
    return status;
}

// Dropping ------------------------------------------------------------------------------------------------------------

typedef struct dropping {
    hone_store_key filter; // what is NULL is any; the device is that of a call
    json_t *algorithms;    // of what was found
    char *(*texts)[5];     // of the key, and the call's
    size_t count, capacity;
} dropping;

typedef struct dropped {
    size_t dropped, held;
} dropped;

// Whether a job's device is of --device, or where that is not given, of the call.
static bool is_within(const char *of_call, const char *device)
{
    bool is_one = chosen.count == 0 && (of_call == NULL || hone_queue_fits(of_call, device));
    for (size_t i = 0; i < chosen.count && !is_one; i++)
        is_one = hone_queue_fits(chosen.texts[i], device);
    return is_one;
}

static bool note_key(void *ctx, const hone_queued *job)
{
    dropping *d = ctx;
    const char *const texts[] = {
        job->key.device, job->key.algorithm, job->key.version, job->key.key,
        job->call != NULL ? job->call : job->key.algorithm};
    const hone_store_key *filter = &d->filter;
    if (filter->key != NULL && strcmp(filter->key, job->key.key) != 0) return true;
    if (filter->algorithm != NULL && strcmp(filter->algorithm, job->key.algorithm) != 0) return true;
    if (filter->version != NULL && strcmp(filter->version, job->key.version) != 0) return true;
    if (!is_within(filter->device, job->key.device)) return true;
    json_object_set_new(d->algorithms, job->key.algorithm, json_true());
    if (d->count == d->capacity) {
        d->capacity = d->capacity == 0 ? 16 : 2 * d->capacity;
        d->texts = realloc(d->texts, d->capacity * sizeof *d->texts);
        if (d->texts == NULL) cli_no_memory();
    }
    for (int i = 0; i < 5; i++)
        if ((d->texts[d->count][i] = strdup(texts[i])) == NULL) cli_no_memory();
    d->count++;
    return true;
}

static void free_dropping(dropping *d)
{
    for (size_t i = 0; i < d->count; i++)
        for (int j = 0; j < 5; j++)
            free(d->texts[i][j]);
    free(d->texts);
    json_decref(d->algorithms);
}

// What a worker holds is named, and stays.
static int drop_one(hone_store *store, char *const texts[5], dropped *sum)
{
    const hone_store_key whole = {texts[0], texts[1], texts[2], texts[3], NULL};
    hone_error err;
    switch (hone_queue_drop(store, &whole, &err)) {
    case HONE_OK:
        sum->dropped++;
        return 0;
    case HONE_NOT_FOUND:
        return 0;
    case HONE_BUSY:
        sum->held++;
        cli_warn("%s: %s", texts[4], err.message);
        return 0;
    default:
        return cli_fail(&err);
    }
}

static int drop_all(hone_store *store, const hone_store_key *filter, dropped *sum)
{
    dropping d = {.filter = *filter, .algorithms = json_object()};
    hone_error err;
    int status = hone_queue_scan(store, false, note_key, &d, &err) == HONE_OK ? 0 : cli_fail(&err);
    if (status == 0 && filter->key != NULL) status = cli_check_key(filter->key, d.algorithms);
    for (size_t i = 0; i < d.count && status == 0; i++)
        status = drop_one(store, d.texts[i], sum);
    free_dropping(&d);
    return status;
}

static int drop_named(hone_cli *cli, hone_store *store, const char *text, dropped *sum)
{
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_store_key filter = {.key = text};
    if (cli_is_key(text)) return drop_all(store, &filter, sum);
    int status = cli_parse_call(cli, text, &op, &call);
    if (status == 0) status = cli_device_in(cli, text, call, &filter.device);
    if (status == 0) {
        filter.algorithm = hone_op_name(op);
        filter.version = hone_signature_version(hone_op_signature(op));
        filter.key = hone_call_key(call);
        status = drop_all(store, &filter, sum);
    }
    hone_call_release(&call);
    return status;
}

static int drop(hone_cli *cli, hone_store *store)
{
    dropped sum = {0};
    int status = 0;
    if (cli->options.all == (cli->count > 1))
        return cli_usage("queue drop needs calls or keys, or --all for all that no worker has");
    if (cli->options.all) status = drop_all(store, &(hone_store_key){0}, &sum);
    for (size_t i = 1; i < cli->count && status == 0; i++)
        status = drop_named(cli, store, cli->arguments[i], &sum);
    if (status != 0) return status;
    if (cli->options.json)
        cli_print_json(json_pack("{s:I, s:I}", "dropped", (json_int_t)sum.dropped, "held", (json_int_t)sum.held));
    else
        cli_say("%zu dropped\n", sum.dropped);
    return sum.held == 0 && (sum.dropped > 0 || cli->options.all) ? EXIT_DONE : EXIT_NO;
}

// Pausing and counting ------------------------------------------------------------------------------------------------

static int pause_queue(hone_cli *cli, hone_store *store)
{
    hone_error err;
    const bool on = !cli->options.off;
    const char *device = device_words(cli);
    if (chosen.count == 0 && hone_queue_pause(store, NULL, on, &err) != HONE_OK) return cli_fail(&err);
    for (size_t i = 0; i < chosen.count; i++)
        if (hone_queue_pause(store, chosen.texts[i], on, &err) != HONE_OK) return cli_fail(&err);
    json_t *pauses = pauses_of(store, &err);
    if (pauses == NULL) return cli_fail(&err);
    if (cli->options.json)
        cli_print_json(json_pack("{s:b, s:s?, s:O}", "paused", on, "device", device, "paused_devices", pauses));
    else {
        cli_say(
            "%s of %s\n", on ? "workers claim nothing" : "workers claim calls",
            device == NULL     ? "any device"
            : chosen.count > 1 ? "the devices of this machine"
                               : device);
        if (!on) print_pauses(pauses, "still paused: ");
    }
    json_decref(pauses);
    return EXIT_DONE;
}

typedef struct counting {
    uint64_t waiting, held, aside;
} counting;

static bool count_job(void *ctx, const hone_queued *job)
{
    counting *c = ctx;
    if (!is_of_chosen(job)) return true;
    c->waiting += job->state == HONE_JOB_WAITING;
    c->held += job->state == HONE_JOB_HELD;
    c->aside += job->state == HONE_JOB_ASIDE;
    return true;
}

static bool is_paused_device(const json_t *pauses, const char *device)
{
    size_t i;
    const json_t *pause;
    json_array_foreach(pauses, i, pause)
    {
        const char *text = json_string_value(pause);
        if (strcmp(text, "*") == 0 || (device != NULL && hone_queue_fits(text, device))) return true;
    }
    return false;
}

// Whether nothing of all that --device names, or of any device, is claimed.
static bool is_paused(const json_t *pauses)
{
    bool all = is_paused_device(pauses, chosen.count > 0 ? chosen.texts[0] : NULL);
    for (size_t i = 1; i < chosen.count; i++)
        all = all && is_paused_device(pauses, chosen.texts[i]);
    return all;
}

static int stat(hone_cli *cli, hone_store *store)
{
    hone_error err;
    const char *device = device_words(cli);
    counting all = {0};
    if (hone_queue_scan(store, false, count_job, &all, &err) != HONE_OK) return cli_fail(&err);
    json_t *pauses = pauses_of(store, &err);
    if (pauses == NULL) return cli_fail(&err);
    const bool paused = is_paused(pauses);
    if (cli->options.json)
        cli_print_json(json_pack(
            "{s:s, s:s?, s:I, s:I, s:I, s:b, s:O}", "store", hone_store_url(store), "device", device, "waiting",
            (json_int_t)all.waiting, "held", (json_int_t)all.held, "aside", (json_int_t)all.aside, "paused", paused,
            "paused_devices", pauses));
    else {
        cli_say(
            "%" PRIu64 " waiting, %" PRIu64 " held by workers, %" PRIu64 " set aside%s\n", all.waiting, all.held,
            all.aside, paused ? "; paused" : "");
        print_pauses(pauses, "paused: ");
    }
    json_decref(pauses);
    return EXIT_DONE;
}

const cli_verb cli_queue_verbs[] = {
    {"list", "", "lists the calls that wait, that are claimed and by whom, and that were set aside and why",
     "device pack", list, 1, 1, false},
    {"add", "[CALL...]", "queues calls, or without CALL the recorded ones that are not decided",
     "device priority calls seconds pack", add, 1, 0, true},
    {"drop", "CALL|KEY...", "removes calls that no worker has claimed; --all removes every such call",
     "device all pack", drop, 1, 0, false},
    {"pause", "", "stops workers from claiming calls, of --device or at all, until --off", "device off", pause_queue, 1,
     1, true},
    {"stat", "", "counts the calls", "device", stat, 1, 1, false},
    {0},
};

int cli_queue(hone_cli *cli)
{
    const cli_verb *verb = cli_find_verb(cli, "queue", cli_queue_verbs);
    if (verb == NULL) return EXIT_USAGE;
    int status = verb->makes ? 0 : cli_find_store(cli);
    if (status == 0) status = cli_open(cli, HONE_POLICY_HEURISTIC);
    if (status != 0) return status;
    hone_store *store = NULL;
    hone_error err;
    if (hone_store_of(cli->rt, HONE_STORE_OF_USER, &store, &err) != HONE_OK) {
        cli_warn("%s", err.message);
        return EXIT_WORLD;
    }
    status = settle_devices(cli);
    return status == 0 ? verb->run(cli, store) : status;
}
