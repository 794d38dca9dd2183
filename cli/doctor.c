// hone doctor: one row a check, each with what to do about it.
#include "cli.h"

typedef struct rows {
    const hone_cli *cli;
    json_t *list;
    bool all;
} rows;

static bool show(void *ctx, const hone_checkup *checkup)
{
    rows *seen = ctx;
    seen->all = seen->all && checkup->ok;
    json_array_append_new(
        seen->list, json_pack(
                        "{s:s, s:b, s:s, s:s?}", "name", checkup->name, "ok", checkup->ok, "detail", checkup->detail,
                        "advice", checkup->advice));
    if (seen->cli->options.json) return true;
    cli_say("%-12s %-6s %s\n", checkup->name, checkup->ok ? "ok" : "FAILED", checkup->detail);
    if (checkup->advice != NULL) cli_say("%-12s        %s\n", "", checkup->advice);
    return true;
}

int cli_doctor(hone_cli *cli)
{
    hone_error err;
    int status = cli_open_unlocked(cli, HONE_POLICY_HEURISTIC);
    if (status != 0) return status;
    rows seen = {.cli = cli, .list = json_array(), .all = true};
    const hone_status done = hone_doctor(cli->rt, cli_lock_path(cli), show, &seen, &err);
    if (cli->options.json) cli_print_json(json_pack("{s:O}", "checks", seen.list));
    json_decref(seen.list);
    if (done != HONE_OK) return cli_fail(&err);
    return seen.all ? EXIT_DONE : EXIT_NO;
}
