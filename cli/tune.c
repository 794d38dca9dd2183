// hone tune
#include "cli.h"

#include <stdio.h>
#include <string.h>

// Adds one call's result to what there is. *total is replaced.
static int add_result(hone_result **total, hone_result *more)
{
    if (*total == NULL) {
        *total = more;
        return 0;
    }
    hone_result *both = NULL;
    hone_error err;
    hone_status status = hone_result_merge(*total, more, &both, &err);
    hone_result_release(&more);
    if (status != HONE_OK) return cli_fail(&err);
    hone_result_release(total);
    *total = both;
    return 0;
}

static int tune_calls(hone_cli *cli, const hone_tune_options *options, hone_result **total)
{
    int worst = 0;
    for (size_t i = 0; i < cli->count && !cli_is_cancelled(); i++) {
        hone_result *result = NULL;
        hone_error err;
        hone_status status = hone_tune_text(cli->rt, cli->arguments[i], options, &result, &err);
        cli_progress_end(cli);
        if (status != HONE_OK) worst = cli_fail_call(cli, cli->arguments[i], &err);
        int added = result == NULL ? 0 : add_result(total, result);
        if (added != 0) return added;
    }
    return worst;
}

static int tune_recorded(hone_cli *cli, const hone_tune_options *options, hone_result **total)
{
    hone_error err;
    hone_status status = hone_tune_recorded(cli->rt, options, total, &err);
    cli_progress_end(cli);
    if (status != HONE_OK) return cli_fail(&err);
    if (hone_result_size(*total) == 0 && cli_result_code(*total) == EXIT_DONE && !cli->options.json)
        printf("every recorded call of the devices here is decided already, or none is recorded\n");
    return cli_result_code(*total);
}

int cli_tune(hone_cli *cli)
{
    if (cli->options.audit) return cli_audit(cli);
    if (cli->options.threshold > 0 || cli->options.update)
        return cli_usage("--threshold and --update go with --audit (hone help tune)");
    if (cli->options.recorded == (cli->count > 0))
        return cli_usage(
            "expected one of: calls, --recorded, --audit; got %s (hone help tune)",
            cli->count > 0 ? "calls and --recorded" : "none of them");
    int status = cli_check_file("--report", cli->options.report);
    if (status == 0 && cli->options.batch_seconds > 0 && !cli->options.recorded)
        status = cli_usage("--batch-seconds is for --recorded; calls that are named have --seconds each");
    if (status == 0) status = cli_open(cli, HONE_POLICY_TUNE);
    if (status == 0) status = cli->options.recorded ? cli_need_store(cli) : cli_need_named_store(cli);
    if (status == 0) status = cli_check_names(cli);
    if (status == 0) status = cli_check_kernel_of_calls(cli);
    if (status != 0) return status;
    hone_tune_options options;
    cli_tune_options(cli, &options);
    hone_result *total = NULL;
    status = cli->options.recorded ? tune_recorded(cli, &options, &total) : tune_calls(cli, &options, &total);
    if (total != NULL) {
        int printed = cli_print_result(cli, total);
        if (status == 0) status = printed;
        int stored = cli_say_stored(cli, total);
        if (status == 0) status = stored;
        int written = cli_write_report(cli, total);
        if (status == 0) status = written;
    }
    hone_result_release(&total);
    return status;
}
