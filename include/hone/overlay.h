// Overlays and contexts.
//
// An overlay is a set of decisions that shadow all others. A context is an immutable, numbered set of
// overlays, overrides, a policy and changes of the chain; one is current in each thread. A thread starts with none: a pool, a
// coroutine or a callback enters what its caller captured. A context costs nothing when none is entered.
#ifndef HONE_OVERLAY_H
#define HONE_OVERLAY_H

#include "hone/config.h"
#include "hone/device.h"
#include "hone/policy.h"
#include "hone/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// One decision by its key. All strings are copied.
typedef struct hone_entry {
    const char *device;     // fingerprint; NULL for any device
    const char *algorithm;  // "rms_norm" or "rms_norm@v1"
    const char *version;    // NULL takes that of algorithm, else "1"
    const char *key;        // call key
    const char *spec;       // canonical text of the call; NULL compares the key alone
    const char *kernel;     // kernel name
    hone_platform platform; // HONE_PLATFORM_NONE: the first kernel of that name
    const char *config;     // JSON object or text "a=1 b=2"; NULL or "": the space's default
} hone_entry;

typedef struct hone_overlay hone_overlay; // immutable, counted

HONE_API HONE_MUST_CHECK hone_status hone_overlay_create_sized(
    hone_runtime *rt, const hone_entry *entries, size_t count, size_t size, hone_overlay **out, hone_error *err);
HONE_MUST_CHECK static inline hone_status hone_overlay_create(
    hone_runtime *rt, const hone_entry *entries, size_t count, hone_overlay **out, hone_error *err)
{
    return hone_overlay_create_sized(rt, entries, count, sizeof *entries, out, err);
}
HONE_API void hone_overlay_release(hone_overlay **overlay);

// An override answers every call of an algorithm: kernel, and a config or NULL for the kernel's heuristic.
typedef struct hone_override {
    const char *algorithm;
    const char *kernel;
    hone_platform platform; // HONE_PLATFORM_NONE: the first kernel of that name
    const char *config;     // JSON object or text; NULL selects the kernel's heuristic
    bool store;             // true: the answer is also written to the store (marked as override, unverified)
} hone_override;

typedef struct hone_context hone_context; // immutable, counted

HONE_API HONE_MUST_CHECK hone_status hone_context_derive_sized(
    hone_runtime *rt,
    hone_context *parent,
    hone_overlay *overlay,
    const hone_override *override_,
    size_t size,
    hone_policy policy,
    hone_context **out,
    hone_error *err);
// A context like parent (NULL for the empty one) with one more overlay (NULL for none), override (NULL for none) and
// policy (HONE_POLICY_DEFAULT: the parent's). Newer overlays are asked first.
HONE_MUST_CHECK static inline hone_status hone_context_derive(
    hone_runtime *rt,
    hone_context *parent,
    hone_overlay *overlay,
    const hone_override *override_,
    hone_policy policy,
    hone_context **out,
    hone_error *err)
{
    return hone_context_derive_sized(rt, parent, overlay, override_, sizeof *override_, policy, out, err);
}
HONE_API hone_context *hone_context_retain(hone_context *context);
HONE_API void hone_context_release(hone_context **context);
// Makes context (NULL for none) the calling thread's and returns what was current before. Both are borrowed: the
// caller keeps a reference for as long as a context is current anywhere. Entering one twice is fine.
HONE_API hone_context *hone_context_enter(hone_context *context);
// The calling thread's context, or NULL.
HONE_API hone_context *hone_context_current(void);

#ifdef __cplusplus
}
#endif
#endif
