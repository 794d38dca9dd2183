// Eight processes put, and are killed at any moment and started again. What was acknowledged is there in the end, the
// file verifies, and no lock stays. The arguments: "sqlite:" or "json:", "put" or "merge", which merges two stores into
// one, and how many puts each process does, for a store that is for few records.
#include "hone/store.h"

#include "records.h"
#include "store/records.h"
#include "temporary_folder.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { PROCESSES = 8, BATCH = 10, MOST_PUTS = 1000 };

static const char *scheme, *mode;
static int asked_puts; // 0: as many as the run's load says

// How much is asked of a run.
typedef struct load {
    int puts, kills;
} load;

static load load_of_run(void)
{
    bool soak = getenv("HONE_SOAK") != NULL;
    if (asked_puts > 0) return (load){asked_puts, (asked_puts + 4) / 5};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    if (!soak) return strcmp(scheme, "sqlite:") == 0 ? (load){200, 40} : (load){20, 10};
#endif
    if (soak) return (load){MOST_PUTS, 1000};
    // A put of a JSON store takes some 70 ms of eight processes' time: as many kills among fewer puts.
    return (load){strcmp(scheme, "json:") == 0 ? MOST_PUTS / 2 : MOST_PUTS, 200};
}

// A put of a JSON store waits for the disk several times. What a killed process leaves behind is the system's to keep,
// and no disk's, so that memory does as well.
static void choose_parent(void)
{
    static const char memory[] = "/dev/shm";
    if (strcmp(scheme, "json:") == 0 && access(memory, W_OK | X_OK) == 0) setenv("TMPDIR", memory, 1);
}

// Shared by all processes: how far each one is, said after its put returned.
typedef struct progress {
    atomic_int acknowledged[PROCESSES];
    atomic_int failures;
    atomic_int kills_left;
} progress;

typedef struct fixture {
    temporary_folder folder;
    char url[TEMPORARY_PATH_SIZE];
    char sources[2][TEMPORARY_PATH_SIZE];
    load load;
    progress *progress;
    hone_error err;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (f == NULL || temporary_folder_make(&f->folder) != 0) return -1;
    if (strcmp(scheme, "postgresql:") == 0)
        snprintf(f->url, sizeof f->url, "postgresql://?schema=kills");
    else
        snprintf(f->url, sizeof f->url, "%s%s/store", scheme, f->folder.path);
    const temporary_folder folder = f->folder;
    for (int i = 0; i < 2; i++)
        snprintf(f->sources[i], sizeof f->sources[i], "sqlite:%s/source%d", folder.path, i);
    f->load = load_of_run();
    f->progress = mmap(NULL, sizeof *f->progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return f->progress == MAP_FAILED ? -1 : 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    munmap(f->progress, sizeof *f->progress);
    temporary_folder_remove(&f->folder);
    free(f);
    return 0;
}

static void key_of(int process, int number, char out[32])
{
    snprintf(out, 32, "%08x%08x", (unsigned)process, (unsigned)number);
}

static int process_of(const char *key)
{
    return (int)(strtoull(key, NULL, 16) >> 32);
}

static int number_of(const char *key)
{
    return (int)(strtoull(key, NULL, 16) & UINT32_MAX);
}

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

// Of several algorithms, since a JSON store has a file for each.
static const char *algorithm_of(int number)
{
    static const char *const names[] = {"rms_norm", "softmax", "matmul", "a", "b", "c", "d", "e", "f", "g"};
    return names[number % (int)(sizeof names / sizeof *names)];
}

// The children --------------------------------------------------------------------------------------------------------

// Nobody ends before the last kill: what a process puts last waits for it.
static void wait_for_kills(progress *p, int process, int count, int puts)
{
    while (atomic_load(&p->acknowledged[process]) + count >= puts && atomic_load(&p->kills_left) > 0)
        rest();
}

static hone_status put_one(hone_store *store, int process, int number, hone_error *err)
{
    char key[32];
    key_of(process, number, key);
    hone_store_decision put = sample_decision();
    put.key.algorithm = algorithm_of(number);
    put.key.key = key;
    put.time_ns = number;
    return hone_store_put(store, &put, err);
}

typedef struct gathering {
    hone_store *target;
    int process, skip, puts;
    progress *progress;
    char keys[BATCH][32];
    hone_store_decision batch[BATCH];
    int batched;
    hone_error *err;
} gathering;

static hone_status merge_batch(gathering *g)
{
    wait_for_kills(g->progress, g->process, g->batched, g->puts);
    hone_status status = hone_store_merge(g->target, g->batch, (size_t)g->batched, NULL, NULL, g->err);
    if (status == HONE_OK) atomic_fetch_add(&g->progress->acknowledged[g->process], g->batched);
    g->batched = 0;
    return status;
}

// The decisions of this process in a source, from where it was killed on.
static bool take(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    gathering *g = ctx;
    if (process_of(decision->key.key) != g->process || g->skip-- > 0) return true;
    char *key = g->keys[g->batched];
    snprintf(key, sizeof g->keys[0], "%s", decision->key.key);
    hone_store_decision *put = &g->batch[g->batched++];
    *put = sample_decision();
    put->key.algorithm = algorithm_of(number_of(key));
    put->key.key = key;
    put->time_ns = decision->time_ns;
    return g->batched < BATCH || merge_batch(g) == HONE_OK;
}

static hone_status merge_all(fixture *f, hone_store *target, int process, hone_error *err)
{
    hone_store *source = NULL;
    gathering g = {.target = target, .process = process, .puts = f->load.puts, .progress = f->progress, .err = err};
    g.skip = atomic_load(&f->progress->acknowledged[process]);
    hone_status status = hone_store_open(hone_allocator_system(), f->sources[process % 2], &source, err);
    if (status == HONE_OK) status = hone_store_scan(source, HONE_RECORD_DECISION, NULL, take, &g, err);
    if (status == HONE_OK && g.batched > 0) status = merge_batch(&g);
    hone_store_close(&source);
    return status;
}

static hone_status put_all(fixture *f, hone_store *store, int process, hone_error *err)
{
    atomic_int *acknowledged = &f->progress->acknowledged[process];
    hone_status status = HONE_OK;
    while (status == HONE_OK && atomic_load(acknowledged) < f->load.puts) {
        wait_for_kills(f->progress, process, 1, f->load.puts);
        status = put_one(store, process, atomic_load(acknowledged), err);
        if (status == HONE_OK) atomic_fetch_add(acknowledged, 1);
    }
    return status;
}

static void work(fixture *f, int process)
{
    hone_store *store = NULL;
    hone_error err = {.message = ""};
    hone_status status = hone_store_open(hone_allocator_system(), f->url, &store, &err);
    if (status == HONE_OK)
        status = strcmp(mode, "merge") == 0 ? merge_all(f, store, process, &err) : put_all(f, store, process, &err);
    hone_store_close(&store);
    // Whoever waits for seven others and the disk may be told to try again; it is started again.
    if (status != HONE_OK && status != HONE_BUSY) {
        fprintf(stderr, "process %d: %s\n", process, err.message);
        atomic_fetch_add(&f->progress->failures, 1);
    }
    _exit(0);
}

// The parent ----------------------------------------------------------------------------------------------------------

static void start(fixture *f, pid_t *children, int process)
{
    children[process] = fork();
    assert_true(children[process] >= 0);
    if (children[process] == 0) work(f, process);
}

static int total(const fixture *f)
{
    int sum = 0;
    for (int i = 0; i < PROCESSES; i++)
        sum += atomic_load(&f->progress->acknowledged[i]);
    return sum;
}

static bool is_done(const fixture *f, int process)
{
    return atomic_load(&f->progress->acknowledged[process]) >= f->load.puts;
}

// Those that left before they were done were told to try again.
static void restart_those_that_left(fixture *f, pid_t *children)
{
    for (int i = 0; i < PROCESSES; i++) {
        if (children[i] == 0 || waitpid(children[i], NULL, WNOHANG) != children[i]) continue;
        children[i] = 0;
        if (!is_done(f, i)) start(f, children, i);
    }
}

static void kill_one(fixture *f, pid_t *children, unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    int process = (int)(*seed >> 16) % PROCESSES;
    for (int i = 0; i < PROCESSES && children[process] == 0; i++)
        process = (process + 1) % PROCESSES;
    if (children[process] == 0) return;
    kill(children[process], SIGKILL);
    waitpid(children[process], NULL, 0);
    children[process] = 0;
    if (!is_done(f, process)) start(f, children, process);
}

// Kills are spread over the work, so that each meets another moment of it.
static int run(fixture *f)
{
    pid_t children[PROCESSES] = {0};
    const int all = PROCESSES * f->load.puts, before_the_last = all - PROCESSES * BATCH;
    unsigned seed = 1;
    int kills = 0;
    atomic_store(&f->progress->kills_left, f->load.kills);
    for (int i = 0; i < PROCESSES; i++)
        start(f, children, i);
    while (total(f) < all && atomic_load(&f->progress->failures) == 0) {
        if (kills < f->load.kills && total(f) >= (int)((long long)before_the_last * kills / f->load.kills)) {
            kill_one(f, children, &seed);
            kills++;
            atomic_fetch_sub(&f->progress->kills_left, 1);
        } else {
            rest();
        }
        restart_those_that_left(f, children);
    }
    for (int i = 0; i < PROCESSES; i++)
        if (children[i] != 0) waitpid(children[i], NULL, 0);
    return kills;
}

// Checks --------------------------------------------------------------------------------------------------------------

static bool check_time(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    *(bool *)ctx = decision->time_ns == number_of(decision->key.key);
    return true;
}

static void assert_all_there(fixture *f, hone_store *store)
{
    for (int i = 0; i < PROCESSES; i++)
        for (int j = 0; j < f->load.puts; j++) {
            char text[32];
            bool right = false;
            key_of(i, j, text);
            hone_store_key key = sample_key();
            key.algorithm = algorithm_of(j);
            key.key = text;
            if (hone_store_get(store, HONE_RECORD_DECISION, &key, HONE_WARM, check_time, &right, &f->err) != HONE_OK ||
                !right)
                fail_msg("%s is missing: %s", text, f->err.message);
        }
}

// Files under other names than those of the store.
static size_t leftovers(const fixture *f)
{
    char path[TEMPORARY_PATH_SIZE];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/store", f->folder.path);
    DIR *folder = opendir(path);
    if (folder == NULL) return 0; // the store is a file
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += strstr(entry->d_name, ".new") != NULL || strcmp(entry->d_name, ".commit") == 0;
    closedir(folder);
    return count;
}

static void nothing_acknowledged_is_missing(void **state)
{
    fixture *f = *state;
    if (strcmp(mode, "merge") == 0)
        for (int source = 0; source < 2; source++) {
            hone_store *store = NULL;
            assert_int_equal(hone_store_open(hone_allocator_system(), f->sources[source], &store, &f->err), HONE_OK);
            for (int i = source; i < PROCESSES; i += 2)
                for (int j = 0; j < f->load.puts; j++)
                    assert_int_equal(put_one(store, i, j, &f->err), HONE_OK);
            hone_store_close(&store);
        }
    int kills = run(f);
    assert_int_equal(atomic_load(&f->progress->failures), 0);
    assert_int_equal(kills, f->load.kills);
    hone_store *store = NULL;
    hone_store_health health;
    if (hone_store_open(hone_allocator_system(), f->url, &store, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    assert_all_there(f, store);
    if (hone_store_verify(store, &health, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    assert_int_equal(health.records, PROCESSES * f->load.puts);
    assert_true(health.set_aside == 0 && health.quarantined == 0);
    // No lock stays: this process writes at once.
    time_t begin = time(NULL);
    assert_int_equal(put_one(store, PROCESSES, 0, &f->err), HONE_OK);
    assert_true(time(NULL) - begin < 4);
    assert_int_equal(leftovers(f), 0);
    hone_store_close(&store);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_acknowledged_is_missing, set_up, tear_down),
    };
    asked_puts = count == 4 ? atoi(arguments[3]) : 0;
    if (count < 3 || count > 4 || asked_puts < 0 || asked_puts > MOST_PUTS || (count == 4 && asked_puts == 0)) {
        fprintf(stderr, "usage: %s sqlite:|json:|postgresql: put|merge [PUTS, 1 to %d]\n", arguments[0], MOST_PUTS);
        return 2;
    }
    scheme = arguments[1];
    mode = arguments[2];
    choose_parent();
    alarm(getenv("HONE_SOAK") != NULL ? 3600 : 580);
    return cmocka_run_group_tests_name("kills", tests, NULL, NULL);
}
