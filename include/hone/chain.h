// A chain of the program's own: links that are left out, or that a function of the program replaces (docs/contexts.md).
#ifndef HONE_CHAIN_H
#define HONE_CHAIN_H

#include "hone/overlay.h"

#ifdef __cplusplus
extern "C" {
#endif

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
    // If it is NULL, the link is left out. Else it is called in place of the link, under the policies that ask the link, at each
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
// A context like parent (NULL for the empty one) with a changed chain. The newest change of a link counts. An
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

#ifdef __cplusplus
}
#endif
#endif
