// What the registry is made of; shared by the files of this folder only.
//
// Readers never lock: an algorithm's kernels and the list of all algorithms are immutable arrays behind one atomic
// pointer each. A writer, under the mutex, makes the next array beside the one in use and then swaps the pointer. Arrays
// that were swapped out stay until the registry dies, because a reader may still walk them; they are as many as there
// were registrations.
#ifndef HONE_REGISTRY_TABLES_H
#define HONE_REGISTRY_TABLES_H

#include "base/memory.h"
#include "call/call.h"
#include "registry/registry.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct kernel_list {
    size_t count;
    const hone_kernel_ref *refs[];
} kernel_list;

typedef struct owned_algorithm {
    hone_algorithm_entry entry; // first: an entry that was handed out is cast back
    const kernel_list *_Atomic kernels;
} owned_algorithm;

typedef struct algorithm_list {
    size_t count;
    const hone_algorithm_entry *entries[]; // sorted by name, then version
} algorithm_list;

// All memory of one registration. It joins the registry when the registration succeeds and dies when it is refused.
typedef struct batch {
    struct batch *next;
    hone_arena arena;
    hone_kernel_ref *refs; // count of them, each with a signature and a space to release
    size_t count;
    hone_signature *signature; // an algorithm's
} batch;

struct hone_registry {
    hone_allocator allocator;
    uint32_t present_backends;
    hone_backend default_backend;
    uint64_t features;
    void *owner;
    pthread_mutex_t mutex; // of writers
    const algorithm_list *_Atomic algorithms;
    batch *batches;
    uint32_t next_order;
};

// Lower case of a name that may end with "@vVERSION". False when no algorithm can have that name (empty, too long).
typedef struct registry_name {
    char name[HONE_NAME_SIZE];
    char version[16]; // "" when none was written
} registry_name;
bool hone_registry_name_read(const char *text, registry_name *out);
// Versions by their numbers: "9" before "10", "1.2" before "1.10".
int hone_registry_version_compare(const char *a, const char *b);
const kernel_list *hone_registry_kernels_now(const hone_algorithm_entry *entry);
void hone_registry_batch_destroy(batch *owned, const hone_allocator *allocator);

_Static_assert(HONE_MAX_VALUES <= 64, "hone_kernel_ref.unsupported has a bit for each parameter");

#endif
