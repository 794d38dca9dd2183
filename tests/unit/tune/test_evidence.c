#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/json.h"
#include "tune/tuner.h"

#include <string.h>

static hone_evidence full(void)
{
    hone_evidence e = {
        .time_ns = 1.25e6,
        .low_ns = 1.2e6,
        .high_ns = 1.3e6,
        .samples = 16,
        .rounds = 16,
        .regime = HONE_COLD,
        .runner_up = "openblas",
        .ratio = 1.05,
        .ratio_low = 1.03,
        .ratio_high = 1.07,
        .default_time_ns = 2e6,
        .default_samples = 12,
        .verified_against = "reference",
        .tolerance = 1,
        .max_error = 0.25,
        .floor_ns = 5e5,
        .floor = "500 us, for 31.4 MB at 2 times the 31.4 GB/s measured of memory",
        .measured = 101,
        .seconds = 8.5,
        .prepare_seconds = 1,
        .verify_seconds = 2,
        .run_seconds = 5,
        .wait_seconds = 0.5,
        .load = 0.5,
        .throttled = 3,
        .stolen = 0.125,
        .allowed_seconds = 30,
        .disturbed = 0.375,
        .undecided = "1 of 2 kernels was never tried; try --seconds 60",
        .seed = 12345678901u,
        .isolated = true,
        .hone_version = "0.1.0",
        .started = "2026-11-20T12:34:56Z"};
    e.rejected[HONE_FAILURE_WRONG] = 1;
    e.rejected[HONE_FAILURE_CRASH] = 2;
    return e;
}

static void evidence_survives_the_way_through_text(void **state)
{
    (void)state;
    hone_evidence from = full(), to;
    hone_buffer out;
    hone_buffer_init(&out, hone_allocator_system());
    hone_evidence_json(&from, &out);
    assert_int_equal(hone_evidence_parse(out.data, out.size, &to, NULL), HONE_OK);
    hone_buffer again;
    hone_buffer_init(&again, hone_allocator_system());
    hone_evidence_json(&to, &again);
    assert_string_equal(out.data, again.data);
    assert_int_equal(to.rejected[HONE_FAILURE_CRASH], 2);
    assert_true(to.isolated && to.regime == HONE_COLD && to.seed == 12345678901u);
    hone_buffer_deinit(&again);
    hone_buffer_deinit(&out);
}

static void missing_fields_are_zero_and_unknown_ones_are_ignored(void **state)
{
    (void)state;
    const char text[] = "{\"time_ns\":5,\"new\":{\"x\":1}}";
    hone_evidence to;
    assert_int_equal(hone_evidence_parse(text, strlen(text), &to, NULL), HONE_OK);
    assert_true(to.time_ns == 5);
    assert_int_equal(to.samples, 0);
    assert_string_equal(to.verified_against, "");
}

static void wrong_kinds_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"samples\":-1}",     "{\"samples\":\"x\"}",
        "{\"time_ns\":\"1\"}",  "{\"rejected\":[]}",
        "{\"regime\":1}",       "{\"regime\":\"hot\"}",
        "{\"isolated\":\"x\"}", "{\"started\":\"far too long to be a time of any kind\"}",
        "{\"time_ns\":-1}",     "[]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        hone_evidence to = {.samples = 77};
        hone_error err;
        assert_int_equal(hone_evidence_parse(texts[i], strlen(texts[i]), &to, &err), HONE_CORRUPT);
        assert_non_null(strstr(err.message, "evidence"));
        assert_int_equal(to.samples, 77);
    }
}

static void a_record_without_evidence_that_can_be_read_has_none(void **state)
{
    (void)state;
    static const char *const bad[] = {NULL, "", "{\"time_ns\":", "{\"time_ns\":\"long\"}"};
    hone_evidence evidence;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        evidence.time_ns = 7;
        assert_false(hone_evidence_of(bad[i], &evidence));
        assert_true(evidence.time_ns == 0);
    }
    assert_true(hone_evidence_of("{\"time_ns\":5}", &evidence));
    assert_true(evidence.time_ns == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_without_evidence_that_can_be_read_has_none),
        cmocka_unit_test(evidence_survives_the_way_through_text),
        cmocka_unit_test(missing_fields_are_zero_and_unknown_ones_are_ignored),
        cmocka_unit_test(wrong_kinds_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
