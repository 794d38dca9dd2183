// Memory that a kernel's worker needs while it runs: one block per thread, which is kept for its next run and freed
// with the thread, so that a run allocates only if it needs more than any run before it. Blocks grow in steps of 64
// KiB, and a larger block replaces the old one: its contents are lost, and a thread never holds two.
#include "kernels/common/scratch.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdlib.h>

enum { ALIGNMENT = 64, GRANULE = 1 << 16 };

typedef struct block {
    void *data;
    size_t size;
} block;

// One for each thread. The key is only needed for its destructor: a thread-local struct is faster to access.
static _Thread_local block own;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int key_failed;

static void free_block(void *data)
{
    free(data);
    own = (block){0};
}

static void create_key(void)
{
    key_failed = pthread_key_create(&key, free_block);
}

static size_t round_up(size_t size, size_t step)
{
    return (size + step - 1) / step * step;
}

// Frees the old block first, so that a thread never holds two.
static void *grow(size_t size)
{
    pthread_once(&once, create_key);
    free(own.data);
    own = (block){0};
    if (key_failed || size > SIZE_MAX - GRANULE) return NULL;
    size_t rounded = round_up(size, GRANULE);
    void *data = aligned_alloc(ALIGNMENT, rounded);
    if (pthread_setspecific(key, data)) {
        free(data);
        (void)pthread_setspecific(key, NULL);
        return NULL;
    }
    if (data != NULL) own = (block){data, rounded};
    return data;
}

void *hone_scratch_get(size_t size)
{
    return own.data != NULL && size <= own.size ? own.data : grow(size);
}

void *hone_scratch_piece(const hone_execution *execution, int64_t index, int64_t workers, size_t size)
{
    hone_assert(workers > 0 && index >= 0 && index < workers);
    size_t piece = round_up(size, ALIGNMENT);
    if (execution != NULL && execution->scratch != NULL && execution->scratch_bytes / (size_t)workers >= piece)
        return (char *)execution->scratch + (size_t)index * piece;
    return hone_scratch_get(piece);
}
