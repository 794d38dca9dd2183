// Blocks that know their size, arenas and slabs. The size stands in 16 bytes before a block, which keeps the
// block aligned to 16 on every allocator that aligns for any type.
#include "base/memory.h"

#include "base/assert.h"

#if defined(__SANITIZE_ADDRESS__)
#    include <sanitizer/asan_interface.h>
#else
#    define ASAN_POISON_MEMORY_REGION(block, size)   ((void)(block), (void)(size))
#    define ASAN_UNPOISON_MEMORY_REGION(block, size) ((void)(block), (void)(size))
#endif
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_SIZE = 16, CHUNK_SIZE = 4096, MINIMUM_CAPACITY = 8, FEWEST_BLOCKS = 8, MOST_BLOCKS = 256 };

typedef struct block_header {
    size_t size; // of the block that follows
    size_t unused;
} block_header;

_Static_assert(sizeof(block_header) <= HEADER_SIZE, "the header fits before a block");
_Static_assert(alignof(max_align_t) >= HEADER_SIZE, "blocks stay aligned to 16");

static void *system_reallocate(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    if (new_size > 0) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

hone_allocator hone_allocator_system(void)
{
    return (hone_allocator){NULL, system_reallocate};
}

static block_header *header_of(void *block)
{
    return (block_header *)(void *)((char *)block - HEADER_SIZE);
}

static void *resize(const hone_allocator *allocator, void *block, size_t size)
{
    if (size == 0) size = 1;
    if (size > SIZE_MAX - HEADER_SIZE) return NULL;
    block_header *header = block != NULL ? header_of(block) : NULL;
    const size_t old_total = header != NULL ? header->size + HEADER_SIZE : 0;
    header = allocator->reallocate(allocator->ctx, header, old_total, size + HEADER_SIZE);
    if (header == NULL) return NULL;
    header->size = size;
    return (char *)header + HEADER_SIZE;
}

void *hone_resize(const hone_allocator *allocator, void *block, size_t size)
{
    const size_t old_size = block != NULL ? header_of(block)->size : 0;
    char *bytes = resize(allocator, block, size);
    if (bytes == NULL) return NULL;
    const size_t new_size = header_of(bytes)->size;
    if (new_size > old_size) memset(bytes + old_size, 0, new_size - old_size);
    return bytes;
}

void *hone_alloc_unset(const hone_allocator *allocator, size_t size)
{
    return resize(allocator, NULL, size);
}

void *hone_alloc(const hone_allocator *allocator, size_t size)
{
    return hone_resize(allocator, NULL, size);
}

void *hone_alloc_array(const hone_allocator *allocator, size_t count, size_t size)
{
    size_t total;
    return __builtin_mul_overflow(count, size, &total) ? NULL : hone_alloc(allocator, total);
}

bool hone_grow(const hone_allocator *allocator, void *array_pointer, size_t *capacity, size_t needed, size_t size)
{
    if (needed <= *capacity) return true;
    size_t grown = *capacity < MINIMUM_CAPACITY ? MINIMUM_CAPACITY : *capacity, total;
    while (grown < needed) {
        if (grown > SIZE_MAX / 2) return false;
        grown *= 2;
    }
    if (__builtin_mul_overflow(grown, size, &total)) return false;
    // The pointer is copied in and out as bytes: array_pointer points to a pointer of any object type.
    void *array;
    memcpy(&array, array_pointer, sizeof array);
    array = hone_resize(allocator, array, total);
    if (array == NULL) return false;
    memcpy(array_pointer, &array, sizeof array);
    *capacity = grown;
    return true;
}

void hone_free(const hone_allocator *allocator, void *block)
{
    if (block == NULL) return;
    block_header *header = header_of(block);
    hone_assert(header->size > 0); // it is a block of hone_resize
    allocator->reallocate(allocator->ctx, header, header->size + HEADER_SIZE, 0);
}

char *hone_copy_text(const hone_allocator *allocator, const char *text, size_t size)
{
    if (size == SIZE_MAX) return NULL;
    char *copy = hone_alloc(allocator, size + 1);
    if (copy != NULL && size > 0) memcpy(copy, text, size);
    return copy;
}

// The newest chunk stands first and is the only one that is filled further.
typedef struct hone_arena_chunk {
    struct hone_arena_chunk *next;
    size_t used, size; // of the bytes after the chunk's head
    size_t unused;
} hone_arena_chunk;

_Static_assert(sizeof(hone_arena_chunk) % 16 == 0, "what follows a chunk's head is aligned to 16");

static hone_arena_chunk *add_chunk(hone_arena *arena, size_t size)
{
    if (size > SIZE_MAX - sizeof(hone_arena_chunk)) return NULL;
    hone_arena_chunk *chunk = hone_alloc(&arena->allocator, sizeof *chunk + size);
    if (chunk == NULL) return NULL;
    chunk->size = size;
    // A block larger than a chunk goes behind the one being filled, whose rest would be lost otherwise.
    hone_arena_chunk **place = arena->chunks != NULL && size > CHUNK_SIZE ? &arena->chunks->next : &arena->chunks;
    chunk->next = *place;
    *place = chunk;
    return chunk;
}

void *hone_arena_alloc(hone_arena *arena, size_t size)
{
    if (size > SIZE_MAX - 15) return NULL;
    size = size == 0 ? 16 : (size + 15) & ~(size_t)15;
    hone_arena_chunk *chunk = arena->chunks;
    if (chunk == NULL || chunk->size - chunk->used < size)
        chunk = add_chunk(arena, size > CHUNK_SIZE ? size : CHUNK_SIZE);
    if (chunk == NULL) return NULL;
    hone_assert(chunk->used % 16 == 0 && chunk->size - chunk->used >= size);
    void *block = (char *)(chunk + 1) + chunk->used;
    chunk->used += size;
    return block;
}

void *hone_arena_array(hone_arena *arena, size_t count, size_t size)
{
    size_t total;
    return __builtin_mul_overflow(count, size, &total) ? NULL : hone_arena_alloc(arena, total);
}

char *hone_arena_text(hone_arena *arena, const char *text, size_t size)
{
    if (size == SIZE_MAX) return NULL;
    char *copy = hone_arena_alloc(arena, size + 1);
    if (copy != NULL && size > 0) memcpy(copy, text, size);
    return copy;
}

void hone_arena_destroy(hone_arena *arena)
{
    while (arena->chunks != NULL) {
        hone_arena_chunk *next = arena->chunks->next;
        hone_free(&arena->allocator, arena->chunks);
        arena->chunks = next;
    }
}

typedef struct hone_slab_chunk {
    struct hone_slab_chunk *next;
    size_t count; // of blocks
} hone_slab_chunk;

// Each chunk is twice the last one: few plans take little, and many lie on whole pages.
static bool add_blocks(hone_slab *slab)
{
    hone_assert(slab->size > 0 && slab->size % HONE_SLAB_ALIGN == 0 && slab->size <= SIZE_MAX / (2 * MOST_BLOCKS));
    size_t count = slab->chunks == NULL ? FEWEST_BLOCKS : 2 * slab->chunks->count;
    if (count > MOST_BLOCKS) count = MOST_BLOCKS;
    hone_slab_chunk *chunk =
        hone_alloc_unset(&slab->allocator, sizeof *chunk + HONE_SLAB_ALIGN - 1 + count * slab->size);
    if (chunk == NULL) return false;
    *chunk = (hone_slab_chunk){slab->chunks, count};
    slab->chunks = chunk;
    char *first = (char *)(chunk + 1);
    slab->fresh = first + (HONE_SLAB_ALIGN - (uintptr_t)first % HONE_SLAB_ALIGN) % HONE_SLAB_ALIGN;
    slab->end = slab->fresh + count * slab->size;
    return true;
}

void *hone_slab_take(hone_slab *slab)
{
    void *block = slab->returned;
    if (block != NULL) {
        ASAN_UNPOISON_MEMORY_REGION(block, slab->size);
        memcpy(&slab->returned, block, sizeof slab->returned);
    } else {
        if (slab->fresh == slab->end && !add_blocks(slab)) return NULL;
        block = slab->fresh;
        slab->fresh += slab->size;
    }
    return memset(block, 0, slab->size);
}

void hone_slab_give_back(hone_slab *slab, void *block)
{
    memcpy(block, &slab->returned, sizeof slab->returned);
    slab->returned = block;
    ASAN_POISON_MEMORY_REGION(block, slab->size);
}

void hone_slab_deinit(hone_slab *slab)
{
    while (slab->chunks != NULL) {
        hone_slab_chunk *next = slab->chunks->next;
        ASAN_UNPOISON_MEMORY_REGION(
            slab->chunks, sizeof *next + HONE_SLAB_ALIGN - 1 + slab->chunks->count * slab->size);
        hone_free(&slab->allocator, slab->chunks);
        slab->chunks = next;
    }
    slab->returned = slab->fresh = slab->end = NULL;
}
