// What becomes of stored answers and failures when the world around them has changed.
#include "ground.h"
#include "runtime/api/inner.h"
#include "store/records.h"

#include <jansson.h>
#include <stdio.h>
#include <time.h>

static hone_store *open_store(ground *g)
{
    hone_store *store = NULL;
    if (hone_store_open(hone_allocator_system(), g->url, &store, &g->f->err) != HONE_OK)
        fail_msg("%s", g->f->err.message);
    return store;
}

static hone_store_key key_of(ground *g, const hone_call *call)
{
    size_t count = 0;
    return (hone_store_key){
        hone_runtime_devices(g->f->rt, &count)[0]->fingerprint, "scale", "1", hone_call_key(call),
        hone_call_spec(call)};
}

// What another process has left for scale on 4 x 4.
static void put_row(ground *g, const char *kernel, const char *revision, const char *environment, bool verified)
{
    hone_store *store = open_store(g);
    hone_call *call = describe_scale(g->f, 4, 4);
    const hone_store_decision row = {
        .key = key_of(g, call),
        .call = hone_call_text(call),
        .kernel = kernel,
        .platform = "native",
        .config = strcmp(kernel, "fast") == 0 ? "{\"unroll\":4,\"layout\":\"col\"}" : "{}",
        .source = "autotune",
        .revision = revision,
        .verified = verified,
        .time_ns = 1234,
        .evidence = "{\"samples\":7}",
        .environment = environment,
    };
    assert_int_equal(hone_store_put(store, &row, &g->f->err), HONE_OK);
    hone_call_release(&call);
    hone_store_close(&store);
}

static void put_decision(ground *g, const char *kernel, const char *revision, const char *environment)
{
    put_row(g, kernel, revision, environment, true);
}

static void put_failure(ground *g, hone_failure kind, const char *config, const char *revision, const char *measured)
{
    hone_store *store = open_store(g);
    hone_call *call = describe_scale(g->f, 4, 4);
    const hone_store_key key = key_of(g, call);
    const hone_store_measurement failure = {
        .kernel = "fast",
        .config = config,
        .revision = revision,
        .max_error = -1,
        .failure = kind,
        .reason = "signal 11",
        .measured = measured};
    assert_int_equal(hone_store_put_measurement(store, &key, &failure, &g->f->err), HONE_OK);
    hone_call_release(&call);
    hone_store_close(&store);
}

static const char *explain(ground *g, hone_format format)
{
    static saying said;
    said.size = 0;
    hone_call *call = describe_scale(g->f, 4, 4);
    if (hone_explain(g->f->op, call, format, collect_saying, &said, &g->f->err) != HONE_OK)
        fail_msg("%s", g->f->err.message);
    hone_call_release(&call);
    return said.data;
}

static bool count_row(void *ctx, const hone_store_invocation *invocation)
{
    assert_string_equal(invocation->decided, "store");
    ++*(int *)ctx;
    return true;
}

static int noted(ground *g)
{
    int count = 0;
    assert_int_equal(hone_record_scan(g->f->rt, NULL, count_row, &count, &g->f->err), HONE_OK);
    return count;
}

static void an_answer_of_this_environment_is_served_and_nothing_more(void **state)
{
    ground *g = *state;
    put_decision(g, "plain", "1", "{\"governor\":\"of another day\",\"os_release\":\"0.01\"}");
    hone_decision decision = decide_scale(g->f, 4, 4);
    assert_int_equal(decision.source, HONE_SOURCE_STORE);
    assert_string_equal(decision.changed, "");
    assert_int_equal(decision.evidence.samples, 7);
    assert_true(decision.evidence.time_ns == 1234);
    assert_int_equal(decision.evidence.regime, HONE_WARM);
    assert_int_equal(noted(g), 0);
    assert_null(strstr(explain(g, HONE_TEXT), "checked again"));
    assert_non_null(strstr(explain(g, HONE_JSON), "\"changed\":null"));
}

static void an_answer_of_another_environment_is_served_noted_and_explained(void **state)
{
    ground *g = *state;
    put_decision(g, "plain", "1", "{\"compiler\":\"an older one\"}");
    hone_decision decision = decide_scale(g->f, 4, 4);
    assert_int_equal(decision.source, HONE_SOURCE_STORE);
    assert_string_equal(decision.kernel, "plain");
    assert_true(decision.verified);
    assert_memory_equal(decision.changed, "compiler was an older one, is ", 30);
    assert_int_equal(noted(g), 1);
    assert_non_null(strstr(explain(g, HONE_TEXT), "to be checked again: compiler was an older one, is "));
    assert_non_null(strstr(explain(g, HONE_JSON), "\"changed\":\"compiler was an older one, is "));
}

static void what_is_to_be_checked_again_is_tuned_with_the_recorded(void **state)
{
    ground *g = *state;
    put_decision(g, "plain", "1", "{\"hone\":\"0.0.1\"}");
    (void)decide_scale(g->f, 4, 4);
    const hone_tune_options options = {
        .struct_size = sizeof options, .isolation = HONE_ISOLATION_IN_PROCESS, .evaluations = 3};
    hone_result *result = NULL;
    if (hone_tune_recorded(g->f->rt, &options, &result, &g->f->err) != HONE_OK) fail_msg("%s", g->f->err.message);
    assert_int_equal(hone_result_size(result), 1);
    assert_true(hone_result_decision(result, 0)->evidence.measured > 0);
    hone_result_release(&result);
    hone_decision decision = decide_scale(g->f, 4, 4);
    assert_string_equal(decision.changed, "");
    // And is not tuned once more, unless the contest could not tell its kernels apart.
    if (hone_tune_recorded(g->f->rt, &options, &result, &g->f->err) != HONE_OK) fail_msg("%s", g->f->err.message);
    assert_true(hone_result_decision(result, 0)->evidence.started[0] != '\0');
    if (decision.evidence.undecided[0] == '\0')
        assert_true(hone_result_decision(result, 0)->evidence.time_ns == decision.evidence.time_ns);
    hone_result_release(&result);
}

// Contests left open ---------------------------------------------------------------------------------------------------

// An answer of scale on rows x cols whose contest left open which is the fastest.
static void put_open(ground *g, int64_t rows, int64_t cols, hone_regime regime, const char *evidence)
{
    hone_store *store = open_store(g);
    hone_call *call = describe_scale(g->f, rows, cols);
    const hone_store_decision row = {
        .key = key_of(g, call),
        .call = hone_call_text(call),
        .kernel = "plain",
        .platform = "native",
        .config = "{}",
        .source = "autotune",
        .revision = "1",
        .verified = true,
        .regime = regime,
        .time_ns = 1234,
        .evidence = evidence,
        .environment = "{}",
    };
    assert_int_equal(hone_store_put(store, &row, &g->f->err), HONE_OK);
    hone_call_release(&call);
    hone_store_close(&store);
    hone_cache_clear(g->f->rt);
}

static void record(ground *g, int64_t rows, int64_t cols, uint64_t count)
{
    hone_store *store = open_store(g);
    hone_call *call = describe_scale(g->f, rows, cols);
    const hone_store_invocation invocation = {
        .key = key_of(g, call), .call = hone_call_text(call), .count = count, .first = 1e9, .last = 1e9 + 1};
    assert_int_equal(hone_store_add_invocations(store, &invocation, 1, &g->f->err), HONE_OK);
    hone_call_release(&call);
    hone_store_close(&store);
}

// The calls that were measured, each once, in their order.
typedef struct order {
    char calls[200], last[60];
} order;

static void note_order(void *ctx, const hone_progress *progress)
{
    order *all = ctx;
    if (strcmp(all->last, progress->call) == 0) return;
    snprintf(all->last, sizeof all->last, "%s", progress->call);
    strcat(strcat(all->calls, progress->call), " ");
}

static hone_result *tune_the_recorded(ground *g, hone_regime regime, order *seen)
{
    *seen = (order){.calls = ""};
    const hone_tune_options options = {
        .struct_size = sizeof options,
        .isolation = HONE_ISOLATION_IN_PROCESS,
        .evaluations = 3,
        .seconds = 0.25,
        .regime = regime,
        .progress = note_order,
        .progress_ctx = seen};
    hone_result *result = NULL;
    if (hone_tune_recorded(g->f->rt, &options, &result, &g->f->err) != HONE_OK) fail_msg("%s", g->f->err.message);
    return result;
}

static const hone_evidence *evidence_of(const hone_result *result, const char *call)
{
    for (size_t i = 0; i < hone_result_size(result); i++)
        if (strcmp(hone_result_call(result, i), call) == 0) return &hone_result_decision(result, i)->evidence;
    fail_msg("no %s in the result", call);
    return NULL;
}

#define OPEN(seconds) "{\"time_ns\":1234,\"samples\":3,\"undecided\":\"1 of 2 kernels was never tried\"," seconds "}"

static void what_was_left_open_is_tuned_again_after_what_has_no_answer(void **state)
{
    ground *g = *state;
    order seen;
    put_open(g, 4, 4, HONE_WARM, OPEN("\"seconds\":0.5"));
    record(g, 4, 4, 1000);
    record(g, 4, 5, 1);
    hone_result *result = tune_the_recorded(g, HONE_WARM, &seen);
    assert_string_equal(seen.calls, "scale(f32[4,5]) scale(f32[4,4]) ");
    assert_int_equal(hone_result_size(result), 2);
    assert_true(evidence_of(result, "scale(f32[4,5])")->allowed_seconds == 0.25);
    assert_true(evidence_of(result, "scale(f32[4,4])")->allowed_seconds == 1);
    assert_true(evidence_of(result, "scale(f32[4,4])")->measured > 0);
    hone_result_release(&result);
    assert_true(decide_scale(g->f, 4, 4).evidence.allowed_seconds == 1); // it is stored
}

static void what_was_left_open_at_the_most_is_left_alone(void **state)
{
    ground *g = *state;
    order seen;
    put_open(g, 4, 4, HONE_WARM, OPEN("\"seconds\":0.1,\"allowed_seconds\":2"));
    record(g, 4, 4, 1);
    hone_result *result = tune_the_recorded(g, HONE_WARM, &seen);
    assert_string_equal(seen.calls, "");
    assert_true(evidence_of(result, "scale(f32[4,4])")->time_ns == 1234);
    assert_string_equal(evidence_of(result, "scale(f32[4,4])")->undecided, "1 of 2 kernels was never tried");
    hone_result_release(&result);
}

// A warm answer stands before the cold one that is asked for.
static void what_was_left_open_under_a_regime_is_tuned_again_under_it(void **state)
{
    ground *g = *state;
    order seen;
    put_open(g, 4, 4, HONE_WARM, "{\"time_ns\":1234,\"samples\":3}");
    put_open(g, 4, 4, HONE_COLD, OPEN("\"seconds\":0.5"));
    record(g, 4, 4, 1);
    hone_result *result = tune_the_recorded(g, HONE_WARM, &seen);
    assert_string_equal(seen.calls, "");
    hone_result_release(&result);
    result = tune_the_recorded(g, HONE_COLD, &seen);
    assert_string_equal(seen.calls, "scale(f32[4,4]) ");
    assert_true(evidence_of(result, "scale(f32[4,4])")->allowed_seconds == 1);
    hone_result_release(&result);
}

static void a_changed_kernel_makes_its_own_answers_stale_and_no_others(void **state)
{
    ground *g = *state;
    put_decision(g, "fast", "0", "{}");
    assert_int_equal(decide_scale(g->f, 4, 4).source, HONE_SOURCE_HEURISTIC);
    assert_non_null(strstr(explain(g, HONE_TEXT), "revision 0 of kernel fast, which is now 1"));
    put_decision(g, "plain", "1", "{}");
    assert_int_equal(decide_scale(g->f, 4, 4).source, HONE_SOURCE_STORE);
}

static void an_environment_that_says_nothing_changes_nothing(void **state)
{
    ground *g = *state;
    static const char *const environments[] = {NULL, "{}", "{\"later\":\"x\"}", "{\"compiler\":null}"};
    for (size_t i = 0; i < sizeof environments / sizeof environments[0]; i++) {
        put_decision(g, "plain", "1", environments[i]);
        hone_cache_clear(g->f->rt);
        assert_string_equal(decide_scale(g->f, 4, 4).changed, "");
    }
}

// The row is of unroll 4, layout col. One that was verified stands for its own config, whatever became of others.
static void a_stored_answer_of_a_kernel_found_wrong_serves_where_its_own_config_was_verified(void **state)
{
    static const struct {
        bool verified;
        hone_failure failure;
        const char *config, *revision;
        bool served;
    } rows[] = {
        {true, HONE_FAILURE_WRONG, "{\"unroll\":1,\"layout\":\"row\"}", "1", true},
        {false, HONE_FAILURE_WRONG, "{\"unroll\":1,\"layout\":\"row\"}", "1", false},
        {false, HONE_FAILURE_BOUNDS, "{\"unroll\":1,\"layout\":\"row\"}", "1", false},
        {true, HONE_FAILURE_WRONG, "{\"unroll\":4,\"layout\":\"col\"}", "1", false},
        {false, HONE_FAILURE_WRONG, "{\"unroll\":4,\"layout\":\"col\"}", "1", false},
        {true, HONE_FAILURE_WRONG, "{\"unroll\":4,\"layout\":\"col\"}", "0", true}, // of other code
        {false, HONE_FAILURE_WRONG, "{\"unroll\":1,\"layout\":\"row\"}", "0", true},
        {false, HONE_FAILURE_CRASH, "{\"unroll\":4,\"layout\":\"col\"}", "1", true}, // no wrong answer
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (i > 0) assert_int_equal(open_ground(state), 0);
        ground *g = *state;
        put_row(g, "fast", "1", "{}", rows[i].verified);
        put_failure(g, rows[i].failure, rows[i].config, rows[i].revision, "2026-01-01T00:00:00Z");
        bool served = decide_scale(g->f, 4, 4).source == HONE_SOURCE_STORE;
        if (served != rows[i].served) fail_msg("row %zu: %s", i, served ? "is served" : "is not served");
        if (!served) assert_non_null(strstr(explain(g, HONE_TEXT), "was found wrong for"));
        if (i + 1 < sizeof rows / sizeof rows[0]) (void)close_ground(state);
    }
}

static void explain_shows_what_failed_and_until_when(void **state)
{
    ground *g = *state;
    put_failure(g, HONE_FAILURE_CRASH, "{\"unroll\":1,\"layout\":\"row\"}", "1", "2999-01-01T00:00:00Z");
    put_failure(g, HONE_FAILURE_CRASH, "{\"unroll\":2,\"layout\":\"row\"}", "0", "2026-01-01T00:00:00Z");
    const char *said = explain(g, HONE_TEXT);
    assert_non_null(strstr(said, "failed: 2 may be tried again (its date is in the future)"));
    assert_non_null(strstr(said, "crash {\"unroll\":1,\"layout\":\"row\"}: signal 11"));
    json_t *document = json_loads(explain(g, HONE_JSON), 0, NULL);
    const json_t *kernels = json_object_get(document, "kernels"), *kernel, *row;
    size_t i, j, found = 0;
    json_array_foreach(kernels, i, kernel) json_array_foreach(json_object_get(kernel, "failures"), j, row)
    {
        found++;
        assert_string_equal(json_string_value(json_object_get(kernel, "name")), "fast");
        assert_string_equal(json_string_value(json_object_get(row, "kind")), "crash");
        assert_true(json_is_false(json_object_get(row, "believed")));
    }
    assert_int_equal(found, 2);
    json_decref(document);
}

static void a_failure_that_stands_says_when_it_is_tried_again(void **state)
{
    ground *g = *state;
    // Made by a contest of today: nobody knows which day that is.
    for (int i = 0; i < KERNELS; i++)
        atomic_store(&g->f->probes[i].prepare_status, i == PLAIN ? HONE_OK : HONE_KERNEL_FAILED);
    hone_call *call = describe_scale(g->f, 4, 4);
    hone_result *result = NULL;
    const hone_tune_options options = {
        .struct_size = sizeof options, .isolation = HONE_ISOLATION_IN_PROCESS, .evaluations = 3};
    if (hone_tune(g->f->op, call, &options, &result, &g->f->err) != HONE_OK) fail_msg("%s", g->f->err.message);
    hone_result_release(&result);
    hone_call_release(&call);
    assert_non_null(strstr(explain(g, HONE_TEXT), "prepare, not tried again before 2"));
    assert_non_null(strstr(explain(g, HONE_JSON), "\"believed\":true"));
}

static void failures_that_stand_and_those_that_do_not_are_told_apart(void **state)
{
    ground *g = *state;
    char today[32];
    const time_t now = time(NULL);
    struct tm utc;
    assert_true(strftime(today, sizeof today, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc)) > 0);
    put_failure(g, HONE_FAILURE_CRASH, "{\"unroll\":1,\"layout\":\"row\"}", "1", today);
    const char *said = explain(g, HONE_TEXT);
    assert_non_null(strstr(said, "failed: 1 crash, not tried again before 2"));
    assert_null(strstr(said, "may be tried again"));
    put_failure(g, HONE_FAILURE_CRASH, "{\"unroll\":2,\"layout\":\"row\"}", "0", "2026-01-01T00:00:00Z");
    said = explain(g, HONE_TEXT);
    assert_non_null(strstr(said, "failed: 1 crash, not tried again before 2"));
    assert_non_null(strstr(said, "; 1 may be tried again (of another time, revision or environment)"));
}

static void assert_said(hone_runtime *rt, bool expected)
{
    hone_result *result = NULL;
    hone_error err;
    const hone_tune_options options = {
        .struct_size = sizeof options, .isolation = HONE_ISOLATION_IN_PROCESS, .evaluations = 2, .fresh = true};
    assert_int_equal(hone_tune_text(rt, "scale(f32[2,2])", &options, &result, &err), HONE_OK);
    const hone_evidence *evidence = &hone_result_decision(result, 0)->evidence;
    assert_int_equal(strchr(evidence->who, '@') != NULL, expected);
    char *document = NULL;
    assert_int_equal(hone_result_json(result, &document, &err), HONE_OK);
    assert_int_equal(strstr(document, "\"who\":\"") != NULL, expected);
    hone_text_release(&document);
    hone_result_release(&result);
}

static void provenance_is_stored_only_on_request(void **state)
{
    ground *g = *state;
    assert_said(g->f->rt, false);
    fixture *asked = open_fixture((wish){.flags = HONE_RUNTIME_PROVENANCE});
    assert_said(asked->rt, true);
    close_fixture(asked);
    setenv("HONE_PROVENANCE", "1", 1);
    asked = open_fixture((wish){.environment = true, .store = "none"});
    assert_said(asked->rt, true);
    close_fixture(asked);
    setenv("HONE_PROVENANCE", "yes", 1);
    hone_runtime *rt = NULL;
    assert_int_equal(open_bare(&(wish){.environment = true, .store = "none"}, &rt, &g->f->err), HONE_INVALID_ARGUMENT);
    assert_says(g->f, "HONE_PROVENANCE");
    unsetenv("HONE_PROVENANCE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            an_answer_of_this_environment_is_served_and_nothing_more, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(
            an_answer_of_another_environment_is_served_noted_and_explained, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(
            what_is_to_be_checked_again_is_tuned_with_the_recorded, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(
            what_was_left_open_is_tuned_again_after_what_has_no_answer, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(what_was_left_open_at_the_most_is_left_alone, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(
            what_was_left_open_under_a_regime_is_tuned_again_under_it, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(
            a_changed_kernel_makes_its_own_answers_stale_and_no_others, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(an_environment_that_says_nothing_changes_nothing, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(
            a_stored_answer_of_a_kernel_found_wrong_serves_where_its_own_config_was_verified, open_ground,
            close_ground),
        cmocka_unit_test_setup_teardown(explain_shows_what_failed_and_until_when, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(provenance_is_stored_only_on_request, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(
            failures_that_stand_and_those_that_do_not_are_told_apart, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(a_failure_that_stands_says_when_it_is_tried_again, open_ground, close_ground),
    };
    return cmocka_run_group_tests_name("runtime_stale", tests, NULL, NULL);
}
