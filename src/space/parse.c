// hone's text form of a space, a line a statement.
#include "space/builder.h"

#include "base/error.h"

static const char where[] = "space.parse";

typedef struct parser {
    hone_space_builder builder;
    hone_lexer lexer;
    size_t line_offset; // of the statement being read
} parser;

static bool failed(const parser *p)
{
    return hone_space_builder_failed(&p->builder);
}

static void expected(parser *p, const char *words)
{
    if (!failed(p)) p->builder.status = hone_lexer_fail(&p->lexer, p->builder.err, where, words);
}

static hone_scalar read_literal(parser *p, const char *words)
{
    hone_scalar literal = {.kind = HONE_SCALAR_NONE};
    if (!failed(p) && !hone_lexer_literal(&p->lexer, &literal)) expected(p, words);
    return literal;
}

static int64_t read_integer(parser *p, const char *words)
{
    hone_lexer start = p->lexer;
    hone_scalar literal = read_literal(p, words);
    if (failed(p) || literal.kind == HONE_SCALAR_INT) return literal.as.i64;
    p->lexer = start;
    expected(p, words);
    return 0;
}

// Behind the "..".
static void read_range(parser *p, int64_t first)
{
    int64_t last = read_integer(p, "the integer at the end of the range"), by = 1;
    bool multiply = hone_lexer_is(&p->lexer, "*");
    if (multiply || hone_lexer_is(&p->lexer, "+")) {
        hone_lexer_next(&p->lexer);
        by = read_integer(p, "an integer, the step of the range");
    }
    hone_space_add_range(&p->builder, first, last, multiply, by);
}

static void read_values(parser *p)
{
    hone_scalar value = read_literal(p, "a value");
    if (value.kind == HONE_SCALAR_INT && hone_lexer_accept(&p->lexer, "..")) {
        read_range(p, value.as.i64);
        return;
    }
    hone_space_add_value(&p->builder, value);
    while (!failed(p) && hone_lexer_accept(&p->lexer, "|"))
        hone_space_add_value(&p->builder, read_literal(p, "a value"));
}

static void read_parameter(parser *p)
{
    if (p->lexer.token.kind != HONE_TOKEN_NAME) {
        expected(p, "a parameter's name or 'where'");
        return;
    }
    hone_space_begin_parameter(&p->builder, p->lexer.token.text);
    hone_lexer_next(&p->lexer);
    if (!hone_lexer_accept(&p->lexer, ":")) expected(p, "':' and the parameter's values");
    read_values(p);
    if (failed(p)) return;
    if (!hone_lexer_accept(&p->lexer, "default")) {
        hone_space_end_parameter(&p->builder, NULL);
        return;
    }
    hone_scalar by_default = read_literal(p, "the default value");
    hone_space_end_parameter(&p->builder, &by_default);
}

static void read_statement(parser *p)
{
    if (hone_lexer_is(&p->lexer, "\n") || p->lexer.token.kind == HONE_TOKEN_END) return;
    if (hone_lexer_accept(&p->lexer, "where"))
        hone_space_add_constraint(&p->builder, &p->lexer);
    else
        read_parameter(p);
}

static void read_lines(parser *p)
{
    while (!failed(p) && p->lexer.token.kind != HONE_TOKEN_END) {
        p->line_offset = p->lexer.token.offset;
        read_statement(p);
        if (p->lexer.token.kind != HONE_TOKEN_END && !hone_lexer_accept(&p->lexer, "\n"))
            expected(p, "the end of the line");
    }
}

// The number of the line that a byte stands in, from 1.
static size_t line_of(hone_view source, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset && i < source.size; i++)
        line += source.data[i] == '\n';
    return line;
}

static void parse(parser *p, const char *text)
{
    hone_view source = hone_view_of(text);
    if (!hone_text_is_utf8(source.data, source.size)) {
        hone_space_builder_fail(&p->builder, "the text is not UTF-8");
        return;
    }
    hone_lexer_init(&p->lexer, source, &p->builder.space->arena, NULL);
    p->lexer.newline_ends = true;
    p->builder.lexer = &p->lexer;
    read_lines(p);
    if (failed(p) && p->builder.status != HONE_OUT_OF_MEMORY)
        hone_fail_prefix(p->builder.err, p->builder.status, "line %zu", line_of(source, p->line_offset));
}

hone_status hone_space_parse(hone_allocator allocator, const char *text, hone_space **out, hone_error *err)
{
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "out is NULL");
    parser p = {.line_offset = 0};
    *out = NULL;
    hone_status status = hone_space_builder_begin(&p.builder, hone_allocator_given(allocator), where, err);
    if (status != HONE_OK) return status;
    parse(&p, text == NULL ? "" : text);
    return hone_space_builder_end(&p.builder, out);
}
