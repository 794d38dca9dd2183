// Measures what the threads of this process had to wait for besides their work. Readings before and after a piece of
// work show whether the machine disturbed it.
#ifndef HONE_OS_WAITS_H
#define HONE_OS_WAITS_H

#include <stdbool.h>
#include <stdint.h>

enum { HONE_OS_WAITS_THREADS = 256 };

typedef enum hone_os_disturber {
    HONE_OS_WAITED = 1 << 0,    // a thread was ready to run and had no processor
    HONE_OS_PREEMPTED = 1 << 1, // a thread lost its processor and could have gone on; only where waits are not known
    HONE_OS_MIGRATED = 1 << 2,  // the calling thread was moved to another processor, away from its caches
    HONE_OS_STOLEN = 1 << 3     // the host of a virtual machine took time from it
} hone_os_disturber;

// Files of the system that stay open for several readings, so that one reading takes about 2 us per thread.
typedef struct hone_os_waits {
    int files[HONE_OS_WAITS_THREADS]; // of threads that existed at the beginning
    int threads[HONE_OS_WAITS_THREADS];
    int count;
    int own;             // index of the calling thread among them; -1 if it is not there
    double stolen_ticks; // at the beginning; negative: not known
} hone_os_waits;

typedef struct hone_os_waits_reading {
    // For each thread: how long it was ready but had no processor, in waits that have ended. 0 if the thread has ended.
    uint64_t delays_ns[HONE_OS_WAITS_THREADS];
    uint64_t ran_ns[HONE_OS_WAITS_THREADS]; // how long it had a processor
    bool waits[HONE_OS_WAITS_THREADS];      // it waits now; this wait is not in delays_ns yet
    int count;
    uint32_t waiting;     // how many threads wait now, not counting the calling one
    uint64_t preemptions; // of all threads of this process
    bool delay_known;
    int32_t processor; // of the calling thread; -1: not known
} hone_os_waits_reading;

// Finds the threads of the process. Allocates nothing. hone_os_waits_end must be called in any case.
void hone_os_waits_begin(hone_os_waits *waits);
// Reads the calling thread's numbers last (after the work: first), so that its waits outside of the work are not
// counted.
void hone_os_waits_read(const hone_os_waits *waits, hone_os_waits_reading *out);
// Call right after the work: reads the numbers of the calling thread alone, in 2 us.
void hone_os_waits_read_own(const hone_os_waits *waits, hone_os_waits_reading *out);
// Then reads those of the other threads, with `waiting`: about 5 us more per thread.
void hone_os_waits_read_others(const hone_os_waits *waits, hone_os_waits_reading *out);
// HONE_OS_STOLEN if the host took time since the beginning, exact to the system's tick; else 0.
unsigned hone_os_waits_end(hone_os_waits *waits);
// Returns what disturbed the time between two readings that are elapsed_ns apart: of HONE_OS_WAITED, PREEMPTED and
// MIGRATED.
//   out_waited_ns  the wait of the thread that waited longest: where threads share the work evenly, the work took
//                  longer by that much. For a thread that still waits, all the time that it did not run. 0 where that
//                  is not known
unsigned hone_os_waits_between(
    const hone_os_waits_reading *before, const hone_os_waits_reading *after, double elapsed_ns, double *out_waited_ns);

#endif
