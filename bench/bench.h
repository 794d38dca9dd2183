// What the benchmarks share: two sides timed in turn, and one line of JSON a row.
//
// A row is {"name":..., "hone_ns":..., "peer":..., "peer_ns":..., "ratio":..., "low":..., "high":...}: the two times
// and the ratio hone / peer of the round whose ratio is the median, and the 95 % interval of that median.
#ifndef HONE_BENCH_BENCH_H
#define HONE_BENCH_BENCH_H

#include <stddef.h>
#include <stdint.h>

// One side: does `count` operations. Returns nonzero when one failed.
typedef struct bench_side {
    int (*run)(void *ctx, uint64_t count);
    void *ctx;
} bench_side;

typedef struct bench_row {
    double hone_ns, peer_ns, ratio, low, high;
} bench_row;

uint64_t bench_now_ns(void);
// Finds a count for which each side takes about `round_ns`, then times both in turn, the order changing each
// round. count 0: found for each side; else fixed. rounds is odd, and at least 5. Returns nonzero when a side failed.
int bench_compare(bench_side hone, bench_side peer, uint64_t count, double round_ns, int rounds, bench_row *out);
// The same for sides with threads of their own, or data that fills the caches: waits apart_ns before each side (threads
// of OpenBLAS and OpenMP spin for a while when their work is done), then runs it an eighth of its count untimed.
int bench_compare_apart(
    bench_side hone, bench_side peer, uint64_t apart_ns, double round_ns, int rounds, bench_row *out);
// Prints the row. bound: what the figure is held to, in one of the forms that scripts/bench knows, or NULL:
//   "at most 0.6"          of the peer's time
//   "at most 2 ns more"    than the peer
//   "at most 0.2 ms"       hone's own time
//   "at least 300 MB/s"    hone_ns is the time of a million bytes
//   "no slower"            the interval of the ratio reaches down to 1
//   "not behind 0.97"      the interval of the peer's time over hone's reaches up to 0.97
void bench_print(const char *name, const char *peer, const bench_row *row, const char *bound);
// Prints a row that has no peer: hone's figure against a fixed one (peer is then its name).
void bench_print_absolute(
    const char *name, const char *peer, double hone_ns, double peer_ns, double low, double high, const char *bound);
// Median of values, which it sorts.
double bench_median(double *values, size_t count);
// The bound order statistics of the 95 % interval of a median of count sorted values.
void bench_interval(const double *sorted, size_t count, double *low, double *high);

#endif
