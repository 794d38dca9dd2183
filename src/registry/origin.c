#include "registry/origin.h"

#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), tail = strlen(end);
    return size >= tail && strcmp(text + size - tail, end) == 0;
}

// PTX is text, too, but not for the compiler of sources.
bool hone_code_is_binary(const char *name)
{
    return ends_with(name, ".clbin") || ends_with(name, ".cubin") || ends_with(name, ".fatbin") ||
           ends_with(name, ".ptx");
}

const hone_pack_variant *hone_pack_variant_of(const hone_pack_kernel *kernel, const int64_t *config)
{
    if (!kernel->is_listed) return kernel->variant_count > 0 ? &kernel->variants[0] : NULL;
    for (size_t i = 0; i < kernel->variant_count; i++) {
        const hone_config *own = &kernel->variants[i].config;
        if (memcmp(own->values, config, own->count * sizeof own->values[0]) == 0) return &kernel->variants[i];
    }
    return NULL;
}

const hone_code *hone_code_of_plan(const hone_plan *plan)
{
    const hone_code *code = plan->kernel->code;
    if (code == NULL || code->pack == NULL) return code;
    const hone_pack_variant *variant = hone_pack_variant_of(code->pack, plan->config);
    return variant != NULL ? &variant->code : NULL;
}
