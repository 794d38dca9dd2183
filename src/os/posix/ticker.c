// A thread of hone's own that does maintenance now and then.
//
// No call waits for it, and it handles none of the host's signals. A fork finds it asleep, or waits for its mutexes as
// for those of every thread; so a check whether a process may be forked need not count it. A child process has no such
// thread until it is started there.
#include "base/assert.h"
#include "base/error.h"
#include "base/memory.h"
#include "os/mutex.h"
#include "os/os.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

struct hone_ticker {
    hone_allocator allocator;
    uint64_t (*tick)(void *ctx);
    void *ctx;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool stops, runs;
    unsigned generation; // of the process that it runs in
};

enum { STACK_BYTES = 1 << 20 };

// How many run in this process: the generation in the upper half, and the count in the lower half.
static atomic_uint_fast64_t running;

static void count(int change)
{
    const uint64_t now = (uint64_t)hone_fork_generation() << 32;
    uint64_t was = atomic_load(&running), is;
    do
        is = now | (uint32_t)((was & ~(uint64_t)UINT32_MAX) == now ? (int)(uint32_t)was + change : change);
    while (!atomic_compare_exchange_weak(&running, &was, is));
}

// ThreadSanitizer starts a thread of its own together with the program's first.
static atomic_int sanitizers_threads;

static void count_sanitizers(void)
{
#if defined(__SANITIZE_THREAD__)
    atomic_store(&sanitizers_threads, 1);
#endif
}

int hone_ticker_count(void)
{
    const uint64_t was = atomic_load(&running);
    return (was >> 32 == hone_fork_generation() ? (int)(uint32_t)was : 0) + atomic_load(&sanitizers_threads);
}

static struct timespec after(uint64_t pause_ns)
{
    const uint64_t second = 1000000000;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t at = (uint64_t)now.tv_nsec + pause_ns;
    return (struct timespec){now.tv_sec + (time_t)(at / second), (long)(at % second)};
}

// False if it was asked to stop.
static bool wait_for(hone_ticker *ticker, uint64_t pause_ns)
{
    const struct timespec end = after(pause_ns);
    pthread_mutex_lock(&ticker->mutex);
    while (!ticker->stops && pthread_cond_timedwait(&ticker->wake, &ticker->mutex, &end) == 0)
        continue;
    const bool stops = ticker->stops;
    pthread_mutex_unlock(&ticker->mutex);
    return !stops;
}

static void *ticker_main(void *ctx)
{
    hone_ticker *ticker = ctx;
    while (wait_for(ticker, ticker->tick(ticker->ctx)))
        continue;
    return NULL;
}

static int start_thread(hone_ticker *ticker)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    int code = pthread_attr_init(&attributes);
    if (code != 0) return code;
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(&ticker->thread, &attributes, ticker_main, ticker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return code;
}

// Initialises everything except the allocator and the function that it calls.
static void begin(hone_ticker *ticker)
{
    pthread_condattr_t attributes;
    ticker->generation = hone_fork_generation();
    ticker->stops = false;
    pthread_mutex_init(&ticker->mutex, NULL); // these do not fail on Linux: nothing is allocated
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&ticker->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    ticker->runs = start_thread(ticker) == 0;
    if (!ticker->runs) return;
    count(1);
    count_sanitizers();
}

hone_status hone_ticker_start(
    const hone_allocator *allocator, uint64_t (*tick)(void *ctx), void *ctx, hone_ticker **out, hone_error *err)
{
    static const char where[] = "os.ticker.start";
    *out = NULL;
    hone_ticker *ticker = hone_alloc(allocator, sizeof *ticker);
    if (ticker == NULL) return hone_fail_memory(err, where);
    hone_fork_count_begin();
    ticker->allocator = *allocator;
    ticker->tick = tick;
    ticker->ctx = ctx;
    begin(ticker);
    if (!ticker->runs) {
        hone_free(allocator, ticker);
        return hone_fail(err, HONE_UNAVAILABLE, where, "the system starts no further thread");
    }
    *out = ticker;
    return HONE_OK;
}

// A sanitizer does not let the child of a process with threads start threads, or waits for one of its own locks that
// such a thread held.
static bool may_start_in_child(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return false;
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
    return false;
#    else
    return true;
#    endif
#else
    return true;
#endif
}

void hone_ticker_in_child(hone_ticker *ticker)
{
    if (ticker != NULL && ticker->generation != hone_fork_generation() && may_start_in_child()) begin(ticker);
}

// In a child neither the thread nor the condition that it waited on exists.
void hone_ticker_stop(hone_ticker **ticker)
{
    hone_ticker *self = *ticker;
    if (self == NULL) return;
    if (self->runs && self->generation == hone_fork_generation()) {
        hone_assert(!pthread_equal(self->thread, pthread_self()));
        pthread_mutex_lock(&self->mutex);
        self->stops = true;
        pthread_cond_signal(&self->wake);
        pthread_mutex_unlock(&self->mutex);
        pthread_join(self->thread, NULL);
        count(-1);
        pthread_cond_destroy(&self->wake);
        pthread_mutex_destroy(&self->mutex);
    }
    hone_allocator allocator = self->allocator;
    *ticker = NULL;
    hone_free(&allocator, self);
}
