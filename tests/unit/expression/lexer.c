#include "base/lexer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

// All tokens of a text in one line: kind, colon, text; strings and numbers by their value.
static void print_token(const hone_token *token, char *out, size_t size)
{
    static const char *const kinds[] = {"end", "name", "integer", "float", "string", "symbol", "error"};
    hone_view text = token->kind == HONE_TOKEN_STRING ? token->scalar.as.text : token->text;
    if (token->kind == HONE_TOKEN_INTEGER)
        snprintf(out, size, "integer:%lld ", (long long)token->scalar.as.i64);
    else if (token->kind == HONE_TOKEN_FLOAT)
        snprintf(out, size, "float:%g ", token->scalar.as.f64);
    else if (token->kind == HONE_TOKEN_END || token->kind == HONE_TOKEN_ERROR)
        snprintf(out, size, "%s", kinds[token->kind]);
    else
        snprintf(out, size, "%s:%.*s ", kinds[token->kind], (int)text.size, text.data);
}

static void assert_tokens_of(hone_view source, bool newline_ends, const char *expected)
{
    char found[400] = "";
    hone_arena arena = {.allocator = hone_allocator_system()};
    hone_lexer lexer;
    hone_lexer_init(&lexer, source, &arena, NULL);
    lexer.newline_ends = newline_ends;
    for (;; hone_lexer_next(&lexer)) {
        size_t used = strlen(found);
        print_token(&lexer.token, found + used, sizeof found - used);
        if (lexer.token.kind == HONE_TOKEN_END || lexer.token.kind == HONE_TOKEN_ERROR) break;
    }
    hone_arena_destroy(&arena);
    assert_string_equal(found, expected);
}

static void assert_tokens(const char *source, const char *expected)
{
    assert_tokens_of(hone_view_of(source), false, expected);
}

static void names_numbers_and_symbols_are_distinguished(void **state)
{
    (void)state;
    assert_tokens("a1 _b \xc3\x84LG", "name:a1 name:_b name:\xc3\x84LG end");
    assert_tokens("T[m,1]->c", "name:T symbol:[ name:m symbol:, integer:1 symbol:] symbol:-> name:c end");
    assert_tokens(
        "a<=b==c//d&&!e", "name:a symbol:<= name:b symbol:== name:c symbol:// name:d symbol:&& symbol:! name:e end");
    assert_tokens("...", "symbol:... end");
    assert_tokens("", "end");
    assert_tokens_of((hone_view){NULL, 0}, false, "end");
}

static void dots_belong_to_ranges_before_numbers(void **state)
{
    (void)state;
    assert_tokens("16..128", "integer:16 symbol:.. integer:128 end");
    assert_tokens("1.5", "float:1.5 end");
    assert_tokens("1.", "float:1 end");
    assert_tokens("1e-6 2E+3 1.5e3", "float:1e-06 float:2000 float:1500 end");
    assert_tokens("1 .x", "integer:1 symbol:. name:x end");
    assert_tokens("1.x", "integer:1 symbol:. name:x end");
}

static void strings_lose_quotes_and_escapes(void **state)
{
    (void)state;
    assert_tokens("'a b' \"c'd\"", "string:a b string:c'd end");
    assert_tokens("'it\\'s \\\"\\\\\\/'", "string:it's \"\\/ end");
    assert_tokens("'\\n\\t'", "string:\n\t end");
    assert_tokens("'\\u00e4\\u20ac\\ud83d\\ude00'", "string:\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 end");
}

static void an_invalid_token_stops_the_lexer(void **state)
{
    (void)state;
    assert_tokens("a $ b", "name:a error");
    assert_tokens("12ab", "error");
    assert_tokens("'open", "error");
    assert_tokens("'open\n'", "error");
    assert_tokens("'\\x'", "error");
    assert_tokens("'\\ud83d'", "error");
    assert_tokens("'\\u12'", "error");
    assert_tokens("'\\", "error");
    assert_tokens("9223372036854775808", "error");
    assert_tokens("1e999", "error");
    assert_tokens_of((hone_view){"a\0b", 3}, false, "name:a error");
}

static void newlines_are_tokens_when_asked_for(void **state)
{
    (void)state;
    assert_tokens_of(hone_view_of("a\n\nb"), true, "name:a symbol:\n symbol:\n name:b end");
    assert_tokens_of(hone_view_of("a\r\nb"), false, "name:a name:b end");
}

static void an_error_token_stays_and_fills_the_error(void **state)
{
    (void)state;
    hone_error err = {0};
    hone_arena arena = {.allocator = hone_allocator_system()};
    hone_lexer lexer;
    hone_lexer_init(&lexer, hone_view_of("  $ x"), &arena, &err);
    hone_lexer_next(&lexer);
    assert_int_equal(lexer.token.kind, HONE_TOKEN_ERROR);
    assert_int_equal(err.status, HONE_INVALID_ARGUMENT);
    assert_string_equal(err.message, "offset 2: a character that has no meaning here");
    hone_arena_destroy(&arena);
}

static void a_string_is_never_taken_for_a_word(void **state)
{
    (void)state;
    hone_arena arena = {.allocator = hone_allocator_system()};
    hone_lexer lexer;
    hone_lexer_init(&lexer, hone_view_of("'where' where"), &arena, NULL);
    assert_false(hone_lexer_accept(&lexer, "where"));
    hone_lexer_next(&lexer);
    assert_true(hone_lexer_accept(&lexer, "where"));
    assert_int_equal(lexer.token.kind, HONE_TOKEN_END);
    hone_arena_destroy(&arena);
}

static void literals_are_values_and_names_are_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        hone_scalar value;
    } table[] = {
        {"-3", {HONE_SCALAR_INT, {.i64 = -3}}},
        {"-0.5", {HONE_SCALAR_FLOAT, {.f64 = -0.5}}},
        {"true", {HONE_SCALAR_BOOL, {.i64 = 1}}},
        {"False", {HONE_SCALAR_BOOL, {.i64 = 0}}},
        {"none", {HONE_SCALAR_NONE, {.i64 = 0}}},
        {"row", {HONE_SCALAR_TEXT, {.text = {"row", 3}}}},
        {"'true'", {HONE_SCALAR_TEXT, {.text = {"true", 4}}}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        hone_arena arena = {.allocator = hone_allocator_system()};
        hone_lexer lexer;
        hone_scalar found;
        hone_lexer_init(&lexer, hone_view_of(table[i].text), &arena, NULL);
        assert_true(hone_lexer_literal(&lexer, &found));
        assert_int_equal(found.kind, table[i].value.kind);
        assert_true(hone_scalar_equal(&found, &table[i].value));
        assert_int_equal(lexer.token.kind, HONE_TOKEN_END);
        hone_arena_destroy(&arena);
    }
}

static void text_that_is_not_a_literal_is_left_alone(void **state)
{
    (void)state;
    static const char *const table[] = {"", "-", "- x", "(1)", "- $"};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        hone_arena arena = {.allocator = hone_allocator_system()};
        hone_lexer lexer;
        hone_scalar found;
        hone_lexer_init(&lexer, hone_view_of(table[i]), &arena, NULL);
        assert_false(hone_lexer_literal(&lexer, &found));
        assert_int_equal(lexer.token.offset, 0);
        hone_arena_destroy(&arena);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_numbers_and_symbols_are_distinguished),
        cmocka_unit_test(dots_belong_to_ranges_before_numbers),
        cmocka_unit_test(strings_lose_quotes_and_escapes),
        cmocka_unit_test(an_invalid_token_stops_the_lexer),
        cmocka_unit_test(newlines_are_tokens_when_asked_for),
        cmocka_unit_test(an_error_token_stays_and_fills_the_error),
        cmocka_unit_test(a_string_is_never_taken_for_a_word),
        cmocka_unit_test(literals_are_values_and_names_are_texts),
        cmocka_unit_test(text_that_is_not_a_literal_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
