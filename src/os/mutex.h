// Mutexes that a child process can go on with, and what else of hone has to know of a fork.
//
// A fork copies memory while other threads are at work in it, and the child has none of them. So a fork waits until no
// other thread holds a mutex: what they guard is then whole in the child. It waits for a bounded time only, since a
// holder may be inside a function of the host's that waits for the very thread that forks. In the child each mutex is
// made anew at its first use, unless the thread that forked holds it.
#ifndef HONE_OS_MUTEX_H
#define HONE_OS_MUTEX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// Its holder may take it again, and gives it back as often.
typedef struct hone_mutex {
    pthread_mutex_t mutex;
    atomic_uint_fast64_t holder; // the number of a thread; 0: nobody
    atomic_uint generation;      // of the process that used it last
    uint32_t depth;              // how often its holder has it
    bool is_long;                // held for as long as a contest or a driver takes: a fork does not wait for it
} hone_mutex;

#define HONE_MUTEX_LONG_INITIALIZER                                                                                    \
    {                                                                                                                  \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .is_long = true                                                            \
    }

void hone_mutex_init(hone_mutex *mutex);
void hone_mutex_init_long(hone_mutex *mutex);
void hone_mutex_deinit(hone_mutex *mutex);
void hone_mutex_lock(hone_mutex *mutex);
bool hone_mutex_try_lock(hone_mutex *mutex); // false: another thread has it
void hone_mutex_unlock(hone_mutex *mutex);
bool hone_mutex_is_mine(hone_mutex *mutex); // of the calling thread

// A number of the calling thread that no other thread has or had; the thread that forks keeps it in the child.
uint64_t hone_thread_number(void);

// Has forks counted from now on; what is made of mutexes or owned descriptors does so by itself.
void hone_fork_count_begin(void);
// How many forks lie between this process and the one that began. A plain load: no system call.
extern atomic_uint hone_fork_count __attribute__((visibility("hidden")));
static inline unsigned hone_fork_generation(void)
{
    return atomic_load_explicit(&hone_fork_count, memory_order_relaxed);
}

// Whether the thread that forks does so for a process that hone itself needs, and that runs no program.
extern _Thread_local bool hone_fork_is_own __attribute__((visibility("hidden")));

// What an object does at a fork. All functions run in the thread that forks, while no other takes a mutex of hone.
typedef struct hone_fork_watch {
    void (*before)(void *ctx);   // in the parent; may be NULL
    void (*in_child)(void *ctx); // may be NULL
    void *ctx;
    struct hone_fork_watch *next, **link; // of the list of all
} hone_fork_watch;

void hone_fork_watch_begin(hone_fork_watch *watch);
void hone_fork_watch_end(hone_fork_watch *watch); // nothing when it was not begun

// Descriptors that are this process's alone: locks, and ends of sockets. In a child their numbers stand for /dev/null
// until they are closed there, so that nothing of the parent's is held or answered by it. Give one up before it is
// closed.
void hone_fd_own(int fd);
void hone_fd_disown(int fd);

#endif
