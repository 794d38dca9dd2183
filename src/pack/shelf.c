// Packs that another process has named by folder and kernel: opened once, and again when that kernel is not in what was
// read.
#include "pack/pack.h"

#include "base/error.h"
#include "base/memory.h"

#include <string.h>

static const char where[] = "pack.shelf";

typedef struct hone_pack_shelved {
    struct hone_pack_shelved *next;
    hone_kernel_pack *pack;
} hone_pack_shelved;

static const hone_kernel *find(
    const hone_pack_shelf *shelf,
    const char *folder,
    const char *algorithm,
    const char *name,
    hone_platform platform,
    const char *revision)
{
    const hone_kernel *found = NULL;
    for (const hone_pack_shelved *item = shelf->first; item != NULL && found == NULL; item = item->next)
        if (strcmp(hone_pack_folder(item->pack), folder) == 0)
            found = hone_pack_find(item->pack, algorithm, name, platform, revision);
    return found;
}

// What was opened before stays: something may still point into it.
static hone_status open_again(hone_pack_shelf *shelf, const char *folder, hone_error *err)
{
    hone_pack_shelved *item = hone_alloc(&shelf->allocator, sizeof *item);
    if (item == NULL) return hone_fail_memory(err, where);
    const hone_pack_platforms platforms = {.find = shelf->platforms, .gpu = shelf->gpu};
    hone_status status = hone_pack_open(&shelf->allocator, folder, &platforms, &item->pack, err);
    if (status != HONE_OK) {
        hone_free(&shelf->allocator, item);
        return status;
    }
    item->next = shelf->first;
    shelf->first = item;
    return HONE_OK;
}

hone_status hone_pack_shelf_find(
    hone_pack_shelf *shelf,
    const char *folder,
    const char *algorithm,
    const char *name,
    hone_platform platform,
    const char *revision,
    const hone_kernel **out,
    hone_error *err)
{
    *out = find(shelf, folder, algorithm, name, platform, revision);
    if (*out != NULL) return HONE_OK;
    hone_status status = open_again(shelf, folder, err);
    if (status != HONE_OK) return status;
    *out = find(shelf, folder, algorithm, name, platform, revision);
    if (*out != NULL) return HONE_OK;
    return hone_fail(
        err, HONE_INCOMPATIBLE, where,
        "%.300s: pack.json or a header has changed: the pack no longer has kernel %s of revision %s", folder, name,
        revision);
}

void hone_pack_shelf_empty(hone_pack_shelf *shelf)
{
    while (shelf->first != NULL) {
        hone_pack_shelved *item = shelf->first;
        shelf->first = item->next;
        hone_pack_close(&item->pack);
        hone_free(&shelf->allocator, item);
    }
}
