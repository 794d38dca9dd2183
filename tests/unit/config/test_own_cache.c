// Caches of a program's own: what is put is found, by threads and processes, under overlays, with any text as a key.
#include "base/memory.h"
#include "config/own_values.h"
#include "failing_allocator.h"
#include "hone/own_cache.h"
#include "hone/tune.h"
#include "temporary_folder.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

// The real one is the tuner's, which this module is below.
void hone_text_release(char **text)
{
    const hone_allocator system = hone_allocator_system();
    hone_free(&system, *text);
    *text = NULL;
}

typedef struct ground {
    temporary_folder folder;
    char url[TEMPORARY_PATH_SIZE + 32];
    hone_error err;
} ground;

static int setup(void **state)
{
    static ground g;
    *state = &g;
    if (temporary_folder_make(&g.folder) != 0) return -1;
    snprintf(g.url, sizeof g.url, "sqlite:%s/store.db", g.folder.path);
    return 0;
}

static int teardown(void **state)
{
    ground *g = *state;
    temporary_folder_remove(&g->folder);
    return 0;
}

static hone_own_cache *open_as(ground *g, const char *name, const char *url)
{
    hone_own_cache *cache = NULL;
    const hone_own_cache_options options = {.struct_size = sizeof options, .name = name, .url = url};
    if (hone_own_cache_open(&options, &cache, &g->err) != HONE_OK) fail_msg("%s", g->err.message);
    return cache;
}

static hone_own_value value_of(const char *device, const char *operation, const char *key, const char *json)
{
    return (hone_own_value){device, operation, key, json};
}

static void put(ground *g, hone_own_cache *cache, const char *key, const char *json)
{
    const hone_own_value value = value_of("gpu:0", "matmul@v1", key, json);
    if (hone_own_cache_put(cache, &value, &g->err) != HONE_OK) fail_msg("%s", g->err.message);
}

// NULL: there is none.
static void assert_value(ground *g, hone_own_cache *cache, const hone_own_value *key, const char *json)
{
    char *found = NULL;
    hone_status status = hone_own_cache_get(cache, key, &found, &g->err);
    if (json == NULL) {
        assert_int_equal(status, HONE_NOT_FOUND);
        assert_null(found);
        return;
    }
    if (status != HONE_OK) fail_msg("%s", g->err.message);
    assert_string_equal(found, json);
    hone_text_release(&found);
}

static void assert_found(ground *g, hone_own_cache *cache, const char *key, const char *json)
{
    const hone_own_value asked = value_of("gpu:0", "matmul@v1", key, NULL);
    assert_value(g, cache, &asked, json);
}

// What holds in memory and in every store -----------------------------------------------------------------------------

typedef void story(ground *g, hone_own_cache *cache);

static void told_of_every_place(ground *g, story *tell)
{
    char folder[sizeof g->url];
    snprintf(folder, sizeof folder, "json:%s/rows", g->folder.path);
    const char *const places[] = {NULL, "memory:", g->url, folder};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        print_message("  %s\n", places[i] != NULL ? places[i] : "in memory");
        hone_own_cache *cache = open_as(g, "mine", places[i]);
        tell(g, cache);
        hone_own_cache_close(&cache);
        assert_null(cache);
    }
}

static void tell_of_values(ground *g, hone_own_cache *cache)
{
    static const char *const values[] = {
        "{\"rows\":128}", "[1,  2.50]", "null", "3", "\"text\"", "[NaN,-Infinity]", "{\"\\u00fc\":\"\xc3\xbc\"}"};
    assert_found(g, cache, "a", NULL);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        put(g, cache, "a", values[i]);
        assert_found(g, cache, "a", values[i]);
    }
    size_t count;
    assert_int_equal(hone_own_cache_size(cache, &count, &g->err), HONE_OK);
    assert_int_equal(count, 1);
}

static void any_json_comes_back_byte_for_byte(void **state)
{
    told_of_every_place(*state, tell_of_values);
}

static const char *const texts[] = {"", "a|b", "\\", "\\\"\"", "\xc3\xbcn\xc3\xaf", " ", "\n", "a\\", "\\\"\\\\\""};
enum { TEXTS = sizeof texts / sizeof texts[0] };

static bool is_text_seen(void *ctx, const hone_own_value *value)
{
    bool *seen = ctx;
    assert_string_equal(value->device, value->key);
    assert_string_equal(value->operation, value->key);
    for (int i = 0; i < TEXTS; i++)
        if (strcmp(texts[i], value->key) == 0) seen[i] = true;
    return true;
}

static void tell_of_texts(ground *g, hone_own_cache *cache)
{
    char json[32];
    bool seen[TEXTS] = {false};
    for (int i = 0; i < TEXTS; i++) {
        snprintf(json, sizeof json, "%d", i);
        const hone_own_value value = value_of(texts[i], texts[i], texts[i], json);
        assert_int_equal(hone_own_cache_put(cache, &value, &g->err), HONE_OK);
    }
    for (int i = 0; i < TEXTS; i++) {
        snprintf(json, sizeof json, "%d", i);
        const hone_own_value key = value_of(texts[i], texts[i], texts[i], NULL);
        assert_value(g, cache, &key, json);
    }
    assert_int_equal(hone_own_cache_keys(cache, is_text_seen, seen, &g->err), HONE_OK);
    for (int i = 0; i < TEXTS; i++)
        assert_true(seen[i]);
}

static void any_text_is_a_key_and_different_ones_stay_different(void **state)
{
    told_of_every_place(*state, tell_of_texts);
}

static void tell_of_wrong_values(ground *g, hone_own_cache *cache)
{
    static const char *const wrong[] = {NULL, "", "{", "1 2", "nan", "\"\xff\""};
    char *found = NULL;
    put(g, cache, "a", "1");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const hone_own_value value = value_of("gpu:0", "matmul@v1", "a", wrong[i]);
        assert_int_equal(hone_own_cache_put(cache, &value, &g->err), HONE_INVALID_ARGUMENT);
    }
    const hone_own_value keys[] = {
        value_of(NULL, "b", "c", "1"), value_of("a", NULL, "c", "1"), value_of("a", "b", NULL, "1"),
        value_of("a", "b", "\xff", "1")};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        assert_int_equal(hone_own_cache_put(cache, &keys[i], &g->err), HONE_INVALID_ARGUMENT);
        assert_int_equal(hone_own_cache_get(cache, &keys[i], &found, &g->err), HONE_INVALID_ARGUMENT);
    }
    assert_found(g, cache, "a", "1");
}

static void invalid_json_and_text_are_refused_and_change_nothing(void **state)
{
    told_of_every_place(*state, tell_of_wrong_values);
}

// In memory -----------------------------------------------------------------------------------------------------------

static bool is_in_order(void *ctx, const hone_own_value *value)
{
    int *next = ctx;
    char expected[16];
    snprintf(expected, sizeof expected, "%d", (*next)++);
    assert_string_equal(value->key, expected);
    return *next < 90;
}

static void caches_in_memory_are_independent_and_forget_when_asked(void **state)
{
    ground *g = *state;
    hone_own_cache *one = open_as(g, NULL, NULL), *other = open_as(g, NULL, NULL);
    char key[16];
    int next = 0;
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "%d", i);
        put(g, one, key, key);
    }
    assert_found(g, other, "1", NULL);
    assert_int_equal(hone_own_cache_keys(one, is_in_order, &next, &g->err), HONE_OK);
    assert_int_equal(next, 90); // the oldest first, until visit has enough
    assert_int_equal(hone_own_cache_clear(one, &g->err), HONE_OK);
    size_t count = 7;
    assert_int_equal(hone_own_cache_size(one, &count, &g->err), HONE_OK);
    assert_int_equal(count, 0);
    assert_found(g, one, "1", NULL);
    put(g, one, "1", "true");
    assert_found(g, one, "1", "true");
    hone_own_cache_close(&one);
    hone_own_cache_close(&other);
}

static void no_memory_changes_nothing(void **state)
{
    ground *g = *state;
    for (long long left = 0; left < 8; left++) {
        failing_allocator memory;
        hone_own_cache *cache = NULL;
        const hone_own_cache_options options = {
            .struct_size = sizeof options, .allocator = failing_allocator_of(&memory, left)};
        hone_status status = hone_own_cache_open(&options, &cache, &g->err);
        assert_int_equal(status, left < 1 ? HONE_OUT_OF_MEMORY : HONE_OK);
        if (status != HONE_OK) continue;
        const hone_own_value value = value_of("a", "b", "c", "1");
        size_t count;
        status = hone_own_cache_put(cache, &value, &g->err);
        assert_int_equal(status, left < 7 ? HONE_OUT_OF_MEMORY : HONE_OK);
        assert_int_equal(hone_own_cache_size(cache, &count, &g->err), HONE_OK);
        assert_int_equal(count, status == HONE_OK);
        hone_own_cache_close(&cache);
        assert_int_equal(atomic_load(&memory.live), 0);
    }
}

// In a store ----------------------------------------------------------------------------------------------------------

static void caches_of_one_store_differ_by_name_and_outlive_the_process(void **state)
{
    ground *g = *state;
    hone_own_cache *one = open_as(g, "one", g->url), *other = open_as(g, "\\other", g->url);
    put(g, one, "a", "1");
    put(g, other, "a", "2");
    hone_own_cache_close(&one);
    one = open_as(g, "one", g->url);
    assert_found(g, one, "a", "1");
    assert_found(g, other, "a", "2");
    hone_own_cache_close(&one);
    hone_own_cache_close(&other);
}

static void a_cache_in_a_store_forgets_for_all_who_share_it_and_no_other_cache_does(void **state)
{
    ground *g = *state;
    hone_own_cache *one = open_as(g, "one", g->url), *again = open_as(g, "one", g->url),
                   *other = open_as(g, "one and more", g->url);
    put(g, one, "a", "1");
    put(g, one, "b", "2");
    put(g, other, "a", "3");
    assert_found(g, again, "b", "2");
    assert_int_equal(hone_own_cache_clear(again, &g->err), HONE_OK);
    size_t count = 7;
    assert_int_equal(hone_own_cache_size(one, &count, &g->err), HONE_OK);
    assert_int_equal(count, 0);
    assert_found(g, one, "a", NULL);
    assert_found(g, other, "a", "3");
    put(g, one, "a", "4");
    assert_found(g, again, "a", "4");
    hone_own_cache_close(&one);
    hone_own_cache_close(&again);
    hone_own_cache_close(&other);
}

static void a_store_that_is_lent_is_not_closed(void **state)
{
    ground *g = *state;
    hone_store *store = NULL;
    hone_own_cache *cache = NULL;
    assert_int_equal(hone_store_open((hone_allocator){0}, "memory:", &store, &g->err), HONE_OK);
    for (int i = 0; i < 2; i++) {
        const hone_own_cache_options options = {.struct_size = sizeof options, .name = "mine", .store = store};
        assert_int_equal(hone_own_cache_open(&options, &cache, &g->err), HONE_OK);
        if (i == 0) put(g, cache, "a", "1");
        assert_found(g, cache, "a", "1");
        hone_own_cache_close(&cache);
    }
    hone_store_close(&store);
}

static void what_was_imported_from_ejkernels_file_of_the_name_is_found(void **state)
{
    ground *g = *state;
    hone_store *store = NULL;
    hone_own_cache *cache = NULL;
    const hone_store_foreign rows[] = {
        {"ejkernel", "matmul@v1", "gpu:0", "mine", "{\"m\":1}", "caches/matmul.json"},
        {"ejkernel", "matmul@v1", "gpu:0", "others", "{\"m\":2}", "caches/other.json"},
    };
    assert_int_equal(hone_store_open((hone_allocator){0}, "memory:", &store, &g->err), HONE_OK);
    assert_int_equal(hone_store_put_foreign(store, rows, 2, &g->err), HONE_OK);
    const hone_own_cache_options options = {.struct_size = sizeof options, .name = "matmul", .store = store};
    assert_int_equal(hone_own_cache_open(&options, &cache, &g->err), HONE_OK);
    assert_found(g, cache, "mine", "{\"m\":1}");
    assert_found(g, cache, "others", NULL);
    put(g, cache, "mine", "3");
    assert_found(g, cache, "mine", "3");
    hone_own_cache_close(&cache);
    hone_store_close(&store);
}

static void wrong_options_are_refused(void **state)
{
    ground *g = *state;
    hone_own_cache *cache = NULL;
    hone_own_cache_options options = {.struct_size = sizeof options, .url = "memory:"};
    assert_int_equal(hone_own_cache_open(&options, &cache, &g->err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(g->err.message, "name is NULL"));
    options.name = "a\n";
    assert_int_equal(hone_own_cache_open(&options, &cache, &g->err), HONE_INVALID_ARGUMENT);
    options.name = "a";
    options.url = "nothing:";
    assert_int_equal(hone_own_cache_open(&options, &cache, &g->err), HONE_INVALID_ARGUMENT);
    options.store = (hone_store *)(uintptr_t)&options;
    assert_int_equal(hone_own_cache_open(&options, &cache, &g->err), HONE_INVALID_ARGUMENT);
    assert_null(cache);
    assert_int_equal(hone_own_cache_open(NULL, &cache, &g->err), HONE_OK);
    hone_own_cache_close(&cache);
    hone_own_cache_close(&cache); // nothing
}

// Overlays ------------------------------------------------------------------------------------------------------------

static hone_own_overlay *overlay(ground *g, hone_own_overlay *parent, const char *key, const char *json)
{
    hone_own_overlay *made = NULL;
    const hone_own_value value = value_of("gpu:0", "matmul@v1", key, json);
    if (hone_own_overlay_derive((hone_allocator){0}, parent, &value, 1, &made, &g->err) != HONE_OK)
        fail_msg("%s", g->err.message);
    return made;
}

static void tell_of_overlays(ground *g, hone_own_cache *cache)
{
    put(g, cache, "a", "\"cache\"");
    put(g, cache, "c", "\"cache\"");
    hone_own_overlay *outer = overlay(g, NULL, "a", "\"outer\""), *inner = overlay(g, outer, "b", "\"inner\"");
    hone_own_overlay *again = overlay(g, inner, "a", "\"again\"");
    assert_null(hone_own_overlay_enter(again));
    hone_own_overlay_release(&outer); // the inner ones keep it
    hone_own_overlay_release(&inner);
    assert_found(g, cache, "a", "\"again\"");
    assert_found(g, cache, "b", "\"inner\"");
    assert_found(g, cache, "c", "\"cache\"");
    put(g, cache, "a", "\"new\"");
    assert_found(g, cache, "a", "\"again\"");
    size_t count;
    assert_int_equal(hone_own_cache_size(cache, &count, &g->err), HONE_OK);
    assert_int_equal(count, 2);
    assert_ptr_equal(hone_own_overlay_enter(NULL), again);
    assert_found(g, cache, "a", "\"new\"");
    assert_found(g, cache, "b", NULL);
    hone_own_overlay_release(&again);
}

static void the_newest_overlay_goes_first_and_older_ones_shine_through(void **state)
{
    told_of_every_place(*state, tell_of_overlays);
}

static void a_cache_may_be_without_overlays(void **state)
{
    ground *g = *state;
    hone_own_cache *cache = NULL;
    const hone_own_cache_options options = {.struct_size = sizeof options, .no_overlays = true};
    assert_int_equal(hone_own_cache_open(&options, &cache, &g->err), HONE_OK);
    hone_own_overlay *over = overlay(g, NULL, "a", "1"), *wrong = NULL;
    hone_own_overlay_enter(over);
    assert_found(g, cache, "a", NULL);
    hone_own_overlay_enter(NULL);
    const hone_own_value value = value_of("gpu:0", "matmul@v1", "a", "{");
    assert_int_equal(
        hone_own_overlay_derive((hone_allocator){0}, over, &value, 1, &wrong, &g->err), HONE_INVALID_ARGUMENT);
    assert_null(wrong);
    hone_own_overlay_release(&over);
    hone_own_cache_close(&cache);
}

// Threads and processes -----------------------------------------------------------------------------------------------

enum { THREADS = 4, PUTS = 50 };

typedef struct worker {
    ground *g;
    hone_own_cache *cache;
    hone_own_overlay *captured;
    int number;
    int failures;
} worker;

static void *work(void *ctx)
{
    worker *w = ctx;
    hone_error err;
    char key[32], json[32], *found = NULL;
    const hone_own_value overlaid = value_of("gpu:0", "matmul@v1", "over", NULL);
    w->failures += hone_own_overlay_enter(NULL) != NULL; // a thread starts with none
    w->failures += hone_own_cache_get(w->cache, &overlaid, &found, &err) != HONE_NOT_FOUND;
    hone_own_overlay_enter(w->captured);
    w->failures += hone_own_cache_get(w->cache, &overlaid, &found, &err) != HONE_OK;
    hone_text_release(&found);
    for (int i = 0; i < PUTS; i++) {
        snprintf(key, sizeof key, "%d-%d", w->number, i);
        snprintf(json, sizeof json, "[%d,%d]", w->number, i);
        const hone_own_value mine = value_of("cpu", "op", key, json), shared = value_of("cpu", "op", "shared", json);
        w->failures += hone_own_cache_put(w->cache, &mine, &err) != HONE_OK;
        w->failures += hone_own_cache_put(w->cache, &shared, &err) != HONE_OK;
        found = NULL;
        w->failures += hone_own_cache_get(w->cache, &mine, &found, &err) != HONE_OK || strcmp(found, json) != 0;
        hone_text_release(&found);
    }
    hone_own_overlay_enter(NULL);
    return NULL;
}

static void tell_of_threads(ground *g, hone_own_cache *cache)
{
    worker workers[THREADS];
    pthread_t threads[THREADS];
    size_t count;
    hone_own_overlay *over = overlay(g, NULL, "over", "1");
    hone_own_overlay_enter(over);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){g, cache, over, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].failures, 0);
    }
    hone_own_overlay_enter(NULL);
    hone_own_overlay_release(&over);
    assert_int_equal(hone_own_cache_size(cache, &count, &g->err), HONE_OK);
    assert_int_equal(count, THREADS * PUTS + 1);
}

static void threads_may_put_and_get_at_once(void **state)
{
    told_of_every_place(*state, tell_of_threads);
}

static void put_many(ground *g, int number)
{
    hone_own_cache *cache = open_as(g, "shared", g->url);
    char key[32];
    for (int i = 0; i < PUTS; i++) {
        snprintf(key, sizeof key, "%d-%d", number, i);
        put(g, cache, key, "true");
    }
    hone_own_cache_close(&cache);
}

static void processes_lose_nothing_of_each_other_and_see_what_is_put(void **state)
{
    ground *g = *state;
    hone_own_cache *cache = open_as(g, "shared", g->url);
    int status;
    hone_own_cache_close(&cache);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        put_many(g, 1);
        _exit(0);
    }
    put_many(g, 2);
    cache = open_as(g, "shared", g->url);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    size_t count;
    assert_int_equal(hone_own_cache_size(cache, &count, &g->err), HONE_OK);
    assert_int_equal(count, 2 * PUTS);
    assert_found(g, cache, "1-7", "true"); // it was opened before the other had ended
    hone_own_cache_close(&cache);
}

// Keys ----------------------------------------------------------------------------------------------------------------

static void the_key_of_json_is_that_of_pythons_canonical_text(void **state)
{
    ground *g = *state;
    hone_own_cache *cache = open_as(g, NULL, NULL);
    char key[HONE_OWN_KEY_SIZE], other[HONE_OWN_KEY_SIZE];
    const char *text = " {\"b\": 1.50, \"a\": [1, \"\xc3\xbc\", null]}";
    assert_int_equal(hone_own_cache_make_key(cache, text, key, sizeof key, &g->err), HONE_OK);
    assert_string_equal(key, "f440d9b3b2a23fad");
    text = "{\"a\":[1,\"\\u00fc\",null],\"b\":1.5}";
    assert_int_equal(hone_own_cache_make_key(cache, text, other, sizeof other, &g->err), HONE_OK);
    assert_string_equal(key, other);
    assert_int_equal(hone_own_cache_make_key(cache, "\"x\"", key, sizeof key, &g->err), HONE_OK);
    assert_string_equal(key, "ba2df4903a2c14e8");
    assert_int_equal(hone_own_cache_make_key(cache, "{", key, sizeof key, &g->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_own_cache_make_key(cache, "1", key, 16, &g->err), HONE_INVALID_ARGUMENT);
    hone_own_cache_close(&cache);
}

// A program knows its calls by more than texts.
typedef struct call {
    int rows, columns;
} call;

static hone_status key_of_rows(void *ctx, const void *what, char *out, size_t size, hone_error *err)
{
    const call *c = what;
    ++*(int *)ctx;
    if (c->rows < 0) {
        snprintf(err->message, sizeof err->message, "no call has %d rows", c->rows);
        return err->status = HONE_UNSUPPORTED;
    }
    snprintf(out, size, "rows%d", (c->rows + 63) / 64 * 64);
    return HONE_OK;
}

static void a_generator_of_the_programs_own_makes_keys(void **state)
{
    ground *g = *state;
    int asked = 0;
    hone_own_cache *cache = NULL;
    char key[HONE_OWN_KEY_SIZE];
    const hone_own_cache_options options = {
        .struct_size = sizeof options, .make_key = key_of_rows, .make_key_ctx = &asked};
    assert_int_equal(hone_own_cache_open(&options, &cache, &g->err), HONE_OK);
    const call calls[] = {{100, 4}, {120, 4}, {-1, 4}};
    assert_int_equal(hone_own_cache_make_key(cache, &calls[0], key, sizeof key, &g->err), HONE_OK);
    put(g, cache, key, "{\"threads\":2}");
    assert_int_equal(hone_own_cache_make_key(cache, &calls[1], key, sizeof key, &g->err), HONE_OK);
    assert_string_equal(key, "rows128");
    assert_found(g, cache, key, "{\"threads\":2}");
    assert_int_equal(hone_own_cache_make_key(cache, &calls[2], key, sizeof key, &g->err), HONE_UNSUPPORTED);
    assert_string_equal(g->err.message, "no call has -1 rows");
    assert_int_equal(asked, 3);
    hone_own_cache_close(&cache);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_json_comes_back_byte_for_byte),
        TEST(any_text_is_a_key_and_different_ones_stay_different),
        TEST(invalid_json_and_text_are_refused_and_change_nothing),
        TEST(caches_in_memory_are_independent_and_forget_when_asked),
        TEST(no_memory_changes_nothing),
        TEST(caches_of_one_store_differ_by_name_and_outlive_the_process),
        TEST(a_cache_in_a_store_forgets_for_all_who_share_it_and_no_other_cache_does),
        TEST(a_store_that_is_lent_is_not_closed),
        TEST(what_was_imported_from_ejkernels_file_of_the_name_is_found),
        TEST(wrong_options_are_refused),
        TEST(the_newest_overlay_goes_first_and_older_ones_shine_through),
        TEST(a_cache_may_be_without_overlays),
        TEST(threads_may_put_and_get_at_once),
        TEST(processes_lose_nothing_of_each_other_and_see_what_is_put),
        TEST(the_key_of_json_is_that_of_pythons_canonical_text),
        TEST(a_generator_of_the_programs_own_makes_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
