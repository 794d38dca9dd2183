// hone's choice against other libraries, at fixed shapes: each call is tuned, then what hone chose is timed in turn
// with each library's kernel at that library's own best config from the same contest.
//
//   bench_kernels [--quick] [--seconds S] ALGORITHM.txt...
//
// A file holds one call text a line; # begins a comment. --quick takes three calls of each file. A call is tuned for
// S seconds, 5 unless told. What hone chose and how the contest went goes to standard error.
#include "bench.h"
#include "composed.h"
#include "folder.h"
#include "operands.h"
#include "peers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_MOST = 64, LINE_SIZE = 256, NAME_SIZE = 512, ROUNDS = 21, QUICK_CALLS = 3 };

// Threads of OpenBLAS spin for 2^26 cycles after their work, those of OpenMP for some milliseconds.
static const uint64_t apart_of_threads_ns = 25000000, apart_ns = 1000000;
static const double round_ns = 10e6;

typedef struct bench_options {
    double seconds;
    bool quick;
} bench_options;

// One call of the list: what the contest found.
typedef struct tuned_call {
    hone_call *call;
    hone_result *result;
} tuned_call;

typedef struct call_list {
    hone_runtime *rt;
    const hone_op *op;
    tuned_call calls[CALLS_MOST];
    size_t count;
} call_list;

typedef struct bound_lane {
    const hone_plan *plan;
    const hone_value *values;
} bound_lane;

static int run_lane(void *ctx, uint64_t count)
{
    const bound_lane *lane = ctx;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++)
        failed |= lane->plan->run(lane->plan, lane->values, NULL) != HONE_OK;
    return failed;
}

// Plans ---------------------------------------------------------------------------------------------------------------

static hone_status bind_peer(
    call_list *list, const bench_operands *operands, const bench_peer *peer, const hone_plan **plan, hone_error *err)
{
    hone_override override_ = {
        .algorithm = hone_signature_name(hone_op_signature(list->op)),
        .kernel = peer->kernel,
        .platform = HONE_NATIVE,
        .config = peer->config[0] != '\0' ? peer->config : NULL};
    hone_context *context = NULL;
    hone_status status = hone_context_derive(list->rt, NULL, NULL, &override_, HONE_POLICY_DEFAULT, &context, err);
    if (status != HONE_OK) return status;
    hone_context *before = hone_context_enter(context);
    status = hone_bind(list->op, operands->values, operands->count, plan, err);
    (void)hone_context_enter(before);
    hone_context_release(&context);
    return status;
}

// A time for a wrong result says nothing: both must agree as far as their dtype lets them.
static bool results_agree(const bench_operands *operands, bound_lane *ours, bound_lane *theirs)
{
    size_t count = 0;
    double most = 0, apart = 0;
    if (run_lane(ours, 1) != 0) return false;
    float *mine = operands_result(operands, &count);
    memset(operands->tensors[operands->result].data, 0, count * operands->tensors[operands->result].dtype.bits / 8);
    float *other = run_lane(theirs, 1) == 0 ? operands_result(operands, &count) : NULL;
    for (size_t i = 0; mine != NULL && other != NULL && i < count; i++) {
        most = fmax(most, fabs((double)mine[i]));
        apart = fmax(apart, fabs((double)mine[i] - (double)other[i]));
    }
    bool agree = mine != NULL && other != NULL && apart <= (operands->tensors[0].dtype.bits >= 32 ? 1e-4 : 2e-2) * most;
    free(mine);
    free(other);
    return agree;
}

static int compare(
    const char *call,
    const bench_operands *operands,
    const hone_plan *ours,
    const char *config,
    const hone_plan *theirs,
    const bench_peer *peer)
{
    bound_lane hone = {ours, operands->values}, library = {theirs, operands->values};
    bool threads = peer->config[0] == '\0' || peer_threads(config) > 1 || peer_threads(peer->config) > 1;
    bench_row row;
    char name[NAME_SIZE];
    if (!results_agree(operands, &hone, &library)) {
        fprintf(stderr, "bench_kernels: %s: %s and hone's choice do not agree\n", call, peer->kernel);
        return 1;
    }
    int failed = bench_compare_apart(
        (bench_side){run_lane, &hone}, (bench_side){run_lane, &library}, threads ? apart_of_threads_ns : apart_ns,
        round_ns, ROUNDS, &row);
    snprintf(name, sizeof name, "kernel/%.*s/%s", (int)LINE_SIZE, call, peer->kernel);
    if (!failed) bench_print(name, peer->kernel, &row, "not behind 0.97");
    return failed;
}

static int compare_peer(
    call_list *list,
    const tuned_call *tuned,
    const bench_operands *operands,
    const hone_plan *ours,
    const bench_peer *peer)
{
    const hone_plan *theirs = NULL;
    hone_error err;
    const char *call = hone_call_text(tuned->call);
    if (bind_peer(list, operands, peer, &theirs, &err) != HONE_OK) {
        // What the contest did not measure either has no such operation.
        bool measured = peer->config[0] != '\0';
        fprintf(stderr, "%s: %s cannot run it: %s\n", call, peer->kernel, err.message);
        return measured ? 1 : 0;
    }
    const char *config = hone_result_decision(tuned->result, 0)->config_json;
    int failed = compare(call, operands, ours, config, theirs, peer);
    hone_plan_release(&theirs);
    return failed;
}

// The kernel "composed" of this program took part in no contest: a few runs tell with how many threads it is best.
static bool find_composed(call_list *list, const bench_operands *operands, bench_peer *out)
{
    double best_ns = INFINITY;
    size_t devices = 0;
    int32_t most = hone_runtime_devices(list->rt, &devices)[0]->threads;
    for (int32_t threads = 1; threads <= most; threads *= 2) {
        bench_peer one = {.kernel = "composed"};
        const hone_plan *plan = NULL;
        double times[ROUNDS];
        snprintf(one.config, sizeof one.config, "{\"threads\":%d}", (int)threads);
        if (bind_peer(list, operands, &one, &plan, NULL) != HONE_OK) return false;
        bound_lane lane = {plan, operands->values};
        for (int i = 0; i < ROUNDS; i++) {
            uint64_t start = bench_now_ns();
            if (run_lane(&lane, 10) != 0)
                times[i] = INFINITY;
            else
                times[i] = (double)(bench_now_ns() - start);
        }
        hone_plan_release(&plan);
        double time_ns = bench_median(times, ROUNDS);
        if (time_ns < best_ns) {
            best_ns = time_ns;
            *out = one;
        }
    }
    return best_ns < INFINITY;
}

// Lists ---------------------------------------------------------------------------------------------------------------

static int compare_call(call_list *list, const tuned_call *tuned, bool composed)
{
    bench_operands operands;
    bench_peer peers[PEERS_MOST];
    const hone_plan *ours = NULL;
    hone_error err = {.message = "its arguments were not made: no memory, or a dtype that the benchmark does not know"};
    size_t count = peers_find(list->rt, hone_signature_name(hone_op_signature(list->op)), tuned->result, peers);
    if (operands_make(tuned->call, &operands) != 0 ||
        hone_bind(list->op, operands.values, operands.count, &ours, &err) != HONE_OK) {
        fprintf(stderr, "bench_kernels: %s: %s\n", hone_call_text(tuned->call), err.message);
        operands_free(&operands);
        return 1;
    }
    int failed = 0;
    if (composed && count < PEERS_MOST && !peer_runs_below("openblas") && find_composed(list, &operands, &peers[count]))
        count++;
    for (size_t i = 0; i < count; i++)
        failed |= compare_peer(list, tuned, &operands, ours, &peers[i]);
    hone_plan_release(&ours);
    operands_free(&operands);
    return failed;
}

static int tune_call(call_list *list, const char *text, const bench_options *options)
{
    hone_tune_options tune = {.struct_size = sizeof tune, .seconds = options->seconds};
    tuned_call *tuned = &list->calls[list->count];
    hone_error err;
    hone_status status =
        hone_call_parse(hone_allocator_system(), hone_op_signature(list->op), text, &tuned->call, &err);
    if (status == HONE_OK) status = hone_tune(list->op, tuned->call, &tune, &tuned->result, &err);
    if (status != HONE_OK) {
        fprintf(stderr, "bench_kernels: %s: %s\n", text, err.message);
        hone_call_release(&tuned->call);
        return 1;
    }
    const hone_decision *decision = hone_result_decision(tuned->result, 0);
    fprintf(
        stderr, "%s: %s %s, %.0f ns, %u measured in %.1f s\n", text, decision->kernel, decision->config_json,
        decision->evidence.time_ns, decision->evidence.measured, decision->evidence.seconds);
    list->count++;
    return 0;
}

static int open_list(call_list *list, const char *line)
{
    char name[HONE_NAME_SIZE];
    hone_error err;
    if (hone_call_text_name(line, name, sizeof name, NULL, 0, &err) == HONE_OK &&
        hone_op_get(list->rt, name, &list->op, &err) == HONE_OK)
        return 0;
    fprintf(stderr, "bench_kernels: %s: %s\n", line, err.message);
    return 1;
}

// Which calls of a quick run: the first, one of the middle, the last.
static int tune_list(call_list *list, char lines[CALLS_MOST][LINE_SIZE], size_t count, const bench_options *options)
{
    size_t take = options->quick && count > QUICK_CALLS ? QUICK_CALLS : count;
    int failed = 0;
    for (size_t i = 0; i < take; i++)
        failed |= tune_call(list, lines[take == count ? i : i * (count - 1) / (take - 1)], options);
    return failed;
}

static size_t read_lines(const char *path, char lines[CALLS_MOST][LINE_SIZE])
{
    FILE *file = fopen(path, "r");
    size_t count = 0;
    while (file != NULL && count < CALLS_MOST && fgets(lines[count], LINE_SIZE, file) != NULL) {
        lines[count][strcspn(lines[count], "\n")] = '\0';
        if (lines[count][0] != '#' && lines[count][0] != '\0') count++;
    }
    if (file != NULL) fclose(file);
    return count;
}

static int measure_list(hone_runtime *rt, const char *path, const bench_options *options)
{
    static char lines[CALLS_MOST][LINE_SIZE];
    call_list list = {.rt = rt};
    hone_error err;
    size_t count = read_lines(path, lines);
    if (count == 0) fprintf(stderr, "bench_kernels: %s has no calls\n", path);
    if (count == 0 || open_list(&list, lines[0]) != 0) return 1;
    int failed = tune_list(&list, lines, count, options);
    // After the contests: it is what a user would write, not a kernel that hone may choose.
    bool composed = strcmp(hone_signature_name(hone_op_signature(list.op)), "rms_norm") == 0;
    if (composed && composed_register(rt, &err) != HONE_OK) {
        fprintf(stderr, "bench_kernels: composed: %s\n", err.message);
        failed = 1;
    }
    for (size_t i = 0; i < list.count; i++) {
        failed |= compare_call(&list, &list.calls[i], composed);
        hone_result_release(&list.calls[i].result);
        hone_call_release(&list.calls[i].call);
    }
    return failed;
}

static int measure_all(int count, char **paths, const bench_options *options)
{
    char folder[BENCH_PATH_SIZE], url[BENCH_PATH_SIZE + 32];
    hone_runtime *rt = NULL;
    hone_error err;
    if (bench_folder_make(folder) != 0) return 1;
    snprintf(url, sizeof url, "sqlite:%s/store.db", folder);
    hone_runtime_options runtime = {.struct_size = sizeof runtime, .store = url, .flags = HONE_RUNTIME_NO_ENVIRONMENT};
    int failed = hone_runtime_open(&runtime, &rt, &err) != HONE_OK;
    if (failed) fprintf(stderr, "bench_kernels: %s\n", err.message);
    for (int i = 0; i < count && rt != NULL; i++)
        failed |= measure_list(rt, paths[i], options);
    hone_runtime_close(&rt);
    bench_folder_remove(folder);
    return failed;
}

int main(int argc, char **argv)
{
    bench_options options = {.seconds = 5};
    int at = 1;
    // As in hone's workers: an idle thread of one library would look for work for 128 ms, on the processor that the next one needs.
    setenv("OPENBLAS_THREAD_TIMEOUT", "22", false);
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--quick") == 0)
            options.quick = true;
        else if (strcmp(argv[at], "--seconds") == 0 && at + 1 < argc)
            options.seconds = strtod(argv[++at], NULL);
        else
            at = argc;
    }
    if (at < argc && options.seconds > 0) return measure_all(argc - at, argv + at, &options);
    fprintf(stderr, "usage: bench_kernels [--quick] [--seconds S] ALGORITHM.txt...\n");
    return 2;
}
