// What it is worth that each thread of the pool begins with indices of its own: the pool beside the same pool whose threads
// take indices from one counter, over rows that fit into the processors' caches. The pairs of samples are told apart by how
// far the two processors lie from each other, which changes on a virtual machine while it runs: the time in which a
// cache line goes to the other one and back, before and after the pair.
//
//   bench_pool [PAIRS]   (default 600)
#include "bench.h"
#include "os/os.h"

#include "hone/kernel.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 512, LENGTH = 2048, ROWS_A_TASK = 16, TASKS = ROWS / ROWS_A_TASK, RUNS = 8, TRIPS = 100 };
static const double far_ns = 150; // chosen by hand, between 70 and 340

typedef struct arrays {
    const float *x;
    float *y;
    _Atomic int64_t next;
} arrays;

// The C library's copy: no compiler makes one of the two sides faster.
static void copy_rows(void *ctx, int64_t task)
{
    const arrays *all = ctx;
    const int64_t first = task * ROWS_A_TASK * LENGTH;
    memcpy(all->y + first, all->x + first, (size_t)ROWS_A_TASK * LENGTH * sizeof *all->y);
}

static void take_all(void *ctx, int64_t unused)
{
    arrays *all = ctx;
    (void)unused;
    for (int64_t i; (i = atomic_fetch_add(&all->next, 1)) < TASKS;)
        copy_rows(all, i);
}

static double time_own(hone_pool *pool, arrays *all)
{
    uint64_t start = bench_now_ns();
    for (int i = 0; i < RUNS; i++)
        hone_pool_run(pool, TASKS, copy_rows, all);
    return (double)(bench_now_ns() - start) / RUNS;
}

static double time_counter(hone_pool *pool, arrays *all)
{
    uint64_t start = bench_now_ns();
    for (int i = 0; i < RUNS; i++) {
        atomic_store(&all->next, 0);
        hone_pool_run(pool, hone_pool_threads(pool), take_all, all);
    }
    return (double)(bench_now_ns() - start) / RUNS;
}

// A ball that two threads throw to each other.
static void throw(void *ctx, int64_t side)
{
    _Atomic int *ball = ctx;
    for (int i = 0; i < TRIPS; i++) {
        while (atomic_load(ball) != 2 * i + (int)side)
            continue;
        atomic_store(ball, 2 * i + (int)side + 1);
    }
}

static double distance_ns(hone_pool *pool)
{
    _Atomic int ball = 0;
    uint64_t start = bench_now_ns();
    hone_pool_run_limited(pool, 2, 2, throw, &ball);
    return (double)(bench_now_ns() - start) / TRIPS;
}

typedef struct group {
    const char *name;
    double *own, *counter, *ratios;
    size_t count;
} group;

static void add(group *to, double own_ns, double counter_ns)
{
    to->own[to->count] = own_ns;
    to->counter[to->count] = counter_ns;
    to->ratios[to->count++] = own_ns / counter_ns;
}

static void tell(const group *all)
{
    bench_row row;
    if (all->count < 20) {
        fprintf(stderr, "bench_pool: %s: %zu pairs, too few\n", all->name, all->count);
        return;
    }
    row.ratio = bench_median(all->ratios, all->count);
    bench_interval(all->ratios, all->count, &row.low, &row.high);
    row.hone_ns = bench_median(all->own, all->count);
    row.peer_ns = bench_median(all->counter, all->count);
    bench_print(all->name, "one counter", &row, "no slower");
}

// Pairs between which the processors' distance changed say nothing of either.
static void measure(hone_pool *pool, arrays *all, int pairs, group *near, group *far)
{
    for (int i = 0; i < pairs; i++) {
        double before = distance_ns(pool), own, counter;
        time_own(pool, all);
        own = i % 2 ? time_own(pool, all) : 0;
        counter = time_counter(pool, all);
        if (i % 2 == 0) own = time_own(pool, all);
        double after = distance_ns(pool);
        if (fmax(before, after) < far_ns) add(near, own, counter);
        if (fmin(before, after) >= far_ns) add(far, own, counter);
    }
}

int main(int argc, char **argv)
{
    const int pairs = argc > 1 ? atoi(argv[1]) : 600;
    hone_allocator allocator = hone_allocator_system();
    hone_pool *pool = NULL;
    float *x = calloc((size_t)ROWS * LENGTH, sizeof *x), *y = calloc((size_t)ROWS * LENGTH, sizeof *y);
    double *times = calloc(6 * (size_t)(pairs > 0 ? pairs : 1), sizeof *times);
    if (pairs < 1 || x == NULL || y == NULL || times == NULL ||
        hone_pool_create(&allocator, 2, &pool, NULL) != HONE_OK) {
        fprintf(stderr, "bench_pool: it takes a number of pairs, 1 or more, and memory for them\n");
        return 1;
    }
    arrays all = {x, y, 0};
    group near = {"near", times, times + pairs, times + 2 * pairs, 0};
    group far = {"far", times + 3 * pairs, times + 4 * pairs, times + 5 * pairs, 0};
    measure(pool, &all, pairs, &near, &far);
    tell(&near);
    tell(&far);
    hone_pool_destroy(&pool);
    free(times), free(x), free(y);
    return 0;
}
