// The link of the stores: the user's store, and below it the system's, which is only read.
//
// The user's store comes first, since it holds what the user tuned or set. The system's store answers if the user's has
// nothing that can be served, or only a decision that has to be checked again while the system's has not.
#include "runtime/links/links.h"

#include "base/error.h"
#include "runtime/links/trust.h"
#include "store/ops.h"

#include <stdio.h>

static const char where[] = "decide";

typedef struct store_visit {
    const hone_request *request;
    hone_decision *out;
    hone_error *why;
    hone_status status;
} store_visit;

static bool visit_stored(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *row = record->decision;
    store_visit *visit = ctx;
    hone_error why = {.message = ""};
    visit->status = hone_decision_from_store(visit->request->rt, visit->request->device, row, visit->out, &why);
    if (visit->status != HONE_OK) *visit->why = why;
    return true;
}

// If a kernel of the same name and revision lacks the config, it always will, so the entry is marked as unusable.
static void set_aside(hone_store *store, const hone_store_key *key, hone_regime regime, const hone_error *why)
{
    char reason[sizeof why->message + 64];
    snprintf(reason, sizeof reason, "has a config that its kernel does not have: %s", why->message);
    (void)!hone_store_set_aside(store, key, regime, reason, NULL);
}

static bool is_bucketed(const hone_request *request, const hone_call *call)
{
    for (size_t i = 0; i < request->stand_ins.exact; i++)
        if (request->stand_ins.calls[i] == call) return false;
    return true;
}

static hone_status ask_store(
    const hone_request *request, hone_store *store, const hone_call *call, hone_decision *out, hone_error *why)
{
    const hone_store_key key = hone_request_key(request, call);
    store_visit visit = {request, out, why, HONE_NOT_FOUND};
    hone_status status = HONE_NOT_FOUND;
    hone_regime regimes[HONE_REGIME_COUNT];
    const size_t count = hone_request_regimes(request, regimes);
    for (size_t i = 0; i < count && status == HONE_NOT_FOUND; i++) {
        status = hone_store_get(store, HONE_RECORD_DECISION, &key, regimes[i], visit_stored, &visit, why);
        if (status == HONE_OK && visit.status == HONE_CORRUPT && !request->explaining)
            set_aside(store, &key, regimes[i], why);
    }
    if (status == HONE_NOT_FOUND) return hone_fail(why, HONE_NOT_FOUND, where, "no entry for this key");
    if (status == HONE_OK) status = visit.status;
    // Outside of the visit: this checks kernels, which is not allowed under the store's lock.
    if (status == HONE_OK) status = hone_request_accept(request, out, why);
    out->bucketed = is_bucketed(request, call);
    return status == HONE_OK ? hone_request_still_trusts(request, out, why) : status;
}

// Keeps the reason that names the tier, and prefers a problem with an entry over the absence of one in another store.
static void keep_reason(hone_error *why, const hone_error *reason, bool is_system, bool is_first)
{
    if (!is_first && reason->status == HONE_NOT_FOUND) return;
    *why = *reason;
    if (is_system) (void)hone_fail_prefix(why, why->status, "the system store");
}

// HONE_OK; HONE_NOT_FOUND; HONE_OUT_OF_MEMORY; or the failure of one store, if the other had no answer.
static hone_status ask_tiers(const hone_request *request, const hone_call *call, hone_decision *out, hone_error *why)
{
    hone_store *const stores[] = {hone_runtime_store(request->rt), hone_runtime_system_store(request->rt)};
    hone_status status = HONE_NOT_FOUND;
    bool is_first = true;
    for (int i = 0; i < 2; i++) {
        if (stores[i] == NULL) continue;
        hone_decision found;
        hone_error reason = {.message = ""};
        hone_status asked = ask_store(request, stores[i], call, &found, &reason);
        if (asked == HONE_OUT_OF_MEMORY) {
            *why = reason;
            return asked;
        }
        if (asked == HONE_OK && (status != HONE_OK || found.changed[0] == '\0')) {
            *out = found;
            out->system = i == 1;
            status = asked;
        } else if (asked != HONE_OK && status != HONE_OK) {
            keep_reason(why, &reason, i == 1, is_first);
            status = why->status;
        }
        is_first = false;
        if (status == HONE_OK && out->changed[0] == '\0') break;
    }
    return status;
}

// If the store fails, the chain continues without it.
static hone_status pass_by_store(const hone_request *request, hone_status status, hone_error *why)
{
    if (status == HONE_NOT_FOUND || status == HONE_OUT_OF_MEMORY) return status;
    hone_log_write(&request->rt->log, HONE_LOG_WARNING, "going on without the store's answer: %s", why->message);
    why->status = HONE_NOT_FOUND;
    return HONE_NOT_FOUND;
}

static hone_status remember(const hone_request *request, const hone_call *call, hone_decision *out, hone_error *why)
{
    hone_runtime *rt = request->rt;
    // No plan has to be dropped: with a plan for this key the call would not have come here.
    hone_mutex_lock(&rt->mutex);
    hone_status status = hone_decisions_put(&rt->cache, request->device->fingerprint, hone_call_spec(call), out, why);
    if (status == HONE_OK) hone_decisions_note_stored(&rt->cache, request->device->fingerprint, out, request->changes);
    hone_mutex_unlock(&rt->mutex);
    return status;
}

hone_status hone_request_ask_stores(const hone_request *request, hone_decision *out, hone_error *why)
{
    const hone_stand_ins *stand_ins = &request->stand_ins;
    hone_status status = HONE_NOT_FOUND;
    for (size_t i = 0; i < stand_ins->count && status != HONE_OK && status != HONE_OUT_OF_MEMORY; i++) {
        // A problem with the entry of the exact key is more informative than the absence of the next one.
        hone_error reason = {.message = ""};
        const hone_call *call = stand_ins->calls[i];
        const hone_status asked = ask_tiers(request, call, out, &reason);
        if (asked == HONE_NOT_FOUND && i > 0) continue;
        *why = reason;
        status = asked;
        if (status == HONE_OK) out->bucketed = i >= stand_ins->exact;
    }
    return status;
}

hone_status hone_request_from_store(const hone_request *request, hone_decision *out, hone_error *why)
{
    hone_runtime *rt = request->rt;
    if (hone_runtime_store(rt) == NULL && hone_runtime_system_store(rt) == NULL)
        return hone_fail(why, HONE_NOT_FOUND, where, "%s", hone_runtime_store_reason(rt));
    hone_status status = hone_request_ask_stores(request, out, why);
    if (status != HONE_OK) return pass_by_store(request, status, why);
    const hone_call *call = hone_stand_ins_find(&request->stand_ins, out->key);
    return request->explaining || call == NULL ? HONE_OK : remember(request, call, out, why);
}
