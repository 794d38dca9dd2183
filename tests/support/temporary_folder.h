// A folder that a test has for itself.
#ifndef HONE_TESTS_TEMPORARY_FOLDER_H
#define HONE_TESTS_TEMPORARY_FOLDER_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEMPORARY_PATH_SIZE = 512 };

typedef struct temporary_folder {
    char path[TEMPORARY_PATH_SIZE / 2];
} temporary_folder;

static inline int temporary_remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

// Returns 0 when the folder is there.
static inline int temporary_folder_make(temporary_folder *folder)
{
    const char *parent = getenv("TMPDIR");
    snprintf(folder->path, sizeof folder->path, "%s/hone-test-XXXXXX", parent != NULL ? parent : "/tmp");
    return mkdtemp(folder->path) != NULL ? 0 : -1;
}

static inline void temporary_folder_remove(const temporary_folder *folder)
{
    nftw(folder->path, temporary_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
