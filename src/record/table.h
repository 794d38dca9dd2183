// A hash table of invocations by (device, algorithm, version, key, spec). Not thread-safe.
#ifndef HONE_RECORD_TABLE_H
#define HONE_RECORD_TABLE_H

#include "base/memory.h"
#include "hone/store.h"

typedef struct hone_record_entry hone_record_entry;

typedef struct hone_record_table {
    hone_allocator allocator;
    hone_record_entry **entries; // in order of insertion
    size_t count, capacity;
    uint32_t *slots; // index + 1 into entries, 0: free; open addressing
    size_t slot_count;
} hone_record_table;

void hone_record_table_init(hone_record_table *table, hone_allocator allocator);
void hone_record_table_deinit(hone_record_table *table);
// Whether the invocation's descriptor has an entry.
bool hone_record_table_has(const hone_record_table *table, const hone_store_invocation *invocation);
// Adds to the entry of the descriptor, or makes one. False: no memory, nothing changed.
bool hone_record_table_add(hone_record_table *table, const hone_store_invocation *invocation);
// The entry at an index; borrowed until the table changes.
const hone_store_invocation *hone_record_table_at(const hone_record_table *table, size_t index);
// Removes the entries of a device; NULL: all.
void hone_record_table_clear(hone_record_table *table, const char *device);
// Puts the heaviest first. Indices change, and nothing may be added afterwards.
void hone_record_table_sort(hone_record_table *table);

#endif
