// Workers that live longer than one contest. Starting a worker takes some milliseconds, more when kernels are many, and
// seconds if it lends an interpreter. One idle worker of each sort is kept, because the contests of a process usually
// run one after another. A contest that takes it owns its process and its socket until it gives it back. A second
// contest at the same time starts a worker of its own, which is ended if one of its sort is idle already. An idle
// worker is checked before use (PING, answered by the library's version).
#include "tune/isolate/sandbox.h"

#include "base/assert.h"
#include "base/error.h"
#include "os/mutex.h"
#include "platforms/interpreter.h"
#include "tune/isolate/worker.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

static const char where[] = "tune.workers";
static const uint64_t ping_ns = 10000000000u;   // a busy machine may be slow to start a program
static const uint64_t start_ns = 120000000000u; // an interpreter imports what its functions need

struct hone_workers {
    hone_allocator allocator;
    char *program;        // the caller's, or HONE_WORKER's; NULL: find_program finds it
    hone_mutex mutex;     // for idle and peaks
    hone_process idle[2]; // pid -1: there is none; the second lends an interpreter
    hone_peaks peaks;     // of the processor; all 0: not measured yet
    atomic_bool is_tried; // whether `program` was checked
};

hone_status hone_workers_create(
    const hone_allocator *allocator, const char *program, hone_workers **out, hone_error *err)
{
    *out = NULL;
    hone_workers *workers = hone_alloc(allocator, sizeof *workers);
    if (workers == NULL) return hone_fail_memory(err, where);
    workers->allocator = *allocator;
    workers->idle[0] = workers->idle[1] = (hone_process){.pid = -1, .fd = -1};
    if (program == NULL || !*program) program = hone_os_variable("HONE_WORKER");
    if (program != NULL && *program &&
        (workers->program = hone_copy_text(allocator, program, strlen(program))) == NULL) {
        hone_free(allocator, workers);
        return hone_fail_memory(err, where);
    }
    hone_mutex_init(&workers->mutex);
    *out = workers;
    return HONE_OK;
}

static void end_process(hone_process *process)
{
    int signal_number, exit_code;
    if (process->pid > 0) hone_process_kill(process, &signal_number, &exit_code);
    *process = (hone_process){.pid = -1, .fd = -1};
}

void hone_workers_destroy(hone_workers **workers)
{
    hone_workers *gone = *workers;
    if (gone == NULL) return;
    *workers = NULL;
    end_process(&gone->idle[0]);
    end_process(&gone->idle[1]);
    hone_mutex_deinit(&gone->mutex);
    hone_free(&gone->allocator, gone->program);
    hone_free(&gone->allocator, gone);
}

// Finding the program -------------------------------------------------------------------------------------------------

// Paths of hone-worker from the folder of the library: in a build tree, of an installed library, of a program.
static const char *const places[] = {
    "/hone-worker",      "/libexec/hone/hone-worker", "/../libexec/hone/hone-worker", "/../../libexec/hone/hone-worker",
    "/hone/hone-worker", "/../hone-worker",
};

static bool find_from(char path[PATH_SIZE])
{
    char *slash = strrchr(path, '/');
    if (slash == NULL) return false;
    size_t folder = (size_t)(slash - path);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (folder + strlen(places[i]) >= PATH_SIZE) continue;
        memcpy(path + folder, places[i], strlen(places[i]) + 1);
        if (hone_os_is_executable(path)) return true;
    }
    return false;
}

static bool find_program(char path[PATH_SIZE])
{
    // Only the address of this function matters: it lies in the library, or in the program that hone is linked into.
    if (hone_os_object_path((const void *)(uintptr_t)find_from, path, PATH_SIZE) && find_from(path)) return true;
    char *self = realpath("/proc/self/exe", NULL);
    bool fits = self != NULL && strlen(self) < PATH_SIZE;
    if (fits) memcpy(path, self, strlen(self) + 1);
    free(self);
    return fits && find_from(path);
}

static hone_status choose_program(const hone_workers *workers, char path[PATH_SIZE], hone_error *err)
{
    if (workers->program != NULL) {
        if (strlen(workers->program) >= PATH_SIZE || !hone_os_is_executable(workers->program))
            return hone_fail(
                err, HONE_UNAVAILABLE, where, "%.500s (HONE_WORKER) is no program: name the path of hone-worker",
                workers->program);
        memcpy(path, workers->program, strlen(workers->program) + 1);
        return HONE_OK;
    }
    if (find_program(path)) return HONE_OK;
    return hone_fail(
        err, HONE_UNAVAILABLE, where,
        "hone-worker, in which kernels are tried, stands neither beside the library nor in its libexec/hone: set "
        "HONE_WORKER to its path, or tune with HONE_ISOLATION_IN_PROCESS");
}

hone_status hone_workers_program(const hone_workers *workers, char *out, size_t size, hone_error *err)
{
    char path[PATH_SIZE];
    hone_status status = choose_program(workers, path, err);
    if (status == HONE_OK && strlen(path) >= size)
        status =
            hone_fail(err, HONE_INVALID_ARGUMENT, where, "the path %.200s does not fit into %zu bytes", path, size);
    if (status == HONE_OK) memcpy(out, path, strlen(path) + 1);
    return status;
}

// Taking workers and giving them back ---------------------------------------------------------------------------------

// Whether a worker answers and has this library's version.
static hone_status greet(const hone_workers *workers, const hone_process *process, uint64_t limit_ns, hone_error *err)
{
    hone_buffer nothing, answer;
    hone_arena arena = {.allocator = workers->allocator};
    hone_buffer_init(&nothing, workers->allocator);
    hone_buffer_init(&answer, workers->allocator);
    const hone_worker_question ping = {HONE_MESSAGE_PING, &nothing, {limit_ns, limit_ns, 0}};
    hone_status status = HONE_OK;
    hone_outcome_kind kind = hone_worker_ask(process->fd, &ping, NULL, NULL, NULL, &answer);
    hone_wire_reader reader = {answer.data, answer.size, 0, &arena, false, false};
    const char *version = kind == HONE_OUTCOME_ANSWERED ? hone_wire_get_text(&reader) : NULL;
    if (version == NULL)
        status = hone_fail(err, HONE_UNAVAILABLE, where, "does not answer: is it this library's hone-worker?");
    else if (strcmp(version, hone_version()) != 0)
        status =
            hone_fail(err, HONE_UNAVAILABLE, where, "is of version %.40s, the library of %s", version, hone_version());
    hone_arena_destroy(&arena);
    hone_buffer_deinit(&answer);
    return status;
}

static hone_process take_idle(hone_workers *workers, bool interpreted)
{
    hone_mutex_lock(&workers->mutex);
    const hone_process process = workers->idle[interpreted];
    workers->idle[interpreted] = (hone_process){.pid = -1, .fd = -1};
    hone_mutex_unlock(&workers->mutex);
    return process;
}

static hone_status start_worker(
    const hone_workers *workers, const char *const *interpreter, hone_process *out, hone_error *err)
{
    char path[PATH_SIZE];
    static const char *const alone[] = {"hone-worker", NULL};
    const char *const *arguments = interpreter != NULL ? interpreter : alone;
    hone_status status = HONE_OK;
    if (interpreter != NULL)
        snprintf(path, sizeof path, "%s", interpreter[0]);
    else
        status = choose_program(workers, path, err);
    if (status != HONE_OK) return status;
    hone_worker_hand_on();
    status = hone_process_spawn(path, arguments, out, err);
    if (status != HONE_OK) return status;
    status = greet(workers, out, interpreter != NULL ? start_ns : ping_ns, err);
    if (status == HONE_OK) return HONE_OK;
    end_process(out);
    return hone_fail_prefix(err, status, "%.500s", path);
}

hone_status hone_workers_try_named(hone_workers *workers, hone_error *err)
{
    hone_process process = {.pid = -1, .fd = -1};
    if (workers->program == NULL || atomic_exchange(&workers->is_tried, true)) return HONE_OK;
    hone_status status = start_worker(workers, NULL, &process, err);
    end_process(&process);
    return status;
}

hone_status hone_workers_take(hone_workers *workers, bool interpreted, hone_process *out, hone_error *err)
{
    const char *const *interpreter = interpreted ? hone_interpreter_worker() : NULL;
    if (workers == NULL) return hone_fail(err, HONE_UNAVAILABLE, where, "this process keeps no workers");
    *out = take_idle(workers, interpreter != NULL);
    // An idle worker may have died meanwhile, with the thread that started it or because a user killed it.
    if (out->pid > 0 && greet(workers, out, ping_ns, NULL) == HONE_OK) return HONE_OK;
    end_process(out);
    return start_worker(workers, interpreter, out, err);
}

void hone_workers_give(hone_workers *workers, bool interpreted, hone_process *process)
{
    hone_process gone = *process;
    hone_assert(process->pid > 0);
    interpreted = interpreted && hone_interpreter_worker() != NULL;
    hone_mutex_lock(&workers->mutex);
    if (workers->idle[interpreted].pid <= 0) {
        gone = workers->idle[interpreted];
        workers->idle[interpreted] = *process;
    }
    hone_mutex_unlock(&workers->mutex);
    end_process(&gone);
}

// Peaks of the processor ----------------------------------------------------------------------------------------------

bool hone_workers_peaks(hone_workers *workers, hone_peaks *out)
{
    if (workers == NULL) return false;
    hone_mutex_lock(&workers->mutex);
    *out = workers->peaks;
    hone_mutex_unlock(&workers->mutex);
    return out->bytes[HONE_LEVEL_1] > 0;
}

void hone_workers_keep_peaks(hone_workers *workers, const hone_peaks *peaks)
{
    if (workers == NULL) return;
    hone_mutex_lock(&workers->mutex);
    workers->peaks = *peaks;
    hone_mutex_unlock(&workers->mutex);
}
