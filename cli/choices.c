// hone bench CALL --choice ...: the choices that are named, against each other.
#include "cli.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LEAST_SAMPLES = 5 }; // of a ratio: with fewer nothing is said to be faster

typedef struct duel {
    hone_cli *cli;
    const hone_op *op;
    const hone_call *call;
    const hone_device_info *device;
    const hone_kernel_ref **kernels; // of the operation
    size_t kernel_count;
    hone_choice choices[HONE_MOST_COMPARED];
    hone_compared results[HONE_MOST_COMPARED];
    size_t count;
} duel;

static int refuse(const char *text, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int refuse(const char *text, int code, const char *format, ...)
{
    char *why = NULL;
    va_list list;
    va_start(list, format);
    if (vasprintf(&why, format, list) < 0) cli_no_memory();
    va_end(list);
    cli_warn("--choice '%s': %s", text, why);
    free(why);
    return code;
}

// Reading -------------------------------------------------------------------------------------------------------------

// What one link of the chain answers the call with: all others are left out.
static hone_status ask_link(const duel *d, hone_source link, hone_decision *out, hone_error *why)
{
    hone_link others[HONE_SOURCE_COUNT];
    hone_context *context = NULL;
    size_t count = 0;
    memset(others, 0, sizeof others);
    for (int i = HONE_SOURCE_NONE + 1; i < HONE_SOURCE_COUNT; i++)
        if (i != (int)link) others[count++].source = (hone_source)i;
    hone_status status = hone_context_derive_chain(d->cli->rt, NULL, others, count, HONE_KEEP_DEFAULT, &context, why);
    if (status != HONE_OK) return status;
    hone_context *previous = hone_context_enter(context);
    status = hone_decide_call(d->op, d->call, out, why);
    (void)hone_context_enter(previous);
    hone_context_release(&context);
    return status;
}

static void append_text(void *ctx, const char *text, size_t size)
{
    cli_text_append(ctx, text, size);
}

// Why a link has no answer, in its own words.
static void read_reason(const duel *d, hone_source link, char *out, size_t size)
{
    cli_text text;
    size_t i;
    const json_t *row;
    cli_text_init(&text);
    json_t *root = hone_explain(d->op, d->call, HONE_JSON, append_text, &text, NULL) == HONE_OK
                       ? json_loads(cli_text_string(&text), 0, NULL)
                       : NULL;
    json_array_foreach(json_object_get(root, "chain"), i, row)
    {
        const char *name = json_string_value(json_object_get(row, "link"));
        const char *why = json_string_value(json_object_get(row, "why"));
        if (name != NULL && why != NULL && strcmp(name, hone_source_name(link)) == 0) snprintf(out, size, "%s", why);
    }
    json_decref(root);
    cli_text_deinit(&text);
}

static int take_answer(duel *d, const char *text, hone_source link, const char *else_say)
{
    hone_decision decision = {0};
    hone_error why = {0};
    hone_choice *choice = &d->choices[d->count];
    const hone_status status = ask_link(d, link, &decision, &why);
    if (status != HONE_OK && status != HONE_NOT_FOUND) return refuse(text, cli_exit_code(status), "%s", why.message);
    if (status == HONE_OK)
        choice->kernel = cli_kernel_named(d->cli, d->op, decision.kernel, decision.platform, decision.backend);
    else
        read_reason(d, link, why.message, sizeof why.message);
    if (status != HONE_OK || choice->kernel == NULL)
        return refuse(text, EXIT_NO, "%s: %s%s", hone_call_text(d->call), why.message, else_say);
    choice->config = decision.config;
    return EXIT_DONE;
}

static void list_names(const duel *d, cli_text *out)
{
    for (size_t i = 0; i < d->kernel_count; i++) {
        const hone_kernel *kernel = hone_kernel_of(d->kernels[i]);
        if (!kernel->is_reference) cli_text_format(out, "%s%s", out->size > 0 ? ", " : "", kernel->name);
    }
}

static int fail_unknown(const duel *d, const char *text, int size)
{
    char given[HONE_NAME_SIZE];
    cli_meant meant = {.given = given, .before = ""};
    cli_text names;
    cli_text_init(&names);
    list_names(d, &names);
    snprintf(given, sizeof given, "%.*s", size, text);
    for (size_t i = 0; i < d->kernel_count; i++)
        cli_meant_by(&meant, hone_kernel_of(d->kernels[i])->name);
    int status = refuse(
        text, EXIT_USAGE, "unknown kernel '%s' of %s%s; expected default, stored, or one of %s", given,
        hone_op_name(d->op), cli_meant_text(&meant), cli_text_string(&names));
    cli_text_deinit(&names);
    return status;
}

// The kernel of this name that can run the call; else any of this name, with the reason in why.
static const hone_kernel_ref *find_kernel(const duel *d, const char *name, size_t size, hone_error *why)
{
    const hone_kernel_ref *found = NULL;
    for (size_t i = 0; i < d->kernel_count; i++) {
        const char *its = hone_kernel_of(d->kernels[i])->name;
        if (strlen(its) != size || memcmp(its, name, size) != 0) continue;
        found = d->kernels[i];
        if (hone_kernel_check(found, d->call, d->device, why) == HONE_OK) {
            why->message[0] = '\0';
            return found;
        }
    }
    return found;
}

static hone_status read_config(
    const duel *d, const hone_kernel_ref *kernel, const char *text, hone_config *out, hone_error *err)
{
    if (text[0] == '\0') return hone_kernel_default(kernel, d->call, d->device, out, err);
    if (text[0] == '{') return hone_config_from_json(hone_kernel_space(kernel), text, strlen(text), out, err);
    return hone_config_from_text(hone_kernel_space(kernel), text, out, err);
}

static hone_status check_config(const duel *d, const hone_choice *choice, hone_error *err)
{
    hone_bound_space *space = NULL;
    hone_status status = hone_space_bind(hone_kernel_space(choice->kernel), d->call, d->device, &space, err);
    if (status == HONE_OK) status = hone_bound_space_check(space, &choice->config, err);
    hone_bound_space_release(&space);
    return status;
}

static int take_named(duel *d, const char *text)
{
    hone_error why = {0};
    hone_choice *choice = &d->choices[d->count];
    size_t name = strcspn(text, " \t\n{");
    const char *config = text + name;
    while (isspace((unsigned char)*config))
        config++;
    choice->kernel = find_kernel(d, text, name, &why);
    if (choice->kernel == NULL) return fail_unknown(d, text, (int)name);
    if (hone_kernel_of(choice->kernel)->is_reference)
        return refuse(text, EXIT_NO, "is the reference, which is never timed beside others");
    if (why.message[0] != '\0')
        return refuse(text, EXIT_NO, "the kernel cannot run %s: %s", hone_call_text(d->call), why.message);
    hone_status status = read_config(d, choice->kernel, config, &choice->config, &why);
    if (status == HONE_OK) status = check_config(d, choice, &why);
    return status == HONE_OK ? EXIT_DONE : refuse(text, EXIT_USAGE, "%s", why.message);
}

static int take(duel *d, const char *text)
{
    int status;
    if (strcmp(text, "stored") == 0)
        status = take_answer(d, text, HONE_SOURCE_STORE, "; hone tune stores a choice");
    else if (strcmp(text, "default") == 0)
        status = take_answer(d, text, HONE_SOURCE_HEURISTIC, "");
    else
        status = take_named(d, text);
    if (status == EXIT_DONE) d->count++;
    return status;
}

// Results -------------------------------------------------------------------------------------------------------------

static void print_document(const duel *d)
{
    json_t *choices = json_array();
    for (size_t i = 0; i < d->count; i++) {
        const hone_compared *one = &d->results[i];
        json_array_append_new(
            choices, json_pack(
                         "{s:s, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:i}", "kernel", one->kernel, "config",
                         json_loads(one->config, 0, NULL), "time_ns", one->time_ns, "ratio", one->ratio, "low",
                         one->low, "high", one->high, "low_ns", one->low_ns, "high_ns", one->high_ns, "samples",
                         (int)one->samples, "disturbed", (int)one->disturbed));
    }
    cli_print_json(json_pack("{s:s, s:o}", "call", hone_call_text(d->call), "choices", choices));
}

static void print_table(const duel *d)
{
    cli_say("%s\n", hone_call_text(d->call));
    cli_table *table = cli_table_new(8);
    cli_table_row(table, " ", "kernel", "time", "time / fastest", "95 %", "samples", "disturbed", "config");
    for (size_t i = 0; i < d->count; i++) {
        const hone_compared *one = &d->results[i];
        char time[32], ratio[32] = "-", interval[64] = "too few samples", samples[16], disturbed[16], config[256];
        if (one->samples >= LEAST_SAMPLES) {
            snprintf(ratio, sizeof ratio, "%.3fx", one->ratio);
            snprintf(interval, sizeof interval, "%.3f to %.3f", one->low, one->high);
        }
        snprintf(samples, sizeof samples, "%u", one->samples);
        snprintf(disturbed, sizeof disturbed, "%u", one->disturbed);
        hone_config_text(hone_kernel_space(d->choices[i].kernel), &d->choices[i].config, config, sizeof config);
        cli_table_row(
            table, " ", one->kernel, cli_time_text(one->time_ns, time), ratio, interval, samples, disturbed, config);
    }
    cli_table_print(table);
}

// A choice that is wrong, or does not run, is the answer no.
static int fail_measured(const hone_error *err)
{
    int status = cli_fail(err);
    return err->status == HONE_KERNEL_FAILED || err->status == HONE_UNSUPPORTED ? EXIT_NO : status;
}

static int hold(duel *d)
{
    hone_tune_options options;
    hone_error err;
    cli_tune_options(d->cli, &options);
    hone_status status = hone_compare(d->op, d->call, d->choices, d->count, &options, d->results, &err);
    cli_progress_end(d->cli);
    if (status != HONE_OK) return fail_measured(&err);
    if (d->cli->options.json)
        print_document(d);
    else
        print_table(d);
    return EXIT_DONE;
}

static int choose_and_hold(duel *d)
{
    const cli_names *given = &d->cli->options.choices;
    int status = EXIT_DONE;
    d->device = cli_device_of(d->cli, d->call);
    if (d->device == NULL) {
        hone_decision none;
        hone_error err;
        return hone_decide_call(d->op, d->call, &none, &err) == HONE_OK ? EXIT_WORLD : cli_fail(&err); // says why
    }
    d->kernel_count = cli_kernels(d->cli, d->op, &d->kernels);
    for (size_t i = 0; i < given->count && status == EXIT_DONE; i++)
        status = take(d, given->items[i]);
    if (status == EXIT_DONE) status = hold(d);
    hone_kernels_release(&d->kernels);
    return status;
}

int cli_choices(hone_cli *cli)
{
    duel d = {.cli = cli};
    hone_call *call = NULL;
    const size_t given = cli->options.choices.count;
    if (cli->count != 1) return cli_usage("%zu calls, expected one call with --choice (hone help bench)", cli->count);
    if (given < 2 || given > HONE_MOST_COMPARED)
        return cli_usage("%zu --choice, expected 2 to %d (hone help bench)", given, HONE_MOST_COMPARED);
    int status = cli_open(cli, HONE_POLICY_HEURISTIC);
    if (status == EXIT_DONE) status = cli_parse_call(cli, cli->arguments[0], &d.op, &call);
    d.call = call;
    if (status == EXIT_DONE) status = choose_and_hold(&d);
    hone_call_release(&call);
    return status;
}
