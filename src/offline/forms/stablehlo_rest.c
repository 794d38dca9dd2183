// The rest of a statement of StableHLO, behind its opcode: operands, symbols that it calls, strings that matter, its
// types and its location. It is the one loop over every byte of a program, and stops at those only that mean something.
#include "base/number.h"
#include "offline/forms/stablehlo.h"

// A statement as far as it was read. Depth of brackets: angles count for where " : " stands, but never carry a
// statement over a line's end.
typedef struct rest {
    hone_stablehlo_reader *r;
    hone_stablehlo_statement *s;
    int brackets, angles;
    const char *types; // where the types begin; NULL: not yet
    const char *fresh; // what stands before it was taken: it is no part of another mark
} rest;

static bool at_top(const rest *x)
{
    return x->brackets == 0 && x->angles == 0;
}

// What stands right before the cursor, in what was not taken yet.
static bool follows(const rest *x, const char *text)
{
    size_t size = strlen(text);
    const char *at = x->r->c.at;
    return (size_t)(at - x->fresh) >= size && memcmp(at - size, text, size) == 0;
}

// True when the brace at c opens a region: nothing follows it on its line.
static bool opens_region(hone_cursor c)
{
    c.at++;
    skip_spaces(&c);
    return c.at == c.end || *c.at == '\n';
}

// A line's end ends the statement, but within brackets that do not hold another statement.
static bool ends_at_line(const rest *x)
{
    if (x->brackets == 0) return true;
    hone_cursor next = {x->r->c.at + 1, x->r->c.end};
    skip_spaces(&next);
    char b = peek(&next);
    return b == '%' || b == '#' || b == '^';
}

// --- values and symbols

hone_view hone_stablehlo_take_value(hone_cursor *c, uint32_t *out_number)
{
    accept(c, "%");
    hone_view name = take_name(c);
    int64_t number = 0;
    if (accept(c, "#")) {
        hone_view digits = take_name(c);
        if (!hone_integer_parse(digits.data, digits.size, &number) || number > INT32_MAX) number = 0;
    }
    *out_number = (uint32_t)number;
    return name;
}

hone_view hone_stablehlo_take_symbol(hone_cursor *c)
{
    c->at++; // '@'
    return peek(c) == '"' ? take_string(c) : take_name(c);
}

// Operands stand before the types and outside of regions.
static bool takes_operands(const rest *x)
{
    return x->s->op != HONE_GRAPH_NONE && x->s->region_count == 0 && x->types == NULL;
}

static void read_value(rest *x)
{
    hone_stablehlo_reader *r = x->r;
    uint32_t number;
    const char *start = r->c.at;
    hone_view name = hone_stablehlo_take_value(&r->c, &number);
    hone_cursor after = r->c;
    skip_spaces(&after);
    bool state = peek(&after) == '=';                    // "%iterArg = %c": the name that the value has within the loop
    bool given = x->brackets > 0 && peek(&after) == ':'; // "(%arg0: tensor<2xf32>) {": a parameter of the next region
    if (given && x->s->given == NULL) x->s->given = start;
    if (takes_operands(x) && !state && !given)
        hone_graph_add_operand(r->graph, hone_stablehlo_find_value(r, name, number));
}

static void read_symbol(rest *x)
{
    hone_stablehlo_reader *r = x->r;
    hone_graph *g = r->graph;
    hone_view symbol = hone_stablehlo_take_symbol(&r->c);
    if (!takes_operands(x)) return;
    uint32_t opcode = g->ops[x->s->op].opcode;
    if (opcode != OPCODE_CALL && opcode != OPCODE_COMPOSITE) return;
    if (hone_grow(&g->allocator, &r->uses, &r->use_capacity, r->use_count + 1, sizeof *r->uses))
        r->uses[r->use_count++] = (hone_stablehlo_use){x->s->op, symbol};
    else
        g->failed = true;
}

// --- strings

static bool stands_before(const hone_stablehlo_reader *r, const char *at, const char *what)
{
    size_t size = strlen(what);
    return (size_t)(at - r->start) >= size && memcmp(at - size, what, size) == 0;
}

// A string among a statement's attributes: what hone's own calls carry, and what XLA hands on to its metadata.
static void read_string(rest *x)
{
    hone_stablehlo_reader *r = x->r;
    const char *quote = r->c.at;
    hone_view text = take_string(&r->c);
    if (x->s->op == HONE_GRAPH_NONE || quote[-(quote > r->start)] != ' ') return;
    if (stands_before(r, quote, "hone_call = ")) hone_graph_keep_call(r->graph, x->s->op, text);
    bool label = stands_before(r, quote, "hone_label = ") || stands_before(r, quote, "xla_metadata_payload = ");
    if (label) x->s->attribute = text;
}

// --- types and location

static void end_types(rest *x, const char *end)
{
    if (x->types != NULL && x->s->types.size == 0) x->s->types = view_between(x->types, end);
}

// " : " at the depth of the statement: types follow, unless another one comes.
static bool read_colon(rest *x)
{
    hone_cursor *c = &x->r->c;
    bool mark = at_top(x) && follows(x, " ") && c->end - c->at > 1 && c->at[1] == ' ';
    if (!mark) return false;
    c->at += 2;
    x->types = c->at;
    x->s->types = (hone_view){0};
    x->s->arrow = NULL;
    return true;
}

static bool read_location(rest *x)
{
    hone_cursor *c = &x->r->c;
    if (!at_top(x) || !follows(x, "loc") || c->at - x->r->start < 4 || c->at[-4] != ' ') return false;
    end_types(x, c->at - 3);
    const char *open = c->at + 1;
    skip_brackets(c);
    x->s->location = view_between(open, c->at > open && c->at[-1] == ')' ? c->at - 1 : c->at);
    return true;
}

static bool read_arrow(rest *x)
{
    if (!follows(x, "-")) return false;
    const char *behind = ++x->r->c.at;
    if (x->types != NULL && x->brackets == 0 && x->s->arrow == NULL) x->s->arrow = behind;
    return true;
}

// --- the loop

static void nest(rest *x, char b)
{
    if (b == '(' || b == '[' || b == '{') x->brackets++;
    if ((b == ')' || b == ']' || b == '}') && x->brackets > 0) x->brackets--;
    if (b == '<') x->angles++;
    if (b == '>' && x->angles > 0) x->angles--;
}

// One token of more than a byte inside a statement. False if no such token is found.
static bool read_piece(rest *x, char b)
{
    switch (b) {
    case '"':
        read_string(x);
        return true;
    case '%':
        read_value(x);
        return true;
    case '@':
        read_symbol(x);
        return true;
    case ':':
        return read_colon(x);
    case '(':
        return read_location(x);
    case '>':
        return read_arrow(x);
    default:
        return false;
    }
}

static hone_stablehlo_stop read_to_stop(rest *x)
{
    hone_cursor *c = &x->r->c;
    for (;;) {
        while (c->at < c->end && !is_class(*c->at, BYTE_STATEMENT))
            c->at++;
        if (c->at >= c->end) return STOP_END;
        char b = *c->at;
        if (b == '{' && opens_region(*c)) return STOP_REGION;
        if (b == '\n' && ends_at_line(x)) return STOP_LINE;
        if (read_piece(x, b)) {
            x->fresh = c->at;
            continue;
        }
        nest(x, b);
        c->at++;
    }
}

hone_stablehlo_stop hone_stablehlo_rest(hone_stablehlo_reader *r, hone_stablehlo_statement *s)
{
    rest x = {.r = r, .s = s, .fresh = r->c.at};
    if (s->region_count > 0) s->location = (hone_view){0};
    hone_stablehlo_stop stopped = read_to_stop(&x);
    end_types(&x, r->c.at);
    return stopped;
}
