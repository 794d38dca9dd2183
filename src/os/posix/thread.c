// The thread pool runs one job at a time, and the caller works on it too. A second caller, and a body that calls the
// pool, find it in use and run their bodies themselves, so no thread ever waits for a pool that waits for that thread.
//
// How a worker joins a job: the caller fills in the job, then publishes tickets. A worker that takes a ticket owns a
// place in the job, and reports when it has left. Taking the remaining tickets back closes the job: from then on the
// number of workers inside only falls, and the caller waits until it is 0.
//
// Why no worker sleeps through a job: a worker counts itself as a sleeper and then reads the tickets; a caller
// publishes tickets and then reads the number of sleepers. All four accesses are sequentially consistent, so at least
// one side sees the other: either the worker stays awake, or the caller wakes it, under the mutex that the worker
// releases only inside its wait. The end of a job works the same way: a caller sets `waiting` and then reads how many
// have left; a worker leaves and then reads `waiting`. (Dekker's pattern: each side writes its own flag before it reads
// the other's.)
//
//     caller                              worker
//     tickets = n                         sleepers += 1
//     sleepers > 0 ?  lock, signal        tickets > 0 ?  else wait
//     ... works ...                       tickets -= 1, works, left += 1
//     tickets -> 0, joined = n - rest     waiting ?  lock, signal
//     waiting = true, left == joined ?
//
// How the work is divided: the indices are cut into chunks, and the chunks into as many ranges as threads may work.
// Each thread begins with its own range, the same in every job, and continues with the ranges of others when it is
// done. So rows stay in the cache of the processor that had them in the last job, and threads contend for one counter
// only at the end. Contention costs most where processors share no cache: those of a virtual machine may be 70 or 340
// ns apart, and that changes within seconds.
#include "base/assert.h"
#include "base/error.h"
#include "base/memory.h"
#include "os/mutex.h"
#include "os/os.h"
#include "os/x86/pause.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static const char where[] = "os.pool.create";

// Chosen by hand. How long to spin before sleeping: to sleep and be woken costs a worker more than a small kernel
// takes.
enum { WORKER_SPIN_NS = 200000, CALLER_SPIN_NS = 200000, CHUNKS_PER_THREAD = 16, LINE = 64 };

typedef struct job {
    void (*body)(void *ctx, int64_t index);
    void *ctx;
    int64_t count, chunk, chunks;
    int32_t ranges;
    uint64_t epoch; // the number of jobs of this pool so far
} job;

// The progress of a range: the job's epoch, and in the low bits how many of its chunks were taken. With the epoch of an
// earlier job no chunk counts as taken, so no thread has to reset the ranges.
enum { TAKEN_BITS = 8 };
typedef struct range {
    _Atomic uint64_t taken;
    char rest[2 * LINE - sizeof(uint64_t)]; // keeps every other range off this cache line, wherever the array begins
} range;

typedef struct worker {
    hone_pool *pool;
    pthread_t thread;
    atomic_int number; // the system's; 0 until the thread has begun
    // Under the pool's mutex.
    bool asleep, moved; // moved: kept off its caller's processor until it wakes
    cpu_set_t allowed;  // what it may use otherwise
    uint64_t settings;  // thread settings that it began with; only the worker uses it
} worker;

struct hone_pool {
    hone_allocator allocator;
    int32_t threads; // including the caller
    int32_t started; // workers that run; written by the holder of `taken`
    bool starts_failed;
    atomic_uint generation; // of the process that the workers run in
    atomic_flag taken;
    job job;                   // written by the holder of `taken` while no worker is inside
    range *ranges;             // one for each thread
    char before_tickets[LINE]; // keeps what all threads write a cache line apart from the rest
    _Atomic int32_t tickets;
    _Atomic int32_t left; // workers that took a ticket of this job and are done
    char before_sleepers[LINE];
    _Atomic int32_t sleepers;
    _Atomic bool waiting; // the caller sleeps until the last worker has left
    _Atomic bool stop;
    _Atomic bool resting; // threads that wait for tickets go to sleep
    uint64_t float_mode;  // of the thread that created the pool
    _Atomic bool worker_changed;
    bool is_crowded;       // written by the thread that runs the pool's jobs
    _Atomic int32_t asked; // the largest number of workers that a job requested since hone_pool_take_asked
    pthread_mutex_t mutex;
    pthread_cond_t wake, done;
    worker *workers;
};

// The first chunk of a range; for the index after the last range, the number of chunks.
static int64_t range_begin(const job *current, int32_t index)
{
    return current->chunks * index / current->ranges;
}

// Takes the next chunk of a range that has `chunks` chunks. Returns its index, -1 if none is left.
static int64_t take_chunk(range *own, uint64_t epoch, int64_t chunks)
{
    uint64_t taken = atomic_load_explicit(&own->taken, memory_order_relaxed), index;
    do {
        index = taken >> TAKEN_BITS == epoch ? taken & ((1 << TAKEN_BITS) - 1) : 0;
        if ((int64_t)index >= chunks) return -1;
    } while (!atomic_compare_exchange_weak_explicit(
        &own->taken, &taken, (epoch << TAKEN_BITS) + index + 1, memory_order_relaxed, memory_order_relaxed));
    return (int64_t)index;
}

static void run_chunk(const job *current, int64_t index)
{
    int64_t first = index * current->chunk, rest = current->count - first;
    int64_t end = first + (rest < current->chunk ? rest : current->chunk);
    for (int64_t i = first; i < end; i++)
        current->body(current->ctx, i);
}

// Works on the range `home`, then on the other ranges.
static void work(hone_pool *pool, int32_t home)
{
    const job *current = &pool->job;
    for (int32_t i = 0; i < current->ranges; i++) {
        int32_t at = (home + i) % current->ranges;
        int64_t begin = range_begin(current, at), chunks = range_begin(current, at + 1) - begin, taken;
        while ((taken = take_chunk(&pool->ranges[at], current->epoch, chunks)) >= 0)
            run_chunk(current, begin + taken);
    }
}

static bool take_ticket(hone_pool *pool)
{
    int32_t tickets = atomic_load(&pool->tickets);
    while (tickets > 0)
        if (atomic_compare_exchange_weak(&pool->tickets, &tickets, tickets - 1)) return true;
    return false;
}

static bool worth_waking(hone_pool *pool)
{
    return atomic_load(&pool->tickets) > 0 || atomic_load(&pool->stop);
}

// A virtual machine often wakes a worker on its caller's processor, since an idle processor looks as if the host had
// taken it away; the worker then waits there behind the caller for some milliseconds. The caller holds the mutex.
static void keep_off(worker *sleeper, int cpu)
{
    if (!sleeper->moved && pthread_getaffinity_np(sleeper->thread, sizeof sleeper->allowed, &sleeper->allowed) != 0)
        return;
    cpu_set_t others = sleeper->allowed;
    CPU_CLR((size_t)cpu, &others);
    if (CPU_COUNT(&others) == 0) return;
    if (pthread_setaffinity_np(sleeper->thread, sizeof others, &others) == 0) sleeper->moved = true;
}

static void keep_sleepers_off_here(hone_pool *pool)
{
    int here = sched_getcpu();
    if (here < 0 || here >= CPU_SETSIZE) return;
    for (int32_t i = 0; i < pool->started; i++)
        if (pool->workers[i].asleep) keep_off(&pool->workers[i], here);
}

static void sleep_until_woken(worker *self)
{
    hone_pool *pool = self->pool;
    pthread_mutex_lock(&pool->mutex);
    // Before the last check: a caller that misses this has published its tickets earlier
    atomic_fetch_add(&pool->sleepers, 1);
    self->asleep = true;
    while (!worth_waking(pool))
        pthread_cond_wait(&pool->wake, &pool->mutex);
    self->asleep = false;
    atomic_fetch_sub(&pool->sleepers, 1);
    bool moved = self->moved;
    self->moved = false;
    pthread_mutex_unlock(&pool->mutex);
    if (moved) (void)!pthread_setaffinity_np(pthread_self(), sizeof self->allowed, &self->allowed);
}

static void compare_settings(const worker *self)
{
    if (hone_os_thread_settings() != self->settings) atomic_store(&self->pool->worker_changed, true);
}

// Waits for tickets: spins for WORKER_SPIN_NS, then sleeps.
static void await_tickets(worker *self)
{
    hone_pool *pool = self->pool;
    uint64_t end = hone_os_now_ns() + WORKER_SPIN_NS;
    do {
        for (int i = 0; i < 32; i++) {
            if (worth_waking(pool)) return;
            hone_os_pause();
        }
    } while (hone_os_now_ns() < end && !atomic_load_explicit(&pool->resting, memory_order_relaxed));
    compare_settings(self); // takes some system calls, so not right after a job, whose time would include them
    sleep_until_woken(self);
}

static void leave_job(hone_pool *pool)
{
    atomic_fetch_add(&pool->left, 1);
    if (!atomic_load(&pool->waiting)) return;
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_signal(&pool->done);
    pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *ctx)
{
    worker *self = ctx;
    hone_pool *pool = self->pool;
    atomic_store(&self->number, (int)gettid());
    self->settings = hone_os_thread_settings();
    while (!atomic_load(&pool->stop)) {
        if (!take_ticket(pool)) {
            await_tickets(self);
            continue;
        }
        work(pool, 1 + (int32_t)(self - pool->workers) % (pool->job.ranges - 1));
        if (hone_os_float_mode() != pool->float_mode) atomic_store(&pool->worker_changed, true);
        leave_job(pool);
    }
    return NULL;
}

// Starts the workers at the first job. They block the host's signals, which are meant for the host's own threads,
// except those that a worker's own instruction raises: where they are blocked, such a signal ends the process. If the
// system gives fewer threads than requested, the pool is smaller.
static void start_workers(hone_pool *pool)
{
    static const int own_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own_signals / sizeof own_signals[0]; i++)
        sigdelset(&all, own_signals[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool->started < pool->threads - 1 && !pool->starts_failed) {
        worker *next = &pool->workers[pool->started];
        next->pool = pool;
        if (pthread_create(&next->thread, NULL, worker_main, next) != 0)
            pool->starts_failed = true;
        else
            pool->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void wake_workers(hone_pool *pool, int32_t helpers)
{
    int32_t sleepers = atomic_load(&pool->sleepers);
    if (sleepers == 0) return;
    pthread_mutex_lock(&pool->mutex);
    keep_sleepers_off_here(pool);
    if (helpers >= sleepers)
        pthread_cond_broadcast(&pool->wake);
    else
        for (int32_t i = 0; i < helpers; i++)
            pthread_cond_signal(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
}

static void await_leaving(hone_pool *pool, int32_t joined)
{
    uint64_t end = hone_os_now_ns() + CALLER_SPIN_NS;
    do {
        for (int i = 0; i < 32; i++) {
            if (atomic_load(&pool->left) == joined) return;
            hone_os_pause();
        }
    } while (hone_os_now_ns() < end);
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->waiting, true);
    while (atomic_load(&pool->left) != joined)
        pthread_cond_wait(&pool->done, &pool->mutex);
    atomic_store(&pool->waiting, false);
    pthread_mutex_unlock(&pool->mutex);
}

static void run_here(int64_t count, void (*body)(void *ctx, int64_t index), void *ctx)
{
    for (int64_t i = 0; i < count; i++)
        body(ctx, i);
}

static int32_t smaller(int64_t a, int64_t b)
{
    return (int32_t)(a < b ? a : b);
}

// Makes at most twice CHUNKS_PER_THREAD chunks per thread; with more indices than that, a chunk has several.
static void begin_job(hone_pool *pool, const job *work_to_do, int32_t threads)
{
    uint64_t epoch = pool->job.epoch + 1;
    int64_t chunk = work_to_do->count / ((int64_t)threads * CHUNKS_PER_THREAD);
    pool->job = *work_to_do;
    pool->job.epoch = epoch;
    pool->job.ranges = threads;
    pool->job.chunk = chunk > 1 ? chunk : 1;
    pool->job.chunks = (work_to_do->count - 1) / pool->job.chunk + 1;
    hone_assert(pool->job.chunks <= threads * 2 * (int64_t)CHUNKS_PER_THREAD);
}

static void put_out(hone_pool *pool, const job *work_to_do, int32_t helpers)
{
    begin_job(pool, work_to_do, helpers + 1);
    atomic_store(&pool->left, 0);
    atomic_store(&pool->tickets, helpers);
    wake_workers(pool, helpers);
}

// Takes the remaining tickets back, and waits for the workers that took the others.
static void take_in(hone_pool *pool, int32_t helpers)
{
    int32_t joined = helpers - atomic_exchange(&pool->tickets, 0);
    hone_assert(joined >= 0 && joined <= helpers);
    await_leaving(pool, joined);
}

// The calling thread holds the pool.
static void run_shared(hone_pool *pool, int32_t limit, const job *work_to_do)
{
    hone_assert(limit > 1 && work_to_do->count > 1);
    if (pool->started < pool->threads - 1 && !pool->starts_failed) start_workers(pool);
    int32_t helpers = smaller(smaller(limit - 1, pool->started), work_to_do->count - 1);
    if (helpers == 0) {
        run_here(work_to_do->count, work_to_do->body, work_to_do->ctx);
        return;
    }
    if (helpers > atomic_load(&pool->asked)) atomic_store(&pool->asked, helpers);
    put_out(pool, work_to_do, helpers);
    work(pool, 0);
    take_in(pool, helpers);
}

static void make_ready(hone_pool *pool)
{
    pool->started = 0;
    pool->starts_failed = false;
    pthread_mutex_init(&pool->mutex, NULL); // these do not fail on Linux: nothing is allocated
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    atomic_store(&pool->tickets, 0);
    atomic_store(&pool->left, 0);
    atomic_store(&pool->sleepers, 0);
    atomic_store(&pool->waiting, false);
    atomic_store(&pool->resting, false);
    pool->job = (job){0};
    for (int32_t i = 0; i < pool->threads; i++) {
        pool->workers[i] = (worker){.pool = pool};
        atomic_store(&pool->ranges[i].taken, 0);
    }
    atomic_flag_clear(&pool->taken);
}

// A child process has the pool without its workers, and the state that they left half written. The first thread that
// uses the pool resets it; no other thread may take it before. False if another thread is resetting it.
static bool is_of_this_process(hone_pool *pool)
{
    unsigned now = hone_fork_generation(), was = atomic_load_explicit(&pool->generation, memory_order_acquire);
    const unsigned being_made = ~now;
    if (was == now) return true;
    if (was == being_made || !atomic_compare_exchange_strong(&pool->generation, &was, being_made)) return false;
    make_ready(pool);
    atomic_store(&pool->generation, now);
    return true;
}

void hone_pool_run_limited(
    hone_pool *pool, int32_t limit, int64_t count, void (*body)(void *ctx, int64_t index), void *ctx)
{
    if (limit > pool->threads) limit = pool->threads;
    if (limit <= 1 || count <= 1 || !is_of_this_process(pool) || atomic_flag_test_and_set(&pool->taken)) {
        run_here(count, body, ctx);
        return;
    }
    job work_to_do = {.body = body, .ctx = ctx, .count = count};
    run_shared(pool, limit, &work_to_do);
    atomic_flag_clear(&pool->taken);
}

void hone_pool_run(void *pool, int64_t count, void (*body)(void *ctx, int64_t index), void *ctx)
{
    hone_pool *self = pool;
    hone_pool_run_limited(self, self->threads, count, body, ctx);
}

void hone_pool_share(hone_pool *pool, int64_t count, void (*body)(void *ctx, int64_t index), void *ctx)
{
    hone_pool_run_limited(pool, pool->is_crowded ? 1 : pool->threads, count, body, ctx);
}

void hone_pool_note_crowd(hone_pool *pool, bool is_crowded)
{
    if (pool != NULL) pool->is_crowded = is_crowded;
}

// A worker that has counted itself among the sleepers is still awake for some microseconds.
void hone_pool_rest(hone_pool *pool)
{
    if (pool == NULL || !is_of_this_process(pool) || atomic_flag_test_and_set(&pool->taken)) return;
    const uint64_t end = hone_os_now_ns() + WORKER_SPIN_NS;
    atomic_store(&pool->resting, true);
    while (atomic_load(&pool->sleepers) < pool->started && hone_os_now_ns() < end)
        hone_os_pause();
    atomic_store(&pool->resting, false);
    atomic_flag_clear(&pool->taken);
}

// A job in which each worker stays until all have arrived, or until the caller stops waiting: so no worker takes two
// tickets.
typedef struct meeting {
    int32_t expected;
    _Atomic int32_t here;
    _Atomic bool over;
} meeting;

static void meet(void *ctx, int64_t index)
{
    meeting *m = ctx;
    (void)index;
    atomic_fetch_add(&m->here, 1);
    while (atomic_load(&m->here) < m->expected && !atomic_load(&m->over))
        hone_os_pause();
}

static bool gather(hone_pool *pool, int32_t workers, uint64_t limit_ns)
{
    const uint64_t look_ns = 50 * 1000, end = hone_os_now_ns() + limit_ns;
    meeting m = {.expected = workers};
    const job meets = {.body = meet, .ctx = &m, .count = workers};
    put_out(pool, &meets, workers);
    while (atomic_load(&m.here) < workers && hone_os_now_ns() < end)
        hone_os_sleep_ns(look_ns);
    const bool came = atomic_load(&m.here) >= workers;
    atomic_store(&m.over, true);
    take_in(pool, workers);
    return came;
}

bool hone_pool_gather(hone_pool *pool, int32_t workers, uint64_t limit_ns)
{
    if (pool == NULL || !is_of_this_process(pool) || atomic_flag_test_and_set(&pool->taken)) return false;
    workers = smaller(workers, pool->started);
    bool came = workers <= 0 || gather(pool, workers, limit_ns);
    atomic_flag_clear(&pool->taken);
    return came;
}

int32_t hone_pool_take_asked(hone_pool *pool)
{
    return pool == NULL ? 0 : atomic_exchange(&pool->asked, 0);
}

bool hone_pool_changed_worker(const hone_pool *pool)
{
    return atomic_load(&pool->worker_changed);
}

int32_t hone_pool_threads(const hone_pool *pool)
{
    return pool->threads;
}

bool hone_pool_has_worker(const hone_pool *pool, int thread)
{
    for (int32_t i = 0; i < pool->threads - 1; i++)
        if (atomic_load(&pool->workers[i].number) == thread) return true;
    return false;
}

hone_status hone_pool_create(const hone_allocator *allocator, int32_t threads, hone_pool **out, hone_error *err)
{
    *out = NULL;
    if (threads < 1) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "a pool of %d threads: at least 1", threads);
    hone_pool *pool = hone_alloc(allocator, sizeof *pool);
    worker *workers = hone_alloc_array(allocator, (size_t)threads, sizeof *workers);
    range *ranges = hone_alloc_array(allocator, (size_t)threads, sizeof *ranges);
    if (pool == NULL || workers == NULL || ranges == NULL) {
        hone_free(allocator, pool);
        hone_free(allocator, ranges);
        hone_free(allocator, workers);
        return hone_fail_memory(err, where);
    }
    pool->allocator = *allocator;
    pool->threads = threads;
    pool->workers = workers;
    pool->ranges = ranges;
    pool->float_mode = hone_os_float_mode();
    hone_fork_count_begin();
    atomic_store(&pool->generation, hone_fork_generation());
    make_ready(pool);
    *out = pool;
    return HONE_OK;
}

static void end_workers(hone_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->stop, true);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    for (int32_t i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
}

// In a child that never used the pool, the threads and the sleepers on its conditions do not exist: neither is waited
// for.
void hone_pool_destroy(hone_pool **pool)
{
    hone_pool *self = *pool;
    if (self == NULL) return;
    if (atomic_load(&self->generation) == hone_fork_generation()) end_workers(self);
    hone_allocator allocator = self->allocator;
    hone_free(&allocator, self->workers);
    hone_free(&allocator, self->ranges);
    hone_free(&allocator, self);
    *pool = NULL;
}
