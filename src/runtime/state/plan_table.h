// The shared table of plans: lock-free to read, a mutex to change.
#ifndef HONE_RUNTIME_STATE_PLAN_TABLE_H
#define HONE_RUNTIME_STATE_PLAN_TABLE_H

#include "base/hash.h"
#include "hone/plan.h"
#include "os/mutex.h"
#include "registry/registry.h"
#include "runtime/state/epoch.h"
#include "runtime/state/packed.h"

// The parts of an entry that are stored inside it, in the cache lines after the plan: for most calls all words, and the
// pairs.
enum { HONE_MAX_PAIRS = 32, HONE_NEAR_WORDS = 28, HONE_NEAR_PARAMETERS = 8 };

// A result and a parameter or other result whose memories must not overlap. They do when
// result - other + before < range, unsigned: before = bytes of the result - 1, range = bytes of both - 1.
typedef struct hone_pair {
    uint64_t before, range;
    uint8_t result, other; // positions among the call's tensors
    bool may_equal;        // inout: exactly the same memory is allowed
} hone_pair;

// A plan with the words that it serves. Reference-counted: the table holds one reference, each bound plan one. The
// fields that a hit reads come first.
typedef struct hone_plan_entry {
    hone_plan plan; // first: a hone_plan of the library is the start of one of these
    uint8_t words, pair_count;
    bool is_short;          // hone_run_if_short may run it
    uint32_t number;        // of its counters; 0 if none was free
    hone_run_function *run; // the original plan.run; while bound plans are counted, a bound plan's run also counts
    uint64_t *word;         // [words], zeros up to a multiple of four behind the last
    hone_pair *pairs;
    uint64_t near[HONE_NEAR_WORDS];
    uint64_t hash;
    atomic_size_t references;
    atomic_uint_fast64_t calls; // calls other than hits, while recording is on; reset at each collection
    uint64_t before;            // the count that its number already had
    uint64_t noted;             // of its own runs: those that were recorded, or made while recording was off
    struct hone_tally_row *row; // the row in which it is counted; NULL: none (tally.h)
    struct hone_plan_entry *row_next, **row_link; // of the row's entries, under the tally's mutex
    hone_run_function *kernel_run; // with all arguments; plan.run may be a wrapper that fills in defaults
    hone_run_function *bare_run;   // the kernel's own function, if kernel_run is a wrapper that lends scratch memory
    const hone_kernel_ref *kernel; // retained
    hone_source source;
    hone_runtime *rt;
    hone_call *call;                           // retained
    int64_t near_config[HONE_NEAR_PARAMETERS]; // holds plan.config if it has no more parameters than this
    size_t given; // number of values that the caller passes; if fewer than in the signature, the rest are defaults
    const char *call_key;            // the call's
    char bucket_key[HONE_KEY_SIZE];  // its bucket's; "" when nothing is bucketed
    char general_key[HONE_KEY_SIZE]; // of the call with other scalars; "" when there is none
    uint64_t context_number;
    const struct hone_op *op;
    bool is_contexts_own; // its answer does not depend on the stores, because of its context's chain
    atomic_bool outdated; // the chain's answer has changed: no lookup finds it
    struct hone_plan_entry *bound_next, **bound_link; // under the table's mutex; NULL: not bound, or its table is gone
    struct hone_plan_entry *next;                     // in the list of retired ones
    uint64_t retired;                                 // epoch
    size_t bytes;
} hone_plan_entry;

enum { HONE_PLAN_ENTRY_ROOM = (sizeof(hone_plan_entry) + HONE_SLAB_ALIGN - 1) / HONE_SLAB_ALIGN * HONE_SLAB_ALIGN };

typedef struct hone_plan_slot {
    atomic_uint_fast64_t hash;        // 0: free
    _Atomic(hone_plan_entry *) entry; // NULL with a hash: removed
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
    atomic_uint_fast64_t generation; // changes whenever an entry is removed; no two tables of a process have the same
    hone_mutex mutex;                // guards the rest
    hone_allocator allocator;
    hone_plan_entry *bound; // plans that programs hold, in the table or not
    bool counts_bound;
    size_t live, bytes, cap_bytes;
    uint64_t clock; // the hand that selects entries for eviction when the cap is reached
    hone_plan_entry *retired;
    hone_plan_slots *retired_slots;
} hone_plan_table;

hone_status hone_plan_table_init(hone_plan_table *table, hone_allocator allocator, size_t cap_bytes, hone_error *err);
// No thread may be inside. Releases every entry of the table. The mutex remains, since bound plans are released later.
void hone_plan_table_deinit(hone_plan_table *table);
// Publishes an entry (the table retains it), and replaces one with the same words.
hone_status hone_plan_table_publish(hone_plan_table *table, hone_plan_entry *entry, hone_error *err);
// Removes every entry for which drop returns true, and marks it as outdated; also marks the bound plans for which drop
// returns true.
void hone_plan_table_drop(hone_plan_table *table, bool (*drop)(void *ctx, const hone_plan_entry *entry), void *ctx);
// Calls visit for every entry and every bound plan, under the mutex; twice for an entry that is both.
void hone_plan_table_visit(hone_plan_table *table, void (*visit)(void *ctx, hone_plan_entry *entry), void *ctx);
// Begins and ends the binding of a plan by a program. A bound plan counts its runs if bound plans do.
void hone_plan_table_hold(hone_plan_table *table, hone_plan_entry *entry);
void hone_plan_table_let_go(hone_plan_table *table, hone_plan_entry *entry);
// Turns the counting of bound plans' runs on or off.
void hone_plan_table_count(hone_plan_table *table, bool counts);

// For hone_plan_table_drop: the plans made under the context of this number (a uint64_t).
bool hone_plan_entry_is_of_context(void *number, const hone_plan_entry *entry);
// In a child process: drops the counts of the parent's calls, since the parent records them.
void hone_plan_table_in_child(hone_plan_table *table);
// Moves the calls that an entry counted to the recorder while recording is on; otherwise treats them as recorded.
void hone_plan_entry_note_calls(hone_plan_entry *entry);
// The number of runs of the entry itself.
static inline uint64_t hone_plan_entry_runs(const hone_plan_entry *entry)
{
    return entry->number == 0 ? 0 : hone_counters_read(entry->number) - entry->before;
}
// An empty entry with one reference; NULL: no memory.
hone_plan_entry *hone_plan_entry_take(hone_runtime *rt);
// Releases one reference. The last one releases the kernel's state, then the kernel, and returns the entry to its
// runtime's slab.
void hone_plan_entry_release(hone_plan_entry *entry);

// Compares the words four at a time, including padding.
static inline bool hone_plan_entry_answers(const hone_plan_entry *entry, const hone_packed *packed)
{
    if (entry->words != packed->words) return false;
    const uint64_t *a = entry->word, *b = packed->word, *const end = b + packed->words;
    uint64_t differ = 0;
    for (; b < end; a += 4, b += 4)
        differ |= (a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]);
    return differ == 0;
}

// Finds the published entry with these words, NULL if there is none. Only between hone_epoch_enter and leave.
static inline hone_plan_entry *hone_plan_table_find(hone_plan_table *table, const hone_packed *packed)
{
    uint64_t hash = packed->hash;
    hone_plan_slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);
    for (uint64_t i = (hash >> 1) & slots->mask;; i = (i + 1) & slots->mask) {
        uint64_t found = atomic_load_explicit(&slots->slot[i].hash, memory_order_acquire);
        if (found == 0) return NULL;
        if (found != hash) continue;
        hone_plan_entry *entry = atomic_load_explicit(&slots->slot[i].entry, memory_order_acquire);
        if (entry == NULL) continue;
        // With thousands of calls the entry is not in the cache: its cache lines are requested together.
        __builtin_prefetch((const char *)entry + 64);
        __builtin_prefetch((const char *)entry + 128);
        __builtin_prefetch((const char *)entry + 192);
        if (hone_plan_entry_answers(entry, packed)) return entry;
    }
}

// False if a result overlaps another tensor of the call and must not.
static inline bool hone_plan_entry_apart(const hone_plan_entry *entry, const uint64_t *address)
{
    const hone_pair *pair = entry->pairs, *end = pair + entry->pair_count;
    for (; pair < end; pair++) {
        uint64_t distance = address[pair->result] - address[pair->other];
        if (distance + pair->before < pair->range && !(pair->may_equal && distance == 0)) return false;
    }
    return true;
}

#endif
