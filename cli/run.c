// hone run: one call on made-up inputs, checked against the reference.
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TUNE_SECONDS = 30 }; // as hone_tune_options says

typedef struct outcome {
    hone_decision decision;
    double time_ns;
    hone_verified verified;
} outcome;

typedef struct answerer {
    const char *key;
    hone_source source;
} answerer;

static bool see_answerer(void *ctx, const hone_stats_row *row)
{
    answerer *a = ctx;
    if (row->key.key != NULL && strcmp(row->key.key, a->key) == 0) a->source = row->source;
    return true;
}

// Asked behind the runs: what is asked before them is in memory then, and they are answered from there.
static hone_status decide(
    hone_cli *cli,
    const hone_op *op,
    const hone_call *call,
    const hone_value *values,
    size_t count,
    hone_decision *out,
    hone_error *err)
{
    answerer by = {hone_call_key(call), HONE_SOURCE_NONE};
    hone_status status = hone_decide(op, values, count, out, err);
    if (status == HONE_OK) status = hone_stats(cli->rt, see_answerer, &by, err);
    if (status == HONE_OK && out->source == HONE_SOURCE_MEMORY && by.source != HONE_SOURCE_NONE)
        out->source = by.source;
    return status;
}

static hone_status run_and_verify(
    hone_cli *cli, const hone_op *op, const hone_call *call, const hone_inputs *inputs, outcome *out, hone_error *err)
{
    size_t count = 0;
    const hone_value *values = hone_inputs_values(inputs, &count);
    const hone_device device = hone_call_device(call);
    hone_status status = HONE_OK;
    // The first run prepares, and is the call that is recorded; the second is the one whose time is told.
    for (int i = 0; i < 2 && status == HONE_OK; i++) {
        const uint64_t start = cli_now_ns();
        status = hone_run(op, values, count, NULL, err);
        if (status == HONE_OK && device.type != HONE_DEVICE_CPU)
            status = hone_stream_synchronize(cli->rt, device, NULL, err);
        out->time_ns = (double)(cli_now_ns() - start);
        hone_record_enable(cli->rt, false);
    }
    if (status == HONE_OK) status = decide(cli, op, call, values, count, &out->decision, err);
    return status == HONE_OK ? hone_inputs_verify(inputs, &out->verified, err) : status;
}

static int print_outcome(const hone_cli *cli, const hone_call *call, const outcome *out)
{
    char time[32];
    const char *source = hone_source_name(out->decision.source);
    if (cli->options.json) {
        cli_print_json(json_pack(
            "{s:s, s:s, s:s, s:s, s:f, s:o, s:f, s:b, s:s?}", "call", hone_call_text(call), "kernel",
            out->decision.kernel, "platform", hone_platform_name(out->decision.platform), "source", source, "time_ns",
            out->time_ns, "max_error",
            isfinite(out->verified.max_error) ? json_real(out->verified.max_error) : json_null(), "tolerance", 1.0,
            "verified", out->verified.is_right, "wrong", out->verified.wrong[0] != '\0' ? out->verified.wrong : NULL));
    } else {
        cli_say(
            "%s\n%s/%s %s, answered by %s, %s\n", hone_call_text(call), hone_platform_name(out->decision.platform),
            out->decision.kernel, out->decision.config_json, source, cli_time_text(out->time_ns, time));
        if (!out->verified.has_reference)
            cli_say("there is no reference to check against\n");
        else if (out->verified.is_right)
            cli_say("verified against the reference, error %.3g of what is allowed\n", out->verified.max_error);
        else
            cli_say("WRONG: %s\n", out->verified.wrong);
    }
    return out->verified.is_right ? EXIT_DONE : EXIT_NO;
}

typedef struct looking {
    hone_store *store;
    hone_store_key key; // but for the call key
    bool found;
} looking;

static bool see(void *ctx, const hone_store_record *record)
{
    (void)record;
    *(bool *)ctx = true;
    return true;
}

static bool look_up(void *ctx, const hone_lookup_key *key)
{
    looking *l = ctx;
    l->key.key = key->key;
    for (int regime = 0; regime < HONE_REGIME_COUNT && !l->found; regime++)
        if (hone_store_get(l->store, HONE_RECORD_DECISION, &l->key, (hone_regime)regime, see, &l->found, NULL) !=
            HONE_OK)
            continue;
    return !l->found;
}

// Whether the user's store has a decision of a call, be it one that can be served or not.
static bool is_stored(hone_cli *cli, const hone_op *op, const hone_call *call)
{
    const hone_device_info *device = cli_device_of(cli, call);
    looking l = {.found = false};
    if (device == NULL || hone_store_of(cli->rt, HONE_STORE_OF_USER, &l.store, NULL) != HONE_OK) return false;
    l.key = (hone_store_key){
        .device = device->fingerprint,
        .algorithm = hone_op_name(op),
        .version = hone_signature_version(hone_op_signature(op))};
    return hone_call_keys(call, look_up, &l, NULL) == HONE_OK && l.found;
}

static void tell_of_what_is_stored(hone_status status, const hone_decision *decision)
{
    static const char *const names[] = {"HONE_FORCE", "HONE_DENY", "HONE_STABLE", "HONE_PLATFORMS"};
    bool is_guess = decision->source == HONE_SOURCE_HEURISTIC || decision->source == HONE_SOURCE_TRANSFER;
    cli_text rules = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = cli_variable(names[i]);
        if (value != NULL && value[0] != '\0')
            cli_text_format(&rules, "%s%s=%s", rules.size == 0 ? " under " : " and ", names[i], value);
    }
    if (status != HONE_OK || is_guess)
        cli_warn(
            "the stored decision for this call is not used here%s, and is kept: hone explain says why",
            cli_text_string(&rules));
    cli_text_deinit(&rules);
}

// What the chain has to guess is tuned, with its progress shown: a contest in silence looks like a command that hangs.
static int tune_first(hone_cli *cli, const hone_op *op, const hone_call *call, bool *is_tuned)
{
    hone_decision decision;
    hone_tune_options options;
    hone_result *result = NULL;
    hone_error err;
    const hone_status decided = hone_decide_call(op, call, &decision, NULL);
    if (decided == HONE_INVALID_ARGUMENT) return EXIT_DONE; // an override that no contest can follow: the run says so
    const bool is_guess =
        decided != HONE_OK || decision.source == HONE_SOURCE_HEURISTIC || decision.source == HONE_SOURCE_TRANSFER;
    if (!is_guess) return EXIT_DONE;
    cli_tune_options(cli, &options);
    if (!cli->progress)
        cli_warn(
            "this call is not tuned yet: tuning it first, for at most %d s (HONE_POLICY=heuristic skips this)",
            (int)TUNE_SECONDS);
    const hone_status tuned = hone_tune_text(cli->rt, cli->arguments[0], &options, &result, &err);
    cli_progress_end(cli);
    hone_result_release(&result);
    *is_tuned = tuned == HONE_OK;
    return tuned == HONE_CANCELLED || tuned == HONE_OUT_OF_MEMORY ? cli_fail(&err) : EXIT_DONE;
}

static int run_call(hone_cli *cli, const hone_op *op, const hone_call *call)
{
    hone_inputs *inputs = NULL;
    hone_error err;
    outcome out = {.time_ns = 0};
    const bool tunes = hone_policy_of(cli->rt, NULL) == HONE_POLICY_TUNE;
    // A contest would replace what is stored for the call, which a run must not: what cannot be served here and now, for
    // want of a library or a pack, may be the better choice everywhere else.
    const bool stays = tunes && is_stored(cli, op, call);
    bool is_tuned = false;
    hone_context *context = NULL;
    if (tunes && hone_context_derive(cli->rt, NULL, NULL, NULL, HONE_POLICY_HEURISTIC, &context, &err) != HONE_OK)
        return cli_fail(&err);
    hone_context *previous = hone_context_enter(context);
    int status = tunes && !stays ? tune_first(cli, op, call, &is_tuned) : EXIT_DONE;
    if (status == EXIT_DONE) {
        hone_status ran = hone_inputs_make(op, call, (uint64_t)cli->options.seed, &inputs, &err);
        const bool is_made = ran == HONE_OK;
        if (is_made) ran = run_and_verify(cli, op, call, inputs, &out, &err);
        if (is_tuned) out.decision.source = HONE_SOURCE_AUTOTUNE; // by this command, which then found it in memory
        if (is_made && stays && ran != HONE_INVALID_ARGUMENT) tell_of_what_is_stored(ran, &out.decision);
        status = ran == HONE_OK ? print_outcome(cli, call, &out) : cli_fail(&err);
    }
    hone_inputs_release(&inputs);
    (void)hone_context_enter(previous);
    hone_context_release(&context);
    return status;
}

int cli_run(hone_cli *cli)
{
    int status = cli_open(cli, HONE_POLICY_TUNE);
    if (status != 0) return status;
    const hone_op *op = NULL;
    hone_call *call = NULL;
    status = cli_parse_call(cli, cli->arguments[0], &op, &call);
    if (status == 0) status = run_call(cli, op, call);
    hone_call_release(&call);
    return status;
}
