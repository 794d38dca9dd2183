// The registry proper: snapshots of algorithms and their kernels. The public functions (hone/registry.h) are
// thin wrappers in src/runtime that hand over the runtime's registry.
#ifndef HONE_REGISTRY_REGISTRY_H
#define HONE_REGISTRY_REGISTRY_H

#include "call/foreign.h"
#include "hone/lookup.h"
#include "hone/registry.h"
#include "hone/space.h"
#include "registry/platform.h"

#include <stdatomic.h>

typedef struct hone_registry hone_registry;
typedef struct hone_algorithm_entry hone_algorithm_entry;

// One registered kernel. Immutable but for `left_out`. It lives while it is registered; when it was replaced, until the readers that may
// have seen it have left and the last that retained it has released it.
struct hone_kernel_ref {
    hone_kernel kernel; // copied; its strings belong to the registry, and its revision is never NULL
    const hone_algorithm_entry *algorithm;
    hone_signature *signature; // the kernel's own, or the algorithm's
    hone_space *space;
    uint32_t order;       // of registration, over the whole registry
    bool builtin;         // registered by the library itself: a spawned worker knows it too
    uint64_t unsupported; // bit i: the algorithm's parameter i is not in the kernel's own signature
    hone_registry *registry;
    struct hone_registry_batch *batch; // that it was registered with, and is freed with; NULL: it is no registry's
    void *owner;                       // the runtime; for hone_kernel_run
    atomic_bool left_out;              // the log was told that contests cannot take it
};

// Whether two revisions name the same code. NULL: the one that a kernel has which says none, "1".
bool hone_same_revision(const char *a, const char *b);
// Whether a kernel came with a pack: nobody has verified it before a contest does.
bool hone_kernel_is_of_pack(const hone_kernel_ref *kernel);

// Who looks kernels up is a reader meanwhile: no kernel and no list of kernels that it sees is freed before it leaves.
// What lives longer than the reader retains its kernels. Where nobody replaces kernels (the command, a worker) nobody
// need enter.
typedef struct hone_registry_reader {
    hone_registry *registry; // NULL: it is not inside
    uint64_t since;
} hone_registry_reader;

// One algorithm at one version. Immutable but for `kernels`, which is read through hone_registry_list.
struct hone_algorithm_entry {
    const char *name; // lower case
    const char *version;
    hone_signature *signature;
    hone_algorithm algorithm; // copied
    bool builtin;
    hone_registry *registry;
};

// platforms: the facts of every platform (hone_platform_facts_of of platforms/platform.h). Until
// hone_registry_set_hardware is called a CPU is here, with every instruction set.
hone_status hone_registry_create(
    const hone_allocator *allocator, hone_platform_find *platforms, void *owner, hone_registry **out, hone_error *err);
// What hardware is here. Before the first query.
//   present_backends  one bit a hone_backend that hardware is here for
//   default_backend   what the fall-back of a query for "any" resolves to
//   features          HONE_CPU_* bits: a query that names no backend leaves out the kernels that need others
void hone_registry_set_hardware(
    hone_registry *registry, uint32_t present_backends, hone_backend default_backend, uint64_t features);
// platforms: one bit a hone_platform whose kernels are not to run, though their device may be here.
void hone_registry_leave_out(hone_registry *registry, uint32_t platforms);
// No kernel may be retained any more.
void hone_registry_destroy(hone_registry **registry);
// A thread may be inside as often as it likes, each time with a reader of its own. Neither allocates or waits; leaving
// twice is leaving once, and a reader of zeros never entered. Threads: any, but a reader leaves on the thread that
// entered.
void hone_registry_enter(hone_registry *registry, hone_registry_reader *reader);
void hone_registry_leave(hone_registry_reader *reader);
// In a child process: the readers of the parent's other threads are not there. Forked by a thread that is inside, the
// child frees no replaced kernel when others were inside too.
void hone_registry_in_child(hone_registry *registry);
// Retain what is registered only as a reader, or what is retained already. The last release frees a kernel that was
// replaced, as soon as no reader can see it. Threads: any.
const hone_kernel_ref *hone_kernel_retain(const hone_kernel_ref *kernel);
void hone_kernel_release(const hone_kernel_ref *kernel);
// Registering an algorithm again is fine when signature and reference are the same.
hone_status hone_registry_add_algorithm(
    hone_registry *registry, const hone_algorithm *algorithm, bool builtin, hone_error *err);
// All or none. The array's step is the struct_size of its first kernel. With replace a kernel takes the place of its
// duplicate in the order of registration too.
hone_status hone_registry_add_kernels(
    hone_registry *registry, const hone_kernel *kernels, size_t count, bool replace, bool builtin, hone_error *err);

// The same for an algorithm and kernels of static memory, when somebody first asks for the name: opening a runtime then
// costs what the program uses. They count as built-in. What is wrong with them is said by hone_registry_load, and by
// hone_registry_fail_unknown for their name.
hone_status hone_registry_defer(
    hone_registry *registry,
    const hone_algorithm *algorithm,
    const hone_kernel *kernels,
    size_t count,
    hone_error *err);
// load(ctx) is called once, by the first that looks any name up, and registers what it wants. Look-ups of its own, on
// the same thread, find what is there; those of other threads wait. Before the first look-up.
void hone_registry_set_late(hone_registry *registry, void (*load)(void *ctx), void *ctx);
// Has it called now, unless it was.
void hone_registry_load_late(hone_registry *registry);
// Registers everything that was deferred. Call it before hone_registry_all where a failure must be seen.
hone_status hone_registry_load(hone_registry *registry, hone_error *err);

// Operations of other libraries that are calls of the registry's algorithms: rows as call/foreign.h reads them. Later
// ones go before earlier ones and what is built in. Threads: any.
hone_status hone_registry_add_foreign(hone_registry *registry, const char *text, size_t size, hone_error *err);
// Those there are as of now, for as long as the registry lives.
hone_status hone_registry_foreign(hone_registry *registry, const hone_foreign **out, hone_error *err);
// The call that an operation with these arguments, an object, is: by its rows, the newest first, and their algorithms in
// order.
//   out_entry  the algorithm; after a failure the last one that is here, else as it was
//   out_times  as of hone_foreign_call
// Returns: as hone_foreign_call; HONE_NOT_FOUND: none of the algorithms is here.
hone_status hone_registry_take_foreign(
    hone_registry *registry,
    const hone_allocator *allocator,
    const hone_foreign_row *row,
    const json_t *arguments,
    const hone_algorithm_entry **out_entry,
    hone_call **out,
    int64_t *out_times,
    hone_error *err);
// The same for what a library recorded: its operation, without a version, and the spec of a call, {"args_spec":[...],
// "kwargs_spec":{...}}.
// Returns: as before; also HONE_NOT_FOUND: there is no row of the operation.
hone_status hone_registry_foreign_call(
    hone_registry *registry,
    const hone_allocator *allocator,
    const char *library,
    hone_view operation,
    const char *spec,
    const hone_algorithm_entry **out_entry,
    hone_call **out,
    hone_error *err);

// name in any case, also with "@v2" at its end; version NULL or "" then means that one, else the newest ("10" is newer
// than "9"). NULL when there is none. Lock-free, but for the first look-up of a name that was deferred.
const hone_algorithm_entry *hone_registry_find(hone_registry *registry, const char *name, const char *version);
// Numbers of 0 or more; NaN and infinity are none.
bool hone_tolerance_is_valid(const hone_tolerance *tolerance);
// Fills err with HONE_NOT_FOUND and the names there are; for a deferred name that cannot be registered, with the
// reason.
hone_status hone_registry_fail_unknown(hone_registry *registry, const char *name, hone_error *err);
// The kernels by falling priority, then order, as of now: an immutable array, good until the reader leaves.
const hone_kernel_ref *const *hone_registry_list(const hone_algorithm_entry *algorithm, size_t *out_count);
// All algorithms as of now, sorted by name, then version. Lives as long as the registry.
const hone_algorithm_entry *const *hone_registry_all(hone_registry *registry, size_t *out_count);
// hone_registry_get of the public header.
hone_status hone_registry_query(
    hone_registry *registry, const hone_query *query, const hone_kernel_ref **out, hone_error *err);
// hone_validate_signatures of the public header.
hone_status hone_registry_validate(
    hone_registry *registry,
    const char *algorithm,
    bool verbose,
    bool (*visit)(void *ctx, const char *line),
    void *ctx,
    bool *out_ok,
    hone_error *err);

// Why a kernel cannot run a call on a device: platform and backend, CPU features, tensors' device, its own
// signature's unsupported parameters, supports(). call NULL: what depends on the device alone; device NULL: on the
// call.
// HONE_OK when it can; else HONE_UNSUPPORTED or HONE_UNAVAILABLE with the reason. Allocates only for kernels that carry
// a signature of their own.
hone_status hone_kernel_eligible(
    const hone_kernel_ref *kernel, const hone_call *call, const hone_device_info *device, hone_error *err);
// The path of the library that a kernel calls; false: it calls none, or it is not here. Loads nothing.
bool hone_kernel_find_library(const hone_kernel *kernel, char *path, size_t size);
// Whether a call that was never tuned takes it after the kernels that do not yield.
bool hone_kernel_yields(const hone_kernel_ref *kernel, const hone_call *call, const hone_device_info *device);
// The kernel's config without measuring: its heuristic when that gives a valid one, else the first of its candidates,
// else the space's default. HONE_NOT_FOUND when the space is empty for this call.
hone_status hone_kernel_default_config(
    const hone_kernel_ref *kernel,
    const hone_call *call,
    const hone_device_info *device,
    hone_config *out,
    hone_error *err);
// A kernel of an algorithm by name; platform NONE: the first of that name. NULL when there is none.
const hone_kernel_ref *hone_kernel_by_name(
    const hone_algorithm_entry *algorithm, const char *name, hone_platform platform);
// Of several of that name and platform the one for the device's backend, else for any, else the first.
//   device  NULL: not known
const hone_kernel_ref *hone_kernel_for_device(
    const hone_algorithm_entry *algorithm, const char *name, hone_platform platform, const hone_device_info *device);
// Whether it is in its algorithm's list as of now, and not replaced. Its caller retains it or is a reader.
bool hone_kernel_is_registered(const hone_kernel_ref *kernel);
// The next one of that name and platform behind another; NULL: there is none.
const hone_kernel_ref *hone_kernel_after(
    const hone_algorithm_entry *algorithm, const hone_kernel_ref *kernel, hone_platform platform);

#endif
