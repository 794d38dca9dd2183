// A store whose rows stand in memory and whose truth stands elsewhere, in files: the memory store does the work, and
// the kind says how its rows are read and written.
//
//   a read    refresh, then the memory store's function
//   a change  begin, the memory store's function, end: the changes of the tables are written, or taken back
#ifndef HONE_STORE_MEMORY_BACKED_H
#define HONE_STORE_MEMORY_BACKED_H

#include "store/memory/memory.h"

// What a kind brings.
typedef struct hone_backing {
    // Brings the tables up to what others wrote.
    hone_status (*refresh)(hone_store *store, hone_error *err);
    // Shuts other writers out, and refreshes. On failure nobody is shut out.
    hone_status (*begin)(hone_store *store, hone_error *err);
    // status is HONE_OK: writes what tables.changes lists and commits it; else, or when it cannot be written, rolls it
    // back. Lets other writers in. Returns status, or why nothing was written: then tables and files are as they were.
    hone_status (*end)(hone_store *store, hone_status status, hone_error *err);
} hone_backing;

// What the struct of such a kind begins with.
typedef struct hone_backed_store {
    hone_store base;
    const hone_backing *backing;
    hone_store *memory;
    hone_memory_tables tables;
    uint32_t depth; // of changes: one inside another is part of it
} hone_backed_store;

// Fills a struct that is all zeros. On failure there is nothing to deinit.
hone_status hone_backed_init(
    hone_backed_store *backed,
    const hone_store_ops *ops,
    const hone_backing *backing,
    const hone_allocator *allocator,
    const hone_log *log,
    hone_error *err);
void hone_backed_deinit(hone_backed_store *backed);

// hone_backing.refresh, but inside of a change, for which begin has refreshed.
hone_status hone_backed_refresh(hone_store *store, hone_error *err);
hone_status hone_backed_begin(hone_store *store, hone_error *err);
hone_status hone_backed_end(hone_store *store, hone_status status, hone_error *err);

// As in store/ops.h.
hone_status hone_backed_get(
    hone_store *store,
    const hone_store_key *key,
    hone_regime regime,
    void (*visit)(void *ctx, const hone_store_decision *decision),
    void *ctx,
    hone_error *err);
hone_status hone_backed_put_all(
    hone_store *store, const hone_store_decision *decisions, size_t count, hone_merger *merger, hone_error *err);
hone_status hone_backed_remove(hone_store *store, const hone_store_key *key, hone_error *err);
hone_status hone_backed_scan(
    hone_store *store, const hone_store_key *filter, hone_store_visit_decision *visit, void *ctx, hone_error *err);
hone_status hone_backed_put_measurement(
    hone_store *store, const hone_store_key *key, const hone_store_measurement *measurement, hone_error *err);
hone_status hone_backed_measurements(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err);
hone_status hone_backed_failures(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err);
hone_status hone_backed_add_invocations(
    hone_store *store, const hone_store_invocation *invocations, size_t count, hone_error *err);
hone_status hone_backed_invocations(
    hone_store *store, const hone_store_key *filter, hone_store_visit_invocation *visit, void *ctx, hone_error *err);
hone_status hone_backed_clear_invocations(hone_store *store, const char *device, hone_error *err);
hone_status hone_backed_expire_misses(hone_store *store, int64_t before, size_t most, hone_error *err);
hone_status hone_backed_put_alias(hone_store *store, const hone_store_alias *alias, hone_error *err);
hone_status hone_backed_get_alias(
    hone_store *store,
    const char *scheme,
    const char *operation,
    const char *foreign_key,
    void (*visit)(void *ctx, const hone_store_alias *alias),
    void *ctx,
    hone_error *err);
hone_status hone_backed_aliases(
    hone_store *store, const char *scheme, hone_store_visit_alias *visit, void *ctx, hone_error *err);
hone_status hone_backed_put_foreigns(
    hone_store *store, const hone_store_foreign *foreigns, size_t count, hone_error *err);
hone_status hone_backed_get_foreign(
    hone_store *store,
    const hone_store_foreign *key,
    void (*visit)(void *ctx, const hone_store_foreign *foreign),
    void *ctx,
    hone_error *err);
hone_status hone_backed_foreigns(
    hone_store *store, const char *scheme, hone_store_visit_foreign *visit, void *ctx, hone_error *err);
hone_status hone_backed_clear_foreigns(hone_store *store, const char *scheme, hone_error *err);
hone_status hone_backed_set_aside(
    hone_store *store, const hone_store_key *key, hone_regime regime, const char *reason, hone_error *err);
hone_status hone_backed_quarantine(hone_store *store, hone_store_visit_quarantined *visit, void *ctx, hone_error *err);
hone_status hone_backed_clear_quarantine(hone_store *store, hone_error *err);
hone_status hone_backed_verify(hone_store *store, hone_store_health *out, hone_error *err);
hone_status hone_backed_stat(hone_store *store, hone_store_stat *out, hone_error *err);

// In a kind's table: the functions above, but for those that it may have more to say to: quarantine, clear_quarantine,
// verify, stat.
// clang-format off
#define HONE_BACKED_STORE_OPS                                                                                          \
    .get = hone_backed_get, .put_all = hone_backed_put_all, .remove = hone_backed_remove, .scan = hone_backed_scan,    \
    .put_measurement = hone_backed_put_measurement, .measurements = hone_backed_measurements,                          \
    .failures = hone_backed_failures, .add_invocations = hone_backed_add_invocations,                                  \
    .invocations = hone_backed_invocations, .clear_invocations = hone_backed_clear_invocations,                        \
    .expire_misses = hone_backed_expire_misses, .put_alias = hone_backed_put_alias,                                    \
    .get_alias = hone_backed_get_alias, .aliases = hone_backed_aliases, .put_foreigns = hone_backed_put_foreigns,      \
    .get_foreign = hone_backed_get_foreign, .foreigns = hone_backed_foreigns,                                          \
    .clear_foreigns = hone_backed_clear_foreigns, .set_aside = hone_backed_set_aside, .begin = hone_backed_begin,      \
    .end = hone_backed_end
// clang-format on

#endif
