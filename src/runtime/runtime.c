// Opening and closing: what one program's registry, devices, caches and store are, and who gives them back.
#include "runtime/runtime.h"
#include "runtime/trust.h"

#include "base/error.h"
#include "base/structs.h"
#include "kernels/kernels.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_PLAN_BYTES = 64 << 20 };

static hone_store *spill_store(void *rt)
{
    return hone_runtime_store(rt);
}

static hone_status open_parts(hone_runtime *rt, const hone_runtime_options *options, hone_error *err)
{
    hone_status status = hone_runtime_read_environment(rt, options, err);
    if (status != HONE_OK) return status;
    // The zygote goes first: nothing that hone opens later must live on in it.
    if ((options->flags & HONE_RUNTIME_ZYGOTE) != 0) {
        status = hone_zygote_start(&rt->allocator, &rt->zygote, err);
        if (status != HONE_OK) return status;
    }
    status = hone_registry_create(&rt->allocator, 1u << HONE_CPU, HONE_CPU, rt, &rt->registry, err);
    if (status == HONE_OK && (options->flags & HONE_RUNTIME_NO_BUILTINS) == 0)
        status = hone_kernels_register(rt->registry, err);
    if (status == HONE_OK) hone_runtime_await_packs(rt);
    if (status == HONE_OK) status = hone_recorder_create(&rt->allocator, 0, &rt->recorder, err);
    if (status == HONE_OK) hone_recorder_set_spill(rt->recorder, spill_store, rt);
    size_t cap = options->plan_cache_bytes != 0 ? options->plan_cache_bytes : (size_t)DEFAULT_PLAN_BYTES;
    if (status == HONE_OK) status = hone_plan_table_init(&rt->plans, rt->allocator, cap, err);
    rt->pool_threads = options->threads;
    return status;
}

static void in_child(void *ctx)
{
    hone_runtime *rt = ctx;
    hone_flights_in_child(&rt->flights);
    hone_plan_table_in_child(&rt->plans);
}

hone_status hone_runtime_open(const hone_runtime_options *options, hone_runtime **out, hone_error *err)
{
    hone_runtime_options read = {.struct_size = sizeof read};
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, "runtime.open", "out is NULL");
    *out = NULL;
    hone_status status = HONE_OK;
    if (options != NULL)
        status = hone_struct_copy(
            &read, sizeof read, options, options->struct_size, "hone_runtime_options", "runtime.open", err);
    if (status != HONE_OK) return status;
    options = &read;
    hone_allocator allocator = options->allocator.reallocate != NULL ? options->allocator : hone_allocator_system();
    hone_runtime *rt = hone_alloc(&allocator, sizeof *rt);
    if (rt == NULL) return hone_fail_memory(err, "runtime.open");
    atomic_init(&rt->references, 1);
    rt->allocator = allocator;
    rt->log =
        (hone_log){options->log, options->log_ctx, options->log_level != 0 ? options->log_level : HONE_LOG_WARNING};
    rt->policy = options->policy;
    hone_mutex_init(&rt->mutex);
    hone_mutex_init(&rt->store.mutex);
    hone_mutex_init(&rt->system_store.mutex);
    hone_mutex_init(&rt->discovery);
    hone_mutex_init(&rt->packs_mutex);
    hone_flights_init(&rt->flights);
    hone_decisions_init(&rt->cache, allocator);
    status = open_parts(rt, options, err);
    if (status != HONE_OK) {
        hone_runtime_release(rt);
        return status;
    }
    rt->watch = (hone_fork_watch){.in_child = in_child, .ctx = rt};
    hone_fork_watch_begin(&rt->watch);
    *out = rt;
    return HONE_OK;
}

static void free_ops(hone_runtime *rt)
{
    while (rt->ops != NULL) {
        hone_op *op = rt->ops;
        rt->ops = op->next;
        hone_free(&rt->allocator, op);
    }
    while (rt->asides != NULL) {
        hone_aside *aside = rt->asides;
        rt->asides = aside->next;
        hone_free(&rt->allocator, aside);
    }
    hone_runtime_forget_wrongs(rt);
}

// What only the user's own reference keeps open.
static void close_outside(hone_runtime *rt)
{
    if (rt->recorder != NULL && rt->store.url != NULL &&
        (atomic_load(&rt->recording) || hone_recorder_count(rt->recorder) > 0)) {
        hone_error err;
        if (hone_record_flush(rt, &err) != HONE_OK)
            hone_log_write(&rt->log, HONE_LOG_WARNING, "the recorded calls were not written: %s", err.message);
    }
    hone_worker_pool_destroy(&rt->workers);
    hone_zygote_stop(&rt->zygote);
    hone_store_close(&rt->store.store);
    hone_store_close(&rt->system_store.store);
}

static void destroy(hone_runtime *rt)
{
    hone_allocator allocator = rt->allocator;
    hone_worker_pool_destroy(&rt->workers);
    hone_zygote_stop(&rt->zygote);
    hone_store_close(&rt->store.store);
    hone_store_close(&rt->system_store.store);
    hone_recorder_destroy(&rt->recorder);
    hone_registry_destroy(&rt->registry);
    hone_runtime_close_packs(rt);
    hone_runtime_close_platforms(rt);
    hone_pool_destroy(&rt->pool);
    free_ops(rt);
    hone_decisions_deinit(&rt->cache);
    hone_transfer_destroy(&rt->transfer);
    hone_flights_deinit(&rt->flights);
    hone_mutex_deinit(&rt->store.mutex);
    hone_mutex_deinit(&rt->system_store.mutex);
    hone_mutex_deinit(&rt->discovery);
    hone_mutex_deinit(&rt->packs_mutex);
    hone_mutex_deinit(&rt->mutex);
    hone_free(&allocator, rt->store.url);
    hone_free(&allocator, rt->system_store.url);
    hone_free(&allocator, rt->device_locks);
    hone_free(&allocator, rt->lock_path);
    hone_lock_destroy(&rt->lock);
    hone_free(&allocator, rt->force.rules);
    hone_free(&allocator, rt->deny.rules);
    hone_free(&allocator, rt);
}

hone_runtime *hone_runtime_retain(hone_runtime *rt)
{
    atomic_fetch_add_explicit(&rt->references, 1, memory_order_relaxed);
    return rt;
}

void hone_runtime_release(hone_runtime *rt)
{
    if (atomic_fetch_sub_explicit(&rt->references, 1, memory_order_acq_rel) == 1) destroy(rt);
}

void hone_runtime_close(hone_runtime **rt_pointer)
{
    if (rt_pointer == NULL || *rt_pointer == NULL) return;
    hone_runtime *rt = *rt_pointer;
    *rt_pointer = NULL;
    hone_fork_watch_end(&rt->watch);
    close_outside(rt);
    hone_plan_table_deinit(&rt->plans);
    hone_runtime_release(rt);
}

// One hone_op an algorithm and version, made at the first ask.
static hone_op *find_op(hone_runtime *rt, const hone_algorithm_entry *algorithm)
{
    for (hone_op *op = rt->ops; op != NULL; op = op->next)
        if (op->algorithm == algorithm) return op;
    return NULL;
}

static uint64_t ignored_parameters(const hone_signature *signature)
{
    uint64_t ignored = 0;
    for (size_t i = 0; i < hone_signature_count(signature) && i < 64; i++) {
        const hone_parameter *parameter = hone_signature_parameter(signature, i);
        if (parameter->kind != HONE_KIND_TENSOR && parameter->role == HONE_ROLE_IGNORE) ignored |= 1ull << i;
    }
    return ignored;
}

static hone_op *make_op(hone_runtime *rt, const hone_algorithm_entry *algorithm)
{
    hone_op *op = hone_alloc(&rt->allocator, sizeof *op);
    if (op == NULL) return NULL;
    op->head = ++rt->op_count;
    op->ignored = ignored_parameters(algorithm->signature);
    op->count = hone_signature_count(algorithm->signature);
    op->table = &rt->plans;
    op->recording = &rt->recording;
    op->rt = rt;
    op->algorithm = algorithm;
    op->next = rt->ops;
    rt->ops = op;
    return op;
}

hone_status hone_op_get(hone_runtime *rt, const char *name, const hone_op **out, hone_error *err)
{
    if (rt == NULL || name == NULL || out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "op.get", "the runtime, the name and out must not be NULL");
    *out = NULL;
    const hone_algorithm_entry *algorithm = hone_registry_find(rt->registry, name, NULL);
    if (algorithm == NULL) return hone_registry_fail_unknown(rt->registry, name, err);
    hone_status status = hone_runtime_discover(rt, err);
    if (status != HONE_OK) return status;
    hone_mutex_lock(&rt->mutex);
    hone_op *op = find_op(rt, algorithm);
    if (op == NULL) op = make_op(rt, algorithm);
    hone_mutex_unlock(&rt->mutex);
    if (op == NULL) return hone_fail_memory(err, "op.get");
    *out = op;
    return HONE_OK;
}

const hone_op *hone_op_find(hone_runtime *rt, const char *name, hone_error *err)
{
    const hone_op *op = NULL;
    return hone_op_get(rt, name, &op, err) == HONE_OK ? op : NULL;
}

hone_signature *hone_op_signature(const hone_op *op)
{
    return op->algorithm->signature;
}

const char *hone_op_independent(const hone_op *op)
{
    return op->algorithm->algorithm.independent;
}

static void log_of_store(void *ctx, int level, const char *message)
{
    const hone_runtime *rt = ctx;
    hone_log_write(&rt->log, level, "%s", message);
}

static hone_store *open_lazily(hone_runtime *rt, hone_lazy_store *lazy, bool read_only, const char *name)
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
        if (hone_store_open_with(&options, lazy->url, &lazy->store, &lazy->error) != HONE_OK)
            hone_log_write(&rt->log, HONE_LOG_WARNING, "going on without the %s: %s", name, lazy->error.message);
    }
    hone_store *store = lazy->store;
    hone_mutex_unlock(&lazy->mutex);
    return store;
}

hone_store *hone_runtime_store(hone_runtime *rt)
{
    return open_lazily(rt, &rt->store, false, "store");
}

hone_store *hone_runtime_system_store(hone_runtime *rt)
{
    return open_lazily(rt, &rt->system_store, true, "system store");
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

hone_turn_environment hone_runtime_turn_environment(hone_runtime *rt)
{
    return (hone_turn_environment){&rt->flights, &rt->log, hone_runtime_store(rt), rt->device_locks};
}

hone_status hone_runtime_tune_environment(
    hone_runtime *rt, const hone_device_info *device, bool store, hone_tune_environment *out, hone_error *err)
{
    hone_pool *pool = hone_runtime_pool(rt);
    hone_mutex_lock(&rt->mutex);
    hone_status status = HONE_OK;
    if (rt->workers == NULL) status = hone_worker_pool_create(&rt->allocator, NULL, &rt->workers, err);
    hone_mutex_unlock(&rt->mutex);
    if (status != HONE_OK) return status;
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
    return hone_context_policy(context, rt->policy);
}
