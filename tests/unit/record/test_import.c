// Record documents, hone's own and ejkernel's: what is sound comes in, what is not is named.
#include "base/hash.h"
#include "os/os.h"
#include "record/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    hone_recorder *recorder;
    hone_error err;
    size_t count;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (f == NULL) return -1;
    hone_allocator allocator = hone_allocator_system();
    return hone_recorder_create(&allocator, 0, &f->recorder, &f->err) == HONE_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    hone_recorder_destroy(&f->recorder);
    free(f);
    return 0;
}

static hone_status import(fixture *f, const char *json)
{
    return hone_recorder_import(f->recorder, json, strlen(json), &f->count, &f->err);
}

typedef struct seen {
    size_t count;
    char text[512];
} seen;

static bool note(void *ctx, const hone_store_invocation *invocation)
{
    seen *s = ctx;
    s->count++;
    snprintf(
        s->text, sizeof s->text, "%s %s@v%s %s %llu %.0f-%.0f %s %s %.24s", invocation->key.device,
        invocation->key.algorithm, invocation->key.version, invocation->key.key, (unsigned long long)invocation->count,
        invocation->first, invocation->last, invocation->kernel == NULL ? "NULL" : invocation->kernel,
        invocation->decided == NULL ? "NULL" : invocation->decided,
        invocation->key.spec == NULL ? "NULL" : invocation->key.spec);
    return true;
}

static seen find(fixture *f, const char *algorithm, const char *version, const char *key)
{
    seen s = {0};
    assert_int_equal(hone_recorder_find(f->recorder, NULL, algorithm, version, key, note, &s, &f->err), HONE_OK);
    return s;
}

// Made by the real ejkernel 0.0.80.3.
static void what_ejkernel_recorded_is_found_by_operation_and_key(void **state)
{
    fixture *f = *state;
    hone_buffer file;
    hone_buffer_init(&file, hone_allocator_system());
    assert_int_equal(
        hone_os_read_file(HONE_TEST_DATA "/unit/record/data/ejkernel.recorded.json", 1 << 20, &file, &f->err), HONE_OK);
    assert_int_equal(hone_recorder_import(f->recorder, file.data, file.size, &f->count, &f->err), HONE_OK);
    hone_buffer_deinit(&file);
    assert_int_equal(f->count, 9);
    seen s = find(f, "flash_attention", "2", "d2b85fb5dc2f34a3");
    assert_int_equal(s.count, 1);
    assert_non_null(strstr(s.text, "{\"args_spec\":[],\"batch_a"));
    assert_non_null(strstr(s.text, "cpu|cpu"));
    assert_int_equal(find(f, "flash_attention", NULL, NULL).count, 3);
    assert_int_equal(find(f, "scaled_dot_product_attention", "0", NULL).count, 2);
}

// SHA-256 of {"x":1} begins with this key.
#define KEY  "5041bf1f713df204"
#define SPEC "{\\\"x\\\":1}"

static void hone_s_own_document_comes_in_field_by_field(void **state)
{
    fixture *f = *state;
    char key[HONE_KEY_SIZE];
    hone_hash_key("{\"x\":1}", 7, key);
    assert_string_equal(key, KEY);
    assert_int_equal(
        import(
            f, "{\"hone_record\":1,\"device\":\"cpu|zen4\",\"invocations\":[{\"algorithm\":\"RMS_Norm\",\"version\":"
               "\"3\",\"key\":\"" KEY "\",\"spec\":\"" SPEC "\",\"count\":96,\"first\":\"1970-01-02T00:00:01Z\","
               "\"last\":\"2026-11-20T12:34:56Z\",\"kernel\":\"avx512\",\"decided\":\"heuristic\"}]}"),
        HONE_OK);
    assert_int_equal(f->count, 1);
    assert_string_equal(
        find(f, "rms_norm", "3", KEY).text,
        "cpu|zen4 rms_norm@v3 " KEY " 96 86401-1795178096 avx512 heuristic {\"x\":1}");
}

static void invalid_documents_are_refused(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *json;
        hone_status status;
    } cases[] = {
        {"", HONE_CORRUPT},
        {"[]", HONE_CORRUPT},
        {"{}", HONE_CORRUPT},
        {"{\"hone_record\":1}", HONE_CORRUPT},
        {"{\"hone_record\":2,\"invocations\":[]}", HONE_INCOMPATIBLE},
        {"{\"hone_record\":\"1\",\"invocations\":[]}", HONE_CORRUPT},
        {"{\"hone_record\":1,\"invocations\":{}}", HONE_CORRUPT},
        {"{\"hone_record\":1,\"device\":3,\"invocations\":[]}", HONE_CORRUPT},
        {"{\"hone_record\":1,\"invocations\":[", HONE_CORRUPT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        f->count = 99;
        assert_int_equal(import(f, cases[i].json), cases[i].status);
        assert_int_equal(f->err.status, cases[i].status);
        assert_int_equal(f->count, 0);
    }
    assert_int_equal(import(f, "{\"hone_record\":1,\"invocations\":[]}"), HONE_OK);
}

static void one_bad_entry_is_named_and_the_others_come_in(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *entry, *words;
    } cases[] = {
        {"7", "not an object"},
        {"{}", "\"algorithm\" is missing"},
        {"{\"op\":7}", "\"op\" is not a string"},
        {"{\"op\":\"@v2\",\"key\":\"" KEY "\"}", "NAME@vVERSION"},
        {"{\"op\":\"f@v\",\"key\":\"" KEY "\"}", "NAME@vVERSION"},
        {"{\"op\":\"f@v1\"}", "\"key\" is missing"},
        {"{\"op\":\"f@v1\",\"key\":\"5041BF1F713DF204\"}", "16 lower-case hex digits"},
        {"{\"op\":\"f@v1\",\"key\":\"5041bf1f713df2044\"}", "16 lower-case hex digits"},
        {"{\"op\":\"f@v1\",\"key\":\"" KEY "\",\"spec\":\"{}\"}", "hashes to"},
        {"{\"op\":\"f@v1\",\"key\":\"" KEY "\",\"spec\":{}}", "\"spec\" is not a string"},
        {"{\"op\":\"f@v1\",\"key\":\"" KEY "\",\"device\":\"\"}", "\"device\" is missing"},
        {"{\"op\":\"f@v1\",\"key\":\"" KEY "\",\"count\":0}", "positive integer"},
        {"{\"op\":\"f@v1\",\"key\":\"" KEY "\",\"count\":1.5}", "positive integer"},
        {"{\"op\":\"f@v1\",\"key\":\"" KEY "\",\"first\":\"yesterday\"}", "\"first\" is not a time"},
        {"{\"op\":\"f@v1\",\"key\":\"" KEY "\",\"last\":\"2026-13-01T00:00:00Z\"}", "\"last\" is not a time"},
        {"{\"op\":\"f@v1\",\"key\":\"" KEY "\",\"last\":-1}", "\"last\" is not a time"},
        {"{\"op\":\"f@v1\",\"key\":\"" KEY "\",\"kernel\":[]}", "\"kernel\" is not a string"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[512];
        snprintf(
            json, sizeof json,
            "{\"device\":\"cpu\",\"invocations\":[{\"op\":\"good@v1\",\"key\":\"" KEY "\"},%s,"
            "{\"op\":\"also_good@v1\",\"key\":\"" KEY "\"}]}",
            cases[i].entry);
        assert_int_equal(import(f, json), HONE_CORRUPT);
        assert_int_equal(f->count, 2);
        assert_non_null(strstr(f->err.message, "invocations[1]: "));
        assert_non_null(strstr(f->err.message, cases[i].words));
    }
    assert_int_equal(hone_recorder_count(f->recorder), 2);
}

static void missing_fields_of_a_document_get_defaults(void **state)
{
    fixture *f = *state;
    assert_int_equal(
        import(f, "{\"device\":\"cpu\",\"invocations\":[{\"op\":\"f\",\"key\":\"" KEY "\",\"count\":null}]}"), HONE_OK);
    seen s = find(f, "f", "1", KEY);
    assert_int_equal(s.count, 1);
    assert_non_null(strstr(s.text, KEY " 1 "));
    assert_non_null(strstr(s.text, " NULL NULL NULL"));
    assert_int_equal(import(f, "{\"invocations\":[{\"op\":\"f\",\"key\":\"" KEY "\"}]}"), HONE_CORRUPT);
    assert_non_null(strstr(f->err.message, "device"));
}

#define IMPORT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IMPORT_TEST(what_ejkernel_recorded_is_found_by_operation_and_key),
        IMPORT_TEST(hone_s_own_document_comes_in_field_by_field),
        IMPORT_TEST(invalid_documents_are_refused),
        IMPORT_TEST(one_bad_entry_is_named_and_the_others_come_in),
        IMPORT_TEST(missing_fields_of_a_document_get_defaults),
    };
    return cmocka_run_group_tests_name("record import", tests, NULL, NULL);
}
