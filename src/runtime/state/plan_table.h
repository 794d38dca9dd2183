// The shared table of plans: lock-free to read, a mutex to change.
#ifndef HONE_RUNTIME_STATE_PLAN_TABLE_H
#define HONE_RUNTIME_STATE_PLAN_TABLE_H

#include "base/hash.h"
#include "hone/plan.h"
#include "os/mutex.h"
#include "registry/registry.h"
#include "runtime/state/epoch.h"
#include "runtime/state/packed.h"

// What of an entry is inside it, in the cache lines behind the plan: of most calls all words, and the pairs behind them.
enum { HONE_MAX_PAIRS = 32, HONE_NEAR_WORDS = 28, HONE_NEAR_PARAMETERS = 8 };

// A result and a parameter or other result whose memories must not overlap. They do when
// result - other + before < range, unsigned: before = bytes of the result - 1, range = bytes of both - 1.
typedef struct hone_pair {
    uint64_t before, range;
    uint8_t result, other; // positions among the call's tensors
    bool may_equal;        // inout: exactly the same memory is allowed
} hone_pair;

// A plan with the words it answers for. Counted: the table holds one reference, each bound plan one.
// What a hit reads stands first.
typedef struct hone_plan_entry {
    hone_plan plan; // first: a hone_plan of the library is the start of one of these
    uint8_t words, pair_count;
    bool is_short;          // hone_run_if_short runs it
    uint32_t number;        // of its counters; 0: none was free
    hone_run_function *run; // what plan.run was made as; while bound plans are counted, a bound plan's counts, too
    uint64_t *word;         // [words], zeros up to a multiple of four behind the last
    hone_pair *pairs;
    uint64_t near[HONE_NEAR_WORDS];
    uint64_t hash;
    atomic_size_t references;
    atomic_uint_fast64_t calls; // that were no hits, while recording is on; taken at each look
    uint64_t before;            // what was counted under its number before it had it
    uint64_t noted;             // of its own runs, those that are recorded, or were made while recording was off
    struct hone_tally_row *row; // what it is counted for; NULL: nothing (tally.h)
    struct hone_plan_entry *row_next, **row_link; // of the row's entries, under the tally's mutex
    hone_run_function *kernel_run; // with all arguments; plan.run may be a wrapper that fills defaults in
    hone_run_function *bare_run;   // the kernel's own, where kernel_run is a wrapper that lends scratch memory
    const hone_kernel_ref *kernel; // retained
    hone_source source;
    hone_runtime *rt;
    hone_call *call;                           // retained
    int64_t near_config[HONE_NEAR_PARAMETERS]; // plan.config where it has no more parameters
    size_t given;                   // values that the caller gives; fewer than the signature has: the rest are defaults
    const char *call_key;           // the call's
    char bucket_key[HONE_KEY_SIZE]; // its bucket's; "" when nothing is bucketed
    char general_key[HONE_KEY_SIZE]; // of the call with other scalars; "" when there is none
    uint64_t context_number;
    const struct hone_op *op;
    bool is_contexts_own;                             // its context's chain says what stores say, or does not ask them
    atomic_bool outdated;                             // the chain answers otherwise by now: no look-up finds it
    struct hone_plan_entry *bound_next, **bound_link; // under the table's mutex; NULL: not bound, or its table is gone
    struct hone_plan_entry *next;                     // in the list of retired ones
    uint64_t retired;                                 // epoch
    size_t bytes;
} hone_plan_entry;

enum { HONE_PLAN_ENTRY_ROOM = (sizeof(hone_plan_entry) + HONE_SLAB_ALIGN - 1) / HONE_SLAB_ALIGN * HONE_SLAB_ALIGN };

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
    atomic_uint_fast64_t generation; // changes whenever an entry is taken out; no two tables of a process share one
    hone_mutex mutex;                // the rest
    hone_allocator allocator;
    hone_plan_entry *bound; // plans that programs hold, in the table or not
    bool counts_bound;
    size_t live, bytes, cap_bytes;
    uint64_t clock; // hand that goes round when the cap is reached
    hone_plan_entry *retired;
    hone_plan_slots *retired_slots;
} hone_plan_table;

hone_status hone_plan_table_init(hone_plan_table *table, hone_allocator allocator, size_t cap_bytes, hone_error *err);
// No thread may be inside. Gives every entry of the table back. The mutex stays: bound plans are let go later.
void hone_plan_table_deinit(hone_plan_table *table);
// Publishes an entry (retained by the table). One that answers for the same words is replaced.
hone_status hone_plan_table_publish(hone_plan_table *table, hone_plan_entry *entry, hone_error *err);
// Takes out every entry for which drop says so, and marks those as outdated, and the bound plans of which it says so.
void hone_plan_table_drop(hone_plan_table *table, bool (*drop)(void *ctx, const hone_plan_entry *entry), void *ctx);
// Calls visit for every entry and every bound plan, under the mutex; for one that is both twice.
void hone_plan_table_visit(hone_plan_table *table, void (*visit)(void *ctx, hone_plan_entry *entry), void *ctx);
// A plan that a program holds from now on, and that counts its runs when bound plans do; and no longer.
void hone_plan_table_hold(hone_plan_table *table, hone_plan_entry *entry);
void hone_plan_table_let_go(hone_plan_table *table, hone_plan_entry *entry);
// Has bound plans count their runs, or no longer.
void hone_plan_table_count(hone_plan_table *table, bool counts);

// For hone_plan_table_drop: the plans made under the context of this number (a uint64_t).
bool hone_plan_entry_is_of_context(void *number, const hone_plan_entry *entry);
// In a child process: what the parent's calls were counted to is the parent's to record.
void hone_plan_table_in_child(hone_plan_table *table);
// Moves the calls that an entry counted to the recorder, while recording is on; else has them count as recorded.
void hone_plan_entry_note_calls(hone_plan_entry *entry);
// Runs of the entry itself.
static inline uint64_t hone_plan_entry_runs(const hone_plan_entry *entry)
{
    return entry->number == 0 ? 0 : hone_counters_read(entry->number) - entry->before;
}
// An empty entry with one reference; NULL: no memory.
hone_plan_entry *hone_plan_entry_take(hone_runtime *rt);
// Gives one reference back; the last one releases the kernel's state, then the kernel, and the entry to its runtime's slab.
void hone_plan_entry_release(hone_plan_entry *entry);

// The words four at a time, padding included.
static inline bool hone_plan_entry_answers(const hone_plan_entry *entry, const hone_packed *packed)
{
    if (entry->words != packed->words) return false;
    const uint64_t *a = entry->word, *b = packed->word, *const end = b + packed->words;
    uint64_t differ = 0;
    for (; b < end; a += 4, b += 4)
        differ |= (a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]);
    return differ == 0;
}

// The published entry of these words; NULL when there is none. Only between hone_epoch_enter and leave.
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
        // Among thousands of calls the entry is not in the cache: its lines are asked for together.
        __builtin_prefetch((const char *)entry + 64);
        __builtin_prefetch((const char *)entry + 128);
        __builtin_prefetch((const char *)entry + 192);
        if (hone_plan_entry_answers(entry, packed)) return entry;
    }
}

// False when a result lies over another tensor of the call and may not.
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
