// Who answers a call: a request, and one function for each link of the chain, each in the file of its name.
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
    const hone_call *bucket;  // NULL: nothing is bucketed
    hone_stand_ins stand_ins; // under whose keys the answer may stand: the call first, the bucket among them
    const hone_device_info *device;
    hone_context *context;
    uint64_t changes;            // that were seen of the stores when it began
    bool explaining;             // nothing may be written
    bool nested;                 // inside a kernel of hone: never tunes, never waits
    hone_registry_reader reader; // of the kernels that are looked at
};

extern const hone_links hone_runtime_links;

// Fills a request for a call, which stays where it is until hone_request_deinit: that gives its stand-ins back, and until
// then no kernel that the request has shown is freed.
hone_status hone_request_init(
    hone_request *request, const hone_op *op, const hone_call *call, hone_context *context, hone_error *err);
void hone_request_deinit(hone_request *request);
// What a call of the request, the exact one or its bucket, is stored under. It borrows of both.
hone_store_key hone_request_key(const hone_request *request, const hone_call *call);
// hone_call_bucket; *out is NULL also when the rounded call breaks a condition of the signature: it then has no bucket.
hone_status hone_request_bucket(const hone_call *call, hone_call **out, hone_error *err);
hone_policy hone_request_policy(const hone_request *request);
// The chain for a call. *out_kernel is the registry's, good until hone_request_deinit unless it is retained.
hone_status hone_request_decide(
    const hone_request *request, hone_decision *out, const hone_kernel_ref **out_kernel, hone_error *err);
// regimes.c: in which order stores are asked for a device; returns how many there are. The runtime's own, then warm, cold,
// graph and eager, as far as the device has them; and behind these the stable ones, which alone are asked where the
// runtime is stable. device NULL: of any device.
size_t hone_runtime_regimes(const hone_runtime *rt, const hone_device_info *device, hone_regime out[HONE_REGIME_COUNT]);
static inline size_t hone_request_regimes(const hone_request *request, hone_regime out[HONE_REGIME_COUNT])
{
    return hone_runtime_regimes(request->rt, request->device, out);
}
// HONE_OK when a decision may answer a request: its kernel is there and may, its config holds. Fills a config that it
// has not. Else HONE_NOT_FOUND with why.
hone_status hone_request_accept(const hone_request *request, hone_decision *decision, hone_error *why);
// Each link asks one source. HONE_OK: *out is its answer. HONE_NOT_FOUND: the next is asked, why->message says why not.
// Anything else ends the chain.
#define HONE_LINK_DECLARE(SOURCE, name, kind, policies, why_not) hone_link_function hone_request_from_##name;
HONE_CHAIN(HONE_LINK_DECLARE)
#undef HONE_LINK_DECLARE
hone_own_link_function hone_request_from_own; // own.c: a function of the program, in a link's place
// A config must hold for the exact call, also when it was decided for the call's bucket.
hone_status hone_request_check_config(
    const hone_request *request, const hone_kernel_ref *kernel, const hone_config *config, hone_error *why);
// Copies the decision of a key out; false when there is none.
typedef bool hone_row_function(const hone_request *request, const char *key, const char *spec, hone_decision *out);
// A kernel's config as JSON object or text; NULL or "": what its heuristic says.
hone_status hone_request_read_config(
    const hone_request *request, const hone_kernel_ref *kernel, const char *text, hone_config *out, hone_error *why);
// A row of the exact key, else of another stand-in's, that may answer the request.
hone_status hone_request_look_up(
    const hone_request *request, hone_row_function *copy_row, hone_decision *out, hone_error *why);
// What the user's store or the system's has for the exact call, else for another stand-in. HONE_NOT_FOUND, or another failure
// with what is wrong with an entry or a store.
hone_status hone_request_ask_stores(const hone_request *request, hone_decision *out, hone_error *why);
// The override of the request's context for its algorithm, and the kernel that it names; NULL: there is none.
const hone_context_override *hone_request_override(const hone_request *request);
const hone_kernel_ref *hone_request_override_kernel(
    const hone_request *request, const hone_context_override *override_);
// Whether a kernel may answer a request: eligible, not denied, not put aside. Else why->message says why not.
hone_status hone_request_admits(const hone_request *request, const hone_kernel_ref *kernel, hone_error *why);
// The kernel that a decision names; NULL when there is none. For readers of the registry. Kernels of one name and
// platform are told by the backend.
const hone_kernel_ref *hone_decision_kernel(const hone_algorithm_entry *algorithm, const hone_decision *decision);
// Fills a decision for a kernel and config: names, JSON, key.
void hone_decision_fill(
    hone_decision *decision, const hone_kernel_ref *kernel, const hone_config *config, const char *key);
// A contest for one call, for which the caller has the permit: memory cache, store, plans. Used by the chain's link and
// by hone_runtime_tune. result, out and outlook may be NULL.
hone_status hone_runtime_contest(
    hone_permit *permit,
    const hone_op *op,
    hone_result *result,
    hone_decision *out,
    hone_outlook *outlook,
    hone_error *err);
// Whether the chain answers a call, without tuning, with a verified decision of today's environment.
// out_device: the call's, where it is known; may be NULL.
bool hone_runtime_is_decided(
    const hone_op *op, const hone_call *call, hone_decision *decision, const hone_device_info **out_device);
// Remembers a contest's answer and stores it, unless a faster choice of a kernel that was kept out of the contest
// stands there; what was not stored is logged and counted. Fails only for want of memory.
hone_status hone_runtime_keep(
    const hone_op *op,
    const hone_tune_environment *environment,
    const hone_permit *permit,
    const hone_decision *decision,
    hone_error *err);
// Puts a decision in the memory cache and drops the plans that it replaces.
hone_status hone_runtime_remember(
    hone_runtime *rt, const hone_device_info *device, const char *spec, const hone_decision *decision, hone_error *err);
// The store has changed a decision: the next call of its key asks it.
void hone_runtime_doubt(
    hone_runtime *rt, const hone_device_info *device, const char *spec, const hone_decision *decision);
// Drops the plans that a heuristic or an older decision made for calls of the decision's key.
void hone_runtime_drop_replaced(hone_runtime *rt, const hone_device_info *device, const hone_decision *decision);
// The decision of a stored row, checked against the registry, the kernel's revision and its space, and compared with
// the environment of a device (NULL: not compared).
// HONE_INCOMPATIBLE with why it cannot be served; HONE_CORRUPT: its config is not one of its kernel's.
hone_status hone_decision_from_store(
    hone_runtime *rt,
    const hone_device_info *device,
    const hone_store_decision *row,
    hone_decision *out,
    hone_error *why);
// Replaces what is stored for the call; of two contests that overlapped, the store's rule decides (hone_store_merge).
hone_status hone_decision_store(
    hone_runtime *rt,
    hone_store *store,
    const hone_device_info *device,
    const hone_call *call,
    const hone_decision *decision,
    hone_error *err);
// Takes a stored choice back, in one step, when it is still the one that is stored: another decision takes its place, or
// it is set aside for this reason. HONE_NOT_FOUND: another choice is stored by now.
//   fallen, spec  as they are stored: the key may be one that the call had before
//   next          NULL: none
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
// Lets go of the kernels that were put aside and are not registered any more; all: of every one.
void hone_runtime_forget_asides(hone_runtime *rt, bool all);
// Puts a kernel aside for a call. False: there was no memory to remember it.
bool hone_runtime_set_aside(hone_runtime *rt, const hone_kernel_ref *kernel, const char *key, const char *reason);
// The same with the host's rules on who may compete.
hone_status hone_runtime_contest_environment(
    hone_runtime *rt, const hone_device_info *device, bool store, hone_tune_environment *out, hone_error *err);
// Adds what a contest came to; what a contest that failed has found is added, too. result NULL: nothing.
hone_status hone_permit_add_to_result(
    hone_result *result, const hone_permit *permit, const hone_contest *contest, hone_status status, hone_error *err);

#endif
