// hone key
#include "cli.h"

#include "base/hash.h"

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

// A canonical text is hashed as it stands, but for the newline that an editor left at its end.
static int key_of_spec(hone_cli *cli)
{
    hone_buffer text;
    int status = cli_read(cli->options.spec, &text);
    if (status != 0) return status;
    while (text.size > 0 && (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == '\r'))
        text.data[--text.size] = '\0';
    char key[HONE_KEY_SIZE];
    hone_hash_key(hone_buffer_string(&text), text.size, key);
    status = print_key(cli, key, hone_buffer_string(&text));
    hone_buffer_deinit(&text);
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
