// A function of the program that replaces a link of the chain: calls it, and checks whether its answer can be followed.
#include "runtime/links/links.h"

#include "base/assert.h"
#include "base/error.h"
#include "runtime/links/trust.h"

#include <string.h>

static const char where[] = "decide";

// Runs the function under the context that its own was derived from, so that it may query the chain that it has
// changed. No lock of hone is held during the call.
static hone_status call(
    const hone_request *request, const hone_context_link *own, hone_link_answer *answer, hone_error *why)
{
    const hone_link *link = &own->link;
    const hone_link_question question = {
        .op = request->op,
        .call = request->call,
        .device = request->device->fingerprint,
        .source = link->source,
        .policy = hone_request_policy(request),
        .explains = request->explaining,
    };
    memset(answer, 0, sizeof *answer);
    hone_context *previous = hone_context_enter(own->under);
    hone_status status = link->find(link->ctx, &question, answer, why);
    hone_context_enter(previous);
    answer->kernel[sizeof answer->kernel - 1] = answer->config[sizeof answer->config - 1] = '\0';
    return status;
}

static hone_status find_kernel(
    const hone_request *request, const hone_link_answer *answer, const hone_kernel_ref **out, hone_error *why)
{
    const hone_algorithm_entry *algorithm = request->op->algorithm;
    *out = hone_kernel_for_device(algorithm, answer->kernel, answer->platform, request->device);
    if (*out != NULL) return HONE_OK;
    return hone_fail(
        why, HONE_INVALID_ARGUMENT, where, "it names kernel '%s', which %s does not have (hone list %s shows them)",
        answer->kernel, algorithm->name, algorithm->name);
}

// An answer that names something unknown is an error of the function; an answer that cannot run this call leaves the
// call to the next link.
static hone_status follow(
    const hone_request *request,
    const hone_link *link,
    const hone_link_answer *answer,
    hone_decision *out,
    hone_error *why)
{
    const hone_kernel_ref *kernel;
    hone_config config;
    hone_status status = find_kernel(request, answer, &kernel, why);
    if (status != HONE_OK) return status;
    status = hone_request_admits(request, kernel, why);
    if (status == HONE_OUT_OF_MEMORY) return status;
    if (status != HONE_OK) {
        (void)hone_fail_prefix(why, status, "it names kernel %s", answer->kernel);
        return why->status = HONE_NOT_FOUND;
    }
    status = hone_request_read_config(request, kernel, answer->config, &config, why);
    if (status == HONE_OK) status = hone_request_check_config(request, kernel, &config, why);
    if (status != HONE_OK) return hone_fail_prefix(why, status, "its config for kernel %s", answer->kernel);
    if (!hone_source_is(link->source, HONE_LINK_NAMED)) status = hone_request_trusts(request, kernel, &config, why);
    if (status == HONE_KERNEL_FAILED) why->status = status = HONE_NOT_FOUND;
    if (status == HONE_OK) hone_decision_fill(out, kernel, &config, hone_call_key(request->call));
    return status;
}

hone_status hone_request_from_own(
    const hone_request *request, const hone_context_link *own, hone_decision *out, hone_error *why)
{
    hone_link_answer answer;
    const hone_link *link = &own->link;
    hone_assert(link->find != NULL && link->name != NULL);
    hone_status status = call(request, own, &answer, why);
    why->status = status;
    if (status == HONE_OK) status = follow(request, link, &answer, out, why);
    if (status == HONE_OK || status == HONE_NOT_FOUND || status == HONE_OUT_OF_MEMORY) return status;
    return hone_fail_prefix(
        why, status, "the program's %s, in place of the link %s", link->name, hone_source_name(link->source));
}
