#include "base/assert.h"
#include "os/mutex.h"
#include "os/os.h"

#include <fcntl.h>
#include <unistd.h>

enum { LOOK_NS = 50 * 1000, MOST_OWNED = 256 };

static const uint64_t most_wait_ns = 2000000000u;

atomic_uint hone_fork_count;
_Thread_local bool hone_fork_is_own;

// The number of threads that hold a mutex; and whether one is forking, so that no other thread may enter.
static atomic_int inside;
static atomic_bool forking;
static pthread_mutex_t one_fork = PTHREAD_MUTEX_INITIALIZER, renewing = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint_fast64_t forker; // the thread that this process began with, when it was forked
static atomic_uint_fast64_t numbers;
static _Thread_local uint64_t own_number;
static _Thread_local uint32_t held;  // mutexes that this thread holds, plus one while it forks
static atomic_int owned[MOST_OWNED]; // a descriptor plus 1; 0: free
static hone_fork_watch *watches;
static hone_mutex watches_mutex = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static pthread_once_t once = PTHREAD_ONCE_INIT;

uint64_t hone_thread_number(void)
{
    if (own_number == 0) own_number = atomic_fetch_add(&numbers, 1) + 1;
    return own_number;
}

// Forking -------------------------------------------------------------------------------------------------------------

// False if a thread is forking.
static bool come_in(void)
{
    if (held == 0) {
        atomic_fetch_add(&inside, 1);
        if (atomic_load(&forking)) {
            atomic_fetch_sub(&inside, 1);
            return false;
        }
    }
    held++;
    return true;
}

static void go_out(void)
{
    if (--held == 0) atomic_fetch_sub(&inside, 1);
}

static void before_fork(void)
{
    pthread_mutex_lock(&one_fork);
    atomic_store(&forking, true);
    const uint64_t end = hone_os_now_ns() + most_wait_ns;
    while (atomic_load(&inside) > (held > 0) && hone_os_now_ns() < end)
        hone_os_sleep_ns(LOOK_NS);
    held++; // the following code locks mutexes, and must not wait for itself
    for (hone_fork_watch *watch = watches; watch != NULL; watch = watch->next)
        if (watch->before != NULL) watch->before(watch->ctx);
}

static void in_parent(void)
{
    held--;
    atomic_store(&forking, false);
    pthread_mutex_unlock(&one_fork);
}

// If the descriptor were closed here and its number reused by the host, its owner in hone would close it once more.
static void blank_owned(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < MOST_OWNED; i++) {
        int fd = atomic_exchange(&owned[i], 0) - 1;
        if (fd >= 0 && null >= 0) (void)!dup3(null, fd, O_CLOEXEC);
    }
    if (null >= 0) close(null);
}

static void in_child(void)
{
    atomic_fetch_add(&hone_fork_count, 1);
    atomic_store(&forker, hone_thread_number());
    pthread_mutex_init(&one_fork, NULL);
    pthread_mutex_init(&renewing, NULL);
    blank_owned();
    for (hone_fork_watch *watch = watches; watch != NULL; watch = watch->next)
        if (watch->in_child != NULL) watch->in_child(watch->ctx);
    held--;
    atomic_store(&inside, held > 0);
    atomic_store(&forking, false);
}

static void watch_forks(void)
{
    (void)!pthread_atfork(before_fork, in_parent, in_child);
}

void hone_fork_count_begin(void)
{
    pthread_once(&once, watch_forks);
}

void hone_fork_watch_begin(hone_fork_watch *watch)
{
    hone_fork_count_begin();
    hone_mutex_lock(&watches_mutex);
    watch->next = watches;
    watch->link = &watches;
    if (watches != NULL) watches->link = &watch->next;
    watches = watch;
    hone_mutex_unlock(&watches_mutex);
}

void hone_fork_watch_end(hone_fork_watch *watch)
{
    if (watch->link == NULL) return;
    hone_mutex_lock(&watches_mutex);
    *watch->link = watch->next;
    if (watch->next != NULL) watch->next->link = watch->link;
    watch->link = NULL;
    hone_mutex_unlock(&watches_mutex);
}

void hone_fd_own(int fd)
{
    hone_assert(fd >= 0);
    hone_fork_count_begin();
    for (int i = 0; i < MOST_OWNED; i++) {
        int none = 0;
        if (atomic_compare_exchange_strong(&owned[i], &none, fd + 1)) return;
    }
}

void hone_fd_disown(int fd)
{
    for (int i = 0; i < MOST_OWNED; i++) {
        int this_one = fd + 1;
        if (atomic_compare_exchange_strong(&owned[i], &this_one, 0)) return;
    }
}

// Mutexes -------------------------------------------------------------------------------------------------------------

static void init(hone_mutex *mutex, bool is_long)
{
    hone_fork_count_begin();
    pthread_mutex_init(&mutex->mutex, NULL);
    atomic_init(&mutex->holder, 0);
    atomic_init(&mutex->generation, hone_fork_generation());
    mutex->depth = 0;
    mutex->is_long = is_long;
}

void hone_mutex_init(hone_mutex *mutex)
{
    init(mutex, false);
}

void hone_mutex_init_long(hone_mutex *mutex)
{
    init(mutex, true);
}

void hone_mutex_deinit(hone_mutex *mutex)
{
    (void)!pthread_mutex_destroy(&mutex->mutex);
}

bool hone_mutex_is_mine(hone_mutex *mutex)
{
    return atomic_load(&mutex->holder) == hone_thread_number();
}

// Whether the mutex was last used in an earlier process, and is not held by the one thread that exists in the child.
static bool is_left_behind(hone_mutex *mutex)
{
    return atomic_load(&mutex->generation) != hone_fork_generation() &&
           (atomic_load(&mutex->holder) == 0 || atomic_load(&mutex->holder) != atomic_load(&forker));
}

static void renew(hone_mutex *mutex)
{
    pthread_mutex_lock(&renewing);
    if (is_left_behind(mutex)) {
        pthread_mutex_init(&mutex->mutex, NULL);
        atomic_store(&mutex->holder, 0);
        atomic_store(&mutex->generation, hone_fork_generation());
    }
    pthread_mutex_unlock(&renewing);
}

// False if a thread is forking; the mutex is then released.
static bool have(hone_mutex *mutex)
{
    if (!mutex->is_long && !come_in()) {
        pthread_mutex_unlock(&mutex->mutex);
        return false;
    }
    atomic_store(&mutex->holder, hone_thread_number());
    mutex->depth = 1;
    return true;
}

// A thread that does not hold the mutex must not touch its depth: even adding 0 would overwrite what the holder counts
// meanwhile.
static bool have_again(hone_mutex *mutex)
{
    if (!hone_mutex_is_mine(mutex)) return false;
    mutex->depth++;
    return true;
}

// A thread enters only once it has the mutex: if it entered first and then waited, a fork would also wait for the
// holder of the mutex.
void hone_mutex_lock(hone_mutex *mutex)
{
    if (have_again(mutex)) return;
    for (;;) {
        if (is_left_behind(mutex)) renew(mutex);
        pthread_mutex_lock(&mutex->mutex);
        if (have(mutex)) return;
        while (atomic_load(&forking))
            hone_os_sleep_ns(LOOK_NS);
    }
}

// A mutex that is locked but has no holder is in that state only for a moment.
bool hone_mutex_try_lock(hone_mutex *mutex)
{
    if (have_again(mutex)) return true;
    for (;;) {
        if (is_left_behind(mutex)) renew(mutex);
        if (pthread_mutex_trylock(&mutex->mutex) == 0) {
            if (have(mutex)) return true;
        } else if (atomic_load(&mutex->holder) != 0) {
            return false;
        }
        hone_os_sleep_ns(LOOK_NS);
    }
}

void hone_mutex_unlock(hone_mutex *mutex)
{
    hone_assert(hone_mutex_is_mine(mutex) && mutex->depth > 0);
    if (--mutex->depth > 0) return;
    atomic_store(&mutex->generation, hone_fork_generation());
    atomic_store(&mutex->holder, 0);
    pthread_mutex_unlock(&mutex->mutex);
    if (!mutex->is_long) go_out();
}
