// What the registry is made of; shared by the files of this folder only.
//
// Readers never lock: an algorithm's kernels and the list of all algorithms are immutable arrays behind one atomic
// pointer each. A writer, under the mutex, makes the next array beside the one in use and then swaps the pointer. What
// was swapped out stays with its batch, because a reader may still walk it, and so do the kernels that were replaced. A
// batch whose kernels were all replaced has no list in use either: each replacement made a newer one. It goes when the
// readers that were inside then have left, and nobody retains a kernel of it (life.c). An algorithm stays until the
// registry dies.
#ifndef HONE_REGISTRY_TABLES_H
#define HONE_REGISTRY_TABLES_H

#include "base/memory.h"
#include "call/call.h"
#include "os/mutex.h"
#include "registry/registry.h"

#include <stdatomic.h>

typedef struct hone_kernel_list {
    size_t count;
    const hone_kernel_ref *refs[];
} hone_kernel_list;

typedef struct hone_owned_algorithm {
    hone_algorithm_entry entry; // first: an entry that was handed out is cast back
    const hone_kernel_list *_Atomic kernels;
} hone_owned_algorithm;

typedef struct hone_algorithm_list {
    size_t count;
    const hone_algorithm_entry *entries[]; // sorted by name, then version
} hone_algorithm_list;

// All memory of one registration. It joins the registry when the registration succeeds and dies when it is refused.
typedef struct hone_registry_batch {
    struct hone_registry_batch *next, **link; // of the registry's batches, under life
    struct hone_registry_batch *next_retired; // under life
    uint64_t retired;                         // the epoch in which its last kernel was replaced
    atomic_size_t references;                 // the registry's, and those of hone_kernel_retain
    size_t registered;                        // kernels of it that are not replaced; under the registry's mutex
    hone_arena arena;
    hone_kernel_ref *refs; // count of them, each with a signature and a space to release
    size_t count;
    hone_signature *signature; // an algorithm's
} hone_registry_batch;

// An algorithm with its kernels that is registered when somebody first asks for its name. Reading signatures and spaces
// takes a millisecond for all built-in ones, of which a program seldom calls more than a few.
typedef struct hone_deferred_kernel {
    struct hone_deferred_kernel *next;
    char name[HONE_NAME_SIZE];
    const hone_algorithm *algorithm;
    const hone_kernel *kernels;
    size_t count;
    bool busy;          // being registered; under the mutex
    atomic_bool loaded; // registered; look-ups of its name need not wait any more
} hone_deferred_kernel;

struct hone_registry {
    hone_allocator allocator;
    hone_platform_find *platforms;
    uint32_t present_backends;
    uint32_t left_out; // one bit a hone_platform whose kernels run no call
    hone_backend default_backend;
    uint64_t features;
    void *owner;
    hone_mutex mutex; // of writers
    const hone_algorithm_list *_Atomic algorithms;
    void (*late)(void *ctx); // NULL: nothing comes late
    void *late_ctx;
    atomic_bool late_done;
    bool late_running;                      // under late_mutex
    hone_mutex late_mutex;                  // taken again by what comes late and looks names up; before the other
    hone_deferred_kernel *_Atomic deferred; // the newest; a list that only grows at this end
    hone_foreign *_Atomic foreign;          // the newest document; a list that only grows at this end
    uint32_t next_order;
    hone_mutex life; // batches and what changes the epoch; the innermost
    hone_registry_batch *batches;
    hone_registry_batch *_Atomic retired;
    atomic_uint_fast64_t epoch;
    atomic_size_t readers[3]; // inside since the epoch of this number, modulo 3
};

// life.c: a batch joins, or leaves with its last kernel replaced.
void hone_registry_keep(hone_registry *registry, hone_registry_batch *owned);
void hone_registry_retire(hone_registry *registry, hone_registry_batch *gone);

// "opencl"; "unknown platform" for a number that is not one.
const char *hone_registry_platform_name(const hone_registry *registry, hone_platform platform);

// Lower case of a name that may end with "@vVERSION". False when no algorithm can have that name (empty, too long).
typedef struct hone_registry_name {
    char name[HONE_NAME_SIZE];
    char version[16]; // "" when none was written
} hone_registry_name;
bool hone_registry_name_read(const char *text, hone_registry_name *out);
// Versions by their numbers: "9" before "10", "1.2" before "1.10".
int hone_registry_version_compare(const char *a, const char *b);
// What is registered, without asking the deferred ones. from->version "": the newest.
const hone_algorithm_entry *hone_registry_find_now(hone_registry *registry, const hone_registry_name *from);
const hone_algorithm_entry *const *hone_registry_all_now(hone_registry *registry, size_t *out_count);
hone_status hone_registry_fail_unknown_now(hone_registry *registry, const char *name, hone_error *err);
// Registers the deferred algorithms of a name (lower case; NULL: all). Needs the mutex not to be held, or with _held to
// be.
hone_status hone_registry_load_name(hone_registry *registry, const char *name, hone_error *err);
hone_status hone_registry_load_held(hone_registry *registry, const char *name, hone_error *err);
void hone_registry_deferred_destroy(hone_registry *registry);
// Registering proper, under the mutex.
hone_status hone_registry_put_algorithm(
    hone_registry *registry, const hone_algorithm *algorithm, bool builtin, hone_error *err);
hone_status hone_registry_put_kernels(
    hone_registry *registry, const hone_kernel *kernels, size_t count, bool replace, bool builtin, hone_error *err);
// Replaces a kernel's code by a copy in the arena, with its file read; a kernel without a revision gets the code's
// digest.
hone_status hone_registry_copy_code(
    const hone_registry *registry, hone_arena *arena, hone_kernel *kernel, hone_error *err);
// Whether the kernel's code can run a call (NULL: any) on a device (NULL: some).
hone_status hone_registry_check_code(
    const hone_kernel_ref *ref, const hone_call *call, const hone_device_info *device, hone_error *err);
const hone_kernel_list *hone_registry_kernels_now(const hone_algorithm_entry *entry);
void hone_registry_batch_destroy(hone_registry_batch *owned, const hone_allocator *allocator);

_Static_assert(HONE_MAX_VALUES <= 64, "hone_kernel_ref.unsupported has a bit for each parameter");

#endif
