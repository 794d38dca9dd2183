// Opens and closes a runtime: its registry, devices, caches and stores.
#include "runtime/api/stats.h"
#include "runtime/links/follow.h"
#include "runtime/links/trust.h"
#include "runtime/links/verified.h"

#include "base/error.h"
#include "base/structs.h"
#include "kernels/kernels.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "runtime.open";

enum { DEFAULT_PLAN_BYTES = 64 << 20 };

static hone_store *spill_store(void *rt)
{
    return hone_runtime_store(rt);
}

static hone_status open_parts(hone_runtime *rt, const hone_runtime_options *options, hone_error *err)
{
    hone_status status = hone_runtime_read_environment(rt, options, err);
    if (status != HONE_OK) return status;
    // The zygote is started first, so that it has no copy of what hone opens later.
    if ((options->flags & HONE_RUNTIME_ZYGOTE) != 0) {
        status = hone_zygote_start(&rt->allocator, &rt->zygote, err);
        if (status != HONE_OK) return status;
    }
    status = hone_registry_create(&rt->allocator, hone_platform_facts_of, rt, &rt->registry, err);
    if (status == HONE_OK && (options->flags & HONE_RUNTIME_NO_BUILTINS) == 0)
        status = hone_kernels_register(rt->registry, err);
    if (status == HONE_OK) hone_runtime_await_packs(rt);
    if (status == HONE_OK) status = hone_recorder_create(&rt->allocator, 0, &rt->recorder, err);
    if (status == HONE_OK) hone_recorder_set_spill(rt->recorder, spill_store, rt);
    size_t cap = options->plan_cache_bytes != 0 ? options->plan_cache_bytes : (size_t)DEFAULT_PLAN_BYTES;
    if (status == HONE_OK) status = hone_plan_table_init(&rt->plans, rt->allocator, cap, err);
    rt->plans.counts_bound = atomic_load(&rt->recording) || rt->stats_to != NULL;
    rt->pool_threads = options->threads;
    return status;
}

static void in_child(void *ctx)
{
    hone_runtime *rt = ctx;
    hone_flights_in_child(&rt->flights);
    hone_plan_table_in_child(&rt->plans);
    hone_tally_in_child(&rt->tally);
    hone_registry_in_child(rt->registry);
    hone_runtime_follow_in_child(rt);
}

static void free_ops(hone_runtime *rt)
{
    while (rt->ops != NULL) {
        hone_op *op = rt->ops;
        rt->ops = op->next;
        hone_free(&rt->allocator, op);
    }
}

// Logs the recorded calls that are lost with the process.
static void tell_lost(hone_runtime *rt)
{
    (void)!hone_record_flush(rt, NULL); // collects the counts; without a store nothing is written
    const uint64_t dropped = hone_recorder_dropped(rt->recorder);
    const size_t count = hone_recorder_count(rt->recorder);
    if (count == 0 && dropped == 0) return;
    hone_log_write(
        &rt->log, HONE_LOG_WARNING,
        "the record of %zu calls is lost, and %" PRIu64
        " more were dropped when it was full: there is no store to write "
        "it to",
        count, dropped);
}

// Closes what only the user's own reference keeps open.
static void close_outside(hone_runtime *rt)
{
    if (rt->recorder != NULL && rt->store.url == NULL && atomic_load(&rt->recording)) tell_lost(rt);
    if (rt->recorder != NULL && rt->store.url != NULL &&
        (atomic_load(&rt->recording) || hone_recorder_count(rt->recorder) > 0)) {
        hone_error err;
        if (hone_record_flush(rt, &err) != HONE_OK)
            hone_log_write(&rt->log, HONE_LOG_WARNING, "the recorded calls were not written: %s", err.message);
    }
    hone_workers_destroy(&rt->workers);
    hone_zygote_stop(&rt->zygote);
    hone_store_close(&rt->store.store);
    hone_store_close(&rt->system_store.store);
}

static void destroy(hone_runtime *rt)
{
    hone_allocator allocator = rt->allocator;
    hone_workers_destroy(&rt->workers);
    hone_zygote_stop(&rt->zygote);
    hone_store_close(&rt->store.store);
    hone_store_close(&rt->system_store.store);
    hone_recorder_destroy(&rt->recorder);
    hone_runtime_forget_asides(rt, true);
    hone_runtime_forget_wrongs(rt, true);
    hone_runtime_forget_verdicts(rt, true);
    hone_registry_destroy(&rt->registry);
    hone_runtime_close_packs(rt);
    hone_runtime_close_platforms(rt);
    hone_pool_destroy(&rt->pool);
    free_ops(rt);
    hone_tally_deinit(&rt->tally);
    hone_decisions_deinit(&rt->cache);
    hone_transfer_destroy(&rt->transfer);
    hone_flights_deinit(&rt->flights);
    hone_mutex_deinit(&rt->plans.mutex);
    hone_slab_deinit(&rt->entries);
    hone_mutex_deinit(&rt->entries_mutex);
    hone_mutex_deinit(&rt->follower.mutex);
    hone_mutex_deinit(&rt->store.mutex);
    hone_mutex_deinit(&rt->system_store.mutex);
    hone_mutex_deinit(&rt->discovery);
    hone_mutex_deinit(&rt->packs_mutex);
    hone_mutex_deinit(&rt->mutex);
    hone_free(&allocator, rt->store.url);
    hone_free(&allocator, rt->store.copies);
    hone_free(&allocator, rt->system_store.url);
    hone_free(&allocator, rt->device_locks);
    hone_free(&allocator, rt->lock_path);
    hone_free(&allocator, rt->stats_to);
    hone_lock_release(&rt->lock);
    hone_free(&allocator, rt->force.rules);
    hone_free(&allocator, rt->deny.rules);
    hone_free(&allocator, rt);
}

hone_status hone_runtime_open(const hone_runtime_options *options, hone_runtime **out, hone_error *err)
{
    hone_runtime_options read = {.struct_size = sizeof read};
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "out is NULL");
    *out = NULL;
    hone_status status = HONE_OK;
    if (options != NULL)
        status =
            hone_struct_copy(&read, sizeof read, options, options->struct_size, "hone_runtime_options", where, err);
    if (status != HONE_OK) return status;
    options = &read;
    hone_allocator allocator = options->allocator.reallocate != NULL ? options->allocator : hone_allocator_system();
    hone_runtime *rt = hone_alloc(&allocator, sizeof *rt);
    if (rt == NULL) return hone_fail_memory(err, where);
    atomic_init(&rt->references, 1);
    rt->destroy = destroy;
    rt->allocator = allocator;
    rt->log =
        (hone_log){options->log, options->log_ctx, options->log_level != 0 ? options->log_level : HONE_LOG_WARNING};
    rt->policy = options->policy;
    hone_mutex_init(&rt->mutex);
    hone_mutex_init(&rt->plans.mutex);
    hone_mutex_init(&rt->entries_mutex);
    rt->entries = (hone_slab){.allocator = allocator, .size = HONE_PLAN_ENTRY_ROOM};
    hone_mutex_init(&rt->follower.mutex);
    atomic_init(&rt->changes, 1);
    hone_mutex_init(&rt->store.mutex);
    hone_mutex_init(&rt->system_store.mutex);
    hone_mutex_init(&rt->discovery);
    hone_mutex_init(&rt->packs_mutex);
    hone_flights_init(&rt->flights);
    hone_decisions_init(&rt->cache, allocator);
    hone_tally_init(&rt->tally, allocator);
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

void hone_runtime_close(hone_runtime **rt_pointer)
{
    if (rt_pointer == NULL || *rt_pointer == NULL) return;
    hone_runtime *rt = *rt_pointer;
    *rt_pointer = NULL;
    hone_fork_watch_end(&rt->watch);
    hone_ticker_stop(&rt->follower.ticker);
    hone_stats_finish(rt);
    close_outside(rt);
    hone_plan_table_deinit(&rt->plans);
    hone_runtime_release(rt);
}
