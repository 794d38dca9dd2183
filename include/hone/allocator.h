// Where hone's memory comes from: one function and a pointer, by value.
#ifndef HONE_ALLOCATOR_H
#define HONE_ALLOCATOR_H

#include "hone/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// reallocate(ctx, NULL, 0, n)      allocates n bytes, aligned for any type
// reallocate(ctx, p, old_size, n)  resizes; p stays valid when NULL is returned
// reallocate(ctx, p, old_size, 0)  frees and returns NULL
// Threads: called from any thread that calls hone, at the same time.
// A zeroed one, (hone_allocator){0}, is the system's, wherever one is taken.
typedef struct hone_allocator {
    void *ctx;
    void *(*reallocate)(void *ctx, void *ptr, size_t old_size, size_t new_size);
} hone_allocator;

// malloc, realloc and free.
HONE_API hone_allocator hone_allocator_system(void);

#ifdef __cplusplus
}
#endif
#endif
