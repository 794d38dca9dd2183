#include "tune/worker/bulk.h"

#include "base/hash.h"

#include <string.h>

// Bytes of a piece: enough to be worth waking a thread for.
enum { LEAST_PIECE = 256 << 10, MOST_PIECES = 64 };

typedef struct bulk {
    char *to;
    const char *from;
    unsigned char byte;
    size_t size, piece;
    uint64_t hashes[MOST_PIECES];
} bulk;

static size_t size_of(const bulk *b, int64_t index)
{
    size_t rest = b->size - (size_t)index * b->piece;
    return rest < b->piece ? rest : b->piece;
}

static void fill(void *ctx, int64_t index)
{
    const bulk *b = ctx;
    memset(b->to + (size_t)index * b->piece, b->byte, size_of(b, index));
}

static void copy(void *ctx, int64_t index)
{
    const bulk *b = ctx;
    const size_t skip = (size_t)index * b->piece;
    memcpy(b->to + skip, b->from + skip, size_of(b, index));
}

static void hash(void *ctx, int64_t index)
{
    bulk *b = ctx;
    b->hashes[index] = hone_hash64(b->from + (size_t)index * b->piece, size_of(b, index));
}

// Returns the number of pieces.
static int64_t run(hone_pool *pool, bulk *b, void (*body)(void *ctx, int64_t index))
{
    b->piece = b->size / MOST_PIECES + 1;
    if (b->piece < LEAST_PIECE) b->piece = LEAST_PIECE;
    const int64_t count = (int64_t)((b->size + b->piece - 1) / b->piece);
    if (pool != NULL)
        hone_pool_share(pool, count, body, b);
    else
        for (int64_t i = 0; i < count; i++)
            body(b, i);
    return count;
}

void hone_bulk_fill(hone_pool *pool, void *to, unsigned char byte, size_t size)
{
    bulk b = {.to = to, .byte = byte, .size = size};
    (void)run(pool, &b, fill);
}

void hone_bulk_copy(hone_pool *pool, void *to, const void *from, size_t size)
{
    bulk b = {.to = to, .from = from, .size = size};
    (void)run(pool, &b, copy);
}

uint64_t hone_bulk_hash(hone_pool *pool, const void *bytes, size_t size)
{
    bulk b = {.from = bytes, .size = size};
    const int64_t count = run(pool, &b, hash);
    return hone_hash64(b.hashes, (size_t)count * sizeof b.hashes[0]);
}
