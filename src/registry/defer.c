// Algorithms that are registered when somebody first asks for them, so that opening a runtime costs what it uses.
//
// The list of deferred ones only grows. A look-up first walks it, without a lock, for its name; the first to find one
// registers it under the mutex while others that ask for the same name wait. From then on look-ups pass by. This is
// double-checked locking with acquire and release (D. Schmidt and T. Harrison, 1996, as C11 allows it): `loaded` is set
// last, so who reads it sees what was registered. An item stays in the list when it cannot be registered: short memory
// may not last, so the next that asks tries again.
#include "registry/tables.h"

#include "base/assert.h"
#include "base/error.h"

#include <string.h>

static const char where[] = "registry.defer";

// The name at the start of a signature, in lower case.
static bool read_name(const char *signature, char out[HONE_NAME_SIZE])
{
    char text[256];
    signature += strspn(signature, " \t\n");
    size_t size = strcspn(signature, "@( \t\n");
    hone_registry_name read;
    if (size >= sizeof text) return false;
    memcpy(text, signature, size);
    text[size] = '\0';
    if (!hone_registry_name_read(text, &read)) return false;
    memcpy(out, read.name, sizeof read.name);
    return true;
}

hone_status hone_registry_defer(
    hone_registry *registry, const hone_algorithm *algorithm, const hone_kernel *kernels, size_t count, hone_error *err)
{
    hone_deferred_kernel *item = hone_alloc(&registry->allocator, sizeof *item);
    if (item == NULL) return hone_fail_memory(err, where);
    if (algorithm->signature == NULL || !read_name(algorithm->signature, item->name)) {
        hone_free(&registry->allocator, item);
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "a signature that begins with no name");
    }
    item->algorithm = algorithm;
    item->kernels = kernels;
    item->count = count;
    atomic_init(&item->loaded, false);
    hone_mutex_lock(&registry->mutex);
    item->next = atomic_load_explicit(&registry->deferred, memory_order_relaxed);
    atomic_store_explicit(&registry->deferred, item, memory_order_release);
    hone_mutex_unlock(&registry->mutex);
    return HONE_OK;
}

void hone_registry_deferred_destroy(hone_registry *registry)
{
    hone_deferred_kernel *item = atomic_load_explicit(&registry->deferred, memory_order_relaxed);
    for (hone_deferred_kernel *next; item != NULL; item = next) {
        next = item->next;
        hone_free(&registry->allocator, item);
    }
}

static bool is_wanted(const hone_deferred_kernel *item, const char *name)
{
    return !atomic_load_explicit(&item->loaded, memory_order_acquire) &&
           (name == NULL || strcmp(item->name, name) == 0);
}

// Registering may ask for further names, its own among them: busy ones are passed by.
static hone_status load_one(hone_registry *registry, hone_deferred_kernel *item, hone_error *err)
{
    hone_assert(hone_mutex_is_mine(&registry->mutex) && !item->busy);
    item->busy = true;
    hone_status status = hone_registry_put_algorithm(registry, item->algorithm, true, err);
    if (status == HONE_OK) status = hone_registry_put_kernels(registry, item->kernels, item->count, false, true, err);
    item->busy = false;
    if (status == HONE_OK) atomic_store_explicit(&item->loaded, true, memory_order_release);
    return status;
}

// One that cannot be registered keeps none of the others out; the first failure is the answer.
hone_status hone_registry_load_held(hone_registry *registry, const char *name, hone_error *err)
{
    hone_assert(hone_mutex_is_mine(&registry->mutex));
    hone_status status = HONE_OK;
    for (hone_deferred_kernel *item = atomic_load_explicit(&registry->deferred, memory_order_acquire); item != NULL;
         item = item->next) {
        if (item->busy || !is_wanted(item, name)) continue;
        hone_status one = load_one(registry, item, status == HONE_OK ? err : NULL);
        if (status == HONE_OK) status = one;
    }
    return status;
}

void hone_registry_set_late(hone_registry *registry, void (*load)(void *ctx), void *ctx)
{
    hone_assert(!registry->late_running);
    registry->late = load;
    registry->late_ctx = ctx;
    atomic_store_explicit(&registry->late_done, load == NULL, memory_order_release);
}

void hone_registry_load_late(hone_registry *registry)
{
    if (atomic_load_explicit(&registry->late_done, memory_order_acquire)) return;
    hone_mutex_lock(&registry->late_mutex);
    if (!registry->late_running && !atomic_load_explicit(&registry->late_done, memory_order_relaxed)) {
        registry->late_running = true;
        registry->late(registry->late_ctx);
        registry->late_running = false;
        atomic_store_explicit(&registry->late_done, true, memory_order_release);
    }
    hone_mutex_unlock(&registry->late_mutex);
}

hone_status hone_registry_load_name(hone_registry *registry, const char *name, hone_error *err)
{
    hone_registry_load_late(registry);
    const hone_deferred_kernel *item = atomic_load_explicit(&registry->deferred, memory_order_acquire);
    while (item != NULL && !is_wanted(item, name))
        item = item->next;
    if (item == NULL) return HONE_OK;
    hone_mutex_lock(&registry->mutex);
    hone_status status = hone_registry_load_held(registry, name, err);
    hone_mutex_unlock(&registry->mutex);
    return status;
}

hone_status hone_registry_load(hone_registry *registry, hone_error *err)
{
    return hone_registry_load_name(registry, NULL, err);
}
