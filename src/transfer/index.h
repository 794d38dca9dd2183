// The verified decisions of an algorithm, ready to be compared with a call on a device.
#ifndef HONE_TRANSFER_INDEX_H
#define HONE_TRANSFER_INDEX_H

#include "transfer/traits.h"
#include "transfer/transfer.h"

typedef struct hone_transfer_entry {
    const char *device, *version, *key, *call;
    const char *kernel, *config, *revision;
    double time_ns;
    hone_regime regime;
    bool is_system;
    hone_traits traits;
    hone_transfer_choice *choices; // NULL: not loaded yet
    size_t choice_count;
} hone_transfer_entry;

// How far a store was read.
typedef struct hone_transfer_pass {
    size_t seen; // rows
    bool done;
} hone_transfer_pass;

typedef struct hone_transfer_table {
    struct hone_transfer_table *next;
    char *algorithm, *device;
    size_t most;      // entries; 0: all that there are
    hone_arena arena; // of entries' texts and traits
    hone_transfer_entry *entries;
    size_t count, capacity;
    size_t goal;                  // entries that reading stops at
    hone_transfer_pass passes[4]; // the device's own decisions of both stores, then those of others
    uint64_t stamp, built_ns;     // when reading began anew; 0: not yet
    uint64_t read_ns, cost_ns;    // when something was read last, and how long that took
} hone_transfer_table;

void hone_transfer_table_destroy(const hone_allocator *allocator, hone_transfer_table *table);
// Reads the stores when that was not done yet or what was read is too old. Of thousands of decisions some hundred are
// read, in an order that has nothing to do with shapes, and with later questions the rest, so that no question waits
// for all. A store that fails has no decisions: *out_failure says which and how, and is HONE_OK else.
hone_status hone_transfer_table_refresh(
    hone_transfer_table *table, hone_store *const stores[2], uint64_t stamp, hone_error *out_failure, hone_error *err);
// The best configs that were measured under a key, best first, in the arena; its own is the first. own NULL: the best
// of what was measured. At most HONE_TRANSFER_CHOICES.
hone_status hone_transfer_load_choices(
    hone_arena *arena,
    hone_store *store,
    const hone_store_key *key,
    hone_regime regime,
    const hone_transfer_entry *own,
    hone_transfer_choice **out,
    size_t *out_count,
    hone_error *err);

#endif
