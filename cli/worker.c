// hone-worker: the process in which kernels are tried, so that one that crashes, hangs or writes out of bounds harms nobody.
// The tuner starts it and talks to it over file descriptor 3. As "hone-worker query PATH SHA256 ENTRY" it asks a library of a
// pack for a function, answers by its exit code, and says on standard output why there is none.
#include "kernels/kernels.h"
#include "platforms/native/kernel.h"
#include "tune/tuner.h"

#include <stdio.h>
#include <string.h>

static int query(const char *path, const char *sha256, const char *entry)
{
    const hone_pack_function *function = NULL;
    const char *slash = strrchr(path, '/');
    hone_pack_file file = {.name = slash != NULL ? slash + 1 : path, .path = path};
    hone_error err;
    snprintf(file.sha256, sizeof file.sha256, "%s", sha256);
    if (hone_native_find_function(&file, entry, &function, &err) == HONE_OK) return HONE_PACK_QUERY_FOUND;
    printf("%s\n", err.message);
    return HONE_PACK_QUERY_REFUSED;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "query") == 0) return query(argv[2], argv[3], argv[4]);
    return hone_worker_main(3, hone_kernels_register);
}
