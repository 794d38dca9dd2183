// hone explain
#include "cli.h"

#include <stdio.h>
#include <string.h>

static void write_out(void *ctx, const char *text, size_t size)
{
    cli_text_append(ctx, text, size);
}

// Whether what is said is about a library of others.
static bool names_library(const char *text)
{
    return strstr(text, "openblas") != NULL || strstr(text, "onednn") != NULL;
}

// A kernel's row begins with two spaces, what is said of it in more lines with four.
static bool is_row(const char *line)
{
    return line[0] == ' ' && line[1] == ' ' && line[2] != ' ';
}

// Whether the third word of a kernel's row says that it cannot run the call here.
static bool is_elsewhere(const char *line)
{
    char platform[64], name[96], can[8];
    return sscanf(line, "%63s %95s %7s", platform, name, can) == 3 && strcmp(can, "no") == 0;
}

// The explanation; without --all what cannot run here is one line.
static void print_text(const hone_cli *cli, const char *text)
{
    bool in_kernels = false, hides = false;
    size_t elsewhere = 0;
    for (size_t size; *text != '\0'; text += size + (text[size] == '\n')) {
        size = strcspn(text, "\n");
        if (text[0] != ' ') {
            if (elsewhere > 0) cli_say_elsewhere("  ", elsewhere);
            in_kernels = size == strlen("kernels") && strncmp(text, "kernels", size) == 0;
            elsewhere = 0;
            hides = false;
        } else if (in_kernels && is_row(text)) {
            hides = !cli->options.all && is_elsewhere(text);
            elsewhere += hides;
        }
        if (!hides) cli_say("%.*s\n", (int)size, text);
    }
    if (elsewhere > 0) cli_say_elsewhere("  ", elsewhere);
}

int cli_explain(hone_cli *cli)
{
    int status = cli_open(cli, HONE_POLICY_HEURISTIC);
    if (status != 0) return status;
    const hone_op *op = NULL;
    hone_call *call = NULL;
    status = cli_parse_call(cli, cli->arguments[0], &op, &call);
    if (status != 0) return status;
    cli_text text;
    cli_text_init(&text);
    hone_error err;
    if (hone_explain(op, call, cli->options.json ? HONE_JSON : HONE_TEXT, write_out, &text, &err) != HONE_OK)
        status = cli_fail(&err);
    else
        cli->options.json ? (void)fwrite(cli_text_string(&text), 1, text.size, stdout)
                          : print_text(cli, cli_text_string(&text));
    if (status == 0 && !cli->options.json && names_library(cli_text_string(&text))) cli_print_libraries(cli);
    bool answered = strstr(cli_text_string(&text), cli->options.json ? "\"source\":\"" : "answered by ") != NULL;
    cli_text_deinit(&text);
    hone_call_release(&call);
    return status != 0 ? status : answered ? EXIT_DONE : EXIT_NO;
}
