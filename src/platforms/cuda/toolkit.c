// A toolkit may be in the folder that the environment names, in its usual place, or in a Python environment, whose
// packages nvidia-cuda-nvrtc and nvidia-cuda-runtime have libraries and headers without a toolkit.
#include "platforms/cuda/toolkit.h"
#include "platforms/shared/packages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 1024 };

typedef struct search {
    bool (*visit)(void *ctx, const char *folder);
    void *ctx;
    bool done;
} search;

static void offer(search *s, const char *format, const char *a, const char *b)
{
    char path[PATH_SIZE];
    int size = snprintf(path, sizeof path, format, a, b);
    if (!s->done && size > 0 && (size_t)size < sizeof path && hone_os_is_folder(path))
        s->done = !s->visit(s->ctx, path);
}

// A folder of Python packages has one NVIDIA folder for each release of CUDA.
static bool offer_packages(void *ctx, const char *packages)
{
    search *s = ctx;
    static const char *const folders[] = {
        "nvidia/cu13", "nvidia/cuda_nvrtc", "nvidia/cuda_runtime", "nvidia/cuda_cccl", "nvidia/cublas"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        offer(s, "%s/%s", packages, folders[i]);
    return !s->done;
}

void hone_cuda_toolkit_folders(bool (*visit)(void *ctx, const char *folder), void *ctx)
{
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
    search s = {.visit = visit, .ctx = ctx};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = hone_os_variable(variables[i]);
        if (value != NULL && value[0] == '/') offer(&s, "%s%s", value, "");
    }
    offer(&s, "%s%s", "/usr/local/cuda", "");
    if (!s.done) hone_packages_visit(offer_packages, &s);
}

// Libraries -----------------------------------------------------------------------------------------------------------

enum { MAX_NAMES = 64 };

// The names to try, in order, with texts in the arena; or the path of the first of the files that is in a folder.
typedef struct names {
    const char *name[MAX_NAMES + 1];
    size_t count;
    hone_arena arena;
    const char *const *files;
    char *path; // NULL: names are collected
    size_t size;
    bool found;
} names;

static void add_name(names *list, const char *path)
{
    const char *copy = list->count < MAX_NAMES ? hone_arena_text(&list->arena, path, strlen(path)) : NULL;
    if (copy != NULL) list->name[list->count++] = copy;
}

static bool add_folder(void *ctx, const char *folder)
{
    static const char *const parts[] = {"lib64", "lib"};
    names *list = ctx;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const char *const *file = list->files; *file != NULL; file++) {
            char path[PATH_SIZE];
            int size = snprintf(path, sizeof path, "%s/%s/%s", folder, parts[i], *file);
            if (size <= 0 || (size_t)size >= sizeof path || !hone_os_is_file(path)) continue;
            if (list->path == NULL) add_name(list, path);
            if (list->path != NULL && !list->found) list->found = hone_os_real_path(path, list->path, list->size);
        }
    return !list->found;
}

hone_status hone_cuda_open_library(
    const hone_allocator *allocator,
    const char *variable,
    const char *const *files,
    hone_library **out,
    hone_error *err)
{
    names list = {.arena = {.allocator = *allocator}, .files = files};
    const char *named = hone_os_variable(variable);
    if (named != NULL && named[0] != '\0') {
        add_name(&list, named);
    } else {
        for (const char *const *file = files; *file != NULL; file++)
            add_name(&list, *file);
        hone_cuda_toolkit_folders(add_folder, &list);
    }
    hone_status status = hone_library_open(allocator, list.name, out, err);
    hone_arena_destroy(&list.arena);
    return status;
}

bool hone_cuda_find_library(const char *variable, const char *const *files, char *path, size_t size)
{
    const char *named = hone_os_variable(variable);
    if (named != NULL && named[0] != '\0') return hone_os_is_file(named) && hone_os_real_path(named, path, size);
    for (const char *const *file = files; *file != NULL; file++)
        if (hone_library_find(*file, path, size)) return true;
    names list = {.files = files, .path = path, .size = size};
    hone_cuda_toolkit_folders(add_folder, &list);
    return list.found;
}
