// Counts the runs of each plan almost for free: a thread counts in its own array, at the plan's number.
//
//     thread 1   0 | 17 | 4 | 0 | ...       a number has one writer: a load, an addition and a store, none of them atomic
//     thread 2   0 |  9 | 0 | 2 | ...       as a whole, and no cache line that another thread writes to
//                     plan 1                17 + 9 runs: a reader adds up the threads
//
// Source of the method: P. McKenney, "Is Parallel Programming Hard, And, If So, What Can You Do About It?", 5.2.
#ifndef HONE_RUNTIME_STATE_COUNTERS_H
#define HONE_RUNTIME_STATE_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

// The largest number of plans that a process counts at once; further plans share number 0, whose count is not used.
enum { HONE_COUNTERS = 32768 };

typedef struct hone_counters {
    atomic_uint_fast64_t runs[HONE_COUNTERS];
} hone_counters;

// Returns a number that no other plan has, and the count that it has already; 0 if all are taken. Any thread.
uint32_t hone_counters_take(uint64_t *out_before);
// The plan with this number will not run any more.
void hone_counters_give_back(uint32_t number);
// The sum of the counts of a number over all threads, including those that have ended; 0 for the number 0.
uint64_t hone_counters_read(uint32_t number);

// Called by the thread that owns the counters.
static inline void hone_counters_add(hone_counters *own, uint32_t number)
{
    atomic_uint_fast64_t *runs = &own->runs[number];
    atomic_store_explicit(runs, atomic_load_explicit(runs, memory_order_relaxed) + 1, memory_order_relaxed);
}

#endif
