// A table of decisions keyed (device fingerprint, algorithm, version, call key): the memory cache and the
// inside of every overlay. Remembers the order of insertion. Not thread-safe by itself.
#ifndef HONE_CONFIG_DECISIONS_H
#define HONE_CONFIG_DECISIONS_H

#include "base/memory.h"
#include "hone/select.h"

typedef struct hone_decision_row {
    char *device;           // "" matches every device
    char *spec;             // canonical text of the call; "" when not known
    uint64_t as_of;         // stands in a store, too, which had changed as often as that; 0: in none
    hone_decision decision; // algorithm, version and key in it are the rest of the row's key
} hone_decision_row;

typedef struct hone_decisions {
    hone_allocator allocator;
    hone_decision_row **rows; // [count], in order of insertion
    size_t count, capacity;
    uint32_t *slots;   // open addressing: index into rows + 1, 0 is free
    size_t slot_count; // power of two, at least twice count
} hone_decisions;

void hone_decisions_init(hone_decisions *table, hone_allocator allocator);
void hone_decisions_deinit(hone_decisions *table);
void hone_decisions_clear(hone_decisions *table);
// Inserts, or replaces a row of equal key in place. device NULL means every device; spec may be NULL.
hone_status hone_decisions_put(
    hone_decisions *table, const char *device, const char *spec, const hone_decision *decision, hone_error *err);
// Notes that a row stands in a store.
void hone_decisions_note_stored(
    hone_decisions *table, const char *device, const hone_decision *decision, uint64_t as_of);
// The row of a key, one for this very device before one for every device; NULL when there is none or when
// both sides have a spec and they differ (64 bits can collide).
const hone_decision_row *hone_decisions_get(
    const hone_decisions *table,
    const char *device,
    const char *algorithm,
    const char *version,
    const char *key,
    const char *spec);

#endif
