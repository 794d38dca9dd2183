// A kernel whose code is in a folder with variants for several machines: the one for this machine is chosen when the pack
// is read.
#include "pack/hub.h"
#include "pack/reading.h"

#include "base/memory.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

enum { NAME_LIMIT = 255 };

// "tvm-ffi01-cpu-x86_64-linux fits; tvm-ffi01-cu128-x86_64-linux is for the GPU; ..."
static void write_choice(const hone_hub *hub, hone_buffer *out)
{
    if (hub->chosen != NULL) hone_buffer_format(out, "%s fits", hub->chosen->name);
    for (size_t i = 0; i < hub->count; i++) {
        const hone_hub_variant *v = &hub->variants[i];
        if (v == hub->chosen) continue;
        hone_buffer_format(
            out, "%s%s %s", out->size > 0 ? "; " : "", v->name,
            v->why_not[0] != '\0' ? v->why_not : "fits, and another is for a later CUDA");
    }
}

static hone_status refuse_all(const hone_pack_reading *r, const char *folder, const hone_hub *hub)
{
    hone_buffer words;
    hone_buffer_init(&words, r->pack->allocator);
    write_choice(hub, &words);
    hone_status status =
        words.failed ? hone_pack_fail_memory(r)
        : hub->count == 0
            ? hone_pack_fail(
                  r, HONE_NOT_FOUND, "folder",
                  "'%.120s' has no variants; expected build/tvm-ffi01-cpu-x86_64-linux and the like below it", folder)
            : hone_pack_fail(
                  r, HONE_UNAVAILABLE, "folder", "no variant of '%.120s' fits this machine: %s", folder,
                  hone_buffer_string(&words));
    hone_buffer_deinit(&words);
    return status;
}

static hone_status keep_choice(const hone_pack_reading *r, const hone_hub *hub, const char **out)
{
    hone_buffer words;
    hone_buffer_init(&words, r->pack->allocator);
    write_choice(hub, &words);
    *out = words.failed ? NULL : hone_arena_text(&r->pack->arena, hone_buffer_string(&words), words.size);
    hone_buffer_deinit(&words);
    return *out != NULL ? HONE_OK : hone_pack_fail_memory(r);
}

// The folder without links in it, which lies in the pack's own.
static hone_status find_folder(const hone_pack_reading *r, const char *name, char path[HONE_HUB_PATH])
{
    char written[HONE_HUB_PATH];
    const size_t size = strlen(r->pack->folder);
    const int length = snprintf(written, sizeof written, "%s/%s", r->pack->folder, name);
    if (length < 0 || (size_t)length >= sizeof written || !hone_os_real_path(written, path, HONE_HUB_PATH) ||
        !hone_os_is_folder(path))
        return hone_pack_fail(r, HONE_NOT_FOUND, "folder", "there is no folder '%.120s' in that of the pack", name);
    if (strncmp(path, r->pack->folder, size) == 0 && (path[size] == '/' || path[size] == '\0')) return HONE_OK;
    return hone_pack_fail(
        r, HONE_INVALID_ARGUMENT, "folder", "'%.120s' leaves the folder of the pack, to %.200s", name, path);
}

// Its files are compared with its metadata; without digests nothing tells that they are what was published.
static hone_status take_library(
    const hone_pack_reading *r, const hone_hub *hub, hone_pack_files *list, size_t *out_index)
{
    hone_hub_files found;
    hone_error why = {.message = ""};
    const size_t size = strlen(r->pack->folder) + 1;
    hone_status status = hone_hub_check(hub, &found, &why);
    if (status == HONE_OUT_OF_MEMORY) return hone_pack_fail_memory(r);
    if (status != HONE_OK) return hone_pack_fail(r, status, "folder", "%s", why.message);
    if (!found.has_digests)
        return hone_pack_fail(
            r, HONE_INVALID_ARGUMENT, "folder",
            "metadata.json of %.120s has no digests, so that nobody can tell what its files should be: name file and "
            "sha256",
            hub->chosen->name);
    hone_pack_file file = {
        .name = hone_arena_text(&r->pack->arena, found.library + size, strlen(found.library + size))};
    if (file.name == NULL) return hone_pack_fail_memory(r);
    memcpy(file.sha256, found.sha256, sizeof file.sha256);
    return hone_pack_add_file(r, list, &file, out_index);
}

static hone_status choose(
    const hone_pack_reading *r,
    const char *folder,
    hone_pack_kernel *details,
    hone_hub *hub,
    hone_pack_files *list,
    size_t *out_index)
{
    char path[HONE_HUB_PATH];
    hone_pack_gpu gpu = {.cuda = 0};
    hone_status status = find_folder(r, folder, path);
    if (status != HONE_OK) return status;
    if (details->backend != HONE_CPU && r->platforms->gpu != NULL) gpu = r->platforms->gpu();
    hone_hub_look(path, details->backend, &gpu, hub);
    if (hub->chosen == NULL) return refuse_all(r, folder, hub);
    status = take_library(r, hub, list, out_index);
    return status == HONE_OK ? keep_choice(r, hub, &details->chosen) : status;
}

hone_status hone_pack_get_variant_file(
    const hone_pack_reading *r,
    const json_t *object,
    hone_pack_kernel *details,
    hone_pack_files *list,
    size_t *out_index,
    bool *out_given)
{
    const char *folder = NULL;
    hone_status status = hone_pack_get_text(r, object, "folder", NAME_LIMIT, &folder);
    *out_given = false;
    if (status != HONE_OK || folder == NULL) return status;
    if (!r->platforms->find(details->platform)->chooses_variants)
        return hone_pack_fail(r, HONE_INVALID_ARGUMENT, "folder", "is for libraries of tvm-ffi: name file and sha256");
    if (json_object_get(object, "file") != NULL || json_object_get(object, "sha256") != NULL)
        return hone_pack_fail(r, HONE_INVALID_ARGUMENT, "folder", "is there, and so is a file: name one of them");
    hone_hub *hub = hone_alloc(&r->pack->allocator, sizeof *hub);
    if (hub == NULL) return hone_pack_fail_memory(r);
    status = choose(r, folder, details, hub, list, out_index);
    hone_free(&r->pack->allocator, hub);
    *out_given = status == HONE_OK;
    return status;
}
