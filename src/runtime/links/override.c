// The first link: the kernel that a context or HONE_FORCE names, which is exactly what the user asked for.
#include "runtime/links/links.h"

#include "base/error.h"

#include <string.h>

static const char where[] = "decide";

hone_status hone_request_read_config(
    const hone_request *request, const hone_kernel_ref *kernel, const char *text, hone_config *out, hone_error *why)
{
    if (text == NULL || text[0] == '\0')
        return hone_kernel_default_config(kernel, request->call, request->device, out, why);
    if (text[0] == '{') return hone_config_from_json(kernel->space, text, strlen(text), out, why);
    return hone_config_from_text(kernel->space, text, out, why);
}

// An override that cannot be followed ends the chain: the user asked for exactly this.
static hone_status override_with(
    const hone_request *request,
    const char *who,
    const hone_kernel_ref *kernel,
    const char *kernel_name,
    const char *config_text,
    hone_decision *out,
    hone_error *why)
{
    if (kernel == NULL)
        return hone_fail(
            why, HONE_INVALID_ARGUMENT, where, "%s names kernel %s, which %s does not have (hone list %s shows them)",
            who, kernel_name, request->op->algorithm->name, request->op->algorithm->name);
    hone_config config;
    hone_status status = hone_request_admits(request, kernel, why);
    if (status == HONE_OK) status = hone_request_read_config(request, kernel, config_text, &config, why);
    if (status == HONE_OK) status = hone_request_check_config(request, kernel, &config, why);
    if (status != HONE_OK) return hone_fail_prefix(why, status, "%s names kernel %s", who, kernel_name);
    hone_decision_fill(out, kernel, &config, hone_call_key(request->call));
    return HONE_OK;
}

const hone_context_override *hone_request_override(const hone_request *request)
{
    const hone_algorithm_entry *algorithm = request->op->algorithm;
    return hone_context_find_override(request->context, algorithm->name, algorithm->version);
}

const hone_kernel_ref *hone_request_override_kernel(const hone_request *request, const hone_context_override *override_)
{
    if (override_->exactly != NULL) return override_->exactly;
    return hone_kernel_for_device(request->op->algorithm, override_->kernel, override_->platform, request->device);
}

// Stores an answer if that was requested. If the store fails, the call is still answered.
static void store_override(const hone_request *request, const hone_decision *decision)
{
    hone_runtime *rt = request->rt;
    hone_store *store = hone_runtime_store(rt);
    hone_error why = {.message = ""};
    if (store != NULL && hone_decision_store(rt, store, request->device, request->call, decision, &why) != HONE_OK)
        hone_log_write(&rt->log, HONE_LOG_WARNING, "an override was not stored: %s", why.message);
}

hone_status hone_request_from_override(const hone_request *request, hone_decision *out, hone_error *why)
{
    const hone_algorithm_entry *algorithm = request->op->algorithm;
    const hone_context_override *override_ = hone_request_override(request);
    if (override_ != NULL) {
        hone_status status = override_with(
            request, override_->exactly != NULL ? "hone_kernel_run" : "the context's override",
            hone_request_override_kernel(request, override_), override_->kernel, override_->config, out, why);
        out->source = HONE_SOURCE_OVERRIDE;
        if (status == HONE_OK && override_->store && !request->explaining) store_override(request, out);
        return status;
    }
    const char *forced = hone_rules_kernel(&request->rt->force, algorithm->name);
    if (forced == NULL || hone_context_find_link(request->context, HONE_SOURCE_OVERRIDE) != NULL)
        return hone_fail(why, HONE_NOT_FOUND, where, "none is set");
    const hone_kernel_ref *kernel = hone_kernel_for_device(algorithm, forced, HONE_PLATFORM_NONE, request->device);
    return override_with(request, "HONE_FORCE", kernel, forced, NULL, out, why);
}
