// Statements of the usual shape: one line, one result, operands by name, types, and the alias of a location:
//
//   %5 = stablehlo.add %3, %4 : tensor<8x64xf32> loc(#loc142)
//   %6 = stablehlo.broadcast_in_dim %cst, dims = [0] : (tensor<8xf32>) -> tensor<8x1xf32> loc(#loc144)
//
// Nearly all of a program is such lines. They are read here from left to right without looking at what they cannot
// hold; whatever else stands in a line leaves all of it to the general reader, which reads these the same.
#include "offline/forms/stablehlo.h"

enum { OPERANDS_MAX = 8 };

typedef struct operand {
    hone_view name;
    uint32_t number;
} operand;

typedef struct statement {
    hone_view result, opcode, literal, type, location;
    uint32_t location_number;
    operand operands[OPERANDS_MAX];
    size_t operand_count;
} statement;

void hone_stablehlo_put_value(hone_stablehlo_reader *r, hone_view name, uint32_t value)
{
    uint32_t number;
    if (number_in(name, &number))
        hone_names_put_number(&r->numbered, number, value);
    else
        hone_names_put(&r->named, 0, name, value);
}

uint32_t hone_stablehlo_find_value(const hone_stablehlo_reader *r, hone_view name, uint32_t number)
{
    uint32_t digits;
    uint32_t first =
        number_in(name, &digits) ? hone_names_get_number(&r->numbered, digits) : hone_names_get(&r->named, 0, name);
    if (first == HONE_GRAPH_NONE || number == 0) return first;
    const hone_graph_value *v = &r->graph->values[first];
    bool there = v->op != HONE_GRAPH_NONE && number < r->graph->ops[v->op].value_count;
    return there ? first + number : HONE_GRAPH_NONE;
}

// "dense<0.000000e+00>", whose inside no bracket and no string is.
static bool take_dense(hone_cursor *c, hone_view *out)
{
    if (!accept(c, "dense<")) return false;
    const char *start = c->at;
    while (c->at < c->end && !is_class(*c->at, BYTE_STATEMENT))
        c->at++;
    *out = view_between(start, c->at);
    return accept(c, ">");
}

// What stands in front of the operands: a constant's value, how a comparison compares.
static bool take_literal(hone_cursor *c, statement *out)
{
    if (hone_view_is(out->opcode, "constant")) return accept(c, " ") && take_dense(c, &out->literal);
    if (!hone_view_is(out->opcode, "compare")) return true;
    skip_spaces(c);
    out->literal = take_name(c);
    return accept(c, ",");
}

static bool take_operands(hone_cursor *c, statement *out)
{
    for (bool more = accept(c, " %"); more; more = accept(c, ", %")) {
        if (out->operand_count == OPERANDS_MAX) return false;
        operand *o = &out->operands[out->operand_count++];
        o->name = hone_stablehlo_take_value(c, &o->number);
    }
    return true;
}

// Attributes up to the " : " before the types. They may hold lists, "dims = [0, 1]", and nothing else in brackets.
static bool skip_attributes(hone_cursor *c)
{
    for (int lists = 0;; c->at++) {
        while (c->at < c->end && !is_class(*c->at, BYTE_STATEMENT))
            c->at++;
        char b = peek(c);
        if (b == ':' && lists == 0 && c->at[-1] == ' ' && c->end - c->at > 1 && c->at[1] == ' ') break;
        if (b != ':' && b != '[' && b != ']') return false;
        lists += b == '[' ? 1 : b == ']' ? -1 : 0;
        if (lists < 0) return false;
    }
    c->at += 2;
    return true;
}

// "tensor<8x64xf32>", with nothing in angles within.
static bool take_type(hone_cursor *c, hone_view *out)
{
    const char *start = c->at;
    if (!accept(c, "tensor<")) return false;
    while (c->at < c->end && !is_class(*c->at, BYTE_TYPE))
        c->at++;
    if (!accept(c, ">")) return false;
    *out = view_between(start, c->at);
    return true;
}

// One type or several, of which the result's is the last; or "(types) -> type".
static bool take_types(hone_cursor *c, hone_view *out)
{
    bool function = accept(c, "("), more = true;
    while (more) {
        if (!take_type(c, out)) return false;
        more = accept(c, ", ");
    }
    return !function || (accept(c, ") -> ") && take_type(c, out));
}

static bool take_location(hone_cursor *c, statement *out)
{
    if (!accept(c, " loc(")) return false;
    const char *start = c->at;
    if (!accept(c, "#loc")) return false;
    hone_view digits = take_name(c);
    out->location = view_between(start, c->at);
    return number_in(digits, &out->location_number) && accept(c, ")") && peek(c) == '\n';
}

static bool take_statement(hone_cursor *c, statement *out)
{
    c->at++; // '%'
    out->result = take_name(c);
    if (!accept(c, " = stablehlo.")) return false;
    out->opcode = take_name(c);
    if (!take_literal(c, out) || !take_operands(c, out) || !skip_attributes(c)) return false;
    return take_types(c, &out->type) && take_location(c, out);
}

static void add_statement(hone_stablehlo_reader *r, const statement *s)
{
    hone_graph *g = r->graph;
    uint32_t body = hone_stablehlo_body(r);
    uint32_t op = body != HONE_GRAPH_NONE ? hone_graph_add_op(g, body, s->opcode) : HONE_GRAPH_NONE;
    if (op == HONE_GRAPH_NONE) return;
    hone_graph_detail *detail = s->literal.size > 0 ? hone_graph_edit_detail(g, op) : NULL;
    if (detail != NULL) detail->literal = s->literal;
    for (size_t i = 0; i < s->operand_count; i++)
        hone_graph_add_operand(g, hone_stablehlo_find_value(r, s->operands[i].name, s->operands[i].number));
    hone_stablehlo_put_value(r, s->result, hone_graph_add_value(g, op, s->type));
    hone_stablehlo_keep_location(r, op, s->location, s->location_number);
    if (r->frame_count > 0) r->frames[r->frame_count - 1].last = (hone_stablehlo_statement){.op = op};
}

bool hone_stablehlo_read_plain(hone_stablehlo_reader *r)
{
    statement s;
    s.literal = (hone_view){0};
    s.operand_count = 0;
    hone_cursor c = r->c;
    if (!take_statement(&c, &s)) return false;
    r->c = c;
    add_statement(r, &s);
    return true;
}
