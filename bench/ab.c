// How often does a contest pick wrong? Two configs of one kernel whose work differs by exactly 2 %, busy neighbours on
// the machine, and at most N seconds for each contest: trial by trial, wrong picks are counted. A contest that
// declares a tie, whatever it then takes, has picked wrong.
//
//   bench_ab [TRIALS [SECONDS [NEIGHBOURS [PERCENT]]]]     300 trials of 2 s beside 2 neighbours, 2 %, unless told otherwise
//
// The work is a chain of multiplications in registers, each of which waits for the one before: its time is its length.
// The truth is measured before the neighbours start, and printed.
#include "bench.h"

#include <hone/hone.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNITS = 30000, NEIGHBOURS = 16, BYTES = 1 << 22 };

static int percent = 2;

// The work ------------------------------------------------------------------------------------------------------------

static uint64_t chain(uint64_t seed, int64_t units)
{
    for (int64_t i = 0; i < units; i++)
        seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed;
}

static hone_status run_chain(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const float *x = hone_tensor_data(args[0].as.tensor);
    float *y = hone_tensor_data(args[1].as.tensor);
    uint64_t seed;
    (void)execution;
    memcpy(&seed, x, sizeof seed);
    volatile uint64_t end = chain(seed, UNITS * (100 + plan->config[0]) / 100);
    (void)end;
    memcpy(y, x, (size_t)args[0].as.tensor->shape[0] * sizeof y[0]);
    return HONE_OK;
}

static int run_units(void *ctx, uint64_t count)
{
    const int *more = ctx;
    volatile uint64_t end = 1;
    for (uint64_t i = 0; i < count; i++)
        end = chain(end, UNITS * (100 + *more) / 100);
    return 0;
}

static void print_truth(void)
{
    int none = 0;
    bench_row row;
    if (bench_compare((bench_side){run_units, &percent}, (bench_side){run_units, &none}, 0, 2e6, 101, &row) == 0)
        printf("true ratio, before the neighbours start: %.4f (%.4f to %.4f)\n", row.ratio, row.low, row.high);
}

// Neighbours ----------------------------------------------------------------------------------------------------------

// Computes and goes through memory in turn, and never rests.
static _Noreturn void be_busy(void)
{
    char *bytes = malloc(BYTES);
    for (;;) {
        volatile uint64_t end = chain(1, 1000000);
        for (size_t i = 0; bytes != NULL && i < BYTES; i += 64)
            bytes[i] = (char)(bytes[i] + (char)end);
    }
}

static void start_neighbours(pid_t *pids, int count)
{
    fflush(stdout);
    for (int i = 0; i < count; i++)
        if ((pids[i] = fork()) == 0) be_busy();
}

static void end_neighbours(const pid_t *pids, int count)
{
    for (int i = 0; i < count; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
}

// Trials --------------------------------------------------------------------------------------------------------------

typedef struct tally {
    int trials, slower, ties;
    double seconds, ratios;
} tally;

static hone_status try_once(hone_runtime *rt, double seconds, int trial, tally *out, hone_error *err)
{
    const hone_tune_options options = {
        .struct_size = sizeof options,
        .seconds = seconds,
        .no_store = true,
        .fresh = true,
        .seed = (uint64_t)trial + 1};
    hone_result *result = NULL;
    uint64_t start = bench_now_ns();
    hone_status status = hone_tune_text(rt, "chain(f32[16])", &options, &result, err);
    if (status != HONE_OK) return status;
    const hone_decision *decision = hone_result_decision(result, 0);
    out->trials++;
    out->seconds += (double)(bench_now_ns() - start) * 1e-9;
    out->ratios += decision->evidence.ratio;
    if (getenv("AB_VERBOSE") != NULL)
        printf(
            "%d: more %d rounds %u ratio %.4f (%.4f to %.4f) samples %u measured %u time %.1f us\n", trial,
            (int)decision->config.values[0], decision->evidence.rounds, decision->evidence.ratio,
            decision->evidence.ratio_low, decision->evidence.ratio_high, decision->evidence.samples,
            decision->evidence.measured, decision->evidence.time_ns / 1e3);
    if (decision->config.values[0] != 0)
        out->slower++;
    else if (!(decision->evidence.ratio_low > 1))
        out->ties++;
    hone_result_release(&result);
    return HONE_OK;
}

// The default is the slower one every second time, so that nobody wins by being it.
static hone_status open_runtime(bool slower_first, hone_runtime **rt, hone_error *err)
{
    const hone_runtime_options options = {
        .struct_size = sizeof options,
        .store = "none",
        .device_locks = "none",
        .flags = HONE_RUNTIME_NO_BUILTINS | HONE_RUNTIME_ZYGOTE,
        .threads = 1};
    char space[64];
    snprintf(space, sizeof space, "more: 0 | %d default %d", percent, slower_first ? percent : 0);
    const hone_algorithm algorithm = {
        .struct_size = sizeof algorithm, .signature = "chain(x: f32[n]) -> y: f32[n]", .reference = run_chain};
    const hone_kernel kernel = {HONE_KERNEL,         .algorithm = "chain", .name = "chain", .platform = HONE_NATIVE,
                                .backend = HONE_CPU, .space = space,       .run = run_chain};
    hone_status status = hone_runtime_open(&options, rt, err);
    if (status == HONE_OK) status = hone_register_algorithm(*rt, &algorithm, err);
    return status == HONE_OK ? hone_register_kernels(*rt, &kernel, 1, err) : status;
}

int main(int argc, char **argv)
{
    int trials = argc > 1 ? atoi(argv[1]) : 300, neighbours = argc > 3 ? atoi(argv[3]) : 2;
    double seconds = argc > 2 ? atof(argv[2]) : 2;
    if (argc > 4) percent = atoi(argv[4]);
    if (trials < 1 || !(seconds > 0) || neighbours < 0 || neighbours > NEIGHBOURS || percent < 1 || percent > 50) {
        fprintf(stderr, "usage: bench_ab [TRIALS [SECONDS [NEIGHBOURS [PERCENT]]]]\n");
        return 2;
    }
    hone_runtime *runtimes[2] = {NULL, NULL};
    hone_error err = {0};
    hone_status status = HONE_OK;
    for (int i = 0; i < 2 && status == HONE_OK; i++)
        status = open_runtime(i == 1, &runtimes[i], &err);
    pid_t pids[NEIGHBOURS];
    tally score = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    print_truth();
    start_neighbours(pids, neighbours);
    for (int i = 0; i < trials && status == HONE_OK; i++)
        status = try_once(runtimes[i % 2], seconds, i, &score, &err);
    end_neighbours(pids, neighbours);
    for (int i = 0; i < 2; i++)
        hone_runtime_close(&runtimes[i]);
    if (status != HONE_OK) fprintf(stderr, "bench_ab: %s\n", err.message);
    if (score.trials > 0)
        printf(
            "%d trials of at most %.3g s at a true difference of %d %%, %d busy neighbours: %d wrong (%d slower, %d "
            "tied); "
            "%.2f s each, mean ratio %.4f\n",
            score.trials, seconds, percent, neighbours, score.slower + score.ties, score.slower, score.ties,
            score.seconds / score.trials, score.ratios / score.trials);
    return status == HONE_OK ? 0 : 1;
}
