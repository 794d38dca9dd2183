// Workers that live longer than one contest: starting one costs some milliseconds, and more when kernels are many.
#include "tune/isolate/seat.h"

#include "base/error.h"
#include "os/mutex.h"

#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

static const char where[] = "tune.pool";
static const hone_limits ping_limits = {10000000000u, 10000000000u};

struct hone_worker_pool {
    hone_allocator allocator;
    char *program;     // as given or of HONE_WORKER; NULL: looked for
    hone_mutex mutex;  // idle
    hone_process idle; // pid -1: none
};

hone_status hone_worker_pool_create(
    const hone_allocator *allocator, const char *program, hone_worker_pool **out, hone_error *err)
{
    *out = NULL;
    hone_worker_pool *pool = hone_alloc(allocator, sizeof *pool);
    if (pool == NULL) return hone_fail_memory(err, where);
    pool->allocator = *allocator;
    pool->idle = (hone_process){.pid = -1, .fd = -1};
    if (program == NULL || !*program) program = hone_os_variable("HONE_WORKER");
    if (program != NULL && *program && (pool->program = hone_copy_text(allocator, program, strlen(program))) == NULL) {
        hone_free(allocator, pool);
        return hone_fail_memory(err, where);
    }
    hone_mutex_init(&pool->mutex);
    *out = pool;
    return HONE_OK;
}

static void end_process(hone_process *process)
{
    int signal_number, exit_code;
    if (process->pid > 0) hone_process_kill(process, &signal_number, &exit_code);
    *process = (hone_process){.pid = -1, .fd = -1};
}

void hone_worker_pool_destroy(hone_worker_pool **pool)
{
    hone_worker_pool *gone = *pool;
    if (gone == NULL) return;
    *pool = NULL;
    end_process(&gone->idle);
    hone_mutex_deinit(&gone->mutex);
    hone_free(&gone->allocator, gone->program);
    hone_free(&gone->allocator, gone);
}

// Finding the program -------------------------------------------------------------------------------------------------

// Where hone-worker stands, seen from the folder of the library: a build tree, an installed library, a program.
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
    // A static function of this file, since only its address matters: it lies in the library, or in the program that
    // hone is linked into.
    if (hone_os_object_path((const void *)(uintptr_t)find_from, path, PATH_SIZE) && find_from(path)) return true;
    char *self = realpath("/proc/self/exe", NULL);
    bool fits = self != NULL && strlen(self) < PATH_SIZE;
    if (fits) memcpy(path, self, strlen(self) + 1);
    free(self);
    return fits && find_from(path);
}

static hone_status choose_program(const hone_worker_pool *pool, char path[PATH_SIZE], hone_error *err)
{
    if (pool->program != NULL) {
        if (strlen(pool->program) >= PATH_SIZE || !hone_os_is_executable(pool->program))
            return hone_fail(
                err, HONE_UNAVAILABLE, where, "%.500s (HONE_WORKER) is no program: name the path of hone-worker",
                pool->program);
        memcpy(path, pool->program, strlen(pool->program) + 1);
        return HONE_OK;
    }
    if (find_program(path)) return HONE_OK;
    return hone_fail(
        err, HONE_UNAVAILABLE, where,
        "hone-worker, in which kernels are tried, stands neither beside the library nor in its libexec/hone: set "
        "HONE_WORKER to its path, or tune with HONE_ISOLATION_IN_PROCESS");
}

hone_status hone_worker_pool_program(const hone_worker_pool *pool, char *out, size_t size, hone_error *err)
{
    char path[PATH_SIZE];
    hone_status status = choose_program(pool, path, err);
    if (status == HONE_OK && strlen(path) >= size)
        status =
            hone_fail(err, HONE_INVALID_ARGUMENT, where, "the path %.200s does not fit into %zu bytes", path, size);
    if (status == HONE_OK) memcpy(out, path, strlen(path) + 1);
    return status;
}

// Taking and giving ---------------------------------------------------------------------------------------------------

// Whether a worker is there and speaks this library's language: its answer is its version.
static hone_status greet(const hone_worker_pool *pool, const hone_process *process, hone_error *err)
{
    hone_buffer nothing, answer;
    hone_arena arena = {.allocator = pool->allocator};
    hone_buffer_init(&nothing, pool->allocator);
    hone_buffer_init(&answer, pool->allocator);
    hone_status status = HONE_OK;
    hone_outcome_kind kind =
        hone_worker_ask(process->fd, HONE_MESSAGE_PING, &nothing, &ping_limits, NULL, NULL, NULL, &answer);
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

static hone_process take_idle(hone_worker_pool *pool)
{
    hone_mutex_lock(&pool->mutex);
    hone_process process = pool->idle;
    pool->idle = (hone_process){.pid = -1, .fd = -1};
    hone_mutex_unlock(&pool->mutex);
    return process;
}

static hone_status start_worker(const hone_worker_pool *pool, hone_process *out, hone_error *err)
{
    char path[PATH_SIZE];
    hone_status status = choose_program(pool, path, err);
    if (status != HONE_OK) return status;
    const char *const arguments[] = {"hone-worker", NULL};
    status = hone_process_spawn(path, arguments, out, err);
    if (status != HONE_OK) return status;
    status = greet(pool, out, err);
    if (status == HONE_OK) return HONE_OK;
    end_process(out);
    return hone_fail_prefix(err, status, "%.500s", path);
}

hone_status hone_worker_pool_take(hone_worker_pool *pool, hone_process *out, hone_error *err)
{
    if (pool == NULL) return hone_fail(err, HONE_UNAVAILABLE, where, "there is no pool of workers");
    *out = take_idle(pool);
    // An idle one may have died meanwhile, with the thread that started it or of somebody's kill.
    if (out->pid > 0 && greet(pool, out, NULL) == HONE_OK) return HONE_OK;
    end_process(out);
    return start_worker(pool, out, err);
}

void hone_worker_pool_give(hone_worker_pool *pool, hone_process *process)
{
    hone_mutex_lock(&pool->mutex);
    bool kept = pool->idle.pid <= 0;
    if (kept) pool->idle = *process;
    hone_mutex_unlock(&pool->mutex);
    if (!kept) end_process(process);
}
