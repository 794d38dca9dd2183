// Reads StableHLO text with locations, as MLIR prints it: one operation a statement, regions in braces, and
// locations under names that are defined at the end of the text.
//
// This is no full parser of MLIR: of a statement it takes the names of values, the symbol that is called, the types
// behind the last " : " and the location, in the printed form of an operation or in the generic one.
//
// One pass, with a stack of frames in place of recursion: a '{' that opens a region pushes the statement that owns it,
// its '}' pops it, and what stands behind (types, location) then ends the statement. A name of a
// value stands for what was last defined under it, since a use comes behind its definition and names of a function are
// its own; locations, which stand at the end of the text under names, are filled in afterwards.
// Linear in the text. What does not fit is passed over up to the statement's end: a dialect that is not known costs its
// operations and nothing else.
#include "offline/forms/stablehlo.h"

#include "base/assert.h"
#include "offline/forms/forms.h"

enum { DEPTH_MAX = 4096 };

// --- pieces

static hone_stablehlo_frame *top(hone_stablehlo_reader *r)
{
    hone_assert(r->frame_count > 0);
    return &r->frames[r->frame_count - 1];
}

static hone_view bare_opcode(hone_view name)
{
    for (size_t i = name.size; i > 0; i--)
        if (name.data[i - 1] == '.') return (hone_view){name.data + i, name.size - i};
    return name;
}

// --- statements

static void push_frame(hone_stablehlo_reader *r, const hone_stablehlo_statement *owner, uint32_t body)
{
    hone_graph *g = r->graph;
    bool room = r->frame_count < DEPTH_MAX &&
                hone_grow(&g->allocator, &r->frames, &r->frame_capacity, r->frame_count + 1, sizeof *r->frames);
    if (!room) {
        g->failed |= r->frame_count < DEPTH_MAX;
        r->c.at = r->c.end; // deeper than any program: read no further
        g->cut = true;
        return;
    }
    r->frames[r->frame_count++] =
        (hone_stablehlo_frame){.owner = *owner, .body = body, .last = {.op = HONE_GRAPH_NONE}};
}

static const bool applied_opcodes[OPCODE_COUNT] = {
    [OPCODE_REDUCE] = true,
    [OPCODE_REDUCE_WINDOW] = true,
    [OPCODE_SCATTER] = true,
    [OPCODE_ALL_REDUCE] = true,
    [OPCODE_SELECT_AND_SCATTER] = true,
    [OPCODE_REDUCE_SCATTER] = true,
    [OPCODE_SORT] = true,
    [OPCODE_MAP] = true,
};

hone_graph_role hone_stablehlo_role(uint32_t opcode, uint32_t number)
{
    if (opcode == OPCODE_WHILE) return number == 0 ? GRAPH_CONDITION : GRAPH_LOOP;
    if (opcode == OPCODE_CASE || opcode == OPCODE_IF) return GRAPH_BRANCH;
    return hone_opcode_is_in(opcode, applied_opcodes) ? GRAPH_APPLIED : GRAPH_CALL;
}

// Inside of a loop its states have names of their own, the same in the condition and in the loop.
static void name_states(hone_stablehlo_reader *r, const hone_stablehlo_statement *s, uint32_t body)
{
    hone_cursor names = cursor_of(s->states), types = cursor_of(hone_stablehlo_without_parentheses(s->types));
    while (names.at < names.end) {
        if (*names.at != '%') {
            names.at++;
            continue;
        }
        uint32_t number;
        hone_view name = hone_stablehlo_take_value(&names, &number);
        skip_spaces(&names);
        if (peek(&names) != '=') continue;
        hone_view type = hone_stablehlo_take_type(&types);
        if (types.at < types.end) types.at++;
        hone_stablehlo_put_value(r, name, hone_graph_add_parameter(r->graph, body, type));
    }
}

// "%arg0: tensor<2xf32> loc("q"), %arg1: ...", to the end of the cursor.
static void read_parameters_in(hone_stablehlo_reader *r, hone_cursor c, uint32_t body)
{
    while (c.at < c.end) {
        if (*c.at == '"') {
            skip_string(&c);
            continue;
        }
        if (*c.at != '%') {
            c.at++;
            continue;
        }
        uint32_t number;
        hone_view name = hone_stablehlo_take_value(&c, &number);
        skip_spaces(&c);
        if (!accept(&c, ":")) continue;
        hone_view type = hone_stablehlo_take_type(&c);
        if (body != HONE_GRAPH_NONE) hone_stablehlo_put_value(r, name, hone_graph_add_parameter(r->graph, body, type));
    }
}

// Those in the parenthesis at the cursor.
static void read_parameters(hone_stablehlo_reader *r, uint32_t body)
{
    const char *open = r->c.at;
    skip_brackets(&r->c);
    read_parameters_in(r, (hone_cursor){open + 1, r->c.at}, body);
}

// The cursor stands at the region's brace.
static void open_region(hone_stablehlo_reader *r, hone_stablehlo_statement *s)
{
    r->c.at++;
    if (s->op == HONE_GRAPH_NONE) {
        push_frame(r, s, HONE_GRAPH_NONE);
        return;
    }
    hone_graph *g = r->graph;
    uint32_t body = hone_graph_add_body(g, (hone_view){0});
    hone_graph_add_edge(g, s->op, body, hone_stablehlo_role(g->ops[s->op].opcode, s->region_count));
    s->region_count++;
    if (s->states.size > 0) name_states(r, s, body);
    if (s->given != NULL) read_parameters_in(r, (hone_cursor){s->given, r->c.at}, body);
    s->given = NULL;
    push_frame(r, s, body);
}

static void end_statement(hone_stablehlo_reader *r, hone_stablehlo_statement *s, hone_stablehlo_stop stopped)
{
    if (stopped == STOP_REGION) {
        open_region(r, s);
        return;
    }
    hone_stablehlo_finish_results(r, s);
    hone_stablehlo_keep_place(r, s);
    if (r->frame_count > 0) top(r)->last = *s;
}

// func.func public @main(%arg0: ...) -> ... {
static void read_function(hone_stablehlo_reader *r)
{
    hone_cursor *c = &r->c;
    while (c->at < c->end && *c->at != '@' && *c->at != '\n')
        c->at++;
    if (peek(c) != '@') return;
    hone_view symbol = hone_stablehlo_take_symbol(c);
    hone_names_clear(&r->numbered);
    hone_names_clear(&r->named);
    uint32_t body = hone_graph_add_body(r->graph, symbol);
    hone_names_put(&r->functions, 0, symbol, body);
    if (peek(c) == '(') read_parameters(r, body);
    hone_stablehlo_statement s = {.op = HONE_GRAPH_NONE};
    if (hone_stablehlo_rest(r, &s) != STOP_REGION) return;
    c->at++;
    push_frame(r, &s, body);
}

// Statements outside of any function (a fragment of a program) stand in a body of their own.
uint32_t hone_stablehlo_body(hone_stablehlo_reader *r)
{
    if (r->frame_count > 0) return top(r)->body;
    hone_stablehlo_statement none = {.op = HONE_GRAPH_NONE};
    uint32_t body = hone_graph_add_body(r->graph, (hone_view){0});
    push_frame(r, &none, body);
    r->fragment = true;
    return body;
}

static hone_view line_at(hone_cursor c)
{
    return take_line(&c);
}

// How a comparison compares: the first word, or the one in "#stablehlo<comparison_direction LT>".
static hone_view find_direction(hone_view line)
{
    const char *generic = find_text(line, "<comparison_direction ");
    hone_cursor c = cursor_of(line);
    if (generic != NULL) c.at = generic + strlen("<comparison_direction ");
    skip_spaces(&c);
    return take_name(&c);
}

// The inside of "dense<...>"; empty: there is none.
static hone_view find_dense(hone_view line)
{
    static const char mark[] = "dense<", usual[] = " dense<";
    hone_cursor c = cursor_of(line);
    const char *dense = accept(&c, usual) ? line.data + 1 : find_text(line, mark);
    if (dense == NULL) return (hone_view){0};
    const char *start = dense + sizeof mark - 1, *end = line.data + line.size;
    const char *stop = memchr(start, '>', (size_t)(end - start));
    return view_between(start, stop != NULL ? stop : end);
}

// What of an operation stands on its line and is no operand: a constant's value, a loop's states.
static void look_ahead(hone_stablehlo_reader *r, hone_stablehlo_statement *s)
{
    uint32_t opcode = r->graph->ops[s->op].opcode;
    if (opcode == OPCODE_CONSTANT || opcode == OPCODE_COMPARE) {
        hone_view line = line_at(r->c);
        hone_graph_detail *detail = hone_graph_edit_detail(r->graph, s->op);
        if (detail != NULL) detail->literal = opcode == OPCODE_CONSTANT ? find_dense(line) : find_direction(line);
    } else if (opcode == OPCODE_WHILE && peek(&r->c) == '(') {
        hone_cursor c = cursor_of(line_at(r->c));
        skip_brackets(&c);
        s->states = view_between(r->c.at, c.at);
    }
}

static void read_operation(hone_stablehlo_reader *r, hone_view results, hone_view name)
{
    uint32_t body = hone_stablehlo_body(r);
    hone_stablehlo_statement s = {.op = HONE_GRAPH_NONE, .results = results};
    if (body != HONE_GRAPH_NONE) s.op = hone_graph_add_op(r->graph, body, bare_opcode(name));
    if (s.op != HONE_GRAPH_NONE) look_ahead(r, &s);
    if (s.op != HONE_GRAPH_NONE && r->graph->ops[s.op].opcode == OPCODE_RETURN) r->graph->bodies[body].result = s.op;
    end_statement(r, &s, hone_stablehlo_rest(r, &s));
}

// "cond {", "reducer(%a: ..., %b: ...) {": a region of the statement before, on a line of its own.
static void read_late_region(hone_stablehlo_reader *r)
{
    hone_stablehlo_statement s = top(r)->last;
    s.given = NULL;
    if (hone_stablehlo_rest(r, &s) == STOP_REGION && s.op != HONE_GRAPH_NONE) open_region(r, &s);
}

// "^bb0(%arg0: tensor<f32>, ...):" the parameters of a region in the generic form.
static void read_block(hone_stablehlo_reader *r)
{
    r->c.at++;
    take_name(&r->c);
    if (peek(&r->c) == '(') read_parameters(r, r->frame_count > 0 ? top(r)->body : HONE_GRAPH_NONE);
    accept(&r->c, ":");
}

// "}" and what stands behind it: "do {", ", {", ") : (types) -> type loc(...)".
static void close_region(hone_stablehlo_reader *r)
{
    r->c.at++;
    if (r->frame_count == 0) return;
    hone_stablehlo_statement s = top(r)->owner;
    r->frame_count--;
    hone_view states = s.states;
    hone_stablehlo_stop stopped = hone_stablehlo_rest(r, &s);
    s.states = states;
    end_statement(r, &s, stopped);
}

static void read_results_and_operation(hone_stablehlo_reader *r)
{
    hone_cursor *c = &r->c;
    const char *start = c->at;
    while (c->at < c->end && *c->at != '=' && *c->at != '\n')
        c->at++;
    hone_view results = view_between(start, c->at);
    if (!accept(c, "=")) return;
    skip_spaces(c);
    hone_view name = peek(c) == '"' ? take_string(c) : take_name(c);
    if (name.size > 0) read_operation(r, results, name);
}

static void read_keyword(hone_stablehlo_reader *r, hone_view name)
{
    hone_stablehlo_statement none = {.op = HONE_GRAPH_NONE};
    if (hone_view_is(name, "module") || hone_view_is(name, "builtin.module"))
        end_statement(r, &none, hone_stablehlo_rest(r, &none));
    else if (hone_view_is(name, "func.func") || hone_view_is(name, "func"))
        read_function(r);
    else if ((hone_view_is(name, "cond") || hone_view_is(name, "reducer")) && r->frame_count > 0)
        read_late_region(r);
    else
        read_operation(r, (hone_view){0}, name);
}

static void read_statement(hone_stablehlo_reader *r)
{
    hone_cursor *c = &r->c;
    char b = *c->at;
    if (b == '}') {
        close_region(r);
    } else if (b == '%') {
        if (!hone_stablehlo_read_plain(r)) read_results_and_operation(r);
    } else if (b == '#') {
        hone_stablehlo_read_alias(r);
    } else if (b == '^') {
        read_block(r);
    } else if (b == '/' || b == '{') { // a comment, or the resources at a file's end
        take_line(c);
    } else if (b == '"') {
        read_operation(r, (hone_view){0}, take_string(c));
    } else {
        hone_view name = take_name(c);
        if (name.size > 0)
            read_keyword(r, name);
        else
            c->at++;
    }
}

static void call_functions(hone_stablehlo_reader *r)
{
    for (size_t i = 0; i < r->use_count; i++) {
        uint32_t body = hone_names_get(&r->functions, 0, r->uses[i].symbol);
        hone_graph_add_edge(r->graph, r->uses[i].op, body, GRAPH_CALL);
    }
}

void hone_stablehlo_read(hone_view text, hone_graph *graph)
{
    const hone_allocator *a = &graph->allocator;
    hone_stablehlo_reader r = {.graph = graph, .c = cursor_of(text), .start = text.data};
    graph->end = text.data + text.size;
    hone_names *const names[] = {&r.numbered, &r.named, &r.functions};
    for (size_t i = 0; i < 3; i++)
        hone_names_init(names[i], a);
    hone_stablehlo_places_init(&r.places, a);
    while (r.c.at < r.c.end && !graph->failed) {
        if (*r.c.at == ' ' || *r.c.at == '\n' || *r.c.at == '\t' || *r.c.at == '\r')
            r.c.at++;
        else
            read_statement(&r);
    }
    graph->cut |= r.frame_count > (r.fragment ? 1 : 0);
    call_functions(&r);
    hone_stablehlo_place_operations(&r);
    graph->cut |= r.places.missing;
    for (size_t i = 0; i < 3; i++) {
        graph->failed |= names[i]->failed;
        hone_names_deinit(names[i]);
    }
    hone_stablehlo_places_deinit(&r.places, a);
    hone_free(a, r.frames);
    hone_free(a, r.uses);
}
