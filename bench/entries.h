// The decisions that the store benchmark keeps: rows of a real size, as many as are asked for, walked at random.
#ifndef HONE_BENCH_ENTRIES_H
#define HONE_BENCH_ENTRIES_H

#include <hone/hone.h>

typedef struct bench_entry {
    char key[17], spec[192], call[64];
} bench_entry;

// A random walk over entries 0 to count - 1. Of many a sample is walked, so that making them takes no time.
typedef struct bench_walk {
    bench_entry *entries;
    uint32_t sample, count;
    uint64_t state;
} bench_walk;

void bench_entry_make(bench_entry *out, uint32_t index);
// The decision of an entry, borrowing its texts.
hone_store_decision bench_entry_decision(const bench_entry *entry);

// Returns nonzero when there is no memory.
int bench_walk_init(bench_walk *walk, uint32_t count);
void bench_walk_deinit(bench_walk *walk);
const bench_entry *bench_walk_next(bench_walk *walk);

#endif
