// What this machine can do at best, measured: to print a share of it beside every time.
#ifndef HONE_KERNELS_COMMON_PEAK_H
#define HONE_KERNELS_COMMON_PEAK_H

#include "hone/measure.h"

// Changes with what is measured: a peak of another revision is another thing.
enum { HONE_PEAK_REVISION = 3 };

// How much memory is read to measure it; 0: there is too little left for more than the caches would hold.
//   cache_bytes  of the last cache; 0: not known
//   left_bytes   that may be taken (hone_os_memory_left)
size_t hone_peak_memory(int64_t cache_bytes, int64_t left_bytes);

// Measures for about 300 ms: the speeds of *out.
//   features      HONE_CPU_* of this CPU
//   threads       how many work at the same time, at least 1
//   memory_bytes  that are taken and read (hone_peak_memory); 0: none, and out->bytes is 0
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

// The loops, one an instruction set. Each runs `rounds` of hone_peak_operations and says nothing of use.
typedef float hone_peak_loop(int64_t rounds);
enum { HONE_PEAK_SUMS = 12 }; // independent ones: more than latency times width of any FMA unit so far
float hone_peak_loop_avx512(int64_t rounds);
float hone_peak_loop_avx2(int64_t rounds);
float hone_peak_loop_portable(int64_t rounds);
float hone_peak_loop_avx512_bf16(int64_t rounds);

// A loop and what it needs of a CPU.
typedef struct hone_peak_set {
    uint64_t needs; // HONE_CPU_*
    hone_peak_loop *loop;
    int32_t width; // multiply-adds of an instruction
} hone_peak_set;

// The widest loop that a CPU with these features can run. Never NULL.
const hone_peak_set *hone_peak_widest(uint64_t features);
// The loop over pairs of bf16. NULL: the CPU has no instruction for them.
const hone_peak_set *hone_peak_of_pairs(uint64_t features);
// of_bf16 by what was measured of floats and of pairs (0: there are none). Tiles are not measured: Intel's AMX does
// 1,024 operations of bf16 a clock and core (a TDPBF16PS of 16,384 each 16 clocks), where two units of AVX-512 do 64 of f32.
double hone_peak_of_bf16(uint64_t features, double of_floats, double of_pairs);

#endif
