// hone explain
#include "cli.h"

#include <stdio.h>
#include <string.h>

static void write_out(void *ctx, const char *text, size_t size)
{
    hone_buffer_append(ctx, text, size);
}

// Whether what is said is about a library of others.
static bool names_library(const char *text)
{
    return strstr(text, "openblas") != NULL || strstr(text, "onednn") != NULL;
}

int cli_explain(hone_cli *cli)
{
    int status = cli_open(cli, HONE_POLICY_HEURISTIC);
    if (status != 0) return status;
    const hone_op *op = NULL;
    hone_call *call = NULL;
    status = cli_parse_call(cli, cli->arguments[0], &op, &call);
    if (status != 0) return status;
    hone_buffer text;
    hone_buffer_init(&text, hone_allocator_system());
    hone_error err;
    if (hone_explain(op, call, cli->options.json ? HONE_JSON : HONE_TEXT, write_out, &text, &err) != HONE_OK)
        status = cli_fail(&err);
    else
        fwrite(hone_buffer_string(&text), 1, text.size, stdout);
    if (status == 0 && !cli->options.json && names_library(hone_buffer_string(&text))) cli_print_libraries(cli);
    bool answered = strstr(hone_buffer_string(&text), cli->options.json ? "\"source\":\"" : "answered by ") != NULL;
    hone_buffer_deinit(&text);
    hone_call_release(&call);
    return status != 0 ? status : answered ? EXIT_DONE : EXIT_NO;
}
