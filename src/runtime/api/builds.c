// The builds in a folder with the layout of Hugging Face's kernels, for making a pack of one of them.
#include "base/error.h"
#include "base/memory.h"
#include "hone/pack.h"
#include "pack/hub.h"
#include "platforms/platform.h"

static const char where[] = "pack.builds";

static void visit_all(const hone_hub *hub, bool (*visit)(void *ctx, const hone_pack_build *build), void *ctx)
{
    hone_hub_files files = {.checked = 0};
    hone_error why = {.message = ""};
    const hone_status status = hub->chosen != NULL ? hone_hub_check(hub, &files, &why) : HONE_OK;
    for (size_t i = 0; i < hub->count; i++) {
        const hone_hub_variant *variant = &hub->variants[i];
        hone_pack_build build = {
            .name = variant->name,
            .why_not = variant->why_not[0] != '\0' ? variant->why_not : NULL,
            .is_chosen = variant == hub->chosen,
        };
        if (build.is_chosen) {
            build.status = status;
            build.reason = status != HONE_OK ? why.message : NULL;
            build.library = files.library;
            build.id = files.id;
            build.digests = files.has_digests ? files.checked : 0;
        }
        if (!visit(ctx, &build)) return;
    }
}

hone_status hone_pack_builds(
    const char *folder, bool (*visit)(void *ctx, const hone_pack_build *build), void *ctx, hone_error *err)
{
    if (folder == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the folder and visit must not be NULL");
    const hone_allocator allocator = hone_allocator_system();
    hone_hub *hub = hone_alloc(&allocator, sizeof *hub);
    if (hub == NULL) return hone_fail_memory(err, where);
    const hone_pack_gpu gpu = hone_platform_packs.gpu();
    hone_hub_look(folder, HONE_ANY, &gpu, hub);
    visit_all(hub, visit, ctx);
    hone_free(&allocator, hub);
    return HONE_OK;
}
