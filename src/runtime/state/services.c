// What a runtime creates at first use: its stores, its pool, its workers; and the references that keep the runtime
// open.
#include "base/error.h"
#include "runtime/state/runtime.h"
#include "store/mirror.h"
#include "store/ops.h"

hone_runtime *hone_runtime_retain(hone_runtime *rt)
{
    atomic_fetch_add_explicit(&rt->references, 1, memory_order_relaxed);
    return rt;
}

void hone_runtime_release(hone_runtime *rt)
{
    if (atomic_fetch_sub_explicit(&rt->references, 1, memory_order_acq_rel) == 1) rt->destroy(rt);
}

static void log_of_store(void *ctx, int level, const char *message)
{
    const hone_runtime *rt = ctx;
    hone_log_write(&rt->log, level, "%s", message);
}

// Called before anything is read, so that every later change is noticed.
static void note_changes(hone_store *store, uint64_t *out)
{
    if (hone_store_changes(store, out, NULL) != HONE_OK) *out = 0;
}

static hone_store *open_lazily(
    hone_runtime *rt, hone_lazy_store *lazy, bool read_only, const char *name, uint64_t *out_seen)
{
    const hone_store_options options = {
        .struct_size = sizeof options,
        .allocator = rt->allocator,
        .log = log_of_store,
        .log_ctx = rt,
        .read_only = read_only,
    };
    hone_mutex_lock(&lazy->mutex);
    if (!lazy->tried && lazy->url != NULL) {
        lazy->tried = true;
        const hone_status status =
            lazy->copies != NULL
                ? hone_store_open_mirrored(&options, lazy->url, lazy->copies, &lazy->store, &lazy->error)
                : hone_store_open_with(&options, lazy->url, &lazy->store, &lazy->error);
        if (status != HONE_OK)
            hone_log_write(&rt->log, HONE_LOG_WARNING, "going on without the %s: %s", name, lazy->error.message);
        else
            note_changes(lazy->store, out_seen);
    }
    hone_store *store = lazy->store;
    hone_mutex_unlock(&lazy->mutex);
    return store;
}

hone_store *hone_runtime_store(hone_runtime *rt)
{
    return open_lazily(rt, &rt->store, false, "store", &rt->follower.seen[0]);
}

hone_store *hone_runtime_system_store(hone_runtime *rt)
{
    return open_lazily(rt, &rt->system_store, true, "system store", &rt->follower.seen[1]);
}

const char *hone_runtime_store_reason(hone_runtime *rt)
{
    return rt->store.url == NULL ? "there is no store: HONE_STORE is none, or neither XDG_CACHE_HOME nor HOME is a path"
                                 : rt->store.error.message;
}

hone_pool *hone_runtime_pool(hone_runtime *rt)
{
    hone_mutex_lock(&rt->mutex);
    if (rt->pool == NULL) {
        hone_error err;
        if (hone_pool_create(&rt->allocator, rt->pool_threads, &rt->pool, &err) != HONE_OK)
            hone_log_write(&rt->log, HONE_LOG_WARNING, "kernels run on one thread: %s", err.message);
    }
    hone_pool *pool = rt->pool;
    hone_mutex_unlock(&rt->mutex);
    return pool;
}

hone_permit_environment hone_runtime_permit_environment(hone_runtime *rt)
{
    return (hone_permit_environment){&rt->flights, &rt->log, hone_runtime_store(rt), rt->device_locks};
}

// Logs that the named worker does not start. Operations that need a worker fail without one. Those that can fork
// instead continue, and must not be taken for the named worker's.
static void try_worker(hone_runtime *rt)
{
    hone_error why = {.message = ""};
    if (hone_workers_try_named(rt->workers, &why) != HONE_OK)
        hone_log_write(
            &rt->log, HONE_LOG_WARNING, "going on without the worker that HONE_WORKER names: %s", why.message);
}

hone_status hone_runtime_tune_environment(
    hone_runtime *rt, const hone_device_info *device, bool store, hone_tune_environment *out, hone_error *err)
{
    hone_pool *pool = hone_runtime_pool(rt);
    hone_mutex_lock(&rt->mutex);
    hone_status status = HONE_OK;
    if (rt->workers == NULL) status = hone_workers_create(&rt->allocator, NULL, &rt->workers, err);
    hone_mutex_unlock(&rt->mutex);
    if (status != HONE_OK) return status;
    try_worker(rt);
    *out = (hone_tune_environment){
        .allocator = rt->allocator,
        .log = &rt->log,
        .registry = rt->registry,
        .device = device,
        .says_who = rt->says_who,
        .pool = pool,
        .store = store ? hone_runtime_store(rt) : NULL,
        .system_store = store ? hone_runtime_system_store(rt) : NULL,
        .workers = rt->workers,
        .zygote = rt->zygote,
    };
    return HONE_OK;
}

hone_policy hone_policy_of(hone_runtime *rt, const hone_context *context)
{
    return hone_context_policy(context, rt != NULL ? rt->policy : HONE_POLICY_DEFAULT);
}
