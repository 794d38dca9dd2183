// The memory cache through its public functions.
#include "fixture.h"

#include <stdio.h>

static void what_was_put_is_got_by_its_key(void **state)
{
    fixture *f = *state;
    char key[20];
    hone_entry entry = entry_for(f, 4, 4, "fast", key);
    assert_int_equal(hone_cache_size(f->rt), 0);
    assert_int_equal(hone_cache_put(f->rt, &entry, &f->err), HONE_OK);
    assert_int_equal(hone_cache_size(f->rt), 1);
    hone_decision decision;
    assert_int_equal(hone_cache_get(f->rt, NULL, "scale", key, &decision, &f->err), HONE_OK);
    assert_string_equal(decision.kernel, "fast");
    assert_string_equal(decision.key, key);
    assert_string_equal(decision.algorithm, "scale");
    assert_int_equal(decision.config.count, 2);
    assert_int_equal(decision.config.values[0], 4);
    assert_int_equal(decision.config.values[1], 1); // the position of col
    assert_false(decision.verified);
    size_t count = 0;
    const char *here = hone_runtime_devices(f->rt, &count)[0]->fingerprint;
    assert_int_equal(hone_cache_get(f->rt, here, "scale@v1", key, &decision, &f->err), HONE_OK);
    assert_int_equal(hone_cache_get(f->rt, "cpu|elsewhere", "scale", key, &decision, &f->err), HONE_NOT_FOUND);
    assert_int_equal(hone_cache_get(f->rt, NULL, "scale@v2", key, &decision, &f->err), HONE_NOT_FOUND);
}

static void get_before_put_is_not_found_and_says_which(void **state)
{
    fixture *f = *state;
    hone_decision decision;
    memset(&decision, 0x5a, sizeof decision);
    hone_decision before = decision;
    assert_int_equal(hone_cache_get(f->rt, NULL, "scale", "0123456789abcdef", &decision, &f->err), HONE_NOT_FOUND);
    assert_says(f, "scale@v1");
    assert_says(f, "0123456789abcdef");
    assert_memory_equal(&decision, &before, sizeof before);
}

static void a_second_put_replaces_the_first(void **state)
{
    fixture *f = *state;
    put_in_cache(f, 4, 4, "fast");
    put_in_cache(f, 4, 4, "plain");
    assert_int_equal(hone_cache_size(f->rt), 1);
    assert_string_equal(decide_scale(f, 4, 4).kernel, "plain");
}

static void one_device_may_know_what_another_does_not(void **state)
{
    fixture *f = *state;
    char key[20];
    hone_entry entry = entry_for(f, 4, 4, "plain", key);
    entry.device = "cpu|a|b"; // a fingerprint holds any text
    assert_int_equal(hone_cache_put(f->rt, &entry, &f->err), HONE_OK);
    hone_decision decision = decide_scale(f, 4, 4);
    assert_int_equal(decision.source, HONE_SOURCE_HEURISTIC);
    assert_int_equal(hone_cache_get(f->rt, "cpu|a|b", "scale", key, &decision, &f->err), HONE_OK);
    assert_int_equal(hone_cache_get(f->rt, "cpu|a", "scale", key, &decision, &f->err), HONE_NOT_FOUND);
}

typedef struct seen {
    fixture *f;
    int count, stop_after;
    char keys[8][20];
} seen;

static bool see(void *ctx, const char *device, const char *algorithm_version, const char *key)
{
    seen *s = ctx;
    assert_string_equal(algorithm_version, "scale@v1");
    assert_true(strncmp(device, "cpu|", 4) == 0);
    strcpy(s->keys[s->count++], key);
    // A visit may call hone.
    assert_true(hone_cache_size(s->f->rt) > 0);
    return s->count != s->stop_after;
}

static void keys_are_visited_in_the_order_of_insertion_until_the_visitor_has_enough(void **state)
{
    fixture *f = *state;
    char keys[5][20];
    for (int i = 0; i < 5; i++) {
        hone_entry entry = entry_for(f, 4, 4 + i, "plain", keys[i]);
        assert_int_equal(hone_cache_put(f->rt, &entry, &f->err), HONE_OK);
    }
    put_in_cache(f, 4, 5, "fast"); // replaced in its place
    seen all = {.f = f}, some = {.f = f, .stop_after = 2};
    assert_int_equal(hone_cache_keys(f->rt, see, &all, &f->err), HONE_OK);
    assert_int_equal(all.count, 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(all.keys[i], keys[i]);
    assert_int_equal(hone_cache_keys(f->rt, see, &some, &f->err), HONE_OK);
    assert_int_equal(some.count, 2);
    assert_int_equal(hone_cache_keys(f->rt, NULL, NULL, &f->err), HONE_INVALID_ARGUMENT);
}

static void clear_forgets_everything_and_the_plans_made_of_it(void **state)
{
    fixture *f = *state;
    put_in_cache(f, 4, 4, "plain");
    run_example(f, 4, 4);
    assert_int_equal(f->probes[PLAIN].runs, 1);
    hone_cache_clear(f->rt);
    assert_int_equal(hone_cache_size(f->rt), 0);
    assert_int_equal(f->probes[PLAIN].releases, 1);
    run_example(f, 4, 4);
    assert_int_equal(f->probes[PLAIN].runs, 1);
    hone_cache_clear(f->rt);
    hone_cache_clear(f->rt);
}

static void a_new_answer_drops_the_plans_of_its_own_call_alone(void **state)
{
    fixture *f = *state;
    put_in_cache(f, 4, 4, "plain");
    put_in_cache(f, 4, 5, "plain");
    run_example(f, 4, 4);
    run_example(f, 4, 5);
    put_in_cache(f, 4, 4, "fast");
    assert_int_equal(f->probes[PLAIN].releases, 1);
    run_example(f, 4, 5);
    assert_int_equal(f->probes[PLAIN].prepares, 2);
    run_example(f, 4, 4);
    assert_int_equal(f->probes[FAST].runs, 1);
    hone_cache_clear(f->rt);
}

static void ten_thousand_entries_are_each_found(void **state)
{
    fixture *f = *state;
    char key[20];
    hone_entry entry = entry_for(f, 4, 4, "plain", key);
    char text[20];
    entry.key = text;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 10000; i++) {
            snprintf(text, sizeof text, "%016x", (unsigned)i * 2654435761u);
            if (round == 0) assert_int_equal(hone_cache_put(f->rt, &entry, &f->err), HONE_OK);
            hone_decision decision;
            if (round == 1) assert_int_equal(hone_cache_get(f->rt, NULL, "scale", text, &decision, &f->err), HONE_OK);
        }
    }
    assert_int_equal(hone_cache_size(f->rt), 10000);
}

static void null_is_refused(void **state)
{
    fixture *f = *state;
    hone_decision decision;
    assert_int_equal(hone_cache_get(NULL, NULL, "scale", "k", &decision, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_cache_get(f->rt, NULL, NULL, "k", &decision, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_cache_get(f->rt, NULL, "scale", NULL, &decision, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_cache_get(f->rt, NULL, "scale", "k", NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_cache_put(f->rt, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_cache_put(NULL, NULL, &f->err), HONE_INVALID_ARGUMENT);
}

#define WITH_RUNTIME(test) cmocka_unit_test_setup_teardown(test, setup_runtime, teardown_runtime)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RUNTIME(what_was_put_is_got_by_its_key),
        WITH_RUNTIME(get_before_put_is_not_found_and_says_which),
        WITH_RUNTIME(a_second_put_replaces_the_first),
        WITH_RUNTIME(one_device_may_know_what_another_does_not),
        WITH_RUNTIME(keys_are_visited_in_the_order_of_insertion_until_the_visitor_has_enough),
        WITH_RUNTIME(clear_forgets_everything_and_the_plans_made_of_it),
        WITH_RUNTIME(a_new_answer_drops_the_plans_of_its_own_call_alone),
        WITH_RUNTIME(ten_thousand_entries_are_each_found),
        WITH_RUNTIME(null_is_refused),
    };
    return cmocka_run_group_tests_name("runtime_cache", tests, NULL, NULL);
}
