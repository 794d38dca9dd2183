// Readers, writers and a tuner in one process, on one handle of a file and on handles of their own: no update is lost,
// and no reader sees half of one. Under ThreadSanitizer also: no race.
#include "hone/store.h"

#include "records.h"
#include "store/records.h"
#include "temporary_folder.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { READERS = 3, WRITERS = 3, ROUNDS = 60, KEYS = 8 };

typedef struct shared {
    char url[TEMPORARY_PATH_SIZE];
    hone_store *store;  // NULL: each thread opens its own
    atomic_int working; // writers and tuners
    atomic_int failures, torn;
} shared;

typedef struct worker {
    shared *all;
    int number;
} worker;

static hone_store *begin(shared *all)
{
    hone_store *store = all->store;
    if (store == NULL && hone_store_open(hone_allocator_system(), all->url, &store, NULL) != HONE_OK)
        atomic_fetch_add(&all->failures, 1);
    return store;
}

static void end(shared *all, hone_store *store)
{
    if (all->store == NULL) hone_store_close(&store);
}

static void count_failure(shared *all, hone_status status)
{
    if (status != HONE_OK) atomic_fetch_add(&all->failures, 1);
}

// A record says the same in two of its fields.
static hone_store_decision decision_of(int round, char config[64], const char *key)
{
    hone_store_decision decision = sample_decision();
    snprintf(config, 64, "{\"round\":%d}", round);
    decision.key.key = key;
    decision.config = config;
    decision.time_ns = round;
    return decision;
}

static void *write_decisions(void *argument)
{
    worker *w = argument;
    hone_store *store = begin(w->all);
    for (int i = 0; store != NULL && i < ROUNDS; i++) {
        char key[20], config[64];
        snprintf(key, sizeof key, "%016x", (unsigned)(i % KEYS));
        const hone_store_decision put = decision_of(w->number * ROUNDS + i, config, key);
        hone_store_invocation invocation = sample_invocation();
        count_failure(w->all, hone_store_put(store, &put, NULL));
        count_failure(w->all, hone_store_add_invocations(store, &invocation, 1, NULL));
    }
    end(w->all, store);
    atomic_fetch_sub(&w->all->working, 1);
    return NULL;
}

// Measures, stores each measurement, and merges what it decides.
static void *tune(void *argument)
{
    worker *w = argument;
    hone_store *store = begin(w->all);
    for (int i = 0; store != NULL && i < ROUNDS; i++) {
        char key[20], config[64];
        snprintf(key, sizeof key, "ffff%012x", (unsigned)(i % KEYS));
        const hone_store_decision coming = decision_of(ROUNDS - i, config, key);
        hone_store_measurement measurement = sample_measurement();
        measurement.config = config;
        count_failure(w->all, hone_store_put_measurement(store, &coming.key, &measurement, NULL));
        count_failure(w->all, hone_store_merge(store, &coming, 1, NULL, NULL, NULL));
    }
    end(w->all, store);
    atomic_fetch_sub(&w->all->working, 1);
    return NULL;
}

static bool look(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    int round = -1;
    if (sscanf(decision->config, "{\"round\":%d}", &round) != 1 || round != (int)decision->time_ns)
        atomic_fetch_add((atomic_int *)ctx, 1);
    return true;
}

static void *read_decisions(void *argument)
{
    worker *w = argument;
    hone_store *store = begin(w->all);
    while (store != NULL && atomic_load(&w->all->working) > 0) {
        hone_store_stat stat;
        count_failure(w->all, hone_store_scan(store, HONE_RECORD_DECISION, NULL, look, &w->all->torn, NULL));
        count_failure(w->all, hone_store_get_stat(store, &stat, NULL));
    }
    end(w->all, store);
    return NULL;
}

static bool note_count(void *ctx, const hone_store_record *record)
{
    const hone_store_invocation *invocation = record->invocation;
    *(uint64_t *)ctx = invocation->count;
    return true;
}

static void run_threads(const char *file, bool one_handle)
{
    enum { THREADS = READERS + WRITERS + 1 };
    static void *(*const bodies[])(void *) = {read_decisions, write_decisions, tune};
    temporary_folder folder;
    pthread_t threads[THREADS];
    worker workers[THREADS];
    shared all = {.store = NULL};
    hone_store *store = NULL;
    assert_int_equal(temporary_folder_make(&folder), 0);
    snprintf(
        all.url, sizeof all.url, "%s%s%s", file, strcmp(file, "memory:") == 0 ? "" : folder.path,
        strcmp(file, "memory:") == 0 ? "" : "/store.db");
    assert_int_equal(hone_store_open(hone_allocator_system(), all.url, &store, NULL), HONE_OK);
    if (one_handle) all.store = store;
    atomic_init(&all.working, WRITERS + 1);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){&all, i};
        int kind = i < READERS ? 0 : i < READERS + WRITERS ? 1 : 2;
        assert_int_equal(pthread_create(&threads[i], NULL, bodies[kind], &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&all.failures), 0);
    assert_int_equal(atomic_load(&all.torn), 0);
    uint64_t count = 0;
    hone_store_stat stat;
    const uint64_t expected = (uint64_t)WRITERS * ROUNDS * sample_invocation().count;
    assert_int_equal(hone_store_scan(store, HONE_RECORD_INVOCATION, NULL, note_count, &count, NULL), HONE_OK);
    assert_int_equal(count, expected);
    assert_int_equal(hone_store_get_stat(store, &stat, NULL), HONE_OK);
    assert_true(stat.decisions == 2 * KEYS && stat.measurements == ROUNDS);
    hone_store_close(&store);
    temporary_folder_remove(&folder);
}

static void threads_share_one_handle_of_a_file(void **state)
{
    (void)state;
    run_threads("sqlite:", true);
}

static void threads_have_handles_of_their_own(void **state)
{
    (void)state;
    run_threads("sqlite:", false);
}

static void threads_share_a_store_in_memory(void **state)
{
    (void)state;
    run_threads("memory:", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_one_handle_of_a_file),
        cmocka_unit_test(threads_have_handles_of_their_own),
        cmocka_unit_test(threads_share_a_store_in_memory),
    };
    return cmocka_run_group_tests_name("store threads", tests, NULL, NULL);
}
