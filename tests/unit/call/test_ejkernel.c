// ejkernel's text of its arguments.
#include "call/ejkernel.h"

#include "base/hash.h"
#include "calls.h"

static hone_status encode(const char *json, hone_buffer *out, hone_error *err)
{
    json_t *argument = json_loads(json, JSON_ALLOW_NUL, NULL);
    assert_non_null(argument);
    hone_buffer_clear(out);
    hone_status status = hone_ejkernel_encode(argument, out, err);
    json_decref(argument);
    return status;
}

static void calls_that_ejkernel_refuses_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"{\"kind\":\"dict\",\"items\":[[{\"kind\":\"str\",\"value\":\"a\"},{\"kind\":\"none\"}],[{\"kind\":\"int\","
         "\"value\":\"1\"},{\"kind\":\"none\"}]]}",
         "do not compare"},
        {"{\"kind\":\"dict\",\"items\":[[{\"kind\":\"tuple\",\"items\":[]},{\"kind\":\"none\"}]]}",
         "not a str, int, float"},
        {"{\"kind\":\"int\",\"value\":\"0x10\"}", "decimal"},
        {"{\"kind\":\"int\",\"value\":\"007\"}", "decimal"},
        {"{\"kind\":\"float\",\"value\":\"one\"}", "decimal"},
        {"{\"kind\":\"wish\"}", "unknown kind of argument 'wish'"},
        {"{}", "'kind'"},
        {"{\"kind\":\"list\"}", "items"},
    };
    hone_buffer out;
    hone_buffer_init(&out, hone_allocator_system());
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hone_error err = {0};
        assert_int_not_equal(encode(wrong[i][0], &out, &err), HONE_OK);
        assert_contains(err.message, wrong[i][1]);
    }
    hone_buffer_deinit(&out);
}

static void nesting_without_end_is_refused(void **state)
{
    (void)state;
    hone_buffer json, out;
    hone_buffer_init(&json, hone_allocator_system());
    hone_buffer_init(&out, hone_allocator_system());
    for (int i = 0; i < 500; i++)
        hone_buffer_text(&json, "{\"kind\":\"list\",\"items\":[");
    hone_buffer_text(&json, "{\"kind\":\"none\"}");
    for (int i = 0; i < 500; i++)
        hone_buffer_text(&json, "]}");
    hone_error err = {0};
    assert_int_equal(encode(json.data, &out, &err), HONE_INVALID_ARGUMENT);
    assert_contains(err.message, "deeper than 200");
    hone_buffer_deinit(&json);
    hone_buffer_deinit(&out);
}

#define INT_PAIR(digits) "[{\"kind\":\"int\",\"value\":\"" digits "\"},{\"kind\":\"none\"}]"

static void each_kind_has_its_text(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"{\"kind\":\"np_bool\",\"value\":true}", "true"},
        {"{\"kind\":\"np_float\",\"dtype\":\"float64\",\"value\":\"1e+16\"}", "1e+16"},
        {"{\"kind\":\"np_float\",\"dtype\":\"bfloat16\",\"value\":\"1.5\"}", "\"1.5\""},
        {"{\"kind\":\"enum\",\"base\":\"str\",\"value\":\"a\",\"repr\":\"x\"}", "\"a\""},
        {"{\"kind\":\"enum\",\"base\":\"int\",\"value\":2,\"repr\":\"x\"}", "2"},
        {"{\"kind\":\"enum\",\"base\":\"plain\",\"value\":null,\"repr\":\"<C.R: 1>\"}", "\"<C.R: 1>\""},
        {"{\"kind\":\"int\",\"value\":\"123456789012345678901234567890\"}", "123456789012345678901234567890"},
        {"{\"kind\":\"dict\",\"items\":[" INT_PAIR("9007199254740993") "," INT_PAIR("9007199254740992") "," INT_PAIR(
             "-9007199254740992") "," INT_PAIR("-9007199254740993") "," INT_PAIR("2") "," INT_PAIR("10") "]}",
         "{\"-9007199254740993\":null,\"-9007199254740992\":null,\"2\":null,\"10\":null,\"9007199254740992\":null,"
         "\"9007199254740993\":null}"},
        {"{\"kind\":\"float\",\"hex\":\"0x1.8p+0\"}", "1.5"},
        {"{\"kind\":\"str\",\"value\":\"\\u0000\\u007f\"}", "\"\\u0000\\u007f\""},
    };
    hone_buffer out;
    hone_buffer_init(&out, hone_allocator_system());
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(encode(pairs[i][0], &out, NULL), HONE_OK);
        assert_string_equal(hone_buffer_string(&out), pairs[i][1]);
    }
    hone_buffer_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_ejkernel_refuses_are_refused),
        cmocka_unit_test(nesting_without_end_is_refused),
        cmocka_unit_test(each_kind_has_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
