// The public face of the cache in memory.
#include "base/error.h"
#include "base/structs.h"
#include "runtime/api/entry.h"
#include "runtime/api/inner.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "cache.get";

hone_status hone_cache_get(
    hone_runtime *rt, const char *device, const char *algorithm, const char *key, hone_decision *out, hone_error *err)
{
    if (rt == NULL || algorithm == NULL || key == NULL || out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the runtime, algorithm, key and out must not be NULL");
    char name[HONE_NAME_SIZE], version[16];
    hone_status status = hone_entry_split_name(algorithm, NULL, name, version, err);
    if (status == HONE_OK) status = hone_runtime_discover(rt, err);
    if (status != HONE_OK) return status;
    // Names are compared in lower case; the registry has the canonical form.
    const hone_algorithm_entry *known = hone_registry_find(rt->registry, name, version);
    if (known != NULL) snprintf(name, sizeof name, "%s", known->name);
    device = device != NULL ? device : rt->cpu->fingerprint;
    const hone_decision_row *row = hone_context_find(hone_thread_self.context, device, name, version, key, NULL);
    if (row != NULL) {
        *out = row->decision;
        return HONE_OK;
    }
    hone_mutex_lock(&rt->mutex);
    row = hone_decisions_get(&rt->cache, device, name, version, key, NULL);
    if (row != NULL) *out = row->decision;
    hone_mutex_unlock(&rt->mutex);
    if (row != NULL) return HONE_OK;
    return hone_fail(err, HONE_NOT_FOUND, where, "no decision for %s@v%s %s on %s", name, version, key, device);
}

hone_status hone_cache_put(hone_runtime *rt, const hone_entry *entry, hone_error *err)
{
    if (rt == NULL || entry == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "cache.put", "the runtime and the entry must not be NULL");
    hone_decision decision;
    hone_status status = hone_entry_decision(rt, entry, HONE_SOURCE_MEMORY, &decision, err);
    if (status == HONE_OK) status = hone_runtime_discover(rt, err);
    if (status != HONE_OK) return status;
    hone_mutex_lock(&rt->mutex);
    const char *device = entry->device != NULL ? entry->device : rt->cpu->fingerprint;
    status = hone_decisions_put(&rt->cache, device, entry->spec, &decision, err);
    hone_mutex_unlock(&rt->mutex);
    hone_runtime_answers_changed(rt);
    // A platform that was never opened has no plans.
    bool woken = atomic_load_explicit(&rt->woken, memory_order_acquire);
    const hone_device_list *devices = woken ? &rt->all : &rt->near;
    for (size_t i = 0; i < devices->count; i++)
        hone_runtime_drop_replaced(rt, devices->devices[i], &decision);
    return status;
}

static bool is_any(void *ctx, const hone_plan_entry *entry)
{
    (void)ctx;
    (void)entry;
    return true;
}

void hone_cache_clear(hone_runtime *rt)
{
    hone_mutex_lock(&rt->mutex);
    hone_decisions_clear(&rt->cache);
    hone_mutex_unlock(&rt->mutex);
    hone_runtime_answers_changed(rt);
    hone_plan_table_drop(&rt->plans, is_any, NULL);
}

size_t hone_cache_size(hone_runtime *rt)
{
    hone_mutex_lock(&rt->mutex);
    size_t count = rt->cache.count;
    hone_mutex_unlock(&rt->mutex);
    return count;
}

hone_status hone_cache_keys(
    hone_runtime *rt,
    bool (*visit)(void *ctx, const char *device, const char *algorithm_version, const char *key),
    void *ctx,
    hone_error *err)
{
    if (rt == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "cache.keys", "the runtime and visit must not be NULL");
    // Copies row by row, so that visit may call hone.
    for (size_t i = 0;; i++) {
        char algorithm[HONE_NAME_SIZE + 20], key[20];
        hone_mutex_lock(&rt->mutex);
        const hone_decision_row *row = i < rt->cache.count ? rt->cache.rows[i] : NULL;
        char *device = row == NULL ? NULL : hone_copy_text(&rt->allocator, row->device, strlen(row->device));
        if (row != NULL) {
            snprintf(algorithm, sizeof algorithm, "%s@v%s", row->decision.algorithm, row->decision.version);
            snprintf(key, sizeof key, "%s", row->decision.key);
        }
        hone_mutex_unlock(&rt->mutex);
        if (row == NULL) return HONE_OK;
        if (device == NULL) return hone_fail_memory(err, "cache.keys");
        bool more = visit(ctx, device, algorithm, key);
        hone_free(&rt->allocator, device);
        if (!more) return HONE_OK;
    }
}
