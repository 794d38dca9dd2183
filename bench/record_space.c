// Records what every config of a kernel takes: each verified once, then timed once a pass, all in random order, so that
// the samples of one config lie apart in time. Writes lines to a log, and goes on where the log ends.
// lab/record-spaces runs it in blocks and makes a cache file of Kernel Tuner's form of the log.
//
//   bench_record_space CALL KERNEL[,KERNEL...] LOG SECONDS PASSES
//
// The kernels have the same parameters. The log's first line is a JSON object: call, device, kernels, and the configs
// in their order, each with its kernel. The others are "PASS INDEX FAILURE PREPARE_NS VERIFY_NS BENCHMARK_NS TIME_NS",
// the failure a word.
//
// Leaves with 0 when all passes are in the log, 75 when there is more to do, 1 on a failure, 2 on wrong use.
#include "base/buffer.h"
#include "base/json.h"
#include "hone/offline.h"
#include "os/os.h"
#include "runtime/api/api.h"
#include "tune/rule/statistics.h"
#include "tune/wire/message.h"
#include "tune/worker/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KERNELS = 8, CONFIG_SIZE = 1024, EXIT_MORE = 75 };

typedef struct subject {
    const hone_kernel_ref *kernel;
    hone_config config;
    bool failed; // in the first pass: it is not run again
} subject;

typedef struct recording {
    hone_runtime *rt;
    const hone_op *op;
    hone_call *call;
    const hone_kernel_ref *kernels[MOST_KERNELS];
    size_t kernel_count;
    subject *subjects;
    size_t count, capacity;
    const hone_kernel_ref *listing; // whose configs are being listed
    hone_session session;
    FILE *log;
} recording;

static void stop(const char *what, const hone_error *err)
{
    fprintf(stderr, "bench_record_space: %s%s%s\n", what, err != NULL ? ": " : "", err != NULL ? err->message : "");
    exit(1);
}

static void check(hone_status status, const char *what, const hone_error *err)
{
    if (status != HONE_OK) stop(what, err);
}

// Subjects ------------------------------------------------------------------------------------------------------------

static bool add_subject(void *ctx, const hone_config *config)
{
    recording *r = ctx;
    const hone_allocator allocator = hone_allocator_system();
    if (!hone_grow(&allocator, &r->subjects, &r->capacity, r->count + 1, sizeof *r->subjects))
        stop("out of memory", NULL);
    r->subjects[r->count++] = (subject){.kernel = r->listing, .config = *config};
    return true;
}

static void list_kernel(recording *r, const char *name)
{
    hone_error err;
    hone_bound_space *space = NULL;
    const hone_kernel_ref *kernel = hone_kernel_by_name(r->op->algorithm, name, HONE_NATIVE);
    if (kernel == NULL) stop(name, NULL);
    check(hone_kernel_eligible(kernel, r->call, r->rt->cpu, &err), name, &err);
    check(hone_space_bind(kernel->space, r->call, r->rt->cpu, &space, &err), name, &err);
    r->listing = r->kernels[r->kernel_count++] = kernel;
    check(hone_bound_space_enumerate(space, add_subject, r, &err), name, &err);
    hone_bound_space_release(&space);
}

static void list_kernels(recording *r, char *names)
{
    for (char *name = strtok(names, ","); name != NULL; name = strtok(NULL, ",")) {
        if (r->kernel_count == MOST_KERNELS) stop("more than 8 kernels", NULL);
        list_kernel(r, name);
    }
}

// The session ---------------------------------------------------------------------------------------------------------

static void open_session(recording *r)
{
    hone_buffer message, answer;
    const hone_kernel_reader how = {.registry = r->rt->registry};
    hone_buffer_init(&message, hone_allocator_system());
    hone_buffer_init(&answer, hone_allocator_system());
    hone_session_init(&r->session, hone_allocator_system(), &how, NULL);
    hone_message_put_device(&message, r->rt->cpu);
    hone_message_put_algorithm(&message, r->op->algorithm, false);
    hone_message_put_call(&message, r->call);
    hone_wire_put_text(&message, hone_call_key(r->call));
    hone_wire_put_u8(&message, HONE_WARM);
    hone_wire_put_u64(&message, 0);
    hone_wire_put(&message, &r->op->algorithm->algorithm.tolerance, sizeof(hone_tolerance));
    check(hone_session_handle(&r->session, HONE_MESSAGE_OPEN, &message, &answer), "the call does not open", NULL);
    if (!r->session.open) stop("the call does not open", NULL);
    hone_buffer_deinit(&message);
    hone_buffer_deinit(&answer);
}

// The log -------------------------------------------------------------------------------------------------------------

static void write_head(const recording *r)
{
    hone_buffer head;
    hone_buffer_init(&head, hone_allocator_system());
    hone_buffer_char(&head, '{');
    hone_json_field(&head, "call", hone_call_text(r->call));
    hone_buffer_char(&head, ',');
    hone_json_field(&head, "algorithm", r->op->algorithm->name);
    hone_buffer_char(&head, ',');
    hone_json_field(&head, "device", r->rt->cpu->name);
    hone_buffer_format(&head, ",\"kernels\":%zu,\"configs\":[", r->kernel_count);
    for (size_t i = 0; i < r->count; i++) {
        char config[CONFIG_SIZE];
        hone_config_json(r->subjects[i].kernel->space, &r->subjects[i].config, config, sizeof config);
        hone_buffer_format(&head, "%s[\"%s\",%s]", i > 0 ? "," : "", r->subjects[i].kernel->kernel.name, config);
    }
    hone_buffer_text(&head, "]}\n");
    fputs(hone_buffer_string(&head), r->log);
    hone_buffer_deinit(&head);
}

// How many samples the log has; a line that was cut is overwritten. The failures of the first pass are marked.
static size_t read_log(recording *r, const char *path)
{
    FILE *log = fopen(path, "r+");
    char word[32], *line = NULL;
    size_t done = 0, capacity = 0;
    long end = 0;
    if (log != NULL && getline(&line, &capacity, log) > 0 && line[strlen(line) - 1] == '\n') end = ftell(log);
    while (end > 0 && getline(&line, &capacity, log) > 0 && line[strlen(line) - 1] == '\n') {
        size_t pass, index;
        if (sscanf(line, "%zu %zu %31s", &pass, &index, word) != 3 || index >= r->count)
            stop("the log is of another call", NULL);
        if (strcmp(word, "none") != 0) r->subjects[index].failed = true;
        end = ftell(log);
        done++;
    }
    free(line);
    r->log = log != NULL ? log : fopen(path, "w");
    if (r->log == NULL) stop(path, NULL);
    fseek(r->log, end, SEEK_SET);
    if (end == 0) write_head(r);
    return done;
}

// Measuring -----------------------------------------------------------------------------------------------------------

typedef struct costs {
    uint64_t prepare_ns, verify_ns, benchmark_ns;
} costs;

// The middle of some batches: one that the system disturbed does not count.
static hone_failure sample(hone_runner *runner, double *out_ns, hone_error *err)
{
    enum { BATCHES = 5 };
    double times[BATCHES];
    hone_failure failure = HONE_FAILURE_NONE;
    for (int i = 0; i < BATCHES && failure == HONE_FAILURE_NONE; i++)
        failure = hone_runner_sample(runner, &times[i], err);
    if (failure == HONE_FAILURE_NONE) *out_ns = hone_median(times, BATCHES).middle;
    return failure;
}

static hone_failure take_sample(
    recording *r, const subject *s, bool verify, costs *out, double *out_ns, hone_error *err)
{
    hone_runner runner;
    double error = 0;
    uint64_t start = hone_os_now_ns();
    hone_failure failure = hone_runner_init(&runner, &r->session, &s->kernel->kernel, &s->config, err);
    uint64_t prepared = hone_os_now_ns();
    if (failure == HONE_FAILURE_NONE && verify) failure = hone_runner_verify(&runner, &error, err);
    uint64_t verified = hone_os_now_ns();
    if (failure == HONE_FAILURE_NONE) failure = hone_runner_warm(&runner, out_ns, err);
    if (failure == HONE_FAILURE_NONE) failure = sample(&runner, out_ns, err);
    if (failure == HONE_FAILURE_NONE && verify) failure = hone_runner_check(&runner, err);
    *out = (costs){prepared - start, verified - prepared, hone_os_now_ns() - verified};
    hone_runner_deinit(&runner);
    return failure;
}

static void record(recording *r, size_t pass, size_t index)
{
    hone_error err = {0};
    subject *s = &r->subjects[index];
    costs cost = {0};
    double time_ns = 0;
    hone_failure failure = HONE_FAILURE_RUN;
    if (!s->failed) failure = take_sample(r, s, pass == 0, &cost, &time_ns, &err);
    if (failure != HONE_FAILURE_NONE) s->failed = true;
    fprintf(
        r->log, "%zu %zu %s %llu %llu %llu %.6g\n", pass, index, hone_failure_name(failure),
        (unsigned long long)cost.prepare_ns, (unsigned long long)cost.verify_ns, (unsigned long long)cost.benchmark_ns,
        failure == HONE_FAILURE_NONE ? time_ns : 0);
}

static bool run_passes(recording *r, size_t done, double seconds, size_t passes)
{
    const uint64_t end = hone_os_now_ns() + (uint64_t)(seconds * 1e9);
    uint32_t *order = malloc(r->count * sizeof *order);
    if (order == NULL) stop("out of memory", NULL);
    bool more = false;
    for (size_t pass = done / r->count; pass < passes && !more; pass++) {
        uint64_t seed = pass + 1;
        hone_random_order(&seed, (uint32_t)r->count, order);
        for (size_t i = done - pass * r->count; i < r->count && !more; i++, done++) {
            record(r, pass, order[i]);
            more = hone_os_now_ns() >= end;
        }
    }
    free(order);
    return done < passes * r->count;
}

int main(int argc, char **argv)
{
    recording r = {.rt = NULL};
    hone_error err;
    if (argc != 6) {
        fprintf(stderr, "usage: bench_record_space CALL KERNEL[,KERNEL...] LOG SECONDS PASSES\n");
        return 2;
    }
    const hone_runtime_options options = {.struct_size = sizeof options, .store = "none"};
    check(hone_runtime_open(&options, &r.rt, &err), "no runtime", &err);
    check(hone_runtime_discover(r.rt, &err), "no device", &err);
    check(hone_call_of_label(r.rt, argv[1], &r.op, &r.call, &err), argv[1], &err);
    list_kernels(&r, argv[2]);
    size_t passes = strtoul(argv[5], NULL, 10), done = read_log(&r, argv[3]);
    open_session(&r);
    bool more = run_passes(&r, done, strtod(argv[4], NULL), passes);
    if (fclose(r.log) != 0) stop(argv[3], NULL);
    hone_session_deinit(&r.session);
    const hone_allocator allocator = hone_allocator_system();
    hone_free(&allocator, r.subjects);
    hone_call_release(&r.call);
    hone_runtime_close(&r.rt);
    return more ? EXIT_MORE : 0;
}
