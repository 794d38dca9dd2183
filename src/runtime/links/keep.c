// Records a contest's answer in the memory cache and in the store.
#include "base/error.h"
#include "registry/names.h"
#include "runtime/links/links.h"

bool hone_runtime_is_decided(
    const hone_op *op, const hone_call *call, hone_decision *decision, const hone_device_info **out_device)
{
    hone_request request;
    hone_error why;
    bool decided = false;
    if (hone_request_init(&request, op, call, NULL, &why) == HONE_OK)
        decided = hone_chain_decide(&hone_runtime_links, &request, NULL, HONE_POLICY_FAIL, decision, &why) == HONE_OK &&
                  decision->verified && decision->changed[0] == '\0';
    if (decided && out_device != NULL) *out_device = request.device;
    hone_request_deinit(&request);
    return decided;
}

// Decisions of one regime are served before those of the next, from the stores and from memory.
static bool serves_before(const hone_op *op, const hone_device_info *device, const hone_call *call, hone_regime regime)
{
    hone_decision served;
    hone_regime regimes[HONE_REGIME_COUNT];
    const size_t count = hone_runtime_regimes(op->rt, device, regimes);
    if (hone_regime_is_stable(regime) || !hone_runtime_is_decided(op, call, &served, NULL)) return false;
    for (size_t i = 0; i < count && regimes[i] != regime; i++)
        if (regimes[i] == served.evidence.regime) return true;
    return false;
}

typedef struct incumbent {
    hone_runtime *rt;
    const hone_device_info *device;
    hone_decision decision;
    hone_status status;
} incumbent;

static bool visit_incumbent(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *row = record->decision;
    incumbent *i = ctx;
    i->status = hone_decision_from_store(i->rt, i->device, row, &i->decision, NULL);
    return true;
}

// A contest from which a kernel was excluded gives no evidence against that kernel.
static bool was_kept_out(const hone_runtime *rt, const hone_tune_options *options, const hone_decision *decision)
{
    return hone_tune_asks_for(options, decision->kernel, decision->platform, NULL) != HONE_OK ||
           hone_rules_match(&rt->deny, decision->algorithm, decision->kernel);
}

// Whether the stored choice for the call stays: it is verified in the current environment, its kernel was excluded from
// the contest, and it is faster than the contest's winner.
static bool stays(
    const hone_op *op,
    const hone_tune_environment *environment,
    const hone_permit *permit,
    const hone_decision *winner,
    hone_decision *out)
{
    const hone_store_key key = {
        environment->device->fingerprint, op->algorithm->name, op->algorithm->version, hone_call_key(permit->call),
        hone_call_spec(permit->call)};
    incumbent i = {.rt = op->rt, .device = environment->device, .status = HONE_NOT_FOUND};
    if (hone_store_get(
            environment->store, HONE_RECORD_DECISION, &key, winner->evidence.regime, visit_incumbent, &i, NULL) !=
        HONE_OK)
        return false;
    *out = i.decision;
    return i.status == HONE_OK && out->verified && out->changed[0] == '\0' && out->evidence.time_ns > 0 &&
           out->evidence.time_ns < winner->evidence.time_ns && was_kept_out(op->rt, permit->options, out);
}

static void note_stored(hone_runtime *rt, const hone_device_info *device, const hone_decision *decision)
{
    hone_mutex_lock(&rt->mutex);
    hone_decisions_note_stored(&rt->cache, device->fingerprint, decision, atomic_load(&rt->changes));
    hone_mutex_unlock(&rt->mutex);
}

static void store_answer(
    const hone_op *op,
    const hone_tune_environment *environment,
    const hone_permit *permit,
    const hone_decision *decision,
    bool is_remembered)
{
    hone_runtime *rt = op->rt;
    hone_error why = {.message = ""};
    hone_decision standing;
    if (stays(op, environment, permit, decision, &standing)) {
        hone_log_write(
            &rt->log, HONE_LOG_WARNING,
            "not stored: the store's choice %s (%.0f ns) was kept out of this contest and is faster than %s (%.0f ns); "
            "remove it first if it should go",
            standing.kernel, standing.evidence.time_ns, decision->kernel, decision->evidence.time_ns);
    } else if (
        hone_decision_store(rt, environment->store, environment->device, permit->call, decision, &why) == HONE_OK) {
        if (is_remembered) note_stored(rt, environment->device, decision);
        return;
    } else {
        hone_log_write(&rt->log, HONE_LOG_WARNING, "tuned, but not stored: %s", why.message);
        atomic_fetch_add(&rt->refused, 1);
    }
    atomic_fetch_add(&rt->unstored, 1);
}

hone_status hone_runtime_keep(
    const hone_op *op,
    const hone_tune_environment *environment,
    const hone_permit *permit,
    const hone_decision *decision,
    hone_error *err)
{
    hone_runtime *rt = op->rt;
    hone_status status = HONE_OK;
    const bool remembers = !serves_before(op, environment->device, permit->call, decision->evidence.regime);
    if (remembers) status = hone_runtime_remember(rt, environment->device, hone_call_spec(permit->call), decision, err);
    if (status != HONE_OK || permit->options->no_store || rt->store.url == NULL) return status;
    if (environment->store != NULL)
        store_answer(op, environment, permit, decision, remembers);
    else
        atomic_fetch_add(&rt->unstored, 1); // the store's error was reported when it was opened
    return HONE_OK;
}
