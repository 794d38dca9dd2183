// Converts decisions between the registry's form and the store's.
#include "runtime/links/links.h"

#include "base/error.h"
#include "config/chain.h"
#include "registry/names.h"
#include "store/ops.h"
#include "tune/result/environment.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "decide";

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

// Several kernels, one for each backend, may have the name: the row's revision identifies the one that was measured.
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

static hone_status read_row(
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
            why, HONE_INCOMPATIBLE, where, "%s@v%s is not registered", row->key.algorithm, row->key.version);
    if (hone_platform_parse(row->platform, &platform, why) != HONE_OK) return HONE_INCOMPATIBLE;
    const hone_kernel_ref *kernel = kernel_of_row(algorithm, row, platform, device);
    if (kernel == NULL)
        return hone_fail(
            why, HONE_INCOMPATIBLE, where,
            "the stored kernel %s (%s) is not registered: load the pack or the program (--program) that has it",
            row->kernel, row->platform);
    if (row->revision != NULL && strcmp(row->revision, kernel->kernel.revision) != 0)
        return hone_fail(
            why, HONE_INCOMPATIBLE, where,
            "the stored answer was measured with revision %s of kernel %s, which is now %s", row->revision, row->kernel,
            kernel->kernel.revision);
    // A refused kernel has no space now, but may be usable again later.
    const hone_code *code = kernel->kernel.code;
    if (code != NULL && code->pack != NULL && code->pack->refusal != NULL)
        return hone_fail(
            why, HONE_INCOMPATIBLE, where, "the stored kernel %s (%s) is refused: %s", row->kernel, row->platform,
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
    (void)hone_evidence_of(row->evidence, &out->evidence);
    out->evidence.time_ns = row->time_ns;
    out->evidence.regime = row->regime;
    return HONE_OK;
}

hone_status hone_decision_from_store(
    hone_runtime *rt,
    const hone_device_info *device,
    const hone_store_decision *row,
    hone_decision *out,
    hone_error *why)
{
    hone_registry_reader reader;
    hone_registry_enter(rt->registry, &reader);
    hone_status status = read_row(rt, device, row, out, why);
    hone_registry_leave(&reader);
    return status;
}

// The time at which a contest ended, in seconds since 1970; 0 if it is not known.
static double end_of(const hone_evidence *evidence)
{
    double started;
    return hone_os_parse_utc(evidence->started, &started) ? started + evidence->seconds : 0;
}

typedef struct overlap {
    double started; // of the current contest
    bool found;
} overlap;

static bool look_for_overlap(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *stored = record->decision;
    overlap *o = ctx;
    hone_evidence evidence;
    if (!hone_evidence_of(stored->evidence, &evidence)) return true;
    // Start times are stored in whole seconds: within one second the order is not known, and the later put stays.
    o->found = end_of(&evidence) > o->started + 1;
    return true;
}

// Whether another contest for the same call ran at the same time, on a machine that shares no lease with this one:
// neither knew of the other, so neither has compared the two winners.
static bool overlaps(hone_store *store, const hone_store_decision *row, const hone_evidence *evidence)
{
    overlap o = {.started = 0};
    if (!hone_os_parse_utc(evidence->started, &o.started)) return false;
    (void)!hone_store_get(store, HONE_RECORD_DECISION, &row->key, row->regime, look_for_overlap, &o, NULL);
    return o.found;
}

// Puts a decision's row into a store.
typedef hone_status put_row(
    hone_store *store, const hone_store_decision *row, const hone_evidence *evidence, const void *ctx, hone_error *err);

static hone_status put_or_merge(
    hone_store *store, const hone_store_decision *row, const hone_evidence *evidence, const void *ctx, hone_error *err)
{
    (void)ctx;
    if (!overlaps(store, row, evidence)) return hone_store_put(store, row, err);
    return hone_store_merge(store, row, 1, NULL, NULL, err);
}

// The contents of a row and its destination.
typedef struct placing {
    hone_store *store;
    const hone_device_info *device;
    const hone_call *call;
    put_row *put;
    const void *ctx;
} placing;

static hone_status place_row(
    hone_runtime *rt, const placing *to, const hone_decision *decision, const hone_kernel_ref *kernel, hone_error *err)
{
    hone_buffer evidence, environment;
    hone_buffer_init(&evidence, rt->allocator);
    hone_buffer_init(&environment, rt->allocator);
    hone_evidence_json(&decision->evidence, &evidence);
    hone_environment_json(to->device, &kernel->kernel, &environment);
    hone_store_decision row = {
        .key =
            {to->device->fingerprint, decision->algorithm, decision->version, hone_call_key(to->call),
             hone_call_spec(to->call)},
        .call = hone_call_text(to->call),
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
    hone_status status = evidence.failed || environment.failed
                             ? hone_fail_memory(err, "decision.store")
                             : to->put(to->store, &row, &decision->evidence, to->ctx, err);
    hone_buffer_deinit(&evidence);
    hone_buffer_deinit(&environment);
    return status;
}

static hone_status place(hone_runtime *rt, const placing *to, const hone_decision *decision, hone_error *err)
{
    const hone_algorithm_entry *algorithm = hone_registry_find(rt->registry, decision->algorithm, decision->version);
    hone_registry_reader reader;
    hone_registry_enter(rt->registry, &reader);
    const hone_kernel_ref *kernel = algorithm == NULL ? NULL : hone_decision_kernel(algorithm, decision);
    hone_status status =
        kernel != NULL
            ? place_row(rt, to, decision, kernel, err)
            : hone_fail(err, HONE_NOT_FOUND, "decision.store", "kernel %s is not registered", decision->kernel);
    hone_registry_leave(&reader);
    return status;
}

hone_status hone_decision_store(
    hone_runtime *rt,
    hone_store *store,
    const hone_device_info *device,
    const hone_call *call,
    const hone_decision *decision,
    hone_error *err)
{
    return place(rt, &(placing){store, device, call, put_or_merge, NULL}, decision, err);
}

// Taking back ---------------------------------------------------------------------------------------------------------

typedef struct taking_back {
    hone_store_key key;
    const hone_decision *fallen;
    const hone_store_decision *next; // NULL: none
    const char *reason;
    bool is_there;
} taking_back;

static void compare_stored(void *ctx, const hone_store_decision *row)
{
    taking_back *t = ctx;
    t->is_there = strcmp(row->kernel, t->fallen->kernel) == 0 && strcmp(row->config, t->fallen->config_json) == 0 &&
                  strcmp(row->platform, hone_platform_name(t->fallen->platform)) == 0;
}

static hone_status replace_fallen(hone_store *store, void *ctx, hone_error *err)
{
    taking_back *t = ctx;
    const hone_regime regime = t->fallen->evidence.regime;
    hone_status status = store->ops->get(store, &t->key, regime, compare_stored, t, err);
    if (status == HONE_OK && !t->is_there)
        return hone_fail(err, HONE_NOT_FOUND, where, "another choice has taken its place meanwhile");
    if (status != HONE_OK) return status;
    if (t->next == NULL || strcmp(t->next->key.key, t->key.key) != 0)
        status = store->ops->set_aside(store, &t->key, regime, t->reason, err);
    if (t->next == NULL || status != HONE_OK) return status;
    return hone_store_put_within(store, &(hone_store_batch){.decisions = t->next, .decision_count = 1}, err);
}

static hone_status put_next(
    hone_store *store, const hone_store_decision *row, const hone_evidence *evidence, const void *ctx, hone_error *err)
{
    (void)evidence;
    taking_back t = *(const taking_back *)ctx;
    t.next = row;
    return hone_store_transact(store, replace_fallen, &t, err);
}

hone_status hone_decision_take_back(
    hone_runtime *rt,
    hone_store *store,
    const hone_device_info *device,
    const hone_call *call,
    const hone_decision *fallen,
    const char *spec,
    const hone_decision *next,
    const char *reason,
    hone_error *err)
{
    taking_back t = {
        .key = {device->fingerprint, fallen->algorithm, fallen->version, fallen->key, spec},
        .fallen = fallen,
        .reason = reason};
    return next != NULL ? place(rt, &(placing){store, device, call, put_next, &t}, next, err)
                        : hone_store_transact(store, replace_fallen, &t, err);
}
