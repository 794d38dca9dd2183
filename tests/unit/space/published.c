// Kernel Tuner's T1 form, on published spaces whose numbers of valid configs are known.
#include "hone/space.h"
#include "space/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bool count_one(void *ctx, const hone_config *config)
{
    (void)config;
    ++*(uint64_t *)ctx;
    return true;
}

static void assert_published(const char *name, uint64_t expected)
{
    static char json[65536];
    char path[500];
    uint64_t count = 0, visited = 0;
    hone_error err = {0};
    hone_space *space;
    hone_bound_space *bound;
    snprintf(path, sizeof path, "%s/golden/spaces/%s.json", HONE_TEST_DATA, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(json, 1, sizeof json, file);
    fclose(file);
    assert_int_equal(hone_space_parse_t1(hone_allocator_system(), json, size, &space, &err), HONE_OK);
    assert_int_equal(hone_space_bind(space, NULL, NULL, &bound, &err), HONE_OK);
    assert_int_equal(hone_bound_space_count(bound, &count, &err), HONE_OK);
    assert_int_equal(count, expected);
    assert_int_equal(hone_bound_space_enumerate(bound, count_one, &visited, &err), HONE_OK);
    assert_int_equal(visited, expected);
    hone_bound_space_release(&bound);
    hone_space_release(&space);
}

static void published_spaces_have_their_published_numbers_of_configs(void **state)
{
    (void)state;
    assert_published("atf_prl_16x16", 181440);
    assert_published("atf_prl_2x2", 1200);
    assert_published("atf_prl_32x32", 514080);
    assert_published("atf_prl_4x4", 10800);
    assert_published("atf_prl_8x8", 48720);
    assert_published("dedispersion", 11130);
    assert_published("expdist", 294000);
    assert_published("gemm", 116928);
    assert_published("hotspot", 349853);
    assert_published("microhh", 138600);
}

static hone_status parse(const char *json, hone_space **out, hone_error *err)
{
    return hone_space_parse_t1(hone_allocator_system(), json, strlen(json), out, err);
}

static void values_may_be_the_text_of_a_list_and_have_a_default(void **state)
{
    (void)state;
    hone_space *space;
    hone_error err = {0};
    hone_bound_space *bound;
    hone_config config;
    char text[100];
    hone_status status = parse(
        "{\"ConfigurationSpace\": {\"TuningParameters\": ["
        "{\"Name\": \"x\", \"Type\": \"int\", \"Values\": \"[16, 32, -64,]\", \"Default\": 32},"
        "{\"Name\": \"y\", \"Type\": \"string\", \"Values\": \"['a', 'b']\", \"Default\": \"b\"},"
        "{\"Name\": \"z\", \"Type\": \"bool\", \"Values\": [true, false]}],"
        "\"Conditions\": [{\"Expression\": \"x / 32 != 0.5\", \"Parameters\": [\"x\"]}]}}",
        &space, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, HONE_OK);
    assert_int_equal(hone_space_bind(space, NULL, NULL, &bound, NULL), HONE_OK);
    assert_int_equal(hone_bound_space_default(bound, &config, NULL), HONE_OK);
    hone_config_text(space, &config, text, sizeof text);
    assert_string_equal(text, "x=32 y=b z=true");
    assert_int_equal(hone_space_cartesian(space), 12);
    uint64_t count;
    assert_int_equal(hone_bound_space_count(bound, &count, NULL), HONE_OK);
    assert_int_equal(count, 8); // true division: 16 / 32 is 0.5
    hone_bound_space_release(&bound);
    hone_space_release(&space);
}

static void conditions_are_python_s(void **state)
{
    (void)state;
    hone_space *space;
    hone_error err = {0};
    hone_bound_space *bound;
    uint64_t count;
    hone_status status = parse(
        "{\"ConfigurationSpace\": {\"TuningParameters\": ["
        "{\"Name\": \"x\", \"Values\": [1, 2, 3, 4, 5, 6, 7, 8]},"
        "{\"Name\": \"y\", \"Values\": [0, 1, 2, 3]},"
        "{\"Name\": \"layout\", \"Values\": [\"row\", \"col\"]}],"
        "\"Conditions\": [{\"Expression\": \"x in [1, 2, 4, 8] and not (y == 3)\"},"
        "{\"Expression\": \"2 ** y <= x\"},"
        "{\"Expression\": \"x % y == 0 if y != 0 else layout == 'row'\"}]}}",
        &space, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, HONE_OK);
    assert_int_equal(hone_space_bind(space, NULL, NULL, &bound, NULL), HONE_OK);
    assert_int_equal(hone_bound_space_count(bound, &count, NULL), HONE_OK);
    // y = 0: x of 4, layout row; y = 1: x = 2, 4, 8; y = 2: x = 4, 8; both layouts.
    assert_int_equal(count, 4 + 3 * 2 + 2 * 2);
    hone_bound_space_release(&bound);
    hone_space_release(&space);
}

static void wrong_documents_name_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *json, *message;
    } table[] = {
        {"[]", "expected an object with ConfigurationSpace.TuningParameters, a list"},
        {"{}", "expected an object with ConfigurationSpace.TuningParameters, a list"},
        {"{\"ConfigurationSpace\":{\"TuningParameters\":[3]}}", "TuningParameters[0]: expected a Name, a string"},
        {"{\"ConfigurationSpace\":{\"TuningParameters\":[{\"Name\":\"a\"}]}}",
         "parameter 'a': expected Values, a list or the text of a list"},
        {"{\"ConfigurationSpace\":{\"TuningParameters\":[{\"Name\":\"a\",\"Values\":[]}]}}",
         "parameter 'a' has no values"},
        {"{\"ConfigurationSpace\":{\"TuningParameters\":[{\"Name\":\"a\",\"Values\":[null]}]}}",
         "parameter 'a': value 0 is not a number, string or boolean"},
        {"{\"ConfigurationSpace\":{\"TuningParameters\":[{\"Name\":\"a\",\"Values\":\"range(3)\"}]}}",
         "parameter 'a': Values: offset 0: expected '[' and a list of values, found 'range'"},
        {"{\"ConfigurationSpace\":{\"TuningParameters\":[{\"Name\":\"a\",\"Values\":[1]}],"
         "\"Conditions\":[{\"Expression\":\"b > 1\"}]}}",
         "Conditions[0] 'b > 1': offset 0: unknown name 'b'"},
        {"{\"ConfigurationSpace\":{\"TuningParameters\":[{\"Name\":\"a\",\"Values\":[1]}],"
         "\"Conditions\":[{\"Expression\":\"a is 1\"}]}}",
         "Conditions[0] 'a is 1': offset 2: expected the end of the condition, found 'is'"},
        {"{\"ConfigurationSpace\":{\"TuningParameters\":[],\"Conditions\":[1]}}",
         "Conditions[0]: expected an Expression, a string"},
        {"{\"ConfigurationSpace\":{\"TuningParameters\":[],\"Conditions\":1}}",
         "ConfigurationSpace.Conditions: expected a list"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        hone_space *space = NULL;
        hone_error err = {0};
        assert_int_equal(parse(table[i].json, &space, &err), HONE_INVALID_ARGUMENT);
        assert_null(space);
        assert_string_equal(err.message, table[i].message);
    }
    hone_space *space = NULL;
    hone_error err = {0};
    assert_int_equal(parse("{\"Conf", &space, &err), HONE_INVALID_ARGUMENT);
    assert_int_equal(err.status, HONE_INVALID_ARGUMENT);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_spaces_have_their_published_numbers_of_configs),
        cmocka_unit_test(values_may_be_the_text_of_a_list_and_have_a_default),
        cmocka_unit_test(conditions_are_python_s),
        cmocka_unit_test(wrong_documents_name_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
