// The report page: whole by itself, and harmless whatever the texts in it are.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/json.h"
#include "hone/result.h"
#include "tune/result/result.h"

#include <stdio.h>
#include <string.h>

static const char evil[] = "</script><script>alert(1)</script><!-- & \" \\ ' \xc3\xa9";
static const char trail[] =
    "{\"seconds\":1.5,\"evaluations\":[{\"kernel\":\"a\",\"config\":{\"n\":1},\"at\":0.5,\"failure\":"
    "\"wrong\",\"reason\":\"</script>\"}]}";

static char *page_of(const char *call, const char *tried)
{
    hone_result *result = NULL;
    char *page = NULL;
    hone_decision decision = {.algorithm = "a", .version = "1", .key = "0123456789abcdef", .kernel = "k"};
    decision.evidence.time_ns = 1000;
    assert_int_equal(
        hone_result_new(hone_allocator_system(), "cpu|a", "{\"os\":\"<b>\"}", NULL, &result, NULL), HONE_OK);
    assert_int_equal(
        hone_result_add(result, &decision, &(hone_result_texts){call, "{}", "1", "[]", tried, NULL, NULL}, NULL),
        HONE_OK);
    assert_int_equal(hone_result_add_failure(result, evil, "k", evil, NULL), HONE_OK);
    assert_int_equal(hone_result_report(result, &page, NULL), HONE_OK);
    hone_result_release(&result);
    return page;
}

static size_t count_of(const char *text, const char *words)
{
    size_t count = 0;
    for (; (text = strstr(text, words)) != NULL; text += strlen(words))
        count++;
    return count;
}

// The JSON text in the page; *out_end: what follows it.
static json_t *data_of(const char *page, const char **out_end)
{
    static const char open[] = "id=\"data\">";
    const char *start = strstr(strstr(page, "<script type=\"application/json\""), open) + sizeof open - 1;
    const char *end = strstr(start, "</script>");
    json_t *data = NULL;
    assert_int_equal(hone_json_parse(start, (size_t)(end - start), &data, NULL), HONE_OK);
    *out_end = end;
    return data;
}

static void the_data_come_back_as_they_were(void **state)
{
    (void)state;
    const char *end;
    char *page = page_of(evil, trail);
    json_t *data = data_of(page, &end);
    const json_t *entry = json_array_get(json_object_get(data, "entries"), 0);
    assert_string_equal(json_string_value(json_object_get(entry, "call")), evil);
    const json_t *tried = json_array_get(json_object_get(json_object_get(entry, "trail"), "evaluations"), 0);
    assert_string_equal(json_string_value(json_object_get(tried, "reason")), "</script>");
    const json_t *failed = json_array_get(json_object_get(data, "failed"), 0);
    assert_string_equal(json_string_value(json_object_get(failed, "reason")), evil);
    json_decref(data);
    hone_text_release(&page);
}

static void no_text_ends_the_script_or_begins_another(void **state)
{
    (void)state;
    char *evil_page = page_of(evil, trail), *plain_page = page_of("plain", NULL);
    assert_int_equal(count_of(evil_page, "<"), count_of(plain_page, "<"));
    assert_null(strstr(evil_page, "<b>"));
    hone_text_release(&evil_page);
    hone_text_release(&plain_page);
}

// A browser asks nobody for anything: no address but the name of SVG, no source, no import.
static void the_page_is_whole_by_itself(void **state)
{
    static const char *const loading[] = {" src=",  "<link",   "@import", "url(",
                                          "fetch(", "XMLHttp", "import(", "https://"};
    (void)state;
    char *page = page_of("plain", trail);
    for (size_t i = 0; i < sizeof loading / sizeof loading[0]; i++)
        if (strstr(page, loading[i]) != NULL) fail_msg("%s", loading[i]);
    assert_int_equal(count_of(page, "http://"), 1);
    assert_int_equal(count_of(page, "http://www.w3.org/2000/svg"), 1);
    assert_int_equal(strncmp(page, "<!doctype html>", 15), 0);
    assert_null(strstr(page, "innerHTML"));
    assert_non_null(strstr(page, "prefers-color-scheme: dark"));
    assert_string_equal(page + strlen(page) - 8, "</html>\n");
    hone_text_release(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_data_come_back_as_they_were),
        cmocka_unit_test(no_text_ends_the_script_or_begins_another),
        cmocka_unit_test(the_page_is_whole_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
