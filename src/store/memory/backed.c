// The memory store's functions between reading and writing what stands elsewhere.
#include "store/memory/backed.h"

#include "base/assert.h"

static hone_backed_store *backed_of(hone_store *store)
{
    return (hone_backed_store *)store;
}

hone_status hone_backed_init(
    hone_backed_store *backed,
    const hone_store_ops *ops,
    const hone_backing *backing,
    const hone_allocator *allocator,
    const hone_log *log,
    hone_error *err)
{
    backed->base.ops = ops;
    backed->base.allocator = *allocator;
    backed->base.log = *log;
    backed->backing = backing;
    hone_status status = hone_memory_store_ops.open(allocator, log, "", &backed->memory, err);
    if (status == HONE_OK) backed->tables = hone_memory_hold(backed->memory);
    return status;
}

void hone_backed_deinit(hone_backed_store *backed)
{
    hone_assert(backed->depth == 0);
    hone_memory_store_ops.close(backed->memory);
}

// Changes -------------------------------------------------------------------------------------------------------------

hone_status hone_backed_refresh(hone_store *store, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    return backed->depth > 0 ? HONE_OK : backed->backing->refresh(store, err);
}

// A put inside of a transaction begins nothing of its own: the transaction writes once, at its end.
static hone_status begin(hone_backed_store *backed, hone_error *err)
{
    hone_status status = backed->depth > 0 ? HONE_OK : backed->backing->begin(&backed->base, err);
    backed->depth += status == HONE_OK;
    return status;
}

static hone_status end(hone_backed_store *backed, hone_status status, hone_error *err)
{
    hone_assert(backed->depth > 0);
    return --backed->depth > 0 ? status : backed->backing->end(&backed->base, status, err);
}

hone_status hone_backed_begin(hone_store *store, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_assert(backed->depth == 0);
    hone_status status = begin(backed, err);
    return status == HONE_OK ? hone_memory_store_ops.begin(backed->memory, err) : status;
}

hone_status hone_backed_end(hone_store *store, hone_status status, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_assert(backed->depth == 1);
    status = hone_memory_store_ops.end(backed->memory, status, err);
    return end(backed, status, err);
}

// Reading -------------------------------------------------------------------------------------------------------------

hone_status hone_backed_get(
    hone_store *store,
    const hone_store_key *key,
    hone_regime regime,
    void (*visit)(void *ctx, const hone_store_decision *decision),
    void *ctx,
    hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = hone_backed_refresh(store, err);
    return status != HONE_OK ? status : hone_memory_store_ops.get(backed->memory, key, regime, visit, ctx, err);
}

hone_status hone_backed_scan(
    hone_store *store, const hone_store_key *filter, hone_store_visit_decision *visit, void *ctx, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = hone_backed_refresh(store, err);
    return status != HONE_OK ? status : hone_memory_store_ops.scan(backed->memory, filter, visit, ctx, err);
}

hone_status hone_backed_measurements(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = hone_backed_refresh(store, err);
    return status != HONE_OK ? status : hone_memory_store_ops.measurements(backed->memory, filter, visit, ctx, err);
}

hone_status hone_backed_failures(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = hone_backed_refresh(store, err);
    return status != HONE_OK ? status : hone_memory_store_ops.failures(backed->memory, filter, visit, ctx, err);
}

hone_status hone_backed_invocations(
    hone_store *store, const hone_store_key *filter, hone_store_visit_invocation *visit, void *ctx, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = hone_backed_refresh(store, err);
    return status != HONE_OK ? status : hone_memory_store_ops.invocations(backed->memory, filter, visit, ctx, err);
}

hone_status hone_backed_get_alias(
    hone_store *store,
    const char *scheme,
    const char *operation,
    const char *foreign_key,
    void (*visit)(void *ctx, const hone_store_alias *alias),
    void *ctx,
    hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = hone_backed_refresh(store, err);
    return status != HONE_OK
               ? status
               : hone_memory_store_ops.get_alias(backed->memory, scheme, operation, foreign_key, visit, ctx, err);
}

hone_status hone_backed_aliases(
    hone_store *store, const char *scheme, hone_store_visit_alias *visit, void *ctx, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = hone_backed_refresh(store, err);
    return status != HONE_OK ? status : hone_memory_store_ops.aliases(backed->memory, scheme, visit, ctx, err);
}

hone_status hone_backed_get_foreign(
    hone_store *store,
    const hone_store_foreign *key,
    void (*visit)(void *ctx, const hone_store_foreign *foreign),
    void *ctx,
    hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = hone_backed_refresh(store, err);
    return status != HONE_OK ? status : hone_memory_store_ops.get_foreign(backed->memory, key, visit, ctx, err);
}

hone_status hone_backed_foreigns(
    hone_store *store, const char *scheme, hone_store_visit_foreign *visit, void *ctx, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = hone_backed_refresh(store, err);
    return status != HONE_OK ? status : hone_memory_store_ops.foreigns(backed->memory, scheme, visit, ctx, err);
}

hone_status hone_backed_quarantine(hone_store *store, hone_store_visit_quarantined *visit, void *ctx, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = hone_backed_refresh(store, err);
    return status != HONE_OK ? status : hone_memory_store_ops.quarantine(backed->memory, visit, ctx, err);
}

hone_status hone_backed_verify(hone_store *store, hone_store_health *out, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = hone_backed_refresh(store, err);
    return status != HONE_OK ? status : hone_memory_store_ops.verify(backed->memory, out, err);
}

hone_status hone_backed_stat(hone_store *store, hone_store_stat *out, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = hone_backed_refresh(store, err);
    return status != HONE_OK ? status : hone_memory_store_ops.stat(backed->memory, out, err);
}

// Writing -------------------------------------------------------------------------------------------------------------

hone_status hone_backed_put_all(
    hone_store *store, const hone_store_decision *decisions, size_t count, hone_merger *merger, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = begin(backed, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.put_all(backed->memory, decisions, count, merger, err);
    return end(backed, status, err);
}

hone_status hone_backed_remove(hone_store *store, const hone_store_key *key, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = begin(backed, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.remove(backed->memory, key, err);
    return end(backed, status, err);
}

hone_status hone_backed_put_measurement(
    hone_store *store, const hone_store_key *key, const hone_store_measurement *measurement, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = begin(backed, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.put_measurement(backed->memory, key, measurement, err);
    return end(backed, status, err);
}

hone_status hone_backed_add_invocations(
    hone_store *store, const hone_store_invocation *invocations, size_t count, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = begin(backed, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.add_invocations(backed->memory, invocations, count, err);
    return end(backed, status, err);
}

hone_status hone_backed_clear_invocations(hone_store *store, const char *device, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = begin(backed, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.clear_invocations(backed->memory, device, err);
    return end(backed, status, err);
}

hone_status hone_backed_expire_misses(hone_store *store, int64_t before, size_t most, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = begin(backed, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.expire_misses(backed->memory, before, most, err);
    return end(backed, status, err);
}

hone_status hone_backed_put_alias(hone_store *store, const hone_store_alias *alias, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = begin(backed, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.put_alias(backed->memory, alias, err);
    return end(backed, status, err);
}

hone_status hone_backed_put_foreigns(
    hone_store *store, const hone_store_foreign *foreigns, size_t count, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = begin(backed, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.put_foreigns(backed->memory, foreigns, count, err);
    return end(backed, status, err);
}

hone_status hone_backed_clear_foreigns(hone_store *store, const char *scheme, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = begin(backed, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.clear_foreigns(backed->memory, scheme, err);
    return end(backed, status, err);
}

hone_status hone_backed_set_aside(
    hone_store *store, const hone_store_key *key, hone_regime regime, const char *reason, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = begin(backed, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.set_aside(backed->memory, key, regime, reason, err);
    return end(backed, status, err);
}

hone_status hone_backed_clear_quarantine(hone_store *store, hone_error *err)
{
    hone_backed_store *backed = backed_of(store);
    hone_status status = begin(backed, err);
    if (status != HONE_OK) return status;
    status = hone_memory_store_ops.clear_quarantine(backed->memory, err);
    return end(backed, status, err);
}
