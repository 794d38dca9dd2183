// The queue of a store: who claims what, in which order, once, and what becomes of it. Its argument is the kind of store.
#include "queue/queue.h"

#include "temporary_folder.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *kind;
static const char cpu[] = "cpu|AuthenticAMD,zen4,sse4_2+avx,l1=32768,threads=2", gpu[] = "cuda|NVIDIA%20H200,sm_90";
static const char *const here[] = {cpu};

typedef struct fixture {
    temporary_folder folder;
    char url[400];
    hone_store *store;
    hone_queue queue;
    hone_error err;
} fixture;

static void check(const fixture *f, hone_status status)
{
    if (status != HONE_OK) fail_msg("%s", f->err.message);
}

static int set_up(void **state)
{
    static int opened;
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (f == NULL || temporary_folder_make(&f->folder) != 0) return -1;
    if (strcmp(kind, "sqlite:") == 0)
        snprintf(f->url, sizeof f->url, "sqlite:%s/store.db", f->folder.path);
    else
        snprintf(f->url, sizeof f->url, "postgresql://?schema=q%d_%d", (int)getpid(), opened++);
    check(f, hone_store_open(hone_allocator_system(), f->url, &f->store, &f->err));
    check(f, hone_queue_init(&f->queue, f->store, here, 1, &f->err));
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    hone_store_close(&f->store);
    temporary_folder_remove(&f->folder);
    free(f);
    return 0;
}

static size_t add(fixture *f, const char *device, int number, double weight, double priority)
{
    char key[20];
    size_t added = 0;
    snprintf(key, sizeof key, "%016x", number);
    hone_job job = {
        .key = {device, "rms_norm", "1", key, NULL},
        .call = "rms_norm(f32[4,256], f32[256])",
        .weight = weight,
        .priority = priority,
        .count = 1};
    check(f, hone_queue_add(f->store, &job, 1, &added, &f->err));
    return added;
}

static int claim(fixture *f, hone_job_claim *out)
{
    const hone_status status = hone_queue_claim(&f->queue, out, &f->err);
    if (status == HONE_NOT_FOUND) return -1;
    check(f, status);
    return (int)strtol(out->job.key.key, NULL, 16);
}

static void end(fixture *f, hone_job_claim *claimed, hone_job_end how, const char *reason)
{
    check(f, hone_job_claim_end(claimed, how, 8, reason, &f->err));
}

static void the_heaviest_of_the_highest_priority_comes_first(void **state)
{
    fixture *f = *state;
    hone_job_claim claims[5];
    add(f, cpu, 1, 10, 0);
    add(f, cpu, 2, 30, 0);
    add(f, "cpu|AuthenticAMD", 3, 20, 0); // its class
    add(f, "cpu|Authentic", 4, 99, 0);    // not at a comma: of another device
    add(f, gpu, 5, 99, 9);
    add(f, cpu, 6, 1, 1);
    assert_int_equal(add(f, cpu, 6, 1, 1), 0);
    const int order[] = {6, 2, 3, 1, -1};
    for (int i = 0; i < 5; i++)
        assert_int_equal(claim(f, &claims[i]), order[i]);
    for (int i = 0; i < 4; i++)
        end(f, &claims[i], HONE_JOB_DONE, NULL);
    hone_queue_stat stat;
    check(f, hone_queue_count(f->store, NULL, &stat, &f->err));
    assert_int_equal(stat.waiting, 2);
    assert_int_equal(stat.held, 0);
}

static void undecided_contests_come_after_calls_without_a_decision(void **state)
{
    fixture *f = *state;
    hone_job_claim claimed;
    add(f, cpu, 1, 100, 0);
    add(f, cpu, 2, 1, 0);
    assert_int_equal(claim(f, &claimed), 1);
    end(f, &claimed, HONE_JOB_OPEN, NULL);
    assert_int_equal(claim(f, &claimed), 2);
    end(f, &claimed, HONE_JOB_DONE, NULL);
    assert_int_equal(claim(f, &claimed), 1);
    assert_int_equal(claimed.job.round, 1);
    assert_true(claimed.job.seconds > 7.9 && claimed.job.seconds < 8.1);
    end(f, &claimed, HONE_JOB_DONE, NULL);
    assert_int_equal(claim(f, &claimed), -1);
}

static void a_device_that_no_message_can_show_is_refused(void **state)
{
    fixture *f = *state;
    char longest[1026];
    size_t added = 0;
    memset(longest, 'x', sizeof longest - 1);
    longest[1025] = '\0';
    const char *const bad[] = {"", "cpu\xff", "cpu\033[31m", longest};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hone_job job = {.key = {bad[i], "rms_norm", "1", "0000000000000001", NULL}, .weight = 1, .count = 1};
        assert_int_equal(hone_queue_add(f->store, &job, 1, &added, &f->err), HONE_INVALID_ARGUMENT);
        assert_non_null(strstr(f->err.message, "the device"));
        assert_int_equal(hone_queue_pause(f->store, bad[i], true, &f->err), HONE_INVALID_ARGUMENT);
    }
    longest[1024] = '\0';
    assert_int_equal(add(f, longest, 1, 1, 0), 1);
    const hone_store_key key = {longest, "rms_norm", "1", "0000000000000001", NULL};
    check(f, hone_queue_drop(f->store, &key, &f->err));
}

static bool count_dead(void *ctx, const hone_job *job)
{
    *(int *)ctx = *(int *)ctx * 10 + (int)strtol(job->key.key, NULL, 16);
    return true;
}

static void a_dead_holder_is_distinguished_from_a_living_one(void **state)
{
    fixture *f = *state;
    hone_job_claim lives, dead;
    int found = 0;
    add(f, cpu, 1, 2, 0);
    add(f, cpu, 2, 1, 0);
    assert_int_equal(claim(f, &lives), 1);
    assert_int_equal(claim(f, &dead), 2);
    hone_job_claim_drop(&dead); // as a death does
    check(f, hone_queue_visit_dead(f->store, count_dead, &found, &f->err));
    assert_int_equal(found, 2);
    end(f, &lives, HONE_JOB_DONE, NULL);
}

static bool see(void *ctx, const hone_job *job)
{
    snprintf(ctx, 400, "%d %u %s", (int)job->state, (unsigned)job->tries, job->reason != NULL ? job->reason : "");
    return true;
}

static void what_workers_die_of_is_set_aside_and_can_be_taken_up_again(void **state)
{
    fixture *f = *state;
    hone_job_claim claimed;
    char seen[400] = "";
    add(f, cpu, 1, 100, 0);
    for (uint32_t tries = 1; tries <= HONE_QUEUE_RETRIES; tries++) {
        f->queue.orphans_ns = 0;
        assert_int_equal(claim(f, &claimed), 1);
        assert_int_equal(claimed.job.tries, tries);
        hone_job_claim_drop(&claimed); // as a death does
    }
    f->queue.orphans_ns = 0;
    assert_int_equal(claim(f, &claimed), -1);
    check(f, hone_queue_visit(f->store, NULL, see, seen, &f->err));
    assert_non_null(strstr(seen, "2 3 3 contests were begun and none ended"));
    const hone_store_key key = {cpu, "rms_norm", "1", "0000000000000001", NULL};
    check(f, hone_queue_raise(f->store, &key, 5, &f->err));
    assert_int_equal(claim(f, &claimed), 1);
    end(f, &claimed, HONE_JOB_GIVEN_BACK, NULL);
    assert_int_equal(claim(f, &claimed), 1);
    assert_int_equal(claimed.job.tries, 1);
    end(f, &claimed, HONE_JOB_HOPELESS, "nobody can");
    check(f, hone_queue_visit(f->store, NULL, see, seen, &f->err));
    assert_string_equal(seen, "2 1 nobody can");
}

static void a_claim_that_another_took_over_ends_nothing(void **state)
{
    fixture *f = *state;
    hone_job_claim first, second;
    hone_queue other;
    add(f, cpu, 1, 100, 0);
    assert_int_equal(claim(f, &first), 1);
    check(f, hone_queue_init(&other, f->store, here, 1, &f->err));
    // The lock is lost, as with a server that began anew and a worker that came first.
    hone_ticker_stop(&first.keeper);
    hone_lease_leave(&first.lease);
    assert_int_equal(hone_queue_claim(&other, &second, &f->err), HONE_OK);
    assert_int_equal(hone_job_claim_end(&first, HONE_JOB_DONE, 0, NULL, &f->err), HONE_BUSY);
    assert_non_null(strstr(f->err.message, "another worker"));
    check(f, hone_job_claim_end(&second, HONE_JOB_DONE, 0, NULL, &f->err));
}

static void a_claimed_job_cannot_be_dropped(void **state)
{
    fixture *f = *state;
    hone_job_claim claimed;
    const hone_store_key key = {cpu, "rms_norm", "1", "0000000000000001", NULL};
    add(f, cpu, 1, 100, 0);
    assert_int_equal(claim(f, &claimed), 1);
    assert_int_equal(hone_queue_drop(f->store, &key, &f->err), HONE_BUSY);
    end(f, &claimed, HONE_JOB_GIVEN_BACK, NULL);
    check(f, hone_queue_drop(f->store, &key, &f->err));
    assert_int_equal(hone_queue_drop(f->store, &key, &f->err), HONE_NOT_FOUND);
}

// Nor is anything made beside it.
static void a_read_only_queue_is_read(void **state)
{
    fixture *f = *state;
    const bool is_file = strcmp(kind, "sqlite:") == 0;
    const hone_store_options options = {.struct_size = sizeof options, .read_only = true};
    hone_queue_stat stat;
    char path[512], seen[400] = "";
    add(f, cpu, 1, 100, 0);
    add(f, cpu, 2, 100, 0);
    hone_store_close(&f->store);
    check(f, hone_store_open_with(&options, f->url, &f->store, &f->err));
    check(f, hone_queue_visit(f->store, NULL, see, seen, &f->err));
    assert_string_not_equal(seen, "");
    check(f, hone_queue_count(f->store, cpu, &stat, &f->err));
    assert_true(stat.waiting == 2 && stat.held == 0 && stat.aside == 0);
    if (!is_file) return;
    hone_job job = {
        .key = {cpu, "rms_norm", "1", "0000000000000003", NULL}, .call = "rms_norm(f32[4,256], f32[256])", .count = 1};
    size_t added = 0;
    assert_int_equal(hone_queue_add(f->store, &job, 1, &added, &f->err), HONE_IO);
    assert_non_null(strstr(f->err.message, "cannot be written"));
    snprintf(path, sizeof path, "%s/store.db.queue-shm", f->folder.path);
    assert_int_equal(access(path, F_OK), -1);
    // Where there is none nobody is waiting, and none is made.
    hone_store_close(&f->store);
    snprintf(path, sizeof path, "%s/store.db.queue", f->folder.path);
    assert_int_equal(unlink(path), 0);
    check(f, hone_store_open_with(&options, f->url, &f->store, &f->err));
    check(f, hone_queue_count(f->store, NULL, &stat, &f->err));
    assert_true(stat.waiting == 0 && stat.held == 0 && stat.aside == 0);
    assert_int_equal(access(path, F_OK), -1);
}

static void a_pause_is_of_a_device_its_class_or_all(void **state)
{
    fixture *f = *state;
    bool paused = true;
    check(f, hone_queue_is_paused(f->store, cpu, &paused, &f->err));
    assert_false(paused);
    check(f, hone_queue_pause(f->store, "cpu", true, &f->err));
    check(f, hone_queue_is_paused(f->store, cpu, &paused, &f->err));
    assert_true(paused);
    check(f, hone_queue_is_paused(f->store, gpu, &paused, &f->err));
    assert_false(paused);
    check(f, hone_queue_pause(f->store, "cpu", false, &f->err));
    check(f, hone_queue_pause(f->store, NULL, true, &f->err));
    check(f, hone_queue_is_paused(f->store, gpu, &paused, &f->err));
    assert_true(paused);
}

enum { WORKERS = 6, JOBS = 120 };

typedef struct worker {
    pthread_t thread;
    const fixture *f;
    int *claimed; // [JOBS]
    int failures;
} worker;

static void *work(void *ctx)
{
    worker *w = ctx;
    hone_store *store = NULL;
    hone_queue queue;
    hone_error err;
    hone_job_claim claimed;
    hone_status status = hone_store_open(hone_allocator_system(), w->f->url, &store, &err);
    if (status == HONE_OK) status = hone_queue_init(&queue, store, here, 1, &err);
    while (status == HONE_OK && (status = hone_queue_claim(&queue, &claimed, &err)) == HONE_OK) {
        w->claimed[strtol(claimed.job.key.key, NULL, 16)]++;
        status = hone_job_claim_end(&claimed, HONE_JOB_DONE, 0, NULL, &err);
    }
    w->failures = status != HONE_NOT_FOUND;
    if (w->failures) fprintf(stderr, "%s\n", err.message);
    hone_store_close(&store);
    return NULL;
}

static void each_is_claimed_once_by_many(void **state)
{
    fixture *f = *state;
    static int claimed[WORKERS][JOBS];
    worker workers[WORKERS];
    memset(claimed, 0, sizeof claimed);
    for (int i = 0; i < JOBS; i++)
        add(f, cpu, i, i, 0);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (worker){.f = f, .claimed = claimed[i]};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].failures, 0);
    }
    for (int i = 0; i < JOBS; i++) {
        int times = 0;
        for (int j = 0; j < WORKERS; j++)
            times += claimed[j][i];
        assert_int_equal(times, 1);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(the_heaviest_of_the_highest_priority_comes_first),
        TEST(undecided_contests_come_after_calls_without_a_decision),
        TEST(a_device_that_no_message_can_show_is_refused),
        TEST(a_dead_holder_is_distinguished_from_a_living_one),
        TEST(what_workers_die_of_is_set_aside_and_can_be_taken_up_again),
        TEST(a_claim_that_another_took_over_ends_nothing),
        TEST(a_claimed_job_cannot_be_dropped),
        TEST(a_read_only_queue_is_read),
        TEST(a_pause_is_of_a_device_its_class_or_all),
        TEST(each_is_claimed_once_by_many),
    };
    if (argc != 2) return 2;
    kind = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
