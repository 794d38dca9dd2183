// The tables of the command: how they are laid out, and that a long one costs as much for each row as a short one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

// Every look at a cell goes through one of these.
static size_t looks;

static size_t counted_length(const char *text)
{
    looks++;
    return strlen(text);
}

static int counted_compare(const char *a, const char *b)
{
    looks++;
    return strcmp(a, b);
}

#define strlen counted_length
#define strcmp counted_compare
#include "../../../cli/table.c"
#undef strlen
#undef strcmp

void cli_no_memory(void)
{
    abort();
}

// What is printed meanwhile goes to a file.
static size_t print(cli_table *table, char *out, size_t size)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    assert_true(kept >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    cli_table_print(table);
    fflush(stdout);
    assert_true(dup2(kept, STDOUT_FILENO) >= 0);
    close(kept);
    rewind(file);
    size_t length = fread(out, 1, size - 1, file);
    out[length] = '\0';
    fclose(file);
    return length;
}

static void columns_are_aligned_and_numbers_flushed_right(void **state)
{
    (void)state;
    char text[512];
    cli_table *table = cli_table_new(3);
    cli_table_row(table, "name", "count", "why");
    cli_table_row(table, "a", "1", "3 reasons");
    cli_table_row(table, "longer", "-20", NULL);
    cli_table_row(table, "b", "-", "none");
    print(table, text, sizeof text);
    assert_string_equal(
        text, "name    count  why\n"
              "a           1  3 reasons\n"
              "longer    -20\n"
              "b           -  none\n");
}

static void terminal_control_sequences_are_not_printed(void **state)
{
    (void)state;
    char text[512];
    cli_table *table = cli_table_new(2);
    cli_table_row(table, "call", "why");
    cli_table_row(table, "\033[2Jx\nhone: all is well", "\x7f");
    print(table, text, sizeof text);
    assert_string_equal(text, "call                     why\n?[2Jx hone: all is well  ?\n");
}

static void a_narrow_terminal_wraps_words_and_then_moves_columns_below(void **state)
{
    char text[512];
    (void)state;
    for (int i = 0; i < 2; i++) {
        setenv("COLUMNS", i == 0 ? "30" : "20", 1);
        cli_table *table = cli_table_new(3);
        cli_table_row(table, "name", "count", "why");
        cli_table_row(table, "longer", "-20", "one reason or another");
        cli_table_row(table, "b", "1", "n=1,unrolled=2");
        print(table, text, sizeof text);
        assert_string_equal(
            text, i == 0 ? "name    count  why\n"
                           "longer    -20  one reason or\n"
                           "               another\n"
                           "b           1  n=1,unrolled=2\n"
                         : "name    count\n"
                           "    why\n"
                           "longer    -20\n"
                           "    one reason or\n"
                           "    another\n"
                           "b           1\n"
                           "    n=1,unrolled=2\n");
    }
    unsetenv("COLUMNS");
}

static void a_head_alone_is_words(void **state)
{
    (void)state;
    char text[64];
    cli_table *table = cli_table_new(2);
    cli_table_row(table, "1", "22");
    print(table, text, sizeof text);
    assert_string_equal(text, "1  22\n");
}

static size_t looks_at(size_t rows)
{
    static char text[1 << 20];
    cli_table *table = cli_table_new(4);
    looks = 0;
    for (size_t i = 0; i < rows; i++)
        cli_table_row(table, "name", i == 0 ? "count" : "1", "-", "words");
    assert_true(print(table, text, sizeof text) > rows);
    return looks;
}

static void ten_times_the_rows_are_ten_times_the_work(void **state)
{
    (void)state;
    const size_t few = looks_at(200), many = looks_at(2000);
    assert_true(few > 0 && many <= 11 * few);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_aligned_and_numbers_flushed_right),
        cmocka_unit_test(terminal_control_sequences_are_not_printed),
        cmocka_unit_test(a_narrow_terminal_wraps_words_and_then_moves_columns_below),
        cmocka_unit_test(a_head_alone_is_words),
        cmocka_unit_test(ten_times_the_rows_are_ten_times_the_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
