// Result documents: written, read back, merged, stored; and what is no result document.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/json.h"
#include "failing_allocator.h"
#include "hone/result.h"
#include "runtime/api/entry.h"
#include "store/records.h"
#include "tune/result/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int runtime; // its address stands for a runtime

// What a result hands over as an overlay; the runtime's own is tested with it.
static hone_entry given[4];
static hone_entry_ground grounds_given[4];
static size_t given_count;
hone_status hone_entry_overlay(
    hone_runtime *rt,
    const hone_entry *entries,
    const hone_entry_ground *grounds,
    size_t count,
    hone_overlay **out,
    hone_error *err)
{
    (void)err;
    assert_ptr_equal(rt, &runtime);
    assert_true(count <= 4);
    memcpy(given, entries, count * sizeof *entries);
    memcpy(grounds_given, grounds, count * sizeof *grounds);
    given_count = count;
    *out = NULL;
    return HONE_OK;
}

static hone_result *read_text(const char *text, hone_status expected)
{
    hone_result *result = NULL;
    hone_error err;
    hone_status status = hone_result_read(hone_allocator_system(), NULL, &runtime, text, strlen(text), &result, &err);
    if (status != expected) print_message("%s\n", status == HONE_OK ? "read" : err.message);
    assert_int_equal(status, expected);
    return result;
}

static const char document[] =
    "{\"hone_result\":1,\"device\":\"cpu|a\",\"entries\":["
    "{\"algorithm\":\"rms_norm\",\"version\":\"1\",\"key\":\"44136fa355b3678a\",\"call\":\"rms_norm(f32[4])\",\"spec\":"
    "\"{}\","
    "\"kernel\":\"avx512\",\"platform\":\"native\",\"config\":{\"rows\":4},\"source\":\"autotune\",\"evidence\":{"
    "\"time_ns\":"
    "1500.0,\"samples\":16,\"verified_against\":\"reference\",\"kernels\":[{\"kernel\":\"avx512\",\"time_ns\":1500.0}]}"
    "}],"
    "\"aliases\":[{\"scheme\":\"ejkernel\",\"operation\":\"norm@v0\",\"foreign_key\":\"cd80994abb0d1e04\","
    "\"foreign_spec\":\"{1}\",\"algorithm\":\"rms_norm\",\"version\":\"1\",\"key\":\"44136fa355b3678a\",\"spec\":\"{}"
    "\"}],"
    "\"failed\":[{\"call\":\"x()\",\"key\":\"k\",\"reason\":\"why\"}],\"environment\":{\"os\":\"Linux\"}}";

static char *text_of(const hone_result *result)
{
    char *text = NULL;
    assert_int_equal(hone_result_json(result, &text, NULL), HONE_OK);
    return text;
}

static void a_document_survives_reading_and_writing(void **state)
{
    (void)state;
    hone_result *result = read_text(document, HONE_OK);
    assert_int_equal(hone_result_size(result), 1);
    const hone_decision *decision = hone_result_decision(result, 0);
    assert_string_equal(decision->kernel, "avx512");
    assert_string_equal(decision->config_json, "{\"rows\":4}");
    assert_true(decision->verified);
    assert_string_equal(hone_result_call(result, 0), "rms_norm(f32[4])");
    char *text = text_of(result);
    hone_result *again = read_text(text, HONE_OK);
    char *twice = text_of(again);
    assert_string_equal(text, twice);
    json_t *root = NULL;
    assert_int_equal(hone_json_parse(text, strlen(text), &root, NULL), HONE_OK);
    const json_t *evidence = json_object_get(json_array_get(json_object_get(root, "entries"), 0), "evidence");
    assert_int_equal(json_array_size(json_object_get(evidence, "kernels")), 1);
    assert_string_equal(json_string_value(json_object_get(json_object_get(root, "environment"), "os")), "Linux");
    assert_int_equal(json_array_size(json_object_get(root, "failed")), 1);
    assert_int_equal(json_array_size(json_object_get(root, "aliases")), 1);
    json_decref(root);
    hone_text_release(&text);
    hone_text_release(&twice);
    hone_result_release(&again);
    hone_result_release(&result);
    assert_null(result);
}

// Configs are compared as texts, so that space must not make another of one.
static void a_document_that_was_laid_out_anew_reads_the_same(void **state)
{
    (void)state;
    json_t *root = NULL;
    assert_int_equal(hone_json_parse(document, strlen(document), &root, NULL), HONE_OK);
    char *pretty = json_dumps(root, JSON_INDENT(4));
    json_decref(root);
    assert_non_null(strstr(pretty, "\"rows\": 4"));
    hone_result *plain = read_text(document, HONE_OK), *laid_out = read_text(pretty, HONE_OK);
    assert_string_equal(hone_result_decision(laid_out, 0)->config_json, "{\"rows\":4}");
    char *text = text_of(plain), *same = text_of(laid_out);
    assert_string_equal(text, same);
    hone_text_release(&text);
    hone_text_release(&same);
    hone_result_release(&laid_out);
    hone_result_release(&plain);
    free(pretty);
}

static void what_an_export_says_aloud_goes_before_evidence(void **state)
{
    (void)state;
    hone_result *result = read_text(
        "{\"hone_result\":1,\"device\":\"d\",\"entries\":[{\"algorithm\":\"a\",\"key\":\"44136fa355b3678a\","
        "\"kernel\":\"k\",\"regime\":\"cold\",\"verified\":true,\"evidence\":{\"time_ns\":3}}]}",
        HONE_OK);
    const hone_decision *decision = hone_result_decision(result, 0);
    assert_true(decision->verified);
    assert_int_equal(decision->evidence.regime, HONE_COLD);
    hone_result_release(&result);
}

static void only_the_time_is_required_of_evidence(void **state)
{
    (void)state;
    hone_result *result = read_text(
        "{\"hone_result\":1,\"device\":\"d\",\"entries\":[{\"algorithm\":\"a\",\"key\":\"44136fa355b3678a\","
        "\"kernel\":\"k\",\"evidence\":{\"time_ns\":3}}]}",
        HONE_OK);
    const hone_decision *decision = hone_result_decision(result, 0);
    assert_false(decision->verified);
    assert_string_equal(decision->version, "1");
    assert_string_equal(decision->config_json, "{}");
    hone_result_release(&result);
}

#define ENTRY(fields) "{\"hone_result\":1,\"device\":\"d\",\"entries\":[{" fields "}]}"
#define NAMED         "\"algorithm\":\"a\",\"kernel\":\"k\",\"key\":\"44136fa355b3678a\","

static void an_invalid_result_document_is_refused_with_the_position(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        hone_status status;
    } bad[] = {
        {"", HONE_CORRUPT},
        {"[]", HONE_CORRUPT},
        {"{}", HONE_CORRUPT},
        {"{\"hone_result\":2,\"device\":\"d\",\"entries\":[]}", HONE_INCOMPATIBLE},
        {"{\"hone_result\":1,\"entries\":[]}", HONE_CORRUPT},
        {"{\"hone_result\":1,\"device\":\"d\"}", HONE_CORRUPT},
        {"{\"hone_result\":1,\"device\":\"d\",\"entries\":[7]}", HONE_CORRUPT},
        {ENTRY("\"kernel\":\"k\""), HONE_CORRUPT},
        {ENTRY(NAMED "\"evidence\":{}"), HONE_CORRUPT},
        {ENTRY(NAMED "\"evidence\":{\"time_ns\":0}"), HONE_CORRUPT},
        {ENTRY(NAMED "\"evidence\":{\"time_ns\":-4}"), HONE_CORRUPT},
        {ENTRY(NAMED "\"platform\":\"abacus\",\"evidence\":{\"time_ns\":1}"), HONE_CORRUPT},
        {ENTRY(NAMED "\"source\":\"rumour\",\"evidence\":{\"time_ns\":1}"), HONE_CORRUPT},
        {ENTRY(NAMED "\"config\":[1],\"evidence\":{\"time_ns\":1}"), HONE_CORRUPT},
        {ENTRY(NAMED "\"device\":\"\",\"evidence\":{\"time_ns\":1}"), HONE_CORRUPT},
        {ENTRY(NAMED "\"regime\":\"tepid\",\"evidence\":{\"time_ns\":1}"), HONE_CORRUPT},
        {ENTRY(NAMED "\"version\":\"sixteen bytes or more\",\"evidence\":{\"time_ns\":1}"), HONE_CORRUPT},
        {ENTRY("\"algorithm\":\"a\",\"kernel\":\"k\",\"key\":\"XYZ\",\"evidence\":{\"time_ns\":1}"), HONE_CORRUPT},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_null(read_text(bad[i].text, bad[i].status));
}

static void every_cut_of_a_document_is_refused(void **state)
{
    (void)state;
    for (size_t size = 0; size + 1 < sizeof document - 1; size++) {
        hone_result *result = NULL;
        assert_int_equal(
            hone_result_read(hone_allocator_system(), NULL, NULL, document, size, &result, NULL), HONE_CORRUPT);
        assert_null(result);
    }
}

static hone_result *one(const char *kernel, bool verified, unsigned samples, double time_ns)
{
    char text[512];
    snprintf(
        text, sizeof text,
        "{\"hone_result\":1,\"device\":\"d\",\"entries\":[{\"algorithm\":\"a\",\"key\":\"44136fa355b3678a\",\"kernel\":"
        "\"%s\","
        "\"evidence\":{\"time_ns\":%g,\"samples\":%u,\"verified_against\":\"%s\"}}]}",
        kernel, time_ns, samples, verified ? "reference" : "");
    return read_text(text, HONE_OK);
}

static void assert_merged(hone_result *a, hone_result *b, const char *winner)
{
    for (int turn = 0; turn < 2; turn++) {
        hone_result *both = NULL;
        assert_int_equal(hone_result_merge(turn ? b : a, turn ? a : b, &both, NULL), HONE_OK);
        assert_int_equal(hone_result_size(both), 1);
        assert_string_equal(hone_result_decision(both, 0)->kernel, winner);
        hone_result_release(&both);
    }
    hone_result_release(&a);
    hone_result_release(&b);
}

static void merging_takes_verified_then_samples_then_speed(void **state)
{
    (void)state;
    assert_merged(one("fast", false, 90, 1), one("sure", true, 5, 9), "sure");
    assert_merged(one("often", true, 20, 9), one("fast", true, 5, 1), "often");
    assert_merged(one("slow", true, 5, 9), one("fast", true, 5, 1), "fast");
}

static void results_of_two_devices_do_not_merge(void **state)
{
    (void)state;
    hone_result *a = read_text(document, HONE_OK), *b = one("k", true, 1, 1), *both = NULL;
    hone_error err;
    assert_int_equal(hone_result_merge(a, b, &both, &err), HONE_INVALID_ARGUMENT);
    assert_null(both);
    hone_result_release(&a);
    hone_result_release(&b);
}

#define OF_TWO                                                                                                         \
    "{\"hone_result\":1,\"device\":\"cpu|a\",\"entries\":["                                                            \
    "{" NAMED "\"evidence\":{\"time_ns\":5}},"                                                                         \
    "{" NAMED "\"device\":\"gpu|b\",\"environment\":{\"driver\":\"7\"},\"evidence\":{\"time_ns\":3}}],"                \
    "\"environment\":{\"driver\":\"none\"}}"

static bool look_at_driver(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    snprintf(ctx, 64, "%s", decision->environment);
    return true;
}

static void a_call_on_another_device_keeps_device_and_environment_of_its_own(void **state)
{
    (void)state;
    static const char *const environments[][2] = {{"cpu|a", "{\"driver\":\"none\"}"}, {"gpu|b", "{\"driver\":\"7\"}"}};
    hone_result *read = read_text(OF_TWO, HONE_OK);
    char *text = text_of(read);
    hone_result *result = read_text(text, HONE_OK);
    hone_overlay *overlay = NULL;
    hone_store *store = NULL;
    assert_int_equal(hone_result_size(result), 2); // of one key
    assert_int_equal(hone_result_overlay(result, &overlay, NULL), HONE_OK);
    assert_int_equal(hone_store_open(hone_allocator_system(), "memory:", &store, NULL), HONE_OK);
    assert_int_equal(hone_result_store(result, store, NULL), HONE_OK);
    for (size_t i = 0; i < 2; i++) {
        char found[64] = "";
        const hone_store_key key = {environments[i][0], "a", "1", "44136fa355b3678a", NULL};
        assert_int_equal(
            hone_store_get(store, HONE_RECORD_DECISION, &key, HONE_WARM, look_at_driver, found, NULL), HONE_OK);
        assert_string_equal(found, environments[i][1]);
        assert_string_equal(given[i].device, environments[i][0]);
    }
    hone_store_close(&store);
    hone_text_release(&text);
    hone_result_release(&read);
    hone_result_release(&result);
}

static bool look(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    assert_string_equal(decision->kernel, "avx512");
    assert_string_equal(decision->config, "{\"rows\":4}");
    assert_true(decision->verified);
    assert_true(decision->time_ns == 1500);
    *(bool *)ctx = true;
    return true;
}

static void look_at_alias(void *ctx, const hone_store_alias *alias)
{
    assert_string_equal(alias->foreign_spec, "{1}");
    assert_string_equal(alias->key.algorithm, "rms_norm");
    assert_string_equal(alias->key.key, "44136fa355b3678a");
    *(bool *)ctx = true;
}

static void a_result_is_stored_under_its_keys_and_found_by_its_labels(void **state)
{
    (void)state;
    hone_result *read = read_text(document, HONE_OK), *result = NULL;
    hone_store *store = NULL;
    bool aliased = false;
    assert_int_equal(hone_result_merge(read, read, &result, NULL), HONE_OK); // the same labels
    hone_result_release(&read);
    assert_int_equal(hone_store_open(hone_allocator_system(), "memory:", &store, NULL), HONE_OK);
    assert_int_equal(hone_result_store(result, store, NULL), HONE_OK);
    assert_int_equal(
        hone_store_get_alias(store, "ejkernel", "norm@v0", "cd80994abb0d1e04", look_at_alias, &aliased, NULL), HONE_OK);
    assert_true(aliased);
    const hone_store_key key = {"cpu|a", "rms_norm", "1", "44136fa355b3678a", "{}"};
    bool seen = false;
    assert_int_equal(hone_store_get(store, HONE_RECORD_DECISION, &key, HONE_WARM, look, &seen, NULL), HONE_OK);
    assert_true(seen);
    hone_store_close(&store);
    hone_result_release(&result);
}

static void a_result_becomes_an_overlay_of_its_owner(void **state)
{
    (void)state;
    hone_result *result = read_text(document, HONE_OK);
    hone_overlay *overlay = NULL;
    assert_int_equal(hone_result_overlay(result, &overlay, NULL), HONE_OK);
    assert_int_equal(given_count, 1);
    assert_string_equal(given[0].algorithm, "rms_norm");
    assert_string_equal(given[0].device, "cpu|a");
    assert_string_equal(given[0].config, "{\"rows\":4}");
    assert_true(grounds_given[0].decision->verified);
    assert_true(grounds_given[0].decision->evidence.time_ns == 1500);
    hone_result_release(&result);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    failing_allocator memory;
    for (long long allowed = 0;; allowed++) {
        hone_allocator allocator = failing_allocator_of(&memory, allowed);
        hone_result *result = NULL;
        hone_status status = hone_result_read(allocator, NULL, NULL, document, strlen(document), &result, NULL);
        hone_result_release(&result);
        assert_int_equal(memory.live, 0);
        if (status == HONE_OK) break;
        assert_int_equal(status, HONE_OUT_OF_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_survives_reading_and_writing),
        cmocka_unit_test(a_document_that_was_laid_out_anew_reads_the_same),
        cmocka_unit_test(what_an_export_says_aloud_goes_before_evidence),
        cmocka_unit_test(only_the_time_is_required_of_evidence),
        cmocka_unit_test(an_invalid_result_document_is_refused_with_the_position),
        cmocka_unit_test(every_cut_of_a_document_is_refused),
        cmocka_unit_test(merging_takes_verified_then_samples_then_speed),
        cmocka_unit_test(results_of_two_devices_do_not_merge),
        cmocka_unit_test(a_call_on_another_device_keeps_device_and_environment_of_its_own),
        cmocka_unit_test(a_result_is_stored_under_its_keys_and_found_by_its_labels),
        cmocka_unit_test(a_result_becomes_an_overlay_of_its_owner),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
