// The public functions of interchange that need to know which kernels there are.
#include "runtime/api/api.h"

#include "base/error.h"
#include "hone/interchange.h"
#include "interchange/importer.h"
#include "interchange/stores.h"

hone_status hone_importer_create(
    hone_runtime *rt, const hone_import_options *options, hone_importer **out, hone_error *err)
{
    if (out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "interchange.import", "out is NULL: give it an address");
    return hone_importer_new(
        rt != NULL ? rt->allocator : hone_allocator_system(), rt != NULL ? rt->registry : NULL, options, out, err);
}

hone_status hone_store_prune(hone_runtime *rt, hone_store *store, bool dry_run, hone_prune_report *out, hone_error *err)
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
