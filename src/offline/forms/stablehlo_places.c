// Where operations of StableHLO come from: locations stand in loc( ) behind an operation, most of them as aliases that
// are defined at the end of the text.
#include "offline/forms/stablehlo.h"

enum { LOCATION_STEPS = 256, LOCATION_PENDING = 64 };

void hone_stablehlo_places_init(hone_stablehlo_places *places, const hone_allocator *allocator)
{
    *places = (hone_stablehlo_places){0};
    hone_names_init(&places->aliases, allocator);
    hone_names_init(&places->numbered, allocator);
    hone_names_init(&places->others, allocator);
}

void hone_stablehlo_places_deinit(hone_stablehlo_places *places, const hone_allocator *allocator)
{
    hone_names_deinit(&places->aliases);
    hone_names_deinit(&places->numbered);
    hone_names_deinit(&places->others);
    void *const blocks[] = {places->expressions, places->locations, places->of_op, places->attributes};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        hone_free(allocator, blocks[i]);
}

static bool add_view(hone_graph *g, hone_view **views, size_t *count, size_t *capacity, hone_view view)
{
    bool room = hone_grow(&g->allocator, views, capacity, *count + 1, sizeof **views);
    if (room) (*views)[(*count)++] = view;
    g->failed |= !room;
    return room;
}

// --- reading

void hone_stablehlo_read_alias(hone_stablehlo_reader *r)
{
    hone_stablehlo_places *p = &r->places;
    hone_cursor c = cursor_of(take_line(&r->c));
    const char *start = c.at++;
    take_name(&c);
    hone_view name = view_between(start, c.at);
    skip_spaces(&c);
    if (!accept(&c, "=")) return;
    skip_spaces(&c);
    if (!accept(&c, "loc(")) return;
    hone_view expression = view_between(c.at, c.end);
    if (add_view(r->graph, &p->expressions, &p->expression_count, &p->expression_capacity, expression))
        hone_names_put(&p->aliases, 0, name, (uint32_t)p->expression_count - 1);
}

// Numbers a location that is met for the first time; HONE_GRAPH_NONE: memory was short.
static uint32_t add_location(hone_stablehlo_reader *r, hone_view location)
{
    hone_stablehlo_places *p = &r->places;
    bool added = add_view(r->graph, &p->locations, &p->location_count, &p->location_capacity, location);
    return added ? (uint32_t)p->location_count - 1 : HONE_GRAPH_NONE;
}

static uint32_t find_numbered(hone_stablehlo_reader *r, uint32_t number, hone_view location)
{
    hone_names *names = &r->places.numbered;
    uint32_t known = hone_names_get_number(names, number);
    if (known != HONE_GRAPH_NONE) return known;
    known = add_location(r, location);
    hone_names_put_number(names, number, known);
    return known;
}

static uint32_t find_location(hone_stablehlo_reader *r, hone_view location)
{
    static const char alias[] = "#loc";
    uint32_t number;
    hone_cursor c = cursor_of(location);
    if (accept(&c, alias) && number_in(view_between(c.at, c.end), &number)) return find_numbered(r, number, location);
    hone_names *names = &r->places.others;
    uint32_t known = hone_names_get(names, 0, location);
    if (known != HONE_GRAPH_NONE) return known;
    known = add_location(r, location);
    hone_names_put(names, 0, location, known);
    return known;
}

static void place(hone_stablehlo_reader *r, uint32_t op, uint32_t location)
{
    hone_stablehlo_places *p = &r->places;
    hone_graph *g = r->graph;
    if (hone_grow(&g->allocator, &p->of_op, &p->op_capacity, g->op_count, sizeof *p->of_op))
        p->of_op[op] = location + 1; // 0 of none: then memory was short
    else
        g->failed = true;
}

static void keep_attribute(hone_stablehlo_reader *r, uint32_t op, hone_view text)
{
    hone_stablehlo_places *p = &r->places;
    const hone_allocator *a = &r->graph->allocator;
    if (hone_grow(a, &p->attributes, &p->attribute_capacity, p->attribute_count + 1, sizeof *p->attributes))
        p->attributes[p->attribute_count++] = (hone_stablehlo_attribute){op, text};
    else
        r->graph->failed = true;
}

void hone_stablehlo_keep_place(hone_stablehlo_reader *r, const hone_stablehlo_statement *s)
{
    if (s->op == HONE_GRAPH_NONE) return;
    if (s->attribute.size > 0) keep_attribute(r, s->op, s->attribute);
    if (s->location.size > 0) place(r, s->op, find_location(r, s->location));
}

void hone_stablehlo_keep_location(hone_stablehlo_reader *r, uint32_t op, hone_view location, uint32_t number)
{
    place(r, op, find_numbered(r, number, location));
}

// --- looking into locations

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
    hone_cursor c = cursor_of(inside);
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

// "name"(child) or "file":line:column. True when the name has a label; the first name of all is kept too.
static bool read_name(const hone_graph *graph, pending *p, hone_cursor c, hone_view *out_path)
{
    hone_view name = take_string(&c);
    if (peek(&c) == ':') return false; // a file
    bool labelled = hone_graph_has_label(graph, name);
    if (labelled || out_path->size == 0) *out_path = name;
    if (!labelled && peek(&c) == '(') push(p, view_between(c.at + 1, c.end));
    return labelled;
}

// The path of a location: the first name with a label on the way from the outermost name inwards, callees
// before callers, else the first name. Steps are bounded: aliases may go in circles.
static hone_view find_path(hone_stablehlo_reader *r, hone_view expression)
{
    pending p = {.count = 0};
    hone_view path = {0};
    push(&p, expression);
    for (int steps = 0; p.count > 0 && steps < LOCATION_STEPS; steps++) {
        hone_cursor c = cursor_of(p.expressions[--p.count]);
        skip_spaces(&c);
        if (peek(&c) == '#') {
            const char *start = c.at++;
            take_name(&c);
            uint32_t alias = hone_names_get(&r->places.aliases, 0, view_between(start, c.at));
            if (alias != HONE_GRAPH_NONE)
                push(&p, r->places.expressions[alias]);
            else
                r->places.missing = true;
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

// Each location is looked into once, when it is first met: places stand in the order of the operations that come from
// them.
void hone_stablehlo_place_operations(hone_stablehlo_reader *r)
{
    hone_graph *g = r->graph;
    hone_stablehlo_places *p = &r->places;
    uint32_t *places = hone_alloc_array(&g->allocator, p->location_count + 1, sizeof *places);
    g->failed |= places == NULL;
    size_t count = p->op_capacity < g->op_count ? p->op_capacity : g->op_count;
    for (size_t i = 0; i < count && !g->failed; i++) {
        if (p->of_op[i] == 0) continue;
        uint32_t number = p->of_op[i] - 1;
        if (places[number] == 0)
            places[number] = 1 + hone_graph_place_of(g, find_path(r, p->locations[number]), (hone_view){0});
        g->ops[i].place = places[number] - 1;
    }
    for (size_t i = 0; i < p->attribute_count && !g->failed; i++) {
        const hone_stablehlo_attribute *attribute = &p->attributes[i];
        hone_graph_op *op = &g->ops[attribute->op];
        hone_view path = op->place != HONE_GRAPH_NONE ? g->places[op->place].path : (hone_view){0};
        op->place = hone_graph_place_of(g, path, attribute->text);
    }
    g->failed |= p->aliases.failed || p->numbered.failed || p->others.failed;
    hone_free(&g->allocator, places);
}
