// hone run: one call on made-up inputs, checked against the reference.
#include "cli.h"

#include "inputs.h"
#include "os/os.h"
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

// The kernel that is the reference, found by its mark.
static const hone_kernel_ref *reference_of(const hone_op *op)
{
    size_t count = 0;
    const hone_kernel_ref *const *kernels = hone_registry_list(op->algorithm, &count);
    for (size_t i = 0; i < count; i++)
        if (kernels[i]->kernel.is_reference) return kernels[i];
    return NULL;
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
    const hone_op *op, const cli_inputs *ours, const cli_inputs *reference, outcome *out, hone_error *err)
{
    hone_status status = hone_decide(op, ours->values, ours->count, &out->decision, err);
    // The first run prepares; the second is the one that is told.
    for (int i = 0; i < 2 && status == HONE_OK; i++) {
        uint64_t start = hone_os_now_ns();
        status = hone_run(op, ours->values, ours->count, NULL, err);
        if (status == HONE_OK) status = cli_inputs_wait(ours, err);
        out->time_ns = (double)(hone_os_now_ns() - start);
    }
    if (status == HONE_OK) status = cli_inputs_fetch(ours, err);
    const hone_kernel_ref *kernel = reference_of(op);
    if (status != HONE_OK || kernel == NULL) return status;
    out->has_reference = out->verified = true;
    status = hone_kernel_run(kernel, reference->values, reference->count, NULL, err);
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
        printf(
            "%s\n%s/%s %s, answered by %s, %s\n", hone_call_text(call), hone_platform_name(out->decision.platform),
            out->decision.kernel, out->decision.config_json, source, cli_time_text(out->time_ns, time));
        if (!out->has_reference)
            printf("there is no reference to check against\n");
        else if (out->verified)
            printf("verified against the reference, error %.3g of what is allowed\n", out->max_error);
        else
            printf("WRONG: %s\n", out->wrong);
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

int cli_run(hone_cli *cli)
{
    int status = cli_open(cli, HONE_POLICY_TUNE);
    if (status != 0) return status;
    const hone_op *op = NULL;
    hone_call *call = NULL;
    status = cli_parse_call(cli, cli->arguments[0], &op, &call);
    bool is_stored = status == 0 && keep_what_is_stored(cli, op, call);
    cli_inputs ours = {0}, reference = {0};
    if (status == 0) status = cli_inputs_make(&ours, op, call, CLI_ON_DEVICE, (uint64_t)cli->options.seed);
    if (status == 0) status = cli_inputs_make(&reference, op, call, CLI_ON_HOST, (uint64_t)cli->options.seed);
    if (status == 0) {
        outcome out = {.max_error = 0};
        hone_error err;
        hone_status ran = run_both(op, &ours, &reference, &out, &err);
        if (is_stored) tell_of_what_is_stored(ran, &out.decision);
        status = ran == HONE_OK ? print_outcome(cli, call, &out) : cli_fail(&err);
    }
    cli_inputs_deinit(&ours);
    cli_inputs_deinit(&reference);
    hone_call_release(&call);
    return status;
}
