// The chain: override > overlay > lock > memory > store > transfer > autotune > heuristic > error.
//
// The order is the contract and stands in one table (chain.c); which links a policy asks stands in another.
// The links themselves are handed in by the runtime, which has the registry, the store and the tuner.
#ifndef HONE_CONFIG_CHAIN_H
#define HONE_CONFIG_CHAIN_H

#include "hone/select.h"

typedef struct hone_request hone_request; // the runtime's

// Asks one source. HONE_OK: *out is its answer. HONE_NOT_FOUND: the next is asked, why->message says why not.
// Anything else ends the chain.
typedef hone_status hone_link_function(const hone_request *request, hone_decision *out, hone_error *why);

// One function for each source, at its number; NULL passes.
typedef struct hone_links {
    hone_link_function *find[HONE_SOURCE_COUNT];
} hone_links;

// What one link said, for hone_explain.
typedef struct hone_link_report {
    hone_source source;
    bool asked;
    hone_status status;
    hone_error why;
    hone_decision decision; // when status is HONE_OK
} hone_link_report;

// True when the policy asks this source at all; *out_why (may be NULL) says why not. Static text.
bool hone_chain_asks(hone_policy policy, hone_source source, const char **out_why);
// Walks the chain. Returns HONE_OK with the first answer, else HONE_NOT_FOUND with what each link said.
hone_status hone_chain_decide(
    const hone_links *links, const hone_request *request, hone_policy policy, hone_decision *out, hone_error *err);
// Asks every link that the policy asks, but never the tuner; reports has HONE_SOURCE_COUNT rows, in chain order.
// Returns how many rows were filled.
size_t hone_chain_explain(
    const hone_links *links, const hone_request *request, hone_policy policy, hone_link_report *reports);

#endif
