#include "config/chain.h"

#include "base/assert.h"
#include "base/error.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "chain";

#define TUNE      (1u << HONE_POLICY_TUNE)
#define HEURISTIC (1u << HONE_POLICY_HEURISTIC)
#define FAIL      (1u << HONE_POLICY_FAIL)
#define FROZEN    (1u << HONE_POLICY_FROZEN)

#define ROW(SOURCE, name, kind, policies, why_not) {HONE_SOURCE_##SOURCE, #name, HONE_LINK_##kind, policies, why_not},
static const struct {
    hone_source source;
    const char *name;
    hone_link_kind kind;
    unsigned policies; // that ask it
    const char *why_not;
} chain[] = {HONE_CHAIN(ROW)};
#undef ROW
enum { CHAIN_LENGTH = sizeof chain / sizeof chain[0] };
static_assert(CHAIN_LENGTH == HONE_SOURCE_COUNT - 1, "every source but HONE_SOURCE_NONE has a row");

// The row of a source: the enum is in the order of the chain. CHAIN_LENGTH: it has none.
static size_t row_of(hone_source source)
{
    const bool is_link = (int)source > HONE_SOURCE_NONE && source < HONE_SOURCE_COUNT;
    const size_t row = is_link ? (size_t)source - 1 : CHAIN_LENGTH;
    hone_assert(!is_link || chain[row].source == source);
    return row;
}

const char *hone_source_name(hone_source source)
{
    const size_t row = row_of(source);
    if (row < CHAIN_LENGTH) return chain[row].name;
    return source == HONE_SOURCE_NONE ? "none" : "unknown source";
}

bool hone_source_by_name(const char *name, hone_source *out)
{
    for (size_t i = 0; i < CHAIN_LENGTH; i++) {
        if (strcmp(chain[i].name, name) != 0) continue;
        *out = chain[i].source;
        return true;
    }
    return false;
}

bool hone_source_is(hone_source source, hone_link_kind kind)
{
    const size_t row = row_of(source);
    return row < CHAIN_LENGTH && chain[row].kind == kind;
}

bool hone_chain_asks(hone_policy policy, hone_source source, const char **out_why)
{
    const size_t row = row_of(source);
    if (row == CHAIN_LENGTH) return false;
    const bool asks = (chain[row].policies & (1u << policy)) != 0;
    if (out_why != NULL) *out_why = asks ? NULL : chain[row].why_not;
    return asks;
}

static hone_status ask_hone(
    const hone_links *links, hone_source source, const hone_request *request, hone_decision *out, hone_error *why)
{
    hone_assert(source > HONE_SOURCE_NONE && source < HONE_SOURCE_COUNT);
    hone_link_function *find = links->find[source];
    if (find == NULL) return hone_fail(why, HONE_NOT_FOUND, where, "there is no %s", hone_source_name(source));
    return find(request, out, why);
}

// Overrides and overlays are the context's own: those that it was given later stand before a change of their link.
static bool is_of_contexts(hone_source source)
{
    return source == HONE_SOURCE_OVERRIDE || source == HONE_SOURCE_OVERLAY;
}

//   out_own  the change that had the last word; NULL: hone's own link had it
static hone_status ask(
    const hone_links *links,
    hone_source source,
    const hone_request *request,
    const hone_context *context,
    const hone_context_link **out_own,
    hone_decision *out,
    hone_error *why)
{
    hone_status status = HONE_NOT_FOUND;
    const hone_context_link *own = *out_own = hone_context_find_link(context, source);
    if (own == NULL || is_of_contexts(source)) status = ask_hone(links, source, request, out, why);
    if (own != NULL && status != HONE_NOT_FOUND)
        *out_own = NULL;
    else if (own != NULL && own->link.find == NULL)
        hone_fail(why, HONE_NOT_FOUND, where, "the context leaves it out");
    else if (own != NULL)
        status = links->own(request, own, out, why);
    if (status == HONE_OK) out->source = source;
    return status;
}

// Joins what the links said: the message of a chain that found nothing.
static void add_reason(char *text, size_t size, hone_source source, const char *reason)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s: %.200s", used == 0 ? "" : "; ", hone_source_name(source), reason);
}

// The links are asked in the order of the table, and the first that answers decides. HONE_NOT_FOUND goes on to the next
// link, and its reason is kept for the message; any other failure ends the chain, since a link that is broken may have
// had the answer that the caller relies on.
hone_status hone_chain_decide(
    const hone_links *links,
    const hone_request *request,
    const hone_context *context,
    hone_policy policy,
    hone_decision *out,
    hone_error *err)
{
    char reasons[800] = "";
    hone_error locked = {.message = ""};
    for (size_t i = 0; i < CHAIN_LENGTH; i++) {
        if ((chain[i].policies & (1u << policy)) == 0) continue;
        hone_error why = {.where = "chain", .message = ""};
        hone_decision decision = {0};
        const hone_context_link *own;
        hone_status status = ask(links, chain[i].source, request, context, &own, &decision, &why);
        if (status == HONE_OK) {
            *out = decision;
            return HONE_OK;
        }
        if (status != HONE_NOT_FOUND) {
            if (err != NULL) *err = why;
            return status;
        }
        add_reason(reasons, sizeof reasons, chain[i].source, why.message);
        if (chain[i].source == HONE_SOURCE_LOCK) locked = why;
    }
    // Of a frozen chain's two links the lock's words are the answer, and they are long.
    if (policy == HONE_POLICY_FROZEN) return hone_fail(err, HONE_NOT_FOUND, where, "frozen: %s", locked.message);
    return hone_fail(
        err, HONE_NOT_FOUND, where, "nothing answers under the policy %s (%s)", hone_policy_name(policy), reasons);
}

size_t hone_chain_explain(
    const hone_links *links,
    const hone_request *request,
    const hone_context *context,
    hone_policy policy,
    hone_link_report *reports)
{
    for (size_t i = 0; i < CHAIN_LENGTH; i++) {
        hone_link_report *report = &reports[i];
        memset(report, 0, sizeof *report);
        report->source = chain[i].source;
        report->status = HONE_NOT_FOUND;
        const char *why_not = NULL;
        report->asked = hone_chain_asks(policy, chain[i].source, &why_not) && chain[i].source != HONE_SOURCE_AUTOTUNE;
        const hone_context_link *own = NULL;
        if (report->asked)
            report->status = ask(links, chain[i].source, request, context, &own, &report->decision, &report->why);
        else
            snprintf(
                report->why.message, sizeof report->why.message, "%s",
                why_not != NULL ? why_not : "would tune now; explain never tunes");
        report->own = own != NULL ? own->link.name : NULL;
    }
    return CHAIN_LENGTH;
}
