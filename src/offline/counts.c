// How often a program runs each of its bodies: trips of loops whose counter and bound are constants, and calls.
//
// A loop counts when its condition compares a state of the loop with a bound, and a trip adds a constant to that state:
// `for i = init; i < bound; i += step`, as jax.lax.scan and fori_loop lower. The trips are then ceil((bound - init) /
// step), plus what a closed comparison adds. What is not of this shape has an unknown count, never a guess.
//
// Bodies are walked callers first, in a topological order (A. Kahn, "Topological sorting of large networks", 1962): a
// body runs as often as the sum of its callers' edges. -1 is unknown, and what hangs on it is unknown, too; so is what
// an overflow would make. Paths within a function begin anew: gradients and vmaps around it are known from its callers. Linear in operations and edges.
#include "base/assert.h"
#include "base/number.h"
#include "offline/graph.h"

static uint32_t operand(const hone_graph *graph, uint32_t op, size_t index)
{
    hone_assert(op < graph->op_count);
    const hone_graph_op *o = &graph->ops[op];
    return index < o->operand_count ? graph->operands[o->first_operand + index] : HONE_GRAPH_NONE;
}

static bool is_opcode(const hone_graph *graph, uint32_t value, hone_graph_opcode opcode)
{
    uint32_t op = value == HONE_GRAPH_NONE ? value : graph->values[value].op;
    return op != HONE_GRAPH_NONE && graph->ops[op].opcode == opcode;
}

// Behind conversions, which do not change a small integer.
static uint32_t plain(const hone_graph *graph, uint32_t value)
{
    static const bool same[OPCODE_COUNT] = {
        [OPCODE_CONVERT] = true, [OPCODE_COPY] = true, [OPCODE_BITCAST] = true, [OPCODE_RESHAPE] = true};
    for (int depth = 0; depth < 8 && value != HONE_GRAPH_NONE; depth++) {
        uint32_t op = graph->values[value].op;
        if (op == HONE_GRAPH_NONE || !hone_opcode_is_in(graph->ops[op].opcode, same)) break;
        value = operand(graph, op, 0);
    }
    return value;
}

static bool read_constant(const hone_graph *graph, uint32_t value, int64_t *out)
{
    value = plain(graph, value);
    if (!is_opcode(graph, value, OPCODE_CONSTANT)) return false;
    hone_view literal = hone_graph_detail_of(graph, graph->values[value].op)->literal;
    return hone_integer_parse(literal.data, literal.size, out);
}

// The number of the loop's state element that a value in one of its bodies is; -1: none. In StableHLO the states
// are parameters, in HLO elements of the one parameter.
static int64_t state_index(const hone_graph *graph, uint32_t body, uint32_t value)
{
    value = plain(graph, value);
    if (value == HONE_GRAPH_NONE) return -1;
    const hone_graph_value *v = &graph->values[value];
    if (v->op == HONE_GRAPH_NONE) return v->body == body ? (int64_t)v->index : -1;
    const hone_graph_op *op = &graph->ops[v->op];
    bool element = op->opcode == OPCODE_GET_TUPLE_ELEMENT && op->body == body;
    bool state = element && is_opcode(graph, operand(graph, v->op, 0), OPCODE_PARAMETER);
    return state ? hone_graph_detail_of(graph, v->op)->number : -1;
}

typedef struct loop {
    const hone_graph *graph;
    uint32_t op, condition, body; // body: of the loop
} loop;

// Element i of the values that end an operation's operands: they stand one by one or in one tuple.
static uint32_t element(const hone_graph *graph, uint32_t op, int64_t index)
{
    if (op == HONE_GRAPH_NONE || index < 0) return HONE_GRAPH_NONE;
    if (!graph->tuples) return operand(graph, op, (size_t)index);
    uint32_t tuple = op;
    if (graph->ops[op].opcode != OPCODE_TUPLE) {
        uint32_t value = plain(graph, operand(graph, op, 0));
        tuple = value == HONE_GRAPH_NONE ? value : graph->values[value].op;
    }
    bool made = tuple != HONE_GRAPH_NONE && graph->ops[tuple].opcode == OPCODE_TUPLE;
    return made ? operand(graph, tuple, (size_t)index) : HONE_GRAPH_NONE;
}

static bool find_init(const loop *l, int64_t index, int64_t *out)
{
    return read_constant(l->graph, element(l->graph, l->op, index), out);
}

static uint32_t next_state(const loop *l, int64_t index)
{
    return element(l->graph, l->graph->bodies[l->body].result, index);
}

// What a trip adds to a state: 0 for one that stays.
static bool find_step(const loop *l, int64_t index, int64_t *out)
{
    const hone_graph *g = l->graph;
    uint32_t next = plain(g, next_state(l, index));
    if (next == HONE_GRAPH_NONE) return false;
    *out = 0;
    if (state_index(g, l->body, next) == index) return true;
    bool add = is_opcode(g, next, OPCODE_ADD), subtract = is_opcode(g, next, OPCODE_SUBTRACT);
    if (!add && !subtract) return false;
    uint32_t left = operand(g, g->values[next].op, 0), right = operand(g, g->values[next].op, 1);
    if (add && state_index(g, l->body, right) == index) {
        uint32_t swapped = left;
        left = right;
        right = swapped;
    }
    if (state_index(g, l->body, left) != index || !read_constant(g, right, out)) return false;
    return !subtract || !__builtin_sub_overflow(0, *out, out);
}

bool hone_graph_state_stays(const hone_graph *graph, uint32_t loop_op, uint32_t index)
{
    const hone_graph_op *op = &graph->ops[loop_op];
    loop l = {graph, loop_op, HONE_GRAPH_NONE, HONE_GRAPH_NONE};
    for (uint32_t i = 0; i < op->edge_count; i++)
        if (graph->edges[op->first_edge + i].role == GRAPH_LOOP) l.body = graph->edges[op->first_edge + i].body;
    if (l.body == HONE_GRAPH_NONE || graph->tuples) return false;
    const uint32_t next = next_state(&l, index);
    return next != HONE_GRAPH_NONE && graph->values[next].op == HONE_GRAPH_NONE &&
           state_index(graph, l.body, next) == (int64_t)index;
}

// A bound is a constant, or a state that stays what it was.
static bool find_bound(const loop *l, uint32_t value, int64_t *out)
{
    if (read_constant(l->graph, value, out)) return true;
    int64_t index = state_index(l->graph, l->condition, value), step;
    return index >= 0 && find_step(l, index, &step) && step == 0 && find_init(l, index, out);
}

// Trips of a counter from init by step while it is `direction` bound; -1: not this way.
static int64_t trips(hone_view direction, int64_t init, int64_t step, int64_t bound)
{
    int64_t distance;
    bool up = hone_view_is(direction, "LT") || hone_view_is(direction, "LE");
    bool down = hone_view_is(direction, "GT") || hone_view_is(direction, "GE");
    bool unequal = hone_view_is(direction, "NE");
    bool closed = hone_view_is(direction, "LE") || hone_view_is(direction, "GE");
    if (step == 0 || step == INT64_MIN || !(up || down || unequal)) return -1;
    if ((up && step < 0) || (down && step > 0)) return -1;
    bool failed =
        step > 0 ? __builtin_sub_overflow(bound, init, &distance) : __builtin_sub_overflow(init, bound, &distance);
    if (failed || (closed && __builtin_add_overflow(distance, 1, &distance))) return -1;
    int64_t size = step > 0 ? step : -step;
    if (distance <= 0) return unequal && distance < 0 ? -1 : 0;
    if (unequal && distance % size != 0) return -1;
    return distance / size + (distance % size != 0);
}

static hone_view reversed(hone_view direction)
{
    static const char *const pairs[][2] = {{"LT", "GT"}, {"LE", "GE"}, {"GT", "LT"}, {"GE", "LE"}};
    for (size_t i = 0; i < 4; i++)
        if (hone_view_is(direction, pairs[i][0])) return hone_view_of(pairs[i][1]);
    return direction;
}

// The comparison that ends a loop's condition: StableHLO returns its value, in HLO it is the root.
static uint32_t find_comparison(const loop *l)
{
    const hone_graph *g = l->graph;
    uint32_t op = g->bodies[l->condition].result;
    if (op != HONE_GRAPH_NONE && !g->tuples) {
        uint32_t value = operand(g, op, 0);
        op = value == HONE_GRAPH_NONE ? value : g->values[value].op;
    }
    return op != HONE_GRAPH_NONE && g->ops[op].opcode == OPCODE_COMPARE ? op : HONE_GRAPH_NONE;
}

static int64_t count_trips(const loop *l)
{
    const hone_graph *g = l->graph;
    uint32_t comparison = find_comparison(l);
    if (comparison == HONE_GRAPH_NONE) return -1;
    hone_view direction = hone_graph_detail_of(g, comparison)->literal;
    uint32_t left = operand(g, comparison, 0), right = operand(g, comparison, 1);
    for (int side = 0; side < 2; side++) {
        int64_t index = state_index(g, l->condition, left), init, step, bound;
        if (index >= 0 && find_step(l, index, &step) && step != 0)
            return find_init(l, index, &init) && find_bound(l, right, &bound) ? trips(direction, init, step, bound)
                                                                              : -1;
        uint32_t swapped = left;
        left = right;
        right = swapped;
        direction = reversed(direction);
    }
    return -1;
}

static void count_loop(hone_graph *graph, uint32_t op)
{
    loop l = {graph, op, HONE_GRAPH_NONE, HONE_GRAPH_NONE};
    const hone_graph_op *o = &graph->ops[op];
    for (uint32_t i = 0; i < o->edge_count; i++) {
        const hone_graph_edge *edge = &graph->edges[o->first_edge + i];
        if (edge->role == GRAPH_CONDITION) l.condition = edge->body;
        if (edge->role == GRAPH_LOOP) l.body = edge->body;
    }
    bool known = hone_graph_detail_of(graph, op)->number >= 0; // HLO text may say it after optimisation
    if (known || l.condition == HONE_GRAPH_NONE || l.body == HONE_GRAPH_NONE) return;
    hone_graph_detail *detail = hone_graph_edit_detail(graph, op);
    if (detail != NULL) detail->number = count_trips(&l);
}

static hone_graph_scopes scopes_of_edge(const hone_graph *graph, const hone_graph_edge *edge)
{
    uint32_t place = graph->ops[edge->op].place;
    return place != HONE_GRAPH_NONE ? hone_graph_scopes_of(graph->places[place].path) : (hone_graph_scopes){0};
}

// How often an edge runs its body where the body that it stands in runs so often. Nothing is nothing, whatever the trips.
static int64_t times_of_edge(const hone_graph *graph, const hone_graph_edge *edge, int64_t times)
{
    int64_t product;
    if (edge->role == GRAPH_APPLIED) return -1;
    if (edge->role != GRAPH_LOOP && edge->role != GRAPH_CONDITION) return times;
    int64_t trips_known = hone_graph_detail_of(graph, edge->op)->number;
    if (times < 0 || trips_known < 0 || __builtin_mul_overflow(times, trips_known, &product)) return -1;
    return product;
}

static void add_times(int64_t *sum, int64_t times)
{
    if (*sum < 0 || times < 0 || __builtin_add_overflow(*sum, times, sum)) *sum = -1;
}

// What one caller says of a body: how often it runs it, in which part of the program, and within how many vmaps.
static void add_caller(hone_graph *graph, uint32_t index)
{
    const hone_graph_edge *edge = &graph->edges[index];
    const hone_graph_body *from = &graph->bodies[graph->ops[edge->op].body];
    const hone_graph_scopes scopes = scopes_of_edge(graph, edge);
    const int64_t forward = scopes.way == SCOPES_GO_ON ? from->forward : scopes.way == SCOPES_AGAIN ? from->times : 0;
    hone_graph_body *to = &graph->bodies[edge->body];
    add_times(&to->times, times_of_edge(graph, edge, from->times));
    if (forward != 0) add_times(&to->forward, times_of_edge(graph, edge, forward));
    // Paths in the bodies of loops and branches name all scopes of the function.
    if (to->caller == index) to->vmaps = from->vmaps + (edge->role == GRAPH_CALL ? scopes.vmaps : 0);
}

// Bodies in the order of calls, callers first. What calls itself is never reached and stays unknown.
typedef struct order {
    uint32_t *waiting;      // edges to a body that are not yet counted
    uint32_t *first, *next; // edges out of a body, as lists
    uint32_t *queue;
} order;

static void link_edges(const hone_graph *graph, order *o)
{
    for (size_t i = 0; i < graph->body_count; i++)
        o->first[i] = HONE_GRAPH_NONE;
    for (size_t i = 0; i < graph->edge_count; i++) {
        uint32_t from = graph->ops[graph->edges[i].op].body;
        o->waiting[graph->edges[i].body]++;
        if (from == HONE_GRAPH_NONE) continue;
        o->next[i] = o->first[from];
        o->first[from] = (uint32_t)i;
    }
}

static void spread_times(hone_graph *graph, order *o)
{
    size_t head = 0, tail = 0;
    for (uint32_t i = 0; i < graph->body_count; i++) {
        graph->bodies[i].times = graph->bodies[i].forward = o->waiting[i] == 0;
        if (o->waiting[i] == 0) o->queue[tail++] = i;
    }
    while (head < tail) {
        hone_assert(tail <= graph->body_count); // each body waits once
        for (uint32_t e = o->first[o->queue[head++]]; e != HONE_GRAPH_NONE; e = o->next[e]) {
            uint32_t to = graph->edges[e].body;
            add_caller(graph, e);
            if (--o->waiting[to] == 0) o->queue[tail++] = to;
        }
    }
    for (size_t i = 0; i < graph->body_count; i++)
        if (o->waiting[i] > 0) graph->bodies[i].times = graph->bodies[i].forward = -1;
}

void hone_graph_count(hone_graph *graph)
{
    for (uint32_t i = 0; i < graph->op_count; i++)
        if (graph->ops[i].opcode == OPCODE_WHILE) count_loop(graph, i);
    const hone_allocator *a = &graph->allocator;
    size_t bodies = graph->body_count, size = sizeof(uint32_t);
    order o = {
        hone_alloc_array(a, bodies, size),
        hone_alloc_array(a, bodies, size),
        hone_alloc_array(a, graph->edge_count, size),
        hone_alloc_array(a, bodies, size),
    };
    if (o.waiting != NULL && o.first != NULL && o.next != NULL && o.queue != NULL) {
        link_edges(graph, &o);
        spread_times(graph, &o);
    } else {
        graph->failed = true;
    }
    hone_free(a, o.waiting);
    hone_free(a, o.first);
    hone_free(a, o.next);
    hone_free(a, o.queue);
}
