// The invocation registry: counts of descriptors, bounded, spilled, never silent about what it loses.
#include "record/record.h"

#include "base/error.h"
#include "failing_allocator.h"
#include "hone/describe.h"
#include "store/ops.h"
#include "temporary_folder.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    failing_allocator memory;
    hone_recorder *recorder;
    hone_store *store;
    hone_error err;
} fixture;

enum { LIMIT = 4 };

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (f == NULL) return -1;
    hone_allocator allocator = failing_allocator_of(&f->memory, -1);
    if (hone_recorder_create(&allocator, LIMIT, &f->recorder, &f->err) != HONE_OK) return -1;
    return hone_store_open(allocator, "memory:", &f->store, &f->err) == HONE_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    hone_recorder_destroy(&f->recorder);
    hone_store_close(&f->store);
    long long live = atomic_load(&f->memory.live);
    free(f);
    return live == 0 ? 0 : -1;
}

static hone_store_invocation sample(const char *device, const char *key, uint64_t count)
{
    return (hone_store_invocation){
        .key = {device, "rms_norm", "1", key, "{\"x\":1}"},
        .call = "rms_norm(f32[8])",
        .count = count,
        .first = 100,
        .last = 200,
        .kernel = "avx2",
        .decided = "heuristic",
    };
}

static hone_status add(fixture *f, const char *device, const char *key, uint64_t count)
{
    hone_store_invocation invocation = sample(device, key, count);
    return hone_recorder_add_invocation(f->recorder, &invocation, &f->err);
}

typedef struct seen {
    size_t count, stop_after;
    char texts[1024];
} seen;

static bool note(void *ctx, const hone_store_invocation *invocation)
{
    seen *s = ctx;
    size_t used = strlen(s->texts);
    snprintf(
        s->texts + used, sizeof s->texts - used, "%s%s/%s:%llu", used == 0 ? "" : " ", invocation->key.device,
        invocation->key.key, (unsigned long long)invocation->count);
    return ++s->count != s->stop_after;
}

static void assert_known(fixture *f, hone_store *store, const char *device, const char *expected)
{
    seen s = {0};
    assert_int_equal(hone_recorder_visit(f->recorder, store, device, note, &s, &f->err), HONE_OK);
    assert_string_equal(s.texts, expected);
}

// Adding --------------------------------------------------------------------------------------------------------------

static void calls_of_one_descriptor_add_up(void **state)
{
    fixture *f = *state;
    assert_int_equal(add(f, "cpu", "k1", 2), HONE_OK);
    assert_int_equal(add(f, "cpu", "k1", 3), HONE_OK);
    assert_known(f, NULL, NULL, "cpu/k1:5");
    assert_int_equal(hone_recorder_count(f->recorder), 1);
}

static bool check_times(void *ctx, const hone_store_invocation *invocation)
{
    (void)ctx;
    assert_true(invocation->first == 50);
    assert_true(invocation->last == 200);
    assert_string_equal(invocation->kernel, "avx2"); // of the later call, though it was told first
    assert_string_equal(invocation->decided, "heuristic");
    assert_string_equal(invocation->call, "rms_norm(f32[8])");
    assert_string_equal(invocation->key.spec, "{\"x\":1}");
    return true;
}

static void the_first_and_the_last_time_and_the_last_answer_are_kept(void **state)
{
    fixture *f = *state;
    hone_store_invocation invocation = sample("cpu", "k1", 1);
    assert_int_equal(hone_recorder_add_invocation(f->recorder, &invocation, &f->err), HONE_OK);
    invocation.first = 50;
    invocation.last = 60;
    invocation.kernel = "reference";
    invocation.decided = "store";
    assert_int_equal(hone_recorder_add_invocation(f->recorder, &invocation, &f->err), HONE_OK);
    assert_int_equal(hone_recorder_visit(f->recorder, NULL, NULL, check_times, NULL, &f->err), HONE_OK);
}

static void each_part_of_the_descriptor_tells_calls_apart(void **state)
{
    fixture *f = *state;
    hone_recorder_destroy(&f->recorder);
    hone_allocator allocator = {&f->memory, failing_reallocate};
    assert_int_equal(hone_recorder_create(&allocator, 0, &f->recorder, &f->err), HONE_OK);
    hone_store_invocation invocation = sample("cpu", "k1", 1);
    assert_int_equal(hone_recorder_add_invocation(f->recorder, &invocation, &f->err), HONE_OK);
    const char **const parts[] = {
        &invocation.key.device, &invocation.key.algorithm, &invocation.key.version, &invocation.key.key,
        &invocation.key.spec};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *old = *parts[i];
        *parts[i] = "other";
        assert_int_equal(hone_recorder_add_invocation(f->recorder, &invocation, &f->err), HONE_OK);
        *parts[i] = old;
    }
    assert_int_equal(hone_recorder_count(f->recorder), 6);
}

static void a_thousand_descriptors_are_all_found_again(void **state)
{
    fixture *f = *state;
    hone_recorder_destroy(&f->recorder);
    hone_allocator allocator = {&f->memory, failing_reallocate};
    assert_int_equal(hone_recorder_create(&allocator, 0, &f->recorder, &f->err), HONE_OK);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 1000; i++) {
            char key[16];
            snprintf(key, sizeof key, "%d", i);
            assert_int_equal(add(f, "cpu", key, 1), HONE_OK);
        }
    assert_int_equal(hone_recorder_count(f->recorder), 1000);
}

typedef struct call_check {
    const hone_call *call;
    size_t count;
} call_check;

static bool check_call(void *ctx, const hone_store_invocation *invocation)
{
    call_check *check = ctx;
    assert_string_equal(invocation->key.algorithm, "scale");
    assert_string_equal(invocation->key.version, "2");
    assert_string_equal(invocation->key.key, hone_call_key(check->call));
    assert_string_equal(invocation->key.spec, hone_call_spec(check->call));
    assert_string_equal(invocation->call, hone_call_text(check->call));
    assert_true(invocation->first > 1e9 && invocation->last >= invocation->first);
    assert_int_equal(invocation->count, 7);
    check->count++;
    return true;
}

static void a_call_is_recorded_by_its_descriptor_under_its_lower_case_name(void **state)
{
    fixture *f = *state;
    hone_signature *signature = NULL;
    hone_call *call = NULL;
    assert_int_equal(
        hone_signature_parse(
            hone_allocator_system(), "Scale@v2(x: f32[n], *, by: f64 = 2.0) -> y: f32[n]", &signature, &f->err),
        HONE_OK);
    assert_int_equal(hone_call_parse(hone_allocator_system(), signature, "Scale(f32[8])", &call, &f->err), HONE_OK);
    assert_int_equal(hone_recorder_add(f->recorder, "cpu", call, 7, "avx2", "heuristic", &f->err), HONE_OK);
    call_check check = {call, 0};
    assert_int_equal(hone_recorder_visit(f->recorder, NULL, "cpu", check_call, &check, &f->err), HONE_OK);
    assert_int_equal(check.count, 1);
    hone_call_release(&call);
    hone_signature_release(&signature);
}

// Bounds --------------------------------------------------------------------------------------------------------------

static void fill(fixture *f)
{
    static const char *const keys[LIMIT] = {"k1", "k2", "k3", "k4"};
    for (size_t i = 0; i < LIMIT; i++)
        assert_int_equal(add(f, "cpu", keys[i], i + 1), HONE_OK);
}

static void a_full_table_without_a_store_drops_new_descriptors_and_counts_them(void **state)
{
    fixture *f = *state;
    fill(f);
    assert_int_equal(add(f, "cpu", "k5", 1), HONE_OK);
    assert_int_equal(add(f, "cpu", "k6", 1), HONE_OK);
    assert_int_equal(hone_recorder_dropped(f->recorder), 2);
    assert_int_equal(add(f, "cpu", "k1", 9), HONE_OK); // those that are there go on counting
    assert_known(f, NULL, NULL, "cpu/k1:10 cpu/k4:4 cpu/k3:3 cpu/k2:2");
}

static hone_store *give_store(void *ctx)
{
    return ctx;
}

static void a_full_table_is_spilled_to_the_store_and_nothing_is_lost(void **state)
{
    fixture *f = *state;
    hone_recorder_set_spill(f->recorder, give_store, f->store);
    fill(f);
    assert_int_equal(add(f, "cpu", "k5", 5), HONE_OK);
    assert_int_equal(hone_recorder_count(f->recorder), 1);
    assert_int_equal(hone_recorder_dropped(f->recorder), 0);
    assert_known(f, f->store, NULL, "cpu/k5:5 cpu/k4:4 cpu/k3:3 cpu/k2:2 cpu/k1:1");
}

// A store that cannot be written.
static hone_status refuse_invocations(
    hone_store *store, const hone_store_invocation *invocations, size_t count, hone_error *err)
{
    (void)store;
    (void)invocations;
    (void)count;
    return hone_fail(err, HONE_IO, "test", "the disk is full");
}

static void a_spill_that_fails_is_said_once_and_the_table_stays(void **state)
{
    fixture *f = *state;
    const hone_store_ops ops = {.struct_size = sizeof ops, .add_invocations = refuse_invocations};
    hone_store broken = {.ops = &ops};
    hone_mutex_init(&broken.mutex);
    hone_recorder_set_spill(f->recorder, give_store, &broken);
    fill(f);
    assert_int_equal(add(f, "cpu", "k5", 1), HONE_IO);
    assert_string_equal(f->err.message, "the disk is full");
    assert_int_equal(hone_recorder_dropped(f->recorder), 1);
    assert_int_equal(add(f, "cpu", "k6", 1), HONE_OK); // not tried again for a while
    assert_int_equal(hone_recorder_dropped(f->recorder), 2);
    assert_int_equal(hone_recorder_count(f->recorder), LIMIT);
    assert_int_equal(hone_recorder_flush(f->recorder, &broken, &f->err), HONE_IO);
    assert_int_equal(hone_recorder_count(f->recorder), LIMIT);
    hone_mutex_deinit(&broken.mutex);
}

// Store ---------------------------------------------------------------------------------------------------------------

static void flush_moves_the_table_and_does_not_count_twice(void **state)
{
    fixture *f = *state;
    fill(f);
    assert_int_equal(hone_recorder_flush(f->recorder, NULL, &f->err), HONE_OK);
    assert_int_equal(hone_recorder_count(f->recorder), LIMIT);
    assert_int_equal(hone_recorder_flush(f->recorder, f->store, &f->err), HONE_OK);
    assert_int_equal(hone_recorder_flush(f->recorder, f->store, &f->err), HONE_OK);
    assert_int_equal(hone_recorder_count(f->recorder), 0);
    assert_known(f, f->store, NULL, "cpu/k4:4 cpu/k3:3 cpu/k2:2 cpu/k1:1");
}

static void table_and_store_are_added_up_and_stay_as_they_are(void **state)
{
    fixture *f = *state;
    fill(f);
    assert_int_equal(hone_recorder_flush(f->recorder, f->store, &f->err), HONE_OK);
    assert_int_equal(add(f, "cpu", "k1", 100), HONE_OK);
    assert_int_equal(add(f, "gpu", "k9", 3), HONE_OK);
    for (int i = 0; i < 2; i++)
        assert_known(f, f->store, NULL, "cpu/k1:101 cpu/k4:4 cpu/k3:3 gpu/k9:3 cpu/k2:2");
    assert_known(f, f->store, "gpu", "gpu/k9:3");
    seen s = {.stop_after = 2};
    assert_int_equal(hone_recorder_visit(f->recorder, f->store, NULL, note, &s, &f->err), HONE_OK);
    assert_int_equal(s.count, 2);
}

static void clear_forgets_a_device_in_table_and_store(void **state)
{
    fixture *f = *state;
    assert_int_equal(add(f, "cpu", "k1", 1), HONE_OK);
    assert_int_equal(add(f, "gpu", "k1", 2), HONE_OK);
    assert_int_equal(hone_recorder_flush(f->recorder, f->store, &f->err), HONE_OK);
    assert_int_equal(add(f, "cpu", "k2", 3), HONE_OK);
    assert_int_equal(add(f, "gpu", "k2", 4), HONE_OK);
    assert_int_equal(hone_recorder_clear(f->recorder, f->store, "cpu", &f->err), HONE_OK);
    assert_known(f, f->store, NULL, "gpu/k2:4 gpu/k1:2");
    assert_int_equal(add(f, "gpu", "k2", 1), HONE_OK); // found again after the table closed its gap
    assert_known(f, f->store, NULL, "gpu/k2:5 gpu/k1:2");
    assert_int_equal(hone_recorder_clear(f->recorder, f->store, NULL, &f->err), HONE_OK);
    assert_known(f, f->store, NULL, "");
}

static void find_goes_by_the_words_of_a_label(void **state)
{
    fixture *f = *state;
    assert_int_equal(add(f, "cpu", "k1", 1), HONE_OK);
    assert_int_equal(hone_recorder_flush(f->recorder, f->store, &f->err), HONE_OK);
    assert_int_equal(add(f, "gpu", "k1", 2), HONE_OK);
    assert_int_equal(add(f, "gpu", "k2", 2), HONE_OK);
    const struct {
        const char *algorithm, *version, *key, *expected;
    } cases[] = {
        {"rms_norm", "1", "k1", "gpu/k1:2 cpu/k1:1"},
        {"rms_norm", NULL, "k2", "gpu/k2:2"},
        {"rms_norm", NULL, NULL, "gpu/k1:2 gpu/k2:2 cpu/k1:1"},
        {"rms_norm", "2", "k1", ""},
        {"softmax", "1", "k1", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        seen s = {0};
        assert_int_equal(
            hone_recorder_find(
                f->recorder, f->store, cases[i].algorithm, cases[i].version, cases[i].key, note, &s, &f->err),
            HONE_OK);
        assert_string_equal(s.texts, cases[i].expected);
    }
}

static bool add_meanwhile(void *ctx, const hone_store_invocation *invocation)
{
    fixture *f = ctx;
    (void)invocation;
    assert_int_equal(add(f, "cpu", "k3", 1), HONE_OK);
    assert_int_equal(hone_recorder_flush(f->recorder, f->store, &f->err), HONE_OK);
    return true;
}

static void a_visit_may_use_the_recorder_and_the_store(void **state)
{
    fixture *f = *state;
    assert_int_equal(add(f, "cpu", "k1", 1), HONE_OK);
    assert_int_equal(add(f, "cpu", "k2", 1), HONE_OK);
    assert_int_equal(hone_recorder_visit(f->recorder, f->store, NULL, add_meanwhile, f, &f->err), HONE_OK);
    assert_known(f, f->store, NULL, "cpu/k3:2 cpu/k1:1 cpu/k2:1");
}

// Threads and memory --------------------------------------------------------------------------------------------------

enum { THREADS = 4, ROUNDS = 500 };

static void *add_many(void *argument)
{
    fixture *f = argument;
    static const char *const keys[] = {"k1", "k2", "k3", "k4", "k5", "k6"};
    for (size_t i = 0; i < ROUNDS; i++) {
        hone_store_invocation invocation = sample("cpu", keys[i % 6], 1);
        if (hone_recorder_add_invocation(f->recorder, &invocation, NULL) != HONE_OK) return argument;
    }
    return NULL;
}

static bool sum_counts(void *ctx, const hone_store_invocation *invocation)
{
    *(uint64_t *)ctx += invocation->count;
    return true;
}

static void threads_lose_no_call(void **state)
{
    fixture *f = *state;
    pthread_t threads[THREADS];
    hone_recorder_set_spill(f->recorder, give_store, f->store);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, f), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    uint64_t sum = 0;
    assert_int_equal(hone_recorder_visit(f->recorder, f->store, NULL, sum_counts, &sum, &f->err), HONE_OK);
    assert_int_equal(sum, THREADS * ROUNDS);
}

static hone_status use_everything(hone_allocator allocator)
{
    hone_recorder *recorder = NULL;
    hone_store *store = NULL;
    hone_error err;
    seen s = {0};
    hone_store_invocation invocation = sample("cpu", "k1", 1);
    hone_status status = hone_recorder_create(&allocator, 1, &recorder, &err);
    if (status == HONE_OK) status = hone_store_open(allocator, "memory:", &store, &err);
    if (status == HONE_OK) hone_recorder_set_spill(recorder, give_store, store);
    if (status == HONE_OK) status = hone_recorder_add_invocation(recorder, &invocation, &err);
    invocation.key.key = "k2";
    if (status == HONE_OK) status = hone_recorder_add_invocation(recorder, &invocation, &err);
    if (status == HONE_OK) status = hone_recorder_visit(recorder, store, NULL, note, &s, &err);
    if (status == HONE_OK) status = hone_recorder_flush(recorder, store, &err);
    hone_recorder_destroy(&recorder);
    hone_store_close(&store);
    return status;
}

static void each_allocation_may_fail_and_nothing_leaks(void **state)
{
    (void)state;
    hone_status status = HONE_OUT_OF_MEMORY;
    for (long long left = 0; status != HONE_OK && left < 1000; left++) {
        failing_allocator memory;
        status = use_everything(failing_allocator_of(&memory, left));
        assert_true(status == HONE_OK || status == HONE_OUT_OF_MEMORY);
        assert_int_equal(atomic_load(&memory.live), 0);
    }
    assert_int_equal(status, HONE_OK);
}

// What nobody asked for -----------------------------------------------------------------------------------------------

static hone_status add_call(fixture *f, bool is_asked)
{
    hone_signature *signature = NULL;
    hone_call *call = NULL;
    hone_status status =
        hone_signature_parse(hone_allocator_system(), "twice(x: f32[n]) -> y: f32[n]", &signature, &f->err);
    if (status == HONE_OK)
        status = hone_call_parse(hone_allocator_system(), signature, "twice(f32[8])", &call, &f->err);
    if (status == HONE_OK)
        status = is_asked ? hone_recorder_add(f->recorder, "cpu", call, 1, "plain", "heuristic", &f->err)
                          : hone_recorder_add_miss(f->recorder, "cpu", call, "plain", "heuristic", &f->err);
    hone_call_release(&call);
    hone_signature_release(&signature);
    return status;
}

static void put_old(fixture *f, const char *key, const char *decided)
{
    hone_store_invocation old = sample("cpu", key, 1);
    old.decided = decided;
    assert_int_equal(hone_store_add_invocations(f->store, &old, 1, &f->err), HONE_OK);
}

static size_t rows_of(fixture *f)
{
    hone_store_stat stat;
    assert_int_equal(hone_store_get_stat(f->store, &stat, &f->err), HONE_OK);
    return (size_t)stat.invocations;
}

static void undecided_misses_expire_and_decided_or_recorded_calls_stay(void **state)
{
    fixture *f = *state;
    put_old(f, "0000000000000001", "heuristic");
    put_old(f, "0000000000000002", "transfer");
    put_old(f, "0000000000000003", "store");
    put_old(f, "0000000000000004", NULL);
    // Who records keeps all.
    assert_int_equal(add_call(f, true), HONE_OK);
    assert_int_equal(add_call(f, false), HONE_OK);
    assert_int_equal(hone_recorder_flush(f->recorder, f->store, &f->err), HONE_OK);
    assert_int_equal(rows_of(f), 5);
    hone_recorder_destroy(&f->recorder);
    assert_int_equal(hone_recorder_create(&f->store->allocator, LIMIT, &f->recorder, &f->err), HONE_OK);
    assert_int_equal(add_call(f, false), HONE_OK);
    assert_int_equal(hone_recorder_flush(f->recorder, f->store, &f->err), HONE_OK);
    assert_int_equal(rows_of(f), 3);
}

static void every_kind_of_store_keeps_the_misses_that_were_made_last(void **state)
{
    fixture *f = *state;
    temporary_folder folder;
    char sqlite[TEMPORARY_PATH_SIZE], json[TEMPORARY_PATH_SIZE];
    assert_int_equal(temporary_folder_make(&folder), 0);
    snprintf(sqlite, sizeof sqlite, "sqlite:%s/store.db", folder.path);
    snprintf(json, sizeof json, "json:%s/store.json", folder.path);
    const char *const urls[] = {"memory:", sqlite, json};
    for (size_t i = 0; i < 3; i++) {
        hone_store *store = NULL;
        hone_store_stat stat;
        assert_int_equal(hone_store_open(hone_allocator_system(), urls[i], &store, &f->err), HONE_OK);
        for (int j = 0; j < 20; j++) {
            char key[20];
            snprintf(key, sizeof key, "%016x", j);
            hone_store_invocation miss = sample("cpu", key, 1);
            miss.last = 1000 + j;
            if (j % 4 == 3) miss.decided = "store"; // 15 are left
            assert_int_equal(hone_store_add_invocations(store, &miss, 1, &f->err), HONE_OK);
        }
        assert_int_equal(store->ops->expire_misses(store, 500, 15, &f->err), HONE_OK);
        assert_int_equal(hone_store_get_stat(store, &stat, &f->err), HONE_OK);
        assert_int_equal(stat.invocations, 20);
        assert_int_equal(store->ops->expire_misses(store, 500, 5, &f->err), HONE_OK);
        assert_int_equal(hone_store_get_stat(store, &stat, &f->err), HONE_OK);
        assert_int_equal(stat.invocations, 5 + 5);
        assert_int_equal(store->ops->expire_misses(store, 1018, 5, &f->err), HONE_OK);
        assert_int_equal(hone_store_get_stat(store, &stat, &f->err), HONE_OK);
        assert_int_equal(stat.invocations, 1 + 5);
        hone_store_close(&store);
    }
    temporary_folder_remove(&folder);
}

#define RECORD_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORD_TEST(calls_of_one_descriptor_add_up),
        RECORD_TEST(the_first_and_the_last_time_and_the_last_answer_are_kept),
        RECORD_TEST(each_part_of_the_descriptor_tells_calls_apart),
        RECORD_TEST(a_thousand_descriptors_are_all_found_again),
        RECORD_TEST(a_call_is_recorded_by_its_descriptor_under_its_lower_case_name),
        RECORD_TEST(a_full_table_without_a_store_drops_new_descriptors_and_counts_them),
        RECORD_TEST(a_full_table_is_spilled_to_the_store_and_nothing_is_lost),
        RECORD_TEST(a_spill_that_fails_is_said_once_and_the_table_stays),
        RECORD_TEST(flush_moves_the_table_and_does_not_count_twice),
        RECORD_TEST(table_and_store_are_added_up_and_stay_as_they_are),
        RECORD_TEST(clear_forgets_a_device_in_table_and_store),
        RECORD_TEST(find_goes_by_the_words_of_a_label),
        RECORD_TEST(a_visit_may_use_the_recorder_and_the_store),
        RECORD_TEST(threads_lose_no_call),
        RECORD_TEST(each_allocation_may_fail_and_nothing_leaks),
        RECORD_TEST(undecided_misses_expire_and_decided_or_recorded_calls_stay),
        RECORD_TEST(every_kind_of_store_keeps_the_misses_that_were_made_last),
    };
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
