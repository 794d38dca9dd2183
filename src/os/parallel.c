// Divides the runs of kernels among threads: those of the execution's pool, else of hone's. A foreign pool has no limit
// on threads, so a limit is kept by passing it only as many strands as threads may work, each of which takes indices
// until none is left.
#include "hone/kernel.h"
#include "os/os.h"

#include <stdatomic.h>

typedef struct strands {
    atomic_llong next;
    int64_t count;
    void (*body)(void *ctx, int64_t index);
    void *ctx;
} strands;

static void strand(void *ctx, int64_t unused)
{
    (void)unused;
    strands *all = ctx;
    for (;;) {
        int64_t index = atomic_fetch_add_explicit(&all->next, 1, memory_order_relaxed);
        if (index >= all->count) return;
        all->body(all->ctx, index);
    }
}

static void run_inline(int64_t count, void (*body)(void *ctx, int64_t index), void *ctx)
{
    for (int64_t i = 0; i < count; i++)
        body(ctx, i);
}

static void run_foreign(
    hone_parallel_for *parallel_for,
    void *pool,
    int32_t threads,
    int64_t count,
    void (*body)(void *ctx, int64_t index),
    void *ctx)
{
    if (count <= threads) {
        parallel_for(pool, count, body, ctx);
        return;
    }
    strands all = {0, count, body, ctx};
    parallel_for(pool, threads, strand, &all);
}

static int32_t allowed(const hone_execution *execution, int32_t threads)
{
    bool limits = execution != NULL && execution->threads > 0 && execution->threads < threads;
    return limits ? execution->threads : threads;
}

void hone_plan_parallel_for(
    const hone_plan *plan,
    const hone_execution *execution,
    int32_t threads,
    int64_t count,
    void (*body)(void *ctx, int64_t index),
    void *ctx)
{
    const bool hosts = execution != NULL && execution->parallel_for != NULL, plans = !hosts && plan != NULL;
    hone_parallel_for *parallel_for = hosts ? execution->parallel_for : plans ? plan->parallel_for : NULL;
    void *pool = hosts ? execution->pool : plans ? plan->pool : NULL;
    if (body == NULL) return;
    threads = allowed(execution, threads);
    if (threads <= 1 || count <= 1 || parallel_for == NULL)
        run_inline(count, body, ctx);
    else if (parallel_for == hone_pool_run)
        hone_pool_run_limited(pool, threads, count, body, ctx);
    else
        run_foreign(parallel_for, pool, threads, count, body, ctx);
}

typedef struct workers {
    atomic_llong next;
    int64_t count;
    void (*body)(void *ctx, int64_t index, int32_t worker);
    void *ctx;
} workers;

static void work_as(void *ctx, int64_t worker)
{
    workers *all = ctx;
    for (;;) {
        int64_t index = atomic_fetch_add_explicit(&all->next, 1, memory_order_relaxed);
        if (index >= all->count) return;
        all->body(all->ctx, index, (int32_t)worker);
    }
}

// A worker is an index of an outer loop: only one thread at a time has its number, whatever the pool does.
void hone_plan_parallel_workers(
    const hone_plan *plan,
    const hone_execution *execution,
    int32_t count_of_workers,
    int64_t count,
    void (*body)(void *ctx, int64_t index, int32_t worker),
    void *ctx)
{
    if (body == NULL) return;
    workers all = {0, count, body, ctx};
    int32_t threads = allowed(execution, count_of_workers);
    if (threads > count) threads = (int32_t)count;
    if (threads < 1) threads = 1;
    hone_plan_parallel_for(plan, execution, threads, threads, work_as, &all);
}
