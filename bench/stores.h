// The stores that are measured in the store benchmark, each behind the same few functions.
#ifndef HONE_BENCH_STORES_H
#define HONE_BENCH_STORES_H

#include "entries.h"

typedef struct bench_store {
    const char *name;
    // Opens the store of `count` entries in folder; one that is there already is opened as it is. NULL on failure.
    void *(*open)(const char *folder, uint32_t count);
    // Puts many in one transaction. All of these return nonzero on failure.
    int (*put_all)(void *store, const hone_store_decision *decisions, size_t count);
    // Adds the sizes of what it read to *seen, so that it really reads.
    int (*get)(void *store, const hone_store_key *key, uint64_t *seen);
    int (*put)(void *store, const hone_store_decision *decision);
    void (*close)(void *store);
} bench_store;

extern const bench_store bench_hone, bench_sqlite;
#ifdef HONE_BENCH_LMDB
extern const bench_store bench_lmdb;
#endif

#endif
