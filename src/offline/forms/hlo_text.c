// Reads HLO text: computations of one instruction a line, as XLA prints them before and after optimisation.
#include "base/number.h"
#include "offline/cursor.h"
#include "offline/forms/forms.h"

// A computation that an instruction names; they may stand in any order.
typedef struct reference {
    uint32_t op;
    hone_view name;
    hone_graph_role role;
} reference;

typedef struct reader {
    hone_graph *graph;
    hone_names values; // of the computation at hand
    hone_names computations;
    reference *references;
    size_t reference_count, reference_capacity;
    uint32_t body;             // HONE_GRAPH_NONE: between computations
    hone_view path, attribute; // of the instruction at hand: where it came from, and what else may hold labels
} reader;

static void refer(reader *r, uint32_t op, hone_view name, hone_graph_role role)
{
    hone_graph *g = r->graph;
    if (!hone_grow(&g->allocator, &r->references, &r->reference_capacity, r->reference_count + 1, sizeof(reference))) {
        g->failed = true;
        return;
    }
    r->references[r->reference_count++] = (reference){op, name, role};
}

static void resolve_references(reader *r)
{
    for (size_t i = 0; i < r->reference_count; i++) {
        const reference *ref = &r->references[i];
        hone_graph_add_edge(r->graph, ref->op, hone_names_get(&r->computations, 0, ref->name), ref->role);
    }
}

// What the attributes of an instruction say about the computations that they name.
typedef struct attribute_role {
    hone_view name;
    hone_graph_role role;
} attribute_role;

static const attribute_role attribute_roles[] = {
    {HONE_VIEW("condition"), GRAPH_CONDITION},        {HONE_VIEW("body"), GRAPH_LOOP},
    {HONE_VIEW("branch_computations"), GRAPH_BRANCH}, {HONE_VIEW("true_computation"), GRAPH_BRANCH},
    {HONE_VIEW("false_computation"), GRAPH_BRANCH},   {HONE_VIEW("calls"), GRAPH_FUSION},
    {HONE_VIEW("to_apply"), GRAPH_APPLIED},
};

// A call before optimisation is the program's own; after it, one that XLA made around a piece of work.
static hone_graph_role role_of(const reader *r, const hone_graph_op *op, const attribute_role *row)
{
    bool call = op->opcode == OPCODE_CALL;
    if (row->role == GRAPH_APPLIED && call) return r->graph->optimised ? GRAPH_FUSION : GRAPH_CALL;
    return row->role;
}

// "%name" or "{%name, %name}".
static void read_computations(reader *r, uint32_t op, hone_view value, hone_graph_role role)
{
    hone_cursor c = cursor_of(value);
    while (c.at < c.end) {
        hone_view name = take_name(&c);
        if (name.size > 0)
            refer(r, op, name, role);
        else
            c.at++;
    }
}

static bool ends_with(const char *start, const char *end, const char *what)
{
    size_t size = strlen(what);
    return (size_t)(end - start) >= size && memcmp(end - size, what, size) == 0;
}

// metadata={op_type="..." op_name="..." metadata_payload="..." ...}
static void read_metadata(reader *r, hone_view value)
{
    hone_cursor c = cursor_of(value);
    while (c.at < c.end) {
        const char *start = c.at, *quote = memchr(start, '"', (size_t)(c.end - start));
        if (quote == NULL) break;
        c.at = quote;
        hone_view text = take_string(&c);
        if (ends_with(start, quote, "op_name=")) r->path = text;
        if (ends_with(start, quote, "metadata_payload=")) r->attribute = text;
    }
}

int64_t hone_hlo_trip_count(hone_view config)
{
    const char *at = find_text(config, "known_trip_count");
    if (at == NULL) return -1;
    const char *end = config.data + config.size;
    while (at < end && !(*at >= '0' && *at <= '9') && *at != '}')
        at++;
    const char *stop = at;
    while (stop < end && *stop >= '0' && *stop <= '9')
        stop++;
    int64_t trips;
    return hone_integer_parse(at, (size_t)(stop - at), &trips) ? trips : -1;
}

// What hone's own calls carry. A configuration may be a string, its own strings then escaped within.
static void read_own(reader *r, uint32_t op, hone_view value)
{
    if (value.size > 0 && value.data[0] == '"' && find_text(value, "hone_") != NULL) {
        size_t size;
        char *inside = hone_unescape_hlo(&r->graph->texts, value, &size);
        r->graph->failed |= inside == NULL;
        if (inside != NULL && size > 0) value = (hone_view){inside + 1, size - 1};
    }
    hone_view call = string_behind(value, "hone_call"), label = string_behind(value, "hone_label");
    if (call.size > 0) hone_graph_keep_call(r->graph, op, call);
    if (label.size == 0) label = string_behind(value, "xla_metadata_payload");
    if (label.size > 0) r->attribute = label;
}

static void keep_number(reader *r, uint32_t op, int64_t number)
{
    hone_graph_detail *detail = hone_graph_edit_detail(r->graph, op);
    if (detail != NULL) detail->number = number;
}

static void keep_literal(reader *r, uint32_t op, hone_view literal)
{
    hone_graph_detail *detail = hone_graph_edit_detail(r->graph, op);
    if (detail != NULL) detail->literal = literal;
}

static int64_t count_in(hone_view text)
{
    int64_t number;
    return hone_integer_parse(text.data, text.size, &number) ? number : -1;
}

static void read_attribute(reader *r, uint32_t op, hone_view name, hone_view value)
{
    uint32_t opcode = r->graph->ops[op].opcode;
    if (hone_view_is(name, "metadata")) {
        read_metadata(r, value);
        return;
    }
    for (size_t i = 0; i < sizeof attribute_roles / sizeof attribute_roles[0]; i++)
        if (hone_view_equal(name, attribute_roles[i].name))
            read_computations(r, op, value, role_of(r, &r->graph->ops[op], &attribute_roles[i]));
    bool config = hone_view_is(name, "backend_config");
    if (config && opcode == OPCODE_WHILE) keep_number(r, op, hone_hlo_trip_count(value));
    if (config || hone_view_is(name, "frontend_attributes")) read_own(r, op, value);
    if (hone_view_is(name, "direction")) keep_literal(r, op, value);
    if (hone_view_is(name, "index") && opcode == OPCODE_GET_TUPLE_ELEMENT) keep_number(r, op, count_in(value));
}

static hone_view take_value(hone_cursor *c)
{
    const char *start = c->at;
    if (peek(c) == '{')
        skip_brackets(c);
    else if (peek(c) == '"')
        skip_string(c);
    while (c->at < c->end && *c->at != ',')
        c->at++;
    return view_between(start, c->at);
}

static void read_attributes(reader *r, uint32_t op, hone_cursor c)
{
    while (c.at < c.end) {
        skip_spaces(&c);
        accept(&c, ",");
        skip_spaces(&c);
        hone_view name = take_name(&c);
        if (accept(&c, "="))
            read_attribute(r, op, name, take_value(&c));
        else if (name.size == 0)
            c.at++;
    }
}

// One operand: "name", "%name" or, as older XLA prints it, "f32[2]{0} %name".
static void read_operand(reader *r, hone_view text)
{
    while (text.size > 0 && text.data[text.size - 1] == ' ')
        text.size--;
    const char *start = text.data + text.size;
    while (start > text.data && is_name_byte(start[-1]))
        start--;
    hone_view name = view_between(start, text.data + text.size);
    if (name.size > 0) hone_graph_add_operand(r->graph, hone_names_get(&r->values, 0, name));
}

// The inside of an instruction's parentheses, split at its commas.
static void read_operands(reader *r, hone_view text)
{
    hone_cursor c = cursor_of(text);
    const char *start = c.at;
    while (c.at < c.end) {
        char b = *c.at;
        if (b == '(' || b == '[' || b == '{') {
            skip_brackets(&c);
            continue;
        }
        if (accept(&c, "/*")) {
            while (c.at < c.end && !accept(&c, "*/"))
                c.at++;
            start = c.at;
            continue;
        }
        c.at++;
        if (b != ',') continue;
        read_operand(r, view_between(start, c.at - 1));
        start = c.at;
    }
    read_operand(r, view_between(start, c.end));
}

static hone_view take_type(hone_cursor *c)
{
    const char *start = c->at;
    if (peek(c) == '(') skip_brackets(c);
    while (c->at < c->end && *c->at != ' ')
        c->at++;
    return view_between(start, c->at);
}

static void read_inside(reader *r, uint32_t op, hone_view inside)
{
    uint32_t opcode = r->graph->ops[op].opcode;
    if (opcode == OPCODE_CONSTANT)
        keep_literal(r, op, inside);
    else if (opcode == OPCODE_PARAMETER)
        keep_number(r, op, count_in(inside));
    else
        read_operands(r, inside);
}

// "  ROOT %name = f32[2]{0} add(%a, %b), metadata={...}"
static void read_instruction(reader *r, hone_view line)
{
    hone_cursor c = cursor_of(line);
    skip_spaces(&c);
    bool root = accept(&c, "ROOT ");
    accept(&c, "%");
    hone_view name = take_name(&c);
    if (name.size == 0 || !accept(&c, " = ")) return;
    hone_view type = take_type(&c);
    skip_spaces(&c);
    hone_view opcode = take_name(&c);
    if (opcode.size == 0 || peek(&c) != '(') return;
    uint32_t op = hone_graph_add_op(r->graph, r->body, opcode);
    if (op == HONE_GRAPH_NONE) return;
    const char *open = c.at + 1;
    skip_brackets(&c);
    const char *close = c.at > open && c.at[-1] == ')' ? c.at - 1 : c.at;
    read_inside(r, op, view_between(open, close));
    r->path = r->attribute = (hone_view){0};
    read_attributes(r, op, c);
    if (r->path.size + r->attribute.size > 0)
        r->graph->ops[op].place = hone_graph_place_of(r->graph, r->path, r->attribute);
    hone_names_put(&r->values, 0, name, hone_graph_add_value(r->graph, op, type));
    if (root) r->graph->bodies[r->body].result = op;
}

// "ENTRY %main.5 (q: f32[2]) -> f32[2] {" or "region_0.1 {"
static void open_computation(reader *r, hone_view line)
{
    hone_cursor c = cursor_of(line);
    accept(&c, "ENTRY ");
    accept(&c, "%");
    hone_view name = take_name(&c);
    if (name.size == 0) return;
    r->body = hone_graph_add_body(r->graph, name);
    hone_names_clear(&r->values);
    hone_names_put(&r->computations, 0, name, r->body);
}

static void read_line(reader *r, hone_view line)
{
    while (line.size > 0 && (line.data[line.size - 1] == ' ' || line.data[line.size - 1] == '\r'))
        line.size--;
    if (line.size == 0) return;
    bool opens = line.data[line.size - 1] == '{', indented = line.data[0] == ' ';
    if (r->body == HONE_GRAPH_NONE && hone_graph_is_hlo_head(line))
        r->graph->optimised |= find_text(line, "is_scheduled=true") != NULL;
    else if (opens && !indented)
        open_computation(r, line);
    else if (line.data[0] == '}')
        r->body = HONE_GRAPH_NONE;
    else if (r->body != HONE_GRAPH_NONE)
        read_instruction(r, line);
}

bool hone_graph_is_hlo_head(hone_view line)
{
    hone_cursor c = cursor_of(line);
    return accept(&c, "HloModule ");
}

void hone_hlo_read(hone_view text, hone_graph *graph)
{
    reader r = {.graph = graph, .body = HONE_GRAPH_NONE};
    graph->tuples = true;
    graph->end = text.data + text.size;
    hone_names_init(&r.values, &graph->allocator);
    hone_names_init(&r.computations, &graph->allocator);
    hone_cursor c = cursor_of(text);
    while (c.at < c.end && !graph->failed)
        read_line(&r, take_line(&c));
    graph->cut = r.body != HONE_GRAPH_NONE;
    graph->failed |= r.values.failed || r.computations.failed;
    resolve_references(&r);
    hone_names_deinit(&r.values);
    hone_names_deinit(&r.computations);
    hone_free(&graph->allocator, r.references);
}
