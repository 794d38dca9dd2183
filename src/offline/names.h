// Names, whose bytes stay where they are, to numbers, within a scope; a later definition takes the place of an earlier
// one.
#ifndef HONE_OFFLINE_NAMES_H
#define HONE_OFFLINE_NAMES_H

#include "base/memory.h"
#include "base/text.h"

#define HONE_NAMES_NONE UINT32_MAX

typedef struct hone_names {
    hone_allocator allocator;
    struct hone_names_entry *entries;
    uint32_t *numbered; // by the number that a name ends with: 1 + its place in entries; what is stale is seen there
    struct hone_names_slot *hashed; // open addressing, of the names that are not present
    size_t count, capacity;         // of entries
    size_t numbered_capacity, hashed_capacity, hashed_count;
    size_t puts; // since it was initialised
    bool failed; // an allocation did
} hone_names;

void hone_names_init(hone_names *names, const hone_allocator *allocator);
void hone_names_deinit(hone_names *names);
void hone_names_clear(hone_names *names); // forgets all, for the names of another body
void hone_names_put(hone_names *names, uint32_t scope, hone_view name, uint32_t value);
uint32_t hone_names_get(const hone_names *names, uint32_t scope, hone_view name); // HONE_NAMES_NONE: not there
// The same for things that have a number for a name. A table holds either names or numbers.
void hone_names_put_number(hone_names *names, uint64_t number, uint32_t value);
uint32_t hone_names_get_number(const hone_names *names, uint64_t number);

#endif
