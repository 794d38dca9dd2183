// pack.json of any origin, in a folder that is not there: what is read must be whole, and what is refused must say why.
#include "pack/pack.h"
#include "platforms/platform.h"

#include <stdlib.h>
#include <string.h>

static hone_status judge(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err)
{
    (void)err;
    if (kernel->name == NULL || kernel->space == NULL || variant->facts == NULL) abort();
    return HONE_OK;
}

static bool check_entry(void *ctx, const hone_pack_entry *entry)
{
    (void)ctx;
    if ((entry->status == HONE_OK) != (entry->reason == NULL)) abort();
    if (entry->reason != NULL && entry->reason[0] == '\0') abort();
    return true;
}

static void check_kernel(const hone_kernel *kernel)
{
    const hone_pack_kernel *details = kernel->code->pack;
    hone_config config;
    if (kernel->name == NULL || kernel->algorithm == NULL || kernel->revision == NULL) abort();
    if (details->refusal != NULL) return;
    if (details->variant_count == 0) abort();
    if (!details->is_listed) return;
    for (size_t i = 0; i < details->variant_count; i++)
        if (hone_pack_variant_of(details, details->variants[i].config.values) != &details->variants[i]) abort();
    (void)kernel->candidates(kernel, NULL, 0, &config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const hone_allocator allocator = hone_allocator_system();
    hone_kernel_pack *pack = NULL;
    hone_error err = {.message = ""};
    const hone_pack_platforms platforms = {.find = hone_platform_facts_of, .judge = judge};
    hone_status status =
        hone_pack_parse(&allocator, "/nowhere/of/this/name", (const char *)data, size, &platforms, &pack, &err);
    if ((status == HONE_OK) != (pack != NULL)) abort();
    if (status != HONE_OK && err.message[0] == '\0') abort();
    if (pack != NULL) {
        hone_pack_visit(pack, check_entry, NULL);
        for (size_t i = 0; i < hone_pack_size(pack); i++)
            check_kernel(hone_pack_kernel_at(pack, i));
    }
    hone_pack_close(&pack);
    return 0;
}
