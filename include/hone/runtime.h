// The runtime: the registry, the devices, the caches and the store of one program, tied together.
#ifndef HONE_RUNTIME_H
#define HONE_RUNTIME_H

#include "hone/allocator.h"
#include "hone/device.h"
#include "hone/policy.h"
#include "hone/signature.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_runtime hone_runtime;

enum {
    HONE_RUNTIME_NO_BUILTINS = 1 << 0,    // without the built-in algorithms and kernels
    HONE_RUNTIME_NO_ENVIRONMENT = 1 << 1, // HONE_* variables are not read
    HONE_RUNTIME_STABLE = 1 << 4,         // stores answer only with decisions that were tuned stable, and contests
                                          // are stable (hone_tune_options.stable); same as HONE_STABLE=1
    HONE_RUNTIME_UNVERIFIED = 1 << 5, // kernels that are not built in answer unverified; HONE_UNVERIFIED=allow means
                                      // the same
    HONE_RUNTIME_KEEP_IN_MEMORY = 1 << 6, // results of contests stay in this process and are not stored
    HONE_RUNTIME_PROVENANCE = 1 << 3,     // evidence names user and host
    HONE_RUNTIME_ZYGOTE = 1 << 2          // forks a helper process now, while there is one thread; tuning later uses
                                          // it to isolate kernels that are functions of this program
};

// Zero means default everywhere. First field: sizeof of the struct.
typedef struct hone_runtime_options {
    size_t struct_size;
    hone_allocator allocator; // the system's allocator if its reallocate is NULL
    // A URL. NULL selects that of HONE_STORE, else sqlite:$XDG_CACHE_HOME/hone/store.db; "" or "none" for no store.
    const char *store;
    hone_policy policy;      // HONE_POLICY_DEFAULT selects that of HONE_POLICY, else heuristic
    unsigned flags;          // HONE_RUNTIME_*
    size_t plan_cache_bytes; // cap of the shared plan table; 0 selects 64 MiB
    int32_t threads;         // of hone's own pool, including the caller; 0 selects the device's usable threads
    void (*log)(void *ctx, int level, const char *message); // level 0 error, 1 warning, 2 info, 3 debug; any thread
    void *log_ctx;
    int log_level;            // 0: HONE_LOG, else warnings
    const char *device_locks; // folder of the locks by which processes take turns on a device; "none": no locks;
                              // NULL selects that of HONE_DEVICE_LOCKS, else the user's own
    const char *lock_file; // path of a lock file (hone/lock.h); NULL selects that of HONE_LOCK; "" or "none" for none
    // URL of a store that is read after the user's and never written. NULL selects that of HONE_SYSTEM_STORE, else none;
    // "" or "none" for none.
    const char *system_store;
    hone_regime regime; // decisions of this regime are looked up first, and misses are tuned in it: HONE_COLD,
                        // HONE_GRAPH or HONE_EAGER; HONE_WARM selects that of HONE_REGIME, else warm
} hone_runtime_options;

// Opens a runtime. A store that cannot be opened is not a failure: the chain goes on without it, and the log and
// hone_explain say so. The store is opened at the first miss that asks it, and devices are detected by the first call
// that needs them, since starting a driver can take longer than a program that never uses it. A lock file is read
// now, and one that cannot be read is a failure: a program that was meant to be pinned must not run unpinned.
//   options  NULL selects all defaults; borrowed for the call
// Threads: every function that takes a runtime may be called from any thread, except open and close.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (an invalid environment value or option); HONE_OUT_OF_MEMORY; and what
// hone_lock_read returns for the lock file.
HONE_API HONE_MUST_CHECK hone_status
hone_runtime_open(const hone_runtime_options *options, hone_runtime **out, hone_error *err);
// Does not wait: no thread may be inside a call. Plans that are still bound keep what they need. Sets *rt to NULL.
HONE_API void hone_runtime_close(hone_runtime **rt);

// All devices, of every platform. Borrowed from the runtime.
HONE_API const hone_device_info *const *hone_runtime_devices(hone_runtime *rt, size_t *out_count);
// Streams of a device: what hone_execution.stream is, NULL for the default one.
// Whether a stream is being captured into a graph; false on devices without graphs. On such a stream hone_run returns
// HONE_UNSUPPORTED for a call that it would have to decide.
// Returns: HONE_OK; HONE_UNAVAILABLE (no platform here has the device); HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status
hone_stream_is_captured(hone_runtime *rt, hone_device device, void *stream, bool *out, hone_error *err);
// Waits until everything that was started on a stream is done, and reports what failed there. Not during capture.
// Returns: HONE_OK; HONE_UNAVAILABLE (no platform here has the device); HONE_KERNEL_FAILED with the driver's message.
HONE_API HONE_MUST_CHECK hone_status
hone_stream_synchronize(hone_runtime *rt, hone_device device, void *stream, hone_error *err);

// An algorithm of the registry, ready to be called. Lives as long as the runtime.
typedef struct hone_op hone_op;
// name may carry a version, "rms_norm@v2"; else the newest is taken. HONE_NOT_FOUND lists the algorithms there are.
HONE_API HONE_MUST_CHECK hone_status
hone_op_get(hone_runtime *rt, const char *name, const hone_op **out, hone_error *err);
// The same, NULL when there is none.
HONE_API const hone_op *hone_op_find(hone_runtime *rt, const char *name, hone_error *err);
HONE_API hone_signature *hone_op_signature(const hone_op *op);
#ifdef __cplusplus
}
#endif
#endif
