// Decisions whose keys have the same hash: each is found, replaced, removed and set aside as if there were no other.
#include "hone/store.h"
#include "store/sqlite/place.h"

#include "fixture.h"
#include "records.h"
#include "store/records.h"

#include <sqlite3.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Found among three million: all 61 bits of their places are equal.
static const char first[] = "000000000017d6fa", second[] = "0000000000218fba";

static hone_store_key key_of(const char *text)
{
    hone_store_key key = sample_key();
    key.key = text;
    return key;
}

static void put(fixture *f, const char *text, double time_ns)
{
    hone_store_decision decision = sample_decision();
    decision.key = key_of(text);
    decision.time_ns = time_ns;
    if (hone_store_put(f->store, &decision, &f->err) != HONE_OK) fail_msg("%s", f->err.message);
}

static bool note_time(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    *(double *)ctx = decision->time_ns;
    return true;
}

// 0: there is none.
static double time_of(fixture *f, const char *text)
{
    double time_ns = 0;
    const hone_store_key key = key_of(text);
    hone_status status = hone_store_get(f->store, HONE_RECORD_DECISION, &key, HONE_WARM, note_time, &time_ns, &f->err);
    if (status != HONE_OK && status != HONE_NOT_FOUND) fail_msg("%s", f->err.message);
    return time_ns;
}

static void assert_times(fixture *f, double of_first, double of_second)
{
    assert_true(time_of(f, first) >= of_first && time_of(f, first) <= of_first);
    assert_true(time_of(f, second) >= of_second && time_of(f, second) <= of_second);
}

static void remove_key(fixture *f, const char *text)
{
    const hone_store_key key = key_of(text);
    assert_int_equal(hone_store_remove(f->store, &key, &f->err), HONE_OK);
}

static uint64_t count_decisions(fixture *f)
{
    hone_store_stat stat;
    assert_int_equal(hone_store_get_stat(f->store, &stat, &f->err), HONE_OK);
    return stat.decisions;
}

// Through a connection of its own.
static void run_sql(fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void the_two_keys_have_one_place(void **state)
{
    (void)state;
    const hone_store_key a = key_of(first), b = key_of(second);
    assert_true(hone_place_of_key(&a, HONE_WARM) == hone_place_of_key(&b, HONE_WARM));
    assert_true(hone_place_of_key(&a, HONE_WARM) != hone_place_of_key(&a, HONE_COLD));
    // Stores are looked up by it: it never changes.
    assert_true(hone_place_of_key(&a, HONE_WARM) == (int64_t)UINT64_C(0x8dde64cec04264c0));
}

static void a_filter_has_the_places_of_what_passes_it(void **state)
{
    (void)state;
    const hone_store_key key = key_of(first);
    const hone_store_key filters[] = {
        {0}, {.device = key.device}, {.device = key.device, .algorithm = key.algorithm}, {.algorithm = key.algorithm}};
    const int64_t place = hone_place_of_key(&key, HONE_WARM);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        int64_t begin, end;
        hone_place_range(&filters[i], &begin, &end);
        assert_true(begin <= place && place + HONE_PLACE_SLOTS - 1 <= end);
    }
}

static void both_are_put_replaced_and_found(void **state)
{
    fixture *f = *state;
    put(f, first, 1);
    assert_times(f, 1, 0);
    put(f, second, 2);
    assert_times(f, 1, 2);
    put(f, second, 3);
    put(f, first, 4);
    assert_times(f, 4, 3);
    assert_int_equal(count_decisions(f), 2);
}

static void when_the_first_goes_the_second_stays(void **state)
{
    fixture *f = *state;
    put(f, first, 1);
    put(f, second, 2);
    remove_key(f, first);
    assert_times(f, 0, 2);
    put(f, second, 3);
    assert_int_equal(count_decisions(f), 1);
    put(f, first, 4);
    assert_times(f, 4, 3);
    remove_key(f, first);
    remove_key(f, second);
    assert_int_equal(count_decisions(f), 0);
}

static void when_the_first_is_damaged_the_second_is_served(void **state)
{
    fixture *f = *state;
    put(f, first, 1);
    put(f, second, 2);
    run_sql(f, "UPDATE decision SET time_ns = 7 WHERE key = '000000000017d6fa'");
    assert_times(f, 0, 2);
    hone_store_health health;
    assert_int_equal(hone_store_verify(f->store, &health, &f->err), HONE_OK);
    assert_int_equal(health.quarantined, 1);
}

static void a_merge_tells_them_apart(void **state)
{
    fixture *f = *state;
    hone_store_decision decisions[] = {sample_decision(), sample_decision()};
    decisions[0].key = key_of(first);
    decisions[1].key = key_of(second);
    decisions[0].time_ns = 1;
    decisions[1].time_ns = 2;
    assert_int_equal(hone_store_merge(f->store, decisions, 2, NULL, NULL, &f->err), HONE_OK);
    assert_int_equal(hone_store_merge(f->store, decisions, 2, NULL, NULL, &f->err), HONE_OK);
    assert_int_equal(count_decisions(f), 2);
    assert_times(f, 1, 2);
}

static void a_decision_under_a_number_of_another_key_is_set_aside(void **state)
{
    fixture *f = *state;
    put(f, first, 1);
    run_sql(f, "UPDATE decision SET id = id + 8");
    hone_store_health health;
    assert_int_equal(hone_store_verify(f->store, &health, &f->err), HONE_OK);
    assert_true(health.set_aside == 1 && health.records == 0);
}

static void a_place_that_is_full_takes_no_more_and_says_so(void **state)
{
    fixture *f = *state;
    put(f, first, 1);
    for (int slot = 1; slot < HONE_PLACE_SLOTS; slot++)
        run_sql(
            f, "INSERT INTO decision SELECT max(id) + 1, device, algorithm, version, key, regime, spec, call, kernel,"
               " platform, config, source, revision, verified, time_ns, evidence, environment, checksum FROM decision");
    hone_store_decision decision = sample_decision();
    decision.key = key_of(second);
    assert_int_equal(hone_store_put(f->store, &decision, &f->err), HONE_IO);
    assert_non_null(strstr(f->err.message, "the same hash"));
    assert_times(f, 1, 0);
}

#define PLACE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(the_two_keys_have_one_place),
        PLACE_TEST(a_filter_has_the_places_of_what_passes_it),
        PLACE_TEST(both_are_put_replaced_and_found),
        PLACE_TEST(when_the_first_goes_the_second_stays),
        PLACE_TEST(when_the_first_is_damaged_the_second_is_served),
        PLACE_TEST(a_merge_tells_them_apart),
        PLACE_TEST(a_decision_under_a_number_of_another_key_is_set_aside),
        PLACE_TEST(a_place_that_is_full_takes_no_more_and_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
