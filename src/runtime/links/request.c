// A request: the call that the chain is to answer, and which kernels may answer it.
#include "runtime/links/links.h"

#include "base/assert.h"
#include "base/error.h"
#include "runtime/links/trust.h"
#include "store/ops.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "decide";

hone_status hone_request_init(
    hone_request *request, const hone_op *op, const hone_call *call, hone_context *context, hone_error *err)
{
    memset(request, 0, sizeof *request);
    hone_device device = hone_call_device(call);
    const hone_device_info *info = NULL;
    hone_status status = hone_call_check(call, op->algorithm->signature, where, err);
    if (status == HONE_OK) status = hone_runtime_find_device(op->rt, device, &info, err);
    if (status != HONE_OK) return status;
    if (info == NULL)
        return hone_fail(
            err, HONE_UNAVAILABLE, where,
            "%s: its tensors are on device type %d, id %d, which no platform here has (hone devices lists them)",
            hone_call_text(call), (int)device.type, (int)device.id);
    *request = (hone_request){
        .rt = op->rt,
        .op = op,
        .call = call,
        .device = info,
        .context = context,
        .changes = atomic_load(&op->rt->changes),
        .nested = hone_thread_self.depth > 0};
    hone_registry_enter(op->rt->registry, &request->reader);
    hone_runtime_tell_rules(op->rt);
    status = hone_call_stand_ins(call, &request->stand_ins, err);
    request->bucket = request->stand_ins.bucket;
    return status;
}

hone_status hone_request_bucket(const hone_call *call, hone_call **out, hone_error *err)
{
    hone_error why = {.message = ""};
    hone_status status = hone_call_bucket(call, true, out, &why);
    if (status == HONE_INVALID_ARGUMENT) return HONE_OK;
    if (status != HONE_OK && err != NULL) *err = why;
    return status;
}

void hone_request_deinit(hone_request *request)
{
    hone_stand_ins_deinit(&request->stand_ins);
    hone_registry_leave(&request->reader);
}

hone_store_key hone_request_key(const hone_request *request, const hone_call *call)
{
    const hone_algorithm_entry *algorithm = request->op->algorithm;
    return (hone_store_key){
        request->device->fingerprint, algorithm->name, algorithm->version, hone_call_key(call), hone_call_spec(call)};
}

hone_policy hone_request_policy(const hone_request *request)
{
    hone_policy policy = hone_context_policy(request->context, request->rt->policy);
    // A kernel that calls hone is itself being run or measured: tuning inside it would measure a busy machine.
    return policy == HONE_POLICY_TUNE && request->nested ? HONE_POLICY_HEURISTIC : policy;
}

static const hone_aside *find_aside(hone_runtime *rt, const hone_kernel_ref *kernel, const char *key)
{
    hone_assert(hone_mutex_is_mine(&rt->mutex));
    for (const hone_aside *aside = rt->asides; aside != NULL; aside = aside->next)
        if (aside->kernel == kernel && strcmp(aside->key, key) == 0) return aside;
    return NULL;
}

static hone_status check_aside(const hone_request *request, const hone_kernel_ref *kernel, hone_error *why)
{
    hone_status status = HONE_OK;
    hone_mutex_lock(&request->rt->mutex);
    const hone_aside *aside = find_aside(request->rt, kernel, hone_call_key(request->call));
    if (aside != NULL)
        status = hone_fail(
            why, HONE_KERNEL_FAILED, where, "disabled for this call: %s: %s", kernel->kernel.name, aside->reason);
    hone_mutex_unlock(&request->rt->mutex);
    return status;
}

void hone_runtime_forget_asides(hone_runtime *rt, bool all)
{
    hone_mutex_lock(&rt->mutex);
    for (hone_aside **link = &rt->asides; *link != NULL;) {
        hone_aside *aside = *link;
        if (!all && hone_kernel_is_registered(aside->kernel)) {
            link = &aside->next;
            continue;
        }
        *link = aside->next;
        hone_kernel_release(aside->kernel);
        hone_free(&rt->allocator, aside);
    }
    hone_mutex_unlock(&rt->mutex);
}

bool hone_runtime_set_aside(hone_runtime *rt, const hone_kernel_ref *kernel, const char *key, const char *reason)
{
    hone_aside *aside = hone_alloc(&rt->allocator, sizeof *aside);
    if (aside == NULL) return false;
    aside->kernel = kernel;
    snprintf(aside->key, sizeof aside->key, "%s", key);
    snprintf(aside->reason, sizeof aside->reason, "%s", reason);
    hone_mutex_lock(&rt->mutex);
    if (find_aside(rt, kernel, key) == NULL) {
        (void)hone_kernel_retain(kernel);
        aside->next = rt->asides;
        rt->asides = aside;
        aside = NULL;
    }
    hone_mutex_unlock(&rt->mutex);
    hone_free(&rt->allocator, aside);
    hone_log_write(
        &rt->log, HONE_LOG_WARNING, "%s %s: %s is disabled: %s", kernel->algorithm->name, key, kernel->kernel.name,
        reason);
    return true;
}

hone_status hone_request_admits(const hone_request *request, const hone_kernel_ref *kernel, hone_error *why)
{
    if (hone_rules_match(&request->rt->deny, kernel->algorithm->name, kernel->kernel.name))
        return hone_fail(why, HONE_UNSUPPORTED, where, "HONE_DENY names it");
    hone_status status = hone_kernel_eligible(kernel, request->call, request->device, why);
    if (status == HONE_OK) status = hone_runtime_visit(request->rt, kernel, request->device, why);
    return status == HONE_OK ? check_aside(request, kernel, why) : status;
}

hone_status hone_request_check_config(
    const hone_request *request, const hone_kernel_ref *kernel, const hone_config *config, hone_error *why)
{
    hone_bound_space *space = NULL;
    hone_status status = hone_space_bind(kernel->space, request->call, request->device, &space, why);
    if (status == HONE_OK) status = hone_bound_space_check(space, config, why);
    hone_bound_space_release(&space);
    return status;
}

// An entry without a config gets the space's default, which can depend on the call.
static hone_status fill_config(
    const hone_request *request, const hone_kernel_ref *kernel, hone_decision *decision, hone_error *why)
{
    if (decision->config.count > 0 || hone_space_parameters(kernel->space) == 0) return HONE_OK;
    hone_bound_space *space = NULL;
    hone_status status = hone_space_bind(kernel->space, request->call, request->device, &space, why);
    if (status == HONE_OK) status = hone_bound_space_default(space, &decision->config, why);
    if (status == HONE_OK)
        hone_config_json(kernel->space, &decision->config, decision->config_json, sizeof decision->config_json);
    hone_bound_space_release(&space);
    return status;
}

hone_status hone_request_accept(const hone_request *request, hone_decision *decision, hone_error *why)
{
    const hone_kernel_ref *kernel = hone_decision_kernel(request->op->algorithm, decision);
    if (kernel == NULL)
        return hone_fail(why, HONE_NOT_FOUND, where, "it names kernel %s, which is not registered", decision->kernel);
    hone_error reason = {.message = ""};
    hone_status status = hone_request_admits(request, kernel, &reason);
    if (status == HONE_OK) status = fill_config(request, kernel, decision, &reason);
    if (status == HONE_OK) status = hone_request_check_config(request, kernel, &decision->config, &reason);
    if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(why, where);
    if (status != HONE_OK)
        return hone_fail(why, HONE_NOT_FOUND, where, "it names kernel %s: %s", decision->kernel, reason.message);
    return HONE_OK;
}

hone_status hone_request_look_up(
    const hone_request *request, hone_row_function *copy_row, hone_decision *out, hone_error *why)
{
    const hone_stand_ins *stand_ins = &request->stand_ins;
    hone_error reason = {.message = "no entry for this key"};
    for (size_t i = 0; i < stand_ins->count; i++) {
        const hone_call *call = stand_ins->calls[i];
        if (!copy_row(request, hone_call_key(call), hone_call_spec(call), out)) continue;
        hone_status status = hone_request_accept(request, out, &reason);
        out->bucketed = i >= stand_ins->exact;
        if (status == HONE_OK) return HONE_OK;
        if (status != HONE_NOT_FOUND) return hone_fail(why, status, where, "%s", reason.message);
    }
    return hone_fail(why, HONE_NOT_FOUND, where, "%s", reason.message);
}
