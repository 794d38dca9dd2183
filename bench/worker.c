// What isolation costs: a question to a worker that lives, which every candidate pays, and a new worker, which a
// candidate pays that has killed or harmed the one before.
#include "bench.h"

#include "tune/isolate/sandbox.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 101 };

typedef struct ground {
    hone_workers *pool;
    bool again; // end the worker after each question
} ground;

static int ask(void *ctx, uint64_t count)
{
    ground *g = ctx;
    for (uint64_t i = 0; i < count; i++) {
        hone_process process;
        int signal_number, exit_code;
        hone_error err;
        if (hone_workers_take(g->pool, false, &process, &err) != HONE_OK) {
            fprintf(stderr, "bench_worker: %s\n", err.message);
            return 1;
        }
        if (g->again)
            hone_process_kill(&process, &signal_number, &exit_code);
        else
            hone_workers_give(g->pool, false, &process);
    }
    return 0;
}

static int measure(ground *g, bool again, const char *name, const char *bound)
{
    double times[ROUNDS], low, high;
    g->again = again;
    if (ask(g, 1) != 0) return 1;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start = bench_now_ns();
        if (ask(g, 1) != 0) return 1;
        times[i] = (double)(bench_now_ns() - start);
    }
    double middle = bench_median(times, ROUNDS);
    bench_interval(times, ROUNDS, &low, &high);
    bench_print_absolute(name, "-", middle, middle, 1, 1, bound);
    return 0;
}

int main(void)
{
    hone_allocator allocator = hone_allocator_system();
    hone_error err;
    ground g = {0};
    if (hone_workers_create(&allocator, NULL, &g.pool, &err) != HONE_OK) {
        fprintf(stderr, "bench_worker: %s\n", err.message);
        return 1;
    }
    int failed = measure(&g, false, "worker: a question to one that lives", NULL) ||
                 measure(&g, true, "worker: a new one, and its end", NULL);
    hone_workers_destroy(&g.pool);
    return failed;
}
