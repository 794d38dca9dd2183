// hone offline
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>

static json_t *operation_row(const hone_operation *operation)
{
    json_t *count = operation->count < 0 ? json_null() : json_integer((json_int_t)operation->count);
    return json_pack(
        "{s:s, s:s?, s:s?, s:s?, s:o, s:s, s:s?, s:s?, s:b, s:s?}", "algorithm", operation->algorithm, "version",
        operation->version, "key", operation->key, "label", operation->label, "count", count, "matched",
        hone_match_name(operation->matched), "call", operation->call, "call_key", operation->call_key, "tunable",
        operation->tunable, "reason", operation->reason);
}

static void print_json(const char *path, const hone_program *program)
{
    json_t *operations = json_array();
    for (size_t i = 0; i < hone_program_operations(program); i++)
        json_array_append_new(operations, operation_row(hone_program_operation(program, i)));
    cli_print_json(json_pack(
        "{s:s, s:s, s:s, s:s?, s:o}", "program", path, "dialect", hone_program_dialect(program), "form",
        hone_program_form(program), "note", hone_program_note(program), "operations", operations));
}

static void print_text(const char *path, const hone_program *program)
{
    size_t operations = hone_program_operations(program);
    printf("%s: %s, %zu operation%s\n", path, hone_program_form(program), operations, operations == 1 ? "" : "s");
    if (hone_program_note(program) != NULL) printf("  note: %s\n", hone_program_note(program));
    if (operations == 0) return;
    cli_table *table = cli_table_new(6);
    cli_table_row(table, " ", "operation", "key", "count", "matched", "call");
    for (size_t i = 0; i < operations; i++) {
        const hone_operation *operation = hone_program_operation(program, i);
        char count[24] = "-";
        if (operation->count >= 0) snprintf(count, sizeof count, "%" PRId64, operation->count);
        cli_table_row(
            table, operation->tunable ? " " : "-", operation->algorithm,
            operation->key == NULL ? "cut" : operation->key, count, hone_match_name(operation->matched),
            operation->tunable ? operation->call : operation->reason);
    }
    cli_table_print(table);
}

static int read_program(hone_cli *cli, const char *path, hone_program **program)
{
    hone_buffer text;
    int status = cli_read(path, &text);
    if (status != 0) return status;
    hone_error err;
    hone_status read = hone_program_read(cli->rt, path, hone_buffer_string(&text), text.size, program, &err);
    hone_buffer_deinit(&text);
    return read == HONE_OK ? 0 : cli_fail(&err);
}

static int tune_program(hone_cli *cli, const char *path, const hone_program *program)
{
    hone_tune_options options;
    cli_tune_options(cli, &options);
    hone_result *result = NULL;
    hone_error err;
    hone_status status = hone_offline(cli->rt, program, cli->options.unproved, &options, &result, &err);
    cli_progress_end(cli);
    int code = status == HONE_OK ? 0 : cli_fail(&err);
    if (code == 0 && hone_result_size(result) == 0) {
        size_t operations = hone_program_operations(program);
        fprintf(
            stderr,
            operations == 0 ? "hone: %s has no labelled operation: nothing was tuned\n"
                            : "hone: %s: none of its operations could be tuned\n",
            path);
        code = EXIT_NO;
    }
    if (result != NULL) {
        int printed = cli_print_result(cli, result);
        code = code != 0 ? code : cli_result_code(result);
        code = code != 0 ? code : printed;
        int stored = cli_say_stored(cli, result);
        code = code != 0 ? code : stored;
    }
    hone_result_release(&result);
    return code;
}

int cli_offline(hone_cli *cli)
{
    int status = cli_open(cli, HONE_POLICY_TUNE);
    if (status == 0) status = cli_check_names(cli);
    if (status != 0) return status;
    int worst = 0;
    for (size_t i = 0; i < cli->count && !cli_cancel; i++) {
        hone_program *program = NULL;
        status = read_program(cli, cli->arguments[i], &program);
        if (status == 0 && cli->options.list && cli->options.json) print_json(cli->arguments[i], program);
        if (status == 0 && !cli->options.json) print_text(cli->arguments[i], program);
        if (status == 0 && !cli->options.list) status = tune_program(cli, cli->arguments[i], program);
        hone_program_release(&program);
        worst = status != 0 ? status : worst;
    }
    return worst;
}
