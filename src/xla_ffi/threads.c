// XLA promises of its threads neither how many run nor when: a handler may itself stand on one, and all others may be
// waiting like it. So the caller takes indices like everybody else, never waits for a task that has not started, and a
// task that starts late finds nothing left. What tasks share therefore outlives the call: it comes from a fixed store.
#include "xla_ffi/threads.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct job {
    atomic_int holders; // caller and tasks; 0: free
    void (*body)(void *ctx, int64_t index);
    void *ctx;
    int64_t count;
    atomic_int_fast64_t next, done;
    pthread_mutex_t mutex;
    pthread_cond_t finished;
} job;

// Looks before a caller sleeps, some 50 us: so long takes it to be back once it was woken, and most waits are for the rest
// of a part that was begun a little later.
enum { JOBS = 64, SPINS = 100000 };

#define JOB                                                                                                            \
    {                                                                                                                  \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .finished = PTHREAD_COND_INITIALIZER                                       \
    }
#define JOB_4  JOB, JOB, JOB, JOB
#define JOB_16 JOB_4, JOB_4, JOB_4, JOB_4
static job jobs[JOBS] = {JOB_16, JOB_16, JOB_16, JOB_16};

int32_t hone_xla_threads(const hone_xla_pool *pool)
{
    int64_t threads = 0;
    if (!XLA_FFI_HAS(pool->api, threads_get) || !XLA_FFI_HAS(pool->api, schedule)) return 0;
    xla_ffi_threads_get get = {.struct_size = sizeof get, .context = pool->context, .threads = &threads};
    xla_ffi_error *error = pool->api->threads_get(&get);
    if (error != NULL) {
        xla_ffi_error_destroy destroy = {.struct_size = sizeof destroy, .error = error};
        pool->api->error_destroy(&destroy);
        return 0;
    }
    return threads < INT32_MAX ? (int32_t)threads : INT32_MAX;
}

static job *take_job(int holders)
{
    for (int i = 0; i < JOBS; i++) {
        int none = 0;
        if (atomic_compare_exchange_strong(&jobs[i].holders, &none, holders)) return &jobs[i];
    }
    return NULL;
}

static void let_go(job *shared)
{
    atomic_fetch_sub_explicit(&shared->holders, 1, memory_order_release);
}

static void work(job *shared)
{
    for (;;) {
        int64_t index = atomic_fetch_add(&shared->next, 1);
        if (index >= shared->count) return;
        shared->body(shared->ctx, index);
        if (atomic_fetch_add(&shared->done, 1) + 1 == shared->count) {
            pthread_mutex_lock(&shared->mutex);
            pthread_cond_broadcast(&shared->finished);
            pthread_mutex_unlock(&shared->mutex);
        }
    }
}

static void task(void *data)
{
    work(data);
    let_go(data);
}

static void wait(job *shared)
{
    for (int i = 0; i < SPINS; i++)
        if (atomic_load_explicit(&shared->done, memory_order_acquire) == shared->count) return;
    pthread_mutex_lock(&shared->mutex);
    while (atomic_load(&shared->done) != shared->count)
        pthread_cond_wait(&shared->finished, &shared->mutex);
    pthread_mutex_unlock(&shared->mutex);
}

static void schedule(const hone_xla_pool *pool, job *shared)
{
    xla_ffi_schedule args = {.struct_size = sizeof args, .context = pool->context, .task = task, .data = shared};
    xla_ffi_error *error = pool->api->schedule(&args);
    if (error == NULL) return;
    xla_ffi_error_destroy destroy = {.struct_size = sizeof destroy, .error = error};
    pool->api->error_destroy(&destroy);
    let_go(shared);
}

void hone_xla_parallel_for(void *pool, int64_t count, void (*body)(void *ctx, int64_t index), void *ctx)
{
    int32_t threads = hone_xla_threads(pool);
    int helpers = count - 1 < threads ? (int)(count - 1) : threads;
    job *shared = helpers > 0 ? take_job(helpers + 1) : NULL;
    if (shared == NULL) {
        for (int64_t i = 0; i < count; i++)
            body(ctx, i);
        return;
    }
    shared->body = body;
    shared->ctx = ctx;
    shared->count = count;
    atomic_store(&shared->next, 0);
    atomic_store(&shared->done, 0);
    for (int i = 0; i < helpers; i++)
        schedule(pool, shared);
    work(shared);
    wait(shared);
    let_go(shared);
}
