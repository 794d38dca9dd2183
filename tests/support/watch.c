#include "watch.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local bool watching;
static atomic_int allocations, locks;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

static void count_if(atomic_int *counter)
{
    if (watching) atomic_fetch_add(counter, 1);
}

// Seen by the libraries that the program is linked with.
#pragma GCC visibility push(default)

void *malloc(size_t size)
{
    count_if(&allocations);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    count_if(&allocations);
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    count_if(&allocations);
    return __libc_realloc(block, size);
}

void free(void *block)
{
    count_if(&allocations);
    __libc_free(block);
}

typedef int lock_function(void *lock);

static int call_real(_Atomic(lock_function *) *real, const char *name, void *lock)
{
    count_if(&locks);
    lock_function *found = atomic_load(real);
    if (found == NULL) {
        // A function out of a data pointer, as POSIX gives it.
        void *symbol = dlsym(RTLD_NEXT, name);
        memcpy(&found, &symbol, sizeof found);
        atomic_store(real, found);
    }
    return found(lock);
}

#define COUNTED(name, type)                                                                                            \
    int name(type *lock)                                                                                               \
    {                                                                                                                  \
        static _Atomic(lock_function *) real;                                                                          \
        return call_real(&real, #name, (void *)(uintptr_t)lock);                                                       \
    }

COUNTED(pthread_mutex_lock, pthread_mutex_t)
COUNTED(pthread_mutex_trylock, pthread_mutex_t)
COUNTED(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNTED(pthread_rwlock_wrlock, pthread_rwlock_t)
COUNTED(pthread_spin_lock, pthread_spinlock_t)

#pragma GCC visibility pop

void watch_begin(void)
{
    atomic_store(&allocations, 0);
    atomic_store(&locks, 0);
    watching = true;
}

watched watch_end(void)
{
    watching = false;
    return (watched){atomic_load(&allocations), atomic_load(&locks)};
}
