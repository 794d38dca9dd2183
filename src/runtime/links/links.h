// A request, and one function for each link of the chain that answers it, each in the file of its name.
#ifndef HONE_RUNTIME_LINKS_LINKS_H
#define HONE_RUNTIME_LINKS_LINKS_H

#include "call/call.h"
#include "config/chain.h"
#include "runtime/state/operation.h"
#include "runtime/state/runtime.h"
#include "tune/tuner.h"

struct hone_request {
    hone_runtime *rt;
    const hone_op *op;
    const hone_call *call;
    const hone_call *bucket; // NULL: no parameter is bucketed
    // The calls under whose keys the answer may be stored: the call first, the bucket among them
    hone_stand_ins stand_ins;
    const hone_device_info *device;
    hone_context *context;
    uint64_t changes;            // those of the stores that were noticed when the request began
    bool explaining;             // nothing may be written
    bool nested;                 // inside a kernel that hone runs: never tunes, never waits
    hone_registry_reader reader; // protects the kernels that the request uses
};

extern const hone_links hone_runtime_links;

// Initialises a request for a call, which must not move before hone_request_deinit. That releases its stand-ins; until
// then no kernel that the request has returned is freed.
hone_status hone_request_init(
    hone_request *request, const hone_op *op, const hone_call *call, hone_context *context, hone_error *err);
void hone_request_deinit(hone_request *request);
// The key under which a call of the request, the exact one or its bucket, is stored. It borrows from both.
hone_store_key hone_request_key(const hone_request *request, const hone_call *call);
// hone_call_bucket; *out is also NULL if the rounded call violates a condition of the signature: it then has no bucket.
hone_status hone_request_bucket(const hone_call *call, hone_call **out, hone_error *err);
hone_policy hone_request_policy(const hone_request *request);
// Asks the chain for a call. *out_kernel belongs to the registry, and is valid until hone_request_deinit unless it is
// retained.
hone_status hone_request_decide(
    const hone_request *request, hone_decision *out, const hone_kernel_ref **out_kernel, hone_error *err);
// regimes.c: the order of regimes in which stores are asked for a device; returns their number. First the runtime's own
// regime, then warm, cold, graph and eager, as far as the device has them; then the stable ones, which are the only
// ones if the runtime is stable. device NULL: for any device.
size_t hone_runtime_regimes(const hone_runtime *rt, const hone_device_info *device, hone_regime out[HONE_REGIME_COUNT]);
static inline size_t hone_request_regimes(const hone_request *request, hone_regime out[HONE_REGIME_COUNT])
{
    return hone_runtime_regimes(request->rt, request->device, out);
}
// HONE_OK if a decision may answer a request: its kernel exists and is allowed, its config is valid. Fills in a missing
// config. Else HONE_NOT_FOUND with the reason.
hone_status hone_request_accept(const hone_request *request, hone_decision *decision, hone_error *why);
// Each link asks one source. HONE_OK: *out is its answer. HONE_NOT_FOUND: the next link is asked, and why->message
// gives the reason. Any other status ends the chain.
#define HONE_LINK_DECLARE(SOURCE, name, kind, policies, why_not) hone_link_function hone_request_from_##name;
HONE_CHAIN(HONE_LINK_DECLARE)
#undef HONE_LINK_DECLARE
hone_own_link_function hone_request_from_own; // own.c: a function of the program that replaces a link
// A config must be valid for the exact call, even if it was chosen for the call's bucket.
hone_status hone_request_check_config(
    const hone_request *request, const hone_kernel_ref *kernel, const hone_config *config, hone_error *why);
// Copies the decision for a key to *out; false if there is none.
typedef bool hone_row_function(const hone_request *request, const char *key, const char *spec, hone_decision *out);
// A kernel's config from a JSON object or text; for NULL or "" the heuristic's config.
hone_status hone_request_read_config(
    const hone_request *request, const hone_kernel_ref *kernel, const char *text, hone_config *out, hone_error *why);
// Finds a row that may answer the request: that of the exact key, else that of another stand-in.
hone_status hone_request_look_up(
    const hone_request *request, hone_row_function *copy_row, hone_decision *out, hone_error *why);
// Finds the answer of the user's store or the system's for the exact call, else for another stand-in. HONE_NOT_FOUND,
// or another failure that describes what is wrong with an entry or a store.
hone_status hone_request_ask_stores(const hone_request *request, hone_decision *out, hone_error *why);
// The override of the request's context for its algorithm, and the kernel that it names; NULL if there is none.
const hone_context_override *hone_request_override(const hone_request *request);
const hone_kernel_ref *hone_request_override_kernel(
    const hone_request *request, const hone_context_override *override_);
// Whether a kernel may answer a request: eligible, not denied, not disabled for the call. Else why->message gives the
// reason.
hone_status hone_request_admits(const hone_request *request, const hone_kernel_ref *kernel, hone_error *why);
// The kernel that a decision names, NULL if there is none. Call it as a reader of the registry. The backend
// distinguishes kernels of one name and platform.
const hone_kernel_ref *hone_decision_kernel(const hone_algorithm_entry *algorithm, const hone_decision *decision);
// Fills a decision for a kernel and config: names, JSON, key.
void hone_decision_fill(
    hone_decision *decision, const hone_kernel_ref *kernel, const hone_config *config, const char *key);
// Runs a contest for one call, for which the caller has the permit, and updates the memory cache, the store and the
// plans. The chain's link and hone_runtime_tune use it. result, out and outlook may be NULL.
hone_status hone_runtime_contest(
    hone_permit *permit,
    const hone_op *op,
    hone_result *result,
    hone_decision *out,
    hone_outlook *outlook,
    hone_error *err);
// Whether the chain answers a call, without tuning, with a verified decision of the current environment.
// out_device: the call's device, if it is known; may be NULL.
bool hone_runtime_is_decided(
    const hone_op *op, const hone_call *call, hone_decision *decision, const hone_device_info **out_device);
// Records a contest's answer in memory and stores it, unless the store has a faster choice of a kernel that was
// excluded from the contest. An answer that could not be stored is logged and counted. Fails only for lack of memory.
hone_status hone_runtime_keep(
    const hone_op *op,
    const hone_tune_environment *environment,
    const hone_permit *permit,
    const hone_decision *decision,
    hone_error *err);
// Puts a decision into the memory cache and drops the plans that it replaces.
hone_status hone_runtime_remember(
    hone_runtime *rt, const hone_device_info *device, const char *spec, const hone_decision *decision, hone_error *err);
// A decision in the store has changed: the next call with its key asks the store again.
void hone_runtime_doubt(
    hone_runtime *rt, const hone_device_info *device, const char *spec, const hone_decision *decision);
// Drops the plans for calls with the decision's key that came from a heuristic or an older decision.
void hone_runtime_drop_replaced(hone_runtime *rt, const hone_device_info *device, const hone_decision *decision);
// Converts a stored row to a decision, checks it against the registry, the kernel's revision and its space, and
// compares it with the environment of a device (NULL: no comparison). HONE_INCOMPATIBLE with the reason if it cannot be
// served; HONE_CORRUPT if its config is not one of its kernel's.
hone_status hone_decision_from_store(
    hone_runtime *rt,
    const hone_device_info *device,
    const hone_store_decision *row,
    hone_decision *out,
    hone_error *why);
// Replaces what is stored for the call. If two contests overlapped, the store's rule decides (hone_store_merge).
hone_status hone_decision_store(
    hone_runtime *rt,
    hone_store *store,
    const hone_device_info *device,
    const hone_call *call,
    const hone_decision *decision,
    hone_error *err);
// Takes back a stored choice, in one step, if it is still the stored one: another decision replaces it, or it is marked
// as unusable for this reason. HONE_NOT_FOUND: another choice is stored by now.
//   fallen, spec  as they are stored: the key may be one that the call had before
//   next          the replacement; NULL: none
hone_status hone_decision_take_back(
    hone_runtime *rt,
    hone_store *store,
    const hone_device_info *device,
    const hone_call *call,
    const hone_decision *fallen,
    const char *spec,
    const hone_decision *next,
    const char *reason,
    hone_error *err);
// Drops the records of disabled kernels that are not registered any more, or with `all` every one.
void hone_runtime_forget_asides(hone_runtime *rt, bool all);
// Disables a kernel for a call. False if there was no memory to record it.
bool hone_runtime_set_aside(hone_runtime *rt, const hone_kernel_ref *kernel, const char *key, const char *reason);
// The same, with the host's rules about which kernels may compete.
hone_status hone_runtime_contest_environment(
    hone_runtime *rt, const hone_device_info *device, bool store, hone_tune_environment *out, hone_error *err);
// Adds the outcome of a contest to a result, also what a failed contest has found. Does nothing if result is NULL.
hone_status hone_permit_add_to_result(
    hone_result *result, const hone_permit *permit, const hone_contest *contest, hone_status status, hone_error *err);

#endif
