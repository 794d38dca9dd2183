// Mutexes that a child process can continue to use, and the other functions through which hone handles forks.
//
// A fork copies memory while other threads change it, and the child has none of those threads. So a fork waits until no
// other thread holds a mutex: the data that the mutexes guard is then consistent in the child. The wait has a time
// limit, since a holder may be inside a function of the host that waits for the very thread that forks. In the child
// each mutex is initialised again at its first use, unless the thread that forked holds it.
#ifndef HONE_OS_MUTEX_H
#define HONE_OS_MUTEX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// A recursive mutex: its holder unlocks it as often as it has locked it.
typedef struct hone_mutex {
    pthread_mutex_t mutex;
    atomic_uint_fast64_t holder; // the number of a thread; 0 if no thread holds it
    atomic_uint generation;      // of the process that used it last
    uint32_t depth;              // how many times its holder has locked it
    bool is_long;                // held as long as a contest or a call of a driver lasts: a fork does not wait for it
} hone_mutex;

#define HONE_MUTEX_LONG_INITIALIZER                                                                                    \
    {                                                                                                                  \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .is_long = true                                                            \
    }

void hone_mutex_init(hone_mutex *mutex);
void hone_mutex_init_long(hone_mutex *mutex);
void hone_mutex_deinit(hone_mutex *mutex);
void hone_mutex_lock(hone_mutex *mutex);
bool hone_mutex_try_lock(hone_mutex *mutex); // false if another thread holds it
void hone_mutex_unlock(hone_mutex *mutex);
bool hone_mutex_is_mine(hone_mutex *mutex); // whether the calling thread holds it

// A number of the calling thread that no other thread has or ever had. The thread that forks keeps its number in the
// child.
uint64_t hone_thread_number(void);

// Starts counting forks. Creating a mutex or owning a descriptor starts it too.
void hone_fork_count_begin(void);
// The number of forks between this process and the process that started to count. Reading it is a plain load, without a
// system call.
extern atomic_uint hone_fork_count __attribute__((visibility("hidden")));
static inline unsigned hone_fork_generation(void)
{
    return atomic_load_explicit(&hone_fork_count, memory_order_relaxed);
}

// Whether the calling thread forks to create a process for hone itself, which runs no other program.
extern _Thread_local bool hone_fork_is_own __attribute__((visibility("hidden")));

// What an object does at a fork. All functions run in the thread that forks, while no other thread can lock a mutex of
// hone.
typedef struct hone_fork_watch {
    void (*before)(void *ctx);   // in the parent; may be NULL
    void (*in_child)(void *ctx); // may be NULL
    void *ctx;
    struct hone_fork_watch *next, **link; // of the list of all
} hone_fork_watch;

void hone_fork_watch_begin(hone_fork_watch *watch);
void hone_fork_watch_end(hone_fork_watch *watch); // does nothing if it was not begun

// Descriptors that must not be shared with a child: locks, and ends of sockets. In a child their numbers refer to
// /dev/null until they are closed there, so that the child holds no lock of its parent and answers nothing sent to it.
// Disown a descriptor before it is closed.
void hone_fd_own(int fd);
void hone_fd_disown(int fd);

#endif
