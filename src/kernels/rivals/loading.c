#include "kernels/rivals/loading.h"

#include "base/error.h"

#include <limits.h>
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

// An address of this library or program.
static const char own_address = 0;

bool hone_rival_is_beside(const char *file, char *path, size_t size)
{
    // Beside a program of a build tree and in a wheel; installed, seen from the library, the command and the worker;
    // and beside the folder of a build tree's tests.
    static const char *const folders[] = {"", "hone/", HONE_PLUGINS_FROM_COMMAND, HONE_PLUGINS_FROM_WORKER, "../"};
    char own[PATH_SIZE];
    if (!hone_os_object_path(&own_address, own, sizeof own)) return false;
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
