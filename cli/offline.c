// hone offline
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

// A label that brings JSON is that JSON.
static json_t *label_row(const hone_operation *operation)
{
    json_t *payload = operation->payload != NULL ? json_loads(operation->payload, 0, NULL) : NULL;
    if (payload != NULL) return payload;
    return operation->label != NULL ? json_string(operation->label) : json_null();
}

static json_t *operation_row(const hone_operation *operation)
{
    json_t *count = operation->count < 0 ? json_null() : json_integer((json_int_t)operation->count);
    json_t *once = operation->once_bytes < 0 ? json_null() : json_integer((json_int_t)operation->once_bytes);
    return json_pack(
        "{s:s, s:s?, s:s?, s:o, s:o, s:s, s:s?, s:s?, s:b, s:s?, s:s?, s:s?, s:s, s:o}", "algorithm",
        operation->algorithm, "version", operation->version, "key", operation->key, "label", label_row(operation),
        "count", count, "matched", hone_match_name(operation->matched), "call", operation->call, "call_key",
        operation->call_key, "tunable", operation->tunable, "reason", operation->reason, "where", operation->path,
        "arrays", operation->arrays, "regime", operation->regime == HONE_COLD ? "cold" : "warm", "once_bytes", once);
}

static json_t *program_document(const char *path, const hone_program *program)
{
    json_t *operations = json_array();
    for (size_t i = 0; i < hone_program_operations(program); i++)
        json_array_append_new(operations, operation_row(hone_program_operation(program, i)));
    const int64_t step = hone_program_step_bytes(program);
    return json_pack(
        "{s:s, s:s, s:s, s:s?, s:o, s:o}", "program", path, "dialect", hone_program_dialect(program), "form",
        hone_program_form(program), "note", hone_program_note(program), "step_bytes",
        step < 0 ? json_null() : json_integer((json_int_t)step), "operations", operations);
}

static void append_argument(cli_text *out, const char *name, const json_t *value)
{
    if (json_is_null(value) || json_is_false(value)) return;
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    cli_text_format(out, "%s%s=", out->data[out->size - 1] == '(' ? "" : ", ", name);
    if (json_is_string(value))
        cli_text_put(out, json_string_value(value));
    else
        cli_text_put(out, text != NULL ? text : "?");
    free(text);
}

// What is known of an operation that has no call: the arguments of its label, else the arrays that it reads.
static void append_operation(cli_text *out, const hone_operation *operation)
{
    json_t *payload = operation->payload != NULL ? json_loads(operation->payload, 0, NULL) : NULL;
    const json_t *arguments = json_object_get(payload, "arguments");
    if (arguments == NULL) arguments = json_object_get(payload, "kwargs");
    if (arguments == NULL) arguments = payload;
    cli_text_format(out, "%s(", operation->algorithm);
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)arguments, name, value) append_argument(out, name, value);
    if (payload == NULL && operation->arrays != NULL) cli_text_put(out, operation->arrays);
    cli_text_char(out, ')');
    json_decref(payload);
}

// The call, or what is known of it, and why it is not tuned.
static void append_call(cli_text *out, const hone_operation *operation)
{
    if (operation->call != NULL)
        cli_text_put(out, operation->call);
    else
        append_operation(out, operation);
    if (operation->reason != NULL) cli_text_format(out, ": %s", operation->reason);
}

static void add_row(cli_table *table, const hone_operation *operation)
{
    char count[24] = "-";
    cli_text call;
    if (operation->count >= 0) snprintf(count, sizeof count, "%" PRId64, operation->count);
    cli_text_init(&call);
    append_call(&call, operation);
    // A label that brings its arguments needs no key; of others it was cut off.
    const char *key = operation->key != NULL ? operation->key : operation->payload != NULL ? "-" : "cut";
    cli_table_row(
        table, operation->tunable ? " " : "-", operation->algorithm, key, count, hone_match_name(operation->matched),
        operation->path != NULL ? operation->path : "-", cli_text_string(&call));
    cli_text_deinit(&call);
}

static const char *bytes_text(int64_t bytes, char out[32])
{
    const bool large = bytes >= 1000000;
    snprintf(out, 32, "%.1f %s", (double)bytes / (large ? 1e6 : 1e3), large ? "MB" : "kB");
    return out;
}

// Which calls are measured cold, and why.
static void print_cold(const hone_program *program)
{
    size_t cold = 0;
    char bytes[32];
    for (size_t i = 0; i < hone_program_operations(program); i++) {
        const hone_operation *operation = hone_program_operation(program, i);
        if (operation->regime != HONE_COLD) continue;
        if (cold++ == 0)
            cli_say(
                "  measured cold (--no-cold: are not), since a step reads %s, more than the caches hold:\n",
                bytes_text(hone_program_step_bytes(program), bytes));
        cli_say(
            "    %s reads %s that nothing else of a step reads\n",
            operation->call != NULL ? operation->call : operation->algorithm, bytes_text(operation->once_bytes, bytes));
    }
}

static void print_text(const char *path, const hone_program *program)
{
    size_t operations = hone_program_operations(program);
    cli_say("%s: %s, %zu operation%s\n", path, hone_program_form(program), operations, operations == 1 ? "" : "s");
    if (hone_program_note(program) != NULL) cli_say("  note: %s\n", hone_program_note(program));
    if (operations == 0) return;
    cli_table *table = cli_table_new(7);
    cli_table_row(table, " ", "operation", "key", "count", "matched", "where", "call");
    for (size_t i = 0; i < operations; i++)
        add_row(table, hone_program_operation(program, i));
    cli_table_print(table);
    print_cold(program);
}

static int read_program(hone_cli *cli, const char *path, hone_program **program)
{
    cli_text text;
    int status = cli_read(path, &text);
    if (status != 0) return status;
    hone_error err;
    hone_status read = hone_program_read(cli->rt, path, cli_text_string(&text), text.size, program, &err);
    cli_text_deinit(&text);
    return read == HONE_OK ? 0 : cli_fail(&err);
}

// Operations that were asked for and are not tuned, for their own sake.
static size_t count_left(const hone_cli *cli, const hone_program *program)
{
    size_t left = 0;
    for (size_t i = 0; i < hone_program_operations(program); i++) {
        const hone_operation *operation = hone_program_operation(program, i);
        left += !operation->tunable || (operation->matched == HONE_MATCH_OPERANDS && !cli->options.unproved);
    }
    return left;
}

// What the result does not tell: that nothing, or not all, could be tuned.
static int check_left(const hone_cli *cli, const char *path, const hone_program *program, const hone_result *result)
{
    const size_t operations = hone_program_operations(program), left = count_left(cli, program);
    if (hone_result_size(result) == 0) {
        cli_warn(
            operations == 0 ? "%s has no labelled operation: nothing was tuned"
                            : "%s: none of its operations could be tuned",
            path);
        return EXIT_NO;
    }
    if (left == 0 || cli->options.allow_missing) return EXIT_DONE;
    cli_warn(
        "%s: %zu of its %zu operations could not be tuned (--allow-missing: that is not a failure)", path, left,
        operations);
    return EXIT_NO;
}

static int tune_program(hone_cli *cli, const char *path, const hone_program *program)
{
    hone_tune_options options;
    cli_tune_options(cli, &options);
    hone_result *result = NULL;
    hone_error err;
    hone_status status = hone_offline(cli->rt, program, cli->options.unproved, &options, &result, &err);
    cli_progress_end(cli);
    int code = status == HONE_OK ? check_left(cli, path, program, result) : cli_fail(&err);
    if (result != NULL) {
        int printed = cli_print_result(cli, result);
        int tuned = cli_result_code(result);
        code = tuned != 0 ? tuned : code;
        code = code != 0 ? code : printed;
        int stored = cli_say_stored(cli, result);
        code = code != 0 ? code : stored;
    }
    hone_result_release(&result);
    return code;
}

// Why an operation's call is no hit of the store; NULL: it is one. reason has room for the words.
static const char *why_no_hit(hone_cli *cli, const hone_operation *operation, char *reason, size_t size)
{
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_decision decision;
    hone_error err;
    if (operation->call == NULL) return operation->reason;
    if (operation->matched == HONE_MATCH_OPERANDS && !(cli->options.unproved && operation->tunable)) {
        snprintf(
            reason, size, "%s", operation->reason != NULL ? operation->reason : "it was matched by its operands alone");
        return reason;
    }
    if (cli_parse_call(cli, operation->call, &op, &call) != 0) return "its call could not be read";
    hone_status status = hone_decide_call(op, call, &decision, &err);
    hone_call_release(&call);
    // Nothing is tuned here: what this process has in memory it found in a store, for a call with other such scalars.
    if (status == HONE_OK && (decision.source == HONE_SOURCE_STORE || decision.source == HONE_SOURCE_MEMORY))
        return NULL;
    if (status == HONE_OK)
        snprintf(reason, size, "answered by %s, not by the store", hone_source_name(decision.source));
    else
        snprintf(reason, size, "%s", err.message);
    return reason;
}

// For CI: every labelled operation is decided in the store. Tunes nothing.
static int expect_all(hone_cli *cli, const char *path, const hone_program *program)
{
    const size_t operations = hone_program_operations(program);
    json_t *missing = json_array();
    for (size_t i = 0; i < operations; i++) {
        char words[1024];
        const hone_operation *operation = hone_program_operation(program, i);
        const char *reason = why_no_hit(cli, operation, words, sizeof words);
        if (reason == NULL) continue;
        json_t *row = operation_row(operation);
        json_object_set_new(row, "reason", json_string(reason));
        json_array_append_new(missing, row);
        if (cli->options.json) continue;
        hone_operation shown = *operation;
        cli_text call;
        shown.reason = reason;
        cli_text_init(&call);
        append_call(&call, &shown);
        cli_say(
            "missing: %s at %s: %s\n", operation->key != NULL ? operation->key : operation->algorithm,
            operation->path != NULL ? operation->path : "-", cli_text_string(&call));
        cli_text_deinit(&call);
    }
    const size_t hits = operations - json_array_size(missing);
    if (cli->options.json)
        cli_print_json(json_pack(
            "{s:s, s:I, s:I, s:O}", "program", path, "operations", (json_int_t)operations, "hits", (json_int_t)hits,
            "missing", missing));
    else
        cli_say("%s: %zu of %zu operations are decided in the store\n", path, hits, operations);
    if (operations == 0) cli_warn("%s has no labelled operation", path);
    json_decref(missing);
    return operations > 0 && hits == operations ? EXIT_DONE : EXIT_NO;
}

static int answer_for(hone_cli *cli, const char *path, const hone_program *program)
{
    if (cli->options.expect_all) return expect_all(cli, path, program);
    if (cli->options.list && cli->options.json) cli_print_json(program_document(path, program));
    if (!cli->options.json) print_text(path, program);
    return cli->options.list ? EXIT_DONE : tune_program(cli, path, program);
}

int cli_offline(hone_cli *cli)
{
    static const char shown[] = "json store list pack program",
                      expected[] = "json store expect-all unproved pack program";
    int status = 0;
    if (cli->options.expect_all)
        status = cli_check_given(cli, "offline --expect-all", expected, "offline");
    else if (cli->options.list)
        status = cli_check_given(cli, "offline --list", shown, "offline");
    else if (cli->options.no_cold && cli->options.cold)
        status = cli_usage("--no-cold goes without --cold (hone help offline)");
    if (status == 0) status = cli_open(cli, cli->options.expect_all ? HONE_POLICY_HEURISTIC : HONE_POLICY_TUNE);
    if (status == 0) status = cli_check_names(cli);
    if (status == 0 && !cli->options.expect_all && !cli->options.list) status = cli_need_named_store(cli);
    if (status != 0) return status;
    int worst = 0;
    for (size_t i = 0; i < cli->count && !cli_is_cancelled(); i++) {
        hone_program *program = NULL;
        status = read_program(cli, cli->arguments[i], &program);
        if (status == 0) status = answer_for(cli, cli->arguments[i], program);
        hone_program_release(&program);
        worst = status != 0 ? status : worst;
    }
    return worst;
}
