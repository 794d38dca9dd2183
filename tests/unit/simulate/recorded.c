#include "simulate/recorded.h"

#include "failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                                                                                           \
    "{\"device_name\":\"Some "                                                                                         \
    "GPU\",\"kernel_name\":\"sum\",\"problem_size\":[4096],\"tune_params_keys\":[\"bx\",\"m\"],"                       \
    "\"tune_params\":{\"bx\":[16,32],\"m\":[\"row\",\"col\"]},\"objective\":\"time\",\"cache\":{"
#define FIRST                                                                                                          \
    "\"16,row\":{\"bx\":16,\"m\":\"row\",\"time\":2.5,\"times\":[2.4,NaN,2.6],\"compile_time\":100,"                   \
    "\"verification_time\":0,\"benchmark_time\":20.5,\"strategy_time\":7,\"framework_time\":1.5}"
#define SECOND "\"32,row\":{\"bx\":32,\"m\":\"row\",\"time\":\"CompilationFailedConfig\",\"compile_time\":50}"
#define THIRD  "\"32,col\":{\"bx\":32,\"m\":\"col\",\"time\":Infinity}"

// The error is one that was used before: a success may not look like its failure.
static hone_recorded *parsed(const char *text)
{
    hone_recorded *recorded;
    hone_error err = {.status = HONE_IO, .message = "before"};
    if (hone_recorded_parse(hone_allocator_system(), "f", text, strlen(text), &recorded, &err) != HONE_OK)
        fail_msg("%s", err.message);
    return recorded;
}

static void a_cache_file_gives_its_rows_costs_and_failures(void **state)
{
    (void)state;
    hone_recorded *recorded = parsed(HEAD FIRST "," SECOND "," THIRD "}}");
    assert_false(hone_recorded_is_cut(recorded));
    assert_string_equal(hone_recorded_device(recorded), "Some GPU");
    assert_string_equal(hone_recorded_kernel(recorded), "sum");
    assert_int_equal(hone_space_parameters(hone_recorded_space(recorded)), 2);
    assert_int_equal(hone_recorded_count(recorded), 3);
    const hone_recorded_row *row = hone_recorded_at(recorded, 0);
    assert_int_equal(row->config.values[0], 16);
    assert_int_equal(row->config.values[1], 0);
    assert_int_equal(row->failure, HONE_FAILURE_NONE);
    assert_true(row->time == 2.5);
    assert_int_equal(row->sample_count, 2); // NaN is no sample
    assert_true(row->samples[1] == 2.6);
    assert_true(hone_recorded_cost(row) == 122);
    assert_int_equal(hone_recorded_at(recorded, 1)->failure, HONE_FAILURE_PREPARE);
    assert_true(hone_recorded_cost(hone_recorded_at(recorded, 1)) == 50);
    assert_int_equal(hone_recorded_at(recorded, 2)->failure, HONE_FAILURE_RUN);
    hone_recorded_destroy(&recorded);
}

static void configs_are_found_and_what_was_not_recorded_is_not(void **state)
{
    (void)state;
    hone_recorded *recorded = parsed(HEAD FIRST "," SECOND "}}");
    const hone_config there = {2, {32, 0}}, absent = {2, {16, 1}}, other = {1, {16}};
    assert_ptr_equal(hone_recorded_find(recorded, &there), hone_recorded_at(recorded, 1));
    assert_null(hone_recorded_find(recorded, &absent));
    assert_null(hone_recorded_find(recorded, &other));
    assert_int_equal(hone_recorded_configs(recorded)[1].values[0], 32);
    assert_int_equal(hone_bound_space_check(hone_recorded_bound(recorded), &absent, NULL), HONE_OK);
    hone_recorded_destroy(&recorded);
}

static void a_file_cut_anywhere_gives_its_whole_rows_or_an_error(void **state)
{
    (void)state;
    static const char text[] = HEAD FIRST "," SECOND "," THIRD "}}";
    size_t first = strlen(HEAD FIRST), second = strlen(HEAD FIRST "," SECOND), third = sizeof text - 3;
    for (size_t size = 0; size + 1 < sizeof text; size++) {
        hone_recorded *recorded;
        hone_error err = {0};
        hone_status status = hone_recorded_parse(hone_allocator_system(), "f", text, size, &recorded, &err);
        size_t whole = size >= third ? 3 : size >= second ? 2 : size >= first ? 1 : 0;
        assert_int_equal(status, whole > 0 ? HONE_OK : HONE_CORRUPT);
        if (whole > 0) {
            assert_true(hone_recorded_is_cut(recorded));
            assert_int_equal(hone_recorded_count(recorded), whole);
        } else {
            assert_null(recorded);
            assert_true(err.message[0] == 'f');
        }
        hone_recorded_destroy(&recorded);
    }
}

// HEAD FIRST "}}" and the same cut after 200 of its packed bytes would not tell where the packing ends, so the file
// that is read here is made by the test's own writer: stored blocks, which any gzip reader takes.
static size_t gzip_stored(const char *text, unsigned char *out)
{
    static const unsigned char head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
    size_t size = strlen(text);
    memcpy(out, head, sizeof head);
    out[10] = 1;
    out[11] = (unsigned char)(size & 255);
    out[12] = (unsigned char)(size >> 8);
    out[13] = (unsigned char)~out[11];
    out[14] = (unsigned char)~out[12];
    memcpy(out + 15, text, size);
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= (unsigned char)text[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0xedb88320u & -(crc & 1));
    }
    crc = ~crc;
    for (size_t i = 0; i < 4; i++) {
        out[15 + size + i] = (unsigned char)(crc >> 8 * i);
        out[19 + size + i] = (unsigned char)(size >> 8 * i);
    }
    return size + 23;
}

static void packed_files_are_unpacked_also_when_they_end_early(void **state)
{
    (void)state;
    unsigned char packed[2048];
    size_t size = gzip_stored(HEAD FIRST "," SECOND "}}", packed);
    const size_t sizes[] = {size, size - 9, size - 12};
    for (size_t i = 0; i < 3; i++) {
        hone_recorded *recorded;
        assert_int_equal(hone_recorded_parse(hone_allocator_system(), "f", packed, sizes[i], &recorded, NULL), HONE_OK);
        assert_int_equal(hone_recorded_is_cut(recorded), i > 0);
        assert_int_equal(hone_recorded_count(recorded), i < 2 ? 2 : 1);
        hone_recorded_destroy(&recorded);
    }
}

static void an_invalid_recorded_space_is_refused_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"", "f: "},
        {"[1]", "expected an object with 'cache'"},
        {"{}", "expected an object with 'cache'"},
        {"{\"results\":[]}", "there is no config in it"},
        {HEAD "}}", "there is no config in it"},
        {"{\"cache\":{},\"tune_params_keys\":[1]}", "tune_params_keys[0]: expected a name"},
        {"{\"cache\":{},\"tune_params_keys\":[\"a\"]}", "expected a list of values for 'a'"},
        {"{\"cache\":{},\"tune_params_keys\":[\"a\",\"a\"],\"tune_params\":{\"a\":[1]}}", "is there already"},
        {HEAD "\"7,row\":{\"bx\":7,\"m\":\"row\",\"time\":1}}}", "none of the space's values for parameter 'bx'"},
        {HEAD "\"16\":{\"bx\":16,\"time\":1}}}", "no value for parameter 'm'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hone_recorded *recorded;
        hone_error err = {0};
        const char *text = wrong[i].text;
        assert_int_equal(
            hone_recorded_parse(hone_allocator_system(), "f", text, strlen(text), &recorded, &err), HONE_CORRUPT);
        assert_null(recorded);
        if (strstr(err.message, wrong[i].words) == NULL) fail_msg("%zu: %s", i, err.message);
    }
}

static void t4_results_give_their_rows_costs_and_failures(void **state)
{
    (void)state;
    hone_recorded *recorded = parsed(
        "{\"results\":[{\"configuration\":{\"bx\":16,\"m\":\"row\"},\"invalidity\":\"correct\",\"times\":{"
        "\"compilation\":100,"
        "\"benchmark\":20.5,\"framework\":1.5,\"runtimes\":[2.4,2.6]},\"measurements\":[{\"name\":\"time\",\"value\":2."
        "5}]},"
        "{\"configuration\":{\"bx\":32,\"m\":\"row\"},\"invalidity\":\"correctness\",\"times\":{\"validation\":3}},"
        "{\"configuration\":{\"bx\":32,\"m\":\"col\"},\"invalidity\":\"compile\"}]}");
    assert_int_equal(hone_recorded_count(recorded), 3);
    assert_int_equal(hone_space_parameters(hone_recorded_space(recorded)), 2);
    const hone_recorded_row *row = hone_recorded_at(recorded, 0);
    assert_int_equal(row->failure, HONE_FAILURE_NONE);
    assert_true(row->time == 2.5 && row->sample_count == 2 && row->samples[1] == 2.6);
    assert_true(hone_recorded_cost(row) == 122);
    assert_int_equal(hone_recorded_at(recorded, 1)->failure, HONE_FAILURE_WRONG);
    assert_true(hone_recorded_cost(hone_recorded_at(recorded, 1)) == 3);
    assert_int_equal(hone_recorded_at(recorded, 2)->failure, HONE_FAILURE_PREPARE);
    hone_recorded_destroy(&recorded);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const char text[] = HEAD FIRST "," SECOND "," THIRD;
    failing_allocator memory;
    hone_status status = HONE_OUT_OF_MEMORY;
    for (long long left = 0; status != HONE_OK; left++) {
        hone_recorded *recorded;
        hone_allocator allocator = failing_allocator_of(&memory, left);
        status = hone_recorded_parse(allocator, "f", text, sizeof text - 1, &recorded, NULL);
        assert_true(status == HONE_OK || status == HONE_OUT_OF_MEMORY);
        hone_recorded_destroy(&recorded);
        assert_int_equal(atomic_load(&memory.live), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cache_file_gives_its_rows_costs_and_failures),
        cmocka_unit_test(configs_are_found_and_what_was_not_recorded_is_not),
        cmocka_unit_test(a_file_cut_anywhere_gives_its_whole_rows_or_an_error),
        cmocka_unit_test(packed_files_are_unpacked_also_when_they_end_early),
        cmocka_unit_test(an_invalid_recorded_space_is_refused_with_a_reason),
        cmocka_unit_test(t4_results_give_their_rows_costs_and_failures),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
