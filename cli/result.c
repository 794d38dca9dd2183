// A result document as tables: one a call, with every kernel's best.
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value == NULL ? "" : value;
}

// Kernels that are somebody else's library: what a choice is measured against.
static bool is_library(const char *kernel)
{
    static const char *const prefixes[] = {"openblas", "numpy_openblas", "scipy_openblas", "onednn", "libxsmm"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(kernel, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

// What a run of a call moves and computes; zeros when the algorithm does not say.
typedef struct call_cost {
    double bytes, operations;
    bool reads_bf16; // products of bf16 may be what does the operations
    double of_f32;   // operations of f32 that take as long as one of it: 2 of f64, of which half as many fill a vector
    bool cold;       // it was measured on data that no cache holds
} call_cost;

static bool is_f64(const hone_call *call)
{
    const hone_tensor *first = hone_call_tensor(call, 0);
    return first != NULL && first->dtype.code == HONE_CODE_FLOAT && first->dtype.bits == 64;
}

static bool reads_bf16(const hone_call *call)
{
    const hone_signature *signature = hone_call_signature(call);
    for (size_t i = 0; i < hone_signature_count(signature); i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i);
        if (tensor != NULL && !hone_signature_parameter(signature, i)->is_result &&
            tensor->dtype.code == HONE_CODE_BFLOAT && tensor->dtype.bits == 16)
            return true;
    }
    return false;
}

static bool is_cold(const json_t *evidence)
{
    return strncmp(text(evidence, "regime"), "cold", 4) == 0;
}

static call_cost cost_of(hone_cli *cli, const char *call_text, bool cold)
{
    call_cost cost = {0};
    hone_cost model = {0, 0};
    char name[HONE_NAME_SIZE];
    hone_call *call = NULL;
    if (hone_call_text_name(call_text, name, sizeof name, NULL, 0, NULL) != HONE_OK) return cost;
    const hone_op *op = hone_op_find(cli->rt, name, NULL);
    if (op == NULL || hone_op_algorithm(op)->model == NULL) return cost;
    if (hone_call_parse(hone_allocator_system(), hone_op_signature(op), call_text, &call, NULL) != HONE_OK) return cost;
    hone_op_algorithm(op)->model(call, &model);
    cost = (call_cost){model.bytes, model.operations, reads_bf16(call), is_f64(call) ? 2 : 1, cold};
    hone_call_release(&call);
    return cost;
}

// Arithmetic that outweighs its memory is told in GFLOP/s, the rest in GB/s, each with its share of the peak.
static bool is_arithmetic(const call_cost *cost)
{
    return cost->operations > 8 * cost->bytes;
}

static cli_peak_kind peak_of(const call_cost *cost)
{
    return !is_arithmetic(cost) ? CLI_PEAK_BYTES : cost->reads_bf16 ? CLI_PEAK_BF16 : CLI_PEAK_F32;
}

// Data of which the last cache holds a good part is not all read from memory, whose speed then bounds nothing.
static bool is_in_cache(hone_cli *cli, const call_cost *cost)
{
    const hone_device_info *cpu = cli_cpu(cli);
    return !is_arithmetic(cost) && !cost->cold && cpu != NULL && cost->bytes < 2 * (double)cpu->l3_bytes;
}

// on_cpu: the peaks are those of the CPU, and say nothing of another device.
static void rate_cells(hone_cli *cli, const call_cost *cost, bool on_cpu, double time_ns, char rate[24], char share[24])
{
    rate[0] = share[0] = '\0';
    if (time_ns <= 0 || cost->bytes <= 0) return;
    const bool arithmetic = is_arithmetic(cost), in_cache = is_in_cache(cli, cost);
    const double value = (arithmetic ? cost->operations : cost->bytes) / time_ns;
    snprintf(rate, 24, "%.1f", value);
    if (!on_cpu) return;
    const double times = arithmetic ? cost->of_f32 : 1;
    const double best = in_cache ? 0 : cli_peak(cli, peak_of(cost), value * times * 1e9) / times / 1e9;
    if (best > 0)
        snprintf(share, 24, "%.0f %%", 100 * value / best);
    else
        snprintf(share, 24, "%s", in_cache ? "cache" : "-");
}

static void config_cell(const json_t *config, char *out, size_t size)
{
    const char *name;
    json_t *value;
    out[0] = '\0';
    json_object_foreach((json_t *)(uintptr_t)config, name, value)
    {
        char *number_text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        size_t used = strlen(out);
        const char *shown = json_is_string(value) ? json_string_value(value) : number_text;
        snprintf(out + used, size - used, "%s%s=%s", used == 0 ? "" : " ", name, shown == NULL ? "" : shown);
        free(number_text);
    }
}

static unsigned rejected_count(const json_t *kernel)
{
    unsigned total = 0;
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(kernel, "rejected"), name, value) total += (unsigned)json_integer_value(value);
    return total;
}

static void kernel_row(
    hone_cli *cli, cli_table *table, const json_t *kernel, const json_t *entry, const call_cost *cost)
{
    char config[256], time[32], rate[24], share[24], spread[24] = "", tried[24];
    double time_ns = number(kernel, "time_ns");
    config_cell(json_object_get(kernel, "config"), config, sizeof config);
    const hone_device_info *cpu = cli_cpu(cli);
    const bool on_cpu = cpu != NULL && strcmp(text(kernel, "platform"), hone_platform_name(cpu->platform)) == 0;
    rate_cells(cli, cost, on_cpu, time_ns, rate, share);
    if (time_ns > 0 && number(kernel, "samples") > 1)
        snprintf(
            spread, sizeof spread, "%.1f %%", 50 * (number(kernel, "high_ns") - number(kernel, "low_ns")) / time_ns);
    else if (time_ns > 0)
        snprintf(spread, sizeof spread, "-");
    snprintf(tried, sizeof tried, "%d", (int)number(kernel, "tried"));
    bool chosen = strcmp(text(kernel, "kernel"), text(entry, "kernel")) == 0;
    const char *reason = text(kernel, "reason");
    if (time_ns <= 0) snprintf(config, sizeof config, "%.100s", reason[0] != '\0' ? reason : "not measured");
    cli_table_row(
        table, chosen ? "*" : " ", text(kernel, "kernel"), config, cli_time_text(time_ns, time), rate, share, spread,
        tried);
}

// What the finals take at least of each finalist: a ratio to less is no result.
enum { LEAST_SAMPLES = 10 };

static const json_t *best_library(hone_cli *cli, const json_t *kernels)
{
    const json_t *best = NULL, *kernel;
    size_t i;
    json_array_foreach(kernels, i, kernel)
    {
        double time_ns = number(kernel, "time_ns");
        if (!is_library(text(kernel, "kernel")) || time_ns <= 0 || cli_library_is_below(cli, text(kernel, "kernel")))
            continue;
        if (best == NULL || time_ns < number(best, "time_ns")) best = kernel;
    }
    return best;
}

static void print_samples(const char *what, double samples)
{
    cli_say("; too few samples (%.0f) to compare with %s", samples, what);
}

// The interval of a ratio lies inside that of the least of one over the most of the other.
static void print_over_library(hone_cli *cli, const json_t *kernels, const json_t *evidence, const char *chosen)
{
    char what[HONE_NAME_SIZE + 32];
    const json_t *library = best_library(cli, kernels);
    double time_ns = number(evidence, "time_ns");
    if (library == NULL || strcmp(text(library, "kernel"), chosen) == 0) return;
    // The runner-up has been compared with, round by round.
    if (strcmp(text(library, "kernel"), text(evidence, "runner_up")) == 0 &&
        number(evidence, "rounds") >= LEAST_SAMPLES)
        return;
    snprintf(what, sizeof what, "the best library, %.*s", HONE_NAME_SIZE - 1, text(library, "kernel"));
    if (number(library, "samples") < LEAST_SAMPLES || number(evidence, "samples") < LEAST_SAMPLES)
        print_samples(what, fmin(number(library, "samples"), number(evidence, "samples")));
    else
        cli_say(
            "; %.2f times as fast as %s (95 %% %.2f to %.2f)", number(library, "time_ns") / time_ns, what,
            number(library, "low_ns") / number(evidence, "high_ns"),
            number(library, "high_ns") / number(evidence, "low_ns"));
}

// Of a default whose samples are not known nothing is missing: evidence of an earlier version does not say.
static void print_over_default(const json_t *evidence)
{
    const double default_ns = number(evidence, "default_time_ns"), of_default = number(evidence, "default_samples"),
                 own = number(evidence, "samples"), samples = of_default > 0 ? fmin(of_default, own) : own;
    if (default_ns <= 0) return;
    if (default_ns == number(evidence, "time_ns"))
        cli_say("; it is the default");
    else if (samples < LEAST_SAMPLES)
        print_samples("the default", samples);
    else
        cli_say(", %.2f times as fast as the default", default_ns / number(evidence, "time_ns"));
}

// Gains of the choice: over the runner-up, the best library, the default.
static void print_gains(hone_cli *cli, const json_t *entry, const json_t *evidence)
{
    const json_t *kernels = json_object_get(evidence, "kernels");
    const char *chosen = text(entry, "kernel"), *second = text(evidence, "runner_up");
    cli_say("  chosen %s", chosen);
    if (second[0] != '\0' && number(evidence, "rounds") >= LEAST_SAMPLES)
        cli_say(
            ": %.2f times as fast as %s (95 %% %.2f to %.2f)", number(evidence, "ratio"),
            strcmp(second, chosen) == 0 ? "its next config" : second, number(evidence, "ratio_low"),
            number(evidence, "ratio_high"));
    else if (second[0] != '\0')
        print_samples(strcmp(second, chosen) == 0 ? "its next config" : second, number(evidence, "rounds"));
    print_over_default(evidence);
    print_over_library(cli, kernels, evidence, chosen);
    cli_say(
        "; verified against %s, error %.2g of what is allowed\n", text(evidence, "verified_against"),
        number(evidence, "max_error"));
}

// What the times are of, where that is not usual.
static void print_regime(const json_t *evidence)
{
    hone_regime regime = HONE_WARM;
    if (hone_regime_parse(text(evidence, "regime"), &regime, NULL) != HONE_OK) return;
    static const char *const words[HONE_REGIME_COUNT] = {
        [HONE_COLD] = "times are of runs with data flushed from the caches",
        [HONE_GRAPH] = "times are of a run among others in a graph that is replayed",
        [HONE_EAGER] = "times are of one run by the host's clock, its launch and the wait for its end counted in",
    };
    const char *meaning = words[hone_regime_with(regime, false)];
    if (meaning != NULL) cli_say("  regime %s: %s\n", hone_regime_name(regime), meaning);
}

static void print_totals(const json_t *evidence)
{
    unsigned rejected = 0;
    size_t i;
    const json_t *kernel;
    json_array_foreach(json_object_get(evidence, "kernels"), i, kernel) rejected += rejected_count(kernel);
    cli_say(
        "  %d measured%s, %u rejected, %.1f s", (int)number(evidence, "measured"), is_cold(evidence) ? " cold" : "",
        rejected, number(evidence, "seconds"));
    if (number(evidence, "run_seconds") > 0)
        cli_say(
            ": prepare %.1f, verify %.1f, run %.1f, wait %.1f", number(evidence, "prepare_seconds"),
            number(evidence, "verify_seconds"), number(evidence, "run_seconds"), number(evidence, "wait_seconds"));
    cli_say("\n");
}

// Which is the fastest was left open: why, and what would settle it.
static void print_undecided(const json_t *evidence)
{
    const char *why = text(evidence, "undecided");
    if (why[0] != '\0') cli_say("  undecided: %s\n", why);
}

// Kernels that were tried stand in the table; the others below it, each reason once.
static bool competed(const json_t *kernel)
{
    return number(kernel, "time_ns") > 0 || number(kernel, "tried") > 0;
}

// What cannot run here is counted, unless --all asks for each.
static size_t count_elsewhere(const json_t *kernels)
{
    size_t i, count = 0;
    const json_t *kernel;
    json_array_foreach(kernels, i, kernel) count += json_is_true(json_object_get(kernel, "elsewhere"));
    return count;
}

static bool is_absent_for(const json_t *kernels, size_t index, const char *reason)
{
    const json_t *kernel = json_array_get(kernels, index);
    return !competed(kernel) && strcmp(text(kernel, "reason"), reason) == 0;
}

static bool is_first_absent(const json_t *kernels, size_t index, const char *reason)
{
    for (size_t i = 0; i < index; i++)
        if (is_absent_for(kernels, i, reason)) return false;
    return is_absent_for(kernels, index, reason);
}

static void print_absent(const hone_cli *cli, const json_t *kernels)
{
    const size_t elsewhere = cli->options.all ? 0 : count_elsewhere(kernels);
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        if (elsewhere > 0 && json_is_true(json_object_get(json_array_get(kernels, i), "elsewhere"))) continue;
        const char *reason = text(json_array_get(kernels, i), "reason");
        if (!is_first_absent(kernels, i, reason)) continue;
        const char *between = reason[0] != '\0' ? "  not competing: " : "  never tried: ";
        for (size_t j = i; j < json_array_size(kernels); j++) {
            if (!is_absent_for(kernels, j, reason)) continue;
            cli_say("%s%s", between, text(json_array_get(kernels, j), "kernel"));
            between = ", ";
        }
        cli_say(": %s\n", reason[0] != '\0' ? reason : "the time or the evaluations were spent before its turn");
    }
    if (elsewhere > 0) cli_say_elsewhere("  ", elsewhere);
}

static void print_contest(hone_cli *cli, const json_t *entry, const json_t *kernels)
{
    call_cost cost = cost_of(cli, text(entry, "call"), is_cold(json_object_get(entry, "evidence")));
    cli_table *table = cli_table_new(8);
    cli_table_marked(table);
    cli_table_row(
        table, " ", "kernel", "config", "time",
        cost.bytes <= 0        ? ""
        : is_arithmetic(&cost) ? "GFLOP/s"
                               : "GB/s",
        cost.bytes > 0 ? "peak" : "", "spread", "tried");
    size_t i;
    const json_t *kernel;
    json_array_foreach(kernels, i, kernel) if (competed(kernel)) kernel_row(cli, table, kernel, entry, &cost);
    cli_table_print(table);
    const char *lacks = is_in_cache(cli, &cost) ? "" : cli_peak_lacks(peak_of(&cost));
    if (lacks[0] != '\0') cli_say("  peak: %s\n", lacks);
    json_array_foreach(kernels, i, kernel)
    {
        if (!competed(kernel) || !is_library(text(kernel, "kernel"))) continue;
        cli_print_libraries(cli);
        break;
    }
    print_absent(cli, kernels);
}

// An answer that no contest of this command's found: it brings its evidence, and no kernels that were tried.
static bool is_decided_already(const json_t *entry)
{
    return json_array_size(json_object_get(json_object_get(entry, "evidence"), "kernels")) == 0;
}

static void print_decided(const json_t *entry, const json_t *evidence)
{
    char config[256], time[32];
    double time_ns = number(evidence, "time_ns");
    config_cell(json_object_get(entry, "config"), config, sizeof config);
    cli_say("  decided already (%s): %s", text(entry, "source"), text(entry, "kernel"));
    if (config[0] != '\0') cli_say(" %s", config);
    if (time_ns > 0) cli_say(", %s", cli_time_text(time_ns, time));
    if (text(evidence, "started")[0] != '\0')
        cli_say(", measured %s%s", is_cold(evidence) ? "cold " : "", text(evidence, "started"));
    cli_say("\n");
}

static void print_entry(hone_cli *cli, const json_t *entry)
{
    const json_t *evidence = json_object_get(entry, "evidence");
    cli_say("%s\n", text(entry, "call"));
    if (is_decided_already(entry)) {
        print_decided(entry, evidence);
        if (text(evidence, "verified_against")[0] != '\0') print_gains(cli, entry, evidence);
        print_regime(evidence);
        print_undecided(evidence);
        return;
    }
    print_contest(cli, entry, json_object_get(evidence, "kernels"));
    print_gains(cli, entry, evidence);
    print_regime(evidence);
    print_totals(evidence);
    print_undecided(evidence);
}

// What was not measured, and how it would be.
static void print_decided_count(const json_t *entries, size_t failed)
{
    size_t i, decided = 0, count = json_array_size(entries) + failed;
    const json_t *entry;
    json_array_foreach(entries, i, entry) decided += is_decided_already(entry);
    if (decided == 0) return;
    if (decided == count)
        cli_say("every call was decided already: nothing was measured (--fresh measures again)\n");
    else
        cli_say("%zu of %zu calls were decided already (--fresh measures them again)\n", decided, count);
}

int cli_result_code(const hone_result *result)
{
    return cli_exit_code(hone_result_status(result));
}

int cli_print_result(hone_cli *cli, const hone_result *result)
{
    char *document = NULL;
    hone_error err;
    if (hone_result_json(result, &document, &err) != HONE_OK) return cli_fail(&err);
    if (cli->options.json) {
        printf("%s%s", document, document[strlen(document) - 1] == '\n' ? "" : "\n");
        hone_text_release(&document);
        return EXIT_DONE;
    }
    json_t *root = json_loads(document, 0, NULL);
    hone_text_release(&document);
    size_t i;
    const json_t *row, *entries = json_object_get(root, "entries");
    json_array_foreach(entries, i, row)
    {
        if (i > 0) putchar('\n');
        print_entry(cli, row);
    }
    print_decided_count(entries, json_array_size(json_object_get(root, "failed")));
    json_array_foreach(json_object_get(root, "failed"), i, row)
    {
        const char *call = text(row, "call");
        printf("failed: %s%s%s: %s\n", text(row, "key"), call[0] == '\0' ? "" : " ", call, text(row, "reason"));
    }
    json_decref(root);
    return EXIT_DONE;
}

// What was decided already was stored before, or elsewhere.
static bool any_tuned(const hone_result *total)
{
    for (size_t i = 0; i < hone_result_size(total); i++)
        if (hone_result_decision(total, i)->source == HONE_SOURCE_AUTOTUNE) return true;
    return false;
}

int cli_say_stored(const hone_cli *cli, const hone_result *total)
{
    hone_store *store = NULL;
    hone_error err;
    char away[600];
    if (cli->options.no_store || !any_tuned(total)) return 0;
    if (hone_unstored(cli->rt) > 0) return EXIT_NO;
    const hone_status status = hone_store_of(cli->rt, HONE_STORE_OF_USER, &store, &err);
    if (cli->options.json) return 0;
    if (status != HONE_OK)
        printf("not stored: %s\n", err.message);
    else if (hone_store_away(store, away, sizeof away)[0] == '\0')
        printf("stored in %s\n", hone_store_url(store));
    else
        printf("kept here, and sent to %s by the next that finds its server: %s\n", hone_store_url(store), away);
    return 0;
}
