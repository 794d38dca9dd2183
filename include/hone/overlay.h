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
    const char *device;     // fingerprint; NULL: any device
    const char *algorithm;  // "rms_norm" or "rms_norm@v1"
    const char *version;    // NULL: from algorithm, else "1"
    const char *key;        // call key
    const char *spec;       // canonical text of the call; NULL: the key alone is compared
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
HONE_API size_t hone_overlay_size(const hone_overlay *overlay);

// An override answers every call of an algorithm: kernel, and a config or NULL for the kernel's heuristic.
typedef struct hone_override {
    const char *algorithm;
    const char *kernel;
    hone_platform platform; // HONE_PLATFORM_NONE: the first kernel of that name
    const char *config;     // JSON object or text; NULL: the kernel's heuristic
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
// A context like parent (NULL: the empty one) with one more overlay (NULL: none), override (NULL: none) and
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
// The question to a link of the program's own. Borrowed for the call.
typedef struct hone_link_question {
    const hone_op *op;
    const hone_call *call;
    const char *device; // fingerprint
    hone_source source; // the link that it replaces
    hone_policy policy;
    bool explains; // hone_explain asks: the function tunes nothing and writes nothing
} hone_link_question;

// Its answer: all zero when it is asked.
typedef struct hone_link_answer {
    char kernel[HONE_NAME_SIZE];
    hone_platform platform; // HONE_PLATFORM_NONE: the first kernel of that name
    char config[1024];      // JSON object or text "a=1 b=2"; "": the kernel's heuristic
} hone_link_answer;

// A link of the chain that is left out, or that a function of the program replaces.
typedef struct hone_link {
    hone_source source;
    // NULL: the link is left out. Else it is called in place of the link, under the policies that ask the link, at each
    // miss; its answer is kept like any other, in a plan of the context. It is called in the thread that makes the call,
    // under the context that was derived from, so that hone_decide and hone_run may be called in it; other threads may
    // call it at the same time.
    // Returns: HONE_OK with *answer; HONE_NOT_FOUND: the next link is asked; anything else ends the chain with why's message.
    hone_status (*find)(void *ctx, const hone_link_question *question, hone_link_answer *answer, hone_error *why);
    void *ctx;
    const char *name; // of the function, for hone_explain and the context's digest: two of one name count as one
    void (*release)(void *ctx); // called once, when the context's last reference is released; may be NULL
} hone_link;

// Whether results of contests are stored.
typedef enum hone_keeping {
    HONE_KEEP_DEFAULT = 0, // of the enclosing context, else the runtime's: HONE_KEEP_STORED
    HONE_KEEP_STORED = 1,
    HONE_KEEP_IN_MEMORY = 2 // they stay in this process: contests by policy, and those of hone_tune
} hone_keeping;

HONE_API HONE_MUST_CHECK hone_status hone_context_derive_chain_sized(
    hone_runtime *rt,
    hone_context *parent,
    const hone_link *links,
    size_t count,
    size_t size,
    hone_keeping keeping,
    hone_context **out,
    hone_error *err);
// A context like parent (NULL: the empty one) with a changed chain. The newest change of a link counts. An
// override or overlay that is derived later precedes the change of its link. Names are copied.
// An answer is treated like the link's own: one for override, overlay or lock was asked for explicitly; others are marked
// unverified, and a kernel that is not built in is verified before it answers. A kernel that cannot run the call is
// skipped, and the next link asked; an unknown kernel or an invalid config ends the chain with HONE_INVALID_ARGUMENT.
//   count  at most one for each source
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (a source that is not a link, or is given twice; a function without a name):
//          release was not called.
HONE_MUST_CHECK static inline hone_status hone_context_derive_chain(
    hone_runtime *rt,
    hone_context *parent,
    const hone_link *links,
    size_t count,
    hone_keeping keeping,
    hone_context **out,
    hone_error *err)
{
    return hone_context_derive_chain_sized(rt, parent, links, count, sizeof *links, keeping, out, err);
}
HONE_API hone_context *hone_context_retain(hone_context *context);
HONE_API void hone_context_release(hone_context **context);
// A number that is unique among all contexts of this process; 0 for NULL.
HONE_API uint64_t hone_context_number(const hone_context *context);
// A hash of a context's contents: the same in every process and runtime for contexts that are derived alike with equal
// overlays (in any order of their entries), overrides and policies; 0 for NULL and for an empty one. For things that
// outlive the process and name a context, such as compiled programs.
HONE_API uint64_t hone_context_digest(const hone_context *context);
// The policy of calls that are made under a context, which may be NULL.
HONE_API hone_policy hone_policy_of(hone_runtime *rt, const hone_context *context);
// Makes context (NULL: none) the calling thread's and returns what was current before. Both are borrowed: the
// caller keeps a reference for as long as a context is current anywhere. Entering one twice is fine.
HONE_API hone_context *hone_context_enter(hone_context *context);
// The calling thread's context, or NULL.
HONE_API hone_context *hone_context_current(void);

#ifdef __cplusplus
}
#endif
#endif
