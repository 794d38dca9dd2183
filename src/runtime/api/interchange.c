// The public functions for documents that need the registry of kernels.
#include "runtime/api/api.h"

#include "base/error.h"
#include "base/structs.h"
#include "hone/interchange.h"
#include "hone/result.h"
#include "interchange/exporter.h"
#include "interchange/importer.h"
#include "interchange/stores.h"
#include "store/records.h"

#include <stddef.h>

hone_status hone_importer_create(
    hone_runtime *rt, const hone_import_options *options, hone_importer **out, hone_error *err)
{
    if (out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "interchange.import", "out is NULL: give it an address");
    return hone_importer_new(
        rt != NULL ? rt->allocator : hone_allocator_system(), rt != NULL ? rt->registry : NULL, options, out, err);
}

hone_status hone_result_parse(hone_runtime *rt, const char *json, size_t size, hone_result **out, hone_error *err)
{
    if (json == NULL || out == NULL) {
        if (out != NULL) *out = NULL;
        return hone_fail(err, HONE_INVALID_ARGUMENT, "result.parse", "json or out is NULL");
    }
    return hone_result_read(hone_allocator_system(), rt != NULL ? rt->registry : NULL, rt, json, size, out, err);
}

// Reads the registry and the device from the runtime in the options, whose struct may be of an older header. Without a
// runtime there are none.
static hone_status read_ground(
    const hone_export_options *options, hone_registry **out_registry, const char **out_here, hone_error *err)
{
    const size_t end = offsetof(hone_export_options, rt) + sizeof options->rt;
    hone_runtime *rt = options != NULL && options->struct_size >= end ? options->rt : NULL;
    hone_status status = rt == NULL ? HONE_OK : hone_runtime_discover(rt, err);
    *out_registry = rt == NULL ? NULL : rt->registry;
    *out_here = rt == NULL || status != HONE_OK ? NULL : rt->cpu->fingerprint;
    return status;
}

hone_status hone_export(
    hone_store *store, const hone_export_options *options, char **out_text, size_t *out_size, hone_error *err)
{
    hone_registry *registry;
    const char *here;
    hone_status status = read_ground(options, &registry, &here, err);
    return status == HONE_OK ? hone_export_with(registry, here, store, options, out_text, out_size, err) : status;
}

hone_status hone_export_files(
    hone_store *store,
    const hone_export_options *options,
    bool (*visit)(void *ctx, const char *file),
    void *ctx,
    hone_error *err)
{
    hone_registry *registry;
    const char *here;
    hone_status status = read_ground(options, &registry, &here, err);
    return status == HONE_OK ? hone_export_files_with(registry, here, store, options, visit, ctx, err) : status;
}

static hone_status store_prune_known(
    hone_runtime *rt, hone_store *store, bool dry_run, hone_prune_report *out, hone_error *err)
{
    if (rt == NULL || store == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "interchange.prune", "the runtime and the store must not be NULL");
    hone_prune_report report = {0};
    hone_store_stat stat;
    hone_status status = hone_store_get_stat(store, &stat, err);
    if (status == HONE_OK) status = hone_prune_store(rt->registry, store, dry_run, &report, err);
    if (status == HONE_OK && !dry_run && stat.quarantined > 0) status = hone_store_clear_quarantine(store, err);
    report.quarantined = (size_t)stat.quarantined;
    if (status == HONE_OK && out != NULL) *out = report;
    return status;
}

hone_status hone_store_prune_sized(
    hone_runtime *rt, hone_store *store, bool dry_run, hone_prune_report *out, size_t size, hone_error *err)
{
    hone_prune_report known;
    hone_status status = store_prune_known(rt, store, dry_run, out != NULL ? &known : NULL, err);
    if (status == HONE_OK && out != NULL) hone_struct_give(out, size, &known, sizeof known);
    return status;
}
