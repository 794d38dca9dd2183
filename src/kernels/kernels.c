#include "kernels/kernels.h"

#include "kernels/tables.h"

static const hone_kernel_table *const tables[] = {HONE_KERNEL_TABLES};

hone_status hone_kernels_register(hone_registry *registry, hone_error *err)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        hone_status status =
            hone_registry_defer(registry, tables[i]->algorithm, tables[i]->kernels, tables[i]->count, err);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}
