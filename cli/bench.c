// hone bench without --choice: every kernel of a call side by side, interleaved, in this process: its space's default,
// its heuristic, its best stored config, and what hone chose.
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LANES = 128, MAX_ROUNDS = 400 };

// One row of the table: a bound plan, timed in turn with the others.
typedef struct bench_lane {
    char kernel[HONE_NAME_SIZE];
    char config[256];
    json_t *config_json;
    const char *what; // "default", "heuristic", "tuned", "chosen"
    const hone_plan *plan;
    uint32_t batch;
    double samples[MAX_ROUNDS];
} bench_lane;

typedef struct bench_field {
    hone_cli *cli;
    const hone_op *op;
    const hone_call *call;
    const hone_device_info *device;
    hone_inputs *inputs;
    const hone_value *values; // theirs
    size_t value_count;
    bench_lane *lanes;
    size_t count, rounds;
} bench_field;

static bool is_there(const bench_field *field, const char *kernel, const char *config)
{
    for (size_t i = 0; i < field->count; i++)
        if (strcmp(field->lanes[i].kernel, kernel) == 0 && strcmp(field->lanes[i].config, config) == 0) return true;
    return false;
}

// Binds a plan for exactly this kernel and config. What cannot be bound has no lane.
static void add_lane(bench_field *field, const hone_kernel_ref *ref, const hone_config *config, const char *what)
{
    const hone_kernel *kernel = hone_kernel_of(ref);
    char text[256];
    hone_config_text(hone_kernel_space(ref), config, text, sizeof text);
    if (field->count == MAX_LANES || is_there(field, kernel->name, text)) return;
    hone_override override_ = {hone_op_name(field->op), kernel->name, kernel->platform, text, false};
    hone_context *context = NULL;
    hone_error err;
    if (hone_context_derive(field->cli->rt, NULL, NULL, &override_, HONE_POLICY_DEFAULT, &context, &err) != HONE_OK)
        return;
    hone_context *previous = hone_context_enter(context);
    bench_lane *lane = &field->lanes[field->count];
    if (hone_bind(field->op, field->values, field->value_count, &lane->plan, &err) == HONE_OK) {
        snprintf(lane->kernel, sizeof lane->kernel, "%s", kernel->name);
        snprintf(lane->config, sizeof lane->config, "%s", text);
        lane->config_json = cli_config_object(hone_kernel_space(ref), config);
        lane->what = what;
        field->count++;
    }
    (void)hone_context_enter(previous);
    hone_context_release(&context);
}

typedef struct best_stored {
    const hone_kernel_ref *kernel;
    double time_ns; // 0: nothing was measured
    hone_config config;
    hone_failure failure; // of a config
} best_stored;

static bool see_measurement(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *measurement = record->measurement;
    best_stored *best = ctx;
    const hone_kernel *kernel = hone_kernel_of(best->kernel);
    if (strcmp(measurement->kernel, kernel->name) != 0) return true;
    if (measurement->failure != HONE_FAILURE_NONE && measurement->revision != NULL && kernel->revision != NULL &&
        strcmp(measurement->revision, kernel->revision) == 0)
        best->failure = measurement->failure;
    if (measurement->failure != HONE_FAILURE_NONE || !(measurement->time_ns > 0)) return true;
    if (best->time_ns > 0 && measurement->time_ns >= best->time_ns) return true;
    hone_config config;
    if (hone_config_from_json(
            hone_kernel_space(best->kernel), measurement->config, strlen(measurement->config), &config, NULL) !=
        HONE_OK)
        return true;
    best->time_ns = measurement->time_ns;
    best->config = config;
    return true;
}

static best_stored find_stored(const bench_field *field, hone_store *store, const hone_kernel_ref *kernel)
{
    const hone_store_key key = {
        field->device->fingerprint, hone_op_name(field->op), hone_signature_version(hone_op_signature(field->op)),
        hone_call_key(field->call), NULL};
    best_stored best = {.kernel = kernel};
    if (store != NULL && hone_store_scan(store, HONE_RECORD_MEASUREMENT, &key, see_measurement, &best, NULL) != HONE_OK)
        best.time_ns = 0;
    return best;
}

static void add_kernel(bench_field *field, hone_store *store, const hone_kernel_ref *kernel)
{
    if (hone_kernel_of(kernel)->is_reference || hone_kernel_check(kernel, field->call, field->device, NULL) != HONE_OK)
        return;
    const best_stored best = find_stored(field, store, kernel);
    // It would run in this process.
    if (best.failure != HONE_FAILURE_NONE && best.failure != HONE_FAILURE_UNSUPPORTED && !(best.time_ns > 0)) {
        cli_warn(
            "%s is left out: it failed when it was measured (%s); hone explain has its words",
            hone_kernel_of(kernel)->name, hone_failure_name(best.failure));
        return;
    }
    hone_config config;
    if (hone_kernel_default(kernel, field->call, field->device, &config, NULL) == HONE_OK)
        add_lane(field, kernel, &config, "heuristic");
    hone_bound_space *space = NULL;
    if (hone_space_bind(hone_kernel_space(kernel), field->call, field->device, &space, NULL) == HONE_OK &&
        hone_bound_space_default(space, &config, NULL) == HONE_OK)
        add_lane(field, kernel, &config, "default");
    hone_bound_space_release(&space);
    if (best.time_ns > 0) add_lane(field, kernel, &best.config, "tuned");
}

static const hone_kernel_ref *chosen_kernel(const bench_field *field, hone_decision *decision)
{
    if (hone_decide_call(field->op, field->call, decision, NULL) != HONE_OK) return NULL;
    return cli_kernel_named(field->cli, field->op, decision->kernel, decision->platform, decision->backend);
}

// Whether runs are started here and done by another device.
static bool is_elsewhere(const bench_field *field)
{
    return field->device->device.type != HONE_DEVICE_CPU;
}

// On a device with what starting the runs costs, as a program pays it: `hone tune` measures without.
static double time_batch(const bench_field *field, const bench_lane *lane, uint32_t batch)
{
    uint64_t start = cli_now_ns();
    for (uint32_t i = 0; i < batch; i++)
        if (lane->plan->run(lane->plan, field->values, NULL) != HONE_OK) return INFINITY;
    const hone_device device = field->device->device;
    if (is_elsewhere(field) && hone_stream_synchronize(field->cli->rt, device, NULL, NULL) != HONE_OK) return INFINITY;
    return (double)(cli_now_ns() - start) / batch;
}

// Batches long enough for the clock, then rounds in turn until the time is up.
static void measure(bench_field *field, double seconds)
{
    for (size_t i = 0; i < field->count; i++) {
        (void)time_batch(field, &field->lanes[i], 1);
        double once = time_batch(field, &field->lanes[i], 1);
        // Waiting for a device takes its time, too.
        const double whole = is_elsewhere(field) ? 200000 : 20000;
        field->lanes[i].batch = once < whole ? (uint32_t)(whole / (once + 1)) + 1 : 1;
    }
    uint64_t end = cli_now_ns() + (uint64_t)(seconds * 1e9);
    while (field->rounds < MAX_ROUNDS && (field->rounds < 3 || cli_now_ns() < end) && !cli_is_cancelled()) {
        for (size_t i = 0; i < field->count; i++) {
            bench_lane *lane = &field->lanes[(i + field->rounds) % field->count];
            lane->samples[field->rounds] = time_batch(field, lane, lane->batch);
        }
        field->rounds++;
    }
}

// Contests, and other benchmarks, would take the machine from under this one.
static int measure_in_turn(bench_field *field)
{
    hone_cli *cli = field->cli;
    hone_tune_options options;
    hone_turn *turn = NULL;
    hone_error err;
    cli_tune_options(cli, &options);
    const hone_status status = hone_turn_begin(cli->rt, field->device, field->call, &options, &turn, &err);
    cli_progress_end(cli);
    if (status != HONE_OK) return cli_fail(&err);
    measure(field, cli->options.seconds > 0 ? cli->options.seconds : 3);
    hone_turn_end(&turn);
    return 0;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static json_t *report(bench_field *field)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < field->count; i++) {
        bench_lane *lane = &field->lanes[i];
        qsort(lane->samples, field->rounds, sizeof lane->samples[0], ascending);
        json_array_append_new(
            rows, json_pack(
                      "{s:s, s:s, s:O, s:f, s:f, s:f, s:i}", "kernel", lane->kernel, "what", lane->what, "config",
                      lane->config_json, "time_ns", lane->samples[field->rounds / 2], "low_ns",
                      lane->samples[field->rounds / 10], "high_ns", lane->samples[field->rounds * 9 / 10], "rounds",
                      (int)field->rounds));
    }
    return rows;
}

static void print_rows(const bench_field *field, const json_t *rows)
{
    cli_say("%s\n", hone_call_text(field->call));
    cli_table *table = cli_table_new(6);
    cli_table_row(table, " ", "kernel", "what", "time", "spread", "config");
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row)
    {
        char time[32], spread[24];
        double middle = json_number_value(json_object_get(row, "time_ns"));
        double range =
            json_number_value(json_object_get(row, "high_ns")) - json_number_value(json_object_get(row, "low_ns"));
        snprintf(spread, sizeof spread, "%.1f %%", 50 * range / middle);
        cli_table_row(
            table, " ", field->lanes[i].kernel, field->lanes[i].what, cli_time_text(middle, time), spread,
            field->lanes[i].config);
    }
    cli_table_print(table);
}

static void show(bench_field *field, json_t *all)
{
    json_t *rows = report(field);
    if (!field->cli->options.json) print_rows(field, rows);
    json_array_append_new(all, json_pack("{s:s, s:o}", "call", hone_call_text(field->call), "rows", rows));
}

static int bench_call(hone_cli *cli, const char *text, json_t *all)
{
    bench_field field = {.cli = cli};
    const hone_op *op = NULL;
    hone_call *call = NULL;
    int status = cli_parse_call(cli, text, &op, &call);
    field.op = op;
    field.call = call;
    hone_error err;
    if (status == 0 && hone_inputs_make(op, call, (uint64_t)cli->options.seed, &field.inputs, &err) != HONE_OK)
        status = cli_fail(&err);
    if (status == 0) field.values = hone_inputs_values(field.inputs, &field.value_count);
    if (status == 0) field.device = cli_device_of(cli, call);
    field.lanes = calloc(MAX_LANES, sizeof *field.lanes);
    if (status == 0 && field.lanes != NULL) {
        hone_store *store = NULL;
        hone_decision decision;
        (void)cli_open_store(cli, &store);
        const hone_kernel_ref *chosen = chosen_kernel(&field, &decision);
        if (chosen != NULL) add_lane(&field, chosen, &decision.config, "chosen");
        const hone_kernel_ref **kernels = NULL;
        const size_t count = cli_kernels(cli, op, &kernels);
        for (size_t i = 0; i < count; i++)
            add_kernel(&field, store, kernels[i]);
        hone_kernels_release(&kernels);
        hone_store_close(&store);
        status = measure_in_turn(&field);
        if (status == 0 && field.count > 0) show(&field, all);
        if (status == 0 && field.count == 0) {
            if (hone_decide_call(op, call, &decision, &err) != HONE_OK) (void)cli_fail(&err);
            status = EXIT_NO;
        }
    }
    for (size_t i = 0; i < field.count; i++) {
        hone_plan_release(&field.lanes[i].plan);
        json_decref(field.lanes[i].config_json);
    }
    free(field.lanes);
    hone_inputs_release(&field.inputs);
    hone_call_release(&call);
    return status;
}

int cli_bench(hone_cli *cli)
{
    if (cli->options.choices.count > 0) return cli_choices(cli);
    int status = cli_open(cli, HONE_POLICY_HEURISTIC);
    if (status != 0) return status;
    json_t *all = json_array();
    for (size_t i = 0; i < cli->count && !cli_is_cancelled(); i++) {
        int one = bench_call(cli, cli->arguments[i], all);
        status = one != 0 ? one : status;
    }
    if (cli->options.json) cli_print_json(json_pack("{s:O}", "calls", all));
    json_decref(all);
    return status;
}
