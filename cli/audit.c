// hone tune --audit
#include "cli.h"

#include <stdio.h>
#include <string.h>

static const double default_threshold = 5; // percent

static const char *name_of(const hone_audited *audited)
{
    return audited->call != NULL ? audited->call : audited->key;
}

static const char *verdict_of(const hone_audited *audited, double threshold)
{
    if (!audited->served) return "not served";
    if (audited->no_call) return "no call";
    if (audited->failure != HONE_FAILURE_NONE) return hone_failure_name(audited->failure);
    if (!audited->passed) return 100 * audited->regret_low > threshold ? "slower than another" : "slower than it was";
    if (audited->flipped) return "right enough";
    return audited->regret > 0 && audited->regret_low <= 0 ? "not surely beaten" : "right";
}

// The kernel is not registered here (its pack or program is not), or cannot run: nothing can be said of the choice.
static bool is_out_of_reach(const hone_cli *cli, const hone_audited *audited)
{
    if (audited->served) return audited->failure == HONE_FAILURE_UNSUPPORTED;
    size_t count = 0;
    const hone_kernel_ref **kernels = NULL;
    bool is_here = false;
    if (hone_registry_kernels(cli->rt, audited->algorithm, &kernels, &count, NULL) != HONE_OK) return true;
    for (size_t i = 0; i < count; i++)
        is_here = is_here || strcmp(hone_kernel_of(kernels[i])->name, audited->kernel) == 0;
    hone_kernels_release(&kernels);
    return !is_here;
}

// The worst of the choices: one that does not pass, else one that was not looked at.
static int judge(const hone_cli *cli, const hone_audit *audit, uint32_t *out_of_reach)
{
    int status = hone_audit_size(audit) > 0 ? EXIT_DONE : EXIT_NO; // a gate that looked at nothing does not pass
    *out_of_reach = 0;
    for (size_t i = 0; i < hone_audit_size(audit); i++) {
        const hone_audited *audited = hone_audit_choice(audit, i);
        const bool is_far = !audited->no_call && is_out_of_reach(cli, audited);
        *out_of_reach += is_far;
        if (is_far || audited->no_call) {
            if (status == EXIT_DONE) status = EXIT_WORLD;
        } else if (!audited->passed) {
            status = EXIT_NO;
        }
    }
    return status;
}

static void print_row(cli_table *table, const hone_audited *audited, double threshold)
{
    char time[32] = "", drift[32] = "", regret[64] = "", fastest[HONE_NAME_SIZE + 40] = "", share[32] = "";
    if (audited->time_ns > 0) {
        cli_time_text(audited->time_ns, time);
        snprintf(drift, sizeof drift, "%+.1f %%", 100 * audited->drift);
        snprintf(
            regret, sizeof regret, "%.1f %% (%.1f to %.1f)", 100 * audited->regret, 100 * audited->regret_low,
            100 * audited->regret_high);
        snprintf(fastest, sizeof fastest, "%s", audited->regret > 0 ? audited->best_kernel : "itself");
        if (audited->default_ns > 0) snprintf(share, sizeof share, "%.2fx", audited->default_ns / audited->time_ns);
    }
    cli_table_row(
        table, audited->passed ? " " : "*", name_of(audited), audited->kernel, time, drift, regret, fastest, share,
        verdict_of(audited, threshold));
}

static void print_fallen(const hone_audited *audited)
{
    char time[32] = "";
    const char *name = name_of(audited);
    if (audited->taken_back && audited->next_kernel[0] == '\0')
        cli_say("  %s: taken back, and no other that was measured passes: the chain decides (hone explain)\n", name);
    if (audited->next_kernel[0] != '\0') {
        cli_time_text(audited->next_ns, time);
        cli_say(
            "  %s: %s: %s %s, %s when it was tuned\n", name, audited->taken_back ? "taken back; now" : "the next best",
            audited->next_kernel, audited->next_config, time);
    }
    if (audited->pinned[0] != '\0')
        cli_say(
            "  %s: %s pins %s still: hone lock writes what the store has now\n", name, audited->pinned,
            audited->kernel);
}

static void print_notes(const hone_audited *audited)
{
    if (audited->changed[0] != '\0')
        cli_say("  %s: measured in another environment: %s\n", name_of(audited), audited->changed);
    if (audited->reason[0] != '\0') cli_say("  %s: %s\n", name_of(audited), audited->reason);
    print_fallen(audited);
    if (audited->flipped)
        cli_say(
            "  %s: %s %s, stored; faster now: %s %s\n", name_of(audited), audited->kernel, audited->config,
            audited->best_kernel, audited->best_config);
}

static void print_sum(const hone_audit *audit, double threshold)
{
    hone_audit_summary sum;
    hone_audit_sum(audit, &sum);
    cli_say("%u of %u choice%s measured", sum.measured, sum.choices, cli_plural(sum.choices));
    if (sum.measured > 0)
        cli_say(
            ": regret %.2f %% in the mean, %.2f %% at worst; %u flipped (%.0f %%); drift %+.1f %% in the median",
            100 * sum.mean_regret, 100 * sum.worst_regret, sum.flipped, 100 * sum.flip_rate, 100 * sum.median_drift);
    cli_say("\n");
    if (sum.changed > 0) cli_say("%u were measured in another environment\n", sum.changed);
    if (sum.not_served > 0)
        cli_say(
            "%u %s not served by this library (hone store prune drops %s)\n", sum.not_served,
            sum.not_served == 1 ? "is" : "are", sum.not_served == 1 ? "it" : "them");
    if (sum.no_call > 0)
        cli_say(
            "%u not looked at: no call that can be read is stored with %s\n", sum.no_call,
            sum.no_call == 1 ? "it" : "them");
    if (sum.failed > 0) cli_say("%u rejected, %u of them taken back\n", sum.failed, sum.taken_back);
    if (sum.past > sum.failed) cli_say("%u past the threshold of %g %%\n", sum.past - sum.failed, threshold);
}

static void print_audit(const hone_audit *audit, double threshold)
{
    cli_table *table = cli_table_new(9);
    cli_table_marked(table);
    cli_table_row(table, " ", "call", "kernel", "time", "drift", "regret (95 %)", "fastest", "default", "choice");
    for (size_t i = 0; i < hone_audit_size(audit); i++)
        print_row(table, hone_audit_choice(audit, i), threshold);
    cli_table_print(table);
    for (size_t i = 0; i < hone_audit_size(audit); i++)
        print_notes(hone_audit_choice(audit, i));
    print_sum(audit, threshold);
}

static int print_document(const hone_audit *audit)
{
    char *document = NULL;
    hone_error err;
    if (hone_audit_json(audit, &document, &err) != HONE_OK) return cli_fail(&err);
    fputs(document, stdout);
    hone_text_release(&document);
    return EXIT_DONE;
}

// Tunes the choices that are past the threshold anew, and stores what comes of it.
static int update(hone_cli *cli, const hone_audit *audit)
{
    hone_tune_options options;
    cli_tune_options(cli, &options);
    options.fresh = true;
    int worst = EXIT_DONE;
    for (size_t i = 0; i < hone_audit_size(audit) && !cli_is_cancelled(); i++) {
        const hone_audited *audited = hone_audit_choice(audit, i);
        if (audited->passed || audited->no_call || audited->call == NULL) continue;
        hone_result *result = NULL;
        hone_error err;
        options.regime = audited->regime;
        hone_status status = hone_tune_text(cli->rt, audited->call, &options, &result, &err);
        cli_progress_end(cli);
        if (status != HONE_OK) worst = cli_fail(&err);
        if (result != NULL && !cli->options.json) (void)cli_print_result(cli, result);
        hone_result_release(&result);
    }
    return worst;
}

int cli_audit(hone_cli *cli)
{
    static const char taken[] = "json store seconds wait seed no-store in-process audit threshold update pack program";
    int status = cli_check_given(cli, "tune --audit", taken, "tune");
    double threshold = cli->options.threshold > 0 ? cli->options.threshold : default_threshold;
    if (status == EXIT_DONE) status = cli_find_store(cli);
    if (status == EXIT_DONE) status = cli_open(cli, HONE_POLICY_HEURISTIC);
    if (status == EXIT_DONE) status = cli_check_worker(cli);
    if (status != EXIT_DONE) return status;
    hone_tune_options options;
    cli_tune_options(cli, &options);
    hone_audit *audit = NULL;
    hone_error err;
    hone_status found = hone_tune_audit(
        cli->rt, (const char *const *)cli->arguments, cli->count, threshold / 100, &options, &audit, &err);
    cli_progress_end(cli);
    if (found != HONE_OK) status = cli_fail(&err);
    if (audit == NULL) return status;
    hone_audit_summary sum;
    hone_audit_sum(audit, &sum);
    int printed = EXIT_DONE;
    if (cli->options.json)
        printed = print_document(audit);
    else if (sum.choices == 0)
        cli_say("the store has no choice for this machine\n");
    else
        print_audit(audit, threshold);
    if (cli->options.update && status == EXIT_DONE) status = update(cli, audit);
    uint32_t out_of_reach = 0;
    const int verdict = judge(cli, audit, &out_of_reach);
    hone_audit_release(&audit);
    if (sum.no_call > 0)
        cli_warn(
            "%u choice%s not looked at: no call that can be read is stored with %s: tune the call, or import the "
            "choice with its call or spec",
            sum.no_call, sum.no_call == 1 ? " was" : "s were", sum.no_call == 1 ? "it" : "them");
    if (out_of_reach > 0)
        cli_warn(
            "%u choice%s not looked at: the kernel is not here, or cannot run here (name its pack with --pack, "
            "its program with --program)",
            out_of_reach, out_of_reach == 1 ? " was" : "s were");
    if (status == EXIT_DONE && printed == EXIT_DONE && (!cli->options.update || verdict == EXIT_WORLD))
        status = verdict;
    return status == EXIT_DONE ? printed : status;
}
