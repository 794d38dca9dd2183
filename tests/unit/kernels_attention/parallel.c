// The runtime's part that kernels call, for tests of kernels alone: tasks in threads of their own, so that sharing is
// real, up to the number that was asked for.
#include "hone/kernel.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MOST = 8 };

typedef struct shared_work {
    _Atomic int64_t next;
    int64_t count;
    void (*body)(void *ctx, int64_t index);
    void *ctx;
} shared_work;

static void *work(void *argument)
{
    shared_work *own = argument;
    for (int64_t i; (i = own->next++) < own->count;)
        own->body(own->ctx, i);
    return NULL;
}

void hone_plan_parallel_for(
    const hone_plan *plan,
    const hone_execution *execution,
    int32_t threads,
    int64_t count,
    void (*body)(void *ctx, int64_t index),
    void *ctx)
{
    (void)plan, (void)execution;
    shared_work own = {.count = count, .body = body, .ctx = ctx};
    pthread_t others[MOST];
    int started = 0;
    while (started + 1 < threads && started + 1 < count && started < MOST)
        if (pthread_create(&others[started++], NULL, work, &own) != 0) {
            started--;
            break;
        }
    work(&own);
    for (int i = 0; i < started; i++)
        pthread_join(others[i], NULL);
}

typedef struct workers {
    shared_work of;
    void (*body)(void *ctx, int64_t index, int32_t worker);
    void *ctx;
} workers;

static void work_as(void *ctx, int64_t worker)
{
    workers *own = ctx;
    for (int64_t i; (i = own->of.next++) < own->of.count;)
        own->body(own->ctx, i, (int32_t)worker);
}

void hone_plan_parallel_workers(
    const hone_plan *plan,
    const hone_execution *execution,
    int32_t count_of_workers,
    int64_t count,
    void (*body)(void *ctx, int64_t index, int32_t worker),
    void *ctx)
{
    workers own = {.of = {.count = count}, .body = body, .ctx = ctx};
    hone_plan_parallel_for(plan, execution, count_of_workers, count_of_workers, work_as, &own);
}
