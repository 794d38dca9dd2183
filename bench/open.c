// Opening a runtime, as programs do it: once, in a process that has just started, whose pages and symbols nobody has
// touched. Without a store; and with a SQLite store of 10,000 decisions, with the first look-up in it, since a store is
// opened by the first miss that asks it. Beside that, opening without a store together with the first operation, for
// which the devices are looked for; and opening again and again in one process.
//
//   bench_open              prints the rows
//   bench_open once STORE   opens one runtime and prints the nanoseconds; "none": no store; "operation": none, and the first operation
#include "bench.h"
#include "folder.h"
#include "store/records.h"

#include <hone/hone.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DECISIONS = 10000, SIDE = 100, PROCESSES = 61, AGAIN = 401, COMMAND_SIZE = 1024 };

static hone_status open_runtime(const char *store, hone_runtime **rt, hone_error *err)
{
    hone_runtime_options options = {
        .struct_size = sizeof options, .store = store, .flags = HONE_RUNTIME_NO_ENVIRONMENT};
    return hone_runtime_open(&options, rt, err);
}

static hone_status parse_call(const hone_op *op, int m, int k, hone_call **call, hone_error *err)
{
    char text[64];
    snprintf(text, sizeof text, "matmul(f32[%d,%d], f32[%d,8])", m, k, k);
    return hone_call_parse(hone_allocator_system(), hone_op_signature(op), text, call, err);
}

// One process ---------------------------------------------------------------------------------------------------------

// Asks for a call in the middle of the store and refuses any other answer than the store's.
static hone_status look_up(hone_runtime *rt, hone_error *err)
{
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_decision decision;
    hone_status status = hone_op_get(rt, "matmul", &op, err);
    if (status == HONE_OK) status = parse_call(op, SIDE / 2, SIDE / 2, &call, err);
    if (status == HONE_OK) status = hone_decide_call(op, call, &decision, err);
    if (status == HONE_OK && decision.source != HONE_SOURCE_STORE) {
        snprintf(err->message, sizeof err->message, "%s answered, not the store", hone_source_name(decision.source));
        status = HONE_NOT_FOUND;
    }
    hone_call_release(&call);
    return status;
}

static int open_once(const char *store)
{
    hone_runtime *rt = NULL;
    hone_error err;
    bool operation = strcmp(store, "operation") == 0;
    const hone_op *op = NULL;
    uint64_t start = bench_now_ns();
    hone_status status = open_runtime(operation ? "none" : store, &rt, &err);
    if (status == HONE_OK && operation)
        status = hone_op_get(rt, "matmul", &op, &err);
    else if (status == HONE_OK && strcmp(store, "none") != 0)
        status = look_up(rt, &err);
    uint64_t end = bench_now_ns();
    if (status != HONE_OK)
        fprintf(stderr, "bench_open: %s\n", err.message);
    else
        printf("%llu\n", (unsigned long long)(end - start));
    hone_runtime_close(&rt);
    return status != HONE_OK;
}

// All of them ---------------------------------------------------------------------------------------------------------

// The kernel and config that hone would take without a store for the call that is looked up later.
static hone_status decide_middle(const hone_op *op, hone_decision *decision, hone_error *err)
{
    hone_call *call = NULL;
    hone_status status = parse_call(op, SIDE / 2, SIDE / 2, &call, err);
    if (status == HONE_OK) status = hone_decide_call(op, call, decision, err);
    hone_call_release(&call);
    return status;
}

static hone_status put_decisions(hone_runtime *rt, hone_store *store, hone_error *err)
{
    size_t devices = 0;
    const char *device = hone_runtime_devices(rt, &devices)[0]->fingerprint;
    const hone_op *op = NULL;
    hone_decision decision;
    hone_status status = hone_op_get(rt, "matmul", &op, err);
    if (status == HONE_OK) status = decide_middle(op, &decision, err);
    for (int i = 0; i < DECISIONS && status == HONE_OK; i++) {
        hone_call *call = NULL;
        status = parse_call(op, 1 + i % SIDE, 1 + i / SIDE, &call, err);
        if (status == HONE_OK) {
            hone_store_decision row = {
                .key = {device, decision.algorithm, decision.version, hone_call_key(call), hone_call_spec(call)},
                .call = hone_call_text(call),
                .kernel = decision.kernel,
                .platform = hone_platform_name(decision.platform),
                .config = decision.config_json,
                .source = "autotune",
                .verified = true,
                .time_ns = 1000,
                .evidence = "{\"time_ns\":1000}",
                .environment = "{}"};
            status = hone_store_put(store, &row, err);
        }
        hone_call_release(&call);
    }
    return status;
}

static hone_status fill_store(const char *url, hone_error *err)
{
    hone_runtime *rt = NULL;
    hone_store *store = NULL;
    hone_status status = open_runtime("none", &rt, err);
    if (status == HONE_OK) status = hone_store_open(hone_allocator_system(), url, &store, err);
    if (status == HONE_OK) status = put_decisions(rt, store, err);
    hone_store_close(&store);
    hone_runtime_close(&rt);
    return status;
}

static int time_process(const char *program, const char *store, double *out_ns)
{
    char command[COMMAND_SIZE], line[64] = "";
    snprintf(command, sizeof command, "'%s' once '%s'", program, store);
    FILE *process = popen(command, "r");
    if (process == NULL) return 1;
    bool read = fgets(line, sizeof line, process) != NULL;
    *out_ns = strtod(line, NULL);
    return pclose(process) != 0 || !read || *out_ns <= 0;
}

static void print_times(const char *name, double *times, size_t count, double limit_ns, const char *bound)
{
    double low, high, median = bench_median(times, count);
    bench_interval(times, count, &low, &high);
    bench_print_absolute(name, "the bound", median, limit_ns, low / limit_ns, high / limit_ns, bound);
}

static int measure_again(const char *name, double limit_ns, const char *bound)
{
    double times[AGAIN];
    hone_error err;
    for (int i = 0; i < AGAIN; i++) {
        hone_runtime *rt = NULL;
        uint64_t start = bench_now_ns();
        if (open_runtime("none", &rt, &err) != HONE_OK) return 1;
        times[i] = (double)(bench_now_ns() - start);
        hone_runtime_close(&rt);
    }
    print_times(name, times, AGAIN, limit_ns, bound);
    return 0;
}

static int measure(const char *program, const char *store, const char *name, double limit_ns, const char *bound)
{
    double times[PROCESSES];
    int failed = time_process(program, store, &times[0]); // the files are in memory from then on
    for (int i = 0; i < PROCESSES && !failed; i++)
        failed = time_process(program, store, &times[i]);
    if (!failed) print_times(name, times, PROCESSES, limit_ns, bound);
    return failed;
}

static int measure_all(const char *program)
{
    char folder[BENCH_PATH_SIZE], url[BENCH_PATH_SIZE + 32];
    hone_error err;
    if (bench_folder_make(folder) != 0) return 1;
    snprintf(url, sizeof url, "sqlite:%s/store.db", folder);
    int failed = fill_store(url, &err) != HONE_OK;
    if (failed) fprintf(stderr, "bench_open: %s\n", err.message);
    failed = failed || measure(program, "none", "open/no store", 0.2e6, "at most 0.2 ms") ||
             measure(program, "operation", "open/no store, and the first operation", 0.2e6, "none") ||
             measure_again("open/no store, again", 0.2e6, "at most 0.2 ms") ||
             measure(program, url, "open/sqlite 10000", 2e6, "at most 2 ms");
    bench_folder_remove(folder);
    return failed;
}

int main(int argc, char **argv)
{
    char program[BENCH_PATH_SIZE] = "";
    if (argc == 3 && strcmp(argv[1], "once") == 0) return open_once(argv[2]);
    if (readlink("/proc/self/exe", program, sizeof program - 1) > 0) return measure_all(program);
    perror("/proc/self/exe");
    return 1;
}
