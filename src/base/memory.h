// Memory from a hone_allocator. A block knows its own size, so that freeing needs only the pointer.
#ifndef HONE_BASE_MEMORY_H
#define HONE_BASE_MEMORY_H

#include "hone/allocator.h"

#include <stdbool.h>

// What a public function was given: a zeroed allocator is the system's.
static inline hone_allocator hone_allocator_given(hone_allocator allocator)
{
    return allocator.reallocate != NULL ? allocator : hone_allocator_system();
}

// Zeroed block of size bytes (at least 1), aligned to 16; NULL when there is none. Free with hone_free.
void *hone_alloc(const hone_allocator *allocator, size_t size);
// The same with bytes that are not set, for an array that is written before it is read: megabytes are not written twice.
void *hone_alloc_unset(const hone_allocator *allocator, size_t size);
// Zeroed array; NULL also when count * size overflows.
void *hone_alloc_array(const hone_allocator *allocator, size_t count, size_t size);
// Grows or shrinks a block of hone_alloc (or NULL); new bytes are zero. The old block stays valid when NULL is
// returned.
void *hone_resize(const hone_allocator *allocator, void *block, size_t size);
// Doubles *capacity (at least 8) of an array of size-byte elements until it holds `needed`; false: array and capacity
// as they were.
bool hone_grow(const hone_allocator *allocator, void *array_pointer, size_t *capacity, size_t needed, size_t size);
void hone_free(const hone_allocator *allocator, void *block);
// A NUL-terminated copy of size bytes of text (hone_alloc'ed); NULL when there is no memory.
char *hone_copy_text(const hone_allocator *allocator, const char *text, size_t size);

// Blocks that die together. Zero-initialise with the allocator set; destroy frees all.
typedef struct hone_arena {
    hone_allocator allocator;
    struct hone_arena_chunk *chunks;
} hone_arena;

void *hone_arena_alloc(hone_arena *arena, size_t size); // zeroed, aligned to 16
void *hone_arena_array(hone_arena *arena, size_t count, size_t size);
char *hone_arena_text(hone_arena *arena, const char *text, size_t size); // NUL-terminated copy
void hone_arena_destroy(hone_arena *arena);

// Blocks of one size that lie side by side, each from a cache line's start on: what many look-ups read stays on few pages.
// Zero-initialise with allocator and size set. For one thread at a time; deinit frees all, blocks that are in use included.
typedef struct hone_slab {
    hone_allocator allocator;
    size_t size;    // of a block; a multiple of HONE_SLAB_ALIGN
    void *returned; // blocks to take again, each the address of the next
    char *fresh, *end;
    struct hone_slab_chunk *chunks; // the newest first
} hone_slab;

enum { HONE_SLAB_ALIGN = 64 };

void *hone_slab_take(hone_slab *slab); // zeroed; NULL when there is no memory
void hone_slab_give_back(hone_slab *slab, void *block);
void hone_slab_deinit(hone_slab *slab);

#endif
