// What hone itself writes into stores and reads back: decisions, measurements, invocations, other systems' keys and configs. Programs
// get theirs in by contests, results (hone_result_store), imports and their own caches.
#ifndef HONE_STORE_RECORDS_H
#define HONE_STORE_RECORDS_H

#include "hone/store.h"

// Another system's key for a call, and the key that hone has for it.
typedef struct hone_store_alias {
    const char *scheme;    // "ejkernel"
    const char *operation; // "flash_attention@v2"
    const char *foreign_key;
    const char *foreign_spec; // canonical text there; may be NULL
    hone_store_key key;       // hone's; device may be NULL
} hone_store_alias;

// --- decisions

// All or none, in one transaction. key.key is a call's key, 16 lower-case hex digits, and config a JSON object:
// HONE_INVALID_ARGUMENT else. Replaces the decision of the same device, algorithm, version, key and regime, whatever its
// evidence. To keep the better of the two, use hone_store_merge.
HONE_MUST_CHECK hone_status
hone_store_put_all(hone_store *store, const hone_store_decision *decisions, size_t count, hone_error *err);
HONE_MUST_CHECK static inline hone_status hone_store_put(
    hone_store *store, const hone_store_decision *decision, hone_error *err)
{
    return hone_store_put_all(store, decision, 1, err);
}

// The outcome of merging a decision.
typedef enum hone_merge_outcome {
    HONE_MERGE_TAKEN, // it is stored now
    HONE_MERGE_KEPT,  // the stored one is better and stays
    HONE_MERGE_EQUAL  // it was stored already
} hone_merge_outcome;
typedef void hone_merge_visit(void *ctx, size_t index, hone_merge_outcome outcome, const char *reason);

// Puts the decisions, each where it is better than the stored one of its key, in one transaction. The first of these
// that tells the two apart decides:
//   1. verified before unverified
//   2. of one kernel at two revisions, the later measured
//   3. more evidence before less: at least twice the samples
//   4. of one kernel and config, the later measured
//   5. the one measured first stays, unless the later is faster beyond the noise: its whole 95 % interval lies below the
//      other's, or its contest timed the other as the runner-up and the ratio's interval lies above 1
// When the evidence has no time, the stored one counts as measured first. The loser is kept in the winner's evidence,
// under "also": the last four that differ in kernel, config or revision. A decision whose canonical text differs from
// the stored one's is another call's and is not taken.
//   on_outcome  called once for each decision in order, after all are stored; reason is static; may be NULL
// Returns: as hone_store_put_all; on failure the store is as it was and nothing is visited.
HONE_MUST_CHECK hone_status hone_store_merge(
    hone_store *store,
    const hone_store_decision *decisions,
    size_t count,
    hone_merge_visit *on_outcome,
    void *ctx,
    hone_error *err);

// --- measurements and invocations

// Replaces the earlier measurement or failure of the same kernel, config and regime.
HONE_MUST_CHECK hone_status hone_store_put_measurement(
    hone_store *store, const hone_store_key *key, const hone_store_measurement *measurement, hone_error *err);
// Adds to what is stored: counts add up, first is the earliest, last the latest. All or none.
HONE_MUST_CHECK hone_status
hone_store_add_invocations(hone_store *store, const hone_store_invocation *invocations, size_t count, hone_error *err);
HONE_MUST_CHECK hone_status hone_store_clear_invocations(hone_store *store, const char *device, hone_error *err);

// --- other systems' keys and configs

HONE_MUST_CHECK hone_status hone_store_put_alias(hone_store *store, const hone_store_alias *alias, hone_error *err);
// Visits the alias of a foreign key. HONE_NOT_FOUND if no alias has that key.
HONE_MUST_CHECK hone_status hone_store_get_alias(
    hone_store *store,
    const char *scheme,
    const char *operation,
    const char *foreign_key,
    void (*visit)(void *ctx, const hone_store_alias *alias),
    void *ctx,
    hone_error *err);
// Visits the aliases of a scheme, or all when it is NULL, by scheme, operation and foreign key.
HONE_MUST_CHECK hone_status hone_store_aliases(
    hone_store *store,
    const char *scheme,
    bool (*visit)(void *ctx, const hone_store_alias *alias),
    void *ctx,
    hone_error *err);
// The key that a foreign config stands under (hone_record_kind).
static inline hone_store_key hone_store_foreign_key(const hone_store_foreign *foreign)
{
    return (hone_store_key){
        .device = foreign->device,
        .algorithm = foreign->operation,
        .version = foreign->scheme,
        .key = foreign->foreign_key};
}
// Visits the configs of a scheme, or all when it is NULL, by scheme, operation, device and foreign key; a store's notes, too,
// which hone_store_scan leaves out.
HONE_MUST_CHECK hone_status hone_store_foreigns(
    hone_store *store,
    const char *scheme,
    bool (*visit)(void *ctx, const hone_store_foreign *foreign),
    void *ctx,
    hone_error *err);
// Removes those of a scheme, as when a program clears its cache.
HONE_MUST_CHECK hone_status hone_store_clear_foreigns(hone_store *store, const char *scheme, hone_error *err);

HONE_MUST_CHECK hone_status hone_store_clear_quarantine(hone_store *store, hone_error *err);

#endif
