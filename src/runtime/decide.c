// The links of the chain: what each source answers for a call.
#include "runtime/runtime.h"

#include "base/error.h"
#include "runtime/trust.h"
#include "store/ops.h"

#include <stdio.h>
#include <string.h>

hone_status hone_request_init(
    hone_request *request, const hone_op *op, const hone_call *call, hone_context *context, hone_error *err)
{
    memset(request, 0, sizeof *request);
    hone_device device = hone_call_device(call);
    const hone_device_info *info = NULL;
    hone_status status = hone_runtime_find_device(op->rt, device, &info, err);
    if (status != HONE_OK) return status;
    if (info == NULL)
        return hone_fail(
            err, HONE_UNAVAILABLE, "decide",
            "%s: its tensors are on device type %d, id %d, which no platform here has (hone devices lists them)",
            hone_call_text(call), (int)device.type, (int)device.id);
    *request = (hone_request){
        .rt = op->rt, .op = op, .call = call, .device = info, .context = context, .nested = hone_thread_self.depth > 0};
    return hone_request_bucket(call, &request->bucket, err);
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
    hone_call_release(&request->bucket);
}

hone_policy hone_request_policy(const hone_request *request)
{
    hone_policy policy = hone_context_policy(request->context, request->rt->policy);
    // A kernel that calls hone is itself being run or measured: tuning inside it would time a machine at work.
    return policy == HONE_POLICY_TUNE && request->nested ? HONE_POLICY_HEURISTIC : policy;
}

const hone_kernel_ref *hone_decision_kernel(const hone_algorithm_entry *algorithm, const hone_decision *decision)
{
    size_t count = 0;
    const hone_kernel_ref *const *kernels = hone_registry_list(algorithm, &count);
    for (size_t i = 0; i < count; i++) {
        const hone_kernel *kernel = &kernels[i]->kernel;
        if (kernel->platform == decision->platform && kernel->backend == decision->backend &&
            strcmp(kernel->name, decision->kernel) == 0)
            return kernels[i];
    }
    return hone_kernel_by_name(algorithm, decision->kernel, decision->platform);
}

void hone_decision_fill(
    hone_decision *decision, const hone_kernel_ref *kernel, const hone_config *config, const char *key)
{
    snprintf(decision->algorithm, sizeof decision->algorithm, "%s", kernel->algorithm->name);
    snprintf(decision->version, sizeof decision->version, "%s", kernel->algorithm->version);
    snprintf(decision->key, sizeof decision->key, "%s", key);
    snprintf(decision->kernel, sizeof decision->kernel, "%s", kernel->kernel.name);
    decision->platform = kernel->kernel.platform;
    decision->backend = kernel->kernel.backend;
    decision->config = *config;
    hone_config_json(kernel->space, config, decision->config_json, sizeof decision->config_json);
}

static const hone_aside *find_aside(hone_runtime *rt, const hone_kernel_ref *kernel, const char *key)
{
    for (const hone_aside *aside = rt->asides; aside != NULL; aside = aside->next)
        if (aside->kernel == kernel && strcmp(aside->key, key) == 0) return aside;
    return NULL;
}

static hone_status check_aside(const hone_request *request, const hone_kernel_ref *kernel, hone_error *why)
{
    hone_mutex_lock(&request->rt->mutex);
    const hone_aside *aside = find_aside(request->rt, kernel, hone_call_key(request->call));
    hone_mutex_unlock(&request->rt->mutex);
    if (aside == NULL) return HONE_OK;
    return hone_fail(
        why, HONE_KERNEL_FAILED, "decide", "put aside for this call: %s: %s", kernel->kernel.name, aside->reason);
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
        aside->next = rt->asides;
        rt->asides = aside;
        aside = NULL;
    }
    hone_mutex_unlock(&rt->mutex);
    hone_free(&rt->allocator, aside);
    hone_log_write(
        &rt->log, HONE_LOG_WARNING, "%s %s: %s is put aside: %s", kernel->algorithm->name, key, kernel->kernel.name,
        reason);
    return true;
}

hone_status hone_request_admits(const hone_request *request, const hone_kernel_ref *kernel, hone_error *why)
{
    if (hone_rules_match(&request->rt->deny, kernel->algorithm->name, kernel->kernel.name))
        return hone_fail(why, HONE_UNSUPPORTED, "decide", "HONE_DENY names it");
    hone_status status = hone_kernel_eligible(kernel, request->call, request->device, why);
    if (status == HONE_OK) status = hone_runtime_visit(request->rt, kernel, request->device, why);
    return status == HONE_OK ? check_aside(request, kernel, why) : status;
}

// A config must hold for the exact call, also when it was decided for the call's bucket.
static hone_status check_config(
    const hone_request *request, const hone_kernel_ref *kernel, const hone_config *config, hone_error *why)
{
    hone_bound_space *space = NULL;
    hone_status status = hone_space_bind(kernel->space, request->call, request->device, &space, why);
    if (status == HONE_OK) status = hone_bound_space_check(space, config, why);
    hone_bound_space_release(&space);
    return status;
}

// An entry without a config means the space's default, which can depend on the call.
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
        return hone_fail(
            why, HONE_NOT_FOUND, "decide", "it names kernel %s, which is not registered", decision->kernel);
    hone_error reason = {.message = ""};
    hone_status status = hone_request_admits(request, kernel, &reason);
    if (status == HONE_OK) status = fill_config(request, kernel, decision, &reason);
    if (status == HONE_OK) status = check_config(request, kernel, &decision->config, &reason);
    if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(why, "decide");
    if (status != HONE_OK)
        return hone_fail(why, HONE_NOT_FOUND, "decide", "it names kernel %s: %s", decision->kernel, reason.message);
    return HONE_OK;
}

// Overrides ---------------------------------------------------------------------------------------------------

static hone_status config_from_any(
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
            why, HONE_INVALID_ARGUMENT, "decide",
            "%s names kernel %s, which %s does not have (hone list %s shows them)", who, kernel_name,
            request->op->algorithm->name, request->op->algorithm->name);
    hone_config config;
    hone_status status = hone_request_admits(request, kernel, why);
    if (status == HONE_OK) status = config_from_any(request, kernel, config_text, &config, why);
    if (status == HONE_OK) status = check_config(request, kernel, &config, why);
    if (status != HONE_OK) return hone_fail_prefix(why, status, "%s names kernel %s", who, kernel_name);
    hone_decision_fill(out, kernel, &config, hone_call_key(request->call));
    return HONE_OK;
}

static const hone_context_override *find_override(const hone_request *request)
{
    const hone_algorithm_entry *algorithm = request->op->algorithm;
    return hone_context_find_override(request->context, algorithm->name, algorithm->version);
}

static const hone_kernel_ref *kernel_of_override(const hone_request *request, const hone_context_override *override_)
{
    if (override_->exactly != NULL) return override_->exactly;
    return hone_kernel_for_device(request->op->algorithm, override_->kernel, override_->platform, request->device);
}

// Writes an answer that was asked to be stored. A store that cannot is no reason not to answer.
static void store_override(const hone_request *request, const hone_decision *decision)
{
    hone_runtime *rt = request->rt;
    hone_store *store = hone_runtime_store(rt);
    hone_error why = {.message = ""};
    if (store != NULL && hone_decision_store(rt, store, request->device, request->call, decision, &why) != HONE_OK)
        hone_log_write(&rt->log, HONE_LOG_WARNING, "an override was not stored: %s", why.message);
}

static hone_status from_override(const hone_request *request, hone_decision *out, hone_error *why)
{
    const hone_algorithm_entry *algorithm = request->op->algorithm;
    const hone_context_override *override_ = find_override(request);
    if (override_ != NULL) {
        hone_status status = override_with(
            request, "the context's override", kernel_of_override(request, override_), override_->kernel,
            override_->config, out, why);
        out->source = HONE_SOURCE_OVERRIDE;
        if (status == HONE_OK && override_->store && !request->explaining) store_override(request, out);
        return status;
    }
    const char *forced = hone_rules_kernel(&request->rt->force, algorithm->name);
    if (forced == NULL) return hone_fail(why, HONE_NOT_FOUND, "decide", "none is set");
    const hone_kernel_ref *kernel = hone_kernel_for_device(algorithm, forced, HONE_PLATFORM_NONE, request->device);
    return override_with(request, "HONE_FORCE", kernel, forced, NULL, out, why);
}

// Overlays and memory ------------------------------------------------------------------------------------------

// Copies the decision of a key out; false when there is none.
typedef bool row_function(const hone_request *request, const char *key, const char *spec, hone_decision *out);

static bool copy_overlay_row(const hone_request *request, const char *key, const char *spec, hone_decision *out)
{
    const hone_algorithm_entry *algorithm = request->op->algorithm;
    const hone_decision_row *row = hone_context_find(
        request->context, request->device->fingerprint, algorithm->name, algorithm->version, key, spec);
    if (row != NULL) *out = row->decision;
    return row != NULL;
}

static bool copy_memory_row(const hone_request *request, const char *key, const char *spec, hone_decision *out)
{
    const hone_algorithm_entry *algorithm = request->op->algorithm;
    hone_runtime *rt = request->rt;
    hone_mutex_lock(&rt->mutex);
    const hone_decision_row *row =
        hone_decisions_get(&rt->cache, request->device->fingerprint, algorithm->name, algorithm->version, key, spec);
    if (row != NULL) *out = row->decision;
    hone_mutex_unlock(&rt->mutex);
    return row != NULL;
}

// The exact key first, then the bucket's.
static hone_status look_up(const hone_request *request, row_function *copy_row, hone_decision *out, hone_error *why)
{
    const hone_call *calls[] = {request->call, request->bucket};
    hone_error reason = {.message = "no entry for this key"};
    for (size_t i = 0; i < 2 && calls[i] != NULL; i++) {
        if (!copy_row(request, hone_call_key(calls[i]), hone_call_spec(calls[i]), out)) continue;
        hone_status status = hone_request_accept(request, out, &reason);
        out->bucketed = i == 1;
        if (status == HONE_OK) return HONE_OK;
        if (status != HONE_NOT_FOUND) return hone_fail(why, status, "decide", "%s", reason.message);
    }
    return hone_fail(why, HONE_NOT_FOUND, "decide", "%s", reason.message);
}

static hone_status from_overlay(const hone_request *request, hone_decision *out, hone_error *why)
{
    if (request->context == NULL) return hone_fail(why, HONE_NOT_FOUND, "decide", "no context is entered");
    return look_up(request, copy_overlay_row, out, why);
}

static hone_status from_memory(const hone_request *request, hone_decision *out, hone_error *why)
{
    hone_status status = look_up(request, copy_memory_row, out, why);
    return status == HONE_OK ? hone_request_still_trusts(request, out, why) : status;
}

// Tuning -------------------------------------------------------------------------------------------------------------

static hone_status tune_now(const hone_request *request, hone_turn *turn, hone_decision *out, hone_error *why)
{
    hone_status status = hone_runtime_contest(turn, request->op, NULL, out, why);
    if (status == HONE_OK) status = hone_request_accept(request, out, why);
    out->bucketed = request->bucket != NULL;
    return status;
}

// What others may have found while the turn was waited for.
static hone_status look_again(const hone_request *request, const hone_turn *turn, hone_decision *out, hone_error *why)
{
    hone_status status = from_memory(request, out, why);
    return status == HONE_NOT_FOUND && turn->key.waited ? hone_request_from_store(request, out, why) : status;
}

static hone_status from_autotune(const hone_request *request, hone_decision *out, hone_error *why)
{
    const hone_tune_options options = {
        .struct_size = sizeof options,
        .regime = request->rt->stable ? HONE_WARM_STABLE : HONE_WARM,
        .stable = request->rt->stable};
    const hone_call *call = request->bucket != NULL ? request->bucket : request->call;
    const hone_turn_environment environment = hone_runtime_turn_environment(request->rt);
    hone_turn turn;
    bool landed = false;
    hone_status status =
        hone_turn_begin(&turn, &environment, request->op->algorithm, request->device, call, &options, &landed, why);
    if (status == HONE_OK) status = look_again(request, &turn, out, why);
    if (status == HONE_NOT_FOUND && landed) // the same again would bring no more
        hone_fail(why, HONE_NOT_FOUND, "decide", "another thread tuned it meanwhile and found no answer");
    else if (status == HONE_NOT_FOUND)
        status = tune_now(request, &turn, out, why);
    hone_turn_end(&turn);
    // Whatever kept the tuner from an answer, the heuristic still can give one.
    if (status != HONE_OK && status != HONE_OUT_OF_MEMORY && status != HONE_CANCELLED)
        why->status = status = HONE_NOT_FOUND;
    return status;
}

const hone_links hone_runtime_links = {
    .find =
        {
            [HONE_SOURCE_OVERRIDE] = from_override,
            [HONE_SOURCE_OVERLAY] = from_overlay,
            [HONE_SOURCE_LOCK] = hone_request_from_lock,
            [HONE_SOURCE_MEMORY] = from_memory,
            [HONE_SOURCE_STORE] = hone_request_from_store,
            [HONE_SOURCE_TRANSFER] = hone_request_from_transfer,
            [HONE_SOURCE_AUTOTUNE] = from_autotune,
            [HONE_SOURCE_HEURISTIC] = hone_request_from_heuristic,
        },
};

// A miss that near calls or a heuristic answer is noted, so that `hone tune --recorded` finds it; so is an answer that was
// measured in another environment.
static void note_miss(const hone_request *request, const hone_decision *decision)
{
    hone_runtime *rt = request->rt;
    const hone_call *call = request->bucket != NULL ? request->bucket : request->call;
    if (atomic_load_explicit(&rt->recording, memory_order_relaxed)) return; // every call is counted anyway
    hone_error err;
    hone_status status = hone_recorder_add_miss(
        rt->recorder, request->device->fingerprint, call, decision->kernel, hone_source_name(decision->source), &err);
    if (status != HONE_OK) hone_log_write(&rt->log, HONE_LOG_WARNING, "the miss was not noted: %s", err.message);
}

static const hone_kernel_ref *chosen_kernel(const hone_request *request, const hone_decision *decision)
{
    const hone_context_override *override_ = find_override(request);
    if (decision->source == HONE_SOURCE_OVERRIDE && override_ != NULL) return kernel_of_override(request, override_);
    return hone_decision_kernel(request->op->algorithm, decision);
}

hone_status hone_request_decide(
    const hone_request *request, hone_decision *out, const hone_kernel_ref **out_kernel, hone_error *err)
{
    hone_status status = hone_chain_decide(&hone_runtime_links, request, hone_request_policy(request), out, err);
    if (status != HONE_OK) return hone_fail_prefix(err, status, "%s", hone_call_text(request->call));
    bool is_guess = out->source == HONE_SOURCE_HEURISTIC || out->source == HONE_SOURCE_TRANSFER;
    if (is_guess || out->changed[0] != '\0') note_miss(request, out);
    const hone_kernel_ref *kernel = chosen_kernel(request, out);
    const hone_context_override *override_ = find_override(request);
    if (override_ == NULL || override_->exactly == NULL)
        hone_request_warn(request, kernel, out); // hone_kernel_run asks often
    if (out_kernel != NULL) *out_kernel = kernel;
    return HONE_OK;
}

hone_status hone_decide_call(const hone_op *op, const hone_call *call, hone_decision *out, hone_error *err)
{
    if (op == NULL || call == NULL || out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "decide", "the operation, the call and out must not be NULL");
    hone_request request;
    hone_status status = hone_request_init(&request, op, call, hone_thread_self.context, err);
    hone_decision decision = {0};
    if (status == HONE_OK) status = hone_request_decide(&request, &decision, NULL, err);
    if (status == HONE_OK) *out = decision;
    hone_request_deinit(&request);
    return status;
}

hone_status hone_decide(const hone_op *op, const hone_value *args, size_t count, hone_decision *out, hone_error *err)
{
    if (op == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, "decide", "the operation is NULL");
    hone_call *call = NULL;
    hone_status status = hone_call_bind(op->rt->allocator, op->algorithm->signature, args, count, false, &call, err);
    if (status == HONE_OK) status = hone_decide_call(op, call, out, err);
    hone_call_release(&call);
    return status;
}
