// How long a registered kernel lives. Everything that was registered together is one batch, which is freed as a whole:
// when its kernels were all replaced, the readers that were inside at the last replacement have left, and nobody
// retains one of them.
//
// Readers are those of the slow ways alone (deciding, tuning, explaining); a call that hits has a plan, which retains
// its kernel.
//
// Entering waits for nobody: readers are counted by epochs, of which the next begins only when nobody is left of the
// one before. A kernel that was replaced in epoch e was seen last by a reader of e, so that e + 2 has none that sees
// it:
//
//     epoch      e - 1        e            e + 1        e + 2
//     inside     e-2, e-1     e-1, e       e, e+1       e+1, e+2
//                             replaced                  freed
//
// Three counters serve, for readers of two epochs are inside at most, and the next epoch's counter must be empty.
// Source of the method: K. Fraser, "Practical lock-freedom", 2004, section 5.2.3.
#include "registry/tables.h"

#include "base/assert.h"

enum { SAFE = 2 };

static _Thread_local size_t inside; // readers of this thread, of all registries

void hone_registry_batch_destroy(hone_registry_batch *owned, const hone_allocator *allocator)
{
    for (size_t i = 0; i < owned->count; i++) {
        hone_space_release(&owned->refs[i].space);
        hone_signature_release(&owned->refs[i].signature);
    }
    hone_signature_release(&owned->signature);
    hone_arena_destroy(&owned->arena);
    hone_free(allocator, owned);
}

void hone_registry_keep(hone_registry *registry, hone_registry_batch *owned)
{
    hone_mutex_lock(&registry->life);
    owned->next = registry->batches;
    owned->link = &registry->batches;
    if (owned->next != NULL) owned->next->link = &owned->next;
    registry->batches = owned;
    hone_mutex_unlock(&registry->life);
}

// Under life.
static void take_out(hone_registry_batch *gone)
{
    hone_assert(*gone->link == gone);
    *gone->link = gone->next;
    if (gone->next != NULL) gone->next->link = gone->link;
}

// Under life. Readers are inside since this epoch or the one before: the next begins when none of the latter is left.
static uint64_t advance(hone_registry *registry)
{
    hone_assert(hone_mutex_is_mine(&registry->life) && atomic_load(&registry->retired) != NULL);
    uint64_t now = atomic_load(&registry->epoch);
    while (atomic_load(&registry->retired)->retired + SAFE > now && atomic_load(&registry->readers[(now + 2) % 3]) == 0)
        atomic_store(&registry->epoch, ++now);
    return now;
}

// Under life. Takes the registry's reference from the batches that no reader can see, and out what nobody retains: a
// list by next, to be destroyed once life is given back.
static hone_registry_batch *collect(hone_registry *registry)
{
    hone_assert(hone_mutex_is_mine(&registry->life));
    hone_registry_batch *dead = NULL, *left = NULL, *one = atomic_load(&registry->retired);
    const uint64_t now = one != NULL ? advance(registry) : 0;
    for (hone_registry_batch *next; one != NULL; one = next) {
        next = one->next_retired;
        if (one->retired + SAFE > now) {
            one->next_retired = left;
            left = one;
        } else if (atomic_fetch_sub(&one->references, 1) == 1) {
            take_out(one);
            one->next = dead;
            dead = one;
        }
    }
    atomic_store(&registry->retired, left);
    return dead;
}

static void destroy_all(const hone_registry *registry, hone_registry_batch *dead)
{
    for (hone_registry_batch *next; dead != NULL; dead = next) {
        next = dead->next;
        hone_registry_batch_destroy(dead, &registry->allocator);
    }
}

void hone_registry_retire(hone_registry *registry, hone_registry_batch *gone)
{
    hone_mutex_lock(&registry->life);
    hone_assert(gone->registered == 0);
    gone->retired = atomic_load(&registry->epoch);
    gone->next_retired = atomic_load(&registry->retired);
    atomic_store(&registry->retired, gone);
    hone_mutex_unlock(&registry->life);
}

// Counted in an epoch that is over by then, it would keep nothing: it counts itself anew.
void hone_registry_enter(hone_registry *registry, hone_registry_reader *reader)
{
    uint64_t now = atomic_load(&registry->epoch);
    for (uint64_t counted = 0; counted != now;) {
        atomic_fetch_add(&registry->readers[now % 3], 1);
        counted = now;
        now = atomic_load(&registry->epoch);
        if (counted != now) atomic_fetch_sub(&registry->readers[counted % 3], 1);
    }
    *reader = (hone_registry_reader){registry, now};
    inside++;
}

void hone_registry_leave(hone_registry_reader *reader)
{
    hone_registry *registry = reader->registry;
    if (registry == NULL) return;
    hone_assert(inside > 0 && atomic_load(&registry->readers[reader->since % 3]) > 0);
    reader->registry = NULL;
    inside--;
    atomic_fetch_sub(&registry->readers[reader->since % 3], 1);
    // Who finds the mutex taken leaves it to its holder, or to the next.
    if (atomic_load(&registry->retired) == NULL || !hone_mutex_try_lock(&registry->life)) return;
    hone_registry_batch *dead = collect(registry);
    hone_mutex_unlock(&registry->life);
    destroy_all(registry, dead);
}

void hone_registry_in_child(hone_registry *registry)
{
    for (int i = 0; inside == 0 && i < 3; i++)
        atomic_store(&registry->readers[i], 0);
}

const hone_kernel_ref *hone_kernel_retain(const hone_kernel_ref *kernel)
{
    hone_assert(kernel->batch == NULL || atomic_load(&kernel->batch->references) > 0);
    if (kernel->batch != NULL) atomic_fetch_add(&kernel->batch->references, 1);
    return kernel;
}

void hone_kernel_release(const hone_kernel_ref *kernel)
{
    hone_registry_batch *owned = kernel->batch;
    if (owned == NULL || atomic_fetch_sub(&owned->references, 1) != 1) return;
    hone_registry *registry = kernel->registry;
    hone_mutex_lock(&registry->life);
    take_out(owned);
    hone_mutex_unlock(&registry->life);
    hone_registry_batch_destroy(owned, &registry->allocator);
}
