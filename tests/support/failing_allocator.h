// An allocator for tests: counts what is live and fails when its allowance is used up, for good or once.
#ifndef HONE_TESTS_FAILING_ALLOCATOR_H
#define HONE_TESTS_FAILING_ALLOCATOR_H

#include "hone/allocator.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct failing_allocator {
    atomic_llong live; // bytes
    atomic_llong left; // allocations until all fail; negative: they never do
    atomic_llong sum;  // of all bytes that were asked for
    bool once;         // the first that fails is the only one: what went on without looking shows itself
} failing_allocator;

static inline void *failing_reallocate(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    failing_allocator *self = (failing_allocator *)ctx;
    if (new_size == 0) {
        atomic_fetch_sub(&self->live, (long long)old_size);
        free(ptr);
        return NULL;
    }
    long long left = atomic_load(&self->left);
    if (left == 0 && self->once) atomic_store(&self->left, -1);
    if (left == 0) return NULL;
    if (left > 0) atomic_fetch_sub(&self->left, 1);
    void *block = realloc(ptr, new_size);
    atomic_fetch_add(&self->sum, (long long)new_size);
    if (block != NULL) atomic_fetch_add(&self->live, (long long)new_size - (long long)old_size);
    return block;
}

static inline hone_allocator failing_allocator_of(failing_allocator *self, long long left)
{
    atomic_store(&self->live, 0);
    atomic_store(&self->left, left);
    atomic_store(&self->sum, 0);
    self->once = false;
    hone_allocator allocator = {self, failing_reallocate};
    return allocator;
}

#endif
