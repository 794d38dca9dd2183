#include "hone/space.h"

#include "failing_allocator.h"
#include "space/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static hone_space *parsed(const char *text)
{
    hone_space *space;
    hone_error err = {0};
    hone_status status = hone_space_parse(hone_allocator_system(), text, &space, &err);
    if (status != HONE_OK) print_message("%s\n", err.message);
    assert_int_equal(status, HONE_OK);
    return space;
}

static void assert_values(const char *text, const char *expected)
{
    char found[400] = "";
    hone_space *space = parsed(text);
    for (size_t i = 0; i < hone_space_parameters(space); i++) {
        size_t used = strlen(found);
        snprintf(found + used, sizeof found - used, "%s%s:", i == 0 ? "" : " ", hone_space_parameter_name(space, i));
        for (size_t j = 0; j < hone_space_values(space, i); j++) {
            used = strlen(found);
            snprintf(found + used, sizeof found - used, "%s%s", j == 0 ? "" : ",", hone_space_value_text(space, i, j));
        }
    }
    assert_string_equal(found, expected);
    hone_space_release(&space);
    assert_null(space);
}

static void assert_refused(const char *text, const char *message)
{
    hone_error err = {0};
    hone_space *space = NULL;
    assert_int_equal(hone_space_parse(hone_allocator_system(), text, &space, &err), HONE_INVALID_ARGUMENT);
    assert_null(space);
    assert_string_equal(err.message, message);
    assert_int_equal(hone_space_parse(hone_allocator_system(), text, &space, NULL), HONE_INVALID_ARGUMENT);
}

static void ranges_multiply_add_or_count_by_one(void **state)
{
    (void)state;
    assert_values("block_m: 16..128 *2", "block_m:16,32,64,128");
    assert_values("n: 16..100 *2", "n:16,32,64");
    assert_values("u: 1..8", "u:1,2,3,4,5,6,7,8");
    assert_values("u: 1..9 +4", "u:1,5,9");
    assert_values("u: -2..2 +2", "u:-2,0,2");
    assert_values("u: 7..7 *3", "u:7");
    assert_values("u: 9223372036854775806..9223372036854775807", "u:9223372036854775806,9223372036854775807");
    assert_values("u: 4611686018427387904..9223372036854775807 *2", "u:4611686018427387904");
}

static void lists_hold_names_strings_numbers_and_truths(void **state)
{
    (void)state;
    assert_values("layout: row | col", "layout:row,col");
    assert_values(
        "a: 0.50 | 1e-7 | 2\nb: true | false\nc: 'two words' | \"x\"", "a:0.5,1e-07,2 b:true,false c:two words,x");
    assert_values("mode: default | fast default fast", "mode:default,fast");
    assert_values("only: 8", "only:8");
}

static void blank_lines_and_constraints_may_stand_anywhere(void **state)
{
    (void)state;
    assert_values("\n\nwhere a < b\n\na: 1..2\r\n  b: 2 | 3  \n\n", "a:1,2 b:2,3");
    assert_values("", "");
    assert_values(NULL, "");
    assert_values("where 1 < 2", "");
}

static void cartesian_is_the_product_and_stops_at_the_largest_number(void **state)
{
    (void)state;
    hone_space *space = parsed("a: 1..10\nb: 1..7\nwhere a < b");
    assert_int_equal(hone_space_cartesian(space), 70);
    hone_space_release(&space);
    space = parsed("a: 1..60000\nb: 1..60000\nc: 1..60000\nd: 1..60000\ne: 1..60000");
    assert_true(hone_space_cartesian(space) == UINT64_MAX);
    hone_space_release(&space);
}

static void wrong_texts_name_line_offset_and_what_was_expected(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } table[] = {
        {"a 1", "line 1: offset 2: expected ':' and the parameter's values, found '1'"},
        {"a: 1\nb:", "line 2: offset 7: expected a value, found the end"},
        {"a: 1 |\nb: 2", "line 1: offset 6: expected a value, found the end of the line"},
        {"a: 1; b: 2", "line 1: offset 4: expected the end of the line, found ';'"},
        {"a: 1..", "line 1: offset 6: expected the integer at the end of the range, found the end"},
        {"a: 1..x", "line 1: offset 6: expected the integer at the end of the range, found 'x'"},
        {"a: 1..8 *x", "line 1: offset 9: expected an integer, the step of the range, found 'x'"},
        {"a: 8..1", "line 1: offset 7: parameter 'a': the range 8..1 is empty"},
        {"a: 0..8 *2",
         "line 1: offset 10: parameter 'a': a range with '*' needs a start of at least 1 and a factor of at least 2"},
        {"a: 1..8 *1",
         "line 1: offset 10: parameter 'a': a range with '*' needs a start of at least 1 and a factor of at least 2"},
        {"a: 1..8 +0", "line 1: offset 10: parameter 'a': a range adds 1 or more"},
        {"a: 1..100000", "line 1: offset 12: parameter 'a': the range has more than 65536 values"},
        {"a: 1..99999999999999999999", "line 1: offset 6: an integer that 64 bits cannot hold"},
        {"a: 1\n\na: 2", "line 3: offset 6: parameter 'a' is there already; names are unique"},
        {"a: 1 | 2 | 1.0", "line 1: offset 14: parameter 'a': the value 1.0 is equal to 1, which is there too"},
        {"a: 1 | none", "line 1: offset 11: parameter 'a': none is not a value"},
        {"a: 16..64 *2 default 20",
         "line 1: offset 23: parameter 'a': the default 20 is not one of its values (16, 32, 64)"},
        {"and: 1", "line 1: offset 0: 'and' cannot name a parameter: it is a word of the language"},
        {"a: 1\nwhere a <", "line 2: offset 14: expected a value, found the end"},
        {"a: 1\nwhere a < (2\nb: 2", "line 2: offset 17: expected ')', found the end of the line"},
        {"a: 1\nwhere a < device.cores",
         "line 2: offset 15: unknown name 'device.cores'; a device has threads, l1_bytes, l2_bytes, l3_bytes, "
         "memory_bytes, smem_bytes, sms, capability"},
        {"a: 1\nwhere", "line 2: offset 10: expected a value, found the end"},
        {"3: 1", "line 1: offset 0: expected a parameter's name or 'where', found '3'"},
        {"a: 1\n\xff: 1", "the text is not UTF-8"},
        {"a: $", "line 1: offset 3: a character that has no meaning here"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_refused(table[i].text, table[i].message);
}

static void a_space_has_at_most_32_parameters(void **state)
{
    (void)state;
    char text[1000] = "";
    for (size_t i = 0; i < 33; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "p%zu: 1 | 2\n", i);
    assert_refused(text, "line 33: offset 342: parameter 'p32': a space has at most 32 parameters");
    *strrchr(text, 'p') = '\0';
    hone_space *space = parsed(text);
    assert_int_equal(hone_space_parameters(space), 32);
    hone_space_release(&space);
}

static const char mixed[] =
    "block_m: 16..128 *2\nlayout: row | 'two words' | 'true'\nscale: 0.5 | 2\nfast: false | true";

static void configs_print_as_text_and_json_and_read_back(void **state)
{
    (void)state;
    char text[200], json[200];
    hone_config config = {.count = 4, .values = {64, 1, 0, 1}}, back = {0};
    hone_space *space = parsed(mixed);
    assert_int_equal(hone_config_text(space, &config, text, sizeof text), 49);
    assert_string_equal(text, "block_m=64 layout=\"two words\" scale=0.5 fast=true");
    assert_int_equal(hone_config_json(space, &config, json, sizeof json), 59);
    assert_string_equal(json, "{\"block_m\":64,\"layout\":\"two words\",\"scale\":0.5,\"fast\":true}");
    assert_int_equal(hone_config_from_text(space, text, &back, NULL), HONE_OK);
    assert_int_equal(back.count, 4);
    assert_memory_equal(back.values, config.values, 4 * sizeof *back.values);
    memset(&back, 0, sizeof back);
    assert_int_equal(hone_config_from_json(space, json, strlen(json), &back, NULL), HONE_OK);
    assert_memory_equal(back.values, config.values, 4 * sizeof *back.values);
    config.values[1] = 2;
    hone_config_text(space, &config, text, sizeof text);
    assert_string_equal(text, "block_m=64 layout=\"true\" scale=0.5 fast=true");
    assert_int_equal(hone_config_from_text(space, text, &back, NULL), HONE_OK);
    assert_int_equal(back.values[1], 2);
    hone_space_release(&space);
}

static void a_short_buffer_gets_what_fits_and_the_whole_length(void **state)
{
    (void)state;
    char text[8] = "xxxxxxx";
    hone_config config = {.count = 1, .values = {64}};
    hone_space *space = parsed("block_m: 64");
    assert_int_equal(hone_config_text(space, &config, text, sizeof text), 10);
    assert_string_equal(text, "block_m");
    assert_int_equal(hone_config_text(space, &config, NULL, 0), 10);
    assert_int_equal(hone_config_json(space, &config, text, 2), 14);
    assert_string_equal(text, "{");
    hone_space_release(&space);
}

static void the_empty_space_has_the_empty_config(void **state)
{
    (void)state;
    char text[8];
    hone_config config = {.count = 7};
    hone_space *space = parsed(NULL);
    assert_int_equal(hone_config_from_text(space, " ", &config, NULL), HONE_OK);
    assert_int_equal(config.count, 0);
    assert_int_equal(hone_config_text(space, &config, text, sizeof text), 0);
    assert_string_equal(text, "");
    hone_config_json(space, &config, text, sizeof text);
    assert_string_equal(text, "{}");
    assert_int_equal(hone_config_from_json(space, "{}", 2, &config, NULL), HONE_OK);
    hone_space_release(&space);
}

static void wrong_configs_name_the_parameter_and_its_values(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } texts[] = {
        {"block_m=20 layout=row", "parameter 'block_m': 20 is not one of its values (16, 32, 64, 128)"},
        {"block_m=16 layout=up", "parameter 'layout': 'up' is not one of its values (row, two words, true)"},
        {"block_m=16 layout=true", "parameter 'layout': true is not one of its values (row, two words, true)"},
        {"block_m=16", "parameter 'layout' is missing; its values are: row, two words, true"},
        {"block_m=16 block_m=16", "parameter 'block_m' is given twice"},
        {"x=1", "no parameter 'x' in the space; its parameters are: block_m, layout, scale, fast"},
        {"block_m 16", "offset 8: expected '=' and a value, found '16'"},
        {"block_m=", "offset 8: expected a value, found the end"},
        {"=3", "offset 0: expected a parameter's name, found '='"},
    };
    static const struct {
        const char *json, *message;
    } jsons[] = {
        {"{\"block_m\":16,\"layout\":\"row\",\"scale\":0.5}",
         "parameter 'fast' is missing; its values are: false, true"},
        {"{\"block_m\":true}", "parameter 'block_m': true is not one of its values (16, 32, 64, 128)"},
        {"{\"block_m\":[16]}", "parameter 'block_m': what was given is not one of its values (16, 32, 64, 128)"},
        {"[]", "expected an object with a value for each parameter"},
    };
    hone_config config;
    hone_error err;
    hone_space *space = parsed(mixed);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(hone_config_from_text(space, texts[i].text, &config, &err), HONE_INVALID_ARGUMENT);
        assert_string_equal(err.message, texts[i].message);
    }
    for (size_t i = 0; i < sizeof jsons / sizeof *jsons; i++) {
        const char *json = jsons[i].json;
        assert_int_equal(hone_config_from_json(space, json, strlen(json), &config, &err), HONE_INVALID_ARGUMENT);
        assert_string_equal(err.message, jsons[i].message);
    }
    assert_int_equal(hone_config_from_json(space, "{\"block", 7, &config, &err), HONE_INVALID_ARGUMENT);
    assert_int_equal(err.status, HONE_INVALID_ARGUMENT);
    hone_space_release(&space);
}

static void names_outside_ascii_are_escaped_in_json(void **state)
{
    (void)state;
    char json[100];
    hone_config config = {.count = 1, .values = {1}}, back;
    hone_space *space = parsed("gr\xc3\xb6\xc3\x9f"
                               "e: klein | gro\xc3\x9f");
    hone_config_json(space, &config, json, sizeof json);
    assert_string_equal(json, "{\"gr\\u00f6\\u00dfe\":\"gro\\u00df\"}");
    assert_int_equal(hone_config_from_json(space, json, strlen(json), &back, NULL), HONE_OK);
    assert_int_equal(back.values[0], 1);
    hone_space_release(&space);
}

static void a_retained_space_outlives_its_first_owner(void **state)
{
    (void)state;
    failing_allocator counting;
    hone_space *space, *other;
    assert_int_equal(hone_space_parse(failing_allocator_of(&counting, -1), "a: 1..3", &space, NULL), HONE_OK);
    other = hone_space_retain(space);
    hone_space_release(&space);
    assert_int_equal(hone_space_values(other, 0), 3);
    hone_space_release(&other);
    hone_space_release(&other);
    hone_space_release(NULL);
    assert_int_equal(atomic_load(&counting.live), 0);
}

static void every_failed_allocation_is_reported_and_nothing_stays(void **state)
{
    (void)state;
    static const char text[] =
        "a: 1..8\nb: row | 'a\\tb' default 'a\\tb'\nwhere a < 3 or b == 'x\\n' and a > q.shape[0] + q.shape[1]";
    hone_status status = HONE_OUT_OF_MEMORY;
    long long allowed = 0;
    for (; status != HONE_OK; allowed++) {
        failing_allocator failing;
        hone_error err = {0};
        hone_space *space;
        status = hone_space_parse(failing_allocator_of(&failing, allowed), text, &space, &err);
        if (status == HONE_OK)
            hone_space_release(&space);
        else
            assert_int_equal(status, HONE_OUT_OF_MEMORY);
        assert_int_equal(err.status, status);
        assert_int_equal(atomic_load(&failing.live), 0);
    }
    assert_true(allowed > 5);
}

static void a_zeroed_allocator_is_the_systems(void **state)
{
    (void)state;
    static const char t1[] = "{\"ConfigurationSpace\":{\"TuningParameters\":[{\"Name\":\"a\",\"Values\":[1,2]}]}}";
    hone_space *space = NULL;
    hone_error err;
    assert_int_equal(hone_space_parse((hone_allocator){0}, "a: 1 | 2", &space, &err), HONE_OK);
    hone_space_release(&space);
    if (hone_space_parse_t1((hone_allocator){0}, t1, sizeof t1 - 1, &space, &err) != HONE_OK)
        fail_msg("%s", err.message);
    hone_space_release(&space);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zeroed_allocator_is_the_systems),
        cmocka_unit_test(ranges_multiply_add_or_count_by_one),
        cmocka_unit_test(lists_hold_names_strings_numbers_and_truths),
        cmocka_unit_test(blank_lines_and_constraints_may_stand_anywhere),
        cmocka_unit_test(cartesian_is_the_product_and_stops_at_the_largest_number),
        cmocka_unit_test(wrong_texts_name_line_offset_and_what_was_expected),
        cmocka_unit_test(a_space_has_at_most_32_parameters),
        cmocka_unit_test(configs_print_as_text_and_json_and_read_back),
        cmocka_unit_test(a_short_buffer_gets_what_fits_and_the_whole_length),
        cmocka_unit_test(the_empty_space_has_the_empty_config),
        cmocka_unit_test(wrong_configs_name_the_parameter_and_its_values),
        cmocka_unit_test(names_outside_ascii_are_escaped_in_json),
        cmocka_unit_test(a_retained_space_outlives_its_first_owner),
        cmocka_unit_test(every_failed_allocation_is_reported_and_nothing_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
