// JSON in place: what is JSON, what is not, and where its parts are.
#include "base/json_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static hone_status check(const char *text, hone_json_dialect dialect, hone_error *err)
{
    hone_view value;
    return hone_json_text_check(hone_view_of(text), dialect, &value, err);
}

static void what_json_is(void **state)
{
    (void)state;
    static const char *const good[] = {
        "0",
        "-0",
        "-1.5e+10",
        "1E5",
        "true",
        "false",
        "null",
        "\"\"",
        "\"\\u00e9\\n\\\"\\\\\\/\"",
        "[]",
        "{}",
        " [ 1 , [ ] , { } ] ",
        "{\"a\":{\"b\":[1,2,{\"c\":null}]},\"a\":2}",
        "\"\xc3\xa9\"",
        "\"\\ud800\"",
        "1000000000000000000000000000000",
        "[[[[]]],[{\"a\":[]}]]",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (check(good[i], HONE_JSON_STRICT, NULL) != HONE_OK) fail_msg("%s", good[i]);
}

static void what_it_is_not(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",      " ",         "tru",      "nulll",   "01",        "-",      "1.",      ".5",       "1e",
        "+1",    "'a'",       "\"",       "\"\\x\"", "\"\\u12\"", "\"\n\"", "[",       "]",        "[1",
        "[1,",   "[1,]",      "[,1]",     "[1 2]",   "{",         "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,}",
        "{a:1}", "{\"a\" 1}", "{1:2}",    "[1}",     "{\"a\":1]", "1 2",    "[] []",   "NaN",      "Infinity",
        "\xff",  "\"\xc3\"",  "{\"a\":}", "[}",      "\"\\",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hone_error err = {0};
        if (check(bad[i], HONE_JSON_STRICT, &err) != HONE_CORRUPT) fail_msg("%s", bad[i]);
        assert_true(strlen(err.message) > 8);
    }
}

static void python_writes_numbers_that_are_none(void **state)
{
    (void)state;
    static const char *const texts[] = {"NaN", "[Infinity, -Infinity]", "{\"a\": NaN}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(check(texts[i], HONE_JSON_PYTHON, NULL), HONE_OK);
        assert_int_equal(check(texts[i], HONE_JSON_STRICT, NULL), HONE_CORRUPT);
    }
    assert_int_equal(check("-NaN", HONE_JSON_PYTHON, NULL), HONE_CORRUPT);
}

static void depth_is_bounded(void **state)
{
    (void)state;
    enum { DEEP = 100000 };
    char *text = malloc(2 * DEEP + 1);
    assert_non_null(text);
    hone_error err;
    for (int deep = 0; deep < 2; deep++) {
        size_t depth = deep ? DEEP : HONE_JSON_DEPTH;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        text[2 * depth] = '\0';
        assert_int_equal(check(text, HONE_JSON_STRICT, &err), deep ? HONE_CORRUPT : HONE_OK);
    }
    assert_non_null(strstr(err.message, "too deep"));
    free(text);
}

static void failures_say_where(void **state)
{
    (void)state;
    hone_error err;
    assert_int_equal(check("{\n  \"a\": 1,\n  \"b\" 2\n}", HONE_JSON_STRICT, &err), HONE_CORRUPT);
    assert_non_null(strstr(err.message, "line 3, column 7"));
}

static void members_and_items_are_found_as_they_are_written(void **state)
{
    (void)state;
    hone_view value, key, member;
    char seen[300] = "";
    static const char text[] =
        " {\"a\" : 1 , \"b\\\"]\":\"x,}\\\\\",\"c\":[ [1,\"]\"] , {} ],\"d\":{\"e\":[{}]}, \"a\":-1.50} ";
    assert_int_equal(hone_json_text_check(hone_view_of(text), HONE_JSON_STRICT, &value, NULL), HONE_OK);
    for (hone_json_walk walk = hone_json_walk_of(value); hone_json_walk_next(&walk, &key, &member);) {
        size_t used = strlen(seen);
        snprintf(seen + used, sizeof seen - used, "%.*s=%.*s;", (int)key.size, key.data, (int)member.size, member.data);
    }
    assert_string_equal(
        seen, "\"a\"=1;\"b\\\"]\"=\"x,}\\\\\";\"c\"=[ [1,\"]\"] , {} ];\"d\"={\"e\":[{}]};\"a\"=-1.50;");
    assert_true(hone_view_is(hone_json_member(value, "a"), "-1.50"));
    assert_int_equal(hone_json_member(value, "z").size, 0);
    hone_view list = hone_json_member(value, "c");
    hone_json_walk walk = hone_json_walk_of(list);
    assert_true(hone_json_walk_next(&walk, &key, &member) && hone_view_is(member, "[1,\"]\"]") && key.size == 0);
    assert_true(hone_json_walk_next(&walk, &key, &member) && hone_view_is(member, "{}"));
    assert_false(hone_json_walk_next(&walk, &key, &member));
}

static void strings_are_decoded_or_no_texts(void **state)
{
    (void)state;
    static const struct {
        const char *json, *text; // NULL: none
    } cases[] = {
        {"\"\"", ""},
        {"\"a\\n\\t\\\"\\\\\\/\\b\\f\\r\"", "a\n\t\"\\/\b\f\r"},
        {"\"\\u00e9\\uD83d\\ude00\"", "\xc3\xa9\xf0\x9f\x98\x80"},
        {"\"\\u0000\"", NULL},
        {"\"x\\ud800y\"", NULL},
        {"\"\\ude00\"", NULL},
        {"\"\\ud800\\u0041\"", NULL},
        {"12", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hone_buffer out;
        hone_buffer_init(&out, hone_allocator_system());
        hone_buffer_text(&out, "<");
        assert_int_equal(hone_json_decode(hone_view_of(cases[i].json), &out), cases[i].text != NULL);
        assert_string_equal(hone_buffer_string(&out) + 1, cases[i].text != NULL ? cases[i].text : "");
        hone_buffer_deinit(&out);
    }
}

static void space_goes_but_not_from_strings(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{ \"a b\" : [ 1 ,\t2 ]\r\n}", "{\"a b\":[1,2]}"},
        {"[ \"\\\" \", \" \\\\\" ]", "[\"\\\" \",\" \\\\\"]"},
        {"{}", "{}"},
        {"\" \"", "\" \""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hone_buffer out;
        hone_buffer_init(&out, hone_allocator_system());
        hone_json_compact(hone_view_of(cases[i][0]), &out);
        assert_string_equal(hone_buffer_string(&out), cases[i][1]);
        hone_buffer_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_json_is),
        cmocka_unit_test(what_it_is_not),
        cmocka_unit_test(python_writes_numbers_that_are_none),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(failures_say_where),
        cmocka_unit_test(members_and_items_are_found_as_they_are_written),
        cmocka_unit_test(strings_are_decoded_or_no_texts),
        cmocka_unit_test(space_goes_but_not_from_strings),
    };
    return cmocka_run_group_tests_name("json text", tests, NULL, NULL);
}
