// hone key
#include "cli.h"

#include <stdio.h>
#include <string.h>

static int print_key(hone_cli *cli, const char *key, const char *spec)
{
    if (cli->options.json)
        cli_print_json(json_pack("{s:s, s:s}", "key", key, "spec", spec));
    else
        printf("%s\n%s\n", key, spec);
    return EXIT_DONE;
}

// What hone and ejkernel make canonical texts of has these members.
static int check_spec(const char *file, const cli_text *text)
{
    static const char *const members[] = {"args_spec", "kwargs_spec"};
    json_error_t why;
    hone_error err = {.status = HONE_CORRUPT};
    json_t *document = json_loadb(cli_text_string(text), text->size, JSON_DECODE_ANY, &why);
    if (document == NULL)
        snprintf(err.message, sizeof err.message, "line %d, column %d: %s", why.line, why.column, why.text);
    for (size_t i = 0; i < sizeof members / sizeof *members && err.message[0] == '\0'; i++)
        if (json_object_get(document, members[i]) == NULL)
            snprintf(
                err.message, sizeof err.message,
                "it is not the canonical text of a call: expected a JSON object with \"args_spec\" and "
                "\"kwargs_spec\" (hone key CALL prints one): \"%s\" is missing",
                members[i]);
    json_decref(document);
    return err.message[0] == '\0' ? 0 : cli_fail_in(file, &err);
}

// A canonical text is hashed as it stands, but for the newline that an editor left at its end.
static int key_of_spec(hone_cli *cli)
{
    cli_text text;
    int status = cli_read(cli->options.spec, &text);
    if (status != 0) return status;
    while (text.size > 0 && (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == '\r'))
        text.data[--text.size] = '\0';
    char key[65];
    cli_sha256(cli_text_string(&text), text.size, key);
    key[16] = '\0';
    status = check_spec(cli->options.spec, &text);
    if (status == 0) status = print_key(cli, key, cli_text_string(&text));
    cli_text_deinit(&text);
    return status;
}

int cli_key(hone_cli *cli)
{
    if (cli->options.spec != NULL) {
        if (cli->count > 0) return cli_usage("--spec FILE and a call: give one of them");
        return key_of_spec(cli);
    }
    if (cli->count == 0) return cli_usage("expected a call, or --spec FILE");
    int status = cli_open(cli, HONE_POLICY_TUNE);
    if (status != 0) return status;
    const hone_op *op = NULL;
    hone_call *call = NULL;
    status = cli_parse_call(cli, cli->arguments[0], &op, &call);
    if (status == 0) status = print_key(cli, hone_call_key(call), hone_call_spec(call));
    hone_call_release(&call);
    return status;
}
