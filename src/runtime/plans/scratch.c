#include "runtime/plans/scratch.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

// Sizes are rounded up to whole granules, so that calls whose sizes differ little do not each grow the block.
enum { ALIGNMENT = 64, GRANULE = 1 << 12 };

typedef struct block {
    void *data;
    size_t size;
    bool lent; // to a run that has not ended
} block;

static _Thread_local block own;
static pthread_key_t thread_end; // only for its destructor: the struct is faster to access
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void free_own(void *data)
{
    free(data);
    own = (block){.data = NULL};
}

static void create_key(void)
{
    has_key = pthread_key_create(&thread_end, free_own) == 0;
}

static void *allocate(size_t size)
{
    if (size > SIZE_MAX - GRANULE) return NULL;
    return aligned_alloc(ALIGNMENT, (size + GRANULE - 1) / GRANULE * GRANULE);
}

bool hone_scratch_is_brought(const hone_execution *execution, size_t size)
{
    return execution != NULL && execution->scratch != NULL && execution->scratch_bytes >= size &&
           (uintptr_t)execution->scratch % ALIGNMENT == 0;
}

// Frees the old block first, so that a thread never holds two.
bool hone_scratch_reserve(size_t size)
{
    if (own.lent || (own.data != NULL && size <= own.size)) return true;
    pthread_once(&once, create_key);
    if (!has_key) return false;
    free(own.data);
    own = (block){.data = allocate(size)};
    if (pthread_setspecific(thread_end, own.data) != 0) {
        free_own(own.data);
        (void)pthread_setspecific(thread_end, NULL);
    }
    own.size = own.data != NULL ? size : 0;
    return own.data != NULL;
}

void *hone_scratch_lend(size_t size)
{
    if (own.lent) return allocate(size);
    if (!hone_scratch_reserve(size)) return NULL;
    own.lent = true;
    return own.data;
}

void hone_scratch_return(void *scratch)
{
    hone_assert(scratch != NULL && (scratch != own.data || own.lent));
    if (scratch == own.data)
        own.lent = false;
    else
        free(scratch);
}
