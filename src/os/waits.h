// What the threads of this process had to wait for beside their work. Read before and after a piece of work, it says
// whether the machine left that alone.
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

// Files of the system that stay open for some readings, so that one takes about 2 us a thread.
typedef struct hone_os_waits {
    int files[HONE_OS_WAITS_THREADS]; // of threads that were there at the beginning
    int threads[HONE_OS_WAITS_THREADS];
    int count;
    int own;             // the calling one among them; -1: it is not
    double stolen_ticks; // at the beginning; negative: not known
} hone_os_waits;

typedef struct hone_os_waits_reading {
    // Of each thread: how long it was ready and had no processor, in waits that are over. 0: it has ended.
    uint64_t delays_ns[HONE_OS_WAITS_THREADS];
    uint64_t ran_ns[HONE_OS_WAITS_THREADS]; // how long it had a processor
    bool waits[HONE_OS_WAITS_THREADS];      // it waits now; how long is not in delays_ns yet
    int count;
    uint32_t waiting;     // how many wait now, beside the calling one
    uint64_t preemptions; // of all threads of this process
    bool delay_known;
    int32_t processor; // of the calling thread; -1: not known
} hone_os_waits_reading;

// Looks which threads there are. Allocates nothing. hone_os_waits_end is called in any case.
void hone_os_waits_begin(hone_os_waits *waits);
// The calling thread's own is read last, and after the work first: what it waits before and after that is not counted.
void hone_os_waits_read(const hone_os_waits *waits, hone_os_waits_reading *out);
// Right after the work: the calling thread's own alone, in 2 us.
void hone_os_waits_read_own(const hone_os_waits *waits, hone_os_waits_reading *out);
// Then that of the others, with `waiting`: some 5 us more a thread.
void hone_os_waits_read_others(const hone_os_waits *waits, hone_os_waits_reading *out);
// HONE_OS_STOLEN when the host took time since the beginning, exact to the system's tick; else 0.
unsigned hone_os_waits_end(hone_os_waits *waits);
// What disturbed the time between two readings that lie elapsed_ns apart: of HONE_OS_WAITED, PREEMPTED and MIGRATED.
//   out_waited_ns  how long the thread waited that waited longest: where threads share the work evenly, by so much it
//                  took longer; of one that still waits, all the time that it did not run; 0 where that is not known
unsigned hone_os_waits_between(
    const hone_os_waits_reading *before, const hone_os_waits_reading *after, double elapsed_ns, double *out_waited_ns);

#endif
