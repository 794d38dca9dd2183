// What a call reads: the arrays from outside of its operations, the constants in them, and what they make.
//
// A walk from the operations of the call to their operands: what XLA put between (layout changes, operations without a
// place) is walked through, what else is outside is an array that the call reads. `stamp` marks what was seen in this
// walk by its number, so that nothing is cleared between two. Meanwhile union-find with path halving (R. Tarjan and J.
// van Leeuwen, 1984) joins what values connect; the root of a part is its first operation, so that parts come in the
// order of the program. Linear but for what is walked through, which BEHIND_MAX bounds.
#include "base/assert.h"
#include "base/number.h"
#include "offline/finder.h"

#include <string.h>

enum { BEHIND_MAX = 1024, CALLEES_MAX = 64, CALLEE_OPS = 8000 };

// What XLA puts in to change how an array lies in memory.
static const bool layout_opcodes[OPCODE_COUNT] = {
    [OPCODE_BITCAST] = true,    [OPCODE_BITCAST_CONVERT] = true, [OPCODE_COPY] = true,
    [OPCODE_COPY_START] = true, [OPCODE_COPY_DONE] = true,       [OPCODE_RESHAPE] = true,
    [OPCODE_TRANSPOSE] = true,  [OPCODE_CONVERT] = true,         [OPCODE_OPTIMIZATION_BARRIER] = true,
};
static const bool opaque_opcodes[OPCODE_COUNT] = {
    [OPCODE_PARAMETER] = true,
    [OPCODE_GET_TUPLE_ELEMENT] = true,
    [OPCODE_WHILE] = true,
    [OPCODE_CONDITIONAL] = true,
    [OPCODE_CALL] = true,
    [OPCODE_CUSTOM_CALL] = true,
    [OPCODE_INFEED] = true,
    [OPCODE_RNG] = true,
    [OPCODE_RNG_BIT_GENERATOR] = true,
};

// A place of the program is a path of scopes; a lone word is a parameter's name that XLA spread to copies of it.
static bool has_place(const hone_graph *graph, const hone_graph_op *op)
{
    hone_view path = op->place != HONE_GRAPH_NONE ? graph->places[op->place].path : (hone_view){0};
    return path.size > 0 && memchr(path.data, '/', path.size) != NULL;
}

static bool is_transparent(const hone_graph *graph, uint32_t op, hone_finder_reach how)
{
    const hone_graph_op *o = &graph->ops[op];
    if (o->opcode == OPCODE_TUPLE) return true;
    if (how == REACH_DIRECT || has_place(graph, o)) return false;
    if (hone_opcode_is_in(o->opcode, layout_opcodes)) return true;
    return how == REACH_UNPLACED && o->place == HONE_GRAPH_NONE && !hone_opcode_is_in(o->opcode, opaque_opcodes);
}

uint32_t hone_finder_root(hone_finder *f, uint32_t op)
{
    hone_assert(op < f->graph->op_count && f->stamp[op] == f->serial);
    while (f->parent[op] != op) {
        f->parent[op] = f->parent[f->parent[op]];
        op = f->parent[op];
    }
    return op;
}

static void join(hone_finder *f, uint32_t a, uint32_t b)
{
    uint32_t ra = hone_finder_root(f, a), rb = hone_finder_root(f, b);
    if (ra != rb) f->parent[ra > rb ? ra : rb] = ra > rb ? rb : ra;
}

static void see(hone_finder *f, uint32_t op)
{
    if (f->stamp[op] == f->serial) return;
    if (!hone_grow(&f->graph->allocator, &f->work, &f->work_capacity, f->work_count + 1, sizeof *f->work)) {
        f->failed = true;
        return;
    }
    f->stamp[op] = f->serial;
    f->parent[op] = op;
    f->work[f->work_count++] = op;
}

static void add_type(const hone_graph *graph, uint32_t value, hone_operands *out)
{
    if (out->count == HONE_TYPES_MAX) return;
    hone_view type = graph->values[value].type;
    for (uint32_t i = 0; i < out->count; i++)
        if (out->types[i].size == type.size &&
            (out->types[i].data == type.data || hone_view_equal(out->types[i], type)))
            return;
    out->types[out->count++] = type;
}

// Takes an operand of an operation of the call: part of it, transparent, or one of the arrays that the call reads.
static void read_operand(
    hone_finder *f, uint32_t reader, uint32_t value, hone_finder_reach how, bool constants, hone_operands *out)
{
    const hone_graph *g = f->graph;
    if (value == HONE_GRAPH_NONE) return;
    value = hone_graph_source(g, value);
    uint32_t op = g->values[value].op;
    bool constant = op != HONE_GRAPH_NONE && g->ops[op].constant;
    bool inside = op != HONE_GRAPH_NONE && f->stamp[op] == f->serial;
    bool more = !inside && op != HONE_GRAPH_NONE && !constant && f->work_count < f->work_max;
    if (more && is_transparent(g, op, how)) {
        see(f, op);
        inside = !f->failed;
    }
    if (inside)
        join(f, reader, op);
    else if (out != NULL && constant == constants)
        add_type(g, value, out);
}

// Follows all operands of the operations at hand; work grows by what is transparent.
void hone_finder_follow(hone_finder *f, hone_finder_reach how, bool constants, hone_operands *out)
{
    const hone_graph *g = f->graph;
    for (size_t i = 0; i < f->work_count && !f->failed; i++) {
        uint32_t reader = f->work[i];
        const hone_graph_op *op = &g->ops[reader];
        for (uint32_t k = 0; k < op->operand_count; k++)
            read_operand(f, reader, g->operands[op->first_operand + k], how, constants, out);
    }
}

void hone_finder_begin(hone_finder *f, const uint32_t *ops, size_t count)
{
    f->serial++;
    f->work_count = 0;
    for (size_t i = 0; i < count; i++)
        see(f, ops[i]);
    f->work_max = f->work_count + BEHIND_MAX;
}

// A call that still is a call of a function names its arguments one by one.
static bool read_exact(const hone_graph *graph, const uint32_t *ops, size_t count, hone_operands *out)
{
    uint32_t call = HONE_GRAPH_NONE;
    for (size_t i = 0; i < count; i++) {
        const hone_graph_op *op = &graph->ops[ops[i]];
        if (op->constant) continue;
        bool calls =
            op->opcode == OPCODE_CALL || op->opcode == OPCODE_CUSTOM_CALL || op->opcode == OPCODE_CUSTOM_CALL_MLIR;
        if (call != HONE_GRAPH_NONE || !calls) return false;
        call = ops[i];
    }
    if (call == HONE_GRAPH_NONE) return false;
    const hone_graph_op *op = &graph->ops[call];
    *out = (hone_operands){.exact = true};
    for (uint32_t k = 0; k < op->operand_count && k < HONE_TYPES_MAX; k++) {
        uint32_t value = graph->operands[op->first_operand + k];
        if (value != HONE_GRAPH_NONE) out->types[out->count++] = graph->values[value].type;
    }
    return out->count > 0;
}

void hone_finder_read_views(hone_finder *f, const uint32_t *ops, size_t count, hone_found *out)
{
    static const hone_finder_reach before[] = {REACH_DIRECT, REACH_LAYOUT},
                                   after[] = {REACH_UNPLACED, REACH_LAYOUT, REACH_DIRECT};
    const hone_graph *g = f->graph;
    const hone_finder_reach *ways = g->optimised ? after : before;
    size_t way_count = g->optimised ? 3 : g->tuples ? 2 : 1;
    if (read_exact(g, ops, count, &out->views[0])) out->view_count = 1;
    for (size_t i = 0; i < way_count && out->view_count < HONE_VIEWS_MAX; i++) {
        hone_operands *view = &out->views[out->view_count];
        *view = (hone_operands){0};
        hone_finder_begin(f, ops, count);
        hone_finder_follow(f, ways[i], false, view);
        out->view_count += view->count > 0;
    }
    if (out->view_count > 0) return;
    out->views[0] = (hone_operands){0};
    hone_finder_begin(f, ops, count); // all that it reads are constants of the program
    hone_finder_follow(f, ways[0], true, &out->views[0]);
    out->view_count = out->views[0].count > 0;
}

static void add_literal(hone_found *out, hone_view literal)
{
    double value;
    if (out->literal_count == HONE_LITERALS_MAX) return;
    for (uint32_t i = 0; i < out->literal_count; i++)
        if (hone_view_equal(out->literals[i], literal)) return;
    if (!hone_number_parse(literal.data, literal.size, &value)) return;
    out->literals[out->literal_count++] = literal;
}

static void read_literals_of(const hone_graph *graph, uint32_t op, hone_found *out)
{
    const hone_graph_op *o = &graph->ops[op];
    if (o->opcode == OPCODE_CONSTANT) add_literal(out, hone_graph_detail_of(graph, op)->literal);
    for (uint32_t k = 0; k < o->operand_count; k++) {
        uint32_t value = graph->operands[o->first_operand + k];
        uint32_t from = value == HONE_GRAPH_NONE ? value : graph->values[value].op;
        if (from != HONE_GRAPH_NONE && graph->ops[from].opcode == OPCODE_CONSTANT)
            add_literal(out, hone_graph_detail_of(graph, from)->literal);
    }
}

// The constants of a call and of the bodies that it runs, as far as a budget of operations goes.
void hone_finder_read_literals(hone_finder *f, const uint32_t *ops, size_t count, hone_found *out)
{
    const hone_graph *g = f->graph;
    uint32_t bodies[CALLEES_MAX];
    size_t body_count = 0, budget = CALLEE_OPS;
    for (size_t i = 0, next = 0; budget > 0; budget--) {
        while (i == count && next < body_count) { // into the next body
            uint32_t body = bodies[next++];
            ops = f->body_ops + f->body_first[body];
            count = f->body_first[body + 1] - f->body_first[body];
            i = 0;
        }
        if (i == count) break;
        const hone_graph_op *op = &g->ops[ops[i]];
        out->multiplies = out->multiplies || hone_opcode_is_in(op->opcode, hone_opcode_products);
        read_literals_of(g, ops[i++], out);
        for (uint32_t e = 0; e < op->edge_count && body_count < CALLEES_MAX; e++)
            bodies[body_count++] = g->edges[op->first_edge + e].body;
    }
}

// Each array counts once, and constants do not. An operation's results are not counted either.
void hone_finder_read_bytes(hone_finder *f, const uint32_t *ops, size_t count, hone_found *out)
{
    enum { ARRAYS = 64 };
    const hone_graph *g = f->graph;
    uint32_t seen[ARRAYS];
    size_t seen_count = 0;
    out->read_bytes = out->once_bytes = 0;
    hone_finder_begin(f, ops, count);
    hone_finder_follow(f, REACH_DIRECT, false, NULL);
    for (size_t i = 0; i < f->work_count; i++) {
        const hone_graph_op *op = &g->ops[f->work[i]];
        for (uint32_t k = 0; k < op->operand_count && seen_count < ARRAYS; k++) {
            uint32_t value = g->operands[op->first_operand + k];
            if (value == HONE_GRAPH_NONE) continue;
            value = hone_graph_source(g, value);
            const uint32_t from = g->values[value].op;
            bool counts = from == HONE_GRAPH_NONE || (!g->ops[from].constant && f->stamp[from] != f->serial);
            for (size_t s = 0; s < seen_count && counts; s++)
                counts = seen[s] != value;
            if (!counts) continue;
            const int64_t bytes = hone_reuse_bytes(g->values[value].type);
            seen[seen_count++] = value;
            out->read_bytes += bytes;
            if (hone_reuse_is_once(&f->reuse, value)) out->once_bytes += bytes;
        }
    }
    if (out->read_bytes == 0) out->read_bytes = out->once_bytes = -1;
}

// The last ones first: a call ends with its results.
void hone_finder_read_made(const hone_graph *graph, const uint32_t *ops, size_t count, hone_operands *out)
{
    for (size_t i = count; i-- > 0;) {
        const hone_graph_op *op = &graph->ops[ops[i]];
        for (uint32_t k = 0; k < op->value_count; k++)
            add_type(graph, op->first_value + k, out);
    }
}
