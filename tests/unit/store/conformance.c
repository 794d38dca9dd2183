// What every kind of store does alike. The arguments are a kind, "memory:" or "sqlite:", and a file or folder for it;
// without one the records are a handle's alone, and no second handle is tried.
#include "hone/store.h"

#include "failing_allocator.h"
#include "os/os.h"
#include "records.h"
#include "store/ops.h"
#include "temporary_folder.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { HANGS = 1200 }; // s: a store that waits for itself

static const char *scheme, *name; // of the file or folder; "": none

typedef struct fixture {
    temporary_folder folder;
    failing_allocator memory;
    char url[TEMPORARY_PATH_SIZE];
    hone_store *store;
    hone_error err;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (f == NULL || temporary_folder_make(&f->folder) != 0) return -1;
    static int opened;
    if (name[0] == '\0')
        snprintf(f->url, sizeof f->url, "%s", scheme);
    else if (name[0] == '?') // on the server of the environment, in a schema of its own
        snprintf(f->url, sizeof f->url, "%s//%s%d_%d", scheme, name, (int)getpid(), opened++);
    else
        snprintf(f->url, sizeof f->url, "%s%s/new/%s", scheme, f->folder.path, name);
    return hone_store_open(failing_allocator_of(&f->memory, -1), f->url, &f->store, &f->err) == HONE_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    hone_store_close(&f->store);
    temporary_folder_remove(&f->folder);
    long long live = atomic_load(&f->memory.live);
    free(f);
    return live == 0 ? 0 : -1;
}

// What visits saw, copied.
typedef struct seen {
    size_t count, stop_after;
    char texts[1024];
} seen;

static void note(seen *s, const char *text)
{
    size_t used = strlen(s->texts);
    snprintf(s->texts + used, sizeof s->texts - used, "%s%s", used == 0 ? "" : " ", text == NULL ? "NULL" : text);
}

static bool go_on(seen *s)
{
    return ++s->count != s->stop_after;
}

static bool note_config(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    note(ctx, decision->config);
    go_on(ctx);
    return true;
}

static bool note_decision(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    char text[160];
    snprintf(text, sizeof text, "%s/%s/%d", decision->key.device, decision->key.key, (int)decision->regime);
    note(ctx, text);
    return go_on(ctx);
}

static bool note_measurement(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *measurement = record->measurement;
    char text[160];
    snprintf(
        text, sizeof text, "%s:%g:%d%s", measurement->kernel, measurement->time_ns, (int)measurement->failure,
        measurement->reason == NULL ? "" : measurement->reason);
    note(ctx, text);
    return go_on(ctx);
}

static bool note_invocation(void *ctx, const hone_store_record *record)
{
    const hone_store_invocation *invocation = record->invocation;
    char text[200];
    snprintf(
        text, sizeof text, "%s:%llu:%g-%g:%s", invocation->key.key, (unsigned long long)invocation->count,
        invocation->first, invocation->last, invocation->decided == NULL ? "NULL" : invocation->decided);
    note(ctx, text);
    return go_on(ctx);
}

static void note_alias(void *ctx, const hone_store_alias *alias)
{
    note(ctx, alias->key.key);
    note(ctx, alias->foreign_spec);
    note(ctx, alias->key.device);
}

static hone_status get(fixture *f, const hone_store_key *key, seen *s)
{
    return hone_store_get(f->store, HONE_RECORD_DECISION, key, HONE_WARM, note_config, s, &f->err);
}

static void assert_stat(fixture *f, uint64_t decisions, uint64_t measurements, uint64_t failures)
{
    hone_store_stat stat;
    assert_int_equal(hone_store_get_stat(f->store, &stat, &f->err), HONE_OK);
    assert_int_equal(stat.decisions, decisions);
    assert_int_equal(stat.measurements, measurements);
    assert_int_equal(stat.failures, failures);
}

// Decisions -----------------------------------------------------------------------------------------------------------

static void get_before_put_is_not_found(void **state)
{
    fixture *f = *state;
    seen s = {0};
    hone_store_key key = sample_key();
    assert_int_equal(get(f, &key, &s), HONE_NOT_FOUND);
    assert_int_equal(s.count, 0);
    assert_non_null(strstr(f->err.message, "0123456789abcdef"));
}

static bool compare_with_sample(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *found = record->decision;
    const hone_store_decision *put = ctx;
    const char *const texts[][2] = {
        {found->key.device, put->key.device},   {found->key.algorithm, put->key.algorithm},
        {found->key.version, put->key.version}, {found->key.key, put->key.key},
        {found->key.spec, put->key.spec},       {found->call, put->call},
        {found->kernel, put->kernel},           {found->platform, put->platform},
        {found->config, put->config},           {found->source, put->source},
        {found->revision, put->revision},       {found->evidence, put->evidence},
        {found->environment, put->environment},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i][1] == NULL)
            assert_null(texts[i][0]);
        else
            assert_string_equal(texts[i][0], texts[i][1]);
    }
    assert_int_equal(found->verified, put->verified);
    assert_int_equal(found->regime, put->regime);
    assert_true(found->time_ns == put->time_ns);
    return true;
}

static void what_was_put_comes_back_field_by_field(void **state)
{
    fixture *f = *state;
    hone_store_decision put = sample_decision();
    assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_OK);
    assert_int_equal(
        hone_store_get(f->store, HONE_RECORD_DECISION, &put.key, HONE_WARM, compare_with_sample, &put, &f->err),
        HONE_OK);
}

static void fields_that_are_missing_come_back_missing(void **state)
{
    fixture *f = *state;
    hone_store_decision put = {
        .key = {"d", "a", "1", "0000000000000001", NULL}, .kernel = "reference", .platform = "native", .config = "{}"};
    assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_OK);
    assert_int_equal(
        hone_store_get(f->store, HONE_RECORD_DECISION, &put.key, HONE_WARM, compare_with_sample, &put, &f->err),
        HONE_OK);
}

static void any_text_and_any_number_comes_back(void **state)
{
    fixture *f = *state;
    enum { SIZE = 200000 };
    char *large = malloc(SIZE);
    assert_non_null(large);
    memset(large, 'x', SIZE - 1);
    large[SIZE - 1] = '\0';
    hone_store_decision put = sample_decision();
    put.key.device = "a|b'; DROP TABLE decision; --";
    put.call = "\xff\xfe no UTF-8";
    put.evidence = large;
    static const double times[] = {-0.0, 5.0, 0.1, 1e300, 5e-324, 9007199254740993.0};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        put.time_ns = times[i];
        assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_OK);
        assert_int_equal(
            hone_store_get(f->store, HONE_RECORD_DECISION, &put.key, HONE_WARM, compare_with_sample, &put, &f->err),
            HONE_OK);
    }
    free(large);
}

static void a_put_replaces_the_decision_of_its_key(void **state)
{
    fixture *f = *state;
    seen s = {0};
    hone_store_decision put = sample_decision();
    assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_OK);
    put.config = "{\"rows_per_task\":8}";
    assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_OK);
    assert_int_equal(get(f, &put.key, &s), HONE_OK);
    assert_string_equal(s.texts, "{\"rows_per_task\":8}");
    assert_stat(f, 1, 0, 0);
}

static void warm_and_cold_are_two_decisions(void **state)
{
    fixture *f = *state;
    seen s = {0};
    hone_store_decision put = sample_decision();
    put.regime = HONE_COLD;
    assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_OK);
    assert_int_equal(get(f, &put.key, &s), HONE_NOT_FOUND);
    put.regime = HONE_WARM;
    put.config = "{\"warm\":1}";
    assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_OK);
    assert_int_equal(get(f, &put.key, &s), HONE_OK);
    assert_string_equal(s.texts, "{\"warm\":1}");
    assert_stat(f, 2, 0, 0);
}

static void each_part_of_the_key_tells_decisions_apart(void **state)
{
    fixture *f = *state;
    hone_store_decision put = sample_decision();
    assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_OK);
    const char **const parts[] = {&put.key.device, &put.key.algorithm, &put.key.version, &put.key.key};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        seen s = {0};
        const char *old = *parts[i];
        *parts[i] = "other";
        assert_int_equal(get(f, &put.key, &s), HONE_NOT_FOUND);
        *parts[i] = old;
    }
}

static void another_spec_under_the_same_key_is_a_miss(void **state)
{
    fixture *f = *state;
    seen s = {0};
    hone_store_decision put = sample_decision();
    assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_OK);
    hone_store_key key = put.key;
    key.spec = "{\"args_spec\":[1]}";
    assert_int_equal(get(f, &key, &s), HONE_NOT_FOUND);
    assert_int_equal(hone_store_remove(f->store, &key, &f->err), HONE_NOT_FOUND);
    key.spec = NULL;
    assert_int_equal(get(f, &key, &s), HONE_OK);
}

static void put_all_is_all_or_none(void **state)
{
    fixture *f = *state;
    hone_store_decision put[3] = {sample_decision(), sample_decision(), sample_decision()};
    put[1].key.key = "1111111111111111";
    put[2].key.key = "2222222222222222";
    put[2].kernel = NULL;
    assert_int_equal(hone_store_put_all(f->store, put, 3, &f->err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(f->err.message, "decision.kernel"));
    assert_stat(f, 0, 0, 0);
    put[2].kernel = "avx2";
    assert_int_equal(hone_store_put_all(f->store, put, 3, &f->err), HONE_OK);
    assert_stat(f, 3, 0, 0);
    assert_int_equal(hone_store_put_all(f->store, put, 0, &f->err), HONE_OK);
}

static void remove_takes_measurements_and_failures_along(void **state)
{
    fixture *f = *state;
    seen s = {0};
    hone_store_decision put = sample_decision();
    hone_store_measurement measurement = sample_measurement();
    assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_OK);
    put.regime = HONE_COLD;
    assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_OK);
    assert_int_equal(hone_store_put_measurement(f->store, &put.key, &measurement, &f->err), HONE_OK);
    measurement.kernel = "avx2";
    measurement.failure = HONE_FAILURE_CRASH;
    assert_int_equal(hone_store_put_measurement(f->store, &put.key, &measurement, &f->err), HONE_OK);
    hone_store_key other = put.key;
    other.key = "ffffffffffffffff";
    assert_int_equal(hone_store_put_measurement(f->store, &other, &measurement, &f->err), HONE_OK);
    assert_stat(f, 2, 1, 2);
    assert_int_equal(hone_store_remove(f->store, &put.key, &f->err), HONE_OK);
    assert_stat(f, 0, 0, 1);
    assert_int_equal(get(f, &put.key, &s), HONE_NOT_FOUND);
    assert_int_equal(hone_store_remove(f->store, &put.key, &f->err), HONE_NOT_FOUND);
}

static void fill_for_scans(fixture *f)
{
    static const char *const devices[] = {"b", "a", "c"};
    static const char *const keys[] = {"2222222222222222", "1111111111111111"};
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 2; j++) {
            hone_store_decision put = sample_decision();
            put.key.device = devices[i];
            put.key.key = keys[j];
            assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_OK);
        }
}

static void a_scan_goes_in_the_order_of_keys(void **state)
{
    fixture *f = *state;
    seen s = {0};
    fill_for_scans(f);
    assert_int_equal(hone_store_scan(f->store, HONE_RECORD_DECISION, NULL, note_decision, &s, &f->err), HONE_OK);
    assert_string_equal(
        s.texts, "a/1111111111111111/0 a/2222222222222222/0 b/1111111111111111/0 b/2222222222222222/0 "
                 "c/1111111111111111/0 c/2222222222222222/0");
}

static void a_scan_sees_what_the_filter_lets_through(void **state)
{
    fixture *f = *state;
    fill_for_scans(f);
    const struct {
        hone_store_key filter;
        const char *expected;
    } cases[] = {
        {{.device = "b"}, "b/1111111111111111/0 b/2222222222222222/0"},
        {{.key = "1111111111111111"}, "a/1111111111111111/0 b/1111111111111111/0 c/1111111111111111/0"},
        {{.device = "c", .algorithm = "rms_norm", .version = "1", .key = "2222222222222222"}, "c/2222222222222222/0"},
        {{.device = "c", .spec = "{\"other\":1}"}, ""},
        {{.algorithm = "softmax"}, ""},
        {{.version = "2"}, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        seen s = {0};
        assert_int_equal(
            hone_store_scan(f->store, HONE_RECORD_DECISION, &cases[i].filter, note_decision, &s, &f->err), HONE_OK);
        assert_string_equal(s.texts, cases[i].expected);
    }
}

static void a_scan_ends_when_its_visit_says_so(void **state)
{
    fixture *f = *state;
    seen s = {.stop_after = 2};
    fill_for_scans(f);
    assert_int_equal(hone_store_scan(f->store, HONE_RECORD_DECISION, NULL, note_decision, &s, &f->err), HONE_OK);
    assert_int_equal(s.count, 2);
    seen again = {0}; // the walk that was ended holds nothing back
    assert_int_equal(hone_store_scan(f->store, HONE_RECORD_DECISION, NULL, note_decision, &again, &f->err), HONE_OK);
    assert_int_equal(again.count, 6);
}

// Merging -------------------------------------------------------------------------------------------------------------

static void note_outcome(void *ctx, size_t index, hone_merge_outcome outcome, const char *reason)
{
    static const char *const names[] = {"taken", "kept", "equal"};
    char text[160];
    snprintf(text, sizeof text, "%zu:%s:%s", index, names[outcome], reason);
    note(ctx, text);
}

static hone_store_decision claim(const char *kernel, bool verified, const char *evidence)
{
    hone_store_decision decision = sample_decision();
    decision.kernel = kernel;
    decision.verified = verified;
    decision.evidence = evidence;
    return decision;
}

static bool note_kernel_and_evidence(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    note(ctx, decision->kernel);
    note(ctx, decision->evidence);
    return true;
}

static bool note_kernel(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    note(ctx, decision->kernel);
    return true;
}

#define TIMES(low, high) "\"low_ns\":" #low ",\"high_ns\":" #high
#define MAY_1            "\"started\":\"2026-05-01T00:00:00Z\""
#define MAY_2            "\"started\":\"2026-05-02T00:00:00Z\""

static void a_merge_keeps_the_better_by_the_first_rule_that_tells_them_apart(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *stored_kernel, *coming_kernel;
        bool stored_verified, coming_verified;
        double stored_time, coming_time;
        const char *stored, *coming, *winner, *outcome;
    } cases[] = {
        {"a", "b", false, true, 1, 9, "{\"samples\":90}", "{\"samples\":1}", "b",
         "0:taken:it is verified, the stored one is not"},
        {"a", "b", true, false, 9, 1, "{\"samples\":1}", "{\"samples\":90}", "a",
         "0:kept:the stored one is verified, it is not"},
        {"a", "b", true, true, 1, 9, "{\"samples\":10}", "{\"samples\":20}", "b",
         "0:taken:it rests on at least twice the samples"},
        {"a", "b", true, true, 9, 1, "{\"samples\":20}", "{\"samples\":10}", "a",
         "0:kept:the stored one rests on at least twice the samples"},
        {"a", "b", true, true, 9, 1, "{\"samples\":20}", "{\"samples\":11}", "b",
         "0:taken:it is faster beyond the noise"},
        {"a", "b", true, true, 10, 9, "{" TIMES(9, 11) "}", "{" TIMES(8, 9.5) "}", "a",
         "0:kept:not faster than the stored one beyond the noise"},
        {"a", "b", true, true, 10, 8, "{" TIMES(9, 11) "}", "{" TIMES(7, 8.9) "}", "b",
         "0:taken:it is faster beyond the noise"},
        {"a", "b", true, true, 10, 9, "{" TIMES(9, 11) "}",
         "{" TIMES(8, 9.5) ",\"runner_up\":\"a\",\"ratio_low\":1.01}", "b", "0:taken:it is faster beyond the noise"},
        {"a", "b", true, true, 10, 9, "{" MAY_2 "," TIMES(9, 11) "}", "{" MAY_1 "," TIMES(8, 9.5) "}", "b",
         "0:taken:measured first, and the stored one is not faster beyond the noise"},
        {"a", "b", true, true, 1, 9, "{" MAY_2 "}", "{" MAY_1 "}", "a",
         "0:kept:the stored one is faster beyond the noise"},
        {"a", "a", true, true, 1, 9, "{" MAY_1 "}", "{" MAY_2 "}", "a",
         "0:taken:the same kernel and config, measured later"},
        {"a", "a", true, true, 9, 1, "{" MAY_2 "}", "{" MAY_1 "}", "a",
         "0:kept:the same kernel and config, measured before the stored one"},
        {"a", "a", true, true, 9, 9, "{" MAY_1 "}", "{" MAY_1 "}", "a", "0:equal:it is stored already"},
        {"a", "b", true, true, 9, 1, NULL, "no JSON", "b", "0:taken:it is faster beyond the noise"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hone_store_decision stored = claim(cases[i].stored_kernel, cases[i].stored_verified, cases[i].stored);
        hone_store_decision coming = claim(cases[i].coming_kernel, cases[i].coming_verified, cases[i].coming);
        seen outcome = {0}, winner = {0};
        stored.time_ns = cases[i].stored_time;
        coming.time_ns = cases[i].coming_time;
        assert_int_equal(hone_store_put(f->store, &stored, &f->err), HONE_OK);
        assert_int_equal(hone_store_merge(f->store, &coming, 1, note_outcome, &outcome, &f->err), HONE_OK);
        assert_string_equal(outcome.texts, cases[i].outcome);
        assert_int_equal(
            hone_store_get(f->store, HONE_RECORD_DECISION, &stored.key, HONE_WARM, note_kernel, &winner, &f->err),
            HONE_OK);
        assert_string_equal(winner.texts, cases[i].winner);
    }
}

static void a_later_revision_of_a_kernel_takes_the_place_of_the_older(void **state)
{
    fixture *f = *state;
    seen outcome = {0};
    hone_store_decision stored = claim("a", true, "{" MAY_1 ",\"samples\":90}");
    hone_store_decision coming = claim("a", true, "{" MAY_2 ",\"samples\":9}");
    coming.revision = "2";
    assert_int_equal(hone_store_put(f->store, &stored, &f->err), HONE_OK);
    assert_int_equal(hone_store_merge(f->store, &coming, 1, note_outcome, &outcome, &f->err), HONE_OK);
    assert_int_equal(hone_store_merge(f->store, &stored, 1, note_outcome, &outcome, &f->err), HONE_OK);
    assert_string_equal(
        outcome.texts,
        "0:taken:it is of a later revision of the kernel 0:kept:the stored one is of a later revision of "
        "the kernel");
}

static void the_loser_is_kept_in_the_evidence_of_the_winner(void **state)
{
    fixture *f = *state;
    seen s = {0};
    hone_store_decision first = claim("a", true, "{\"samples\":9}"), second = claim("b", true, "{\"samples\":30}");
    first.time_ns = 8;
    assert_int_equal(hone_store_merge(f->store, &first, 1, NULL, NULL, &f->err), HONE_OK);
    assert_int_equal(hone_store_merge(f->store, &second, 1, NULL, NULL, &f->err), HONE_OK);
    // Again: nothing changes.
    assert_int_equal(hone_store_merge(f->store, &second, 1, NULL, NULL, &f->err), HONE_OK);
    assert_int_equal(hone_store_merge(f->store, &first, 1, NULL, NULL, &f->err), HONE_OK);
    assert_int_equal(
        hone_store_get(f->store, HONE_RECORD_DECISION, &first.key, HONE_WARM, note_kernel_and_evidence, &s, &f->err),
        HONE_OK);
    assert_string_equal(
        s.texts, "b {\"samples\":30,\"also\":[{\"kernel\":\"a\",\"platform\":\"native\",\"revision\":\"1\","
                 "\"source\":\"autotune\",\"config\":{\"rows_per_task\":4},\"time_ns\":8.0,\"samples\":9}]}");
}

static void evidence_keeps_the_last_four_losers(void **state)
{
    fixture *f = *state;
    seen s = {0};
    char evidence[2000];
    for (int i = 0; i < 8; i++) {
        char kernel[16];
        snprintf(kernel, sizeof kernel, "k%d", i);
        snprintf(evidence, sizeof evidence, "{\"samples\":%d}", 1 << i);
        hone_store_decision next = claim(kernel, true, evidence);
        assert_int_equal(hone_store_merge(f->store, &next, 1, NULL, NULL, &f->err), HONE_OK);
    }
    hone_store_key key = sample_key();
    assert_int_equal(
        hone_store_get(f->store, HONE_RECORD_DECISION, &key, HONE_WARM, note_kernel_and_evidence, &s, &f->err),
        HONE_OK);
    const char *at = s.texts;
    for (int i = 7; i >= 3; i--) {
        char kernel[16];
        snprintf(kernel, sizeof kernel, "k%d", i);
        at = strstr(at, kernel);
        assert_non_null(at);
    }
    assert_null(strstr(s.texts, "k2"));
}

static void another_calls_decision_is_not_taken(void **state)
{
    fixture *f = *state;
    seen s = {0};
    hone_store_decision stored = claim("a", false, NULL), coming = claim("b", true, NULL);
    coming.key.spec = "{\"other\":1}";
    assert_int_equal(hone_store_put(f->store, &stored, &f->err), HONE_OK);
    assert_int_equal(hone_store_merge(f->store, &coming, 1, note_outcome, &s, &f->err), HONE_OK);
    assert_string_equal(s.texts, "0:kept:another call's decision is stored under this key");
}

static void a_merge_is_all_or_none_and_tells_each_in_order(void **state)
{
    fixture *f = *state;
    seen none = {0}, both = {0};
    hone_store_decision coming[2] = {claim("a", true, NULL), claim("b", true, NULL)};
    coming[1].time_ns = -1;
    assert_int_equal(hone_store_merge(f->store, coming, 2, note_outcome, &none, &f->err), HONE_INVALID_ARGUMENT);
    assert_string_equal(none.texts, "");
    assert_stat(f, 0, 0, 0);
    coming[1].time_ns = 1;
    assert_int_equal(hone_store_merge(f->store, coming, 2, note_outcome, &both, &f->err), HONE_OK);
    assert_string_equal(both.texts, "0:taken:nothing was stored 1:taken:it is faster beyond the noise");
    assert_int_equal(hone_store_merge(f->store, NULL, 0, note_outcome, &none, &f->err), HONE_OK);
}

// Measurements --------------------------------------------------------------------------------------------------------

static void put_measurement(fixture *f, const hone_store_measurement *measurement)
{
    hone_store_key key = sample_key();
    assert_int_equal(hone_store_put_measurement(f->store, &key, measurement, &f->err), HONE_OK);
}

static void assert_measurements(fixture *f, const char *expected)
{
    seen s = {0};
    hone_store_key key = sample_key();
    assert_int_equal(hone_store_scan(f->store, HONE_RECORD_MEASUREMENT, &key, note_measurement, &s, &f->err), HONE_OK);
    assert_string_equal(s.texts, expected);
}

static void every_config_of_every_kernel_and_regime_is_kept(void **state)
{
    fixture *f = *state;
    hone_store_measurement measurement = sample_measurement();
    put_measurement(f, &measurement);
    measurement.config = "{\"rows_per_task\":8}";
    measurement.time_ns = 200;
    put_measurement(f, &measurement);
    measurement.kernel = "avx2";
    measurement.time_ns = 300;
    put_measurement(f, &measurement);
    measurement.regime = HONE_COLD;
    measurement.time_ns = 400;
    put_measurement(f, &measurement);
    assert_measurements(f, "avx2:300:0 avx512:100:0 avx512:200:0 avx2:400:0");
}

static void a_repeated_measurement_replaces(void **state)
{
    fixture *f = *state;
    hone_store_measurement measurement = sample_measurement();
    put_measurement(f, &measurement);
    measurement.time_ns = 90;
    put_measurement(f, &measurement);
    assert_measurements(f, "avx512:90:0");
}

static void assert_text(const char *found, const char *put)
{
    if (put == NULL)
        assert_null(found);
    else
        assert_string_equal(found, put);
}

static void compare_measurement(const hone_store_measurement *found, const hone_store_measurement *put)
{
    assert_string_equal(found->kernel, put->kernel);
    assert_string_equal(found->config, put->config);
    assert_string_equal(found->revision, put->revision);
    assert_int_equal(found->regime, put->regime);
    assert_true(found->time_ns == put->time_ns && found->low_ns == put->low_ns && found->high_ns == put->high_ns);
    assert_int_equal(found->samples, put->samples);
    assert_true(found->max_error == put->max_error);
    assert_text(found->environment, put->environment);
    assert_text(found->measured, put->measured);
    assert_text(found->samples_ns, put->samples_ns);
    assert_int_equal(found->failure, HONE_FAILURE_NONE);
    assert_null(found->reason);
}

static bool visit_and_compare(void *ctx, const hone_store_record *record)
{
    const hone_store_measurement *measurement = record->measurement;
    compare_measurement(measurement, ctx);
    return true;
}

static void a_measurement_comes_back_field_by_field(void **state)
{
    fixture *f = *state;
    hone_store_key key = sample_key();
    hone_store_measurement measurement = sample_measurement();
    put_measurement(f, &measurement);
    assert_int_equal(
        hone_store_scan(f->store, HONE_RECORD_MEASUREMENT, &key, visit_and_compare, &measurement, &f->err), HONE_OK);
    measurement.environment = "{\"hone\":\"0.1.0\"}";
    put_measurement(f, &measurement);
    assert_int_equal(
        hone_store_scan(f->store, HONE_RECORD_MEASUREMENT, &key, visit_and_compare, &measurement, &f->err), HONE_OK);
    measurement.measured = "2026-11-20T12:34:56Z";
    put_measurement(f, &measurement);
    assert_int_equal(
        hone_store_scan(f->store, HONE_RECORD_MEASUREMENT, &key, visit_and_compare, &measurement, &f->err), HONE_OK);
    measurement.samples_ns = "[99.5,101,100]";
    put_measurement(f, &measurement);
    assert_int_equal(
        hone_store_scan(f->store, HONE_RECORD_MEASUREMENT, &key, visit_and_compare, &measurement, &f->err), HONE_OK);
    measurement.measured = measurement.environment = NULL; // what came with an earlier schema may lack
    put_measurement(f, &measurement);
    assert_int_equal(
        hone_store_scan(f->store, HONE_RECORD_MEASUREMENT, &key, visit_and_compare, &measurement, &f->err), HONE_OK);
}

static void samples_that_are_no_list_of_times_are_refused(void **state)
{
    fixture *f = *state;
    static const char *const wrong[] = {"", "100", "{}", "[100", "[\"a\"]", "[null]", "[-1]", "[1e999]", "[1,]"};
    const hone_store_key key = sample_key();
    hone_store_measurement measurement = sample_measurement();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        measurement.samples_ns = wrong[i];
        assert_int_equal(hone_store_put_measurement(f->store, &key, &measurement, &f->err), HONE_INVALID_ARGUMENT);
        assert_non_null(strstr(f->err.message, "samples_ns"));
    }
    assert_measurements(f, "");
    measurement.samples_ns = "[]";
    put_measurement(f, &measurement);
}

static void a_failure_takes_the_place_of_its_measurement_and_gives_it_back(void **state)
{
    fixture *f = *state;
    hone_store_measurement measurement = sample_measurement();
    put_measurement(f, &measurement);
    measurement.failure = HONE_FAILURE_WRONG;
    measurement.reason = "y[3] is 0";
    measurement.time_ns = NAN; // means nothing, and is not stored
    put_measurement(f, &measurement);
    assert_stat(f, 0, 0, 1);
    assert_measurements(f, "avx512:0:4y[3] is 0");
    measurement = sample_measurement();
    put_measurement(f, &measurement);
    assert_stat(f, 0, 1, 0);
    assert_measurements(f, "avx512:100:0");
}

static void measurements_of_another_spec_are_not_given(void **state)
{
    fixture *f = *state;
    hone_store_measurement measurement = sample_measurement();
    put_measurement(f, &measurement);
    hone_store_key key = sample_key();
    key.spec = "{\"other\":1}";
    measurement.time_ns = 7;
    assert_int_equal(hone_store_put_measurement(f->store, &key, &measurement, &f->err), HONE_OK);
    assert_measurements(f, "avx512:100:0");
    seen s = {0};
    key.spec = NULL;
    assert_int_equal(hone_store_scan(f->store, HONE_RECORD_MEASUREMENT, &key, note_measurement, &s, &f->err), HONE_OK);
    assert_int_equal(s.count, 2);
}

static bool note_measured(void *ctx, const hone_store_record *record)
{
    const hone_store_key *key = record->key;
    const hone_store_measurement *measurement = record->measurement;
    char text[160];
    snprintf(text, sizeof text, "%s/%s/%s:%d", key->device, key->key, measurement->kernel, (int)measurement->failure);
    note(ctx, text);
    return go_on(ctx);
}

static void measurements_of_all_keys_come_in_their_order_then_failures(void **state)
{
    fixture *f = *state;
    static const char *const keys[][2] = {{"b", "1"}, {"a", "2"}, {"a", "1"}};
    hone_store_measurement measurement = sample_measurement(), failure = sample_measurement();
    failure.failure = HONE_FAILURE_CRASH;
    failure.kernel = "avx2";
    for (size_t i = 0; i < 3; i++) {
        hone_store_key key = sample_key();
        key.device = keys[i][0];
        key.key = keys[i][1];
        assert_int_equal(hone_store_put_measurement(f->store, &key, &measurement, &f->err), HONE_OK);
        if (i == 0) assert_int_equal(hone_store_put_measurement(f->store, &key, &failure, &f->err), HONE_OK);
    }
    seen all = {0}, some = {0}, first = {.stop_after = 1};
    hone_store_key filter = {.device = "b"};
    assert_int_equal(hone_store_scan(f->store, HONE_RECORD_MEASUREMENT, NULL, note_measured, &all, &f->err), HONE_OK);
    assert_string_equal(all.texts, "a/1/avx512:0 a/2/avx512:0 b/1/avx512:0 b/1/avx2:6");
    assert_int_equal(
        hone_store_scan(f->store, HONE_RECORD_MEASUREMENT, &filter, note_measured, &some, &f->err), HONE_OK);
    assert_string_equal(some.texts, "b/1/avx512:0 b/1/avx2:6");
    assert_int_equal(hone_store_scan(f->store, HONE_RECORD_MEASUREMENT, NULL, note_measured, &first, &f->err), HONE_OK);
    assert_int_equal(first.count, 1);
}

static void measurements_end_when_their_visit_says_so(void **state)
{
    fixture *f = *state;
    hone_store_key key = sample_key();
    hone_store_measurement measurement = sample_measurement();
    put_measurement(f, &measurement);
    measurement.kernel = "avx2";
    measurement.failure = HONE_FAILURE_TIMEOUT;
    put_measurement(f, &measurement);
    seen s = {.stop_after = 1};
    assert_int_equal(hone_store_scan(f->store, HONE_RECORD_MEASUREMENT, &key, note_measurement, &s, &f->err), HONE_OK);
    assert_int_equal(s.count, 1);
}

// Invocations ---------------------------------------------------------------------------------------------------------

static void add_invocation(fixture *f, const hone_store_invocation *invocation)
{
    assert_int_equal(hone_store_add_invocations(f->store, invocation, 1, &f->err), HONE_OK);
}

static void assert_invocations(fixture *f, const char *device, const char *expected)
{
    seen s = {0};
    assert_int_equal(
        hone_store_scan(
            f->store, HONE_RECORD_INVOCATION, &(hone_store_key){.device = device}, note_invocation, &s, &f->err),
        HONE_OK);
    assert_string_equal(s.texts, expected);
}

static void invocations_add_up_between_the_first_and_the_last(void **state)
{
    fixture *f = *state;
    hone_store_invocation invocation = sample_invocation();
    add_invocation(f, &invocation);
    invocation.first = 500;
    invocation.last = 600;
    invocation.count = 4;
    invocation.decided = NULL;
    add_invocation(f, &invocation);
    hone_store_invocation twice[] = {invocation, invocation};
    twice[1].decided = "store";
    twice[1].last = 9000;
    assert_int_equal(hone_store_add_invocations(f->store, twice, 2, &f->err), HONE_OK);
    assert_invocations(f, NULL, "0123456789abcdef:15:500-9000:store");
}

// Bytes that one look for a label asks for, with so many other calls recorded.
static long long look_among(fixture *f, int others)
{
    hone_store_invocation invocations[64];
    char keys[64][20];
    for (int i = 0; i < others; i++) {
        snprintf(keys[i], sizeof keys[i], "%016x", (unsigned)(i + 1));
        invocations[i] = sample_invocation();
        invocations[i].key.key = keys[i];
    }
    assert_int_equal(hone_store_add_invocations(f->store, invocations, (size_t)others, &f->err), HONE_OK);
    const hone_store_key filter = {.algorithm = "rms_norm", .version = "1", .key = "0000000000000002"};
    seen s = {0};
    const long long before = atomic_load(&f->memory.sum);
    assert_int_equal(hone_store_scan(f->store, HONE_RECORD_INVOCATION, &filter, note_invocation, &s, &f->err), HONE_OK);
    assert_int_equal(s.count, 1);
    return atomic_load(&f->memory.sum) - before;
}

// A program of n labels asks n times: what each costs must not grow with n.
static void finding_a_label_does_not_scan_all_labels(void **state)
{
    fixture *f = *state;
    (void)look_among(f, 4); // what is made once
    const long long few = look_among(f, 4), many = look_among(f, 64);
    assert_true(many <= few);
}

static void invocations_come_heaviest_first(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *device, *key;
        uint64_t count;
    } rows[] = {{"a", "1", 5}, {"a", "2", 50}, {"b", "3", 7}, {"a", "4", 5}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hone_store_invocation invocation = sample_invocation();
        invocation.key.device = rows[i].device;
        invocation.key.key = rows[i].key;
        invocation.count = rows[i].count;
        add_invocation(f, &invocation);
    }
    assert_invocations(
        f, NULL, "2:50:1000-2000:heuristic 3:7:1000-2000:heuristic 1:5:1000-2000:heuristic 4:5:1000-2000:heuristic");
    assert_invocations(f, "b", "3:7:1000-2000:heuristic");
    assert_int_equal(hone_store_clear_invocations(f->store, "a", &f->err), HONE_OK);
    assert_invocations(f, NULL, "3:7:1000-2000:heuristic");
    assert_int_equal(hone_store_clear_invocations(f->store, NULL, &f->err), HONE_OK);
    assert_invocations(f, NULL, "");
}

// Those that somebody decided stay however old they are, and of the others what was last seen within ninety days.
static void undecided_calls_are_forgotten_after_ninety_days(void **state)
{
    static const double day = 86400, now = 200 * 86400.0;
    static const struct {
        const char *key, *decided;
        double last_day;
    } rows[] = {{"old", "heuristic", 109}, {"edge", "heuristic", 110}, {"kept", "store", 1},
                {"near", "transfer", 50},  {"new", "transfer", 199},   {"asked", "memory", 2},
                {"none", NULL, 3},         {"first", "heuristic", 20}, {"last", "heuristic", 90}};
    fixture *f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hone_store_invocation invocation = sample_invocation();
        invocation.key.key = rows[i].key;
        invocation.decided = rows[i].decided;
        invocation.first = 1;
        invocation.last = rows[i].last_day * day;
        invocation.count = 20 - i;
        add_invocation(f, &invocation);
    }
    assert_int_equal(hone_store_expire_misses(f->store, now, &f->err), HONE_OK);
    assert_invocations(
        f, NULL,
        "edge:19:1-9.504e+06:heuristic kept:18:1-86400:store new:16:1-1.71936e+07:transfer asked:15:1-172800:memory "
        "none:14:1-259200:NULL");
    assert_int_equal(hone_store_expire_misses(f->store, now + day, &f->err), HONE_OK);
    assert_invocations(
        f, NULL, "kept:18:1-86400:store new:16:1-1.71936e+07:transfer asked:15:1-172800:memory none:14:1-259200:NULL");
}

static void invocations_are_found_by_the_words_of_a_label(void **state)
{
    fixture *f = *state;
    hone_store_invocation invocation = sample_invocation();
    add_invocation(f, &invocation);
    invocation.key.version = "2";
    invocation.key.spec = NULL;
    add_invocation(f, &invocation);
    const struct {
        hone_store_key filter;
        size_t count;
    } cases[] = {
        {{.algorithm = "rms_norm", .version = "2", .key = "0123456789abcdef"}, 1},
        {{.algorithm = "rms_norm", .key = "0123456789abcdef"}, 2},
        {{.algorithm = "rms_norm"}, 2},
        {{.algorithm = "rms_norm", .version = "3", .key = "0123456789abcdef"}, 0},
        {{.algorithm = "rms_norm", .version = "1", .key = "0123456789abcdef", .spec = "{\"other\":1}"}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        seen s = {0};
        assert_int_equal(
            hone_store_scan(f->store, HONE_RECORD_INVOCATION, &cases[i].filter, note_invocation, &s, &f->err), HONE_OK);
        assert_int_equal(s.count, cases[i].count);
    }
}

static void a_count_stays_at_its_largest(void **state)
{
    fixture *f = *state;
    hone_store_invocation invocation = sample_invocation();
    invocation.count = UINT64_MAX - 1;
    add_invocation(f, &invocation);
    add_invocation(f, &invocation);
    assert_invocations(f, NULL, "0123456789abcdef:9223372036854775807:1000-2000:heuristic");
}

// Aliases -------------------------------------------------------------------------------------------------------------

static void an_alias_is_found_by_the_foreign_key(void **state)
{
    fixture *f = *state;
    seen s = {0};
    hone_store_alias alias = sample_alias();
    assert_int_equal(
        hone_store_get_alias(f->store, "ejkernel", "rms_norm@v1", "fedcba9876543210", note_alias, &s, &f->err),
        HONE_NOT_FOUND);
    assert_int_equal(hone_store_put_alias(f->store, &alias, &f->err), HONE_OK);
    alias.foreign_spec = NULL;
    alias.key.device = NULL;
    assert_int_equal(hone_store_put_alias(f->store, &alias, &f->err), HONE_OK);
    assert_int_equal(
        hone_store_get_alias(f->store, "ejkernel", "rms_norm@v1", "fedcba9876543210", note_alias, &s, &f->err),
        HONE_OK);
    assert_string_equal(s.texts, "0123456789abcdef NULL NULL");
    assert_int_equal(
        hone_store_get_alias(f->store, "ejkernel", "rms_norm@v2", "fedcba9876543210", note_alias, &s, &f->err),
        HONE_NOT_FOUND);
}

static bool note_alias_key(void *ctx, const hone_store_alias *alias)
{
    note(ctx, alias->scheme);
    note(ctx, alias->foreign_key);
    return go_on(ctx);
}

static void aliases_are_walked_by_scheme_in_the_order_of_keys(void **state)
{
    fixture *f = *state;
    static const char *const keys[][2] = {{"tokamax", "1"}, {"ejkernel", "3"}, {"ejkernel", "2"}};
    for (size_t i = 0; i < 3; i++) {
        hone_store_alias alias = sample_alias();
        alias.scheme = keys[i][0];
        alias.foreign_key = keys[i][1];
        assert_int_equal(hone_store_put_alias(f->store, &alias, &f->err), HONE_OK);
    }
    seen all = {0}, some = {0}, first = {.stop_after = 1};
    assert_int_equal(hone_store_aliases(f->store, NULL, note_alias_key, &all, &f->err), HONE_OK);
    assert_string_equal(all.texts, "ejkernel 2 ejkernel 3 tokamax 1");
    assert_int_equal(hone_store_aliases(f->store, "tokamax", note_alias_key, &some, &f->err), HONE_OK);
    assert_string_equal(some.texts, "tokamax 1");
    assert_int_equal(hone_store_aliases(f->store, NULL, note_alias_key, &first, &f->err), HONE_OK);
    assert_int_equal(first.count, 1);
}

// Foreign configs -----------------------------------------------------------------------------------------------------

static bool note_foreign(void *ctx, const hone_store_foreign *foreign)
{
    note(ctx, foreign->operation);
    note(ctx, foreign->device);
    note(ctx, foreign->foreign_key);
    note(ctx, foreign->text);
    note(ctx, foreign->origin);
    return go_on(ctx);
}

static void assert_foreigns(fixture *f, const char *foreign_scheme, const char *expected)
{
    seen s = {0};
    assert_int_equal(hone_store_foreigns(f->store, foreign_scheme, note_foreign, &s, &f->err), HONE_OK);
    assert_string_equal(s.texts, expected);
}

static void a_foreign_config_comes_back_as_it_came(void **state)
{
    fixture *f = *state;
    hone_store_foreign foreigns[2] = {sample_foreign(), sample_foreign()};
    foreigns[0].text = "{ \"block_q\" : 1.50,\n\"x\":\"\\u00e9\" }";
    foreigns[1].scheme = "ejkernel";
    foreigns[1].device = NULL;
    foreigns[1].origin = NULL;
    assert_int_equal(hone_store_put_foreign(f->store, foreigns, 2, &f->err), HONE_OK);
    assert_foreigns(f, "tokamax", "attention TPU v5 abc { \"block_q\" : 1.50,\n\"x\":\"\\u00e9\" } v5.json");
    assert_foreigns(f, "ejkernel", "attention NULL abc {\"block_q\":128} NULL");
    foreigns[0].text = "1";
    foreigns[0].origin = "other.json";
    assert_int_equal(hone_store_put_foreign(f->store, foreigns, 1, &f->err), HONE_OK);
    assert_foreigns(f, NULL, "attention NULL abc {\"block_q\":128} NULL attention TPU v5 abc 1 other.json");
}

static void a_note_of_the_store_is_no_config_of_another_system(void **state)
{
    fixture *f = *state;
    hone_store_stat stat;
    hone_store_foreign foreigns[2] = {sample_foreign(), sample_foreign()};
    foreigns[1].scheme = "hone.queue";
    assert_int_equal(hone_store_put_foreign(f->store, foreigns, 2, &f->err), HONE_OK);
    assert_int_equal(hone_store_get_stat(f->store, &stat, &f->err), HONE_OK);
    assert_int_equal(stat.foreigns, 1);
    assert_foreigns(f, "hone.queue", "attention TPU v5 abc {\"block_q\":128} v5.json");
}

static void foreign_configs_are_put_all_or_none(void **state)
{
    fixture *f = *state;
    hone_store_foreign foreigns[2] = {sample_foreign(), sample_foreign()};
    foreigns[1].foreign_key = "";
    assert_int_equal(hone_store_put_foreign(f->store, foreigns, 2, &f->err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(f->err.message, "foreign.foreign_key"));
    assert_foreigns(f, NULL, "");
    assert_int_equal(hone_store_put_foreign(f->store, NULL, 0, &f->err), HONE_OK);
}

static bool note_foreign_once(void *ctx, const hone_store_record *record)
{
    assert_null(record->decision);
    return note_foreign(ctx, record->foreign);
}

static hone_status get_foreign(fixture *f, const hone_store_foreign *foreign, seen *s)
{
    const hone_store_key key = hone_store_foreign_key(foreign);
    return hone_store_get(f->store, HONE_RECORD_FOREIGN, &key, HONE_WARM, note_foreign_once, s, &f->err);
}

static void a_foreign_config_is_found_by_its_whole_key(void **state)
{
    fixture *f = *state;
    seen s = {0};
    hone_store_foreign foreigns[2] = {sample_foreign(), sample_foreign()};
    foreigns[1].device = NULL;
    foreigns[1].text = "null";
    assert_int_equal(get_foreign(f, &foreigns[0], &s), HONE_NOT_FOUND);
    assert_int_equal(hone_store_put_foreign(f->store, foreigns, 2, &f->err), HONE_OK);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(get_foreign(f, &foreigns[i], &s), HONE_OK);
    assert_string_equal(s.texts, "attention TPU v5 abc {\"block_q\":128} v5.json attention NULL abc null v5.json");
    foreigns[0].scheme = "other";
    assert_int_equal(get_foreign(f, &foreigns[0], &s), HONE_NOT_FOUND);
    foreigns[0].operation = "";
    assert_int_equal(get_foreign(f, &foreigns[0], &s), HONE_INVALID_ARGUMENT);
    assert_int_equal(s.count, 2);
}

static void foreign_configs_of_a_scheme_are_cleared_and_others_stay(void **state)
{
    fixture *f = *state;
    hone_store_foreign foreigns[3] = {sample_foreign(), sample_foreign(), sample_foreign()};
    foreigns[1].device = NULL;
    foreigns[2].scheme = "other";
    assert_int_equal(hone_store_clear_foreigns(f->store, foreigns[0].scheme, &f->err), HONE_OK); // there are none
    assert_int_equal(hone_store_put_foreign(f->store, foreigns, 3, &f->err), HONE_OK);
    assert_int_equal(hone_store_clear_foreigns(f->store, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_store_clear_foreigns(f->store, foreigns[0].scheme, &f->err), HONE_OK);
    assert_foreigns(f, NULL, "attention TPU v5 abc {\"block_q\":128} v5.json");
    assert_foreigns(f, foreigns[0].scheme, "");
    assert_int_equal(hone_store_put_foreign(f->store, foreigns, 1, &f->err), HONE_OK);
    assert_foreigns(f, foreigns[0].scheme, "attention TPU v5 abc {\"block_q\":128} v5.json");
}

static void stat_counts_every_kind_of_record(void **state)
{
    fixture *f = *state;
    hone_store_decision decision = sample_decision();
    hone_store_invocation invocation = sample_invocation();
    hone_store_alias alias = sample_alias();
    hone_store_foreign foreign = sample_foreign();
    assert_int_equal(hone_store_put_foreign(f->store, &foreign, 1, &f->err), HONE_OK);
    assert_int_equal(hone_store_put(f->store, &decision, &f->err), HONE_OK);
    add_invocation(f, &invocation);
    assert_int_equal(hone_store_put_alias(f->store, &alias, &f->err), HONE_OK);
    hone_store_stat stat;
    assert_int_equal(hone_store_get_stat(f->store, &stat, &f->err), HONE_OK);
    assert_int_equal(stat.decisions, 1);
    assert_int_equal(stat.invocations, 1);
    assert_int_equal(stat.aliases, 1);
    assert_int_equal(stat.foreigns, 1);
    // A file and a server have versions of their own.
    assert_int_equal(
        stat.schema, strncmp(f->url, "sqlite:", 7) == 0        ? 5
                     : strncmp(f->url, "postgresql:", 11) == 0 ? 2
                                                               : 4);
}

// Setting aside -------------------------------------------------------------------------------------------------------

static bool note_quarantined(void *ctx, const hone_store_record *record)
{
    const hone_store_quarantined *quarantined = record->quarantined;
    note(ctx, quarantined->kind);
    note(ctx, quarantined->reason);
    note(
        ctx, strstr(quarantined->record, "\"config\":\"{\\\"rows_per_task\\\":4}\"") != NULL ? "with its config" : "?");
    return go_on(ctx);
}

static void a_decision_that_is_set_aside_is_a_miss_and_is_kept_with_the_reason(void **state)
{
    fixture *f = *state;
    seen s = {0};
    hone_store_decision put = sample_decision();
    assert_int_equal(
        hone_store_set_aside(f->store, &put.key, HONE_WARM, "has no such config", &f->err), HONE_NOT_FOUND);
    assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_OK);
    put.regime = HONE_COLD;
    assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_OK);
    assert_int_equal(hone_store_set_aside(f->store, &put.key, HONE_WARM, "has no such config", &f->err), HONE_OK);
    assert_int_equal(get(f, &put.key, &s), HONE_NOT_FOUND);
    assert_stat(f, 1, 0, 0);
    assert_int_equal(hone_store_scan(f->store, HONE_RECORD_QUARANTINED, NULL, note_quarantined, &s, &f->err), HONE_OK);
    assert_string_equal(s.texts, "decision has no such config with its config");
    hone_store_health health;
    assert_int_equal(hone_store_verify(f->store, &health, &f->err), HONE_OK);
    assert_true(health.records == 1 && health.set_aside == 0 && health.quarantined == 1);
    assert_int_equal(hone_store_clear_quarantine(f->store, &f->err), HONE_OK);
    hone_store_stat stat;
    assert_int_equal(hone_store_get_stat(f->store, &stat, &f->err), HONE_OK);
    assert_int_equal(stat.quarantined, 0);
}

// Wrong use -----------------------------------------------------------------------------------------------------------

static void wrong_arguments_are_refused_by_name(void **state)
{
    fixture *f = *state;
    seen s = {0};
    hone_store_decision decision = sample_decision();
    decision.key.device = "";
    assert_int_equal(hone_store_put(f->store, &decision, &f->err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(f->err.message, "key.device"));
    decision = sample_decision();
    decision.time_ns = NAN;
    assert_int_equal(hone_store_put(f->store, &decision, &f->err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(f->err.message, "time_ns"));
    decision = sample_decision();
    decision.regime = HONE_REGIME_COUNT;
    assert_int_equal(hone_store_put(f->store, &decision, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_store_put(NULL, &decision, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_store_put(f->store, NULL, NULL), HONE_INVALID_ARGUMENT);
    assert_int_equal(get(f, NULL, &s), HONE_INVALID_ARGUMENT);
    hone_store_measurement measurement = sample_measurement();
    hone_store_key key = sample_key();
    measurement.failure = (hone_failure)99;
    assert_int_equal(hone_store_put_measurement(f->store, &key, &measurement, &f->err), HONE_INVALID_ARGUMENT);
    hone_store_invocation invocation = sample_invocation();
    invocation.first = -1;
    assert_int_equal(hone_store_add_invocations(f->store, &invocation, 1, &f->err), HONE_INVALID_ARGUMENT);
    hone_store_alias alias = sample_alias();
    alias.key.version = NULL;
    assert_int_equal(hone_store_put_alias(f->store, &alias, &f->err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(f->err.message, "alias.key.version"));
    assert_stat(f, 0, 0, 0);
}

static void a_null_store_or_output_is_refused(void **state)
{
    fixture *f = *state;
    hone_store_stat stat;
    hone_store_health health;
    assert_int_equal(hone_store_get_stat(f->store, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_store_get_stat(NULL, &stat, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_store_verify(f->store, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_store_verify(NULL, &health, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_store_clear_quarantine(NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_store_clear_invocations(NULL, "device", &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_store_remove(NULL, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_store_remove(f->store, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(
        hone_store_verify(f->store, &health, &f->err), HONE_OK); // and it is not locked by what was refused
}

static void invalid_call_keys_and_configs_are_refused(void **state)
{
    fixture *f = *state;
    static const char *const keys[] = {
        "k", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "0123456789abcdeg"};
    static const char *const configs[] = {"no json", "[1]", "3", "{\"a\": }", "{} {}", "{\"a\": NaN}"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        hone_store_decision put = sample_decision();
        put.key.key = keys[i];
        assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_INVALID_ARGUMENT);
        assert_non_null(strstr(f->err.message, keys[i]));
        assert_non_null(strstr(f->err.message, "16 lower-case hex digits"));
    }
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        hone_store_decision put = sample_decision();
        hone_store_measurement measurement = sample_measurement();
        put.config = measurement.config = configs[i];
        assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_INVALID_ARGUMENT);
        assert_non_null(strstr(f->err.message, "decision.config"));
        assert_int_equal(hone_store_put_measurement(f->store, &put.key, &measurement, &f->err), HONE_INVALID_ARGUMENT);
        assert_non_null(strstr(f->err.message, "measurement.config"));
    }
    assert_stat(f, 0, 0, 0);
}

static void names_are_short_and_printable_and_texts_are_bounded(void **state)
{
    fixture *f = *state;
    enum { SIZE = (16 << 20) + 2 };
    char *large = malloc(SIZE);
    assert_non_null(large);
    memset(large, 'x', SIZE - 1);
    large[SIZE - 1] = '\0';
    hone_store_decision put = sample_decision();
    const char **const names[] = {&put.key.device, &put.key.algorithm, &put.key.version, &put.key.key,
                                  &put.kernel,     &put.platform,      &put.source,      &put.revision};
    const char *const bad[] = {"a\nb", "\x1b[2J", "x\x7f", large};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t j = 0; j < sizeof bad / sizeof *bad; j++) {
            const char *good = *names[i];
            *names[i] = bad[j];
            assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_INVALID_ARGUMENT);
            assert_non_null(strstr(f->err.message, j < 3 ? "control character" : "longer than 1024 bytes"));
            *names[i] = good;
        }
    const char **const texts[] = {&put.key.spec, &put.call, &put.config, &put.evidence, &put.environment};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *good = *texts[i];
        *texts[i] = large;
        assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_INVALID_ARGUMENT);
        assert_non_null(strstr(f->err.message, "longer than 16777216 bytes"));
        *texts[i] = good;
    }
    free(large);
    assert_stat(f, 0, 0, 0);
}

static bool call_back(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    fixture *f = ctx;
    hone_error err;
    assert_int_equal(hone_store_put(f->store, decision, &err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "inside a visit"));
    return true;
}

static void a_visit_that_calls_its_own_store_is_refused(void **state)
{
    fixture *f = *state;
    hone_store_decision decision = sample_decision();
    assert_int_equal(hone_store_put(f->store, &decision, &f->err), HONE_OK);
    assert_int_equal(hone_store_scan(f->store, HONE_RECORD_DECISION, NULL, call_back, f, &f->err), HONE_OK);
    assert_int_equal(hone_store_put(f->store, &decision, &f->err), HONE_OK);
}

// Threads and memory --------------------------------------------------------------------------------------------------

enum { THREADS = 4, ROUNDS = 25 };

typedef struct worker {
    hone_store *store;
    int number;
    int failures;
} worker;

static void *put_and_get(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < ROUNDS; i++) {
        char key[32];
        seen s = {0};
        snprintf(key, sizeof key, "%08x%08x", (unsigned)w->number, (unsigned)i);
        hone_store_decision put = sample_decision();
        put.key.key = key;
        hone_store_invocation invocation = sample_invocation();
        w->failures += hone_store_put(w->store, &put, NULL) != HONE_OK;
        w->failures +=
            hone_store_get(w->store, HONE_RECORD_DECISION, &put.key, HONE_WARM, note_config, &s, NULL) != HONE_OK;
        w->failures += hone_store_add_invocations(w->store, &invocation, 1, NULL) != HONE_OK;
    }
    return NULL;
}

static void threads_share_a_store(void **state)
{
    fixture *f = *state;
    pthread_t threads[THREADS];
    worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){f->store, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, put_and_get, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].failures, 0);
    }
    assert_stat(f, THREADS * ROUNDS, 0, 0);
    assert_invocations(f, NULL, "0123456789abcdef:300:1000-2000:heuristic");
}

// Everything once; HONE_OK or the first failure.
static hone_status use_everything(const char *url, hone_allocator allocator)
{
    hone_store *store = NULL;
    seen s = {0};
    hone_error err;
    const hone_store_decision decisions[2] = {sample_decision(), sample_decision()};
    const hone_store_invocation invocation = sample_invocation();
    hone_store_measurement measurement = sample_measurement();
    const hone_store_alias alias = sample_alias();
    const hone_store_foreign foreign = sample_foreign();
    hone_store_health health;
    const hone_store_decision rival = claim("avx2", true, "{\"samples\":90}");
    const hone_store_key *key = &decisions[0].key;
    hone_status status = hone_store_open(allocator, url, &store, &err);
    if (status == HONE_OK) status = hone_store_put_all(store, decisions, 2, &err);
    if (status == HONE_OK) status = hone_store_put_measurement(store, key, &measurement, &err);
    measurement.failure = HONE_FAILURE_RUN;
    if (status == HONE_OK) status = hone_store_put_measurement(store, key, &measurement, &err);
    if (status == HONE_OK) status = hone_store_add_invocations(store, &invocation, 1, &err);
    if (status == HONE_OK) status = hone_store_put_alias(store, &alias, &err);
    if (status == HONE_OK) status = hone_store_put_foreign(store, &foreign, 1, &err);
    if (status == HONE_OK) status = hone_store_merge(store, &rival, 1, NULL, NULL, &err);
    if (status == HONE_OK) status = hone_store_scan(store, HONE_RECORD_DECISION, NULL, note_decision, &s, &err);
    if (status == HONE_OK) status = hone_store_scan(store, HONE_RECORD_INVOCATION, NULL, note_invocation, &s, &err);
    if (status == HONE_OK) status = hone_store_set_aside(store, key, HONE_WARM, "is bad", &err);
    if (status == HONE_OK) status = hone_store_put(store, decisions, &err);
    if (status == HONE_OK) status = hone_store_verify(store, &health, &err);
    if (status == HONE_OK) status = hone_store_clear_quarantine(store, &err);
    if (status == HONE_OK) status = hone_store_remove(store, key, &err);
    if (status != HONE_OK) assert_int_equal(status, err.status);
    hone_store_close(&store);
    return status;
}

static void each_allocation_may_fail_and_nothing_leaks(void **state)
{
    fixture *f = *state;
    hone_store_close(&f->store);
    hone_status status = HONE_OUT_OF_MEMORY;
    for (long long left = 0; status != HONE_OK && left < 1000; left++) {
        failing_allocator memory;
        status = use_everything(f->url, failing_allocator_of(&memory, left));
        assert_true(status == HONE_OK || status == HONE_OUT_OF_MEMORY);
        assert_int_equal(atomic_load(&memory.live), 0);
    }
    assert_int_equal(status, HONE_OK);
}

static void a_change_without_memory_changes_nothing(void **state)
{
    fixture *f = *state;
    hone_store_decision put = sample_decision();
    assert_int_equal(hone_store_put(f->store, &put, &f->err), HONE_OK);
    hone_store_decision both[2] = {put, put};
    both[0].config = "{\"new\":1}";
    both[1].key.key = "1111111111111111";
    for (long long left = 0;; left++) {
        atomic_store(&f->memory.left, left);
        hone_status status = hone_store_put_all(f->store, both, 2, &f->err);
        atomic_store(&f->memory.left, -1);
        if (status == HONE_OK) break;
        seen s = {0};
        assert_int_equal(status, HONE_OUT_OF_MEMORY);
        assert_stat(f, 1, 0, 0);
        assert_int_equal(get(f, &put.key, &s), HONE_OK);
        assert_string_equal(s.texts, "{\"rows_per_task\":4}");
    }
    assert_stat(f, 2, 0, 0);
}

static void assert_stored(fixture *f, uint64_t decisions, uint64_t measurements, uint64_t aliases, uint64_t foreigns)
{
    hone_store_stat stat;
    assert_int_equal(hone_store_get_stat(f->store, &stat, &f->err), HONE_OK);
    assert_int_equal(stat.decisions, decisions);
    assert_int_equal(stat.measurements, measurements);
    assert_int_equal(stat.aliases, aliases);
    assert_int_equal(stat.foreigns, foreigns);
}

static void a_batch_of_all_kinds_is_put_whole_or_not_at_all(void **state)
{
    fixture *f = *state;
    const hone_store_decision decisions[2] = {sample_decision(), sample_decision()};
    const hone_store_measured measured = {sample_key(), sample_measurement()};
    const hone_store_alias alias = sample_alias();
    const hone_store_foreign foreign = {
        .scheme = "ejkernel", .operation = "op@v1", .foreign_key = "0123456789abcdef", .text = "{}"};
    hone_store_key gone = sample_key();
    size_t put = 0;
    const hone_store_batch batch = {
        .removed = &gone,
        .removed_count = 1,
        .decisions = decisions,
        .decision_count = 2,
        .measured = &measured,
        .measured_count = 1,
        .out_measured = &put,
        .aliases = &alias,
        .alias_count = 1,
        .foreigns = &foreign,
        .foreign_count = 1,
    };
    hone_store_decision old = sample_decision();
    gone.key = old.key.key = "ffffffffffffffff";
    assert_int_equal(hone_store_put(f->store, &old, &f->err), HONE_OK);
    for (long long left = 0;; left++) {
        atomic_store(&f->memory.left, left);
        hone_status status = hone_store_put_batch(f->store, &batch, &f->err);
        atomic_store(&f->memory.left, -1);
        if (status == HONE_OK) break;
        assert_int_equal(status, HONE_OUT_OF_MEMORY);
        assert_stored(f, 1, 0, 0, 0);
    }
    assert_stored(f, 1, 1, 1, 1);
    assert_int_equal(put, 1);
    seen s = {0};
    assert_int_equal(get(f, &gone, &s), HONE_NOT_FOUND);
}

static void a_batch_replaces_measurements_that_rest_on_less(void **state)
{
    fixture *f = *state;
    hone_store_measured measured = {sample_key(), sample_measurement()};
    const hone_store_batch batch = {.measured = &measured, .measured_count = 1};
    assert_int_equal(hone_store_put_batch(f->store, &batch, &f->err), HONE_OK);
    measured.measurement.time_ns = 50;
    assert_int_equal(hone_store_put_batch(f->store, &batch, &f->err), HONE_OK);
    assert_measurements(f, "avx512:100:0");
    measured.measurement.samples++;
    assert_int_equal(hone_store_put_batch(f->store, &batch, &f->err), HONE_OK);
    assert_measurements(f, "avx512:50:0");
    measured.measurement.failure = HONE_FAILURE_CRASH;
    assert_int_equal(hone_store_put_batch(f->store, &batch, &f->err), HONE_OK);
    assert_measurements(f, "avx512:50:0");
}

// Two handles -----------------------------------------------------------------------------------------------------------
// For kinds whose records outlive a handle.

static hone_store *open_again(const fixture *f)
{
    hone_store *other = NULL;
    hone_error err;
    if (hone_store_open(hone_allocator_system(), f->url, &other, &err) != HONE_OK) fail_msg("%s", err.message);
    return other;
}

static hone_status get_from(hone_store *store, const hone_store_key *key, seen *s)
{
    return hone_store_get(store, HONE_RECORD_DECISION, key, HONE_WARM, note_config, s, NULL);
}

static void two_handles_see_each_others_changes(void **state)
{
    fixture *f = *state;
    hone_store *other = open_again(f);
    hone_store_decision decision = sample_decision();
    seen s = {0};
    assert_int_equal(hone_store_put(f->store, &decision, &f->err), HONE_OK);
    assert_int_equal(get_from(other, &decision.key, &s), HONE_OK);
    decision.config = "{\"rows_per_task\":16}";
    assert_int_equal(hone_store_put(other, &decision, &f->err), HONE_OK);
    assert_int_equal(get_from(f->store, &decision.key, &s), HONE_OK);
    assert_string_equal(s.texts, "{\"rows_per_task\":4} {\"rows_per_task\":16}");
    assert_int_equal(hone_store_remove(f->store, &decision.key, &f->err), HONE_OK);
    assert_int_equal(get_from(other, &decision.key, &s), HONE_NOT_FOUND);
    hone_store_close(&other);
}

static void put_one_of_each(fixture *f)
{
    hone_store_decision decision = sample_decision(), removed = sample_decision();
    removed.key.key = "0000000000000000";
    hone_store_measurement measurement = sample_measurement();
    hone_store_invocation invocation = sample_invocation();
    assert_int_equal(hone_store_put(f->store, &decision, &f->err), HONE_OK);
    assert_int_equal(hone_store_put(f->store, &removed, &f->err), HONE_OK);
    assert_int_equal(hone_store_put_measurement(f->store, &decision.key, &measurement, &f->err), HONE_OK);
    assert_int_equal(hone_store_add_invocations(f->store, &invocation, 1, &f->err), HONE_OK);
    assert_int_equal(hone_store_remove(f->store, &removed.key, &f->err), HONE_OK);
}

static void what_was_put_and_what_was_removed_stays_so_when_it_is_opened_again(void **state)
{
    fixture *f = *state;
    put_one_of_each(f);
    hone_store_close(&f->store);
    assert_int_equal(hone_store_open(failing_allocator_of(&f->memory, -1), f->url, &f->store, &f->err), HONE_OK);
    hone_store_decision decision = sample_decision();
    seen s = {0};
    assert_int_equal(get(f, &decision.key, &s), HONE_OK);
    assert_string_equal(s.texts, "{\"rows_per_task\":4}");
    assert_stat(f, 1, 1, 0);
    assert_measurements(f, "avx512:100:0");
    seen calls = {0};
    assert_int_equal(
        hone_store_scan(f->store, HONE_RECORD_INVOCATION, NULL, note_invocation, &calls, &f->err), HONE_OK);
    assert_int_equal(calls.count, 1);
}

static void two_handles_that_write_at_once_lose_nothing(void **state)
{
    fixture *f = *state;
    pthread_t threads[2];
    worker workers[2] = {{.store = f->store}, {.store = open_again(f), .number = 1}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_and_get, &workers[i]), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].failures, 0);
    }
    hone_store_close(&workers[1].store);
    assert_stat(f, 2 * ROUNDS, 0, 0);
}

// What this handle puts itself may count, and need not: who put it knows.
static void what_another_handle_puts_changes_a_number_and_what_is_read_does_not(void **state)
{
    fixture *f = *state;
    uint64_t first, then, last;
    hone_store *other = open_again(f);
    hone_store_decision decision = sample_decision();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hone_store_changes(f->store, &first, &f->err), HONE_OK);
        assert_int_equal(hone_store_changes(f->store, &then, &f->err), HONE_OK);
        assert_int_equal(first, then);
        decision.time_ns = 100 + i;
        assert_int_equal(hone_store_put(other, &decision, &f->err), HONE_OK);
        last = then;
        // A server tells of it a moment later.
        for (int looks = 0; last == then && looks < 5000; looks++) {
            assert_int_equal(hone_store_changes(f->store, &last, &f->err), HONE_OK);
            if (last == then) hone_os_sleep_ns(1000000);
        }
        assert_int_not_equal(last, then);
    }
    hone_store_close(&other);
}

static void a_lease_has_one_holder(void **state)
{
    enum { NAME = 4711, OTHER_NAME };
    static const volatile int gives_up = 1;
    const hone_wait wait = {.cancel = &gives_up, .seconds = 600};
    fixture *f = *state;
    hone_store *other = open_again(f);
    hone_lease first, second, unlike;
    assert_int_equal(hone_store_lease(f->store, NAME, &wait, &first, &f->err), HONE_OK);
    assert_non_null(first.leave);
    assert_int_equal(hone_store_lease(other, NAME, &wait, &second, &f->err), HONE_CANCELLED);
    assert_int_equal(hone_store_lease(other, OTHER_NAME, &wait, &unlike, &f->err), HONE_OK);
    hone_lease_leave(&first);
    assert_int_equal(hone_store_lease(other, NAME, &wait, &second, &f->err), HONE_OK);
    hone_lease_leave(&second);
    hone_lease_leave(&unlike);
    hone_store_close(&other);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(get_before_put_is_not_found),
        STORE_TEST(what_was_put_comes_back_field_by_field),
        STORE_TEST(fields_that_are_missing_come_back_missing),
        STORE_TEST(any_text_and_any_number_comes_back),
        STORE_TEST(a_put_replaces_the_decision_of_its_key),
        STORE_TEST(warm_and_cold_are_two_decisions),
        STORE_TEST(each_part_of_the_key_tells_decisions_apart),
        STORE_TEST(another_spec_under_the_same_key_is_a_miss),
        STORE_TEST(put_all_is_all_or_none),
        STORE_TEST(remove_takes_measurements_and_failures_along),
        STORE_TEST(a_scan_goes_in_the_order_of_keys),
        STORE_TEST(a_scan_sees_what_the_filter_lets_through),
        STORE_TEST(a_scan_ends_when_its_visit_says_so),
        STORE_TEST(a_merge_keeps_the_better_by_the_first_rule_that_tells_them_apart),
        STORE_TEST(a_later_revision_of_a_kernel_takes_the_place_of_the_older),
        STORE_TEST(the_loser_is_kept_in_the_evidence_of_the_winner),
        STORE_TEST(evidence_keeps_the_last_four_losers),
        STORE_TEST(another_calls_decision_is_not_taken),
        STORE_TEST(a_merge_is_all_or_none_and_tells_each_in_order),
        STORE_TEST(every_config_of_every_kernel_and_regime_is_kept),
        STORE_TEST(a_repeated_measurement_replaces),
        STORE_TEST(a_measurement_comes_back_field_by_field),
        STORE_TEST(samples_that_are_no_list_of_times_are_refused),
        STORE_TEST(a_failure_takes_the_place_of_its_measurement_and_gives_it_back),
        STORE_TEST(measurements_of_another_spec_are_not_given),
        STORE_TEST(measurements_of_all_keys_come_in_their_order_then_failures),
        STORE_TEST(measurements_end_when_their_visit_says_so),
        STORE_TEST(invocations_add_up_between_the_first_and_the_last),
        STORE_TEST(invocations_come_heaviest_first),
        STORE_TEST(undecided_calls_are_forgotten_after_ninety_days),
        STORE_TEST(invocations_are_found_by_the_words_of_a_label),
        STORE_TEST(finding_a_label_does_not_scan_all_labels),
        STORE_TEST(a_count_stays_at_its_largest),
        STORE_TEST(an_alias_is_found_by_the_foreign_key),
        STORE_TEST(aliases_are_walked_by_scheme_in_the_order_of_keys),
        STORE_TEST(a_foreign_config_comes_back_as_it_came),
        STORE_TEST(a_note_of_the_store_is_no_config_of_another_system),
        STORE_TEST(foreign_configs_are_put_all_or_none),
        STORE_TEST(a_foreign_config_is_found_by_its_whole_key),
        STORE_TEST(foreign_configs_of_a_scheme_are_cleared_and_others_stay),
        STORE_TEST(stat_counts_every_kind_of_record),
        STORE_TEST(a_decision_that_is_set_aside_is_a_miss_and_is_kept_with_the_reason),
        STORE_TEST(wrong_arguments_are_refused_by_name),
        STORE_TEST(a_null_store_or_output_is_refused),
        STORE_TEST(invalid_call_keys_and_configs_are_refused),
        STORE_TEST(names_are_short_and_printable_and_texts_are_bounded),
        STORE_TEST(a_visit_that_calls_its_own_store_is_refused),
        STORE_TEST(threads_share_a_store),
        STORE_TEST(each_allocation_may_fail_and_nothing_leaks),
        STORE_TEST(a_change_without_memory_changes_nothing),
        STORE_TEST(a_batch_of_all_kinds_is_put_whole_or_not_at_all),
        STORE_TEST(a_batch_replaces_measurements_that_rest_on_less),
    };
    const struct CMUnitTest shared[] = {
        STORE_TEST(two_handles_see_each_others_changes),
        STORE_TEST(what_was_put_and_what_was_removed_stays_so_when_it_is_opened_again),
        STORE_TEST(two_handles_that_write_at_once_lose_nothing),
        STORE_TEST(what_another_handle_puts_changes_a_number_and_what_is_read_does_not),
        STORE_TEST(a_lease_has_one_holder),
    };
    if (count < 2 || count > 3) {
        fprintf(stderr, "usage: %s SCHEME: [NAME]\n", arguments[0]);
        return 2;
    }
    scheme = arguments[1];
    name = count == 3 ? arguments[2] : "";
    alarm(HANGS);
    int failed = cmocka_run_group_tests_name(scheme, tests, NULL, NULL);
    return name[0] == '\0' ? failed : failed + cmocka_run_group_tests_name("shared", shared, NULL, NULL);
}
