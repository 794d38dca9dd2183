// The contents of a runtime, and what its layers share: links/ answer calls, plans/ run them, api/ is the public API.
#ifndef HONE_RUNTIME_STATE_RUNTIME_H
#define HONE_RUNTIME_STATE_RUNTIME_H

#include "base/log.h"
#include "config/chain.h"
#include "config/context.h"
#include "config/flight.h"
#include "config/permit.h"
#include "hone/lock.h"
#include "hone/record.h"
#include "os/mutex.h"
#include "os/os.h"
#include "platforms/platform.h"
#include "record/record.h"
#include "runtime/state/plan_table.h"
#include "runtime/state/tally.h"
#include "transfer/transfer.h"
#include "tune/tuner.h"

// "ALGORITHM=KERNEL" of HONE_FORCE, "ALGORITHM=KERNEL", "*=KERNEL" or "KERNEL" of HONE_DENY.
typedef struct hone_rule {
    char algorithm[HONE_NAME_SIZE]; // "*" for all algorithms
    char kernel[HONE_NAME_SIZE];
} hone_rule;

typedef struct hone_rules {
    hone_rule *rules;
    size_t count;
} hone_rules;

// A kernel that failed for a call at run time; the next best kernel answers instead.
typedef struct hone_aside {
    struct hone_aside *next;
    const hone_kernel_ref *kernel; // retained
    char key[HONE_KEY_SIZE];
    char reason[256];
} hone_aside;

// A store that is opened at the first miss that needs it.
typedef struct hone_lazy_store {
    hone_mutex mutex;
    char *url;    // NULL: none
    char *copies; // folder of the local copies of a store on a server; NULL: no copies
    bool tried;
    hone_store *store; // NULL: none, or it could not be opened (error says why)
    hone_error error;
} hone_lazy_store;

// Notices what other processes store (links/follow.h).
typedef struct hone_follower {
    hone_mutex mutex;    // one thread checks at a time
    atomic_bool follows; // the ticker was started, or cannot be started
    hone_ticker *ticker;
    uint64_t seen[2]; // hone_store_changes at the last check, of the user's store and of the system's
} hone_follower;

typedef struct hone_device_list {
    const hone_device_info **devices;
    size_t count;
} hone_device_list;

typedef struct hone_loaded_pack hone_loaded_pack;
typedef struct hone_wrong hone_wrong;
typedef struct hone_verdict hone_verdict;

struct hone_runtime {
    atomic_size_t references;          // the user's, and one for each bound plan
    void (*destroy)(hone_runtime *rt); // open.c, called when the last reference is released
    hone_allocator allocator;
    hone_fork_watch watch;
    hone_log log;
    hone_policy policy;
    hone_registry *registry;
    hone_platform_instance *instances[HONE_PLATFORM_COUNT];
    char *reasons[HONE_PLATFORM_COUNT]; // why a platform is not available
    // Valid after discovery (hone_runtime_discover), except `all`, which is valid after hone_runtime_wake.
    hone_device_list near, all;
    const hone_device_info *cpu;
    atomic_bool discovered, woken;
    hone_mutex discovery;
    hone_rules force, deny;
    hone_plan_table plans;
    hone_slab entries; // memory of the plans' entries; guarded by entries_mutex
    hone_mutex entries_mutex;
    hone_tally tally;
    char *stats_to; // the value of HONE_STATS: "1", or a file; NULL: no report at the end
    atomic_bool told_stats;
    atomic_bool recording;
    atomic_bool told_dropped;   // a warning was logged: the record is full
    atomic_uint told_lock_line; // the line that could not be followed and was logged last
    atomic_bool told_no_stream; // a warning was logged: runs on a device with streams provide none
    atomic_bool told_rules;     // a warning was logged: HONE_FORCE or HONE_DENY match nothing
    hone_recorder *recorder;
    hone_mutex mutex; // ops, cache, asides, wrongs, verdicts, pool, workers
    hone_op *ops;
    uint64_t op_count;
    hone_decisions cache;
    hone_aside *asides;
    hone_wrong *wrongs;     // trust.h
    hone_verdict *verdicts; // verified.h
    hone_pool *pool;
    int32_t pool_threads; // 0: as many as the CPU has, once it is detected
    hone_workers *workers;
    hone_zygote *zygote;
    hone_flights flights;
    bool says_who;                       // evidence names user and host
    bool stable;                         // HONE_RUNTIME_STABLE
    hone_regime regime;                  // whose decisions are served first: warm, cold, graph or eager
    bool keeps_in_memory;                // HONE_RUNTIME_KEEP_IN_MEMORY
    bool allows_unverified;              // HONE_RUNTIME_UNVERIFIED
    char *device_locks;                  // folder of the locks of devices, or "none"; NULL: the usual one
    hone_lazy_store store, system_store; // the second is only read
    hone_follower follower;
    atomic_uint_fast64_t changes; // of the stores as far as noticed, plus 1
    hone_transfer *transfer;      // created at its first use
    hone_lock *lock;              // NULL: none
    char *lock_path;
    hone_mutex packs_mutex;       // packs
    char *pack_path;              // HONE_PACK_PATH; NULL: none
    hone_loaded_pack *packs;      // in the order of loading
    uint32_t platforms_asked;     // bit i: platform i was named
    atomic_size_t unstored;       // contests whose answer should be in the store but is not
    atomic_size_t refused;        // those of them that the store refused
    atomic_uint_fast64_t answers; // incremented after every change of what the chain may answer
};

hone_runtime *hone_runtime_retain(hone_runtime *rt);
void hone_runtime_release(hone_runtime *rt);
// Opens the platforms of the host and collects their devices, at the first call; later calls cost one load. Must be
// called before cpu is read. Threads: any.
// Returns: HONE_OK; HONE_OUT_OF_MEMORY (the next call tries again); HONE_UNAVAILABLE (no CPU).
hone_status hone_runtime_discover(hone_runtime *rt, hone_error *err);
// The same for every platform: opening a GPU's driver takes a tenth of a second. Must be called before devices are
// listed or the registry chooses a kernel.
hone_status hone_runtime_wake(hone_runtime *rt, hone_error *err);
// Whether contests on a device can detect what disturbs their samples; HONE_UNAVAILABLE with what is missing.
hone_status hone_runtime_sees_disturbance(hone_runtime *rt, const hone_device_info *device, hone_error *err);
// The device that a tensor names, *out is NULL if there is none. Opens other platforms only if the device is not the
// CPU.
hone_status hone_runtime_find_device(
    hone_runtime *rt, hone_device device, const hone_device_info **out, hone_error *err);
// The path of hone-worker; false when there is none.
bool hone_runtime_find_worker(hone_runtime *rt, char *out, size_t size);

// Whether the platform of a kernel can run on a device that another platform found; opens that platform at the first
// such query. HONE_OK for kernels of the device's own platform. HONE_UNAVAILABLE with what is missing.
hone_status hone_runtime_visit(
    hone_runtime *rt, const hone_kernel_ref *kernel, const hone_device_info *device, hone_error *err);
void hone_runtime_close_platforms(hone_runtime *rt);
// The default URL of the store; "" if there is none, or it does not fit.
void hone_default_store_url(char *out, size_t size);
// The store, which is opened if necessary; NULL if there is none.
hone_store *hone_runtime_store(hone_runtime *rt);
// The read-only store below it, which is opened if necessary; NULL if there is none.
hone_store *hone_runtime_system_store(hone_runtime *rt);
// Why there is no store. The text is static or owned by the runtime.
const char *hone_runtime_store_reason(hone_runtime *rt);
// hone's own pool, which is created if necessary; NULL if there is no memory (the caller then works alone).
hone_pool *hone_runtime_pool(hone_runtime *rt);
// The resources that a contest borrows. Starts the worker pool's bookkeeping, not its workers.
hone_status hone_runtime_tune_environment(
    hone_runtime *rt, const hone_device_info *device, bool store, hone_tune_environment *out, hone_error *err);

// The resources that permits of this runtime borrow. Opens the store if necessary.
hone_permit_environment hone_runtime_permit_environment(hone_runtime *rt);

// Reads the HONE_* variables into rt. options take precedence over them.
hone_status hone_runtime_read_environment(hone_runtime *rt, const hone_runtime_options *options, hone_error *err);
// True when the rules name this kernel.
bool hone_rules_match(const hone_rules *rules, const char *algorithm, const char *kernel);
// The forced kernel of an algorithm; NULL when there is none.
const char *hone_rules_kernel(const hone_rules *rules, const char *algorithm);
// Logs once which rules match no operation or no kernel, at the first decision: by then a program has registered its
// own. Between hone_registry_enter and leave.
void hone_runtime_tell_rules(hone_runtime *rt);

// Logs once that further calls are not recorded, if recording was requested.
void hone_runtime_tell_dropped(hone_runtime *rt);

// Whether results of tuning under a context are stored.
static inline bool hone_runtime_keeps(const hone_runtime *rt, const hone_context *context)
{
    return !rt->keeps_in_memory && hone_context_stores(context);
}

// The chain's answers have changed. Call it before the plans that this replaces are dropped: a thread that decided in
// between then drops its own plan.
static inline void hone_runtime_answers_changed(hone_runtime *rt)
{
    atomic_fetch_add(&rt->answers, 1);
}

#endif
