// What a pack that was read has to show: its names, its kernels, its refusals.
#include "pack/reading.h"

#include "base/assert.h"

#include <string.h>

const char *hone_pack_name(const hone_kernel_pack *pack)
{
    return pack->name;
}

const char *hone_pack_folder(const hone_kernel_pack *pack)
{
    return pack->folder;
}

const char *hone_pack_digest(const hone_kernel_pack *pack)
{
    return pack->digest;
}

const hone_kernel *hone_pack_kernel_at(const hone_kernel_pack *pack, size_t index)
{
    hone_assert(index < pack->count);
    return &pack->kernels[index];
}

size_t hone_pack_size(const hone_kernel_pack *pack)
{
    return pack->count;
}

const hone_kernel *hone_pack_find(
    const hone_kernel_pack *pack, const char *algorithm, const char *name, hone_platform platform, const char *revision)
{
    for (size_t i = 0; i < pack->count; i++) {
        const hone_kernel *kernel = &pack->kernels[i];
        if (kernel->platform == platform && strcmp(kernel->name, name) == 0 &&
            (revision == NULL || strcmp(kernel->revision, revision) == 0) &&
            strncmp(kernel->algorithm, algorithm, strlen(algorithm)) == 0)
            return kernel;
    }
    return NULL;
}

bool hone_pack_visit(const hone_kernel_pack *pack, bool (*visit)(void *ctx, const hone_pack_entry *entry), void *ctx)
{
    for (size_t i = 0; i < pack->problem_count; i++) {
        const hone_pack_problem *problem = &pack->problems[i];
        const hone_pack_entry entry = {
            .struct_size = sizeof entry,
            .pack = pack->name,
            .folder = pack->folder,
            .algorithm = problem->algorithm,
            .kernel = problem->kernel,
            .status = problem->status,
            .reason = problem->reason,
        };
        if (!visit(ctx, &entry)) return false;
    }
    for (size_t i = 0; i < pack->count; i++) {
        const hone_pack_kernel *details = &pack->details[i];
        const hone_pack_entry entry = {
            .struct_size = sizeof entry,
            .pack = pack->name,
            .folder = pack->folder,
            .algorithm = details->algorithm,
            .kernel = details->name,
            .platform = details->platform,
            .backend = details->backend,
            .variants = details->is_listed ? details->variant_count : 0,
            .files = details->file_count,
            .revision = pack->kernels[i].revision,
            .status = details->status,
            .reason = details->refusal,
            .chosen = details->chosen,
        };
        if (!visit(ctx, &entry)) return false;
    }
    return true;
}
