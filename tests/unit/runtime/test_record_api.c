// The invocation registry through the runtime: what hits and misses count for, and what is kept.
#include "fixture.h"
#include "temporary_folder.h"

#include <stdio.h>

typedef struct ledger {
    size_t rows;
    uint64_t count, first_count;
    char first_call[200], kernel[HONE_NAME_SIZE], decided[32];
} ledger;

static bool note(void *ctx, const hone_store_invocation *invocation)
{
    ledger *l = ctx;
    if (l->rows++ == 0) {
        l->first_count = invocation->count;
        snprintf(l->first_call, sizeof l->first_call, "%s", invocation->call);
        snprintf(l->kernel, sizeof l->kernel, "%s", invocation->kernel != NULL ? invocation->kernel : "");
        snprintf(l->decided, sizeof l->decided, "%s", invocation->decided != NULL ? invocation->decided : "");
        assert_true(invocation->first > 1e9 && invocation->last >= invocation->first);
        assert_true(invocation->key.spec != NULL && strstr(invocation->key.spec, "kwargs_spec") != NULL);
    }
    l->count += invocation->count;
    return true;
}

static ledger read_ledger(fixture *f, const char *device)
{
    ledger l = {0};
    if (hone_record_scan(f->rt, device, note, &l, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
    return l;
}

static void each_call_is_counted_while_recording_is_on_hits_too(void **state)
{
    fixture *f = *state;
    hone_record_enable(f->rt, true);
    for (int i = 0; i < 7; i++)
        run_example(f, 4, 4);
    for (int i = 0; i < 3; i++)
        run_example(f, 5, 5);
    ledger l = read_ledger(f, NULL);
    assert_int_equal(l.rows, 2);
    assert_int_equal(l.count, 10);
    assert_int_equal(l.first_count, 7); // heaviest first
    assert_string_equal(l.first_call, "scale(f32[4,4])");
    assert_string_equal(l.kernel, "fast");
    assert_string_equal(l.decided, "heuristic");
    // Looking does not count twice.
    assert_int_equal(read_ledger(f, NULL).count, 10);
    hone_record_enable(f->rt, false);
    run_example(f, 4, 4);
    assert_int_equal(read_ledger(f, NULL).count, 10);
}

// Bound before recording was on, and after: both count, and hone_run's calls of the same plan count once.
static void a_bound_plan_counts_its_runs_while_recording_is_on(void **state)
{
    fixture *f = *state;
    const hone_plan *early = NULL, *late = NULL;
    example e, other;
    make_example(&e, 4, 4);
    make_example(&other, 5, 5);
    assert_int_equal(hone_bind(f->op, e.args, 3, &early, &f->err), HONE_OK);
    assert_int_equal(early->run(early, e.args, NULL), HONE_OK);
    hone_record_enable(f->rt, true);
    assert_int_equal(hone_bind(f->op, other.args, 3, &late, &f->err), HONE_OK);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(early->run(early, e.args, NULL), HONE_OK);
    for (int i = 0; i < 10; i++)
        assert_int_equal(late->run(late, other.args, NULL), HONE_OK);
    for (int i = 0; i < 5; i++) {
        run_example(f, 4, 4);
        run_example(f, 5, 5);
    }
    ledger l = read_ledger(f, NULL);
    assert_int_equal(l.rows, 2);
    assert_in_range(l.first_count, 1005, 1006); // the miss that bound it was noted, too
    assert_in_range(l.count, 1020, 1021);
    hone_record_enable(f->rt, false);
    assert_int_equal(early->run(early, e.args, NULL), HONE_OK);
    assert_int_equal(read_ledger(f, NULL).count, l.count);
    hone_record_enable(f->rt, true);
    assert_int_equal(early->run(early, e.args, NULL), HONE_OK);
    hone_plan_release(&early);
    run_example(f, 4, 4);
    assert_int_equal(read_ledger(f, NULL).count, l.count + 2);
    hone_plan_release(&late);
}

static void without_recording_only_the_miss_is_noted(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 5; i++)
        run_example(f, 4, 4);
    ledger l = read_ledger(f, NULL);
    assert_int_equal(l.rows, 1);
    assert_int_equal(l.count, 1);
    assert_string_equal(l.decided, "heuristic");
    // What was known is no miss.
    put_in_cache(f, 6, 6, "plain");
    run_example(f, 6, 6);
    assert_int_equal(read_ledger(f, NULL).rows, 1);
}

// Programs whose shapes never end: each call is a miss of its own, and recording is off.
static void missed_calls_are_bounded_in_the_store_and_the_newest_stay(void **state)
{
    enum { LIMIT = 10000, SHAPES = LIMIT + 2500 };
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .store = "memory:"});
    for (int i = 1; i <= SHAPES; i++) {
        char text[64];
        hone_call *call = NULL;
        hone_decision decision;
        snprintf(text, sizeof text, "scale(f32[1,%d])", i);
        assert_int_equal(
            hone_call_parse(hone_allocator_system(), hone_op_signature(f->op), text, &call, &f->err), HONE_OK);
        assert_int_equal(hone_decide_call(f->op, call, &decision, &f->err), HONE_OK);
        hone_call_release(&call);
    }
    assert_int_equal(hone_record_flush(f->rt, &f->err), HONE_OK);
    ledger l = read_ledger(f, NULL);
    assert_in_range(l.rows, LIMIT / 2, LIMIT);
    close_fixture(f);
}

static void calls_are_recorded_as_they_were_before_any_preparation(void **state)
{
    fixture *f = *state;
    hone_record_enable(f->rt, true);
    example e;
    make_example(&e, 4, 4);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hone_run(f->op, e.args, 2, NULL, &f->err), HONE_OK);
        e.args[2] = hone_of_int(2);
        assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_OK);
    }
    ledger l = read_ledger(f, NULL);
    assert_int_equal(l.rows, 1); // defaults filled in: one and the same call
    assert_int_equal(l.count, 4);
    assert_string_equal(l.first_call, "scale(f32[4,4])");
}

static void devices_are_kept_apart_and_cleared_apart(void **state)
{
    fixture *f = *state;
    size_t count = 0;
    const char *here = hone_runtime_devices(f->rt, &count)[0]->fingerprint;
    hone_call *call = describe_scale(f, 4, 4);
    assert_int_equal(hone_record_invocation(f->rt, call, 12, &f->err), HONE_OK);
    hone_call_release(&call);
    assert_int_equal(read_ledger(f, here).count, 12);
    assert_int_equal(read_ledger(f, "cpu|elsewhere").count, 0);
    assert_int_equal(hone_record_clear(f->rt, "cpu|elsewhere", &f->err), HONE_OK);
    assert_int_equal(read_ledger(f, NULL).count, 12);
    assert_int_equal(hone_record_clear(f->rt, here, &f->err), HONE_OK);
    assert_int_equal(read_ledger(f, NULL).rows, 0);
}

static void clearing_also_forgets_hits_that_were_not_read(void **state)
{
    fixture *f = *state;
    hone_record_enable(f->rt, true);
    for (int i = 0; i < 5; i++)
        run_example(f, 4, 4);
    assert_int_equal(hone_record_clear(f->rt, NULL, &f->err), HONE_OK);
    assert_int_equal(read_ledger(f, NULL).rows, 0);
    run_example(f, 4, 4);
    assert_int_equal(read_ledger(f, NULL).count, 1);
}

static void what_was_recorded_outlives_the_runtime_in_its_store(void **state)
{
    (void)state;
    temporary_folder folder;
    char url[TEMPORARY_PATH_SIZE];
    assert_int_equal(temporary_folder_make(&folder), 0);
    snprintf(url, sizeof url, "sqlite:%s/store.db", folder.path);
    for (int i = 1; i <= 3; i++) {
        fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .store = url});
        hone_record_enable(f->rt, true);
        for (int j = 0; j < 4; j++)
            run_example(f, 4, 4);
        assert_int_equal(read_ledger(f, NULL).count, 4 * (uint64_t)i);
        close_fixture(f);
    }
    temporary_folder_remove(&folder);
}

static void a_full_table_without_a_store_counts_what_it_dropped(void **state)
{
    fixture *f = *state;
    example e;
    make_example(&e, 2, 2);
    hone_record_enable(f->rt, true);
    assert_int_equal(hone_record_dropped(f->rt), 0);
    for (int i = 0; i < 5000; i++) {
        e.args[2] = hone_of_float(i + 10);
        assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_OK);
    }
    ledger l = read_ledger(f, NULL);
    assert_true(l.rows <= 4096);
    assert_int_equal(l.count + hone_record_dropped(f->rt), 5000);
    assert_true(hone_record_dropped(f->rt) > 0);
}

typedef struct heard {
    char text[2][400];
    int count;
} heard;

static void hear(void *ctx, int level, const char *message)
{
    heard *h = ctx;
    if (level == 1 && h->count < 2) snprintf(h->text[h->count], sizeof h->text[0], "%s", message);
    h->count += level == 1;
}

static void without_a_store_it_says_what_was_dropped_and_lost(void **state)
{
    (void)state;
    heard h = {.count = 0};
    example e;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .log = hear, .log_ctx = &h, .log_level = 1});
    make_example(&e, 2, 2);
    hone_record_enable(f->rt, true);
    for (int i = 0; i < 4200; i++) {
        e.args[2] = hone_of_float(i + 10);
        assert_int_equal(hone_run(f->op, e.args, 3, NULL, &f->err), HONE_OK);
    }
    assert_int_equal(hone_record_flush(f->rt, &f->err), HONE_OK);
    assert_int_equal(hone_record_dropped(f->rt), 4200 - 4096);
    close_fixture(f);
    assert_int_equal(h.count, 2); // once when it was full, and at the end
    assert_non_null(strstr(h.text[0], "the record is full at 4096 calls"));
    assert_non_null(strstr(h.text[1], "the record of 4096 calls is lost, and 104 more were dropped"));
}

static void an_evicted_plan_takes_no_counts_with_it(void **state)
{
    (void)state;
    fixture *f = open_fixture((wish){.policy = HONE_POLICY_HEURISTIC, .plan_cache_bytes = 16 * 1024});
    hone_record_enable(f->rt, true);
    for (int round = 0; round < 3; round++)
        for (int64_t i = 1; i <= 60; i++)
            run_example(f, 1, i);
    ledger l = read_ledger(f, NULL);
    assert_int_equal(l.rows, 60);
    assert_int_equal(l.count, 180);
    close_fixture(f);
}

static void an_import_is_accepted_and_an_invalid_document_refused(void **state)
{
    fixture *f = *state;
    size_t count = 99;
    assert_int_equal(hone_record_import(f->rt, "[", 1, &count, &f->err), HONE_CORRUPT);
    assert_int_equal(count, 0);
    assert_int_equal(hone_record_import(NULL, "[]", 2, &count, &f->err), HONE_INVALID_ARGUMENT);
}

static void null_is_refused(void **state)
{
    fixture *f = *state;
    assert_int_equal(hone_record_invocation(f->rt, NULL, 1, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_record_invocation(NULL, NULL, 1, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_record_scan(NULL, NULL, note, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_record_scan(f->rt, NULL, NULL, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_record_clear(NULL, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_record_flush(NULL, &f->err), HONE_INVALID_ARGUMENT);
}

#define WITH_RUNTIME(test) cmocka_unit_test_setup_teardown(test, setup_runtime, teardown_runtime)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RUNTIME(each_call_is_counted_while_recording_is_on_hits_too),
        WITH_RUNTIME(a_bound_plan_counts_its_runs_while_recording_is_on),
        WITH_RUNTIME(without_recording_only_the_miss_is_noted),
        WITH_RUNTIME(calls_are_recorded_as_they_were_before_any_preparation),
        WITH_RUNTIME(devices_are_kept_apart_and_cleared_apart),
        WITH_RUNTIME(clearing_also_forgets_hits_that_were_not_read),
        cmocka_unit_test(missed_calls_are_bounded_in_the_store_and_the_newest_stay),
        cmocka_unit_test(what_was_recorded_outlives_the_runtime_in_its_store),
        WITH_RUNTIME(a_full_table_without_a_store_counts_what_it_dropped),
        cmocka_unit_test(without_a_store_it_says_what_was_dropped_and_lost),
        cmocka_unit_test(an_evicted_plan_takes_no_counts_with_it),
        WITH_RUNTIME(an_import_is_accepted_and_an_invalid_document_refused),
        WITH_RUNTIME(null_is_refused),
    };
    return cmocka_run_group_tests_name("runtime_record_api", tests, NULL, NULL);
}
