// The chain: override > overlay > lock > memory > store > transfer > autotune > heuristic > error.
//
// The order is the contract. HONE_CHAIN is the one table of the links; what stands in it is asked for here, and its
// functions, which need the registry, the store and the tuner, are the runtime's.
#ifndef HONE_CONFIG_CHAIN_H
#define HONE_CONFIG_CHAIN_H

#include "config/context.h"
#include "hone/select.h"

// The links in the order in which they are asked. To add one: a value of hone_source at its place, a row here, and the
// file src/runtime/links/NAME.c with hone_request_from_NAME.
//   ROW(SOURCE, name, kind, policies that ask it, why the others do not)
#define HONE_CHAIN(ROW)                                                                                                \
    ROW(OVERRIDE, override, NAMED, TUNE | HEURISTIC | FAIL | FROZEN, NULL)                                             \
    ROW(OVERLAY, overlay, NAMED, TUNE | HEURISTIC | FAIL, "the policy is frozen")                                      \
    ROW(LOCK, lock, NAMED, TUNE | HEURISTIC | FAIL | FROZEN, NULL)                                                     \
    ROW(MEMORY, memory, DECIDED, TUNE | HEURISTIC | FAIL, "the policy is frozen")                                      \
    ROW(STORE, store, DECIDED, TUNE | HEURISTIC | FAIL, "the policy is frozen")                                        \
    ROW(TRANSFER, transfer, GUESSED, HEURISTIC,                                                                        \
        "only the policy heuristic answers with what other shapes or devices chose")                                   \
    ROW(AUTOTUNE, autotune, DECIDED, TUNE, "only the policy tune tunes")                                               \
    ROW(HEURISTIC, heuristic, GUESSED, TUNE | HEURISTIC, "the policy asks for a decision or an error")

// What an answer of a link rests on.
typedef enum hone_link_kind {
    HONE_LINK_NAMED,   // somebody asked for the kernel by its name
    HONE_LINK_DECIDED, // it was decided for this call or its bucket
    HONE_LINK_GUESSED, // nobody measured this call: a miss
} hone_link_kind;

typedef struct hone_request hone_request; // the runtime's

// Asks one source. HONE_OK: *out is its answer. HONE_NOT_FOUND: the next is asked, why->message says why not.
// Anything else ends the chain.
typedef hone_status hone_link_function(const hone_request *request, hone_decision *out, hone_error *why);

// The same of a function that a context brings for a link.
typedef hone_status hone_own_link_function(
    const hone_request *request, const hone_context_link *link, hone_decision *out, hone_error *why);

// One function for each source, at its number; NULL passes.
typedef struct hone_links {
    hone_link_function *find[HONE_SOURCE_COUNT];
    hone_own_link_function *own;
} hone_links;

// What one link said, for hone_explain.
typedef struct hone_link_report {
    hone_source source;
    bool asked;
    hone_status status;
    hone_error why;
    hone_decision decision; // when status is HONE_OK
    const char *own;        // name of the program's function that was asked; NULL: the link is hone's, or left out
} hone_link_report;

// False for "none", which stands for an answer that nobody gave, and for a word that no source has; *out is then as it
// was. name is not NULL.
bool hone_source_by_name(const char *name, hone_source *out);
// Whether the link of a source is of a kind; false for a number that is no link's.
bool hone_source_is(hone_source source, hone_link_kind kind);
// True when the policy asks this source at all; *out_why (may be NULL) says why not. Static text.
bool hone_chain_asks(hone_policy policy, hone_source source, const char **out_why);
// Walks the chain as the context (NULL: none) has changed it. Returns HONE_OK with the first answer, else HONE_NOT_FOUND
// with what each link said.
hone_status hone_chain_decide(
    const hone_links *links,
    const hone_request *request,
    const hone_context *context,
    hone_policy policy,
    hone_decision *out,
    hone_error *err);
// Asks every link that the policy asks, but never the tuner; reports has HONE_SOURCE_COUNT rows, in chain order.
// Returns how many rows were filled.
size_t hone_chain_explain(
    const hone_links *links,
    const hone_request *request,
    const hone_context *context,
    hone_policy policy,
    hone_link_report *reports);

// "default", "tune", "heuristic", "fail", "frozen". Static.
const char *hone_policy_name(hone_policy policy);

#endif
