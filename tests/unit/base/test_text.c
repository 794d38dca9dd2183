// Errors, numbers, JSON text, lower case, hashes, log: what comes out is compared with what Python gives.
#include "base/buffer.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/hash_wide.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void a_failure_has_status_place_and_words(void **state)
{
    (void)state;
    hone_error err = {0};
    assert_int_equal(hone_fail(&err, HONE_NOT_FOUND, "a.b", "no '%s'", "x"), HONE_NOT_FOUND);
    assert_int_equal(err.status, HONE_NOT_FOUND);
    assert_string_equal(err.where, "a.b");
    assert_string_equal(err.message, "no 'x'");
    assert_int_equal(hone_fail(NULL, HONE_BUSY, "a.b", "x"), HONE_BUSY);
}

static void a_long_message_is_cut_with_dots_and_no_half_character(void **state)
{
    (void)state;
    hone_error err = {0};
    char text[3000];
    for (size_t i = 0; i + 1 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa4", 2);
    text[sizeof text - 2] = '\0';
    for (int shift = 0; shift < 3; shift++) {
        hone_fail(&err, HONE_IO, "a", "%.*s%s", shift, "xxx", text);
        size_t length = strlen(err.message);
        assert_true(length >= sizeof err.message - 3);
        assert_string_equal(err.message + length - 3, "...");
        assert_true(hone_text_is_utf8(err.message, length));
    }
}

static void a_failure_may_use_its_own_old_message(void **state)
{
    (void)state;
    hone_error err = {0};
    hone_fail(&err, HONE_IO, "a", "inner");
    hone_fail(&err, HONE_CORRUPT, "b", "outer (%s)", err.message);
    assert_string_equal(err.message, "outer (inner)");
    assert_int_equal(hone_fail_prefix(&err, HONE_IO, "file %d", 7), HONE_CORRUPT);
    assert_string_equal(err.message, "file 7: outer (inner)");
    assert_string_equal(err.where, "b");
}

static void a_system_failure_keeps_the_code_and_says_its_word(void **state)
{
    (void)state;
    hone_error err = {0};
    hone_fail_system(&err, HONE_IO, "a", 2, "x.txt");
    assert_int_equal(err.system_code, 2);
    assert_string_equal(err.message, "x.txt: No such file or directory");
}

static void every_status_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(hone_status_name(HONE_OK), "ok");
    assert_string_equal(hone_status_name(HONE_KERNEL_FAILED), "kernel failed");
    assert_string_equal(hone_status_name((hone_status)12), "unknown status");
    assert_string_equal(hone_status_name((hone_status)-1), "unknown status");
    assert_string_equal(hone_version(), "0.1.0");
}

typedef struct number_case {
    double value;
    const char *text;
} number_case;

static const number_case numbers[] = {
    {0, "0.0"},
    {-0.0, "-0.0"},
    {1, "1.0"},
    {0.1, "0.1"},
    {1e-06, "1e-06"},
    {1e-05, "1e-05"},
    {0.0001, "0.0001"},
    {1e22, "1e+22"},
    {1e16, "1e+16"},
    {9999999999999998.0, "9999999999999998.0"},
    {123456789012345.0, "123456789012345.0"},
    {1.0 / 3, "0.3333333333333333"},
    {5e-324, "5e-324"},
    {1.7976931348623157e308, "1.7976931348623157e+308"},
    {2.2250738585072014e-308, "2.2250738585072014e-308"},
    {5.684341886080802e-14, "5.684341886080802e-14"}, // 2^-44, where the nearest 16 digits do not read back
    {0.10000000149011612, "0.10000000149011612"},
    {-2.5e-7, "-2.5e-07"},
};

static void numbers_print_as_pythons_repr_and_read_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char text[HONE_NUMBER_SIZE];
        double back;
        assert_string_equal(hone_number_print(numbers[i].value, text), numbers[i].text);
        assert_true(hone_number_parse(text, strlen(text), &back));
        assert_memory_equal(&back, &numbers[i].value, sizeof back);
    }
    char text[HONE_NUMBER_SIZE];
    assert_string_equal(hone_number_print(NAN, text), "NaN");
    assert_string_equal(hone_number_print(-INFINITY, text), "-Infinity");
}

static void numbers_do_not_follow_the_locale(void **state)
{
    (void)state;
    // Present or not, the answer is the same; where one of these is installed its comma would show.
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "C"};
    for (size_t i = 0; i < 4; i++) {
        setlocale(LC_ALL, names[i]);
        char text[HONE_NUMBER_SIZE];
        double value;
        assert_string_equal(hone_number_print(0.25, text), "0.25");
        assert_true(hone_number_parse("2.5", 3, &value));
        assert_true(value == 2.5);
    }
}

// Of the C library's texts: few machines have such a locale, and localedef makes one.
static void texts_have_points_whatever_locale_the_host_has_set(void **state)
{
    (void)state;
    char folder[] = "/tmp/hone-locale-XXXXXX", command[160], text[32], *end;
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>/dev/null", folder);
    const bool is_made = system(command) == 0;
    setenv("LOCPATH", folder, 1);
    const bool has_comma =
        is_made && setlocale(LC_ALL, "de_DE.UTF-8") != NULL && strcmp(localeconv()->decimal_point, ",") == 0;
    if (has_comma) {
        hone_buffer buffer;
        hone_error err = {0};
        snprintf(text, sizeof text, "%.2f", 2.5);
        assert_string_equal(text, "2,50"); // the locale has set in
        hone_print(text, sizeof text, "%.2f", 2.5);
        assert_string_equal(text, "2.50");
        assert_true(hone_number_read("2.5s", &end) == 2.5);
        assert_string_equal(end, "s");
        hone_buffer_init(&buffer, hone_allocator_system());
        hone_buffer_format(&buffer, "%g us", 2.5);
        assert_string_equal(hone_buffer_string(&buffer), "2.5 us");
        hone_buffer_deinit(&buffer);
        hone_fail(&err, HONE_INVALID_ARGUMENT, "a.b", "%.1f", 2.5);
        assert_string_equal(err.message, "2.5");
        snprintf(text, sizeof text, "%.2f", 2.5);
        assert_string_equal(text, "2,50"); // and is the host's still
    }
    setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    if (has_comma) return;
    if (getenv("HONE_REQUIRE") != NULL)
        fail_msg("localedef made no locale de_DE.UTF-8: scripts/setup tests installs locales");
    print_message("skipped: localedef made no locale de_DE.UTF-8 (libc-bin and locales of Debian have it)\n");
    skip();
}

static void invalid_numbers_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    "-",   ".",   "e5", "1e", "1e+",   "0x10",
                                      "1_0", "inf", "nan", " 1", "1 ", "1.2.3", "--1"};
    double value = 7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(hone_number_parse(bad[i], strlen(bad[i]), &value));
    assert_true(value == 7);
    assert_true(hone_number_parse("1e400", 5, &value));
    assert_true(isinf(value));
    assert_true(hone_number_parse("1e-99999999999999999999", 23, &value));
    assert_true(value == 0);
}

static void integers_are_read_up_to_their_range(void **state)
{
    (void)state;
    int64_t value;
    assert_true(hone_integer_parse("9223372036854775807", 19, &value) && value == INT64_MAX);
    assert_true(hone_integer_parse("-9223372036854775808", 20, &value) && value == INT64_MIN);
    assert_false(hone_integer_parse("9223372036854775808", 19, &value));
    assert_false(hone_integer_parse("-9223372036854775809", 20, &value));
    static const char *const bad[] = {"", "-", "+1", "1.0", "1a", " 1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(hone_integer_parse(bad[i], strlen(bad[i]), &value));
}

static const char *const lower_cases[][2] = {
    {"MatMul", "matmul"},
    {"\xc3\x84LG", "\xc3\xa4lg"},                             // ÄLG
    {"\xc4\xb0x", "i\xcc\x87x"},                              // İx: two code points
    {"\xce\x91\xce\xa3", "\xce\xb1\xcf\x82"},                 // ΑΣ: a final sigma
    {"\xce\x91\xce\xa3\xce\x91", "\xce\xb1\xcf\x83\xce\xb1"}, // ΑΣΑ
    {"\xce\xa3", "\xcf\x83"},                                 // Σ alone
    {"A\xff"
     "B",
     "a\xff"
     "b"}, // bytes that are no UTF-8 stay
    {"\xc3\x84\xff\xc3\x84", "\xc3\xa4\xff\xc3\xa4"},
};

static void lower_case_is_pythons(void **state)
{
    (void)state;
    hone_buffer out;
    hone_buffer_init(&out, hone_allocator_system());
    for (size_t i = 0; i < sizeof lower_cases / sizeof lower_cases[0]; i++) {
        hone_buffer_clear(&out);
        hone_text_lower(&out, lower_cases[i][0], strlen(lower_cases[i][0]));
        assert_string_equal(hone_buffer_string(&out), lower_cases[i][1]);
    }
    hone_buffer_clear(&out);
    for (int i = 0; i < 1000; i++) // longer than any room on the stack
        hone_text_lower(&out, "\xc3\x84\xc3\x84\xc3\x84\xc3\x84", 8);
    assert_int_equal(out.size, 8000);
    hone_buffer_deinit(&out);
}

static void json_strings_are_escaped_as_pythons(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a/b", "\"a/b\""},
        {"\"\\\n\r\t\b\f", "\"\\\"\\\\\\n\\r\\t\\b\\f\""},
        {"\x01\x7f", "\"\\u0001\\u007f\""},
        {"\xc3\xa4\xf0\x9f\x98\x80", "\"\\u00e4\\ud83d\\ude00\""},
        {"a\xffz\xc3", "\"a\\ufffdz\\ufffd\""},
    };
    hone_buffer out;
    hone_buffer_init(&out, hone_allocator_system());
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hone_buffer_clear(&out);
        hone_json_string(&out, cases[i][0], strlen(cases[i][0]));
        assert_string_equal(hone_buffer_string(&out), cases[i][1]);
    }
    hone_buffer_clear(&out);
    hone_json_number(&out, INFINITY);
    hone_json_number(&out, 2);
    assert_string_equal(hone_buffer_string(&out), "null2.0");
    hone_buffer_deinit(&out);
}

static void damaged_json_is_refused_with_its_place(void **state)
{
    (void)state;
    hone_error err = {0};
    json_t *root = NULL;
    assert_int_equal(hone_json_parse("{\"a\":\n oops}", 12, &root, &err), HONE_CORRUPT);
    assert_null(root);
    assert_non_null(strstr(err.message, "line 2"));
    assert_int_equal(hone_json_parse("7", 1, &root, &err), HONE_OK);
    json_decref(root);
}

static void hashes_are_sha256s(void **state)
{
    (void)state;
    char key[HONE_KEY_SIZE], hex[HONE_SHA256_HEX_SIZE];
    hone_hash_key("abc", 3, key);
    assert_string_equal(key, "ba7816bf8f01cfea");
    hone_hash_sha256("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_true(hone_hash64("abc", 3) == UINT64_C(0x78af5f94892f3950));
}

// Large inputs go by the widest vectors that the processor has; the numbers are those of xxHash's SSE2 code.
static void large_inputs_hash_as_they_do_without_wide_vectors(void **state)
{
    (void)state;
    static unsigned char bytes[10007];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 31 + 7);
    const uint64_t all = UINT64_C(0x93b4c9ae2164d37b);
    assert_true(hone_hash64(bytes, sizeof bytes) == all);
    assert_true(hone_hash64(bytes + 1, 4096) == UINT64_C(0xdb74b7df57a5ca65));
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) assert_true(hone_hash64_avx2(bytes, sizeof bytes) == all);
    if (__builtin_cpu_supports("avx512f")) assert_true(hone_hash64_avx512(bytes, sizeof bytes) == all);
#endif
}

static void a_key_is_16_lower_case_hex_digits(void **state)
{
    (void)state;
    assert_true(hone_is_key("0123456789abcdef"));
    assert_false(hone_is_key("0123456789abcdeF"));
    assert_false(hone_is_key("0123456789abcde"));
    assert_false(hone_is_key("0123456789abcdef0"));
    assert_false(hone_is_key(""));
    assert_false(hone_is_key(NULL));
}

static void take_message(void *ctx, int level, const char *message)
{
    snprintf(ctx, 64, "%d %s", level, message);
}

static void the_first_control_character_is_found(void **state)
{
    (void)state;
    for (size_t size = 0; size <= 20; size++) {
        char text[20];
        memset(text, '~', sizeof text);
        assert_int_equal(hone_text_control(text, size), size);
        for (size_t at = 0; at < size; at++)
            for (int byte = 0; byte < 256; byte++) {
                text[at] = (char)byte;
                bool is_control = byte < ' ' || byte == 0x7f;
                assert_int_equal(hone_text_control(text, size), is_control ? at : size);
                text[at] = '~';
            }
    }
}

static void utf8_is_distinguished_from_other_bytes(void **state)
{
    (void)state;
    static const char sound[] = "plain text, then \xc3\xa9 and \xf0\x9f\x98\x80";
    assert_true(hone_text_is_utf8("", 0));
    for (size_t size = 0; size < sizeof sound; size++) {
        bool is_cut = size == 18 || (size > 24 && size < 28);
        assert_int_equal(hone_text_is_utf8(sound, size), !is_cut);
    }
    assert_false(hone_text_is_utf8("12345678\xff", 9));
    assert_false(hone_text_is_utf8("\xc0\x80", 2));
}

static void a_log_takes_what_its_level_lets_through(void **state)
{
    (void)state;
    char got[64] = "";
    hone_log log = {take_message, got, HONE_LOG_WARNING};
    hone_log_write(&log, HONE_LOG_INFO, "x");
    assert_string_equal(got, "");
    hone_log_write(&log, HONE_LOG_WARNING, "n=%d", 3);
    assert_string_equal(got, "1 n=3");
    hone_log_write(&(hone_log){0}, HONE_LOG_ERROR, "nobody");
    hone_log_write(NULL, HONE_LOG_ERROR, "nobody");
}

static void control_characters_are_escaped_and_come_back(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"a\nb\x7f", "a%0Ab%7F"}, {"plain %20 %zz %", "plain %20 %zz %"}, {"", ""}};
    hone_buffer out;
    hone_buffer_init(&out, hone_allocator_system());
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        hone_buffer_clear(&out);
        hone_text_escape_controls(&out, pairs[i][0]);
        assert_string_equal(hone_buffer_string(&out), pairs[i][1]);
        hone_buffer_clear(&out);
        hone_text_unescape_controls(&out, pairs[i][1]);
        assert_string_equal(hone_buffer_string(&out), pairs[i][0]);
    }
    hone_buffer_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_characters_are_escaped_and_come_back),
        cmocka_unit_test(a_failure_has_status_place_and_words),
        cmocka_unit_test(a_long_message_is_cut_with_dots_and_no_half_character),
        cmocka_unit_test(a_failure_may_use_its_own_old_message),
        cmocka_unit_test(a_system_failure_keeps_the_code_and_says_its_word),
        cmocka_unit_test(every_status_has_a_name),
        cmocka_unit_test(numbers_print_as_pythons_repr_and_read_back),
        cmocka_unit_test(numbers_do_not_follow_the_locale),
        cmocka_unit_test(texts_have_points_whatever_locale_the_host_has_set),
        cmocka_unit_test(invalid_numbers_are_refused),
        cmocka_unit_test(integers_are_read_up_to_their_range),
        cmocka_unit_test(lower_case_is_pythons),
        cmocka_unit_test(json_strings_are_escaped_as_pythons),
        cmocka_unit_test(damaged_json_is_refused_with_its_place),
        cmocka_unit_test(hashes_are_sha256s),
        cmocka_unit_test(large_inputs_hash_as_they_do_without_wide_vectors),
        cmocka_unit_test(a_key_is_16_lower_case_hex_digits),
        cmocka_unit_test(the_first_control_character_is_found),
        cmocka_unit_test(utf8_is_distinguished_from_other_bytes),
        cmocka_unit_test(a_log_takes_what_its_level_lets_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
