#include "kernels/rivals/loading.h"

#include "base/error.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE_LIMIT = 16 << 20, PATH_SIZE = 4096 };

// The loader's cache holds every name it knows as NUL-terminated text.
static bool stands_in_cache(const char *soname)
{
    hone_buffer cache;
    hone_buffer_init(&cache, hone_allocator_system());
    bool found = hone_os_read_file("/etc/ld.so.cache", CACHE_LIMIT, &cache, NULL) == HONE_OK &&
                 memmem(cache.data, cache.size, soname, strlen(soname) + 1) != NULL;
    hone_buffer_deinit(&cache);
    return found;
}

static bool is_readable(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file) fclose(file);
    return file != NULL;
}

static bool is_file(const char *folder, size_t length, const char *name)
{
    char path[PATH_SIZE];
    int size = snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, name);
    return size > 0 && (size_t)size < sizeof path && is_readable(path);
}

static bool is_in_library_path(const char *soname)
{
    const char *path = getenv("LD_LIBRARY_PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":;");
        if (is_file(path, length, soname)) return true;
        path += length + (path[length] != '\0');
    }
    return false;
}

bool hone_rival_is_here(const char *soname, const char *package, hone_error *why)
{
    if (is_in_library_path(soname) || stands_in_cache(soname)) return true;
    hone_fail(why, HONE_UNAVAILABLE, "rivals", "%s is not installed: install %s (Debian)", soname, package);
    return false;
}

// An address of this library or program.
static const char own_address = 0;

bool hone_rival_is_beside(const char *file, char *path, size_t size)
{
    static const char *const folders[] = {"", "hone/", "../"};
    char own[PATH_SIZE];
    if (!hone_os_object_path(&own_address, own, sizeof own)) return false;
    char *slash = strrchr(own, '/');
    int length = slash ? (int)(slash + 1 - own) : 0;
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

bool hone_rival_can_count(const hone_matmul *product, const char *library, hone_error *why)
{
    const int64_t sizes[] = {product->m,        product->n,        product->k,
                             product->a_stride, product->b_stride, product->c_stride};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i] <= INT_MAX && (i >= 3 || sizes[i] > 0)) continue;
        hone_fail(
            why, HONE_UNSUPPORTED, "rivals", "%s takes sizes from 1 to %d, this product has %lld", library, INT_MAX,
            (long long)sizes[i]);
        return false;
    }
    return true;
}
