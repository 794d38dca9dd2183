#include "offline/graph.h"

#include "base/assert.h"

#include <string.h>

void hone_graph_init(hone_graph *graph, const hone_allocator *allocator)
{
    *graph = (hone_graph){.allocator = *allocator, .texts = {.allocator = *allocator}};
    hone_names_init(&graph->place_names, allocator);
    hone_names_init(&graph->opcodes, allocator);
}

void hone_graph_deinit(hone_graph *graph)
{
    const hone_allocator *a = &graph->allocator;
    hone_free(a, graph->ops);
    hone_free(a, graph->details);
    hone_free(a, graph->values);
    hone_free(a, graph->bodies);
    hone_free(a, graph->edges);
    hone_free(a, graph->places);
    hone_free(a, graph->labels);
    hone_free(a, graph->operands);
    hone_free(a, graph->loose);
    hone_arena_destroy(&graph->texts);
    hone_names_deinit(&graph->place_names);
    hone_names_deinit(&graph->opcodes);
    hone_graph_init(graph, &graph->allocator);
}

// Room for one more of an array, and its index.
static uint32_t take(hone_graph *graph, void *array, size_t *count, size_t *capacity, size_t size)
{
    bool room = *count < *capacity || hone_grow(&graph->allocator, array, capacity, *count + 1, size);
    if (graph->failed || !room || *count >= HONE_GRAPH_NONE - 1) {
        graph->failed = true;
        return HONE_GRAPH_NONE;
    }
    return (uint32_t)(*count)++;
}

uint32_t hone_graph_add_body(hone_graph *graph, hone_view name)
{
    uint32_t i = take(graph, &graph->bodies, &graph->body_count, &graph->body_capacity, sizeof *graph->bodies);
    if (i == HONE_GRAPH_NONE) return i;
    graph->bodies[i] = (hone_graph_body){
        .name = name,
        .first_parameter = (uint32_t)graph->value_count,
        .result = HONE_GRAPH_NONE,
        .caller = HONE_GRAPH_NONE,
    };
    return i;
}

static uint32_t add_value(hone_graph *graph, hone_graph_value value)
{
    uint32_t i = take(graph, &graph->values, &graph->value_count, &graph->value_capacity, sizeof *graph->values);
    if (i != HONE_GRAPH_NONE) graph->values[i] = value;
    return i;
}

uint32_t hone_graph_add_parameter(hone_graph *graph, uint32_t body, hone_view type)
{
    if (body == HONE_GRAPH_NONE) return HONE_GRAPH_NONE;
    hone_assert(body < graph->body_count);
    hone_graph_body *b = &graph->bodies[body];
    if (b->parameter_count == 0) b->first_parameter = (uint32_t)graph->value_count;
    if (b->first_parameter + b->parameter_count != graph->value_count) return HONE_GRAPH_NONE;
    hone_graph_value value = {.type = type, .op = HONE_GRAPH_NONE, .body = body, .index = b->parameter_count};
    uint32_t i = add_value(graph, value);
    if (i != HONE_GRAPH_NONE) b->parameter_count++;
    return i;
}

// Those that mean something have the numbers of graph_opcode, others the next ones.
static uint32_t number_opcode(hone_graph *graph, hone_view opcode)
{
    hone_names *names = &graph->opcodes;
    for (uint32_t i = (uint32_t)names->count; i < OPCODE_COUNT && !names->failed; i++)
        hone_names_put(names, 0, hone_opcode_names[i], i);
    uint32_t number = hone_names_get(names, 0, opcode);
    if (number != HONE_NAMES_NONE) return number;
    number = (uint32_t)names->count;
    hone_names_put(names, 0, opcode, number);
    return number;
}

uint32_t hone_graph_add_op(hone_graph *graph, uint32_t body, hone_view opcode)
{
    uint32_t i = take(graph, &graph->ops, &graph->op_count, &graph->op_capacity, sizeof *graph->ops);
    if (i == HONE_GRAPH_NONE) return i;
    graph->ops[i] = (hone_graph_op){
        .opcode = number_opcode(graph, opcode),
        .body = body,
        .place = HONE_GRAPH_NONE,
        .detail = HONE_GRAPH_NONE,
        .first_operand = (uint32_t)graph->operand_count,
        .first_value = (uint32_t)graph->value_count,
    };
    return i;
}

hone_graph_detail *hone_graph_edit_detail(hone_graph *graph, uint32_t op)
{
    hone_assert(op < graph->op_count);
    uint32_t *detail = &graph->ops[op].detail;
    if (*detail != HONE_GRAPH_NONE) return &graph->details[*detail];
    *detail = take(graph, &graph->details, &graph->detail_count, &graph->detail_capacity, sizeof *graph->details);
    if (*detail == HONE_GRAPH_NONE) return NULL;
    graph->details[*detail].number = -1;
    return &graph->details[*detail];
}

const hone_graph_detail *hone_graph_detail_of(const hone_graph *graph, uint32_t op)
{
    static const hone_graph_detail none = {.number = -1};
    hone_assert(op < graph->op_count);
    uint32_t detail = graph->ops[op].detail;
    return detail != HONE_GRAPH_NONE ? &graph->details[detail] : &none;
}

void hone_graph_add_operand(hone_graph *graph, uint32_t value)
{
    uint32_t i =
        take(graph, &graph->operands, &graph->operand_count, &graph->operand_capacity, sizeof *graph->operands);
    if (i == HONE_GRAPH_NONE) return;
    hone_assert(graph->op_count > 0); // an operand is of the operation that was added last
    graph->operands[i] = value;
    graph->ops[graph->op_count - 1].operand_count++;
}

uint32_t hone_graph_add_value(hone_graph *graph, uint32_t op, hone_view type)
{
    if (op == HONE_GRAPH_NONE) return HONE_GRAPH_NONE;
    hone_assert(op < graph->op_count);
    hone_graph_op *o = &graph->ops[op];
    if (o->value_count == 0) o->first_value = (uint32_t)graph->value_count;
    if (o->first_value + o->value_count != graph->value_count) return HONE_GRAPH_NONE;
    hone_graph_value value = {.type = type, .op = op, .body = HONE_GRAPH_NONE, .index = o->value_count};
    uint32_t i = add_value(graph, value);
    if (i != HONE_GRAPH_NONE) o->value_count++;
    return i;
}

void hone_graph_add_edge(hone_graph *graph, uint32_t op, uint32_t body, hone_graph_role role)
{
    if (op == HONE_GRAPH_NONE || body == HONE_GRAPH_NONE) return;
    hone_assert(op < graph->op_count && body < graph->body_count);
    uint32_t i = take(graph, &graph->edges, &graph->edge_count, &graph->edge_capacity, sizeof *graph->edges);
    if (i != HONE_GRAPH_NONE) graph->edges[i] = (hone_graph_edge){op, body, role};
}

// The word that ends at `end`: the name of a scope that opens there.
static hone_view word_before(hone_view path, const char *end)
{
    const char *start = end;
    while (start > path.data && start[-1] != '/' && start[-1] != '(' && start[-1] != ';')
        start--;
    return (hone_view){start, (size_t)(end - start)};
}

// JAX writes a transformation around the scope that it meets first, "vmap(a)/b", and it is of all that stands behind,
// too. What is computed again for a backward part's sake is no part of it.
hone_graph_scopes hone_graph_scopes_of(hone_view path)
{
    static const char again[] = "rematted_computation";
    hone_graph_scopes out = {0};
    const char *end = path.data + path.size;
    for (const char *c = path.data; c < end; c++) {
        const bool is_again =
            *c == again[0] && (size_t)(end - c) >= sizeof again - 1 && memcmp(c, again, sizeof again - 1) == 0;
        if (is_again) out.way = SCOPES_AGAIN;
        if (*c != '(') continue;
        const hone_view word = word_before(path, c);
        out.vmaps += hone_view_is(word, "vmap");
        if (hone_view_is(word, "transpose")) out.way = SCOPES_BACKWARD;
    }
    return out;
}

// Far more than programs have, and few enough that a path of nothing but labels is read in linear time.
enum { LABELS_OF_PLACE = 64, PREFIX_MAX_SIZE = 4096 };

// Paths of merged operations stand side by side with ';' between them.
static const char *start_of_path(hone_view path, const char *label)
{
    const char *at = label;
    while (at > path.data && at[-1] != ';' && label - at < PREFIX_MAX_SIZE)
        at--;
    return at;
}

hone_label_walk hone_graph_labels(const hone_graph *graph, hone_view string)
{
    hone_label_walk walk = hone_label_walk_of(string);
    if (string.size == 0) return walk;
    const char *behind = string.data + string.size;
    walk.closed = graph->bare || (behind < graph->end && *behind == '"');
    return walk;
}

bool hone_graph_has_label(const hone_graph *graph, hone_view string)
{
    hone_label_walk walk = hone_graph_labels(graph, string);
    hone_label label;
    return hone_label_next(&walk, &label);
}

static hone_graph_label *add_label(hone_graph *graph, hone_graph_place *place)
{
    uint32_t i = take(graph, &graph->labels, &graph->label_count, &graph->label_capacity, sizeof *graph->labels);
    if (i == HONE_GRAPH_NONE) return NULL;
    place->label_count++;
    return &graph->labels[i];
}

static void add_labels(hone_graph *graph, hone_graph_place *place, hone_view text)
{
    hone_label_walk walk = hone_graph_labels(graph, text);
    hone_label label;
    while (text.size > 0 && place->label_count < LABELS_OF_PLACE && hone_label_next(&walk, &label)) {
        hone_graph_label *added = add_label(graph, place);
        if (added == NULL) return;
        const char *start = start_of_path(text, label.text.data);
        *added = (hone_graph_label){.label = label, .prefix = {start, (size_t)(label.text.data - start)}};
        added->scopes = hone_graph_scopes_of(added->prefix);
    }
}

// The place of a name within a scope: the one that is there, or a new one without labels yet.
static uint32_t find_place(hone_graph *graph, uint32_t scope, hone_view name, hone_view path, bool *out_new)
{
    uint32_t known = hone_names_get(&graph->place_names, scope, name);
    *out_new = known == HONE_GRAPH_NONE;
    if (!*out_new) return known;
    uint32_t place = take(graph, &graph->places, &graph->place_count, &graph->place_capacity, sizeof *graph->places);
    *out_new = place != HONE_GRAPH_NONE;
    if (!*out_new) return place;
    graph->places[place] = (hone_graph_place){.path = path, .first_label = (uint32_t)graph->label_count};
    hone_names_put(&graph->place_names, scope, name, place);
    return place;
}

uint32_t hone_graph_place_of(hone_graph *graph, hone_view path, hone_view attribute)
{
    bool added;
    uint32_t place = find_place(graph, 0, path, path, &added);
    if (added) add_labels(graph, &graph->places[place], path);
    if (attribute.size == 0 || place == HONE_GRAPH_NONE) return place;
    place = find_place(graph, place + 1, attribute, path, &added);
    if (added) add_labels(graph, &graph->places[place], path);
    if (added) add_labels(graph, &graph->places[place], attribute);
    return place;
}

uint32_t hone_graph_place_named(hone_graph *graph, hone_view operation)
{
    bool added;
    uint32_t place = find_place(graph, HONE_GRAPH_NONE, operation, operation, &added);
    hone_graph_label *label = added ? add_label(graph, &graph->places[place]) : NULL;
    if (label == NULL) return place;
    label->label = (hone_label){.kind = HONE_LABEL_CUT, .text = operation, .operation = operation};
    label->prefix = (hone_view){operation.data, 0};
    return place;
}

void hone_graph_add_loose(hone_graph *graph, hone_view name)
{
    uint32_t i = take(graph, &graph->loose, &graph->loose_count, &graph->loose_capacity, sizeof *graph->loose);
    if (i != HONE_GRAPH_NONE) graph->loose[i] = name;
}

void hone_graph_keep_call(hone_graph *graph, uint32_t op, hone_view string)
{
    size_t size;
    char *text = hone_unescape_mlir(&graph->texts, string, &size);
    graph->failed |= text == NULL;
    hone_graph_detail *detail = text != NULL ? hone_graph_edit_detail(graph, op) : NULL;
    if (detail != NULL) detail->call = (hone_view){text, size};
}
