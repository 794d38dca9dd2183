// Foreign operations that the registry's algorithms can be: a list of documents that only grows at its newer end, so
// that readers need no lock. What is built in is read when somebody first asks.
#include "base/error.h"
#include "call/ejkernel.h"
#include "registry/tables.h"

#include <string.h>

static const char where[] = "registry.foreign";

// Under the mutex.
static hone_status add(hone_registry *registry, const char *text, size_t size, hone_error *err)
{
    hone_foreign *read = NULL;
    hone_status status = hone_foreign_read(&registry->allocator, text, size, &read, err);
    if (status != HONE_OK) return status;
    hone_foreign_link(read, atomic_load(&registry->foreign));
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

hone_status hone_registry_take_foreign(
    hone_registry *registry,
    const hone_allocator *allocator,
    const hone_foreign_row *row,
    const json_t *arguments,
    const hone_algorithm_entry **out_entry,
    hone_call **out,
    int64_t *out_times,
    hone_error *err)
{
    hone_status status =
        hone_fail(err, HONE_NOT_FOUND, where, "hone has no algorithm named '%.100s'", hone_foreign_algorithm(row, 0));
    for (; row != NULL; row = row->older)
        for (size_t i = 0; i < hone_foreign_take_count(row); i++) {
            const hone_algorithm_entry *entry = hone_registry_find(registry, hone_foreign_algorithm(row, i), NULL);
            if (entry == NULL) continue;
            *out_entry = entry;
            status = hone_foreign_call(allocator, row, i, entry->signature, arguments, out, out_times, err);
            if (status == HONE_OK || status == HONE_OUT_OF_MEMORY) return status;
        }
    return status;
}

hone_status hone_registry_foreign_call(
    hone_registry *registry,
    const hone_allocator *allocator,
    const char *library,
    hone_view operation,
    const char *spec,
    const hone_algorithm_entry **out_entry,
    hone_call **out,
    hone_error *err)
{
    const hone_foreign *foreign = NULL;
    json_t *root = NULL;
    int64_t times;
    hone_status status = hone_registry_foreign(registry, &foreign, err);
    const hone_foreign_row *row = hone_foreign_find(foreign, library, operation);
    if (status == HONE_OK && row == NULL)
        status = hone_fail(
            err, HONE_NOT_FOUND, where, "no row says what %s's %.*s is", library, (int)operation.size, operation.data);
    if (status == HONE_OK) status = hone_spec_json(allocator, spec, strlen(spec), &root, err);
    if (status != HONE_OK) return status;
    json_t *arguments = json_object_get(root, "kwargs_spec");
    const json_t *args = json_object_get(root, "args_spec");
    if (json_is_object(arguments) && hone_foreign_name_arguments(hone_foreign_signature(row), args, arguments))
        status = hone_registry_take_foreign(registry, allocator, row, arguments, out_entry, out, &times, err);
    else
        status = hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "the spec's arguments are not those of %s's %.*s", library,
            (int)operation.size, operation.data);
    json_decref(root);
    return status;
}
