// The compiler works by precedence and writes steps between numbered registers. Registers follow the nesting, so that
// the bound on depth bounds them too, and a hostile text can make neither the stack nor the memory grow.
//
// Method: precedence climbing, the recursive form of V. R. Pratt's "Top Down Operator Precedence" (1973): a level reads
// operands of the next tighter level, and goes on while an operator of its own follows, which makes it
// left-associative. Each function leaves its value in register `to` and may use those above it. There are no jumps:
// both sides of `and`, `or` and `if` are computed, and an error is a value that what is not taken drops. So steps run
// in their order, once each, and what evaluating costs is known from the text. Precedence and chained comparisons are
// Python's.
#include "base/expression.h"

#include "base/assert.h"
#include "base/error.h"

#include <string.h>

struct hone_expression {
    hone_view source;
    size_t count;
    hone_expression_step steps[];
};

typedef struct compiler {
    hone_lexer *lexer;
    const hone_expression_names *names;
    bool python;
    unsigned depth;
    hone_expression_step *steps;
    size_t count, capacity;
    size_t end; // of the last token that was eaten
    hone_status status;
    hone_error *err;
} compiler;

static const char where[] = "expression.compile", where_evaluate[] = "expression.evaluate";

// From loose to tight. NOT and COMPARISON have rules of their own.
typedef enum level { OR, AND, NOT, COMPARISON, SUM, PRODUCT, UNARY } level;

typedef struct binary_operator {
    const char *text;
    level level;
    hone_operation operation;
} binary_operator;

static const binary_operator binary_operators[] = {
    {"or", OR, HONE_OPERATION_OR},
    {"||", OR, HONE_OPERATION_OR},
    {"and", AND, HONE_OPERATION_AND},
    {"&&", AND, HONE_OPERATION_AND},
    {"==", COMPARISON, HONE_OPERATION_EQUAL},
    {"!=", COMPARISON, HONE_OPERATION_NOT_EQUAL},
    {"<", COMPARISON, HONE_OPERATION_LESS},
    {"<=", COMPARISON, HONE_OPERATION_LESS_EQUAL},
    {">", COMPARISON, HONE_OPERATION_GREATER},
    {">=", COMPARISON, HONE_OPERATION_GREATER_EQUAL},
    {"+", SUM, HONE_OPERATION_ADD},
    {"-", SUM, HONE_OPERATION_SUBTRACT},
    {"*", PRODUCT, HONE_OPERATION_MULTIPLY},
    {"/", PRODUCT, HONE_OPERATION_DIVIDE},
    {"//", PRODUCT, HONE_OPERATION_FLOOR_DIVIDE},
    {"%", PRODUCT, HONE_OPERATION_MODULO},
};

typedef struct named_operation {
    const char *text;
    hone_operation operation;
    unsigned arguments; // 0: one or more
} named_operation;

static const named_operation functions[] = {
    {"min", HONE_OPERATION_MIN, 0}, {"max", HONE_OPERATION_MAX, 0},   {"ceildiv", HONE_OPERATION_CEILDIV, 2},
    {"abs", HONE_OPERATION_ABS, 1}, {"log2", HONE_OPERATION_LOG2, 1}, {"sqrt", HONE_OPERATION_SQRT, 1},
};

static const named_operation signs[] = {
    {"-", HONE_OPERATION_NEGATE, 1},
    {"+", HONE_OPERATION_PLUS, 1},
    {"!", HONE_OPERATION_NOT, 1},
};

static void compile_level(compiler *c, level at, unsigned to);
static void compile_whole(compiler *c, unsigned to);

static bool failed(const compiler *c)
{
    return c->status != HONE_OK;
}

static void expect_failed(compiler *c, const char *expected)
{
    if (!failed(c)) c->status = hone_lexer_fail(c->lexer, c->err, where, expected);
}

static void next(compiler *c)
{
    c->end = c->lexer->position;
    hone_lexer_next(c->lexer);
}

static bool accept(compiler *c, const char *text)
{
    if (!hone_lexer_is(c->lexer, text)) return false;
    next(c);
    return true;
}

static void expect(compiler *c, const char *text, const char *words)
{
    if (!failed(c) && !accept(c, text)) expect_failed(c, words);
}

static void add_step(compiler *c, hone_expression_step step)
{
    if (failed(c)) return;
    if (c->count == HONE_EXPRESSION_STEPS || step.to >= HONE_EXPRESSION_REGISTERS) {
        c->status = hone_fail(
            c->err, HONE_INVALID_ARGUMENT, where, "offset %zu: the expression is too %s (%d operations, %d levels)",
            c->lexer->token.offset, c->count == HONE_EXPRESSION_STEPS ? "long" : "deep", HONE_EXPRESSION_STEPS,
            HONE_EXPRESSION_DEPTH);
        return;
    }
    if (!hone_grow(&c->lexer->arena->allocator, &c->steps, &c->capacity, c->count + 1, sizeof *c->steps)) {
        c->status = hone_fail_memory(c->err, where);
        return;
    }
    c->steps[c->count++] = step;
}

static void emit(compiler *c, hone_operation operation, unsigned to, unsigned a, unsigned b)
{
    add_step(c, (hone_expression_step){.operation = operation, .to = (uint16_t)to, .a = (uint16_t)a, .b = (uint16_t)b});
}

static void emit_literal(compiler *c, unsigned to, hone_scalar literal)
{
    add_step(c, (hone_expression_step){.operation = HONE_OPERATION_LITERAL, .to = (uint16_t)to, .literal = literal});
}

// Text that outlives the source.
static hone_scalar kept(compiler *c, hone_scalar literal)
{
    if (literal.kind != HONE_SCALAR_TEXT) return literal;
    char *copy = hone_arena_text(c->lexer->arena, literal.as.text.data, literal.as.text.size);
    if (copy == NULL && !failed(c)) c->status = hone_fail_memory(c->err, where);
    literal.as.text.data = copy;
    return literal;
}

static bool enter(compiler *c)
{
    if (failed(c)) return false;
    if (++c->depth <= HONE_EXPRESSION_DEPTH) return true;
    c->status = hone_fail(
        c->err, HONE_INVALID_ARGUMENT, where, "offset %zu: more than %d levels of parentheses and signs",
        c->lexer->token.offset, HONE_EXPRESSION_DEPTH);
    return false;
}

static void leave(compiler *c)
{
    c->depth--;
}

static void emit_slot(compiler *c, unsigned to, hone_view name, size_t offset, int64_t index)
{
    uint32_t slot = 0;
    if (failed(c)) return;
    if (c->names == NULL || !c->names->resolve(c->names->ctx, name, index, &slot)) {
        int size = name.size > 64 ? 64 : (int)name.size;
        c->status =
            hone_fail(c->err, HONE_INVALID_ARGUMENT, where, "offset %zu: unknown name '%.*s'", offset, size, name.data);
        return;
    }
    add_step(c, (hone_expression_step){.operation = HONE_OPERATION_SLOT, .to = (uint16_t)to, .slot = slot});
}

// The [i] of x.shape[i].
static int64_t compile_index(compiler *c)
{
    expect(c, "[", "'[' and the number of a dim");
    if (failed(c) || c->lexer->token.kind != HONE_TOKEN_INTEGER) {
        expect_failed(c, "the number of a dim, from 0");
        return -1;
    }
    int64_t index = c->lexer->token.scalar.as.i64;
    next(c);
    expect(c, "]", "']'");
    return index;
}

// A name with what follows it: x, x.ndim, x.shape[0].
static void compile_variable(compiler *c, hone_token first, unsigned to)
{
    hone_view name = first.text;
    if (!accept(c, ".")) {
        emit_slot(c, to, name, first.offset, -1);
        return;
    }
    hone_token member = c->lexer->token;
    name.size = member.offset + member.text.size - first.offset;
    if (member.kind != HONE_TOKEN_NAME || name.size != first.text.size + 1 + member.text.size) {
        expect_failed(c, "a name right behind '.', without spaces");
        return;
    }
    next(c);
    emit_slot(c, to, name, first.offset, hone_view_is(member.text, "shape") ? compile_index(c) : -1);
}

static const named_operation *find_operation(const named_operation *table, size_t count, hone_view name)
{
    for (size_t i = 0; i < count; i++)
        if (hone_view_is(name, table[i].text)) return &table[i];
    return NULL;
}

// Starts at the '(' and stops behind the last argument. min and max fold any number of them, one included.
static void compile_arguments(compiler *c, const named_operation *function, unsigned to)
{
    next(c);
    compile_whole(c, to);
    if (function->arguments < 2)
        emit(c, function->arguments == 1 ? function->operation : HONE_OPERATION_PLUS, to, to, to);
    for (unsigned i = 1; i < function->arguments || function->arguments == 0; i++) {
        if (function->arguments == 0 && !hone_lexer_is(c->lexer, ",")) return;
        expect(c, ",", "',' and one more argument");
        if (failed(c)) return;
        compile_whole(c, to + 1);
        emit(c, function->operation, to, to, to + 1);
    }
}

static void compile_call(compiler *c, hone_token name, unsigned to)
{
    const named_operation *function = find_operation(functions, sizeof functions / sizeof *functions, name.text);
    if (function == NULL) {
        int size = name.text.size > 64 ? 64 : (int)name.text.size;
        c->status = hone_fail(
            c->err, HONE_INVALID_ARGUMENT, where,
            "offset %zu: there is no function '%.*s'; there are min, max, ceildiv, abs, log2 and sqrt", name.offset,
            size, name.text.data);
        return;
    }
    compile_arguments(c, function, to);
    expect(c, ")", function->arguments == 0 ? "',' or ')'" : "')'");
}

static bool is_reserved(const compiler *c, hone_view name)
{
    if (c->python && (hone_view_is(name, "if") || hone_view_is(name, "else") || hone_view_is(name, "in"))) return true;
    return hone_view_is(name, "and") || hone_view_is(name, "or") || hone_view_is(name, "not");
}

static void compile_name(compiler *c, unsigned to)
{
    hone_scalar literal;
    hone_token token = c->lexer->token;
    if (is_reserved(c, token.text)) {
        expect_failed(c, "a value");
        return;
    }
    size_t end = c->lexer->position;
    hone_lexer_literal(c->lexer, &literal);
    c->end = end;
    if (literal.kind != HONE_SCALAR_TEXT)
        emit_literal(c, to, literal);
    else if (hone_lexer_is(c->lexer, "("))
        compile_call(c, token, to);
    else
        compile_variable(c, token, to);
}

static void compile_primary(compiler *c, unsigned to)
{
    switch (c->lexer->token.kind) {
    case HONE_TOKEN_INTEGER:
    case HONE_TOKEN_FLOAT:
    case HONE_TOKEN_STRING:
        emit_literal(c, to, kept(c, c->lexer->token.scalar));
        next(c);
        return;
    case HONE_TOKEN_NAME:
        compile_name(c, to);
        return;
    default:
        break;
    }
    if (!accept(c, "(")) {
        expect_failed(c, "a value");
        return;
    }
    compile_whole(c, to);
    expect(c, ")", "')'");
}

static void compile_unary(compiler *c, unsigned to);

// Binds closer than a sign on its left, and not as close as one on its right: -2 ** -1 is -(2 ** (-1)).
static void compile_power(compiler *c, unsigned to)
{
    compile_primary(c, to);
    if (failed(c) || !c->python || !accept(c, "**")) return;
    compile_unary(c, to + 1);
    emit(c, HONE_OPERATION_POWER, to, to, to + 1);
}

static void compile_unary(compiler *c, unsigned to)
{
    if (!enter(c)) return;
    const named_operation *sign = NULL;
    if (c->lexer->token.kind == HONE_TOKEN_SYMBOL)
        sign = find_operation(signs, sizeof signs / sizeof *signs, c->lexer->token.text);
    if (sign == NULL) {
        compile_power(c, to);
    } else {
        next(c);
        compile_unary(c, to);
        emit(c, sign->operation, to, to, to);
    }
    leave(c);
}

static const binary_operator *operator_here(const compiler *c, level at)
{
    for (size_t i = 0; i < sizeof binary_operators / sizeof *binary_operators; i++)
        if (binary_operators[i].level == at && hone_lexer_is(c->lexer, binary_operators[i].text))
            return &binary_operators[i];
    return NULL;
}

static hone_operation operation_of(const compiler *c, const binary_operator *op)
{
    bool true_division = op->operation == HONE_OPERATION_DIVIDE && c->python;
    return true_division ? HONE_OPERATION_TRUE_DIVIDE : op->operation;
}

// Behind `in`: whether one register equals a member of the list.
static void compile_members(compiler *c, unsigned value, unsigned to)
{
    const char *end = hone_lexer_is(c->lexer, "(") ? ")" : "]";
    emit_literal(c, to, hone_scalar_bool(false));
    if (!accept(c, "[") && !accept(c, "(")) expect_failed(c, "'[' and a list of values");
    while (!failed(c) && !hone_lexer_is(c->lexer, end)) {
        compile_whole(c, to + 1);
        emit(c, HONE_OPERATION_EQUAL, to + 1, value, to + 1);
        emit(c, HONE_OPERATION_OR, to, to, to + 1);
        if (!accept(c, ",")) break;
    }
    expect(c, end, "',' or the end of the list");
}

// `in [1, 2]` and `not in [1, 2]`, of the value in a register; false when neither stands here.
static bool compile_membership(compiler *c, unsigned value, unsigned to)
{
    hone_lexer ahead = *c->lexer;
    bool is_not = hone_lexer_is(c->lexer, "not");
    if (failed(c) || !c->python) return false;
    ahead.err = NULL;
    if (is_not) hone_lexer_next(&ahead);
    if (!hone_lexer_is(&ahead, "in")) return false;
    if (is_not) next(c);
    next(c);
    compile_members(c, value, to);
    if (is_not) emit(c, HONE_OPERATION_NOT, to, to, to);
    return true;
}

// a < b < c is a < b and b < c, with b computed once: it stays in its register for the second comparison.
static void compile_comparison(compiler *c, unsigned to)
{
    unsigned left = to + 1, right = to + 2;
    compile_level(c, SUM, to);
    if (compile_membership(c, to, left)) {
        emit(c, HONE_OPERATION_COPY, to, left, left);
        return;
    }
    const binary_operator *op = failed(c) ? NULL : operator_here(c, COMPARISON);
    if (op == NULL) return;
    next(c);
    compile_level(c, SUM, left);
    emit(c, op->operation, to, to, left);
    while (!failed(c) && (op = operator_here(c, COMPARISON)) != NULL) {
        next(c);
        compile_level(c, SUM, right);
        emit(c, op->operation, left, left, right);
        emit(c, HONE_OPERATION_AND, to, to, left);
        emit(c, HONE_OPERATION_COPY, left, right, right);
    }
    if (compile_membership(c, left, right)) emit(c, HONE_OPERATION_AND, to, to, right);
}

static void compile_not(compiler *c, unsigned to)
{
    if (!hone_lexer_is(c->lexer, "not")) {
        compile_comparison(c, to);
        return;
    }
    if (!enter(c)) return;
    next(c);
    compile_not(c, to);
    emit(c, HONE_OPERATION_NOT, to, to, to);
    leave(c);
}

static void compile_level(compiler *c, level at, unsigned to)
{
    if (failed(c)) return;
    if (at == NOT) {
        compile_not(c, to);
        return;
    }
    if (at == UNARY) {
        compile_unary(c, to);
        return;
    }
    const binary_operator *op;
    compile_level(c, at + 1, to);
    while (!failed(c) && (op = operator_here(c, at)) != NULL) {
        hone_operation operation = operation_of(c, op);
        next(c);
        compile_level(c, at + 1, to + 1);
        emit(c, operation, to, to, to + 1);
    }
}

// With Python's `a if x else b`, whose last part may be another one.
static void compile_whole(compiler *c, unsigned to)
{
    compile_level(c, OR, to);
    if (failed(c) || !c->python || !accept(c, "if") || !enter(c)) return;
    compile_level(c, OR, to + 1);
    emit(c, HONE_OPERATION_WHEN, to, to + 1, to);
    expect(c, "else", "'else' and another value");
    compile_whole(c, to + 1);
    emit(c, HONE_OPERATION_ELSE, to, to, to + 1);
    leave(c);
}

// Copies what was compiled into the arena.
static hone_status finish(compiler *c, size_t start, const hone_expression **out)
{
    hone_arena *arena = c->lexer->arena;
    hone_view source = {c->lexer->source.data + start, c->end - start};
    hone_expression *expression = hone_arena_alloc(arena, sizeof *expression + c->count * sizeof *c->steps);
    char *text = hone_arena_text(arena, source.data, source.size);
    if (expression == NULL || text == NULL) return hone_fail_memory(c->err, where);
    expression->source = (hone_view){text, source.size};
    expression->count = c->count;
    memcpy(expression->steps, c->steps, c->count * sizeof *c->steps);
    *out = expression;
    return HONE_OK;
}

hone_status hone_expression_compile(
    hone_lexer *lexer, const hone_expression_names *names, unsigned flags, const hone_expression **out, hone_error *err)
{
    size_t start = lexer->token.offset;
    compiler c = {.lexer = lexer, .names = names, .err = err};
    c.python = (flags & HONE_EXPRESSION_PYTHON) != 0;
    compile_whole(&c, 0);
    if (!failed(&c)) c.status = finish(&c, start, out);
    hone_free(&lexer->arena->allocator, c.steps);
    return c.status;
}

hone_status hone_expression_evaluate(
    const hone_expression *expression, const hone_scalar *slots, hone_scalar *out, hone_error *err)
{
    hone_scalar registers[HONE_EXPRESSION_REGISTERS];
    hone_assert(expression->count > 0);
    for (size_t i = 0; i < expression->count; i++) {
        const hone_expression_step *step = &expression->steps[i];
        hone_scalar *to = &registers[step->to];
        hone_assert(step->to < HONE_EXPRESSION_REGISTERS && (slots != NULL || step->operation != HONE_OPERATION_SLOT));
        if (step->operation == HONE_OPERATION_LITERAL)
            *to = step->literal;
        else if (step->operation == HONE_OPERATION_SLOT)
            *to = slots[step->slot];
        else
            hone_scalar_apply(step->operation, &registers[step->a], &registers[step->b], to);
    }
    if (registers[0].kind == HONE_SCALAR_ERROR)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where_evaluate, "'%s': %s", expression->source.data,
            hone_scalar_problem(&registers[0]));
    *out = registers[0];
    return HONE_OK;
}

void hone_expression_slots(const hone_expression *expression, void (*visit)(void *ctx, uint32_t slot), void *ctx)
{
    for (size_t i = 0; i < expression->count; i++)
        if (expression->steps[i].operation == HONE_OPERATION_SLOT) visit(ctx, expression->steps[i].slot);
}

hone_view hone_expression_source(const hone_expression *expression)
{
    return expression->source;
}

const hone_expression_step *hone_expression_steps(const hone_expression *expression, size_t *out_count)
{
    *out_count = expression->count;
    return expression->steps;
}
