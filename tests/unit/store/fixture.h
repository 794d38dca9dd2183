// A store of its own in a folder of its own, for tests that look at its file.
#ifndef HONE_TESTS_STORE_FIXTURE_H
#define HONE_TESTS_STORE_FIXTURE_H

#include "hone/store.h"

#include "temporary_folder.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct fixture {
    temporary_folder folder;
    char path[TEMPORARY_PATH_SIZE], url[TEMPORARY_PATH_SIZE + 16];
    hone_store *store;
    hone_error err;
} fixture;

static inline int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (f == NULL || temporary_folder_make(&f->folder) != 0) return -1;
    const temporary_folder folder = f->folder;
    snprintf(f->path, sizeof f->path, "%s/store.db", folder.path);
    snprintf(f->url, sizeof f->url, "sqlite:%s/store.db", folder.path);
    return hone_store_open(hone_allocator_system(), f->url, &f->store, &f->err) == HONE_OK ? 0 : -1;
}

static inline int tear_down(void **state)
{
    fixture *f = *state;
    hone_store_close(&f->store);
    temporary_folder_remove(&f->folder);
    free(f);
    return 0;
}

#endif
