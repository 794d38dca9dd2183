// Decisions between their forms: the registry's, the store's, the memory cache's.
#include "runtime/runtime.h"

#include "base/error.h"
#include "base/hash.h"
#include "registry/names.h"
#include "tune/result/environment.h"

#include <stdio.h>
#include <string.h>

// One for each backend may have the name: the one that was measured tells its revision.
static const hone_kernel_ref *kernel_of_row(
    const hone_algorithm_entry *algorithm,
    const hone_store_decision *row,
    hone_platform platform,
    const hone_device_info *device)
{
    const hone_kernel_ref *kernel = hone_kernel_for_device(algorithm, row->kernel, platform, device);
    if (row->revision == NULL || kernel == NULL || strcmp(kernel->kernel.revision, row->revision) == 0) return kernel;
    for (const hone_kernel_ref *one = hone_kernel_by_name(algorithm, row->kernel, platform); one != NULL;
         one = hone_kernel_after(algorithm, one, platform))
        if (strcmp(one->kernel.revision, row->revision) == 0) return one;
    return kernel;
}

hone_status hone_decision_from_store(
    hone_runtime *rt,
    const hone_device_info *device,
    const hone_store_decision *row,
    hone_decision *out,
    hone_error *why)
{
    const hone_algorithm_entry *algorithm = hone_registry_find(rt->registry, row->key.algorithm, row->key.version);
    hone_platform platform;
    if (algorithm == NULL)
        return hone_fail(
            why, HONE_INCOMPATIBLE, "decide", "%s@v%s is not registered", row->key.algorithm, row->key.version);
    if (hone_platform_parse(row->platform, &platform, why) != HONE_OK) return HONE_INCOMPATIBLE;
    const hone_kernel_ref *kernel = kernel_of_row(algorithm, row, platform, device);
    if (kernel == NULL)
        return hone_fail(
            why, HONE_INCOMPATIBLE, "decide", "the stored kernel %s (%s) is not registered", row->kernel,
            row->platform);
    if (row->revision != NULL && strcmp(row->revision, kernel->kernel.revision) != 0)
        return hone_fail(
            why, HONE_INCOMPATIBLE, "decide",
            "the stored answer was measured with revision %s of kernel %s, which is now %s", row->revision, row->kernel,
            kernel->kernel.revision);
    // It has no space now, and may be whole again tomorrow.
    const hone_code *code = kernel->kernel.code;
    if (code != NULL && code->pack != NULL && code->pack->refusal != NULL)
        return hone_fail(
            why, HONE_INCOMPATIBLE, "decide", "the stored kernel %s (%s) is refused: %s", row->kernel, row->platform,
            code->pack->refusal);
    hone_config config;
    hone_status status = hone_config_from_json(kernel->space, row->config, strlen(row->config), &config, why);
    if (status != HONE_OK) return status == HONE_OUT_OF_MEMORY ? status : HONE_CORRUPT;
    memset(out, 0, sizeof *out);
    hone_decision_fill(out, kernel, &config, row->key.key);
    out->source = HONE_SOURCE_NONE;
    (void)hone_source_by_name(row->source, &out->source);
    out->verified = row->verified;
    if (device != NULL) (void)hone_environment_compare(row->environment, device, &kernel->kernel, out->changed);
    if (row->evidence != NULL) (void)!hone_evidence_parse(row->evidence, strlen(row->evidence), &out->evidence, NULL);
    out->evidence.time_ns = row->time_ns;
    out->evidence.regime = row->regime;
    return HONE_OK;
}

// When a contest ended, in seconds since 1970; 0: not known.
static double end_of(const hone_evidence *evidence)
{
    double started;
    return hone_os_parse_utc(evidence->started, &started) ? started + evidence->seconds : 0;
}

typedef struct overlap {
    double started; // of the contest at hand
    bool found;
} overlap;

static void look_for_overlap(void *ctx, const hone_store_decision *stored)
{
    overlap *o = ctx;
    hone_evidence evidence = {0};
    if (stored->evidence == NULL ||
        hone_evidence_parse(stored->evidence, strlen(stored->evidence), &evidence, NULL) != HONE_OK)
        return;
    // Beginnings are kept in whole seconds: within one of them nobody can say which came first, and the later put stays.
    o->found = end_of(&evidence) > o->started + 1;
}

// Whether another contest for the same call was at work at the same time, on a machine that no lease reaches: neither
// knew of the other, so neither has decided between the two.
static bool overlaps(hone_store *store, const hone_store_decision *row, const hone_evidence *evidence)
{
    overlap o = {.started = 0};
    if (!hone_os_parse_utc(evidence->started, &o.started)) return false;
    (void)!hone_store_get(store, &row->key, row->regime, look_for_overlap, &o, NULL);
    return o.found;
}

static hone_status put_or_merge(
    hone_store *store, const hone_store_decision *row, const hone_evidence *evidence, hone_error *err)
{
    if (!overlaps(store, row, evidence)) return hone_store_put(store, row, err);
    return hone_store_merge(store, row, 1, NULL, NULL, err);
}

hone_status hone_decision_store(
    hone_runtime *rt,
    hone_store *store,
    const hone_device_info *device,
    const hone_call *call,
    const hone_decision *decision,
    hone_error *err)
{
    const hone_algorithm_entry *algorithm = hone_registry_find(rt->registry, decision->algorithm, decision->version);
    const hone_kernel_ref *kernel = algorithm == NULL ? NULL : hone_decision_kernel(algorithm, decision);
    if (kernel == NULL)
        return hone_fail(err, HONE_NOT_FOUND, "decision.store", "kernel %s is not registered", decision->kernel);
    hone_buffer evidence, environment;
    hone_buffer_init(&evidence, rt->allocator);
    hone_buffer_init(&environment, rt->allocator);
    hone_evidence_json(&decision->evidence, &evidence);
    hone_environment_json(device, &kernel->kernel, &environment);
    hone_store_decision row = {
        .key = {device->fingerprint, decision->algorithm, decision->version, hone_call_key(call), hone_call_spec(call)},
        .call = hone_call_text(call),
        .kernel = decision->kernel,
        .platform = hone_platform_name(decision->platform),
        .config = decision->config_json,
        .source = hone_source_name(decision->source),
        .revision = kernel->kernel.revision,
        .verified = decision->verified,
        .regime = decision->evidence.regime,
        .time_ns = decision->evidence.time_ns,
        .evidence = hone_buffer_string(&evidence),
        .environment = hone_buffer_string(&environment),
    };
    hone_status status = evidence.failed || environment.failed ? hone_fail_memory(err, "decision.store")
                                                               : put_or_merge(store, &row, &decision->evidence, err);
    hone_buffer_deinit(&evidence);
    hone_buffer_deinit(&environment);
    return status;
}

typedef struct drop_filter {
    const hone_decision *decision;
    const hone_device_info *device;
} drop_filter;

// A plan that a heuristic or an older decision made for calls of this key.
static bool is_replaced(void *ctx, const hone_plan_entry *entry)
{
    const drop_filter *filter = ctx;
    const char *key = filter->decision->key;
    if (entry->plan.device != filter->device ||
        strcmp(entry->kernel->algorithm->name, filter->decision->algorithm) != 0)
        return false;
    return strcmp(entry->call_key, key) == 0 || strcmp(entry->bucket_key, key) == 0;
}

static void drop_replaced(hone_runtime *rt, const hone_device_info *device, const hone_decision *decision)
{
    drop_filter filter = {decision, device};
    hone_plan_table_drop(&rt->plans, is_replaced, &filter);
}

hone_status hone_runtime_remember(
    hone_runtime *rt, const hone_device_info *device, const char *spec, const hone_decision *decision, hone_error *err)
{
    hone_mutex_lock(&rt->mutex);
    hone_status status = hone_decisions_put(&rt->cache, device->fingerprint, spec, decision, err);
    hone_mutex_unlock(&rt->mutex);
    hone_runtime_answers_changed(rt);
    drop_replaced(rt, device, decision);
    return status;
}

// The memory cache's public face ------------------------------------------------------------------------------------

static hone_status split_entry_name(
    const char *algorithm, const char *version, char name[HONE_NAME_SIZE], char out_version[16], hone_error *err)
{
    const char *at = strstr(algorithm, "@v");
    size_t size = at != NULL ? (size_t)(at - algorithm) : strlen(algorithm);
    const char *from = version != NULL ? version : at != NULL ? at + 2 : "1";
    if (size == 0 || size >= HONE_NAME_SIZE || strlen(from) >= 16)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "cache", "'%.80s' is no algorithm name", algorithm);
    memcpy(name, algorithm, size);
    name[size] = '\0';
    snprintf(out_version, 16, "%s", from);
    return HONE_OK;
}

// JSON object or text; NULL and "" leave out as it is.
static hone_status read_config(const hone_kernel_ref *kernel, const char *text, hone_config *out, hone_error *err)
{
    if (text == NULL || text[0] == '\0') return HONE_OK;
    if (text[0] == '{') return hone_config_from_json(kernel->space, text, strlen(text), out, err);
    return hone_config_from_text(kernel->space, text, out, err);
}

// Of the kernels of a name and platform, which differ in their backends, the first whose space has the config; else the first.
static const hone_kernel_ref *first_reading(
    const hone_algorithm_entry *algorithm, const char *name, hone_platform platform, const char *text)
{
    const hone_kernel_ref *first = hone_kernel_by_name(algorithm, name, platform);
    hone_config config;
    for (const hone_kernel_ref *one = first; one != NULL; one = hone_kernel_after(algorithm, one, platform))
        if (read_config(one, text, &config, NULL) == HONE_OK) return one;
    return first;
}

// Checks an entry against the registry and makes a decision of it. One without a config gets it when it answers a call:
// the space's default can depend on the call.
static hone_status decision_of_entry(
    hone_runtime *rt, const hone_entry *entry, hone_source source, hone_decision *out, hone_error *err)
{
    char name[HONE_NAME_SIZE], version[16];
    if (entry->algorithm == NULL || entry->key == NULL || entry->kernel == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "overlay.create", "an entry needs an algorithm, a key and a kernel");
    if (!hone_is_key(entry->key))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "overlay.create", "the key is '%.40s', expected 16 lower-case hex digits",
            entry->key);
    hone_status status = split_entry_name(entry->algorithm, entry->version, name, version, err);
    if (status != HONE_OK) return status;
    const hone_algorithm_entry *algorithm = hone_registry_find(rt->registry, name, version);
    if (algorithm == NULL) {
        char full[HONE_NAME_SIZE + 20];
        strcpy(stpcpy(stpcpy(full, name), "@v"), version);
        return hone_registry_fail_unknown(rt->registry, full, err);
    }
    const hone_kernel_ref *kernel = first_reading(algorithm, entry->kernel, entry->platform, entry->config);
    if (kernel == NULL)
        return hone_fail(
            err, HONE_NOT_FOUND, "overlay.create", "%s has no kernel %s (hone list %s shows them)", name, entry->kernel,
            name);
    hone_config config = {0};
    status = read_config(kernel, entry->config, &config, err);
    if (status != HONE_OK) return hone_fail_prefix(err, status, "the config for kernel %s", entry->kernel);
    memset(out, 0, sizeof *out);
    hone_decision_fill(out, kernel, &config, entry->key);
    out->source = source;
    return HONE_OK;
}

hone_status hone_overlay_create(
    hone_runtime *rt, const hone_entry *entries, size_t count, hone_overlay **out, hone_error *err)
{
    if (rt == NULL || out == NULL || (entries == NULL && count > 0))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "overlay.create", "the runtime, the entries and out must not be NULL");
    *out = NULL;
    hone_overlay *overlay = NULL;
    hone_status status = hone_overlay_new(rt->allocator, &overlay, err);
    for (size_t i = 0; i < count && status == HONE_OK; i++) {
        hone_decision decision;
        status = decision_of_entry(rt, &entries[i], HONE_SOURCE_OVERLAY, &decision, err);
        if (status == HONE_OK)
            status = hone_decisions_put(&overlay->decisions, entries[i].device, entries[i].spec, &decision, err);
    }
    if (status == HONE_OK)
        *out = overlay;
    else if (overlay != NULL)
        hone_overlay_release(&overlay);
    return status;
}

// An override that names a version is for that one alone.
static hone_status check_override(
    hone_runtime *rt, const hone_override *override_, hone_context_override *out, hone_error *err)
{
    if (override_->algorithm == NULL || override_->kernel == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "context.derive", "an override needs an algorithm and a kernel");
    const hone_algorithm_entry *algorithm = hone_registry_find(rt->registry, override_->algorithm, NULL);
    if (algorithm == NULL) return hone_registry_fail_unknown(rt->registry, override_->algorithm, err);
    const hone_kernel_ref *kernel = first_reading(algorithm, override_->kernel, override_->platform, override_->config);
    if (kernel == NULL)
        return hone_fail(
            err, HONE_NOT_FOUND, "context.derive", "%s has no kernel %s (hone list %s shows them)", algorithm->name,
            override_->kernel, algorithm->name);
    hone_config config;
    hone_status status = read_config(kernel, override_->config, &config, err);
    if (status != HONE_OK)
        return hone_fail_prefix(err, status, "the override's config for kernel %s", override_->kernel);
    *out = (hone_context_override){
        .platform = override_->platform, .config = (char *)(uintptr_t)override_->config, .store = override_->store};
    snprintf(out->algorithm, sizeof out->algorithm, "%s", algorithm->name);
    snprintf(out->kernel, sizeof out->kernel, "%s", override_->kernel);
    if (strstr(override_->algorithm, "@v") != NULL)
        snprintf(out->version, sizeof out->version, "%s", algorithm->version);
    return HONE_OK;
}

hone_status hone_context_derive(
    hone_runtime *rt,
    hone_context *parent,
    hone_overlay *overlay,
    const hone_override *override_,
    hone_policy policy,
    hone_context **out,
    hone_error *err)
{
    if (rt == NULL || out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "context.derive", "the runtime and out must not be NULL");
    *out = NULL;
    if (policy < HONE_POLICY_DEFAULT || policy > HONE_POLICY_FROZEN)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "context.derive",
            "the policy is %d, expected HONE_POLICY_TUNE, _HEURISTIC, _FAIL or _FROZEN", (int)policy);
    if (override_ == NULL) return hone_context_new(rt->allocator, parent, overlay, NULL, policy, out, err);
    hone_context_override checked;
    hone_status status = check_override(rt, override_, &checked, err);
    return status == HONE_OK ? hone_context_new(rt->allocator, parent, overlay, &checked, policy, out, err) : status;
}

hone_status hone_cache_get(
    hone_runtime *rt, const char *device, const char *algorithm, const char *key, hone_decision *out, hone_error *err)
{
    if (rt == NULL || algorithm == NULL || key == NULL || out == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "cache.get", "the runtime, algorithm, key and out must not be NULL");
    char name[HONE_NAME_SIZE], version[16];
    hone_status status = split_entry_name(algorithm, NULL, name, version, err);
    if (status == HONE_OK) status = hone_runtime_discover(rt, err);
    if (status != HONE_OK) return status;
    // Names are compared in lower case, which is the registry's to know.
    const hone_algorithm_entry *known = hone_registry_find(rt->registry, name, version);
    if (known != NULL) snprintf(name, sizeof name, "%s", known->name);
    device = device != NULL ? device : rt->cpu->fingerprint;
    const hone_decision_row *row = hone_context_find(hone_thread_self.context, device, name, version, key, NULL);
    if (row != NULL) {
        *out = row->decision;
        return HONE_OK;
    }
    hone_mutex_lock(&rt->mutex);
    row = hone_decisions_get(&rt->cache, device, name, version, key, NULL);
    if (row != NULL) *out = row->decision;
    hone_mutex_unlock(&rt->mutex);
    if (row != NULL) return HONE_OK;
    return hone_fail(err, HONE_NOT_FOUND, "cache.get", "no decision for %s@v%s %s on %s", name, version, key, device);
}

hone_status hone_cache_put(hone_runtime *rt, const hone_entry *entry, hone_error *err)
{
    if (rt == NULL || entry == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "cache.put", "the runtime and the entry must not be NULL");
    hone_decision decision;
    hone_status status = decision_of_entry(rt, entry, HONE_SOURCE_MEMORY, &decision, err);
    if (status == HONE_OK) status = hone_runtime_discover(rt, err);
    if (status != HONE_OK) return status;
    hone_mutex_lock(&rt->mutex);
    const char *device = entry->device != NULL ? entry->device : rt->cpu->fingerprint;
    status = hone_decisions_put(&rt->cache, device, entry->spec, &decision, err);
    hone_mutex_unlock(&rt->mutex);
    hone_runtime_answers_changed(rt);
    // A platform that was never woken has no plans.
    bool woken = atomic_load_explicit(&rt->woken, memory_order_acquire);
    const hone_device_list *devices = woken ? &rt->all : &rt->near;
    for (size_t i = 0; i < devices->count; i++)
        drop_replaced(rt, devices->devices[i], &decision);
    return status;
}

static bool is_any(void *ctx, const hone_plan_entry *entry)
{
    (void)ctx;
    (void)entry;
    return true;
}

void hone_cache_clear(hone_runtime *rt)
{
    hone_mutex_lock(&rt->mutex);
    hone_decisions_clear(&rt->cache);
    hone_mutex_unlock(&rt->mutex);
    hone_runtime_answers_changed(rt);
    hone_plan_table_drop(&rt->plans, is_any, NULL);
}

size_t hone_cache_size(hone_runtime *rt)
{
    hone_mutex_lock(&rt->mutex);
    size_t count = rt->cache.count;
    hone_mutex_unlock(&rt->mutex);
    return count;
}

hone_status hone_cache_keys(
    hone_runtime *rt,
    bool (*visit)(void *ctx, const char *device, const char *algorithm_version, const char *key),
    void *ctx,
    hone_error *err)
{
    if (rt == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "cache.keys", "the runtime and visit must not be NULL");
    // Copied row by row, so that visit may call hone.
    for (size_t i = 0;; i++) {
        char algorithm[HONE_NAME_SIZE + 20], key[20];
        hone_mutex_lock(&rt->mutex);
        const hone_decision_row *row = i < rt->cache.count ? rt->cache.rows[i] : NULL;
        char *device = row == NULL ? NULL : hone_copy_text(&rt->allocator, row->device, strlen(row->device));
        if (row != NULL) {
            snprintf(algorithm, sizeof algorithm, "%s@v%s", row->decision.algorithm, row->decision.version);
            snprintf(key, sizeof key, "%s", row->decision.key);
        }
        hone_mutex_unlock(&rt->mutex);
        if (row == NULL) return HONE_OK;
        if (device == NULL) return hone_fail_memory(err, "cache.keys");
        bool more = visit(ctx, device, algorithm, key);
        hone_free(&rt->allocator, device);
        if (!more) return HONE_OK;
    }
}
