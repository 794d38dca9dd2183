// The runtime's part that kernels call, for tests of kernels alone: the bodies in threads of their own, so that every
// run really is shared between threads.
#include "hone/kernel.h"

#include <pthread.h>

enum { MOST = 64 };

// How often kernels asked, and for how many pieces together (harness.h).
int parallel_calls, parallel_pieces;

typedef struct test_job {
    void (*body)(void *ctx, int64_t index);
    void *ctx;
    int64_t index;
} test_job;

static void *work(void *argument)
{
    test_job *own = argument;
    own->body(own->ctx, own->index);
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
    (void)plan, (void)execution, (void)threads;
    parallel_calls++;
    parallel_pieces += (int)count;
    pthread_t others[MOST];
    test_job jobs[MOST];
    bool started[MOST] = {false};
    for (int64_t i = 1; i < count && i < MOST; i++) {
        jobs[i] = (test_job){body, ctx, i};
        started[i] = pthread_create(&others[i], NULL, work, &jobs[i]) == 0;
    }
    for (int64_t i = 0; i < count; i++)
        if (i == 0 || i >= MOST || !started[i]) body(ctx, i);
    for (int64_t i = 1; i < count && i < MOST; i++)
        if (started[i]) pthread_join(others[i], NULL);
}
