// The decided calls that are most like a call that missed, with the fields that differ.
#ifndef HONE_RUNTIME_LINKS_NEAREST_H
#define HONE_RUNTIME_LINKS_NEAREST_H

#include "base/buffer.h"
#include "hone/lock.h"
#include "hone/signature.h"
#include "hone/store.h"

enum { HONE_NEAREST_MAX = 3 };

typedef struct hone_neighbour {
    char key[24];
    uint32_t line;     // of a lock file; 0: the call is in the store
    double distance;   // fields that differ, dims weighted by the difference of their log2
    char differs[600]; // "x.shape[0]: 1024, stored 2048", one a line
} hone_neighbour;

typedef struct hone_neighbours {
    hone_neighbour rows[HONE_NEAREST_MAX]; // nearest first
    size_t count;
} hone_neighbours;

// Scans the store for calls of the key's algorithm and version, on any device, and keeps the nearest to key->spec.
hone_status hone_nearest_find(hone_store *store, const hone_store_key *key, hone_neighbours *out, hone_error *err);
// The same for the lines of a lock file that have a call text, of which it reads the first 1,000. Never fails: skips
// what it cannot read.
void hone_nearest_locked(
    const hone_lock *lock,
    hone_allocator allocator,
    hone_signature *signature,
    const hone_store_key *key,
    hone_neighbours *out);

#endif
