// What is known of near calls, from a store in memory and one in a file.
#include "failing_allocator.h"
#include "store/records.h"
#include "temporary_folder.h"
#include "transfer/index.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HERE  "cpu|AuthenticAMD,zen4,avx2,l1=1,l2=1,l3=1,threads=2"
#define THERE "cpu|GenuineIntel,skylake,sse2,l1=1,l2=1,l3=1,threads=2"

typedef struct ground {
    temporary_folder folder;
    hone_store *user, *system;
    hone_transfer *transfer;
    uint64_t stamp;
    char spec[256], key[20];
    hone_transfer_answer answer;
    hone_error err;
} ground;

// What is stored of one call: a decision for its first config, and each config measured.
typedef struct known {
    const char *device;
    int rows;
    const char *dtype; // NULL: float32
    hone_regime regime;
    const char *kernel; // NULL: "fast"
    const char *revision;
    int configs[12];  // "n", ended by 0; the first is the decision's
    double times[12]; // 0: it failed
    bool no_decision, unverified;
    const char *version;
} known;

static void make_spec(char out[256], char key[20], int rows, const char *dtype)
{
    snprintf(
        out, 256,
        "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"x\":{\"dtype\":\"%s\",\"shape\":[%d,64]}},\"method\":"
        "null}",
        dtype == NULL ? "float32" : dtype, rows);
    snprintf(key, 20, "%016x", rows + (dtype == NULL ? 0 : 1 << 20));
}

static const char *or_else(const char *text, const char *otherwise)
{
    return text == NULL ? otherwise : text;
}

static void store(ground *g, hone_store *in, known k)
{
    char spec[256], key_text[20], config[32];
    make_spec(spec, key_text, k.rows, k.dtype);
    const char *kernel = or_else(k.kernel, "fast"), *revision = or_else(k.revision, "1");
    const hone_store_key key = {or_else(k.device, HERE), "scale", or_else(k.version, "1"), key_text, spec};
    for (int i = 0; i < 12 && k.configs[i] != 0; i++) {
        snprintf(config, sizeof config, "{\"n\":%d}", k.configs[i]);
        const hone_store_measurement m = {
            .kernel = kernel,
            .config = config,
            .revision = revision,
            .regime = k.regime,
            .time_ns = k.times[i],
            .samples = 5,
            .failure = k.times[i] > 0 ? HONE_FAILURE_NONE : HONE_FAILURE_CRASH,
        };
        assert_int_equal(hone_store_put_measurement(in, &key, &m, &g->err), HONE_OK);
    }
    g->stamp++;
    if (k.no_decision) return;
    snprintf(config, sizeof config, "{\"n\":%d}", k.configs[0]);
    const hone_store_decision decision = {
        .key = key,
        .call = "scale(...)",
        .kernel = kernel,
        .platform = "native",
        .config = config,
        .revision = revision,
        .verified = !k.unverified,
        .regime = k.regime,
        .time_ns = k.times[0],
    };
    if (hone_store_put(in, &decision, &g->err) != HONE_OK) fail_msg("%s", g->err.message);
}

static hone_transfer_question question_of(ground *g, int rows)
{
    make_spec(g->spec, g->key, rows, NULL);
    return (hone_transfer_question){
        .key = {HERE, "scale", "1", g->key, g->spec}, .regime = HONE_WARM, .stamp = g->stamp};
}

static const hone_transfer_answer *ask_with(ground *g, const hone_transfer_question *question)
{
    hone_transfer_answer_deinit(&g->answer);
    if (hone_transfer_find(g->transfer, g->user, g->system, question, &g->answer, &g->err) != HONE_OK)
        fail_msg("%s", g->err.message);
    return &g->answer;
}

static const hone_transfer_answer *ask(ground *g, int rows)
{
    const hone_transfer_question question = question_of(g, rows);
    return ask_with(g, &question);
}

static int open_ground(void **state, const char *scheme)
{
    ground *g = calloc(1, sizeof *g);
    hone_allocator allocator = hone_allocator_system();
    char url[TEMPORARY_PATH_SIZE + 32];
    assert_non_null(g);
    temporary_folder_make(&g->folder);
    for (int i = 0; i < 2; i++) {
        snprintf(
            url, sizeof url, "%s%s%s", scheme, scheme[0] == 's' ? g->folder.path : "",
            scheme[0] != 's' ? ""
            : i == 0         ? "/user.db"
                             : "/system.db");
        assert_int_equal(hone_store_open(allocator, url, i == 0 ? &g->user : &g->system, &g->err), HONE_OK);
    }
    assert_int_equal(hone_transfer_create(&allocator, 0, &g->transfer, &g->err), HONE_OK);
    g->answer.arena.allocator = allocator;
    *state = g;
    return 0;
}

static int in_memory(void **state)
{
    return open_ground(state, "memory:");
}

static int in_a_file(void **state)
{
    return open_ground(state, "sqlite:");
}

static int teardown(void **state)
{
    ground *g = *state;
    hone_transfer_answer_deinit(&g->answer);
    hone_transfer_destroy(&g->transfer);
    hone_store_close(&g->user);
    hone_store_close(&g->system);
    temporary_folder_remove(&g->folder);
    free(g);
    return 0;
}

static void assert_first(const hone_transfer_answer *answer, const char *config)
{
    assert_true(answer->proposal_count > 0);
    assert_string_equal(answer->proposals[0].config, config);
}

static void nothing_stored_answers_nothing(void **state)
{
    ground *g = *state;
    const hone_transfer_answer *answer = ask(g, 8);
    assert_int_equal(answer->neighbour_count, 0);
    assert_int_equal(answer->proposal_count, 0);
}

static void the_nearest_call_has_the_first_word(void **state)
{
    ground *g = *state;
    store(g, g->user, (known){.rows = 16, .configs = {1, 2}, .times = {100, 150}});
    store(g, g->user, (known){.rows = 4096, .configs = {2, 1}, .times = {100, 150}});
    const hone_transfer_answer *answer = ask(g, 32);
    assert_int_equal(answer->neighbour_count, 2);
    assert_true(answer->neighbours[0].distance == 1);
    assert_true(answer->neighbours[1].distance == 7);
    assert_int_equal(answer->neighbours[0].count, 2);
    assert_true(fabs(answer->neighbours[0].choices[1].relative - 1.5) < 1e-12);
    assert_first(answer, "{\"n\":1}");
    // exp of the mean logarithm, weighted by 1 / (.25 + distance).
    double near = 1 / 1.25, far = 1 / 7.25;
    assert_true(fabs(answer->proposals[0].relative - exp(far * log(1.5) / (near + far))) < 1e-9);
    assert_first(ask(g, 2048), "{\"n\":2}");
}

static void a_config_that_is_good_everywhere_comes_before_the_best_of_one(void **state)
{
    ground *g = *state;
    for (int i = 0; i < 6; i++)
        store(g, g->user, (known){.rows = 16 << i, .configs = {10 + i, 1}, .times = {100, 101}});
    assert_first(ask(g, 60), "{\"n\":1}");
}

static void the_best_eight_of_each_call_are_kept(void **state)
{
    ground *g = *state;
    store(
        g, g->user,
        (known){
            .rows = 16,
            .configs = {7, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11},
            .times = {100, 110, 190, 130, 180, 120, 0, 170, 160, 150, 140}});
    const hone_transfer_answer *answer = ask(g, 32);
    static const int expected[] = {7, 1, 5, 3, 11, 10, 9, 8};
    assert_int_equal(answer->neighbours[0].count, HONE_TRANSFER_CHOICES);
    for (size_t i = 0; i < HONE_TRANSFER_CHOICES; i++) {
        char config[32];
        snprintf(config, sizeof config, "{\"n\":%d}", expected[i]);
        assert_string_equal(answer->neighbours[0].choices[i].config, config);
    }
}

static void other_devices_and_versions_answer_from_further_away(void **state)
{
    ground *g = *state;
    store(g, g->user, (known){.device = THERE, .rows = 32, .configs = {1}, .times = {100}});
    store(g, g->user, (known){.version = "2", .rows = 32, .configs = {2}, .times = {100}});
    const hone_transfer_answer *answer = ask(g, 32);
    assert_int_equal(answer->neighbour_count, 2);
    assert_true(answer->neighbours[0].distance == 1);
    assert_string_equal(answer->neighbours[0].version, "2");
    assert_true(answer->neighbours[1].distance == 4);
    assert_string_equal(answer->neighbours[1].device, THERE);
}

static void regimes_dtypes_and_what_was_not_verified_stay_apart(void **state)
{
    ground *g = *state;
    store(g, g->user, (known){.rows = 16, .regime = HONE_COLD, .configs = {1}, .times = {100}});
    store(g, g->user, (known){.rows = 16, .dtype = "float64", .configs = {2}, .times = {100}});
    store(g, g->user, (known){.rows = 64, .unverified = true, .configs = {3}, .times = {100}});
    assert_int_equal(ask(g, 32)->neighbour_count, 0);
    hone_transfer_question question = question_of(g, 32);
    question.regime = HONE_COLD;
    assert_int_equal(ask_with(g, &question)->neighbour_count, 1);
    assert_first(&g->answer, "{\"n\":1}");
    // A warm and a cold measurement of one key: each decision has its own.
    store(g, g->user, (known){.rows = 16, .configs = {4, 5}, .times = {100, 110}});
    assert_int_equal(ask(g, 32)->neighbours[0].count, 2);
    assert_int_equal(ask_with(g, &question)->neighbours[0].count, 1);
}

static void the_users_decision_stands_before_the_systems_of_the_same_call(void **state)
{
    ground *g = *state;
    store(g, g->system, (known){.rows = 16, .configs = {1}, .times = {100}});
    store(g, g->user, (known){.rows = 16, .configs = {2}, .times = {100}});
    store(g, g->system, (known){.rows = 64, .configs = {3}, .times = {100}});
    const hone_transfer_answer *answer = ask(g, 32);
    assert_int_equal(answer->neighbour_count, 2);
    assert_string_equal(answer->neighbours[0].choices[0].config, "{\"n\":2}");
    assert_string_equal(answer->neighbours[1].choices[0].config, "{\"n\":3}");
}

static void what_was_measured_of_the_call_itself_is_nearest(void **state)
{
    ground *g = *state;
    store(g, g->user, (known){.rows = 16, .configs = {1}, .times = {100}});
    store(g, g->user, (known){.rows = 32, .no_decision = true, .configs = {3, 2}, .times = {120, 100}});
    assert_first(ask(g, 32), "{\"n\":2}");
    assert_true(g->answer.neighbours[0].distance == 0);
    hone_transfer_question question = question_of(g, 32);
    question.others_only = true;
    assert_first(ask_with(g, &question), "{\"n\":1}");
    assert_int_equal(g->answer.neighbour_count, 1);
}

// The space of the call at hand has no config 1, and knows revision 1 alone.
static bool admits(void *ctx, const char *kernel, const char *config, const char *revision)
{
    (*(int *)ctx)++;
    return strcmp(kernel, "fast") == 0 && strcmp(config, "{\"n\":1}") != 0 && strcmp(revision, "1") == 0;
}

static void what_the_call_cannot_run_is_passed_over(void **state)
{
    ground *g = *state;
    int asked = 0;
    store(g, g->user, (known){.rows = 16, .configs = {1, 2}, .times = {100, 110}});
    store(g, g->user, (known){.rows = 15, .kernel = "gone", .configs = {3}, .times = {100}});
    store(g, g->user, (known){.rows = 64, .revision = "0", .configs = {4}, .times = {100}});
    hone_transfer_question question = question_of(g, 32);
    question.admits = admits;
    question.admits_ctx = &asked;
    const hone_transfer_answer *answer = ask_with(g, &question);
    assert_int_equal(answer->neighbour_count, 1);
    assert_int_equal(answer->proposal_count, 1);
    assert_first(answer, "{\"n\":2}");
    assert_true(asked >= 4);
}

static void what_is_put_later_is_seen_with_another_stamp(void **state)
{
    ground *g = *state;
    assert_int_equal(ask(g, 32)->neighbour_count, 0);
    store(g, g->user, (known){.rows = 16, .configs = {1}, .times = {100}});
    assert_int_equal(ask(g, 32)->neighbour_count, 1);
    assert_int_equal(ask(g, 32)->neighbour_count, 1);
}

// Of more decisions than are looked at those of the own device are the first.
static void a_limit_keeps_the_own_device(void **state)
{
    ground *g = *state;
    hone_allocator allocator = hone_allocator_system();
    hone_transfer_destroy(&g->transfer);
    assert_int_equal(hone_transfer_create(&allocator, 2, &g->transfer, &g->err), HONE_OK);
    for (int i = 0; i < 4; i++)
        store(g, g->user, (known){.device = "cpu|A,first,x,l1=1", .rows = 16 << i, .configs = {1}, .times = {100}});
    store(g, g->user, (known){.rows = 1 << 14, .configs = {2}, .times = {100}});
    const hone_transfer_answer *answer = ask(g, 32);
    assert_int_equal(answer->neighbour_count, 2);
    assert_string_equal(answer->neighbours[1].device, HERE);
}

static size_t entries_of(const hone_transfer_table *table, int rows)
{
    char spec[256], key[20];
    size_t count = 0;
    make_spec(spec, key, rows, NULL);
    for (size_t i = 0; i < table->count; i++)
        count += strcmp(table->entries[i].key, key) == 0;
    return count;
}

static void refresh(ground *g, hone_transfer_table *table)
{
    hone_store *const stores[] = {g->user, g->system};
    hone_error failure;
    assert_int_equal(hone_transfer_table_refresh(table, stores, g->stamp, &failure, &g->err), HONE_OK);
    assert_int_equal(failure.status, HONE_OK);
}

static void of_thousands_the_first_question_reads_some_and_later_ones_the_rest(void **state)
{
    enum { USERS = 520, SYSTEMS = 90, MOST = 600 };
    ground *g = *state;
    char algorithm[] = "scale", device[] = HERE;
    hone_transfer_table table = {
        .arena = {.allocator = hone_allocator_system()}, .algorithm = algorithm, .device = device, .most = MOST};
    for (int i = 0; i < USERS + SYSTEMS; i++)
        store(g, i < USERS ? g->user : g->system, (known){.rows = 1 + i, .configs = {1}, .times = {100}});
    refresh(g, &table);
    size_t first = table.count;
    assert_true(first < USERS);
    table.cost_ns = UINT64_MAX / 16; // what is read may take a tenth of the time: for ever
    refresh(g, &table);
    assert_int_equal(table.count, first);
    table.cost_ns = 0;
    refresh(g, &table);
    assert_int_equal(table.count, MOST);
    size_t different = 0;
    for (int i = 0; i < USERS + SYSTEMS; i++) {
        size_t there = entries_of(&table, 1 + i);
        assert_true(there <= 1 && (i >= USERS || there == 1));
        different += there;
    }
    assert_int_equal(different, MOST);
    refresh(g, &table);
    assert_int_equal(table.count, MOST);
    hone_arena_destroy(&table.arena);
    hone_free(&table.arena.allocator, table.entries);
}

static void a_call_without_a_canonical_text_is_refused(void **state)
{
    ground *g = *state;
    hone_transfer_question question = question_of(g, 32);
    question.key.spec = "{";
    hone_transfer_answer answer;
    assert_int_equal(hone_transfer_find(g->transfer, g->user, g->system, &question, &answer, &g->err), HONE_CORRUPT);
}

static void invalid_stored_texts_are_skipped(void **state)
{
    ground *g = *state;
    static const char *const specs[] = {"{", "[]", "{\"kwargs_spec\":[]}", "\xff"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        char key[20];
        snprintf(key, sizeof key, "%016zx", i + 1000);
        const hone_store_decision decision = {
            .key = {HERE, "scale", "1", key, specs[i]},
            .kernel = "fast",
            .platform = "native",
            .config = "{\"n\":9}",
            .verified = true,
            .time_ns = 1};
        (void)!hone_store_put(g->user, &decision, &g->err); // a store may refuse it
    }
    store(g, g->user, (known){.rows = 16, .configs = {1}, .times = {100}});
    assert_int_equal(ask(g, 32)->neighbour_count, 1);
}

static void every_allocation_may_fail(void **state)
{
    ground *g = *state;
    failing_allocator failing;
    store(g, g->user, (known){.rows = 16, .configs = {1, 2}, .times = {100, 110}});
    store(g, g->user, (known){.device = THERE, .rows = 64, .configs = {3}, .times = {100}});
    hone_status status = HONE_OUT_OF_MEMORY;
    for (int left = 0; status != HONE_OK; left++) {
        assert_true(left < 1000);
        hone_allocator allocator = failing_allocator_of(&failing, left);
        hone_transfer *transfer = NULL;
        hone_transfer_answer answer;
        status = hone_transfer_create(&allocator, 0, &transfer, &g->err);
        const hone_transfer_question question = question_of(g, 32);
        if (status == HONE_OK) status = hone_transfer_find(transfer, g->user, g->system, &question, &answer, &g->err);
        if (status == HONE_OK) {
            assert_int_equal(answer.neighbour_count, 2);
            hone_transfer_answer_deinit(&answer);
        } else {
            assert_int_equal(status, HONE_OUT_OF_MEMORY);
        }
        // Once more with what is there: a failure leaves nothing half done.
        atomic_store(&failing.left, -1);
        if (transfer != NULL) {
            assert_int_equal(hone_transfer_find(transfer, g->user, g->system, &question, &answer, &g->err), HONE_OK);
            assert_int_equal(answer.neighbour_count, 2);
            hone_transfer_answer_deinit(&answer);
        }
        hone_transfer_destroy(&transfer);
        assert_int_equal(failing.live, 0);
    }
}

static void *put_many(void *ctx)
{
    ground *g = ctx;
    ground own = {.user = g->user};
    for (int i = 0; i < 40; i++)
        store(&own, g->user, (known){.rows = 100 + i, .configs = {1, 2}, .times = {100, 110}});
    return NULL;
}

static void *ask_many(void *ctx)
{
    ground *g = ctx;
    for (uint64_t i = 0; i < 40; i++) {
        char spec[256], key[20];
        make_spec(spec, key, 32, NULL);
        const hone_transfer_question question = {
            .key = {HERE, "scale", "1", key, spec}, .regime = HONE_WARM, .stamp = i};
        hone_transfer_answer answer;
        hone_error err;
        if (hone_transfer_find(g->transfer, g->user, g->system, &question, &answer, &err) != HONE_OK) return ctx;
        if (answer.neighbour_count == 0 || strcmp(answer.proposals[0].kernel, "fast") != 0) return ctx;
        hone_transfer_answer_deinit(&answer);
    }
    return NULL;
}

static void threads_put_while_others_ask(void **state)
{
    ground *g = *state;
    pthread_t threads[4];
    store(g, g->user, (known){.rows = 16, .configs = {1}, .times = {100}});
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i < 2 ? put_many : ask_many, g), 0);
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

#define TESTS(setup)                                                                                                   \
    cmocka_unit_test_setup_teardown(nothing_stored_answers_nothing, setup, teardown),                                  \
        cmocka_unit_test_setup_teardown(the_nearest_call_has_the_first_word, setup, teardown),                         \
        cmocka_unit_test_setup_teardown(                                                                               \
            a_config_that_is_good_everywhere_comes_before_the_best_of_one, setup, teardown),                           \
        cmocka_unit_test_setup_teardown(                                                                               \
            of_thousands_the_first_question_reads_some_and_later_ones_the_rest, setup, teardown),                      \
        cmocka_unit_test_setup_teardown(the_best_eight_of_each_call_are_kept, setup, teardown),                        \
        cmocka_unit_test_setup_teardown(other_devices_and_versions_answer_from_further_away, setup, teardown),         \
        cmocka_unit_test_setup_teardown(regimes_dtypes_and_what_was_not_verified_stay_apart, setup, teardown),         \
        cmocka_unit_test_setup_teardown(                                                                               \
            the_users_decision_stands_before_the_systems_of_the_same_call, setup, teardown),                           \
        cmocka_unit_test_setup_teardown(what_was_measured_of_the_call_itself_is_nearest, setup, teardown),             \
        cmocka_unit_test_setup_teardown(what_the_call_cannot_run_is_passed_over, setup, teardown),                     \
        cmocka_unit_test_setup_teardown(what_is_put_later_is_seen_with_another_stamp, setup, teardown),                \
        cmocka_unit_test_setup_teardown(a_limit_keeps_the_own_device, setup, teardown),                                \
        cmocka_unit_test_setup_teardown(a_call_without_a_canonical_text_is_refused, setup, teardown),                  \
        cmocka_unit_test_setup_teardown(invalid_stored_texts_are_skipped, setup, teardown),                            \
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),                                   \
        cmocka_unit_test_setup_teardown(threads_put_while_others_ask, setup, teardown)

int main(void)
{
    const struct CMUnitTest memory[] = {TESTS(in_memory)}, file[] = {TESTS(in_a_file)};
    int failed = cmocka_run_group_tests_name("transfer from memory", memory, NULL, NULL);
    return failed + cmocka_run_group_tests_name("transfer from a file", file, NULL, NULL);
}
