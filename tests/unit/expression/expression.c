#include "base/expression.h"

#include "base/error.h"
#include "base/number.h"
#include "failing_allocator.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// The names that the tests' expressions know, and their values.
static const struct {
    const char *name;
    int64_t index;
    hone_scalar value;
} names[] = {
    {"m", -1, {HONE_SCALAR_INT, {.i64 = 512}}},
    {"n", -1, {HONE_SCALAR_INT, {.i64 = 0}}},
    {"x", -1, {HONE_SCALAR_FLOAT, {.f64 = 0.5}}},
    {"layout", -1, {HONE_SCALAR_TEXT, {.text = {"row", 3}}}},
    {"q.shape", 1, {HONE_SCALAR_INT, {.i64 = 32}}},
    {"q.ndim", -1, {HONE_SCALAR_INT, {.i64 = 4}}},
    {"device.l1_bytes", -1, {HONE_SCALAR_INT, {.i64 = 32768}}},
    {"causal", -1, {HONE_SCALAR_BOOL, {.i64 = 1}}},
    {"nothing", -1, {HONE_SCALAR_NONE, {.i64 = 0}}},
    {"smallest", -1, {HONE_SCALAR_INT, {.i64 = INT64_MIN}}},
};
enum { NAMES = sizeof names / sizeof *names };

static bool resolve(void *ctx, hone_view name, int64_t index, uint32_t *out_slot)
{
    (void)ctx;
    for (uint32_t i = 0; i < NAMES; i++) {
        if (!hone_view_is(name, names[i].name) || index != names[i].index) continue;
        *out_slot = i;
        return true;
    }
    return false;
}

static void print_scalar(const hone_scalar *scalar, char *out, size_t size)
{
    char number[HONE_NUMBER_SIZE];
    switch (scalar->kind) {
    case HONE_SCALAR_NONE:
        snprintf(out, size, "none");
        break;
    case HONE_SCALAR_BOOL:
        snprintf(out, size, "%s", scalar->as.i64 == 1 ? "true" : "false");
        break;
    case HONE_SCALAR_INT:
        snprintf(out, size, "%" PRId64, scalar->as.i64);
        break;
    case HONE_SCALAR_FLOAT:
        snprintf(out, size, "%s", hone_number_print(scalar->as.f64, number));
        break;
    default:
        snprintf(out, size, "'%.*s'", (int)scalar->as.text.size, scalar->as.text.data);
    }
}

// The value of an expression as text, or the message of its failure.
static void compute_with(const char *text, unsigned flags, char *out, size_t size)
{
    hone_arena arena = {.allocator = hone_allocator_system()};
    hone_lexer lexer;
    hone_error err = {0};
    const hone_expression *expression;
    hone_scalar slots[NAMES], value;
    for (size_t i = 0; i < NAMES; i++)
        slots[i] = names[i].value;
    hone_lexer_init(&lexer, hone_view_of(text), &arena, &err);
    hone_status status =
        hone_expression_compile(&lexer, &(hone_expression_names){resolve, NULL}, flags, &expression, &err);
    if (status == HONE_OK && lexer.token.kind != HONE_TOKEN_END)
        status = hone_lexer_fail(&lexer, &err, "test", "the end");
    if (status == HONE_OK) status = hone_expression_evaluate(expression, slots, &value, &err);
    if (status == HONE_OK)
        print_scalar(&value, out, size);
    else
        snprintf(out, size, "%s", err.message);
    if (status != HONE_OK) assert_int_equal(err.status, status);
    hone_arena_destroy(&arena);
}

typedef struct expectation {
    const char *text, *value;
} expectation;

static void expect_all(const expectation *expectations, size_t count, unsigned flags)
{
    char value[1100];
    for (size_t i = 0; i < count; i++) {
        compute_with(expectations[i].text, flags, value, sizeof value);
        if (strcmp(value, expectations[i].value) != 0) print_message("in '%s'\n", expectations[i].text);
        assert_string_equal(value, expectations[i].value);
    }
}
#define EXPECT(table, flags) expect_all(table, sizeof table / sizeof *table, flags)

static void precedence_is_c_with_python_words(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"1 + 2 * 3", "7"},         {"(1 + 2) * 3", "9"},     {"10 - 3 - 2", "5"},
        {"-2 * -3", "6"},           {"- - 2", "2"},           {"+m", "512"},
        {"1 < 2 == true", "false"}, // chained: 1 < 2 and 2 == true
        {"not 1 == 2", "true"},     // not (1 == 2)
        {"!1 == 0", "true"},        // (!1) == 0
        {"not not 3", "true"},      {"1 or 0 and 0", "true"}, {"(1 or 0) and 0", "false"},
        {"1 || 0 && 0", "true"},    {"2 and 3", "true"}, // truth values, not Python's last operand
        {"not n or m", "true"},     {"m % 100 * 2", "24"},
    };
    EXPECT(table, 0);
}

static void comparisons_chain_as_in_python(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"32 <= m <= 1024", "true"},    {"1024 <= m <= 32", "false"},
        {"1 < 2 < 3 < 4 < 5", "true"},  {"1 < 2 < 3 < 3 < 5", "false"},
        {"5 > 3 < 4 != 5", "true"},     {"0 < m // 2 + 1 <= 257 == 257", "true"},
        {"3 > 2 > 1 > 0 > 0", "false"}, {"1 < 1 / 0 < 0", "'1 < 1 / 0 < 0': division by zero"},
    };
    EXPECT(table, 0);
}

static void integer_division_rounds_down_and_modulo_takes_the_sign_of_the_divisor(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"7 / 2", "3"},         {"-7 / 2", "-4"},       {"7 // -2", "-4"},        {"-7 // -2", "3"},
        {"7 % 3", "1"},         {"-7 % 3", "2"},        {"7 % -3", "-2"},         {"-6 % 3", "0"},
        {"smallest % -1", "0"}, {"ceildiv(7, 2)", "4"}, {"ceildiv(-7, 2)", "-3"}, {"ceildiv(8, 2)", "4"},
        {"7.0 / 2", "3.5"},     {"7.5 // 2", "3.0"},    {"-7.5 // 2", "-4.0"},    {"-7.5 % 2", "0.5"},
        {"7.5 % -2", "-0.5"},   {"true + true", "2"},   {"0.3 // 0.1", "2.0"},
    };
    EXPECT(table, 0);
}

static void python_division_gives_floats_only_when_asked_for(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"7 / 2", "3.5"},       {"8 / 2", "4.0"}, {"16 % (8 * 8 / 4)", "0.0"},
        {"8 / 2 == 4", "true"}, {"7 // 2", "3"},  {"1 / n", "'1 / n': division by zero"},
    };
    EXPECT(table, HONE_EXPRESSION_PYTHON);
}

static void python_s_own_operators_are_read_when_asked_for(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"2 ** 10", "1024"},
        {"2 ** 3 ** 2", "512"},
        {"-2 ** 2", "-4"},
        {"2 ** -1", "0.5"},
        {"(-3) ** 3", "-27"},
        {"n ** 0", "1"},
        {"4 ** x", "2.0"},
        {"2 ** 62 * 2 - 1", "'2 ** 62 * 2 - 1': overflow of 64 bits"},
        {"2 ** 63", "'2 ** 63': overflow of 64 bits"},
        {"(-2) ** 63", "-9223372036854775808"},
        {"1 ** 9000000000000000000", "1"},
        {"n ** -1", "'n ** -1': division by zero"},
        {"(-1) ** x", "'(-1) ** x': an operation on types that it does not fit"},
        {"10.0 ** 999", "'10.0 ** 999': overflow of 64 bits"},
        {"m in [1, 512]", "true"},
        {"m in (1, 2,)", "false"},
        {"m not in [1, 512]", "false"},
        {"m in []", "false"},
        {"layout in ['row', 'col'] and not m in [3]", "true"},
        {"1 < m in [256 * 2]", "true"},
        {"600 < m in [512]", "false"},
        {"not m not in [512]", "true"},
        {"1 / n in [1]", "'1 / n in [1]': division by zero"},
        {"3 if n else 4", "4"},
        {"1 / n if n != 0 else 7", "7"},
        {"7 if n == 0 else 1 / n", "7"},
        {"1 if n else 2 if m == 1 else 3", "3"},
        {"(1 if m else 2) + 10", "11"},
        {"max(1 if n else 5, 2) == 5 if m > 1 else n", "true"},
        {"n if m else 3", "0"},
        {"1 if 1 / n else 2", "'1 if 1 / n else 2': division by zero"},
        {"m in 3", "offset 5: expected '[' and a list of values, found '3'"},
        {"m in [1, 2", "offset 10: expected ',' or the end of the list, found the end"},
        {"1 if m", "offset 6: expected 'else' and another value, found the end"},
        {"if", "offset 0: expected a value, found 'if'"},
    };
    EXPECT(table, HONE_EXPRESSION_PYTHON);
    static const expectation elsewhere[] = {
        {"2 ** 3", "offset 2: expected the end, found '**'"},
        {"m in [512]", "offset 2: expected the end, found 'in'"},
        {"1 if m else 2", "offset 2: expected the end, found 'if'"},
    };
    EXPECT(elsewhere, 0);
}

static void functions_take_their_arguments(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"min(3)", "3"},
        {"min(3, 1, 2)", "1"},
        {"max(3, 1.5, m)", "512"},
        {"max(1, 1.0)", "1"},
        {"abs(-3)", "3"},
        {"abs(-0.5)", "0.5"},
        {"log2(8)", "3"},
        {"log2(0.5)", "-1.0"},
        {"log2(m) * 2", "18"},
        {"sqrt(16)", "4.0"},
        {"1 / sqrt(64)", "0.125"},
        {"sqrt(0)", "0.0"},
        {"sqrt(0 - 1)", "'sqrt(0 - 1)': sqrt of a negative number"},
        {"sqrt(layout)", "'sqrt(layout)': an operation on types that it does not fit"},
        {"1 / sqrt(0)", "'1 / sqrt(0)': division by zero"},
        {"min(max(1, 2), min(3, 4)) + 1", "3"},
        {"min()", "offset 4: expected a value, found ')'"},
        {"ceildiv(1)", "offset 9: expected ',' and one more argument, found ')'"},
        {"ceildiv(1, 2, 3)", "offset 12: expected ')', found ','"},
        {"abs(1, 2)", "offset 5: expected ')', found ','"},
        {"sin(1)", "offset 0: there is no function 'sin'; there are min, max, ceildiv, abs, log2 and sqrt"},
        {"ceildiv(1.0, 2)", "'ceildiv(1.0, 2)': an operation on types that it does not fit"},
        {"log2(0)", "'log2(0)': log2 of a number that is not positive"},
    };
    EXPECT(table, 0);
}

static void names_come_from_the_resolver(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"m * 2", "1024"},
        {"q.shape[1] % 8", "0"},
        {"q.ndim == 4", "true"},
        {"device.l1_bytes / 4", "8192"},
        {"causal and layout == 'row'", "true"},
        {"layout == \"col\"", "false"},
        {"layout != 3", "true"},
        {"layout < 'sow'", "true"},
        {"nothing == none", "true"},
        {"nothing == 0", "false"},
        {"1 + missing", "offset 4: unknown name 'missing'"},
        {"q.shape[0]", "offset 0: unknown name 'q.shape'"},
        {"q.shape", "offset 7: expected '[' and the number of a dim, found the end"},
        {"q.shape[m]", "offset 8: expected the number of a dim, from 0, found 'm'"},
        {"q.shape[-1]", "offset 8: expected the number of a dim, from 0, found '-'"},
        {"q .ndim", "offset 3: expected a name right behind '.', without spaces, found 'ndim'"},
    };
    EXPECT(table, 0);
}

static void and_or_are_decided_by_their_left_side(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"n != 0 and m % n == 0", "false"},
        {"n == 0 or m % n == 0", "true"},
        {"m % n == 0 or true", "'m % n == 0 or true': division by zero"},
        {"n == 0 and m % n == 0", "'n == 0 and m % n == 0': division by zero"},
        {"layout == 'row' or layout + 1", "true"},
    };
    EXPECT(table, 0);
}

static void overflow_is_an_error_and_never_wraps(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"9223372036854775807", "9223372036854775807"},
        {"9223372036854775807 + 1", "'9223372036854775807 + 1': overflow of 64 bits"},
        {"smallest - 1", "'smallest - 1': overflow of 64 bits"},
        {"-smallest", "'-smallest': overflow of 64 bits"},
        {"abs(smallest)", "'abs(smallest)': overflow of 64 bits"},
        {"smallest / -1", "'smallest / -1': overflow of 64 bits"},
        {"ceildiv(smallest, -1)", "'ceildiv(smallest, -1)': overflow of 64 bits"},
        {"4294967296 * 4294967296", "'4294967296 * 4294967296': overflow of 64 bits"},
        {"9223372036854775808", "offset 0: an integer that 64 bits cannot hold"},
        {"1e999", "offset 0: a float that no double can hold"},
    };
    EXPECT(table, 0);
}

static void integers_and_floats_compare_exactly(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"1 == 1.0", "true"},
        {"true == 1.0", "true"},
        {"9007199254740993 == 9007199254740992.0", "false"},
        {"9007199254740993 > 9007199254740992.0", "true"},
        {"9223372036854775807 < 9223372036854775808.0", "true"},
        {"-1e300 < smallest", "true"},
        {"2 < 2.5 < 3", "true"},
        {"-2 > -2.5", "true"},
        {"x + x == 1", "true"},
        {"layout + 1", "'layout + 1': an operation on types that it does not fit"},
        {"layout < 1", "'layout < 1': an operation on types that it does not fit"},
    };
    EXPECT(table, 0);
}

static void wrong_syntax_names_the_place_and_what_was_expected(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"", "offset 0: expected a value, found the end"},
        {"1 +", "offset 3: expected a value, found the end"},
        {"(1", "offset 2: expected ')', found the end"},
        {"1 == not 2", "offset 5: expected a value, found 'not'"},
        {"2 ** 3", "offset 2: expected the end, found '**'"},
        {"1 $ 2", "offset 2: a character that has no meaning here"},
        {"'open", "offset 0: a string without its closing quote on the same line"},
        {"12ab", "offset 0: a number with letters behind it (names start with a letter or '_')"},
        {"a = 1", "offset 0: unknown name 'a'"},
        {"m = 1", "offset 2: expected the end, found '='"},
    };
    EXPECT(table, 0);
}

static void compiling_stops_at_what_cannot_belong(void **state)
{
    (void)state;
    static const expectation table[] = {
        {"m] rest", "]"},  {"m ~pow2", "~"}, {"causal else 2", "else"},
        {"m + 1, n", ","}, {"m | n", "|"},   {"m -> c", "->"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        hone_arena arena = {.allocator = hone_allocator_system()};
        hone_lexer lexer;
        const hone_expression *expression;
        hone_lexer_init(&lexer, hone_view_of(table[i].text), &arena, NULL);
        assert_int_equal(
            hone_expression_compile(&lexer, &(hone_expression_names){resolve, NULL}, 0, &expression, NULL), HONE_OK);
        assert_true(hone_lexer_is(&lexer, table[i].value));
        hone_arena_destroy(&arena);
    }
}

static void the_source_of_an_expression_is_kept(void **state)
{
    (void)state;
    hone_arena arena = {.allocator = hone_allocator_system()};
    hone_lexer lexer;
    const hone_expression *expression;
    hone_lexer_init(&lexer, hone_view_of("  m * (2 + 'ab') , 3"), &arena, NULL);
    assert_int_equal(
        hone_expression_compile(&lexer, &(hone_expression_names){resolve, NULL}, 0, &expression, NULL), HONE_OK);
    assert_string_equal(hone_expression_source(expression).data, "m * (2 + 'ab')");
    hone_arena_destroy(&arena);
}

static void count_slot(void *ctx, uint32_t slot)
{
    unsigned *counts = ctx;
    counts[slot]++;
}

static void slots_are_visited(void **state)
{
    (void)state;
    hone_arena arena = {.allocator = hone_allocator_system()};
    hone_lexer lexer;
    const hone_expression *expression;
    unsigned counts[NAMES] = {0};
    hone_lexer_init(&lexer, hone_view_of("m * m < n"), &arena, NULL);
    assert_int_equal(
        hone_expression_compile(&lexer, &(hone_expression_names){resolve, NULL}, 0, &expression, NULL), HONE_OK);
    hone_expression_slots(expression, count_slot, counts);
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1], 1);
    assert_int_equal(counts[2], 0);
    hone_arena_destroy(&arena);
}

// open, `count` times, then body, then close as often.
static char *repeated(const char *open, size_t count, const char *body, const char *close)
{
    size_t left = strlen(open), right = strlen(close), middle = strlen(body);
    char *text = calloc(count * (left + right) + middle + 1, 1);
    assert_non_null(text);
    for (size_t i = 0; i < count; i++) {
        memcpy(text + i * left, open, left);
        memcpy(text + count * left + middle + i * right, close, right);
    }
    memcpy(text + count * left, body, middle);
    return text;
}

static void assert_result_of_repeated(
    const char *open, size_t count, const char *body, const char *close, const char *want)
{
    char value[1100];
    char *text = repeated(open, count, body, close);
    compute_with(text, 0, value, sizeof value);
    assert_non_null(strstr(value, want));
    free(text);
}

static void hostile_depth_and_length_are_refused(void **state)
{
    (void)state;
    assert_result_of_repeated("(", 60, "1", ")", "1");
    assert_result_of_repeated("(", 100000, "1", ")", "more than 64 levels");
    assert_result_of_repeated("-", 100000, "1", "", "more than 64 levels");
    assert_result_of_repeated("not ", 100000, "1", "", "more than 64 levels");
    assert_result_of_repeated("min(", 100000, "1", ")", "more than 64 levels");
    assert_result_of_repeated("1 or 2 and 3 < 4 < 5 + 6 * (", 60, "1", ")", "too deep");
    assert_result_of_repeated("1 + ", 2000, "1", "", "2001");
    assert_result_of_repeated("1 + ", 100000, "1", "", "too long");
    assert_result_of_repeated("1 < ", 100000, "1", "", "too long");
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    hone_status status = HONE_OUT_OF_MEMORY;
    size_t allowed = 0;
    for (; status != HONE_OK && allowed < 100; allowed++) {
        failing_allocator allocator;
        hone_arena arena = {.allocator = failing_allocator_of(&allocator, (long long)allowed)};
        hone_lexer lexer;
        hone_error err = {0};
        const hone_expression *expression = NULL;
        hone_lexer_init(&lexer, hone_view_of("'a\\n' == 'b' and 1+2+3+4+5+6+7+8+9+10 < 'c'"), &arena, &err);
        status = hone_expression_compile(&lexer, NULL, 0, &expression, &err);
        if (status != HONE_OK) assert_int_equal(status, HONE_OUT_OF_MEMORY);
        if (status != HONE_OK) assert_int_equal(err.status, HONE_OUT_OF_MEMORY);
        hone_arena_destroy(&arena);
        assert_int_equal(atomic_load(&allocator.live), 0);
    }
    assert_int_equal(status, HONE_OK);
    assert_true(allowed > 2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(precedence_is_c_with_python_words),
        cmocka_unit_test(comparisons_chain_as_in_python),
        cmocka_unit_test(integer_division_rounds_down_and_modulo_takes_the_sign_of_the_divisor),
        cmocka_unit_test(python_division_gives_floats_only_when_asked_for),
        cmocka_unit_test(python_s_own_operators_are_read_when_asked_for),
        cmocka_unit_test(functions_take_their_arguments),
        cmocka_unit_test(names_come_from_the_resolver),
        cmocka_unit_test(and_or_are_decided_by_their_left_side),
        cmocka_unit_test(overflow_is_an_error_and_never_wraps),
        cmocka_unit_test(integers_and_floats_compare_exactly),
        cmocka_unit_test(wrong_syntax_names_the_place_and_what_was_expected),
        cmocka_unit_test(compiling_stops_at_what_cannot_belong),
        cmocka_unit_test(the_source_of_an_expression_is_kept),
        cmocka_unit_test(slots_are_visited),
        cmocka_unit_test(hostile_depth_and_length_are_refused),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
