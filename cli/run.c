// hone run: one call on made-up inputs, checked against the reference.
#include "cli.h"

#include "base/error.h"
#include "inputs.h"
#include "runtime/api/api.h"
#include "tune/worker/verify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct outcome {
    hone_decision decision;
    double time_ns, max_error;
    hone_yardstick yardstick;
    bool verified, has_reference;
    char wrong[400];
} outcome;

// The kernel that is the reference, found by its mark, or the one that the algorithm names.
static const hone_kernel_ref *reference_of(const hone_op *op)
{
    size_t count = 0;
    const hone_kernel_ref *const *kernels = hone_registry_list(op->algorithm, &count);
    const char *name = op->algorithm->algorithm.reference_kernel;
    for (size_t i = 0; i < count; i++)
        if (kernels[i]->kernel.is_reference || (name != NULL && strcmp(kernels[i]->kernel.name, name) == 0))
            return kernels[i];
    return NULL;
}

// The function of an algorithm that a program registered.
static hone_status run_function(const hone_op *op, const hone_call *call, const cli_inputs *reference, hone_error *err)
{
    static const int64_t no_config[HONE_MAX_PARAMETERS];
    hone_kernel kernel;
    hone_kernel_init(&kernel);
    kernel.name = "reference";
    kernel.algorithm = op->algorithm->name;
    kernel.platform = hone_platform_host();
    kernel.is_reference = true;
    kernel.run = op->algorithm->algorithm.reference;
    const hone_plan plan = {
        .say = hone_platform_say,
        .run = kernel.run,
        .config = no_config,
        .kernel = &kernel,
        .call = call,
        .device = op->rt->cpu};
    const hone_status status = plan.run(&plan, reference->values, NULL);
    if (status == HONE_OK) return HONE_OK;
    return hone_fail(
        err, HONE_KERNEL_FAILED, "run", "the reference of %s answers '%s'", op->algorithm->name,
        hone_status_name(status));
}

static hone_status compare(const hone_op *op, const cli_inputs *ours, const cli_inputs *reference, outcome *out)
{
    const hone_signature *signature = op->algorithm->signature;
    for (size_t i = 0; i < ours->count; i++) {
        const hone_parameter *parameter = hone_signature_parameter(signature, i);
        if (!parameter->is_result) continue;
        double largest = 0, error = 0;
        hone_error err = {.message = ""};
        (void)hone_verify_largest(&reference->tensors[i], &largest, NULL);
        out->yardstick = hone_verify_yardstick(&op->algorithm->algorithm.tolerance, ours->tensors[i].dtype, largest);
        hone_status status = hone_verify_compare(
            NULL, parameter->name, &ours->tensors[i], &reference->tensors[i], &out->yardstick, &error, &err);
        out->max_error = error > out->max_error ? error : out->max_error;
        if (status == HONE_OK) continue;
        snprintf(out->wrong, sizeof out->wrong, "%.390s", err.message);
        out->verified = false;
    }
    return HONE_OK;
}

static hone_status run_both(
    const hone_op *op,
    const hone_call *call,
    const cli_inputs *ours,
    const cli_inputs *reference,
    outcome *out,
    hone_error *err)
{
    hone_status status = hone_decide(op, ours->values, ours->count, &out->decision, err);
    // The first run prepares; the second is the one that is told.
    for (int i = 0; i < 2 && status == HONE_OK; i++) {
        uint64_t start = cli_now_ns();
        status = hone_run(op, ours->values, ours->count, NULL, err);
        if (status == HONE_OK) status = cli_inputs_wait(ours, err);
        out->time_ns = (double)(cli_now_ns() - start);
    }
    if (status == HONE_OK) status = cli_inputs_fetch(ours, err);
    const hone_kernel_ref *kernel = reference_of(op);
    const bool is_function = op->algorithm->algorithm.reference != NULL;
    if (status != HONE_OK || (kernel == NULL && !is_function)) return status;
    out->has_reference = out->verified = true;
    status = is_function ? run_function(op, call, reference, err)
                         : hone_kernel_run(kernel, reference->values, reference->count, NULL, err);
    return status == HONE_OK ? compare(op, ours, reference, out) : status;
}

static int print_outcome(const hone_cli *cli, const hone_call *call, const outcome *out)
{
    char time[32];
    const char *source = hone_source_name(out->decision.source);
    if (cli->options.json) {
        cli_print_json(json_pack(
            "{s:s, s:s, s:s, s:s, s:f, s:o, s:f, s:b, s:s?}", "call", hone_call_text(call), "kernel",
            out->decision.kernel, "platform", hone_platform_name(out->decision.platform), "source", source, "time_ns",
            out->time_ns, "max_error", isfinite(out->max_error) ? json_real(out->max_error) : json_null(), "tolerance",
            1.0, "verified", out->verified, "wrong", out->wrong[0] != '\0' ? out->wrong : NULL));
    } else {
        cli_say(
            "%s\n%s/%s %s, answered by %s, %s\n", hone_call_text(call), hone_platform_name(out->decision.platform),
            out->decision.kernel, out->decision.config_json, source, cli_time_text(out->time_ns, time));
        if (!out->has_reference)
            cli_say("there is no reference to check against\n");
        else if (out->verified)
            cli_say("verified against the reference, error %.3g of what is allowed\n", out->max_error);
        else
            cli_say("WRONG: %s\n", out->wrong);
    }
    return out->verified ? EXIT_DONE : EXIT_NO;
}

// A contest would replace what is stored for the call, which a run must not: what cannot be served here and now, for
// want of a library or a pack, may be the better choice everywhere else. True: something is stored, and no contest
// takes place.
static bool keep_what_is_stored(hone_cli *cli, const hone_op *op, const hone_call *call)
{
    hone_runtime *rt = cli->rt;
    if (rt->policy != HONE_POLICY_TUNE || !hone_runtime_has_entry(op, call)) return false;
    rt->policy = HONE_POLICY_HEURISTIC;
    return true;
}

static void tell_of_what_is_stored(hone_status status, const hone_decision *decision)
{
    bool is_guess = decision->source == HONE_SOURCE_HEURISTIC || decision->source == HONE_SOURCE_TRANSFER;
    if (status != HONE_OK || is_guess)
        fprintf(stderr, "hone: what is stored for this call cannot be served here, and stays: hone explain says why\n");
}

// What the chain has to guess is tuned, with its progress shown: a contest in silence looks like a command that hangs.
static int tune_first(hone_cli *cli, const hone_op *op, const hone_call *call, bool *is_tuned)
{
    hone_runtime *rt = cli->rt;
    hone_decision decision;
    hone_tune_options options;
    hone_result *result = NULL;
    hone_error err;
    if (rt->policy != HONE_POLICY_TUNE) return EXIT_DONE;
    rt->policy = HONE_POLICY_HEURISTIC;
    const hone_status decided = hone_decide_call(op, call, &decision, NULL);
    const bool is_guess =
        decided != HONE_OK || decision.source == HONE_SOURCE_HEURISTIC || decision.source == HONE_SOURCE_TRANSFER;
    if (!is_guess) return EXIT_DONE;
    cli_tune_options(cli, &options);
    options.stable = rt->stable;
    if (!cli->progress)
        fprintf(
            stderr,
            "hone: this call is not tuned yet: tuning it first, for at most %d s (HONE_POLICY=heuristic skips this)\n",
            (int)HONE_TUNE_SECONDS);
    const hone_status tuned = hone_tune_text(rt, cli->arguments[0], &options, &result, &err);
    cli_progress_end(cli);
    hone_result_release(&result);
    *is_tuned = tuned == HONE_OK;
    return tuned == HONE_CANCELLED || tuned == HONE_OUT_OF_MEMORY ? cli_fail(&err) : EXIT_DONE;
}

int cli_run(hone_cli *cli)
{
    int status = cli_open(cli, HONE_POLICY_TUNE);
    if (status != 0) return status;
    const hone_op *op = NULL;
    hone_call *call = NULL;
    status = cli_parse_call(cli, cli->arguments[0], &op, &call);
    bool is_tuned = false, is_stored = status == 0 && keep_what_is_stored(cli, op, call);
    cli_inputs ours = {0}, reference = {0};
    if (status == 0 && !is_stored) status = tune_first(cli, op, call, &is_tuned);
    if (status == 0) status = cli_inputs_make(&ours, op, call, CLI_ON_DEVICE, (uint64_t)cli->options.seed);
    if (status == 0) status = cli_inputs_make(&reference, op, call, CLI_ON_HOST, (uint64_t)cli->options.seed);
    if (status == 0) {
        outcome out = {.max_error = 0};
        hone_error err;
        hone_status ran = run_both(op, call, &ours, &reference, &out, &err);
        if (is_tuned) out.decision.source = HONE_SOURCE_AUTOTUNE; // by this command, which then found it in memory
        if (is_stored) tell_of_what_is_stored(ran, &out.decision);
        status = ran == HONE_OK ? print_outcome(cli, call, &out) : cli_fail(&err);
    }
    cli_inputs_deinit(&ours);
    cli_inputs_deinit(&reference);
    hone_call_release(&call);
    return status;
}
