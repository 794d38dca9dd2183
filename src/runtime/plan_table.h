// The shared table of plans: lock-free to read, a mutex to change.
#ifndef HONE_RUNTIME_PLAN_TABLE_H
#define HONE_RUNTIME_PLAN_TABLE_H

#include "base/hash.h"
#include "hone/plan.h"
#include "registry/registry.h"
#include "runtime/epoch.h"
#include "runtime/packed.h"

#include <pthread.h>

enum { HONE_MAX_PAIRS = 32 };

// A result and a parameter or other result whose memories must not overlap.
typedef struct hone_pair {
    uint8_t result, other; // positions among the call's tensors
    bool may_equal;        // inout: exactly the same memory is allowed
} hone_pair;

// A plan with the words it answers for. Counted: the table holds one reference, each bound plan one.
typedef struct hone_plan_entry {
    hone_plan plan; // first: a hone_plan of the library is the start of one of these
    uint64_t hash;
    uint32_t words, pair_count;
    hone_run_function *kernel_run; // the kernel's own; plan.run may be a wrapper that fills defaults in
    uint64_t *word;                // [words]
    int64_t *span;                 // bytes of each tensor
    hone_pair *pairs;
    atomic_size_t references;
    atomic_uint_fast64_t calls; // hits since the last look, while recording is on
    const hone_kernel_ref *kernel;
    hone_source source;
    hone_runtime *rt; // retained
    hone_call *call;  // retained
    int64_t config[HONE_MAX_PARAMETERS];
    size_t given;                   // values that the caller gives; fewer than the signature has: the rest are defaults
    const char *call_key;           // the call's
    char bucket_key[HONE_KEY_SIZE]; // its bucket's; "" when nothing is bucketed
    uint64_t context_number;
    struct hone_plan_entry *next; // in the list of retired ones
    uint64_t retired;             // epoch
    size_t bytes;
} hone_plan_entry;

typedef struct hone_plan_slot {
    atomic_uint_fast64_t hash;        // 0: free
    _Atomic(hone_plan_entry *) entry; // NULL with a hash: was removed
} hone_plan_slot;

typedef struct hone_plan_slots {
    uint64_t mask;
    size_t used; // slots with a hash
    struct hone_plan_slots *next;
    uint64_t retired;
    hone_plan_slot slot[];
} hone_plan_slots;

typedef struct hone_plan_table {
    _Atomic(hone_plan_slots *) slots;
    pthread_mutex_t mutex; // the rest
    hone_allocator allocator;
    size_t live, bytes, cap_bytes;
    uint64_t clock; // hand that goes round when the cap is reached
    hone_plan_entry *retired;
    hone_plan_slots *retired_slots;
} hone_plan_table;

hone_status hone_plan_table_init(hone_plan_table *table, hone_allocator allocator, size_t cap_bytes, hone_error *err);
// No thread may be inside. Gives every entry of the table back.
void hone_plan_table_deinit(hone_plan_table *table);
// Publishes an entry (retained by the table). One that answers for the same words is replaced.
hone_status hone_plan_table_publish(hone_plan_table *table, hone_plan_entry *entry, hone_error *err);
// Takes out every entry for which drop says so.
void hone_plan_table_drop(hone_plan_table *table, bool (*drop)(void *ctx, const hone_plan_entry *entry), void *ctx);
// Calls visit for every entry, under the mutex.
void hone_plan_table_visit(hone_plan_table *table, void (*visit)(void *ctx, hone_plan_entry *entry), void *ctx);

// For hone_plan_table_drop: the plans made under the context of this number (a uint64_t).
bool hone_plan_entry_is_of_context(void *number, const hone_plan_entry *entry);
// Moves the calls that an entry counted to the recorder.
void hone_plan_entry_note_calls(hone_plan_entry *entry);
// Gives one reference back; the last one releases the kernel's state.
void hone_plan_entry_release(hone_plan_entry *entry);

__extension__ typedef unsigned __int128 hone_uint128;

static inline uint64_t hone_plan_mix(uint64_t a, uint64_t b)
{
    hone_uint128 product = (hone_uint128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

// Folds pairs of words by 64 x 64 -> 128 bit products, which do not wait for each other: 3 ns for 10 words where XXH3
// (which hashes bytes of any length) takes 6 (bench/dispatch.c). Only a filter: the words are compared.
static inline uint64_t hone_packed_hash(const hone_packed *packed)
{
    static const uint64_t odd[2] = {0x9e3779b97f4a7c15ull, 0xc2b2ae3d27d4eb4full};
    uint64_t hash = packed->words * odd[0];
    uint32_t i = 0;
    for (; i + 1 < packed->words; i += 2)
        hash += hone_plan_mix(packed->word[i] ^ (odd[0] + i * odd[1]), packed->word[i + 1] ^ (odd[1] + i));
    if (i < packed->words) hash += hone_plan_mix(packed->word[i] ^ odd[1], odd[0] + i);
    hash ^= hash >> 32;
    hash *= odd[1];
    hash ^= hash >> 29;
    return hash | 1; // 0 marks a free slot
}

// The published entry of these words; NULL when there is none. Only between hone_epoch_enter and leave.
static inline hone_plan_entry *hone_plan_table_find(hone_plan_table *table, const hone_packed *packed, uint64_t hash)
{
    hone_plan_slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);
    for (uint64_t i = (hash >> 1) & slots->mask;; i = (i + 1) & slots->mask) {
        uint64_t found = atomic_load_explicit(&slots->slot[i].hash, memory_order_acquire);
        if (found == 0) return NULL;
        if (found != hash) continue;
        hone_plan_entry *entry = atomic_load_explicit(&slots->slot[i].entry, memory_order_acquire);
        if (entry == NULL || entry->words != packed->words) continue;
        uint64_t differ = 0;
        for (uint32_t w = 0; w < packed->words; w++)
            differ |= entry->word[w] ^ packed->word[w];
        if (differ == 0) return entry;
    }
}

// False when a result lies over another tensor of the call and may not.
static inline bool hone_plan_entry_apart(const hone_plan_entry *entry, const hone_packed *packed)
{
    for (uint32_t i = 0; i < entry->pair_count; i++) {
        hone_pair pair = entry->pairs[i];
        uint64_t a = packed->address[pair.result], b = packed->address[pair.other];
        if (a >= b + (uint64_t)entry->span[pair.other] || b >= a + (uint64_t)entry->span[pair.result]) continue;
        if (!(pair.may_equal && a == b)) return false;
    }
    return true;
}

#endif
