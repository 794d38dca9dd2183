// Copies of texts for tests that stand at an edge of what may be read: one byte further, and the process is killed.
#ifndef HONE_TESTS_GUARDED_H
#define HONE_TESTS_GUARDED_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Whole pages between two that nobody may read.
typedef struct guarded {
    char *pages;
    size_t size; // of all, the two among them
    char *first; // the first byte that may be read
    char *end;   // behind the last one
} guarded;

// Room for texts up to so many bytes.
static inline guarded guarded_open(size_t largest)
{
    guarded g = {0};
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = (largest / page + 1) * page;
    void *pages = mmap(NULL, inside + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) abort();
    g.pages = pages;
    g.size = inside + 2 * page;
    g.first = g.pages + page;
    g.end = g.first + inside;
    if (mprotect(g.first, inside, PROT_READ | PROT_WRITE) != 0) abort();
    return g;
}

static inline void guarded_close(guarded *g)
{
    munmap(g->pages, g->size);
    *g = (guarded){0};
}

// A copy behind which nothing may be read.
static inline char *guarded_at_end(const guarded *g, const void *bytes, size_t size)
{
    if (size > (size_t)(g->end - g->first)) abort();
    if (size > 0) memcpy(g->end - size, bytes, size);
    return g->end - size;
}

// A copy before which nothing may be read.
static inline char *guarded_at_start(const guarded *g, const void *bytes, size_t size)
{
    if (size > (size_t)(g->end - g->first)) abort();
    if (size > 0) memcpy(g->first, bytes, size);
    return g->first;
}

#endif
