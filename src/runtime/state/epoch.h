// Epoch-based reclamation: decides when a plan can be freed that another thread might be running.
//
// A thread that enters a call writes the current epoch into its slot, and 0 when it leaves. An entry that was removed
// from the table in epoch e is freed once no slot holds an epoch <= e. The reader's store is plain: the reclaimer makes
// every thread's stores visible with membarrier(2) before it reads the slots (Linux >= 4.14; where that is missing,
// readers use an atomic exchange). Source of the method: K. Fraser, "Practical lock-freedom", 2004, section 5.2.3.
#ifndef HONE_RUNTIME_STATE_EPOCH_H
#define HONE_RUNTIME_STATE_EPOCH_H

#include "base/memory.h"
#include "runtime/state/counters.h"

#include <stdatomic.h>

// One for each thread that ever called hone, on its own cache lines. Of its counters only pages that it writes take
// memory.
typedef struct hone_epoch_slot {
    _Alignas(64) atomic_uint_fast64_t epoch; // 0 while outside of calls
    atomic_bool taken;
    struct hone_epoch_slot *next;
    _Alignas(64) hone_counters counters;
} hone_epoch_slot;

extern atomic_uint_fast64_t hone_epoch_now __attribute__((visibility("hidden")));
// True if membarrier is not available (and under ThreadSanitizer, which cannot see it).
extern atomic_bool hone_epoch_fences __attribute__((visibility("hidden")));

// Registers the calling thread at its first call; NULL when there is no memory. Slots are never freed, only reused.
hone_epoch_slot *hone_epoch_register(void);
// The first of all slots, in use or not; the others by next.
const hone_epoch_slot *hone_epoch_slots(void);

// Enters an epoch. Returns the slot's previous value, which is not 0 if the thread is inside already; pass it back to
// leave.
static inline uint64_t hone_epoch_enter(hone_epoch_slot *slot)
{
    uint64_t before = atomic_load_explicit(&slot->epoch, memory_order_relaxed);
    if (before != 0) return before;
    uint64_t now = atomic_load_explicit(&hone_epoch_now, memory_order_relaxed);
    if (atomic_load_explicit(&hone_epoch_fences, memory_order_relaxed)) {
        // Either this read sees what the reclaimer wrote, or the reclaimer sees this thread's slot.
        (void)atomic_exchange_explicit(&slot->epoch, now, memory_order_acq_rel);
    } else {
        atomic_store_explicit(&slot->epoch, now, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
    }
    return before;
}

static inline void hone_epoch_leave(hone_epoch_slot *slot, uint64_t before)
{
    atomic_store_explicit(&slot->epoch, before, memory_order_release);
}

// Ends the current epoch and returns its number: entries that were unlinked before this call may be freed once
// hone_epoch_passed returns true for it.
uint64_t hone_epoch_advance(void);
// True when no thread can still see what was unlinked before `epoch` was ended.
bool hone_epoch_passed(uint64_t epoch);

#endif
