// Contexts from the inside: what the chain and the hot path read.
#ifndef HONE_CONFIG_CONTEXT_H
#define HONE_CONFIG_CONTEXT_H

#include "config/decisions.h"
#include "hone/chain.h"
#include "hone/overlay.h"

#include <stdatomic.h>

struct hone_overlay {
    atomic_size_t references;
    hone_decisions decisions;
};

// An override that was checked against the registry.
typedef struct hone_context_override {
    char algorithm[HONE_NAME_SIZE]; // lower case; "" if the slot is empty
    char version[16];               // "": of every version
    char kernel[HONE_NAME_SIZE];
    hone_platform platform;
    const struct hone_kernel_ref *exactly; // this very kernel, whatever it is named; NULL: by name
    char *config;                          // JSON object or text; NULL: the kernel's heuristic
    bool store;
} hone_context_override;

// A change of one link. find and the rest are the public struct's; name is a copy, NULL of a link that is left out.
typedef struct hone_context_link {
    hone_link link;
    hone_context *under; // that the function is called under: the parent of the context that brings the change
} hone_context_link;

struct hone_context {
    atomic_size_t references;
    hone_allocator allocator;
    uint64_t number, digest;
    hone_context *parent; // retained
    hone_overlay *overlay;
    hone_context_override override_;
    hone_policy policy; // DEFAULT: the parent's
    hone_context_link *links;
    size_t link_count;
    hone_keeping keeping; // DEFAULT: the parent's
};

// What the calling thread is in. One per thread, read by every call.
typedef struct hone_thread {
    hone_context *context;
    uint32_t context_number; // 0 without one; UINT32_MAX when the number does not fit: such calls take the slow way
    uint32_t depth;          // kernels of hone that this thread is inside of
    struct hone_epoch_slot *slot;
    struct hone_plan_entry *last; // the plan run last, good while its table is of this generation
    uint64_t generation;          // 0: none
    bool repeating;               // the last two runs had the same plan: compare with it before the table
} hone_thread;
// initial-exec: a shared library would otherwise call a function for each access.
extern _Thread_local hone_thread hone_thread_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

// A new empty overlay to put decisions in before it is shared.
hone_status hone_overlay_new(hone_allocator allocator, hone_overlay **out, hone_error *err);
// hone_context_derive with an override that was checked.
hone_status hone_context_new(
    hone_allocator allocator,
    hone_context *parent,
    hone_overlay *overlay,
    const hone_context_override *override_,
    hone_policy policy,
    hone_context **out,
    hone_error *err);
// hone_context_derive_chain with links that were checked.
hone_status hone_context_new_chain(
    hone_allocator allocator,
    hone_context *parent,
    const hone_link *links,
    size_t count,
    hone_keeping keeping,
    hone_context **out,
    hone_error *err);
// The newest change of a source's link; NULL: it is hone's own.
const hone_context_link *hone_context_find_link(const hone_context *context, hone_source source);
// Whether what is tuned under a context goes to the store.
bool hone_context_stores(const hone_context *context);
// The first policy from context outwards that is not DEFAULT, else fallback.
hone_policy hone_context_policy(const hone_context *context, hone_policy fallback);
// The newest override of an algorithm's version that is newer than a change of that link; NULL when there is none.
const hone_context_override *hone_context_find_override(
    const hone_context *context, const char *algorithm, const char *version);
// The newest overlay's decision, of those that are newer than a change of that link.
const hone_decision_row *hone_context_find(
    const hone_context *context,
    const char *device,
    const char *algorithm,
    const char *version,
    const char *key,
    const char *spec);

#endif
