// What a lock file holds: written, read back, taken from a store, compared.
#include "failing_allocator.h"
#include "locks.h"
#include "store/records.h"
#include "temporary_folder.h"

#include <sys/stat.h>

static void assert_same_line(const hone_lock_line *a, const hone_lock_line *b)
{
    assert_string_equal(a->algorithm, b->algorithm);
    assert_string_equal(a->version, b->version);
    assert_string_equal(a->key, b->key);
    assert_string_equal(a->device, b->device);
    assert_string_equal(a->platform, b->platform);
    assert_string_equal(a->kernel, b->kernel);
    assert_string_equal(a->config, b->config);
    assert_string_equal(a->config_text, b->config_text);
    assert_string_equal(a->call == NULL ? "" : a->call, b->call == NULL ? "" : b->call);
    assert_string_equal(a->revision == NULL ? "" : a->revision, b->revision == NULL ? "" : b->revision);
}

static void a_choice_is_one_line_that_people_can_read(void **state)
{
    (void)state;
    hone_lock *lock = new_lock();
    hone_lock_line line = line_of(KEY_A, "cpu|zen4,l1=32768", "avx512", "{\"unroll\":2,\"rows_per_task\":4}");
    put_line(lock, line);
    char *text = text_of(lock);
    assert_non_null(strstr(
        text, "\nnorm@v1 0123456789abcdef cpu|zen4,l1=32768 native/avx512 rows_per_task=4 unroll=2  # norm(f32[4])\n"));
    assert_memory_equal(text, "hone.lock 2 sha256:", 19);
    free(text);
    hone_lock_release(&lock);
    assert_null(lock);
}

static void every_value_of_a_config_comes_back_as_it_was(void **state)
{
    static const struct {
        const char *json, *text;
    } configs[] = {
        {"{}", ""},
        {"{\"a\":-9223372036854775808,\"b\":9223372036854775807}", "a=-9223372036854775808 b=9223372036854775807"},
        {"{\"a\":0.1,\"b\":1.0,\"c\":-0.0,\"d\":1e-300}", "a=0.1 b=1.0 c=-0.0 d=1e-300"},
        {"{\"a\":true,\"b\":false}", "a=true b=false"},
        {"{\"a\":\"row\",\"b\":\"x86-64.v3+\",\"c\":\"_\"}", "a=row b=x86-64.v3+ c=_"},
        {"{\"a\":\"true\",\"b\":\"none\",\"c\":\"null\",\"d\":\"4\"}", "a=\"true\" b=\"none\" c=\"null\" d=\"4\""},
        {"{\"a\":\"\",\"b\":\"two words\",\"c\":\"#\"}", "a=\"\" b=\"two\\u0020words\" c=\"\\u0023\""},
        {"{\"a\":\"\\n\\\"\\\\\",\"b\":\"\\u00e4\\ud83d\\ude00\"}", "a=\"\\n\\\"\\\\\" b=\"\\u00e4\\ud83d\\ude00\""},
        {"{\"a b\":1,\"c=d\":2,\"#\":3,\"%41\":4,\"\\u00e4\":5}", "%23=3 %2541=4 a%20b=1 c%3Dd=2 %C3%A4=5"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        hone_lock *lock = new_lock();
        put_line(lock, line_of(KEY_A, "cpu", "fast", configs[i].json));
        assert_string_equal(hone_lock_at(lock, 0)->config_text, configs[i].text);
        char *text = text_of(lock);
        hone_lock *again = parsed(text);
        assert_same_line(hone_lock_at(lock, 0), hone_lock_at(again, 0));
        json_t *before = json_loads(configs[i].json, 0, NULL),
               *after = json_loads(hone_lock_at(again, 0)->config, 0, NULL);
        assert_non_null(before);
        assert_true(json_equal(before, after));
        json_decref(before);
        json_decref(after);
        free(text);
        hone_lock_release(&lock);
        hone_lock_release(&again);
    }
}

static void any_text_may_be_a_fingerprint_or_a_name(void **state)
{
    static const char *const texts[] = {
        "a b",
        "#",
        "%",
        "%20",
        "a@vb",
        "a@v",
        "@",
        "/",
        "a/b",
        "  lead",
        "tail ",
        "\t",
        "\r\n",
        "\x01\x7f",
        "\xc3\xa4lg",
        "\xff\xfe",
        "hone.lock 1 sha256:",
        "\"",
        "=",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hone_lock *lock = new_lock();
        hone_lock_line line = line_of(KEY_A, texts[i], texts[i], NULL);
        line.algorithm = texts[i];
        line.call = texts[i];
        line.revision = texts[i];
        line.version = strlen(texts[i]) < HONE_LOCK_VERSION_SIZE ? texts[i] : "1";
        put_line(lock, line);
        char *text = text_of(lock);
        size_t lines = 0;
        for (const char *at = text; *at != '\0'; at++)
            lines += *at == '\n';
        assert_int_equal(lines, 4);
        hone_lock *again = parsed(text);
        assert_int_equal(hone_lock_size(again), 1);
        assert_same_line(hone_lock_at(lock, 0), hone_lock_at(again, 0));
        assert_int_equal(hone_lock_at(again, 0)->number, 4);
        free(text);
        hone_lock_release(&lock);
        hone_lock_release(&again);
    }
}

static void a_call_that_is_not_known_leaves_no_mark(void **state)
{
    (void)state;
    hone_lock *lock = new_lock();
    hone_lock_line line = line_of(KEY_A, "cpu", "fast", NULL);
    line.call = NULL;
    put_line(lock, line);
    char *text = text_of(lock);
    assert_non_null(strstr(text, " native/fast\n"));
    hone_lock *again = parsed(text);
    assert_null(hone_lock_at(again, 0)->call);
    free(text);
    hone_lock_release(&lock);
    hone_lock_release(&again);
}

static void a_revision_stands_behind_the_kernel(void **state)
{
    (void)state;
    hone_lock *lock = new_lock();
    hone_lock_line line = line_of(KEY_A, "cpu", "f@st", "{\"unroll\":2}");
    line.revision = "3@b/c";
    put_line(lock, line);
    char *text = text_of(lock);
    assert_non_null(strstr(text, " native/f%40st@3@b/c unroll=2  # norm(f32[4])\n"));
    hone_lock *again = parsed(text);
    assert_same_line(hone_lock_at(lock, 0), hone_lock_at(again, 0));
    free(text);
    hone_lock_release(&lock);
    hone_lock_release(&again);
}

// Where none has a revision, '@' is of the kernel's name. What is written is of the newer format.
static void a_file_of_the_older_format_has_no_revisions(void **state)
{
    (void)state;
    char *older = sealed("norm@v1 " KEY_A " cpu native/f@st  # norm(f32[4])\n");
    hone_lock *lock = parsed(older);
    assert_string_equal(hone_lock_at(lock, 0)->kernel, "f@st");
    assert_null(hone_lock_at(lock, 0)->revision);
    char *text = text_of(lock);
    assert_memory_equal(text, "hone.lock 2 sha256:", 19);
    hone_lock *again = parsed(text);
    assert_same_line(hone_lock_at(lock, 0), hone_lock_at(again, 0));
    free(older);
    free(text);
    hone_lock_release(&lock);
    hone_lock_release(&again);
}

static void lines_are_sorted_whatever_the_order_they_came_in(void **state)
{
    static const char *const keys[] = {"0000000000000003", "0000000000000001", "0000000000000002"};
    static const char *const devices[] = {"gpu", "cpu"};
    char *texts[6];
    (void)state;
    for (int first = 0; first < 6; first++) {
        hone_lock *lock = new_lock();
        for (int i = 0; i < 6; i++) {
            int which = (i + first) % 6;
            put_line(lock, line_of(keys[which % 3], devices[which / 3], "fast", NULL));
        }
        assert_int_equal(hone_lock_size(lock), 6);
        for (size_t i = 1; i < 6; i++)
            assert_true(hone_lock_line_compare(hone_lock_at(lock, i - 1), hone_lock_at(lock, i)) < 0);
        texts[first] = text_of(lock);
        hone_lock_release(&lock);
    }
    for (int i = 1; i < 6; i++)
        assert_string_equal(texts[0], texts[i]);
    for (int i = 0; i < 6; i++)
        free(texts[i]);
}

static void a_line_is_found_by_its_whole_key_and_replaced_by_it(void **state)
{
    (void)state;
    hone_lock *lock = new_lock();
    put_line(lock, line_of(KEY_A, "cpu", "slow", NULL));
    put_line(lock, line_of(KEY_A, "gpu", "other", NULL));
    put_line(lock, line_of(KEY_A, "cpu", "fast", "{\"unroll\":4}"));
    assert_int_equal(hone_lock_size(lock), 2);
    assert_string_equal(hone_lock_find(lock, "norm", "1", KEY_A, "cpu")->kernel, "fast");
    assert_string_equal(hone_lock_find(lock, "norm", "1", KEY_A, "gpu")->kernel, "other");
    assert_null(hone_lock_find(lock, "norm", "2", KEY_A, "cpu"));
    assert_null(hone_lock_find(lock, "nor", "1", KEY_A, "cpu"));
    assert_null(hone_lock_find(lock, "norm", "1", KEY_B, "cpu"));
    assert_null(hone_lock_find(lock, "norm", "1", KEY_A, "tpu"));
    assert_null(hone_lock_find(NULL, "norm", "1", KEY_A, "cpu"));
    hone_lock_release(&lock);
}

static void a_file_is_replaced_and_read_back(void **state)
{
    (void)state;
    temporary_folder folder;
    char path[300];
    hone_error err;
    struct stat info;
    assert_int_equal(temporary_folder_make(&folder), 0);
    snprintf(path, sizeof path, "%s/hone.lock", folder.path);
    hone_lock *lock = new_lock(), *again = NULL;
    assert_int_equal(hone_lock_read(hone_allocator_system(), path, 0, &again, &err), HONE_NOT_FOUND);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(hone_lock_write(lock, path, &err), HONE_OK);
    assert_int_equal(chmod(path, 0600), 0);
    put_line(lock, line_of(KEY_A, "cpu", "fast", NULL));
    assert_int_equal(hone_lock_write(lock, path, &err), HONE_OK);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(hone_lock_read(hone_allocator_system(), path, 0, &again, &err), HONE_OK);
    assert_int_equal(hone_lock_size(again), 1);
    hone_lock_release(&again);
    assert_int_equal(hone_lock_read(hone_allocator_system(), folder.path, 0, &again, &err), HONE_IO);
    assert_int_equal(hone_lock_read(hone_allocator_system(), "", 0, &again, &err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_lock_read(hone_allocator_system(), path, 2, &again, &err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_lock_write(lock, folder.path, &err), HONE_IO);
    hone_lock_release(&lock);
    temporary_folder_remove(&folder);
}

// From a store --------------------------------------------------------------------------------------------------------

static void store_decision(
    hone_store *store, const char *key, const char *device, hone_regime regime, const char *kernel, const char *config)
{
    hone_error err;
    const hone_store_decision decision = {
        .key = {device, "norm", "1", key, NULL},
        .call = "norm(f32[4])",
        .kernel = kernel,
        .platform = "native",
        .config = config,
        .source = "autotune",
        .regime = regime,
        .time_ns = 1,
    };
    if (hone_store_put(store, &decision, &err) != HONE_OK) fail_msg("%s", err.message);
}

static hone_store *example_store(void)
{
    hone_store *store = NULL;
    hone_error err;
    if (hone_store_open(hone_allocator_system(), "memory:", &store, &err) != HONE_OK) fail_msg("%s", err.message);
    store_decision(store, KEY_A, "cpu", HONE_COLD, "cold", "{}");
    store_decision(store, KEY_A, "cpu", HONE_WARM, "warm", "{\"unroll\":4}");
    store_decision(store, KEY_B, "cpu", HONE_COLD, "cold", "{}");
    store_decision(store, KEY_A, "gpu", HONE_WARM, "other", "{}");
    return store;
}

static bool is_not_warm(void *ctx, const hone_store_decision *decision)
{
    ++*(int *)ctx;
    return strcmp(decision->kernel, "warm") != 0;
}

static void a_store_gives_what_it_answers_with_warm_before_cold(void **state)
{
    (void)state;
    hone_error err;
    hone_store *store = example_store();
    hone_lock *lock = new_lock();
    assert_int_equal(hone_lock_put_store(lock, store, NULL, NULL, NULL, &err), HONE_OK);
    assert_int_equal(hone_lock_size(lock), 3);
    assert_string_equal(hone_lock_find(lock, "norm", "1", KEY_A, "cpu")->kernel, "warm");
    assert_string_equal(hone_lock_find(lock, "norm", "1", KEY_B, "cpu")->kernel, "cold");
    hone_lock_release(&lock);
    lock = new_lock();
    assert_int_equal(hone_lock_put_store(lock, store, &(hone_store_key){.device = "gpu"}, NULL, NULL, &err), HONE_OK);
    assert_int_equal(hone_lock_size(lock), 1);
    hone_lock_release(&lock);
    // One that is left out is not answered for by what stands behind it.
    lock = new_lock();
    int asked = 0;
    assert_int_equal(hone_lock_put_store(lock, store, NULL, is_not_warm, &asked, &err), HONE_OK);
    assert_int_equal(asked, 3);
    assert_null(hone_lock_find(lock, "norm", "1", KEY_A, "cpu"));
    hone_lock_release(&lock);
    hone_store_close(&store);
}

static void a_stored_choice_that_no_line_can_hold_is_named(void **state)
{
    (void)state;
    hone_error err;
    hone_store *store = example_store();
    store_decision(store, "0000000000000000", "cpu", HONE_WARM, "odd", "{\"block\":[1,2]}");
    hone_lock *lock = new_lock();
    assert_int_equal(hone_lock_put_store(lock, store, NULL, NULL, NULL, &err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "0000000000000000"));
    assert_non_null(strstr(err.message, "block"));
    hone_lock_release(&lock);
    hone_store_close(&store);
}

// Comparing -----------------------------------------------------------------------------------------------------------

static bool note_difference(void *ctx, const hone_lock_change *change)
{
    char *out = ctx;
    sprintf(
        out + strlen(out), "%s>%s ", change->before == NULL ? "-" : change->before->kernel,
        change->after == NULL ? "-" : change->after->kernel);
    return true;
}

static void what_differs_is_visited_in_order(void **state)
{
    (void)state;
    hone_lock *before = new_lock(), *after = new_lock();
    put_line(before, line_of("0000000000000001", "cpu", "gone", NULL));
    put_line(before, line_of("0000000000000002", "cpu", "same", "{\"a\":1,\"b\":2}"));
    put_line(before, line_of("0000000000000003", "cpu", "old", NULL));
    put_line(before, line_of("0000000000000004", "cpu", "config", "{\"a\":1}"));
    hone_lock_line same = line_of("0000000000000002", "cpu", "same", "{\"b\":2,\"a\":1}");
    same.call = "norm(f32[9])";
    put_line(after, same);
    put_line(after, line_of("0000000000000003", "cpu", "new", NULL));
    put_line(after, line_of("0000000000000004", "cpu", "config", "{\"a\":2}"));
    put_line(after, line_of("0000000000000005", "cpu", "added", NULL));
    // Two revisions are two choices; one that is not known is any.
    for (int known = 0; known < 2; known++) {
        hone_lock_line one = line_of(known ? "0000000000000006" : "0000000000000007", "cpu", "code", NULL);
        one.revision = "1";
        put_line(before, one);
        one.revision = known ? "2" : NULL;
        put_line(after, one);
    }
    char said[200] = "";
    assert_int_equal(hone_lock_compare(before, after, note_difference, said, NULL), HONE_OK);
    assert_string_equal(said, "gone>- old>new config>config ->added code>code ");
    said[0] = '\0';
    assert_int_equal(hone_lock_compare(before, before, note_difference, said, NULL), HONE_OK);
    assert_string_equal(said, "");
    assert_int_equal(hone_lock_compare(NULL, after, note_difference, said, NULL), HONE_OK);
    assert_string_equal(said, "->same ->new ->config ->added ->code ->code ");
    hone_error err;
    assert_int_equal(hone_lock_compare(before, after, NULL, NULL, &err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "visit"));
    hone_lock_release(&before);
    hone_lock_release(&after);
}

static void without_memory_everything_fails_and_nothing_leaks(void **state)
{
    (void)state;
    hone_lock *example = new_lock();
    put_line(example, line_of(KEY_A, "cpu", "fast", "{\"a\":\"two words\"}"));
    put_line(example, line_of(KEY_B, "cpu", "fast", NULL));
    char *text = text_of(example);
    bool done = false;
    for (int allowed = 0; !done; allowed++) {
        failing_allocator memory;
        hone_allocator allocator = failing_allocator_of(&memory, allowed);
        hone_lock *lock = NULL;
        hone_error err;
        hone_status status = hone_lock_parse(allocator, "hone.lock", text, strlen(text), 0, &lock, &err);
        hone_lock_line line = line_of(KEY_A, "gpu", "fast", "{\"a\":1}");
        if (status == HONE_OK) status = hone_lock_put(lock, &line, &err);
        if (status == HONE_OK) status = hone_lock_write(lock, "/nowhere/hone.lock", &err);
        done = status == HONE_IO;
        if (!done) assert_int_equal(status, HONE_OUT_OF_MEMORY);
        hone_lock_release(&lock);
        assert_int_equal(memory.live, 0);
        assert_true(allowed < 1000);
    }
    free(text);
    hone_lock_release(&example);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_choice_is_one_line_that_people_can_read),
        cmocka_unit_test(every_value_of_a_config_comes_back_as_it_was),
        cmocka_unit_test(any_text_may_be_a_fingerprint_or_a_name),
        cmocka_unit_test(a_call_that_is_not_known_leaves_no_mark),
        cmocka_unit_test(a_revision_stands_behind_the_kernel),
        cmocka_unit_test(a_file_of_the_older_format_has_no_revisions),
        cmocka_unit_test(lines_are_sorted_whatever_the_order_they_came_in),
        cmocka_unit_test(a_line_is_found_by_its_whole_key_and_replaced_by_it),
        cmocka_unit_test(a_file_is_replaced_and_read_back),
        cmocka_unit_test(a_store_gives_what_it_answers_with_warm_before_cold),
        cmocka_unit_test(a_stored_choice_that_no_line_can_hold_is_named),
        cmocka_unit_test(what_differs_is_visited_in_order),
        cmocka_unit_test(without_memory_everything_fails_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
