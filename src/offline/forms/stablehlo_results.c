// The results of a statement of StableHLO: their names, before its '=', and their types, at its end.
#include "base/number.h"
#include "offline/forms/stablehlo.h"

enum { COUNT_MAX = 65536 };

hone_view hone_stablehlo_take_type(hone_cursor *c)
{
    skip_spaces(c);
    const char *start = c->at;
    int angles = 0;
    for (;;) {
        while (c->at < c->end && !is_class(*c->at, BYTE_TYPE))
            c->at++;
        if (c->at >= c->end) break;
        char b = *c->at;
        if (angles == 0 && (b == ',' || b == ')' || b == ' ' || b == '\n')) break;
        if (b == '"') {
            skip_string(c);
        } else if (b == '(' || b == '[' || b == '{') {
            skip_brackets(c);
        } else {
            if (b == '<') angles++;
            if (b == '>' && angles > 0) angles--;
            c->at++;
        }
    }
    return view_between(start, c->at);
}

hone_view hone_stablehlo_without_parentheses(hone_view types)
{
    hone_cursor c = cursor_of(types);
    skip_spaces(&c);
    if (peek(&c) != '(') return view_between(c.at, c.end);
    const char *open = c.at + 1;
    skip_brackets(&c);
    return view_between(open, c.at > open && c.at[-1] == ')' ? c.at - 1 : c.at);
}

// The types that are results': behind "->", else all.
static hone_view list_types(const hone_stablehlo_statement *s)
{
    hone_view types = s->types;
    if (s->arrow != NULL) types = view_between(s->arrow, types.data + types.size);
    return hone_stablehlo_without_parentheses(types);
}

// The next name of "%0:2, %1" and how many results it stands for. False at the end.
static bool next_result(hone_cursor *c, hone_view *out_name, uint32_t *out_count)
{
    while (c->at < c->end && *c->at != '%')
        c->at++;
    if (!accept(c, "%")) return false;
    *out_name = take_name(c);
    int64_t count = 1;
    if (accept(c, ":")) {
        hone_view digits = take_name(c);
        if (!hone_integer_parse(digits.data, digits.size, &count) || count < 0 || count > COUNT_MAX) count = 1;
    }
    *out_count = (uint32_t)count;
    return true;
}

static uint32_t count_results(hone_view results)
{
    hone_cursor c = cursor_of(results);
    hone_view name;
    uint32_t total = 0, count;
    while (next_result(&c, &name, &count))
        total += count;
    return total;
}

static uint32_t count_types(hone_view types)
{
    hone_cursor c = cursor_of(types);
    uint32_t count = 0;
    while (c.at < c.end) {
        hone_view type = hone_stablehlo_take_type(&c);
        count += type.size > 0;
        if (c.at < c.end) c.at++;
    }
    return count;
}

// With as many types as results one each, else the last ones (select names the type of its predicate first), else the
// one there is.
static void add_values(hone_stablehlo_reader *r, uint32_t op, hone_view types, uint32_t results)
{
    uint32_t count = count_types(types), skipped = count > results ? count - results : 0;
    hone_cursor c = cursor_of(types);
    hone_view type = {0};
    for (uint32_t i = 0; i < skipped + results; i++) {
        hone_view next = hone_stablehlo_take_type(&c);
        if (c.at < c.end) c.at++;
        if (next.size > 0) type = next;
        if (i >= skipped) hone_graph_add_value(r->graph, op, type);
    }
}

// Each name stands for the first of its values.
static void name_values(hone_stablehlo_reader *r, hone_view results, uint32_t first)
{
    hone_cursor c = cursor_of(results);
    hone_view name;
    uint32_t count;
    for (; next_result(&c, &name, &count); first += count > 0 ? count : 1)
        hone_stablehlo_put_value(r, name, first);
}

void hone_stablehlo_finish_results(hone_stablehlo_reader *r, const hone_stablehlo_statement *s)
{
    hone_graph *g = r->graph;
    if (s->op == HONE_GRAPH_NONE || s->results.size == 0 || g->ops[s->op].value_count > 0) return;
    hone_view types = list_types(s);
    uint32_t results = count_results(s->results);
    hone_cursor c = cursor_of(types);
    hone_view only = hone_stablehlo_take_type(&c);
    skip_spaces(&c);
    if (results == 1 && c.at == c.end) // as nearly always
        hone_graph_add_value(g, s->op, only);
    else
        add_values(r, s->op, types, results);
    uint32_t first = g->ops[s->op].first_value;
    if (g->ops[s->op].value_count == results && results > 0) name_values(r, s->results, first);
}
