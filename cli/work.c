// hone work: this machine's part of the queue.
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>

static void say(void *ctx, const hone_worked *worked)
{
    const hone_cli *cli = ctx;
    const hone_queued *job = worked->queued;
    const hone_result *result = worked->result;
    char time[32];
    cli_progress_end(cli);
    if (cli->options.json) return;
    const char *call = job->call != NULL ? job->call : job->key.algorithm;
    if (worked->reason != NULL) {
        cli_say("%s: %s\n", call, worked->reason);
    } else if (worked->is_known) {
        cli_say("%s: was decided already\n", call);
    } else {
        const hone_decision *decision = hone_result_size(result) > 0 ? hone_result_decision(result, 0) : NULL;
        cli_say(
            "%s: %s %s in %.1f s%s\n", call, decision != NULL ? decision->kernel : "decided",
            decision != NULL ? cli_time_text(decision->evidence.time_ns, time) : "", worked->seconds,
            worked->is_open ? "; which is the fastest was left open" : "");
    }
    fflush(stdout);
}

static void wait(void *ctx, const char *why)
{
    cli_progress_end(ctx);
    cli_warn("waiting: %s", why);
}

// What waits still, or was given up, is not tuned: a job at night is to see it.
static bool tell_left(const hone_work_report *report)
{
    if (report->paused > 0)
        cli_warn(
            "%" PRIu64 " call%s for a device here that is paused: hone queue pause --off lets workers go "
            "on, hone queue stat says what is paused",
            report->paused, report->paused == 1 ? " waits" : "s wait");
    if (report->standing_aside > 0)
        cli_warn(
            "%" PRIu64 " call%s set aside: hone queue list says why, hone queue add queues one again",
            report->standing_aside, report->standing_aside == 1 ? " is" : "s are");
    return report->paused + report->standing_aside > 0;
}

int cli_work(hone_cli *cli)
{
    hone_work_report report;
    hone_error err;
    int status = cli_open(cli, HONE_POLICY_TUNE);
    if (status == 0) status = cli_check_names(cli);
    if (status != 0) return status;
    hone_tune_options tune;
    cli_tune_options(cli, &tune);
    const hone_work_options options = {
        .struct_size = sizeof options,
        .tune = &tune,
        .device = cli->options.device,
        .until_empty = cli->options.until_empty,
        .no_fill = cli->options.no_recorded,
        .retries = (uint32_t)cli->options.retries,
        .say = say,
        .wait = wait,
        .ctx = cli,
    };
    const hone_status done = hone_work(cli->rt, &options, &report, &err);
    cli_progress_end(cli);
    if (cli->options.json)
        cli_print_json(json_pack(
            "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "queued", (json_int_t)report.queued, "tuned",
            (json_int_t)report.tuned, "again", (json_int_t)report.again, "known", (json_int_t)report.known, "failed",
            (json_int_t)report.failed, "aside", (json_int_t)report.aside, "lost", (json_int_t)report.lost, "paused",
            (json_int_t)report.paused, "standing_aside", (json_int_t)report.standing_aside));
    else if (
        done == HONE_OK || done == HONE_CANCELLED || report.tuned + report.again + report.failed + report.aside > 0)
        cli_say(
            "%" PRIu64 " tuned; %" PRIu64 " contests left open, %" PRIu64 " failed, %" PRIu64 " calls set aside\n",
            report.tuned, report.again, report.failed, report.aside);
    if (done != HONE_OK) return cli_fail(&err);
    return tell_left(&report) || report.aside > 0 ? EXIT_NO : EXIT_DONE;
}
