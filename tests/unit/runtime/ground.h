// A runtime on a store of its own in a folder that goes with it. Policy: heuristic.
#ifndef HONE_TESTS_RUNTIME_GROUND_H
#define HONE_TESTS_RUNTIME_GROUND_H

#include "fixture.h"
#include "temporary_folder.h"

#include <stdio.h>

typedef struct ground {
    temporary_folder folder;
    char url[TEMPORARY_PATH_SIZE];
    fixture *f;
} ground;

static inline int open_ground(void **state)
{
    static ground g;
    memset(&g, 0, sizeof g);
    *state = &g;
    if (temporary_folder_make(&g.folder) != 0) return -1;
    snprintf(g.url, sizeof g.url, "sqlite:%s/store.db", g.folder.path);
    g.f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .store = g.url});
    return 0;
}

static inline int close_ground(void **state)
{
    ground *g = *state;
    close_fixture(g->f);
    temporary_folder_remove(&g->folder);
    return 0;
}

#endif
