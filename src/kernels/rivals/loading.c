#include "kernels/rivals/loading.h"

#include "base/error.h"
#include "platforms/shared/packages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

static bool is_readable(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file != NULL) fclose(file);
    return file != NULL;
}

bool hone_rival_is_here(const char *soname, const char *package, hone_error *why)
{
    char path[PATH_SIZE];
    if (hone_library_find(soname, path, sizeof path)) return true;
    hone_fail(why, HONE_UNAVAILABLE, "rivals", "%s is not installed: install %s (Debian)", soname, package);
    return false;
}

bool hone_rival_is_beside(const char *file, char *path, size_t size)
{
    // Beside a program of a build tree and in a wheel; installed, seen from the library, the command and the worker;
    // and beside the folder of a build tree's tests.
    static const char *const folders[] = {"", "hone/", HONE_PLUGINS_FROM_COMMAND, HONE_PLUGINS_FROM_WORKER, "../"};
    char own[PATH_SIZE];
    if (!hone_os_own_path(own, sizeof own)) return false;
    char *slash = strrchr(own, '/');
    int length = slash != NULL ? (int)(slash + 1 - own) : 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        int written = snprintf(path, size, "%.*s%s%s", length, own, folders[i], file);
        if (written > 0 && (size_t)written < size && is_readable(path)) return true;
    }
    return false;
}

bool hone_rival_function(hone_library *library, const char *name, void *out_function)
{
    void *function = hone_library_symbol(library, name);
    memcpy(out_function, &function, sizeof function); // ISO C has no cast from one to the other
    return function != NULL;
}

// Packages of Python --------------------------------------------------------------------------------------------------

typedef struct folder_search {
    const hone_packaged_library *library;
    char file[256]; // the last in the order of names, so that the result does not depend on the file system
    char *path;
    size_t size;
} folder_search;

static bool look_at_file(void *ctx, const char *name)
{
    folder_search *search = ctx;
    if (strncmp(name, search->library->beginning, strlen(search->library->beginning)) == 0 &&
        strlen(name) < sizeof search->file && strcmp(name, search->file) > 0)
        snprintf(search->file, sizeof search->file, "%s", name);
    return true;
}

static bool look_in_folder(folder_search *search, const char *folder)
{
    char path[PATH_SIZE];
    search->file[0] = '\0';
    (void)hone_os_list_folder(folder, look_at_file, search, NULL);
    int size = snprintf(path, sizeof path, "%s/%s", folder, search->file);
    return search->file[0] != '\0' && size > 0 && (size_t)size < sizeof path &&
           hone_os_real_path(path, search->path, search->size);
}

static bool look_in_packages(void *ctx, const char *packages)
{
    folder_search *search = ctx;
    char folder[PATH_SIZE];
    int size = snprintf(folder, sizeof folder, "%s/%s", packages, search->library->folder);
    return size <= 0 || (size_t)size >= sizeof folder || !look_in_folder(search, folder);
}

bool hone_rival_find_packaged(const hone_packaged_library *library, char *path, size_t size, hone_error *why)
{
    folder_search search = {.library = library, .path = path, .size = size};
    const char *named = hone_os_variable(library->variable);
    if (named != NULL && named[0] != '\0') {
        if (hone_os_is_file(named) ? hone_os_real_path(named, path, size) : look_in_folder(&search, named)) return true;
        hone_fail(
            why, HONE_UNAVAILABLE, "rivals", "%s: %.200s is neither a file nor a folder with one %s*.so",
            library->variable, named, library->beginning);
        return false;
    }
    if (hone_library_loaded(library->beginning, path, size)) {
        // A worker, which has not imported the package, must measure this very file.
        (void)hone_process_hand_on(library->variable, path);
        return true;
    }
    path[0] = '\0';
    hone_packages_visit(look_in_packages, &search);
    if (path[0] != '\0') return true;
    hone_fail(
        why, HONE_UNAVAILABLE, "rivals",
        "%s is neither loaded nor in a folder of Python packages: install PyPI's %s, import it first, or name %s*.so "
        "in %s",
        library->folder, library->package, library->beginning, library->variable);
    return false;
}

bool hone_rival_can_count(const hone_matmul *product, const char *library, int64_t most, hone_error *why)
{
    const int64_t sizes[] = {product->m,        product->n,        product->k,       hone_matmul_batch(product),
                             product->a_stride, product->b_stride, product->c_stride};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i] <= most && (i >= 4 || sizes[i] > 0)) continue;
        hone_fail(
            why, HONE_UNSUPPORTED, "rivals", "%s takes sizes from 1 to %lld, this product has %lld", library,
            (long long)most, (long long)sizes[i]);
        return false;
    }
    return true;
}
