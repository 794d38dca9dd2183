// The command's growing text.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../../cli/text.h"

#include <stdio.h>
#include <string.h>

static void a_text_is_terminated_at_every_length(void **state)
{
    (void)state;
    char expected[600] = "";
    cli_text text;
    cli_text_init(&text);
    assert_string_equal(cli_text_string(&text), "");
    for (size_t i = 0; i < sizeof expected - 1; i++) {
        const char c = (char)('a' + i % 26);
        expected[i] = c;
        cli_text_char(&text, c);
        assert_int_equal(text.size, i + 1);
        assert_true(text.size < text.capacity);
        assert_memory_equal(cli_text_string(&text), expected, i + 2);
    }
    cli_text_deinit(&text);
}

static void formats_longer_than_the_room_are_whole(void **state)
{
    (void)state;
    cli_text text;
    cli_text_init(&text);
    for (int width = 1; width < 300; width++) {
        char expected[400];
        cli_text_clear(&text);
        cli_text_put(&text, "x=");
        cli_text_format(&text, "%0*d", width, 7);
        snprintf(expected, sizeof expected, "x=%0*d", width, 7);
        assert_string_equal(cli_text_string(&text), expected);
        assert_int_equal(text.size, strlen(expected));
    }
    assert_false(text.failed);
    cli_text_deinit(&text);
}

static void bytes_may_hold_nul(void **state)
{
    (void)state;
    cli_text text;
    cli_text_init(&text);
    cli_text_append(&text, "a\0b", 3);
    cli_text_append(&text, "", 0);
    assert_int_equal(text.size, 3);
    assert_memory_equal(text.data, "a\0b", 4);
    cli_text_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_terminated_at_every_length),
        cmocka_unit_test(formats_longer_than_the_room_are_whole),
        cmocka_unit_test(bytes_may_hold_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
