#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    return count % 2 == 1 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

// Normal approximation of the binomial: ranks n/2 -+ 1.96 sqrt(n)/2.
static void interval_ranks(size_t count, size_t *out_first, size_t *out_last)
{
    double half = 0.98 * sqrt((double)count);
    double first = floor((double)count / 2 - half), last = ceil((double)count / 2 + half);
    *out_first = first < 0 ? 0 : (size_t)first;
    *out_last = last > (double)count - 1 ? count - 1 : (size_t)last;
}

void bench_interval(const double *sorted, size_t count, double *low, double *high)
{
    size_t first, last;
    interval_ranks(count, &first, &last);
    *low = sorted[first];
    *high = sorted[last];
}

enum { LEAST_ROUNDS = 5 }; // with fewer nothing is said to be faster

// Both sides, one after the other.
typedef struct bench_round {
    double hone_ns, peer_ns, ratio;
} bench_round;

static int by_ratio(const void *a, const void *b)
{
    return ascending(&((const bench_round *)a)->ratio, &((const bench_round *)b)->ratio);
}

static double time_side(bench_side side, uint64_t count, int *failed)
{
    uint64_t start = bench_now_ns();
    *failed |= side.run(side.ctx, count);
    return (double)(bench_now_ns() - start) / (double)count;
}

static uint64_t find_count(bench_side side, double round_ns, int *failed)
{
    uint64_t count = 1;
    while (!*failed) {
        double each = time_side(side, count, failed);
        if (each * (double)count > round_ns / 4) return (uint64_t)(round_ns / each) + 1;
        count *= 2;
    }
    return count;
}

static void pause_ns(uint64_t ns)
{
    struct timespec time = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    if (ns > 0) nanosleep(&time, NULL);
}

// What the other side left behind, spinning threads and foreign data in the caches, does not count.
static double time_apart(bench_side side, uint64_t count, uint64_t apart_ns, int *failed)
{
    pause_ns(apart_ns);
    if (apart_ns > 0) *failed |= side.run(side.ctx, count / 8 + 1);
    return time_side(side, count, failed);
}

// The round whose ratio is the median stands for all of them: its times belong together, whatever else the machine did.
static void sum_up(bench_round *rounds, size_t count, bench_row *out)
{
    size_t first, last;
    interval_ranks(count, &first, &last);
    qsort(rounds, count, sizeof *rounds, by_ratio);
    bench_round *middle = &rounds[count / 2];
    *out = (bench_row){middle->hone_ns, middle->peer_ns, middle->ratio, rounds[first].ratio, rounds[last].ratio};
}

static int compare(
    bench_side hone, bench_side peer, const uint64_t counts[2], uint64_t apart_ns, int count, bench_row *out)
{
    int failed = 0;
    if (count < LEAST_ROUNDS) {
        fprintf(
            stderr, "bench: too few samples to compare: %d rounds, and at least %d are needed\n", count, LEAST_ROUNDS);
        return 1;
    }
    bench_round *rounds = calloc((size_t)count, sizeof *rounds);
    if (rounds == NULL) return 1;
    (void)time_side(hone, counts[0], &failed);
    (void)time_side(peer, counts[1], &failed);
    for (int i = 0; i < count && !failed; i++) {
        bench_round *round = &rounds[i];
        if (i % 2 == 0) round->hone_ns = time_apart(hone, counts[0], apart_ns, &failed);
        round->peer_ns = time_apart(peer, counts[1], apart_ns, &failed);
        if (i % 2 == 1) round->hone_ns = time_apart(hone, counts[0], apart_ns, &failed);
        round->ratio = round->hone_ns / round->peer_ns;
    }
    if (!failed) sum_up(rounds, (size_t)count, out);
    free(rounds);
    return failed;
}

int bench_compare(bench_side hone, bench_side peer, uint64_t count, double round_ns, int rounds, bench_row *out)
{
    int failed = 0;
    uint64_t counts[2] = {count, count};
    if (count == 0) counts[0] = find_count(hone, round_ns, &failed);
    if (count == 0 && !failed) counts[1] = find_count(peer, round_ns, &failed);
    return failed || compare(hone, peer, counts, 0, rounds, out);
}

int bench_compare_apart(
    bench_side hone, bench_side peer, uint64_t apart_ns, double round_ns, int rounds, bench_row *out)
{
    int failed = 0;
    uint64_t counts[2] = {0, 0};
    counts[0] = find_count(hone, round_ns, &failed);
    pause_ns(apart_ns);
    if (!failed) counts[1] = find_count(peer, round_ns, &failed);
    return failed || compare(hone, peer, counts, apart_ns, rounds, out);
}

void bench_print_absolute(
    const char *name, const char *peer, double hone_ns, double peer_ns, double low, double high, const char *bound)
{
    printf(
        "{\"name\":\"%s\",\"hone_ns\":%.3f,\"peer\":\"%s\",\"peer_ns\":%.3f,\"ratio\":%.4f,\"low\":%.4f,\"high\":%.4f,"
        "\"bound\":\"%s\"}\n",
        name, hone_ns, peer, peer_ns, hone_ns / peer_ns, low, high, bound == NULL ? "" : bound);
    fflush(stdout);
}

void bench_print(const char *name, const char *peer, const bench_row *row, const char *bound)
{
    printf(
        "{\"name\":\"%s\",\"hone_ns\":%.3f,\"peer\":\"%s\",\"peer_ns\":%.3f,\"ratio\":%.4f,\"low\":%.4f,\"high\":%.4f,"
        "\"bound\":\"%s\"}\n",
        name, row->hone_ns, peer, row->peer_ns, row->ratio, row->low, row->high, bound == NULL ? "" : bound);
    fflush(stdout);
}
