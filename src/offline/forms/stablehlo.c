// Reads StableHLO text with locations, as MLIR prints it: one operation a statement, regions in braces, and
// locations under names that are defined at the end of the text.
//
// This is no full parser of MLIR: of a statement it takes the names of values, the symbol that is called, the types behind
// the last " : " and the location, in the printed form of an operation or in the generic one.
#include "base/number.h"
#include "offline/cursor.h"
#include "offline/forms/forms.h"

enum { DEPTH_MAX = 4096, LOCATION_STEPS = 256, LOCATION_PENDING = 64 };

// Where an operation comes from, as written, and what else of it may hold labels.
typedef struct origin {
    hone_view location, attribute;
} origin;

// A statement that is being read, or whose regions are.
typedef struct statement {
    uint32_t op;       // HONE_GRAPH_NONE: none that the graph keeps (a module)
    hone_view results; // "%0:2, %1"
    hone_view types;   // behind the last " : "
    origin origin;     // its location: inside of loc( )
    hone_view states;  // of a loop: "%iterArg = %c, ..."
    uint32_t region_count;
} statement;

typedef struct frame {
    statement owner;
    uint32_t body;  // HONE_GRAPH_NONE: of a module
    statement last; // newest statement of the body, whose regions may follow on lines of their own
} frame;

typedef struct symbol_use {
    uint32_t op;
    hone_view symbol;
} symbol_use;

typedef struct reader {
    hone_graph *graph;
    cursor c;
    const char *start;                             // of the text
    hone_names values, functions, aliases, places; // values: by function; places: by location
    uint32_t function;
    frame *frames;
    size_t frame_count, frame_capacity;
    symbol_use *uses;
    size_t use_count, use_capacity;
    origin *origins; // of operations
    size_t origin_capacity;
    hone_view *expressions; // of aliases
    size_t expression_count, expression_capacity;
    bool fragment; // statements stand outside of any function
    bool missing;  // an alias is used and not defined: the text was cut after its functions
} reader;

// --- pieces

static frame *top(reader *r)
{
    return &r->frames[r->frame_count - 1];
}

static hone_view bare_opcode(hone_view name)
{
    for (size_t i = name.size; i > 0; i--)
        if (name.data[i - 1] == '.') return (hone_view){name.data + i, name.size - i};
    return name;
}

// A value's name with its number: "%0#1" gives "0" and 1.
static hone_view take_value_name(cursor *c, uint32_t *out_number)
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

static uint32_t find_value(const reader *r, hone_view name, uint32_t number)
{
    uint32_t first = hone_names_get(&r->values, r->function, name);
    if (first == HONE_GRAPH_NONE || number == 0) return first;
    const graph_value *v = &r->graph->values[first];
    bool there = v->op != HONE_GRAPH_NONE && number < r->graph->ops[v->op].value_count;
    return there ? first + number : HONE_GRAPH_NONE;
}

// The type at the cursor: up to a comma, a bracket that closes, an attribute or a location, at its own depth.
static hone_view take_type(cursor *c)
{
    skip_spaces(c);
    const char *start = c->at;
    int angles = 0;
    while (c->at < c->end) {
        char b = *c->at;
        if (angles == 0 && (b == ',' || b == ')' || b == ' ' || b == '\n')) break;
        if (b == '"') {
            skip_string(c);
            continue;
        }
        if (b == '(' || b == '[' || b == '{') {
            skip_brackets(c);
            continue;
        }
        if (b == '<') angles++;
        if (b == '>' && angles > 0) angles--;
        c->at++;
    }
    return view_between(start, c->at);
}

// --- ends of statements

// The list of types that are results': behind "->", else all.
static hone_view result_types(hone_view types)
{
    cursor c = cursor_of(types);
    while (c.at < c.end) {
        if (accept(&c, "->")) return view_between(c.at, c.end);
        if (*c.at == '(' || *c.at == '[' || *c.at == '{')
            skip_brackets(&c);
        else
            c.at++;
    }
    return types;
}

static uint32_t count_results(hone_view results)
{
    cursor c = cursor_of(results);
    uint32_t total = 0;
    while (c.at < c.end) {
        if (!accept(&c, "%")) {
            c.at++;
            continue;
        }
        take_name(&c);
        int64_t count = 1;
        if (accept(&c, ":")) {
            hone_view digits = take_name(&c);
            if (!hone_integer_parse(digits.data, digits.size, &count) || count < 0 || count > 65536) count = 1;
        }
        total += (uint32_t)count;
    }
    return total;
}

static uint32_t count_types(hone_view types)
{
    cursor c = cursor_of(types);
    uint32_t count = 0;
    while (c.at < c.end) {
        hone_view type = take_type(&c);
        count += type.size > 0;
        if (c.at < c.end) c.at++;
    }
    return count;
}

static hone_view without_parentheses(hone_view types)
{
    cursor c = cursor_of(types);
    skip_spaces(&c);
    if (peek(&c) != '(') return view_between(c.at, c.end);
    const char *open = c.at + 1;
    skip_brackets(&c);
    return view_between(open, c.at > open && c.at[-1] == ')' ? c.at - 1 : c.at);
}

// Names the results: each name stands for the first of its values.
static void name_results(reader *r, hone_view results, uint32_t first)
{
    cursor c = cursor_of(results);
    while (c.at < c.end && first != HONE_GRAPH_NONE) {
        if (!accept(&c, "%")) {
            c.at++;
            continue;
        }
        hone_view name = take_name(&c);
        hone_names_put(&r->values, r->function, name, first);
        hone_view digits = accept(&c, ":") ? take_name(&c) : (hone_view){0};
        int64_t count;
        if (digits.size == 0 || !hone_integer_parse(digits.data, digits.size, &count) || count < 1) count = 1;
        first += (uint32_t)count;
    }
}

// Gives an operation its results, once: with as many types as results one each, else the last ones (select names the
// type of its predicate first), else the one there is.
static void finish_results(reader *r, const statement *s)
{
    hone_graph *g = r->graph;
    if (s->op == HONE_GRAPH_NONE || s->results.size == 0 || g->ops[s->op].value_count > 0) return;
    hone_view list = without_parentheses(result_types(s->types));
    uint32_t results = count_results(s->results), types = count_types(list),
             skipped = types > results ? types - results : 0;
    cursor c = cursor_of(list);
    hone_view type = {0};
    for (uint32_t i = 0; i < skipped + results; i++) {
        hone_view next = take_type(&c);
        if (c.at < c.end) c.at++;
        if (next.size > 0) type = next;
        if (i >= skipped) hone_graph_add_value(g, s->op, type);
    }
    if (g->ops[s->op].value_count == results && results > 0) name_results(r, s->results, g->ops[s->op].first_value);
}

static void keep_origin(reader *r, const statement *s)
{
    hone_graph *g = r->graph;
    if (s->op == HONE_GRAPH_NONE || s->origin.location.size + s->origin.attribute.size == 0) return;
    if (!hone_grow(&g->allocator, &r->origins, &r->origin_capacity, g->op_count, sizeof *r->origins)) {
        g->failed = true;
        return;
    }
    r->origins[s->op] = s->origin;
}

// --- statements

typedef enum stop { STOP_LINE, STOP_REGION, STOP_END } stop;

// True when the brace at c opens a region: nothing follows it on its line.
static bool opens_region(cursor c)
{
    c.at++;
    skip_spaces(&c);
    return c.at == c.end || *c.at == '\n';
}

// Depth of brackets within a statement. Angle brackets count for where " : " stands, but never carry a statement over a line's end.
typedef struct nesting {
    int brackets, angles;
} nesting;

static void nest(nesting *n, char b)
{
    if (b == '(' || b == '[' || b == '{') n->brackets++;
    if ((b == ')' || b == ']' || b == '}') && n->brackets > 0) n->brackets--;
    if (b == '<') n->angles++;
    if (b == '>' && n->angles > 0) n->angles--;
}

static bool at_top(const nesting *n)
{
    return n->brackets == 0 && n->angles == 0;
}

// A line's end ends the statement, but within brackets that do not hold another statement.
static bool ends_at_line(const cursor *c, const nesting *n)
{
    if (n->brackets == 0) return true;
    cursor next = {c->at + 1, c->end};
    skip_spaces(&next);
    char b = peek(&next);
    return b == '%' || b == '#' || b == '^';
}

static void take_location(cursor *c, statement *s)
{
    const char *open = c->at + 1; // at the '(' of "loc("
    skip_brackets(c);
    s->origin.location = view_between(open, c->at > open && c->at[-1] == ')' ? c->at - 1 : c->at);
}

static void use_symbol(reader *r, uint32_t op, hone_view symbol)
{
    hone_graph *g = r->graph;
    if (!hone_grow(&g->allocator, &r->uses, &r->use_capacity, r->use_count + 1, sizeof *r->uses)) {
        g->failed = true;
        return;
    }
    r->uses[r->use_count++] = (symbol_use){op, symbol};
}

static hone_view take_symbol(cursor *c)
{
    c->at++; // '@'
    return peek(c) == '"' ? take_string(c) : take_name(c);
}

static bool calls_symbols(hone_view opcode)
{
    return hone_view_is(opcode, "call") || hone_view_is(opcode, "composite");
}

static bool stands_before(const reader *r, const char *at, const char *what)
{
    size_t size = strlen(what);
    return (size_t)(at - r->start) >= size && memcmp(at - size, what, size) == 0;
}

// A string among a statement's attributes: what hone's own calls carry, and what XLA hands on to its metadata.
static void read_string(reader *r, statement *s)
{
    const char *quote = r->c.at;
    hone_view text = take_string(&r->c);
    if (s->op == HONE_GRAPH_NONE || quote[-(quote > r->start)] != ' ') return;
    if (stands_before(r, quote, "hone_call = ")) hone_graph_keep_call(r->graph, s->op, text);
    bool label = stands_before(r, quote, "hone_label = ") || stands_before(r, quote, "xla_metadata_payload = ");
    if (label) s->origin.attribute = text;
}

// One thing inside a statement that is more than a byte: a value, a symbol, a string, a location. False: a plain byte.
static bool read_piece(reader *r, statement *s, const nesting *n, const char **type_start)
{
    cursor *c = &r->c;
    bool operands = s->op != HONE_GRAPH_NONE && s->region_count == 0 && !*type_start;
    char b = *c->at;
    if (b == '"') {
        read_string(r, s);
    } else if (b == '%') {
        uint32_t number;
        hone_view name = take_value_name(c, &number);
        cursor after = *c;
        skip_spaces(&after);
        bool state = peek(&after) == '='; // "%iterArg = %c": the name that the value has within the loop
        if (operands && !state) hone_graph_add_operand(r->graph, find_value(r, name, number));
    } else if (b == '@') {
        hone_view symbol = take_symbol(c);
        if (operands && calls_symbols(r->graph->ops[s->op].opcode)) use_symbol(r, s->op, symbol);
    } else if (b == 'l' && at_top(n) && c->at[-1] == ' ' && accept(c, "loc(")) {
        c->at--;
        if (*type_start && s->types.size == 0) s->types = view_between(*type_start, c->at - 3);
        take_location(c, s);
    } else {
        return false;
    }
    return true;
}

// Reads the rest of a statement, up to its end or to a region.
static stop read_rest(reader *r, statement *s)
{
    cursor *c = &r->c;
    nesting n = {0};
    const char *type_start = NULL;
    stop stopped = STOP_END;
    if (s->region_count > 0) s->origin.location = (hone_view){0};
    while (c->at < c->end) {
        char b = *c->at;
        if (b == '{' && opens_region(*c)) {
            stopped = STOP_REGION;
            break;
        }
        if (b == '\n' && ends_at_line(c, &n)) {
            stopped = STOP_LINE;
            break;
        }
        if (read_piece(r, s, &n, &type_start)) continue;
        if (b == '-' && accept(c, "->")) continue;
        if (at_top(&n) && accept(c, " : ")) {
            type_start = c->at;
            s->types = (hone_view){0};
            continue;
        }
        nest(&n, b);
        c->at++;
    }
    if (type_start && s->types.size == 0) s->types = view_between(type_start, c->at);
    return stopped;
}

static void push_frame(reader *r, const statement *owner, uint32_t body)
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
    r->frames[r->frame_count++] = (frame){.owner = *owner, .body = body, .last = {.op = HONE_GRAPH_NONE}};
}

static const char *const applied_opcodes[] = {
    "reduce", "reduce_window", "scatter", "select_and_scatter", "sort", "map", "all_reduce", "reduce_scatter",
};

graph_role hone_stablehlo_role(hone_view opcode, uint32_t number)
{
    if (hone_view_is(opcode, "while")) return number == 0 ? GRAPH_CONDITION : GRAPH_LOOP;
    if (hone_view_is(opcode, "case") || hone_view_is(opcode, "if")) return GRAPH_BRANCH;
    for (size_t i = 0; i < sizeof applied_opcodes / sizeof applied_opcodes[0]; i++)
        if (hone_view_is(opcode, applied_opcodes[i])) return GRAPH_APPLIED;
    return GRAPH_CALL;
}

// Inside of a loop its states have names of their own, the same in the condition and in the loop.
static void name_states(reader *r, const statement *s, uint32_t body)
{
    cursor names = cursor_of(s->states), types = cursor_of(without_parentheses(s->types));
    while (names.at < names.end) {
        if (*names.at != '%') {
            names.at++;
            continue;
        }
        uint32_t number;
        hone_view name = take_value_name(&names, &number);
        skip_spaces(&names);
        if (peek(&names) != '=') continue;
        hone_view type = take_type(&types);
        if (types.at < types.end) types.at++;
        hone_names_put(&r->values, r->function, name, hone_graph_add_parameter(r->graph, body, type));
    }
}

// The cursor stands at the region's brace.
static void open_region(reader *r, statement *s)
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
    push_frame(r, s, body);
}

static void end_statement(reader *r, statement *s, stop stopped)
{
    if (stopped == STOP_REGION) {
        open_region(r, s);
        return;
    }
    finish_results(r, s);
    keep_origin(r, s);
    if (r->frame_count > 0) top(r)->last = *s;
}

// Parameters: "%arg0: tensor<2xf32> loc("q"), %arg1: ..." from the parenthesis at the cursor.
static void read_parameters(reader *r, uint32_t body)
{
    cursor all = r->c;
    skip_brackets(&r->c);
    cursor c = {all.at + 1, r->c.at};
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
        hone_view name = take_value_name(&c, &number);
        skip_spaces(&c);
        if (!accept(&c, ":")) continue;
        hone_view type = take_type(&c);
        if (body != HONE_GRAPH_NONE)
            hone_names_put(&r->values, r->function, name, hone_graph_add_parameter(r->graph, body, type));
    }
}

// func.func public @main(%arg0: ...) -> ... {
static void read_function(reader *r)
{
    cursor *c = &r->c;
    while (c->at < c->end && *c->at != '@' && *c->at != '\n')
        c->at++;
    if (peek(c) != '@') return;
    hone_view symbol = take_symbol(c);
    r->function++;
    uint32_t body = hone_graph_add_body(r->graph, symbol);
    hone_names_put(&r->functions, 0, symbol, body);
    if (peek(c) == '(') read_parameters(r, body);
    statement s = {.op = HONE_GRAPH_NONE};
    if (read_rest(r, &s) != STOP_REGION) return;
    c->at++;
    push_frame(r, &s, body);
}

// Statements outside of any function (a fragment of a program) stand in a body of their own.
static uint32_t current_body(reader *r)
{
    if (r->frame_count > 0) return top(r)->body;
    statement none = {.op = HONE_GRAPH_NONE};
    uint32_t body = hone_graph_add_body(r->graph, (hone_view){0});
    push_frame(r, &none, body);
    r->fragment = true;
    return body;
}

// What stands between the parentheses of a loop's head, and how a comparison compares.
static void look_ahead(reader *r, statement *s)
{
    graph_op *op = &r->graph->ops[s->op];
    cursor c = r->c;
    hone_view line = take_line(&c);
    c = cursor_of(line);
    if (hone_view_is(op->opcode, "while") && peek(&c) == '(') {
        skip_brackets(&c);
        s->states = view_between(r->c.at, c.at);
    }
    if (hone_view_is(op->opcode, "compare")) {
        const char *generic = find_text(line, "<comparison_direction ");
        c = cursor_of(line);
        if (generic) c.at = generic + strlen("<comparison_direction ");
        skip_spaces(&c);
        op->literal = take_name(&c);
    }
    const char *dense = hone_view_is(op->opcode, "constant") ? find_text(line, "dense<") : NULL;
    if (dense) {
        c = (cursor){dense + strlen("dense<"), line.data + line.size};
        const char *start = c.at;
        while (c.at < c.end && *c.at != '>')
            c.at++;
        op->literal = view_between(start, c.at);
    }
}

static void read_operation(reader *r, hone_view results, hone_view name)
{
    uint32_t body = current_body(r);
    statement s = {.op = HONE_GRAPH_NONE, .results = results};
    if (body != HONE_GRAPH_NONE) s.op = hone_graph_add_op(r->graph, body, bare_opcode(name));
    if (s.op != HONE_GRAPH_NONE) {
        look_ahead(r, &s);
        if (hone_view_is(bare_opcode(name), "return")) r->graph->bodies[body].result = s.op;
    }
    end_statement(r, &s, read_rest(r, &s));
}

// "cond {", "reducer(%a: ..., %b: ...) {": a region of the statement before, on a line of its own.
static void read_late_region(reader *r)
{
    statement s = top(r)->last;
    cursor head = r->c;
    stop stopped = read_rest(r, &s);
    if (stopped != STOP_REGION || s.op == HONE_GRAPH_NONE) return;
    open_region(r, &s);
    cursor inside = r->c;
    while (head.at < inside.at && *head.at != '(')
        head.at++;
    if (head.at == inside.at || r->frame_count == 0) return;
    r->c = head;
    read_parameters(r, top(r)->body);
    r->c = inside;
}

// "^bb0(%arg0: tensor<f32>, ...):" the parameters of a region in the generic form.
static void read_block(reader *r)
{
    r->c.at++;
    take_name(&r->c);
    if (peek(&r->c) == '(') read_parameters(r, r->frame_count > 0 ? top(r)->body : HONE_GRAPH_NONE);
    accept(&r->c, ":");
}

// "}" and what stands behind it: "do {", ", {", ") : (types) -> type loc(...)".
static void close_region(reader *r)
{
    r->c.at++;
    if (r->frame_count == 0) return;
    statement s = top(r)->owner;
    r->frame_count--;
    hone_view states = s.states;
    stop stopped = read_rest(r, &s);
    s.states = states;
    end_statement(r, &s, stopped);
}

// "#loc4 = loc("jit(f)/add"(#loc3))"
static void read_alias(reader *r)
{
    cursor c = cursor_of(take_line(&r->c));
    const char *start = c.at++;
    take_name(&c);
    hone_view name = view_between(start, c.at);
    skip_spaces(&c);
    if (!accept(&c, "=")) return;
    skip_spaces(&c);
    if (!accept(&c, "loc(")) return;
    hone_graph *g = r->graph;
    if (!hone_grow(
            &g->allocator, &r->expressions, &r->expression_capacity, r->expression_count + 1, sizeof *r->expressions)) {
        g->failed = true;
        return;
    }
    r->expressions[r->expression_count] = view_between(c.at, c.end);
    hone_names_put(&r->aliases, 0, name, (uint32_t)r->expression_count++);
}

static void read_results_and_operation(reader *r)
{
    cursor *c = &r->c;
    const char *start = c->at;
    while (c->at < c->end && *c->at != '=' && *c->at != '\n')
        c->at++;
    hone_view results = view_between(start, c->at);
    if (!accept(c, "=")) return;
    skip_spaces(c);
    hone_view name = peek(c) == '"' ? take_string(c) : take_name(c);
    if (name.size > 0) read_operation(r, results, name);
}

static void read_keyword(reader *r, hone_view name)
{
    statement none = {.op = HONE_GRAPH_NONE};
    if (hone_view_is(name, "module") || hone_view_is(name, "builtin.module"))
        end_statement(r, &none, read_rest(r, &none));
    else if (hone_view_is(name, "func.func") || hone_view_is(name, "func"))
        read_function(r);
    else if ((hone_view_is(name, "cond") || hone_view_is(name, "reducer")) && r->frame_count > 0)
        read_late_region(r);
    else
        read_operation(r, (hone_view){0}, name);
}

static void read_statement(reader *r)
{
    cursor *c = &r->c;
    char b = *c->at;
    if (b == '}') {
        close_region(r);
    } else if (b == '%') {
        read_results_and_operation(r);
    } else if (b == '#') {
        read_alias(r);
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

// --- locations

// Expressions that are still to be looked at, the next one last.
typedef struct pending {
    hone_view expressions[LOCATION_PENDING];
    size_t count;
} pending;

static void push(pending *p, hone_view expression)
{
    if (p->count < LOCATION_PENDING) p->expressions[p->count++] = expression;
}

// The parts of "a at b" or "a, b, c", so that the first comes off the stack first.
static void push_parts(pending *p, hone_view inside, const char *separator)
{
    const char *parts[LOCATION_PENDING];
    size_t count = 0;
    cursor c = cursor_of(inside);
    parts[count++] = c.at;
    while (c.at < c.end && count < LOCATION_PENDING) {
        if (accept(&c, separator))
            parts[count++] = c.at;
        else if (*c.at == '(' || *c.at == '[')
            skip_brackets(&c);
        else if (*c.at == '"')
            skip_string(&c);
        else
            c.at++;
    }
    for (size_t i = count; i-- > 0;) {
        const char *part_end = i + 1 < count ? parts[i + 1] - strlen(separator) : c.end;
        push(p, view_between(parts[i], part_end));
    }
}

static bool has_label(const hone_graph *graph, hone_view path)
{
    hone_label_walk walk = hone_graph_labels(graph, path);
    hone_label label;
    return hone_label_next(&walk, &label);
}

// "name"(child) or "file":line:column. True when the name has a label; the first name of all is kept too.
static bool read_name(const hone_graph *graph, pending *p, cursor c, hone_view *out_path)
{
    hone_view name = take_string(&c);
    if (peek(&c) == ':') return false; // a file
    bool labelled = has_label(graph, name);
    if (labelled || out_path->size == 0) *out_path = name;
    if (!labelled && peek(&c) == '(') push(p, view_between(c.at + 1, c.end));
    return labelled;
}

// The path of a location: the first name with a label on the way from the outermost name inwards, callees
// before callers, else the first name. Steps are bounded: aliases may go in circles.
static hone_view find_path(reader *r, hone_view expression)
{
    pending p = {.count = 0};
    hone_view path = {0};
    push(&p, expression);
    for (int steps = 0; p.count > 0 && steps < LOCATION_STEPS; steps++) {
        cursor c = cursor_of(p.expressions[--p.count]);
        skip_spaces(&c);
        if (peek(&c) == '#') {
            const char *start = c.at++;
            take_name(&c);
            uint32_t alias = hone_names_get(&r->aliases, 0, view_between(start, c.at));
            if (alias != HONE_GRAPH_NONE)
                push(&p, r->expressions[alias]);
            else
                r->missing = true;
        } else if (peek(&c) == '"') {
            if (read_name(r->graph, &p, c, &path)) break;
        } else if (accept(&c, "callsite(")) {
            push_parts(&p, view_between(c.at, c.end), " at ");
        } else if (accept(&c, "fused")) {
            while (c.at < c.end && *c.at != '[')
                c.at++;
            if (c.at < c.end) push_parts(&p, view_between(c.at + 1, c.end), ",");
        }
    }
    return path;
}

// Operations share locations: each is looked into once.
static uint32_t place_of(reader *r, const origin *from)
{
    hone_graph *g = r->graph;
    uint32_t place = HONE_GRAPH_NONE;
    if (from->location.size > 0) {
        place = hone_names_get(&r->places, 0, from->location);
        if (place == HONE_GRAPH_NONE) place = hone_graph_place(g, find_path(r, from->location), (hone_view){0});
        hone_names_put(&r->places, 0, from->location, place);
    }
    if (from->attribute.size == 0) return place;
    hone_view path = place != HONE_GRAPH_NONE ? g->places[place].path : (hone_view){0};
    return hone_graph_place(g, path, from->attribute);
}

static void place_operations(reader *r)
{
    hone_graph *g = r->graph;
    size_t count = r->origin_capacity < g->op_count ? r->origin_capacity : g->op_count;
    for (size_t i = 0; i < count && !g->failed; i++)
        if (r->origins[i].location.size + r->origins[i].attribute.size > 0)
            g->ops[i].place = place_of(r, &r->origins[i]);
}

static void call_functions(reader *r)
{
    for (size_t i = 0; i < r->use_count; i++) {
        uint32_t body = hone_names_get(&r->functions, 0, r->uses[i].symbol);
        hone_graph_add_edge(r->graph, r->uses[i].op, body, GRAPH_CALL);
    }
}

void hone_stablehlo_read(hone_view text, hone_graph *graph)
{
    reader r = {.graph = graph, .c = cursor_of(text), .start = text.data};
    graph->end = text.data + text.size;
    hone_names *const names[] = {&r.values, &r.functions, &r.aliases, &r.places};
    for (size_t i = 0; i < 4; i++)
        hone_names_init(names[i], &graph->allocator);
    while (r.c.at < r.c.end && !graph->failed) {
        if (*r.c.at == ' ' || *r.c.at == '\n' || *r.c.at == '\t' || *r.c.at == '\r')
            r.c.at++;
        else
            read_statement(&r);
    }
    graph->cut |= r.frame_count > (r.fragment ? 1 : 0);
    call_functions(&r);
    place_operations(&r);
    graph->cut |= r.missing;
    for (size_t i = 0; i < 4; i++) {
        graph->failed |= names[i]->failed;
        hone_names_deinit(names[i]);
    }
    hone_free(&graph->allocator, r.frames);
    hone_free(&graph->allocator, r.uses);
    hone_free(&graph->allocator, r.origins);
    hone_free(&graph->allocator, r.expressions);
}
