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

HONE_API HONE_MUST_CHECK hone_status
hone_overlay_create(hone_runtime *rt, const hone_entry *entries, size_t count, hone_overlay **out, hone_error *err);
HONE_API hone_overlay *hone_overlay_retain(hone_overlay *overlay);
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

// A context like parent (NULL: the empty one) with one more overlay (NULL: none), override (NULL: none) and
// policy (HONE_POLICY_DEFAULT: the parent's). Newer overlays are asked first.
HONE_API HONE_MUST_CHECK hone_status hone_context_derive(
    hone_runtime *rt,
    hone_context *parent,
    hone_overlay *overlay,
    const hone_override *override_,
    hone_policy policy,
    hone_context **out,
    hone_error *err);
// What a link of the program's own is asked. Borrowed for the call.
typedef struct hone_link_question {
    const hone_op *op;
    const hone_call *call;
    const char *device; // fingerprint
    hone_source source; // the link that it stands for
    hone_policy policy;
    bool explains; // hone_explain asks: the function tunes nothing and writes nothing
} hone_link_question;

// Its answer: all zero when it is asked.
typedef struct hone_link_answer {
    char kernel[HONE_NAME_SIZE];
    hone_platform platform; // HONE_PLATFORM_NONE: the first kernel of that name
    char config[1024];      // JSON object or text "a=1 b=2"; "": the kernel's heuristic
} hone_link_answer;

// A link of the chain that is left out, or that a function of the program stands for.
typedef struct hone_link {
    hone_source source;
    // NULL: the link is left out. Else it is asked in the link's place, by the policies that ask the link, at each miss:
    // what it answers is kept as any answer, in a plan of the context. It is called in the thread that makes the call,
    // under the context that was derived from, so that hone_decide and hone_run may be called in it; other threads may
    // call it at the same time.
    // Returns: HONE_OK with *answer; HONE_NOT_FOUND: the next link is asked; anything else ends the chain with why's words.
    hone_status (*find)(void *ctx, const hone_link_question *question, hone_link_answer *answer, hone_error *why);
    void *ctx;
    const char *name; // of the function, for hone_explain and the context's digest: two of one name count as one
    void (*release)(void *ctx); // called once, by whoever gives the context's last reference back; may be NULL
} hone_link;

// Whether what is tuned goes to the store.
typedef enum hone_keeping {
    HONE_KEEP_DEFAULT = 0, // as the context around says, in the end the runtime: HONE_KEEP_STORED
    HONE_KEEP_STORED = 1,
    HONE_KEEP_IN_MEMORY = 2 // contests of the thread are of this process alone: by policy, and by hone_tune
} hone_keeping;

// A context like parent (NULL: the empty one) with a changed chain. A link that is changed twice is as the newest says. An
// override or overlay that is derived later stands before the change of its link. Names are copied.
// An answer is followed like any of its link's place: of override, overlay and lock it is what somebody asked for; others
// are marked unverified, and a kernel that is not built in is verified before it answers. A kernel that cannot run the call
// is passed by, and the next link asked; a kernel or a config that is not there ends the chain with HONE_INVALID_ARGUMENT.
//   count  at most one for each source
// Returns: HONE_OK; HONE_INVALID_ARGUMENT (a source that is no link, or is there twice; a function without a name):
//          release was not called.
HONE_API HONE_MUST_CHECK hone_status hone_context_derive_chain(
    hone_runtime *rt,
    hone_context *parent,
    const hone_link *links,
    size_t count,
    hone_keeping keeping,
    hone_context **out,
    hone_error *err);
HONE_API hone_context *hone_context_retain(hone_context *context);
HONE_API void hone_context_release(hone_context **context);
// A number that no other context of this process ever has; 0 for NULL.
HONE_API uint64_t hone_context_number(const hone_context *context);
// What a context says, as a number: the same in every process and runtime for contexts that are derived alike with
// equal overlays (in any order of their entries), overrides and policies; 0 for NULL and where nothing is said. For
// what outlives the process and names a context, as compiled programs do.
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
