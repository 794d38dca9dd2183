// How often each plan was run, for free: a thread counts in an array of its own, at the plan's number.
//
//     thread 1   0 | 17 | 4 | 0 | ...       a number has one writer: a load, an addition and a store, none of them atomic
//     thread 2   0 |  9 | 0 | 2 | ...       as a whole, and no cache line that another thread writes to
//                     plan 1                17 + 9 runs: whoever asks adds the threads up
//
// Source of the method: P. McKenney, "Is Parallel Programming Hard, And, If So, What Can You Do About It?", 5.2.
#ifndef HONE_RUNTIME_STATE_COUNTERS_H
#define HONE_RUNTIME_STATE_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

// Plans of a process that are counted at once; further ones share number 0, which stands for none of them.
enum { HONE_COUNTERS = 32768 };

typedef struct hone_counters {
    atomic_uint_fast64_t runs[HONE_COUNTERS];
} hone_counters;

// A number that no other plan has, and what is counted under it already; 0: all are taken. Any thread.
uint32_t hone_counters_take(uint64_t *out_before);
// The plan of this number is run no more.
void hone_counters_give_back(uint32_t number);
// What all threads, those that ended included, have counted under a number; 0 for the number 0.
uint64_t hone_counters_read(uint32_t number);

// By the thread whose counters these are.
static inline void hone_counters_add(hone_counters *own, uint32_t number)
{
    atomic_uint_fast64_t *runs = &own->runs[number];
    atomic_store_explicit(runs, atomic_load_explicit(runs, memory_order_relaxed) + 1, memory_order_relaxed);
}

#endif
