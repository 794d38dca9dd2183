// The runtime from the inside.
#ifndef HONE_RUNTIME_RUNTIME_H
#define HONE_RUNTIME_RUNTIME_H

#include "base/log.h"
#include "config/chain.h"
#include "config/context.h"
#include "config/flight.h"
#include "hone/lock.h"
#include "hone/record.h"
#include "os/mutex.h"
#include "os/os.h"
#include "platforms/platform.h"
#include "record/record.h"
#include "runtime/dispatch.h"
#include "transfer/transfer.h"
#include "tune/turn.h"

// "ALGORITHM=KERNEL" of HONE_FORCE, "ALGORITHM=KERNEL", "*=KERNEL" or "KERNEL" of HONE_DENY.
typedef struct hone_rule {
    char algorithm[HONE_NAME_SIZE]; // "*": every one
    char kernel[HONE_NAME_SIZE];
} hone_rule;

typedef struct hone_rules {
    hone_rule *rules;
    size_t count;
} hone_rules;

// A kernel that failed for a call at run time: the next best answers.
typedef struct hone_aside {
    struct hone_aside *next;
    const hone_kernel_ref *kernel;
    char key[HONE_KEY_SIZE];
    char reason[256];
} hone_aside;

// The store, opened at the first miss that asks it.
typedef struct hone_lazy_store {
    hone_mutex mutex;
    char *url; // NULL: none
    bool tried;
    hone_store *store; // NULL: none, or it could not be opened (error says why)
    hone_error error;
} hone_lazy_store;

typedef struct hone_device_list {
    const hone_device_info **devices;
    size_t count;
} hone_device_list;

typedef struct hone_loaded_pack hone_loaded_pack;
typedef struct hone_wrong hone_wrong;

struct hone_runtime {
    atomic_size_t references; // the user's, and one a bound plan
    hone_allocator allocator;
    hone_fork_watch watch;
    hone_log log;
    hone_policy policy;
    hone_registry *registry;
    hone_platform_instance *instances[HONE_PLATFORM_COUNT];
    char *reasons[HONE_PLATFORM_COUNT]; // why a platform is not there
    // Known once discovered (hone_runtime_discover), but for all: that is known once woken (hone_runtime_wake).
    hone_device_list near, all;
    const hone_device_info *cpu;
    atomic_bool discovered, woken;
    hone_mutex discovery;
    hone_rules force, deny;
    hone_plan_table plans;
    atomic_bool recording;
    hone_recorder *recorder;
    hone_mutex mutex; // ops, cache, asides, wrongs, pool, workers
    hone_op *ops;
    uint64_t op_count;
    hone_decisions cache;
    hone_aside *asides;
    hone_wrong *wrongs; // trust.h
    hone_pool *pool;
    int32_t pool_threads; // 0: as many as the CPU has, once it is discovered
    hone_worker_pool *workers;
    hone_zygote *zygote;
    hone_flights flights;
    bool says_who;                       // evidence names user and host
    bool stable;                         // HONE_RUNTIME_STABLE
    char *device_locks;                  // folder of the locks of devices, or "none"; NULL: the usual one
    hone_lazy_store store, system_store; // the second is read and never written
    hone_transfer *transfer;             // made when it is first asked
    hone_lock *lock;                     // NULL: none
    char *lock_path;
    hone_mutex packs_mutex;       // packs
    char *pack_path;              // HONE_PACK_PATH; NULL: none
    hone_loaded_pack *packs;      // in the order of loading
    uint32_t platforms_asked;     // bit i: somebody named platform i
    atomic_size_t unstored;       // contests whose answer the store should have and has not
    atomic_uint_fast64_t answers; // changes after every change of what the chain may answer
};

hone_runtime *hone_runtime_retain(hone_runtime *rt);
void hone_runtime_release(hone_runtime *rt);
// Opens the platforms of the host and collects their devices, at the first call; costs a load later. What reads cpu comes
// after it. Threads: any.
// Returns: HONE_OK; HONE_OUT_OF_MEMORY, and the next call tries again; HONE_UNAVAILABLE (no CPU).
hone_status hone_runtime_discover(hone_runtime *rt, hone_error *err);
// The same for every platform: a driver of a GPU takes a tenth of a second to wake. What lists devices, or has the registry
// choose a kernel, comes after it.
hone_status hone_runtime_wake(hone_runtime *rt, hone_error *err);
// The device that tensors say they are on; *out NULL when there is none. Only a device that is not the CPU wakes others.
hone_status hone_runtime_find_device(
    hone_runtime *rt, hone_device device, const hone_device_info **out, hone_error *err);
// The path of hone-worker; false when there is none.
bool hone_runtime_find_worker(hone_runtime *rt, char *out, size_t size);

// Whether the platform of a kernel can run on a device that another platform found; opens that platform at the first
// question. HONE_OK for kernels of the device's own platform. HONE_UNAVAILABLE with what is missing.
hone_status hone_runtime_visit(
    hone_runtime *rt, const hone_kernel_ref *kernel, const hone_device_info *device, hone_error *err);
void hone_runtime_close_platforms(hone_runtime *rt);
// packs.c: has the packs of HONE_PACK_PATH read by the first look-up of an algorithm; and closes them, after the registry.
void hone_runtime_await_packs(hone_runtime *rt);
void hone_runtime_close_packs(hone_runtime *rt);
// After kernels were registered or replaced: plans that did not know them go.
void hone_runtime_kernels_changed(hone_runtime *rt);
// The URL of the store where nobody names one; "" when there is none, or it does not fit.
void hone_default_store_url(char *out, size_t size);
// The store, opened now if it was not yet; NULL when there is none.
hone_store *hone_runtime_store(hone_runtime *rt);
// The read-only store under it, opened now if it was not yet; NULL when there is none.
hone_store *hone_runtime_system_store(hone_runtime *rt);
// Why there is no store: a static or runtime's text.
const char *hone_runtime_store_reason(hone_runtime *rt);
// hone's own pool, made now if it was not yet; NULL when there is no memory (then the caller works alone).
hone_pool *hone_runtime_pool(hone_runtime *rt);
// What a contest borrows. Starts the worker pool's bookkeeping, not its workers.
hone_status hone_runtime_tune_environment(
    hone_runtime *rt, const hone_device_info *device, bool store, hone_tune_environment *out, hone_error *err);

// The same with the host's rules on who may compete.
hone_status hone_runtime_contest_environment(
    hone_runtime *rt, const hone_device_info *device, bool store, hone_tune_environment *out, hone_error *err);
// The operation and call of a call text. The caller releases *call, which is NULL after failure.
hone_status hone_runtime_parse_call(
    hone_runtime *rt, const char *text, const hone_op **op, hone_call **call, hone_error *err);

// What turns of this runtime borrow. Opens the store when it was not yet.
hone_turn_environment hone_runtime_turn_environment(hone_runtime *rt);

// Reads the HONE_* variables into rt. options win over them.
hone_status hone_runtime_read_environment(hone_runtime *rt, const hone_runtime_options *options, hone_error *err);
// True when the rules name this kernel.
bool hone_rules_match(const hone_rules *rules, const char *algorithm, const char *kernel);
// The forced kernel of an algorithm; NULL when there is none.
const char *hone_rules_kernel(const hone_rules *rules, const char *algorithm);

// Deciding (decide.c) ----------------------------------------------------------------------------------------

struct hone_request {
    hone_runtime *rt;
    const hone_op *op;
    const hone_call *call;
    hone_call *bucket; // NULL: nothing is bucketed
    const hone_device_info *device;
    hone_context *context;
    bool explaining; // nothing may be written
    bool nested;     // inside a kernel of hone: never tunes, never waits
};

extern const hone_links hone_runtime_links;

// Fills a request for a call; hone_request_deinit gives the bucket back.
hone_status hone_request_init(
    hone_request *request, const hone_op *op, const hone_call *call, hone_context *context, hone_error *err);
void hone_request_deinit(hone_request *request);
// hone_call_bucket; *out is NULL also when the rounded call breaks a condition of the signature: it then has no bucket.
hone_status hone_request_bucket(const hone_call *call, hone_call **out, hone_error *err);
hone_policy hone_request_policy(const hone_request *request);
// The chain for a call. *out_kernel is the registry's.
hone_status hone_request_decide(
    const hone_request *request, hone_decision *out, const hone_kernel_ref **out_kernel, hone_error *err);
// HONE_OK when a decision may answer a request: its kernel is there and may, its config holds. Fills a config that it has
// not. Else HONE_NOT_FOUND with why.
hone_status hone_request_accept(const hone_request *request, hone_decision *decision, hone_error *why);
// The stores' link (stored.c).
hone_status hone_request_from_store(const hone_request *request, hone_decision *out, hone_error *why);
// The last link: a kernel's default (heuristic.c).
hone_status hone_request_from_heuristic(const hone_request *request, hone_decision *out, hone_error *why);
// The link of near calls (transferred.c).
hone_status hone_request_from_transfer(const hone_request *request, hone_decision *out, hone_error *why);
// The lock's link (locked.c).
hone_status hone_request_from_lock(const hone_request *request, hone_decision *out, hone_error *why);
// Whether a kernel may answer a request: eligible, not denied, not put aside. Else why->message says why not.
hone_status hone_request_admits(const hone_request *request, const hone_kernel_ref *kernel, hone_error *why);
// The kernel that a decision names; NULL when there is none. Kernels of one name and platform are told by the backend.
const hone_kernel_ref *hone_decision_kernel(const hone_algorithm_entry *algorithm, const hone_decision *decision);
// Fills a decision for a kernel and config: names, JSON, key.
void hone_decision_fill(
    hone_decision *decision, const hone_kernel_ref *kernel, const hone_config *config, const char *key);
// A contest for one call, whose turn the caller has: memory cache, store, plans. Used by the chain's link and by
// hone_runtime_tune. result and out may be NULL.
hone_status hone_runtime_contest(
    hone_turn *turn, const hone_op *op, hone_result *result, hone_decision *out, hone_error *err);
// Waits for the turn and tunes; what another thread or process has found meanwhile is taken where the options allow it.
// outlook: written when a contest took place, else left as it was; NULL: not asked.
hone_status hone_runtime_tune(
    const hone_op *op,
    const hone_call *call,
    const hone_tune_options *options,
    hone_result *result,
    hone_outlook *outlook,
    hone_error *err);
// The same unless a verified decision is there already: then only the result gets it. Buckets are tuned in place of
// the calls that fall into them.
hone_status hone_runtime_tune_missing(
    const hone_op *op,
    const hone_call *call,
    const hone_tune_options *options,
    hone_result *result,
    hone_outlook *outlook,
    hone_error *err);
// Whether the chain answers a call, without tuning, with a verified decision of today's environment.
// out_device: the call's, where it is known; may be NULL.
bool hone_runtime_is_decided(
    const hone_op *op, const hone_call *call, hone_decision *decision, const hone_device_info **out_device);
// Whether the user's store has a decision of a call, or of its bucket, be it one that can be served or not.
bool hone_runtime_has_entry(const hone_op *op, const hone_call *call);
// Remembers a contest's answer and stores it, unless a faster choice of a kernel that was kept out of the contest stands
// there; what was not stored is logged and counted. Fails only for want of memory.
hone_status hone_runtime_keep(
    const hone_op *op,
    const hone_tune_environment *environment,
    const hone_turn *turn,
    const hone_decision *decision,
    hone_error *err);
// Replaces NULL by the defaults; refuses what is out of range.
hone_status hone_tune_options_read(
    const hone_runtime *rt, const hone_tune_options *given, hone_tune_options *out, hone_error *err);
// Puts a decision in the memory cache and drops the plans that it replaces.
hone_status hone_runtime_remember(
    hone_runtime *rt, const hone_device_info *device, const char *spec, const hone_decision *decision, hone_error *err);
// The decision of a stored row, checked against the registry, the kernel's revision and its space, and compared with the
// environment of a device (NULL: not compared).
// HONE_INCOMPATIBLE with why it cannot be served; HONE_CORRUPT: its config is none of its kernel's.
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
// Puts a kernel aside for a call. False: there was no memory to remember it.
bool hone_runtime_set_aside(hone_runtime *rt, const hone_kernel_ref *kernel, const char *key, const char *reason);

// What the chain answers has changed. Call it before the plans that it replaces are dropped: whoever decided
// meanwhile then drops its own.
static inline void hone_runtime_answers_changed(hone_runtime *rt)
{
    atomic_fetch_add(&rt->answers, 1);
}

// Plans (plan.c) ----------------------------------------------------------------------------------------------

// Decides, prepares, and publishes when it can. *out has a reference for the caller.
hone_status hone_plan_make(
    const hone_op *op, const hone_value *args, size_t count, hone_plan_entry **out, hone_error *err);

#endif
