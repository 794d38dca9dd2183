// Measures the peak performance of this machine, so that a share of it can be printed with every time.
#ifndef HONE_KERNELS_COMMON_PEAK_H
#define HONE_KERNELS_COMMON_PEAK_H

#include "hone/measure.h"

// Changes when the measurement changes: peaks of different revisions cannot be compared.
enum { HONE_PEAK_REVISION = 3 };

// The size of the memory that is read to measure the bandwidth; 0 if there is too little free memory to exceed the
// caches.
//   cache_bytes  of the last cache; 0: not known
//   left_bytes   that may be allocated (hone_os_memory_left)
size_t hone_peak_memory(int64_t cache_bytes, int64_t left_bytes);

// Measures the speeds of *out, for about 300 ms.
//   features      HONE_CPU_* of this CPU
//   threads       how many work at the same time, at least 1
//   memory_bytes  that are allocated and read (hone_peak_memory); 0: none, and out->bytes is 0
//   parallel_for  and its pool; may be NULL for one thread
// Returns: HONE_OK; HONE_INVALID_ARGUMENT; HONE_OUT_OF_MEMORY.
hone_status hone_peak_measure(
    const hone_allocator *allocator,
    uint64_t features,
    int32_t threads,
    size_t memory_bytes,
    hone_parallel_for *parallel_for,
    void *pool,
    hone_peak *out,
    hone_error *err);

// The loops, one for each instruction set. Each runs `rounds` of hone_peak_operations; its result has no meaning.
typedef float hone_peak_loop(int64_t rounds);
enum { HONE_PEAK_SUMS = 12 }; // independent ones: more than latency times width of any current FMA unit
float hone_peak_loop_avx512(int64_t rounds);
float hone_peak_loop_avx2(int64_t rounds);
float hone_peak_loop_portable(int64_t rounds);
float hone_peak_loop_avx512_bf16(int64_t rounds);

// A loop and the CPU features that it needs.
typedef struct hone_peak_set {
    uint64_t needs; // HONE_CPU_*
    hone_peak_loop *loop;
    int32_t width; // multiply-adds of an instruction
} hone_peak_set;

// The widest loop that a CPU with these features can run. Never NULL.
const hone_peak_set *hone_peak_widest(uint64_t features);
// The loop over pairs of bf16. NULL: the CPU has no instruction for them.
const hone_peak_set *hone_peak_of_pairs(uint64_t features);
// Computes of_bf16 from the measured speeds of floats and of pairs (0: there are none). Tiles are not measured: Intel's
// AMX does 1,024 operations of bf16 per clock and core (a TDPBF16PS of 16,384 every 16 clocks), while two units of
// AVX-512 do 64 of f32.
double hone_peak_of_bf16(uint64_t features, double of_floats, double of_pairs);

#endif
