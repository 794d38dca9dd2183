// The packs of a runtime: those of HONE_PACK_PATH, read at the first lookup of an algorithm, and those that the program
// loads.
#include "base/error.h"
#include "pack/pack.h"
#include "runtime/api/api.h"
#include "runtime/links/libraries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096, PATH_FOLDERS = 4096 };

static const char where[] = "runtime.packs";

// A pack, or the reason why a folder of HONE_PACK_PATH provided none.
struct hone_loaded_pack {
    struct hone_loaded_pack *next;
    hone_kernel_pack *pack; // NULL: see error
    char folder[PATH_SIZE];
    hone_error error;
};

static void keep(hone_runtime *rt, hone_loaded_pack *loaded)
{
    hone_loaded_pack **place = &rt->packs;
    while (*place != NULL)
        place = &(*place)->next;
    *place = loaded;
}

static const hone_loaded_pack *find(const hone_runtime *rt, const hone_kernel_pack *pack)
{
    for (const hone_loaded_pack *item = rt->packs; item != NULL; item = item->next)
        if (item->pack != NULL && strcmp(hone_pack_folder(item->pack), hone_pack_folder(pack)) == 0) return item;
    return NULL;
}

static hone_status settle(hone_runtime *rt, hone_loaded_pack *loaded, hone_error *err)
{
    const hone_loaded_pack *there = find(rt, loaded->pack);
    if (there == NULL) return hone_pack_register(loaded->pack, rt->registry, hone_platform_fits, err);
    if (strcmp(hone_pack_digest(there->pack), hone_pack_digest(loaded->pack)) == 0) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "%.400s was loaded already and has changed since: open a new runtime",
        hone_pack_folder(loaded->pack));
}

// Under packs_mutex.
static hone_status load(hone_runtime *rt, const char *folder, hone_error *err)
{
    hone_loaded_pack *loaded = hone_alloc(&rt->allocator, sizeof *loaded);
    if (loaded == NULL) return hone_fail_memory(err, where);
    hone_status status = hone_pack_open(&rt->allocator, folder, &hone_platform_packs, &loaded->pack, err);
    bool is_new = status == HONE_OK && find(rt, loaded->pack) == NULL;
    if (status == HONE_OK) status = settle(rt, loaded, err);
    // Kernels that were registered before memory ran out stay in the registry, and so does their pack.
    if (is_new) {
        keep(rt, loaded);
        return status;
    }
    hone_pack_close(&loaded->pack);
    hone_free(&rt->allocator, loaded);
    return status;
}

static void note_failure(hone_runtime *rt, const char *folder, const hone_error *why)
{
    hone_log_write(&rt->log, HONE_LOG_WARNING, "going on without a pack: %s", why->message);
    hone_loaded_pack *failed = hone_alloc(&rt->allocator, sizeof *failed);
    if (failed == NULL) return;
    snprintf(failed->folder, sizeof failed->folder, "%s", folder);
    failed->error = *why;
    keep(rt, failed);
}

static void load_or_note(hone_runtime *rt, const char *folder)
{
    hone_error why = {.message = ""};
    if (load(rt, folder, &why) != HONE_OK) note_failure(rt, folder, &why);
}

// HONE_PACK_PATH ------------------------------------------------------------------------------------------------------

static bool has_pack(const char *folder, const char *below, char path[PATH_SIZE])
{
    char file[PATH_SIZE + 16];
    const int size = snprintf(path, PATH_SIZE, "%s%s%s", folder, below[0] != '\0' ? "/" : "", below);
    if (size <= 0 || size >= PATH_SIZE) return false;
    snprintf(file, sizeof file, "%s/pack.json", path);
    return hone_os_is_file(file);
}

typedef struct names {
    char (*names)[256];
    size_t count;
} names;

static bool take_name(void *ctx, const char *name)
{
    names *list = ctx;
    if (strlen(name) < sizeof list->names[0]) strcpy(list->names[list->count++], name);
    return list->count < PATH_FOLDERS;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

// Loads the packs in a folder in the order of their names, so that precedence is the same everywhere.
static bool load_below(hone_runtime *rt, const char *folder)
{
    names list = {.names = hone_alloc_array(&rt->allocator, PATH_FOLDERS, sizeof list.names[0])};
    char path[PATH_SIZE];
    bool any = false;
    if (list.names == NULL || hone_os_list_folder(folder, take_name, &list, NULL) != HONE_OK) list.count = 0;
    if (list.count > 1) qsort(list.names, list.count, sizeof list.names[0], compare_names);
    for (size_t i = 0; i < list.count; i++) {
        if (!has_pack(folder, list.names[i], path)) continue;
        load_or_note(rt, path);
        any = true;
    }
    hone_free(&rt->allocator, list.names);
    return any;
}

static void load_folder(hone_runtime *rt, const char *folder)
{
    char path[PATH_SIZE];
    hone_error why;
    if (has_pack(folder, "", path)) {
        load_or_note(rt, folder);
    } else if (!load_below(rt, folder)) {
        hone_fail(
            &why, HONE_NOT_FOUND, where,
            "HONE_PACK_PATH: %.400s is neither a folder with a pack.json nor a folder of such folders", folder);
        note_failure(rt, folder, &why);
    }
}

static void load_path(void *ctx)
{
    hone_runtime *rt = ctx;
    hone_mutex_lock(&rt->packs_mutex);
    for (const char *at = rt->pack_path; *at != '\0';) {
        char folder[PATH_SIZE];
        const size_t size = strcspn(at, ":");
        if (size > 0 && size < sizeof folder) {
            memcpy(folder, at, size);
            folder[size] = '\0';
            load_folder(rt, folder);
        }
        at += size + (at[size] == ':');
    }
    hone_mutex_unlock(&rt->packs_mutex);
}

void hone_runtime_await_packs(hone_runtime *rt)
{
    if (rt->pack_path != NULL) hone_registry_set_late(rt->registry, load_path, rt);
}

void hone_runtime_close_packs(hone_runtime *rt)
{
    while (rt->packs != NULL) {
        hone_loaded_pack *item = rt->packs;
        rt->packs = item->next;
        hone_pack_close(&item->pack);
        hone_free(&rt->allocator, item);
    }
    hone_free(&rt->allocator, rt->pack_path);
}

// The public face -----------------------------------------------------------------------------------------------------

hone_status hone_pack_load(hone_runtime *rt, const char *folder, hone_error *err)
{
    if (rt == NULL || folder == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "pack.load", "the runtime and the folder must not be NULL");
    hone_registry_load_late(rt->registry);
    hone_mutex_lock(&rt->packs_mutex);
    hone_status status = load(rt, folder, err);
    hone_mutex_unlock(&rt->packs_mutex);
    hone_runtime_kernels_changed(rt);
    return status;
}

static bool visit_failure(
    const hone_loaded_pack *failed, bool (*visit)(void *ctx, const hone_pack_entry *entry), void *ctx)
{
    const char *slash = strrchr(failed->folder, '/');
    const hone_pack_entry entry = {
        .struct_size = sizeof entry,
        .pack = slash != NULL && slash[1] != '\0' ? slash + 1 : failed->folder,
        .folder = failed->folder,
        .algorithm = "",
        .kernel = "",
        .status = failed->error.status,
        .reason = failed->error.message,
    };
    return visit(ctx, &entry);
}

hone_status hone_pack_list(
    hone_runtime *rt, bool (*visit)(void *ctx, const hone_pack_entry *entry), void *ctx, hone_error *err)
{
    if (rt == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "pack.list", "the runtime and visit must not be NULL");
    hone_registry_load_late(rt->registry);
    hone_mutex_lock(&rt->packs_mutex);
    bool more = true;
    for (const hone_loaded_pack *item = rt->packs; more && item != NULL; item = item->next)
        more = item->pack != NULL ? hone_pack_visit(item->pack, visit, ctx) : visit_failure(item, visit, ctx);
    hone_mutex_unlock(&rt->packs_mutex);
    return HONE_OK;
}

// Refuses the kernels whose libraries cannot be loaded.
static hone_status run_libraries(hone_runtime *rt, hone_kernel_pack *pack, hone_error *err)
{
    for (size_t i = 0; i < hone_pack_size(pack); i++) {
        hone_error why = {.message = ""};
        hone_status status = hone_runtime_try_libraries(rt, hone_pack_kernel_at(pack, i), &why);
        if (status != HONE_OK && hone_pack_refuse(pack, i, &why) != HONE_OK) return hone_fail_memory(err, where);
    }
    return HONE_OK;
}

hone_status hone_pack_check(
    hone_runtime *rt,
    const char *folder,
    bool runs,
    bool (*visit)(void *ctx, const hone_pack_entry *entry),
    void *ctx,
    hone_error *err)
{
    hone_kernel_pack *pack = NULL;
    if (rt == NULL || folder == NULL || visit == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "pack.check", "the runtime, the folder and visit must not be NULL");
    hone_status status = hone_pack_open(&rt->allocator, folder, &hone_platform_packs, &pack, err);
    if (status == HONE_OK && runs) status = run_libraries(rt, pack, err);
    if (status == HONE_OK) status = hone_pack_try(pack, rt->registry, hone_platform_fits, err);
    if (status == HONE_OK) (void)hone_pack_visit(pack, visit, ctx);
    hone_pack_close(&pack);
    return status;
}
