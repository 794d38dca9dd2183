// Foreign operations that the registry's algorithms can be: a list of documents that only grows at its newer end, so
// that readers need no lock. What is built in is read when somebody first asks.
#include "registry/tables.h"

#include <string.h>

// Under the mutex.
static hone_status add(hone_registry *registry, const char *text, size_t size, hone_error *err)
{
    hone_foreign *read = NULL;
    hone_status status = hone_foreign_read(&registry->allocator, text, size, &read, err);
    if (status != HONE_OK) return status;
    read->older = atomic_load(&registry->foreign);
    atomic_store(&registry->foreign, read);
    return HONE_OK;
}

static hone_status add_builtin(hone_registry *registry, hone_error *err)
{
    if (atomic_load(&registry->foreign) != NULL) return HONE_OK;
    return add(registry, hone_foreign_builtin, strlen(hone_foreign_builtin), err);
}

hone_status hone_registry_add_foreign(hone_registry *registry, const char *text, size_t size, hone_error *err)
{
    hone_mutex_lock(&registry->mutex);
    hone_status status = add_builtin(registry, err);
    if (status == HONE_OK) status = add(registry, text, size, err);
    hone_mutex_unlock(&registry->mutex);
    return status;
}

hone_status hone_registry_foreign(hone_registry *registry, const hone_foreign **out, hone_error *err)
{
    hone_status status = HONE_OK;
    hone_registry_load_late(registry); // packs bring rows
    if (atomic_load(&registry->foreign) == NULL) {
        hone_mutex_lock(&registry->mutex);
        status = add_builtin(registry, err);
        hone_mutex_unlock(&registry->mutex);
    }
    *out = atomic_load(&registry->foreign);
    return status;
}
