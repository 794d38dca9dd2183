// A table of JSON values by device, operation and key: the inside of a program's own caches in memory, and of the overlays
// before them. Remembers the order of insertion. Not thread-safe by itself.
#ifndef HONE_CONFIG_OWN_VALUES_H
#define HONE_CONFIG_OWN_VALUES_H

#include "base/memory.h"
#include "hone/own_cache.h"

// Its strings are the table's.
typedef struct hone_own_row {
    uint64_t hash;
    char *device, *operation, *key, *json;
} hone_own_row;

typedef struct hone_own_values {
    hone_allocator allocator;
    hone_own_row *rows; // [count]
    size_t count, capacity;
    uint32_t *slots;   // open addressing: index into rows + 1, 0 is free
    size_t slot_count; // power of two, at least twice count
} hone_own_values;

void hone_own_values_clear(hone_own_values *values);
void hone_own_values_deinit(hone_own_values *values);
// NULL if it does not exist. value->json is not read.
const hone_own_row *hone_own_values_get(const hone_own_values *values, const hone_own_value *value);
// Inserts, or replaces in place. False: there is no memory, and the table is as it was.
bool hone_own_values_put(hone_own_values *values, const hone_own_value *value);

// How many values it has, overlays not counted.
HONE_MUST_CHECK hone_status hone_own_cache_size(hone_own_cache *cache, size_t *out, hone_error *err);

#endif
